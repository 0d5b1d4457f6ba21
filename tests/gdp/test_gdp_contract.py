"""Contract: bad input is refused and named, results carry what a plot needs, and what is not known is not
said.
"""

import math

import numpy as np
import pytest

import dptally as dp
from dptally import gdp
from dptally.errors import CannotCalibrate, InvalidArgument, InvalidType, Unanswerable

LAPLACE = dp.Laplace(0.5)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "1", None, True, [1.0]])
def test_bad_heads_and_tolerances(value):
    calls = [
        lambda: gdp.measure(LAPLACE, tolerance=value),
        lambda: gdp.algorithm_one(LAPLACE, head=value),
        lambda: gdp.staircase(LAPLACE, value, 10),
        lambda: gdp.rectify(LAPLACE, 0.0, 1.0, value),
        lambda: gdp.rate_for(LAPLACE, value),
        lambda: gdp.noisy_sgd(value, 1.0, 1.0),
        lambda: gdp.icea(value, 4),
        lambda: gdp.laplace(value),
        lambda: gdp.naive(lambda e, d: 1.0, value),
    ]
    if value is not None:
        calls += [
            lambda: gdp.measure(LAPLACE, head=value),
            lambda: gdp.summary(LAPLACE, head=value),
            lambda: gdp.rate_for(LAPLACE, 1.0, head=value),
        ]
    for call in calls:
        with pytest.raises(InvalidArgument):
            call()


@pytest.mark.parametrize("subject", [None, 1.0, "Laplace", lambda e: 0.0])
def test_bad_subjects(subject):
    for call in (
        gdp.measure,
        gdp.identify,
        lambda m: gdp.transform(m, 1.0),
        gdp.summary,
        lambda m: gdp.rate_for(m, 1.0),
    ):
        with pytest.raises(InvalidType):
            call(subject)
    with pytest.raises(InvalidType):
        gdp.refined(subject)


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, math.inf, "a", [0.0, -1.0], True])
def test_bad_epsilons(epsilon):
    with pytest.raises(InvalidArgument):
        gdp.transform(LAPLACE, epsilon)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda e: 0.1 + 0.01 * min(e, 5.0), r"nonincreasing in epsilon, got .*delta\(0\) = 0.1 and delta\("),
        (lambda e: 1.5, r"delta_of_epsilon\(0\) must be in \[0, 1\], got 1.5"),
        (lambda e: 0.5 if e < 3 else -0.1, r"delta_of_epsilon\(3\.\d+\) must be in \[0, 1\], got -0.1"),
        (lambda e: math.nan, r"delta_of_epsilon\(0\) must be a number"),
        (lambda e: "x", r"delta_of_epsilon\(0\) must be a real number"),
    ],
)
def test_bad_profiles_say_where_they_failed(function, text):
    with pytest.raises(InvalidArgument, match=text):
        gdp.Curve(function)


def test_a_profile_that_rises_between_the_first_points_is_found_out():
    bump = gdp.Curve(lambda e: 0.3 if 0.8123 < e < 0.8124 else 0.2 * math.exp(-e))
    with pytest.raises(InvalidArgument, match="nonincreasing"):
        gdp.algorithm_one(bump, head=1.0, tolerance=1e-3)


def test_bad_constructions():
    with pytest.raises(InvalidType):
        gdp.Curve(0.5)
    with pytest.raises(InvalidArgument, match="zero_from"):
        gdp.Curve(lambda e: 0.0, zero_from=0.0)
    with pytest.raises(InvalidType):
        gdp.naive(3.0, 1.0)
    with pytest.raises(InvalidArgument, match="users"):
        gdp.icea(20, 0.5)
    with pytest.raises(InvalidArgument, match="low, high"):
        gdp.rectify(LAPLACE, 1.0, 1.0, 2.0)
    with pytest.raises(InvalidArgument, match="low, high"):
        gdp.rectify(LAPLACE, 2.0, 1.0, 2.0)
    with pytest.raises(InvalidArgument, match="tolerance"):
        gdp.measure(LAPLACE, tolerance=1e-13)
    with pytest.raises(InvalidArgument, match="use measure"):
        gdp.algorithm_one(LAPLACE, head=10.0, tolerance=1e-9)
    with pytest.raises(InvalidArgument, match="steps"):
        gdp.staircase(LAPLACE, 1.0, 0)
    with pytest.raises(InvalidArgument, match="equation"):
        gdp.naive(lambda e, d: math.nan, 1.0)


