r"""What one Renyi order in both directions proves of (epsilon, delta): where delta is large, randomized response.

Let r = dP/dQ, a > 1 the order, and let E_Q[r^a] and E_Q[r^(1-a)] (the two directions) be at most M = exp(K). Let x be
the loss of the randomized response with that moment, u = e^x and v = e^-x. For gamma = e^epsilon the function

    g(r) = l r^a + m r^(1-a) + c r + d

has the tangent r - gamma at u and the tangent 0 at v for exactly one l, m, c, d; with

    A = a (u^(a-1) - v^(a-1)),   B = (a-1) (u^a - v^a) > A,   the slopes and the intercepts of the two tangents say

    A l + B m = 1,   B l + A m = gamma,   so   l = (B gamma - A)/(B^2 - A^2),   m = (B - A gamma)/(B^2 - A^2).

For A/B <= gamma <= B/A both are at least 0, so g is convex and lies above both tangents, hence above (r - gamma)+.
Taking expectations, delta(epsilon) <= (l + m) M + c + d, and equality holds for the response itself:

    delta(epsilon) <= (e^x - e^epsilon)/(1 + e^x)   for 0 <= epsilon <= log(B/A),

where B/A = (a-1) sinh(a x)/(a sinh((a-1) x)).
A larger x is valid too: its moment is a bound as well. Beyond log(B/A) one direction decides alone: two_points.py.
"""

from __future__ import annotations

import numpy as np

from dptally.checks import Floats
from dptally.numerics.rounding import EPS

__all__ = ["THEOREM", "epsilon", "log_delta"]

THEOREM = "Mironov 2017, Prop. 5: randomized response, the worst pair of one order in both directions"


def log_delta(t: Floats, x: Floats, epsilon: float) -> Floats:
    """An upper bound of log delta(``epsilon``), elementwise, from x of ``laws.response``; inf where none is proved."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore", over="ignore"):
        room = x - epsilon
        value = np.log(-np.expm1(-room)) - np.log1p(np.exp(-x))
        value = value + 8 * EPS * (1 + np.abs(value) + (x + epsilon) / room)
        return np.where(np.isfinite(x) & (epsilon <= _reach(t, x)) & (room > 0), np.minimum(value, 0.0), np.inf)


def epsilon(t: Floats, x: Floats, delta: float) -> Floats:
    """An upper bound of the epsilon >= 0 at ``delta``, likewise: log(e^x - delta (1 + e^x)), or 0."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        taken = np.minimum(delta * (1 + np.exp(-x)) * (1 - 8 * EPS), 1.0)
        value = x + np.log1p(-taken)
        value = np.maximum(value + 8 * EPS * (x + np.abs(value)), 0.0)
        value = np.where(taken < 1, value, 0.0)
        return np.where(np.isfinite(x) & (value <= _reach(t, x)), value, np.inf)


def _reach(t: Floats, x: Floats) -> Floats:
    """log(B/A), rounded down, at least 0: sinh(a x)/sinh(t x) = e^x (1 - e^(-2 a x))/(1 - e^(-2 t x))."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore", over="ignore"):
        parts = -np.log1p(1 / t), x, np.log(-np.expm1(-2 * (1 + t) * x)), -np.log(-np.expm1(-2 * t * x))
        size = sum(np.abs(part) for part in parts) + 1
        return np.maximum(parts[0] + parts[1] + parts[2] + parts[3] - 16 * EPS * size, 0.0)
