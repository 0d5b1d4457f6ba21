"""Sensitivity of a lower triangular Toeplitz strategy, from its first column c.

Lemma [Kalinin, Lampert 2024, Thm. 2; proof in docs/matrices.md]. If c is nonnegative and does not increase, then
G_{i, i+d} = sum_{s < n-i-d} c_{s+d} c_s falls in i and in d, so that among patterns with gaps of at least b the one at
0, b, 2b, .. is the worst, entry by entry. For any c, |G| is below the Gram matrix of max_{j >= i} |c_j|, which is such.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptally.matrices.bounds import Bounds, above, squared_norm
from dptally.matrices.gram import ORTHOGONAL, banded_bounds
from dptally.matrices.patterns import leftmost, longest
from dptally.numerics.arrays import Floats
from dptally.numerics.rounding import EPS, down, up

__all__ = ["DECREASING", "PROJECTED", "Column"]

DECREASING = "nonnegative columns that do not increase: the pattern 0, b, 2b, .. is the worst"
PROJECTED = "columns replaced by ones that do not increase: max over j >= i of |c_j|"
_MOST_WORK = 2e8  # products for the Gram matrix of a column that is not decreasing


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The first column, each coefficient within ``radius`` of ``center``; zeros beyond, up to ``steps``."""

    center: Floats
    radius: Floats
    steps: int

    @classmethod
    def exact(cls, coefficients: Floats, steps: int) -> Column:
        """Without the zeros at its end, and no longer than the steps."""
        kept = coefficients[:steps]
        last = np.flatnonzero(kept)
        kept = kept[: int(last[-1]) + 1] if last.size else kept[:1]
        return cls(kept, np.zeros_like(kept), steps)

    @property
    def known(self) -> bool:
        return not self.radius.any()

    @property
    def decreasing(self) -> bool:
        """Certainly nonnegative and not increasing."""
        return self.known and bool((self.center >= 0).all() and (np.diff(self.center) <= 0).all())

    def bounds(self, times: int, gap: int, cyclic: bool = False) -> Bounds:
        """Patterns of at most ``times`` steps, ``gap`` or more apart; ``cyclic``: in steps of gap, to the end."""
        number = longest(self.steps, times, gap)
        if number == 1 and not cyclic and self.known:
            return Bounds(*squared_norm(self.center), "the largest column norm: that of the first column")
        if len(self.center) <= gap and self.known:
            return self._orthogonal(number, gap)
        rows = _spread(self._envelope() if number > 1 else self._sizes(), self.steps, number, gap)
        upper = above(_squares(rows), number + 3)  # number additions, twice, a square and one rounding of the sum
        why = DECREASING if self.decreasing else PROJECTED
        found = Bounds(self._attained(number, gap), upper, why)
        if self.known and not self.decreasing and len(self.center) ** 2 * self.steps <= _MOST_WORK:
            found = found.meet(banded_bounds(self._bands(), times, gap, cyclic))
        return found

    def _sizes(self) -> Floats:
        """|c_i|, rounded up."""
        return np.abs(self.center) if self.known else up(np.abs(self.center) + self.radius)

    def _envelope(self) -> Floats:
        """max over j >= i of |c_j|, rounded up."""
        return np.maximum.accumulate(self._sizes()[::-1])[::-1]

    def _orthogonal(self, number: int, gap: int) -> Bounds:
        """Columns that share no row: the squared norms of prefixes of c, which fall in i, so the leftmost add most."""
        partial = np.cumsum(self.center**2)
        lengths = np.minimum(self.steps - leftmost(self.steps, number, gap), len(self.center))
        total = float(partial[lengths - 1].sum())
        ulps = len(self.center) + number + 2
        whole = number * squared_norm(self.center)[1]  # sharper where no column is cut off
        return Bounds(max(down(total, ulps), 0.0), min(above(total, ulps), above(whole, 1.0)), ORTHOGONAL)

    def _attained(self, number: int, gap: int) -> float:
        """The pattern 0, gap, .. with equal records."""
        value = _spread(self.center, self.steps, number, gap)
        off = _spread(self.radius, self.steps, number, gap)
        size = _spread(np.abs(self.center), self.steps, number, gap)
        safe = np.maximum(np.abs(value) - (off + (number + 2) * EPS * (size + off)) * (1 + 4 * EPS), 0.0)
        return max(down(_squares(safe), 3), 0.0)

    def _bands(self) -> tuple[Floats, ...]:
        return tuple(np.full(self.steps - d, value) for d, value in enumerate(self.center.tolist()))


def _spread(column: Floats, steps: int, number: int, gap: int) -> Floats:
    """The rows of the sum over l < number of the column moved down by l gap."""
    rows = np.zeros(steps)
    for start in leftmost(steps, number, gap).tolist():
        part = column[: steps - start]
        rows[start : start + len(part)] += part
    return rows


def _squares(rows: Floats) -> float:
    """The sum of squares, each rounded once and the sum once."""
    return math.fsum(np.square(rows).tolist())
