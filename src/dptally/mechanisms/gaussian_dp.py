"""A declared Gaussian guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.accounting import group
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.laws.gaussian import LARGEST_RATIO, SMALLEST_RATIO, GaussianLaw
from dptally.mechanisms.assumption import DECLARED, Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared

__all__ = ["GaussianDP"]


@declared(section="guarantees", plan="gdp", example={"mu": 0.75}, zero=("mu",), definition="gaussian")
@dataclass(frozen=True, slots=True)
class GaussianDP(Mechanism):
    """Any ``mu``-GDP mechanism: telling the datasets apart is at least as hard as N(0, 1) from N(mu, 1).

    [Dong, Roth, Su 2022, Def. 2.6]

    >>> round(GaussianDP(2.0).renyi(3.0), 12)
    6.0
    """

    mu: float
    json_name: ClassVar[str] = "gaussian_dp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checks.nonnegative("mu", self.mu))
        if self.mu > 0 and not SMALLEST_RATIO <= self.mu <= LARGEST_RATIO:
            raise InvalidArgument("mu", f"0 or between {SMALLEST_RATIO} and {LARGEST_RATIO}", self.mu)

    def assumptions(self) -> tuple[Assumption, ...]:
        return (DECLARED,)

    def laws(self) -> tuple[Law, ...]:
        return (GaussianLaw.of_variance(Fraction(self.mu) ** 2),) if self.mu > 0 else ()

    def grouped(self, size: int) -> GaussianDP:
        return GaussianDP(group.gaussian(self.mu, size).value)
