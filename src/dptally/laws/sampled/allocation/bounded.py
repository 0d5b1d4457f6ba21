r"""One epoch of random allocation for steps of bounded loss (Laplace noise, randomised response): a lattice of ratios.

The ratio Y of a step has E(Y - y)+ = H(log y), and E(y - Y)+ = y H'(-log y) with the profile H' of the other
direction. A measure on an even grid whose profile is above (below) that everywhere bounds E(S - b)+ of the sum, or
E(b - S)+, from above (below): both are convex and monotone in every summand (docs/batching.md, "Bounded ratios").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.interval import Interval
from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.law.law import Numbers
from dptally.laws.by_profile import ProfileLaw
from dptally.laws.sampled.allocation.convex import measure_above, measure_below, profile_of
from dptally.laws.sampled.allocation.convolution import Earned, earned
from dptally.laws.sampled.allocation.law import ALLOCATION_THEOREM
from dptally.numerics.rounding import EPS, FUNCTION_ULPS, down, up

__all__ = ["BoundedAllocationLaw", "profile_values"]

_NODES = 1 << 19  # of the sum, about
_CELLS = 4096
_INSIDE = (1e-7, 1e-4, 1e-3, 1e-2)  # cells: how far inside the support grids from below end, to keep an atom there


def profile_values(law: Law, loss: Floats) -> tuple[Floats, Floats]:
    """(lower, upper) bounds of the profile at losses that are known to a few ulps."""
    step = 4 * EPS * (1 + np.abs(loss))
    with np.errstate(under="ignore"):
        lower, upper = np.exp(law.log_profile(loss + step)[0]), np.exp(law.log_profile(loss - step)[1])
    return lower * (1 - 4 * EPS), upper * (1 + 4 * EPS)


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """E(S - s)+ at the nodes s_j = start + (begin + j) step."""

    start: float
    step: float
    most: float  # the largest S
    earned: Earned

    def bounds(self, b: Floats) -> tuple[Floats, Floats]:
        """(lower, upper) of E(S - b)+: linear between the nodes; left of them at most ``most`` - b."""
        value, wrong, number = self.earned.value, self.earned.error, len(self.earned.value)
        place = (b - self.start) / self.step - self.earned.begin
        at = np.clip(place, 0.0, number - 1.0)
        j = np.minimum(at.astype(np.int64), number - 2)
        share = at - j
        found = value[j] * (1 - share) + value[j + 1] * share
        error = np.maximum(wrong[j], wrong[j + 1]) + EPS * (8 + 4 * np.abs(place + self.earned.begin)) * found
        error = np.where(place >= number - 1, 0.0, error)
        room = np.maximum(self.most - b, 0.0)
        upper = np.where(place < 0, room, found + error + self.earned.beyond * room)
        return np.maximum(found - error, 0.0), upper


@dataclass(frozen=True, slots=True, eq=False)
class _Ratios:
    """X = Y, or -Y: bounds of its profile on even grids, and where its support ends."""

    law: Law
    reverse: Law
    large: bool

    def ends(self) -> tuple[float, float, float]:
        """A point below the support, and points within its upper end and beyond."""
        least, most = self.law.infimum_interval, self.law.supremum_interval
        if self.large:
            return _down(math.exp(least.lower)), _down(math.exp(most.lower)), _up(math.exp(most.upper))
        return -_up(math.exp(most.upper)), -_up(math.exp(least.upper)), -_down(math.exp(least.lower))

    def values(self, x: Floats) -> tuple[Floats, Floats]:
        """Bounds of E(X - x)+."""
        if self.large:
            return profile_values(self.law, np.log(x))
        lower, upper = profile_values(self.reverse, -np.log(-x))
        return -x * lower, -x * upper

    def measures(self, cells: int) -> tuple[_Grid, _Grid]:
        """From below, on a grid that ends a little inside the support, and from above."""
        start, inside, beyond = self.ends()
        room = (1.0 if self.large else -1.0) - start
        lower = max((self._below(start, inside, room, cells, gap) for gap in _INSIDE), key=_Grid.mean)
        h = (beyond - start) / cells
        values = self.values(start + h * np.arange(cells + 1.0))[1]
        values[0], values[-1] = room * (1 + 4 * EPS), 0.0
        return lower, _Grid(start, h, measure_above(np.full(cells, h), values))

    def _below(self, start: float, inside: float, room: float, cells: int, gap: float) -> _Grid:
        h = (inside - start) / (cells + gap)
        below, above = self.values(start + 0.5 * h * np.arange(2 * cells + 1.0))
        below[0], above[0] = room * (1 - 4 * EPS), room * (1 + 4 * EPS)
        return _Grid(start, h, measure_below(np.full(cells, h), below[::2], above[::2], below[1::2], float(below[0])))


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    start: float
    step: float
    masses: Floats

    def mean(self) -> float:
        return self.step * float(self.masses @ np.arange(len(self.masses)))

    def power(self, steps: int) -> _Sum:
        h, cells = self.step, len(self.masses) - 1
        most = steps * (self.start + h * cells)
        found = earned(((self.masses, steps),), lambda m: profile_of(m, np.full(len(m) - 1, h)), h * steps * cells)
        return _Sum(steps * self.start, h, most + 1e-12 * steps * (abs(self.start) + h * cells), found)


def _down(x: float) -> float:
    return x * (1 - 1e-14)


def _up(x: float) -> float:
    return x * (1 + 1e-14)


@lru_cache(maxsize=16)
def _sums(law: Law, reverse: Law, steps: int, large: bool) -> tuple[_Sum, _Sum]:
    """The lower and the upper lattice of the sum, for E(S - b)+ (``large``) or, of -Y, for E(b - S)+."""
    ratios = _Ratios(law, reverse, large)
    span = ratios.ends()[2] - ratios.ends()[0]
    deviation = 2.5 * math.exp(float(law.log_profile(np.zeros(1))[1][0]))  # E(Y - 1)+ is 0.4 of it for a normal Y
    cells = max(64, min(_CELLS, int(_NODES * span / (30 * math.sqrt(steps) * deviation))))
    lower, upper = ratios.measures(cells)
    return lower.power(steps), upper.power(steps)


@dataclass(frozen=True, slots=True)
class BoundedAllocationLaw(ProfileLaw):
    """``inner`` is the loss of one step with the record against without it, ``opposite`` without against with it, both
    bounded; ``steps`` t >= 1.
    """

    inner: Law
    opposite: Law
    steps: int
    side: Direction
    moments_from_above: ClassVar[bool] = True
    theorem: ClassVar[str] = ALLOCATION_THEOREM
    profile_by: ClassVar[str] = "lattice of ratios"  # pyright: ignore[reportIncompatibleMethodOverride]

    def reverse(self) -> BoundedAllocationLaw:
        return replace(self, side=Direction.ADD if self.side is Direction.REMOVE else Direction.REMOVE)

    @property
    def supremum(self) -> float:
        return self.inner.supremum if self.side is Direction.REMOVE else -self.inner.infimum

    @property
    def infimum(self) -> float:
        return self.inner.infimum if self.side is Direction.REMOVE else -self.inner.supremum

    @property
    def supremum_interval(self) -> Interval:
        """Every ratio takes its extreme value at once."""
        if self.side is Direction.REMOVE:
            return self.inner.supremum_interval
        box = self.inner.infimum_interval
        return Interval(-box.upper, -box.lower)

    @property
    def infimum_interval(self) -> Interval:
        box = self.reverse().supremum_interval
        return Interval(-box.upper, -box.lower)

    def log_moment(self, t: Numbers) -> Numbers:
        return self._epoch().log_moment(t)

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        return self._epoch().log_moment_and_error(t)

    @property
    def mean(self) -> float:
        return self._epoch().mean

    def _epoch(self) -> Law:
        """The same as one epoch of several, whose K is proved to be an upper bound."""
        from dptally.laws.sampled.allocation.bounded_epochs import BoundedEpochsLaw

        return BoundedEpochsLaw.of(((self, 1),))

    def log_excess(self, loss: Floats) -> tuple[Floats, Floats, Floats]:
        lower, upper = self._excess(loss)
        step = 1e-5
        further = self._excess(loss + step)[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where((upper > 0) & (further > 0), (np.log(upper) - np.log(further)) / step, 0.0)
            low, high = down(np.log(lower), FUNCTION_ULPS), up(np.log(upper), FUNCTION_ULPS)
            high = np.where(upper > 0, high + 4 * EPS, -np.inf)
            return low - 4 * EPS, high, np.where(np.isfinite(rate), rate, 0.0)

    def _excess(self, loss: Floats) -> tuple[Floats, Floats]:
        """Bounds of E|S/t - a| on the side of a away from one; ADD: a times the same at 1/a."""
        t = float(self.steps)
        at = np.clip(loss if self.side is Direction.REMOVE else -loss, -690.0, 690.0)
        b = t * np.exp(at)
        lower, upper = np.empty((2, len(loss)))
        for large, which in ((True, at >= 0), (False, at < 0)):
            if which.any():
                below, above = _sums(self.inner, self.opposite, self.steps, large)
                s = b[which] if large else -b[which]
                room = 8 * EPS * np.abs(s)  # s is rounded: the profile falls with it
                lower[which], upper[which] = below.bounds(s + room)[0], above.bounds(s - room)[1]
        outside = (loss >= self.supremum) | (loss <= self.infimum)
        factor = (np.ones_like(loss) if self.side is Direction.REMOVE else np.exp(np.clip(loss, -690.0, 690.0))) / t
        return np.where(outside, 0.0, lower * factor * (1 - 8 * EPS)), np.where(
            outside, 0.0, upper * factor * (1 + 8 * EPS)
        )
