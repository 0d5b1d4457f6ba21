"""Above threshold: the sparse vector technique."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.laws.two_point import TwoPointLaw
from dptally.mechanisms.assumption import Assumption
from dptally.mechanisms.composed import MOST_COPIES
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.mechanisms.selection.shared import grown
from dptally.numerics.exact import between

__all__ = ["AboveThreshold"]

_QUERIES = Assumption(
    "sensitivity", "queries: neighbouring datasets change each query of the stream by at most its sensitivity"
)


@declared(
    section="selection",
    plan="above_threshold",
    aliases=("sparse_vector", "svt"),
    example={"epsilon1": 0.25, "epsilon2": 0.5, "hits": 2},
    refuses={"hits": (1.5, 2**60), "noise": ("gaussian", None)},
    choices={"noise": ("laplace",)},
)
@dataclass(frozen=True, slots=True)
class AboveThreshold(Mechanism):
    """Say of each query of a stream whether it is above a threshold, until ``hits`` were: (epsilon1 + epsilon2)-DP.

    Noise Lap(sensitivity / epsilon1) on the threshold, drawn once, and Lap(2 hits sensitivity / epsilon2) on each
    query; queries below the threshold cost nothing [Lyu, Su, Li 2017; proof in docs/selection.md]. The answers are yes
    and no: values of the queries that passed need a budget of their own. An upper bound: no lower end is stated.
    ``noise`` can only be "laplace": Gaussian sparse vector is refused.

    >>> AboveThreshold(0.25, 0.5).epsilon(0.0)
    0.75
    """

    epsilon1: float
    epsilon2: float
    hits: int = 1
    noise: InitVar[str] = "laplace"
    json_name: ClassVar[str] = "above_threshold"
    theorem: ClassVar[str] = "Lyu, Su, Li 2017, Understanding the sparse vector technique (proof: docs/selection.md)"

    def __post_init__(self, noise: str) -> None:
        if noise != "laplace":
            raise InvalidArgument(
                "noise",
                '"laplace"',
                noise,
                "no theorem used here covers a noisy threshold under other noise: leave it out, or account for every "
                "one of k noisy queries, k * Gaussian(sigma, sensitivity)",
            )
        object.__setattr__(self, "epsilon1", checks.positive("epsilon1", self.epsilon1))
        object.__setattr__(self, "epsilon2", checks.positive("epsilon2", self.epsilon2))
        object.__setattr__(self, "hits", checks.count("hits", self.hits, 1))
        if self.hits > MOST_COPIES:
            raise InvalidArgument("hits", "at most 2^53", self.hits)
        if not self._total() < math.inf:
            raise InvalidArgument("epsilon2", "such that epsilon1 + epsilon2 is a finite double", self.epsilon2)

    def assumptions(self) -> tuple[Assumption, ...]:
        return (_QUERIES,)

    def laws(self) -> tuple[Law, ...]:
        return (TwoPointLaw.of_guarantee(self._total()),)

    def _total(self) -> float:
        """epsilon1 + epsilon2, rounded up."""
        return between(Fraction(self.epsilon1) + Fraction(self.epsilon2))[1]

    def laws_below(self) -> tuple[Law, ...] | None:
        return ()

    def why_wide(self) -> str:
        return "above threshold: an upper bound only"

    def grouped(self, size: int) -> AboveThreshold:
        """``size`` records move a query by at most size * sensitivity."""
        return AboveThreshold(grown(self.epsilon1, size), grown(self.epsilon2, size), self.hits)
