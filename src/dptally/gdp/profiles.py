r"""Privacy profiles from papers: a trade-off equation sigma = g(eps, delta) turned into a curve.

Inverting g gives the *naive* curve: for each eps the smallest delta that g allows. Theorem 2.1 of the GDPT
paper says what one guarantee implies at other epsilons,

    (e0, d0)-DP implies (eps, d)-DP  iff  d >= d0 + (1 - d0) (e^e0 - e^eps)+ / (1 + e^e0)
                                              = 1 - (1 + e^eps) (1 - d0) / (1 + e^e0)        for eps <= e0,

and the *refined* curve takes the best over the naive one: 1 - (1 + e^eps) max over e0 >= eps of s(e0), with
s(e) = (1 - delta(e)) / (1 + e^e). All guarantees together imply the lower convex *envelope* in e^eps, which
is smaller still where the refined curve is not convex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from dptally import checks
from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidType
from dptally.gdp.curve import Curve, GaussianTail
from dptally.mechanisms import Profile
from dptally.numerics.exact import quotient
from dptally.numerics.rounding import EPS, down, up

__all__ = ["envelope", "icea", "laplace", "naive", "noisy_sgd", "refined", "root_log"]

_FARTHEST = 64.0  # a guarantee beyond says nothing about smaller epsilons: 1 - s (1 + e^eps) is 1 to rounding
_ROUNDING = 16 * EPS


def naive(equation: Callable[[float, float], float], sigma: float) -> Curve:
    """The curve of sigma = g(eps, delta), read as "noise of g(eps, delta) is enough": the smallest delta with
    g(eps, delta) <= sigma, rounded up; 1 where there is none.

    g must not increase in delta. The answer at each epsilon is a delta at which g was evaluated and found
    enough.

    >>> curve = naive(lambda eps, delta: math.sqrt(2 * math.log(1.25 / delta)) / max(eps, 1e-9), sigma=4.0)
    >>> round(curve.delta(1.0) / (1.25 * math.exp(-8)), 12)
    1.0
    """
    if not callable(equation):
        raise InvalidType("equation", "a function of (epsilon, delta)", equation)
    sigma = checks.positive("sigma", sigma)

    def enough(epsilon: float, delta: float) -> bool:
        return checks.real(f"equation({epsilon:.17g}, {delta:.17g})", equation(epsilon, delta)) <= sigma

    def smallest(epsilon: float) -> float:
        if not enough(epsilon, 1.0):
            return 1.0
        low, high = -745.0, 0.0  # bisect log delta
        if enough(epsilon, 5e-324):
            return 0.0 if _at_zero(enough, epsilon) else 5e-324
        while high - low > 1e-15 * (1.0 - low):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (low, middle) if enough(epsilon, math.exp(middle)) else (middle, high)
        return math.exp(high)

    return Curve(smallest, "naive inversion of a trade-off equation")


def _at_zero(enough: Callable[[float, float], bool], epsilon: float) -> bool:
    """Whether delta = 0 is enough; an equation that cannot take 0 says no."""
    try:
        return enough(epsilon, 0.0)
    except (ZeroDivisionError, ValueError, OverflowError):
        return False


def refined(curve: Curve) -> Curve:
    """The curve with all that each of its points implies at smaller epsilons.  [Liu et al. 2022, Thm. 2.1]

    >>> round(refined(noisy_sgd(2.0, 1.0, 2.0)).delta(0.0), 12)
    0.646685089766
    """
    if not isinstance(curve, Curve):
        raise InvalidType("curve", "a dptally.gdp.Curve", curve)
    knots, own_shares = _knots(curve)
    shares = np.maximum.accumulate(own_shares[::-1])[::-1]

    def delta(epsilon: float) -> float:
        own = curve.delta(epsilon)
        later = np.searchsorted(knots, epsilon)
        if later == knots.size:
            return own
        line = 1.0 - (1.0 + math.exp(epsilon)) * float(shares[later])
        return min(own, up(max(line, 0.0), 4))

    # the line ends in the knot of the largest share, where it is a tangent unless that knot is 0; from there on the
    # curve is its own
    first = float(knots[int(np.argmax(own_shares))])
    convex = curve.convex or first > max(curve.convex_from, 0.0)
    return replace(curve, delta_of_epsilon=delta, name=f"refined {curve.name}", convex=convex)


def _knots(curve: Curve) -> tuple[Floats, Floats]:
    """Epsilons e, increasing, and s(e), rounded down; the best e is sharpened."""

    def share(epsilon: float) -> float:
        return (1.0 - curve.delta(epsilon)) / (1.0 + math.exp(epsilon))

    end = min(_FARTHEST, curve.zero_from)
    grid = end * np.linspace(0.0, 1.0, 1025) ** 2
    best = int(np.argmax([share(float(e)) for e in grid]))
    low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, grid.size - 1)])
    for _ in range(80):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if share(left) < share(right) else (low, right)
    knots = np.unique(np.append(grid, [0.5 * (low + high), low, high]))
    return knots, np.array([share(float(e)) for e in knots]) * (1.0 - _ROUNDING)


def envelope(guarantees: Curve | Iterable[Iterable[float]]) -> Profile:
    """All that a family of guarantees implies: the lower convex envelope in e^eps, as a mechanism.

    ``guarantees`` is a curve or finitely many points (epsilon, delta); see :class:`dptally.Profile`.

    >>> family = envelope([(0.1, 0.3), (2.0, 0.0)])
    >>> round(family.delta(1.5836), 3)
    0.12
    """
    return guarantees.mechanism() if isinstance(guarantees, Curve) else Profile.from_points(guarantees)


# -- ready-made ----------------------------------------------------------------------------------------------


def laplace(scale: float, sensitivity: float = 1.0) -> Curve:
    """1 - exp((eps - r)/2) below r = sensitivity / scale, then 0.  [Balle, Barthe, Gaboardi 2018, Thm. 3]

    >>> round(laplace(scale=0.5).delta(1.0), 12)
    0.393469340287
    """
    scale, sensitivity = checks.positive("scale", scale), checks.positive("sensitivity", sensitivity)
    reach = quotient(sensitivity, scale)[1]
    return Curve(lambda e: up(-math.expm1(0.5 * (e - reach)), 2), f"Laplace {reach:.6g}", zero_from=reach, convex=True)


def root_log(a: float, b: float, sigma: float) -> Curve:
    """The naive curve of sigma = (A / eps) sqrt(log(B / delta)), whatever it stands for: see :func:`noisy_sgd`.

    >>> root_log(2.0, 1.0, 2.0).delta(1.0) == noisy_sgd(2.0, 1.0, 2.0).delta(1.0)
    True
    """
    return replace(noisy_sgd(a, b, sigma), name=f"sigma = {a:g}/eps sqrt(log({b:g}/delta))")


def noisy_sgd(a: float, b: float, sigma: float) -> Curve:
    """The naive curve of sigma = (a / eps) sqrt(log(b / delta)): delta = min(1, b exp(-(sigma eps / a)^2)).

    The form of noisy stochastic gradient descent and others  [Liu et al. 2022, Sec. 2]. mu_t = a / (sigma sqrt 2).

    >>> round(noisy_sgd(2.0, 1.0, 2.0).tail_limit, 10)
    0.7071067812
    """
    a, b, sigma = checks.positive("a", a), checks.positive("b", b), checks.positive("sigma", sigma)
    ratio = down(sigma / a)

    def log_delta(epsilon: float) -> float:
        return min(math.log(b) - (ratio * epsilon) ** 2, 0.0)

    # b exp(-eps^2 / (2 r^2)) <= exp(-(eps/r - r/2)^2 / 2) once eps/2 >= log b + r^2/8
    root = up(math.sqrt(0.5) / ratio, 4)
    tail = GaussianTail(root, max(0.0, 2.0 * math.log(b) + 0.25 * root * root) * (1 + 1e-12) + 1e-300)
    # in x = e^eps the second derivative has the sign of 2 k eps^2 + eps - 1, k = (sigma/a)^2, which increases: the
    # curve is convex from 2/(1 + sqrt(1 + 8 k)) on. Theorem 2.1 starts at an interior maximum of (1 - delta)/(1 + x),
    # where it is; for b < 1 the maximum may lie at 0, and then the curve keeps its concave beginning
    return Curve(
        lambda e: up(math.exp(log_delta(e)), 2) if log_delta(e) < 0 else 1.0,
        "noisy SGD",
        math.sqrt(0.5) * a / sigma,
        tail,
        convex_from=up(2.0 / (1.0 + math.sqrt(1.0 + 8.0 * ratio * ratio)), 8),
        log_delta_of_epsilon=log_delta,
    )


def icea(messages: float, users: float) -> Curve:
    """The naive curve of m > 10 log(n / (eps delta)): delta = min(1, n e^{-m/10} / eps), the invisibility
    cloak.

    [Ghazi, Pagh, Velingker 2019, as in Liu et al. 2022, Sec. 2.] delta falls like 1/eps: not GDP for any mu.

    >>> round(icea(20, 4).delta(2.0), 12)
    0.270670566473
    """
    messages, users = checks.positive("messages", messages), checks.positive("users", users)
    if users < 1:
        raise InvalidArgument("users", "at least 1", users)
    constant = up(users * math.exp(-messages / 10.0), 4)
    # c / log x is convex in x, from where it is below 1
    return Curve(lambda e: min(1.0, up(constant / e)) if e > 0 else 1.0, "ICEA", math.inf, convex_from=constant)
