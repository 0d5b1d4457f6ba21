"""Privacy filters: what a budget of each kind charges for a plan, and why its sum may be trusted.

A filter admits a spend only while a sum of costs, each fixed before its answer is drawn, stays within the
cap, whatever the analysts choose and in whatever order the answers arrive. The proofs are in docs/ledger.md;
the theorem of each filter stands beside it. Prices are upper bounds (exact rationals of doubles that were
rounded up).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dptally import checks
from dptally.accounting.moments import infinity_mass, log_moment_upper
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.law import Composition
from dptally.mechanisms.composed import Composed
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.pure_dp import PureDP
from dptally.numerics.rounding import EPS, up

__all__ = ["FILTERS", "Filter", "Prices", "filter_for", "kinds_that_can_price", "needs_failure"]

Prices = tuple[tuple[float | Fraction, ...], float | Fraction]  # on each meter, and of failure probability

#: the orders of a Renyi account; those whose share of the budget is not positive are dropped
RENYI_ORDERS = (
    1.5,
    2.0,
    2.5,
    3.0,
    4.0,
    5.0,
    6.0,
    8.0,
    11.0,
    16.0,
    23.0,
    32.0,
    45.0,
    64.0,
    91.0,
    128.0,
    256.0,
    512.0,
    1024.0,
)
#: the orders over which an odometer of a zCDP or GDP account minimises
ODOMETER_ORDERS = tuple(1 + 2.0 ** (k / 2) for k in range(-4, 29))
_HALF = Fraction(1, 2)


class Filter(ABC):
    """One kind of budget. Stateless: an account's parameters are passed in."""

    kind: ClassVar[str]
    budget: ClassVar[str]  # the name of the declared guarantee that states such a budget
    parameters: ClassVar[tuple[str, ...]]
    symbol: ClassVar[str]  # what the meters count
    theorem: ClassVar[str]
    reason: ClassVar[str]  # why a plan may have no finite price here
    takes_failure: ClassVar[bool] = True  # whether an account may set a failure share apart

    def read(self, budget: Mechanism) -> dict[str, float]:
        """The parameters of the budget as they were declared, all positive and finite."""
        declared = budget.parameters()
        return {name: checks.positive(f"budget.{name}", declared[name]) for name in self.parameters}

    def orders(self, _parameters: Mapping[str, float], orders: Sequence[float] | None, /) -> tuple[float, ...]:
        """The Renyi orders that the account keeps; empty where its meter is a single number."""
        if orders is not None:
            raise InvalidArgument(
                "orders",
                f"left out for a {self.budget} budget (only ApproxDP budgets keep Renyi orders)",
                orders,
            )
        return ()

    @abstractmethod
    def limits(self, parameters: Mapping[str, float], orders: Sequence[float], /) -> tuple[Fraction, ...]:
        """The cap of each meter, rounded down."""

    def failure_limit(self, _parameters: Mapping[str, float], /) -> Fraction:
        """The cap of the failure probability (infinite losses)."""
        return Fraction(0)

    @abstractmethod
    def price(self, plan: Mechanism, orders: Sequence[float], /) -> Prices:
        """What the plan costs on each meter, rounded up; inf where it cannot be paid for."""

    def price_failing(self, plan: Mechanism, /) -> Prices:
        """The price in an account with a failure share: parts with mass at infinity pay their probability of
        failure, and for the rest the price of a pure guarantee.

        A part whose loss is infinite with probability p and at most s otherwise is (s, p)-DP. So it behaves
        like a mechanism that fails with probability p, whatever the data, and is s-DP where it does not
        [Kairouz, Oh, Viswanath 2015; Murtagh, Vadhan 2016]; docs/ledger.md has the filter's proof.
        """
        steady = Composed.of((part, n) for part, n in plan.parts if not _fails(part))
        prices: list[float | Fraction] = [self.price(steady, ())[0][0]] if steady.parts else []
        failure = Fraction(0)
        for part, n in plan.parts:
            if _fails(part):
                bound, mass = _bound_and_failure(part)
                prices.append(n * self.price(PureDP(bound), ())[0][0] if bound < math.inf else math.inf)
                failure += n * mass
        if any(price == math.inf for price in prices):
            return (math.inf,), failure
        return (sum((Fraction(price) for price in prices), Fraction(0)),), failure

    @abstractmethod
    def odometer(self, spent: Sequence[Fraction], orders: Sequence[float], delta: float, /) -> float:
        """An epsilon that bounds the loss at all times at once, except with probability delta; rounded up."""

    def largest(self, left: float) -> float:
        """The parameter of the largest guarantee of this kind that costs at most ``left``, rounded down."""
        return left


