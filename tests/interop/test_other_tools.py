"""Contract: Flower, PipelineDP, OpenDP and tensorflow-privacy. With a tool installed (make interop) against it, else
against stand-ins with its fields.
"""

from __future__ import annotations

import importlib.util
import json
import math
from types import SimpleNamespace
from typing import Any

import pytest

import dptally as dp
from dptally.interop.budgets import THRESHOLD_SHARE, Request, base_noise, plan_at
from dptally.interop.flower import DptallyAccountant
from dptally.interop.opendp import from_opendp
from dptally.interop.tensorflow_privacy import compute_dp_sgd_privacy_statement

# -- Flower ------------------------------------------------------------------------------------------------------

FLOWER = importlib.util.find_spec("flwr") is not None


def config(sampling: str = "no-amplification", relation: str = "add-or-remove-one", limit: float | None = None) -> Any:
    stated = {"target_delta": 1e-5, "population_size": 1000, "max_epsilon": limit}
    if FLOWER:
        from flwr.supercore.privacy_accounting import NeighboringRelation, PrivacyConfig, SamplingMethod

        kinds = {"neighboring_relation": NeighboringRelation(relation), "sampling_method": SamplingMethod(sampling)}
        return PrivacyConfig(**stated, **kinds)
    return SimpleNamespace(**stated, neighboring_relation=relation, sampling_method=SimpleNamespace(value=sampling))


def event(noise: float = 5.0, sample: int = 50, population: int = 1000) -> Any:
    return SimpleNamespace(noise_multiplier=noise, sample_size=sample, population_size=population)


def test_flower_rounds_are_composed() -> None:
    account = DptallyAccountant(config())
    account.compose(event())
    account.compose(event(), count=9)
    assert account.num_releases == 10
    assert account.plan == 10 * dp.Gaussian(5.0)
    assert account.get_epsilon(1e-5) == account.plan.epsilon(1e-5)
    assert account.get_delta(1.0) == account.plan.delta(1.0)
    assert account.get_epsilon_interval(1e-5) == account.plan.epsilon_interval(1e-5)
    assert account.config.population_size == 1000
    sampled = DptallyAccountant(config("poisson"))
    sampled.compose(event(1.0), 100)
    assert sampled.plan == dp.dpsgd(1.0, 0.05, 100)


def test_flower_limits_and_states() -> None:
    account = DptallyAccountant(config(limit=1.0))
    assert not account.would_exceed(event())
    assert account.would_exceed(event(), count=100)
    assert account.would_exceed(event(), max_epsilon=0.1)
    assert account.num_releases == 0
    account.compose(event(), 4)
    state = json.loads(json.dumps(account.state_dict()))
    other = DptallyAccountant(config(limit=1.0))
    other.load_state_dict(state)
    assert other.plan == account.plan
    other.load_state_dict(state | {"backend": "rdp", "orders": [2.0]})
    for bad in (
        {},
        None,
        state | {"config": {}},
        state | {"compositions": None},
        state | {"compositions": [{}]},
        state | {"compositions": [3]},
        state | {"schema_version": 2},
    ):
        with pytest.raises(dp.InvalidArgument):
            other.load_state_dict(bad)  # type: ignore[arg-type]
    assert other.plan == account.plan


def test_flower_refuses_what_it_does_not_know() -> None:
    account = DptallyAccountant(config())
    for bad in (event(population=10), event(sample=2000), event(noise=-1.0), SimpleNamespace()):
        with pytest.raises(dp.InvalidArgument):
            account.compose(bad)
    with pytest.raises(dp.InvalidArgument, match="max_epsilon"):
        account.would_exceed(event())
    with pytest.raises(dp.InvalidArgument, match="config"):
        DptallyAccountant(SimpleNamespace())
    fixed = DptallyAccountant(config("without-replacement", "replace-one"), replace_sensitivity=2)
    if getattr(dp, "FixedSize", None) is None:
        with pytest.raises(dp.Unanswerable, match="FixedSize"):
            fixed.compose(event())


@pytest.mark.skipif(FLOWER, reason="only without Flower can other words be given")
def test_flower_words_are_checked() -> None:
    with pytest.raises(dp.InvalidArgument, match="neighboring_relation"):
        DptallyAccountant(config(relation="near"))
    with pytest.raises(dp.InvalidArgument, match="sampling_method"):
        DptallyAccountant(config("dice")).compose(event())
    with pytest.raises(dp.MissingExtra, match="flwr"):
        DptallyAccountant(config()).get_privacy_spent()


@pytest.mark.skipif(not FLOWER, reason="needs Flower")
def test_flower_s_own_types() -> None:
    from flwr.supercore.privacy_accounting import GaussianPrivacyEvent

    account = DptallyAccountant(config())
    account.compose(GaussianPrivacyEvent(5.0, 50, 1000), 3)
    spent = account.get_privacy_spent()
    assert (spent.num_releases, spent.accounting_method, spent.delta) == (3, "dptally", 1e-5)
    assert spent.epsilon == (3 * dp.Gaussian(5.0)).epsilon(1e-5)


# -- PipelineDP --------------------------------------------------------------------------------------------------


def test_a_pipeline_s_noise_is_the_least_that_is_enough() -> None:
    requests = [Request("laplace", 2.0, count=3), Request("gaussian", weight=2.0), Request("generic")]
    base = base_noise(requests, 1.0, 1e-6)
    assert plan_at(requests, base, 1.0, 1e-6).epsilon(1e-6) <= 1.0
    assert plan_at(requests, 0.999 * base, 1.0, 1e-6).epsilon(1e-6) > 1.0
    parts = {type(m).__name__: n for m, n in plan_at(requests, base, 1.0, 1e-6).parts}
    assert parts == {"Laplace": 3, "Gaussian": 1, "ApproxDP": 1}