def test_renyi_only_guarantees_with_a_gaussian_tail_are_measured():
    found = gdp.measure(dp.ZCDP(0.5))
    assert found.covered
    assert found.mu.lower == pytest.approx(1.0)  # 1-GDP is 0.5-zCDP, so an implied mu cannot be smaller
    assert found.mu.upper < 1.540457  # what delta(0) of the Renyi conversion needs; Theorem 2.1 improves it
    # whatever is 0.5-zCDP is covered
    for make in (dp.PureDP, lambda x: dp.Laplace(1 / x), lambda x: dp.RandomizedResponse(1 / (1 + math.exp(-x)))):
        attained = dp.calibrate(make, rho=0.5)
        assert make(attained).rho() == pytest.approx(0.5, rel=1e-6)
        assert gdp.measure(make(attained)).mu.lower <= found.mu.upper
    mixed = gdp.measure(dp.ZCDP(0.02) + dp.Laplace(10.0), tolerance=1e-3)
    assert 0.2 * (1 - 1e-9) < mixed.mu.lower <= mixed.mu.upper < 0.5
    with pytest.raises(Unanswerable, match="head"):
        gdp.measure(dp.RenyiDP([2.0], [0.1]))


def test_an_unknown_tail_is_not_measured_without_a_head():
    curve = gdp.Curve(lambda e: 0.5 * math.exp(-e))
    with pytest.raises(Unanswerable, match="head"):
        gdp.measure(curve)
    found = gdp.measure(curve, head=4.0)
    assert not found.covered
    with pytest.raises(Unanswerable, match="rectify"):
        found.guarantee()
    assert found.left_out >= curve.delta(4.0)


def test_guarantees_compose():
    first = gdp.measure(LAPLACE).guarantee()
    assert isinstance(first, dp.GaussianDP)
    assert (2 * first).epsilon(1e-5) >= (2 * LAPLACE).epsilon_interval(1e-5).lower
    with pytest.raises(Unanswerable, match="no mu"):
        gdp.measure(dp.ApproxDP(1.0, 1e-6)).guarantee()


def test_results_hold_what_plots_need():
    found = gdp.measure(LAPLACE)
    band, stairs, profile = found.transform(50), found.staircase(20), found.profile(50)
    assert band.epsilon.shape == band.lower.shape == (50,)
    assert stairs.lower.shape == (20,)
    assert (stairs.lower <= stairs.upper).all()
    assert (profile.upper <= found.gaussian_profile(50) * (1 + 1e-9)).all()
    assert profile.lower[0] <= -math.expm1(-1.0) <= profile.upper[0]
    head = gdp.measure(dp.dpsgd(1.0, 0.01, 100), head=1.0)
    assert head.epsilons(3)[-1] == 1.0
    nothing = gdp.measure(dp.ApproxDP(1.0, 0.1))
    assert (nothing.gaussian_profile(4) == 1).all()


def test_arrays_keep_their_shape():
    band = gdp.transform(LAPLACE, np.array([[0.0, 1.0], [1.9, 5.0]]))
    assert band.lower.shape == (2, 2)
    assert band.lower[1, 1] == band.upper[1, 1] == 0.0
    assert gdp.transform(dp.ApproxDP(1.0, 1.0), 0.0).lower == math.inf


def test_measuring_on_a_head_past_the_end_covers_the_tail():
    assert gdp.measure(LAPLACE, head=5.0).covered
    assert not gdp.measure(LAPLACE, head=1.0).covered


def test_wide_losses_give_a_wide_interval_and_not_a_wrong_one():
    found = gdp.measure(30 * dp.PureDP(3.0), head=1.0)
    assert found.mu.upper >= found.mu.lower > 8
    nothing = gdp.measure(dp.GaussianDP(0.0))
    assert nothing.mu == dp.Interval(0.0, 0.0)


