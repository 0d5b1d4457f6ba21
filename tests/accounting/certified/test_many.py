"""Contract: many questions at once are answered like each by itself, with intervals that meet and are as sharp."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dptally as dp
from dptally.accounting.certified import engine

PLANS = [
    dp.dpsgd(1.0, 0.01, 1000),
    dp.dpsgd(0.7, 0.002, 40, dp.REPLACE),
    20 * dp.Laplace(5.0),
    dp.Gaussian(2.0),
    3 * dp.RandomizedResponse(0.7) + dp.Gaussian(1.0),
    4 * dp.ApproxDP(0.3, 1e-4),
]


@pytest.mark.parametrize("plan", PLANS, ids=repr)
def test_arrays_are_answered_like_numbers(plan: dp.Mechanism) -> None:
    deltas = np.array([0.0, 1e-30, 1e-9, 1e-6, 1e-5, 2e-4, 0.01, 0.3, 1.0])
    boxes = plan.epsilon_interval(deltas)
    assert (plan.epsilon(deltas) == boxes.upper).all()
    for delta, box in zip(deltas.tolist(), boxes, strict=True):
        single = plan.epsilon_interval(delta)
        assert max(box.lower, single.lower) <= min(box.upper, single.upper), delta
        assert box.width <= max(1.1 * single.width, 1e-6 * box.upper)
    epsilons = np.array([0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 40.0])
    boxes = plan.delta_interval(epsilons)
    assert (plan.delta(epsilons) == boxes.upper).all()
    for epsilon, box in zip(epsilons.tolist(), boxes, strict=True):
        single = plan.delta_interval(epsilon)
        assert max(box.lower, single.lower) <= min(box.upper, single.upper), epsilon
        assert box.width <= max(1.1 * single.width, 1e-6 * box.upper)


def test_shapes_lists_and_nothing() -> None:
    plan = dp.Gaussian(1.0)
    assert plan.delta(epsilon=[[0.0, 1.0], [2.0, 3.0]]).shape == (2, 2)
    assert plan.epsilon([]).shape == (0,)
    assert plan.epsilon((1e-5,))[0] == plan.epsilon(1e-5)
    boxes = plan.delta_interval(np.array([[0.0, 1.0]]))
    assert boxes[0, 1].upper == plan.delta(1.0)
    assert (boxes.width >= 0).all()
    assert boxes.shape == (1, 2)
    with pytest.raises(dp.InvalidArgument, match="one index for each"):
        boxes[0]
    with pytest.raises(ValueError, match="delta"):
        plan.epsilon([0.1, math.nan])
    with pytest.raises(ValueError, match="delta"):
        plan.epsilon([0.1, 1.1])
    with pytest.raises(ValueError, match="epsilon"):
        plan.delta([0.1, -1.0])
    infinite = (2 * dp.ApproxDP(1.0, 0.1)).epsilon_interval([0.01, 0.5])
    assert infinite.lower[0] == math.inf
    assert infinite.width[0] == 0.0


def test_many_answers_of_one_contour_are_verified_each() -> None:
    composition = dp.dpsgd(1.0, 0.01, 300).directions()[0]
    deltas = np.geomspace(1e-14, 1e-3, 60)
    for delta, box in zip(deltas.tolist(), engine.epsilon_intervals([composition], deltas.tolist()), strict=True):
        assert engine.delta_interval([composition], box.upper).lower <= delta
        assert engine.delta_interval([composition], box.lower).upper >= delta
