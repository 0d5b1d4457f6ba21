"""Laws: the tail limit, what covers a tail, and the verdicts."""

import math

import gdp_reference as reference
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import dptally as dp
from dptally import gdp
from dptally.gdp.tail import covered_from, tail_of
from dptally.numerics.normal import log_gaussian_delta, mills

GDP, NOT, HEAD = gdp.Verdict.GDP, gdp.Verdict.NOT_GDP, gdp.Verdict.HEAD_ONLY


def test_the_bound_of_the_mills_ratio_behind_the_tail():
    for y in np.geomspace(1e-3, 30.0, 200):
        with mp.workdps(60):
            x = mpf(float(y))
            ratio = mp.erfc(x / mp.sqrt(2)) / 2 / mp.npdf(x)
            assert 1 - x * ratio >= 1 / (x * x + 3)
        assert abs(mills(y) / float(ratio) - 1) < 1e-12


@settings(max_examples=40)
@given(st.floats(0.05, 5.0), st.floats(1e-4, 1.0), st.floats(0.0, 10.0))
def test_beyond_the_cover_the_gaussian_curve_is_larger(root, excess, start):
    shape, mu = gdp.GaussianTail(root, start), root * (1 + excess)
    end = covered_from(shape, mu)
    x = end * np.geomspace(1.0, 50.0, 200)
    assert end >= start
    assert (log_gaussian_delta(mu, x)[0] >= -0.5 * (x / root - 0.5 * root) ** 2).all()


def test_no_cover_at_the_root_itself():
    assert covered_from(gdp.GaussianTail(1.0), 1.0) == math.inf


@pytest.mark.parametrize(
    ("m", "verdict", "limit"),
    [
        (dp.Laplace(0.5), GDP, 0.0),
        (dp.PureDP(0.2), GDP, 0.0),
        (dp.RandomizedResponse(0.7), GDP, 0.0),
        (dp.DiscreteLaplace(2.0), GDP, 0.0),
        (50 * dp.Laplace(5.0), GDP, 0.0),
        (dp.PoissonSampled(dp.Laplace(0.5), 0.1), GDP, 0.0),
        (dp.GaussianDP(0.0), GDP, 0.0),
        (dp.Gaussian(2.0), GDP, 0.5),
        (dp.GaussianDP(3.0), GDP, 3.0),
        (dp.DiscreteGaussian(2.0), GDP, 0.5),
        (dp.PoissonSampled(dp.Gaussian(2.0), 0.1), GDP, 0.5),
        (dp.dpsgd(1.0, 0.01, 100), GDP, 10.0),
        (dp.PoissonSampled(dp.Gaussian(2.0), 0.1, dp.REPLACE), GDP, None),
        (dp.ZCDP(0.5), GDP, None),
        (dp.ApproxDP(1.0, 1e-6), NOT, math.inf),
        (dp.Gaussian(1.0) + dp.ApproxDP(0.1, 1e-12), NOT, math.inf),
        (dp.RenyiDP([2.0, 4.0], [0.1, 0.3]), NOT, None),
        (gdp.laplace(0.5), GDP, 0.0),
        (gdp.refined(gdp.noisy_sgd(2.0, 1.0, 2.0)), GDP, math.sqrt(0.5)),
        (gdp.refined(gdp.icea(20, 4)), NOT, math.inf),
        (gdp.noisy_sgd(2.0, 1.0, 2.0), NOT, math.sqrt(0.5)),
        (gdp.Curve(lambda e: max(0.0, 0.5 - e)), GDP, 0.0),
        (gdp.Curve(lambda e: 0.0), GDP, 0.0),
        (gdp.Curve(lambda e: 0.5 * math.exp(-e)), HEAD, None),
        (gdp.Curve(lambda e: 0.5 * math.exp(-e * e)), HEAD, None),  # it underflows: that proves nothing
    ],
)
def test_verdicts(m, verdict, limit):
    found = gdp.identify(m)
    assert found.verdict is verdict
    assert str(found).startswith(str(verdict))
    if limit is None:
        assert found.tail_limit is None
    elif math.isinf(limit):
        assert found.tail_limit == dp.Interval(limit, limit)
    else:
        assert limit in found.tail_limit
        assert found.tail_limit.width < 1e-11 * max(1.0, limit)
    assert (found.head < math.inf) == (verdict is HEAD)


@pytest.mark.parametrize("m", [dp.Gaussian(2.0), dp.PoissonSampled(dp.Gaussian(2.0), 0.3), dp.DiscreteGaussian(2.0)])
def test_the_limit_is_seen_far_out(m):
    """eps / sqrt(-2 log delta) on the way to its limit."""
    (composition, *_) = m.directions()
    law, far = composition.parts[0][0], np.array([50.0, 500.0])
    seen = far / np.sqrt(-2 * law.log_profile(far)[1])
    limit = gdp.identify(m).tail_limit.upper
    assert abs(seen[1] - limit) < abs(seen[0] - limit) < 0.1


@pytest.mark.parametrize("mix", [dp.Laplace(1.0) + dp.Gaussian(2.0), 2 * dp.PureDP(0.5) + dp.Gaussian(1.0)])
def test_a_mixed_tail_limit_lies_between_its_bounds(mix):
    tail = tail_of(mix)
    assert tail.limit.lower <= tail.limit.upper <= tail.enough
    assert tail.shape.root <= tail.enough


def test_mu_is_at_least_root_two_rho():
    for m in (dp.Laplace(0.5), dp.PureDP(1.0), dp.DiscreteGaussian(0.8)):
        assert gdp.measure(m).mu.upper >= math.sqrt(2 * m.rho()) * (1 - 1e-12)


def test_unbounded_losses_are_covered_by_their_tail():
    found = gdp.measure(dp.DiscreteGaussian(0.8), tolerance=1e-9)
    assert found.covered
    assert found.mu.width <= 1e-9
    assert found.mu.lower > 1.25  # more than the 1/sigma of a continuous Gaussian
    band = gdp.transform(dp.DiscreteGaussian(0.8), np.concatenate([np.linspace(0, 5, 500), np.geomspace(5, 500, 100)]))
    assert (band.lower <= found.mu.upper).all()
    assert band.upper.max() >= found.mu.lower
    sampled = gdp.measure(dp.PoissonSampled(dp.Gaussian(2.0), 0.01))
    assert 0.5 in sampled.mu  # sampling does not change the mu of the whole, only that of a head
    assert sampled.attained_at == math.inf
    assert gdp.measure(dp.PoissonSampled(dp.Gaussian(2.0), 0.01), head=3.0).mu.upper < 0.3


def test_sampled_gaussian_transform_rises_to_its_limit():
    band = gdp.transform(dp.PoissonSampled(dp.Gaussian(2.0), 0.1), np.array([1.0, 10.0, 100.0, 1000.0]))
    assert (np.diff(band.lower) > 0).all()
    assert 0.498 < band.lower[-1] < 0.5
    exact = reference.mu_gdp(
        mpf(1),
        mpf("0.1") * reference.gaussian_delta(mpf("0.5"), mp.log((mp.e - 1 + mpf("0.1")) / mpf("0.1"))),
    )
    assert abs(band.lower[0] - float(exact)) < 1e-12
