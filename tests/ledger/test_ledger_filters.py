"""Laws: no adaptive adversary, however it chooses, gets past a filter; every price and cap is on the safe
side.

The adversaries are exhaustive: every answer of every mechanism is followed, and the divergence of the whole
interaction is computed exactly from its leaves.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptally as dp
from dptally.ledger.books import DATASET, Books
from dptally.ledger.filters import FILTERS, RENYI_ORDERS, kinds_that_can_price
from dptally.ledger.terms import Terms
from dptally.ledger.units import Amount, as_float_down, as_float_up, digits_for, units_down, units_up


def terms_of(budget: dp.Mechanism, allowance: float = 0.0) -> Terms:
    return Terms.agreed(budget, None, None, dp.ADD_REMOVE, allowance, "")


def books_of(terms: Terms) -> Books:
    return Books(terms.zero, {DATASET: terms.zero}, {DATASET: terms.cap})


# -- exact units ---------------------------------------------------------------------------------------------


@given(st.floats(1e-300, 1e300), st.floats(0, 1e300))
def test_units_round_to_the_safe_side(cap: float, cost: float) -> None:
    digits = digits_for(Fraction(cap))
    unit = 1 / Fraction(10) ** digits
    assert 10**17 <= units_down(Fraction(cap), digits) < 10**18
    assert units_down(Fraction(cap), digits) * unit <= Fraction(cap)
    charged = units_up(cost, digits)
    assert charged * unit >= Fraction(cost) or charged == 10**30
    assert (charged > 0) == (cost > 0)
    assert Fraction(as_float_down(charged, digits)) <= charged * unit <= Fraction(as_float_up(charged, digits))


@given(st.lists(st.floats(0, 1), max_size=30), st.randoms())
def test_sums_do_not_depend_on_the_order(costs: list[float], shuffler: random.Random) -> None:
    amounts = [Amount((units_up(cost, 18),)) for cost in costs]
    total = Amount((0,))
    for amount in amounts:
        total = total + amount
    shuffler.shuffle(amounts)
    again = Amount((0,))
    for amount in amounts:
        again = again + amount
    assert total == again


@pytest.mark.parametrize("bad", [-1.0, math.nan, -math.inf])
def test_costs_that_are_no_costs_are_refused(bad: float) -> None:
    with pytest.raises(dp.InvalidArgument):
        units_up(bad, 18)
    with pytest.raises(dp.InvalidArgument):
        digits_for(Fraction(0))


# -- caps ----------------------------------------------------------------------------------------------------


@given(st.floats(0.01, 30), st.floats(-35, -0.1))
def test_renyi_shares_stay_below_the_exact_ones(epsilon: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    shares = FILTERS["approx"].limits({"epsilon": epsilon, "delta": delta}, RENYI_ORDERS)
    with mpmath.workdps(60):
        for order, share in zip(RENYI_ORDERS, shares, strict=True):
            a = mpmath.mpf(order)
            log_c = (a - 1) * mpmath.log(a - 1) - a * mpmath.log(a)
            exact = mpmath.mpf(epsilon) - (mpmath.log(2 * len(RENYI_ORDERS) / mpmath.mpf(delta)) + log_c) / (a - 1)
            found = mpmath.mpf(share.numerator) / share.denominator
            assert found <= exact
            assert exact - found < 1e-12 * max(1, abs(exact), 40 / (order - 1))


def test_the_grid_keeps_only_orders_with_a_share() -> None:
    terms = terms_of(dp.ApproxDP(0.5, 1e-9))
    assert terms.orders[0] > 32
    assert min(terms.cap.meters) > 0
    one = Terms.agreed(dp.ApproxDP(0.5, 1e-9), None, [256], dp.ADD_REMOVE, 0.0, "")
    assert max(one.cap.meters) / 10.0**one.digits > max(terms.cap.meters[-3:]) / 10.0**terms.digits - 0.1


# -- adaptive adversaries
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Play:
    """A step of the adversary: a declared guarantee, and its worst mechanism as (P, Q) of each answer."""

    mechanism: dp.Mechanism
    answers: tuple[tuple[float, float], ...]


def pure(epsilon: float) -> Play:
    high = 1 / (1 + math.exp(-epsilon))
    return Play(dp.PureDP(epsilon), ((high, 1 - high), (1 - high, high)))


def approximate(epsilon: float, delta: float) -> Play:
    high = (1 - delta) / (1 + math.exp(-epsilon))
    low = (1 - delta) / (1 + math.exp(epsilon))
    return Play(dp.ApproxDP(epsilon, delta), ((high, low), (low, high), (delta, 0.0), (0.0, delta)))


def leaves(
    terms: Terms, plays: list[Play], depth: int, policy: Callable[[float, int], Play | None]
) -> list[tuple[float, float]]:
    """(P, Q) of every end: the adversary sees the loss so far and stops when the filter refuses."""
    ends: list[tuple[float, float]] = []

    def walk(p: float, q: float, books: Books, step: int) -> None:
        loss = math.log(p / q) if p > 0 and q > 0 else math.copysign(99.0, p - q)
        play = policy(loss, step) if step < depth else None
        if play is not None:
            mine = Books(books.zero, dict(books.spent), books.caps)
            if mine.charge("", terms.price(play.mechanism)) is None:
                for given_p, given_q in play.answers:
                    walk(p * given_p, q * given_q, mine, step + 1)
                return
        ends.append((p, q))

    walk(1.0, 1.0, books_of(terms), 0)
    return ends


def hockey_stick(ends: list[tuple[float, float]], epsilon: float) -> float:
    return math.fsum(max(p - math.exp(epsilon) * q, 0.0) for p, q in ends)


def policies(plays: list[Play], seed: int) -> Callable[[float, int], Play | None]:
    """Half the adversaries press on when their loss is high; the others follow a table of coins."""
    rng = random.Random(seed)
    table: dict[tuple[int, int], Play | None] = {}
    small, large = plays[0], plays[-1]

    def choose(loss: float, step: int) -> Play | None:
        if seed % 2:
            return large if loss > 0 else small
        cell = (step, round(loss * 4))
        if cell not in table:
            table[cell] = rng.choice([*plays, *plays, None])
        return table[cell]

    return choose


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(1.5, 0.2), (2.5, 0.05), (1.0, 0.3)]), st.booleans())
def test_renyi_filter_holds_against_adaptive_adversaries(seed: int, budget: tuple[float, float], failing: bool) -> None:
    epsilon, delta = budget
    terms = terms_of(dp.ApproxDP(epsilon, delta))
    plays = [approximate(0.1, 0.01), approximate(0.4, 0.03)] if failing else [pure(0.1), pure(0.25), pure(0.6)]
    ends = leaves(terms, plays, 5 if failing else 8, policies(plays, seed))
    assert hockey_stick(ends, epsilon) <= delta * (1 + 1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 0.8))
def test_scalar_filters_hold_against_adaptive_adversaries(seed: int, size: float) -> None:
    plays = [pure(size / 4), pure(size / 2), pure(size)]
    policy = policies(plays, seed)
    ends = leaves(terms_of(dp.PureDP(1.5)), plays, 8, policy)
    assert max(math.log(p / q) for p, q in ends) <= 1.5 * (1 + 1e-12)
    ends = leaves(terms_of(dp.ZCDP(0.5)), plays, 8, policy)
    for order in (1.25, 2.0, 8.0, 40.0):
        moment = math.fsum(q * (p / q) ** order for p, q in ends)
        assert math.log(moment) / (order - 1) <= 0.5 * order * (1 + 1e-9)
    ends = leaves(terms_of(dp.GaussianDP(1.0)), plays, 8, policy)
    for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
        assert hockey_stick(ends, epsilon) <= dp.GaussianDP(1.0).delta(epsilon) * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 0.5), st.sampled_from([0.05, 0.2]))
def test_failure_shares_hold_against_adaptive_adversaries(seed: int, size: float, failure: float) -> None:
    plays = [approximate(size / 4, failure / 7), pure(size / 2), approximate(size, failure / 3)]
    policy = policies(plays, seed)

    def ends_of(budget: dp.Mechanism) -> list[tuple[float, float]]:
        ends = leaves(failing_terms(budget, failure), plays, 5, policy)
        assert math.fsum(p for p, q in ends if q == 0) <= failure * (1 + 1e-12)
        return ends

    assert hockey_stick(ends_of(dp.PureDP(1.0)), 1.0) <= failure * (1 + 1e-12)
    finite = [(p, q) for p, q in ends_of(dp.ZCDP(0.25)) if p > 0 and q > 0]
    for order in (1.25, 2.0, 8.0, 40.0):
        moment = math.fsum(q * (p / q) ** order for p, q in finite)
        assert math.log(moment) / (order - 1) <= 0.25 * order * (1 + 1e-9)
    ends = ends_of(dp.GaussianDP(0.75))
    for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
        assert hockey_stick(ends, epsilon) <= failure + dp.GaussianDP(0.75).delta(epsilon) * (1 + 1e-9)


def failing_terms(budget: dp.Mechanism, failure: float) -> Terms:
    return Terms.agreed(budget, None, None, dp.ADD_REMOVE, 0.0, "", failure=failure)


def test_prices_in_an_account_with_a_failure_share() -> None:
    for budget in (dp.PureDP(1.0), dp.ZCDP(1.0), dp.GaussianDP(1.0)):
        terms = failing_terms(budget, 1e-6)
        assert terms.stated.endswith("with failure 1e-06")
        for plan in (dp.PureDP(0.25), 3 * dp.Laplace(scale=9.0), 0 * dp.PureDP(1)):
            assert terms.price(plan) == Terms.price(terms_of(budget), plan)  # nothing changes for what does not fail
        cost = terms.price(3 * dp.ApproxDP(0.25, 1e-9) + dp.PureDP(0.125))
        assert cost.failure == units_up(3 * Fraction(1e-9), terms.failure_digits)
        single = FILTERS[terms.kind].price(dp.PureDP(0.25), ())[0][0]
        other = FILTERS[terms.kind].price(dp.PureDP(0.125), ())[0][0]
        assert cost.meters == (units_up(3 * Fraction(single) + Fraction(other), terms.digits),)
        assert terms.price(dp.PoissonSampled(dp.ApproxDP(0.5, 1e-9), 0.5)).failure > 0
    with pytest.raises(dp.CannotPrice, match="with a failure share"):
        terms_of(dp.ZCDP(1.0)).price(dp.ApproxDP(0.1, 1e-9))


def test_what_fails_and_has_no_bound_otherwise_has_no_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dptally.ledger.filters._bound_and_failure", lambda part: (math.inf, Fraction(1, 10**9)))
    with pytest.raises(dp.CannotPrice):
        failing_terms(dp.ZCDP(1.0), 1e-6).price(dp.ApproxDP(0.1234, 1e-9))


def test_failure_shares_that_are_none() -> None:
    for budget, failure in (
        (dp.ZCDP(1), -1e-9),
        (dp.ZCDP(1), 1.0),
        (dp.ZCDP(1), math.nan),
        (dp.ApproxDP(1, 1e-6), 1e-9),
    ):
        with pytest.raises(dp.InvalidArgument, match="failure"):
            failing_terms(budget, failure)
    with pytest.raises(dp.InvalidArgument, match="below delta"):
        Terms.agreed(dp.ZCDP(1), 1e-9, None, dp.ADD_REMOVE, 0.0, "", failure=1e-9)


def test_the_adversaries_would_notice_a_filter_that_lets_too_much_through() -> None:
    plays = [pure(0.25), pure(0.5)]
    loose = terms_of(dp.PureDP(2.0))  # stands in for a filter of budget 1.5 that is off by a third
    assert max(math.log(p / q) for p, q in leaves(loose, plays, 8, lambda loss, step: plays[1])) > 1.5
    wide = terms_of(dp.ApproxDP(4.0, 0.2))
    assert hockey_stick(leaves(wide, plays, 8, lambda loss, step: plays[1] if loss >= 0 else None), 1.0) > 0.2


# -- fixed plans
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-5), (1.0, 1e-6), (3.0, 1e-9), (8.0, 1e-15)])
def test_what_an_approximate_budget_admits_is_private_and_not_much_too_little(epsilon: float, delta: float) -> None:
    terms, step = terms_of(dp.ApproxDP(epsilon, delta)), dp.Gaussian(sigma=40.0)
    books, admitted = books_of(terms), 0
    cost = terms.price(step)
    while books.charge("", cost) is None:
        admitted += 1
    assert (admitted * step).delta(epsilon) <= delta
    assert ((2 * admitted + 2) * step).delta(epsilon) > delta  # within a factor two of the best non-adaptive plan


def test_odometers_are_above_the_certified_epsilon() -> None:
    for budget in (dp.ZCDP(0.5), dp.GaussianDP(1.0), dp.ApproxDP(6.0, 1e-6)):
        terms = terms_of(budget)
        plan = 10 * dp.Gaussian(sigma=12.0)
        spent = terms.price(plan)
        for delta in (1e-5, 2e-6):
            epsilon = terms.filter.odometer(terms.exact(spent), terms.orders, delta)
            assert plan.epsilon(delta) <= epsilon < 2 * plan.epsilon(delta)
    pure_terms = terms_of(dp.PureDP(1.0))
    assert pure_terms.filter.odometer(pure_terms.exact(pure_terms.price(dp.PureDP(0.25))), (), 1e-9) == 0.25


def test_kinds_that_can_price() -> None:
    assert kinds_that_can_price(dp.Laplace(scale=3.0)) == ("PureDP", "ZCDP", "GaussianDP", "ApproxDP")
    assert kinds_that_can_price(dp.ApproxDP(0.1, 1e-6)) == ("ApproxDP",)
    assert kinds_that_can_price(dp.ZCDP(0.1)) == ("ZCDP", "ApproxDP")


# -- disjoint parts
# ----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["", "ward", "age"]), st.sampled_from("AB")), max_size=25))
def test_parts_cost_what_the_worst_record_meets(spends: list[tuple[int, str, str]]) -> None:
    books = Books(Amount((0,)))
    for cost, partition, part in spends:
        books.charge("ann", Amount((cost,)), partition, part if partition else "")
    worst = max(
        sum(cost for cost, partition, part in spends if not partition or part == {"ward": ward, "age": age}[partition])
        for ward in "AB"
        for age in "AB"
    )
    assert books.spent.get(DATASET, Amount((0,))).meters == (worst,)
    assert books.spent.get("ann", Amount((0,))).meters == (worst,)
