"""Golden: sums split by jumps contain rigorous truths, with and without a level, and agree with other routes."""

from __future__ import annotations

import math
import random

import pytest
from flint import arb

from dptally.accounting.certified import few_steps, inversion, jumps
from dptally.law import Composition
from dptally.law.adjacency import Side
from dptally.mechanisms.gaussian import GaussianLaw
from dptally.mechanisms.sampled_gaussian import SampledGaussianLaw
from truth import ball, sampled_gaussian_delta
from truth.balls import precision

LEVELS = {"whole": jumps.WHOLE, "split": (0.1, 0.3)}


def sampled(sigma: float, rate: float, count: int, side: Side = Side.REMOVE) -> Composition:
    return Composition.of([(SampledGaussianLaw(rate, sigma, side), count)])


def contains(low: float, high: float, delta: arb) -> bool:
    """exp(low) <= delta <= exp(high), certainly; -inf and 0 are the trivial bounds."""
    with precision(200):
        above = low == -math.inf or bool(ball(low).exp() <= delta)
        return above and (high == 0 or bool(delta <= ball(high).exp()))


def test_delta_of_many_steps() -> None:
    """Built at eps, and above it, where eps is away from the saddle; no split and two levels."""
    draw = random.Random(61)
    answered = dict.fromkeys(LEVELS, 0)
    for _ in range(16):
        sigma, rate, count = draw.uniform(1.0, 2.5), draw.uniform(0.03, 0.15), round(draw.uniform(60, 400))
        composition = sampled(sigma, rate, count)
        epsilon = 0.9 * inversion.chernoff_epsilon(composition, -draw.uniform(5, 45))
        try:
            truth = sampled_gaussian_delta(sigma, rate, count, epsilon, "remove", 14)
        except ArithmeticError:  # the balls would take too long
            continue
        for name, levels in LEVELS.items():
            for built in (epsilon, 1.1 * epsilon):
                bound = inversion.chernoff_log_delta(composition, built)
                for found in jumps.for_epsilon(composition, built, bound, levels):
                    low, high, _ = found.log_delta(epsilon)
                    assert contains(low, high, truth), (sigma, rate, count, epsilon, name)
                    answered[name] += high - low < 1e-6
    assert min(answered.values()) >= 10


def test_epsilon_of_many_steps() -> None:
    sigma, rate, count, delta = 1.0, 0.02, 200, 1e-9
    composition = sampled(sigma, rate, count)
    target = (math.log(delta) - 1e-13, math.log(delta) + 1e-13)
    guess = inversion.chernoff_epsilon(composition, target[0])
    answered = 0
    for levels in LEVELS.values():
        for found in jumps.for_delta(composition, target[0], guess, levels):
            low, high = inversion.epsilon(found, target)
            assert 0 < low <= high < math.inf
            with precision(200):
                assert bool(sampled_gaussian_delta(sigma, rate, count, low, "remove", 16) >= ball(delta))
                assert bool(sampled_gaussian_delta(sigma, rate, count, high, "remove", 16) <= ball(delta))
            answered += 1
    assert answered


def test_routes_overlap_where_no_truth_is_at_hand() -> None:
    """Three to three hundred steps, delta to 1e-60: contours, splits and the lattice of losses share the truth."""
    draw = random.Random(63)
    compared = 0
    for _ in range(24):
        sigma, rate = draw.uniform(0.6, 3.0), 10 ** draw.uniform(-4, -1.2)
        count = round(10 ** draw.uniform(0.5, 2.4))
        composition = sampled(sigma, rate, count)
        log_delta = -draw.uniform(12, 138)
        guess = inversion.chernoff_epsilon(composition, log_delta)
        if guess == 0:
            continue
        epsilon = 0.8 * guess
        log_bound = inversion.chernoff_log_delta(composition, epsilon)
        boxes = [(-math.inf, 0.0)]
        for found in jumps.for_epsilon(composition, epsilon, log_bound, (0.1, math.inf)):
            boxes.append(found.log_delta(epsilon)[:2])
        straight = inversion.for_epsilon(composition, epsilon)
        if straight is not None:
            boxes.append(straight.log_delta(epsilon)[:2])
        if count <= 40:
            few = few_steps.for_epsilon(composition, epsilon, log_bound)
            if few is not None:
                boxes.append(few.log_delta(epsilon)[:2])
        compared += len(boxes) > 2
        assert max(low for low, _ in boxes) <= min(high for _, high in boxes), (sigma, rate, count, epsilon)
    assert compared >= 5


