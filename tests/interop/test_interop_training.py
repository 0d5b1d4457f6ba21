"""Contract: StopAt stops at the step before the budget, for every kind of accountant and trainer."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace

import pytest

import dptally as dp
from dptally.interop.training import StopAt

BUDGET = {"epsilon": 1.0, "delta": 1e-5}
STEP = {"noise_multiplier": 1.0, "sample_rate": 0.02}


def test_a_plain_loop_ends_before_the_budget() -> None:
    account = dp.Accountant()
    stop = StopAt(**BUDGET, accountant=account, **STEP)
    most = stop.steps_left()
    assert dp.dpsgd(1.0, 0.02, most).epsilon(1e-5) <= 1.0 < dp.dpsgd(1.0, 0.02, most + 1).epsilon(1e-5)
    steps = 0
    while not stop.reached:
        account.step(**STEP)
        steps += 1
    assert steps == most


def test_an_opacus_history_and_its_engine() -> None:
    accountant = SimpleNamespace(history=[])
    stop = StopAt(**BUDGET, accountant=SimpleNamespace(accountant=accountant), **STEP)
    before = stop.steps_left()
    accountant.history.append((2.0, 0.02, 10))  # a warm-up with other noise: it is now the next kind of step
    assert stop.steps_left() > 0
    accountant.history.append((1.0, 0.02, 1))
    left = stop.steps_left()
    assert left < before
    warm = dp.dpsgd(2.0, 0.02, 10)
    assert (warm + dp.dpsgd(1.0, 0.02, left + 1)).epsilon(1e-5) <= 1.0
    assert (warm + dp.dpsgd(1.0, 0.02, left + 2)).epsilon(1e-5) > 1.0


def test_callbacks_of_trainers() -> None:
    account = dp.Accountant()
    stop = StopAt(0.05, 1e-5, account, noise_multiplier=1.0, sample_rate=0.9)
    assert stop.steps_left() == 0
    trainer, control = SimpleNamespace(should_stop=False), SimpleNamespace(should_training_stop=False)
    stop.on_train_batch_end(trainer, None, None, None, 0)
    assert stop.on_step_end(None, None, control) is control
    assert trainer.should_stop
    assert control.should_training_stop
    roomy = StopAt(50.0, 1e-5, account, **STEP)
    roomy.on_train_batch_end(again := SimpleNamespace(should_stop=False))
    assert not again.should_stop
    assert not roomy.on_step_end(None, None, SimpleNamespace(should_training_stop=False)).should_training_stop


def test_what_is_missing_is_asked() -> None:
    with pytest.raises(dp.InvalidArgument, match="given together"):
        StopAt(1.0, 1e-5, dp.Accountant(), noise_multiplier=1.0)
    with pytest.raises(dp.InvalidType, match="accountant"):
        StopAt(1.0, 1e-5, object())
    with pytest.raises(dp.InvalidArgument, match="not known"):
        _ = StopAt(1.0, 1e-5, dp.Accountant()).reached


def test_the_log_of_an_account_is_flat() -> None:
    account = dp.Accountant()
    account.step(**STEP, count=100)
    row = account.log(delta=1e-5)
    assert row["privacy/steps"] == 100.0
    assert row["privacy/epsilon_lower"] <= row["privacy/epsilon"] == account.epsilon(1e-5)
    assert all(isinstance(value, float) for value in row.values())


def test_an_account_with_a_budget_logs_at_its_delta() -> None:
    account = dp.Accountant(budget=3.0, delta=1e-6)
    account.step(noise_multiplier=1.0, sample_rate=0.01)
    assert account.log() == account.log(delta=1e-6)
    with pytest.raises(dp.InvalidArgument, match="delta must be given"):
        dp.Accountant().log()


def test_names_of_other_accountants_are_answered_with_ours() -> None:
    with pytest.raises(AttributeError, match=r"here it is epsilon\(delta=\.\.\.\)"):
        dp.Accountant().get_epsilon(delta=1e-5)  # type: ignore[attr-defined]
    copied = copy.deepcopy(pickle.loads(pickle.dumps(dp.Accountant(budget=3.0, delta=1e-6))))
    assert copied.log()["privacy/epsilon"] == 0.0
