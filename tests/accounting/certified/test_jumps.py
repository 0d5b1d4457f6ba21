"""Golden: sums cut by the size of the losses contain rigorous truths and agree with other routes."""

from __future__ import annotations

import math
import random

import mpmath as mp
import numpy as np
import pytest
from flint import arb

from dptally.accounting.certified import closed
from dptally.accounting.certified.big_jump import contour as jump_term
from dptally.accounting.certified.big_jump import decisive as jump_far
from dptally.accounting.certified.big_jump import plan as jumps
from dptally.accounting.certified.contour import chernoff, inversion
from dptally.accounting.certified.lattice import bracket as lattice
from dptally.accounting.certified.lattice import decisive as few_steps
from dptally.accounting.certified.solve import epsilon_ends
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.law.characteristic import GaussianCharacteristic, MomentTable, SoftCut
from dptally.law.law import Floats
from dptally.laws.gaussian import GaussianLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.laws.two_point import TwoPointLaw
from truth import ball, sampled_gaussian_delta
from truth.balls import precision


def sampled(sigma: float, rate: float, count: int, side: Direction = Direction.REMOVE) -> Composition:
    return Composition.of([(SampledGaussianLaw(rate, sigma, side), count)])


def contains(low: float, high: float, delta: arb) -> bool:
    """exp(low) <= delta <= exp(high), certainly; -inf and 0 are the trivial bounds."""
    with precision(200):
        above = low == -math.inf or bool(ball(low).exp() <= delta)
        return above and (high == 0 or bool(delta <= ball(high).exp()))


def test_delta_of_many_steps() -> None:
    """Built at eps, and above and below it, where eps is away from the saddle."""
    draw = random.Random(61)
    answered = 0
    for _ in range(16):
        sigma, rate, count = draw.uniform(1.0, 2.5), draw.uniform(0.03, 0.15), round(draw.uniform(60, 400))
        composition = sampled(sigma, rate, count)
        epsilon = 0.9 * chernoff.chernoff_epsilon(composition, -draw.uniform(5, 45))
        try:
            truth = sampled_gaussian_delta(sigma, rate, count, epsilon, "remove", 14)
        except ArithmeticError:  # the balls would take too long
            continue
        for built in (epsilon, 1.1 * epsilon, 0.95 * epsilon):
            bound = chernoff.chernoff_log_delta(composition, built)
            for found in jumps.for_epsilon(composition, built, bound):
                low, high, _ = found.log_delta(epsilon)
                assert contains(low, high, truth), (sigma, rate, count, epsilon, built)
                answered += high - low < 1e-6
    assert answered >= 10


def test_two_steps_with_rare_large_losses() -> None:
    """delta of two steps = E[delta of one step at eps - L], an integral in balls; epsilon there and back."""
    draw = random.Random(65)
    for _ in range(12):
        sigma, rate = draw.uniform(0.4, 3.0), 10 ** draw.uniform(-4.5, -1)
        composition = sampled(sigma, rate, 2)
        log_delta = -draw.uniform(12, 60)
        guess = chernoff.chernoff_epsilon(composition, log_delta)
        found = list(jumps.for_delta(composition, log_delta, guess))
        assert found, (sigma, rate, log_delta)
        low, high = epsilon_ends(found[-1], (log_delta, log_delta))
        assert 0 <= low <= high <= low * (1 + 1e-6), (sigma, rate, log_delta)
        below = sampled_gaussian_delta(sigma, rate, 2, low, "remove", 12)
        above = sampled_gaussian_delta(sigma, rate, 2, high, "remove", 12)
        with precision(200):
            target = ball(log_delta).exp()
            assert bool(below >= target)
            assert bool(above <= target)


def test_epsilon_of_many_steps() -> None:
    sigma, rate, count, delta = 1.0, 0.02, 200, 1e-9
    composition = sampled(sigma, rate, count)
    target = (math.log(delta) - 1e-13, math.log(delta) + 1e-13)
    guess = chernoff.chernoff_epsilon(composition, target[0])
    answered = 0
    for found in jumps.for_delta(composition, target[0], guess):
        low, high = epsilon_ends(found, target)
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
        guess = chernoff.chernoff_epsilon(composition, log_delta)
        if guess == 0:
            continue
        epsilon = 0.8 * guess
        log_bound = chernoff.chernoff_log_delta(composition, epsilon)
        boxes = [(-math.inf, 0.0)]
        with np.errstate(all="ignore"):  # as in the engine: tilts out of reach are infinite
            for found in jumps.for_epsilon(composition, epsilon, log_bound):
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