def test_parts_of_a_split_law_make_up_the_whole() -> None:
    """Masses under P of the light, heavy, far and dropped parts: together one."""
    draw = random.Random(64)
    for _ in range(60):
        sigma, rate = draw.uniform(0.4, 4.0), 10 ** draw.uniform(-5, -0.3)
        law = SampledGaussianLaw(rate, sigma, Side.REMOVE)
        level = draw.uniform(0.01, 3.0)
        parts = law.split(level, level + draw.uniform(0.1, 4.0), -draw.uniform(30, 200))
        assert parts is not None
        light = parts.light.characteristic(1e-9, 0.0, -30.0)
        assert light is not None
        total = math.exp(light.log_moment) + parts.far_mass
        if parts.heavy is not None:
            heavy = parts.heavy.characteristic(1e-9, 0.0, -30.0)
            assert heavy is not None
            total += math.exp(heavy.log_moment)
            assert parts.heavy_mass >= math.exp(heavy.log_moment)
        assert total == pytest.approx(1.0, abs=1e-7 + parts.dropped)
        if parts.far_mass:
            assert parts.far_mass_q < parts.far_mass


def test_far_losses_that_leave_the_doubles_give_no_lower_end() -> None:
    rest = jumps._Rest(1e-3, 1e-300, 1e9, -math.inf)
    assert rest.log_far(5.0) == (-math.inf, pytest.approx(math.log(1e-3)))
    beyond = jumps._Rest(1e-3, 1e-10, 4.0, -math.inf)
    assert beyond.log_far(5.0)[0] == -math.inf
    assert jumps._Rest(0.0, 0.0, 4.0, -math.inf).log_far(1.0) == (-math.inf, -math.inf)
    inside = jumps._Rest(1e-3, 1e-10, 6.0, -math.inf).log_far(5.0)
    assert inside[0] < math.log(1e-3 - math.exp(5.0) * 1e-10) < inside[1]


def test_where_splitting_does_not_apply() -> None:
    add = sampled(1.0, 0.01, 5, Side.ADD)
    assert list(jumps.for_epsilon(add, 0.01, -5.0)) == []
    assert not jumps.applies(Composition.of([(GaussianLaw(1.0), 1)]))
    two = [(SampledGaussianLaw(0.01, 1.0, Side.REMOVE), 2), (SampledGaussianLaw(0.02, 1.0, Side.REMOVE), 2)]
    assert not jumps.applies(Composition.of(two))
    assert list(jumps.for_epsilon(sampled(1.0, 0.01, 2), math.inf, -5.0)) == []


def test_a_gaussian_beside_rare_jumps() -> None:
    """Others are in every term; no loss decides alone beside an unbounded one."""
    composition = Composition.of([(GaussianLaw(0.09), 1), (SampledGaussianLaw(1e-3, 0.7, Side.REMOVE), 3)])
    assert jumps.applies(composition)
    for epsilon in (1.0, 3.0):
        straight = inversion.for_epsilon(composition, epsilon)
        bound = inversion.chernoff_log_delta(composition, epsilon)
        boxes = [found.log_delta(epsilon)[:2] for found in jumps.for_epsilon(composition, epsilon, bound)]
        if straight is not None:
            boxes.append(straight.log_delta(epsilon)[:2])
        assert boxes
        assert max(low for low, _ in boxes) <= min(high for _, high in boxes)
