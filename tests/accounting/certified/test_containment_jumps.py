"""Golden: sums split by jumps, each asked at several epsilons, contain truths that share no code with the library.

Every question counts once, and only where an interval moved a little beside the truth would be refuted.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from flint import arb

import dptally as dp
import tables
from depth import SOAK, sparse, thinned
from dptally.accounting.certified.big_jump import plan as jumps
from dptally.accounting.certified.big_jump.plan import JumpSum
from dptally.accounting.certified.contour import chernoff
from dptally.accounting.certified.route import bounds_at
from dptally.accounting.certified.solve import epsilon_ends
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from truth import ball, floats, one_step_delta
from truth.balls import precision
from truth.draws import log_uniform
from truth.judge import Judge
from truth.stored import pairs
from walking import until_overflow

#: nats: what the engine takes for a sharp answer is half of it
SHIFT = 1e-6


pytestmark = pytest.mark.usefixtures("quiet")


def built(composition: Composition, epsilon: float, bound: float = math.inf) -> list[JumpSum]:
    """As the engine does it, whether or not another route would have done; ``bound`` of delta, Chernoff's if none.

    Where Chernoff's exceeds delta by far, terms that matter are taken for negligible: sound, but wide.
    """
    assert jumps.applies(composition)
    guess = chernoff.chernoff_log_delta(composition, epsilon) if bound > 1 else math.log(bound)
    return list(until_overflow(jumps.for_epsilon(composition, epsilon, guess)))


def test_two_steps_at_several_epsilons() -> None:
    judge = Judge(SHIFT)
    for sigma, rate, direction, answers in sparse(pairs("near")):
        if direction == "remove":
            composition = tables.sampled_composition(sigma, rate, 2, direction)
            for found in built(composition, answers[0].epsilon, answers[0].upper):
                for epsilon, lower, upper in answers:
                    low, high, _ = bounds_at(found, epsilon)
                    judge.log_delta((sigma, rate, epsilon), low, high, (lower, upper))
    judge.close(thinned(1300))


def test_two_steps_of_the_table() -> None:
    """Every fourth row, at its saddle and off it, with the engine's guess of delta."""
    judge = Judge(SHIFT)
    rows = [row for row in tables.sampled() if row[2] == 2 and row[3] == "remove"][::4]
    rows = list(sparse(rows))
    for index, (*plan, epsilon, lower, upper) in enumerate(rows):
        for found in built(tables.sampled_composition(*plan), (1.0, 1.04, 0.98)[index % 3] * epsilon):
            low, high, _ = bounds_at(found, epsilon)
            judge.log_delta((*plan, epsilon), low, high, (lower, upper))
    judge.close(thinned(130))


def test_many_steps_of_the_table() -> None:
    judge = Judge(SHIFT)
    rows = [row for row in tables.sampled() if row[2] > 2 and row[3] == "remove"][::3]
    rows = list(sparse(rows))
    for index, (*plan, epsilon, lower, upper) in enumerate(rows):
        for found in built(tables.sampled_composition(*plan), (1.0, 0.98, 1.04)[index % 3] * epsilon):
            low, high, _ = bounds_at(found, epsilon)
            judge.log_delta((*plan, epsilon), low, high, (lower, upper))
    judge.close(thinned(90))


