r"""What shuffled batches certainly reveal: the largest output of an epoch.

All other records contribute -1, the one in question 1 or else nothing (ADD_REMOVE) or -1 like the others (REPLACE):
relative to a batch of others its batch is at 2, or else at 1 or 0, in a uniformly random place. The maximum of the t
outputs over an epoch [Chua et al. 2024, arXiv 2403.17673] has

    P(max > C) = F(C, 2) against F(C, 1) or F(C, 0),    F(C, m) = 1 - Phi((C - m)/s) Phi(C/s)^(t-1);

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
_BINS = 250
_FINE = 20
_EVEN = 0.025  # losses: at multiples of this, where the best events begin, there are edges too; any edges are valid
_ROUNDING = 4e-14  # of a bin's probability: two values of a distribution function, 2e-14 each
_ENDS = 1e-7  # how likely what lies beyond the bins may be
_LEAST = 1e-9  # probability of a bin that is kept


def _even_in_loss(edges: Floats, masses: list[Floats]) -> Floats:
    """The edges at which the loss passes a multiple of ``_EVEN``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(masses[0] / masses[1])
    loss = np.where((masses[0] > _LEAST) & (masses[1] > _LEAST) & (np.abs(loss) < 10.0), loss, 0.0)
    return np.asarray(edges[1:-1][np.diff(np.floor(loss / _EVEN)) != 0])


@lru_cache(maxsize=32)
def shuffled_lower_law(sigma: float, steps: int, side: Direction, without: float = 1.0) -> AtomicLaw:
    """The binned maximum, rounded down: the bins between likely values, and one beyond on either side.

    ``without``: where the record's batch is without its contribution, 1 or 0.
    """
    places = (2.0, without)

    def log_below(edges: Floats, m: float) -> Floats:
        return np.asarray(log_ndtr((edges - m) / sigma) + (steps - 1) * log_ndtr(edges / sigma))

    wide = np.linspace(-8.0 * sigma, 2.0 + (math.sqrt(2 * math.log(steps + 1)) + 8.0) * sigma, 4000)
    inside = (log_below(wide, 2.0) > math.log(_ENDS)) & (-np.expm1(log_below(wide, without)) > _ENDS)
    if not inside.any():  # the two are all but told apart
        inside = np.arange(len(wide)) == int(np.argmin(np.abs(wide - 0.5 * (2.0 + without))))
    fine = np.linspace(float(wide[inside].min()), float(wide[inside].max()), _FINE * _BINS + 1)
    turns = _even_in_loss(fine, [np.diff(np.exp(log_below(fine, m))) for m in places])
    edges = np.union1d(fine[::_FINE], turns)
    masses = []
    for m in places:
        below = log_below(edges, m)
        masses.append(
            np.concatenate(([math.exp(float(below[0]))], np.diff(np.exp(below)), [-math.expm1(float(below[-1]))]))
        )
    p, q = masses if side is Direction.REMOVE else masses[::-1]
    kept = (p > _LEAST) & (q > _LEAST)
    p, q = p[kept] - _ROUNDING, q[kept] + _ROUNDING
    loss = np.log(p / q) - 1e-15
    order = np.argsort(loss, kind="stable")
    points = tuple(zip(loss[order].tolist(), p[order].tolist(), strict=True))
    return AtomicLaw(points, cited=SHUFFLE_THEOREM)
