r"""The largest value of the GDPT on a head [0, h], certified with few looks at the profile.

One threshold T is enough. Whether G <= T on a cell [a, b] is decided without computing G there:

    staircase   delta(a) <= delta_T(b): both fall, so G <= mu_GDP(b, delta(a)) <= T on the cell  [Liu et al. 2022,
                Thm. 4.3]. By Thm. 4.2 this succeeds once b - a <= (T - G(a)) / sqrt(pi/2).
    tangent     for a profile convex in x = e^eps: a tangent of delta_T lies below delta_T everywhere, and a
                chord of delta above delta. If a tangent passes above both ends of the chord, then G <= T on
                the cell. The best tangent has the chord's slope. The error is of second order in b - a.

T = (the largest lower bound of G met) + tolerance. Cells that fail are split where the tangent touches, so a
smooth maximum is approached like by a Newton search. G itself is computed only where it beats the largest so
far, as in Algorithm 1 of the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dptally.checks import Floats
from dptally.gdp.view import View
from dptally.numerics.normal import gaussian_mu_log, log_gaussian_delta, log_normal_tail
from dptally.numerics.rounding import EPS, SMALLEST, down, up
from dptally.numerics.special import ndtri_exp

__all__ = ["Found", "largest", "stays_below"]

_START = np.array([0.0, 0.01, 0.04, 0.1, 0.2, 0.4, 0.7, 1.0])  # first epsilons, as shares of the head
_NARROW = 1e-13  # cells are not split below this share of the head
_LARGEST_T = 1e6
_FAR_BELOW = 0.9  # of mu: where G is certainly below this share of what was found it need not be known any better


@dataclass(frozen=True, slots=True)
class Found:
    """lower <= sup G <= upper on the head; ``at`` is the epsilon that proves the lower end."""

    lower: float
    upper: float
    at: float
    points: int


@dataclass(frozen=True, slots=True)
class _Cells:
    """Intervals [a, b] of epsilon with upper bounds of log delta at their ends."""

    a: Floats
    high_a: Floats
    b: Floats
    high_b: Floats

    def take(self, which: NDArray[np.bool_]) -> _Cells:
        return _Cells(self.a[which], self.high_a[which], self.b[which], self.high_b[which])

    @classmethod
    def between(cls, x: Floats, high: Floats) -> _Cells:
        return cls(x[:-1], high[:-1], x[1:], high[1:])

    def split(self, at: Floats, high: Floats) -> _Cells:
        return _Cells(
            np.concatenate([self.a, at]),
            np.concatenate([self.high_a, high]),
            np.concatenate([at, self.b]),
            np.concatenate([high, self.high_b]),
        )


def largest(view: View, head: float, tolerance: float, floor: float = 0.0, ceiling: float = math.inf) -> Found:
    """Bounds of the supremum of G on [0, head] and ``floor``, within ``tolerance`` where the profile allows
    it.

    ``ceiling`` is a mu already known to be enough; where it is met the search ends.
    """
    x = head * _START
    points, level = x.size, 0.0
    # often the end of the head decides: what is certainly far below it is not looked at closely
    best = _raised(Found(floor, ceiling, math.inf, points), x[-1:], view.log_delta(x[-1:])[0], 0.5 * tolerance)
    low, high = _bounds(view, x, best.lower)
    cells = _Cells.between(x, high)
    while True:
        best = replace(_raised(best, x, low, 0.5 * tolerance), points=points)
        if ceiling - best.lower <= tolerance or math.isinf(best.lower):
            return replace(best, upper=max(ceiling, best.lower))
        # what the bounds of the profile leave open at its points raises T; it is never hidden
        level = max(level, best.lower + 0.7 * tolerance)
        level = _raised(replace(best, lower=level), x, high, 0.1 * tolerance).lower
        if not level < _LARGEST_T:
            return best
        top = up(level + 0.2 * tolerance)
        proved, touch = _proved(top, cells, view.convex)
        cells, touch = cells.take(~proved), touch[~proved]
        wide = cells.b - cells.a > _NARROW * head
        if not wide.any() or points >= view.most_points:
            left = gaussian_mu_log(cells.b, cells.high_a)[1]
            return replace(best, upper=min(ceiling, max(top, float(left.max(initial=0.0)))))
        x = _split_points(cells, touch)
        low, high = _bounds(view, x, best.lower)
        points += x.size
        cells = cells.split(x, high)


def stays_below(view: View, head: float, target: float) -> bool:
    """Whether G <= target on [0, head] for certain; False also where it could not be decided."""
    x = head * _START
    _, high = _bounds(view, x, target)
    cells, points = _Cells.between(x, high), x.size
    while points < view.most_points:
        if (high > log_gaussian_delta(target, x, 0.0)[0]).any():
            return False
        proved, touch = _proved(target, cells, view.convex)
        if proved.all():
            return True
        cells, touch = cells.take(~proved), touch[~proved]
        if (cells.b - cells.a <= _NARROW * head).any():
            return False
        x = _split_points(cells, touch)
        _, high = _bounds(view, x, target)
        points += x.size
        cells = cells.split(x, high)
    return False


def _bounds(view: View, x: Floats, mu: float) -> tuple[Floats, Floats]:
    """Bounds of log delta, rough ones where G is certainly far below mu."""
    if not 0 < mu < math.inf:
        return view.log_delta(x)
    return view.log_delta_above(x, log_gaussian_delta(_FAR_BELOW * mu, x, 0.0)[0])


def _raised(best: Found, x: Floats, log_delta: Floats, slack: float) -> Found:
    """``best`` with its lower end raised to mu_GDP(x, delta) wherever that is more than ``slack`` larger."""
    lower, at = best.lower, best.at
    if (log_delta >= 0).any():
        return replace(best, lower=math.inf, at=float(x[np.argmax(log_delta)]))
    alive = log_delta > -np.inf
    x, log_delta = x[alive], log_delta[alive]
    while x.size:
        trial = lower + slack
        reached = log_gaussian_delta(trial, x, 0.0)[1]
        above = log_delta > reached
        if not above.any():
            break
        x, log_delta, reached = x[above], log_delta[above], reached[above]
        # the gain in mu to first order: d mu / d log delta = delta / phi
        log_density = -0.5 * (x / trial - 0.5 * trial) ** 2
        log_gain = np.log(log_delta - reached) + reached - log_density
        i = int(np.argmax(log_gain))
        found = float(gaussian_mu_log(x[i], log_delta[i])[0])
        if found > lower:
            lower, at = found, float(x[i])
        keep = np.arange(x.size) != i
        x, log_delta = x[keep], log_delta[keep]
    return replace(best, lower=lower, at=at)


def _proved(top: float, cells: _Cells, convex: bool) -> tuple[NDArray[np.bool_], Floats]:
    """(whether G <= top on each cell, where the tangent of the chord's slope touches)."""
    proved = cells.high_a <= log_gaussian_delta(top, cells.b, 0.0)[0]
    touch = 0.5 * (cells.a + cells.b)
    if convex and not proved.all():
        rest = ~proved
        proved[rest], touch[rest] = _by_tangent(top, cells.take(rest))
    return proved, touch


def _by_tangent(top: float, cells: _Cells) -> tuple[NDArray[np.bool_], Floats]:
    r"""Whether the tangent of delta_top at u passes above both ends, for the u of the chord's slope.

    The tangent is delta_top(u) - s (x - x_u), s = Phi(-u/top - top/2). With everything divided by
    delta_top(u):
        e^{high_a - d} <= 1 + e^{log s + u - d} (1 - e^{a - u}),   e^{high_b - d} + e^{log s + u - d} (e^{b -
        u} - 1) <= 1.
    All terms are positive; their rounding is that of the exponents, and is allowed for.
    """
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        drop = np.log(-np.expm1(np.minimum(cells.high_b - cells.high_a, -SMALLEST)))
        width = cells.b - cells.a
        log_growth = np.where(width > 700.0, width, np.log(np.expm1(np.minimum(width, 700.0))))
        log_slope = np.minimum(cells.high_a + drop - cells.a - log_growth, -EPS)
        u = np.clip(-top * ndtri_exp(log_slope) - 0.5 * top * top, cells.a, cells.b)
        level = log_gaussian_delta(top, u, 0.0)[0]
        y = u / top + 0.5 * top
        slope_low, slope_high = log_normal_tail(up(y, 4))[0], log_normal_tail(down(y, 4))[1]
        sizes = np.abs(level) + np.abs(slope_low) + u
        error_a = EPS * (16.0 + 4.0 * (sizes + np.abs(cells.high_a)))
        finite_b = np.where(np.isfinite(cells.high_b), np.abs(cells.high_b), 0.0)
        error_b = EPS * (16.0 + 4.0 * (sizes + finite_b))
        left = np.exp(np.minimum(cells.high_a - level, 700.0)) * (1.0 + error_a)
        room = 1.0 + np.exp(np.minimum(slope_low + u - level, 700.0)) * -np.expm1(cells.a - u) * (1.0 - error_a)
        right = np.exp(np.minimum(cells.high_b - level, 700.0))
        fall = np.exp(np.minimum(slope_high + u - level, 700.0)) * np.expm1(np.minimum(cells.b - u, 700.0))
        proved = (left <= room) & ((right + fall) * (1.0 + error_b) <= 1.0)
    return proved, u


def _split_points(cells: _Cells, touch: Floats) -> Floats:
    """Where the tangent touches, if that is well inside, else the middle."""
    width = cells.b - cells.a
    inside = (touch > cells.a + 0.1 * width) & (touch < cells.b - 0.1 * width)
    return np.where(inside, touch, cells.a + 0.5 * width)
