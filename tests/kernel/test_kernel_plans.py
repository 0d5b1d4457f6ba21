"""The kernel against numpy on random plans, and against truths that share no code with either."""

from __future__ import annotations

import math
import random
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dptally as dp
from accounting.certified import tables
from depth import thinned
from dptally.accounting.certified.bounds import Ends
from dptally.accounting.certified.contour import curve, inversion
from dptally.accounting.certified.contour.compiled import CompiledContour
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.solve import epsilon_ends
from dptally.accounting.certified.tuning import STANDARD
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.numerics import compiled

pytestmark = pytest.mark.usefixtures("quiet")

PARTS = 10  # a tenth each: worksteal spreads them


def plans(seed: int, number: int) -> list[tuple[Composition, float]]:
    """(one law many times, log delta): everything from hopeless to headline, both sides."""
    draw = random.Random(seed)
    found = []
    for _ in range(number):
        rate = math.exp(draw.uniform(math.log(1e-5), math.log(0.95)))
        sigma = math.exp(draw.uniform(math.log(0.25), math.log(40.0)))
        steps = math.ceil(math.exp(draw.uniform(math.log(2), math.log(1e6))))
        law = SampledGaussianLaw(rate, sigma, draw.choice((Direction.REMOVE, Direction.ADD)))
        found.append((Composition(((law, steps),)), -draw.uniform(2.0, 60.0 if draw.random() < 0.7 else 300.0)))
    return found


def apart(one: tuple[float, float], other: tuple[float, float]) -> float:
    """How far two intervals are from meeting: <= 0 where they do."""
    return max(one[0], other[0]) - min(one[1], other[1])


