"""Where to cut, how to tilt: choices that may be sloppy, because any choice gives a certified answer.

Moments are taken of the lattice measures gathered into a few thousand bins. The size of a term with tilt
theta is about exp(K(theta) - theta eps) / (theta (1 + theta)). Where the term of all losses is much larger at its best
tilt than delta, rare large losses carry it: the measures are cut at several sizes of loss, as few as keep every term
close to delta, and each term has the losses between two cuts as its largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dptally.accounting.certified.lattice.measure import LatticeMeasure
from dptally.accounting.certified.tuning import STANDARD, LatticeTuning
from dptally.numerics.rounding import Floats

__all__ = ["Layer", "Outline", "Plan", "tilts_of"]


@lru_cache(maxsize=16)
def tilts_of(tuning: LatticeTuning) -> Floats:
    """2^(k/2) for the k of the tuning."""
    return np.asarray(2.0 ** (np.arange(*tuning.tilts) / 2.0))


@dataclass(frozen=True, slots=True)
class Layer:
    """The largest loss lies between ``low`` and ``high`` (absolute losses; None: no cut), and the tilt of the term.

    ``counts``: whether it is large enough to be computed, not only bounded.
    """

    low: float | None
    high: float | None
    tilt: float
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """The terms of a composed measure, that of the largest losses first; ``estimate`` is about log delta."""

    layers: tuple[Layer, ...]
    estimate: float

    @property
    def tilts(self) -> tuple[float, ...]:
        return tuple(layer.tilt for layer in self.layers if layer.counts)


@dataclass(frozen=True, slots=True)
class _Bins:
    """One measure, gathered."""

    offset: float
    count: int
    position: Floats
    log_mass: Floats

    @classmethod
    def of(cls, spread: LatticeMeasure, count: int, tuning: LatticeTuning) -> _Bins:
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
        return cls(spread.offset, count, position, log_mass - spread.tilt * position + spread.log_factor)

    def place(self, cut: float | None) -> int:
        return len(self.position) if cut is None else int(np.searchsorted(self.position, cut - self.offset))

    def between(self, theta: Floats, low: int, high: int) -> Floats:
        """log of the tilted sum over the bins from the first place to the second, for each tilt."""
        exponents = self.log_mass[low:high] + theta[:, None] * self.position[low:high]
        top = exponents.max(axis=1, initial=-math.inf)
        with np.errstate(all="ignore"):
            total = np.log(np.exp(exponents - top[:, None]).sum(axis=1)) + top
        return np.where(top > -math.inf, total, -math.inf)


@dataclass(frozen=True, slots=True)
class Outline:
    """All measures of a composition, gathered; positions relative to the sum of the offsets (``offset``).

    Cuts run from none (index 0) down. ``pieces``: for each measure the logs of its tilted sums between neighbouring
    cuts, and below the last one; ``whole``: K of all that is below each cut; ``single``: of the terms between
    neighbouring cuts, and below the last.
    """

    bins: tuple[_Bins, ...]
    offset: float
    tuning: LatticeTuning
    cuts: tuple[float | None, ...]
    pieces: tuple[Floats, ...]
    whole: Floats
    single: Floats

    @classmethod
    def of(cls, spreads: Sequence[tuple[LatticeMeasure, int]], tuning: LatticeTuning = STANDARD.lattice) -> Outline:
        offset = math.fsum(spread.offset * count for spread, count in spreads)
        bins = tuple(_Bins.of(spread, count, tuning) for spread, count in spreads)
        coarse = tilts_of(tuning)[::2]
        longest = max(one.offset + float(one.position[-1]) for one in bins)
        cuts: tuple[float | None, ...] = (None,)
        if longest > 0:
            cuts += tuple((np.geomspace(*tuning.cuts) * longest).tolist())
        pieces = []
        for one in bins:
            places = [one.place(cut) for cut in cuts]
            rows = [one.between(coarse, low, high) for high, low in pairwise([*places, 0])]
            pieces.append(np.array(rows))
        below = [np.logaddexp.accumulate(rows[::-1], axis=0)[::-1] for rows in pieces]
        whole = np.sum([one.count * rows for one, rows in zip(bins, below, strict=True)], axis=0)
        single = np.array(
            [
                _log_term(bins, [(b[i + 1], p[i]) for b, p in zip(below, pieces, strict=True)])
                for i in range(len(cuts) - 1)
            ]
            + [whole[-1]]
        )
        return cls(bins, offset, tuning, cuts, tuple(pieces), whole, single)

    def plan(self, epsilon: float) -> Plan:
        """As few terms as are each no more than ``room`` nats above delta at this (absolute) epsilon."""
        payoff, last = self._payoff(epsilon), len(self.cuts) - 1
        estimate = self.estimate(epsilon)
        room, negligible = estimate + self.tuning.room, estimate - self.tuning.worth
        layers: list[Layer] = []
        high = 0
        while True:
            value = _least(self.whole[high] + payoff)
            if value <= room or high == last:
                layers.append(
                    self._layer(None, self.cuts[high], epsilon, value > negligible or not any(x.counts for x in layers))
                )
                return Plan(tuple(layers), estimate)
            # terms that are only bounded are kept apart: the windows of the others are shorter
            small = _least(self.single[high] + payoff) <= negligible
            low, value = self._lowest(high, payoff, negligible if small else room)
            if value > -math.inf:
                layers.append(self._layer(self.cuts[low], self.cuts[high], epsilon, value > negligible))
            high = low

    def _lowest(self, high: int, payoff: Floats, room: float) -> tuple[int, float]:
        """The furthest cut below this one for which the term between them is not too large, and its size."""
        heavy = [rows[high] for rows in self.pieces]
        below = [np.logaddexp.accumulate(rows[::-1], axis=0)[::-1] for rows in self.pieces]
        low, value = high + 1, _least(self.single[high] + payoff)
        for i in range(high + 2, len(self.cuts)):
            heavy = [np.logaddexp(h, rows[i - 1]) for h, rows in zip(heavy, self.pieces, strict=True)]
            pairs = [(b[i], h) for b, h in zip(below, heavy, strict=True)]
            size = _least(_log_term(self.bins, pairs) + payoff)
            if size > room:
                break
            low, value = i, size
        return low, value

    def estimate(self, epsilon: float) -> float:
        """About log delta(epsilon), a little too large: the sum of the terms of all cuts."""
        with np.errstate(all="ignore"):
            values = self.single + self._payoff(epsilon)
            sizes = np.where(np.isnan(values), math.inf, values).min(axis=1)
        return min(0.0, float(np.logaddexp.reduce(sizes)))

    def _payoff(self, epsilon: float) -> Floats:
        coarse = tilts_of(self.tuning)[::2]
        return np.asarray(-coarse * (epsilon - self.offset) - np.log(coarse) - np.log1p(coarse))

    def solve(self, target: float, highest: float) -> float:
        """About the epsilon with this log delta."""
        low, high = 0.0, highest
        if self.estimate(0.0) <= target:
            return 0.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            if self.estimate(middle) > target:
                low = middle
            else:
                high = middle
            if high - low < 1e-3 * high and self.estimate(low) - self.estimate(high) < 1.0:
                break
        return 0.5 * (low + high)

    def _layer(self, low: float | None, high: float | None, epsilon: float, counts: bool) -> Layer:
        """With its tilt: golden section on the logarithm of theta, around the best of the table."""

        def size(log_theta: float) -> float:
            theta = math.exp(log_theta)
            at = np.array([theta])
            pairs = []
            for one in self.bins:
                end = one.place(high)
                start = end if low is None else one.place(low)
                pairs.append((one.between(at, 0, start), one.between(at, start, end)))
            if low is None:
                value = sum(one.count * float(light[0]) for one, (light, _) in zip(self.bins, pairs, strict=True))
            else:
                value = float(_log_term(self.bins, pairs)[0])
            value -= theta * (epsilon - self.offset) + log_theta + math.log1p(theta)
            return value if value > -math.inf else math.inf

        tilts = tilts_of(self.tuning)
        i = 4 * int(np.argmin([size(math.log(t)) for t in tilts[::4]]))
        start, end = math.log(tilts[max(i - 4, 0)]), math.log(tilts[min(i + 4, len(tilts) - 1)])
        ratio = 0.5 * (math.sqrt(5.0) - 1.0)
        a, b = end - ratio * (end - start), start + ratio * (end - start)
        at_a, at_b = size(a), size(b)
        for _ in range(16):
            if at_a < at_b:
                end, b, at_b = b, a, at_a
                a = end - ratio * (end - start)
                at_a = size(a)
            else:
                start, a, at_a = a, b, at_b
                b = start + ratio * (end - start)
                at_b = size(b)
        return Layer(low, high, math.exp(0.5 * (start + end)), counts)


def _least(values: Floats) -> float:
    return float(np.where(np.isnan(values), math.inf, values).min())


def _log_term(bins: Sequence[_Bins], pairs: Sequence[tuple[Floats, Floats]]) -> Floats:
    """log of prod (light + heavy)^count - prod light^count from the logs of light and heavy; -inf where it is zero."""
    whole = np.zeros(pairs[0][0].shape)
    jumps = np.full(pairs[0][0].shape, -math.inf)
    with np.errstate(all="ignore"):
        for one, (light, heavy) in zip(bins, pairs, strict=True):
            ratio = np.where(heavy > -math.inf, heavy - light, -math.inf)
            grown = np.where(ratio < -30.0, ratio, np.log(np.logaddexp(0.0, np.minimum(ratio, 1e300))))
            jumps = np.logaddexp(jumps, math.log(one.count) + grown)
            whole = whole + one.count * np.logaddexp(light, heavy)
        share = np.where(jumps < -30.0, jumps, np.log(-np.expm1(-np.exp(np.minimum(jumps, 700.0)))))
        return np.asarray(np.where(whole > -math.inf, whole + share, -math.inf))
