"""Optimal composition of k equal guarantees, exactly.  [Kairouz, Oh, Viswanath 2015, Thm. 3.3; Murtagh,
Vadhan 2016]

k steps that are each (e, d)-DP compose like k independent pairs whose loss is infinite with probability d and
else +e or -e with odds e^e : 1. With j the number of minus signs, binomial with q = 1/(1 + e^e),

    delta(E) = p + (1 - p) sum over j of P(j) (1 - exp(E - (k - 2j) e))+,     p = 1 - (1 - d)^k,

and no better bound holds for all such mechanisms. Each P(j) is found by itself (Loader's form of the
binomial), so no large logarithms of factorials cancel, and only the window of j that matters is summed; the
rest is bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptally import checks
from dptally.accounting.answer import Answer
from dptally.accounting.approximate import guarantees
from dptally.accounting.moments import Asked, checked
from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.numerics.rounding import EPS, FUNCTION_ULPS, down, up

__all__ = ["composed_delta", "composed_epsilon", "delta", "epsilon", "log_composed_delta"]

_THEOREM = "Kairouz, Oh, Viswanath 2015, Thm. 3.3 (exact for k equal guarantees)"
_WINDOW = 80.0  # terms below e^-80 of the largest one are bounded, not summed
_LARGE = 700.0  # beyond this e the odds overflow; the loss k e then has probability 1 - k e^-700
_LARGEST_COUNT = 2**50


# -- questions -----------------------------------------------------------------------------------------------


def epsilon(plan: Asked, delta: float) -> Answer:
    """The optimal epsilon at ``delta`` of a plan of k equal steps with bounded loss, rounded up."""
    e, d, k = _equal_steps(plan)
    return Answer(composed_epsilon(e, d, k, delta), "optimal", _THEOREM, None, f"{k} x ({e!r}, {d!r})")


def delta(plan: Asked, epsilon: float) -> Answer:
    """The optimal delta at ``epsilon`` of a plan of k equal steps with bounded loss, rounded up."""
    e, d, k = _equal_steps(plan)
    return Answer(composed_delta(e, d, k, epsilon), "optimal", _THEOREM, None, f"{k} x ({e!r}, {d!r})")


def _equal_steps(plan: Asked) -> tuple[float, float, int]:
    """(epsilon, delta, k) of a plan of k equal steps, the larger of its directions."""
    directions = checked(plan)
    if any(math.isinf(composition.supremum) for composition in directions):
        raise Unanswerable(
            "a step's loss is unbounded, so it has no (epsilon, delta) of its own; use dptally.accounting.renyi.epsilon"
        )
    lists = guarantees(directions)
    if len(lists) > 1 or len(lists[0]) > 1:
        raise Unanswerable(
            "optimal composition is exact for copies of one guarantee, and this plan has several different "
            "steps (finding their optimum is #P-hard); ask the certified accountant"
        )
    if not lists[0]:
        return 0.0, 0.0, 0
    step = lists[0][0]
    return step.epsilon, step.delta, step.count


# -- k equal guarantees --------------------------------------------------------------------------------------


def composed_delta(epsilon0: float, delta0: float, count: int, epsilon: float) -> float:
    """The optimal delta at ``epsilon`` of ``count`` mechanisms that are (epsilon0, delta0)-DP, rounded up.

    >>> round(composed_delta(0.2, 0.0, 50, 2.0), 12)
    0.110480108186
    """
    finite = math.exp(log_composed_delta(epsilon0, count, epsilon)[1])
    mass = _mass(checks.probability("delta0", delta0), count)[1]
    if mass == 0:
        return min(up(finite, 2) if finite > 0 else 0.0, 1.0)
    return min(up(mass + (1 - mass) * finite, 4) if finite > 0 else mass, 1.0)


def composed_epsilon(epsilon0: float, delta0: float, count: int, delta: float) -> float:
    """The optimal epsilon at ``delta`` of ``count`` mechanisms that are (epsilon0, delta0)-DP, rounded up.

    Between two values of the loss delta is A - e^E B, which is solved for E; inf where delta is below 1 -
    (1-delta0)^k.

    >>> round(composed_epsilon(0.2, 0.0, 50, 0.01), 12)
    3.631342735729
    """
    epsilon0, count = checks.nonnegative("epsilon0", epsilon0), _checked_count(count)
    delta = checks.probability("delta", delta)
    lower, upper = _mass(checks.probability("delta0", delta0), count)
    if delta < lower:
        return math.inf
    if delta < upper:
        raise Unanswerable(
            f"delta {delta!r} equals the mass {upper!r} at infinity to within rounding; ask for a larger delta"
        )
    if delta >= 1 or count * epsilon0 == 0:
        return 0.0
    top = epsilon0 if count == 1 else up(count * epsilon0)
    rest = delta if upper == 0 else max(down((delta - upper) / (1 - upper), 3), 0.0)
    if rest == 0:
        return top
    if epsilon0 > _LARGE:  # delta <= 1 - exp(E - k e)
        return min(max(up(top + up(math.log1p(-rest), 2)), 0.0), top)
    return min(_solve(_Binomial(epsilon0, count), down(math.log(rest), 2), top), top)


def log_composed_delta(epsilon0: float, count: int, epsilon: float) -> tuple[float, float]:
    """Certified (lower, upper) bounds of log delta(epsilon) for ``count`` epsilon0-DP mechanisms; -inf where
    it is 0.

    >>> lower, upper = log_composed_delta(0.001, 10**6, 30.0)
    >>> upper - lower < 1e-9, -480 < lower
    (True, True)
    """
    epsilon0, epsilon = checks.nonnegative("epsilon0", epsilon0), checks.nonnegative("epsilon", epsilon)
    count = _checked_count(count)
    if epsilon0 == 0 or count == 0 or epsilon >= up(count * epsilon0):
        return -math.inf, -math.inf
    if epsilon0 > _LARGE:
        gap = count * epsilon0 - epsilon
        upper = math.log(min(up(-math.expm1(-up(gap, 4)), 2), 1.0))
        lower = down(-math.expm1(-max(down(gap, 4), 0.0)) * (1 - count * math.exp(-_LARGE)), 4)
        return math.log(lower) if lower > 0 else -math.inf, min(up(upper, 2), 0.0)
    return _Binomial(epsilon0, count).log_delta(epsilon)


def _checked_count(count: int) -> int:
    count = checks.count("count", count)
    if count > _LARGEST_COUNT:
        raise Unanswerable(f"optimal composition counts to 2**50 steps, got {count}; ask the certified accountant")
    return count


def _mass(delta0: float, count: int) -> tuple[float, float]:
    if delta0 == 0 or count == 0:
        return 0.0, 0.0
    if count == 1 or delta0 == 1:
        return delta0, delta0
    mass = -math.expm1(count * math.log1p(-delta0))
    return max(down(mass, 6), 0.0), min(up(mass, 6), 1.0)


def _solve(binomial: _Binomial, log_delta: float, top: float) -> float:
    """The smallest E with certified delta(E) <= delta: the piece by bisection over j, then its root."""
    if binomial.log_delta(0.0)[1] <= log_delta:
        return 0.0
    k, e = binomial.count, binomial.epsilon
    good, bad = (
        0,
        k // 2 + 1,
    )  # at loss (k - 2 good) e delta is certainly small enough; (k - 2 bad) e <= 0 is not
    while bad - good > 1:
        middle = (good + bad) // 2
        value = (k - 2 * middle) * e
        if binomial.log_delta(up(value) if value > 0 else 0.0)[1] <= log_delta:
            good = middle
        else:
            bad = middle
    high = up((k - 2 * good) * e) if good else top
    low = max((k - 2 * bad) * e, 0.0)
    low = up(low) if low > 0 else 0.0
    inside, log_b = binomial.solve_piece(good, log_delta)
    return _polished(binomial, log_delta, min(max(inside, low), high), log_b)


def _polished(binomial: _Binomial, log_delta: float, proved: float, log_b: float) -> float:
    """A smaller E that is still certified: log((A - delta)/B) has an absolute error, which is large beside a
    small E.
    """
    guess = proved
    for _ in range(3):  # Newton on log delta(E), whose slope is -e^E B / delta
        excess = binomial.log_delta(guess)[1] - log_delta
        guess = min(max(guess + excess * math.exp(min(log_delta - log_b - guess, 700.0)), 0.0), proved)
    for ulps in (0, 4, 64, 1024, 16384):
        candidate = up(guess, ulps)
        if candidate < proved and binomial.log_delta(candidate)[1] <= log_delta:
            return candidate
    return proved


# -- the binomial --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Binomial:
    """The number j of minus signs among ``count`` losses of size ``epsilon``; everything in logs with error
    bounds.
    """

    epsilon: float
    count: int

    def log_pmf(self, j: Floats) -> tuple[Floats, Floats]:
        """(log P(j), absolute error): Loader's form, stirling corrections and two deviances, nothing large
        cancels.
        """
        k = float(self.count)
        q = 1 / (1 + math.exp(self.epsilon))
        p = 1 / (1 + math.exp(-self.epsilon))
        with np.errstate(divide="ignore", invalid="ignore"):
            deviance = _deviance(j, k * q) + _deviance(k - j, k * p)
            middle = (
                _stirling_rest(np.asarray(k))
                - _stirling_rest(j)
                - _stirling_rest(k - j)
                - deviance
                + 0.5 * (math.log(k) - np.log(j) - np.log(k - j) - math.log(2 * math.pi))
            )
        log_p, log_q = (
            -math.log1p(math.exp(-self.epsilon)),
            -self.epsilon - math.log1p(math.exp(-self.epsilon)),
        )
        value = np.where(j == 0, k * log_p, np.where(j == k, k * log_q, middle))
        # k q and k p carry 3 ulps, which move the deviances by 3 |j - k q| each; a deviance taken directly
        # has
        # x <= 10 |x - mean| and x log(x/mean) <= D + |x - mean|, so 8 |j - k q| + 4 D more; the logs and sums
        # the rest
        error = EPS * (32 * np.abs(j - k * q) + 16 * np.abs(value) + 4 * math.log(k + 1) + 40)
        return value, np.asarray(error, dtype=np.float64)

    def window(self, last: int) -> tuple[Floats, Floats, Floats, float]:
        """(j, log P, error) for the terms j <= last that matter, and the log of a bound of the sum of those
        left out.
        """
        peak = min(last, int(self.count / (1 + math.exp(self.epsilon))))
        floor = self._one(peak) - _WINDOW
        first = self._border(0, peak, floor)
        end = last - self._border(0, last - peak, floor, last)
        j = np.arange(first, end + 1, dtype=np.float64)
        log_p, error = self.log_pmf(j)
        # P rises to the left of the peak and falls to its right: what is left out is below (number of terms)
        # e^floor
        omitted = float(first + (last - end))
        return j, log_p, error, (floor + 1e-6 + math.log(omitted)) if omitted else -math.inf

    def _one(self, j: int) -> float:
        return float(self.log_pmf(np.array([float(j)]))[0][0])

    def _border(self, low: int, high: int, floor: float, last: int | None = None) -> int:
        """The smallest step in [low, high] whose log P reaches ``floor`` (counted from ``last`` downwards if
        given).
        """
        while low < high:
            middle = (low + high) // 2
            if self._one(middle if last is None else last - middle) >= floor:
                high = middle
            else:
                low = middle + 1
        return low

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Certified (lower, upper) bounds of log sum over j of P(j) (1 - exp(epsilon - (k - 2j) e))+."""
        k, e = self.count, self.epsilon
        # terms beyond have no positive part; one more is harmless
        last = max(min(int((k - epsilon / e) / 2) + 1, k), 0)
        j, log_p, error, omitted = self.window(last)
        loss, loss_low = _exact_product(k - 2 * j, e)
        gap = (loss - epsilon) + loss_low  # close to a value of the loss the first difference is exact
        slack = 2 * EPS * np.abs(gap) + EPS * EPS * np.abs(loss)
        peak = float(np.max(log_p))
        weight = np.exp(log_p - peak)
        error = error + EPS * np.abs(log_p - peak)
        # the sum of n positive terms: pairwise summation, at most log2(n) + 8 ulps; three functions
        rounding = EPS * (math.log2(j.size + 1) + 12 + 3 * FUNCTION_ULPS)
        gain_up = -np.expm1(-np.maximum(gap + slack, 0.0))
        gain_low = -np.expm1(-np.maximum(gap - slack, 0.0))
        upper = float(np.sum(weight * gain_up * np.exp(error))) * (1 + rounding)
        lower = float(np.sum(weight * gain_low * np.exp(-error))) * (1 - rounding)
        upper += math.exp(min(omitted - peak, 0.0)) if omitted > -math.inf else 0.0
        return _log(lower, peak, False), min(_log(upper, peak, True), 0.0)

    def solve_piece(self, last: int, log_delta: float) -> tuple[float, float]:
        """(upper bound of E = log((A - delta)/B), log B), A = sum of P(j), B = sum of Q(j), j <= last."""
        k, e = self.count, self.epsilon
        j, log_p, error, omitted = self.window(last)
        peak = float(np.max(log_p))
        rounding = EPS * (math.log2(j.size + 1) + 16)
        error = error + 2 * EPS * np.abs(log_p - peak)
        a = float(np.sum(np.exp(log_p - peak + error))) * (1 + rounding)
        a += math.exp(min(omitted - peak, 0.0)) if omitted > -math.inf else 0.0
        log_q = log_p - (k - 2 * j) * e
        top = float(np.max(log_q))
        slack = error + 4 * EPS * (np.abs(log_p) + np.abs((k - 2 * j) * e))
        b = float(np.sum(np.exp(log_q - top - slack))) * (1 - rounding)
        log_b = down(math.log(b), 2)
        left = up(a - math.exp(log_delta - peak) * (1 - 4 * EPS - EPS * abs(log_delta - peak)), 2)
        if left <= 0:
            return 0.0, top + log_b
        return up(up(up(math.log(left), 2) - log_b) + up(peak - top)), top + log_b


