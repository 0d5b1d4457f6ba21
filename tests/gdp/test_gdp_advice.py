"""Regressions: what the toolkit certifies it does not deny, evidence is evidence, and advice leads to an answer."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dptally as dp
from dptally import gdp
from dptally.accounting import gaussian
from dptally.gdp.tail import covered_from, tail_of
from dptally.numerics.normal import log_gaussian_delta

SGD = gdp.refined(gdp.noisy_sgd(2.0, 1.0, 2.0))


@pytest.mark.parametrize(("m", "mu"), [(SGD, 1.9), (dp.DiscreteGaussian(1.0), 1.2)])
def test_a_rate_is_found_where_rate_one_is_certified(m: dp.Mechanism | gdp.Curve, mu: float) -> None:
    assert gdp.measure(m).mu.upper <= mu
    assert gdp.rate_for(m, mu).rate == 1.0


def test_a_rate_below_one_is_the_largest() -> None:
    found = gdp.rate_for(SGD, 1.2)
    assert gdp.measure(SGD.sampled(found.rate), tolerance=1e-9).mu.upper <= 1.2 * (1 + 1e-8)
    assert gdp.measure(SGD.sampled(found.rate * 1.001)).mu.lower > 1.2


def test_a_sampled_curve_keeps_its_tail() -> None:
    """mu of the half sample is 0.92818, on a head of 30 as without one."""
    sampled = SGD.sampled(0.5)
    whole, head = gdp.measure(sampled), gdp.measure(sampled, head=30.0)
    assert whole.covered
    assert whole.mu.upper == pytest.approx(head.mu.upper, abs=2e-6) == pytest.approx(0.92818, abs=1e-5)
    shape = sampled.gaussian_tail
    assert shape is not None
    for epsilon in np.linspace(shape.start, 20.0, 50).tolist():
        inner = math.log1p(math.expm1(epsilon) / 0.5)
        assert math.log(0.5) - inner**2 <= -0.5 * ((epsilon - shape.shift) / shape.root - 0.5 * shape.root) ** 2 + 1e-9


def test_underflow_is_no_evidence() -> None:
    text = gdp.identify(gdp.Curve(lambda e: gaussian.delta_mu(1.0, e))).reason
    seen = float(text.split("log delta) ")[1].split()[0])
    assert seen == pytest.approx(1.0, abs=0.02)
    naive = gdp.refined(gdp.naive(lambda e, d: 2 / max(e, 1e-9) * math.sqrt(-math.log(d)) if d > 0 else math.inf, 2.0))
    text = gdp.identify(naive).reason
    assert float(text.split("log delta) ")[1].split()[0]) == pytest.approx(math.sqrt(0.5), abs=1e-3)


def test_bounded_steps_shift_the_tail_and_do_not_widen_it() -> None:
    plan = dp.PoissonSampled(dp.Laplace(0.5), 0.1) + dp.PoissonSampled(dp.Gaussian(4.0), 0.1)
    found = gdp.identify(plan)
    assert found.tail_limit is not None
    assert found.tail_limit.lower == pytest.approx(0.25) == pytest.approx(found.tail_limit.upper)
    assert "1.527" not in found.reason
    tail = tail_of(plan)
    narrow = tail.shapes[0]
    assert (narrow.root, narrow.shift) == (pytest.approx(0.25), pytest.approx(math.log(1 + 0.1 * math.expm1(2.0))))
    # the shape is a bound of the true profile, and what it covers is covered
    for epsilon in (1.5, 2.0):
        bound = -0.5 * ((epsilon - narrow.shift) / narrow.root - 0.5 * narrow.root) ** 2
        assert epsilon < narrow.start or math.log(plan.delta(epsilon)) <= bound
    end = covered_from(narrow, 0.3)
    x = end * np.geomspace(1.0, 20.0, 100)
    shape = -0.5 * ((x - narrow.shift) / narrow.root - 0.5 * narrow.root) ** 2
    assert (log_gaussian_delta(0.3, x)[0] >= shape).all()


def test_the_beginning_of_a_curve_with_small_b_is_not_convex() -> None:
    curve = gdp.refined(gdp.noisy_sgd(0.135, 0.0067, 8.77))
    assert not curve.convex
    found = gdp.measure(curve, head=1.41)
    for epsilon in np.linspace(0.0, 0.05, 26).tolist():
        assert gdp.transform(curve, epsilon).lower <= found.mu.upper
    assert found.mu.upper >= gdp.transform(curve, 0.0082).lower == pytest.approx(0.0213127, abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_no_point_of_a_refined_curve_is_above_its_mu(seed: int) -> None:
    random = np.random.default_rng(seed)
    a, b, sigma = (float(10 ** random.uniform(low, high)) for low, high in ((-1, 1), (-3, 0.5), (-0.5, 1)))
    curve = gdp.refined(gdp.noisy_sgd(a, b, sigma))
    found = gdp.measure(curve, head=3.0 * a / sigma, tolerance=1e-4)
    band = gdp.transform(curve, 3.0 * a / sigma * np.linspace(0, 1, 60) ** 2)
    assert band.lower.max() <= found.mu.upper


def test_the_regret_covers_every_epsilon() -> None:
    plan = 3 * dp.Laplace(1.0)
    found = gdp.summary(plan, head=0.05)
    grid = np.linspace(0.01, 6.0, 40).tolist()
    seen = max(gaussian.delta_mu(found.mu.upper, e) - plan.delta(e) for e in grid)
    assert seen <= found.regret.upper
    assert found.regret.upper == pytest.approx(0.0597, abs=1e-3)


def test_a_formula_that_overflows() -> None:
    curve = gdp.Curve(lambda e: 1 / (1 + math.exp(e)))
    assert curve.reach == pytest.approx(709.78, abs=0.01)
    assert curve.delta(800.0) == curve.delta(curve.reach)
    assert gdp.measure(curve, head=2.0).mu.upper > 0
    assert "709" not in gdp.identify(curve).reason or "known up to" in gdp.identify(curve).reason
    with pytest.raises(dp.InvalidArgument, match="epsilon 0"):
        gdp.Curve(lambda e: math.exp(1000.0) * e)
    late = gdp.Curve(lambda e: 0.5 if e < 2000 else math.exp(e))
    with pytest.raises(dp.InvalidArgument, match=r"reach="):
        late.delta(3000.0)
    assert gdp.Curve(lambda e: 0.5 if e < 2000 else math.exp(e), reach=1999.0).delta(3000.0) == 0.5


# -- every piece of advice is followed here ------------------------------------------------------------------------


def test_advice_measure_a_head() -> None:
    bare = gdp.Curve(lambda e: 0.5 * math.exp(-e))
    with pytest.raises(dp.Unanswerable, match="head=20"):
        gdp.measure(bare)
    assert gdp.measure(bare, head=20).mu.upper < math.inf
    replaced = dp.PoissonSampled(dp.Gaussian(2.0), 0.3, dp.REPLACE)
    with pytest.raises(dp.Unanswerable, match="head=20"):
        gdp.measure(replaced)
    assert gdp.measure(replaced, head=20, tolerance=1e-3).mu.upper < 1.1


def test_advice_of_rates() -> None:
    sampled = dp.Gaussian(2.0)
    with pytest.raises(dp.CannotCalibrate, match="head=20"):
        gdp.rate_for(sampled, 0.3)
    assert gdp.rate_for(sampled, 0.45, head=20).rate < 1


def test_advice_refine_first() -> None:
    naive = gdp.noisy_sgd(2.0, 1.0, 2.0)
    with pytest.raises(dp.Unanswerable, match=r"dp\.gdp\.refined"):
        gdp.rectify(naive, 0.0, 1.0, head=3.0)
    assert gdp.rectify(gdp.refined(naive), 0.0, 1.0, head=3.0).mu.upper < 2
    assert "dp.gdp.refined" in gdp.identify(naive).reason
    assert gdp.identify(gdp.refined(naive)).verdict is gdp.Verdict.GDP


def test_advice_of_a_guarantee_and_of_a_summary() -> None:
    short = gdp.measure(dp.Laplace(0.5), head=0.5)
    with pytest.raises(dp.Unanswerable, match="without a head"):
        short.guarantee()
    assert gdp.measure(dp.Laplace(0.5)).guarantee().mu < 1.81
    assert gdp.rectify(dp.Laplace(0.5), 0.0, 1.0, head=0.5).mechanism.mu < 1.81
    summary = gdp.summary(3 * dp.Laplace(1.0), head=0.5)
    with pytest.raises(dp.Unanswerable, match="larger head"):
        summary.epsilon(1e-9)
    assert gdp.summary(3 * dp.Laplace(1.0), head=3.0).epsilon(1e-9) < 12


def test_advice_of_the_gaussian_framework_and_of_convert() -> None:
    step = dp.DiscreteGaussian(1.0)
    with pytest.raises(dp.Unanswerable, match=r"gdp\.measure"):
        gaussian.epsilon(step, 1e-5)
    assert gdp.measure(step).mu.upper < 1.1
    with pytest.raises(dp.Unanswerable, match='to="approx"'):
        dp.convert(dp.RenyiDP((2.0,), (0.5,)), "gaussian")
    assert dp.convert(dp.RenyiDP((2.0,), (0.5,)), "approx", delta=1e-3).epsilon(1e-3) < 10


def test_the_head_of_the_card_and_of_the_command() -> None:
    plan = dp.dpsgd(1.0, 0.01, 100)
    found = gdp.measure_until(plan)
    assert found.head == plan.epsilon(1e-15)
    assert found.mu.upper < 0.5 < gdp.identify(plan).enough
    assert found.left_out < 2e-15
    assert gdp.measure_until(dp.Gaussian(2.0)).head == math.inf  # the closed form is no larger
    assert gdp.measure_until(dp.Laplace(0.5)).head == math.inf
    assert math.isinf(gdp.measure_until(dp.ApproxDP(1.0, 1e-6)).mu.upper)
    with pytest.raises(dp.InvalidType, match="m must be"):
        gdp.measure_until(SGD)  # type: ignore[arg-type]
