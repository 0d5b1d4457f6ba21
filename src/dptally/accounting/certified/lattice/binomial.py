r"""Many copies of one loss with two values: delta is a binomial sum, exact up to rounding for any count.

With atoms low < high of probabilities a, b (a + b = 1 - infinity mass =: m) and k of n losses high,

    delta(eps) = sum over k of C(n, k) a^(n-k) b^k (1 - exp(eps - x_k))+ ,   x_k = n low + k (high - low).

Positive terms only. The binomial probabilities come from Loader's saddle-point form [Loader 2000, Fast and
accurate computation of binomial probabilities]: with p = b/m, D(u) = u log u + 1 - u and S(n) = log n! - (n +
1/2) log n + n - log(2 pi)/2,

    log pmf(k) = S(n) - S(k) - S(n-k) - n p D(k / (n p)) - n q D((n-k) / (n q)) + log(n / (2 pi k (n-k))) / 2,

whose rounding is relative to the two deviances instead of to log n!. docs/certificates-lattice.md, section 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dptally.accounting.certified.lattice.measure import listed_atoms
from dptally.accounting.certified.tuning import STANDARD, BinomialTuning
from dptally.law import Composition
from dptally.numerics.rounding import EPS, Floats
from dptally.numerics.special import gammaln

__all__ = ["epsilon", "log_delta", "two_valued"]

_LEAST_MASS = 1e-290  # below it masses lose digits, and quotients by them overflow
_ATOM = 8 * EPS  # relative error of a stated probability or loss that is allowed to every law


@dataclass(frozen=True, slots=True)
class TwoValued:
    """n copies of a loss with values ``low`` < ``high`` and probabilities ``below``, ``above``."""

    low: float
    high: float
    below: float
    above: float
    missing: float  # mass at infinity of one copy
    doubt: float  # what below + above + missing lacks or exceeds 1 by
    count: int
    atom_error: float = _ATOM  # relative error of the stated numbers
    tuning: BinomialTuning = STANDARD.binomial

    @property
    def share(self) -> float:
        return self.above / (self.above + self.below)

    def position(self, k: Floats | float) -> Floats | float:
        return self.count * self.low + k * (self.high - self.low)

    @property
    def position_error(self) -> float:
        """Rounding of a position, and n times that of a stated loss."""
        return (8 * EPS + self.atom_error) * self.count * max(abs(self.low), abs(self.high))

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Certified bounds of log delta: the sum at eps moved either way by the error of the positions."""
        n, move = self.count, self.position_error + 2 * EPS * abs(epsilon)
        first = max(0, min(n + 1, math.floor((epsilon - move - n * self.low) / (self.high - self.low))))
        while first <= n and not self.position(first) > epsilon - move:
            first += 1
        if first > n:
            return -math.inf, -math.inf
        k = self._window(first)
        log_pmf, error = self._log_pmf(k)
        return self._log_sum(epsilon + move, k, log_pmf, error, None), self._log_sum(
            epsilon - move, k, log_pmf, error, first
        )

    def _log_sum(self, epsilon: float, k: Floats, log_pmf: Floats, error: Floats, first: int | None) -> float:
        """log of the sum over k: rounded up, with what lies outside the window, if ``first`` is given; else
        rounded down."""
        gain = -np.expm1(np.minimum(epsilon - self.position(k), 0.0))
        with np.errstate(divide="ignore"):
            logs = log_pmf + np.log(gain)
        top = float(logs.max())
        if top == -math.inf:
            return -math.inf
        total = float(np.exp(logs - top).sum())
        slack = float(np.max(error[logs > top - 40])) + EPS * (16 + math.log2(len(k)) + 2 * abs(top))
        if first is not None:
            total += (self._beyond(int(k[0]), int(k[-1]), first, top) + len(k) * math.exp(-40)) * (1 + 1e-9)
        scale = self.count * math.log1p(-self.missing)
        value = top + math.log(total) + scale
        slack += 8 * EPS * (abs(value) + abs(scale)) + 2 * self.count * self.doubt / (1 - self.missing)
        return value - slack if first is None else min(0.0, value + slack)

    def _window(self, first: int) -> Floats:
        """The k >= first whose probability is not below e^-45 of the largest one there."""
        n, p = self.count, self.share
        mode = min(max(first, math.floor((n + 1) * p)), n)
        reach = self.tuning.deviations * math.sqrt(n * p * (1 - p)) + self.tuning.more
        low, high = max(first, mode - int(reach)), min(n, mode + int(reach))
        return np.arange(low, high + 1, dtype=np.float64)

    def _beyond(self, low: int, high: int, first: int, top: float) -> float:
        """Upper bound of exp(-top) times the probability of first <= k < low and of k > high: geometric
        tails."""
        n, p = self.count, self.share
        total = 0.0
        if high < n:
            ratio = (n - high - 1) / (high + 2) * p / (1 - p)
            log_next = sum(float(part[0]) for part in self._log_pmf(np.array([high + 1.0])))  # rounded up
            total += math.exp(min(0.0, log_next - top)) / (1 - ratio) if ratio < 1 else math.inf
        if low > first:
            ratio = (low - 1) / (n - low + 2) * (1 - p) / p
            log_next = sum(float(part[0]) for part in self._log_pmf(np.array([low - 1.0])))
            total += math.exp(min(0.0, log_next - top)) / (1 - ratio) if ratio < 1 else math.inf
        return total

    def _log_pmf(self, k: Floats) -> tuple[Floats, Floats]:
        """(log pmf of Binomial(n, p), bound of its error); the error of p itself is included."""
        n, p = float(self.count), self.share
        q = self.below / (self.above + self.below)
        j = n - k
        inner = (k > 0) & (j > 0)
        a, b = np.where(inner, k, 1.0), np.where(inner, j, 1.0)
        one, two = (
            n * p * _deviance(a / (n * p), a - n * p, n * p),
            n * q * _deviance(b / (n * q), b - n * q, n * q),
        )
        body = (
            _stirling(np.array([n]))[0]
            - _stirling(a)
            - _stirling(b)
            - one
            - two
            + 0.5 * np.log(n / (2 * math.pi * a * b))
        )
        edge = np.where(k > 0, n * math.log(p), n * math.log(q))
        value = np.where(inner, body, edge)
        # d log pmf / d log p = (k - n p) / q: relative error of p times that; deviances to 64 units; p is
        # within twice the error of an atom
        lean = np.abs(k - n * p) / min(p, q) * (2 * self.atom_error)
        step = EPS * (64 + 64 * (np.abs(one) + np.abs(two)) + 8 * np.abs(value)) + lean
        # the rounding of n p inside the deviance: d/dx of x D(k/x) is 1 - k/x
        step = step + 4 * EPS * (np.abs(a - n * p) + np.abs(b - n * q))
        return value, np.where(inner, step, EPS * 16 * np.abs(edge) + n * 2 * self.atom_error + 16 * EPS)


