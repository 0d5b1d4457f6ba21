"""Sensitivity from the Gram matrix G = C^T C of a strategy given by its entries.

For records that are vectors u_i of norm at most 1 in the steps i of a pattern,

    || sum_i C[:,i] u_i^T ||^2 = sum_ij G_ij <u_i, u_j>  <=  sum_ij |G_ij|,

with equality where G_ij >= 0 between the steps of the pattern (all u_i equal). Over patterns the right side is at most
the largest sum, over a pattern, of r_i = the largest sum_j |G_ij| over the patterns that contain i. Proofs in
docs/matrices.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dptally.matrices.bounds import Bounds, above, column_squares, squared_norm
from dptally.matrices.patterns import Pattern, best_sum, enumerated, leftmost, longest
from dptally.numerics.arrays import Floats
from dptally.numerics.rounding import EPS, up

__all__ = ["ALL_PATTERNS", "ORTHOGONAL", "ROW_SUMS", "Gram", "banded_bounds", "dense_once"]

ALL_PATTERNS = "every pattern looked at, sum of |C^T C| over it"
ROW_SUMS = "row sums of |C^T C| over patterns"
ORTHOGONAL = "columns so far apart are orthogonal: the largest sum of squared column norms"
_SIGNS = 3  # passes of changing one sign at a time


@dataclass(frozen=True, slots=True, eq=False)
class Gram:
    """G lies within ``error`` of ``center``, entry by entry."""

    center: Floats
    error: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Gram:
        """C^T C of exact entries.

        A dot product of m terms, added in any order, is within m u/(1 - m u) sum |products| <= (m + 2) EPS |c_i| |c_j|;
        columns without a common row have G_ij = 0 exactly.
        """
        norms = np.sqrt(column_squares(matrix, matrix.shape[1])[1])
        center = matrix.T @ matrix
        error = (matrix.shape[0] + 6) * EPS * np.multiply.outer(norms, norms)
        filled = (matrix != 0).astype(np.float64)
        apart = (filled.T @ filled) == 0
        center[apart] = 0.0
        error[apart] = 0.0
        return cls(center, error)

    @property
    def steps(self) -> int:
        return len(self.center)

    def sizes(self) -> Floats:
        """Upper bounds of |G|."""
        return np.where((self.center != 0) | (self.error != 0), up(np.abs(self.center) + self.error), 0.0)

    def bounds(self, times: int, gap: int) -> Bounds:
        """Patterns of at most ``times`` steps, ``gap`` or more apart."""
        number, table = longest(self.steps, times, gap), self.sizes()
        starts = [leftmost(self.steps, number, gap, start) for start in range(min(gap, 4))]
        listed = enumerated(table, times, gap)
        if listed is not None:
            value, pattern = listed
            return Bounds(self._attained([pattern, *starts]), above(value, number * number + 2), ALL_PATTERNS)
        diagonal = np.diagonal(table).copy()
        far = np.where(np.abs(np.subtract.outer(np.arange(self.steps), np.arange(self.steps))) >= gap, table, 0.0)
        upper = _by_rows(diagonal, far, number, gap)
        return Bounds(self._attained(starts), upper, ROW_SUMS if far.any() else ORTHOGONAL)

    def cyclic(self, gap: int) -> Bounds:
        """Patterns i, i + gap, i + 2 gap, .. to the end."""
        table, starts = self.sizes(), [leftmost(self.steps, self.steps, gap, i) for i in range(min(gap, self.steps))]
        upper = max(float(table[np.ix_(one, one)].sum()) for one in starts)
        return Bounds(self._attained(starts), above(upper, len(starts[0]) ** 2 + 2), ALL_PATTERNS)

    def _attained(self, patterns: list[Pattern]) -> float:
        """What some of these patterns certainly reach, with records of signs + and -."""
        alone = float((np.diagonal(self.center) - np.diagonal(self.error)).max())
        return max([alone * (1 - 2 * EPS), 0.0, *map(self._reached, patterns)])

    def _reached(self, pattern: Pattern) -> float:
        inside = self.center[np.ix_(pattern, pattern)]
        signs = np.ones(len(pattern))
        if (inside < 0).any():
            for _ in range(_SIGNS):
                for i in range(len(pattern)):
                    rest = float(signs @ inside[:, i]) - signs[i] * inside[i, i]
                    signs[i] = 1.0 if rest >= 0 else -1.0
        value = float(signs @ inside @ signs)
        size = float(np.abs(inside).sum())
        lost = float(self.error[np.ix_(pattern, pattern)].sum())
        return value - (len(pattern) ** 2 + 4) * EPS * (size + lost) - lost


def _by_rows(diagonal: Floats, far: Floats, number: int, gap: int) -> float:
    """The bound by row sums; 2 number + 2 additions of nonnegative doubles."""
    rows = diagonal + best_sum(far, number - 1, gap)
    return above(float(best_sum(rows[None, :], number, gap)[0]), number + 4)


def dense_once(matrix: Floats) -> Bounds:
    """One participation: the largest column norm, exact but for one rounding."""
    rough = np.einsum("ij,ij->j", matrix, matrix)
    near = np.flatnonzero(rough >= float(rough.max()) * (1 - 4 * (matrix.shape[0] + 2) * EPS))
    ends = [squared_norm(matrix[:, column]) for column in _different(matrix, near)]
    return Bounds(max(low for low, _ in ends), max(high for _, high in ends), "the largest column norm")


def _different(matrix: Floats, columns: Pattern) -> Pattern:
    """One of each set of columns that hold the same sizes, in any order: their norms are equal."""
    kept: dict[bytes, int] = {}
    for column in columns.tolist():
        sizes = np.sort(np.abs(matrix[:, column]))
        kept.setdefault(sizes[sizes > 0].tobytes(), column)
    return np.array(list(kept.values()), dtype=np.int64)


def banded_bounds(bands: tuple[Floats, ...], times: int, gap: int, cyclic: bool = False) -> Bounds:
    """The same for a lower triangular strategy given by its diagonals: bands[d][i] = C[i + d, i]."""
    steps, width = bands[0].size, len(bands)
    least, most = column_squares(bands, steps)
    number = longest(steps, times, gap)
    reach = {d: _diagonal(bands, d) for d in range(gap, width)} if number > 1 else {}
    norms = np.sqrt(most)
    error = {d: (width + 6) * EPS * norms[: steps - d] * norms[d:] for d in reach}
    size = {d: up(np.abs(value) + error[d]) for d, value in reach.items()}
    starts = [leftmost(steps, number, gap, i) for i in range(min(gap, steps) if cyclic else 1)]
    lower = max(_banded_reached(least, reach, error, start, gap) for start in starts)
    lower = max(lower, float(least.max()))
    if cyclic:
        sums = [_banded_sum(most, size, start, gap) for start in starts]
        return Bounds(lower, above(max(sums), number * (width + 2) + 2), ALL_PATTERNS)
    window = np.zeros((steps, 2 * width - 1 if reach else 1))
    for d, value in size.items():
        window[: steps - d, width - 1 + d] = value
        window[d:, width - 1 - d] = value
    upper = _by_rows(most, window, number, gap)
    return Bounds(lower, upper, ROW_SUMS if reach else ORTHOGONAL)


def _diagonal(bands: tuple[Floats, ...], d: int) -> Floats:
    """G[i, i + d] = sum_e C[i + d + e, i] C[i + d + e, i + d]."""
    steps = bands[0].size
    total = np.zeros(steps - d)
    for e in range(len(bands) - d):
        both = steps - d - e
        total[:both] += bands[d + e][:both] * bands[e][d : d + both]
    return total


def _banded_sum(squares: Floats, size: dict[int, Floats], pattern: Pattern, gap: int) -> float:
    total = float(squares[pattern].sum())
    for d, value in size.items():
        if d % gap == 0:
            total += 2.0 * float(value[pattern[pattern < value.size]].sum())
    return total


def _banded_reached(
    squares: Floats, reach: dict[int, Floats], error: dict[int, Floats], pattern: Pattern, gap: int
) -> float:
    """A pattern in steps of ``gap``, all records equal."""
    total, lost, terms = float(squares[pattern].sum()), 0.0, len(pattern)
    size = total
    for d in (d for d in reach if d % gap == 0):
        inside = pattern[: max(len(pattern) - d // gap, 0)]
        total += 2.0 * float(reach[d][inside].sum())
        size += 2.0 * float(np.abs(reach[d][inside]).sum())
        lost += 2.0 * float(error[d][inside].sum())
        terms += len(inside)
    return total - lost * (1 + (terms + 4) * EPS) - (terms + 4) * EPS * size
