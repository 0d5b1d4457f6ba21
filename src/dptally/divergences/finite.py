"""Divergences between two finite distributions, with every zero handled as measure theory has it.

For outputs 1..n and probabilities p, q (P is always the first argument, and need not be dominated by Q):

    f-divergence      D_f(P||Q)  = sum q f(p/q),  f convex, f(1) = 0; where q = 0 < p: p lim f(u)/u
    alpha divergence  f(u) = (u^a - a u - (1 - a)) / (a (a - 1)); order 1 is KL(P||Q), order 0 is KL(Q||P)
    Renyi             log(1 + a (a - 1) alpha_a) / (a - 1); order 1 is KL, order inf is log ess sup p/q
                      over the support of P
    hockey stick      sum (p - e^eps q)+, that is delta(eps); at eps = 0 the total variation

Each is a sum of nonnegative terms, so none needs clipping and none can come out negative. The values are
accurate to a few parts in 1e13 (relative, also where P and Q nearly agree); they are not rounded outwards.
Renyi 1961; Csiszar 1967; van Erven, Harremoes 2014, Thm. 1-9; Amari, Nagaoka 2000 for the alpha family.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dptally import checks
from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidType
from dptally.numerics.logspace import logsumexp

__all__ = ["alpha", "f_divergence", "hockey_stick", "kl", "maximum", "renyi", "total_variation"]

Generator = Callable[[float], float]
HUGE = 1e100  # orders from here on are treated in logarithms only
SERIES_TERMS = 24  # 0.5^24 / 24! is far below one ulp


def renyi(p: ArrayLike, q: ArrayLike, order: float) -> float:
    """Renyi divergence of an order in [0, inf]: log(sum p^a q^(1-a)) / (a - 1).

    Order 1 is KL (also where it is finite and every larger order is not), inf is ``maximum``, 0 is
    -log Q(p > 0).  [van Erven, Harremoes 2014, Def. 1-3]

    >>> round(renyi([0.75, 0.25], [0.25, 0.75], 2), 12)
    0.847297860387
    """
    order = checks.real("order", order)
    if not order >= 0:
        raise InvalidArgument("order", "in [0, inf]", order)
    p, q = _pair(p, q)
    if order == math.inf:
        return maximum(p, q)
    if order == 1:
        return alpha(p, q, 1.0)
    if order == 0:  # the alpha family is KL(Q||P) here, the Renyi family is not
        return _surprise(float(np.sum(q[p == 0])))
    excess = order * (order - 1.0) * float(np.sum(alpha_terms(p, q, order))) if order < HUGE else math.inf
    if abs(excess) < 0.5:  # near 0 the alpha divergence is the accurate one, far from 0 the sum's logarithm
        return math.log1p(excess) / (order - 1.0)
    return _log_power_sum(p, q, order) / (order - 1.0)


def kl(p: ArrayLike, q: ArrayLike) -> float:
    """Kullback-Leibler divergence sum p log(p/q), in nats: inf where P is not dominated by Q.

    >>> round(kl([0.75, 0.25], [0.25, 0.75]), 12)
    0.549306144334
    """
    return alpha(p, q, 1.0)


def maximum(p: ArrayLike, q: ArrayLike) -> float:
    """Max divergence: log of the largest p/q over the support of P; inf where some p > 0 = q.  [Dwork, Roth
    2014, Def. 3.6]

    Pure epsilon-DP of a pair is max(maximum(p, q), maximum(q, p)) <= epsilon.

    >>> maximum([0.5, 0.5, 0.0], [0.25, 0.25, 0.5]) == math.log(2)
    True
    """
    p, q = _pair(p, q)
    ratios = _log_ratio(p, q)[p > 0]
    return max(0.0, float(np.max(ratios)))  # two distributions have some p >= q; a sum off by an ulp may hide it


def alpha(p: ArrayLike, q: ArrayLike, order: float) -> float:
    """Alpha divergence (sum p^a q^(1-a) - 1) / (a (a - 1)) of any finite real order; KL(P||Q) at 1,
    KL(Q||P) at 0.

    >>> round(alpha([0.75, 0.25], [0.25, 0.75], 2), 12)
    0.666666666667
    """
    order = checks.finite("order", order)
    p, q = _pair(p, q)
    if abs(order) >= HUGE:  # a (a - 1) itself may overflow
        excess = _log_power_sum(p, q, order) - 2.0 * math.log(abs(order))
        return math.exp(excess) if excess < 709 else math.inf
    return float(np.sum(alpha_terms(p, q, order)))


def f_divergence(
    p: ArrayLike, q: ArrayLike, f: Generator, *, at_zero: float | None = None, slope: float = math.inf
) -> float:
    """sum q f(p/q) for a convex f with f(1) = 0.  [Csiszar 1967]

    ``at_zero`` is f(0) where the function cannot be called there; ``slope`` is lim f(u)/u as u grows, the price of an
    output that only P can give (inf unless said otherwise, which is right for every superlinear f and never too
    small).

    >>> f_divergence([0.75, 0.25], [0.25, 0.75], lambda u: abs(u - 1) / 2, slope=0.5)
    0.5
    """
    if not callable(f):
        raise InvalidType("f", "a convex function of one real number", f)
    p, q = _pair(p, q)
    slope = checks.real("slope", slope)
    inside = (p > 0) & (q > 0)
    ratios = p[inside] / q[inside]
    values = np.array([_generated(f, float(u)) for u in ratios], dtype=np.float64)
    _check_generator(f, ratios, values)
    total = float(np.sum(q[inside] * values))
    lost = float(np.sum(q[p == 0]))
    if lost > 0:
        total += lost * (_generated(f, 0.0) if at_zero is None else checks.real("at_zero", at_zero))
    new = float(np.sum(p[q == 0]))
    return total + new * slope if new > 0 else total


def hockey_stick(p: ArrayLike, q: ArrayLike, epsilon: float) -> float:
    """delta(epsilon) = sum (p - e^epsilon q)+ = sup over events S of P(S) - e^epsilon Q(S), for any real
    epsilon.

    >>> round(hockey_stick([0.75, 0.25], [0.25, 0.75], math.log(2)), 12)
    0.25
    """
    epsilon = checks.real("epsilon", epsilon)
    p, q = _pair(p, q)
    return float(np.sum(hockey_stick_terms(p, q, epsilon)))


def total_variation(p: ArrayLike, q: ArrayLike) -> float:
    """sum |p - q| / 2: the largest difference in probability of any event.

    >>> total_variation([0.75, 0.25], [0.25, 0.75])
    0.5
    """
    p, q = _pair(p, q)
    return 0.5 * math.fsum(np.abs(p - q))


# -- terms: shared by sums over outputs and integrals over densities
# ------------------------------------------------


def alpha_terms(p: Floats, q: Floats, order: float) -> Floats:
    """q f(p/q) for the alpha generator, elementwise and >= 0; inf where the divergence is."""
    if order < 0.5:  # D_a(P||Q) = D_{1-a}(Q||P)
        return _terms(q, p, 1.0 - order, order)
    return _terms(p, q, order, 1.0 - order)


def _terms(p: Floats, q: Floats, order: float, rest: float) -> Floats:
    """``alpha_terms`` for an order >= 1/2; ``rest`` is 1 - order, which the order alone would round."""
    x = _log_ratio(p, q)
    out = np.zeros(p.shape)
    only_q = (p == 0) & (q > 0)
    only_p = (q == 0) & (p > 0)
    out[only_q] = q[only_q] / order
    out[only_p] = p[only_p] / rest if rest > 0 else math.inf
    both = (p > 0) & (q > 0)
    far = both & (x > 1)
    near = both & ~far
    with np.errstate(over="ignore"):  # a term too large for a double is inf; Renyi has its own log-space route
        out[near] = q[near] * _generator(x[near], order, rest)
        out[far] = _far_terms(p[far], q[far], x[far], order, rest)
    return out


def hockey_stick_terms(p: Floats, q: Floats, epsilon: float) -> Floats:
    """(p - e^epsilon q)+ elementwise, without overflow and without cancelling where p is far above."""
    with np.errstate(invalid="ignore"):  # inf - inf where q = 0, which the last line answers
        above = p * -np.expm1(np.minimum(epsilon - _log_ratio(p, q), 0.0))
    return np.where((p > 0) & (q > 0), above, p)


def _surprise(missing: float) -> float:
    """-log(1 - missing) for a probability that may come out an ulp above 1."""
    return -math.log1p(-missing) if missing < 1 else math.inf


def _log_power_sum(p: Floats, q: Floats, order: float) -> float:
    """log sum p^a q^(1-a) = a m + log sum q e^{a (x - m)}, x = log(p/q), with m the x that rules the sum."""
    if (order > 1 and bool(np.any((p > 0) & (q == 0)))) or (order < 0 and bool(np.any((q > 0) & (p == 0)))):
        return math.inf
    both = (p > 0) & (q > 0)
    if not both.any():
        return -math.inf
    x = _log_ratio(p[both], q[both])
    top = float(np.max(x) if order > 0 else np.min(x))
    with np.errstate(over="ignore"):
        rest = float(logsumexp(order * (x - top) + np.log(q[both])))
    return order * top + rest


def _log_ratio(p: Floats, q: Floats) -> Floats:
    """log(p/q) with log(0/q) = -inf, log(p/0) = inf; log(0/0) is -inf: the output never occurs."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        ratio = p / q
        plain = np.where((ratio > 0.5) & (ratio < 2.0), np.log1p((p - q) / q), np.log(p) - np.log(q))
    return np.where(p == 0, -math.inf, plain)


