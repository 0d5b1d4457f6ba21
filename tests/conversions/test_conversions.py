"""Golden and laws (hypothesis): every edge against mpmath and against what it must imply.

F4 F6 F9 F10 F13 F18 F46 F49 F51 F54 F55 F56 F57 F58 F69 F80.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import golden
from dptally.answers.convert import convert
from dptally.conversions import EDGES, edge
from dptally.conversions.alpha import alpha_to_approx, alpha_to_approx_paper, alpha_to_renyi
from dptally.conversions.approximate import approx_to_approx, approx_to_approx_delta
from dptally.conversions.concentrated import (
    zcdp_to_alpha,
    zcdp_to_approx,
    zcdp_to_approx_bun_steinke,
    zcdp_to_approx_delta,
    zcdp_to_renyi,
)
from dptally.conversions.gaussian import (
    gdp_to_alpha,
    gdp_to_approx,
    gdp_to_approx_delta,
    gdp_to_renyi,
    gdp_to_zcdp,
)
from dptally.conversions.pure import (
    pure_ratio_bound,
    pure_to_alpha,
    pure_to_approx,
    pure_to_approx_mironov,
    pure_to_gdp,
    pure_to_renyi,
    pure_to_renyi_mironov,
    pure_to_zcdp,
)
from dptally.conversions.renyi import (
    renyi_to_alpha,
    renyi_to_approx,
    renyi_to_approx_cks,
    renyi_to_approx_delta,
    renyi_to_approx_mironov,
    renyi_to_lower_order,
)
from dptally.errors import InvalidArgument
from dptally.mechanisms import AlphaDP, RenyiDP

epsilons = st.floats(1e-6, 30)
orders = st.floats(1 + 1e-4, 1e3)
deltas = st.floats(-200, -0.05).map(math.exp)


def rows(prefix):
    return [(golden.inputs(name), golden.value(name)) for name in golden.ids(prefix)]


def above(value, reference, relative=1e-11):
    return reference * (1 - 1e-16) <= value <= reference * (1 + relative)


@pytest.mark.parametrize(("inputs", "value"), rows("mironov.cor1"))
def test_F57_mironov_corollary_1(inputs, value):
    result = pure_to_approx_mironov(inputs["eps"], inputs["n"], inputs["delta"])
    assert above(result, value)


def test_F57_without_its_condition_the_corollary_is_refused():
    """docs/errata.md: epsilon 1, n 1000, delta 0.01 would give 383.9, where the exact delta is 0.9967."""
    with pytest.raises(InvalidArgument, match="condition"):
        pure_to_approx_mironov(1.0, 1000, 0.01)


@pytest.mark.parametrize(("inputs", "value"), rows("prop4."))
def test_F56_proposition_4(inputs, value):
    assert above(pure_ratio_bound(inputs["eps"], inputs["n"], inputs["Q"]), value)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 1), st.integers(1, 40), st.integers(0, 40))
def test_F56_proposition_4_holds_for_randomized_response(epsilon, count, successes):
    """The tails of n randomized responses are the worst events: brute force."""
    successes = min(successes, count)
    p = 1 / (1 + math.exp(-epsilon))

    def tail(rate):
        terms = (math.comb(count, j) * rate**j * (1 - rate) ** (count - j) for j in range(successes, count + 1))
        return math.fsum(terms)

    other = tail(1 - p)
    if other < 1:
        assert tail(p) / other <= pure_ratio_bound(epsilon, count, other) * (1 + 1e-12)


def test_ratio_bound_overflows_only_upwards():
    assert pure_ratio_bound(100.0, 10**6, 1e-300) == math.inf
    assert pure_ratio_bound(0.0, 5, 0.5) >= 1.0


def exact_response_renyi(epsilon, order):
    with mp.workdps(60):
        p = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
        a = mp.mpf(order)
        return mp.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)


@settings(max_examples=150, deadline=None)
@given(epsilons, orders)
def test_F55_F58_pure_to_renyi_is_exact_and_below_the_generic_bounds(epsilon, order):
    result = pure_to_renyi(epsilon, order)
    truth = exact_response_renyi(epsilon, order)
    assert truth <= result <= float(truth) * (1 + 1e-13)
    assert result <= pure_to_renyi_mironov(epsilon, order)
    assert result <= 0.5 * order * epsilon**2 * (1 + 1e-12)  # the improved constant of Lemma 1
    assert result <= zcdp_to_renyi(pure_to_zcdp(epsilon), order) * (1 + 1e-12)
    assert pure_to_renyi(epsilon, 1.0) <= result * (1 + 1e-12)
    assert result <= pure_to_renyi(epsilon, math.inf) == epsilon


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-3, 20), orders, deltas)
def test_F18_F54_conversions_to_approx_are_safe_for_randomized_response(epsilon, order, delta):
    rate = pure_to_renyi(epsilon, order)
    exact = pure_to_approx(epsilon, delta)
    tight, plain = renyi_to_approx(order, rate, delta), renyi_to_approx_mironov(order, rate, delta)
    assert exact * (1 - 1e-14) <= tight <= plain
    units = renyi_to_alpha(order, rate)
    if math.isfinite(units):
        assert alpha_to_renyi(order, units) >= rate * (1 - 1e-9)
        assert alpha_to_approx_paper(order, units, delta) == pytest.approx(plain, rel=1e-7)
        assert alpha_to_approx(order, units, delta) >= exact * (1 - 1e-9)
    assert zcdp_to_approx(pure_to_zcdp(epsilon), delta) >= exact * (1 - 1e-14)
    assert gdp_to_approx(pure_to_gdp(epsilon), delta) >= exact * (1 - 1e-13)


@settings(max_examples=100, deadline=None)
@given(orders, st.floats(1e-6, 50), st.floats(-100, -0.1))
def test_F54_renyi_to_approx_against_the_formula(order, epsilon, log_delta):
    delta = math.exp(log_delta)
    with mp.workdps(40):
        a, d = mp.mpf(order), mp.mpf(delta)
        exact = mp.mpf(epsilon) + mp.log((a - 1) / a) - (mp.log(d) + mp.log(a)) / (a - 1)
        plain = mp.mpf(epsilon) + mp.log(1 / d) / (a - 1)
    result = renyi_to_approx_cks(order, epsilon, delta)
    assert max(exact, 0) <= result <= max(float(exact), 0.0) + 1e-11 * float(plain)
    assert plain <= renyi_to_approx_mironov(order, epsilon, delta) <= float(plain) * (1 + 1e-13)
    back = renyi_to_approx_delta(order, epsilon, result, "cks")
    assert result == 0 or back == pytest.approx(delta, rel=1e-9)
    best = renyi_to_approx(order, epsilon, delta)
    assert best <= result * (1 + 1e-12)
    back = renyi_to_approx_delta(order, epsilon, best)
    assert best == 0 or back == pytest.approx(delta, rel=1e-6)


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 20), st.floats(0, 0.5), st.floats(0, 1), st.floats(0, 25))
def test_F69_theorem_2_1_both_ways(epsilon0, delta0, delta, epsilon):
    with mp.workdps(40):
        e0, d0, e = mp.mpf(epsilon0), mp.mpf(delta0), mp.mpf(epsilon)
        exact = d0 + (1 - d0) * max(mp.exp(e0) - mp.exp(e), 0) / (1 + mp.exp(e0))
        implied = approx_to_approx_delta(epsilon0, delta0, epsilon)
        assert exact <= implied <= float(exact) * (1 + 1e-14) + 1e-15 * (epsilon0 + 1)
        back = approx_to_approx(epsilon0, delta0, delta)
        if delta < delta0:
            assert back == math.inf
        else:
            e = mp.mpf(back)
            assert d0 + (1 - d0) * max(mp.exp(e0) - mp.exp(e), 0) / (1 + mp.exp(e0)) <= delta
            assert back <= epsilon0


@settings(max_examples=100, deadline=None)
@given(epsilons)
def test_F80_pure_to_gdp(epsilon):
    mu = pure_to_gdp(epsilon)
    with mp.workdps(40):
        truth = -2 * mp.sqrt(2) * mp.erfinv(2 / (1 + mp.exp(mp.mpf(epsilon))) - 1)
    assert truth <= mu <= float(truth) * (1 + 1e-12)
    assert mu <= math.sqrt(math.pi / 2) * epsilon * (1 + 1e-12)
    assert mu * mu / 2 >= pure_to_zcdp(epsilon) * (1 - 1e-12)  # GDP implies at least that much zCDP


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-3, 20), st.floats(1.001, 30), deltas)
def test_from_gaussian_dp(mu, order, delta):
    exact = gdp_to_approx(mu, delta)
    rho = gdp_to_zcdp(mu)
    assert mu * mu / 2 <= rho <= mu * mu / 2 * (1 + 1e-15)
    assert order * mu * mu / 2 * (1 - 1e-15) <= gdp_to_renyi(mu, order) <= zcdp_to_renyi(rho, order) * (1 + 1e-14)
    assert exact * (1 - 1e-13) <= zcdp_to_approx(rho, delta) <= zcdp_to_approx_bun_steinke(rho, delta)
    assert exact * (1 - 1e-13) <= renyi_to_approx(order, gdp_to_renyi(mu, order), delta)
    if exact > 1e-3:
        assert gdp_to_approx_delta(mu, exact) == pytest.approx(delta, rel=1e-9 * max(1.0, exact))
        assert zcdp_to_approx_delta(rho, zcdp_to_approx(rho, delta)) == pytest.approx(delta, rel=1e-6)
    assert gdp_to_alpha(mu, order) == pytest.approx(zcdp_to_alpha(rho, order), rel=1e-9) or mu > 5


def test_the_ends():
    assert pure_to_gdp(0.0) == pure_to_zcdp(0.0) == pure_to_renyi(0.0, 5.0) == pure_to_renyi_mironov(0.0, 2.0) == 0.0
    assert pure_to_approx(0.7, 0.0) == 0.7
    assert gdp_to_zcdp(0.0) == gdp_to_renyi(0.0, math.inf) == zcdp_to_renyi(0.0, math.inf) == 0.0
    assert gdp_to_renyi(1.0, math.inf) == zcdp_to_renyi(1.0, math.inf) == math.inf
    assert renyi_to_approx_cks(math.inf, 0.3, 1e-9) == 0.3
    assert renyi_to_approx(math.inf, 0.3, 1e-9) == pure_to_approx(0.3, 1e-9) < 0.3
    assert renyi_to_approx_delta(math.inf, 0.3, 0.2) == approx_to_approx_delta(0.3, 0.0, 0.2)
    assert renyi_to_approx(5.0, 0.0, 0.0) == renyi_to_approx(5.0, 0.3, 1.0) == 0.0
    assert renyi_to_approx(5.0, 0.3, 0.0) == math.inf
    assert renyi_to_approx_delta(math.inf, 0.3, 0.3) == renyi_to_approx_delta(3.0, 0.0, 0.0) == 0.0
    assert pure_to_alpha(0.5, 2.0) == pytest.approx(math.expm1(pure_to_renyi(0.5, 2.0)) / 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: renyi_to_approx(1.0, 0.1, 1e-5),
        lambda: renyi_to_approx(2.0, 0.1, 1e-5, "printed"),
        lambda: renyi_to_approx(2.0, -0.1, 1e-5),
        lambda: zcdp_to_alpha(0.5, math.inf),
        lambda: gdp_to_alpha(0.5, math.inf),
        lambda: pure_to_renyi(0.5, 0.5),
        lambda: pure_to_approx(math.nan, 0.1),
        lambda: pure_ratio_bound(0.1, 5, 0.0),
        lambda: edge("zcdp", "pure"),
        lambda: edge("gdp", "zcdp", "delta"),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(InvalidArgument):
        call()


SAMPLE = {
    "epsilon": 0.5,
    "delta": 1e-5,
    "order": 4.0,
    "rho": 0.1,
    "mu": 0.5,
    "count": 3,
    "target_delta": 1e-3,
    "target_epsilon": 2.0,
}


@pytest.mark.parametrize("one", EDGES, ids=lambda e: e.function.__name__)
def test_every_edge_is_callable_as_the_table_says(one):
    value = one.function(*(SAMPLE[name] for name in (*one.guarantee, *one.asked)))
    assert isinstance(value, float)
    assert value > 0
    assert any(character.isdigit() for character in one.theorem)
    assert one.function.__doc__
    assert one.gives in ("epsilon", "delta", "rho", "mu")
    by_name = one.function(**{name: SAMPLE[name] for name in (*one.guarantee, *one.asked)})
    assert by_name == value


def test_the_first_edge_is_the_tightest():
    for one in EDGES:
        first = edge(one.source, one.target, one.gives)
        if first is not one and first.asked == one.asked:
            arguments = [SAMPLE[name] for name in (*one.guarantee, *one.asked)]
            assert first.function(*arguments) <= one.function(*arguments)


def test_F9_gaussian_noise_for_a_renyi_target():
    """(34): sigma^2 = a Delta^2/(2 epsilon), and (37): sigma^2 = Delta^2/(2 rho)."""
    order, target = 8.0, 0.25
    sigma = math.sqrt(order / (2 * target))
    assert gdp_to_renyi(1 / sigma, order) == pytest.approx(target, rel=1e-14)
    assert gdp_to_zcdp(math.sqrt(2 * 0.3)) == pytest.approx(0.3, rel=1e-14)
    assert np.isclose(gdp_to_alpha(1 / 2.0, 2.0), math.expm1(0.25) / 2)


def two_points(x, y, a):
    """The divergence of order a of two points with ratios e^x and e^-y."""
    q = (1 - mp.exp(-y)) / (mp.exp(x) - mp.exp(-y))
    return mp.log(q * mp.exp(a * x) + (1 - q) * mp.exp(-a * y)) / (a - 1)


def both_ways(x, y, a):
    return max(two_points(x, y, mp.mpf(a)), two_points(y, x, mp.mpf(a)))


def largest(fits):
    """The largest number up to 100 that fits."""
    low, high = mp.mpf(0), mp.mpf(100)
    for _ in range(140):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@pytest.mark.parametrize(
    ("order", "epsilon", "target"), [(10.0, 1.0, 2.0), (3.0, 0.01, 1.5), (50.0, 4.0, 49.0), (2.5, 8.0, 1.01)]
)
def test_a_lower_order_is_that_of_randomized_response(order, epsilon, target):
    """By mpmath: the response attains it; no other pair with both divergences below is above it."""
    found = renyi_to_lower_order(order, epsilon, target)
    with mp.workdps(40):
        x = largest(lambda v: both_ways(v, v, order) <= epsilon)
        exact = both_ways(x, x, target)
        assert exact <= found <= exact * (1 + mp.mpf("1e-12"))
        assert found < epsilon
        for factor in ("0.3", "0.6", "0.9", "1.2", "2", "5"):  # lopsided pairs
            side = mp.mpf(factor)
            x = largest(lambda v, side=side: both_ways(v, side * v, order) <= epsilon)
            assert both_ways(x, side * x, target) <= exact


def test_lower_orders_at_the_edges():
    assert renyi_to_lower_order(math.inf, 1.0, 2.0) == pytest.approx(pure_to_renyi(1.0, 2.0), rel=1e-14)
    assert renyi_to_lower_order(4.0, 0.0, 2.0) == 0.0
    for wrong in (1.0, 5.0, math.inf, math.nan):
        with pytest.raises(InvalidArgument):
            renyi_to_lower_order(4.0, 1.0, wrong)


def test_convert_takes_the_lower_order():
    assert convert(RenyiDP((10.0,), (1.0,)), "renyi", order=2.0).epsilons[0] < 0.77354
    assert convert(RenyiDP((2.0, 10.0), (0.5, 1.0)), "renyi", order=2.0).epsilons[0] == 0.5
    adp = convert(AlphaDP(10.0, 1.0), "alpha", order=2.0)
    assert adp.declared_epsilon < 0.5 * math.expm1(alpha_to_renyi(10.0, 1.0))  # what the same epsilon would be
    assert convert(RenyiDP((4.0,), (0.0,)), "renyi", order=2.0).epsilons == (0.0,)
