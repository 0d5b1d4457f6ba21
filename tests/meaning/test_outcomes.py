"""Golden and laws (hypothesis): bad outcomes. F33, F56, F62, F64, F65; golden ids fig2.*, fig3.*."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptally.accounting.renyi import MIRONOV_ORDERS
from dptally.errors import InvalidArgument, Unanswerable
from dptally.law import divergences
from dptally.meaning import outcomes
from dptally.mechanisms import ApproxDP, Gaussian, GaussianDP, Laplace, PureDP, RandomizedResponse

RR51, LAP20 = RandomizedResponse(0.51), Laplace(20.0)
THREE = RandomizedResponse(0.52) + Laplace(20.0) + Gaussian(10.0)

# origin: mpmath at 60 and 90 digits, Mironov 2017, Fig. 2 and 3 (golden.json)
RATIOS = [
    ("fig2.rr51.n50.q1e-6.rdp", 50 * RR51, 1e-6, "3.9797201294761207963156885664"),
    ("fig2.rr51.n50.q0.1.rdp", 50 * RR51, 0.1, "1.7567362224286107314956172957"),
    ("fig2.rr51.n250.q1e-6.rdp", 250 * RR51, 1e-6, "22.2138947721751974426494952508"),
    ("fig2.rr51.n250.q0.1.rdp", 250 * RR51, 0.1, "3.17800415839967080631957857976"),
    ("fig2.lap20.n50.q0.001.rdp", 50 * LAP20, 0.001, "3.37555165627325269834666511004"),
    ("fig2.lap20.n50.q0.1.rdp", 50 * LAP20, 0.1, "1.98757435835592315337963109964"),
    ("fig2.lap20.n250.q0.001.rdp", 250 * LAP20, 0.001, "13.4434488507292152753675782866"),
    ("fig2.lap20.n250.q0.1.rdp", 250 * LAP20, 0.1, "3.95160812278747999009678683117"),
    ("fig3.n20.q0.1.ratio", 20 * THREE, 0.1, "3.08867234426947395630562617658"),
    ("fig3.n20.q0.001.ratio", 20 * THREE, 0.001, "8.02402374810290144452195858388"),
    ("fig3.n20.q1e-6.ratio", 20 * THREE, 1e-6, "20.1491011648306578771193510481"),
    ("fig3.n50.q0.1.ratio", 50 * THREE, 0.1, "5.01204742492585865797633533675"),
    ("fig3.n50.q0.001.ratio", 50 * THREE, 0.001, "22.9229347389480037536373643481"),
    ("fig3.n50.q1e-6.ratio", 50 * THREE, 1e-6, "100.77633307870057112443660102"),
    ("fig3.n100.q0.1.ratio", 100 * THREE, 0.1, "7.418389761085205037475655329"),
]
ORDERS = [
    ("fig2.rr51.n250.q1e-6.alpha", 250 * RR51, 1e-6, 8.51340874340895026),
    ("fig3.n20.q0.001.alpha", 20 * THREE, 0.001, 6.15910908156773530),
    ("fig3.n50.q0.001.alpha", 50 * THREE, 0.001, 3.85084652838389771),
    ("fig3.n100.q0.1.alpha", 100 * THREE, 0.1, 1.56319435275992084),
    ("fig3.n100.q0.001.alpha", 100 * THREE, 0.001, 2.71318503660345687),
]


@pytest.mark.parametrize(("name", "plan", "before", "value"), RATIOS, ids=[row[0] for row in RATIOS])
def test_golden_ratios_are_met_from_above(name, plan, before, value):
    got = outcomes.largest_ratio(plan.directions(), before).ratio
    assert got == pytest.approx(float(value), rel=1e-11)
    assert mp.mpf(got) >= mp.mpf(value) * (1 - mp.mpf("1e-15"))


@pytest.mark.parametrize(("name", "plan", "before", "order"), ORDERS, ids=[row[0] for row in ORDERS])
def test_golden_orders(name, plan, before, order):
    """The valley is flat: its bottom is known to the square root of the rounding of the values."""
    assert outcomes.largest_ratio(plan.directions(), before).order == pytest.approx(order, rel=3e-6)


def test_golden_ratio_over_the_thirteen_orders():
    got = outcomes.largest_ratio((100 * THREE).directions(), 0.1, orders=MIRONOV_ORDERS)
    assert got.ratio == pytest.approx(7.4369934805113290730, rel=1e-11)
    assert got.order == 1.5


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
