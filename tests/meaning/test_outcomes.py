"""Golden and laws (hypothesis): bad outcomes. F33, F56, F62, F64, F65; ids fig2.*, fig3.*, probpres.*."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import golden
from dptally.accounting.renyi import MIRONOV_ORDERS
from dptally.divergences import finite as divergences
from dptally.errors import InvalidArgument, Unanswerable
from dptally.meaning import outcomes
from dptally.mechanisms import ApproxDP, Gaussian, GaussianDP, Laplace, PureDP, RandomizedResponse

THREE = RandomizedResponse(0.52) + Laplace(20.0) + Gaussian(10.0)
RR51 = RandomizedResponse(0.51)
STEP = {"rr51": RR51, "lap20": Laplace(20.0)}  # Mironov 2017, Fig. 2; Fig. 3 composes THREE


def asked(name):
    """(directions, before) of a golden id of Figure 2 or 3."""
    inputs = golden.inputs(name)
    return (inputs["n"] * STEP.get(inputs.get("mech"), THREE)).directions(), inputs["Q"]


@pytest.mark.parametrize("name", [n for n in golden.ids("fig") if n.endswith((".rdp", ".ratio"))])
def test_golden_ratios_are_met_from_above(name):
    got = outcomes.largest_ratio(*asked(name)).ratio
    assert got == pytest.approx(golden.value(name), rel=1e-11)
    assert mp.mpf(got) >= golden.exact(name) * (1 - mp.mpf("1e-15"))


@pytest.mark.parametrize("name", [n for n in golden.ids("fig") if n.endswith(".alpha")])
def test_golden_orders(name):
    """The valley is flat: its bottom is known to the square root of the rounding of the values."""
    assert outcomes.largest_ratio(*asked(name)).order == pytest.approx(golden.value(name), rel=3e-6)


@pytest.mark.parametrize("name", golden.ids("probpres."))
def test_golden_probability_preservation(name):
    inputs = golden.inputs(name)
    box = outcomes.renyi(inputs["alpha"], inputs["eps"], inputs["Q"])
    got = box.lower if ".lower." in name else box.upper
    assert got == pytest.approx(golden.value(name), rel=1e-13)


def test_golden_ratio_over_the_thirteen_orders():
    for name in golden.ids("fig3."):
        if name.endswith("restricted"):
            got = outcomes.largest_ratio(*asked(name), orders=MIRONOV_ORDERS)
            assert got.ratio == pytest.approx(golden.value(name), rel=1e-11)
            assert got.order in MIRONOV_ORDERS


def test_pure_ratio_is_the_order_infinity_where_that_is_best():
    got = outcomes.largest_ratio(PureDP(0.25).directions(), 1e-12)
    assert got.ratio == pytest.approx(math.exp(0.25), rel=1e-9)
    assert outcomes.largest_ratio(PureDP(0.25).directions(), 0.1, orders=[math.inf]).order == math.inf


def test_no_event_passes_probability_one():
    assert outcomes.largest_ratio(Gaussian(0.01).directions(), 0.25).ratio == pytest.approx(4.0, rel=1e-12)


def test_f56_prop_4_holds_for_the_renyi_bound():
    """Mironov 2017, Prop. 4: P(S) <= exp(2 eps sqrt(n log 1/Q)) Q."""
    epsilon = math.log(0.51 / 0.49)
    for n in (10, 100, 250):
        for before in (1e-6, 1e-3, 0.1):
            bound = math.exp(2 * epsilon * math.sqrt(n * math.log(1 / before)))
            assert outcomes.largest_ratio((n * RR51).directions(), before).ratio <= bound


probabilities = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1e-300, 1e-12, 0.5, 1 - 1e-12, 1.0]))


@settings(max_examples=80, deadline=None)
@given(st.floats(0, 6), st.floats(0, 1), probabilities)
def test_approx_contains_the_dominating_pair(epsilon, delta, before):
    """Every event of the pair that dominates (epsilon, delta)-DP, split at random, stays inside."""
    box = outcomes.approx(epsilon, delta, before)
    e = math.exp(epsilon)
    p = [delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0]
    q = [0.0, (1 - delta) / (1 + e), (1 - delta) * e / (1 + e), delta]
    power, left = 0.0, before  # the Neyman-Pearson event with Q = before
    for a, b in zip(p, q, strict=True):
        share = 1.0 if b <= left else max(left, 0.0) / b
        power, left = power + share * a, left - share * b
    assert box.upper >= power - 1e-14
    assert box.upper == pytest.approx(max(power, before), abs=1e-12)
    assert 0 <= box.lower <= before <= box.upper <= 1


def test_approx_keeps_small_numbers():
    box = outcomes.approx(1.0, 0.0, 1e-200)
    assert box.lower == pytest.approx(math.exp(-1) * 1e-200, rel=1e-13)
    assert box.upper == pytest.approx(math.exp(1) * 1e-200, rel=1e-13)
    assert outcomes.pure(1000.0, 0.5).upper == 1.0
    assert outcomes.pure(1000.0, 0.0).upper == 0.0


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 4), st.floats(1e-12, 1 - 1e-12))
def test_zcdp_is_the_best_order_of_prop_10(rho, before):
    box = outcomes.zcdp(rho, before)
    orders = 1 + np.geomspace(1e-4, 1e4, 400)
    grid = [outcomes.renyi(float(a), rho * float(a), before) for a in orders]
    assert box.upper <= min(g.upper for g in grid) * (1 + 1e-12)
    assert box.lower >= max(g.lower for g in grid) * (1 - 1e-12)
    assert box.upper == pytest.approx(min(g.upper for g in grid), rel=2e-2)
    truth = outcomes.gaussian(math.sqrt(2 * rho), before)  # the Gaussian of that rho is one such mechanism
    assert box.lower <= truth.lower * (1 + 1e-12)
    assert truth.upper <= box.upper * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-3, 8), st.floats(1e-12, 1 - 1e-12))
def test_gaussian_and_the_plan_agree(mu, before):
    direct, plan = outcomes.gaussian(mu, before), outcomes.of_plan(GaussianDP(mu).directions(), before)
    assert plan.upper == pytest.approx(direct.upper, rel=1e-10)
    assert plan.lower == pytest.approx(direct.lower, rel=1e-10)
    assert direct.lower <= before <= direct.upper


def test_gaussian_small_events():
    box = outcomes.gaussian(2.0, 1e-250)
    with mp.workdps(60):
        z = mp.findroot(lambda z: mp.log(mp.erfc(z / mp.sqrt(2)) / 2) - mp.log(mp.mpf(1e-250)), 33.8)
        lower, upper = (mp.erfc((z + s) / mp.sqrt(2)) / 2 for s in (2, -2))
    assert box.lower == pytest.approx(float(lower), rel=1e-11)
    assert box.upper == pytest.approx(float(upper), rel=1e-11)
    assert box.lower <= lower <= upper <= box.upper


def test_of_plan_meets_the_guarantee_it_was_declared_with():
    for before in (1e-9, 0.01, 0.4, 0.99):
        declared = outcomes.approx(0.7, 0.01, before)
        plan = outcomes.of_plan(ApproxDP(0.7, 0.01).directions(), before)
        assert plan.upper == pytest.approx(declared.upper, rel=1e-6)
        assert plan.lower == pytest.approx(declared.lower, rel=1e-6, abs=1e-12)
    assert tuple(outcomes.of_plan(PureDP(0.5).directions(), 0.0)) == (0.0, 0.0)
    assert outcomes.of_plan(ApproxDP(0.5, 0.125).directions(), 1.0).lower == pytest.approx(0.875)
    assert outcomes.of_plan(PureDP(0.5).directions(), 1.0).lower == 1.0


@settings(max_examples=40, deadline=None)
@given(*[st.lists(st.integers(1, 50), min_size=3, max_size=3)] * 2)
def test_renyi_and_pure_hold_for_finite_mechanisms(first, second):
    p, q = np.array(first) / sum(first), np.array(second) / sum(second)
    pure = max(divergences.maximum(p, q), divergences.maximum(q, p)) * (1 + 1e-12)
    for event in ([True, False, False], [True, True, False]):
        before, after = float(np.sum(q[event])), float(np.sum(p[event]))
        box = outcomes.pure(pure, before)
        assert box.lower * (1 - 1e-12) <= after <= box.upper * (1 + 1e-12)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: outcomes.pure(-1.0, 0.5), InvalidArgument),
        (lambda: outcomes.approx(1.0, 2.0, 0.5), InvalidArgument),
        (lambda: outcomes.zcdp(1.0, math.nan), InvalidArgument),
        (lambda: outcomes.gaussian(math.inf, 0.5), InvalidArgument),
        (lambda: outcomes.largest_ratio(PureDP(1.0).directions(), 0.0), InvalidArgument),
        (lambda: outcomes.largest_ratio(PureDP(1.0).directions(), 0.1, orders=[]), InvalidArgument),
        (lambda: outcomes.largest_ratio(PureDP(1.0).directions(), 0.1, orders=[1.0]), InvalidArgument),
        (lambda: outcomes.largest_ratio(ApproxDP(1.0, 0.1).directions(), 0.1), Unanswerable),
    ],
)
def test_bad_input(call, kind):
    with pytest.raises(kind):
        call()