def _deviance(u: Floats, excess: Floats, mean: float) -> Floats:
    """D(u) = u log u + 1 - u for u = 1 + excess/mean: by its series near 1, where the parts cancel."""
    d = excess / mean
    near = np.abs(d) < 0.1
    v = np.where(near, d / (2 + d), 0.0)
    # log u = 2 (v + v^3/3 + ...), so D = d v + 2 u (v^3/3 + v^5/5 + ...)
    series = np.zeros_like(v)
    for power in range(19, 1, -2):
        series = (series + 1.0 / power) * v * v
    close = d * v + 2 * (1 + d) * series * v
    far = u * np.log(np.where(near, 1.0, u)) + 1 - u
    return np.where(near, close, far)


def _stirling(n: Floats) -> Floats:
    """S(n) = log n! - (n + 1/2) log n + n - log(2 pi)/2: asymptotic series from 16 on, the definition
    below."""
    small = n < 16
    m = np.where(small, 16.0, n)
    w = 1 / (m * m)
    tail = (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * (1 / 1188 - w * (691 / 360360)))))) / m
    x = np.where(small, n, 1.0)
    direct = gammaln(x + 1) - (x + 0.5) * np.log(x) + x - 0.5 * math.log(2 * math.pi)
    return np.where(small, direct, tail)


