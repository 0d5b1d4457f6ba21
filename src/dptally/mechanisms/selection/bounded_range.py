"""A declared bounded-range guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally.law import Law
from dptally.mechanisms.assumption import DECLARED, Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.mechanisms.selection.shared import bounded_range, checked_range, grown

__all__ = ["BoundedRange"]


@declared(section="selection", plan="bounded_range", example={"epsilon": 0.25}, zero=("epsilon",))
@dataclass(frozen=True, slots=True, init=False, repr=False)
class BoundedRange(Mechanism):
    """Any mechanism whose losses on two neighbouring datasets span at most ``epsilon``: sup L - inf L <= epsilon.

    [Dong, Durfee, Rogers 2020] Every epsilon-bounded-range mechanism is epsilon-DP, and every
    epsilon/2-DP mechanism has range epsilon.

    >>> BoundedRange(0.5).epsilon(0.0)
    0.5
    """

    declared_epsilon: float
    json_name: ClassVar[str] = "bounded_range"

    def __init__(self, epsilon: float) -> None:
        object.__setattr__(self, "declared_epsilon", checked_range("epsilon", epsilon))

    def assumptions(self) -> tuple[Assumption, ...]:
        return (DECLARED,)

    def laws(self) -> tuple[Law, ...]:
        return bounded_range(self.declared_epsilon)

    def grouped(self, size: int) -> BoundedRange:
        """Along a chain of neighbours losses add, and so do their ranges."""
        return BoundedRange(grown(self.declared_epsilon, size))
