r"""The period of the trapezoid sum, and what its aliases add up to at most.

The sum of step 2 pi / P equals the sum over m of h(eps + m P)  [Poisson summation]; all terms are nonnegative, and by
delta(x) <= e^{K(s) - s x} those with m != 0 are bounded by K at larger and at smaller tilts. docs/certificates.md,
section 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptally.law.characteristic import MomentTable
from dptally.law.law import Floats
from dptally.numerics.rounding import EPS

__all__ = ["Aliasing", "alias_period", "alias_periods"]


def alias_period(
    tilts: MomentTable, theta: float, log_moment: float, epsilon: float, log_size: float, relative: float
) -> float:
    """P for which the aliasing bound is below ``relative`` times the integral (log_size); it need not be exact."""
    need = -math.log(relative) - log_size
    above, below = tilts.theta > theta * 1.0001, tilts.theta < theta * 0.9999
    right = (need + tilts.moment[above] - log_moment) / (tilts.theta[above] - theta) - epsilon
    left = (need + np.append(tilts.moment[below], 0.0) - log_moment) / (
        theta - np.append(tilts.theta[below], 0.0)
    ) + epsilon
    bound = max(float(right.min()) if right.size else math.inf, float(left.min()))
    return max(bound, 0.0) * 1.02 + 1e-3 / theta


def alias_periods(tilts: MomentTable, epsilon: float, log_size: Floats, relative: float) -> Floats:
    """About :func:`alias_period` at every tilt of the table; infinite at its last."""
    theta, moment = tilts.theta, tilts.moment
    need = -math.log(relative) - log_size - moment
    with np.errstate(all="ignore"):
        chords = (need[:, None] + moment) / (theta - theta[:, None])
    above = theta > theta[:, None]
    right = np.where(above, chords, np.inf).min(axis=1) - epsilon
    left = np.minimum(np.where(above.T, -chords, np.inf).min(axis=1), need / theta) + epsilon
    return np.asarray(np.maximum(right, left))


@dataclass(frozen=True, slots=True)
class Aliasing:
    """What the other terms of Poisson's sum add up to, at most.

    The sum over m != 0 of h(eps + mP), by delta(x) <= e^{K(s) - s x}: s > theta for m > 0 and 0 <= s < theta for m < 0.
    """

    above: tuple[Floats, Floats]  # gaps s - theta > 0, and the log of the bound at eps = 0
    below: tuple[Floats, Floats]  # gaps theta - s > 0, likewise

    @classmethod
    def of(cls, tilts: MomentTable, theta: float, log_least: float, step: float) -> Aliasing:
        """``log_least``: a lower bound of K(theta); ``step``: 2 pi over the period."""
        period = 2 * math.pi / step
        gap = tilts.theta - theta
        gain = tilts.moment + tilts.error - log_least
        size = np.abs(tilts.moment) + tilts.error + abs(log_least)
        right, left = gap > 0, gap < 0
        sides = []
        for gaps, gains, sizes in (
            (gap[right], gain[right], size[right]),
            (np.append(-gap[left], theta), np.append(gain[left], -log_least), np.append(size[left], abs(log_least))),
        ):
            fall = gaps * period
            series = np.log(-np.expm1(-fall))
            # the gains are sums of three numbers each; gap, period and product are rounded once or twice
            rounding = 8 * EPS * (sizes + fall + np.abs(series))
            sides.append((gaps, gains - fall - series + rounding))
        return cls(*sides)

    def bound(self, epsilon: float) -> float:
        if not self.above[0].size:
            return math.inf
        right = float(_exponent(self.above[1], -epsilon * self.above[0]).min())
        left = float(_exponent(self.below[1], epsilon * self.below[0]).min())
        return (math.exp(min(700.0, right)) + math.exp(min(700.0, left))) * (1 + 16 * EPS)

    def bound_many(self, epsilon: Floats) -> Floats:
        if not self.above[0].size:
            return np.full(epsilon.shape, np.inf)
        right = _exponent(self.above[1], np.multiply.outer(-epsilon, self.above[0])).min(axis=1)
        left = _exponent(self.below[1], np.multiply.outer(epsilon, self.below[0])).min(axis=1)
        return np.asarray((np.exp(np.minimum(700.0, right)) + np.exp(np.minimum(700.0, left))) * (1 + 16 * EPS))


def _exponent(start: Floats, move: Floats) -> Floats:
    """start + move, rounded up: two roundings of the product, one of the sum."""
    return np.asarray(start + move + 4 * EPS * (np.abs(start) + np.abs(move)))
