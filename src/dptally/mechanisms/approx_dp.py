"""A declared approximate guarantee."""

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

__all__ = ["ApproxDP"]


@declared(
    section="guarantees",
    plan="approx",
    example={"epsilon": 0.5, "delta": 1e-6},
    zero=("epsilon", "delta"),
    refuses={"delta": (1.5,)},
    definition="approx",
)
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproxDP(Mechanism):
    """Any (``epsilon``, ``delta``)-differentially private mechanism: P(S) <= e^epsilon Q(S) + delta for
    every event S.

    The dominating pair reveals everything with probability delta and is randomized response otherwise
    [Kairouz, Oh, Viswanath 2015, Thm. 3.3; Dong, Roth, Su 2022, Prop. 2.5].

    >>> ApproxDP(1.0, 1e-6)
    ApproxDP(epsilon=1.0, delta=1e-06)
    """

    declared_epsilon: float
    declared_delta: float
    json_name: ClassVar[str] = "approx_dp"

    def __init__(self, epsilon: float, delta: float) -> None:
        object.__setattr__(self, "declared_epsilon", checks.nonnegative("epsilon", epsilon))
        object.__setattr__(self, "declared_delta", checks.probability("delta", delta))

    def assumptions(self) -> tuple[Assumption, ...]:
        return (DECLARED,)

    def laws(self) -> tuple[Law, ...]:
        if self.declared_epsilon == 0 and self.declared_delta == 0:
            return ()
        return (TwoPointLaw.of_guarantee(self.declared_epsilon, self.declared_delta),)

    def grouped(self, size: int) -> ApproxDP:
        found = group.approximate(self.declared_epsilon, self.declared_delta, size)
        return ApproxDP(found.value, found.delta)
