"""Contract: the training loop's account and the curve over steps answer like the plan itself."""

from __future__ import annotations

import json

import pytest

import dptally as dp


def test_steps_add_up() -> None:
    account = dp.Accountant()
    for _ in range(100):
        account.step(noise_multiplier=1.0, sample_rate=0.01)
    account.step(dp.Laplace(5.0), count=3)
    account.step(2 * dp.Gaussian(3.0))
    plan = dp.dpsgd(1.0, 0.01, 100) + 3 * dp.Laplace(5.0) + 2 * dp.Gaussian(3.0)
    assert account.plan == plan
    assert account.history == plan.parts
    assert account.epsilon(1e-6) == plan.epsilon(1e-6)
    assert account.epsilon_interval(1e-6) == plan.epsilon_interval(1e-6)
    assert account.delta(1.0) == plan.delta(1.0)
    assert repr(account) == f"Accountant({plan!r})"


def test_state_is_plain_json_and_shares_nothing() -> None:
    account = dp.Accountant(dp.dpsgd(1.0, 0.01, 50))
    state = account.state_dict()
    json.dumps(state)
    account.step(noise_multiplier=1.0, sample_rate=0.01)
    again = dp.Accountant.from_state_dict(state)
    assert again.plan == dp.dpsgd(1.0, 0.01, 50)
    again.step(noise_multiplier=1.0, sample_rate=0.01)
    assert again.plan == account.plan
    assert dp.Accountant.from_json(account.to_json()).plan == account.plan


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"noise_multiplier": 1.0},
        {"sample_rate": 0.1},
        {"noise_multiplier": float("nan"), "sample_rate": 0.1},
        {"noise_multiplier": 1.0, "sample_rate": 2.0},
        {"noise_multiplier": [1.0], "sample_rate": 0.1},
        {"noise_multiplier": 1.0, "sample_rate": 0.1, "count": -1},
        {"mechanism": 3},
        {"mechanism": dp.Gaussian(1.0), "sample_rate": 0.1},
    ],
)
def test_a_bad_step_changes_nothing(arguments: dict[str, object]) -> None:
    account = dp.Accountant(dp.Gaussian(2.0))
    with pytest.raises(dp.InvalidArgument):
        account.step(**arguments)  # type: ignore[arg-type]
    assert account.plan == 1 * dp.Gaussian(2.0)
    with pytest.raises(dp.InvalidType):
        dp.Accountant(3)  # type: ignore[arg-type]
    with pytest.raises(dp.InvalidType):
        dp.Accountant.from_state_dict("{}")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "step",
    [dp.dpsgd(1.0, 0.01, 1), dp.Gaussian(20.0) + dp.Laplace(30.0), dp.ApproxDP(0.1, 1e-9), dp.ZCDP(0.001)],
    ids=["dpsgd", "mix", "mass at infinity", "Renyi only"],
)
def test_the_curve_is_the_plan_repeated(step: dp.Mechanism) -> None:
    counts = [0, 5, 60, 61, 70, 400]
    curve = step.epsilon_curve(counts, delta=1e-6)
    for count, epsilon in zip(counts, curve, strict=True):
        box = (count * step).epsilon_interval(1e-6)
        assert epsilon >= box.lower
        assert epsilon <= box.upper * (1 + 2e-6) + 1e-12


def test_the_curve_refuses_bad_counts() -> None:
    for bad in ([-1], [1.5], [True]):
        with pytest.raises(dp.InvalidArgument, match="steps"):
            dp.Gaussian(1.0).epsilon_curve(bad, delta=1e-6)  # type: ignore[list-item]
