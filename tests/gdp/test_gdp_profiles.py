"""Laws: curves from trade-off equations, refined by Theorem 2.1, and as mechanisms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptally as dp
from dptally import gdp
from dptally.accounting.approximate import implied_delta


def sgd_equation(epsilon: float, delta: float) -> float:
    return 2.0 / epsilon * math.sqrt(math.log(1.0 / delta)) if epsilon > 0 else math.inf


def test_inverting_the_equation_gives_the_ready_made_curve():
    curve, ready = gdp.naive(sgd_equation, 2.0), gdp.noisy_sgd(2.0, 1.0, 2.0)
    for epsilon in (0.0, 0.1, 0.7, 1.5, 4.0, 12.0):
        assert curve.delta(epsilon) == pytest.approx(ready.delta(epsilon), rel=1e-12)
        if 0 < curve.delta(epsilon) < 1:
            assert sgd_equation(epsilon, curve.delta(epsilon)) <= 2.0  # the delta given is enough
    found = gdp.measure(gdp.refined(curve), head=20.0, tolerance=1e-4)
    assert found.mu.lower - 1e-9 <= 1.8563572885 <= found.mu.upper
    assert gdp.naive(lambda e, d: 3.0, 2.0).delta(1.0) == 1.0
    assert gdp.naive(lambda e, d: 1.0, 2.0).delta(1.0) == 0.0
    assert gdp.naive(lambda e, d: 1.0 + math.log(d) ** 2 * 1e-9, 2.0).delta(1.0) == 5e-324


@settings(max_examples=6)
@given(st.floats(0.3, 4.0), st.floats(0.2, 3.0), st.floats(0.5, 3.0))
def test_refined_is_the_best_implication(a, b, sigma):
    naive = gdp.noisy_sgd(a, b, sigma)
    refined = gdp.refined(naive)
    knots = np.linspace(0.0, 12.0, 1500)
    deltas = [naive.delta(float(e)) for e in knots]
    for at in (0.0, 0.3, 1.0, 2.5):
        best = min(implied_delta(float(e), d, at) for e, d in zip(knots, deltas, strict=True))
        assert refined.delta(at) <= best * (1 + 1e-12)
        assert refined.delta(at) >= best - 1e-3
    again = gdp.refined(refined)
    for at in (0.0, 0.5, 3.0):
        assert again.delta(at) == pytest.approx(refined.delta(at), rel=1e-9)


@settings(max_examples=20)
@given(st.floats(0.5, 3.0), st.floats(0.3, 3.0))
def test_refined_noisy_sgd_is_convex_in_exp_epsilon(a, sigma):
    curve = gdp.refined(gdp.noisy_sgd(a, 1.0, sigma))
    assert curve.convex
    x = np.linspace(1.0, 8.0, 200)
    deltas = curve.deltas(np.log(x))
    assert (np.diff(deltas, 2) >= -1e-12).all()


def test_refined_icea_is_convex_and_epsilon_star_is_right():
    curve = gdp.refined(gdp.icea(20, 4))
    x = np.linspace(1.0, 50.0, 500)
    assert (np.diff(curve.deltas(np.log(x)), 2) >= -1e-12).all()
    star = 1.15660703536557801753
    assert curve.delta(star + 1e-3) == pytest.approx(gdp.icea(20, 4).delta(star + 1e-3), rel=1e-12)
    assert curve.delta(star - 0.1) < gdp.icea(20, 4).delta(star - 0.1)


def test_curves_become_mechanisms():
    curve = gdp.refined(gdp.noisy_sgd(2.0, 1.0, 2.0))
    mechanism = curve.mechanism()
    for epsilon in (0.0, 0.5, 2.0):
        assert mechanism.delta(epsilon) == pytest.approx(curve.delta(epsilon), rel=1e-9)
    found = gdp.measure(mechanism, head=20.0, tolerance=1e-9)
    assert found.mu.lower - 1e-9 <= 1.8563572885316 <= found.mu.upper + 1e-9
    assert gdp.envelope(curve) == mechanism or gdp.envelope(curve).points == mechanism.points
    # the table keeps a mass of 1e-300 at infinity
    assert gdp.identify(mechanism).verdict is gdp.Verdict.NOT_GDP


def test_deltas_below_the_smallest_double():
    curve = gdp.refined(gdp.noisy_sgd(2.0, 1.0, 2.0))
    band = gdp.transform(curve, np.array([30.0, 100.0]))
    assert curve.delta(100.0) < 1e-300
    assert (band.lower > 0.7).all()
    assert (band.upper < math.sqrt(0.5)).all()


def test_the_laplace_curve_is_the_laplace_mechanism():
    box, curve = (
        gdp.measure(dp.Laplace(0.5), tolerance=1e-9).mu,
        gdp.measure(gdp.laplace(0.5), tolerance=1e-9),
    )
    assert curve.mu.lower - 1e-11 <= box.lower
    assert curve.mu.upper >= box.upper - 1e-12
    assert curve.covered


def test_a_curve_remembers_where_it_ends():
    assert gdp.Curve(lambda e: max(0.0, 0.5 - e)).zero_from == pytest.approx(0.5, abs=1e-12)
    assert gdp.Curve(lambda e: 0.5 * math.exp(-e * e)).zero_from == math.inf
    assert gdp.Curve(lambda e: 0.0).zero_from < 1.0
    assert gdp.laplace(0.5).delta(7.0) == 0.0
