"""Laws: one mu for a composition, and its regret."""

import math

import numpy as np
import pytest

import dptally as dp
from dptally import gdp
from dptally.accounting.gaussian import delta_mu, mu
from dptally.errors import Unanswerable
from truth import laplace_delta, sampled_gaussian_delta


def checked(found: gdp.Summary, epsilons: np.ndarray, exact: list[float]) -> None:
    """The summary covers the exact profile, and no gap is larger than its regret."""
    top = found.mu.upper
    gaps = [delta_mu(top, float(e)) - d for e, d in zip(epsilons, exact, strict=True)]
    assert min(gaps) >= -1e-15
    assert max(gaps) <= found.regret.upper * (1 + 1e-12)
    assert found.regret.lower <= found.regret.upper


def test_dpsgd_on_a_head():
    plan = dp.dpsgd(1.0, 0.01, 1000)
    found = gdp.summary(plan, head=2.0)
    assert found.mu.width <= 1e-6
    assert found.head == 2.0
    x = np.array([0.5, 2.0])
    checked(found, x, [float(sampled_gaussian_delta(1.0, 0.01, 1000, float(e), "remove")) for e in x])
    assert found.left_out >= plan.delta_interval(2.0).lower
    assert found.epsilon(1e-3) >= plan.epsilon_interval(1e-3).lower
    with pytest.raises(Unanswerable, match="larger head"):
        found.epsilon(1e-30)


def test_laplace_composition_against_the_sum_of_squares():
    plan = 4 * dp.Laplace(1.0)
    found = gdp.summary(plan, tolerance=1e-4)
    assert found.mu.upper < mu(plan.directions())
    x = np.linspace(0.0, 3.9, 9)
    checked(found, x, [float(laplace_delta(1, 4, float(e))) for e in x])
    assert found.epsilon_regret(0.01) > 0


def test_regret_of_one_laplace():
    found = gdp.summary(dp.Laplace(0.5))
    x = np.append(np.linspace(0.0, 6.0, 600), 2.0)
    gaps = [delta_mu(found.mu.upper, float(e)) - max(0.0, -math.expm1((e - 2) / 2)) for e in x]
    assert max(gaps) <= found.regret.upper
    assert found.regret.lower <= max(gaps) + 1e-4
    assert found.regret.width <= 2e-3 * found.regret.upper
    assert abs(found.regret_at - 2.0) < 0.05  # where the true profile ends


def test_gaussians_have_no_regret():
    found = gdp.summary(3 * dp.Gaussian(1.0))
    assert math.sqrt(3) in found.mu
    assert found.regret.upper < 1e-4
    assert gdp.summary(dp.GaussianDP(0.0)).regret == dp.Interval(0.0, 0.0)
    assert gdp.summary(dp.ApproxDP(1.0, 0.1)).regret == dp.Interval(0.0, 1.0)


def test_tradeoffs_for_a_plot():
    found = gdp.summary(dp.Laplace(0.5))
    true, gaussian = found.tradeoff(np.array([0.01, 0.1, 0.5]))
    assert (gaussian <= true + 1e-12).all()
    assert gaussian[2] > 0.03  # Phi(-1.8009)