def _generator(x: Floats, a: float, rest: float) -> Floats:
    """f(e^x) = (e^{ax} - 1 - a (e^x - 1)) / (a (a - 1)) for order a >= 1/2, without cancellation near x = 0
    or a = 1.

    Series: f = sum_{k>=2} x^k/k! (1 + a + ... + a^{k-2}).
    """
    out = np.empty_like(x)
    small = np.abs(x) * max(1.0, a) < 0.5
    out[small] = _series(x[small], a)
    y = x[~small]
    if a < 2:
        rise = np.expm1(-rest * y) / -rest if rest != 0 else y
        out[~small] = np.exp(y) * rise - np.expm1(a * y) / a
    else:
        out[~small] = (_second_order(a * y) - a * _second_order(y)) / (a * -rest)
    return out


def _far_terms(p: Floats, q: Floats, x: Floats, a: float, rest: float) -> Floats:
    """q f(p/q) where p is far above q: the same formula with q multiplied in: p/q may overflow."""
    if rest == 0:
        return p * x - (p - q)
    power = p * np.exp(-rest * x)
    if a < 2:
        return p * np.expm1(-rest * x) / -rest - (power - q) / a
    return (power - q - a * (p - q)) / (a * -rest)


def _second_order(y: Floats) -> Floats:
    """e^y - 1 - y with full relative accuracy."""
    return np.where(np.abs(y) < 0.5, _series(np.clip(y, -0.5, 0.5), 0.0), np.expm1(y) - y)


