"""Golden: smoothed contours of mixed point masses contain sums over all outcomes, formed in balls."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import product

import pytest
from flint import arb

import dptally as dp
from dptally.accounting.certified import engine
from dptally.accounting.certified.contour import smoothed as smoothing
from dptally.accounting.certified.lattice import bracket as lattice
from dptally.accounting.certified.routes import SmoothedContour
from dptally.accounting.certified.solve import epsilon_ends
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.laws.laplace import LaplaceLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.laws.two_point import TwoPointLaw
from truth import ball, laplace_delta
from truth.balls import precision
from walking import profiles_near

pytestmark = pytest.mark.usefixtures("quiet")


def pure_delta(parts: list[tuple[float, int]], epsilon: float) -> arb:
    """delta of n_i guarantees eps_i each: the losses are sums of +-eps_i, all outcomes in balls."""
    with precision(200):
        total = arb(0)
        chances = []
        for e, n in parts:
            p = 1 / (1 + (-ball(e)).exp())
            chances.append([(ball(e) * (2 * k - n), p**k * (1 - p) ** (n - k) * math.comb(n, k)) for k in range(n + 1)])
        for outcome in product(*chances):
            loss = sum((x for x, _ in outcome), arb(0))
            gap = 1 - (ball(epsilon) - loss).exp()
            if bool(gap > 0):
                mass = arb(1)
                for _, share in outcome:
                    mass *= share
                total += mass * gap
            else:
                assert bool(gap <= 0), "epsilon is a loss: choose another"
        return total


def composition(parts: list[tuple[float, int]]) -> Composition:
    return Composition.of([(TwoPointLaw.of_guarantee(e), n) for e, n in parts])


def contains(low: float, high: float, delta: arb) -> bool:
    with precision(200):
        above = low == -math.inf or bool(ball(low).exp() <= delta)
        return above and (high == 0 or bool(delta <= ball(high).exp()))


def plans(seed: int, number: int) -> Iterator[tuple[list[tuple[float, int]], float]]:
    draw = random.Random(seed)
    for _ in range(number):
        parts = [(10 ** draw.uniform(-0.8, 0.4), draw.randint(1, 4)) for _ in range(draw.randint(2, 3))]
        largest = sum(e * n for e, n in parts)
        yield parts, draw.uniform(0.1, 0.97) * largest


def test_delta_of_mixed_point_masses() -> None:
    answered = caught = 0
    for parts, epsilon in plans(81, 1000):
        found = smoothing.for_epsilon(composition(parts), epsilon)
        if found is None:
            continue
        truth = pure_delta(parts, epsilon)
        low, high, _ = found.log_delta(epsilon)
        assert contains(low, high, truth), (parts, epsilon)
        answered += 1
        caught += not contains(high + 1e-9, high + 2e-9, truth)  # power: an interval just beside the truth is noticed
    assert answered >= 900
    assert caught == answered


def test_epsilon_of_mixed_point_masses() -> None:
    answered = 0
    for parts, epsilon in plans(82, 150):
        with precision(200):
            target = float(pure_delta(parts, epsilon).log().mid())
        found = smoothing.for_delta(composition(parts), target)
        if found is None:
            continue
        low, high = epsilon_ends(found, (target - 1e-12, target + 1e-12))
        assert low <= epsilon * (1 + 1e-12), (parts, epsilon)
        assert high >= epsilon * (1 - 1e-12), (parts, epsilon)
        answered += high - low < 1e-6 * max(1.0, epsilon)
    assert answered >= 100


def test_next_to_an_atom() -> None:
    """Within the noise of an atom the lower end is honestly wider, and still below the truth."""
    parts = [(0.5, 3), (0.3, 2)]
    for gap in (1e-2, 1e-4, 1e-6, 1e-9, -1e-9, -1e-6, -1e-4):
        epsilon = 0.5 + 0.6 + gap
        found = smoothing.for_epsilon(composition(parts), epsilon)
        assert found is not None
        assert contains(*found.log_delta(epsilon)[:2], pure_delta(parts, epsilon)), gap


def test_many_different_responses_agree_with_the_lattice() -> None:
    plan = sum((dp.RandomizedResponse(0.5 + 0.004 * (i + 1)) for i in range(25)), 0 * dp.Laplace(1.0))
    directions = plan.directions()
    for delta in (1e-3, 1e-6, 1e-8):
        box = engine.epsilon_interval(directions, delta)
        assert box.method == "smoothed inversion"
        assert box.width < 1e-6
        target = math.log(delta)
        low, high = lattice.epsilon(directions[0], (target - 1e-13, target + 1e-13))
        assert low <= box.upper
        assert box.lower <= high


def test_mass_at_infinity_and_delta() -> None:
    plan = dp.ApproxDP(0.3, 1e-7) + 3 * dp.ApproxDP(0.7, 2e-7)
    box = plan.delta_interval(0.95)
    finite = pure_delta([(0.3, 1), (0.7, 3)], 0.95)
    (smoothed,) = profiles_near(SmoothedContour(), plan.directions()[0], 0.95)
    low, high, _ = smoothed.log_delta(0.95)
    with precision(200):
        alive = (1 - ball(1e-7)) * (1 - ball(2e-7)) ** 3
        truth = 1 - alive + alive * finite
        assert bool(ball(box.lower) <= truth)
        assert bool(truth <= ball(box.upper))
        assert bool(ball(low) <= (alive * finite).log())
        assert bool((alive * finite).log() <= ball(high))
        assert high - low < 1e-5


def test_where_it_does_not_apply() -> None:
    one = composition([(0.3, 4)])
    assert not smoothing.applies(one)
    sampled = SampledGaussianLaw(0.01, 1.0, Direction.REMOVE)
    wide = Composition.of([(sampled, 3), (TwoPointLaw.of_guarantee(0.3), 2)])
    found = smoothing.for_epsilon(wide, 0.7)
    straight = lattice.log_delta(wide, 0.7)
    if found is not None:
        low, high, _ = found.log_delta(0.7)
        assert low <= straight[1]
        assert straight[0] <= high


def test_next_to_an_epsilon_of_zero() -> None:
    parts = [(0.2, 1), (0.4, 3)]
    for epsilon in (5e-324, 1e-300, 1e-12, 1e-3):
        found = smoothing.for_epsilon(composition(parts), epsilon)
        assert found is not None
        low, high, _ = found.log_delta(epsilon)
        assert contains(low, high, pure_delta(parts, epsilon))
        assert high - low < 1e-6


def test_laplace_steps() -> None:
    """k-fold Laplace by residues in balls; the characteristic function is the closed form for many turns."""
    draw = random.Random(83)
    answered = 0
    for _ in range(120):
        reach, count = 10 ** draw.uniform(-1.5, 0.5), draw.randint(2, 30)
        whole = Composition.of([(LaplaceLaw(reach, reach), count)])
        epsilon = draw.uniform(0.05, 0.9) * reach * count
        found = smoothing.for_epsilon(whole, epsilon)
        if found is None:
            continue
        low, high, _ = found.log_delta(epsilon)
        assert contains(low, high, laplace_delta(reach, count, epsilon)), (reach, count, epsilon)
        answered += high - low < 1e-4
    assert answered >= 80


def test_laplace_steps_of_different_scales_agree_with_the_lattice() -> None:
    plan = 3 * dp.Laplace(4.0) + 2 * dp.Laplace(9.0) + dp.RandomizedResponse(0.6)
    for delta in (1e-2, 1e-5):
        box = plan.epsilon_interval(delta)
        assert box.method == "smoothed inversion"
        target = math.log(delta)
        low, high = lattice.epsilon(plan.directions()[0], (target - 1e-13, target + 1e-13))
        assert low <= box.upper
        assert box.lower <= high
