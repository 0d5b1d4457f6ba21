r"""How Poisson sampling at rate q moves a privacy profile, for every real epsilon, with directed rounding.

Let (P1, P0) dominate the mechanism with the record against without it. Sampling mixes the record in with
probability q [Zhu, Dong, Wang 2022, Optimal accounting of differential privacy via characteristic function,
Thm. 11; for e^eps >= 1 also Balle, Barthe, Gaboardi 2018, Privacy amplification by subsampling, Thm. 8]:

    remove: ((1-q) P0 + q P1, P0)        add: (P0, (1-q) P0 + q P1).

Write a = e^eps and H_a(P, Q) = E_P[(1 - a dQ/dP)+]. Collecting the factors of P1 and of P0 gives

    remove: H_a = q H_b(P1, P0),   b = (a - (1-q)) / q,                if a > 1-q;      H_a = 1 - a otherwise;
    add:    H_a = (1 - a(1-q)) H_b(P0, P1),   b = a q / (1 - a(1-q)),  if a(1-q) < 1;   H_a = 0 otherwise.

Each is a product of nonnegative factors: no difference of nearly equal numbers, so relative accuracy
survives at delta = 1e-300. The inner epsilon log b is only known to within rounding; a profile is
nonincreasing, so its value at either end of that interval bounds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache

import numpy as np

from dptally.checks import Floats
from dptally.numerics.decimals import LARGEST, around, exact, expm1, log1p, sixty_digits
from dptally.numerics.rounding import EPS, down, up

__all__ = [
    "add_factor",
    "add_inner",
    "log_profile_add",
    "log_profile_remove",
    "mixture",
    "mixture_bounds",
    "remove_inner",
]

Bounds = tuple[Floats, Floats]
Profile = Callable[[Floats], Bounds]

_LEAST = Decimal("-0.5")  # of A - 1: below, A is a sum of positive terms

# relative error allowed to one exp, log, expm1 or log1p with the arithmetic around it (numpy: below 4 ulps)
_ROUNDING = 8.0 * EPS


def _widened(value: Floats, error: Floats) -> Bounds:
    """value -/+ (error + relative rounding); infinite values stay as they are."""
    with np.errstate(invalid="ignore"):
        step = np.where(np.isfinite(value), error + _ROUNDING * np.abs(value), 0.0)
    return value - step, value + step


def mixture(rate: float, w: Floats) -> Bounds:
    """(A - 1, log A) for A = 1 - q + q e^w, each with relative accuracy; the first may overflow to inf."""
    log_rate = math.log(rate)
    with np.errstate(over="ignore", under="ignore"):
        x = np.where(w < 600.0, rate * np.expm1(np.minimum(w, 600.0)), np.exp(w + log_rate))
        near = np.log1p(np.clip(x, -0.5, 1e15))
        low = np.log((1.0 - rate) + rate * np.exp(np.minimum(w, 1.0)))
        far = w + log_rate + np.log1p((1.0 - rate) * np.exp(-np.maximum(w + log_rate, 30.0)))
    return x, np.select([w + log_rate > 30.0, x < -0.5], [far, low], near)


@lru_cache(maxsize=256)
def mixture_bounds(rate: float, w: float) -> tuple[float, float]:
    """The closest doubles around log(1 - q + q e^w) of these doubles; w may be infinite."""
    if w == math.inf:
        return w, w
    with sixty_digits():
        q = exact(rate)
        if w > LARGEST:
            low, high = around(exact(w) + q.ln())
            return low, math.nextafter(high, math.inf)
        x = q * expm1(exact(w)) if w > -math.inf else -q
        return around(log1p(x) if x > _LEAST else (1 - q + q * exact(w).exp()).ln())


def remove_inner(rate: float, epsilon: Floats) -> Bounds:
    """Bounds of log((e^eps - (1-q)) / q); -inf where e^eps <= 1-q, or for the lower end may be."""
    if rate == 1.0:
        return epsilon.copy(), epsilon.copy()
    log_rate, threshold = math.log(rate), math.log1p(-rate)
    # eps > 1/2: eps - log q + log(1 - (1-q) e^-eps)
    far = epsilon - log_rate + np.log1p((rate - 1.0) * np.exp(-np.maximum(epsilon, 0.5)))
    far_ends = _widened(far, _ROUNDING * (np.abs(epsilon) - log_rate + 1.0))
    # around 0: log1p((e^eps - 1)/q), whose argument is known to a relative rounding
    ratio = np.expm1(np.minimum(epsilon, 0.5)) / rate
    argument = np.maximum(ratio, -0.5)
    middle_ends = _widened(np.log1p(argument), _ROUNDING * np.abs(argument) / (1.0 + argument))
    # near the threshold: log((1-q)/q) + log(expm1(eps - log(1-q))), from either end of the difference
    gap, gap_error = epsilon - threshold, _ROUNDING * (np.abs(epsilon) - threshold)
    near_error = np.asarray(_ROUNDING * (1.0 - threshold - log_rate))
    ends = []
    for sign, far_end, middle_end in zip((-1.0, 1.0), far_ends, middle_ends, strict=True):
        with np.errstate(divide="ignore"):
            near = threshold - log_rate + np.log(np.expm1(np.clip(gap + sign * gap_error, 0.0, 700.0)))
        near_end = _widened(near, near_error)[int(sign > 0)]
        ends.append(np.select([epsilon > 0.5, ratio > -0.5], [far_end, middle_end], near_end))
    return ends[0], ends[1]


def log_profile_remove(rate: float, epsilon: Floats, inner: Profile, infinity_mass: float = 0.0) -> Bounds:
    """Bounds of the log of the finite part on the remove side, from that of (P1, P0) and its infinite mass.

    The finite part is H_a - q p: below the threshold 1 - a - q p, which is a lower bound above it as well.
    """
    low_at, high_at = remove_inner(rate, epsilon)
    above = low_at > -np.inf
    log_rate = math.log(rate)
    slack = np.asarray(_ROUNDING * (1.0 - log_rate))
    lower = _widened(log_rate + inner(np.where(above, high_at, 0.0))[0], slack)[0]
    upper = _widened(log_rate + inner(np.where(above, low_at, 0.0))[1], slack)[1]
    # at or below the threshold 1-q, or within rounding of it: there H moves by at most the rounding of a
    missing, at_infinity = -np.expm1(np.minimum(epsilon, 0.0)), rate * infinity_mass
    move = 0.0 if rate == 1.0 else np.where(np.isneginf(high_at), 0.0, -2.0 * math.log1p(-rate))
    error = _ROUNDING * (missing + at_infinity + move)
    plain = missing - at_infinity
    with np.errstate(divide="ignore"):
        plain_lower = np.log(np.maximum(plain - error, 0.0))
        plain_upper = np.log(np.maximum(plain, 0.0) + error)
    zero = np.asarray(0.0)
    return (
        np.where(above, lower, _widened(plain_lower, zero)[0]),
        np.minimum(np.where(above, upper, _widened(plain_upper, zero)[1]), 0.0),
    )


def add_factor(rate: float, epsilon: Floats) -> Bounds:
    """Bounds of log(1 - e^eps (1-q)); -inf where that is zero, or for the lower end may be."""
    if rate == 1.0:
        return np.zeros_like(epsilon), np.zeros_like(epsilon)
    threshold = -math.log1p(-rate)
    gap, error = threshold - epsilon, _ROUNDING * (np.abs(epsilon) + threshold)
    low, high = (_log_one_minus_exp(np.maximum(gap + sign * error, 0.0)) for sign in (-1.0, 1.0))
    return low[0], high[1]


def _log_one_minus_exp(y: Floats) -> Bounds:
    """Bounds of log(1 - e^-y) for y >= 0."""
    with np.errstate(divide="ignore"):
        value = np.where(y < 0.7, np.log(-np.expm1(-y)), np.log1p(-np.exp(-np.maximum(y, 0.7))))
    low, high = _widened(value, _ROUNDING * np.exp(-y))
    return low, np.minimum(high, 0.0)


def add_inner(rate: float, epsilon: Floats, factor: Bounds) -> Bounds:
    """Bounds of log(e^eps q / (1 - e^eps (1-q))) from those of its denominator; +inf where that is zero."""
    shift = epsilon + math.log(rate)
    error = _ROUNDING * (np.abs(epsilon) - math.log(rate))
    return _widened(shift - factor[1], error)[0], _widened(shift - factor[0], error)[1]


def log_profile_add(rate: float, epsilon: Floats, inner: Profile) -> Bounds:
    """Bounds of the log of the profile on the add side, given those of (P0, P1) with its infinite mass."""
    factor = add_factor(rate, epsilon)
    low_at, high_at = add_inner(rate, epsilon, factor)
    lower = factor[0] + inner(np.where(np.isposinf(high_at), 0.0, high_at))[0]
    upper = factor[1] + inner(np.where(np.isposinf(low_at), 0.0, low_at))[1]
    return (
        np.where(np.isneginf(factor[0]), -np.inf, down(lower)),
        np.where(np.isneginf(factor[1]), -np.inf, np.minimum(up(upper), 0.0)),
    )
