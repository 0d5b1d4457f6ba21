"""Contract: the opacus drop-in. With opacus installed (make interop) against opacus, else against its shape."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import dptally as dp
from dptally.interop.opacus_history import history_of

sys.path.insert(0, str(Path(__file__).parent))
import opacus_shape


@pytest.fixture
def opacus() -> Iterator[ModuleType]:
    """dptally.interop.opacus, registered."""
    if not opacus_shape.INSTALLED:
        opacus_shape.install()
    import dptally.interop.opacus as module

    yield module
    if not opacus_shape.INSTALLED:
        opacus_shape.remove()


def test_one_word_registers(opacus: ModuleType) -> None:
    from opacus.accountants import create_accountant

    account = create_accountant("dptally")
    assert type(account) is opacus.DptallyAccountant
    assert account.mechanism() == "dptally"
    opacus.register()  # again: nothing happens
    opacus.register(force=True)


def test_steps_and_answers(opacus: ModuleType) -> None:
    account = opacus.DptallyAccountant()
    assert len(account) == 0
    assert account.get_epsilon(delta=1e-5) == 0.0
    for noise in (1.0, 1.0, 1.2):
        account.step(noise_multiplier=noise, sample_rate=0.01)
    assert account.history == [(1.0, 0.01, 2), (1.2, 0.01, 1)]
    assert len(account) == 2
    plan = dp.dpsgd(1.0, 0.01, 2) + dp.dpsgd(1.2, 0.01, 1)
    assert account.plan == plan
    account.history, plan = [(1.0, 0.01, 400)], dp.dpsgd(1.0, 0.01, 400)
    assert account.get_epsilon(1e-5, eps_error=0.01, alphas=[2, 3]) == plan.epsilon(1e-5)
    assert account.get_epsilon_interval(1e-5) == plan.epsilon_interval(1e-5)


def test_history_is_the_only_truth(opacus: ModuleType) -> None:
    """opacus' calibration assigns it."""
    account = opacus.DptallyAccountant()
    account.history = [(1.0, 0.01, 1000)]
    assert account.get_epsilon(delta=1e-5) == dp.dpsgd(1.0, 0.01, 1000).epsilon(1e-5)
    account.history = [(0.0, 0.01, 10)]
    assert account.get_epsilon(1e-5) == math.inf
    assert account.get_epsilon_interval(1e-5).lower == math.inf
    assert account.get_epsilon(1.0) == 0.0


def test_states_of_every_accountant_load_and_share_nothing(opacus: ModuleType) -> None:
    account = opacus.DptallyAccountant()
    history = [(1.0, 0.01, 5)]
    for mechanism in ("dptally", "rdp", "gdp", "prv"):
        account.load_state_dict({"history": history, "mechanism": mechanism})
        assert account.history == history
        assert account.history is not history
    state = account.state_dict()
    assert state["mechanism"] == "dptally"
    account.step(noise_multiplier=1.0, sample_rate=0.01)
    assert state["history"] == history
    assert dp.from_opacus(state) == dp.dpsgd(1.0, 0.01, 5)
    for bad in ({}, {"history": []}, {"mechanism": "rdp"}, None, {"history": [(1,)], "mechanism": "rdp"}):
        with pytest.raises(ValueError, match=r"state_dict|history"):
            account.load_state_dict(bad)


def test_the_hook_records_and_refuses_other_samplers(opacus: ModuleType) -> None:
    account = opacus.DptallyAccountant()

    def calling(poisson_sampling: bool) -> object:
        return account.get_optimizer_hook_fn(sample_rate=0.25)

    calling(False)  # another caller may name its variables as it likes
    space: dict[str, object] = {"account": account}
    exec("def make_private(poisson_sampling):\n    return account.get_optimizer_hook_fn(sample_rate=0.25)", space)
    hook = space["make_private"](True)  # type: ignore[operator]
    hook(SimpleNamespace(noise_multiplier=1.5, accumulated_iterations=1))
    assert account.history == [(1.5, 0.25, 1)]
    with pytest.raises(dp.InvalidArgument, match="independently"):
        space["make_private"](False)  # type: ignore[operator]


