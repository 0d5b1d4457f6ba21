"""Laws: every step that can end a walk early, by itself, against exact sums: total variation, near the largest loss,
Chernoff, one step alone, basic composition. Plans have mass at infinity more often than not.
"""

from __future__ import annotations

import math
import random

import mpmath as mp
import numpy as np
import pytest

import dptally as dp
from dptally.accounting.certified import engine
from dptally.accounting.certified.bounds import LogTarget, log_interval
from dptally.accounting.certified.contour.chernoff import log_chernoff, log_modulus
from dptally.accounting.certified.contour.tables import tabulate_at
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.routes import BasicComposition
from dptally.accounting.certified.tuning import STANDARD
from dptally.accounting.certified.walk import walk_epsilon

Atoms = list[tuple[mp.mpf, mp.mpf]]  # (loss, probability), finite losses only


def guarantee(epsilon: float, delta: float, count: int) -> Atoms:
    """The finite losses of ``count`` (epsilon, delta)-DP steps, exactly."""
    e, stay = mp.mpf(epsilon), 1 - mp.mpf(delta)
    truth = 1 / (1 + mp.exp(-e))
    return [
        ((2 * j - count) * e, stay**count * mp.binomial(count, j) * truth**j * (1 - truth) ** (count - j))
        for j in range(count + 1)
    ]


def together(one: Atoms, other: Atoms) -> Atoms:
    return [(a + b, p * q) for a, p in one for b, q in other]


def finite_delta(atoms: Atoms, epsilon: mp.mpf) -> mp.mpf:
    return mp.fsum(p * -mp.expm1(epsilon - loss) for loss, p in atoms if loss > epsilon)


def smallest_epsilon(atoms: Atoms, target: mp.mpf) -> mp.mpf:
    """The smallest eps >= 0 whose finite delta is at most the target: delta is linear in e^eps between atoms."""
    if finite_delta(atoms, mp.mpf(0)) <= target:
        return mp.mpf(0)
    knots = sorted({loss for loss, _ in atoms if loss > 0})
    above = next(x for x in knots if finite_delta(atoms, x) <= target)
    beyond = [(loss, p) for loss, p in atoms if loss >= above]
    mass, weight = mp.fsum(p for _, p in beyond), mp.fsum(p * mp.exp(-loss) for loss, p in beyond)
    return mp.log((mass - target) / weight)


def cases(number: int) -> list[tuple[dp.Mechanism, Atoms, mp.mpf]]:
    """Plans of one or two kinds of step, their exact finite losses and their mass at infinity."""
    draw = random.Random(20)
    out = []
    for _ in range(number):
        kinds = []
        for _ in range(draw.choice((1, 1, 2))):
            epsilon = 10 ** draw.uniform(-6, 1.2)
            delta = draw.choice((0.0, 10 ** draw.uniform(-12, -0.3)))
            kinds.append((epsilon, delta, draw.randint(1, 9)))
        plan = sum((n * dp.ApproxDP(e, d) for e, d, n in kinds[1:]), kinds[0][2] * dp.ApproxDP(*kinds[0][:2]))
        with mp.workdps(60):
            atoms = guarantee(*kinds[0])
            for kind in kinds[1:]:
                atoms = together(atoms, guarantee(*kind))
            out.append((plan, atoms, 1 - mp.fsum(p for _, p in atoms)))
    return out


def test_total_variation_is_never_too_small() -> None:
    close = 0
    for plan, atoms, _ in cases(160):
        with mp.workdps(60):
            truth = mp.log(finite_delta(atoms, mp.mpf(0)))
            bound = Plan(plan.directions()[0]).log_total_variation()
            assert mp.mpf(bound) >= truth, plan
            close += bound - float(truth) < 0.5
    assert close > 20  # the bound is of use: it would be refuted if it were half as large


def test_ends_of_the_exits_hold_and_so_do_answers() -> None:
    draw = random.Random(21)
    near, alone = 0, 0
    for plan, atoms, mass in cases(160):
        with mp.workdps(60):
            whole = finite_delta(atoms, mp.mpf(0)) + mass
            # between the mass at infinity and the total variation, next to both, and beyond
            share = draw.choice((draw.random(), 10 ** draw.uniform(-8, 0), 1 + 10 ** draw.uniform(-6, -1)))
            delta = float(mass + mp.mpf(share) * (whole - mass))
            target = mp.mpf(delta) - mass
            if not 0 < delta < 1 or target <= 0:
                continue
            truth = smallest_epsilon(atoms, target)
            direction = Plan(plan.directions()[0])
            log_target = float(mp.log(target))
            low, high = log_target - 1e-12, log_target + 1e-12
            below = direction.near_the_supremum(high)
            assert mp.mpf(below) <= truth, plan
            near += below > 0.9 * truth > 0
            assert mp.mpf(direction.chernoff_epsilon(low)) >= truth, plan
            (ends,) = BasicComposition().epsilon(direction, LogTarget(low, high, delta))
            assert mp.mpf(ends.lower) <= truth <= mp.mpf(ends.upper), plan
            alone += ends.lower > 0
            box = plan.epsilon_interval(delta)
            assert mp.mpf(box.lower) <= truth <= mp.mpf(box.upper), (plan, delta)
    assert near > 5
    assert alone > 5


