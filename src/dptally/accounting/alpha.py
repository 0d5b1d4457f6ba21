"""Alpha-divergence differential privacy: (exp K(a-1) - 1)/(a (a-1)). Renyi DP in other units.  [Liu, Wang 2025,
Def. 8]

The identity a (a-1) e_alpha + 1 = exp((a-1) e_renyi) is a strictly increasing bijection at every order, so
the two guarantees are the same condition, their compositions are the same sum, and with the same conversion
neither beats the other. What this file adds is the paper's own units and algorithms, corrected, in log space.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from dptally import checks
from dptally.accounting import renyi
from dptally.accounting.answer import Answer
from dptally.accounting.moments import Asked
from dptally.checks import Floats
from dptally.errors import CannotCalibrate, InvalidArgument, Unanswerable
from dptally.numerics.rounding import EPS, FUNCTION_ULPS, down, up
from dptally.numerics.search import first_true

__all__ = [
    "compose",
    "delta",
    "divergence",
    "epsilon",
    "epsilon_from_alpha",
    "from_renyi",
    "log_divergence",
    "log_power",
    "self_compose",
    "sigma_for",
    "smallest_epsilon",
    "smallest_noise",
    "smallest_sigma",
    "to_renyi",
]

_THEOREM = "Liu, Wang 2025, Prop. 4 (corrected) = Mironov 2017, Prop. 3"
_MOST_NOISE = 1e12
_ALGORITHM = "Liu, Wang 2025, Algorithm {} (corrected)"


# -- divergences of a plan -----------------------------------------------------------------------------------


def divergence(plan: Asked, orders: Floats) -> Floats:
    """Alpha divergence (exp((a-1) D_a) - 1)/(a (a-1)) of each order in [1, inf), the larger direction; order
    1 is KL.

    Rounded up. inf where the divergence is infinite or the double itself overflows; :func:`log_divergence` tells
    which.
    """
    orders = np.asarray(orders, dtype=np.float64)
    with np.errstate(over="ignore"):
        found = np.exp(log_divergence(plan, orders)) * (1 + (FUNCTION_ULPS + 2) * EPS)
    # at order one no logarithm is taken and undone: it would lose as many ulps as it is long
    return np.asarray(np.where(orders == 1, renyi.divergence(plan, np.asarray(1.0)), found), dtype=np.float64)


def log_divergence(plan: Asked, orders: Floats) -> Floats:
    """The logarithm of :func:`divergence`, rounded up, which does not overflow; -inf where the divergence is zero."""
    orders = np.asarray(orders, dtype=np.float64)
    if not np.all((orders >= 1) & (orders < np.inf)):
        raise InvalidArgument("order", "an order in [1, inf)", orders.tolist())
    rates = renyi.divergence(plan, orders)
    t = orders - 1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        body = _log_expm1(t * rates * (1 + EPS))
        parts = np.log(orders), np.log(t)
        above = body - parts[0] - parts[1]
        finite = np.where(np.isfinite(body), np.abs(body), 0.0)
        above = above + 8 * EPS * (1 + finite + np.abs(parts[0]) + np.where(t > 0, np.abs(parts[1]), 0.0))
        plain = np.log(rates)
        plain = plain + FUNCTION_ULPS * EPS * (1 + np.where(np.isfinite(plain), np.abs(plain), 0.0))
        return np.where(t > 0, above, plain)


def _log_expm1(k: Floats) -> Floats:
    """log(e^k - 1) without overflow, k >= 0; -inf at 0."""
    return np.where(k < 40, np.log(np.expm1(np.minimum(k, 40.0))), k + np.log1p(-np.exp(-k)))


# -- one order: the paper's calculus -------------------------------------------------------------------------


def log_power(order: float, epsilon: float) -> float:
    """log(1 + a (a-1) epsilon), rounded up: the quantity that adds under composition."""
    order, epsilon = _order(order), checks.nonnegative("epsilon", epsilon)
    product = order * (order - 1) * epsilon
    if math.isinf(product):
        return up(math.log(order) + math.log(order - 1) + math.log(epsilon), 4)
    return up(math.log1p(product), 4) if product > 0 else 0.0


def compose(order: float, first: float, second: float) -> float:
    """Two (order, epsilon) guarantees on the same data: e1 + e2 + a (a-1) e1 e2, rounded up.  [Liu, Wang 2025,
    Prop. 2]

    >>> round(compose(1.5, 0.3, 0.3), 12)
    0.6675
    """
    order = _order(order)
    first, second = checks.nonnegative("first", first), checks.nonnegative("second", second)
    total = first + second + order * (order - 1) * first * second
    return up(total, 4) if total > 0 else 0.0


def self_compose(order: float, epsilon: float, count: int) -> float:
    """``count`` copies: ((1 + a (a-1) epsilon)^count - 1)/(a (a-1)), rounded up; inf only where the double
    overflows.

    In log space ``count * log_power(order, epsilon)`` never overflows.

    >>> round(self_compose(10.0, 0.5, 2), 12)
    23.5
    """
    total = checks.count("count", count) * log_power(order, epsilon)
    return _from_log_power(_order(order), up(total) if total > 0 else 0.0)


def to_renyi(order: float, epsilon: float) -> float:
    """The Renyi epsilon of the same guarantee: log(1 + a (a-1) epsilon)/(a-1), rounded up.  [Liu, Wang 2025, Def.
    8]

    >>> round(to_renyi(10.0, 0.5), 12)
    0.42540459961
    """
    power = log_power(order, epsilon)
    return up(power / (order - 1), 2) if power > 0 else 0.0


def from_renyi(order: float, epsilon: float) -> float:
    """The alpha-divergence epsilon of the same guarantee: (exp((a-1) epsilon) - 1)/(a (a-1)), rounded up.

    >>> round(from_renyi(2.0, 0.25), 12)
    0.142012708344
    """
    order, epsilon = _order(order), checks.nonnegative("epsilon", epsilon)
    return _from_log_power(order, up((order - 1) * epsilon, 2) if epsilon > 0 else 0.0)


def epsilon_from_alpha(order: float, epsilon: float, delta: float) -> float:
    """(order, epsilon)-ADP implies (log((a (a-1) epsilon + 1)/delta)/(a-1), delta)-DP, rounded up.

    [Liu, Wang 2025, Prop. 4]

    >>> round(epsilon_from_alpha(10.0, 0.5, 1e-5), 12)
    1.704618540162
    """
    delta = checks.open_probability("delta", delta)
    return up((log_power(order, epsilon) + up(-math.log(delta), 2)) / (_order(order) - 1), 4)


def _from_log_power(order: float, log_power: float) -> float:
    """(exp(log_power) - 1)/(a (a-1)), rounded up; inf only where the double overflows."""
    if log_power == 0:
        return 0.0
    if log_power < 600:
        return up(math.expm1(log_power) / (order * (order - 1)), 8)
    log_value = log_power - math.log(order) - math.log(order - 1)  # the -1 is below the last place
    # the exponent carries its own rounding: |log_power| ulps of relative error
    return up(math.exp(log_value), 8 + 2 * log_power) if log_value < 709.7 else math.inf


def _order(order: float) -> float:
    number = checks.real("order", order)
    if not 1 < number < math.inf:
        raise InvalidArgument("order", "an order in (1, inf)", order)
    return number


# -- questions -----------------------------------------------------------------------------------------------


def epsilon(plan: Asked, delta: float, orders: Iterable[float] | None = None) -> Answer:
    """The epsilon at ``delta`` by the paper's conversion, the order optimised: Algorithm 1 for any plan, which is the
    Renyi answer of Mironov's Prop. 3.

    >>> from dptally import Gaussian
    >>> round(epsilon(50 * Gaussian(100.0), 1e-5).value, 9)
    0.341807021
    """
    answer = renyi.epsilon(plan, delta, "mironov", orders)
    return replace(answer, framework="alpha", theorem=_THEOREM)


def delta(plan: Asked, epsilon: float, orders: Iterable[float] | None = None) -> Answer:
    """The delta at ``epsilon`` by the paper's conversion, the order optimised."""
    answer = renyi.delta(plan, epsilon, "mironov", orders)
    return replace(answer, framework="alpha", theorem=_THEOREM)


