r"""Certified normal tails and the profile of a shifted normal, in log space and free of cancellation.

Everything rests on the Mills ratio m(x) = Phi(-x) / phi(x) = int_0^inf exp(-x t - t^2/2) dt, which scipy's
erfcx gives to within a few ulps for x >= 0. The profile of N(mu, 1) against N(0, 1) at threshold epsilon,

    delta = Phi(-x) - e^eps Phi(-y),    c = eps / mu,  h = mu / 2,  x = c - h,  y = c + h,

uses e^eps phi(y) = phi(x):

    delta = phi(x) D,    D = m(x) - m(y) = int_0^inf exp(-c t - t^2/2) 2 sinh(h t) dt
                           = 2 sum over odd k of h^k M_k(c) / k!,    M_k = int_0^inf t^k exp(-c t - t^2/2) dt.

For eps >= 0 every term of the sum is positive, so D is found with relative accuracy where m(x) and m(y)
nearly cancel. The exponent x^2/2 is formed in double-double arithmetic, so log delta carries little more
than its own last rounding. eps < 0 follows from the symmetry delta(eps) = 1 - e^eps + e^eps delta(-eps), a
sum of positive terms.

Every function takes arrays (they broadcast) or numbers and returns arrays; a number gives a 0-d array.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dptally.numerics.doubled import two_product, two_sum
from dptally.numerics.rounding import EPS, FUNCTION_ULPS, Floats, down, up
from dptally.numerics.special import erfcx, erfinv, ndtri_exp

__all__ = [
    "gaussian_epsilon",
    "gaussian_epsilon_log",
    "gaussian_mu",
    "gaussian_mu_at_zero",
    "gaussian_mu_log",
    "gaussian_mu_of_pure",
    "gaussian_mu_slope",
    "log_gaussian_delta",
    "log_normal_tail",
    "mills",
    "mirrored",
    "normal_tail_quantile",
]

SMALLEST_MU, LARGEST_MU = 1e-300, 1e100  # beyond, squares leave the range of doubles
MU_ULPS = 2.0  # relative error of mu, in units of EPS = 2^-52, that the bounds cover unless told otherwise
_MILLS_ULPS = 8.0  # erfcx: at most 3.9 measured over 70 000 points against balls; plus the rounding of x / sqrt(2)
_LARGEST_SCORE = 1e150  # beyond, the square of a normal deviate overflows
_LARGEST_EPSILON = 1e190  # up to here the mu that belongs to it stays below LARGEST_MU / 2
_SHARPEST_MU = 1e14  # beyond, one ulp of epsilon = mu^2/2 takes delta from 1 to nothing
_NEAREST_ONE = 1e-300  # -log of the largest delta below 1 whose mu is sought
_LOWEST_LOG = -1e298  # no logarithm of a tail is inverted below
_ROOT_HALF_PI = math.sqrt(math.pi / 2)
_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)
_TAYLOR_TERMS = 17  # last power of h kept in the sum over odd k


def mills(x: ArrayLike) -> Floats:
    """Mills ratio Phi(-x) / phi(x), within 8 ulps for x >= 0 (inf where it overflows, x < -37.5).

    >>> round(float(mills(0.0)), 12)
    1.253314137316
    """
    return np.asarray(_ROOT_HALF_PI * erfcx(np.asarray(x, dtype=np.float64) * math.sqrt(0.5)))


def log_normal_tail(x: ArrayLike) -> tuple[Floats, Floats]:
    """Certified (lower, upper) bounds of log Phi(-x) = log P(N(0,1) > x), any real x.

    For x >= 0 it is -x^2/2 - log sqrt(2 pi) + log m(x); for x < 0 it is log1p(-phi(x) m(-x)).

    >>> lower, upper = log_normal_tail(40.0)
    >>> bool(lower <= -804.608442013754 <= upper), bool(upper - lower < 1e-11)
    (True, True)
    """
    x = np.asarray(x, dtype=np.float64)
    size = np.minimum(np.abs(x), _LARGEST_SCORE)
    high, low = two_product(size, size)
    with np.errstate(under="ignore"):
        log_body = np.log(mills(size)) - _LOG_ROOT_TWO_PI - 0.5 * low
        logged = -0.5 * high + log_body
        error = EPS * (np.abs(logged) + (FUNCTION_ULPS + 1) * (np.abs(log_body) + 1) + _MILLS_ULPS + 4)
        far = np.exp(logged)
        near = np.log1p(-np.minimum(far, 0.5))
        near_error = 2.2 * far * (error + 2 * FUNCTION_ULPS * EPS)  # of exp, and of log1p, which is below 1.4 far
    negative = x < 0
    value, error = np.where(negative, near, logged), np.where(negative, near_error, error)
    lower, upper = down(value - error), np.minimum(up(value + error), 0.0)
    return np.where(np.abs(x) > size, np.where(negative, lower, -np.inf), lower), upper


# -- the profile ---------------------------------------------------------------------------------------------


def log_gaussian_delta(mu: ArrayLike, epsilon: ArrayLike, mu_ulps: float = MU_ULPS) -> tuple[Floats, Floats]:
    r"""Certified (lower, upper) bounds of log( Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2) ), any real
    epsilon.

    The bounds hold for every mu' within ``mu_ulps`` * 2^-52 (relative) of ``mu``: delta increases with mu,
    since d delta / d mu = phi(x) > 0, so the lower bound is taken at the lower end and the upper bound at
    the upper end. mu in [1e-300, 1e100].

    >>> lower, upper = log_gaussian_delta(1.0, 0.0)
    >>> bool(lower <= -0.95991633369562232 <= upper), bool(upper - lower < 2e-14)
    (True, True)
    """
    mu, epsilon = np.broadcast_arrays(np.asarray(mu, dtype=np.float64), np.asarray(epsilon, dtype=np.float64))
    if not np.all((mu >= SMALLEST_MU) & (mu <= LARGEST_MU)):
        raise ValueError(f"mu must be in [{SMALLEST_MU}, {LARGEST_MU}], got {mu}")
    shape = mu.shape
    mu, epsilon = mu.ravel(), epsilon.ravel()
    if mu_ulps > 0:
        ends = np.concatenate([down(mu, mu_ulps), up(mu, mu_ulps)])
        lower, upper = _log_delta_bounds(ends, np.concatenate([epsilon, epsilon]))
        lower, upper = lower[: mu.size], upper[mu.size :]
    else:
        lower, upper = _log_delta_bounds(mu, epsilon)
    return lower.reshape(shape), upper.reshape(shape)


def _log_delta_bounds(mu: Floats, epsilon: Floats) -> tuple[Floats, Floats]:
    """Flat arrays, any real epsilon, mu exact."""
    value, error = _log_delta_positive(mu, np.abs(epsilon))
    lower, upper = down(value - error), np.minimum(up(value + error), 0.0)
    # with c = epsilon/mu beyond 1e150, x = c - mu/2 >= 5e149, since mu <= 1e100: log delta <= -x^2/2 < -1e299
    vast = np.abs(epsilon) > _LARGEST_SCORE * mu
    lower, upper = (
        np.where(vast, -np.inf, lower),
        np.where(vast, np.where(np.isinf(epsilon), -np.inf, -1e299), upper),
    )
    if not (epsilon < 0).any():
        return lower, upper
    mirrored_lower, mirrored_upper = mirrored(epsilon, lower, False), mirrored(epsilon, upper, True)
    return np.where(epsilon < 0, mirrored_lower, lower), np.where(epsilon < 0, mirrored_upper, upper)


def mirrored(epsilon: Floats, log_delta: Floats, upwards: bool) -> Floats:
    """log(1 - e^eps + e^eps delta) for eps < 0 from log delta(-eps), rounded up or down.

    Near 1 it is log1p(-e^eps (1 - delta)); otherwise a sum of two positive terms. Each is within 10 ulps of
    its argument, two functions and three roundings, plus |log delta| ulps on a term that is delta times the
    other: |l| e^l <= 0.37.
    """
    negative = np.minimum(epsilon, 0.0)
    with np.errstate(under="ignore", divide="ignore"):
        gap = np.exp(negative) * -np.expm1(log_delta)
        gap = np.maximum(down(gap, 10), 0.0) if upwards else up(gap, 10)
        total = -np.expm1(negative) + np.exp(negative + log_delta)
        total = np.minimum(up(total, 10), 1.0) if upwards else down(total, 10)
        value = np.where(gap < 0.5, np.log1p(-np.minimum(gap, 0.5)), np.log(np.maximum(total, 0.0)))
    return np.minimum(up(value, FUNCTION_ULPS), 0.0) if upwards else down(value, FUNCTION_ULPS)


def _log_delta_positive(mu: Floats, epsilon: Floats) -> tuple[Floats, Floats]:
    """(log delta, absolute error) for epsilon >= 0; the caller handles epsilon / mu beyond 1e150."""
    epsilon = np.minimum(epsilon, _LARGEST_SCORE * mu)
    c, h = epsilon / mu, 0.5 * mu
    high, low = two_product(c, mu)
    c_low = ((epsilon - high) - low) / mu  # c + c_low = epsilon / mu to twice the precision
    x, x_low = two_sum(c, -h)
    x_low = x_low + c_low
    direct = mu >= np.maximum(0.5, 0.25 * c)
    out, error = np.empty_like(mu), np.empty_like(mu)
    below = direct & (x + x_low < 0)
    if below.any():
        out[below], error[below] = _near_one(x[below] + x_low[below], c[below] + h[below])
    rest = ~below
    if rest.any():
        slope, relative = _mills_slope(c[rest], h[rest], x[rest] + x_low[rest], direct[rest])
        square, square_low = two_product(x[rest], x[rest])
        log_slope, log_mu = np.log(slope), np.log(mu[rest])
        body = (log_slope + log_mu) - _LOG_ROOT_TWO_PI - (0.5 * square_low + x[rest] * x_low[rest])
        value = -0.5 * square + body
        out[rest] = value
        # the last sum; log and the constant; D; what is left of c below double-double, times d log delta /
        # dx <= y + 1
        logs = np.abs(log_slope) + np.abs(log_mu) + 2
        error[rest] = EPS * (np.abs(value) + (FUNCTION_ULPS + 1) * logs + relative + EPS * (c[rest] + h[rest] + 1) ** 2)
    return out, error


def _near_one(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """x < 0 <= y, mu >= 0.5: log1p(-s), s = Phi(x) + phi(x) m(y) = phi(x) (m(-x) + m(y)), at most 0.86."""
    with np.errstate(under="ignore"):
        s = np.exp(-0.5 * x * x - _LOG_ROOT_TWO_PI) * (mills(-x) + mills(y))
    relative = EPS * (2 * np.minimum(x * x, 1500.0) + _MILLS_ULPS + FUNCTION_ULPS + 4)
    value = np.log1p(-s)
    return value, relative * s / (1 - s) * 1.01 + FUNCTION_ULPS * EPS * np.abs(value)


def _mills_slope(c: Floats, h: Floats, x: Floats, direct: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """(D / mu, relative error in units of EPS), each of the three ways on its domain; ``direct`` is the
    first's.
    """
    out, error = np.empty_like(c), np.empty_like(c)
    series = ~direct & (c >= 2)
    taylor = ~direct & (c < 2)
    if direct.any():
        # m(y) <= 0.79 m(x) here, so the difference loses a factor of at most 8.1
        first, second = mills(x[direct]), mills(c[direct] + h[direct])
        out[direct] = (first - second) / (2.0 * h[direct])
        error[direct] = (_MILLS_ULPS + 2) * (first + second) / (first - second) + 1
    if series.any():
        out[series], error[series] = _by_continued_fraction(c[series], h[series])
    if taylor.any():
        out[taylor], error[taylor] = _by_recursion(c[taylor], h[taylor])
    return out, error


def _by_continued_fraction(c: Floats, h: Floats) -> tuple[Floats, Floats]:
    """c >= 2 and h <= max(c/8, 1/4).

    Integration by parts: M_{k+1} = k M_{k-1} - c M_k, so r_k = M_k / M_{k-1} = k / (c + r_{k+1}), and
    M_0 = 1 / (c + r_1). Backwards each step multiplies a relative error by r/(c + r) < 1. r_k increases in k
    (Cauchy-Schwarz), hence r_k < (sqrt(c^2 + 4k) - c) / 2, which starts the recursion within a factor
    1 + 1/(2k); the start is chosen so that less than 4e-18 remains in r_1 (the product of the factors at
    c = 2, the worst). Terms of the sum fall by (h / (c + r))^2 <= 1/64; those beyond k = 17 are below 6e-17.
    """
    start = _TAYLOR_TERMS + 3 + math.ceil((18.0 / float(c.min())) ** 2)
    # dividing r_k by k keeps the sum's terms apart from factorials: h^k M_k / k! = M_0 prod h / (c + r_{j+1})
    r = 2.0 * start / (c + np.sqrt(c * c + 4.0 * start))
    shares = []
    for k in range(start - 1, 0, -1):
        share = 1.0 / (c + r)
        r = k * share
        if k <= _TAYLOR_TERMS:
            shares.append(share)
    total = np.ones_like(c)
    for k in range(_TAYLOR_TERMS - 1, 1, -2):  # Horner: 1 + f_2 f_3 (1 + f_4 f_5 (...)), f_k = h share_k
        total = 1.0 + (h * shares[_TAYLOR_TERMS - k]) * (h * shares[_TAYLOR_TERMS - k - 1]) * total
    return shares[-1] / (c + r) * total, np.full_like(c, 12.0)


def _by_recursion(c: Floats, h: Floats) -> tuple[Floats, Floats]:
    """0 <= c < 2 and h < 1/4: M_{k+1} = k M_{k-1} - c M_k upwards from M_0 = m(c), M_1 = 1 - c m(c) >= 0.157.

    The error of M_1, (10 c M_0 + 1) EPS, rules: those of M_3, M_5, ... grow by at most 8 each but enter
    with h^2/6 = 0.0105, h^4/120, ..., less than a tenth together. The part beyond k = 17 is below 1e-19 of
    the sum.
    """
    before = mills(c)
    current = 1.0 - c * before
    relative = 1.1 * (10 * c * before + 1) / current + 8
    factor, total = np.ones_like(h), current
    for k in range(1, _TAYLOR_TERMS):
        before, current = current, k * before - c * current
        factor = factor * h / (k + 1)
        if k % 2 == 0:
            total = total + factor * current
    return total, relative


# -- inverses ------------------------------------------------------------------------------------------------
# A Newton search finds a point, to which no claim is attached; each end is then moved outwards until the
# certified bounds of the function itself prove it.


def gaussian_epsilon(mu: ArrayLike, delta: ArrayLike, mu_ulps: float = MU_ULPS) -> tuple[Floats, Floats]:
    """Certified (lower, upper) bounds of the smallest epsilon >= 0 with delta_mu(epsilon) <= delta; inf at
    delta = 0.

    >>> lower, upper = gaussian_epsilon(1.0, 1e-5)
    >>> bool(lower <= 4.377178095681224628 <= upper), bool(upper - lower < 1e-13)
    (True, True)
    """
    return _epsilon(mu, *_log_bounds(delta), mu_ulps)


def gaussian_epsilon_log(mu: ArrayLike, log_delta: ArrayLike, mu_ulps: float = MU_ULPS) -> tuple[Floats, Floats]:
    """:func:`gaussian_epsilon` at delta = exp(log_delta), which may lie far below the smallest double."""
    target = np.asarray(log_delta, dtype=np.float64)
    return _epsilon(mu, target, target, mu_ulps)


def gaussian_mu(epsilon: ArrayLike, delta: ArrayLike) -> tuple[Floats, Floats]:
    """Certified (lower, upper) bounds of the mu with delta_mu(epsilon) = delta, epsilon >= 0; 0 at delta =
    0, inf at 1.

    >>> lower, upper = gaussian_mu(0.0, 0.1)
    >>> bool(lower <= 0.25132269371014806842 <= upper), bool(upper - lower < 1e-14)
    (True, True)
    """
    return _mu(epsilon, *_log_bounds(delta))


def gaussian_mu_log(epsilon: ArrayLike, log_delta: ArrayLike) -> tuple[Floats, Floats]:
    """:func:`gaussian_mu` at delta = exp(log_delta)."""
    target = np.asarray(log_delta, dtype=np.float64)
    return _mu(epsilon, target, target)


def gaussian_mu_at_zero(log_rest: ArrayLike, ulps: float = 4.0) -> tuple[Floats, Floats]:
    """Certified bounds of the mu with 1 - delta_mu(0) = exp(log_rest), where log_rest <= 0 is known to
    within ``ulps``.

    1 - delta_mu(0) = 2 Phi(-mu/2), so mu = -2 Phi^{-1}(exp(log_rest) / 2); accurate at both ends.
    """
    log_rest = np.asarray(log_rest, dtype=np.float64)
    high, low = np.minimum(up(log_rest, ulps), 0.0), down(log_rest, ulps)
    if np.all(log_rest > -1.0):
        least, most = down(-np.expm1(high), FUNCTION_ULPS), up(-np.expm1(low), FUNCTION_ULPS)
        return gaussian_mu(0.0, np.maximum(least, 0.0))[0], gaussian_mu(0.0, most)[1]
    if np.all(log_rest <= -1.0):
        lower, upper = (
            normal_tail_quantile(up(high - math.log(2), 2))[0],
            normal_tail_quantile(down(low - math.log(2), 2))[1],
        )
        return 2.0 * lower, 2.0 * upper
    near, far = (gaussian_mu_at_zero(part, ulps) for part in (np.maximum(log_rest, -0.5), np.minimum(log_rest, -1.0)))
    return np.where(log_rest > -1.0, near[0], far[0]), np.where(log_rest > -1.0, near[1], far[1])


def gaussian_mu_of_pure(epsilon: float) -> float:
    """-2 Phi^{-1}(1/(1 + e^epsilon)), rounded up: the mu with 1 - delta_mu(0) = 2/(1 + e^epsilon).

    >>> round(gaussian_mu_of_pure(1.0), 9)
    1.232035385
    """
    if epsilon > -_LOWEST_LOG:  # Phi(-x) <= e^{-x^2/2}/2, and it is at least e^-epsilon/2
        return up(2 * math.sqrt(2) * math.sqrt(epsilon), 8)
    log_rest = (
        -math.log1p(0.5 * math.expm1(epsilon))
        if epsilon < 1
        else math.log(2) - epsilon - math.log1p(math.exp(-epsilon))
    )
    return float(gaussian_mu_at_zero(np.asarray(log_rest), 8)[1])


def gaussian_mu_slope(epsilon: ArrayLike, mu: ArrayLike) -> Floats:
    """d mu / d epsilon along delta_mu(epsilon) = const: m(epsilon/mu + mu/2), at most sqrt(pi/2).

    [Liu et al. 2022, Thm. 4.2, corrected: docs/errata.md]

    >>> round(float(gaussian_mu_slope(0.0, 1e-9)), 6)
    1.253314
    """
    mu = np.asarray(mu, dtype=np.float64)
    return mills(np.asarray(epsilon, dtype=np.float64) / mu + 0.5 * mu)


def normal_tail_quantile(log_tail: ArrayLike) -> tuple[Floats, Floats]:
    """Certified (lower, upper) bounds of the x with Phi(-x) = exp(log_tail), log_tail < 0.

    >>> lower, upper = normal_tail_quantile(math.log(0.025))
    >>> round(float(lower), 12), round(float(upper), 12)
    (1.95996398454, 1.95996398454)
    """
    log_tail = np.asarray(log_tail, dtype=np.float64)
    target = np.maximum(log_tail, _LOWEST_LOG)
    point = np.asarray(-ndtri_exp(target))
    with np.errstate(over="ignore"):
        step = EPS * (
            8 + np.abs(point) + np.abs(target) / np.maximum(np.exp(-0.5 * point * point - target), np.abs(point))
        )
    lower = _move(point, -step, lambda x: log_normal_tail(x)[0] >= target)
    upper = _move(point, step, lambda x: log_normal_tail(x)[1] <= target)
    # beyond, the lower bound stays and Phi(-x) <= e^{-x^2/2} gives the upper one
    upper = np.where(log_tail < target, up(math.sqrt(2) * np.sqrt(-log_tail), 8), upper)
    return np.where(np.isneginf(log_tail), np.inf, lower), upper


def _log_bounds(delta: ArrayLike) -> tuple[Floats, Floats]:
    """(lower, upper) of log delta; exact at 0 and 1."""
    delta = np.asarray(delta, dtype=np.float64)
    with np.errstate(divide="ignore"):
        logged = np.log(delta)
    whole = (delta == 0) | (delta == 1)
    lower, upper = down(logged, FUNCTION_ULPS), np.minimum(up(logged, FUNCTION_ULPS), 0.0)
    return np.where(whole, logged, lower), np.where(whole, logged, upper)


def _epsilon(mu: ArrayLike, target_lower: Floats, target_upper: Floats, mu_ulps: float) -> tuple[Floats, Floats]:
    mu, low, high = np.broadcast_arrays(np.asarray(mu, dtype=np.float64), target_lower, target_upper)
    at_zero = log_gaussian_delta(mu, 0.0, mu_ulps)
    # where the answer is known without a search, search for another and forget it
    known = (at_zero[1] <= low) | np.isneginf(high)
    aim = np.where(known, at_zero[1] - 1.0, low)
    point = 0.5 * mu * mu + mu * np.sqrt(-2.0 * aim)  # right of the root: delta <= exp(-x^2/2) for x >= 0
    sharp = mu > _SHARPEST_MU  # the doubles near the root are too far apart for a slope
    for _ in range(200):
        middle = log_gaussian_delta(mu, point, 0.0)[0]
        slope = _log_slope(mu, point, middle)
        # log delta is concave: the steps go left and never pass
        after = np.where(sharp, point, np.maximum(point + (middle - aim) / slope, 0.0))
        done = np.abs(after - point) <= 4 * EPS * (point + after)
        point = after
        if done.all():
            break
    slope = _log_slope(mu, point, aim)
    step = EPS * (8 * point + np.where(sharp, 0.0, 4 * np.abs(aim) / slope))
    upper = _move(point, step, lambda e: known | (log_gaussian_delta(mu, e, mu_ulps)[1] <= low))
    lower = _move(
        point,
        -step,
        lambda e: known | (e <= 0) | (log_gaussian_delta(mu, np.maximum(e, 0.0), mu_ulps)[0] >= high),
    )
    settled = np.where(np.isneginf(high), np.inf, 0.0)
    return np.where(known, settled, np.maximum(lower, 0.0)), np.where(known, settled, upper)


def _log_slope(mu: Floats, epsilon: Floats, log_delta: Floats) -> Floats:
    """-d log delta / d epsilon = e^eps Phi(-y) / delta = phi(x) m(y) / delta."""
    x = epsilon / mu - 0.5 * mu
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        log_slope = -0.5 * x * x - _LOG_ROOT_TWO_PI + np.log(mills(epsilon / mu + 0.5 * mu)) - log_delta
    return np.exp(np.clip(log_slope, -700.0, 700.0))


def _mu(epsilon: ArrayLike, target_lower: Floats, target_upper: Floats) -> tuple[Floats, Floats]:
    asked = np.asarray(epsilon, dtype=np.float64)
    # mu rises with epsilon: beyond the largest one its lower bound still holds, and there is no upper one
    beyond = asked > _LARGEST_EPSILON
    epsilon, low, high = np.broadcast_arrays(np.minimum(asked, _LARGEST_EPSILON), target_lower, target_upper)
    nothing, everything = np.isneginf(high), low >= 0
    # 1 - delta is outside double range: a delta a little smaller bounds mu from below, and nothing does from above
    touching = ~everything & (high > -_NEAREST_ONE)
    low, high = np.where(touching, np.minimum(low, -_NEAREST_ONE), low), np.where(touching, -_NEAREST_ONE, high)
    aim = np.where(nothing | everything, -1.0, 0.5 * low + 0.5 * high)
    chernoff = np.sqrt(-2.0 * aim)
    with np.errstate(under="ignore"):
        at_zero = 2 * math.sqrt(2) * erfinv(np.minimum(np.exp(aim), 1 - EPS))
    # both are below the root: delta <= exp(-x^2/2), and delta_mu(eps) <= delta_mu(0)
    start = np.maximum(2 * epsilon / (chernoff + np.sqrt(chernoff**2 + 2 * epsilon)), at_zero)
    log_mu = np.log(np.maximum(start, 2 * SMALLEST_MU))
    for _ in range(200):
        mu = np.exp(log_mu)
        middle = log_gaussian_delta(mu, epsilon, 0.0)[0]
        # Newton for log(-log delta) as a function of log mu: nearly straight where delta is small and where
        # it is near 1
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slope = np.exp(np.minimum(middle - _log_density(mu, epsilon), 700.0)) / mu
            step = np.log(middle / aim) * -middle * slope
        # back from where 1 - delta has underflowed
        step = np.where(middle > -1e-307, -0.1, np.clip(step, -1.0, 1.0))
        log_mu = np.clip(log_mu + step, math.log(2 * SMALLEST_MU), math.log(LARGEST_MU / 2))
        if np.all(np.abs(step) <= 16 * EPS):
            break
    point = np.exp(log_mu)
    spread = np.exp(np.minimum(aim - _log_density(point, epsilon), 700.0))  # d mu / d log delta
    step = EPS * (8 * point + 4 * np.abs(aim) * spread + 8 * np.minimum(spread, point))
    step = np.minimum(step, 1e-3 * point)  # a first guess, which is doubled where it does not suffice
    known = nothing | everything

    def bounds(mu: Floats) -> tuple[Floats, Floats]:
        return log_gaussian_delta(np.clip(mu, SMALLEST_MU, LARGEST_MU), epsilon, 0.0)

    upper = _move(point, step, lambda mu: known | (bounds(mu)[0] >= high))
    lower = _move(point, -step, lambda mu: known | (mu < SMALLEST_MU) | (bounds(mu)[1] <= low))
    lower = np.where(lower < SMALLEST_MU, 0.0, lower)
    whole = np.where(nothing, 0.0, np.inf)
    return np.where(known, whole, lower), np.where(known, whole, np.where(beyond | touching, np.inf, upper))


def _log_density(mu: Floats, epsilon: Floats) -> Floats:
    """log phi(x) = log d delta / d mu."""
    x = epsilon / mu - 0.5 * mu
    return -0.5 * x * x - _LOG_ROOT_TWO_PI


def _move(point: Floats, step: Floats, proved: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """point + step, with the step doubled where the claim is not yet proved."""
    for _ in range(1200):
        moved = np.asarray(point + step)
        failed = ~proved(moved)
        if not failed.any():
            return moved
        step = np.where(failed, 2.0 * step, step)
    raise ArithmeticError("no certified bound was found")  # not reached: every claim holds far enough out
