"""Randomized response: tell the truth with probability p, otherwise one of the other answers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from dptally import checks
from dptally.law import Law
from dptally.laws.pairs import Response
from dptally.laws.two_point import two_point_law
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared

if TYPE_CHECKING:
    from dptally.mechanisms.composed import Composed

__all__ = ["RandomizedResponse"]


@declared(
    section="noise",
    plan="randomized_response",
    aliases=("rr",),
    example={"p": 0.7, "categories": 3},
    refuses={"p": (1, 1.5), "categories": (1, 2.0)},
)
@dataclass(frozen=True, slots=True)
class RandomizedResponse(Mechanism):
    """Report the true one of ``categories`` answers with probability ``p``, each other one with q = (1 -
    p)/(categories - 1).

    The loss is log(p/q) where the true answer of one dataset is reported, -log(p/q) where that of the other
    is, and 0 elsewhere. Renyi divergence of order a for two categories: log(p^a q^{1-a} + q^a p^{1-a}) / (a
    - 1) [Mironov 2017, Prop. 5]. p below 1/categories is allowed: then the false answer is the informative one.

    >>> round(RandomizedResponse(0.75).renyi(1.0), 12)
    0.549306144334
    """

    p: float
    categories: int = 2
    json_name: ClassVar[str] = "randomized_response"

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", checks.open_probability("p", self.p))
        object.__setattr__(self, "categories", checks.count("categories", self.categories, least=2))

    def laws(self) -> tuple[Law, ...]:
        truth = Fraction(self.p)
        if truth * self.categories == 1:
            return ()
        law = two_point_law(Response(truth, self.categories))
        return () if law is None else (law,)

    def grouped(self, size: int) -> Composed:
        """Every record reports by itself, so ``size`` records are that many reports."""
        from dptally.mechanisms.composed import Composed

        return Composed.of(((self, size),))
