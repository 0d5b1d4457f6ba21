"""Golden: the lattice of deciding losses contains rigorous truths in each direction; its masses hold."""

from __future__ import annotations

import math
import random

import mpmath as mp
import numpy as np
import pytest
from flint import arb

from dptally.accounting.certified.contour import chernoff
from dptally.accounting.certified.lattice import decisive as few_steps
from dptally.accounting.certified.solve import epsilon_ends
from dptally.accounting.certified.tuning import STANDARD
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.law.spread import right_share
from dptally.laws.gaussian import GaussianLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from truth import ball, two_step_delta
from truth.balls import precision

SIDES = {"remove": Direction.REMOVE, "add": Direction.ADD}


def contains(low: float, high: float, delta: arb) -> bool:
    """exp(low) <= delta <= exp(high), certainly; -inf and 0 are the trivial bounds."""
    with precision(200):
        above = low == -math.inf or bool(ball(low).exp() <= delta)
        return above and (high == 0 or bool(delta <= ball(high).exp()))


@pytest.mark.parametrize("side", SIDES)
def test_two_steps_delta(side: str) -> None:
    draw = random.Random(71)
    answered = 0
    for _ in range(90 if side == "remove" else 16):
        sigma, rate = math.exp(draw.uniform(math.log(0.3), math.log(4.0))), 10 ** draw.uniform(-4, -0.02)
        law = SampledGaussianLaw(rate, sigma, SIDES[side])
        top = 2 * law.supremum
        epsilon = top * draw.uniform(0.05, 0.6) if side == "add" else math.exp(draw.uniform(math.log(0.1 * rate), 2.0))
        composition = Composition.of([(law, 2)])
        found = few_steps.for_epsilon(composition, epsilon, chernoff.chernoff_log_delta(composition, epsilon))
        if found is None:
            continue
        if found.estimate(epsilon) < (-60 if side == "remove" else -18):  # the quadrature in balls takes long
            continue
        for at in (1.05 * epsilon, epsilon):
            low, high, _ = found.log_delta(at)
            assert contains(low, high, two_step_delta(sigma, rate, at, side, 12)), (sigma, rate, at)
        answered += high - low < 1e-3
    assert answered >= 4


@pytest.mark.parametrize("side", SIDES)
def test_epsilon_zero_and_next_to_it(side: str) -> None:
    """The total variation of a few steps: losses vary on a scale of their own there."""
    draw = random.Random(73)
    for rate in (1e-3, 0.05, 0.4):
        sigma = draw.uniform(0.5, 2.0)
        composition = Composition.of([(SampledGaussianLaw(rate, sigma, SIDES[side]), 2)])
        for epsilon in (0.0, 1e-6 * rate, 1e-2 * rate):
            found = few_steps.for_epsilon(composition, epsilon, chernoff.chernoff_log_delta(composition, epsilon))
            assert found is not None
            low, high, _ = found.log_delta(epsilon)
            assert contains(low, high, two_step_delta(sigma, rate, epsilon, side, 12)), (sigma, rate, epsilon)
            assert high - low < 1e-6


def test_two_steps_epsilon() -> None:
    draw = random.Random(72)
    side, answered = "remove", 0
    for _ in range(8):
        sigma, rate, delta = draw.uniform(0.5, 3.0), 10 ** draw.uniform(-3, -0.2), 10 ** draw.uniform(-15, -4)
        composition = Composition.of([(SampledGaussianLaw(rate, sigma, SIDES[side]), 2)])
        target = (math.log(delta) - 1e-12, math.log(delta) + 1e-12)
        guess = min(chernoff.chernoff_epsilon(composition, target[0]), composition.supremum)
        found = few_steps.for_delta(composition, target[0], guess)
        if found is None:
            continue
        low, high = epsilon_ends(found, target)
        with precision(200):
            assert low == 0 or bool(two_step_delta(sigma, rate, low, side, 12) >= ball(delta)), (sigma, rate, delta)
            assert high == math.inf or bool(two_step_delta(sigma, rate, high, side, 12) <= ball(delta))
        answered += 0 < low <= high < math.inf and high - low < 1e-5 * high
    assert answered >= 4


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("rate", [0.5, 0.9, 0.999, 1 - 1e-9])
def test_high_rates_lose_no_mass_at_the_least_loss(side: str, rate: float) -> None:
    """e^x - (1 - q) cancels at the least loss: the mass there was once lost to a rounding."""
    for sigma in (0.1, 0.5, 1.5):
        law = SampledGaussianLaw(rate, sigma, SIDES[side])
        low = law.infimum if side == "remove" else -3.0
        found = law.spread(low, 0.05, 400)
        assert found is not None
        missing = 0.0 if side == "remove" else 1 - float(law.tail(np.array([low]))[0])
        assert found.mass.sum() + found.far + missing == pytest.approx(1.0, abs=1e-9)


