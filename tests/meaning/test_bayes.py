"""Golden and laws: Bayes factors and posteriors. F34, F44, F63 and the golden ids bayes.*."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import golden
from dptally.divergences import finite as divergences
from dptally.errors import InvalidArgument
from dptally.meaning import bayes
from dptally.mechanisms import ZCDP, ApproxDP, Gaussian, PureDP


@pytest.mark.parametrize("name", golden.ids("bayes.moment."))
def test_golden_moment(name):
    inputs = golden.inputs(name)
    got = bayes.moment(inputs["alpha"], inputs["eps"])
    assert got == pytest.approx(golden.value(name), rel=1e-13)
    assert mp.mpf(got) >= golden.exact(name) * (1 - mp.mpf(2) ** -52)


@pytest.mark.parametrize("name", golden.ids("bayes.markov."))
def test_golden_markov_corrected(name):
    inputs = golden.inputs(name)
    got = bayes.factor_tail(inputs["alpha"], inputs["eps"], inputs["beta"])
    assert got == pytest.approx(golden.value(name), rel=1e-13)


def test_the_printed_markov_form_is_unsafe():
    truth = bayes.gaussian_factor_tail(1.0, 2.0)
    assert truth == pytest.approx(golden.value("bayes.true.gauss.mu1.beta_e2"), rel=1e-13)
    printed = math.exp(0.75) / math.exp(2.0) ** (1 / 0.5)
    assert printed < 0.04 < truth < bayes.factor_tail(1.5, 0.75, math.exp(2.0))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 60), min_size=4, max_size=4),
    st.lists(st.integers(1, 60), min_size=4, max_size=4),
    st.floats(1.05, 12),
    st.floats(0.2, 5),
)
def test_moment_and_tail_hold_for_finite_mechanisms(first, second, order, beta):
    p, q = np.array(first) / sum(first), np.array(second) / sum(second)
    epsilon = divergences.renyi(p, q, order) * (1 + 1e-12)
    assert np.sum(q * (p / q) ** order) <= bayes.moment(order, epsilon) * (1 + 1e-12)
    assert np.sum(p[p / q > beta * (1 + 1e-12)]) <= bayes.factor_tail(order, epsilon, beta) * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 3), st.floats(-2, 8))
def test_f44_zcdp_tail_is_the_best_order_and_holds_for_the_gaussian(rho, log_beta):
    tail = bayes.zcdp_factor_tail(rho, math.exp(log_beta))
    assert bayes.gaussian_factor_tail(math.sqrt(2 * rho), log_beta) <= tail * (1 + 1e-12)
    for order in (1.1, 1.5, 2.0, 4.0, 16.0):
        assert tail <= bayes.factor_tail(order, rho * order, math.exp(log_beta)) * (1 + 1e-12)


def test_extremes():
    assert bayes.factor(1000.0) == math.inf
    assert bayes.moment(2.0, 1000.0) == math.inf
    assert bayes.factor(0.0) >= 1.0
    assert bayes.zcdp_factor_tail(0.0, 2.0) == 0.0
    assert bayes.zcdp_factor_tail(1.0, 0.5) == 1.0
    assert bayes.factor_tail(2.0, 1.0, 1e-300) == 1.0
    assert tuple(bayes.posterior(0.0, 1.0)) == (0.0, 0.0)
    assert tuple(bayes.posterior(1.0, 1.0)) == (1.0, 1.0)
    assert bayes.posterior(1e-300, 700.0).upper <= 1.0


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-9, 1 - 1e-9), st.floats(0, 30))
def test_posterior_is_exact_bayes(prior, epsilon):
    box = bayes.posterior(prior, epsilon)
    with mp.workdps(40):
        odds = mp.mpf(prior) / (1 - mp.mpf(prior))
        low, high = (odds * mp.exp(s * mp.mpf(epsilon)) for s in (-1, 1))
        low, high = low / (1 + low), high / (1 + high)
        assert box.lower <= low
        assert high <= box.upper
        assert box.lower == pytest.approx(float(low), rel=1e-14)
        assert box.upper == pytest.approx(float(high), rel=1e-14)


def test_after_alarm():
    pure = PureDP(1.0).directions()
    assert bayes.after_alarm(pure, 0.5, 0.01) == pytest.approx(math.e / (1 + math.e), rel=1e-6)
    assert bayes.after_alarm(pure, 0.5, 0.01) >= math.e / (1 + math.e) * (1 - 1e-15)
    assert bayes.after_alarm(pure, 0.0, 0.01) == 0.0
    assert bayes.after_alarm(ApproxDP(1.0, 0.01).directions(), 0.1, 0.0) == 1.0
    assert 0.5 < bayes.after_alarm(Gaussian(1.0).directions(), 0.1, 1e-3) < 0.8
    with pytest.raises(InvalidArgument, match="fpr"):
        bayes.after_alarm(pure, 0.5, 0.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: bayes.factor(-1.0),
        lambda: bayes.moment(1.0, 1.0),
        lambda: bayes.moment(math.inf, 1.0),
        lambda: bayes.factor_tail(2.0, 1.0, 0.0),
        lambda: bayes.posterior(1.5, 1.0),
        lambda: bayes.gaussian_factor_tail(0.0, 1.0),
        lambda: bayes.gaussian_factor_tail(1.0, math.inf),
    ],
)
def test_bad_input(call):
    with pytest.raises(InvalidArgument):
        call()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 60), min_size=4, max_size=4),
    st.lists(st.integers(1, 60), min_size=4, max_size=4),
    st.floats(1, 12),
)
def test_the_factor_of_a_plan_covers_every_pair_with_its_guarantee(first, second, beta):
    """Any pair is (epsilon, delta)-DP for its own profile, which bounds the tail of its factor."""
    p, q = np.array(first) / sum(first), np.array(second) / sum(second)
    epsilon = 0.5
    delta = max(np.maximum(p - math.exp(epsilon) * q, 0).sum(), np.maximum(q - math.exp(epsilon) * p, 0).sum())
    box = bayes.factor_exceeds(ApproxDP(epsilon, min(delta * (1 + 1e-12), 1.0)), beta)
    for one, two in ((p, q), (q, p)):
        assert one[one / two > beta * (1 + 1e-12)].sum() <= box.upper * (1 + 1e-12)


def test_the_factor_of_a_plan_by_its_profile():
    """mpmath: P(L > l) of the Gaussian and the least delta(e)/(1 - e^(e-l)); the tail alone is no upper end."""
    with mp.workdps(30):
        level = mp.log(10)
        tail = mp.ncdf(mp.mpf(1) / 2 - level)

        def bound(e):
            return (mp.ncdf(0.5 - e) - mp.exp(e) * mp.ncdf(-0.5 - e)) / (1 - mp.exp(e - level))

        least = min(bound(level * i / 4000) for i in range(4000))
        box = bayes.factor_exceeds(Gaussian(1.0), 10.0)
        assert box.lower <= tail <= box.lower * (1 + mp.mpf("1e-9"))
        assert box.upper <= least * (1 + mp.mpf("1e-9"))
        assert box.upper >= least * (1 - mp.mpf("1e-6"))
    renyi_only = bayes.factor_exceeds(ZCDP(0.5), 10.0)
    assert renyi_only.lower == 0
    assert renyi_only.upper <= bayes.zcdp_factor_tail(0.5, 10.0) * (1 + 1e-9)
    assert bayes.factor_exceeds(PureDP(1.0), 3.0).upper == 0
    assert bayes.factor_exceeds(Gaussian(1.0), 1.0).upper == 1
    with pytest.raises(InvalidArgument, match="tail"):
        bayes.factor_exceeds(Gaussian(1.0), 0.5)
    assert Gaussian(1.0).loss("add").tail(math.log(0.5)).upper > 0.69  # what the advice says
