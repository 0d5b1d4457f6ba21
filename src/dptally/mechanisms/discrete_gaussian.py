"""Discrete Gaussian noise on the integers: its true lattice law, not the continuous stand-in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.laws.discrete_gaussian import DiscreteGaussianLaw
from dptally.laws.gaussian import LARGEST_RATIO, SMALLEST_RATIO
from dptally.mechanisms.assumption import SENSITIVITY, Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared

__all__ = ["DiscreteGaussian"]


@declared(
    section="noise",
    plan="discrete_gaussian",
    example={"sigma": 2.5, "sensitivity": 2},
    refuses={"sensitivity": (2.0, 2**53 + 1)},
)
@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Mechanism):
    """Add integer noise P(k) proportional to exp(-k^2 / (2 sigma^2)) to an integer query of sensitivity
    ``sensitivity``.

    The variance is slightly below sigma^2; the mechanism is sensitivity^2 / (2 sigma^2)-zCDP  [Canonne,
    Kamath, Steinke 2020, Thm. 4], and its profile is not that of continuous noise. For one integer query; a
    vector of queries is a composition of its coordinates.

    >>> DiscreteGaussian(sigma=2.0).rho()
    0.125
    """

    sigma: float
    sensitivity: int = 1
    json_name: ClassVar[str] = "discrete_gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checks.positive("sigma", self.sigma))
        object.__setattr__(self, "sensitivity", checks.count("sensitivity", self.sensitivity, least=1))
        if self.sensitivity > 2**53:
            raise InvalidArgument("sensitivity", "at most 2^53", self.sensitivity)
        if not (self.sigma >= 1e-100 and SMALLEST_RATIO <= self.sensitivity / self.sigma <= LARGEST_RATIO):
            raise InvalidArgument("sigma", "between 1e-100 and 1e140 times the sensitivity", self.sigma)

    def assumptions(self) -> tuple[Assumption, ...]:
        return (SENSITIVITY,)

    def noise_parameter(self) -> str | None:
        return "sigma"

    def laws(self) -> tuple[Law, ...]:
        return (DiscreteGaussianLaw(self.sigma, self.sensitivity),)

    def grouped(self, size: int) -> DiscreteGaussian:
        """``size`` records move the query by at most size * sensitivity: exact."""
        return DiscreteGaussian(self.sigma, size * self.sensitivity)