class PureFilter(Filter):
    """Sum of the largest possible losses."""

    kind, budget, parameters, symbol = "pure", "PureDP", ("epsilon",), "epsilon"
    theorem = "Rogers, Roth, Ullman, Vadhan 2016: the sum of adaptively chosen epsilons is a filter and an odometer"
    reason = "its privacy loss has no finite bound"

    def limits(self, parameters: Mapping[str, float], _orders: Sequence[float], /) -> tuple[Fraction, ...]:
        return (Fraction(parameters["epsilon"]),)

    def price(self, plan: Mechanism, _orders: Sequence[float], /) -> Prices:
        return (max(map(_largest_loss, plan.directions()), default=Fraction(0)),), Fraction(0)

    def odometer(self, spent: Sequence[Fraction], _orders: Sequence[float], _delta: float, /) -> float:
        return _float_up(spent[0])


class ConcentratedFilter(Filter):
    """Sum of rho."""

    kind, budget, parameters, symbol = "zcdp", "ZCDP", ("rho",), "rho"
    theorem = (
        "Feldman, Zrnic 2021 (fully adaptive Renyi composition, applied at every order); Whitehouse, Ramdas, "
        "Rogers, Wu 2023"
    )
    reason = "it has no finite zCDP parameter rho"

    def limits(self, parameters: Mapping[str, float], _orders: Sequence[float], /) -> tuple[Fraction, ...]:
        return (Fraction(parameters["rho"]),)

    def price(self, plan: Mechanism, _orders: Sequence[float], /) -> Prices:
        return (_exact(plan.rho()),), Fraction(0)

    def odometer(self, spent: Sequence[Fraction], _orders: Sequence[float], delta: float, /) -> float:
        rho = _float_up(spent[0])
        return _time_uniform([up(order * rho) for order in ODOMETER_ORDERS], ODOMETER_ORDERS, delta)


class GaussianFilter(Filter):
    """Sum of mu squared."""

    kind, budget, parameters, symbol = "gdp", "GaussianDP", ("mu",), "mu^2"
    theorem = (
        "Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2022: the sum of adaptively chosen mu^2 is a filter "
        "for Gaussian DP"
    )
    reason = "no Gaussian-DP parameter mu is known for it"

    def limits(self, parameters: Mapping[str, float], _orders: Sequence[float], /) -> tuple[Fraction, ...]:
        return (Fraction(parameters["mu"]) ** 2,)

    def price(self, plan: Mechanism, _orders: Sequence[float], /) -> Prices:
        return (max(map(_mu_squared, plan.directions()), default=Fraction(0)),), Fraction(0)

    def odometer(self, spent: Sequence[Fraction], _orders: Sequence[float], delta: float, /) -> float:
        # mu-GDP has Renyi divergences of at most order * mu^2 / 2, those of the Gaussian pair that dominates
        # it
        half = _float_up(spent[0] * _HALF)
        return _time_uniform([up(order * half) for order in ODOMETER_ORDERS], ODOMETER_ORDERS, delta)

    def largest(self, left: float) -> float:
        return math.nextafter(math.sqrt(left), 0.0) if left > 0 else 0.0


class RenyiFilter(Filter):
    """A meter for each order of a fixed grid; a spend is refused only when it would exhaust every order.

    Order a has the share B(a) = epsilon - (log(n/d) + log c(a)) / (a - 1) of the budget, where n is the
    number of orders, c(a) = (a-1)^(a-1) / a^a and d is half of delta; the other half pays for infinite losses
    (plans that fail).
    """

    kind, budget, parameters, symbol = "approx", "ApproxDP", ("epsilon", "delta"), "Renyi epsilon"
    theorem = (
        "Feldman, Zrnic 2021; Lecuyer 2021 (Renyi filter over a grid of orders), with the conversion of "
        "Canonne, Kamath, Steinke 2020"
    )
    reason = "its Renyi divergence is infinite at every order that the account keeps"
    takes_failure = False

    def read(self, budget: Mechanism) -> dict[str, float]:
        parameters = super().read(budget)
        checks.open_probability("budget.delta", parameters["delta"])
        return parameters

    def orders(self, parameters: Mapping[str, float], orders: Sequence[float] | None, /) -> tuple[float, ...]:
        chosen = tuple(
            sorted({checks.finite("orders", order) for order in (RENYI_ORDERS if orders is None else orders)})
        )
        if not chosen or not chosen[0] > 1:
            raise InvalidArgument("orders", "one or more finite numbers above 1", orders)
        while True:  # fewer orders make each share larger, so what is kept stays positive
            kept = tuple(
                order for order, share in zip(chosen, self.limits(parameters, chosen), strict=True) if share > 0
            )
            if kept == chosen:
                return kept
            if not kept:
                raise InvalidArgument(
                    "budget",
                    "large enough for some Renyi order at this delta; give larger orders",
                    dict(parameters),
                )
            chosen = kept

    def limits(self, parameters: Mapping[str, float], orders: Sequence[float], /) -> tuple[Fraction, ...]:
        epsilon, delta = parameters["epsilon"], parameters["delta"]
        shares = []
        for a in orders:
            terms = (
                math.log(len(orders)),
                -math.log(0.5 * delta),
                (a - 1) * math.log1p(-1 / a),
                -math.log(a),
            )
            above = math.fsum(terms) + 8 * EPS * math.fsum(map(abs, terms))  # logs within 1 ulp, products within 2
            shares.append(Fraction(epsilon) - Fraction(above) / Fraction(a - 1))
        return tuple(shares)

    def failure_limit(self, parameters: Mapping[str, float], /) -> Fraction:
        return Fraction(parameters["delta"]) * _HALF

    def price(self, plan: Mechanism, orders: Sequence[float], /) -> Prices:
        t = np.asarray(orders, dtype=np.float64) - 1
        worst, failure = np.zeros(t.shape), 0.0
        for composition in plan.directions():
            bound = np.asarray(up(log_moment_upper(composition, t) / t, 2), dtype=np.float64)
            worst = np.maximum(
                worst, bound
            )  # K of the finite losses may be negative where some are infinite: 0 is above it
            failure = max(failure, infinity_mass(composition)[1])
        return tuple(_exact(float(price)) for price in worst), Fraction(failure)

    def odometer(self, spent: Sequence[Fraction], orders: Sequence[float], delta: float, /) -> float:
        return _time_uniform([_float_up(value) for value in spent], orders, delta)


