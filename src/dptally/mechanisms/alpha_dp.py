"""A declared alpha-divergence guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dptally import checks
from dptally.accounting import group
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.laws.moment_bound import RenyiBound, order_less_one
from dptally.mechanisms.assumption import DECLARED, Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.numerics.rounding import up

__all__ = ["AlphaDP"]


@declared(
    section="guarantees",
    plan="alpha",
    example={"alpha": 2.5, "epsilon": 0.3},
    zero=("epsilon",),
    refuses={"alpha": (1, 1.0)},
    definition="alpha",
)
@dataclass(frozen=True, slots=True, init=False, repr=False)
class AlphaDP(Mechanism):
    """Alpha divergence (E_Q[(P/Q)^a] - 1) / (a (a - 1)) of order ``alpha`` at most ``epsilon``.

    It holds in both directions.

    Renyi DP in other units: exp((a - 1) D_a) = 1 + a (a - 1) epsilon, so it answers exactly what
    ``RenyiDP([alpha], [log(1 + alpha (alpha - 1) epsilon) / (alpha - 1)])`` answers.

    >>> round(AlphaDP(alpha=2.0, epsilon=0.5).alpha_divergence(2.0), 12)
    0.5
    """

    alpha: float
    declared_epsilon: float
    json_name: ClassVar[str] = "alpha_dp"

    def __init__(self, alpha: float, epsilon: float) -> None:
        order = checks.finite("alpha", alpha)
        if not order > 1:
            raise InvalidArgument("alpha", "greater than 1 and finite", alpha)
        object.__setattr__(self, "alpha", order)
        object.__setattr__(self, "declared_epsilon", checks.nonnegative("epsilon", epsilon))

    def assumptions(self) -> tuple[Assumption, ...]:
        return (DECLARED,)

    def laws(self) -> tuple[Law, ...]:
        a, epsilon = self.alpha, self.declared_epsilon
        if epsilon == 0:
            return ()
        log_excess = math.log(a) + math.log(a - 1.0) + math.log(epsilon)
        moment = math.log1p(a * (a - 1.0) * epsilon) if log_excess < 700 else log_excess
        return (RenyiBound(((order_less_one(a), up(moment, 8)),)),)

    def grouped(self, size: int) -> AlphaDP:
        """At the order alpha / 2^ceil(log2 size), which must stay above 1."""
        found = group.alpha(self.alpha, self.declared_epsilon, size)
        return AlphaDP(float(found.order or 0.0), found.value)
