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


def test_steps_is_another_name_for_count() -> None:
    one, other = dp.Accountant(), dp.Accountant()
    one.step(noise_multiplier=1.0, sample_rate=0.01, count=7)
    other.step(noise_multiplier=1.0, sample_rate=0.01, steps=7)
    assert one.plan == other.plan == dp.dpsgd(1.0, 0.01, 7)
    with pytest.raises(ValueError, match="given alone"):
        one.step(dp.Gaussian(1.0), count=2, steps=2)
    assert one.plan == other.plan


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


# -- budgets -------------------------------------------------------------------------------------------------

STEP = {"noise_multiplier": 1.0, "sample_rate": 0.05}


def test_the_step_that_would_pass_the_budget_is_refused_and_not_recorded() -> None:
    account = dp.Accountant(budget=3.0, delta=1e-5)
    assert account.steps_left(**STEP) == 68
    for _ in range(68):
        account.step(**STEP)
    with pytest.raises(dp.BudgetExceeded) as caught:
        account.step(**STEP)
    assert account.epsilon() == dp.dpsgd(1.0, 0.05, 68).epsilon(1e-5) <= 3.0
    assert dp.dpsgd(1.0, 0.05, 69).epsilon_interval(1e-5).lower > 3.0  # one more is truly too many
    assert account.plan == dp.dpsgd(1.0, 0.05, 68)
    error = caught.value
    assert (error.kind, error.cap) == ("epsilon", 3.0)
    assert error.spent + error.requested > 3.0 >= error.spent
    assert "Nothing was recorded" in str(error)
    assert "not one such step fits" in str(error)
    assert account.steps_left(**STEP) == 0
    assert account.would_exceed(**STEP)
    assert not account.would_exceed(**STEP, steps=0)
    assert account.steps_left(dp.Gaussian(1e6)) > 0  # another kind of step may still fit


def test_the_budget_holds_for_many_steps_at_once_and_for_mixed_plans() -> None:
    account = dp.Accountant(budget=3.0, delta=1e-5)
    assert account.would_exceed(**STEP, steps=69)
    assert not account.would_exceed(**STEP, steps=68)
    assert not account.would_exceed(dp.dpsgd(1.0, 0.05, 68))
    with pytest.raises(dp.BudgetExceeded, match="68 more such steps fit"):
        account.step(**STEP, count=69)
    assert account.history == ()
    account.step(**STEP, count=30)
    account.step(dp.Laplace(scale=4.0))
    left = account.steps_left(**STEP)
    plan = dp.dpsgd(1.0, 0.05, 30 + left) + dp.Laplace(scale=4.0)
    assert plan.epsilon(1e-5) <= 3.0 < (plan + dp.dpsgd(1.0, 0.05, 1)).epsilon(1e-5)
    account.step(**STEP, count=left)
    with pytest.raises(dp.BudgetExceeded):
        account.step(**STEP)
    assert account.plan == plan


def test_a_loop_of_equal_steps_searches_once(monkeypatch: pytest.MonkeyPatch) -> None:
    account = dp.Accountant(budget=3.0, delta=1e-5)
    account.step(**STEP)
    monkeypatch.setattr(type(account), "_most", lambda self, one: pytest.fail("searched again"))
    for _ in range(67):
        account.step(**STEP)


def test_steps_that_cost_nothing_fit_for_ever() -> None:
    account = dp.Accountant(budget=1.0, delta=1e-5)
    assert account.steps_left(dp.PureDP(0.0)) == 2**53
    assert account.steps_left(0 * dp.Gaussian(1.0)) == 2**53
    account.step(dp.PureDP(0.0), count=5)
    assert account.steps_left(dp.PureDP(0.0)) == 2**53 - 5
    assert dp.Accountant(budget=1.01, delta=0).steps_left(dp.PureDP(0.25)) == 4


def test_a_budget_survives_a_checkpoint() -> None:
    account = dp.Accountant(budget=3.0, delta=1e-5)
    account.step(**STEP, count=60)
    for again in (
        dp.Accountant.from_json(account.to_json()),
        dp.Accountant.from_state_dict(dict(reversed(account.state_dict().items()))),
    ):
        assert again.budget == 3.0
        assert again.steps_left(**STEP) == 8
        assert repr(again) == repr(account)
        assert "budget=3.0, delta=1e-05" in repr(again)
    for text in ('{"budget":1}', '{"budget":1,"delta":1e-5,"plan":' + "[" * 99, '{"budget":', '{"budget":1,"x":2}'):
        with pytest.raises(dp.InvalidArgument):
            dp.Accountant.from_json(text)
    forged = account.to_json().replace('"budget":3.0', '"budget":1.0')
    with pytest.raises(dp.BudgetExceeded):
        dp.Accountant.from_json(forged)


def test_budgets_that_are_none() -> None:
    for budget, delta in ((0, 1e-5), (-1, 1e-5), (float("nan"), 1e-5), (3.0, None), (None, 1e-5), (3.0, 1), (3.0, -1)):
        with pytest.raises(dp.InvalidArgument, match=r"budget|delta"):
            dp.Accountant(budget=budget, delta=delta)
    with pytest.raises(dp.BudgetExceeded):
        dp.Accountant(dp.dpsgd(1.0, 0.05, 69), budget=3.0, delta=1e-5)
    account = dp.Accountant()
    assert account.budget is None
    for question in (lambda: account.would_exceed(**STEP), lambda: account.steps_left(**STEP), account.epsilon):
        with pytest.raises(dp.InvalidArgument, match="given"):
            question()
    limited = dp.Accountant(budget=3.0, delta=1e-5)
    for bad in (-1, 1.5, True):
        with pytest.raises(dp.InvalidArgument, match="steps"):
            limited.would_exceed(**STEP, steps=bad)  # type: ignore[arg-type]
