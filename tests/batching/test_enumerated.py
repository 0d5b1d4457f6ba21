"""Brute force: the exact profile of the enumerated mixture is never above ours, and reaches it where the manual says
so.
"""

from __future__ import annotations

import math
import os
import random

import numpy as np
import pytest

import dptally as dp
from batching import enumeration as e

A = (0.3, 0.8, 1.0, 1.3, 2.5, 6.0)
SLACK = 3e-5  # of the midpoint rule
ROUNDS = 200 if os.environ.get("DPTALLY_SOAK") else 12


def ours(plan: dp.Mechanism, side: int) -> np.ndarray:
    law = plan.directions()[min(side, len(plan.directions()) - 1)].parts[0][0]
    return np.exp(law.log_profile(np.log(np.array(A)))[1])


def never_above(
    p: e.Weighted, q: e.Weighted, sigma: float, plan: dp.Mechanism, step: float = 0.01
) -> tuple[float, float]:
    """The largest excess of the truth over ours, in both directions: remove (p, q) and add (q, p)."""
    first = e.hockey_stick(p, q, sigma, A, step) - ours(plan, 0)
    second = e.hockey_stick(q, p, sigma, A, step) - ours(plan, 1)
    assert first.max() < SLACK, first
    assert second.max() < SLACK, second
    return float(first.max()), float(second.max())


def data(draw: random.Random, number: int) -> tuple[float, ...]:
    return tuple(draw.choice((-1.0, -0.5, 0.0, 0.5, 1.0)) for _ in range(number))


def test_fixed_size_replace() -> None:
    draw = random.Random(1)
    for _ in range(ROUNDS):
        n = draw.randint(2, 5)
        m, sigma = draw.randint(1, n), draw.choice((0.5, 1.0, 2.0))
        one = data(draw, n)
        other = (*one[:-1], data(draw, 1)[0])
        plan = dp.Sampled(dp.Gaussian(sigma), dp.FixedSize(m, n), steps=1, adjacency=dp.REPLACE)
        never_above(e.fixed(one, m), e.fixed(other, m), sigma, plan)


def test_fixed_size_is_attained() -> None:
    for n, m, sigma in ((4, 2, 1.0), (5, 1, 0.7), (6, 3, 2.0)):
        others = (-1.0,) * (n - 1)
        replaced = dp.Sampled(dp.Gaussian(sigma), dp.FixedSize(m, n), steps=1, adjacency=dp.REPLACE)
        truth = e.hockey_stick(e.fixed((*others, 1.0), m), e.fixed((*others, -1.0), m), sigma, A[2:])
        assert truth == pytest.approx(ours(replaced, 0)[2:], abs=SLACK)
        added = dp.Sampled(dp.Gaussian(sigma), dp.FixedSize(m, n), steps=1)
        near = never_above(e.fixed((*others, 1.0), m), e.fixed(others, m), sigma, added)
        assert min(near) > -SLACK


def test_fixed_size_add_remove() -> None:
    draw = random.Random(2)
    for _ in range(ROUNDS):
        n = draw.randint(2, 5)
        m, sigma = draw.randint(1, n - 1), draw.choice((0.5, 1.0, 2.0))
        one = data(draw, n)
        plan = dp.Sampled(dp.Gaussian(sigma), dp.FixedSize(m, n), steps=1)
        never_above(e.fixed(one, m), e.fixed(one[:-1], m), sigma, plan)


def test_truncated_poisson() -> None:
    draw = random.Random(3)
    for _ in range(ROUNDS):
        n, q = draw.randint(2, 5), draw.choice((0.1, 0.4, 0.7))
        cap, sigma = draw.randint(1, n), draw.choice((0.5, 1.0, 2.0))
        one = data(draw, n)
        plan = dp.Sampled(dp.Gaussian(sigma), dp.TruncatedPoisson(q, n, cap), steps=1)
        never_above(e.truncated(one, q, cap), e.truncated(one[:-1], q, cap), sigma, plan)


def test_truncated_poisson_lower_end_is_attained() -> None:
    n, q, cap, sigma = 4, 0.5, 2, 1.0
    plan = dp.Sampled(dp.Gaussian(sigma), dp.TruncatedPoisson(q, n, cap), steps=1)
    zero = (0.0,) * (n - 1)
    truth = e.hockey_stick(e.truncated((*zero, 1.0), q, cap), e.truncated(zero, q, cap), sigma, (math.e,))
    assert plan.delta_interval(1.0).lower == pytest.approx(float(truth[0]), abs=SLACK)


