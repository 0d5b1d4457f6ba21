"""Guarantees that bound the log-moment at real orders: Renyi DP and zero-concentrated DP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.law import Law, MomentBound
from dptally.law.law import Numbers
from dptally.laws.response import log_moment_above, loss_with
from dptally.laws.two_point import TwoPointLaw
from dptally.numerics.normal import gaussian_mu_of_pure
from dptally.numerics.rounding import EPS, up

_TRUST = 256 * EPS  # of the log-moment of randomized response

__all__ = ["RenyiBound", "ShiftedZCDPBound", "ZCDPBound", "order_less_one", "real_orders"]


@dataclass(frozen=True, slots=True)
class RenyiBound(MomentBound):
    """K(t_i) <= k_i at increasing t_i > 0, and what that implies elsewhere.

    K is convex and K(0) = 0 (there is no mass at infinity), so the lower convex envelope of (0, 0) and the points
    bounds it: between two orders (a - 1) D_a is at most linear, beyond the last nothing is known. Both directions are
    bounded, so below a declared order every divergence is at most that of the randomized response with the declared
    one (proof: ``conversions.renyi_to_lower_order``). ``limit`` is the divergence of order infinity if declared, which
    is pure DP: then K is at most that of randomized response too, which dominates it.
    """

    knots: tuple[tuple[float, float], ...]
    limit: float = math.inf
    both_ways: ClassVar[bool] = True
    theorem: ClassVar[str] = "van Erven, Harremoes 2014, Renyi divergence, Thm. 3 (monotone), Cor. 2 ((a-1) D_a convex)"

    def log_moment(self, t: Numbers) -> Numbers:
        t = real_orders(self, t)
        at, value = _envelope(self.knots)
        inside = np.interp(t, at, value)
        bound = np.minimum(np.where(t > at[-1], np.inf, inside), self._below_an_order(t))
        if self.limit < math.inf:
            pure = TwoPointLaw.of_guarantee(self.limit).log_moment(np.maximum(t, 0.0)) * (1 + _TRUST)
            bound = np.minimum(bound, pure)
        return np.where(bound > 0, up(bound, 4), 0.0)

    def _below_an_order(self, t: Floats) -> Floats:
        """What each declared order says of the lower ones by itself: they are at most those of randomized response."""
        bound = np.full(t.shape, np.inf)
        for (at, _), loss in zip(self.knots, _responses(self.knots), strict=True):
            below = (t > 0) & (t < at)
            bound[below] = np.minimum(bound[below], log_moment_above(t[below], np.full(int(below.sum()), loss)))
        return bound

    @property
    def mean(self) -> float:
        """An upper bound of the KL divergence: that of the randomized responses."""
        return min(up(loss * math.tanh(0.5 * loss), 8) for loss in (*_responses(self.knots), self.limit))

    def orders(self) -> tuple[float, ...]:
        return tuple(t for t, _ in self.knots)

    def dominating(self) -> Law | None:
        return TwoPointLaw.of_guarantee(self.limit) if self.limit < math.inf else None

    def gaussian_mu(self) -> float:
        return gaussian_mu_of_pure(self.limit) if self.limit < math.inf else math.inf

    @property
    def supremum(self) -> float:
        """The divergence of order infinity, where it is declared."""
        return self.limit

    @property
    def infimum(self) -> float:
        return -self.limit


@lru_cache(maxsize=256)
def _responses(knots: tuple[tuple[float, float], ...]) -> tuple[float, ...]:
    """The loss of the randomized response with each moment."""
    t, k = np.array(knots).reshape(-1, 2).T
    return tuple(loss_with(t, k).tolist())


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


def order_less_one(order: float) -> float:
    """order - 1, which is exact up to 2^53, rounded down beyond."""
    return order - 1.0 if order <= 2.0**53 else math.nextafter(order, 0.0)


@dataclass(frozen=True, slots=True)
class ZCDPBound(MomentBound):
    """K(t) <= rho t (t + 1) for t >= 0; rho adds."""

    rho: float
    theorem: ClassVar[str] = "Bun, Steinke 2016, Concentrated differential privacy, Def. 1.1 and Lemma 1.7"
    both_ways: ClassVar[bool] = True
    collapses: ClassVar[bool] = True

    @classmethod
    def collapse(cls, parts: tuple[tuple[Law, int], ...]) -> Law:
        rounded = [n * law.rho for law, n in parts if isinstance(law, ZCDPBound)]
        exact = len(parts) == 1 and parts[0][1] == 1
        return cls(rounded[0] if exact else up(math.fsum(rounded), 2))

    def log_moment(self, t: Numbers) -> Numbers:
        t = real_orders(self, t)
        # on [-1, 0] K is convex with both ends at most 0
        return np.where(t > 0, self.rho * t * (t + 1.0), 0.0)

    @property
    def mean(self) -> float:
        """An upper bound of the KL divergence."""
        return self.rho

    def closed_rho(self) -> float | None:
        return self.rho


@dataclass(frozen=True, slots=True)
class ShiftedZCDPBound(MomentBound):
    """K(t) <= t (xi + rho (t + 1)) for t >= 0; xi and rho add.

    As a multiple of t (t + 1) this is rho + xi / (t + 1), at most rho + xi: the least zCDP that contains it.
    """

    rho: float
    xi: float
    theorem: ClassVar[str] = "Bun, Steinke 2016, Concentrated differential privacy, Def. 8.1 and Lemma 1.7"
    both_ways: ClassVar[bool] = True
    collapses: ClassVar[bool] = True

    @classmethod
    def collapse(cls, parts: tuple[tuple[Law, int], ...]) -> Law:
        if len(parts) == 1 and parts[0][1] == 1:
            return parts[0][0]
        own = [(law, n) for law, n in parts if isinstance(law, ShiftedZCDPBound)]
        sums = (math.fsum(n * getattr(law, name) for law, n in own) for name in ("rho", "xi"))
        return cls(*(up(total, 2) if total > 0 else 0.0 for total in sums))

    def log_moment(self, t: Numbers) -> Numbers:
        t = real_orders(self, t)
        return np.where(t > 0, up(t * (self.xi + self.rho * (t + 1.0)), 4), 0.0)

    @property
    def mean(self) -> float:
        """An upper bound of the KL divergence."""
        return up(self.xi + self.rho)

    def closed_rho(self) -> float | None:
        return up(self.xi + self.rho)