def test_losses_that_decide_alone() -> None:
    """One step, far beyond eps: P - e^eps Q is what the edge leaves of delta; the leak only widens the upper end."""
    composition = sampled(1.0, 0.01, 1)
    plan = jumps._Plan(composition, 0.5, -10.0)
    assert plan.far is not None
    low, high = plan.far.log_share(0.5)
    assert low < high < low + 1e-9
    assert plan.far.log_least(0.5) == pytest.approx(low, abs=1e-9)
    assert high < float(closed.log_delta(composition.parts[0][0], 0.5)[1])
    beyond = plan.far.log_share(5.0)  # they do not decide alone there: no lower end, and an upper one that holds
    assert beyond[0] == -math.inf
    assert beyond[1] >= high
    none = -math.inf, -math.inf
    assert jump_far.Far([], 0.0, none, none).log_share(1.0) == none


def test_chances_of_at_least_one() -> None:
    for p, n in ((1e-30, 3), (1e-18, 10**6), (1e-9, 1), (0.3, 7), (1.0, 2)):
        exact = -mp.expm1(n * mp.log1p(-mp.mpf(p))) if p < 1 else mp.mpf(1)
        assert jump_far._log_some(math.log(p), n) == pytest.approx(float(mp.log(exact)), rel=1e-14, abs=1e-14)
    assert jump_far._log_any([-50.0, -51.0]) == pytest.approx(math.log(math.exp(-50) + math.exp(-51)))
    assert jump_far._log_any([math.log(0.5), math.log(0.5)]) == pytest.approx(math.log(0.75))
    assert jump_far._log_any([0.0, -3.0]) == 0.0


@pytest.mark.parametrize(
    ("sigma", "rate", "count", "epsilon", "log_delta"),
    [
        (7.4847908184766245, 0.039517647737219094, 2, 0.3036316422955583, -156.0),
        (0.3632203061123924, 0.42282157106515555, 2, 24.66332782899229, -488.3),
        (9.817098539458934, 0.0036328488660367446, 2, 0.0513138409648944, -304.6),
        (13.924234364713184, 9.576213790770975e-06, 1, 1.5558625295490526e-05, -103.6),
        (0.3065240031208129, 0.869417668088352, 1, 1.0795007356261512, -485.1),
        (0.7352887633700302, 6.804287602031525e-06, 1, 23.905827487117286, -622.0),
    ],
)
def test_jumps_far_heavier_than_the_rest(
    sigma: float, rate: float, count: int, epsilon: float, log_delta: float
) -> None:
    """Tilted jumps outweigh the rest by hundreds of nats: nothing is cut off there, and nothing overflows."""
    composition = sampled(sigma, rate, count)
    truth = sampled_gaussian_delta(sigma, rate, count, epsilon, "remove", 12)
    with np.errstate(all="ignore"):
        built = list(jumps.for_delta(composition, log_delta, chernoff.chernoff_epsilon(composition, log_delta)))
        built += jumps.for_epsilon(composition, epsilon, chernoff.chernoff_log_delta(composition, epsilon))
        for found in built:
            low, high, _ = found.log_delta(epsilon)
            assert contains(low, high, truth)


def test_beside_a_law_with_infinite_losses() -> None:
    """P and Q of a large loss count only while the others are finite: no loss decides alone there."""
    laws = [(TwoPointLaw.of_guarantee(0.1, 0.2), 2), (SampledGaussianLaw(1e-3, 0.6, Direction.REMOVE), 3)]
    composition = Composition.of(laws)
    for epsilon in (1.0, 3.0):
        with np.errstate(all="ignore"):
            bound = chernoff.chernoff_log_delta(composition, epsilon)
            boxes = [found.log_delta(epsilon)[:2] for found in jumps.for_epsilon(composition, epsilon, bound)]
        assert boxes
        boxes.append(lattice.log_delta(composition, epsilon))
        assert max(low for low, _ in boxes) <= min(high for _, high in boxes)


