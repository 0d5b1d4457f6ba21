"""Golden and laws (hypothesis): optimal composition against exact sums at 50 digits. F52."""

import math

import mpmath as mp
import pytest
from framework_reference import exact_optimal_delta
from hypothesis import given, settings
from hypothesis import strategies as st

from dptally.accounting import approximate, optimal
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.mechanisms import ApproxDP, Gaussian, Laplace, PureDP


@settings(max_examples=150, deadline=None)
@given(
    st.floats(1e-4, 8),
    st.integers(1, 60),
    st.floats(0, 1.05),
    st.booleans(),
    st.sampled_from([0.0, 1e-9, 0.01]),
)
def test_delta_contains_the_exact_sum(epsilon0, count, part, on_lattice, delta0):
    epsilon = part * count * epsilon0
    if on_lattice:  # where a term appears or disappears
        epsilon = max(count - 2 * round((count - epsilon / epsilon0) / 2), 0) * epsilon0
    lower, upper = optimal.log_composed_delta(epsilon0, count, epsilon)
    finite = exact_optimal_delta(epsilon0, 0, count, epsilon)
    with mp.workdps(400):
        truth = mp.log(finite) if finite > mp.mpf(10) ** -300 else None
        if truth is not None:
            assert lower <= truth <= upper
            assert upper - lower < 1e-11
        assert exact_optimal_delta(epsilon0, delta0, count, epsilon) <= optimal.composed_delta(
            epsilon0, delta0, count, epsilon
        )


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-4, 5), st.integers(1, 50), st.floats(-30, -0.01), st.sampled_from([0.0, 1e-8]))
def test_epsilon_is_enough_and_nearly_the_smallest(epsilon0, count, log_delta, delta0):
    delta = math.exp(log_delta)
    if delta <= 2 * count * delta0:
        return
    epsilon = optimal.composed_epsilon(epsilon0, delta0, count, delta)
    with mp.workdps(50):
        assert exact_optimal_delta(epsilon0, delta0, count, epsilon) <= mp.mpf(delta) * (1 + mp.mpf(10) ** -45)
        slightly_less = epsilon * (1 - 1e-10) - 1e-11 * epsilon0
        if slightly_less > 0:
            assert exact_optimal_delta(epsilon0, delta0, count, slightly_less) > delta * (1 - 1e-9)


@pytest.mark.parametrize(
    ("epsilon0", "count", "epsilon", "log_delta"),
    [  # the sum at 40 digits by its term ratios from the largest term
        (1e-3, 10**6, 5.0, None),
        (1e-3, 10**6, 30.0, None),
        (0.01, 10**6, 130.0, None),
        (1.0, 10**6, 470000.0, None),
        (1e-6, 10**6, 0.0, None),
        (3.0, 10**5, 280000.0, None),
    ],
)
def test_a_million_steps(epsilon0, count, epsilon, log_delta):
    with mp.workdps(40):
        e, target = mp.mpf(epsilon0), mp.mpf(epsilon)
        q = 1 / (1 + mp.exp(e))
        last = int((count - target / e) / 2)
        start = min(last, int(count * q))
        log_start = (
            mp.loggamma(count + 1)
            - mp.loggamma(start + 1)
            - mp.loggamma(count - start + 1)
            + (count - start) * mp.log(1 - q)
            + start * mp.log(q)
        )
        total, odds = mp.mpf(0), mp.exp(e)
        for step in (-1, 1):
            term, j = mp.mpf(1), start
            while 0 <= j <= last and term > mp.mpf(10) ** -25:
                gain = 1 - mp.exp(target - (count - 2 * j) * e)
                if gain > 0 and (step < 0 or j > start):
                    total += term * gain
                term *= mp.mpf(j) / (count - j + 1) * odds if step < 0 else mp.mpf(count - j) / (j + 1) / odds
                j += step
        truth = log_start + mp.log(total)
    lower, upper = optimal.log_composed_delta(epsilon0, count, epsilon)
    assert lower <= truth <= upper
    assert upper - lower < 2e-9
    if truth > -700:
        back = optimal.composed_epsilon(epsilon0, 0.0, count, math.exp(upper))
        assert back == pytest.approx(epsilon, rel=1e-9, abs=1e-9)


def test_the_ends():
    assert optimal.composed_epsilon(0.3, 0.0, 7, 0.0) >= 7 * 0.3
    assert optimal.composed_delta(0.3, 0.0, 7, 2.2) == 0.0
    assert optimal.composed_epsilon(0.3, 0.0, 7, 1.0) == 0.0
    assert optimal.composed_epsilon(0.0, 0.1, 1, 0.1) == 0.0
    assert optimal.composed_epsilon(0.5, 0.1, 2, 0.1) == math.inf
    assert optimal.composed_epsilon(0.5, 0.1, 1, 0.1) == 0.5
    assert optimal.composed_delta(0.5, 1.0, 3, 1.0) == 1.0
    assert optimal.log_composed_delta(0.0, 5, 0.0) == (-math.inf, -math.inf)
    barely = math.nextafter(optimal._mass(1e-3, 7)[0], 1)
    with pytest.raises(Unanswerable, match="within rounding"):
        optimal.composed_epsilon(0.5, 1e-3, 7, barely)


@pytest.mark.parametrize("epsilon", [10.0, 2300.0, 2399.5])
def test_enormous_steps_stay_bounds(epsilon):
    lower, upper = optimal.log_composed_delta(800.0, 3, epsilon)
    # all but 3 e^-800 of the mass has the loss 2400
    truth = math.log(-math.expm1(epsilon - 2400.0))
    assert lower <= truth <= upper
    assert optimal.composed_epsilon(800.0, 0.0, 3, 0.5) == pytest.approx(2400 + math.log(0.5), rel=1e-12)


def test_no_theorem_beats_the_optimum():
    for epsilon0, count, delta in ((0.1, 100, 1e-6), (0.5, 20, 1e-3), (2.0, 4, 1e-9), (0.01, 10**5, 1e-10)):
        plan = (count * PureDP(epsilon0)).directions()
        best = optimal.epsilon(plan, delta).value
        for name in ("basic", "advanced", "kairouz", "tightest"):
            assert approximate.epsilon(plan, delta, composition=name).value >= best * (1 - 1e-12)
        mixed = (count * ApproxDP(epsilon0, delta / (10 * count))).directions()
        assert approximate.epsilon(mixed, delta).value >= optimal.epsilon(mixed, delta).value >= best


def test_what_it_cannot_answer():
    with pytest.raises(Unanswerable, match="several different"):
        optimal.epsilon((PureDP(0.1) + PureDP(0.2)).directions(), 1e-5)
    with pytest.raises(Unanswerable, match="unbounded"):
        optimal.epsilon(Gaussian(1.0).directions(), 1e-5)
    with pytest.raises(Unanswerable, match="2\\*\\*50"):
        optimal.log_composed_delta(1e-9, 2**60, 1.0)
    assert optimal.epsilon((0 * Laplace(1.0)).directions(), 1e-5).value == 0.0
    assert optimal.delta((0 * Laplace(1.0)).directions(), 0.5).value == 0.0
    with pytest.raises(InvalidArgument):
        optimal.composed_delta(0.1, 2.0, 3, 1.0)
    with pytest.raises(InvalidType):
        optimal.composed_delta(0.1, 0.0, 3.0, 1.0)
