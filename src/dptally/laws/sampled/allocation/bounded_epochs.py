r"""Several epochs of random allocation with steps of bounded loss: a lattice of losses, one for each end.

REMOVE: E(R_1 .. R_E - a)+ is convex and increasing in every ratio; ADD: E(1 - a R_1 .. R_E)+ convex and decreasing. So
each ratio may be replaced by a measure on the points e^{ih}, or e^{-ih}, whose profile is above (below) that of one
epoch everywhere (convex.py): losses on an even grid, convolved at several tilts. What lies beyond the window is bounded
by Chernoff and counts as mass at infinity above, as nothing below. Derivations: docs/batching.md, "Bounded ratios".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.law.adjacency import Direction
from dptally.law.law import Numbers
from dptally.laws.sampled.allocation.bounded import BoundedAllocationLaw, profile_values
from dptally.laws.sampled.allocation.convex import measure_above, measure_below
from dptally.laws.sampled.allocation.convolution import Earned, earned
from dptally.laws.sampled.allocation.independent import IndependentEpochs
from dptally.laws.sampled.allocation.law import AllocationLaw
from dptally.numerics.rounding import EPS, down, up

__all__ = [
    "BoundedEpochsLaw",
    "LatticeEpoch",
    "LatticePoints",
    "LatticeProfile",
    "composed",
    "lattice_above",
    "lattice_below",
]

_FINE = 1000  # points in a standard deviation of one epoch's loss
_MOST_NODES = 1 << 20
_FARTHEST = -70.0  # log of a profile that is not followed further
_INSIDE = (1e-3, 1e-2, 0.1)  # cells: how far inside the support the lattice from below ends, to keep an atom there
_ORDERS = 2.0 ** np.arange(-12.0, 9.0)  # at which K is taken to bound it at smaller orders
_STEP_OF_SUMS = 300.0  # nats over which one sum of exponentials goes


@dataclass(frozen=True, slots=True, eq=False)
class LatticeEpoch:
    """Masses under P at the losses (first + i) h, and what counts as infinite."""

    first: int
    masses: Floats
    infinite: float


@dataclass(frozen=True, slots=True, eq=False)
class LatticeProfile:
    """The profile at the losses (first + k) h, without what counts as infinite."""

    first: int
    step: float
    earned: Earned
    infinite: float

    def bounds(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Between the points the profile is linear in e^eps; left of them it is at most one, and falls."""
        value, wrong, number = self.earned.value, self.earned.error, len(self.earned.value)
        place = epsilon / self.step - self.first
        at = np.clip(place, 0.0, number - 1.0)
        j = np.minimum(at.astype(np.int64), number - 2)
        share = np.clip(np.expm1((at - j) * self.step) / math.expm1(self.step), 0.0, 1.0)
        found = value[j] * (1 - share) + value[j + 1] * share
        error = np.maximum(wrong[j], wrong[j + 1]) + found * EPS * (16 + 4 * (np.abs(place) + abs(self.first)))
        beyond = self.infinite + self.earned.beyond
        upper = np.where(place < 0, 1.0, np.where(place >= number - 1, 0.0, found + error) + beyond)
        return np.maximum(found - error, 0.0), np.minimum(upper, 1.0)


def _window(law: BoundedAllocationLaw) -> tuple[float, float, float]:
    """(least, largest) loss that is followed, and about the standard deviation."""
    ends, top = [], []
    for side in (law.reverse(), law):
        points = side.supremum * np.linspace(0.0, 1.0, 2001)[1:-1]
        followed = np.flatnonzero(side.log_excess(points)[1] > _FARTHEST)
        ends.append(float(points[followed[-1]]) if followed.size else float(points[0]))
        top.append(float(np.exp(side.log_excess(np.zeros(1))[1][0])))
    return -ends[0], ends[1], 2.5 * max(top)  # E(R - 1)+ of a normal variable is 0.4 of its deviation


