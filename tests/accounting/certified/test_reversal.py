"""Golden: small epsilons through the other direction contain rigorous truths, and are quick where one contour does."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import dptally as dp
from dptally.accounting.certified import engine
from dptally.accounting.certified.contour import swapped as reversal
from dptally.accounting.certified.solve import epsilon_ends
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from truth import ball, two_step_delta
from truth.balls import precision

SIDES = {"remove": Direction.REMOVE, "add": Direction.ADD}


def composition_of(sigma: float, rate: float, side: str, steps: int = 2) -> Composition:
    return Composition.of([(SampledGaussianLaw(rate, sigma, SIDES[side]), steps)])


@pytest.mark.parametrize("side", SIDES)
def test_delta(side: str) -> None:
    draw, answered = random.Random(81), 0
    for _ in range(14):
        sigma, rate = math.exp(draw.uniform(math.log(0.5), math.log(4.0))), 10 ** draw.uniform(-3, -0.05)
        epsilon = draw.choice((0.0, 1e-9, rate * draw.uniform(0, 1)))
        with np.errstate(all="ignore"):  # as in the engine
            made = list(reversal.for_epsilon(composition_of(sigma, rate, side), epsilon))
        for found in made:
            low, high, _ = found.log_delta(epsilon)
            truth = two_step_delta(sigma, rate, epsilon, side, 14)
            with precision(200):
                assert bool(ball(low).exp() <= truth) or low == -math.inf, (sigma, rate, epsilon)
                assert bool(truth <= ball(high).exp()) or high == 0, (sigma, rate, epsilon)
                if high - low < 1e-8:
                    answered += 1
                    middle = 0.5 * (low + high)  # narrowed answers are caught
                    assert bool(ball(middle - 1e-7).exp() < truth)
                    assert bool(truth < ball(middle + 1e-7).exp())
    assert answered >= 6


def test_epsilon() -> None:
    draw, answered = random.Random(82), 0
    for _ in range(8):
        sigma, rate = draw.uniform(1.0, 3.0), 10 ** draw.uniform(-3, -0.3)
        composition = composition_of(sigma, rate, "remove")
        delta = engine.delta_interval([composition], 0.0).upper * draw.uniform(0.3, 0.99)
        target = math.log(delta)
        for found in reversal.for_delta(composition, target):
            low, high = epsilon_ends(found, (target - 1e-15, target + 1e-15))
            with precision(200):
                assert low == 0 or bool(two_step_delta(sigma, rate, low, "remove", 14) >= ball(delta) * (1 - 2e-15))
                assert high == math.inf or bool(
                    two_step_delta(sigma, rate, high, "remove", 14) <= ball(delta) * (1 + 2e-15)
                )
            answered += 0 < low <= high < low * (1 + 1e-7)
    assert answered >= 4


@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "share"),
    [
        (1.659, 0.0008877, 13, 0.863),
        (0.4179, 0.01069, 47, 0.594),
        (1.399, 0.0005792, 4, 0.669),
        (0.554, 0.0846, 19, 0.595),
        (0.5912, 0.0002576, 16, 0.673),
        (0.4698, 0.003013, 18, 0.825),
    ],
)
def test_next_to_the_total_variation_no_lattice_is_needed(sigma: float, rate: float, steps: int, share: float) -> None:
    directions = dp.dpsgd(sigma, rate, steps).directions()
    most = engine.delta_interval(directions, 0.0)
    assert "inversion" in most.method
    found = engine.epsilon_interval(directions, share * most.upper)
    assert "inversion" in found.method
    assert found.upper - found.lower < 1e-7 * found.upper
    assert engine.epsilon_interval(directions, 1.01 * most.upper).upper == 0


def test_where_it_does_not_apply() -> None:
    law = SampledGaussianLaw(0.01, 1.0, Direction.REMOVE)
    assert not list(reversal.for_epsilon(Composition.of([(law, 2), (dp.Laplace(1.0).laws()[0], 1)]), 0.0))
    assert not list(reversal.for_epsilon(composition_of(1.0, 0.01, "remove"), 1e3))
    assert not list(reversal.for_delta(composition_of(1.0, 0.01, "remove"), -60.0))
    found = next(reversal.for_epsilon(composition_of(1.0, 0.3, "remove", 20), 0.1))
    assert found.log_delta(400.0)[:2] == (-math.inf, 0.0)
