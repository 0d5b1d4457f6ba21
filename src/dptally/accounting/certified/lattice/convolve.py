r"""Tilted convolution powers of lattice measures, with a bound on everything that floats and the finite window
do.

One term is the part of a composed measure in which the largest loss lies between two cuts: with light_j the masses
below the lower cut and heavy_j those between the two, prod_j (light_j + heavy_j)^count_j - prod_j light_j^count_j.
Without a lower cut it is the whole product. Each term has its own tilt, so that everything is relative to its own
exp(K - theta eps). docs/certificates-lattice.md, sections 5 and 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dptally.accounting.certified.lattice.measure import LatticeMeasure, profile_at_nodes, profile_error
from dptally.numerics.rounding import EPS, Floats

__all__ = ["Factor", "Term", "Weights", "convolve", "log_payoff_peak"]

Complexes = NDArray[np.complex128]
_LARGEST_EXPONENT = 600.0  # beyond, exp may leave double range


@dataclass(frozen=True, slots=True)
class Factor:
    """``count`` copies of one lattice measure: light masses (index < cut) and heavy ones (cut <= index < end)."""

    spread: LatticeMeasure
    count: int
    cut: int
    end: int

    @classmethod
    def whole(cls, spread: LatticeMeasure, count: int) -> Factor:
        return cls(spread, count, len(spread.masses), len(spread.masses))

    def pieces(self) -> tuple[Piece, Piece]:
        masses, spread = self.spread.masses, self.spread
        return (
            Piece(masses[: self.cut], 0, spread.step, spread.tilt),
            Piece(masses[self.cut : self.end], self.cut, spread.step, spread.tilt),
        )


@dataclass(frozen=True, slots=True)
class Piece:
    """Masses ``masses[j] exp(-tilt step (first + j))`` at index first + j."""

    masses: Floats
    first: int
    step: float
    tilt: float

    def tilted(self, theta: float) -> tuple[Floats, float, float]:
        """(masses times exp(theta x) scaled to sum 1, log of that sum, relative error of each and of the
        sum)."""
        present = np.flatnonzero(self.masses > 0)
        out = np.zeros(len(self.masses))
        if not present.size:
            return out, -math.inf, 0.0
        move = (theta - self.tilt) * self.step
        exponents = np.log(self.masses[present]) + move * (self.first + present)
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        out[present] = weights / total
        last = self.first + float(present[-1])
        logs = float(np.max(np.abs(exponents)))
        error = EPS * (16.0 + 2.0 * abs(move) * last + 2.0 * logs + abs(top) + math.log2(len(present) + 1.0))
        return out, top + math.log(total), error

    def log_moments(self, tilts: Floats) -> list[float]:
        """An upper bound of log sum of mass exp(s x) for each s of ``tilts``; errors as in :meth:`tilted`."""
        present = np.flatnonzero(self.masses > 0)
        if not present.size:
            return [-math.inf] * len(tilts)
        logs = np.log(self.masses[present])
        index = (self.first + present).astype(np.float64)
        bounds = []
        for s in tilts:
            move = (float(s) - self.tilt) * self.step
            exponents = logs + move * index
            top, bottom = float(exponents.max()), float(exponents.min())
            exponents -= top
            value = top + math.log(float(np.exp(exponents, out=exponents).sum()))
            ulps = 2.0 * abs(move) * float(index[-1]) + 2.0 * max(abs(top), abs(bottom)) + abs(top)
            bounds.append(value + EPS * (16.0 + ulps + math.log2(len(present) + 1.0) + 4 * abs(value)))
        return bounds


@dataclass(frozen=True, slots=True)
class Term:
    """delta(eps) = exp(log_mass - theta eps) G(eps) with G(x_i) = ``node_values`` -/+ ``error`` at x_i = step
    (start + i).

    ``slack`` is a relative error on top (masses, tilts, sums). Positions are relative to the sum of the
    offsets.
    """

    theta: float
    log_mass: float
    step: float
    start: int
    node_values: Floats
    error: float
    slack: float
    size: int  # nodes of the transform
    cut: float  # what the end of the window adds to ``error``: this times exp(-theta (end - eps))
    values: Floats | None  # the tilted masses themselves, each within ``value_error``, where they were asked for
    value_error: float

    def log_bump(self, epsilon: float, variance: float) -> float:
        """An upper bound of log E[exp(-d^2 / (2 variance) - d / 2)], d = L - eps, of this term (section
        7)."""
        scale = self.log_mass - self.theta * epsilon
        pull = self.theta + 0.5
        most = 0.5 * variance * pull * pull  # log of the largest exp(-theta d) bump(d)
        reach = 9.0 * math.sqrt(variance) + 2.0 * variance * pull
        first, last = math.floor((epsilon - reach) / self.step), math.ceil((epsilon + reach) / self.step)
        near_window = self.values is not None and self.start <= first and last < self.start + len(self.values)
        if self.values is None or not near_window or most > _LARGEST_EXPONENT:  # the largest value on all of the mass
            return scale + most + self.slack
        index = np.arange(first, last + 1)
        d = self.step * index - epsilon
        weights = np.exp(-d * d / (2 * variance) - pull * d)
        near = float((self.values[index - self.start] * weights).sum()) + self.value_error * float(weights.sum())
        far = math.exp(pull * reach - reach * reach / (2 * variance))  # beyond the reach, all of the mass
        error = self._error(self.start + len(self.values) - 1 - last)
        return scale + math.log(max(near, 0.0) + far + error * math.exp(most)) + self.slack + 1e-9

    def _error(self, nodes: int) -> float:
        """The absolute error where that many nodes lie between eps and the end of the window."""
        return self.error + self.cut * math.exp(-self.theta * self.step * nodes)

    def bounds(self, epsilon: float) -> tuple[float, float, float]:
        """(G lower, G upper, log scale): delta lies between exp(log scale) times the two; wide outside the
        window."""
        scale = self.log_mass - self.theta * epsilon
        place = epsilon / self.step - self.start
        i = math.floor(place)
        peak = math.exp(log_payoff_peak(self.theta))
        if not 0 <= i < len(self.node_values) - 1:
            return 0.0, peak * (1 + self.slack), scale
        inside = min(max(epsilon - self.step * (self.start + i), 0.0), self.step)
        part = math.expm1(inside) / math.expm1(self.step)
        value = math.exp(self.theta * inside) * (
            (1 - part) * float(self.node_values[i])
            + part * math.exp(-self.theta * self.step) * float(self.node_values[i + 1])
        )
        rounding = self.slack + EPS * (16 + 4 * self.theta * self.step)
        error = self._error(len(self.node_values) - 2 - i)
        low, high = (
            value * (1 - math.copysign(rounding, value)) - error,
            value * (1 + rounding) + error,
        )
        if math.isnan(value):
            return 0.0, peak * (1 + self.slack), scale
        return max(0.0, low), min(max(high, 0.0), peak * (1 + self.slack)), scale


def log_payoff_peak(theta: float) -> float:
    """log of the largest exp(-theta x)(1 - exp(-x)): theta log theta - (1 + theta) log(1 + theta), rounded
    up."""
    value = -theta * math.log1p(1 / theta) - math.log1p(theta)
    return value + 8 * EPS * abs(value)


def convolve(
    factors: Sequence[Factor],
    theta: float,
    epsilon: tuple[float, float],
    tilts: Floats,
    most: int,
    limit: int,
    *,
    jumping: bool,
    keep: bool = False,
) -> Term | None:
    """The term with at least one heavy loss (``jumping``), or with none, tilted by theta, good for any eps in the given
    range (relative positions).

    ``tilts``: where moments may be taken to bound what lies outside the window. None if no such term exists
    or the window, of ``most`` nodes or what the range needs, would be of more than ``limit``.
    """
    step = factors[0].spread.step
    pieces = [factor.pieces() for factor in factors]
    tilted = [(light.tilted(theta), heavy.tilted(theta)) for light, heavy in pieces]
    counts = [factor.count for factor in factors]
    weights = Weights.of([t[0][1] for t in tilted], [t[1][1] for t in tilted], counts, jumping=jumping)
    if weights is None:
        return None
    window = _window(factors, pieces, theta, weights.log_mass, epsilon, tilts, most, jumping)
    start, size, outside = window
    if size > limit:
        return None
    gamma = EPS * (4 * math.log2(size) + 4)  # error of one transform, relative to the sum of the inputs (section 5)
    total = (_some if jumping else _none)(factors, tilted, weights, size, gamma)
    values = np.fft.irfft(total.value, size)
    values = np.roll(values, -(start % size))
    peak = math.exp(log_payoff_peak(theta))
    forward, cut = _payoff_weighted(total.error, size, step, theta)
    backward = gamma * _backward(total.value, values, size, step, theta, peak)
    # the profile is wanted from the smallest eps on: what lies further left has no part in it
    skip = min(max(math.floor(epsilon[0] / step) - 2 - start, 0), size - 2)
    with np.errstate(under="ignore"):
        nodes = profile_at_nodes(values[skip:], step, theta)
    summing = profile_error(size, step, theta)
    negative = float(np.maximum(-values, 0.0).sum()) * peak
    relative = max(max(t[0][2], t[1][2]) + f.spread.mass_error for t, f in zip(tilted, factors, strict=True))
    scale = weights.size + abs(weights.log_mass) + 8 + theta * step * (abs(start) + size)
    slack = 2 * (sum(counts) * relative + 4 * EPS * scale + summing)
    error = forward + backward + outside * peak + 2 * summing * negative + 1e-290  # (the last: underflow)
    # one mass alone: errors of all frequencies add up, and whatever lies outside may have been folded onto it
    alone = 2 * float(total.error.sum()) / size + gamma * 2 * float(total.size.sum()) / size + outside
    return Term(
        theta,
        weights.log_mass,
        step,
        start + skip,
        nodes,
        error * (1 + 1e-9),
        slack,
        size,
        cut * (1 + 1e-9),
        values[skip:] if keep else None,
        alone,
    )


# -- the transform of a term -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Weights:
    """Scalars of one term: the tilted masses of its pieces as shares, and the log of the whole.

    The share of heavy is its own times ``rare``; ``whole`` is (1 - prod light^count) / rare, or 1 without jumps.
    """

    light: tuple[float, ...]
    heavy: tuple[float, ...]
    rare: float
    whole: float
    log_mass: float
    size: float  # of what was added up to log_mass

    @classmethod
    def of(cls, light: list[float], heavy: list[float], counts: list[int], *, jumping: bool) -> Weights | None:
        """None where there is no such term."""
        if not jumping:
            if any(value == -math.inf for value in light):
                return None
            ones, none = (1.0,) * len(light), (0.0,) * len(light)
            return cls(ones, none, 0.0, 1.0, math.fsum(map(_times, counts, light)), _moduli(counts, light))
        together = [_log_add(*pair) for pair in zip(light, heavy, strict=True)]
        if any(value == -math.inf for value in together):
            return None
        logs = [h - t for h, t in zip(heavy, together, strict=True)]
        top = max(logs)
        if top == -math.inf:
            return None
        shares = tuple(math.exp(m - t) for m, t in zip(light, together, strict=True))
        jumps = tuple(math.exp(value - top) for value in logs)
        rare = math.exp(top)
        # log prod (light share)^count, the shares being 1 - rare jump: sums of positive numbers
        fall = math.fsum(
            n * (-math.log1p(-rare * j) if s > 0.5 else -(m - t) if s > 0 else math.inf)
            for n, j, s, m, t in zip(counts, jumps, shares, light, together, strict=True)
        )
        few = math.fsum(n * j for n, j in zip(counts, jumps, strict=True))
        whole = few if rare < 1e-250 else -math.expm1(-fall) / rare
        log_mass = math.fsum(map(_times, counts, together)) + top + math.log(whole)
        size = _moduli(counts, together) + abs(top) + abs(math.log(whole)) + _moduli([1] * len(logs), logs)
        return cls(shares, jumps, rare, whole, log_mass, min(size, 1e300))


def _times(count: int, value: float) -> float:
    return count * value


def _moduli(counts: Sequence[int], values: Sequence[float]) -> float:
    return sum(count * abs(value) for count, value in zip(counts, values, strict=True) if math.isfinite(value))


def _log_add(a: float, b: float) -> float:
    top = max(a, b)
    return top if top == -math.inf else top + math.log1p(math.exp(min(a, b) - top))


@dataclass(frozen=True, slots=True)
class _Ball:
    """Complex values with a bound of their size and of their error, elementwise."""

    value: Complexes
    size: Floats
    error: Floats

    def __mul__(self, other: _Ball) -> _Ball:
        size = self.size * other.size
        return _Ball(
            self.value * other.value,
            size,
            self.error * other.size + self.size * other.error + (3 * EPS) * size,
        )

    def __add__(self, other: _Ball) -> _Ball:
        size = self.size + other.size
        return _Ball(self.value + other.value, size, self.error + other.error + EPS * size)

    def scaled(self, factor: float) -> _Ball:
        return _Ball(self.value * factor, self.size * factor, self.error * factor + EPS * self.size * factor)

    def power(self, count: int) -> _Ball:
        """|x^n - y^n| <= n |x - y| max(|x|, |y|)^(n-1); binary powering adds 3 n units of rounding."""
        if count == 1:
            return self
        if count == 0:
            one = np.ones(len(self.size))
            return _Ball(one.astype(np.complex128), one, np.zeros(len(one)))
        with np.errstate(under="ignore", divide="ignore"):
            value = _binary_power(self.value, count)
            size = np.exp(count * np.log(self.size) * (1 - 8 * EPS)) * (1 + 8 * EPS)
            error = size * np.minimum(2.0, count * (self.error / self.size + 4 * EPS))
        return _Ball(value, size, error)


def _binary_power(value: Complexes, count: int) -> Complexes:
    result: Complexes | None = None
    square = value
    while True:
        if count & 1:
            result = square if result is None else result * square
        count >>= 1
        if not count:
            assert result is not None
            return result
        square = square * square


def _transform(weights: Floats, first: int, size: int, gamma: float) -> _Ball:
    """Characteristic function of a sum-1 measure at the frequencies of the window; indices are folded into
    it."""
    shifted = first % size
    n = len(weights)
    rows = -(-(shifted + n) // size)
    folded = np.zeros(rows * size)
    folded[shifted : shifted + n] = weights
    value = np.fft.rfft(folded.reshape(rows, size).sum(axis=0) if rows > 1 else folded)
    error = np.full(len(value), gamma + rows * EPS)
    return _Ball(value, np.abs(value) * (1 + 2 * EPS) + error, error)


Tilted = tuple[Floats, float, float]


def _none(
    factors: Sequence[Factor], tilted: Sequence[tuple[Tilted, Tilted]], weights: Weights, size: int, gamma: float
) -> _Ball:
    """The transform of the product of the light pieces, each of mass 1."""
    del weights
    total: _Ball | None = None
    for factor, (light, _) in zip(factors, tilted, strict=True):
        own = _transform(light[0], 0, size, gamma).power(factor.count)
        total = own if total is None else total * own
    assert total is not None
    return total


def _some(
    factors: Sequence[Factor], tilted: Sequence[tuple[Tilted, Tilted]], weights: Weights, size: int, gamma: float
) -> _Ball:
    """The transform of the term with at least one heavy loss, scaled to total mass 1 (section 6)."""
    tau = weights.rare
    pair: tuple[Complexes, Complexes] | None = None
    costs: list[tuple[int, Floats, Floats, Floats, Floats]] = []
    frequencies = size // 2 + 1
    log_all = np.zeros(frequencies)
    for factor, (light, heavy), share, jump in zip(factors, tilted, weights.light, weights.heavy, strict=True):
        n = factor.count
        b, h = (
            _transform(piece[0], first, size, gamma).scaled(part) if part > 0 else _zero(frequencies)
            for piece, first, part in ((light, 0, share), (heavy, factor.cut, jump))
        )
        own = _pair_power((b.value, h.value), n, tau)
        pair = own if pair is None else _pair_product(pair, own, tau)
        both = np.maximum(b.size + tau * h.size, 1e-290)
        log_all += n * np.log(both)
        costs.append((n, both, h.size / np.maximum(b.size, 1e-290), b.error, h.error))
    assert pair is not None
    # the term is a polynomial in b and h with positive coefficients, at most ``every`` times ``jumps`` at their sizes;
    # its derivative in one b has one factor of that law less, and so has what jumps beside it
    steps = sum(factor.count for factor in factors)
    cap = 1 / tau if tau > 1e-290 else 1e290
    jumps = np.minimum(sum(n * ratio for n, _, ratio, _, _ in costs), cap)
    with np.errstate(under="ignore"):
        every = np.exp(np.minimum(log_all, 0.7))
        most = every * jumps
        error = (24 * steps * EPS) * most
        for i, (n, both, _, b_error, h_error) in enumerate(costs):
            beside = sum((m - (i == j)) * ratio for j, (m, _, ratio, _, _) in enumerate(costs))
            error += every * (n / both) * (h_error + b_error * np.minimum(beside, cap))
    error = np.where(log_all < 0.7, error, 1e290)
    return _Ball(pair[1], np.minimum(most, 1e290), error * (1 + 1e-9) + 1e-290).scaled(1 / weights.whole)


def _zero(frequencies: int) -> _Ball:
    return _Ball(np.zeros(frequencies, dtype=np.complex128), np.zeros(frequencies), np.zeros(frequencies))


def _pair_product(
    a: tuple[Complexes, Complexes], b: tuple[Complexes, Complexes], tau: float
) -> tuple[Complexes, Complexes]:
    """(x, y) stands for x + tau y, the part without a jump and the rest: (x x', x y' + y x' + tau y y')."""
    some = a[0] * b[1]
    some += a[1] * (b[0] + tau * b[1])
    return a[0] * b[0], some


def _pair_power(pair: tuple[Complexes, Complexes], count: int, tau: float) -> tuple[Complexes, Complexes]:
    result: tuple[Complexes, Complexes] | None = None
    while True:
        if count & 1:
            result = pair if result is None else _pair_product(result, pair, tau)
        count >>= 1
        if not count:
            assert result is not None
            return result
        pair = pair[0] * pair[0], pair[1] * (2 * pair[0] + tau * pair[1])


# -- the window ------------------------------------------------------------------------------------------


def _window(
    factors: Sequence[Factor],
    pieces: Sequence[tuple[Piece, Piece]],
    theta: float,
    log_mass: float,
    epsilon: tuple[float, float],
    tilts: Floats,
    most: int,
    jumping: bool,
) -> tuple[int, int, float]:
    """(first index, number of nodes, bound of the tilted mass outside as a share of the whole)."""
    step = factors[0].spread.step
    top = sum(f.count * ((f.end if jumping else f.cut) - 1) for f in factors)
    low = math.floor(epsilon[0] / step) - 2
    high = math.ceil(epsilon[1] / step) + 2
    first, last = min(0, low), max(top, high)
    counts = [f.count for f in factors]

    def log_shares(at: Floats) -> list[tuple[float, float]]:
        """(tilt, log of the mass at that tilt over that at theta)."""
        lights = [light.log_moments(at) for light, _ in pieces]
        heavies = [heavy.log_moments(at) for _, heavy in pieces]
        shares = []
        for i, s in enumerate(at):
            weights = Weights.of([m[i] for m in lights], [m[i] for m in heavies], counts, jumping=jumping)
            if weights is None:  # underflow at an extreme tilt: no information
                shares.append((float(s), math.inf))
                continue
            slack = 32 * EPS * (sum(counts) + weights.size + abs(weights.log_mass))
            shares.append((float(s), weights.log_mass + slack - log_mass))
        return shares

    outside = 0.0
    if last - first + 1 > 64:
        nats = 36.0
        above = np.append(theta * np.array([1.02, 1.05, 1.1, 1.2]), tilts[tilts > 1.2 * theta][:8])
        below = np.concatenate((theta * np.array([0.98, 0.95, 0.9, 0.8]), tilts[tilts < 0.8 * theta][-8:][::-1], [0.0]))
        right, left = log_shares(above), log_shares(below)
        # tilted mass beyond x is at most exp(share(s) - (s - theta) x)
        x_right = min(((share + nats) / (s - theta) for s, share in right), default=math.inf)
        x_left = max((-(share + nats) / (theta - s) for s, share in left), default=-math.inf)
        cut_right = min(last, max(math.ceil(x_right / step) if x_right < math.inf else last, high))
        cut_left = max(first, min(math.floor(x_left / step) if x_left > -math.inf else first, low))
        if cut_right - cut_left + 1 > most:  # keep what matters most: the side of eps
            cut_right = min(cut_right, max(high, cut_left + most - 1))
            cut_left = max(cut_left, min(low, cut_right - most + 1))
        if cut_right < last:
            outside += math.exp(
                min(0.0, min((share - (s - theta) * step * cut_right for s, share in right), default=0.0))
            )
        if cut_left > first:
            outside += math.exp(
                min(0.0, min((share + (theta - s) * step * cut_left for s, share in left), default=0.0))
            )
        first, last = cut_left, cut_right
    return first, _good_size(last - first + 1), outside


def _good_size(n: int) -> int:
    """The smallest even size >= n of the form 2^a 3^b 5^c with b + c <= 2: quick to transform."""
    best = 1 << max(1, (n - 1).bit_length())
    for odd in (3, 5, 9, 15, 25):
        size = odd << max(1, (-(-n // odd) - 1).bit_length())
        best = min(best, size) if size >= n else best
    return best


# -- errors of the transforms, as seen by the payoff -----------------------------------------------------


def _payoff_weighted(error: Floats, size: int, step: float, theta: float) -> tuple[float, float]:
    """(1/N) sum of error_k |payoff transform_k| over all N frequencies: that of the whole line, and what times
    exp(-theta room) the end of the window adds, ``room`` beyond eps.

    For psi_i = exp(-theta d_i)(1 - exp(-d_i)), d_i = x_i - eps > 0, over all nodes to the right, |transform|
    <= step/|b| (1/|a| + 1) with a = 1 - exp(-(theta - iu) step), b the same with theta + 1; what lies beyond
    the window takes away at most exp(-theta room) (1/|a| + 1/|b|) (section 5).
    """
    half = np.sin(np.pi * np.arange(len(error)) / size)
    first = np.hypot(-math.expm1(-theta * step), 2 * math.exp(-0.5 * theta * step) * half)
    second = np.hypot(-math.expm1(-(theta + 1) * step), 2 * math.exp(-0.5 * (theta + 1) * step) * half)
    kernels = step / second * (1 / first + 1), 1 / first + 1 / second
    return 2 * float((error * kernels[0]).sum()) / size, 2 * float((error * kernels[1]).sum()) / size


def _backward(transform: Complexes, values: Floats, size: int, step: float, theta: float, peak: float) -> float:
    """What an inverse transform of relative error 1 could do to the sum with the payoff: the smaller of a
    maximum and a Euclidean norm bound."""
    total = 1 / (step * theta * (1 + theta)) + peak  # sum of the payoff over the nodes
    mean = 2 * float(np.abs(transform).sum()) / size
    euclid = math.sqrt(float((values * values).sum())) * 1.01 + mean * 1e-3
    return min(mean * total, euclid * math.sqrt(total * peak))
