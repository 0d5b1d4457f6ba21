r"""What one Renyi order proves of (epsilon, delta), exactly: the optimum is attained by pairs on two points.

Let r = dP/dQ, a > 1 the order and E_Q[r^a] <= c = exp(K). For every 0 <= v < u the function

    g(r) = (r^a - a v^(a-1) r + (a-1) v^a) / s,      s = a (u^(a-1) - v^(a-1)),

is convex, touches 0 at v and the line r - gamma at u, where

    gamma = (a-1)/a (u^a - v^a) / (u^(a-1) - v^(a-1)),

so it lies above (r - gamma)+ everywhere. Taking expectations, with E_Q[r] = 1 - p (p is P's mass at infinity),

    delta(log gamma) <= p + N / s,      N = c - a v^(a-1) (1 - p) + (a-1) v^a.

v = 0 is the bound of Canonne, Kamath and Steinke. The best v gives the optimum over all pairs whose divergence in one
direction is at most the stated one, since equality holds for P, Q on two points with ratios u and v [Asoodeh et al.
2021, who find the optimum over two points numerically]. Any v and u prove a bound, so the search may be sloppy.

Where delta >= 1/a the best pair has v = 0 and all of P at u = c^(1/(a-1)): Q(A) >= P(A)^(a/(a-1)) e^-D [Mironov 2017,
Prop. 10] gives P(A) - gamma Q(A) <= 1 - gamma e^-D for gamma <= (a-1)/a e^D, hence epsilon = D + log(1 - delta).
"""

from __future__ import annotations

import math

import numpy as np

from dptally.checks import Floats
from dptally.numerics.rounding import EPS, up
from dptally.numerics.search import minimise

__all__ = ["THEOREM", "epsilon", "log_delta"]

THEOREM = "Asoodeh et al. 2021: the optimum over all pairs of one order, attained on two points"
_BISECTIONS = 60
_LEAST, _MOST = 1e-14, 1e3  # of a log(1/v)
_VAST_ORDER, _VAST = 1e15, 1e290  # beyond them the search would leave double range


def epsilon(t: float, log_moment: float, delta: float, mass: float = 0.0) -> float:
    """An upper bound of the epsilon at p + ``delta``, from K(t) <= ``log_moment`` at the order 1 + t; can be negative.

    ``mass`` is an upper bound of p; ``delta`` > 0 is what is left for the finite losses. Infinity (nothing is proved)
    where numbers are too vast for the search and delta < 1/a.
    """
    log_inverse = -math.log(delta) + 4 * EPS * abs(math.log(delta))

    def found(x: Floats) -> Floats:
        w = x / (1 + t)
        log_n = _log_excess(t, log_moment, w, mass)
        first, second = -t * w, log_n + log_inverse - math.log1p(t)
        with np.errstate(under="ignore"):
            power = np.logaddexp(first, second)  # t log u, rounded up: a larger u proves a smaller delta
        size = np.abs(first) + np.abs(log_n) + abs(log_inverse) + math.log1p(t) + np.abs(power) + 1
        return _log_gamma(t, (power + 8 * EPS * size) / t, w)

    value = minimise(found, _LEAST, _MOST, start=(1e-3, 50.0))[1] if _searchable(t, log_moment) else math.inf
    if delta < 1 and delta * (1 + t) >= 1 + 4 * EPS:
        alone = up(log_moment / t, 2)
        value = min(value, alone + math.log1p(-delta) + 4 * EPS * (abs(alone) - math.log1p(-delta)))
    return value


def log_delta(t: float, log_moment: float, epsilon: float, mass: float = 0.0) -> float:
    """An upper bound of log(delta(epsilon) - p), from K(t) <= ``log_moment`` at the order 1 + t.

    Infinity (nothing is proved) where numbers are too vast for the search.
    """

    def found(x: Floats) -> Floats:
        w = x / (1 + t)
        low, high = np.full(w.shape, epsilon), np.full(w.shape, epsilon + math.log1p(1 / t))
        for _ in range(_BISECTIONS):  # the largest u with gamma <= e^epsilon; ``low`` has been asked, or is the ratio 1
            middle = low + 0.5 * (high - low)
            fits = _log_gamma(t, middle, w) <= epsilon
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        fits = _log_gamma(t, low, w) <= epsilon
        log_n = _log_excess(t, log_moment, w, mass)
        with np.errstate(divide="ignore", under="ignore"):
            log_s = math.log1p(t) + t * low + np.log(-np.expm1(-t * (low + w)))
        size = np.abs(log_n) + np.abs(log_s) + t * np.abs(low) + math.log1p(t) + 1
        return np.where(fits, log_n - log_s + 16 * EPS * size, np.inf)

    searchable = _searchable(t, log_moment) and _searchable(t, epsilon)
    value = minimise(found, _LEAST, _MOST, start=(1e-3, 50.0))[1] if searchable else math.inf
    gap = epsilon - up(log_moment / t, 2)
    if gap <= -math.log1p(1 / t) * (1 + 4 * EPS) - 4 * EPS * abs(epsilon):
        value = min(value, math.log(-math.expm1(gap)) + 8 * EPS * (1 + abs(epsilon) / -math.expm1(gap)))
    return value


def _searchable(t: float, size: float) -> bool:
    """Whether the products of the search with an exponent of this size, such as t log u, stay within double range."""
    return t <= _VAST_ORDER and (1 + t) * max(1.0, abs(size)) <= _VAST


def _log_excess(t: float, log_moment: float, w: Floats, mass: float) -> Floats:
    """log N, rounded up, with v = e^-w:  N = (c - 1) + (1 - a v^t (1 - p) + t v^a)."""
    a = 1 + t
    with np.errstate(under="ignore", divide="ignore", invalid="ignore"):
        linear, power = a * np.exp(-t * w), t * np.exp(-a * w)
        error = EPS * (8 + linear * (8 + 2 * t * w) + power * (8 + 2 * a * w))
        subtracted = linear * (1 - mass) - power - error - EPS  # a lower bound of what is taken from c
        if log_moment <= 1:
            return np.log(math.expm1(log_moment) * (1 + 4 * EPS) + np.maximum(1 - subtracted, 0.0)) + 4 * EPS
        return log_moment + np.log1p(-subtracted * math.exp(-log_moment)) + 4 * EPS * (1 + log_moment)


def _log_gamma(t: float, log_u: Floats, w: Floats) -> Floats:
    """log((a-1)/a) + log u + log(1 - (v/u)^a) - log(1 - (v/u)^(a-1)), rounded up."""
    apart = log_u + w
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        value = -math.log1p(1 / t) + log_u + np.log(-np.expm1(-(1 + t) * apart)) - np.log(-np.expm1(-t * apart))
        rounding = EPS * (24 + 4 * math.log1p(1 / t) + 4 * np.abs(log_u) + 8 * np.abs(log_u) / apart)
    return np.where(apart > 0, value + rounding, np.inf)
