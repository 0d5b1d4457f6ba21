r"""E R^k of one epoch at the integers k, R = S/t, and bounds of E R^p between and below them.

With E Y^j = exp(m^2 j(j-1)/2), E S^k / k! is the coefficient of x^k in (sum_j E[Y^j] x^j / j!)^t: positive terms,
summed in logarithms. For t >= k by the recurrence of powers, c_k = (1/k) sum_j (j(t+1) - k) a_j c_{k-j}, with
positive terms too; else by squaring. log E R^p is convex in p, zero at 0 and 1; and R is at least the geometric
mean of its ratios. Derivations: docs/batching.md, "Powers of the ratio".
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dptally.checks import Floats
from dptally.numerics.rounding import EPS
from dptally.numerics.special import gammaln

__all__ = ["log_integer_moments", "log_power_upper"]

_SHIFT_ULPS = 2.0


@lru_cache(maxsize=64)
def log_integer_moments(shift: float, steps: int, most: int) -> tuple[Floats, Floats]:
    """log E R^k for k = 0 .. most, and bounds of the errors."""
    k = np.arange(most + 1.0)
    factorials = gammaln(k + 1)
    series = 0.5 * shift**2 * k * (k - 1) - factorials
    if steps >= most:
        logs, weight = _by_recurrence(series, steps), 1.0
    else:
        logs, weight = _by_squaring(series, steps), 2.0 * steps / max(most, 1)
    value = logs + factorials - k * math.log(steps)
    size = np.maximum.accumulate(np.abs(series) + np.abs(logs) + factorials + k * math.log(steps))
    error = EPS * (1 + weight) * (k + 1) * (k + 16 + (8 + 4 * _SHIFT_ULPS) * size)
    value[: min(2, most + 1)] = 0.0
    error[: min(2, most + 1)] = 0.0
    return value, error


def _log_sum(logs: Floats) -> Floats:
    top = logs.max(axis=-1)
    return np.asarray(top + np.log(np.exp(logs - top[..., None]).sum(axis=-1)))


def _by_recurrence(series: Floats, steps: int) -> Floats:
    out = np.zeros(len(series))
    j = np.arange(1.0, len(series))
    for k in range(1, len(series)):
        terms = np.log(j[:k] * (steps + 1.0) - k) + series[1 : k + 1] + out[k - 1 :: -1][:k]
        out[k] = float(_log_sum(terms)) - math.log(k)
    return out


def _by_squaring(series: Floats, steps: int) -> Floats:
    result, power = None, series
    while steps:
        if steps & 1:
            result = power if result is None else _product(result, power)
        steps >>= 1
        if steps:
            power = _product(power, power)
    assert result is not None
    return result


def _product(one: Floats, other: Floats) -> Floats:
    number = len(one)
    index = np.arange(number)[:, None] - np.arange(number)
    terms = np.where(index >= 0, one[None, :] + other[np.maximum(index, 0)], -np.inf)
    return _log_sum(terms)


def log_power_upper(shift: float, steps: int, power: Floats) -> Floats:
    """Upper bounds of log E R^p: chords of the integers for p > 1, nothing in [0, 1], the geometric mean for p < 0.

    Beyond the integers that are worth a sum: Jensen's inequality, R an average of ratios.
    """
    p = np.asarray(power, dtype=np.float64)
    alone = 0.5 * shift**2 * p * (p - 1)
    spread = 0.5 * shift**2 * np.abs(p) * (np.abs(p) / steps + 1)
    out = np.where(p > 1, alone, np.where(p < 0, np.minimum(spread, alone), 0.0)) * (1 + 16 * EPS)
    inside = (p > 1) & (p <= _MOST_INTEGERS)
    if inside.any():
        most = _rung(float(p[inside].max()))
        value, error = log_integer_moments(shift, steps, most)
        high = value + error
        chord = np.interp(p[inside], np.arange(most + 1.0), high)
        out[inside] = np.minimum(out[inside], chord + 8 * EPS * (1 + np.abs(chord)))
    return out


_MOST_INTEGERS = 512


def _rung(power: float) -> int:
    """How far the integers are taken: a power of two, so that few tables are made."""
    return int(2 ** math.ceil(math.log2(max(power, 8.0))))
