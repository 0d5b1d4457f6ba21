"""A declared pure guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally import checks
from dptally.accounting import group
from dptally.law import Law
from dptally.laws.two_point import TwoPointLaw
from dptally.mechanisms.assumption import DECLARED, Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared

__all__ = ["PureDP"]


@declared(section="guarantees", plan="pure", example={"epsilon": 0.5}, zero=("epsilon",), definition="pure")
@dataclass(frozen=True, slots=True, init=False, repr=False)
class PureDP(Mechanism):
    """Any ``epsilon``-differentially private mechanism: P(S) <= e^epsilon Q(S) for every event S.

    Randomized response with the same epsilon dominates it  [Kairouz, Oh, Viswanath 2015, Thm. 3.1].

    >>> PureDP(0.5).renyi(float("inf"))
    0.5
    """

    declared_epsilon: float
    json_name: ClassVar[str] = "pure_dp"

    def __init__(self, epsilon: float) -> None:
        object.__setattr__(self, "declared_epsilon", checks.nonnegative("epsilon", epsilon))

    def assumptions(self) -> tuple[Assumption, ...]:
        return (DECLARED,)

    def laws(self) -> tuple[Law, ...]:
        return (TwoPointLaw.of_guarantee(self.declared_epsilon),) if self.declared_epsilon > 0 else ()

    def grouped(self, size: int) -> PureDP:
        return PureDP(group.pure(self.declared_epsilon, size).value)
