"""What one Renyi divergence says about another, and about probabilities: the inequalities behind group
privacy.

Every bound is rounded up (or down, for a lower bound on a probability).
"""

from __future__ import annotations

import math

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.interval import Interval
from dptally.numerics.rounding import EPS, down, up

__all__ = [
    "equal_order",
    "exp_down",
    "exp_up",
    "power_moment_triangle",
    "probability_range",
    "triangle_orders",
    "weak_triangle",
]

ULPS = 16.0  # a few correctly rounded operations and at most three of exp, log, pow at 1-4 ulps each


def weak_triangle(order: float, split: float, first: float, second: float) -> float:
    """Upper bound of D_a(P||Q) through R: (a - 1/p)/(a - 1) D_{pa}(P||R) + D_{q(a - 1/p)}(R||Q), 1/p + 1/q
    = 1.

    ``split`` is p > 1; ``first`` is D_{pa}(P||R), ``second`` is D_{q(a-1/p)}(R||Q): ``triangle_orders``
    gives the two orders. Order a > 1.  [Mironov 2017, Prop. 11]; with p = 2 it is Cor. 4 (1).

    >>> weak_triangle(2.0, 2.0, 0.1, 0.1) >= 0.25
    True
    """
    order, split = _above_one("order", order), _above_one("split", split)
    first, second = checks.nonnegative("first", first), checks.nonnegative("second", second)
    total = (order - 1.0 / split) / (order - 1.0) * first + second
    return up(total, ULPS) if total < 1e300 else math.inf


def triangle_orders(order: float, split: float) -> tuple[float, float]:
    """The orders (p a, q (a - 1/p)) that ``weak_triangle`` needs of its two steps.

    >>> triangle_orders(4.0, 2.0)
    (8.0, 7.0)
    """
    order, split = _above_one("order", order), _above_one("split", split)
    conjugate = split / (split - 1.0)
    return split * order, conjugate * (order - 1.0 / split)


def equal_order(order: float) -> tuple[float, float]:
    """(p, beta): the split at which both steps of the weak triangle have the same order beta = a + sqrt(a
    (a - 1)).

    Mironov 2017, Cor. 4 (4), corrected: p = 1 + sqrt((a - 1) / a); the printed equation gives unequal orders.

    >>> equal_order(4.0)[1]
    7.464101615137754
    """
    order = _above_one("order", order)
    return 1.0 + math.sqrt((order - 1.0) / order), order + math.sqrt(order * (order - 1.0))


def power_moment_triangle(log_first: float, log_second: float) -> float:
    """log I_a(P||Q) <= (log I_{2a}(P||R) + log I_{2a-1}(R||Q)) / 2, I_a = E_Q[(P/Q)^a] = exp((a - 1) D_a),
    a > 1.

    Cauchy-Schwarz; the same as Mironov 2017, Cor. 4 (1), in the units of the alpha divergence.

    >>> power_moment_triangle(1.0, 2.0) >= 1.5
    True
    """
    first, second = checks.nonnegative("log_first", log_first), checks.nonnegative("log_second", log_second)
    return up(0.5 * first + 0.5 * second) if max(first, second) < 1e300 else math.inf


def probability_range(order: float, divergence: float, probability: float) -> Interval:
    """Bounds of P(A) from Q(A): e^-D Q^{a/(a-1)} <= P(A) <= (e^D Q)^{(a-1)/a}, D bounding both directions
    at order a > 1.

    Probability preservation [Mironov 2017, Prop. 10; Langlois, Stehle, Steinfeld 2014]; order inf is pure DP.

    >>> box = probability_range(10, 0.1, 0.5)
    >>> round(box.lower, 6), round(box.upper, 6)
    (0.418883, 0.586353)
    """
    order = _above_one("order", order, infinite=True)
    divergence = checks.real("divergence", divergence)
    if not divergence >= 0:
        raise InvalidArgument("divergence", "at least 0", divergence)
    probability = checks.probability("probability", probability)
    if probability == 0 and divergence < math.inf:
        return Interval(0.0, 0.0, "Mironov 2017, Prop. 10")
    if divergence == math.inf:
        return Interval(0.0, 1.0, "no information")
    log = math.log(probability)
    shrink = 1.0 if order == math.inf else (order - 1.0) / order
    upper_log = (divergence + log) * shrink
    lower_log = -divergence + log / shrink
    error = ULPS * EPS * (divergence - log / shrink)  # of both exponents
    upper = min(1.0, exp_up(min(upper_log, 0.0), error))
    lower = min(exp_down(lower_log, error), upper)
    return Interval(lower, upper, "Mironov 2017, Prop. 10")


def exp_up(exponent: float, error: float = 0.0) -> float:
    """An upper bound of e^x for an x within ``error`` of ``exponent``; inf past the largest double."""
    return up(math.exp(up(exponent + error)), 4) if exponent + error < 709 else math.inf


def exp_down(exponent: float, error: float = 0.0) -> float:
    """A lower bound of e^x, at least 0, for an x within ``error`` of ``exponent``."""
    return max(0.0, down(math.exp(min(down(exponent - error), 709.0)), 4))


def _above_one(name: str, value: float, infinite: bool = False) -> float:
    number = checks.real(name, value)
    if not (number > 1 and (infinite or number < math.inf)):
        raise InvalidArgument(name, "above 1" if infinite else "above 1 and finite", value)
    return number
