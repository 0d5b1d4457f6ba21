"""Sensitivity of binary-tree aggregation: the sums over all complete nodes [j 2^l, (j+1) 2^l) of the first n steps.

The Gram matrix counts the nodes that two steps share, so it is nonnegative and all is integers: the squared
sensitivity of a pattern is the sum over nodes of (steps of the pattern in the node)^2.
"""

from __future__ import annotations

import numpy as np

from dptally.matrices.bounds import Bounds
from dptally.matrices.gram import Gram
from dptally.matrices.patterns import Pattern, leftmost, longest

__all__ = ["node_matrix", "tree_bounds"]

_SMALL = 64  # steps up to which all patterns are tried
_MANY = 4096  # cyclic patterns that are looked at one by one
LEVELS = "on each level, nodes of 2^l steps with at most 2^l / b participations each"


def tree_bounds(steps: int, times: int, gap: int, cyclic: bool = False) -> Bounds:
    """Patterns of at most ``times`` steps, ``gap`` or more apart; ``cyclic``: in steps of gap, to the end."""
    number = longest(steps, times, gap)
    if cyclic and gap <= _MANY:
        value = max(_reached(steps, leftmost(steps, steps, gap, i)) for i in range(min(gap, steps)))
        return Bounds(float(value), float(value), "every pattern looked at")
    widths = [1 << level for level in range(steps.bit_length())]
    most = [min(number, -(-width // gap)) for width in widths]
    upper = sum(min(number * one, steps // width * one * one) for one, width in zip(most, widths, strict=True))
    found = Bounds(float(_reached(steps, leftmost(steps, number, gap))), float(upper), LEVELS)
    return found.meet(Gram.of(node_matrix(steps)).bounds(times, gap)) if steps <= _SMALL else found


def _reached(steps: int, pattern: Pattern) -> int:
    total = 0
    for level in range(steps.bit_length()):
        nodes = pattern >> level
        counts = np.bincount(nodes[nodes < steps >> level])
        total += int((counts.astype(np.int64) ** 2).sum())
    return total


def node_matrix(steps: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """One row for each complete node."""
    rows = []
    for level in range(steps.bit_length()):
        for start in range(0, (steps >> level) << level, 1 << level):
            row = np.zeros(steps)
            row[start : start + (1 << level)] = 1.0
            rows.append(row)
    return np.array(rows)
