"""Statistical and contract: the number of runs is drawn from its law, and a search makes exactly so many."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dptally as dp
from audit.fixed_bytes import FixedBytes


class RandomSampler: ...


class NopPruner: ...


class TPESampler: ...


class Study:
    """As much of an Optuna study as a search needs."""

    def __init__(self, sampler: Any = None, more: int = 0) -> None:
        self.trials: list[int] = []
        self.sampler, self.pruner, self.more = sampler or RandomSampler(), NopPruner(), more

    def optimize(self, objective: Callable[[int], float], n_trials: int) -> None:
        for _ in range(n_trials + self.more):
            self.trials.append(len(self.trials))
            objective(len(self.trials))

    @property
    def best_trial(self) -> int:
        return self.trials[-1]


def chances(mean: float, law: str, shape: float, most: int) -> np.ndarray:
    """P(K = k) for k = 0 .. most, by the textbook."""
    k = np.arange(most + 1.0)
    if law == "poisson":
        return np.exp(k * math.log(mean) - mean - np.array([math.lgamma(n + 1) for n in k]))
    g = dp.Gaussian(1.0).best_of(mean, law=law, shape=shape if law == "tnb" else 0.0).runs.g
    eta = 1.0 if law == "geometric" else shape
    out = np.zeros(most + 1)
    for n in range(1, most + 1):
        rising = math.prod((i + eta) / (i + 1) for i in range(n)) if eta else 1 / n
        out[n] = (1 - g) ** n * rising / (g**-eta - 1 if eta else -math.log(g))
    return out


@pytest.mark.parametrize(
    ("mean", "law", "shape"), [(4.0, "tnb", 0.0), (4.0, "tnb", -0.5), (3.0, "geometric", 1.0), (2.0, "poisson", 0.0)]
)
def test_numbers_follow_their_law(mean: float, law: str, shape: float) -> None:
    """Chi-squared over 3000 draws with a fixed source; the law of another mean is told apart."""
    source = FixedBytes("runs")
    number, most = 3000, 12
    drawn = [dp.release.draw_runs(mean, law, shape, _source=source) for _ in range(number)]
    counts = np.bincount(np.minimum(drawn, most + 1), minlength=most + 2)

    def distance(at: float) -> float:
        expected = chances(at, law, shape, most)
        expected = number * np.append(expected, max(1 - expected.sum(), 1e-12))
        some = expected > 4
        return float(((counts - expected)[some] ** 2 / expected[some]).sum())

    assert distance(mean) < 40
    assert distance(1.8 * mean) > 60


def test_a_search_makes_as_many_runs_as_were_drawn() -> None:
    plan = dp.Gaussian(4.0)
    for seed in ("a", "b", "c"):
        study = Study()
        expected = dp.release.draw_runs(5.0, _source=FixedBytes(seed))
        found = dp.release.search(study, float, plan, mean=5.0, _source=FixedBytes(seed))
        assert len(study.trials) == expected
        assert found.mechanism == plan.best_of(mean=5.0)
        assert found.trial == study.best_trial


def test_a_number_of_runs_that_was_chosen_afterwards_is_refused() -> None:
    plan, used = dp.Gaussian(4.0), Study()
    used.optimize(float, 3)
    with pytest.raises(dp.InvalidArgument, match="new: how many runs"):
        dp.release.search(used, float, plan, mean=5.0)
    with pytest.raises(dp.InvalidArgument, match="RandomSampler"):
        dp.release.search(Study(TPESampler()), float, plan, mean=5.0)
    with pytest.raises(dp.InvalidArgument, match="as often as was drawn"):
        dp.release.search(Study(more=1), float, plan, mean=5.0)
    with pytest.raises(dp.InvalidArgument, match=r"k \* plan"):
        dp.release.draw_runs(10, law="fixed")


def test_no_runs_at_all_have_no_winner() -> None:
    study = Study()
    found = dp.release.search(study, float, dp.Gaussian(4.0), mean=1e-9, law="poisson")
    assert (found.trial, study.trials) == (None, [])


def test_the_work_of_a_draw_is_bounded() -> None:
    """What would take millions of steps is refused with what to take instead, which works."""
    for mean, law, shape in ((1e6, "tnb", 0.0), (1e6, "poisson", 0.0), (1e6, "geometric", 0.0), (1e5, "tnb", -0.5)):
        with pytest.raises(dp.InvalidArgument, match="mean must be"):
            dp.release.draw_runs(mean, law, shape)
    with pytest.raises(dp.InvalidArgument, match='a larger shape, or law="geometric"'):
        dp.release.draw_runs(1e5, "tnb", 0.0)
    assert dp.release.draw_runs(5e4, "tnb", 0.0) >= 1
    assert dp.release.draw_runs(1e5, "tnb", 1.0) >= 1
    assert dp.release.draw_runs(1e5, "geometric") >= 1
    assert abs(dp.release.draw_runs(1e5, "poisson") - 1e5) < 5e3


class GivenUp(Study):
    """Every trial was pruned by the objective itself."""

    @property
    def best_trial(self) -> int:
        raise ValueError("No trials are completed yet.")


def test_a_search_without_a_completed_trial_publishes_nothing() -> None:
    found = dp.release.search(GivenUp(), lambda trial: 0.0, dp.Gaussian(4.0), mean=3)
    assert found.trial is None
    assert found.mechanism == dp.Gaussian(4.0).best_of(mean=3)


def test_a_study_of_optuna_itself() -> None:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def searched(objective: Callable[[Any], float], **given: Any) -> Any:
        return dp.release.search(optuna.create_study(**given), objective, dp.Gaussian(4.0), mean=5)

    independent = {"sampler": optuna.samplers.RandomSampler(), "pruner": optuna.pruners.NopPruner()}
    found = searched(lambda trial: trial.suggest_float("x", 0.0, 1.0), **independent)
    assert found.trial.value == found.trial.params["x"]
    for given, name in (({}, "study.sampler"), ({"sampler": optuna.samplers.RandomSampler()}, "study.pruner")):
        with pytest.raises(dp.InvalidArgument, match=name):
            searched(lambda trial: 0.0, **given)

    def prunes(trial: Any) -> float:
        raise optuna.TrialPruned

    assert searched(prunes, **independent).trial is None
