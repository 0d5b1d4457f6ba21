"""Laws (hypothesis): what must hold of every framework, for random plans.

F7 F8 F11 F13 F14 F15 F31 F32 F35 F36 F43 F45 F47 F49 F53.
"""

import math

import numpy as np
import pytest
from framework_reference import exact_gaussian_delta, exact_optimal_delta
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dptally.accounting import alpha, approximate, concentrated, gaussian, optimal, pure, renyi
from dptally.errors import Unanswerable
from dptally.mechanisms import ApproxDP, Gaussian, Laplace, PureDP, RandomizedResponse

scales = st.floats(1e-3, 1e3).map(lambda x: float(f"{x:.3g}"))
mechanisms = st.one_of(
    scales.map(lambda s: Gaussian(sigma=s)),
    scales.map(lambda s: Laplace(scale=s)),
    st.floats(0.01, 0.99).map(lambda p: RandomizedResponse(p=p)),
    st.floats(1e-4, 20).map(PureDP),
)
plans = st.lists(st.tuples(mechanisms, st.integers(1, 10**6)), min_size=1, max_size=3).map(
    lambda parts: sum(n * m for m, n in parts)
)
deltas = st.floats(-690, -1e-3).map(math.exp)
orders = st.floats(1 + 1e-6, 1e4)


@settings(max_examples=80, deadline=None)
@given(plans, plans, orders)
def test_F36_F43_curves_add(first, second, order):
    a = np.array([1.0, order, math.inf])
    together = renyi.divergence((first + second).directions(), a)
    apart = renyi.divergence(first.directions(), a) + renyi.divergence(second.directions(), a)
    assert np.allclose(together, apart, rtol=1e-12, atol=0)


@settings(max_examples=80, deadline=None)
@given(plans, st.lists(st.floats(1, 1e5), min_size=2, max_size=8))
def test_F8_F31_renyi_is_nondecreasing_in_the_order(plan, chosen):
    a = np.array([1.0, *sorted(chosen), math.inf])
    curve = renyi.divergence(plan.directions(), a)
    assert np.all(curve >= 0)
    assert np.all(curve[1:] >= curve[:-1] * (1 - 1e-12))


@settings(max_examples=80, deadline=None)
@given(plans, st.floats(1 + 1e-4, 50))
def test_F13_alpha_divergence_is_renyi_in_other_units(plan, order):
    a = np.array([order])
    rate = float(renyi.divergence(plan.directions(), a)[0])
    log_alpha = float(alpha.log_divergence(plan.directions(), a)[0])
    k = (order - 1) * rate
    # a (a-1) e_alpha + 1 = exp((a-1) e_renyi)
    if k < 600:
        assert order * (order - 1) * math.exp(log_alpha) == pytest.approx(math.expm1(k), rel=1e-10)
    else:
        assert log_alpha + math.log(order * (order - 1)) == pytest.approx(k, rel=1e-12)


@settings(max_examples=80, deadline=None)
@given(st.floats(1 + 1e-3, 300), st.floats(1e-9, 1e3), st.integers(1, 10**6), st.floats(-100, -0.1))
def test_F13_F15_F18_the_two_calculi_agree(order, epsilon, count, log_delta):
    rate = alpha.to_renyi(order, epsilon)
    assert alpha.from_renyi(order, rate) == pytest.approx(epsilon, rel=1e-9)
    assert alpha.from_renyi(order, rate) >= epsilon  # never to the unsafe side
    total = count * alpha.log_power(order, epsilon)
    assert total == pytest.approx((order - 1) * count * rate, rel=1e-12)
    composed = alpha.self_compose(order, epsilon, count)
    if math.isfinite(composed):
        assert alpha.log_power(order, composed) == pytest.approx(total, rel=1e-9)
    delta = math.exp(log_delta)
    one = alpha.epsilon_from_alpha(order, epsilon, delta)
    assert one == pytest.approx(rate + math.log(1 / delta) / (order - 1), rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.floats(1 + 1e-3, 300), st.floats(1e-9, 10), st.floats(1e-9, 10))
def test_F15_alpha_composition_of_two(order, first, second):
    both = alpha.compose(order, first, second)
    assert both >= max(first, second)
    assert alpha.log_power(order, both) == pytest.approx(
        alpha.log_power(order, first) + alpha.log_power(order, second), rel=1e-9
    )


@settings(max_examples=60, deadline=None)
@given(scales, st.integers(1, 1000), deltas)
def test_every_framework_is_above_the_exact_gaussian(sigma, count, delta):
    plan = (count * Gaussian(sigma=sigma)).directions()
    mu = math.sqrt(count) / sigma
    answers = [
        gaussian.epsilon(plan, delta),
        renyi.epsilon(plan, delta),
        renyi.epsilon(plan, delta, "mironov"),
        renyi.epsilon(plan, delta, orders=renyi.MIRONOV_ORDERS),
        concentrated.epsilon(plan, delta),
        concentrated.epsilon(plan, delta, "bun-steinke"),
        alpha.epsilon(plan, delta),
        approximate.epsilon(plan, delta),
    ]
    exact = answers[0].value
    if exact > 0:
        assert exact_gaussian_delta(mu * (1 + 1e-14), exact * (1 + 1e-13)) <= delta * (1 + 1e-9 * max(1, exact))
    for answer in answers:
        assert answer.value >= exact * (1 - 1e-13) >= 0
        assert not math.isnan(answer.value)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-3, 3), st.integers(1, 40), st.floats(-60, -1e-2))
