"""Containment of random continuous plans against truths in ball arithmetic; more of them in the soak."""

from __future__ import annotations

import random

import pytest

import dptally as dp
from depth import SOAK
from exact import continuous
from exact.continuous import faults, make_plan

NUMBER = 160 if SOAK else 6


@pytest.mark.parametrize("seed", range(2))
def test_every_interval_contains_the_truth(seed: int) -> None:
    narrow = 0
    for index in range(NUMBER // 2):
        draw = random.Random(f"continuous/{seed}/{index}")
        try:
            found, width = faults(draw, make_plan(draw))
        except ArithmeticError:
            continue  # no truth within reach
        assert found == []
        narrow += width < 1e-4
    assert narrow >= 0.5 * (NUMBER // 2)  # a wide interval refutes nothing


def test_a_moved_end_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The power of the judge: intervals moved by 1e-4 of themselves are found out, up or down."""
    original = dp.Mechanism.delta_interval
    draw = random.Random("power")
    plan = continuous.Plan((continuous._sampled_gaussian(draw), continuous._gaussian(draw)))
    for factor, what in ((1 + 1e-4, "begins too late"), (1 - 1e-4, "ends too early")):

        def moved(self: dp.Mechanism, epsilon: float, factor: float = factor) -> dp.Interval:
            box = original(self, epsilon)
            return dp.Interval(box.lower * factor, box.upper * factor)

        monkeypatch.setattr(dp.Mechanism, "delta_interval", moved)
        found, _ = faults(random.Random("power"), plan)
        assert any(what in fault for fault in found)


def test_the_other_direction_bounds_delta() -> None:
    """The second line of defence holds, and says something: most of its bounds are below one."""
    draw, near = random.Random("second line"), 0
    for _ in range(12):
        plan = continuous.Plan((continuous._gaussian(draw),))
        mechanism = plan.mechanism
        epsilon = mechanism.epsilon(0.1)
        if not 0 < epsilon < 20:
            continue
        bound = continuous.reversed_chernoff(mechanism.directions(), epsilon)
        assert bound >= mechanism.delta_interval(epsilon).lower
        near += bound < 1
    assert near > 3


def test_the_answer_is_below_neither_direction() -> None:
    """The answer is never below either direction, and reaches the larger one."""
    plan = continuous.Plan(
        (
            continuous.Part(
                dp.PoissonSampled(dp.Gaussian(1.0), 0.2),
                40,
                lambda side: continuous.SampledPiece(1.0, 0.2, side, 40),
            ),
        )
    )
    for epsilon in (0.05, 0.5, 8.0):
        truths = [plan.delta(side, epsilon) for side in continuous.SIDES]
        box = plan.mechanism.delta_interval(epsilon)
        with continuous.precision(200):
            assert all(continuous.ball(box.upper) >= truth for truth in truths)
            assert any(continuous.ball(box.lower) <= truth for truth in truths)