def test_thresholds_take_their_share_and_pure_budgets_add() -> None:
    plain, kept = (base_noise([Request("gaussian", thresholding=flag)], 1.0, 1e-6) for flag in (False, True))
    assert kept > plain
    assert (dp.Gaussian(kept)).epsilon((1 - THRESHOLD_SHARE) * 1e-6) <= 1.0
    pure = base_noise([Request("laplace", count=4)], 2.0, 0.0)
    assert pure == pytest.approx(2 * math.sqrt(2), rel=1e-6)


@pytest.mark.parametrize("bad", [[], [Request("magic")]])
def test_requests_are_checked(bad: list[Request]) -> None:
    with pytest.raises(dp.DptallyError):
        base_noise(bad, 1.0, 1e-6)


@pytest.mark.skipif(importlib.util.find_spec("pipeline_dp") is None, reason="needs PipelineDP")
def test_pipeline_dp_s_own_types() -> None:
    from pipeline_dp.budget_accounting import MechanismType

    from dptally.interop.pipeline_dp import DptallyBudgetAccountant

    account = DptallyBudgetAccountant(1.0, 1e-6)
    with account.scope(weight=0.5):
        laplace = account.request_budget(MechanismType.LAPLACE, sensitivity=2, count=10)
    gauss = account.request_budget(MechanismType.GAUSSIAN_THRESHOLDING, weight=0.5, count=2)
    generic = account.request_budget(MechanismType.TRUNCATED_GEOMETRIC)
    account.compute_budgets()
    assert account.plan.epsilon(0.75e-6) <= 1.0
    assert laplace.noise_standard_deviation == pytest.approx(2 * account.base_noise_std / 0.5)
    assert gauss.thresholding_delta == pytest.approx(0.125e-6)
    assert 0 < generic.eps < 1
    counts = {type(m).__name__: n for m, n in account.plan.parts}
    assert counts == {"Laplace": 10, "Gaussian": 2, "ApproxDP": 1}
    with pytest.raises(dp.InvalidArgument, match="before"):
        account.request_budget(MechanismType.LAPLACE)
    pure = DptallyBudgetAccountant(1.0, 0)
    with pytest.raises(dp.InvalidArgument, match="total_delta"):
        pure.request_budget(MechanismType.GAUSSIAN)


# -- OpenDP ------------------------------------------------------------------------------------------------------


def measurement(measure: str, value: object) -> Any:
    return SimpleNamespace(output_measure=measure, map=lambda d_in: value)


@pytest.mark.parametrize(
    ("measure", "value", "plan"),
    [
        ("MaxDivergence", 0.5, dp.PureDP(0.5)),
        ("MaxDivergence()", 0.5, dp.PureDP(0.5)),
        ("ZeroConcentratedDivergence", 0.125, dp.ZCDP(0.125)),
        ("Approximate(MaxDivergence)", (2.0, 1e-6), dp.ApproxDP(2.0, 1e-6)),
        ("Approximate(ZeroConcentratedDivergence)", (0.5, 0.0), dp.ZCDP(0.5)),
    ],
)
def test_opendp_maps_are_declared_guarantees(measure: str, value: object, plan: dp.Mechanism) -> None:
    assert from_opendp(measurement(measure, value), 1) == plan


def test_opendp_refusals() -> None:
    for measure, value in (
        ("SmoothedMaxDivergence", object()),
        ("Approximate(ZeroConcentratedDivergence)", (1.0, 1e-6)),
    ):
        with pytest.raises(dp.Unanswerable, match="make_fix_delta"):
            from_opendp(measurement(measure, value), 1)
    with pytest.raises(dp.InvalidType, match="measurement"):
        from_opendp(3, 1)


@pytest.mark.skipif(importlib.util.find_spec("opendp") is None, reason="needs OpenDP")
def test_opendp_itself() -> None:
    import opendp.prelude as odp

    odp.enable_features("contrib")
    space = odp.atom_domain(T=float, nan=False), odp.absolute_distance(T=float)
    gauss = odp.m.make_gaussian(*space, scale=2.0)
    assert from_opendp(odp.m.make_laplace(*space, scale=2.0), 1.0) == dp.PureDP(0.5)
    assert from_opendp(gauss, 1.0) == dp.ZCDP(0.125)
    fixed = from_opendp(odp.c.make_fix_delta(odp.c.make_zCDP_to_approxDP(gauss), 1e-6), 1.0)
    assert dp.ZCDP(0.125).epsilon(1e-6) == pytest.approx(fixed.parameters()["epsilon"], rel=0.01)


# -- tensorflow-privacy ------------------------------------------------------------------------------------------


def test_the_statement_s_twin() -> None:
    text = compute_dp_sgd_privacy_statement(60000, 600, 10, 1.0, 1e-5, used_microbatching=False)
    assert "epsilon 1.82824" in text
    assert "no guarantee without a bound" in text
    halved = compute_dp_sgd_privacy_statement(60000, 600, 10, 2.0, 1e-5, max_examples_per_user=1)
    assert halved.count("epsilon 1.82824") == 2
    user = compute_dp_sgd_privacy_statement(60000, 600, 1, 4.0, 1e-5, False, max_examples_per_user=3)
    assert f"{dp.Gaussian(4.0, 3.0).epsilon(1e-5):.4f}"[:4] in user
    if getattr(dp.Gaussian, "group", None) is None:
        assert "no answer" in user
    with pytest.raises(dp.InvalidArgument):
        compute_dp_sgd_privacy_statement(60000, 600, 0, 1.0, 1e-5)
