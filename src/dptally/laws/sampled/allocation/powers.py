r"""E R^p of one epoch of random allocation with Gaussian steps, for complex p, from probabilities of a Poisson count.

Given R = S/t let N be Poisson with mean e^y R: a sum of t independent counts N_i, Poisson given e^y Y_i / t. For every
n > Re p

    E R^p = n! / Gamma(n - p) int e^{-p y} P(N = n) dy,

because int c^{n-p-1} e^{-cR} dc = Gamma(n - p) R^{p-n}. P(N = n) is the coefficient of x^n in the t-th power of a
polynomial of degree n with positive coefficients a_k = P(N_1 = k): nothing is cut off, and nothing cancels for real p.
One table of y serves every p, so all tilts of both directions. The rules in x (Gauss) and y are trapezoid rules whose
errors are relative:

    y:  2 (cos b)^{-(n - Re p)} e^{|Im p| b} / (e^{2 pi b/h} - 1) times Gamma(n - Re p) / |Gamma(n - p)|,  0 < b < pi/2;
    x:  2 t e^{a^2/2 + |Im p| m a} (cos(ma/2))^{-max(0, -Re p)} / (e^{2 pi a/h} - 1),                     0 < ma < pi.

Derivations: docs/batching.md, "Powers of the ratio".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dptally.checks import Floats
from dptally.laws.sampled.allocation.integers import log_integer_moments, log_power_upper
from dptally.numerics.arrays import Complexes
from dptally.numerics.rounding import EPS
from dptally.numerics.special import gammaln

__all__ = ["Powers", "Request", "log_gamma_ratio"]

_SHIFT_ULPS = 2.0
_GOAL = 30.0  # nats: what each rule may miss, relatively
_BESIDE = 24  # integers beyond the largest power at which moments are asked
_ANGLES = np.array([0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.7, 0.85, 1.0, 1.15, 1.3])
_VANISHED = 690.0  # -log of a Poisson probability that counts as zero
_RARE = 1e-2  # large counts under the tilt
_LENGTH = 6  # of the transform, in degrees
_MOST_CELLS = 12_000_000
_MOST_ROWS = 3000
LEAST_GAP = 24  # n - Re p at least


@dataclass(frozen=True, slots=True)
class Request:
    """Which powers a table shall serve: p_low <= Re p <= p_high, |Im p| <= reach."""

    shift: float
    steps: int
    degree: int
    p_low: float
    p_high: float
    reach: float


def log_gamma_ratio(a: float | Floats, u: Floats) -> tuple[Complexes, Floats]:
    """log(Gamma(a + iu) / Gamma(a)), a >= 20, and bounds of its error: Stirling's series, 6 terms.

    The remainder of each is below B_14 / (14 * 13 |z|^13) sec(arg z / 2)^14 <= 2^7 (7/6) / (182 * 20^13) < 1e-17.
    """
    z = np.asarray(a + 1j * np.asarray(u, dtype=np.float64), dtype=np.complex128)

    def series(at: Complexes) -> Complexes:
        square = 1.0 / (at * at)
        total = np.zeros_like(at)
        for term in (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
            total = total * square + term
        return np.asarray((at - 0.5) * np.log(at) - at + total / at)

    real = np.asarray(a + 0j * z, dtype=np.complex128)
    error = EPS * (8 + 6 * np.abs(z) * (1 + np.abs(np.log(z))))
    return np.asarray(series(z) - series(real)), np.asarray(error + 1e-16)


@dataclass(frozen=True, slots=True, eq=False)
class Powers:
    """The nodes y with log(h P(N = n)) and relative bounds of their errors."""

    request: Request
    step_x: float
    step_y: float
    dropped: float  # relative: ends of the rule in x
    y: Floats
    log_mass: Floats
    blame: Floats

    @classmethod
    def of(cls, request: Request) -> Powers | None:
        """The table; None where it would be too long."""
        return _table(request)

    # -- real powers --------------------------------------------------------------------------------------------

    def real(self, power: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """(log E R^p, bound of its error, mean and variance of log R under the law tilted by R^p)."""
        n = self.request.degree
        p = np.asarray(power, dtype=np.float64)
        a = n - p
        log_gamma = gammaln(a) - math.lgamma(n + 1)
        exponent = self.log_mass - np.multiply.outer(p, self.y)
        top = exponent.max(axis=1)
        weight = np.exp(exponent - top[:, None])
        total = weight.sum(axis=1)
        value = top + np.log(total) - log_gamma
        mean = (weight @ self.y) / total
        variance = np.maximum((weight @ (self.y * self.y)) / total - mean**2, 0.0)
        size = np.abs(top) + np.abs(log_gamma) + np.abs(p) * np.abs(self.y).max() + math.lgamma(n + 1)
        error = (weight @ self.blame) / total + EPS * (len(self.y) + 16 + 4 * size) + self._shifted(np.abs(p))
        error = error + self._rule_y(a, np.zeros_like(p)) + self._rule_x(p, np.zeros_like(p)) + self._ends(p, value)
        # digamma and trigamma, about: only estimates
        first = np.log(a) - 0.5 / a - mean
        second = np.maximum(variance - 1 / a - 0.5 / a**2, 1e-300)
        return value, np.where(error < 0.1, 1.06 * error, np.inf), first, second

    def mean(self, power: float) -> tuple[float, float]:
        """(the mean of log R under the law tilted by R^p, a bound of its error): digamma(n - p) minus the mean of y."""
        a = self.request.degree - power
        weight = np.exp(self.log_mass - power * self.y - float((self.log_mass - power * self.y).max()))
        weight /= float(weight.sum())
        middle = float(weight @ self.y)
        digamma = math.log(a) - 0.5 / a - (1 / 12 - (1 / 120 - 1 / (252 * a * a)) / (a * a)) / (a * a)
        around = np.array([power - 1, power, power + 1])
        once = np.ones(3)
        rules = self._rule_y(self.request.degree - around, once) + self._rule_x(around, once)
        ends = self._ends(around, self.real(around)[0])
        ulps = EPS * (2 * len(self.y) + 64 + 4 * np.abs(power * self.y) + 4 * np.abs(self.log_mass))
        spread = float((weight * (2 * self.blame + ulps)) @ (1 + np.abs(self.y - middle)))
        error = 4 * float((rules + ends).max()) * (1 + float(np.abs(self.y - middle).max()))
        return digamma - middle, error + spread + EPS * (16 + 4 * abs(middle) + 4 * math.log(a)) + 1e-14

    # -- complex powers ------------------------------------------------------------------------------------------

    def turned(self, power: float, u: Floats) -> tuple[Complexes, Floats]:
        """E R^{p + iu} / E R^p for real p, and bounds of the absolute errors."""
        a = self.request.degree - power
        exponent = self.log_mass - power * self.y
        weight = np.exp(exponent - float(exponent.max()))
        weight /= float(weight.sum())
        centre = float(weight @ self.y)
        away = self.y - centre
        total = np.exp(np.multiply.outer(-1j * u, away)) @ weight
        ratio, ratio_error = log_gamma_ratio(a, -u)
        phase = -1j * u * centre - ratio
        lift = np.exp(-ratio.real)  # Gamma(a) / |Gamma(a + iu)|
        powers = np.full_like(u, power)
        ulps = EPS * (len(self.y) + 24 + 4 * np.abs(power * self.y) + 2 * np.abs(self.log_mass))
        rounding = 2 * float(weight @ (self.blame + ulps)) + 2 * EPS * np.abs(u) * float(weight @ np.abs(away))
        rounding = (
            rounding
            + ratio_error
            + self._shifted(abs(power) + np.abs(u))
            + 4 * EPS * np.abs(u) * (abs(centre) + np.abs(self.y).max())
        )
        single = self._rule_y(np.array([a]), np.zeros(1)) + self._rule_x(np.array([power]), np.zeros(1))
        ends = float(self._ends(np.array([power]), self.real(np.array([power]))[0])[0])
        error = lift * (rounding + ends) + self._rule_y(np.full_like(u, a), u) + self._rule_x(powers, u)
        return np.asarray(total * np.exp(phase)), 1.06 * (error + float(single[0]) + ends)

    # -- errors --------------------------------------------------------------------------------------------------

    def _shifted(self, size: Floats) -> Floats:
        """What two ulps of m change: d E R^p / dm = m p (p - 1) E[R^{p-2} sum Y^2 / t^2], and sum Y^2 <= S^2."""
        return np.asarray(4 * _SHIFT_ULPS * EPS * self.request.shift**2 * size * (size + 1))

    def _rule_y(self, a: Floats, u: Floats) -> Floats:
        """The rule in y, the factor of the gamma functions included."""
        b = _ANGLES
        logs = (
            -np.multiply.outer(a, np.log(np.cos(b)))
            + np.multiply.outer(np.abs(u), b)
            - (2 * math.pi * b / self.step_y)
            - np.log(-np.expm1(-2 * math.pi * b / self.step_y))
        )
        lift = -log_gamma_ratio(a, u)[0].real
        return np.asarray(np.exp(np.minimum(logs.min(axis=1) + lift + math.log(2.0) + 1e-9, 300.0)))

    def _rule_x(self, p: Floats, u: Floats) -> Floats:
        """The rule in x for each of the t ratios in turn, and its ends."""
        m, t = self.request.shift, self.request.steps
        angle = np.minimum(_ANGLES, 8.0 * m)
        a = angle / m
        logs = (
            0.5 * a * a
            - (2 * math.pi * a / self.step_x)
            - np.log(-np.expm1(-2 * math.pi * a / self.step_x))
            + np.multiply.outer(np.abs(u), angle)
            - np.multiply.outer(np.maximum(-p, 0.0), np.log(np.cos(0.5 * angle)))
        )
        missed = np.exp(np.minimum(logs.min(axis=1) + math.log(2.0 * t) + 1e-6, 300.0))
        return np.asarray(1.01 * missed + self.dropped)

    def _ends(self, p: Floats, value: Floats) -> Floats:
        """Beyond the nodes: e^{-py} <= e^{-qy} e^{-(p-q) end}, and the sum at q is known by a bound of E R^q."""
        request = self.request
        n = request.degree
        base = value + gammaln(n - p)
        total = np.zeros_like(p)
        for end, sign in ((float(self.y[-1]), -1.0), (float(self.y[0]), 1.0)):
            q = p[:, None] + sign * _moves(request, p, sign)
            with np.errstate(invalid="ignore", divide="ignore"):
                bound = log_power_upper(request.shift, request.steps, q) + gammaln(np.maximum(n - q, 1.0))
            bound = np.where(n - q >= 1.0, bound, np.inf) + sign * np.abs(q - p[:, None]) * end - base[:, None]
            # the nodes are those of the rule in x: it must be good at q too
            bound = np.where(self._rule_x(q.ravel(), np.zeros(q.size)).reshape(q.shape) < 0.05, bound, np.inf)
            total += np.exp(np.minimum(bound.min(axis=1) + 0.2, 300.0))
        return total


def _moves(request: Request, p: Floats, sign: float) -> Floats:
    """How far q is from p: candidates; to the left of the nodes large powers count, up to a few integers more."""
    scale = math.sqrt(request.steps) / request.shift
    moves = scale * 2.0 ** (np.arange(-4.0, 16.0) / 2.0)
    if sign > 0:
        moves = np.concatenate((moves, [2.0, 4.0, 8.0, 12.0, 16.0, 22.0]))
        room = np.minimum(request.degree - 1.0 - p, request.p_high + _BESIDE - p)
        return np.asarray(np.minimum(moves[None, :], np.maximum(room, 0.0)[:, None]))
    return np.asarray(np.broadcast_to(moves, (len(p), len(moves))))


# -- making a table ------------------------------------------------------------------------------------------------


def _steps(request: Request) -> tuple[float, float]:
    """Steps of both rules that reach the goal at u = 0; up to u = reach they may lose what rounding loses there."""
    m, t = request.shift, request.steps
    largest = request.degree - request.p_low
    u = request.reach * np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    lift = -log_gamma_ratio(largest, u)[0].real[:, None]
    b = _ANGLES
    need = _GOAL + math.log(2.0) - largest * np.log(np.cos(b)) + np.multiply.outer(u, b)
    step_y = float((2 * math.pi * b / need).max(axis=1).min())
    angle = np.minimum(_ANGLES, 8.0 * m)
    a = angle / m
    need = _GOAL - lift + math.log(2.0 * t) + 0.5 * a * a + np.multiply.outer(u, angle)
    need = need - max(-request.p_low, 0.0) * np.log(np.cos(0.5 * angle))
    step_x = float((2 * math.pi * a / np.maximum(need, 1.0)).max(axis=1).min())
    return step_x, step_y


def _range(request: Request) -> tuple[float, float]:
    """(lowest, highest) y such that the ends do not matter for any power of the request."""
    n, p = request.degree, np.linspace(request.p_low, request.p_high, 9)
    base = gammaln(n - p) + _log_power_lower(request, p)
    found = []
    for sign in (1.0, -1.0):
        moves = _moves(request, p, sign)
        q = p[:, None] + sign * moves
        bound = log_power_upper(request.shift, request.steps, q) + gammaln(np.maximum(n - q, 1.0)) - base[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            end = np.where(moves > 0, -sign * (bound + _GOAL) / moves, -sign * np.inf)
        best = end.max(axis=1) if sign > 0 else end.min(axis=1)
        found.append(float(best.min() if sign > 0 else best.max()))
    return found[0], found[1]


def _log_power_lower(request: Request, p: Floats) -> Floats:
    """Lower bounds of log E R^p outside (0, 1): the chord of two integers, continued to the right; else 0."""
    most = math.ceil(request.p_high) + 2
    if most < 3:
        return np.zeros_like(p)
    value, error = log_integer_moments(request.shift, request.steps, most)
    j = np.clip(np.floor(p), 1, most).astype(np.int64)
    chord = value[j] - error[j] + (p - j) * (value[j] - error[j] - value[j - 1] - error[j - 1])
    return np.where(p > 1, np.maximum(chord, 0.0), 0.0)


def _ends_x(request: Request) -> tuple[float, float]:
    """How far the rule in x goes to the left and to the right: beyond lies less than e^-(goal + log 2t) of E R^p.

    Under the law tilted by R^p one x has a drift between 0 and pm, whatever the others are. For p < 0 also
    R^p <= prod Y_i^{p/t}, of which E R^p is at least e^{-m^2 |p| / 2}.
    """
    m, t = request.shift, request.steps
    nats = _GOAL + math.log(2.0 * t) + 1.0
    far, less = math.sqrt(2 * nats), max(-request.p_low, 0.0)
    left = min(far + m * less, m * less / t + math.sqrt(2 * (nats + 0.5 * m * m * less)))
    return left, far + m * max(request.p_high, 0.0)


def _short(x: float) -> float:
    """x rounded down to 15 bits: products with whole numbers, and their squares, are exact."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(math.floor(mantissa * 2**15), exponent - 15)


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """w = log(e^y Y / t) on one grid for both rules: w_i = w_low + unit i, y by ``by_y`` and mx by ``by_x`` units."""

    unit: float
    by_y: int
    by_x: int
    x: Floats
    rows: int
    low: float
    w: Floats

    @classmethod
    def of(cls, request: Request) -> _Grid | None:
        m, n = request.shift, request.degree
        step_x, step_y = _steps(request)
        low, high = _range(request)
        if not (math.isfinite(low) and math.isfinite(high)) or high - low > _MOST_ROWS * step_y:
            return None
        by_y, by_x = 1, 1
        if m * step_x >= step_y:
            by_x = int(m * step_x / step_y)
            step_x = _short(by_x * step_y / m)
        else:
            by_y = int(step_y / (m * step_x))
            step_x = _short(step_x)
        unit = m * step_x / by_x
        left, right = _ends_x(request)
        x = step_x * np.arange(-math.ceil(left / step_x), math.ceil(right / step_x) + 1.0)
        rows = math.ceil((high - low) / (by_y * unit)) + 1
        w_low = low + m * float(x[0]) - 0.5 * m * m - math.log(request.steps)
        columns = min((rows - 1) * by_y + (len(x) - 1) * by_x + 1, math.ceil((_vanishing(n) - w_low) / unit) + 1)
        if columns < 1 or len(x) > 2000 or columns * max(rows, n + 2) > _MOST_CELLS:
            return None
        return cls(unit, by_y, by_x, x, rows, low, w_low + unit * np.arange(float(columns)))

    @property
    def step_x(self) -> float:
        return float(self.x[1] - self.x[0])

    @property
    def y(self) -> Floats:
        return self.low + self.by_y * self.unit * np.arange(float(self.rows))

    def weights(self) -> tuple[Floats, Floats]:
        """The weight of each w (row) for each y (column), and what lies beyond the last w."""
        weight = np.exp(-0.5 * self.x * self.x) * (self.step_x / math.sqrt(2 * math.pi))
        columns, number = len(self.w), len(self.x)
        before = (self.rows - 1) * self.by_y
        line = np.zeros(before + max(columns, (number - 1) * self.by_x + 1))
        line[before : before + (number - 1) * self.by_x + 1 : self.by_x] = weight
        item = line.strides[0]
        band = np.lib.stride_tricks.as_strided(
            line[before:], (columns, self.rows), (item, -self.by_y * item), writeable=False
        )
        first = -((self.by_y * np.arange(self.rows) - columns) // self.by_x)  # the first x beyond
        after = np.append(np.cumsum(weight[::-1])[::-1], 0.0)
        return band, after[np.clip(first, 0, number)]


_BLOCK = 64  # columns that are added up at once: rounding of sums


@lru_cache(maxsize=24)
def _table(request: Request) -> Powers | None:
    n, t, m = request.degree, request.steps, request.shift
    grid = _Grid.of(request)
    if grid is None:
        return None
    band, beyond = grid.weights()
    mean, k = np.exp(grid.w), np.arange(n + 2.0)
    pmf = np.exp(np.multiply.outer(k, grid.w) - mean - gammaln(k + 1)[:, None])  # what underflows is below 1e-300
    a, missing = np.zeros((grid.rows, n + 2)), beyond
    for i in range(0, len(mean), _BLOCK):
        part = np.ascontiguousarray(band[i : i + _BLOCK].T)
        a += part @ pmf[:, i : i + _BLOCK].T
        missing = missing - part @ np.expm1(-mean[i : i + _BLOCK])  # 1 - a_0
    largest = float(np.abs(grid.w).max()) + m * float(np.abs(grid.x).max()) + m * m
    ulps = EPS * (_BLOCK + len(mean) / _BLOCK + 24 + 3 * largest + 2 * math.log(n + 2.0))
    log_pi, blame = _coefficients(a, missing, n, t, ulps)
    dropped = 6.0 * math.exp(-_GOAL)  # ends of the rule, and the total mass of its weights
    step_y = grid.by_y * grid.unit
    return Powers(request, grid.step_x, step_y, dropped, grid.y, log_pi + math.log(step_y), blame)


def _vanishing(n: int) -> float:
    """log of a mean at which every count up to n + 1 has a probability below e^-_VANISHED."""
    mean = n + 60.0
    while mean - (n + 1) - (n + 1) * math.log(mean / (n + 1)) < _VANISHED:
        mean *= 1.1
    return math.log(mean)


def _tilts(a: Floats, n: int, t: int) -> Floats:
    """log r for each row, about such that the mean of the tilted count is n / t, and that large counts stay rare.

    Any r is valid. With rare large counts, n + length and more, which need several of them, are rarer still.
    """
    rows = np.unique(np.linspace(0, len(a) - 1, min(len(a), 33)).round().astype(np.int64))
    k = np.arange(a.shape[1])
    with np.errstate(divide="ignore"):
        logs = np.log(a[rows])
    large = n + 2 if t < _LENGTH else max(n // 3, 3 * n // t)
    low, high = np.full(len(rows), -600.0 / n), np.full(len(rows), 600.0 / n)
    for _ in range(30):
        middle = 0.5 * (low + high)
        tilted = logs + np.multiply.outer(middle, k)
        tilted = np.exp(tilted - tilted.max(axis=1)[:, None])
        whole = tilted.sum(axis=1)
        above = ((tilted @ k) > (n / t) * whole) | (t * tilted[:, large:].sum(axis=1) > _RARE * whole)
        high, low = np.where(above, middle, high), np.where(above, low, middle)
    return np.asarray(np.interp(np.arange(len(a)), rows, 0.5 * (low + high)))


def _coefficients(a: Floats, missing: Floats, n: int, t: int, factor: float) -> tuple[Floats, Floats]:
    """log of the coefficient of x^n in (sum_k a_k x^k)^t for each row, and bounds of its relative error."""
    from scipy.fft import next_fast_len, rfft

    tilt = _tilts(a, n, t)
    k = np.arange(n + 2.0)
    length = next_fast_len(_LENGTH * (n + 2), real=True)
    length += length % 2
    scale = np.exp(np.multiply.outer(tilt, k))
    lifted = a * scale
    few = missing < 0.5
    rest = lifted[:, 1:].sum(axis=1)
    log_total = _log_sum(lifted[:, 0], rest, missing)
    total = np.exp(log_total)
    lifted[:, 0] = 0.0
    turned = rfft(lifted / total[:, None], length, axis=1)
    turned -= (rest / total)[:, None]
    # t log |phi|; what is beyond e^-60 of the largest is bounded only
    with np.errstate(divide="ignore"):
        log_size = (0.5 * t) * np.log1p(np.maximum(turned.real * (2 + turned.real) + turned.imag**2, -1.0))
    weight = np.full(turned.shape[1], 2.0 / length)
    weight[0] = weight[-1] = 1.0 / length
    row, column = np.nonzero(log_size > -60.0)
    real, imag, log_size = turned.real[row, column], turned.imag[row, column], log_size[row, column]
    angle = t * np.arctan2(imag, 1.0 + real)
    size = np.exp(log_size) * weight[column]
    turn = np.exp(1j * (angle + (2 * math.pi / length) * ((n * column) % length))) * size
    coefficient = np.bincount(row, turn.real, len(a))
    roots = np.exp((2j * math.pi / length) * np.arange(turned.shape[1]))
    after = np.bincount(row, (turn * roots[column]).real, len(a))
    # rounding: the transform to gamma of its l1 norm; the power; the sum
    gamma = EPS * (4 * math.log2(length) + 12)
    share = rest / total
    moved = t * (2 * gamma * share)[row] * np.exp(np.minimum(-log_size / t, 30.0))
    per = EPS * (length + 32 + 4 * np.abs(log_size) + 4 * np.abs(angle)) + np.expm1(np.minimum(moved, 3.0))
    noise = np.bincount(row, size * per, len(a)) + math.exp(-55.0)
    alias = _alias(a, missing, tilt, log_total, n, t, length)
    noise = 1.1 * (noise + alias)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(coefficient > noise, noise / coefficient, 1.0)
        log_pi = np.log(np.maximum(coefficient, noise)) + t * log_total - n * tilt
        follow = np.exp(np.minimum(-tilt, 30.0)) * np.maximum(after, 0.0) / np.maximum(coefficient, noise)
    # relative errors of the a_k: at most n of the counts are positive, and their means add up to (n + 1) pi_{n+1}/pi_n
    counts = factor * (2.0 * n + 4 + (n + 1) * follow)
    zero = np.where(few, t * missing / np.maximum(1 - missing, 0.5), t) * factor
    power = EPS * (64 + math.log2(n + 2)) * t * (rest + np.where(few, missing, total)) / total + 4 * EPS * np.abs(
        t * log_total
    )
    blame = ratio * 1.1 + counts + zero + power + 4 * EPS * np.abs(n * tilt) + 1e-270
    return log_pi, np.minimum(blame, 1e3)


def _log_sum(first: Floats, rest: Floats, missing: Floats) -> Floats:
    """log(a_0 + rest), by 1 - a_0 where that is small."""
    return np.where(missing < 0.5, np.log1p(np.maximum(rest - missing, -0.9)), np.log(first + rest))


def _alias(a: Floats, missing: Floats, tilt: Floats, log_total: Floats, n: int, t: int, length: int) -> Floats:
    """A bound of the tilted probability of n + length, n + 2 length, ..: Chernoff at larger tilts."""
    best = np.full(len(a), np.inf)
    if t * (n + 1) < n + length:
        return np.zeros(len(a))
    k = np.arange(n + 2.0)
    for more in (0.25, 0.5, 1.0, 2.0):
        further = more / math.sqrt(n)
        rest = (a[:, 1:] * np.exp(np.multiply.outer(tilt + further, k[1:]))).sum(axis=1)
        with np.errstate(over="ignore"):
            log_there = _log_sum(a[:, 0], rest, missing)
            bound = t * (log_there - log_total) * (1 + 1e-9) + 1e-6 - further * (n + length)
        best = np.minimum(best, bound)
    return np.asarray(np.exp(np.minimum(best, 300.0)))
