"""Golden: small epsilons through the other direction of the pair, each contour asked at several of them.

Every question counts once, and only where an interval moved a little beside the truth would be refuted.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import tables
from depth import SOAK, sparse, thinned
from dptally.accounting.certified.contour import swapped as reversal
from dptally.accounting.certified.route import bounds_at
from dptally.accounting.certified.solve import epsilon_ends
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from truth import ball, gaussian_delta, one_step_delta
from truth.balls import precision
from truth.draws import log_uniform
from truth.judge import Judge
from truth.stored import pairs
from walking import until_overflow

SHIFT = 1e-6
SIDES = {"remove": Direction.REMOVE, "add": Direction.ADD}
NEAR = 1 - 2.0**-44  # a rate at which the sampled Gaussian is a Gaussian up to 1e-13


pytestmark = pytest.mark.usefixtures("quiet")


def built(composition: Composition, epsilon: float) -> Iterator[reversal.Reversed]:
    return until_overflow(reversal.for_epsilon(composition, epsilon))


@pytest.mark.parametrize("direction", SIDES)
def test_two_steps(direction: str) -> None:
    """From the total variation to a tenth of the losses that are not rare; contours and split sums."""
    judge = Judge(SHIFT)
    for sigma, rate, side, answers in sparse(pairs("zero")):
        if side == direction:
            for found in built(tables.sampled_composition(sigma, rate, 2, side), answers[0].epsilon):
                for epsilon, lower, upper in answers:
                    judge.log_delta((sigma, rate, epsilon), *bounds_at(found, epsilon)[:2], (lower, upper))
    judge.close(thinned(480))


@pytest.mark.parametrize("direction", SIDES)
def test_the_table(direction: str) -> None:
    """Any epsilon and any number of steps; far from zero the answers are wide, and sound."""
    judge = Judge(SHIFT)
    for *plan, epsilon, lower, upper in sparse(tables.sampled()):
        if plan[3] == direction:
            for found in built(tables.sampled_composition(*plan), epsilon):
                judge.log_delta((*plan, epsilon), *bounds_at(found, epsilon)[:2], (lower, upper))
    judge.close(thinned(150))


@pytest.mark.parametrize("direction", SIDES)
def test_one_step(direction: str) -> None:
    draw, judge = random.Random(f"reversal, one step {direction}"), Judge(SHIFT)
    for _ in range(60 if SOAK or direction == "remove" else 20):
        sigma, rate = log_uniform(draw, 0.3, 3), log_uniform(draw, 1e-3, 0.99)
        composition = Composition.of([(SampledGaussianLaw(rate, sigma, SIDES[direction]), 1)])
        at = draw.choice((0.0, rate * draw.uniform(0, 0.5)))
        for found in built(composition, at):
            for epsilon in (at, at + 0.02 * rate, at + 0.1 * rate):
                exact = one_step_delta(sigma, rate, epsilon, direction)
                judge.log_delta((sigma, rate, epsilon), *bounds_at(found, epsilon)[:2], exact)
    judge.close(10 if direction == "remove" else 80 if SOAK else 16)


def test_many_steps_next_to_rate_one() -> None:
    """q^T delta_G(eps - T log q) <= delta(eps) <= delta_G(eps) with the Gaussian's delta_G."""
    draw, judge = random.Random("reversal, near one"), Judge(SHIFT)
    for _ in range(thinned(220)):
        count = draw.choice((2, 5, 20, 100, 1000))
        sigma = max(0.4, math.sqrt(count) / log_uniform(draw, 0.02, 3))
        mu = math.sqrt(count) / sigma
        composition = Composition.of([(SampledGaussianLaw(NEAR, sigma, Direction.REMOVE), count)])
        at = draw.choice((0.0, mu * draw.uniform(0, 0.5), mu * draw.uniform(0, 2)))
        for found in built(composition, at):
            for epsilon in (at, at + 0.03 * mu, at + 0.1 * mu):
                with precision(300):
                    exact = ball(count).sqrt() / ball(sigma)
                    upper = gaussian_delta(exact, epsilon)
                    lower = ball(NEAR) ** count * gaussian_delta(exact, ball(epsilon) - count * ball(NEAR).log())
                judge.log_delta((sigma, count, epsilon), *bounds_at(found, epsilon)[:2], (lower, upper))
    judge.close(thinned(600))


def test_epsilon() -> None:
    judge = Judge(1e-4)
    for sigma, rate, side, answers in pairs("zero")[:: 8 if SOAK else 40]:
        epsilon, lower, upper = answers[-1]
        target = math.log(lower) * (1 + 1e-15), math.log(upper) * (1 - 1e-15)
        composition = tables.sampled_composition(sigma, rate, 2, side)
        for found in until_overflow(reversal.for_delta(composition, target[0])):
            judge.epsilon((sigma, rate, epsilon), *epsilon_ends(found, target), epsilon)
    judge.close(thinned(50))


@dataclass(frozen=True)
class Forgetful:
    """The other direction without what the identity takes off it: e^eps delta'(-eps)."""

    found: reversal.Reversed

    def log_delta(self, epsilon: float) -> tuple[float, float, float]:
        low, high, rate = self.found.other.log_delta(-epsilon)
        return low + epsilon, high + epsilon, rate


def test_power() -> None:
    """Answers that forget a term, and epsilons that are a thousandth off, are refuted."""
    refuted = asked = 0
    for sigma, rate, side, answers in pairs("zero")[:: 8 if SOAK else 40]:
        epsilon, *delta = answers[-1]
        for found in built(tables.sampled_composition(sigma, rate, 2, side), epsilon):
            low, high, _ = bounds_at(found, epsilon)
            if high - low > SHIFT:
                continue
            for wrong in (Forgetful(found).log_delta(epsilon), found.log_delta(epsilon * 1.001)):
                asked += 1
                try:
                    Judge(SHIFT).log_delta("wrong", *wrong[:2], (delta[0], delta[1]))
                except AssertionError:
                    refuted += 1
    assert asked >= (60 if SOAK else 20)
    assert refuted >= 0.9 * asked
