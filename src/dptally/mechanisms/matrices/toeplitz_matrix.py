"""A lower triangular Toeplitz strategy, given by its first column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptally.matrices.bounds import Bounds
from dptally.matrices.toeplitz import Column
from dptally.mechanisms.matrices.strategy import Steps, Strategy, entries, number_of_steps
from dptally.mechanisms.registry import declared
from dptally.numerics.arrays import Floats

__all__ = ["Toeplitz", "of_column"]


@declared(
    section="matrices",
    plan="toeplitz",
    example={"coefficients": (1.0, 0.5, 0.375), "steps": 4},
    refuses={"coefficients": ((), 1.0, "a"), "steps": (10**7,)},
)
@dataclass(frozen=True, slots=True, repr=False)
class Toeplitz(Strategy):
    """The lower triangular Toeplitz strategy C[t, i] = coefficients[t - i]; zeros follow the last coefficient.

    >>> Toeplitz([1, 0.5], steps=3).array()
    array([[1. , 0. , 0. ],
           [0.5, 1. , 0. ],
           [0. , 0.5, 1. ]])
    """

    coefficients: tuple[float, ...]
    steps: int
    json_name: ClassVar[str] = "toeplitz"

    def __post_init__(self) -> None:
        given = entries("coefficients", self.coefficients, 1)
        object.__setattr__(self, "coefficients", tuple((given + 0.0).tolist()))
        object.__setattr__(self, "steps", number_of_steps("steps", self.steps))

    @property
    def length(self) -> int:
        return self.steps

    def _column(self) -> Column:
        return Column.exact(np.array(self.coefficients), self.steps)

    def squared(self, steps: Steps) -> Bounds:
        return self._column().bounds(*steps)

    def array(self) -> Floats:
        return of_column(np.array(self.coefficients), self.steps)

    def bandwidth(self) -> int | None:
        return len(self._column().center)

    def keeps_apart(self, bins: int) -> bool:
        return not (np.flatnonzero(self._column().center) % bins).any()


def of_column(column: Floats, steps: int) -> Floats:
    """The lower triangular Toeplitz matrix with this first column."""
    full = np.zeros(steps)
    full[: min(steps, len(column))] = column[:steps]
    apart = np.subtract.outer(np.arange(steps), np.arange(steps))
    return np.where(apart >= 0, full[np.maximum(apart, 0)], 0.0)
