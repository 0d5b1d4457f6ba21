"""Laws: the paper's algorithms beside ours. The naive one, plain binary search, and Algorithm 1 as printed
and as corrected are references written in mpmath.
"""

import gdp_reference as reference
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import dptally as dp
from dptally import gdp

TRUTH = mpf("0.23910558373651382673")  # Laplace, Delta/b = 0.2


def test_the_printed_algorithm_is_unsound_and_the_corrected_one_is_not():
    low, high = reference.algorithm_one(reference.laplace(0.2), 0.2, 50, printed=True)
    assert high < TRUTH  # its "upper bound" lies below the truth, by more than the promised error could hide
    low, high = reference.algorithm_one(reference.laplace(0.2), 0.2, 50, printed=False)
    assert low <= TRUTH <= high
    assert high - low <= mpf(1) / 50
    ours = gdp.algorithm_one(dp.Laplace(scale=5.0), 0.2, tolerance=0.02)
    assert ours.lower <= TRUTH <= ours.upper
    assert ours.width <= 0.02


def test_naive_corrected_and_fast_agree():
    curve, mechanism = reference.sampled(reference.laplace(2.0), 0.5), dp.PoissonSampled(dp.Laplace(0.5), 0.5)
    low, high = reference.naive_algorithm(curve, float(mp.log(1 + 0.5 * mp.expm1(2))), 8)
    box = gdp.algorithm_one(mechanism, 1.45, tolerance=1 / 8)
    fast = gdp.measure(mechanism, tolerance=1e-9).mu
    for lower, upper in ((low, high), box):
        assert lower <= fast.lower
        assert fast.upper <= upper + 1e-9
        assert upper - lower <= 1 / 8


@settings(max_examples=12)
@given(st.floats(0.05, 4.0), st.sampled_from([3e-2, 1e-2, 1e-3]))
def test_corrected_algorithm_meets_its_promise(reach, tolerance):
    found = gdp.algorithm_one(dp.Laplace(scale=1.0, sensitivity=reach), reach, tolerance)
    truth = reference.mu_gdp(mpf(0), reference.laplace(reach)(0))
    assert found.lower <= truth <= found.upper
    assert found.width <= tolerance


@settings(max_examples=10)
@given(st.floats(0.0, 5.0), st.floats(1e-12, 0.9))
def test_library_inverse_against_plain_binary_search(epsilon, delta):
    curve = gdp.Curve(lambda e: delta, "constant")
    low, high = reference.binary_search(mpf(epsilon), mpf(delta), mpf(10) ** -14)
    box = gdp.transform(curve, epsilon)
    assert box.lower <= high
    assert low <= box.upper
    assert box.width < 1e-10 * max(1.0, box.upper)


@pytest.mark.parametrize("steps", [1, 5, 40])
@pytest.mark.parametrize("m", [dp.Laplace(0.5), dp.PoissonSampled(dp.Laplace(0.5), 0.1), dp.Gaussian(1.0)])
def test_staircases_enclose_the_transform(m, steps):
    band = gdp.staircase(m, 1.5, steps)
    inside = gdp.transform(m, band.epsilon + 0.37 * 1.5 / steps)
    assert (band.lower <= inside.upper).all()
    assert (inside.lower <= band.upper).all()
    # neighbouring steps: G+ - G- of the head is at most sqrt(2 pi) d  [GDPT paper, Thm. 4.3 and errata
    # docs/errata.md]
    assert band.upper.max() - band.lower.max() <= np.sqrt(2 * np.pi) * 1.5 / steps + 1e-12


@settings(max_examples=5)
@given(st.floats(0.05, 6.0), st.floats(0.02, 1.0))
def test_measure_contains_the_maximum(reach, rate):
    mechanism = dp.PoissonSampled(dp.Laplace(scale=1.0, sensitivity=reach), rate)
    curve = reference.sampled(reference.laplace(reach), rate) if rate < 1 else reference.laplace(reach)
    found = gdp.measure(mechanism, tolerance=1e-9)
    assert found.mu.width <= 1e-9
    _, best = reference.sup_near(curve, found.attained_at, 1e-3)
    assert found.mu.lower <= best <= found.mu.upper
    end = float(np.log1p(rate * np.expm1(reach)))
    for epsilon in np.linspace(0.0, 0.999 * end, 25):  # and nowhere else is it larger
        assert reference.gaussian_delta(found.mu.upper, epsilon) >= curve(epsilon)


@settings(max_examples=10)
@given(st.floats(0.1, 3.0), st.floats(0.5, 12.0), st.sampled_from([1e-3, 1e-6, 1e-9]))
def test_discrete_gaussian_on_a_head(sigma, head, tolerance):
    found = gdp.measure(dp.DiscreteGaussian(sigma), head=head, tolerance=tolerance)
    band = gdp.transform(dp.DiscreteGaussian(sigma), np.linspace(0.0, head, 400))
    assert found.mu.width <= tolerance or found.mu.upper > 7  # delta(0) is 1 to the last bits there
    assert (band.lower <= found.mu.upper).all()
    assert found.mu.lower <= gdp.transform(dp.DiscreteGaussian(sigma), found.attained_at).upper


@settings(max_examples=15)
@given(st.lists(st.tuples(st.floats(0.0, 4.0), st.floats(0.0, 0.9)), min_size=1, max_size=6, unique_by=lambda p: p[0]))
def test_tables_of_guarantees(points):
    points = sorted(points)
    falling = [(e, min(d for _, d in points[: i + 1])) for i, (e, d) in enumerate(points)]
    profile = gdp.envelope(falling)
    found = gdp.measure(profile, head=5.0, tolerance=1e-6)
    band = gdp.transform(profile, np.linspace(0.0, 5.0, 300))
    assert (band.lower <= found.mu.upper).all()
    assert found.mu.width <= 1e-6 or found.mu.upper > 7
    if falling[-1][1] > 0:
        assert gdp.identify(profile).verdict is gdp.Verdict.NOT_GDP
    else:
        assert gdp.identify(profile).verdict is gdp.Verdict.GDP


def test_a_curve_that_is_not_convex_is_measured_by_staircases():
    steps = gdp.Curve(lambda e: 0.4 if e < 0.5 else 0.2 if e < 1.5 else 0.0, "stairs")
    found = gdp.measure(steps, tolerance=1e-6)
    corners = ((0.5, 0.4), (1.5, 0.2))  # where the sup lies
    truth = max(reference.mu_gdp(mpf(e), mpf(d)) for e, d in corners)
    assert found.mu.lower <= truth <= found.mu.upper
    assert found.mu.width <= 1e-6
