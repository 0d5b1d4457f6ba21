"""Randomized response beside no record at all: dp-accounting's REPLACE_SPECIAL, where a special record stands for
none and is answered by a uniform bucket.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.law import Law
from dptally.laws.atoms import PAIR_THEOREM, atomic_law
from dptally.laws.pairs import Outcome, Outcomes
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
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


@declared(
    section="noise",
    plan="special_response",
    example={"lie": 0.4, "buckets": 3},
    refuses={"lie": (1, 1.5), "buckets": (1, 2.0)},
)
@dataclass(frozen=True, slots=True)
class SpecialResponse(Mechanism):
    """With probability ``lie`` a uniform one of ``buckets``, else the true one; a special record, which stands for
    none, is always answered by a uniform one.

    >>> round(SpecialResponse(0.4, 3).epsilon(0.0), 6)  # log of 1 / lie: an answer that is not the true one
    0.916291
    """

    lie: float
    buckets: int
    json_name: ClassVar[str] = "special_response"
    theorem: ClassVar[str] = PAIR_THEOREM

    def __post_init__(self) -> None:
        object.__setattr__(self, "lie", checks.open_probability("lie", self.lie))
        object.__setattr__(self, "buckets", checks.count("buckets", self.buckets, least=2))

    def laws(self) -> tuple[Law, ...]:
        pair = _AgainstUniform(Fraction(self.lie), self.buckets)
        laws = (atomic_law(one, PAIR_THEOREM) for one in (pair, pair.turned()))
        return tuple(law for law in laws if law is not None)
