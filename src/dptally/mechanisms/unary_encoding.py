"""Unary encoding (basic RAPPOR): one noisy bit for each category."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.laws.atoms import atomic_law
from dptally.laws.pairs import TwoBits
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared

__all__ = ["UnaryEncoding"]

UNARY_THEOREM = "Erlingsson, Pihur, Korolova 2014, RAPPOR, Thm. 1: two bits differ, and each is a randomized response"


@declared(
    section="shuffling",
    plan="unary_encoding",
    aliases=("rappor",),
    example={"p": 0.75, "q": 0.25, "categories": 4},
    refuses={"p": (1, 1.5, 0.2), "q": (1, 1.5, 0.8), "categories": (1, 2.0)},
)
@dataclass(frozen=True, slots=True)
class UnaryEncoding(Mechanism):
    """Report one bit for each of ``categories``: 1 with probability ``p`` for the true one, ``q`` < p for the others.

    p = 1 - q is symmetric (basic RAPPOR). Another true answer changes two bits, so the loss is at most
    log(p/q) + log((1-q)/(1-p)); a plain local randomiser by itself, and one for ``ShuffleModel``.

    >>> round(UnaryEncoding(0.75, 0.25, 10).renyi(float("inf")), 12)
    2.197224577336
    """

    p: float
    q: float
    categories: int
    json_name: ClassVar[str] = "unary_encoding"

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", checks.open_probability("p", self.p))
        object.__setattr__(self, "q", checks.open_probability("q", self.q))
        object.__setattr__(self, "categories", checks.count("categories", self.categories, least=2))
        if not self.q < self.p:
            raise InvalidArgument("p, q", "p above q: the true category's bit is the likelier one", (self.p, self.q))

    def laws(self) -> tuple[Law, ...]:
        law = atomic_law(TwoBits(Fraction(self.p), Fraction(self.q)), UNARY_THEOREM)
        return () if law is None else (law,)
