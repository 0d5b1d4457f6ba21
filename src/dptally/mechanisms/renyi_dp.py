"""A declared Renyi guarantee at one or more orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptally import checks
from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.law import Law, MomentBound
from dptally.law.law import Numbers
from dptally.mechanisms.mechanism import Mechanism
from dptally.numerics.rounding import up

__all__ = ["RenyiBound", "RenyiDP", "order_less_one", "real_orders"]


@dataclass(frozen=True, slots=True)
class RenyiBound(MomentBound):
    """K(t_i) <= k_i at increasing t_i > 0, and what that implies elsewhere.

    K is convex and K(0) = 0 (there is no mass at infinity), so the lower convex envelope of (0, 0) and the
    points bounds it: between two orders (a - 1) D_a is at most linear, below the first D_a is at most the
    first, beyond the last nothing is known. ``limit`` is the divergence of order infinity if declared:
    K(t) <= t limit.
    """

    knots: tuple[tuple[float, float], ...]
    limit: float = math.inf
    theorem: ClassVar[str] = "van Erven, Harremoes 2014, Renyi divergence, Thm. 3 (monotone), Cor. 2 ((a-1) D_a convex)"

    def log_moment(self, t: Numbers) -> Numbers:
        t = real_orders(self, t)
        at, value = _envelope(self.knots)
        inside = np.interp(t, at, value)
        bound = np.where(t > at[-1], np.inf, inside)
        if self.limit < math.inf:
            bound = np.minimum(bound, np.where(t > 0, t, 0.0) * self.limit)
        return np.where(bound > 0, up(bound, 4), 0.0)

    @property
    def mean(self) -> float:
        """An upper bound of the KL divergence: the divergence of the lowest order."""
        return min([up(k / t) for t, k in self.knots[:1]] + [self.limit])

    @property
    def supremum(self) -> float:
        """The divergence of order infinity, where it is declared."""
        return self.limit

    @property
    def infimum(self) -> float:
        return -self.limit


def _envelope(knots: tuple[tuple[float, float], ...]) -> tuple[Floats, Floats]:
    """The lower convex envelope of (0, 0) and the knots.

    Any interpolation between knots is valid, so a knot dropped or kept by rounding costs tightness only.
    """
    hull: list[tuple[float, float]] = [(0.0, 0.0)]
    for t, k in knots:
        while len(hull) > 1:
            (t0, k0), (t1, k1) = hull[-2:]
            if (k1 - k0) * (t - t0) < (k - k0) * (t1 - t0):
                break
            hull.pop()
        hull.append((t, k))
    table = np.array(hull)
    return table[:, 0], table[:, 1]


def real_orders(law: Law, t: Numbers) -> Floats:
    """t as real numbers in [-1, inf); a bound of Renyi divergences says nothing of K elsewhere."""
    t = np.asarray(t)
    if np.iscomplexobj(t) or (t < -1).any():
        raise Unanswerable(
            f"{type(law).__name__} bounds the log-moment at real t >= -1 only, not elsewhere; "
            "ask epsilon(delta=...) or renyi(order) for an upper bound"
        )
    return t.astype(np.float64)


@dataclass(frozen=True, slots=True)
class RenyiDP(Mechanism):
    """Renyi divergence of order ``orders[i]`` at most ``epsilons[i]``, in both directions.

    [Mironov 2017, Renyi differential privacy, Def. 4]

    Orders in (1, inf]. Between the orders it is used that (a - 1) D_a is convex in a, below the first that
    D_a does not decrease in a; beyond the last nothing is known and the answer is infinite.

    >>> RenyiDP(orders=(2, 4), epsilons=(0.1, 0.3)).renyi([1.5, 4.0])
    array([0.1, 0.3])
    """

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]
    json_name: ClassVar[str] = "renyi_dp"

    def __post_init__(self) -> None:
        orders = _listed("orders", self.orders)
        epsilons = _listed("epsilons", self.epsilons)
        if len(orders) != len(epsilons) or not orders:
            raise InvalidArgument("epsilons", f"one for each of the {len(orders)} orders, and at least one", epsilons)
        for order in orders:
            if not order > 1:
                raise InvalidArgument("orders", "all greater than 1", order)
        if len(set(orders)) < len(orders):
            raise InvalidArgument("orders", "all different", orders)
        for epsilon in epsilons:
            checks.nonnegative("epsilons", epsilon)
        pairs = sorted(zip(orders, epsilons, strict=True))
        object.__setattr__(self, "orders", tuple(order for order, _ in pairs))
        object.__setattr__(self, "epsilons", tuple(abs(epsilon) for _, epsilon in pairs))

    def laws(self) -> tuple[Law, ...]:
        pairs = list(zip(self.orders, self.epsilons, strict=True))
        if any(epsilon == 0 for _, epsilon in pairs):
            return ()  # D_a = 0 means P = Q
        knots = tuple((order_less_one(a), up((a - 1.0) * epsilon, 2)) for a, epsilon in pairs if a < math.inf)
        return (RenyiBound(knots, pairs[-1][1] if pairs[-1][0] == math.inf else math.inf),)


def order_less_one(order: float) -> float:
    """order - 1, which is exact up to 2^53, rounded down beyond."""
    return order - 1.0 if order <= 2.0**53 else math.nextafter(order, 0.0)


def _listed(name: str, values: object) -> tuple[float, ...]:
    alone = isinstance(values, (str, bytes)) or (isinstance(values, np.ndarray) and values.ndim == 0)
    if alone or not isinstance(values, (Sequence, np.ndarray)):
        raise InvalidType(name, "a sequence of numbers", values)
    return tuple(checks.real(name, value) for value in values)
