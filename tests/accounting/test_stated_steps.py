"""Golden: classic composition works on the steps as they were stated, not on what their laws collapse into.

The truth of one Gaussian step is mpmath's own: the epsilon where Phi(-e/mu + mu/2) - exp(e) Phi(-e/mu - mu/2) falls to
the step's share of delta.
"""

from __future__ import annotations

import pytest
from mpmath import exp, findroot, log, mp, mpf, ncdf, sqrt

import dptally as dp
from dptally.accounting import approximate, renyi


def step(sigma: float, share: mpf) -> mpf:
    """The epsilon of one Gaussian step of sensitivity 1 at delta = share."""
    mu = 1 / mpf(sigma)
    with mp.workdps(40):
        start = mu * mu / 2 + mu * sqrt(-2 * log(share))
        return findroot(lambda e: log(ncdf(-e / mu + mu / 2) - exp(e) * ncdf(-e / mu - mu / 2)) - log(share), start)


@pytest.mark.parametrize(("count", "sigma", "delta"), [(50, 1.0, 1e-5), (40, 49.0, 1e-15), (300, 10.0, 1e-25)])
def test_gaussian_steps_keep_their_own_guarantees(count: int, sigma: float, delta: float) -> None:
    plan = count * dp.Gaussian(sigma)
    one = step(sigma, mpf(delta) / count)
    assert approximate.epsilon(plan, delta, "basic").value == pytest.approx(float(count * one), rel=2e-6)
    half = step(sigma, mpf(delta) / 2 / count)
    log_inverse = -log(mpf(delta) / 2)
    advanced = half * sqrt(2 * count * log_inverse) + count * half * (exp(half) - 1)
    assert approximate.epsilon(plan, delta, "advanced").value == pytest.approx(float(advanced), rel=1e-4)


def test_the_numbers_of_the_alpha_divergence_figures() -> None:
    assert approximate.epsilon(300 * dp.Gaussian(10.0), 1e-25, "advanced").value == pytest.approx(803.36, abs=0.01)
    assert approximate.epsilon(50 * dp.Gaussian(100.0), 1e-5, "advanced").value == pytest.approx(1.45104, abs=1e-5)


def test_continuous_and_discrete_noise_agree_in_the_table() -> None:
    plans = (40 * dp.Gaussian(sigma=49.0), 40 * dp.DiscreteGaussian(sigma=49.0))
    for name in ("basic composition", "advanced composition", "Kairouz-Oh-Viswanath bound"):
        one, other = ({row.framework: row.epsilon for row in dp.compare(p, 1e-15).rows}[name] for p in plans)
        assert one == pytest.approx(other, rel=1e-4)


def test_different_gaussian_steps_share_delta_equally() -> None:
    plan = 2 * dp.Gaussian(5.0) + 3 * dp.Gaussian(20.0)
    truth = 2 * step(5.0, mpf("1e-6") / 5) + 3 * step(20.0, mpf("1e-6") / 5)
    assert approximate.epsilon(plan, 1e-6, "basic").value == pytest.approx(float(truth), rel=2e-6)


def test_the_engine_still_sees_one_law() -> None:
    (composition,) = (50 * dp.Gaussian(1.0)).directions()
    assert composition.steps == 1
    assert [n for _, n in composition.stated] == [50]
    assert composition == (25 * dp.Gaussian(1.0) + 25 * dp.Gaussian(1.0)).directions()[0]


def test_frameworks_take_a_plan_or_its_directions() -> None:
    plan = 10 * dp.Laplace(5.0)
    assert renyi.epsilon(plan, 1e-5).value == renyi.epsilon(plan.directions(), 1e-5).value
    assert approximate.epsilon(plan, 1e-5, "basic").value == approximate.epsilon(plan.directions(), 1e-5, "basic").value
    for wrong in ((), [1], 3, "laplace(5)"):
        with pytest.raises(dp.InvalidType, match="plan"):
            renyi.epsilon(wrong, 1e-5)  # type: ignore[arg-type]
