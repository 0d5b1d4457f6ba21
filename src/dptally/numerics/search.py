"""Bracketed searches: a minimum on a logarithmic scale, and the border of a monotone predicate."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dptally.numerics.arrays import Floats

__all__ = ["first_true", "last_true", "minimise"]


def minimise(
    function: Callable[[Floats], Floats],
    low: float,
    high: float,
    start: tuple[float, float] = (1e-2, 1e3),
    enough: Callable[[float], bool] = lambda _: False,
) -> tuple[float, float]:
    """(x, function(x)) at the smallest value met on [low, high], 0 < low, on a logarithmic scale.

    Scans ``start``, walks on decade by decade while the smallest value lies at an end and still improves (to
    the right only until ``enough(x)`` says that nothing is left to gain), then zooms in. ``function`` is
    vectorised; NaN counts as +inf. For a function with one valley the value is found to relative 1e-12; for
    any other it is still one that the function takes.

    >>> x, value = minimise(lambda x: x + 4e16 / x, 1e-18, 1e18)
    >>> round(x / 2e8, 5), round(value / 4e8, 12)
    (1.0, 1.0)
    """

    def scan(left: float, right: float, points: int) -> tuple[Floats, Floats]:
        grid = np.geomspace(left, right, points)
        values = np.asarray(function(grid), dtype=np.float64)
        return grid, np.where(np.isnan(values), np.inf, values)

    x, values = scan(max(low, start[0]), min(high, start[1]), 21)
    best = math.inf
    while True:
        i = int(np.argmin(values))
        improved = math.isinf(best) or values[i] < best - 1e-14 * abs(best)
        best = float(values[i])
        if i == x.size - 1 and x[-1] < high * (1 - 1e-9) and improved:
            if enough(float(x[-1])):
                return float(x[-1]), best
            more_x, more = scan(x[-1], min(10 * x[-1], high), 5)
            x, values = np.concatenate([x, more_x[1:]]), np.concatenate([values, more[1:]])
        elif i == 0 and x[0] > low * (1 + 1e-9) and improved:
            more_x, more = scan(max(0.1 * x[0], low), x[0], 5)
            x, values = np.concatenate([more_x[:-1], x]), np.concatenate([more[:-1], values])
        else:
            return _zoom(scan, x, values)


def _zoom(scan: Callable[[float, float, int], tuple[Floats, Floats]], x: Floats, values: Floats) -> tuple[float, float]:
    """Eight times closer with each round, until the neighbours are level with the best to 1e-12.

    At a kink, or where the function ends, they never are: 18 rounds then reach neighbouring doubles.
    """
    i = int(np.argmin(values))
    found = float(x[i]), float(values[i])
    for _ in range(18):
        left, right = max(i - 1, 0), min(i + 1, x.size - 1)
        if math.isinf(values[i]) or max(values[left], values[right]) - values[i] <= 1e-12 * abs(values[i]):
            break
        x, values = scan(float(x[left]), float(x[right]), 17)
        i = int(np.argmin(values))
        if values[i] < found[1]:
            found = float(x[i]), float(values[i])
    return found


def first_true(predicate: Callable[[float], bool], low: float, high: float, tolerance: float = 0.0) -> float:
    """A point where ``predicate`` holds, just above where it starts to; it fails at ``low`` and holds at
    ``high``.

    Bisects until the bracket is within relative ``tolerance`` (0: neighbouring doubles); whatever the
    predicate does in between, it was evaluated and true at the point returned, or that point is ``high``.

    >>> first_true(lambda x: x * x >= 2, 0.0, 2.0)
    1.4142135623730951
    """
    while True:
        middle = _between(low, high)
        if not low < middle < high or high - low <= tolerance * max(abs(low), abs(high)):
            return high
        if predicate(middle):
            high = middle
        else:
            low = middle


def last_true(predicate: Callable[[float], bool], low: float, high: float, tolerance: float = 0.0) -> float:
    """A point where ``predicate`` holds, just below where it ends; it holds at ``low`` and fails at ``high``.

    >>> last_true(lambda x: x * x <= 2, 0.0, 2.0)
    1.414213562373095
    """
    return -first_true(lambda x: predicate(-x), -high, -low, tolerance)


def _between(low: float, high: float) -> float:
    """The geometric mean where the ends are far apart with one sign, else the arithmetic mean."""
    if low > 0 and high > 4 * low:
        return math.sqrt(low) * math.sqrt(high)
    if high < 0 and low < 4 * high:
        return -math.sqrt(-low) * math.sqrt(-high)
    if low <= 0 <= high and max(-low, high) > 1e-300 and (low == 0 or high == 0):
        return 1e-3 * high if low == 0 else 1e-3 * low  # zero has no logarithm: approach it by steps
    return 0.5 * low + 0.5 * high