def test_every_framework_is_above_the_exact_randomized_response(epsilon0, count, log_delta):
    delta = math.exp(log_delta)
    plan = (count * PureDP(epsilon0)).directions()
    best = optimal.epsilon(plan, delta).value
    assert exact_optimal_delta(epsilon0, 0, count, best) <= delta
    for answer in (
        pure.epsilon(plan, delta),
        approximate.epsilon(plan, delta),
        approximate.epsilon(plan, delta, "basic"),
        approximate.epsilon(plan, delta, "kairouz"),
        renyi.epsilon(plan, delta),
        alpha.epsilon(plan, delta),
        concentrated.epsilon(plan, delta),
        gaussian.epsilon(plan, delta),
    ):
        assert exact_optimal_delta(epsilon0, 0, count, answer.value) <= delta, answer


FRAMEWORKS = [renyi, alpha, concentrated, gaussian, approximate]


@settings(max_examples=60, deadline=None)
@given(plans, deltas, st.sampled_from(FRAMEWORKS))
def test_epsilon_and_delta_invert_each_other_on_the_safe_side(plan, delta, framework):
    directions = plan.directions()
    assume(framework is not approximate or math.isfinite(directions[0].supremum))
    epsilon = framework.epsilon(directions, delta).value
    assume(1e-6 < epsilon < 1e6)
    at = framework.delta(directions, epsilon).value
    # what epsilon proves at delta, delta proves at epsilon, to the conditioning of the curve
    slack = 1e-6 * max(1.0, epsilon)
    assert at <= delta * (1 + slack) or epsilon == pure.epsilon(directions).value
    assert framework.delta(directions, epsilon * 1.01).value <= at * (1 + 1e-12)
    assert framework.epsilon(directions, min(delta * 1.5, 1.0)).value <= epsilon * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(plans, deltas)
def test_more_steps_never_cost_less(plan, delta):
    for framework in (renyi, alpha, concentrated, gaussian):
        once = framework.epsilon(plan.directions(), delta).value
        more = framework.epsilon((plan + Laplace(scale=10)).directions(), delta).value
        assert more >= once * (1 - 1e-11)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 3), st.floats(1e-12, 1e-2), st.integers(1, 40), st.floats(1.0001, 1e4))
def test_mass_at_infinity_is_paid_from_delta(epsilon0, delta0, count, factor):
    plan = (count * ApproxDP(epsilon0, delta0)).directions()
    mass = -math.expm1(count * math.log1p(-delta0))
    delta = mass * factor
    assume(delta < 0.9)
    best = optimal.epsilon(plan, delta).value
    assert exact_optimal_delta(epsilon0, delta0, count, best) <= delta
    for answer in (
        renyi.epsilon(plan, delta),
        renyi.epsilon(plan, delta, "mironov"),
        alpha.epsilon(plan, delta),
        approximate.epsilon(plan, delta),
        approximate.epsilon(plan, delta, "basic"),
    ):
        assert exact_optimal_delta(epsilon0, delta0, count, answer.value) <= delta, answer
    for framework in (renyi, approximate, optimal):
        assert exact_optimal_delta(epsilon0, delta0, count, 0.5) <= framework.delta(plan, 0.5).value
        assert framework.epsilon(plan, mass / 2).value == math.inf


def test_barely_above_the_mass_at_infinity():
    """The difference delta - p has its own rounding; forgetting it gave an epsilon 5e-7 too small."""
    for count in (1, 3, 100):
        plan = (count * ApproxDP(0.1, 1e-6)).directions()
        mass = -math.expm1(count * math.log1p(-1e-6))
        for ulps in (20, 1000, 10**6):
            delta = mass * (1 + ulps * 2.0**-52)
            for framework in (renyi, approximate, optimal):
                epsilon = framework.epsilon(plan, delta).value
                if epsilon < 0.1 * count:
                    assert exact_optimal_delta(0.1, 1e-6, count, epsilon) <= delta
    single = ApproxDP(0.1, 1e-6).directions()
    assert renyi.epsilon(single, 1e-6).value == 0.1
    plan, mass = (40 * ApproxDP(0.1, 1e-6)).directions(), -math.expm1(40 * math.log1p(-1e-6))
    with pytest.raises(Unanswerable, match="rounding"):
        renyi.epsilon(plan, mass)
    with pytest.raises(Unanswerable, match="deltas add up"):
        approximate.epsilon(plan, mass)


@settings(max_examples=40, deadline=None)
@given(plans, st.floats(-690, -1).map(math.exp))
def test_fixed_orders_are_never_tighter_than_all_orders(plan, delta):
    free = renyi.epsilon(plan.directions(), delta)
    for chosen in (renyi.MIRONOV_ORDERS, range(2, 65), [7.5]):
        fixed = renyi.epsilon(plan.directions(), delta, orders=chosen)
        assert fixed.value >= free.value * (1 - 1e-10)
        assert fixed.order in (*chosen, None)


def test_adversity_of_scale():
    """delta from 1e-300 to 1, a billion steps, tiny and huge moments: the optimum over orders is found."""
    for mu in (1e-9, 1e-3, 1.0, 1e3, 1e7):
        plan = Gaussian(sigma=1 / mu).directions()
        for delta in (1e-300, 1e-100, 1e-10, 1e-3, 0.9):
            log_inverse = math.log(1 / delta)
            expected = mu * mu / 2 + mu * math.sqrt(2 * log_inverse)
            answer = renyi.epsilon(plan, delta, "mironov")
            assert expected * (1 - 1e-14) <= answer.value <= expected * (1 + 1e-12)
            assert answer.order - 1 == pytest.approx(math.sqrt(2 * log_inverse) / mu, rel=1e-2)
    many = (10**9 * PureDP(1e-5)).directions()
    assert renyi.epsilon(many, 1e-10, "mironov").value == pytest.approx(
        0.05 + 2 * math.sqrt(0.05 * math.log(1e10)), rel=1e-6
    )