# -- the paper's algorithms for Gaussian noise ---------------------------------------------------------------


def smallest_epsilon(
    count: int, sigma: float, delta: float, sensitivity: float = 1.0, orders: Iterable[float] | None = None
) -> Answer:
    """Algorithm 1, corrected: min over the order a of  count a Delta^2/(2 sigma^2) + log(1/delta)/(a-1),
    rounded up.

    Over the reals (``orders`` None) a = 1 + (sigma/Delta) sqrt(2 log(1/delta)/count) and the value is
    rho + 2 sqrt(rho log(1/delta)), rho = count Delta^2/(2 sigma^2); the paper's grid is ``orders=range(2,
    301)``.

    >>> answer = smallest_epsilon(count=50, sigma=100, delta=1e-5)
    >>> round(answer.value, 12), round(answer.order, 12)
    (0.341807021221, 68.861404244151)
    """
    count, sigma = checks.count("count", count, 1), checks.positive("sigma", sigma)
    sensitivity, log_inverse = checks.positive("sensitivity", sensitivity), _log_inverse(delta)
    ratio = sensitivity / sigma
    rho = up(0.5 * count * ratio * ratio, 4)
    if orders is None:
        best = 1 + math.sqrt(2 * log_inverse / count) / ratio
        return Answer(up(rho + 2 * math.sqrt(rho * log_inverse), 4), "alpha", _ALGORITHM.format(1), best)
    grid = _grid(orders)
    values = up(rho * grid + log_inverse / (grid - 1), 4)
    i = int(np.argmin(values))
    return Answer(float(values[i]), "alpha", _ALGORITHM.format(1), float(grid[i]))


