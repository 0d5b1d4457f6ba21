"""Selection on a Poisson sample: the sampled pair of one use, and what several of them certainly attain."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.laws.pairs import Guarantee, Pair
from dptally.laws.sampled.finite import sampled_law
from dptally.laws.sampled.generic import SampledLaw
from dptally.numerics.exact import between

__all__ = ["SampledSelectionLaw", "sampled_once", "sampled_selection"]


@dataclass(frozen=True, slots=True)
class SampledSelectionLaw(SampledLaw):
    """The sampled pair of one use: each delta is attained by one use, and not by one and the same mechanism.

    Several uses are dominated by the product of the pairs. ``below`` is the sampled pair of one mechanism of the kind,
    which is attained any number of times.
    """

    below: Law | None = None

    @property
    def attained_once(self) -> bool:
        return True

    def optimistic(self) -> Law:
        return self if self.below is None else self.below


def sampled_selection(law: Law, rate: Fraction, direction: Direction, attained: Pair) -> Law:
    """The law of one use on a sample; ``attained`` is a pair of the kind, the same in both directions."""
    lower, upper = between(rate)
    below = sampled_law(attained, rate, direction)
    return SampledSelectionLaw(law, upper, direction, 0.0, None if lower == upper else lower, below)


def sampled_once(law: Law, rate: Fraction, direction: Direction) -> Law:
    """One use of bounded range; the losses eps/2 and -eps/2 are those of randomised response."""
    return sampled_selection(law, rate, direction, Guarantee(Fraction(law.supremum) / 2))