def two_valued(composition: Composition, tuning: BinomialTuning = STANDARD.binomial) -> TwoValued | None:
    """The composition as copies of one loss with two finite values, if that is what it is."""
    if len(composition.parts) != 1:
        return None
    law, count = composition.parts[0]
    atoms = listed_atoms(law)
    if len(atoms) != 2 or not atoms[0][0] < atoms[1][0] or min(atoms[0][1], atoms[1][1]) < _LEAST_MASS:
        return None
    doubt = abs(math.fsum((1.0, -law.infinity_mass, -atoms[0][1], -atoms[1][1])))
    if doubt > 4 * EPS:
        return None
    (low, below), (high, above) = atoms
    error = max(_ATOM, law.atom_error)
    found = TwoValued(low, high, below, above, law.infinity_mass, doubt, count, error, tuning)
    room = 2 * (tuning.deviations * math.sqrt(count * found.share * (1 - found.share)) + tuning.more)
    return found if room <= tuning.most else None


def log_delta(
    composition: Composition, epsilon: float, tuning: BinomialTuning = STANDARD.binomial
) -> tuple[float, float] | None:
    """Certified bounds of log E[(1 - exp(epsilon - L))+; all losses finite]; None unless the loss has two
    values."""
    found = two_valued(composition, tuning)
    return None if found is None else found.log_delta(epsilon)


def epsilon(
    composition: Composition, log_delta_target: float, tuning: BinomialTuning = STANDARD.binomial
) -> tuple[float, float] | None:
    """Certified bounds of the smallest eps >= 0 whose finite delta is at most exp(log_delta_target)."""
    found = two_valued(composition, tuning)
    if found is None:
        return None
    top = max(0.0, found.count * found.high + found.position_error)
    if not found.log_delta(0.0)[1] > log_delta_target:
        return 0.0, 0.0

    def middle(e: float) -> float:
        low, high = found.log_delta(e)
        return 0.5 * (max(low, high - 1.0) + high) - log_delta_target

    near = _near(middle, top)
    step = 1e-6 * near
    slope = max((middle(near - step) - middle(near + step)) / (2 * step) if step > 0 else 0.0, 1e-12)
    upper = _verified(lambda e: found.log_delta(e)[1] - log_delta_target, near, slope, top)
    lower = -_verified(lambda e: log_delta_target - found.log_delta(-e)[0], -near, slope, 0.0)
    return max(0.0, lower), upper


def _near(function: Callable[[float], float], high: float) -> float:
    """About where a falling function crosses zero: false position, and bisection where that stalls."""
    low, at_low, at_high = 0.0, max(function(0.0), 1e-300), -50.0
    for i in range(100):
        gap = at_low - at_high
        middle = low + (high - low) * (at_low / gap if gap > 0 and i % 4 != 3 else 0.5)
        if high - low <= 1e-12 * high or not low < middle < high:
            break
        value = max(function(middle), -50.0)
        if abs(value) < 1e-10:
            return middle
        if value > 0:
            low, at_low, at_high = middle, value, 0.5 * at_high
        else:
            high, at_high, at_low = middle, value, 0.5 * at_low
    return high


def _verified(function: Callable[[float], float], start: float, slope: float, last: float) -> float:
    """A point at or after ``start`` where the function was seen to be at most 0, or ``last``."""
    at, extra = start, 4 * EPS * abs(start)
    for _ in range(60):
        value = function(at)
        if value <= 0:
            return at
        at += 1.02 * value / slope + extra
        extra *= 2
        if not at < last:
            return last
    return last
