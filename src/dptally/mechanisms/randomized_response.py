"""Randomized response: tell the truth with probability p, otherwise one of the other answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.law import Law
from dptally.laws.two_point import TwoPointLaw
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.numerics.rounding import down, up

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
        truth, number = Fraction(self.p), self.categories
        lie = (1 - truth) / (number - 1)
        if truth == lie:
            return ()
        likely, unlikely = max(truth, lie), min(truth, lie)
        loss = _log_ratio(likely, unlikely)
        return (TwoPointLaw(up(loss, 2), down(loss, 2), float(likely), float((number - 2) * lie)),)


def _log_ratio(larger: Fraction, smaller: Fraction) -> float:
    """log(larger / smaller) to 2 ulps: log1p of the exact excess where the ratio is near one."""
    excess = (larger - smaller) / smaller
    if excess < 1:
        return math.log1p(excess)
    # the ratio may pass the largest double (p near 1, very many categories)
    return (
        math.log(larger.numerator * smaller.denominator) - math.log(larger.denominator * smaller.numerator)
        if excess > 1e300
        else math.log(excess + 1)
    )
