"""Error bars: how wide the noise is, and the noise that is as wide as asked for.

Half-widths are those that 95 % of the draws stay within, never fewer. For the discrete Gaussian, sums are
compared with integrals: sum over x > w of exp(-x^2 / 2s^2) <= integral from w, and the normaliser is at least
sqrt(2 pi) s [Canonne, Kamath, Steinke 2020, Fact 18]; so P(|Z| > w) <= 2 (1 - Phi(w / s)). For narrow noise the
sums are taken themselves. The discrete Laplace has P(|Z| > w) = 2 a^(w+1) / (1 + a), a = exp(-1 / scale).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dptally.errors import InvalidArgument
from dptally.numerics.special import ndtri

__all__ = ["LEVEL", "all_at_once", "ratio_width", "tail", "widest", "width"]

LEVEL = 0.95
_NARROW = 200.0
_SAFE = 1 + 2.0**-40  # rounding of the functions below is far smaller


def tail(gaussian: bool, parameter: float, steps: int) -> float:
    """An upper bound of P(|Z| > steps), tight to rounding for narrow noise."""
    if not gaussian:
        decay = -1 / parameter
        return min(1.0, 2 * math.exp((steps + 1) * decay) / (1 + math.exp(decay)) * _SAFE)
    if parameter < _NARROW:
        reach = steps + 1 + math.ceil(40 * parameter)
        squares = np.square(np.arange(0, reach + 1, dtype=np.float64) / parameter) / 2
        weights = np.exp(-squares)
        whole = 2 * math.fsum(weights) - 1
        return min(1.0, 2 * math.fsum(weights[steps + 1 :]) / whole * _SAFE)
    return min(1.0, math.erfc(steps / parameter / math.sqrt(2)) * _SAFE)


@lru_cache(maxsize=1024)
def width(gaussian: bool, parameter: float, level: float = LEVEL) -> int:
    """The smallest w with P(|Z| <= w) >= level, in steps."""
    miss = 1 - level
    guess = parameter * (-ndtri(miss / 2) if gaussian else -math.log(miss))
    steps = max(math.floor(guess), 0)
    while tail(gaussian, parameter, steps) > miss:
        steps += max(1, steps >> 30)
    while steps > 0 and tail(gaussian, parameter, steps - 1) <= miss:
        steps -= 1
    return steps


def all_at_once(gaussian: bool, parameter: float, cells: int, level: float = LEVEL) -> int:
    """The half-width within which all of ``cells`` independent draws stay with probability ``level``."""
    return width(gaussian, parameter, level if cells == 1 else math.nextafter(level ** (1 / cells), 1.0))


def widest(gaussian: bool, steps: Fraction) -> float:
    """The largest noise parameter found with P(|Z| > steps) <= 5 %: never one that is too large."""
    whole = math.floor(steps)
    if whole < 1:
        raise InvalidArgument("within", "at least one step of what is counted (1 for counts)", float(steps))
    miss = 1 - LEVEL
    factor = -ndtri(miss / 2) if gaussian else -math.log(miss)
    low, high = whole / factor / 2, (whole + 1) / factor * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(gaussian, middle, whole) <= miss else (low, middle)
    return low


def ratio_width(gaussian: bool, first: float, second: float, level: float = LEVEL) -> float:
    """t with P(|X + Y| > t) <= 1 - level for independent noise X, Y of these parameters (continuous laws).

    For Laplace noise of scales a > b: P(|X + Y| > t) = (a^2 e^(-t/a) - b^2 e^(-t/b)) / (a^2 - b^2).
    """
    if gaussian:
        return float(-ndtri((1 - level) / 2)) * math.hypot(first, second)
    a, b = max(first, second), min(first, second)
    return a * _laplace_width(math.ceil(256 * b / a), level)


@lru_cache(maxsize=1024)
def _laplace_width(ratio: int, level: float) -> float:
    """The half-width for scales 1 and ratio / 256; it grows with the ratio."""
    b = ratio / 256
    if b == 0:
        return -math.log(1 - level)

    def beyond(t: float) -> float:
        if ratio == 256:
            return math.exp(-t) * (1 + t / 2)
        return (math.exp(-t) - b * b * math.exp(-t / b)) / (1 - b * b)

    low, high = 0.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) <= 1 - level else (middle, high)
    return high
