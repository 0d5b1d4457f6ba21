"""Golden: one step in closed form contains rigorous truths, each direction by itself."""

from __future__ import annotations

import math
import random

import mpmath as mp
import pytest

import dptally as dp
from dptally.accounting.certified import closed
from dptally.law.adjacency import Direction
from dptally.laws.gaussian import GaussianLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from truth import ball, gaussian_delta, one_step_delta
from truth.balls import precision

SIDES = {"remove": Direction.REMOVE, "add": Direction.ADD}


def bounds(delta: float) -> tuple[float, float]:
    value = math.log(delta)
    return math.nextafter(value, -math.inf), math.nextafter(value, math.inf)


@pytest.mark.parametrize("side", SIDES)
def test_one_sampled_step(side: str) -> None:
    draw = random.Random(81)
    for _ in range(150):
        sigma, rate = math.exp(draw.uniform(math.log(0.2), math.log(10.0))), 10 ** draw.uniform(-6, -0.01)
        law = SampledGaussianLaw(rate, sigma, SIDES[side])
        epsilon = draw.uniform(-0.3, 0.9) * law.supremum if side == "add" else math.exp(draw.uniform(-8, 2.5)) * rate
        low, high = closed.log_delta(law, epsilon)
        with precision(200):
            truth = one_step_delta(sigma, rate, epsilon, side)
            assert low == -math.inf or bool(ball(low).exp() <= truth), (sigma, rate, epsilon)
            assert bool(truth <= ball(high).exp()), (sigma, rate, epsilon)
        delta = 10 ** draw.uniform(-60, -2)
        low, high = closed.epsilon(law, bounds(delta))
        assert high - low <= 1e-9 * high + 1e-12
        with precision(400):
            assert low == 0 or bool(one_step_delta(sigma, rate, low, side) >= ball(delta)), (sigma, rate, delta)
            assert high >= law.supremum or bool(one_step_delta(sigma, rate, high, side) <= ball(delta))


def test_one_gaussian() -> None:
    draw = random.Random(82)
    for _ in range(400):
        law, delta = GaussianLaw(10 ** draw.uniform(-8, 3)), 10 ** draw.uniform(-300, -0.5)
        low, high = closed.epsilon(law, bounds(delta))
        assert high - low <= 1e-9 * high + 1e-12
        with precision(500):
            mu = ball(law.variance).sqrt()
            assert low == 0 or bool(gaussian_delta(mu, low) >= ball(delta)), (law, delta)
            assert bool(gaussian_delta(mu, high) <= ball(delta)), (law, delta)


def test_ends_of_the_search() -> None:
    law = SampledGaussianLaw(0.01, 1.0, Direction.ADD)
    assert closed.epsilon(law, bounds(0.9)) == (0.0, 0.0)
    low, high = closed.epsilon(law, (-1e5, -1e5))  # below what the profile resolves next to the largest loss
    assert 0.9 * law.supremum < low <= law.supremum <= high
    edge = closed._edge(lambda x: 1.0 - x, 0.0, 3.0)
    assert edge[0] <= 1.0 <= edge[1]
    assert edge[1] - edge[0] < 1e-14


@pytest.mark.parametrize(("scale", "rate"), [(0.3558, 0.00405), (0.4806, 0.8026), (0.7614, 0.0699), (0.3, 0.01)])
@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-46])
def test_tiny_deltas_of_sampled_laplace_noise(scale: float, rate: float, delta: float) -> None:
    """The largest loss has mass: epsilon is log(1 - q + q e^{1/b}) to 40 digits, of which both ends know 13."""
    found = dp.PoissonSampled(dp.Laplace(scale), rate).epsilon_interval(delta)
    with mp.workdps(60):
        truth = mp.log(1 - mp.mpf(rate) + mp.mpf(rate) * mp.exp(1 / mp.mpf(scale)))
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower < 1e-12 * found.upper
