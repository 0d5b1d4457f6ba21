"""Laplace noise: everything that is true of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.laws.laplace import LaplaceLaw
from dptally.mechanisms.assumption import SENSITIVITY, Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.numerics.exact import between, quotient

__all__ = ["Laplace"]


@declared(section="noise", plan="laplace", example={"scale": 5.0, "sensitivity": 2.0})
@dataclass(frozen=True, slots=True)
class Laplace(Mechanism):
    r"""Add Laplace noise of scale ``scale`` to every coordinate of a query of L1 sensitivity ``sensitivity``.

    Renyi divergence of order a > 1, with r = sensitivity / scale  [Mironov 2017, Prop. 6]:
        log( a/(2a-1) e^{(a-1) r} + (a-1)/(2a-1) e^{-a r} ) / (a-1)
    One coordinate that changes by all of ``sensitivity`` is the worst case. If the coordinates change by
    r_i with sum r, each is (e_i, 1 - exp((e_i - r_i)/2))-DP at e_i = eps r_i / r, and these compose to
    (eps, 1 - prod exp((e_i - r_i)/2)), which is the profile of the one coordinate  [Kairouz, Oh, Viswanath
    2015, Thm. 3.3].

    >>> Laplace(scale=20).renyi(float("inf"))
    0.05
    """

    scale: float
    sensitivity: float = 1.0
    json_name: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.positive("scale", self.scale))
        object.__setattr__(self, "sensitivity", checks.positive("sensitivity", self.sensitivity))
        if not 1e-150 <= self.sensitivity / self.scale <= 1e150:
            raise InvalidArgument("sensitivity / scale", "between 1e-150 and 1e150", self.sensitivity / self.scale)

    def assumptions(self) -> tuple[Assumption, ...]:
        return (SENSITIVITY,)

    def noise_parameter(self) -> str | None:
        return "scale"

    def laws(self) -> tuple[Law, ...]:
        lower, upper = quotient(self.sensitivity, self.scale)
        return (LaplaceLaw(upper, lower),)

    def grouped(self, size: int) -> Laplace:
        """``size`` records move the query by at most size * sensitivity: exact."""
        return Laplace(self.scale, between(size * Fraction(self.sensitivity))[1])
