"""Where to cut, how to tilt: choices that may be sloppy, because any choice gives a certified answer.

Moments are taken of the lattice measures gathered into a few thousand bins. The size of a term with tilt
theta is about exp(K(theta) - theta eps) / (theta (1 + theta)); where the sum over terms after a cut is much
smaller than without one, a single rare loss carries delta (the big-jump regime) and the measures are cut into
light and heavy pieces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dptally.accounting.certified.lattice.measure import Spread
from dptally.accounting.certified.tuning import STANDARD, LatticeTuning
from dptally.numerics.rounding import Floats

__all__ = ["Outline", "Plan", "tilts_of"]


@lru_cache(maxsize=16)
def tilts_of(tuning: LatticeTuning) -> Floats:
    """2^(k/2) for the k of the tuning."""
    return np.asarray(2.0 ** (np.arange(*tuning.tilts) / 2.0))


@dataclass(frozen=True, slots=True)
class Plan:
    """A cut (an absolute loss, or None), and the tilt of each term; ``estimate`` is about log delta."""

    cut: float | None
    tilts: tuple[float, ...]
    rest: float  # the tilt for the terms that are only bounded
    estimate: float


@dataclass(frozen=True, slots=True)
class _Bins:
    """One measure, gathered: log of the tilted sums below and from each bin, for every second tilt."""

    offset: float
    count: int
    position: Floats
    log_mass: Floats
    below: Floats  # (tilts, bins + 1)
    above: Floats

    @classmethod
    def of(cls, spread: Spread, count: int, tuning: LatticeTuning) -> _Bins:
        coarse = tilts_of(tuning)[::2]
        n = len(spread.masses)
        width = -(-n // tuning.bins)
        padded = np.zeros(-(-n // width) * width)
        padded[:n] = spread.masses
        table = padded.reshape(-1, width)
        mass = table.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            centre = (table * np.arange(width)).sum(axis=1) / mass
            log_mass = np.log(mass)
        position: Floats = np.float64(spread.step) * (np.arange(len(mass)) * width + np.where(mass > 0, centre, 0.0))
        log_mass = log_mass - spread.tilt * position + spread.log_factor
        exponents = log_mass + coarse[:, None] * position
        top = exponents.max(axis=1, keepdims=True)
        weights = np.exp(exponents - top)
        zero = np.zeros((len(coarse), 1))
        with np.errstate(divide="ignore"):
            below = np.log(np.concatenate([zero, np.cumsum(weights, axis=1)], axis=1)) + top
            above = np.log(np.concatenate([np.cumsum(weights[:, ::-1], axis=1)[:, ::-1], zero], axis=1)) + top
        return cls(spread.offset, count, position, log_mass, below, above)

    def split(self, cut: float) -> int:
        return int(np.searchsorted(self.position, cut - self.offset))

    def moments(self, theta: float, place: int) -> tuple[float, float]:
        """(log light, log heavy) at one tilt."""
        exponents = self.log_mass + theta * self.position
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        light, heavy = float(weights[:place].sum()), float(weights[place:].sum())
        return (
            math.log(light) + top if light > 0 else -math.inf,
            math.log(heavy) + top if heavy > 0 else -math.inf,
        )


@dataclass(frozen=True, slots=True)
class Outline:
    """All measures of a composition, gathered; positions relative to the sum of the offsets (``offset``)."""

    bins: tuple[_Bins, ...]
    offset: float
    tuning: LatticeTuning

    @classmethod
    def of(cls, spreads: Sequence[tuple[Spread, int]], tuning: LatticeTuning = STANDARD.lattice) -> Outline:
        offset = math.fsum(spread.offset * count for spread, count in spreads)
        return cls(tuple(_Bins.of(spread, count, tuning) for spread, count in spreads), offset, tuning)

    def plan(self, epsilon: float) -> Plan:
        """The better of no cut and the best cut, for delta at this (absolute) epsilon."""
        whole = self._scores(epsilon, None)[0]
        best, value = None, float(whole)
        if epsilon > 0:
            for cut in np.asarray(self.tuning.cuts) * epsilon:
                scores = self._scores(epsilon, float(cut))
                total = float(np.logaddexp.reduce(scores)) if len(scores) > 1 else math.inf
                if total < value - (self.tuning.worth if best is None else 0.0):
                    best, value = float(cut), total
        if best is None:
            return Plan(None, (self._tilt(epsilon, None, 0),), 1.0, value)
        scores = self._scores(epsilon, best)
        jumps = len(scores) - 1
        tilts = tuple(self._tilt(epsilon, best, k) for k in range(jumps))
        return Plan(best, tilts, self._tilt(epsilon, best, jumps), value)

    def estimate(self, epsilon: float) -> float:
        """About log delta(epsilon), a little too large; the smaller of no cut and a few cuts."""
        value = float(self._scores(epsilon, None)[0])
        if epsilon > 0:
            for cut in np.asarray(self.tuning.cuts[3::5]) * epsilon:
                scores = self._scores(epsilon, float(cut))
                if len(scores) > 1:
                    value = min(value, float(np.logaddexp.reduce(scores)))
        return value

    def solve(self, target: float, highest: float) -> float:
        """About the epsilon with this log delta."""
        low, high = 0.0, highest
        if self.estimate(0.0) <= target:
            return 0.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            if self.estimate(middle) > target:
                low = middle
            else:
                high = middle
            if high - low < 1e-3 * high:
                break
        return 0.5 * (low + high)

    def _scores(self, epsilon: float, cut: float | None) -> Floats:
        """log size of the terms with 0, 1, .. jumps, the last one standing for all that follow; each at its
        best tilt."""
        coarse = tilts_of(self.tuning)[::2]
        payoff = -coarse * (epsilon - self.offset) - np.log(coarse) - np.log1p(coarse)
        if cut is None:
            return np.array([min(float((self._whole() + payoff).min()), 0.0)])
        light, mean = np.zeros(len(coarse)), np.full(len(coarse), -math.inf)
        for one in self.bins:
            place = one.split(cut)
            base, heavy = one.below[:, place], one.above[:, place]
            usable = base > -math.inf  # at extreme tilts the light piece underflows beside the heavy one
            base = np.where(usable, base, 0.0)
            light = light + np.where(usable, one.count * base, 1e30)
            mean = np.logaddexp(mean, math.log(one.count) + heavy - base)
        if not (light.min() < 1e29 and mean.max() > -math.inf):
            return np.empty(0)
        scores = [float((light + payoff).min())]
        for k in range(1, self.tuning.most_jumps + 1):
            grown = light + k * mean - math.lgamma(k + 1) + payoff
            rest = float((grown + np.exp(np.minimum(mean, 690.0))).min())
            if rest < max(scores) - 25.0 or k == self.tuning.most_jumps or k > self._steps():
                return np.array([*scores, rest])
            scores.append(float(grown.min()))
        return np.array(scores)

    def _steps(self) -> int:
        return sum(one.count for one in self.bins)

    def _whole(self) -> Floats:
        whole: Floats = np.sum([one.count * one.below[:, -1] for one in self.bins], axis=0)
        return whole

    def _tilt(self, epsilon: float, cut: float | None, jumps: int) -> float:
        """The tilt of one term: golden section on the logarithm of theta, around the best of the table."""

        def size(log_theta: float) -> float:
            theta = math.exp(log_theta)
            light, mean = 0.0, 0.0
            for one in self.bins:
                place = len(one.position) if cut is None else one.split(cut)
                base, heavy = one.moments(theta, place)
                if base == -math.inf:
                    return math.inf
                light += one.count * base
                if heavy > -math.inf:
                    mean += one.count * math.exp(min(heavy - base, 690.0))
            if jumps and not mean > 0:
                return math.inf
            jumped = jumps * math.log(mean) if jumps else 0.0
            return light + jumped - theta * (epsilon - self.offset) - log_theta - math.log1p(theta)

        tilts = tilts_of(self.tuning)
        i = 4 * int(np.argmin([size(math.log(t)) for t in tilts[::4]]))
        low, high = math.log(tilts[max(i - 4, 0)]), math.log(tilts[min(i + 4, len(tilts) - 1)])
        ratio = 0.5 * (math.sqrt(5.0) - 1.0)
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        at_a, at_b = size(a), size(b)
        for _ in range(16):
            if at_a < at_b:
                high, b, at_b = b, a, at_a
                a = high - ratio * (high - low)
                at_a = size(a)
            else:
                low, a, at_a = a, b, at_b
                b = low + ratio * (high - low)
                at_b = size(b)
        return math.exp(0.5 * (low + high))