@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_intervals_as_numpy(module: ModuleType, part: int) -> None:
    answered = sharp = refused = 0
    for composition, log_delta in plans(part, thinned(10_000) // PARTS):
        target = log_delta, log_delta
        pure = curve._block(*_block_of(composition, log_delta))
        with compiled.switched(module):
            fast = curve._block(*_block_of(composition, log_delta))
        count = composition.steps
        if pure is None or fast is None:
            refused += 1
            # the two only differ where a budget is just met: the number of nodes or terms is rounded otherwise
            continue
        answered += 1
        slow_contour, fast_contour = pure.contour(count), fast.contour(count)
        assert isinstance(fast_contour, CompiledContour)
        one, other = epsilon_ends(slow_contour, target), epsilon_ends(fast_contour, target)
        assert apart(one, other) <= 0, (composition, log_delta, one, other)
        wide = _width(one)
        if wide < 1e-7:  # others are where another route answers
            sharp += 1
            assert _width(other) <= 2 * wide + 1e-12, (composition, log_delta, one, other)
    assert sharp > 0.7 * answered > refused


def _width(ends: Ends) -> float:
    return (ends.upper - ends.lower) / max(ends.upper, 1e-300) if math.isfinite(ends.upper) else math.inf


def _block_of(composition: Composition, log_delta: float) -> tuple[Any, ...]:
    ((law, count),) = composition.parts
    tuning = STANDARD.contour
    return Composition(((law, 1),)), curve._neighbours(count, tuning.block_ratio), log_delta, tuning, 7_500_000


@pytest.mark.parametrize("seed", range(4))
def test_refusals_agree(module: ModuleType, seed: int) -> None:
    """Where numpy finds a contour, the kernel does, and the other way round, but for budgets that are just met."""
    differ = []
    for composition, log_delta in plans(100 + seed, thinned(1_000) // 4):
        pure = inversion.for_delta(composition, log_delta)
        with compiled.switched(module):
            fast = inversion.for_delta(composition, log_delta)
        if (pure is None) != (fast is None):
            differ.append((composition, log_delta))
    assert len(differ) <= 1, differ


@pytest.mark.parametrize("seed", range(4))
def test_delta_and_the_floor_agree_with_numpy(module: ModuleType, seed: int) -> None:
    for composition, log_delta in plans(200 + seed, thinned(2_000) // 4):
        contour = inversion.for_delta(composition, log_delta)
        epsilon = 0.0 if contour is None else epsilon_ends(contour, (log_delta, log_delta)).upper
        if not 0 < epsilon < math.inf:
            continue
        pure = inversion.for_epsilon(composition, epsilon)
        with compiled.switched(module):
            fast = inversion.for_epsilon(composition, epsilon)
        if pure is not None and fast is not None:
            one, other = pure.log_delta(epsilon), fast.log_delta(epsilon)
            assert apart(one[:2], other[:2]) <= 0
            if one.upper - one.lower < 1e-9:
                assert other.slope == pytest.approx(one.slope, rel=1e-5)
                assert fast.estimate(epsilon) == pytest.approx(pure.estimate(epsilon), rel=1e-9, abs=1e-9)
        # a floor that the true eps is above of is never said to be below
        with compiled.switched(module):
            assert not Plan(composition, 0.98 * epsilon).is_below_floor(log_delta)


def test_whole_plans_meet(in_use: ModuleType) -> None:
    draw = random.Random(5)
    for _ in range(thinned(400)):
        sigma, rate = math.exp(draw.uniform(-1.0, 2.0)), math.exp(draw.uniform(-8.0, -0.3))
        plan, delta = dp.dpsgd(sigma, rate, draw.randint(20, 20_000)), 10.0 ** draw.uniform(-12, -2)
        fast = plan.epsilon_interval(delta)
        with compiled.switched(None):
            curve._kept.cache_clear()
            slow = dp.dpsgd(sigma, rate, plan.directions()[0].steps).epsilon_interval(delta)
        curve._kept.cache_clear()
        assert apart((fast.lower, fast.upper), (slow.lower, slow.upper)) <= 0
        assert fast.upper - fast.lower <= 1e-6 * max(fast.upper, 1e-3)


def test_contains_independent_truths(in_use: ModuleType) -> None:
    rows = tables.sampled()
    seen = moved = 0
    for sigma, rate, steps, direction, epsilon, lower, upper in rows:
        composition = tables.sampled_composition(sigma, rate, steps, direction)
        found = inversion.for_epsilon(composition, epsilon)
        if found is None:
            continue
        assert isinstance(found, CompiledContour)
        low, high, _ = found.log_delta(epsilon)
        assert tables.log_outside(low, high, (lower, upper)) <= 0, (sigma, rate, steps, direction, epsilon)
        seen += 1
        width = max(high - low, 1e-12)
        moved += tables.log_outside(low + 2 * width, high + 2 * width, (lower, upper)) > 0
    assert seen > len(rows) // 2
    assert moved > 0.9 * seen  # power: bounds off by twice their width are found out


def test_many_epsilons_and_counts(in_use: ModuleType) -> None:
    ((law, _),) = dp.dpsgd(1.0, 0.01, 1000).directions()[0].parts
    contour = inversion.for_delta(Composition(((law, 1000),)), math.log(1e-6))
    assert isinstance(contour, CompiledContour)
    epsilon = np.linspace(0.5, 4.0, 50)
    for given in (epsilon, epsilon[::2], epsilon[::-1]):  # strides too
        together = contour.log_delta_many(given)
        alone = [contour.log_delta(float(x)) for x in given]
        np.testing.assert_array_equal(np.array(together).T, np.array(alone))
    assert all(x.shape == (0,) for x in contour.log_delta_many(np.empty(0)))
    fast = curve.curve(Composition(((law, 2),)), [500, 505, 510], (-11.0, -11.0))
    with compiled.switched(None):
        slow = curve.curve(Composition(((law, 2),)), [500, 505, 510], (-11.0, -11.0))
    assert fast.keys() == slow.keys()
    assert all(apart(fast[k], slow[k]) <= 0 for k in fast)


def test_threads_get_the_answers_of_one(in_use: ModuleType) -> None:
    questions = [(1.0 + 0.01 * i, 0.001 * (1 + i % 7)) for i in range(48)]

    def ask(question: tuple[float, float]) -> tuple[float, float]:
        found = dp.dpsgd(*question, 1000).epsilon_interval(1e-6)
        return found.lower, found.upper

    alone = [ask(question) for question in questions]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, questions)) == alone


def test_few_terms_and_odd_tunings_are_refused_or_sound(in_use: ModuleType) -> None:
    from dataclasses import replace

    ((law, _),) = dp.dpsgd(1.0, 0.01, 1000).directions()[0].parts
    composition = Composition(((law, 1000),))
    sharp = inversion.for_epsilon(composition, 1.8)
    assert sharp is not None
    low, high, _ = sharp.log_delta(1.8)
    draw = random.Random(3)
    for _ in range(200):
        tuning = replace(
            STANDARD.contour,
            relative=10.0 ** draw.uniform(-16, -1),
            node_tolerance=10.0 ** draw.uniform(-16, -1),
            steady=draw.uniform(1.0, 10.0),
            furthest=draw.uniform(1.0, 3000.0),
            fair=draw.uniform(-10.0, 20.0),
            hopeless=draw.uniform(-10.0, 40.0),
            most_terms=draw.randrange(2, 4000),
            long_period=draw.uniform(0.0, 80.0),
            starts=tuple(draw.uniform(0.05, 5.0) for _ in range(draw.randrange(1, 5))),
            around=tuple(draw.uniform(0.3, 3.0) for _ in range(draw.randrange(1, 12))),
            blocks=tuple(sorted(draw.sample(range(-40, 80), draw.randrange(2, 9)))),
        )
        found = inversion.for_epsilon(composition, 1.8, tuning)
        if found is not None:
            bounds = found.log_delta(1.8)
            assert apart(bounds[:2], (low, high)) <= 0
