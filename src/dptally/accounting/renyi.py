"""Renyi differential privacy: D_a = K(a-1)/(a-1), and K adds under composition.  [Mironov 2017]

Every order gives a valid bound, so the search for the best one may be sloppy; only the last formula rounds
outwards.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np

from dptally import checks
from dptally.accounting import response, two_points
from dptally.accounting.answer import Answer, larger
from dptally.accounting.moments import (
    MOMENT_TRUST,
    Asked,
    divergences,
    infinity_mass,
    log_moment_upper,
    log_moment_upper_or_raise,
    remaining_delta,
    supremum,
)
from dptally.checks import Floats
from dptally.errors import InvalidArgument, Unanswerable
from dptally.law import Composition
from dptally.laws.response import loss_with
from dptally.numerics.exact import between
from dptally.numerics.rounding import EPS, FUNCTION_ULPS, up
from dptally.numerics.search import minimise

__all__ = [
    "CONVERSIONS",
    "MIRONOV_ORDERS",
    "best_delta",
    "best_epsilon",
    "delta",
    "divergence",
    "epsilon",
    "sharper_delta",
    "sharper_epsilon",
    "sigma_for",
]

#: the orders of Mironov 2017, Fig. 3
MIRONOV_ORDERS = (1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 16.0, 32.0, 64.0, math.inf)

#: how a Renyi divergence becomes (epsilon, delta); "tightest" is "cks", and "optimal" where orders were declared:
#: where the order is free the optimum of one order is hardly smaller (0.03 % for 50 Laplace steps) and dear
CONVERSIONS = {
    "tightest": "Canonne, Kamath, Steinke 2020, Prop. 12 (= Balle et al. 2020, Thm. 21)",
    "optimal": two_points.THEOREM,
    "cks": "Canonne, Kamath, Steinke 2020, Prop. 12 (= Balle et al. 2020, Thm. 21)",
    "mironov": "Mironov 2017, Prop. 3",
}
_PURE = "Mironov 2017, Def. 3: order inf is the supremum of the loss"
_NEARBY = 9  # orders around the best one
_MANY = 256  # of laws, or of orders, for exact fractions
_BOTH_WAYS = 1e-9, 1e6, 401  # order - 1 where both directions are bounded, in geometric steps
_LOW, _HIGH = 1e-18, 1e18  # order - 1 is searched for in this range

LogMoment = Callable[[Floats], Floats]  # an upper bound of K(t), t > 0, elementwise


def divergence(plan: Asked, orders: Floats) -> Floats:
    """Renyi divergence of each order in [1, inf], the larger direction, rounded up by what a law's moment may be off.

    D_a = K(a-1)/(a-1) for 1 < a < inf; order 1 is the mean loss (KL), order inf the supremum of the loss
    [Mironov 2017, Def. 3]. Every order is +inf where the loss is infinite with positive probability.
    """
    orders = np.asarray(orders, dtype=np.float64)
    if not np.all(orders >= 1):
        raise InvalidArgument("order", "an order in [1, inf]", orders.tolist())
    out = np.zeros(orders.shape)
    for composition in divergences(plan):
        out = np.maximum(out, _one_divergence(composition, orders))
    return out


def _one_divergence(composition: Composition, orders: Floats) -> Floats:
    if infinity_mass(composition)[1] > 0:
        return np.full(orders.shape, np.inf)
    t = orders - 1  # exact from 1/2 to 2^53, rounded by half an ulp elsewhere, to which K/t is less sensitive
    out = np.full(orders.shape, composition.mean * (1 + MOMENT_TRUST))
    middle = (t > 0) & np.isfinite(t)
    if middle.any():
        with np.errstate(over="ignore"):
            out[middle] = log_moment_upper_or_raise(composition, t[middle]) / t[middle] * (1 + 4 * EPS)
    out[np.isinf(t)] = composition.supremum
    out = np.minimum(out, _by_rho(composition, orders))
    # a divergence is never negative, and that of no order exceeds the largest loss: what rounding adds beyond is cut
    return np.asarray(np.clip(out, 0.0, max(composition.supremum, 0.0)), dtype=np.float64)


def _by_rho(composition: Composition, orders: Floats) -> Floats:
    """a rho, rounded up once, where every law knows its rho: exact for Gaussian noise and for declared zCDP.

    D_a <= a rho is what zCDP says [Bun, Steinke 2016, Def. 1.1]; no limit in the order is lost by it.
    """
    known = [(law.closed_rho(), n) for law, n in composition.parts[:_MANY]]
    if len(composition.parts) > _MANY or orders.size > _MANY or any(rho is None or rho == math.inf for rho, _ in known):
        return np.full(orders.shape, np.inf)
    total = sum((n * Fraction(rho or 0.0) for rho, n in known), Fraction(0))
    finite = [between(Fraction(a) * total)[1] if a < math.inf else math.inf for a in orders.ravel().tolist()]
    return np.array(finite, dtype=np.float64).reshape(orders.shape)


# -- the questions -------------------------------------------------------------------------------------------


def epsilon(
    plan: Asked,
    delta: float,
    conversion: str = "tightest",
    orders: Iterable[float] | None = None,
) -> Answer:
    """The smallest epsilon at ``delta`` that the Renyi divergences prove, rounded up; ``order`` is the one
    that gave it.

    With t = a - 1 and p = P(L = inf):  epsilon = (K(t) + log(1/(delta - p)) + log c(t)) / t,  c = 1 by
    Mironov's Prop. 3 and c(t) = t^t/(1+t)^(1+t) < 1 by Canonne, Kamath, Steinke, Prop. 12 ("cks"). With a mass at
    infinity K is that of the finite losses:  delta(eps) = p + E[(1 - exp(eps - L))+; L < inf] <= p + c(t)
    exp(K(t) - t eps). "optimal" takes all that an order proves (two_points.py), at the best order near by.

    ``orders`` None optimises over the reals in (1, inf]; otherwise the best of those given.
    """
    delta = checks.probability("delta", delta)
    allowed = _checked_orders(orders)
    theorem = _checked_conversion(conversion)
    return larger([_epsilon_one(c, delta, conversion, theorem, allowed) for c in divergences(plan)])


def delta(
    plan: Asked,
    epsilon: float,
    conversion: str = "tightest",
    orders: Iterable[float] | None = None,
) -> Answer:
    """The smallest delta at ``epsilon`` that the Renyi divergences prove, rounded up:  min over t of p + c(t)
    exp(K(t) - t eps).
    """
    epsilon = checks.nonnegative("epsilon", epsilon)
    allowed = _checked_orders(orders)
    theorem = _checked_conversion(conversion)
    return larger([_delta_one(c, epsilon, conversion, theorem, allowed) for c in divergences(plan)])


def _epsilon_one(
    composition: Composition, delta: float, conversion: str, theorem: str, orders: Floats | None
) -> Answer:
    if not composition.parts:
        return Answer(0.0, "renyi", theorem, None, "nothing leaks")
    if delta == 1:
        return Answer(0.0, "renyi", theorem, None, "delta = 1 is no promise")
    remaining = remaining_delta(composition, delta)
    if remaining is None:
        return Answer(math.inf, "renyi", theorem, None, "the loss is infinite with probability above delta")
    best = Answer(math.inf, "renyi", theorem)
    if orders is None or np.isinf(orders).any():
        best = Answer(supremum(composition), "renyi", _PURE, math.inf)
    if remaining == 0:
        return best
    found = _epsilon_at(composition, remaining, conversion, theorem, orders, best.value)
    if math.isinf(min(found.value, best.value)):
        raise Unanswerable(_no_finite_order(orders))
    return found if found.value < best.value else best


def _epsilon_at(
    composition: Composition, delta: float, conversion: str, theorem: str, orders: Floats | None, ceiling: float
) -> Answer:
    """The smallest epsilon over the orders and the conversions that apply; above ``ceiling`` it is not looked for."""
    moment = functools.partial(log_moment_upper, composition)
    value, order = best_epsilon(moment, delta, conversion, orders, ceiling)
    if _is_optimal(conversion, composition) and math.isfinite(value):
        theorem, mass = two_points.THEOREM, infinity_mass(composition)[1]
        near = _near(composition, order, orders)
        value, order = sharper_epsilon(moment, delta, near, (value, order), mass)
    level = _both_ways(composition, conversion, orders, lambda t, x: response.epsilon(t, x, delta))
    if level[0] < value:
        (value, order), theorem = level, response.THEOREM
    return Answer(value, "renyi", theorem, order)


def _delta_one(
    composition: Composition, epsilon: float, conversion: str, theorem: str, orders: Floats | None
) -> Answer:
    mass = infinity_mass(composition)[1]
    if (orders is None or np.isinf(orders).any()) and epsilon >= supremum(composition):
        return Answer(mass, "renyi", _PURE, math.inf)
    moment = functools.partial(log_moment_upper, composition)
    log_delta, order = best_delta(moment, epsilon, conversion, orders)
    if _is_optimal(conversion, composition) and math.isfinite(order):
        theorem = two_points.THEOREM
        log_delta, order = sharper_delta(moment, epsilon, _near(composition, order, orders), (log_delta, order), mass)
    level = _both_ways(composition, conversion, orders, lambda t, x: response.log_delta(t, x, epsilon))
    if level[0] < log_delta:
        (log_delta, order), theorem = level, response.THEOREM
    total = up(math.exp(min(log_delta, 0.0)), 2)
    return Answer(min(up(total + mass) if mass else total, 1.0), "renyi", theorem, order)


def _no_finite_order(orders: Floats | None) -> str:
    if orders is None:
        return "the Renyi divergences of all orders are infinite; ask the certified accountant instead"
    return f"none of the orders {orders.tolist()} has a finite divergence; leave out orders= to search them all"


def sigma_for(order: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """The smallest Gaussian noise that is (order, epsilon)-RDP, rounded up: sigma^2 = a sensitivity^2 / (2 epsilon).

    [Liu, Wang 2025, (34); Mironov 2017, Cor. 3]

    >>> round(sigma_for(10.0, 0.05), 12)
    10.0
    """
    order, epsilon = checks.order("order", order), checks.positive("epsilon", epsilon)
    if math.isinf(order):
        raise InvalidArgument("order", "finite: Gaussian noise has no divergence of order inf", order)
    return up(checks.positive("sensitivity", sensitivity) * math.sqrt(0.5 * order / epsilon), 4)


# -- one log-moment bound, the best order --------------------------------------------------------------------


def best_epsilon(
    log_moment: LogMoment,
    delta: float,
    conversion: str = "tightest",
    orders: Floats | None = None,
    known: float = math.inf,
) -> tuple[float, float]:
    """(epsilon, order) from an upper bound of K: min over t of (K(t) + log(1/delta) + log c(t))/t, rounded
    up, at least 0.

    K and log c are convex, so the quotient has one valley and a walk finds it. A negative quotient proves the
    negative epsilon, hence also 0. The walk to ever larger orders ends where none can come more than 0.1 %
    below an epsilon that is ``known`` already (the supremum).
    """
    log_inverse = up(-math.log(delta), 2)

    def bound(t: Floats) -> Floats:
        k, c = log_moment(t), _log_c(t, conversion)
        with np.errstate(invalid="ignore", over="ignore"):
            slack = (FUNCTION_ULPS + 2) * EPS * (np.abs(k) + log_inverse + np.abs(c))
            return np.asarray(up((k + log_inverse + c + slack) / t, 2), dtype=np.float64)

    def enough(t: float) -> bool:
        # K is convex: beyond t it stays above the chord's line A + s u, so the quotient at u stays above
        # s - (log(1 + u) - b)/u with b = A + log(1/delta) - 1, whose last term is at most exp(-1 - b)
        before, here = (float(k) for k in log_moment(np.array([0.5 * t, t])))
        slope = (here - before) / (0.5 * t)
        b = here - slope * t + log_inverse - 1
        gain = max(math.log1p(t) - b, 0.0) / t if b + 1 < math.log1p(t) else math.exp(-1 - b)
        return slope - gain >= known * (1 - 1e-3) or bool(bound(np.array([t]))[0] <= 0)

    t, value = _best(bound, orders, enough)
    return max(value, 0.0), 1 + t


def best_delta(
    log_moment: LogMoment, epsilon: float, conversion: str = "tightest", orders: Floats | None = None
) -> tuple[float, float]:
    """(log delta, order) from an upper bound of K: min over t of K(t) - t eps + log c(t), rounded up."""

    def bound(t: Floats) -> Floats:
        k, c = log_moment(t), _log_c(t, conversion)
        with np.errstate(invalid="ignore", over="ignore"):
            gain = np.minimum(t * epsilon, 1e300)  # a smaller gain is valid too: no difference of infinities
            slack = (FUNCTION_ULPS + 2) * EPS * (np.abs(k) + gain + np.abs(c))
            return np.asarray(up(k - gain + c + slack, 2), dtype=np.float64)

    t, value = _best(bound, orders, lambda t: bool(bound(np.array([t]))[0] < -760))  # exp underflows
    return value, 1 + t


def sharper_epsilon(
    log_moment: LogMoment, delta: float, orders: Floats, known: tuple[float, float], mass: float = 0.0
) -> tuple[float, float]:
    """(epsilon, order): what is ``known``, or the optimum of two points at one of these orders where that is less."""
    found = _sharper(log_moment, orders, known, lambda t, k: two_points.epsilon(t, k, delta, mass))
    return max(found[0], 0.0), found[1]


def sharper_delta(
    log_moment: LogMoment, epsilon: float, orders: Floats, known: tuple[float, float], mass: float = 0.0
) -> tuple[float, float]:
    """(log delta, order): what is ``known``, or the optimum of two points at one of these orders where that is less."""
    return _sharper(log_moment, orders, known, lambda t, k: two_points.log_delta(t, k, epsilon, mass))


def _both_ways(
    composition: Composition, conversion: str, orders: Floats | None, ask: Callable[[Floats, Floats], Floats]
) -> tuple[float, float]:
    """(value, order): what randomized response proves where every law bounds both directions; inf where it does not."""
    if conversion not in ("tightest", "optimal") or not all(law.both_ways for law, _ in composition.parts):
        return math.inf, math.inf
    t, losses = _responses(composition)
    if orders is not None:
        t = orders[np.isfinite(orders)] - 1
        losses = loss_with(t, log_moment_upper(composition, t))
    values = ask(t, losses)
    i = int(np.argmin(values)) if values.size else -1
    return (float(values[i]), 1 + float(t[i])) if i >= 0 else (math.inf, math.inf)


@functools.lru_cache(maxsize=64)
def _responses(composition: Composition) -> tuple[Floats, Floats]:
    """t and the loss of the randomized response with that moment: at many orders, and at those declared."""
    declared = [t for law, _ in composition.parts for t in law.orders() if t > 0]
    t = np.concatenate([np.geomspace(*_BOTH_WAYS), declared])
    return t, loss_with(t, log_moment_upper(composition, t))


def _sharper(
    log_moment: LogMoment, orders: Floats, known: tuple[float, float], ask: Callable[[float, float], float]
) -> tuple[float, float]:
    """Asks at every order, then twice between the neighbours of the best where the orders are a range."""
    t = np.unique(orders - 1)
    t = t[t > 0]  # 1 + 1e-18 is no order above 1
    best = known
    if not t.size:
        return best
    for _ in range(5):
        moments = log_moment(t)
        values = [ask(float(x), float(k)) if k < math.inf else math.inf for x, k in zip(t, moments, strict=True)]
        i = int(np.argmin(values))
        best = min(best, (float(values[i]), 1 + float(t[i])))
        if t.size != _NEARBY:
            break
        t = np.geomspace(t[max(i - 1, 0)], t[min(i + 1, t.size - 1)], _NEARBY)
    return best


def _is_optimal(conversion: str, composition: Composition) -> bool:
    return conversion == "optimal" or (conversion == "tightest" and any(law.orders() for law, _ in composition.parts))


def _near(composition: Composition, order: float, orders: Floats | None) -> Floats:
    """Orders to look at more closely: those declared, or five of those allowed, or a range around the best so far."""
    declared = [1 + t for law, _ in composition.parts for t in law.orders() if t > 0]
    if orders is None:
        around = order - 1
        return np.array(declared) if declared else 1 + around * np.geomspace(1 / 3, 3, _NEARBY)
    allowed = np.sort(orders[np.isfinite(orders)])
    i = int(np.argmin(np.abs(allowed - order)))
    return allowed[max(i - 2, 0) : i + 3]


def _best(
    bound: Callable[[Floats], Floats], orders: Floats | None, enough: Callable[[float], bool]
) -> tuple[float, float]:
    if orders is None:
        return minimise(bound, _LOW, _HIGH, enough=enough)
    t = orders[np.isfinite(orders)] - 1
    if not t.size:
        return math.inf, math.inf
    values = bound(t)
    values = np.where(np.isnan(values), np.inf, values)
    i = int(np.argmin(values))
    return float(t[i]), float(values[i])


def _log_c(t: Floats, conversion: str) -> Floats:
    """log of t^t/(1+t)^(1+t) (two terms of one sign, nothing cancels), or 0 for Mironov's form."""
    if conversion == "mironov":
        return np.zeros_like(t)
    return -(t * np.log1p(1 / t) + np.log1p(t))


def _checked_conversion(conversion: str) -> str:
    if conversion not in CONVERSIONS:
        raise InvalidArgument("conversion", f"one of {sorted(CONVERSIONS)}", conversion)
    return CONVERSIONS[conversion]


def _checked_orders(orders: Iterable[float] | None) -> Floats | None:
    if orders is None:
        return None
    array = checks.reals("orders", list(orders)).ravel()
    if not array.size or not np.all(array > 1):
        raise InvalidArgument("orders", "a non-empty list of orders in (1, inf]", array.tolist())
    return array
