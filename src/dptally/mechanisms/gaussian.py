"""Gaussian noise: everything that is true of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.laws.gaussian import LARGEST_RATIO, SMALLEST_RATIO, GaussianLaw
from dptally.mechanisms.assumption import SENSITIVITY, Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.numerics.exact import between

__all__ = ["Gaussian"]


@declared(section="noise", plan="gaussian", example={"sigma": 2.0, "sensitivity": 0.5})
@dataclass(frozen=True, slots=True)
class Gaussian(Mechanism):
    """Add N(0, sigma^2) to every coordinate of a query of L2 sensitivity ``sensitivity``.

    Renyi divergence of order a: a sensitivity^2 / (2 sigma^2)  [Mironov 2017, Prop. 7]; exactly mu-GDP with
    mu = sensitivity / sigma  [Dong, Roth, Su 2022, Thm. 2.7].

    >>> round(Gaussian(sigma=2.0).renyi(10), 12)
    1.25
    """

    sigma: float
    sensitivity: float = 1.0
    json_name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checks.positive("sigma", self.sigma))
        object.__setattr__(self, "sensitivity", checks.positive("sensitivity", self.sensitivity))
        if not SMALLEST_RATIO <= self.sensitivity / self.sigma <= LARGEST_RATIO:
            asked = f"between {SMALLEST_RATIO} and {LARGEST_RATIO}"
            raise InvalidArgument("sensitivity / sigma", asked, self.sensitivity / self.sigma)

    def assumptions(self) -> tuple[Assumption, ...]:
        return (SENSITIVITY,)

    def noise_parameter(self) -> str | None:
        return "sigma"

    def laws(self) -> tuple[Law, ...]:
        return (GaussianLaw.of_variance((Fraction(self.sensitivity) / Fraction(self.sigma)) ** 2),)

    def grouped(self, size: int) -> Gaussian:
        """``size`` records move the query by at most size * sensitivity: exact."""
        return Gaussian(self.sigma, between(size * Fraction(self.sensitivity))[1])
