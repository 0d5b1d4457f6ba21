r"""Measures on a grid whose profile is above, or below, a convex profile everywhere.

A profile is F(x) = E(X - x)+, convex and falling, with F(x) >= E X - x. On a grid x_0 < x_1 < .. of ``widths``
x_{k+1} - x_k the measure with masses m_k has the profile sum over j > k of m_j (x_j - x_k) at x_k, linear between.

- *Above*: chords through upper bounds of F at the points. Where rounding left a point short, all masses are scaled.
- *Below*: on a cell a convex function is below its chord by at most twice its distance at the middle, because it lies
  above the two lines through the middle and an end. So chords through values lowered by that are below F as long as
  these are positive, and so is their greatest convex minorant. An atom at the upper end of the support needs a grid
  that ends a little below it. Left of the grid the masses, which add up to at most one, keep it below E X - x.

Derivations: docs/batching.md, "Bounded ratios".
"""

from __future__ import annotations

import numpy as np

from dptally.checks import Floats
from dptally.numerics.rounding import EPS

__all__ = ["hull", "measure_above", "measure_below", "profile_of"]


def profile_of(masses: Floats, widths: Floats) -> Floats:
    """The profile at the points: two sums of positive terms, from the right."""
    above = np.cumsum(masses[:0:-1])[::-1]  # what lies right of each point but the last
    return np.append(np.cumsum((above * widths)[::-1])[::-1], 0.0)


def measure_above(widths: Floats, upper: Floats) -> Floats:
    """Masses whose profile is at least ``upper`` at every point; ``upper`` ends with 0."""
    masses = _masses(_minorant(upper, widths), widths)
    have = profile_of(masses, widths)
    with np.errstate(divide="ignore", invalid="ignore"):
        short = np.where(upper[:-1] > 0, upper[:-1] / have[:-1], 1.0)
    return np.asarray(masses * (max(1.0, float(short.max())) * (1 + _slack(masses))))


def measure_below(widths: Floats, lower: Floats, upper: Floats, middles: Floats, room: float) -> Floats:
    """Masses whose profile is at most F everywhere: from bounds at the points, lower bounds at the ``middles`` of the
    cells, and ``room`` <= E X - x_0.
    """
    excess = np.maximum(0.5 * (upper[:-1] + upper[1:]) - middles, 0.0)
    beside = 2 * np.maximum(np.append(excess, 0.0), np.insert(excess, 0, 0.0))
    goal = lower - beside
    # a chord may end at 0 only where the lowered value is not below it: else nothing is left from the point before
    negative = np.flatnonzero(goal < 0)
    if negative.size:
        goal[max(0, int(negative[0]) - 1) :] = 0.0
    goal[0], goal[-1] = min(float(goal[0]), max(0.0, room)), 0.0
    goal = _minorant(goal, widths)
    masses = _masses(goal, widths)
    have = profile_of(masses, widths)
    with np.errstate(divide="ignore", invalid="ignore"):
        over = np.where(have[:-1] > 0, goal[:-1] / have[:-1], 1.0)
    shrink = min(1.0, float(over.min()), 1.0 / max(float(masses.sum()), 1.0)) * (1 - _slack(masses))
    return np.asarray(masses * max(shrink, 0.0))


def _slack(masses: Floats) -> float:
    """More than the rounding of masses, of their profile and of their sum, relatively."""
    return 1e-12 + 8 * len(masses) * EPS


def _masses(values: Floats, widths: Floats) -> Floats:
    """Masses of the measure with these values of the profile; what is left of one stays at the first point."""
    slope = np.diff(values) / widths  # rising to 0
    inner, last = np.maximum(np.diff(slope), 0.0), max(0.0, -float(slope[-1]))
    return np.concatenate(([max(0.0, 1.0 - (float(inner.sum()) + last))], inner, [last]))


def _minorant(values: Floats, widths: Floats) -> Floats:
    """About the greatest convex function below the values, at the points; not above them."""
    if (np.diff(np.diff(values) / widths) >= 0).all():
        return values
    points = _places(widths)
    kept = hull(points, values)
    return np.minimum(values, np.interp(points, points[kept], values[kept]))


def _places(widths: Floats) -> Floats:
    """The points, measured from that end where they are closest: from the other they would be lost in rounding."""
    if widths[0] <= widths[-1]:
        return np.concatenate(([0.0], np.cumsum(widths)))
    return -np.concatenate((np.cumsum(widths[::-1])[::-1], [0.0]))


def hull(points: Floats, values: Floats) -> list[int]:
    """About which points lie on the greatest convex function below the values. A convex function below the values is
    below the chords of any of them, so bounds from above need no others.
    """
    x, y = points.tolist(), values.tolist()
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1:
            a, c = kept[-2], kept[-1]
            if (y[c] - y[a]) * (x[i] - x[a]) <= (y[i] - y[a]) * (x[c] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return kept
