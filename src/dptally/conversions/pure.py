"""From pure DP: epsilon bounds the loss on both sides, so randomized response dominates it."""

from __future__ import annotations

import math

from dptally import checks
from dptally.accounting.alpha import from_renyi
from dptally.accounting.approximate import implied_epsilon
from dptally.accounting.concentrated import rho_from_pure
from dptally.errors import InvalidArgument
from dptally.numerics.normal import gaussian_mu_of_pure
from dptally.numerics.rounding import down, up

__all__ = [
    "pure_ratio_bound",
    "pure_to_alpha",
    "pure_to_approx",
    "pure_to_approx_mironov",
    "pure_to_gdp",
    "pure_to_renyi",
    "pure_to_renyi_mironov",
    "pure_to_zcdp",
]

_MOST_STEPS = 2**53  # counts up to here are exact as doubles


def pure_to_approx(epsilon: float, delta: float) -> float:
    """The smallest epsilon' with (epsilon', delta)-DP: log(e^eps - delta (1 + e^eps)), at least 0, rounded
    up.

    [Liu et al. 2022 (GDPT), Thm. 2.1, with delta0 = 0]

    >>> round(pure_to_approx(10.0, 0.1), 12)
    9.894634439893
    """
    return implied_epsilon(epsilon, 0.0, delta)


def pure_to_zcdp(epsilon: float) -> float:
    """The smallest rho: epsilon tanh(epsilon/2), rounded up. At most epsilon^2/2.  [Bun, Steinke 2016, Prop.
    1.4, sharp]

    >>> round(pure_to_zcdp(5.0), 12)
    4.933071490757
    """
    return rho_from_pure(epsilon)


def pure_to_gdp(epsilon: float) -> float:
    """The smallest mu: -2 Phi^{-1}(1/(1 + e^eps)), rounded up; at most sqrt(pi/2) epsilon.  [Liu et al. 2022,
    Thm. 5.1]

    Both trade-off functions are symmetric and meet at the point where delta(0) = tanh(epsilon/2) = 1 - 2
    Phi(-mu/2).

    >>> round(pure_to_gdp(1.0), 12)
    1.232035385345
    """
    epsilon = checks.nonnegative("epsilon", epsilon)
    return gaussian_mu_of_pure(epsilon) if epsilon > 0 else 0.0


def pure_to_renyi(epsilon: float, order: float) -> float:
    """The smallest Renyi divergence of ``order`` in [1, inf] that epsilon-DP implies: randomized response's,
    rounded up.

    log(p^a q^(1-a) + q^a p^(1-a))/(a-1), p = e^eps/(1 + e^eps), q = 1 - p; order 1: epsilon tanh(epsilon/2);
    order inf: epsilon.  [Mironov 2017, Prop. 5; that randomized response dominates: Kairouz, Oh, Viswanath
    2015, Thm. 3.2]

    >>> round(pure_to_renyi(1.0, 2.0), 12)
    0.735325664056
    """
    epsilon, order = checks.nonnegative("epsilon", epsilon), checks.order("order", order)
    if epsilon == 0 or math.isinf(order):
        return epsilon
    t = order - 1
    if t == 0:
        return rho_from_pure(epsilon)
    if t * epsilon > 20:  # log(p e^(t eps) + q e^(-t eps)) = t eps + log p + log(1 + e^(-(2t+1) eps))
        log_p, second = -math.log1p(math.exp(-epsilon)), math.exp(-(2 * t + 1) * epsilon)
        return min(up(epsilon + (log_p + math.log1p(second)) / t, 8), epsilon)
    # p e^(t eps) + q e^(-t eps) - 1 as a product of positive factors, so that nothing cancels
    excess = 2 * math.sinh(0.5 * t * epsilon) * math.sinh(0.5 * (t + 1) * epsilon) / math.cosh(0.5 * epsilon)
    return min(up(math.log1p(excess) / t, 16), epsilon)


def pure_to_alpha(epsilon: float, order: float) -> float:
    """The smallest alpha divergence of ``order`` in (1, inf) that epsilon-DP implies, rounded up: see
    pure_to_renyi.

    >>> round(pure_to_alpha(1.0, 2.0), 12)
    0.543080634815
    """
    return from_renyi(order, pure_to_renyi(epsilon, order))


# -- Mironov's generic bounds --------------------------------------------------------------------------------


def pure_to_renyi_mironov(epsilon: float, order: float) -> float:
    """2 a epsilon^2, rounded up: a generic bound of the Renyi divergence, order a >= 1.  [Mironov 2017, Lemma
    1]

    :func:`pure_to_renyi` is exact and never larger.

    >>> round(pure_to_renyi_mironov(0.1, 4.0), 12)
    0.08
    """
    epsilon, order = checks.nonnegative("epsilon", epsilon), checks.order("order", order)
    return up(2 * order * epsilon * epsilon, 4) if epsilon > 0 else 0.0


def pure_ratio_bound(epsilon: float, count: int, probability: float) -> float:
    """P(S)/Q(S) <= exp(2 eps sqrt(n log(1/Q(S)))) after n epsilon-DP steps, rounded up.  [Mironov 2017, Prop.
    4]

    The printed proof has a false step; the statement is true (see docs/errata.md).

    >>> round(pure_ratio_bound(0.05, 100, 0.001), 10)
    13.8496627877
    """
    epsilon, count = checks.nonnegative("epsilon", epsilon), _checked_count(count)
    probability = checks.open_probability("probability", probability)
    exponent = up(2 * epsilon * math.sqrt(up(-count * math.log(probability), 4)), 4)
    return up(math.exp(exponent), 4) if exponent < 709 else math.inf


def pure_to_approx_mironov(epsilon: float, count: int, delta: float) -> float:
    """4 eps sqrt(2 n log(1/delta)) for n epsilon-DP steps, rounded up; needs log(1/delta) >= eps^2 n.

    [Mironov 2017, Cor. 1; without its condition the bound is false, see docs/errata.md]

    >>> round(pure_to_approx_mironov(0.2, 50, 0.01), 10)
    17.1677282103
    """
    epsilon, count = checks.nonnegative("epsilon", epsilon), _checked_count(count)
    log_inverse = -math.log(checks.open_probability("delta", delta))
    if not down(log_inverse, 2) >= up(epsilon * epsilon * count, 2):
        raise InvalidArgument("delta", "at most exp(-epsilon^2 count), the condition of the theorem", delta)
    return up(4 * epsilon * math.sqrt(2 * count * up(log_inverse, 2)), 4)


def _checked_count(count: int) -> int:
    number = checks.count("count", count)
    if number > _MOST_STEPS:
        raise InvalidArgument("count", "at most 2^53 steps", count)
    return number
