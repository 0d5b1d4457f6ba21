"""The k best candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.laws.bounded_range.law import BoundedRangeLaw
from dptally.mechanisms.assumption import Assumption
from dptally.mechanisms.composed import MOST_COPIES
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.mechanisms.selection.shared import SCORES, bounded_range, checked_range, grown

__all__ = ["TopK"]


@declared(
    section="selection",
    plan="top_k",
    example={"epsilon": 0.25, "k": 3},
    zero=("epsilon",),
    refuses={"k": (1.5, 2**60)},
)
@dataclass(frozen=True, slots=True, init=False, repr=False)
class TopK(Mechanism):
    """The ``k`` best candidates in order: ``k`` times the exponential mechanism, each on those that are left.

    Each peel has ``epsilon``; the same as adding Gumbel noise of scale 2 sensitivity / epsilon once and naming the k
    largest [Durfee, Rogers 2019]. Costs at most what ``k`` adaptively chosen uses of range epsilon cost,
    and at least one of them.

    >>> from dptally.mechanisms.selection.exponential_mechanism import ExponentialMechanism
    >>> TopK(0.1, 10).epsilon(1e-6) == (10 * ExponentialMechanism(0.1)).epsilon(1e-6)
    True
    """

    declared_epsilon: float
    k: int
    json_name: ClassVar[str] = "top_k"
    theorem: ClassVar[str] = (
        "Durfee, Rogers 2019, Practical differentially private top-k selection (peeling); "
        "Dong, Durfee, Rogers 2020 (the recursion; docs/selection.md)"
    )

    def __init__(self, epsilon: float, k: int) -> None:
        object.__setattr__(self, "declared_epsilon", checked_range("epsilon", epsilon))
        object.__setattr__(self, "k", checks.count("k", k, 1))
        if self.k > MOST_COPIES:
            raise InvalidArgument("k", "at most 2^53", k)

    def assumptions(self) -> tuple[Assumption, ...]:
        return (SCORES,)

    def laws(self) -> tuple[Law, ...]:
        return (BoundedRangeLaw(((self.declared_epsilon, self.k),)),) if self.declared_epsilon > 0 else ()

    def laws_below(self) -> tuple[Law, ...] | None:
        """The first peel alone is an exponential mechanism of any scores."""
        return None if self.k == 1 else bounded_range(self.declared_epsilon)

    def why_wide(self) -> str:
        return "lower end: the first of the peels alone"

    def grouped(self, size: int) -> TopK:
        """``size`` records move a score by at most size * sensitivity: exact."""
        return TopK(grown(self.declared_epsilon, size), self.k)
