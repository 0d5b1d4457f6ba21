"""Integer noise for integer answers: the one place where noise meets an answer and its mechanism is named."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dptally import mechanisms, noise
from dptally.errors import InvalidArgument
from dptally.mechanisms import Mechanism
from dptally.noise import parameters
from dptally.noise.parameters import Exact

__all__ = ["Additive", "additive"]

_WIDEST = 1 << 62


@dataclass(frozen=True, slots=True)
class Additive:
    """Discrete Laplace or Gaussian noise of the given parameter, on the grid of multiples of 2^exponent."""

    gaussian: bool
    parameter: Fraction
    exponent: int = 0

    def on_grid(self, exponent: int) -> Additive:
        return Additive(self.gaussian, self.parameter, exponent)

    @property
    def steps(self) -> Fraction:
        """The parameter in grid steps."""
        return self.parameter / parameters.two_to(self.exponent)

    def mechanism(self, sensitivity: int) -> Mechanism:
        """The mechanism for a query that moves by at most ``sensitivity`` grid steps."""
        if self.gaussian:
            return mechanisms.DiscreteGaussian(parameters.double("sigma", self.steps), sensitivity)
        return mechanisms.DiscreteLaplace(parameters.double("scale", self.steps), sensitivity)

    def add(self, steps: int) -> int:
        """``steps`` plus noise, in Python integers: no width to overflow."""
        return steps + (noise.discrete_gaussian if self.gaussian else noise.discrete_laplace)(self.steps)

    def add_each(self, steps: NDArray[np.int64]) -> NDArray[Any]:
        draw = noise.discrete_gaussian if self.gaussian else noise.discrete_laplace
        drawn: NDArray[Any] = draw(self.steps, len(steps))
        # counts are far below 2^62: with noise as wide as that or wider, Python integers hold the sum
        wide = drawn.dtype != object and bool(((drawn >= _WIDEST) | (drawn <= -_WIDEST)).any())
        drawn = drawn.astype(object) if wide else drawn
        noisy: NDArray[Any] = steps.astype(drawn.dtype) + drawn
        noisy.setflags(write=False)
        return noisy


def additive(scale: Exact | None, sigma: Exact | None, prefix: str = "") -> Additive:
    """The noise that the caller asked for: ``scale`` for Laplace or ``sigma`` for Gaussian, one of the two."""
    if (scale is None) == (sigma is None):
        required = "given one of the two: scale for Laplace, sigma for Gaussian"
        raise InvalidArgument(f"{prefix}scale, {prefix}sigma", required, (scale, sigma))
    if sigma is not None:
        return Additive(True, parameters.positive(f"{prefix}sigma", sigma))
    return Additive(False, parameters.positive(f"{prefix}scale", scale))
