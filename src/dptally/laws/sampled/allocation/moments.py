r"""K and the mean loss of one epoch of random allocation with Gaussian steps, with bounds of their errors.

Orders up to some dozens from tables of powers; beyond, upper bounds: chords of the integer orders (K is convex),
Jensen's inequality, the geometric mean. K(t)/t grows with t, so next to 0 the chord from 0 serves. Every order has
a finite answer. Derivations: docs/batching.md, "Powers of the ratio".
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dptally.checks import Floats
from dptally.law.adjacency import Direction
from dptally.laws.sampled.allocation.integers import log_power_upper
from dptally.laws.sampled.allocation.powers import LEAST_GAP, Powers, Request
from dptally.numerics.rounding import EPS

__all__ = ["log_moments", "mean_loss"]

_SHIFT_ULPS = 2.0
_RUNGS = (2.0, 8.0, 24.0, 64.0)
_SMALL = 1e-3
_STEEPEST = 60.0  # the largest K that tables are made for


def _power(side: Direction, theta: Floats) -> Floats:
    return 1.0 + theta if side is Direction.REMOVE else -theta


def _table(shift: float, steps: int, side: Direction, top: float) -> Powers | None:
    end = float(log_power_upper(shift, steps, np.array([_power(side, np.array([top]))[0]]))[0])
    if end > _STEEPEST:
        return None
    low, high = (-1.0, 2.0 + top) if side is Direction.REMOVE else (-1.0 - top, 1.0)
    return Powers.of(Request(shift, steps, math.ceil(high) + 2 * LEAST_GAP, low, high, 1.0))


def log_moments(shift: float, steps: int, side: Direction, theta: Floats) -> tuple[Floats, Floats]:
    """K at real theta > 0, and bounds of its error; where K is only bounded, the error is what the bound may lose."""
    theta = np.asarray(theta, dtype=np.float64)
    if steps == 1:
        value = 0.5 * shift**2 * theta * (theta + 1)
        return value, (8 + 2 * _SHIFT_ULPS) * EPS * value
    with np.errstate(over="ignore"):
        upper = log_power_upper(shift, steps, _power(side, theta))
    value, error = upper, np.zeros_like(upper)
    for low, top in zip((0.0, *_RUNGS), _RUNGS, strict=False):
        which = (theta > low) & (theta <= top)
        table = _table(shift, steps, side, top) if which.any() else None
        if table is None:
            continue
        asked = np.maximum(theta[which], _SMALL)
        found, doubt, _, _ = table.real(_power(side, asked))
        share = theta[which] / asked  # 1, or the chord from 0
        better = found + doubt < upper[which] / share
        value[which] = np.where(better, share * found, upper[which])
        error[which] = np.where(better, share * doubt + 4 * EPS * np.abs(found), 0.0)
    return value, error


@lru_cache(maxsize=128)
def mean_loss(shift: float, steps: int, side: Direction) -> float:
    """An upper bound of K'(0) that is sharp to 1e-9 or so: the table's own mean where there is one.

    The errors of the rules are analytic in p, so that their derivative is at most their maximum on the unit circle;
    the mean of y under the nodes' masses errs by twice the blame times its spread.
    """
    alone = 0.5 * shift**2
    table = None if steps == 1 else _table(shift, steps, side, 2.0)
    if table is None:
        return alone * (1 + 16 * EPS)
    at = float(_power(side, np.zeros(1))[0])
    mean, error = table.mean(at)
    return min(alone * (1 + 16 * EPS), (mean if side is Direction.REMOVE else -mean) + error)