def test_where_splitting_does_not_apply() -> None:
    add = sampled(1.0, 0.01, 5, Direction.ADD)
    assert not jumps.applies(add)
    assert not jumps.applies(Composition.of([(GaussianLaw(1.0), 1)]))
    assert list(jumps.for_epsilon(sampled(1.0, 0.01, 2), math.inf, -5.0)) == []
    assert list(jumps.for_delta(sampled(1.0, 0.01, 2), -5.0, math.inf)) == []


def test_several_laws_are_cut_together() -> None:
    """Two kinds of steps: the lattice shares the truth with the sum over sizes, which is the sharper one."""
    draw = random.Random(66)
    for _ in range(4):
        laws = [
            SampledGaussianLaw(10 ** draw.uniform(-3.5, -1.5), draw.uniform(0.5, 1.5), Direction.REMOVE) for _ in "ab"
        ]
        composition = Composition.of([(law, draw.randint(1, 6)) for law in laws])
        log_delta = -draw.uniform(12, 40)
        guess = chernoff.chernoff_epsilon(composition, log_delta)
        found = list(jumps.for_delta(composition, log_delta, guess))
        assert found
        low, high = epsilon_ends(found[-1], (log_delta, log_delta))
        assert 0 < low <= high <= low * (1 + 1e-6)
        least, most = lattice.epsilon(composition, (log_delta, log_delta))
        assert least <= high
        assert low <= most


def test_a_gaussian_beside_rare_jumps() -> None:
    """Others are in every term; no loss decides alone beside an unbounded one."""
    composition = Composition.of([(GaussianLaw(0.09), 1), (SampledGaussianLaw(1e-3, 0.7, Direction.REMOVE), 3)])
    assert jumps.applies(composition)
    for epsilon in (1.0, 3.0):
        straight = inversion.for_epsilon(composition, epsilon)
        bound = chernoff.chernoff_log_delta(composition, epsilon)
        boxes = [found.log_delta(epsilon)[:2] for found in jumps.for_epsilon(composition, epsilon, bound)]
        if straight is not None:
            boxes.append(straight.log_delta(epsilon)[:2])
        assert boxes
        assert max(low for low, _ in boxes) <= min(high for _, high in boxes)


class Fixed(GaussianCharacteristic):
    """A stand-in with a given K at every tilt, and itself as its characteristic function."""

    def moment_table(self, theta: Floats) -> MomentTable:
        zero = np.zeros_like(theta)
        return MomentTable(theta, zero + self.log_moment, zero, zero, zero)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Fixed | None:
        return self if reach < 100 else None

    def log_decay(self, theta: float, start: Floats) -> Floats:
        return np.full_like(start, -5.0)


def fixed(log_moment: float, variance: float = 1.0) -> Fixed:
    return Fixed(variance, log_moment, 0.0, 0.0, 0.0)


def test_beyond_the_doubles_there_is_no_answer() -> None:
    u, edge = np.array([1.0]), SoftCut(1.0, 10.0)

    def term(light: float, heavy: float) -> jump_term.JumpTerm:
        table = MomentTable(*np.ones((5, 1)))
        return jump_term.JumpTerm([(fixed(light), 3)], [(fixed(heavy), 3)], edge, table)

    assert jump_term._log_decay(term(0.0, -1.0), 1.0, u)[0] < -4.0
    for light, heavy in ((math.inf, 0.0), (0.0, math.inf), (0.0, -2000.0)):
        assert jump_term._log_decay(term(light, heavy), 1.0, u)[0] == 0.0
    assert jump_term._Pair.of(term(0.0, -1.0), 1.0, 10.0, -30.0) is not None
    assert jump_term._Pair.of(term(0.0, -1.0), 1.0, 1000.0, -30.0) is None
    assert jump_term._Pair.of(term(0.0, 400.0), 1.0, 10.0, -30.0) is None
    with np.errstate(all="ignore"):
        broken = jump_term._Pair([(3, fixed(0.0), fixed(-1.0, math.nan))])
        assert broken.assemble(1.0, 0.1, 9, -30.0, term(0.0, 0.0).table, 1.0) is None
    one = np.array([1.0])
    table = jump_term.difference([(fixed(1.0), 2)], [fixed(1.0).moment_table(one)], [(fixed(1500.0), 2)], one)
    assert table.moment[0] == pytest.approx(3000.0, rel=1e-12)
    assert table.moment[0] >= 3000.0