def exact_masses(law: SampledGaussianLaw, low: float, step: float, number: int) -> list[mp.mpf]:
    """The mean-preserving spread in forty digits: P and Q of every cell by erfc, shares from both."""
    q, s = mp.mpf(law.rate), mp.mpf(law.sigma)
    tail = lambda x: mp.erfc(x / mp.sqrt(2)) / 2  # noqa: E731
    x = [mp.mpf(low) + j * mp.mpf(step) for j in range(number)]

    def above(loss: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
        """P and Q of the losses beyond."""
        remove = law.side is Direction.REMOVE
        ratio = (mp.exp(loss if remove else -loss) - (1 - q)) / q
        if ratio <= 0:
            return (mp.mpf(1), mp.mpf(1)) if remove else (mp.mpf(0), mp.mpf(0))
        t = s * mp.log(ratio) + 1 / (2 * s)
        if remove:
            return (1 - q) * tail(t) + q * tail(t - 1 / s), tail(t)
        return tail(-t), (1 - q) * tail(-t) + q * tail(1 / s - t)

    ends = [above(point) for point in x]
    masses = [mp.mpf(0)] * number
    for j in range(number - 1):
        p, other = (ends[j][i] - ends[j + 1][i] for i in (0, 1))
        right = (p - other * mp.exp(x[j])) / (1 - mp.exp(-mp.mpf(step)))
        masses[j] += p - right
        masses[j + 1] += right
    return masses


@pytest.mark.parametrize("side", SIDES)
def test_spread_masses(side: str) -> None:
    """Sums from the right, which are what delta is made of, are within mass_error after a shift of loss_error."""
    draw = random.Random(73)
    with mp.workdps(60):
        for _ in range(12):
            sigma, rate = draw.uniform(0.3, 2.5), 10 ** draw.uniform(-3, -0.1)
            law = SampledGaussianLaw(rate, sigma, SIDES[side])
            number = 120
            low = law.infimum if side == "remove" else law.supremum - 2.0 * rate
            high = draw.choice((0.5, 4.0)) if side == "remove" else law.supremum
            step = (high - low) / (number - 2)
            found = law.spread(low, step, number)
            assert found is not None
            exact = exact_masses(law, low, step, number)
            share = found.loss_error / step
            for j, (mass, true) in enumerate(zip(found.mass, exact, strict=True)):
                around = sum(exact[max(0, j - 1) : j + 2])
                assert abs(mp.mpf(float(mass)) - true) <= found.mass_error * true + 2 * share * around, j
            total, truth = mp.mpf(math.fsum(found.mass)), mp.fsum(exact)
            assert abs(total - truth) <= found.mass_error * truth


def test_deep_tails_of_long_cells() -> None:
    """Cells at t of 15 and more: differences of normal tails, each with an error of t^2 ulps."""
    law = SampledGaussianLaw(1e-3, 0.8, Direction.REMOVE)
    number, low, high = 200, law.infimum, 25.0
    found = law.spread(low, (high - low) / number, number)
    assert found is not None
    with mp.workdps(120):
        exact = exact_masses(law, low, found.step, number)
        for j in range(number // 2, number - 1):
            assert abs(mp.mpf(float(found.mass[j])) / exact[j] - 1) <= found.mass_error + 1e-4


def test_right_share_keeps_the_mean() -> None:
    offset, step = np.linspace(0.0, 0.1, 11), 0.1
    share = right_share(offset, step)
    assert np.allclose((1 - share) + share * math.exp(-step), np.exp(-offset), rtol=0, atol=1e-15)


def test_spreading_changes_the_payoff_by_no_more_than_the_lemma_says() -> None:
    """E(1 - cR)+ - (1 - c)+ <= c E|R - 1| / 2 and Var R <= h^2 e^h / 4, two points, any position and kink."""
    draw = random.Random(74)
    for _ in range(3000):
        h = 10 ** draw.uniform(-4, 0)
        left = draw.uniform(0, h)
        up, down = math.expm1(left), -math.expm1(left - h)  # R - 1 = up with probability down / (up + down), else -down
        chance = down / (up + down) if up + down > 0 else 0.0
        variance = up * down
        assert variance <= h * h * math.exp(h) / 4 * (1 + 1e-9)
        c = math.exp(draw.uniform(-2 * h, 2 * h))
        spread = chance * max(0.0, 1 - c * (1 + up)) + (1 - chance) * max(0.0, 1 - c * (1 - down))
        change = spread - max(0.0, 1 - c)
        mean = 2 * chance * up
        assert -1e-15 <= change <= 0.5 * c * mean + 1e-15
        assert mean <= math.sqrt(variance) * (1 + 1e-9) + 1e-15


def test_where_it_does_not_apply() -> None:
    law = SampledGaussianLaw(0.01, 1.0, Direction.REMOVE)
    assert few_steps.for_epsilon(Composition.of([(law, 2), (GaussianLaw(1.0), 1)]), 1.0, -5.0) is None
    assert few_steps.for_epsilon(Composition.of([(law, 10_000)]), 1.0, -5.0) is None
    assert few_steps.for_epsilon(Composition.of([(GaussianLaw(1.0), 1)]), 1.0, -5.0) is None
    assert few_steps.for_delta(Composition.of([(law, 2)]), -5.0, math.inf) is None
    assert law.spread(-0.01, 10.0, 100) is None  # e^x leaves the doubles


def test_outside_its_range_the_bounds_are_trivial() -> None:
    composition = Composition.of([(SampledGaussianLaw(0.01, 1.0, Direction.REMOVE), 3)])
    found = few_steps.for_epsilon(composition, 1.0, chernoff.chernoff_log_delta(composition, 1.0))
    assert found is not None
    assert found.log_delta(found.most * 1.01)[:2] == (-math.inf, 0.0)
    assert found.log_delta(found.least * 0.99)[:2] == (-math.inf, 0.0)


def test_the_lattice_that_is_asked_before_long_contours() -> None:
    """One level, sharp or nothing: it contains sharp truths, and with the upper end at the lower one it would not."""
    draw = random.Random(75)
    answered = 0
    for _ in range(7):
        sigma, rate, delta = draw.uniform(0.6, 2.5), 10 ** draw.uniform(-3, -1), 10 ** draw.uniform(-9, -4)
        composition = Composition.of([(SampledGaussianLaw(rate, sigma, SIDES["remove"]), 2)])
        target = (math.log(delta) - 1e-12, math.log(delta) + 1e-12)
        guess = chernoff.chernoff_epsilon(composition, target[0])
        found = few_steps.for_delta(composition, target[0], guess, STANDARD.at_once)
        if found is None:
            continue
        answered += 1
        lower, upper = epsilon_ends(found, target)
        assert 0 < upper - lower < STANDARD.routes.sharp_lattice * upper
        assert refutes_none(sigma, rate, lower, upper, delta)
        assert not refutes_none(sigma, rate, lower, lower, delta)
    assert answered >= 4


def refutes_none(sigma: float, rate: float, lower: float, upper: float, delta: float) -> bool:
    """Whether delta(lower) >= delta >= delta(upper), certainly."""
    above, below = (two_step_delta(sigma, rate, at, "remove", 15) for at in (lower, upper))
    with precision(200):
        return bool(above >= ball(delta) * (1 - arb(1e-11))) and bool(below <= ball(delta) * (1 + arb(1e-11)))


def test_a_tilt_under_which_little_wraps_around() -> None:
    """Ten steps in a transform of four times the length of one: the least Chernoff bound alone would wrap too much."""
    composition = Composition.of([(SampledGaussianLaw(0.01, 1.1, SIDES["remove"]), 10)])
    target = (math.log(1e-5) - 1e-12, math.log(1e-5) + 1e-12)
    found = few_steps.for_delta(composition, target[0], 1.0535, STANDARD.at_once)
    assert found is not None
    assert len(found.sums) == 1
    assert found.sums[0].wrapped < 1e-7
    lower, upper = epsilon_ends(found, target)
    assert lower <= 0.2717363323 <= upper  # between the ends that contours give, 0.27173633133 and 0.27173633420
