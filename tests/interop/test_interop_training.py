"""Contract: StopAt stops at the step before the budget, for every kind of accountant and trainer."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
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


def test_other_hooks_of_trainers_do_nothing() -> None:
    """Lightning and Hugging Face call every hook by its name, wanted or not."""
    stop = StopAt(1.0, 1e-5, dp.Accountant(), **STEP)
    for hook in ("on_init_end", "on_train_begin", "on_fit_start", "on_save", "setup", "teardown", "load_state_dict"):
        assert getattr(stop, hook)(object(), state=None) is None
    assert (stop.state_dict(), stop.state_key) == ({}, "StopAt")
    with pytest.raises(AttributeError, match="steps_done"):
        _ = stop.steps_done  # type: ignore[attr-defined]


def test_lightning_stops_at_the_budget() -> None:
    lightning = pytest.importorskip("pytorch_lightning", reason="Lightning is not installed; make interop has it")
    import torch

    account = dp.Accountant()

    class Model(lightning.LightningModule):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
            account.step(**STEP)
            return self.layer(batch).square().mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    stop = StopAt(1.0, 1e-5, account, **STEP)
    fits = stop.steps_left()
    trainer = lightning.Trainer(
        max_epochs=50,
        callbacks=[stop],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(64, 2), batch_size=8))
    assert 8 < sum(count for _, count in account.history) == fits < 400


def test_hugging_face_stops_at_the_budget(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed; make interop has it")
    pytest.importorskip("accelerate")
    import torch

    account = dp.Accountant()

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            account.step(**STEP)
            return {"loss": self.layer(x).square().mean()}

    stop = StopAt(1.0, 1e-5, account, **STEP)
    fits = stop.steps_left()
    given = transformers.TrainingArguments(
        str(tmp_path),
        per_device_train_batch_size=8,
        num_train_epochs=50,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
    )
    records = [{"x": torch.randn(2)} for _ in range(64)]
    trainer = transformers.Trainer(Model(), given, train_dataset=records)
    trainer.add_callback(stop)
    trainer.train()
    assert 8 < sum(count for _, count in account.history) == fits < 400
