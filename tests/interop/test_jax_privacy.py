"""Contract: jax-privacy's training accountants and calibration with dptally's configuration (make interop)."""

from __future__ import annotations

from typing import Any

import pytest

import dptally as dp

pytest.importorskip("jax_privacy", reason="jax-privacy is not installed; make interop has it")

from jax_privacy.accounting import analysis, calibrate

from dptally.interop.jax_privacy import DptallyAccountantConfig

RATE, STEPS, DELTA = 1024 / 50_000, 1000, 1e-5
CONFIG = DptallyAccountantConfig()


def _params(**more: Any) -> analysis.DpParams:
    return analysis.DpParams(noise_multipliers=4.0, batch_size=1024, num_samples=50_000, delta=DELTA, **more)


@pytest.mark.parametrize(
    ("kind", "more", "plan"),
    [
        (analysis.DpsgdTrainingAccountant, {}, dp.dpsgd(4.0, RATE, STEPS)),
        (
            analysis.DpsgdTrainingAccountant,
            {"truncated_batch_size": 1120},
            dp.Sampled(dp.Gaussian(4.0), dp.TruncatedPoisson(RATE, 50_000, 1120), steps=STEPS),
        ),
        (
            analysis.DpsgdTrainingUserLevelAccountant,
            {"examples_per_user": 2},
            STEPS * dp.MixtureOfGaussians(4.0, (0.0, 1.0, 2.0), ((1 - RATE) ** 2, 2 * RATE * (1 - RATE), RATE**2)),
        ),
        (analysis.SingleReleaseTrainingAccountant, {}, dp.Gaussian(4.0)),
    ],
    ids=["poisson", "truncated", "user level", "single release"],
)
def test_training_accountants(kind: Any, more: dict[str, Any], plan: dp.Mechanism) -> None:
    found = kind(dp_accountant_config=CONFIG).compute_epsilon(num_updates=STEPS, dp_params=_params(**more))
    assert found == pytest.approx(plan.epsilon(DELTA), rel=1e-9)


def test_calibration() -> None:
    noise = calibrate.calibrate_noise_multiplier(
        target_epsilon=2.0,
        accountant=analysis.DpsgdTrainingAccountant(dp_accountant_config=CONFIG),
        batch_sizes=1024,
        num_updates=STEPS,
        num_samples=50_000,
        target_delta=DELTA,
        tol=1e-4,
    )
    assert dp.dpsgd(noise, RATE, STEPS).epsilon(DELTA) == pytest.approx(2.0, rel=1e-3)