@pytest.mark.parametrize("family", ["remove", "tiny rate", "mix"])
def test_few_steps_of_the_table(family: str) -> None:
    """3 to 30 steps and different laws together, as sharp as the recursion."""
    judge = Judge(0.02)
    for row in sparse([row for row in tables.few_steps() if row["family"] == family], every=3):
        composition = tables.composition_of(row)
        if jumps.applies(composition):
            for found in built(composition, row["epsilon"]):
                low, high, _ = bounds_at(found, row["epsilon"])
                judge.log_delta(row["number"], low, high, (row["lower"], row["upper"]))
    judge.close({"remove": 69, "tiny rate": 18, "mix": 12}[family] // (1 if SOAK else 6))


def test_one_step() -> None:
    """The closed form: any size of delta that doubles hold."""
    draw, judge = random.Random("jumps, one step"), Judge(SHIFT)
    for _ in range(thinned(160)):
        sigma, rate = log_uniform(draw, 0.3, 8), log_uniform(draw, 1e-6, 0.99)
        composition = Composition.of([(SampledGaussianLaw(rate, sigma, Direction.REMOVE), 1)])
        at = log_uniform(draw, 0.2 * rate, 20 / sigma)
        bound = floats(one_step_delta(sigma, rate, at, "remove"))[1]
        for found in built(composition, at, bound) if bound > 1e-280 else ():
            for epsilon in (at, 0.95 * at, 1.03 * at, 1.08 * at):
                exact = one_step_delta(sigma, rate, epsilon, "remove")
                if exact > arb(10) ** -290:
                    judge.log_delta((sigma, rate, epsilon), *bounds_at(found, epsilon)[:2], exact)
    judge.close(thinned(400))


def beside_responses(sigma: float, rate: float, p: float, count: int, epsilon: float) -> arb:
    """The one step's profile averaged over the binomial loss."""
    with precision(300):
        a, b = ball(p), 1 - ball(p)
        step = (a / b).log()
        terms = (
            math.comb(count, j)
            * (a**j * b ** (count - j))
            * one_step_delta(sigma, rate, ball(epsilon) - (2 * j - count) * step, "remove")
            for j in range(count + 1)
        )
        return sum(terms, arb(0))


def test_one_step_beside_responses() -> None:
    """A law that is cut beside one that is not."""
    draw, judge = random.Random("jumps, responses"), Judge(SHIFT)
    for _ in range(50 if SOAK else 15):
        sigma, rate = log_uniform(draw, 0.3, 2), log_uniform(draw, 1e-4, 0.3)
        p, count = draw.uniform(0.51, 0.9), draw.choice((1, 2, 4))
        plan = dp.PoissonSampled(dp.Gaussian(sigma), rate) + count * dp.RandomizedResponse(p)
        at = count * math.log(p / (1 - p)) * draw.uniform(0.3, 1) + log_uniform(draw, rate, 10 / sigma)
        for found in built(plan.directions()[0], at, floats(beside_responses(sigma, rate, p, count, at))[1]):
            for epsilon in (at, 0.97 * at, 1.02 * at):
                exact = beside_responses(sigma, rate, p, count, epsilon)
                judge.log_delta((sigma, rate, p, epsilon), *bounds_at(found, epsilon)[:2], exact)
    judge.close(thinned(50))


def test_little_room_beside_responses() -> None:
    """Nearly all of eps is lost by the responses: cuts and tilts on the scale of the rest, deltas down to e^-600."""
    draw, judge = random.Random("jumps, little room"), Judge(SHIFT)
    answered = 0
    for _ in range(40 if SOAK else 6):
        sigma, rate = log_uniform(draw, 0.5, 5), log_uniform(draw, 1e-4, 0.03)
        p, count = draw.uniform(0.7, 0.95), draw.choice((2, 4, 6))
        plan = dp.PoissonSampled(dp.Gaussian(sigma), rate) + count * dp.RandomizedResponse(p)
        at = count * math.log(p / (1 - p)) + rate * log_uniform(draw, 1, 300)
        for found in built(plan.directions()[0], at, floats(beside_responses(sigma, rate, p, count, at))[1]):
            answered += 1
            for epsilon in (at, at + 0.02 * rate):
                exact = beside_responses(sigma, rate, p, count, epsilon)
                judge.log_delta((sigma, rate, p, epsilon), *bounds_at(found, epsilon)[:2], exact)
    assert answered >= 3
    judge.close(thinned(10))


def test_epsilon() -> None:
    """There and back: the epsilon of a delta that is known to lie between two doubles."""
    judge = Judge(SHIFT)
    for sigma, rate, direction, answers in pairs("near")[:: 16 if SOAK else 64]:
        if direction == "add":
            continue
        composition, (epsilon, lower, upper) = tables.sampled_composition(sigma, rate, 2, direction), answers[0]
        target = math.log(lower) * (1 + 1e-15), math.log(upper) * (1 - 1e-15)
        guess = chernoff.chernoff_epsilon(composition, target[0])
        for found in until_overflow(jumps.for_delta(composition, target[0], guess)):
            judge.epsilon((sigma, rate, epsilon), *epsilon_ends(found, target), epsilon)
    judge.close(thinned(20))


def test_power() -> None:
    """A sum that lacks a term, or whose far losses are a little too many, is refuted."""
    refuted = [0, 0]
    for sigma, rate, direction, answers in pairs("near")[:40]:
        if direction == "add":
            continue
        epsilon, *delta = answers[0]
        for found in built(tables.sampled_composition(sigma, rate, 2, direction), epsilon, delta[1]):
            moved = tuple(x + 1e-4 for x in found.far.log_p), tuple(x + 1e-4 for x in found.far.log_q)
            wrong = (
                replace(found, computed=found.computed[1:]),
                replace(found, far=replace(found.far, log_p=moved[0], log_q=moved[1])),
            )
            for number, other in enumerate(wrong):
                low, high, _ = bounds_at(other, epsilon)
                try:
                    Judge(SHIFT).log_delta("wrong", low, high, (delta[0], delta[1]))
                except AssertionError:
                    refuted[number] += 1
    assert refuted[0] >= 20
    assert refuted[1] >= 5
