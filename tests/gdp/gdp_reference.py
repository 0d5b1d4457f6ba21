"""References for the toolkit, in mpmath: the Gaussian profile and its inverse, and the paper's algorithms as
written, as corrected, and done plainly. Slow and independent of the library.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from mpmath import mp, mpf

DIGITS = 40
Curve = Callable[[float], mpf]


def gaussian_delta(mu: mpf, epsilon: mpf) -> mpf:
    """Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)."""
    with mp.workdps(DIGITS + 20):
        mu, epsilon = mpf(mu), mpf(epsilon)
        upper, lower = mp.ncdf(-epsilon / mu + mu / 2), mp.ncdf(-epsilon / mu - mu / 2)
        return upper - mp.exp(epsilon) * lower


def mu_gdp(epsilon: mpf, delta: mpf) -> mpf:
    """The mu with delta_mu(eps) = delta: plain bisection to 18 digits (the paper's Algorithm 2, run to the
    end).
    """
    low, high = binary_search(epsilon, delta, mpf(10) ** -18)
    return (low + high) / 2


def binary_search(epsilon: mpf, delta: mpf, width: mpf) -> tuple[mpf, mpf]:
    """(mu-, mu+) around mu_GDP(eps, delta), closer than ``width``: the plain binary search of the paper."""
    with mp.workdps(DIGITS):
        if delta <= 0:
            return mpf(0), mpf(0)
        low, high = mpf(0), mpf(1)
        while gaussian_delta(high, epsilon) < delta:
            low, high = high, 2 * high
        while high - low > width:
            middle = (low + high) / 2
            low, high = (middle, high) if gaussian_delta(middle, epsilon) < delta else (low, middle)
        return low, high


def sup_near(curve: Curve, around: float, width: float) -> tuple[mpf, mpf]:
    """(eps, G(eps)) at the maximum of a unimodal GDPT on [around - width, around + width], eps >= 0, by
    thirds.
    """
    with mp.workdps(DIGITS):
        low, high = mpf(max(around - width, 0.0)), mpf(around + width)
        for _ in range(26):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            if mu_gdp(left, curve(left)) < mu_gdp(right, curve(right)):
                low = left
            else:
                high = right
        at = (low + high) / 2
        return max(((e, mu_gdp(e, curve(e))) for e in (low, at, high)), key=lambda pair: pair[1])


# -- profiles ------------------------------------------------------------------------------------------------


def laplace(reach: float) -> Curve:
    return lambda e: max(mpf(0), -mp.expm1((mpf(e) - mpf(reach)) / 2))


def pure(epsilon: float) -> Curve:
    def delta(e: float) -> mpf:
        top = mp.exp(mpf(epsilon))
        return max(mpf(0), (top - mp.exp(mpf(e))) / (1 + top))

    return delta


def sampled(curve: Curve, rate: float) -> Curve:
    """q delta(log((e^eps - 1 + q)/q)): the profile after Poisson sampling, eps >= 0, of a symmetric
    mechanism.
    """
    return lambda e: mpf(rate) * curve(mp.log((mp.exp(mpf(e)) - 1 + mpf(rate)) / mpf(rate)))


def pure_composed(epsilon: float, count: int) -> Curve:
    """``count`` times randomised response [Kairouz, Oh, Viswanath 2015, Thm. 3.3], summed."""

    def delta(e: float) -> mpf:
        with mp.workdps(DIGITS):
            loss, target = mpf(epsilon), mp.exp(mpf(e))
            total = mpf(0)
            for j in range(count + 1):
                gain = mp.exp(j * loss) - target * mp.exp((count - j) * loss)
                if gain > 0:
                    total += mp.binomial(count, j) * gain
            return total / (1 + mp.exp(loss)) ** count

    return delta


# -- the paper's algorithms ----------------------------------------------------------------------------------


def naive_algorithm(curve: Curve, head: float, c: int) -> tuple[mpf, mpf]:
    """All staircase values of Theorem 4.3, each by a binary search of width 1/(4c): bounds of sup G within
    1/c.
    """
    steps = math.ceil(math.sqrt(8 * math.pi) * c * head) + 1
    x = [mpf(head) * i / steps for i in range(steps + 1)]
    width = mpf(1) / (4 * c)
    lower = max(binary_search(x[i], curve(x[i + 1]), width)[0] for i in range(steps))
    upper = max(binary_search(x[i + 1], curve(x[i]), width)[1] for i in range(steps))
    return lower, upper


def algorithm_one(curve: Curve, head: float, c: int, printed: bool, seed: int = 0) -> tuple[mpf, mpf]:
    """(mu-, mu+) of Algorithm 1: as ``printed``, with x+ and x- exchanged, or corrected; both with the
    corrected n.
    """
    steps = math.ceil(math.sqrt(8 * math.pi) * c * head) + 1
    order = list(range(steps))
    random.Random(seed).shuffle(order)
    low, high = mpf(0), mpf(0)
    for i in order:
        before, after = mpf(head) * i / steps, mpf(head) * (i + 1) / steps
        if printed:
            before, after = after, before
        if high == 0 or gaussian_delta(high, after) < curve(before):
            high = binary_search(after, curve(before), mpf(1) / (4 * c))[1]
        if low == 0 or gaussian_delta(low, before) < curve(after):
            low = max(low, binary_search(before, curve(after), mpf(1) / (4 * c))[0])
    return low, high
