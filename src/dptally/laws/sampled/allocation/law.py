"""One epoch of random allocation with Gaussian steps (balls and bins), one law for each direction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law.adjacency import Direction
from dptally.law.law import Numbers
from dptally.laws.by_profile import ProfileLaw
from dptally.laws.sampled.allocation.gaussian import GaussianSum
from dptally.laws.sampled.allocation.moments import log_moments, mean_loss
from dptally.numerics.normal import log_gaussian_delta
from dptally.numerics.rounding import EPS
from dptally.numerics.special import log_ndtr

__all__ = ["ALLOCATION_THEOREM", "AllocationLaw"]

_Sums = Callable[[Floats], tuple[Floats, Floats, Floats]]

ALLOCATION_THEOREM = (
    "Feldman, Shenfeld 2025, Privacy amplification by random allocation (arXiv 2502.08202); Chua et al. 2025 "
    "(arXiv 2412.16802); proof in dptally docs/batching.md"
)


@dataclass(frozen=True, slots=True)
class AllocationLaw(ProfileLaw):
    """R = S/t, S the sum of t independent ratios exp(m x - m^2/2): REMOVE is the pair (R Q, Q), ADD its reverse.

    REMOVE: H_a = E(S/t - a)+;   ADD: H_a = a E(1/a - S/t)+.   ``shift`` m = sensitivity / sigma; ``steps`` t >= 1.
    """

    shift: float
    steps: int
    side: Direction
    sharp: bool = True  # False: large ratios are bounded, not computed
    rough: bool = False  # and whatever takes long contours
    moments_from_above: ClassVar[bool] = True
    theorem: ClassVar[str] = ALLOCATION_THEOREM
    profile_by: ClassVar[str] = "contours of the ratio"  # pyright: ignore[reportIncompatibleMethodOverride]

    def reverse(self) -> AllocationLaw:
        return replace(self, side=Direction.ADD if self.side is Direction.REMOVE else Direction.REMOVE)

    @property
    def supremum(self) -> float:
        return math.inf

    @property
    def infimum(self) -> float:
        return -math.inf

    def log_moment(self, t: Numbers) -> Numbers:
        """K, with its error added; for complex t an estimate."""
        if np.iscomplexobj(t):
            return super(AllocationLaw, self).log_moment(t)
        value, error = self.log_moment_and_error(np.asarray(t, dtype=np.float64))
        return np.asarray(value + error)

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        flat = np.asarray(t, dtype=np.float64).ravel()
        value, error = log_moments(self.shift, self.steps, self.side, flat)
        return value.reshape(np.shape(t)), error.reshape(np.shape(t))

    @property
    def mean(self) -> float:
        return mean_loss(self.shift, self.steps, self.side)

    def log_excess(self, loss: Floats) -> tuple[Floats, Floats, Floats]:
        """log E|S/t - a| on the side of a away from one; ADD: a times the same at 1/a."""
        # without the record small losses are 1 - e^l and a little more: that need not be sharp of itself
        sharp = self.sharp and self.side is Direction.REMOVE
        total = GaussianSum(self.shift, self.steps, sharp and not self.rough, self.rough)
        return self._excess(loss, total.log_above, total.log_below)

    def log_excess_near(self, loss: Floats) -> tuple[Floats, Floats, Floats]:
        """The same in a few milliseconds, wide where it is tiny."""
        total = GaussianSum(self.shift, self.steps)
        return self._excess(loss, total.log_above_near, total.log_below)

    def _excess(self, loss: Floats, log_above: _Sums, log_below: _Sums) -> tuple[Floats, Floats, Floats]:
        if self.steps == 1:
            return self._alone(loss)
        t = float(self.steps)
        at = loss if self.side is Direction.REMOVE else -loss  # log of the ratio S/t at the kink
        with np.errstate(over="ignore"):
            b = t * np.exp(np.clip(at, -700.0, 690.0))
        low, high, rate = np.full((3, len(loss)), -np.inf)
        above = at >= 0
        for which, bounds in ((above, log_above), (~above, log_below)):
            if which.any():
                low[which], high[which], rate[which] = bounds(b[which])
        outside = np.abs(at) > 690.0
        low = np.where(outside, -np.inf, low)
        shift = -math.log(t) + (0.0 if self.side is Direction.REMOVE else loss)
        slack = 8 * EPS * (2 + math.log(t) + np.abs(loss))
        # d log E(S - b)+ / d log b = -b P / E; below, +b P / E
        steep = np.where(above, rate * b, -rate * b)
        rates = steep if self.side is Direction.REMOVE else -steep - 1.0
        return low + shift - slack, high + shift + slack, rates

    def _alone(self, loss: Floats) -> tuple[Floats, Floats, Floats]:
        """One step: a Gaussian, H_l above 0 and e^l H_{-l} below, the same in both directions."""
        size, below = np.abs(loss), np.minimum(loss, 0.0)
        lower, upper = log_gaussian_delta(self.shift, size, mu_ulps=4)
        tail = log_ndtr(0.5 * self.shift - size / self.shift)  # P(L > size); minus the profile, e^size Q(L > size)
        with np.errstate(over="ignore", invalid="ignore"):
            rate = np.exp(np.minimum(tail - upper, 700.0)) - 1.0
        slack = 2 * EPS * (1 + np.abs(below))
        return lower + below - slack, upper + below + slack, np.where(loss < 0, -1.0 - rate, rate)
