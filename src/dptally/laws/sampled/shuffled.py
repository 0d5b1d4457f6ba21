r"""What shuffled batches certainly reveal: the largest output of an epoch.

All other records contribute -1, the one in question 1 or nothing: relative to a batch of others its batch is at 2 or
at 1,
in a uniformly random place. The maximum of the t outputs over an epoch [Chua et al. 2024, arXiv 2403.17673] has

    P(max > C) = F(C, 2) against F(C, 1),    F(C, m) = 1 - Phi((C - m)/s) Phi(C/s)^(t-1);

put into bins it is a pair that the mechanism reveals by post-processing: a lower bound, epochs composing.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dptally.checks import Floats
from dptally.law.adjacency import Direction
from dptally.laws.atoms import AtomicLaw
from dptally.numerics.special import log_ndtr

__all__ = ["SHUFFLE_THEOREM", "shuffled_lower_law"]

SHUFFLE_THEOREM = "Chua et al. 2024, How private are DP-SGD implementations? (arXiv 2403.17673): a lower bound"
_BINS = 500
_LEAST = 3e-8  # probability of a bin: its rounding stays below the shade
_SHADE = 1e-6  # masses and losses are moved down by as much, relatively: more than their rounding


@lru_cache(maxsize=32)
def shuffled_lower_law(sigma: float, steps: int, side: Direction) -> AtomicLaw:
    """The binned maximum, rounded down: the bins between likely values, and one beyond on either side."""

    def log_below(edges: Floats, m: float) -> Floats:
        return np.asarray(log_ndtr((edges - m) / sigma) + (steps - 1) * log_ndtr(edges / sigma))

    wide = np.linspace(-8.0 * sigma, 2.0 + (math.sqrt(2 * math.log(steps + 1)) + 8.0) * sigma, 4000)
    inside = (log_below(wide, 2.0) > math.log(1e-6)) & (-np.expm1(log_below(wide, 1.0)) > 1e-6)
    if not inside.any():  # the two are all but told apart
        inside = np.arange(len(wide)) == int(np.argmin(np.abs(wide - 1.5)))
    edges = np.linspace(float(wide[inside].min()), float(wide[inside].max()), _BINS)
    masses = []
    for m in (2.0, 1.0):
        below = log_below(edges, m)
        masses.append(
            np.concatenate(([math.exp(float(below[0]))], np.diff(np.exp(below)), [-math.expm1(float(below[-1]))]))
        )
    p, q = masses if side is Direction.REMOVE else masses[::-1]
    kept = (p > _LEAST) & (q > _LEAST)
    loss = np.log(p[kept] / q[kept]) - _SHADE
    order = np.argsort(loss, kind="stable")
    points = tuple(zip(loss[order].tolist(), (p[kept][order] * (1 - _SHADE)).tolist(), strict=True))
    return AtomicLaw(points, cited=SHUFFLE_THEOREM)
