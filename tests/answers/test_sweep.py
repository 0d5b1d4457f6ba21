"""Contract: a grid of answers is the answers one by one."""

from __future__ import annotations

import numpy as np
import pytest

import dptally as dp


def plan(sigma: float, rate: float) -> dp.Mechanism:
    return dp.dpsgd(sigma, rate, 50)


def test_every_point_is_the_plan_asked_by_itself() -> None:
    grid = dp.sweep(plan, sigma=[1.0, 3.0], rate=np.array([0.01, 0.02, 0.05]), delta=1e-6)
    assert grid.shape == (2, 3)
    assert grid.quantity == "epsilon"
    for sigma in (1.0, 3.0):
        for rate in (0.01, 0.02, 0.05):
            box, single = grid.at(sigma=sigma, rate=rate), plan(sigma, rate).epsilon_interval(1e-6)
            assert max(box.lower, single.lower) <= min(box.upper, single.upper)
    assert len(grid.rows()) == 6
    assert set(grid.rows()[0]) == {"sigma", "rate", "epsilon_lower", "epsilon_upper"}
    assert grid.to_dict()["axes"]["sigma"] == [1.0, 3.0]
    assert str(grid).startswith("epsilon over sigma (2) x rate (3)")


def test_several_questions_are_one_more_axis() -> None:
    grid = dp.sweep(lambda sigma: dp.Gaussian(sigma), sigma=[1.0, 2.0], epsilon=[0.5, 1.0, 2.0])
    assert grid.shape == (2, 3)
    assert list(grid.axes) == ["sigma", "epsilon"]
    assert grid.at(sigma=2.0, epsilon=1.0).upper == dp.Gaussian(2.0).delta(1.0)
    assert dp.sweep(lambda sigma: dp.Gaussian(sigma), sigma=[], delta=0.1).shape == (0,)
    assert "nothing" in str(dp.sweep(lambda sigma: dp.Gaussian(sigma), sigma=[], delta=0.1))


def test_on_joblib() -> None:
    grid = dp.sweep(plan, jobs=2, sigma=[1.0, 3.0], rate=[0.01], delta=1e-6)
    assert (grid.upper == dp.sweep(plan, sigma=[1.0, 3.0], rate=[0.01], delta=1e-6).upper).all()


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="exactly one"):
        dp.sweep(plan, sigma=[1.0], rate=[0.1])
    with pytest.raises(ValueError, match="sigma must be a sequence"):
        dp.sweep(plan, sigma=1.0, rate=[0.1], delta=0.1)
    with pytest.raises(ValueError, match="mechanism or plan"):
        dp.sweep(lambda x: x, x=[1.0], delta=0.1)
    with pytest.raises(ValueError, match="makes a plan"):
        dp.sweep(3, x=[1.0], delta=0.1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="flat"):
        dp.sweep(plan, sigma=[1.0], rate=[0.1], delta=[[0.1]])
    with pytest.raises(ValueError, match="at most"):
        dp.sweep(plan, sigma=range(2000), rate=range(2000), delta=0.1)
    grid = dp.sweep(lambda sigma: dp.Gaussian(sigma), sigma=[1.0], delta=0.1)
    with pytest.raises(ValueError, match="one of"):
        grid.at(sigma=3.0)
    with pytest.raises(ValueError, match="one value for each"):
        grid.at()