def test_rates():
    found = gdp.rate_for(LAPLACE, mu=0.9782783981)
    assert abs(found.rate - 0.5) < 1e-8
    assert gdp.measure(found.mechanism, tolerance=1e-11).mu.lower <= 0.9782783981
    larger = dp.PoissonSampled(LAPLACE, found.too_large * (1 + 1e-8))
    assert gdp.measure(larger, tolerance=1e-11).mu.upper > 0.9782783981
    assert abs(found.lost - 0.5) < 1e-8
    assert gdp.rate_for(LAPLACE, mu=1.9).rate == 1.0
    assert gdp.rate_for(dp.Gaussian(2.0), mu=0.6).rate == 1.0
    with pytest.raises(CannotCalibrate, match="head"):
        gdp.rate_for(dp.Gaussian(1.0), mu=0.5)
    with pytest.raises(CannotCalibrate, match="1e-12"):
        gdp.rate_for(dp.ApproxDP(0.1, 1.0), mu=1e-9, head=30.0)
    headed = gdp.rate_for(dp.Gaussian(1.0), mu=0.5, head=2.0)
    assert headed.head == 2.0
    assert gdp.measure(headed.mechanism, head=2.0).mu.lower <= 0.5


def test_rate_of_a_curve():
    found = gdp.rate_for(gdp.laplace(0.5), mu=0.98)
    assert 0.499 < found.rate < 0.51


def test_rectified_heads():
    curve = gdp.refined(gdp.icea(20, 4))
    fixed = gdp.rectify(curve, low=-1.0, high=2.0, head=9.0)
    assert fixed.scale * 9.0 >= 3.0
    assert fixed.scale < 0.3334
    assert fixed.mu == gdp.measure(curve, head=9.0).mu
    assert fixed.mechanism == dp.GaussianDP(fixed.mu.upper)
    assert fixed.noise_deviation == pytest.approx(math.sqrt(2) / 3)
    with pytest.raises(Unanswerable, match="refine"):
        gdp.rectify(gdp.icea(20, 4), 0.0, 1.0, 5.0)


def test_a_head_lies_between_the_two_mechanisms_of_the_paper():
    """docs/errata.md, mu = 1, head 3, eps = 4: head-GDP with pure DP 0 <= head GDP <= GDP with failure."""
    head = gdp.measure(dp.GaussianDP(1.0), head=3.0)
    assert head.left_out == pytest.approx(0.0015372, abs=1e-7)
    failing = (1 - head.left_out) * dp.GaussianDP(1.0).delta(4.0) + head.left_out
    assert failing == pytest.approx(0.0015842, abs=1e-7)


def test_sampled_curves():
    curve = gdp.laplace(0.5).sampled(0.5)
    for epsilon in (0.0, 0.3, 1.2, 1.4):
        exact = dp.PoissonSampled(LAPLACE, 0.5).delta(epsilon)
        assert exact * (1 - 1e-12) <= curve.delta(epsilon) <= exact * (1 + 1e-9) + 1e-15
    assert 0.97827839 < gdp.measure(curve).mu.upper < 0.97828
    for rate in (0.0, 1.5, math.nan):
        with pytest.raises(InvalidArgument, match="rate"):
            gdp.laplace(0.5).sampled(rate)
    with pytest.raises(Unanswerable, match="ADD_REMOVE"):
        gdp.rate_for(gdp.laplace(0.5), 1.0, adjacency=dp.REPLACE)
    unbounded = gdp.refined(gdp.noisy_sgd(2.0, 1.0, 2.0)).sampled(0.1)
    assert unbounded.tail_limit == pytest.approx(math.sqrt(0.5))
    assert gdp.measure(unbounded).mu.upper == pytest.approx(math.sqrt(0.5), abs=1e-6)  # the tail's own, in the limit


def test_a_supremum_in_the_limit_is_refused_or_exact():
    """REPLACE: the tail's own mu is not known exactly, and the transform rises towards it."""
    sampled = dp.PoissonSampled(dp.Gaussian(2.0), 0.3, dp.REPLACE)
    with pytest.raises(Unanswerable, match="limit of large epsilon"):
        gdp.measure(sampled)
    assert gdp.measure(sampled, head=2.0).mu.width <= 1e-6
    assert gdp.algorithm_one(dp.ApproxDP(1.0, 1.0), 1.0).lower == math.inf
