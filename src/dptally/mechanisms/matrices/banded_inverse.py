"""A strategy whose inverse is a banded Toeplitz matrix: noise that is a short moving average."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dptally.errors import InvalidArgument
from dptally.matrices.bounds import Bounds
from dptally.matrices.series import inverse
from dptally.matrices.toeplitz import Column
from dptally.mechanisms.matrices.strategy import Steps, Strategy, entries, number_of_steps
from dptally.mechanisms.matrices.toeplitz_matrix import of_column
from dptally.mechanisms.registry import declared
from dptally.numerics.arrays import Floats

__all__ = ["BandedInverse"]

_MOST_WORK = 20_000_000  # products of the expansion


@declared(
    section="matrices",
    plan="banded_inverse",
    example={"coefficients": (1.0, -0.5, -0.125), "steps": 8},
    refuses={"coefficients": ((), (0.0, 1.0), 1.0), "steps": (10**7,)},
)
@dataclass(frozen=True, slots=True, repr=False)
class BandedInverse(Strategy):
    """The inverse of the lower triangular Toeplitz matrix with first column ``coefficients``: C^-1 z is the noise.

    >>> BandedInverse([1, -0.5], steps=3).array()
    array([[1.  , 0.  , 0.  ],
           [0.5 , 1.  , 0.  ],
           [0.25, 0.5 , 1.  ]])
    """

    coefficients: tuple[float, ...]
    steps: int
    json_name: ClassVar[str] = "banded_inverse"

    def __post_init__(self) -> None:
        given = entries("coefficients", self.coefficients, 1)
        object.__setattr__(self, "coefficients", tuple((given + 0.0).tolist()))
        object.__setattr__(self, "steps", number_of_steps("steps", self.steps))
        if not self.coefficients[0] != 0:
            raise InvalidArgument("coefficients", "such that the first one is not 0", self.coefficients)
        if min(len(self.coefficients), self.steps) * self.steps > _MOST_WORK:
            raise InvalidArgument("steps", f"at most {_MOST_WORK} / number of coefficients", self.steps)

    @property
    def length(self) -> int:
        return self.steps

    def squared(self, steps: Steps) -> Bounds:
        return _column(self.coefficients, self.steps).bounds(*steps)

    def array(self) -> Floats:
        return of_column(_column(self.coefficients, self.steps).center, self.steps)

    def bandwidth(self) -> int | None:
        return self.steps if any(self.coefficients[1:]) else 1

    def keeps_apart(self, bins: int) -> bool:
        return not (np.flatnonzero(self.coefficients) % bins).any()


@lru_cache(maxsize=32)
def _column(coefficients: tuple[float, ...], steps: int) -> Column:
    return inverse(coefficients[:steps], steps)
