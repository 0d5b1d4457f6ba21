"""A declared Renyi guarantee at one or more orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dptally import checks
from dptally.accounting import group
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.law import Law
from dptally.laws.moment_bound import RenyiBound, order_less_one
from dptally.laws.two_point import TwoPointLaw
from dptally.mechanisms.assumption import DECLARED, Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.numerics.rounding import up

__all__ = ["RenyiDP"]


def _from_text(orders: Any, epsilons: Any) -> RenyiDP:
    """One order, or as many epsilons as orders."""
    return RenyiDP(*(value if isinstance(value, tuple) else (value,) for value in (orders, epsilons)))


@declared(
    section="guarantees",
    plan="renyi",
    maker=_from_text,
    example={"orders": (2.0, 8.0), "epsilons": (0.1, 0.6)},
    definition="renyi",
)
@dataclass(frozen=True, slots=True)
class RenyiDP(Mechanism):
    """Renyi divergence of order ``orders[i]`` at most ``epsilons[i]``, in both directions.

    [Mironov 2017, Renyi differential privacy, Def. 4]

    Orders in (1, inf]. Between the orders it is used that (a - 1) D_a is convex in a, and below an order that
    randomized response is the worst; beyond the last nothing is known and the answer is infinite. Order inf is pure
    DP, so (inf, epsilon) answers as ``PureDP(epsilon)`` does.

    >>> RenyiDP(orders=(2, 4), epsilons=(0.1, 0.3)).renyi([1.5, 4.0]).round(6)
    array([0.076546, 0.3     ])
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

    def assumptions(self) -> tuple[Assumption, ...]:
        return (DECLARED,)

    def laws(self) -> tuple[Law, ...]:
        pairs = list(zip(self.orders, self.epsilons, strict=True))
        if any(epsilon == 0 for _, epsilon in pairs):
            return ()  # D_a = 0 means P = Q
        knots = tuple((order_less_one(a), up((a - 1.0) * epsilon, 2)) for a, epsilon in pairs if a < math.inf)
        if pairs[-1][0] < math.inf:
            return (RenyiBound(knots),)
        pure = TwoPointLaw.of_guarantee(pairs[-1][1])
        told = pure.log_moment(np.array([t for t, _ in knots]))
        if all(k >= least for (_, k), least in zip(knots, told, strict=True)):
            return (pure,)  # order infinity is pure DP, and says at least as much as the other orders
        return (RenyiBound(knots, pairs[-1][1]),)

    def grouped(self, size: int) -> RenyiDP:
        """At every order that a declared one gives for the group, by either constant (``dptally.accounting.group``)."""
        found: dict[float, float] = {}
        for order, epsilon in zip(self.orders, self.epsilons, strict=True):
            for constant in ("sharp", "equal-order"):
                try:
                    one = group.renyi(order, epsilon, size, constant)
                except InvalidArgument:  # the order is too small for groups of this size
                    continue
                at = float(one.order or math.inf)
                found[at] = min(found.get(at, math.inf), one.value)
        if not found:
            raise Unanswerable(
                f"no order of {list(self.orders)} is large enough for groups of {size}: orders above "
                f"{2 ** (size - 1).bit_length()} are; state such an order"
            )
        return RenyiDP(tuple(found), tuple(found.values()))


def _listed(name: str, values: object) -> tuple[float, ...]:
    alone = isinstance(values, (str, bytes)) or (isinstance(values, np.ndarray) and values.ndim == 0)
    if alone or not isinstance(values, (Sequence, np.ndarray)):
        raise InvalidType(name, "a sequence of numbers", values)
    return tuple(checks.real(name, value) for value in values)