def _time_uniform(renyi: Sequence[float], orders: Sequence[float], delta: float) -> float:
    """min over orders of S(a) + log(n/delta) / (a - 1), rounded up: Ville's inequality for the mean of the n
    supermartingales exp((a-1)(L - S(a))) bounds the loss L at all times and orders at once.
    """
    log_term = up(math.log(len(orders)) - math.log(delta), 4)
    return min(up(s + up(log_term / (a - 1), 2), 2) for s, a in zip(renyi, orders, strict=True))


def _largest_loss(composition: Composition) -> float | Fraction:
    if any(law.infinity_mass > 0 or not law.supremum < math.inf for law, _ in composition.parts):
        return math.inf
    return max(sum((n * Fraction(law.supremum) for law, n in composition.parts), Fraction(0)), Fraction(0))


def _mu_squared(composition: Composition) -> float | Fraction:
    if any(law.infinity_mass > 0 or not law.gaussian_mu() < math.inf for law, _ in composition.parts):
        return math.inf
    return sum((n * Fraction(law.gaussian_mu()) ** 2 for law, n in composition.parts), Fraction(0))


def _fails(part: Mechanism) -> bool:
    return any(law.infinity_mass > 0 for law in part.laws())


def _bound_and_failure(part: Mechanism) -> tuple[float, Fraction]:
    """The largest finite loss and the largest probability of an infinite one, over both directions."""
    laws = part.laws()
    return max(0.0, *(law.supremum for law in laws)), max(Fraction(law.infinity_mass) for law in laws)


def _exact(value: float) -> float | Fraction:
    return value if math.isinf(value) else Fraction(value)


def _float_up(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


FILTERS: dict[str, Filter] = {f.kind: f for f in (PureFilter(), ConcentratedFilter(), GaussianFilter(), RenyiFilter())}


def filter_for(budget: object) -> Filter:
    """The filter that keeps a budget of this kind."""
    for candidate in FILTERS.values():
        if isinstance(budget, Mechanism) and type(budget).__name__ == candidate.budget:
            return candidate
    wanted = "PureDP(epsilon), ZCDP(rho), GaussianDP(mu), ApproxDP(epsilon, delta) or Menu(items, uses)"
    raise InvalidType("budget", wanted, budget)


def kinds_that_can_price(plan: Mechanism) -> tuple[str, ...]:
    """The kinds of budget that could pay for the plan without a failure share, judged by one mechanism of each type
    at two orders: advice must not cost more than the price.
    """
    sample = _sample(plan)
    rules = FILTERS.values()
    return tuple(rule.budget for rule in rules if _priced(lambda rule=rule: rule.price(sample, RENYI_ORDERS[1:3])))  # type: ignore[misc]


def needs_failure(rule: Filter, plan: Mechanism) -> bool:
    """Whether a budget of this kind could pay for the plan if it had a failure share, judged likewise."""
    return rule.takes_failure and _priced(lambda: rule.price_failing(_sample(plan)))


def _sample(plan: Mechanism) -> Composed:
    return Composed.of((one, 1) for one in {type(part): part for part, _ in plan.parts}.values())


def _priced(price: Callable[[], Prices]) -> bool:
    try:
        return min(price()[0]) < math.inf
    except Unanswerable:
        return False