def test_a_moved_exit_is_refuted() -> None:
    """The power of the cases: an upper bound a fifth of a nat lower, an end of epsilon moved by a fifth of itself."""
    refuted = dict.fromkeys(("total variation", "Chernoff", "near the supremum", "one step alone", "basic"), 0)
    for plan, atoms, _ in cases(160):
        with mp.workdps(60):
            direction, top = Plan(plan.directions()[0]), max(loss for loss, _ in atoms)
            refuted["total variation"] += direction.log_total_variation() - 0.2 < mp.log(finite_delta(atoms, mp.mpf(0)))
            at = 0.5 * float(top)
            truth = mp.log(finite_delta(atoms, mp.mpf(at)))
            refuted["Chernoff"] += direction.chernoff_log_delta(at) - 0.2 < truth
            log_target = float(truth)
            refuted["near the supremum"] += 1.2 * direction.near_the_supremum(log_target) > at
            delta = float(mp.exp(truth) + direction.infinity_mass.upper)
            (ends,) = BasicComposition().epsilon(direction, LogTarget(log_target, log_target, delta))
            refuted["one step alone"] += 1.2 * ends.lower > at
            refuted["basic"] += 0.8 * ends.upper < at
    assert min(refuted.values()) > 3, refuted


@pytest.mark.parametrize("plan", [3 * dp.Gaussian(1.0) + dp.ApproxDP(0.1, 0.5), 4 * dp.RandomizedResponse(0.9)])
def test_delta_of_one_and_above_costs_nothing(plan: dp.Mechanism) -> None:
    assert plan.epsilon_interval(1.0).upper == 0.0
    assert math.isinf(plan.epsilon_interval(0.4).lower) == (plan.delta_interval(1e9).lower > 0.4)


def test_delta_of_a_plan_is_at_least_that_of_one_step() -> None:
    """Where losses are too many and too large for every other route, one step alone says nearly all."""
    box = (55618 * dp.Laplace(0.0283)).delta_interval(0.0)
    with mp.workdps(40):
        one = 1 - mp.exp(-1 / (2 * mp.mpf(0.0283)))
        assert mp.mpf(1) - mp.mpf("3e-8") < box.lower <= 1
        assert box.lower <= one + mp.mpf("1e-15") or box.method != "basic composition"
    assert box.upper == 1.0


FLOORS = [(1.0, 0.01, 1), (4.1, 0.3, 1), (1.1, 0.01, 3), (1.0, 0.01, 1000), (3.0, 0.02, 1000), (2.0, 0.3, 40)]


@pytest.mark.parametrize(("sigma", "rate", "steps"), FLOORS)
def test_a_direction_that_is_not_above_the_other_need_not_be_sharp(sigma: float, rate: float, steps: int) -> None:
    """The larger direction decides: with the exits below its floor the answer is that of both asked in full."""
    both = dp.dpsgd(sigma, rate, steps).directions()
    alone = [engine.epsilon_interval([direction], 1e-5) for direction in both]
    box = engine.epsilon_interval(both, 1e-5)
    assert box.lower == max(one.lower for one in alone)
    assert max(one.upper for one in alone) <= box.upper <= max(one.upper for one in alone) * (1 + 1e-9)


@pytest.mark.parametrize(("sigma", "rate", "steps"), FLOORS)
def test_a_floor_stops_nothing_that_is_above_it(sigma: float, rate: float, steps: int) -> None:
    """An exit says "at most the floor" where that is true, and of a floor below the answer it says nothing."""
    for direction in dp.dpsgd(sigma, rate, steps).directions():
        alone = engine.epsilon_interval([direction], 1e-5)
        for share in (0.5, 0.999, 1 - 1e-8, 1 + 1e-6, 1.5):
            floor = share * alone.upper
            target = LogTarget(*log_interval(1e-5), 1e-5)
            ends = walk_epsilon(Plan(direction, floor), target, [])
            assert ends.upper >= alone.lower
            assert ends.upper <= floor or share < 1
            assert share > 1 or not Plan(direction, floor).is_below_floor(target.low)


def test_the_modulus_of_the_inversion_is_never_too_small_and_below_chernoff() -> None:
    draw, better = random.Random(8), 0
    for _ in range(24):
        sigma, rate = draw.uniform(0.5, 4.0), 10 ** draw.uniform(-3, -0.5)
        plan = dp.dpsgd(sigma, rate, draw.choice((2, 30, 1000, 10**5)))
        if draw.random() < 0.3:
            plan = plan + 3 * dp.Laplace(draw.uniform(1.0, 9.0))
        for composition in plan.directions():
            rows = tabulate_at(composition.parts, np.geomspace(0.2, 60.0, 6))
            for row in range(6):
                # near the saddle of this tilt, where the bound is of use, and away from it
                epsilon = max(0.0, float(rows.first[row] - 1 / rows.theta[row]) * draw.choice((0.6, 1.0, 1.3)))
                truth = engine.delta_interval([composition], epsilon)
                bound = log_modulus(composition.parts, rows, row, epsilon, STANDARD.contour)
                if truth.lower > 1e-300:
                    assert bound >= math.log(truth.lower), (plan, epsilon)
                better += bound < float(log_chernoff(rows, epsilon)[row]) - 0.3
    assert better > 60
