"""Contract: what an answer takes for granted is said by the mechanisms themselves, never guessed from field names."""

from __future__ import annotations

import pytest

import dptally as dp
from dptally import gdp
from dptally.answers.assumptions import assumptions, stated
from dptally.ledger.hints import fitting_noise
from foreign import Rated

MISLEADING = Rated(rate=0.5, sigma=1.0, adjacency="weekly", sensitivity=3.0)


def test_a_field_called_rate_samples_nothing() -> None:
    lines = list(assumptions(MISLEADING))
    assert not [line for line in lines if line.startswith(("sampling", "sensitivity", "declared"))]
    assert "weekly" not in "".join(lines)
    assert MISLEADING.unsampled() is MISLEADING
    assert gdp.measure(MISLEADING).mu.upper == pytest.approx(gdp.measure(dp.PureDP(0.5)).mu.upper, rel=1e-5)


def test_a_field_called_sigma_is_no_noise_that_a_ledger_may_raise() -> None:
    assert MISLEADING.noise_parameter() is None
    assert fitting_noise(MISLEADING, lambda plan: True) == ""
    assert "sigma >=" in fitting_noise(dp.Gaussian(1.0), lambda plan: plan.parts[0][0].sigma > 5.0)


def test_every_part_is_heard_and_each_sentence_stands_once() -> None:
    plan = (
        dp.dpsgd(1.0, 0.25, 3) + dp.PoissonSampled(dp.Laplace(2.0), 0.125, dp.REPLACE) + dp.PureDP(0.5) + dp.ZCDP(0.1)
    )
    assert [one.topic for one in stated(plan)] == ["sensitivity", "adjacency", "sampling", "guarantees"]
    lines = list(assumptions(plan))
    assert lines[1].endswith("ADD_REMOVE, REPLACE")
    assert "rate 0.125, 0.25; not shuffled" in lines[2]
    assert plan.assumptions() == stated(plan)


def test_sampling_is_undone_part_by_part() -> None:
    plan = dp.dpsgd(1.0, 0.25, 3) + dp.PureDP(0.5)
    assert plan.unsampled() == 3 * dp.Gaussian(1.0) + dp.PureDP(0.5)
    sampled = dp.PoissonSampled(dp.Gaussian(1.0), 0.5, dp.REPLACE)
    assert not sampled.keeps_tail()
    assert dp.PoissonSampled(dp.Gaussian(1.0), 0.5).keeps_tail()
