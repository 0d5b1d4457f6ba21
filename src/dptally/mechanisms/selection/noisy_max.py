"""Report noisy max."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.laws.noisy_max import NoisyMaxLaw
from dptally.mechanisms.assumption import Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.mechanisms.selection.shared import SCORES, bounded_range
from dptally.numerics.exact import between

__all__ = ["NoisyMax"]

_NOISES = ("gumbel", "laplace", "exponential")
_MONOTONE = Assumption(
    "sensitivity", "monotone: one record moves all scores in one direction, up or down (not checked)"
)


@declared(
    section="selection",
    plan="noisy_max",
    example={"scale": 4.0, "sensitivity": 1.0, "noise": "laplace", "monotone": True},
    refuses={"noise": ("gaussian", 1.0, None), "monotone": ("yes", 1, None)},
    choices={"noise": _NOISES, "monotone": (True, False)},
)
@dataclass(frozen=True, slots=True)
class NoisyMax(Mechanism):
    """Add noise of scale ``scale`` to the score of each candidate and name the largest (not its value).

    Each score moves by at most ``sensitivity``; ``monotone``: all scores move in one direction, which halves the cost.
    With Gumbel noise it is the exponential mechanism with epsilon = 2 sensitivity / scale. Laplace and exponential
    noise cost one Laplace pair of ratio 2 sensitivity / scale each time (docs/selection.md, theorem 5); they have no
    bounded range, so eps^2/8-zCDP does not hold for them.

    >>> NoisyMax(scale=20.0, noise="laplace", monotone=True).epsilon(0.0)
    0.05
    """

    scale: float
    sensitivity: float = 1.0
    noise: str = "gumbel"
    monotone: bool = False
    json_name: ClassVar[str] = "noisy_max"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.positive("scale", self.scale))
        object.__setattr__(self, "sensitivity", checks.positive("sensitivity", self.sensitivity))
        if not isinstance(self.noise, str) or self.noise not in _NOISES:
            raise InvalidArgument(
                "noise",
                'one of "gumbel", "laplace", "exponential"',
                self.noise,
                "no theorem used here covers the largest score under other noise: draw one of these, or account for "
                "all k noisy scores, k * Gaussian(sigma, sensitivity)",
            )
        if not isinstance(self.monotone, bool):
            raise InvalidArgument("monotone", "True or False", self.monotone)
        if not 1e-100 <= self.sensitivity / self.scale <= 1e14:
            raise InvalidArgument("sensitivity / scale", "between 1e-100 and 1e14", self.sensitivity / self.scale)

    @property
    def _range(self) -> tuple[float, float]:
        """The closest doubles around 2 sensitivity / scale, or half of it."""
        return between((1 if self.monotone else 2) * Fraction(self.sensitivity) / Fraction(self.scale))

    def assumptions(self) -> tuple[Assumption, ...]:
        return (SCORES, _MONOTONE) if self.monotone else (SCORES,)

    def noise_parameter(self) -> str | None:
        return "scale"

    def laws(self) -> tuple[Law, ...]:
        lower, upper = self._range
        if self.noise == "gumbel":
            return bounded_range(upper)
        return (NoisyMaxLaw(upper, lower, self.noise == "exponential"),)

    def grouped(self, size: int) -> NoisyMax:
        """``size`` records move a score by at most size * sensitivity: exact."""
        moved = between(size * Fraction(self.sensitivity))[1]
        return NoisyMax(self.scale, moved, self.noise, self.monotone)
