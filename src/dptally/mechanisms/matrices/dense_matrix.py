"""A strategy given entry by entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptally.errors import InvalidArgument
from dptally.matrices.bounds import Bounds
from dptally.matrices.gram import Gram, dense_once
from dptally.mechanisms.matrices.strategy import MOST_STEPS, Steps, Strategy, entries
from dptally.mechanisms.registry import declared
from dptally.numerics.arrays import Floats

__all__ = ["DenseMatrix", "dense_bounds"]

_MOST_COLUMNS = 4096  # whose Gram matrix is formed


@declared(
    section="matrices", plan="dense", example={"rows": ((1.0, 0.0), (0.5, 1.0))}, refuses={"rows": ((), ((1.0, "a"),))}
)
@dataclass(frozen=True, slots=True, repr=False)
class DenseMatrix(Strategy):
    """A strategy by its rows. Row t may use any step; each step is a column.

    >>> DenseMatrix([[1, 0], [0.5, 1]]).bandwidth()
    2
    """

    rows: tuple[tuple[float, ...], ...]
    json_name: ClassVar[str] = "dense_matrix"

    def __post_init__(self) -> None:
        matrix = entries("rows", self.rows, 2)
        object.__setattr__(self, "rows", tuple(tuple(row) for row in (matrix + 0.0).tolist()))

    @property
    def length(self) -> int:
        return len(self.rows[0])

    def array(self) -> Floats:
        return np.array(self.rows)

    def squared(self, steps: Steps) -> Bounds:
        return dense_bounds(self.array(), steps)

    def bandwidth(self) -> int | None:
        row, column = np.nonzero(self.array())
        if len(self.rows) != self.length or (row < column).any():
            return None
        return int((row - column).max()) + 1 if row.size else 1

    def keeps_apart(self, bins: int) -> bool:
        filled = (self.array() != 0).astype(np.float64)
        first, second = np.nonzero(filled.T @ filled)
        return not ((first - second) % bins).any()


def dense_bounds(matrix: Floats, steps: Steps) -> Bounds:
    """Bounds of the squared sensitivity of a matrix."""
    times, gap, cyclic = steps
    columns = matrix.shape[1]
    if columns > MOST_STEPS:
        raise InvalidArgument("strategy", f"of at most {MOST_STEPS} steps", columns)
    if times == 1 or gap >= columns:
        return dense_once(matrix)
    if columns > _MOST_COLUMNS:
        raise InvalidArgument(
            "strategy", f"of at most {_MOST_COLUMNS} columns", columns, "give it as Banded, Toeplitz, BandedInverse, .."
        )
    gram = Gram.of(matrix)
    return gram.cyclic(gap) if cyclic else gram.bounds(times, gap)