def _series(x: Floats, a: float) -> Floats:
    term, power, geometric = 0.5 * x * x, 1.0, 1.0
    total = term * geometric
    for k in range(3, SERIES_TERMS):
        term = term * x / k
        power *= a
        geometric += power
        total = total + term * geometric
    return total


def _generated(f: Generator, u: float) -> float:
    """f(u), refused unless it is a number."""
    try:
        value = float(f(u))
    except (ArithmeticError, TypeError, ValueError) as error:
        raise InvalidArgument("f", f"defined at {u!r} ({error})", f, "give its limit there as at_zero=") from None
    if math.isnan(value):
        raise InvalidArgument("f", f"a number at {u!r}, not NaN", f)
    return value


def _check_generator(f: Generator, ratios: Floats, values: Floats) -> None:
    """Refuse an f that is visibly not a generator: f(1) != 0, or not convex on the ratios that occur."""
    at_one = _generated(f, 1.0)
    if not abs(at_one) <= 1e-12:
        raise InvalidArgument("f", "zero at 1", at_one)
    u, index = np.unique(np.append(ratios, 1.0), return_index=True)
    v = np.append(values, at_one)[index]
    if u.size < 3 or not np.all(np.isfinite(v)):
        return
    chord = v[:-2] + (v[2:] - v[:-2]) * ((u[1:-1] - u[:-2]) / (u[2:] - u[:-2]))
    slack = 1e-12 * (1.0 + np.abs(v[:-2]) + np.abs(v[1:-1]) + np.abs(v[2:]))  # round-off of f itself
    if not np.all(v[1:-1] <= chord + slack):
        raise InvalidArgument("f", "convex", f)


def _pair(p: ArrayLike, q: ArrayLike) -> tuple[Floats, Floats]:
    """Two probability vectors over the same outputs."""
    first, second = _distribution("p", p), _distribution("q", q)
    if first.shape != second.shape:
        raise InvalidType("p, q", "of the same length", (first.size, second.size))
    return first, second


def _distribution(name: str, value: ArrayLike) -> Floats:
    array = checks.reals(name, value)
    if array.ndim != 1 or array.size == 0:
        raise InvalidType(name, "a non-empty list of probabilities", value)
    if not (np.all(array >= 0) and abs(math.fsum(array) - 1.0) <= 1e-9):
        raise InvalidArgument(name, "probabilities: none negative, adding up to 1 within 1e-9", value)
    return array
