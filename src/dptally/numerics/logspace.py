"""Sums and differences of tiny and huge numbers through their logarithms, accurate near zero, real or
complex.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dptally.numerics.arrays import Numbers
from dptally.numerics.complexes import log1p_complex
from dptally.numerics.rounding import FUNCTION_ULPS, Floats, down, up

__all__ = [
    "LOG1MEXP_ULPS",
    "exp_divided_difference",
    "expm1_ratio",
    "log1mexp",
    "log1p",
    "log_sum",
    "logdiffexp",
    "logsumexp",
    "sinhc_divided_difference",
    "sinhc_minus_one",
    "widened",
]

LOG1MEXP_ULPS = 3 * FUNCTION_ULPS


def log1mexp(x: ArrayLike) -> Floats:
    """log(1 - e^x) for x <= 0, within LOG1MEXP_ULPS: log(-expm1(x)) near 0, log1p(-e^x) far from it; -inf at 0.

    The logarithm errs by F ulps, and its argument by F, which count 1/log 2 times at x = -log 2 and less elsewhere.

    >>> float(log1mexp(-1e-20)), float(log1mexp(-50.0))
    (-46.051701859880914, -1.9287498479639178e-22)
    """
    x = np.asarray(x, dtype=np.float64)
    near = x > -0.6931471805599453
    with np.errstate(divide="ignore", under="ignore"):
        small = np.log(-np.expm1(np.where(near, x, -1.0)))
        large = np.log1p(-np.exp(np.where(near, -1.0, x)))
    return np.where(near, small, large)


def logdiffexp(a: ArrayLike, b: ArrayLike) -> Floats:
    """log(e^a - e^b) for a >= b; -inf where they are equal.

    >>> float(logdiffexp(1000.0, 999.0))
    999.5413248546129
    """
    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    gap = np.where(np.isneginf(b), -np.inf, np.where(a == b, 0.0, b - np.where(np.isneginf(a), 0.0, a)))
    return a + log1mexp(gap)


def logsumexp(a: ArrayLike, axis: int | None = None) -> Floats:
    """log of the sum of e^a along an axis; -inf for an empty sum.

    >>> float(logsumexp([-1000.0, -1000.0]))
    -999.3068528194401
    """
    a = np.asarray(a, dtype=np.float64)
    if not a.size:
        return np.asarray(-np.inf)
    top = np.max(a, axis=axis, keepdims=True)
    finite = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        total = np.log(np.sum(np.exp(a - finite), axis=axis, keepdims=True))
    out = finite + total
    return np.asarray(np.squeeze(out, axis=axis))


def log_sum(logs: Sequence[float]) -> float:
    """log of the sum of e^x over a few numbers, to a few ulps; -inf for none.

    >>> log_sum([-1000.0, -1000.0])
    -999.3068528194401
    """
    top = max(logs, default=-math.inf)
    return top + math.log(math.fsum(math.exp(x - top) for x in logs)) if math.isfinite(top) else top


def log1p(x: Numbers) -> Numbers:
    """log(1 + x), relative to |x| near zero, for real and for complex x (numpy's complex log1p is not);
    -inf at -1.
    """
    x = np.asarray(x)
    if np.iscomplexobj(x):
        return log1p_complex(x)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(x))


def expm1_ratio(x: Numbers) -> Numbers:
    """(e^x - 1) / x, continued by 1 at zero; real or complex, Re x < 700.

    >>> float(expm1_ratio(np.asarray(0.0)))
    1.0
    """
    x = np.asarray(x)
    safe = np.where(x == 0, 1.0, x)
    with np.errstate(under="ignore"):
        return np.where(x == 0, 1.0, np.expm1(safe) / safe)


def exp_divided_difference(a: Numbers, b: Numbers) -> Numbers:
    """The second divided difference exp[0, a, b] for |a|, |b| <= 1, to a few ulps: sum of h_n(a, b) / (n +
    2)!.

    h_n is the sum of a^i b^(n-i); the terms left out (n > 20) are below 1e-19.
    """
    power, homogeneous = np.ones_like(a), np.ones_like(a)
    total, factorial = 0.5 * homogeneous, 2.0
    for n in range(1, 21):
        power = power * a
        homogeneous = power + b * homogeneous
        factorial *= n + 2
        total = total + homogeneous / factorial
    return total


def sinhc_minus_one(x: Numbers) -> Numbers:
    """sinh(x)/x - 1 for |x| <= 1.5, to a few ulps: x^2/6 (1 + x^2/20 (1 + x^2/42 (...)))."""
    square = x * x
    total = np.ones_like(x)
    for n in range(11, 1, -1):
        total = 1.0 + square / (2 * n * (2 * n + 1)) * total
    return square / 6.0 * total


def sinhc_divided_difference(a: Numbers, b: Numbers) -> Numbers:
    """(f(a) - f(b)) / (a - b) for f(x) = sinh(x)/x, |a|, |b| <= 1.5: sum over odd m of h_m(a, b) / (m +
    2)!.
    """
    power, homogeneous = np.ones_like(a * b), np.ones_like(a * b)
    total, factorial = np.zeros_like(power), 2.0
    for m in range(1, 24):
        power = power * a
        homogeneous = power + b * homogeneous
        factorial *= m + 2
        if m % 2 == 1:
            total = total + homogeneous / factorial
    return total


def widened(lower: Floats, upper: Floats, ulps: float) -> tuple[Floats, Floats]:
    """(lower, upper) of the log of a probability, moved outwards; log 0 stays exact and nothing passes log
    1.
    """
    with np.errstate(invalid="ignore"):
        return (
            np.where(np.isneginf(lower), lower, down(np.asarray(lower), ulps)),
            np.where(np.isneginf(upper), upper, np.minimum(up(np.asarray(upper), ulps), 0.0)),
        )
