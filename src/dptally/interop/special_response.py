"""Randomized response beside no record at all: dp-accounting's REPLACE_SPECIAL, where a special record stands for
none and is answered by a uniform bucket.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally.law import Law
from dptally.laws.atoms import PAIR_THEOREM, atomic_law
from dptally.laws.pairs import Outcome, Outcomes
from dptally.mechanisms import Mechanism
from dptally.numerics.decimals import exact, sixty_digits

__all__ = ["SpecialResponse"]


@dataclass(frozen=True, slots=True)
class _AgainstUniform:
    """The truth with probability 1 - lie + lie / buckets, else each other bucket; beside a uniform bucket."""

    lie: Fraction
    buckets: int
    reverse: bool = False

    @property
    def size(self) -> int:
        return 2

    def turned(self) -> _AgainstUniform:
        return _AgainstUniform(self.lie, self.buckets, not self.reverse)

    def outcomes(self) -> Outcomes:
        """Two: the true bucket, told buckets (1 - lie) + lie times as often as a uniform one, and any other, lie times
        as often.
        """
        others = Fraction(self.buckets - 1, self.buckets)
        with sixty_digits():
            rows = tuple(
                Outcome(exact(share * ratio), exact(share), exact(ratio - 1))
                for share, ratio in ((others, self.lie), (1 - others, self.buckets * (1 - self.lie) + self.lie))
            )
        found = Outcomes(rows)
        return found.mirrored() if self.reverse else found


@dataclass(frozen=True, slots=True)
class SpecialResponse(Mechanism):
    """With probability ``lie`` a uniform one of ``buckets``, else the true one; a special record is always answered
    by a uniform one.
    """

    lie: float
    buckets: int
    json_name: ClassVar[str] = "interop_special_response"
    theorem: ClassVar[str] = PAIR_THEOREM

    def laws(self) -> tuple[Law, ...]:
        pair = _AgainstUniform(Fraction(self.lie), self.buckets)
        laws = (atomic_law(one, PAIR_THEOREM) for one in (pair, pair.turned()))
        return tuple(law for law in laws if law is not None)