def smallest_sigma(
    count: int, epsilon: float, delta: float, sensitivity: float = 1.0, orders: Iterable[float] | None = None
) -> Answer:
    """Algorithm 2, corrected: min over a of  Delta sqrt(count a/(2 (epsilon - log(1/delta)/(a-1)))), rounded
    up.

    Over the reals sigma = Delta sqrt(count/2)/(sqrt(epsilon + L) - sqrt(L)), L = log(1/delta), at
    a = 1 + sqrt(L) (sqrt(L + epsilon) + sqrt(L))/epsilon. ``value`` is sigma, the standard deviation of the
    noise.

    >>> answer = smallest_sigma(count=1000, epsilon=1, delta=1e-5)
    >>> round(answer.value, 9), round(answer.order, 9)
    (154.969161322, 24.515440961)
    """
    count, epsilon = checks.count("count", count, 1), checks.positive("epsilon", epsilon)
    sensitivity, log_inverse = checks.positive("sensitivity", sensitivity), _log_inverse(delta)
    if orders is None:
        root = math.sqrt(log_inverse)
        sum_of_roots = math.sqrt(log_inverse + epsilon) + root  # the difference of the roots is epsilon / their sum
        value = up(sensitivity * math.sqrt(0.5 * count) * sum_of_roots / epsilon, 8)
        return Answer(value, "alpha", _ALGORITHM.format(2), 1 + root * sum_of_roots / epsilon)
    grid = _grid(orders)
    room = down(epsilon - up(log_inverse / (grid - 1), 2))
    usable = room > 0
    if not usable.any():
        raise CannotCalibrate(
            f"no order of the {grid.size} given leaves room: each needs log(1/delta)/(order - 1) < "
            f"epsilon {epsilon!r}; leave out orders= to search the reals"
        )
    values = up(sensitivity * np.sqrt(0.5 * count * grid[usable] / room[usable]), 8)
    i = int(np.argmin(values))
    return Answer(float(values[i]), "alpha", _ALGORITHM.format(2), float(grid[usable][i]))


def smallest_noise(
    make: Callable[[float], Asked], epsilon: float, delta: float, orders: Iterable[float] | None = None
) -> float:
    """Algorithm 2 for any plan: the smallest noise whose plan ``make(noise)`` has at most this epsilon.

    ``make`` returns less private plans for smaller values, as noise does. The value is certainly enough and within
    1e-7 (relative) of the least. The certified accountant needs less: ``dp.calibrate``.

    >>> from dptally import Gaussian
    >>> round(smallest_noise(lambda sigma: 1000 * Gaussian(sigma), epsilon=1, delta=1e-5), 3)
    154.969
    """
    target, grid = checks.positive("epsilon", epsilon), None if orders is None else _grid(orders)

    def enough(noise: float) -> bool:
        return _epsilon_or_inf(make(noise), delta, grid) <= target

    high = 1.0
    while not enough(high):
        high *= 4
        if high > _MOST_NOISE:
            raise CannotCalibrate(f"no noise up to {_MOST_NOISE:g} has epsilon {target!r} at delta {delta!r}")
    low = 0.25 * high
    while low > 1 / _MOST_NOISE and enough(low):
        low, high = 0.25 * low, low
    return first_true(enough, low, high, 1e-7)


def _epsilon_or_inf(plan: Asked, delta: float, orders: Floats | None) -> float:
    try:
        return epsilon(plan, delta, orders).value
    except Unanswerable:
        return math.inf


def sigma_for(order: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """The smallest Gaussian noise that is (order, epsilon)-ADP, rounded up:

    sigma^2 = a (a-1) sensitivity^2 / (2 log(1 + a (a-1) epsilon))  [Liu, Wang 2025, Cor. 1]

    >>> round(sigma_for(2.0, 0.5), 12)
    1.201122408786
    """
    order, epsilon = _order(order), checks.positive("epsilon", epsilon)
    sensitivity = checks.positive("sensitivity", sensitivity)
    product = down(order * (order - 1) * epsilon, 2)
    log_size = math.log(order) + math.log(order - 1) + math.log(epsilon)
    power = down(math.log1p(product), 2) if math.isfinite(product) else down(log_size, 4 + 4 * abs(log_size))
    if not power > 0:
        raise CannotCalibrate(f"no Gaussian noise that a double can hold meets epsilon {epsilon!r} at order {order!r}")
    return up(sensitivity * math.sqrt(order) * math.sqrt(order - 1) / math.sqrt(2 * power), 6)


def _log_inverse(delta: float) -> float:
    return up(-math.log(checks.open_probability("delta", delta)), 2)


def _grid(orders: Iterable[float]) -> Floats:
    grid = checks.reals("orders", list(orders)).ravel()
    if not grid.size or not np.all((grid > 1) & (grid < np.inf)):
        raise InvalidArgument("orders", "a non-empty list of orders in (1, inf)", grid.tolist())
    return grid
