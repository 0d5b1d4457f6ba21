"""Laws: the judge refutes what is wrong, and counts only what it could have refuted."""

from __future__ import annotations

import math

import pytest
from flint import arb

from truth.balls import precision
from truth.judge import Judge


def test_intervals_beside_the_truth_are_refuted() -> None:
    """An interval of some width, moved by a few times that width."""
    delta = arb("1e-9")
    with precision(200):
        middle = float(delta.log())
    for width in (1e-13, 1e-6, 1e-2):
        judge = Judge(1.1 * width)
        judge.log_delta("inside", middle - 0.6 * width, middle + 0.4 * width, delta)
        judge.close(1)
        for moved in (-3 * width, 3 * width):
            with pytest.raises(AssertionError):
                judge.log_delta("beside", middle + moved - 0.5 * width, middle + moved + 0.5 * width, delta)
            with pytest.raises(AssertionError):
                judge.epsilon("beside", 1 + moved - 0.5 * width, 1 + moved + 0.5 * width, 1.0)
            with pytest.raises(AssertionError):
                judge.delta("beside", 0.5 * (1 + moved - width), 0.5 * (1 + moved + width), (0.5, 0.5))


def test_only_what_has_power_counts_and_only_once() -> None:
    judge = Judge(1e-3)
    judge.log_delta("trivial", -math.inf, 0.0, (0.5, 0.5))
    judge.log_delta("wide", -1.0, -0.1, (0.5, 0.5))
    judge.log_delta("vague truth", math.log(0.5), math.log(0.5), (0.49, 0.51))
    assert len(judge.asked) == 3
    assert not judge.counted
    for _ in range(2):
        judge.log_delta("sharp", math.log(0.5) - 1e-4, math.log(0.5) + 1e-4, (0.5, 0.5))
        judge.epsilon("epsilon", 1 - 1e-4, 1 + 1e-4, 1.0)
        judge.delta("delta", 0.5 * (1 - 1e-4), 0.5 * (1 + 1e-4), (0.5, 0.5))
    judge.delta("delta from one side", 0.0, 0.5, (0.5, 0.5))
    judge.close(3)
    with pytest.raises(AssertionError):
        judge.close(4)
