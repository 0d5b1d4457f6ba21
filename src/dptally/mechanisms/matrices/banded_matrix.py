"""A banded lower triangular strategy, given by its diagonals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.matrices.bounds import Bounds
from dptally.matrices.gram import banded_bounds
from dptally.mechanisms.matrices.dense_matrix import dense_bounds
from dptally.mechanisms.matrices.strategy import Steps, Strategy, entries, number_of_steps
from dptally.mechanisms.registry import declared
from dptally.numerics.arrays import Floats

__all__ = ["Banded"]

_SMALL = 64  # steps up to which the whole matrix is looked at
_MOST_WORK = 4e9  # products for the diagonals of the Gram matrix


@declared(
    section="matrices",
    plan="banded",
    example={"bands": ((1.0, 1.0, 1.0), (0.5, 0.25))},
    refuses={"bands": ((), 1.0, ((1.0, 1.0), (1.0, 1.0)))},
)
@dataclass(frozen=True, slots=True, repr=False)
class Banded(Strategy):
    """The lower triangular strategy with diagonals ``bands``: the main one first, each one shorter than that before.

    bands[d][i] = C[i + d, i], as ``numpy.diagonal(C, -d)`` gives them.

    >>> Banded([[1, 1, 1], [0.5, 0.25]]).array()
    array([[1.  , 0.  , 0.  ],
           [0.5 , 1.  , 0.  ],
           [0.  , 0.25, 1.  ]])
    """

    bands: tuple[tuple[float, ...], ...]
    json_name: ClassVar[str] = "banded"

    def __post_init__(self) -> None:
        diagonals = checks.items("bands", "a list of diagonals, the main one first", self.bands)
        given = [entries("bands", band, 1) for band in diagonals]
        if not given:
            raise InvalidArgument("bands", "at least the main diagonal", self.bands)
        steps = number_of_steps("bands (steps)", given[0].size)
        for d, band in enumerate(given):
            if band.size != steps - d:
                raise InvalidArgument(
                    "bands", f"diagonals of {steps}, {steps - 1}, .. entries", [b.size for b in given]
                )
        object.__setattr__(self, "bands", tuple(tuple((band + 0.0).tolist()) for band in given))

    @property
    def length(self) -> int:
        return len(self.bands[0])

    def _filled(self) -> tuple[Floats, ...]:
        """The diagonals, without those at the end that are 0."""
        arrays = [np.array(band) for band in self.bands]
        while len(arrays) > 1 and not arrays[-1].any():
            arrays.pop()
        return tuple(arrays)

    def squared(self, steps: Steps) -> Bounds:
        bands = self._filled()
        if self.length <= _SMALL:
            return dense_bounds(self.array(), steps)
        overlap = max(len(bands) - steps.gap, 0) if steps.times > 1 else 0
        if overlap**2 * self.length > _MOST_WORK:
            raise InvalidArgument(
                "participation", f"at least {len(bands)} steps apart for so many steps and bands", steps.gap
            )
        return banded_bounds(bands, *steps)

    def array(self) -> Floats:
        matrix = np.zeros((self.length, self.length))
        for d, band in enumerate(self.bands):
            matrix[np.arange(d, self.length), np.arange(self.length - d)] = band
        return matrix

    def bandwidth(self) -> int | None:
        return len(self._filled())

    def keeps_apart(self, bins: int) -> bool:
        return all(d % bins == 0 for d, band in enumerate(self._filled()) if band.any())
