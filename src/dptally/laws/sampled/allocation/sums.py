r"""E(W_1 + .. + W_n - beta)+ for independent summands, on a contour, with every error bounded.

With phi the characteristic function of a summand tilted by c > 0, K(c) = log E e^{cW}, and u on the real line,

    h(beta) = e^{c beta - sum K} E(sum W - beta)+ = 1/(2 pi) int prod phi(u) e^{-iu beta} / (c + iu)^2 du.

The trapezoid sum of step 2 pi / P is the sum over m of h(beta + mP): nonnegative terms, so an upper bound; it exceeds
h by
at most what (w - beta)+ <= e^{c'(w - beta)} / (e c') gives for any c' > c on the one side, 0 < c' < c on the other.
Derivations: docs/batching.md, "Sums of ratios".
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dptally.law.characteristic import Characteristic
from dptally.numerics.complexes import log1p_complex
from dptally.numerics.rounding import EPS

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

__all__ = ["PAYOFF", "PLAIN", "Kernel", "Parts", "Summand", "Tilts", "log_bounds", "tilts_of"]

_RELATIVE = 1e-15
_MOST_TERMS = 1 << 17
_MOST_WORK = 300_000_000


class Summand(Hashable, Protocol):
    """One summand: its K with errors, its phi on a grid, and the decay of phi."""

    def tilts(self) -> Floats:
        """Tilts c > 0 at which K is tabulated, increasing."""
        ...

    def log_moment(self, tilt: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """(K, bound of its absolute error, K', K'')."""
        ...

    def characteristic(self, tilt: float, reach: float, log_tolerance: float) -> Characteristic | None: ...

    def log_decay(self, tilt: float, start: Floats) -> Floats:
        """For each start, an upper bound of log |phi(u)| over every u >= start."""
        ...


Parts = tuple[tuple[Summand, int], ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A payoff f(x) = g(x)+ of x = sum - beta: f = x, whose transform is 1/z^2, or 1 - e^{-x}: 1/(z (z + gap)) with
    gap 0 or 1.

    f <= e^{cx - log_bound(c)}: with gap 0, e c; with gap 1, (1 + c)^{1 + c} / c^c >= 1.
    """

    gap: float

    def values(self, z: Complexes) -> Complexes:
        return np.asarray(1.0 / (z * (z + self.gap)))

    def log_bound(self, c: Floats) -> Floats:
        return np.asarray(1 + np.log(c)) if self.gap == 0 else np.asarray(np.log1p(c) + c * np.log1p(1 / c))

    def pull(self, c: Floats) -> Floats:
        """Minus the logarithmic derivative of the transform at c."""
        return np.asarray(1 / c + 1 / (c + self.gap))


PLAIN, PAYOFF = Kernel(0.0), Kernel(1.0)


@dataclass(frozen=True, slots=True)
class Tilts:
    """K of the whole sum at increasing tilts."""

    tilt: Floats
    moment: Floats
    error: Floats
    first: Floats
    second: Floats
    kernel: Kernel

    def saddles(self, beta: Floats) -> Floats:
        """c with K'(c) = beta + 2 / c, by interpolation; an end of the table where beta is beyond."""
        return np.asarray(np.exp(np.interp(beta, self.first - self.kernel.pull(self.tilt), np.log(self.tilt))))

    def saddle(self, c: float) -> float:
        """The beta whose saddle is c, about."""
        return float(np.interp(math.log(c), np.log(self.tilt), self.first - self.kernel.pull(self.tilt)))

    def row(self, c: float) -> tuple[float, float]:
        """About (K, K'') at c."""
        logs = np.log(self.tilt)
        return float(np.interp(math.log(c), logs, self.moment)), float(
            np.exp(np.interp(math.log(c), logs, np.log(np.maximum(self.second, 1e-300))))
        )

    def log_bound(self, beta: Floats) -> Floats:
        """log of Chernoff's bound, e^{K - c beta} / (e c) or its like, the least over the tilts, rounded up."""
        value = (self.moment + self.error - self.kernel.log_bound(self.tilt))[:, None] - np.multiply.outer(
            self.tilt, beta
        )
        value += 8 * EPS * (np.abs(self.moment)[:, None] + np.abs(np.multiply.outer(self.tilt, beta)) + 2)
        return np.asarray(value.min(axis=0))


@lru_cache(maxsize=128)
def _rows(part: Summand, first: Summand) -> tuple[Floats, Floats, Floats, Floats]:
    return part.log_moment(first.tilts())


@lru_cache(maxsize=256)
def tilts_of(parts: Parts, kernel: Kernel = PLAIN) -> Tilts:
    """K at the tilts of the first part; those at which all are finite."""
    tilt = parts[0][0].tilts()
    columns = np.zeros((4, len(tilt)))
    for part, count in parts:
        k, error, first, second = _rows(part, parts[0][0])
        columns += count * np.stack((k, error + 4 * EPS * np.abs(k), first, second))
    keep = np.isfinite(columns).all(axis=0)
    moment, error, first, second = columns[:, keep]
    return Tilts(tilt[keep], moment, error, first, second, kernel)


@dataclass(frozen=True, slots=True)
class SumContour:
    """The nodes of one contour."""

    tilt: float
    log_moment: float
    log_moment_error: float
    centre: float
    step: float
    terms: Complexes
    noise: float
    phase_noise: float
    tail: float
    table: Tilts

    def log_bounds(self, beta: Floats) -> tuple[Floats, Floats, Floats]:
        """(lower, upper) bounds of log E(sum W - beta)+, and an estimate of P(sum W > beta) / E(sum W - beta)+."""
        value, slope = self._sums(beta)
        error = self.tail + self.noise + self.phase_noise * (np.abs(beta) + abs(self.centre))
        with np.errstate(divide="ignore", invalid="ignore"):
            high = np.log(np.maximum(value + error, 0.0))
            low = np.log(np.maximum(value - error - self._alias(beta), 0.0))
            base = self.log_moment - self.tilt * beta
            slack = self.log_moment_error + 12 * EPS * (abs(self.log_moment) + np.abs(self.tilt * beta))
            lower = base + low - slack - 4 * EPS * np.where(np.isfinite(low), np.abs(low), 0.0)
            upper = base + high + slack + 4 * EPS * np.where(np.isfinite(high), np.abs(high), 0.0)
            ratio = np.where(value > 0, slope / value, self.tilt)
        return np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper), ratio

    def _sums(self, beta: Floats) -> tuple[Floats, Floats]:
        """The trapezoid sums of h and of its derivative, e^{iab} e^{ic} with a in long strides and c within one: the
        phases err no more than those of e^{i(ab + c)}, and the two products of a term are among its 40 ulps.
        """
        number = len(self.terms)
        block = math.isqrt(number - 1) + 1
        giants = -(-number // block)
        table = np.zeros((2, giants * block), dtype=np.complex128)
        table[0, :number] = self.terms
        table[1, :number] = self.terms * (self.tilt + 1j * self.step * np.arange(number))
        table = table.reshape(2 * giants, block)
        out = np.empty((2, len(beta)))
        rows = max(1, 500_000 // block)
        for i in range(0, len(beta), rows):
            turn = -1j * self.step * (beta[i : i + rows] - self.centre)
            inner = np.exp(np.multiply.outer(turn, np.arange(block))) @ table.T
            large = np.exp(np.multiply.outer(turn, block * np.arange(giants)))
            for k in range(2):
                out[k, i : i + rows] = (large * inner[:, k * giants : (k + 1) * giants]).sum(axis=1).real
        value, slope = self.step / math.pi * out
        return value, slope

    def _alias(self, beta: Floats) -> Floats:
        period = 2 * math.pi / self.step
        gap = self.table.tilt - self.tilt
        gain = (
            self.table.moment
            + self.table.error
            - (self.log_moment - self.log_moment_error)
            - self.table.kernel.log_bound(self.table.tilt)
        )
        gain = gain + 1e-9
        total = np.zeros(len(beta))
        for which, sign in ((gap > 0, 1.0), (gap < 0, -1.0)):
            gaps = np.abs(gap[which])
            if not gaps.size:
                return np.full(len(beta), np.inf)
            fall = gaps * period
            logs = (gain[which] - fall - np.log(-np.expm1(-fall)))[:, None] - sign * np.multiply.outer(gaps, beta)
            total += np.exp(np.minimum(logs.min(axis=0), 700.0))
        return total


def contour(parts: Parts, table: Tilts, c: float, most: int) -> SumContour | None:
    """The contour of the tilt c; None where its bounds cannot be met with ``most`` terms."""
    saddle = table.saddle(c)
    moment, variance = table.row(c)
    gap = table.kernel.gap
    spread = max(variance, 0.0) + c**-2 + (c + gap) ** -2
    log_size = -math.log(c * (c + gap)) - 0.5 * math.log(2 * math.pi * spread)
    period = _period(table, c, moment, saddle, log_size)
    log_cut = math.log(_RELATIVE) + log_size
    cut, log_bound = _cut_off(parts, c, math.sqrt(2 * max(1.0, -log_cut) / spread), log_cut)
    if not math.isfinite(period) or not math.isfinite(cut):
        return None
    step = 2 * math.pi / period
    number = math.ceil(cut / step) + 1
    if number > most:
        return None
    count = sum(n for _, n in parts)
    chars = [(part.characteristic(c, step * number, math.log(1e-16) - math.log(count)), n) for part, n in parts]
    if any(char is None for char, _ in chars):
        return None
    known = [(char, n) for char, n in chars if char is not None]
    if number * sum(char.size for char, _ in known) > _MOST_WORK:
        return None
    return _assemble(known, c, step, number, log_bound, table)


def _period(table: Tilts, c: float, moment: float, beta: float, log_size: float) -> float:
    need = -math.log(_RELATIVE) - log_size
    gap = table.tilt - c
    above, below = gap > 1e-3 * c, gap < -1e-3 * c
    cost = need + table.moment - moment - table.kernel.log_bound(table.tilt)
    right = cost[above] / gap[above] - beta
    left = cost[below] / -gap[below] + beta
    if not right.size or not left.size:
        return math.inf
    return max(float(right.min()), float(left.min()), 0.0) * 1.02 + 1e-3 / c


def _cut_off(parts: Parts, c: float, guess: float, log_tolerance: float) -> tuple[float, float]:
    u = guess * 1.2 ** np.arange(-2.0, 6.0)
    for _ in range(12):
        total = np.zeros_like(u)
        for part, count in parts:
            total += count * part.log_decay(c, u)
        good = np.nonzero(total - np.log(u) <= log_tolerance)[0]
        if good.size:
            i = int(good[0])
            return float(u[i]), float(total[i])
        u = u[-1] * 1.5 ** np.arange(1.0, 9.0)
        if u[0] > 1e5 * guess:
            break
    return math.inf, 0.0


def _assemble(
    chars: list[tuple[Characteristic, int]], c: float, step: float, number: int, log_bound: float, table: Tilts
) -> SumContour:
    real, imag, growth = np.zeros((3, number))
    moment, moment_error, centre, centre_size = 0.0, 0.0, 0.0, 0.0
    ulps = (20 + len(chars)) * EPS
    for char, count in chars:
        minus_one, error = char.on_grid(step, number)
        log_phi = log1p_complex(minus_one)
        part = np.maximum(log_phi.real, -300.0)
        real += count * part
        imag += count * log_phi.imag
        growth += count * (
            np.log1p((error + 1e-130) * np.exp(-part))
            + ulps * (np.abs(part) + np.abs(log_phi.imag) + np.abs(minus_one))
        )
        moment += count * char.log_moment
        moment_error += count * char.log_moment_error + 4 * EPS * abs(count * char.log_moment)
        centre += count * char.centre
        centre_size += abs(count * char.centre)
    u = step * np.arange(number)
    kernel = table.kernel.values(np.asarray(c + 1j * u, dtype=np.complex128))
    kernel[0] *= 0.5
    phi = np.exp(real)
    weight = np.abs(kernel)
    spread = np.minimum(np.exp(np.minimum(real + growth, 0.7)) - phi, 2.0)
    rounding = spread + phi * (EPS * (number + 40 + np.abs(real) + 2 * np.abs(imag)) + 6 * EPS * u * centre_size)
    return SumContour(
        tilt=c,
        log_moment=moment,
        log_moment_error=moment_error,
        centre=centre,
        step=step,
        terms=phi * np.exp(1j * imag) * kernel,
        noise=float(step / math.pi * (weight @ rounding)) * 1.02,
        phase_noise=float(step / math.pi * (weight * phi) @ (8 * EPS * u)) * 1.02,
        tail=math.exp(min(log_bound, 0.0)) / (math.pi * float(u[-1])) * 1.02,
        table=table,
    )


_PER_OCTAVE = 4  # tilts at which contours are made


@lru_cache(maxsize=512)
def _made(parts: Parts, number: int, kernel: Kernel, most: int) -> SumContour | None:
    return contour(parts, tilts_of(parts, kernel), 2.0 ** (number / _PER_OCTAVE), most)


def log_bounds(
    parts: Parts, beta: Floats, kernel: Kernel = PLAIN, terms: int = _MOST_TERMS
) -> tuple[Floats, Floats, Floats]:
    """Bounds of log E(sum W - beta)+ and an estimate of P(sum W > beta) / E(sum W - beta)+, elementwise.

    Each beta is answered on the contour whose tilt is next to its saddle; Chernoff's bound is an upper end always.
    """
    table = tilts_of(parts, kernel)
    low, high, rate = np.full(len(beta), -np.inf), np.full(len(beta), np.inf), np.ones(len(beta))
    if len(table.tilt) < 3:
        return low, high, rate
    high = table.log_bound(beta)
    c = table.saddles(beta)
    rate = c
    number = np.rint(_PER_OCTAVE * np.log2(c))
    least = math.ceil(_PER_OCTAVE * math.log2(float(table.tilt[1])))
    most = math.floor(_PER_OCTAVE * math.log2(float(table.tilt[-2])))
    number = np.clip(number, least, most)
    for index in np.unique(number).tolist():
        found = _made(parts, int(index), kernel, terms)
        if found is None:
            continue
        which = number == index
        lower, upper, ratio = found.log_bounds(beta[which])
        low[which], high[which], rate[which] = lower, np.minimum(high[which], upper), ratio
    return low, high, rate