def _log(value: float, peak: float, upwards: bool) -> float:
    if value <= 0:
        return -math.inf
    total = peak + math.log(value)
    size = 2 * EPS * (abs(peak) + abs(math.log(value)))
    return up(total + size) if upwards else down(total - size)


#: log n! - ((n + 1/2) log n - n + log sqrt(2 pi)) for n = 0 (not used), 1, ..., 15
_SMALL_STIRLING = np.array(
    [
        *(0.0, 0.08106146679532726, 0.0413406959554093, 0.02767792568499834, 0.020790672103765093),
        *(0.016644691189821193, 0.013876128823070748, 0.01189670994589177, 0.010411265261972096),
        *(0.009255462182712733, 0.00833056343336287, 0.007573675487951841, 0.00694284010720953),
        *(0.006408994188004207, 0.0059513701127588475, 0.005554733551962801),
    ]
)


def _stirling_rest(n: Floats) -> Floats:
    """log n! minus Stirling's formula: 1/(12n) - 1/(360n^3) + ..., the first term left out bounds the error
    (< 1e-17).
    """
    n = np.asarray(n, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = 1 / (n * n)
        series = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r * (1 / 1188 - r * (691 / 360360)))))) / n
    return np.where(n > 15, series, _SMALL_STIRLING[np.minimum(n, 15).astype(np.int64)])


def _exact_product(whole: Floats, factor: float) -> tuple[Floats, Floats]:
    """whole * factor = product + low exactly, for whole numbers of up to 51 bits (Veltkamp, Dekker)."""
    product = whole * factor
    whole_high, factor_high = 134217729.0 * whole, 134217729.0 * factor
    whole_high, factor_high = whole_high - (whole_high - whole), factor_high - (factor_high - factor)
    whole_low, factor_low = whole - whole_high, factor - factor_high
    rest = whole_high * factor_high - product
    return product, ((rest + whole_high * factor_low) + whole_low * factor_high) + whole_low * factor_low


def _deviance(x: Floats, mean: float) -> Floats:
    """x log(x/mean) + mean - x >= 0, within a few ulps of itself and of what an ulp of mean makes."""
    v = (x - mean) / (x + mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        direct = x * np.log(x / mean) + mean - x
    # log(x/mean) = 2 atanh(v), so the sum is (x - mean) v + 2 x (v^3/3 + v^5/5 + ...): nothing cancels
    term, total = x * 2 * v, (x - mean) * v
    square = v * v
    for n in range(1, 12):
        term = term * square
        total = total + term / (2 * n + 1)
    return np.where(np.abs(v) < 0.1, total, direct)