@dataclass(frozen=True, slots=True, eq=False)
class LatticePoints:
    """The losses ih, i in ``index`` (increasing), as points x = s e^{sl}, s = 1 (REMOVE) or -1 (ADD), where F(x) = H or
    e^{-l} H.
    """

    law: BoundedAllocationLaw | AllocationLaw
    step: float
    index: NDArray[np.int64]

    @classmethod
    def of(cls, law: BoundedAllocationLaw, h: float, end: float) -> LatticePoints:
        """All losses that are followed: up to ``end``, the largest of all, if they go so far."""
        least, largest, _ = _window(law)
        last = math.ceil(largest / h) + 1 if largest < 0.99 * end else round(end / h)
        return cls(law, h, np.arange(math.floor(least / h) - 1, last + 1))

    @property
    def sign(self) -> float:
        return 1.0 if self.law.side is Direction.REMOVE else -1.0

    @property
    def loss(self) -> Floats:
        return np.asarray(self.step * self.index.astype(np.float64))

    @property
    def gaps(self) -> Floats:
        """e^{s times the next loss's distance} - 1."""
        return np.asarray(np.expm1(self.sign * self.step * np.diff(self.index)))

    @property
    def widths(self) -> Floats:
        s = self.sign
        return np.asarray(np.exp(s * self.loss[:-1]) * (s * self.gaps))

    @property
    def middles(self) -> Floats:
        """The losses in the middle of the cells of x."""
        return np.asarray(self.loss[:-1] + self.sign * np.log1p(0.5 * self.gaps))

    def values(self, loss: Floats) -> tuple[Floats, Floats]:
        scale = np.ones_like(loss) if self.sign > 0 else np.exp(-loss)
        lower, upper = profile_values(self.law, loss)
        return scale * lower, scale * upper

    def epoch(self, masses: Floats, up: bool, infinite: float = 0.0) -> LatticeEpoch:
        """Under P, from masses under Q at the points, rounded up or down."""
        factor = np.exp(self.loss) if self.sign > 0 else np.ones_like(masses)
        slack = EPS * (16 + 4 * np.abs(self.loss))
        everywhere = np.zeros(int(self.index[-1] - self.index[0]) + 1)
        everywhere[self.index - self.index[0]] = masses * factor * (1 + slack if up else 1 - slack)
        return LatticeEpoch(int(self.index[0]), everywhere, infinite)


@lru_cache(maxsize=32)
def _from_below(law: BoundedAllocationLaw, h: float) -> LatticeEpoch:
    return lattice_below(LatticePoints.of(law, h, math.floor(law.supremum_interval.lower / h) * h))


def lattice_below(points: LatticePoints) -> LatticeEpoch:
    s = points.sign
    lower, upper = points.values(points.loss)
    middles = points.values(points.middles)[0]
    room = -s * math.expm1(s * float(points.loss[0])) * (1 - 16 * EPS)
    return points.epoch(measure_below(points.widths, lower, upper, middles, room), False)


@lru_cache(maxsize=32)
def _from_above(law: BoundedAllocationLaw, h: float) -> LatticeEpoch:
    return lattice_above(LatticePoints.of(law, h, math.ceil(law.supremum / h) * h))


def lattice_above(points: LatticePoints, upper: Floats | None = None) -> LatticeEpoch:
    """``upper``: bounds of F at the points, if they are known.

    Where not all losses are followed, the largest of all is one more point, whose mass counts as infinite. REMOVE
    without a largest: what counts as infinite has the probability H_end, and so the profile H_end everywhere.
    """
    law, s = points.law, points.sign
    upper, end = points.values(points.loss)[1] if upper is None else upper, float(points.loss[-1])
    if end >= law.supremum:
        upper[-1] = 0.0
        return points.epoch(measure_above(points.widths, upper), True)
    if s > 0 and math.isinf(law.supremum):
        followed = np.maximum((upper - upper[-1]) * (1 + 4 * EPS), 0.0)
        return points.epoch(measure_above(points.widths, followed), True, float(upper[-1]))
    widths = np.append(points.widths, s * math.exp(s * end) * math.expm1(s * (law.supremum - end)))
    masses = measure_above(widths, np.append(upper, 0.0))
    infinite = float(masses[-1]) * (math.exp(law.supremum) if s > 0 else 1.0) * (1 + 1e-9)
    return points.epoch(masses[:-1], True, infinite)


def _payoffs(masses: Floats, h: float) -> Floats:
    """sum over j > k of m_j (1 - e^{(k - j)h}) = (1 - e^-h) sum over i >= k of e^{(k - i)h} (sum over j > i of m_j)."""
    above = np.append(np.cumsum(masses[:0:-1])[::-1], 0.0)
    out, carried = np.empty_like(above), 0.0
    length = max(1, int(_STEP_OF_SUMS / h))
    for end in range(len(above), 0, -length):
        start = max(0, end - length)
        fall = np.exp(-h * np.arange(end - start))
        inner = np.cumsum((above[start:end] * fall)[::-1])[::-1] / fall
        out[start:end] = -math.expm1(-h) * inner + carried * fall[::-1] * math.exp(-h)
        carried = float(out[start])
    return out


def composed(parts: tuple[tuple[LatticeEpoch, int], ...], h: float) -> LatticeProfile:
    found = earned(tuple((epoch.masses, count) for epoch, count in parts), lambda m: _payoffs(m, h), 1.0)
    # some epoch is infinite, the others are anything: their masses may add up to a little more than one
    growth = math.fsum(count * math.log(max(1.0, float(epoch.masses.sum()) + epoch.infinite)) for epoch, count in parts)
    infinite = math.fsum(count * epoch.infinite for epoch, count in parts) * math.exp(min(growth, 700.0)) * (1 + 1e-9)
    first = sum(count * epoch.first for epoch, count in parts) + found.begin
    return LatticeProfile(first, h, found, infinite)


