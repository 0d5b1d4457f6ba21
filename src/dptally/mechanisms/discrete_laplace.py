"""Discrete Laplace (two-sided geometric) noise on the integers: everything that is true of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.laws.discrete_laplace import DiscreteLaplaceLaw
from dptally.laws.pairs import Geometric
from dptally.laws.two_point import TwoPointLaw, two_point_law
from dptally.mechanisms.assumption import SENSITIVITY, Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.numerics.exact import between

__all__ = ["DiscreteLaplace"]


@declared(
    section="noise",
    plan="discrete_laplace",
    example={"scale": 7.0, "sensitivity": 3},
    refuses={"sensitivity": (2.0, 2**53 + 1)},
)
@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Mechanism):
    """Add integer noise P(k) proportional to exp(-|k| / scale) to an integer query of sensitivity
    ``sensitivity``.

    Exactly (sensitivity / scale)-DP. With several coordinates ``sensitivity`` is the L1 sensitivity, as for
    :class:`Laplace`.

    >>> import math
    >>> DiscreteLaplace(scale=4, sensitivity=3).renyi(math.inf)
    0.75
    """

    scale: float
    sensitivity: int = 1
    json_name: ClassVar[str] = "discrete_laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.positive("scale", self.scale))
        object.__setattr__(self, "sensitivity", checks.count("sensitivity", self.sensitivity, least=1))
        if self.sensitivity > 2**53:
            raise InvalidArgument("sensitivity", "at most 2^53", self.sensitivity)
        if not (1 / self.scale >= 1e-150 and self.sensitivity / self.scale <= 1e150):
            raise InvalidArgument("scale", "at most 1e150 and at least 1e-150 * sensitivity", self.scale)

    def assumptions(self) -> tuple[Assumption, ...]:
        return (SENSITIVITY,)

    def noise_parameter(self) -> str | None:
        return "scale"

    def laws(self) -> tuple[Law, ...]:
        rate = 1 / Fraction(self.scale)
        pair = Geometric(rate, self.sensitivity)
        (lower, step), (reach_lower, reach) = between(rate), between(self.sensitivity * rate)
        if self.sensitivity > 1:
            return (DiscreteLaplaceLaw(self.sensitivity, step, lower, reach, reach_lower, pair),)
        law = two_point_law(pair)
        if law is None:  # e^-step is no number
            return (TwoPointLaw(step, lower, 1.0),)
        return (replace(law, loss=step, loss_lower=lower),)

    def grouped(self, size: int) -> DiscreteLaplace:
        """``size`` records move the query by at most size * sensitivity: exact."""
        return DiscreteLaplace(self.scale, size * self.sensitivity)
