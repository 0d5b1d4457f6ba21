"""Which steps a record may take part in, and the largest sum of weights over such patterns.

A pattern has at most ``times`` steps, any two at least ``gap`` apart. Weights are nonnegative, so each answer below is
a maximum over patterns of at most that size; sums are of doubles and the callers account for their rounding.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dptally.numerics.arrays import Floats

__all__ = ["Pattern", "best_sum", "enumerated", "leftmost", "longest"]

Pattern = NDArray[np.int64]
_MOST_PATTERNS = 200_000  # listed one by one


def longest(steps: int, times: int, gap: int) -> int:
    """How many steps a pattern can have.

    >>> longest(5, 10, 2), longest(5, 2, 1)
    (3, 2)
    """
    return min(times, -(-steps // gap))


def leftmost(steps: int, times: int, gap: int, start: int = 0) -> Pattern:
    """start, start + gap, start + 2 gap, .., as many as there may be."""
    return np.arange(start, steps, gap, dtype=np.int64)[:times]


def best_sum(weights: Floats, times: int, gap: int) -> Floats:
    """For each row, the largest sum of its weights over a pattern: dynamic programming over the steps.

    >>> best_sum(np.array([[1.0, 5.0, 3.0, 4.0]]), times=2, gap=2)
    array([9.])
    """
    rows, steps = weights.shape
    number = longest(steps, times, gap)
    if number <= 0:
        return np.zeros(rows)
    if gap == 1 and number == steps:
        return np.asarray(weights.sum(axis=1))
    return _unlimited(weights, gap) if number == -(-steps // gap) else _limited(weights, number, gap)


def _limited(weights: Floats, number: int, gap: int) -> Floats:
    """best[t] with j steps among 0..t is the larger of best[t - 1] and weight[t] + (best of j - 1)[t - gap]."""
    best = np.zeros_like(weights)
    for _ in range(number):
        before = np.zeros_like(weights)
        before[:, gap:] = best[:, :-gap]
        best = np.maximum.accumulate(before + weights, axis=1)
    return np.asarray(best[:, -1])


def _unlimited(weights: Floats, gap: int) -> Floats:
    """The same where only the gap counts, a block of ``gap`` steps at a time: each looks back at the block before."""
    rows, steps = weights.shape
    last, block = np.zeros(rows), np.zeros((rows, gap))
    for start in range(0, steps, gap):
        new = weights[:, start : start + gap]
        candidates = np.maximum(block[:, : new.shape[1]] + new, last[:, None])
        block = np.maximum.accumulate(candidates, axis=1)
        last = block[:, -1]
    return last


def enumerated(pairs: Floats, times: int, gap: int) -> tuple[float, Pattern] | None:
    """The largest sum of a symmetric table over pattern x pattern, pattern by pattern; None where there are too many.

    All patterns of the full length are enough, and shorter ones that cannot grow are found on the way.
    """
    steps = len(pairs)
    if _number(steps, times, gap) > _MOST_PATTERNS:
        return None
    chosen = np.arange(steps, dtype=np.int64)[:, None]
    sums = np.diagonal(pairs).copy()
    best, where = float(sums.max()), chosen[int(sums.argmax())]
    for _ in range(longest(steps, times, gap) - 1):
        chosen, sums = _longer(pairs, chosen, sums, gap)
        if not sums.size:
            break
        if float(sums.max()) > best:
            best, where = float(sums.max()), chosen[int(sums.argmax())]
    return best, where


def _longer(pairs: Floats, chosen: NDArray[np.int64], sums: Floats, gap: int) -> tuple[NDArray[np.int64], Floats]:
    """Every pattern with one more step at its end."""
    steps = len(pairs)
    room = np.maximum(steps - gap - chosen[:, -1], 0)
    parent = np.repeat(np.arange(len(chosen)), room)
    first = np.cumsum(room) - room
    added = np.arange(len(parent)) - np.repeat(first, room) + chosen[parent, -1] + gap
    more = pairs[added, added] + 2.0 * pairs[chosen[parent], added[:, None]].sum(axis=1)
    return np.column_stack((chosen[parent], added)), sums[parent] + more


def _number(steps: int, times: int, gap: int) -> int:
    """How many patterns there are: choosing j of steps - (j - 1)(gap - 1)."""
    total = 0
    for j in range(1, longest(steps, times, gap) + 1):
        total += math.comb(steps - (j - 1) * (gap - 1), j)
        if total > _MOST_PATTERNS:
            break
    return total
