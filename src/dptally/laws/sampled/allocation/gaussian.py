r"""The ratio S = Y_1 + .. + Y_t of one epoch of random allocation with Gaussian steps: E(b - S)+ and E(S - b)+.

Small sums (b <= t) by one contour for each few standard deviations. Large sums (b > t) by the identity
E(S - b)+ = E(b - S)+ + t - b where that does not cancel; else by the number of ratios above a cut B1, with B2 >= b:

    E(S - b)+ = sum_k C(t, k) E[(S - b)+; k of the Y in (B1, B2], the others below B1] + t P' - b Q',

where P' and Q' are the probabilities, under P and Q, that some ratio exceeds B2: then S > b, and nothing is cut. All
terms are positive; each has its own tilt. Derivations: docs/batching.md, "Sums of ratios".
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dptally.laws.sampled.allocation.lognormal import SmallLogNormal
from dptally.laws.sampled.allocation.sums import Parts, log_bounds, tilts_of
from dptally.laws.sampled.allocation.truncated import LargeLogNormal
from dptally.numerics.normal import log_gaussian_delta, log_normal_tail
from dptally.numerics.rounding import EPS, down, up
from dptally.numerics.special import log_ndtr

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats, Floats]

__all__ = ["GaussianSum"]

_ENOUGH = 1e-9  # a relative width that needs no other method
_SHARP = 1e-7  # the same, where the other one is rough
_MOST_JUMPS = 7
_FURTHEST = 200.0  # times t: how far differences are taken
_ROUGH_TERMS = 16_000
_ROUGH_REACH = 300.0  # times the bulk of the sum: b as far as rough contours go
_RATIO = 1.5  # of the classes of excess
_VAST = sys.float_info.max
_DEEPEST = -90.0  # log-profiles below this are bounded, not computed


@dataclass(frozen=True, slots=True)
class GaussianSum:
    """``shift`` m = 1/sigma (to 2 ulps), ``steps`` t >= 2."""

    shift: float
    steps: int
    sharp: bool = True  # False: large sums are bounded, by Chernoff and by one ratio alone, not computed
    rough: bool = False  # contours of some thousand terms only

    # -- small sums ----------------------------------------------------------------------------------------

    def log_below(self, b: Floats) -> Bounds:
        """Bounds of log E(b - S)+ and an estimate of P(S < b) / E(b - S)+, elementwise, b > 0."""
        parts: Parts = ((SmallLogNormal(self.shift), self.steps),)
        low, high, rate = log_bounds(parts, -b, terms=_ROUGH_TERMS) if self.rough else log_bounds(parts, -b)
        wide = ~(high - low <= _SHARP)
        if wide.any():
            lower, upper = self._by_the_largest(b[wide])
            low[wide], high[wide] = np.maximum(low[wide], lower), np.minimum(high[wide], upper)
        return low, high, rate

    def _by_the_largest(self, b: Floats) -> tuple[Floats, Floats]:
        """Bounds of log E(b - S)+ by the largest ratio M <= S <= t M: b P(M < b) is more, (b - ty) P(M < y) less, for
        y = b/(2t), b/(16t), b/(256t). They serve where few ratios make up the sum.
        """
        t, m = float(self.steps), self.shift
        with np.errstate(divide="ignore"):
            log_b = np.log(b)

        def log_all_below(share: float, way: int) -> Floats:
            """log P(M < share b), from below (0) or above (1)."""
            place = (log_b + math.log(share) + 0.5 * m * m) / m
            error = 16 * EPS * (1 + np.abs(place) + m + (np.abs(log_b) + abs(math.log(share))) / m)
            return t * log_normal_tail(-place + (error, -error)[way])[way]

        lowers = [log_b + math.log1p(-1 / k) + log_all_below(1 / (k * t), 0) for k in (2.0, 16.0, 256.0)]
        with np.errstate(invalid="ignore"):
            low, high = down(np.maximum.reduce(lowers), 16), up(log_b + log_all_below(1.0, 1), 16)
        return np.where(np.isfinite(low), low, -np.inf), np.where(
            np.isnan(high), np.inf, np.minimum(high, up(log_b, 4))
        )

    # -- large sums ----------------------------------------------------------------------------------------

    def log_above(self, b: Floats) -> Bounds:
        """Bounds of log E(S - b)+ and an estimate of P(S > b) / E(S - b)+, elementwise, b >= t (to rounding)."""
        t = float(self.steps)
        low, high, rate = self._by_difference(b, self._near(b))
        # Jensen: S/t is an average of ratios
        with np.errstate(divide="ignore"):
            share = np.log(np.minimum(b, _VAST) / t)  # the bound falls with b, which may have overflowed
            single = log_gaussian_delta(self.shift, share - 4 * EPS * (1 + np.abs(share)), mu_ulps=4)[1]
        high = np.minimum(high, single + math.log(t) + 8 * EPS * math.log(t + 1))
        wide = ~(high - low <= _ENOUGH) & (b > t)
        deep = wide & ((high - math.log(t) < _DEEPEST) | (b > 1e12 * t))
        for i in np.flatnonzero(deep).tolist():  # one ratio alone exceeds 1.25 b: a lower bound
            if 1.25 * b[i] < 1e300:
                jumps = _Jumps(self.shift, self.steps)
                low[i] = max(low[i], float(jumps.far(b[i : i + 1], jumps.position(1.25 * float(b[i])))[0][0]))
        wide &= ~deep
        if wide.any():
            part = b[wide]
            lower, upper, ratio = _Jumps(self.shift, self.steps, self.sharp).log_bounds(part)
            better = upper - lower < high[wide] - low[wide]
            rate[wide] = np.where(better, ratio, rate[wide])
            low[wide], high[wide] = np.maximum(low[wide], lower), np.minimum(high[wide], upper)
        return low, high, rate

    def log_above_near(self, b: Floats) -> Bounds:
        """The same by the difference alone: at once, and sharp for all but the least of profiles."""
        spread = math.sqrt(self.steps * math.expm1(min(self.shift**2, 600.0)))
        return self._by_difference(b, (b <= _FURTHEST * self.steps) & (b - self.steps <= 15.0 * spread))

    def _near(self, b: Floats) -> NDArray[np.bool_]:
        """Where what is left after the difference is certainly well above its rounding."""
        t = float(self.steps)
        spread = math.sqrt(t * math.expm1(min(self.shift**2, 600.0)))
        near = (b - t <= 3.0 * spread) & (b < 1.6 * t)
        if self.rough:
            return np.asarray(b <= max(1.2 * t, _ROUGH_REACH * self._bulk()))
        return near | (b <= _FURTHEST * t) if self.shift >= 1.5 or not self.sharp else near

    def _bulk(self) -> float:
        """About the standard deviation of the sum without the ratios that are large beside it: a contour has about
        45 b over this terms.
        """
        m, t = self.shift, float(self.steps)
        bulk = math.sqrt(t * math.expm1(min(m * m, 600.0)))
        for _ in range(12):  # E[Y^2; Y <= B] = e^{m^2} Phi(x_B - 2m)
            place = (math.log(max(bulk / 8.0, 1.0)) + 0.5 * m * m) / m
            share = float(log_ndtr(np.array([place - 2 * m]))[0])
            bulk = math.sqrt(t * math.exp(min(m * m + share, 600.0)))
        return bulk

    def _by_difference(self, b: Floats, near: NDArray[np.bool_]) -> Bounds:
        """E(b - S)+ - (b - t), which cancels where it is much smaller than its parts: there the bounds are wide."""
        t = float(self.steps)
        low, high, rate = np.full(len(b), -np.inf), np.full(len(b), np.inf), np.ones(len(b))
        if not near.any():
            return low, high, rate
        below, above, ratio = self.log_below(b[near])
        size = np.exp(above)
        rest = down(b[near] - t), up(b[near] - t)
        move = 4 * EPS * b[near]  # of b itself
        with np.errstate(divide="ignore", invalid="ignore"):
            low[near] = down(np.log(np.maximum(np.exp(below) * (1 - 4 * EPS) - rest[1] - move, 0.0)), 4)
            high[near] = up(np.log(np.maximum(size * (1 + 4 * EPS) - rest[0] + move, 0.0)), 4)
            value = size - (b[near] - t)
            rate[near] = np.where(value > 0, (1.0 - ratio * size) / np.where(value > 0, value, 1.0), 1.0)
        low, high = (
            low - 4 * EPS * np.where(np.isfinite(low), np.abs(low), 0.0),
            high + 4 * EPS * np.where(np.isfinite(high), np.abs(high), 0.0),
        )
        return low, high, rate


@dataclass(frozen=True, slots=True)
class _Jumps:
    """Large sums, by the number of ratios above a cut."""

    shift: float
    steps: int
    sharp: bool = True

    def log_bounds(self, b: Floats) -> Bounds:
        """The excess b - t falls into one of a geometric sequence of classes, each with a cut and contours of its
        own.
        """
        t = self.steps
        low, high, rate = np.full(len(b), -np.inf), np.full(len(b), np.inf), np.ones(len(b))
        number = np.floor(np.log(np.maximum(b - t, 1e-300) / t) / math.log(_RATIO))
        for index in np.unique(number).tolist():
            which = number == index
            low[which], high[which], rate[which] = self._class(int(index), b[which])
        return low, high, rate

    def _class(self, index: int, b: Floats) -> Bounds:
        split = _split(self.shift, self.steps, index)
        far = self.far(b, split.high)
        lowers, uppers, rates = [far[0]], [far[1]], [far[2]]
        k = 0
        while self.sharp and k < _MOST_JUMPS and k <= self.steps:
            if (split.log_rest(b, k) <= np.logaddexp.reduce(lowers) + math.log(1e-12)).all():
                break
            lower, upper, rate = split.term(b, k)
            lowers.append(lower)
            uppers.append(upper)
            rates.append(rate)
            k += 1
        if k <= self.steps:
            uppers.append(split.log_rest(b, k))
        with np.errstate(invalid="ignore"):
            low = np.logaddexp.reduce(lowers) - 16 * EPS * len(lowers)
            high = np.logaddexp.reduce(uppers) + 16 * EPS * len(uppers)
            weights = np.exp(np.minimum(np.stack(uppers[: len(rates)]) - high, 0.0))
            rate = (weights * np.stack(rates)).sum(axis=0)
        return low, high, rate

    def position(self, y: float) -> float:
        """x with Y(x) = y, about."""
        return (math.log(y) + 0.5 * self.shift**2) / self.shift

    def far(self, b: Floats, high: float) -> Bounds:
        """t P' - b Q': some ratio is above Y(high) >= b."""
        t, m = self.steps, self.shift
        error = 8 * EPS * (1 + abs(high) + m)
        q_low, q_high = (float(end) for end in (log_normal_tail(high + error)[0], log_normal_tail(high - error)[1]))
        p_low, p_high = (
            float(end) for end in (log_normal_tail(high - m + error)[0], log_normal_tail(high - m - error)[1])
        )

        def some(log_q: float, log_p: float) -> tuple[float, float]:
            q, p = math.exp(log_q), math.exp(log_p)
            rare = t * math.log1p(-q) if q < 1 else -math.inf
            under_p = (t - 1) * math.log1p(-q) + (math.log1p(-p) if p < 1 else -math.inf) if q < 1 else -math.inf
            return -math.expm1(rare), -math.expm1(under_p)

        (q_least, p_least), (q_most, p_most) = some(q_low, p_low), some(q_high, p_high)
        ulps = 16 * EPS
        least = t * p_least * (1 - ulps) - b * q_most * (1 + ulps)
        most = t * p_most * (1 + ulps) - b * q_least * (1 - ulps)
        tiny = 1e-300  # what leaves double range
        with np.errstate(divide="ignore"):
            lower = down(np.log(np.maximum(least - tiny, 0.0)), 4)
            upper = up(np.log(np.maximum(most, 0.0) + tiny), 4)
            rate = np.where(most > 0, q_most / np.where(most > 0, most, 1.0), 1.0)
        return lower, upper, rate


@dataclass(frozen=True, slots=True)
class _Split:
    """Light ratios below the cut, and jumps between it and ``high``, whose ratio exceeds every b of the class."""

    steps: int
    high: float
    light: LargeLogNormal
    band: LargeLogNormal | None

    def parts(self, k: int) -> Parts:
        light: Parts = ((self.light, self.steps - k),) if self.steps > k else ()
        return light if not k or self.band is None else (*light, (self.band, k))

    def score(self, b: float) -> float:
        """About the log of all terms; any cut is valid."""
        at = np.array([b])
        table = tilts_of(self.parts(0))
        first = float(table.log_bound(at)[0]) if len(table.tilt) else math.inf
        return float(np.logaddexp(first, self.log_rest(at, 1)[0]))

    def term(self, b: Floats, k: int) -> Bounds:
        """The term with k jumps."""
        t = self.steps
        nothing = np.full(len(b), -np.inf)
        if (k and self.band is None) or (k == 0 and t * self.light.largest * (1 + 1e-9) <= float(b.min())):
            return nothing, nothing, np.ones(len(b))
        log_count = math.lgamma(t + 1) - math.lgamma(k + 1) - math.lgamma(t - k + 1)
        slack = 32 * EPS * (1 + math.lgamma(t + 2))
        low, high, rate = log_bounds(self.parts(k), b)
        return low + (log_count - slack), high + (log_count + slack), rate

    def log_rest(self, b: Floats, k: int) -> Floats:
        """log of a bound of all terms with k or more jumps: e^{-cb} / (e c) M^t x^k e^x / k!, x = t M_band / M."""
        if self.band is None:
            return np.full(len(b), -np.inf) if k else tilts_of(self.parts(0)).log_bound(b)
        one, two = tilts_of(((self.light, 1),)), tilts_of(((self.light, 1), (self.band, 1)))
        common = np.isin(one.tilt, two.tilt)
        if not common.any():
            return np.full(len(b), np.inf)
        tilt, light, error = one.tilt[common], one.moment[common], one.error[common]
        log_x = math.log(self.steps) + (two.moment - light + two.error + 2 * error) - (light - error)
        base = self.steps * (light + error)
        x = np.exp(np.minimum(log_x, 600.0))
        logs = base + k * log_x + x - math.lgamma(k + 1) - 1 - np.log(tilt)
        logs = logs + 64 * EPS * (np.abs(base) + x + np.abs(k * log_x) + np.abs(two.moment) + 8)
        return np.asarray((logs[:, None] - np.multiply.outer(tilt, b) * (1 - 8 * EPS)).min(axis=0))


@lru_cache(maxsize=256)
def _split(m: float, t: int, index: int) -> _Split:
    """The cut with the smallest sum of Chernoff bounds, for b in t + t _RATIO^[index, index + 1)."""
    excess = t * _RATIO ** (index + 0.5)
    jumps = _Jumps(m, t)
    high = jumps.position(1.25 * (t + t * _RATIO ** (index + 1)))
    best = _Split(t, high, LargeLogNormal(m, -39.0, high), None)
    least = best.score(t + excess)
    for share in (0.3, 0.55):
        cut = jumps.position(max(share * excess, 2.0))
        if cut < high - 0.2:
            split = _Split(t, high, LargeLogNormal(m, -39.0, cut), LargeLogNormal(m, cut, high))
            score = split.score(t + excess)
            if score < least:
                best, least = split, score
    return best