def _log_moment_above(law: BoundedAllocationLaw, t: Floats) -> Floats:
    """An upper bound of K of one epoch at t > 0."""
    h = _step_above(law, _window(law)[2] / _FINE)
    above = _from_above(law, h)
    loss = h * (above.first + np.arange(float(len(above.masses))))
    with np.errstate(divide="ignore"):
        logs = np.append(np.log(above.masses), math.log(above.infinite) if above.infinite > 0 else -np.inf)
    out = np.empty(len(t))
    for i, order in enumerate(t.tolist()):
        exponent = logs + order * np.append(loss, max(law.supremum, float(loss[-1])))
        top = float(exponent.max())
        out[i] = top + math.log(float(np.exp(exponent - top).sum())) + EPS * (2 * len(logs) + 8 * (1 + abs(top)))
    return np.minimum(out, t * law.supremum)


def _step_above(law: BoundedAllocationLaw, about: float) -> float:
    """A step of which the largest loss is a multiple, or hardly less: an atom there stays where it is."""
    return law.supremum / math.ceil(law.supremum / about) * (1 + 4 * EPS)


def _step_below(law: BoundedAllocationLaw, about: float) -> float:
    """A step of which a multiple is a little below the largest loss: of some, that which keeps most of the profile."""

    def kept(h: float) -> float:
        epoch = _from_below(law, h)
        loss = h * (epoch.first + np.arange(float(len(epoch.masses))))
        return float(epoch.masses @ np.maximum(-np.expm1(-loss), 0.0))

    most = law.supremum_interval.lower
    return max((most / (math.ceil(most / about) + gap) for gap in _INSIDE), key=kept)


@lru_cache(maxsize=32)
def _profiles(parts: tuple[tuple[BoundedAllocationLaw, int], ...]) -> tuple[LatticeProfile, LatticeProfile]:
    """From below and from above."""
    deviations = [(_window(law)[2], count) for law, count in parts]
    reach = math.sqrt(math.fsum(count * deviation**2 for deviation, count in deviations))
    about = max(min(deviation for deviation, _ in deviations) / _FINE, 30 * reach / _MOST_NODES)
    low, high = _step_below(parts[0][0], about), _step_above(parts[0][0], about)
    below = composed(tuple((_from_below(law, low), count) for law, count in parts), low)
    return below, composed(tuple((_from_above(law, high), count) for law, count in parts), high)


@dataclass(frozen=True, slots=True)
class BoundedEpochsLaw(IndependentEpochs[BoundedAllocationLaw]):
    """Independent epochs of random allocation with steps of bounded loss, of one direction, as one law."""

    profile_by: ClassVar[str] = "lattice of ratios"  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def supremum(self) -> float:
        return math.fsum(count * law.supremum for law, count in self.parts) * (1 + 4 * EPS)

    @property
    def infimum(self) -> float:
        return math.fsum(count * law.infimum for law, count in self.parts) * (1 + 4 * EPS)

    def log_moment(self, t: Numbers) -> Numbers:
        """An upper bound of K at real t: for t < -1 that of the other direction at -1 - t, and 0 between, since K is
        convex with K(0) = K(-1) = 0.
        """
        if np.iscomplexobj(t):
            raise Unanswerable("the moments of this law are bounded at real orders only")
        at = np.asarray(t, dtype=np.float64)
        bound = np.zeros(at.shape)
        for law, orders in ((self, at), (self.reverse(), -1.0 - at)):
            known = orders > 0
            if known.any():
                bound[known] = law.log_moment_and_error(orders[known])[0]
        return bound

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        """R^{1+t} is convex and increasing, R^{-t} convex and decreasing: K of the measures from above bounds K, so
        that nothing need be added to it. K(s)/s grows with s, so that larger orders bound smaller ones.
        """
        flat = np.asarray(t, dtype=np.float64).ravel()
        asked = np.unique(np.concatenate((flat, _ORDERS)))
        total = np.zeros(len(asked))
        for law, count in self.parts:
            total += count * _log_moment_above(law, asked)
        slopes = np.minimum.accumulate((total / asked)[::-1])[::-1]
        least = flat * slopes[np.searchsorted(asked, flat)] * (1 + 8 * EPS)
        return least.reshape(np.shape(t)), np.zeros(np.shape(t))

    @property
    def mean(self) -> float:
        """The least K(s)/s is an upper bound of K'(0)."""
        return float((self.log_moment_and_error(_ORDERS)[0] / _ORDERS).min())

    def bounds(self, epsilon: Floats) -> tuple[Floats, Floats, Floats]:
        if self.epochs == 1:
            return self.parts[0][0].log_excess(epsilon)
        below, above = _profiles(self.parts)
        lower, upper = below.bounds(epsilon)[0], above.bounds(epsilon)[1]
        step = 0.01 * math.sqrt(max(self.mean, 1e-12))
        further = above.bounds(epsilon + step)[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = down(np.log(lower), 4), up(np.log(upper), 4)
            rate = (high - np.log(further)) / step
        high = np.where(epsilon >= self.supremum, -np.inf, high)
        return np.minimum(low, high), high, np.where(np.isfinite(rate), np.maximum(rate, 0.0), 0.0)
