"""Golden: where other accountants published a wrong number, our interval contains the truth and excludes theirs."""

from __future__ import annotations

import math

import mpmath as mp
import pytest

import dptally as dp
from dptally.accounting.certified import engine
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from truth import ball, sampled_gaussian_delta
from truth.balls import precision


@pytest.mark.parametrize("side", ["remove", "add"])
def test_a_pessimistic_grid_was_optimistic(side: str) -> None:
    """A grid of losses called pessimistic is 4.7 % too low at sigma 2, q 0.001, T 1e6, delta 1e-14."""
    which = Direction.REMOVE if side == "remove" else Direction.ADD
    box = engine.epsilon_interval([Composition.of([(SampledGaussianLaw(0.001, 2.0, which), 10**6)])], 1e-14)
    assert box.upper - box.lower <= 1e-8
    with precision(300):
        assert bool(sampled_gaussian_delta(2.0, 0.001, 10**6, box.lower, side, 18) >= ball(1e-14))
        assert bool(sampled_gaussian_delta(2.0, 0.001, 10**6, box.upper, side, 18) <= ball(1e-14))
    if side == "remove":
        assert box.lower > 0.96 * box.upper


def binomial_delta(loss: mp.mpf, count: int, epsilon: float) -> mp.mpf:
    """delta of ``count`` two-point losses of +-loss, summed in mpmath."""
    p = 1 / (1 + mp.exp(-loss))
    total = mp.mpf(0)
    for k in range(count + 1):
        gain = 1 - mp.exp(mp.mpf(epsilon) - (2 * k - count) * loss)
        if gain > 0:
            total += mp.binomial(count, k) * p**k * (1 - p) ** (count - k) * gain
    return total


def test_ten_pure_guarantees_of_five() -> None:
    """Published: an upper bound of 40.01 for ten pure eps = 5; the truth at delta 1e-5 is larger."""
    plan = 10 * dp.PureDP(5.0)
    box = plan.epsilon_interval(delta=1e-5)
    with mp.workdps(50):
        assert binomial_delta(mp.mpf(5), 10, 40.01) > 1e-5
        assert box.lower == 0 or binomial_delta(mp.mpf(5), 10, box.lower) >= 1e-5 * (1 - mp.mpf(10) ** -12)
        assert binomial_delta(mp.mpf(5), 10, box.upper) <= mp.mpf(1e-5)
    assert box.lower > 40.01
    assert box.upper <= 50.0


def test_randomised_response_counts_every_time() -> None:
    """Published: a hundred randomised responses accounted as one."""
    one, hundred = dp.RandomizedResponse(0.625), 100 * dp.RandomizedResponse(0.625)
    box = hundred.epsilon_interval(delta=1e-6)
    assert box.lower > 5 * one.epsilon_interval(delta=1e-6).upper
    with mp.workdps(60):
        loss = mp.log(mp.mpf(0.625) / mp.mpf(0.375))
        assert binomial_delta(loss, 100, box.lower) >= mp.mpf(1e-6)
        assert binomial_delta(loss, 100, box.upper) <= mp.mpf(1e-6)
    assert math.isfinite(box.upper)
