"""From one Renyi guarantee, (order, epsilon)-RDP."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dptally import checks
from dptally.accounting import response
from dptally.accounting.alpha import from_renyi
from dptally.accounting.approximate import implied_delta, implied_epsilon
from dptally.accounting.renyi import CONVERSIONS, best_delta, best_epsilon, sharper_delta, sharper_epsilon
from dptally.checks import Floats
from dptally.conversions.pure import pure_to_renyi
from dptally.errors import InvalidArgument
from dptally.laws.response import loss_with
from dptally.numerics.rounding import up

__all__ = [
    "renyi_to_alpha",
    "renyi_to_approx",
    "renyi_to_approx_cks",
    "renyi_to_approx_delta",
    "renyi_to_approx_mironov",
    "renyi_to_lower_order",
]


def renyi_to_approx(order: float, epsilon: float, delta: float, conversion: str = "tightest") -> float:
    """(order, epsilon)-RDP implies (epsilon', delta)-DP, rounded up; inf at delta = 0 for a finite order.

    "tightest" is the least epsilon' that the divergences of this order in both directions imply, lower orders included:
    pairs on two points attain it [Asoodeh et al. 2021; proofs in accounting/two_points.py and, for large delta, where
    the pair is randomized response, accounting/response.py]. "cks" is epsilon +
    log((a-1)/a) - (log delta + log a)/(a-1) [Canonne, Kamath, Steinke 2020, Prop. 12]. Order inf is pure DP.

    >>> round(renyi_to_approx(10.0, 0.1, 1e-5), 9), round(renyi_to_approx(10.0, 0.1, 1e-5, "cks"), 9)
    (0.960081421, 1.018010637)
    """
    order, epsilon = _checked(order, conversion), checks.nonnegative("epsilon", epsilon)
    delta = checks.probability("delta", delta)
    if delta == 1 or epsilon == 0:
        return 0.0  # zero divergence of any order means equal distributions
    if math.isinf(order):
        return implied_epsilon(epsilon, 0.0, delta) if conversion in ("tightest", "optimal") else epsilon
    if delta == 0:
        return math.inf
    orders = np.array([order])
    found = best_epsilon(_line(epsilon), delta, conversion, orders)
    if conversion in ("tightest", "optimal"):
        found = sharper_epsilon(_line(epsilon), delta, orders, found)
        return min(found[0], float(response.epsilon(orders - 1, _response_with(order, epsilon), delta)[0]))
    return found[0]


def renyi_to_approx_cks(order: float, epsilon: float, delta: float) -> float:
    """(order, epsilon)-RDP implies (epsilon + log((a-1)/a) - (log delta + log a)/(a-1), delta)-DP, rounded up.

    [Canonne, Kamath, Steinke 2020, Prop. 12; the same as Balle et al. 2020, Thm. 21]

    >>> round(renyi_to_approx_cks(10.0, 0.1, 1e-5), 12)
    1.018010636784
    """
    return renyi_to_approx(order, epsilon, delta, "cks")


def renyi_to_approx_mironov(order: float, epsilon: float, delta: float) -> float:
    """(order, epsilon)-RDP implies (epsilon + log(1/delta)/(order-1), delta)-DP, rounded up.  [Mironov 2017,
    Prop. 3]

    >>> round(renyi_to_approx_mironov(10.0, 0.1, 1e-5), 12)
    1.379213940552
    """
    return renyi_to_approx(order, epsilon, delta, "mironov")


def renyi_to_approx_delta(order: float, epsilon: float, target_epsilon: float, conversion: str = "tightest") -> float:
    """The least delta at ``target_epsilon`` that (order, epsilon)-RDP implies, rounded up; "cks" and "mironov" name
    looser forms, c(a-1) exp((a-1)(epsilon - target)).

    >>> round(renyi_to_approx_delta(10.0, 0.1, 0.960081421), 9)
    1e-05
    """
    order, epsilon = _checked(order, conversion), checks.nonnegative("epsilon", epsilon)
    target = checks.nonnegative("target_epsilon", target_epsilon)
    if epsilon == 0:
        return 0.0
    if math.isinf(order):
        return implied_delta(epsilon, 0.0, target)
    orders = np.array([order])
    found = best_delta(_line(epsilon), target, conversion, orders)
    if conversion in ("tightest", "optimal"):
        found = sharper_delta(_line(epsilon), target, orders, found)
        level = float(response.log_delta(orders - 1, _response_with(order, epsilon), target)[0])
        found = min(found, (level, order))
    log_delta = found[0]
    return min(up(math.exp(min(log_delta, 0.0)), 2), 1.0)


def renyi_to_alpha(order: float, epsilon: float) -> float:
    """The same guarantee in alpha-divergence units: (exp((a-1) epsilon) - 1)/(a (a-1)), rounded up.

    [Liu, Wang 2025, Def. 8]

    >>> round(renyi_to_alpha(2.0, 0.25), 12)
    0.142012708344
    """
    return from_renyi(order, epsilon)


def renyi_to_lower_order(order: float, epsilon: float, target_order: float) -> float:
    """The largest divergence of a lower order that (order, epsilon)-RDP in both directions allows, rounded up.

    It is that of randomized response whose divergence at ``order`` is epsilon, and less than epsilon. Proof: let x be
    the parameter of that response, a the order, 1 < b < a. One h(r) = l r^a + m r^(1-a) + c r + d - r^b vanishes
    doubly at r = e^x and at e^-x (four conditions; the four powers are a Chebyshev system). With the multiplicities
    it has four positive zeros, so by Descartes' rule for real exponents the five coefficients alternate in sign: l
    and m are positive, there is no fifth zero, and h >= 0. Hence E_Q[r^b] <= l E_Q[r^a] + m E_Q[r^(1-a)] + c + d for
    r = dP/dQ, and the two moments on the right are those of the two directions at order a, which are at most those
    of the response, for which equality holds.

    >>> round(renyi_to_lower_order(10.0, 1.0, 2.0), 9)
    0.773530646
    """
    order, target = _checked(order, "tightest"), checks.order("target_order", target_order)
    epsilon = checks.nonnegative("epsilon", epsilon)
    if not 1 < target <= order:
        raise InvalidArgument("target_order", f"above 1 and at most the order {order!r}", target_order)
    if target == order or epsilon == 0:
        return epsilon
    return min(epsilon, pure_to_renyi(float(_response_with(order, epsilon)[0]), target))


def _response_with(order: float, epsilon: float) -> Floats:
    """The loss of the randomized response whose divergence of ``order`` is epsilon, hardly above it."""
    t = np.array([order - 1.0])
    return loss_with(t, _line(epsilon)(t)) if order < math.inf else np.array([epsilon])


def _line(epsilon: float) -> Callable[[Floats], Floats]:
    """K(t) = t epsilon at the one order that is known."""

    def moment(t: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return up(t * epsilon)

    return moment


def _checked(order: float, conversion: str) -> float:
    if conversion not in CONVERSIONS:
        raise InvalidArgument("conversion", f"one of {sorted(CONVERSIONS)}", conversion)
    number = checks.order("order", order)
    if not number > 1:
        raise InvalidArgument("order", "an order in (1, inf]", order)
    return number
