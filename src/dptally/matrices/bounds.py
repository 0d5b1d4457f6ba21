"""Sums of products of doubles with proof: what every squared sensitivity is made of.

Every number of a strategy is 0 or between 1e-100 and 1e100 in size. So no product underflows, its rounding error is a
double (two_product), and a squared sensitivity, which is at least the square of the largest entry, is never lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dptally.numerics.arrays import Floats
from dptally.numerics.doubled import two_product, two_sum
from dptally.numerics.exact import root
from dptally.numerics.rounding import EPS, down, up

__all__ = ["LARGEST", "SMALLEST", "Bounds", "above", "column_squares", "squared_norm", "sum_bounds"]

SMALLEST, LARGEST = 1e-100, 1e100  # sizes of the entries that are not 0


class Bounds(NamedTuple):
    """``lower`` <= squared sensitivity <= ``upper``, and why."""

    lower: float
    upper: float
    why: str

    def roots(self) -> tuple[float, float]:
        """The sensitivity itself, rounded outwards to the closest doubles."""
        if self.upper == 0:
            return 0.0, 0.0
        least = root(Fraction(self.lower))[0] if self.lower > 0 else 0.0
        return least, root(Fraction(self.upper))[1]

    def meet(self, other: Bounds) -> Bounds:
        """Both hold: the better of each end."""
        better = self if self.upper <= other.upper else other
        return Bounds(max(self.lower, other.lower), better.upper, better.why)


def sum_bounds(terms: Iterable[float]) -> tuple[float, float]:
    """The neighbouring doubles around the exact sum of doubles; equal where it is a double.

    math.fsum is correctly rounded [Shewchuk 1997], so its answer for the terms less the rounded sum has the sign of
    what was rounded away.

    >>> sum_bounds([1.0, 2.0 ** -60]) == (1.0, 1.0 + 2.0 ** -52)
    True
    """
    listed = list(terms)
    nearest = math.fsum(listed)
    rest = math.fsum([*listed, -nearest])
    lower = nearest if rest >= 0 else math.nextafter(nearest, -math.inf)
    upper = nearest if rest <= 0 else math.nextafter(nearest, math.inf)
    return lower, upper


def squared_norm(vector: Floats) -> tuple[float, float]:
    """The sum of squares between neighbouring doubles: two_product leaves no error."""
    high, low = two_product(vector, vector)
    return sum_bounds([*high.tolist(), *low.tolist()])


def above(value: float, ulps: float) -> float:
    """An upper bound of a sum of nonnegative doubles within that many ulps; 0 where nothing was added."""
    return up(value, ulps) if value > 0 else 0.0


def column_squares(rows: Iterable[Floats], number: int) -> tuple[Floats, Floats]:
    """Bounds of the squared norm of each of ``number`` columns; each row holds the first entries of that row.

    Twice the working precision: high + low is the sum but for n^2 u^2 of itself, u = EPS/2
    [Ogita, Rump, Oishi 2005, Accurate sum and dot product, Prop. 5.5], and n < 2^26.
    """
    total, rest, count = np.zeros(number), np.zeros(number), 0
    for row in rows:
        part = slice(0, row.size)
        square, error = two_product(row, row)
        total[part], lost = two_sum(total[part], square)
        rest[part] += lost + error
        count += 1
    value = total + rest
    ulps = 2.0 + count * count * EPS
    return np.maximum(down(value, ulps), 0.0), np.where(value > 0, up(value, ulps), 0.0)