@pytest.mark.skipif(opacus_shape.INSTALLED, reason="opacus is there")
def test_without_opacus_the_error_says_what_to_install() -> None:
    with pytest.raises(dp.MissingExtra, match="pip install opacus"):
        import dptally.interop.opacus  # noqa: F401


@pytest.mark.skipif(not opacus_shape.INSTALLED, reason="needs opacus")
def test_a_real_engine(opacus: ModuleType) -> None:
    import torch
    from opacus import PrivacyEngine  # type: ignore[attr-defined]
    from opacus.accountants.utils import get_noise_multiplier

    def private(**more: object) -> PrivacyEngine:
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 4)), batch_size=8)
        engine = PrivacyEngine(accountant="dptally")
        make = engine.make_private_with_epsilon if "target_epsilon" in more else engine.make_private
        _, optimizer, _ = make(module=model, optimizer=optimizer, data_loader=loader, max_grad_norm=1.0, **more)
        engine.noise = optimizer.noise_multiplier
        return engine

    engine = private(target_epsilon=3.0, target_delta=1e-5, epochs=2)
    assert 2.98 <= dp.dpsgd(engine.noise, 1 / 8, 16).epsilon(1e-5) <= 3.0
    with pytest.raises(dp.InvalidArgument, match="poisson_sampling"):
        private(noise_multiplier=1.0, poisson_sampling=False)
    noise = get_noise_multiplier(
        target_epsilon=2.0, target_delta=1e-6, sample_rate=0.01, steps=500, accountant="dptally", epsilon_tolerance=1e-3
    )
    assert 1.998 <= dp.dpsgd(noise, 0.01, 500).epsilon(1e-6) <= 2.0


# -- histories, which need no opacus -----------------------------------------------------------------------------


def test_histories_of_every_form() -> None:
    plan = dp.dpsgd(1.0, 0.01, 3)
    history = [(1.0, 0.01, 3)]
    for form in (
        history,
        tuple(history),
        {"history": history},
        {"history": [[1.0, 0.01, 3.0]], "mechanism": "prv", "other": 1},
        {"privacy_accountant_state_dict": {"history": history}},
        json.loads(json.dumps({"history": history})),
        SimpleNamespace(history=history),
    ):
        assert dp.from_opacus(form) == plan
    assert dp.from_opacus([]).epsilon(delta=1e-5) == 0.0
    assert history_of([(1.0, 0.1, 2), (2.0, 0.1, 1), (1.0, 0.1, 3)]) == [(1.0, 0.1, 5), (2.0, 0.1, 1)]


@pytest.mark.parametrize(
    "bad",
    [None, 1, "abc", {}, {"history": "abc"}, [(1.0, 0.1)], [(1.0, 1.5, 1)], [(-1.0, 0.1, 1)], [(1.0, 0.1, 1.5)]],
    ids=repr,
)
def test_bad_histories(bad: object) -> None:
    with pytest.raises(dp.InvalidArgument):
        dp.from_opacus(bad)


def test_a_state_for_another_accountant(opacus: ModuleType) -> None:
    account = opacus.DptallyAccountant()
    account.step(noise_multiplier=1.0, sample_rate=0.01)
    state = account.state_dict(mechanism="rdp")
    assert (state["mechanism"], state["history"]) == ("rdp", [(1.0, 0.01, 1)])
    assert account.state_dict()["mechanism"] == "dptally"
    if not opacus_shape.INSTALLED:
        return
    from opacus.accountants import create_accountant

    for name in ("rdp", "gdp", "prv"):
        theirs = create_accountant(name)
        theirs.load_state_dict(account.state_dict(mechanism=name))
        back = opacus.DptallyAccountant()
        back.load_state_dict(theirs.state_dict())
        assert back.get_epsilon(1e-5) == account.get_epsilon(1e-5)
