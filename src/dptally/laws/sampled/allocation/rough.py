r"""Several epochs of random allocation with Gaussian steps where contours would be too long: a lattice of losses.

As for bounded ratios (bounded_epochs.py) each ratio is replaced by a measure on points e^{ih} whose profile is above
(below) that of one epoch everywhere; any subset of the lattice serves: dense about zero, sparse far out. What lies
beyond the last point counts as infinite above, and as nothing below. The profile of one epoch needs only be bounded: by
short contours about zero, beyond by Chernoff and by one ratio alone. Work: contours of about 45 times
``_ROUGH_REACH`` terms (gaussian.py), and one lattice of at most ``_MOST_NODES`` for each end.
Derivations: docs/batching.md, "Rough epochs".
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dptally.checks import Floats
from dptally.laws.sampled.allocation.bounded_epochs import (
    LatticeEpoch,
    LatticePoints,
    LatticeProfile,
    composed,
    lattice_above,
    lattice_below,
)
from dptally.laws.sampled.allocation.convex import hull
from dptally.laws.sampled.allocation.convolution import window
from dptally.laws.sampled.allocation.law import AllocationLaw
from dptally.numerics.rounding import down, up

__all__ = ["is_long", "rough_bounds"]

_FINE = 40.0  # points in a standard deviation of one epoch's loss, about zero
_CORE = 5.0  # standard deviations with all points
_GROWTH = 0.04  # beyond: a gap, in distances from zero
_WIDEST = 0.1  # a gap at most
_FARTHEST = -60.0  # log of a profile that is not followed further
_LEFT = -45.0  # the same on the left
_HEAVY, _MANY = 1.2, 64
_LARGEST = 100.0  # loss that is followed
_MOST_NODES = 1 << 19

Parts = tuple[tuple[AllocationLaw, int], ...]


def is_long(law: AllocationLaw) -> bool:
    """Whether sharp contours of one epoch's large losses have too many terms: heavy tails of long sums."""
    return law.shift >= _HEAVY and law.steps >= _MANY


@lru_cache(maxsize=32)
def _extent(law: AllocationLaw) -> tuple[float, float, float]:
    """(least, largest) loss that is followed, and about the standard deviation."""
    deviation = 2.5 * math.exp(float(law.log_excess(np.zeros(1))[1][0]))
    return -_end(law, -deviation, _LEFT), _end(law, deviation, _FARTHEST), deviation


def _end(law: AllocationLaw, loss: float, least: float) -> float:
    while abs(loss) < _LARGEST and float(law.log_excess(np.array([loss]))[1][0]) > least:
        loss *= 1.25
    return abs(loss)


def _knots(law: AllocationLaw, h: float) -> NDArray[np.int64]:
    """Where the profile is taken: multiples of h, all of them near zero, then fewer and fewer."""
    least, largest, deviation = _extent(law)
    out = [0]
    for end, sign in ((least, -1), (largest, 1)):
        place = 0
        while place * h < abs(end):
            gap = _GROWTH * max(place * h - _CORE * deviation, 0.0)
            place += max(1, round(min(gap, _WIDEST) / h))
            out.append(sign * place)
    return np.array(sorted(out))


def _above(points: LatticePoints) -> LatticeEpoch:
    """By those points whose bounds are on their convex hull: some are much wider than others."""
    upper = points.values(points.loss)[1]
    kept = hull(points.sign * np.exp(points.sign * points.loss), upper)
    return lattice_above(LatticePoints(points.law, points.step, points.index[kept]), upper[kept])


@lru_cache(maxsize=16)
def _profiles(parts: Parts) -> tuple[LatticeProfile, LatticeProfile]:
    """From below and from above."""
    rough = [(replace(law, sharp=False, rough=True), count) for law, count in parts]
    extents = [(_extent(law), count) for law, count in rough]
    reach = math.sqrt(math.fsum(count * extent[2] ** 2 for extent, count in extents))
    longest = max(extent[1] - extent[0] for extent, _ in extents)
    h = max(min(extent[2] for extent, _ in extents) / _FINE, 30 * reach / _MOST_NODES, longest / _MOST_NODES)
    while True:
        points = [(LatticePoints(law, h, _knots(law, h)), count) for law, count in rough]
        above = tuple((_above(at), count) for at, count in points)
        length = window(tuple((epoch.masses, count) for epoch, count in above))
        if length <= 2 * _MOST_NODES:
            break
        h *= length / _MOST_NODES  # heavier tails than their size at zero says
    below = composed(tuple((lattice_below(at), count) for at, count in points), h)
    return below, composed(above, h)


def rough_bounds(parts: Parts, epsilon: Floats) -> tuple[Floats, Floats, Floats]:
    """Bounds of log H of all epochs together at eps >= 0, and about minus its logarithmic derivative.

    One epoch alone is post-processing of all: its lower bound serves where the lattice from below has ended.
    """
    below, above = _profiles(parts)
    lower, upper = below.bounds(epsilon)[0], above.bounds(epsilon)[1]
    alone = np.maximum.reduce([replace(law, sharp=False, rough=True).log_excess(epsilon)[0] for law, _ in parts])
    further = above.bounds(epsilon + above.step)[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.maximum(alone, down(np.log(lower), 4)), up(np.log(upper), 4)
        rate = (high - np.log(further)) / above.step
    return np.minimum(low, high), high, np.where(np.isfinite(rate), np.maximum(rate, 0.0), 0.0)