def test_allocation() -> None:
    draw = random.Random(4)
    for _ in range(max(2, ROUNDS // 6)):
        n, sigma = draw.randint(1, 3), draw.choice((0.7, 1.0))
        one = data(draw, n)
        plan = dp.Sampled(dp.Gaussian(sigma), dp.BallsInBins(2), epochs=1)
        never_above(e.allocated(one, 2), e.allocated(one[:-1] or (0.0,), 2), sigma, plan, 0.05)


def test_allocation_is_attained() -> None:
    plan = dp.Sampled(dp.Gaussian(1.0), dp.BallsInBins(2), epochs=1)
    near = never_above(e.allocated((1.0,), 2), e.allocated((0.0,), 2), 1.0, plan, 0.02)
    assert min(near) > -SLACK


def test_blocks_cover_all_steps_and_uses() -> None:
    for steps, times in ((3, 2), (10, 3), (7, 7), (5, 1)):
        blocks = dp.RandomAllocation(steps, times).blocks
        assert sum(size * number for size, number in blocks) == steps
        assert sum(number for _, number in blocks) == times


@pytest.mark.skipif(not os.environ.get("DPTALLY_SOAK"), reason="soak")
def test_k_of_t_is_bounded_and_its_lower_end_holds() -> None:
    plan = dp.Sampled(dp.Gaussian(1.0), dp.RandomAllocation(3, 2), epochs=1)
    truth = e.hockey_stick(e.allocated((1.0,), 3, 2), e.allocated((0.0,), 3, 2), 1.0, (math.exp(0.5),), 0.1)
    box = plan.delta_interval(0.5)
    assert box.lower - 1e-3 <= float(truth[0]) <= box.upper + 1e-3


@pytest.mark.parametrize(("adjacency", "instead"), [(dp.ADD_REMOVE, 0.0), (dp.REPLACE, -1.0)])
def test_shuffled_batches_lie_between_the_ends(adjacency: dp.Adjacency, instead: float) -> None:
    sigma, steps = 1.0, 2
    plan = dp.Sampled(dp.Gaussian(sigma), dp.ShuffledBatches(steps), epochs=1, adjacency=adjacency)
    one, other = (-1.0, -1.0, -1.0, 1.0), (-1.0, -1.0, -1.0, instead)
    for epsilon in (0.2, 1.0):
        worst = 0.0
        for p, q in ((one, other), (other, one)):
            truth = e.hockey_stick(e.shuffled(p, steps), e.shuffled(q, steps), sigma, (math.exp(epsilon),), 0.02)
            worst = max(worst, float(truth[0]))
        box = plan.delta_interval(epsilon)
        assert 0.8 * worst <= box.lower <= worst + SLACK
        assert worst <= box.upper + SLACK


def test_truncated_poisson_replace() -> None:
    draw = random.Random(7)
    for _ in range(ROUNDS):
        n, q = draw.randint(2, 5), draw.choice((0.1, 0.4, 0.7))
        cap, sigma = draw.randint(1, n), draw.choice((0.5, 1.0, 2.0))
        one = data(draw, n)
        other = (*one[:-1], data(draw, 1)[0])
        plan = dp.Sampled(dp.Gaussian(sigma), dp.TruncatedPoisson(q, n, cap), steps=1, adjacency=dp.REPLACE)
        never_above(e.truncated(one, q, cap), e.truncated(other, q, cap), sigma, plan)


def test_truncated_poisson_replace_lower_end_is_attained() -> None:
    n, q, cap, sigma = 4, 0.5, 2, 1.0
    plan = dp.Sampled(dp.Gaussian(sigma), dp.TruncatedPoisson(q, n, cap), steps=1, adjacency=dp.REPLACE)
    zero = (0.0,) * (n - 1)
    truth = e.hockey_stick(e.truncated((*zero, 1.0), q, cap), e.truncated((*zero, -1.0), q, cap), sigma, (math.e,))
    assert plan.delta_interval(1.0).lower == pytest.approx(float(truth[0]), abs=SLACK)
    assert float(truth[0]) < plan.delta_interval(1.0).upper


def test_allocation_replace() -> None:
    """Contributions of both signs and others beside them; v against -v lies between the ends."""
    draw = random.Random(8)
    for _ in range(max(3, ROUNDS // 6)):
        n, sigma = draw.randint(1, 3), draw.choice((0.7, 1.0))
        one = data(draw, n)
        other = (*one[:-1], data(draw, 1)[0])
        plan = dp.Sampled(dp.Gaussian(sigma), dp.BallsInBins(2), epochs=1, adjacency=dp.REPLACE)
        never_above(e.allocated(one, 2), e.allocated(other, 2), sigma, plan, 0.05)
    plan = dp.Sampled(dp.Gaussian(1.0), dp.BallsInBins(2), epochs=1, adjacency=dp.REPLACE)
    for epsilon in (0.0, 0.5, 2.0):
        truth = e.hockey_stick(e.allocated((1.0,), 2), e.allocated((-1.0,), 2), 1.0, (math.exp(epsilon),), 0.02)
        box = plan.delta_interval(epsilon)
        assert box.lower - SLACK <= float(truth[0]) <= box.upper + SLACK
        assert box.upper < 1.35 * float(truth[0])
