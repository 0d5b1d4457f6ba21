"""Golden: sums of losses on a progression contain the powers of a polynomial in ball arithmetic, at and beside atoms.

Every question counts once, and only where an interval moved a little beside the truth would be refuted.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import dptally as dp
from depth import thinned
from dptally.accounting.certified import closed
from dptally.accounting.certified.contour import even
from dptally.accounting.certified.route import bounds_at
from dptally.accounting.certified.solve import epsilon_ends
from dptally.law import Composition
from dptally.laws.discrete_gaussian import DiscreteGaussianLaw
from truth.balls import precision
from truth.discrete import discrete_gaussian_delta
from truth.judge import Judge

SHIFT = 1e-9  # nats

pytestmark = pytest.mark.usefixtures("quiet")


def plan(draw: random.Random) -> tuple[float, int, int]:
    sigma = math.exp(draw.uniform(math.log(0.25), math.log(5.0)))
    return sigma, draw.choice((1, 1, 2, 5)), draw.choice((2, 2, 3, 4, 7))


def composed(sigma: float, shift: int, count: int) -> Composition:
    return (count * dp.DiscreteGaussian(sigma, shift)).directions()[0]


def epsilons(draw: random.Random, sigma: float, shift: int, count: int) -> list[float]:
    """One at random up to ten deviations, its neighbours, and a double next to an atom."""
    law = DiscreteGaussianLaw(sigma, shift)
    start, spacing = law.progression()
    deviation = math.sqrt(count) * shift / sigma
    at = 0.5 * deviation**2 + draw.uniform(0.0, 10.0) * deviation
    atom = float(count * start + spacing * round((Fraction(at) - count * start) / spacing))
    return [at, 0.97 * at, 1.03 * at, atom, math.nextafter(atom, math.inf)]


def test_profiles() -> None:
    draw, judge = random.Random("progression"), Judge(SHIFT)
    for _ in range(thinned(40)):
        sigma, shift, count = plan(draw)
        at, *others = epsilons(draw, sigma, shift, count)
        found = even.for_epsilon(composed(sigma, shift, count), at)
        if found is None:
            continue
        for epsilon in (at, *others):
            bounds = bounds_at(found, epsilon)
            judge.log_delta((sigma, count, epsilon), *bounds[:2], discrete_gaussian_delta(sigma, shift, count, epsilon))
    judge.close(thinned(40) * 3)


def test_epsilon() -> None:
    draw, judge = random.Random("progression, epsilon"), Judge(1e-9)
    for _ in range(thinned(40)):
        sigma, shift, count = plan(draw)
        at = epsilons(draw, sigma, shift, count)[0]
        with precision(200):
            log_delta = discrete_gaussian_delta(sigma, shift, count, at).log()
            target = float(log_delta) * (1 + 1e-15), float(log_delta) * (1 - 1e-15)
        found = even.for_delta(composed(sigma, shift, count), target[0])
        if found is not None:
            judge.epsilon((sigma, count, at), *epsilon_ends(found, target), at)
    judge.close(thinned(40) // 2)


@pytest.mark.parametrize("sigma", [8.0, 33.7, 1e3, 4.7e4])
def test_one_step_is_the_sum_of_the_closed_form(sigma: float) -> None:
    """The transform of the continuous Gaussian against the sum over the integers, next to atoms and between them."""
    law, judge = DiscreteGaussianLaw(sigma, 3), Judge(1e-9)
    one = Composition.of([(law, 1)])
    for deviations in (0.5, 2.0, 6.0, 14.0):
        at = 0.5 * (3 / sigma) ** 2 + deviations * 3 / sigma
        found = even.for_epsilon(one, at)
        assert found is not None
        for epsilon in (at, at + 0.3 * 3 / sigma**2, 1.01 * at):
            low, high, _ = bounds_at(found, epsilon)
            truth = closed.log_delta(law, epsilon)
            with precision(200):
                ends = tuple(arb(x).exp() for x in truth)
            judge.log_delta((sigma, epsilon), low, high, (ends[0], ends[1]))
    judge.close(12)


@pytest.mark.parametrize(("sigma", "shift"), [(0.3, 2), (0.52, 5), (1.423, 1), (8.5, 1)])
def test_the_modulus_falls_over_half_a_period(sigma: float, shift: int) -> None:
    """What lies beyond the last node is bounded by its value: by the triple product every factor falls."""
    law = DiscreteGaussianLaw(sigma, shift)
    j = np.arange(-400.0, 401.0)
    for offset in (0.0, 0.2, 0.5):
        weights = np.exp(-0.5 * ((j + offset) / sigma) ** 2)
        v = np.linspace(0.0, math.pi, 60)
        modulus = np.abs(np.exp(1j * np.multiply.outer(v, j)) @ weights) / weights.sum()
        assert (np.diff(modulus) <= 1e-14).all(), (law, offset)


def test_answers_are_sharp_and_a_moved_one_is_refuted() -> None:
    """A sum whose moment is a little wrong is refuted; so is one whose nodes end too soon without the rest."""
    draw, refuted = random.Random("progression, power"), 0
    for _ in range(20):
        sigma, shift, count = plan(draw)
        at = epsilons(draw, sigma, shift, count)[0]
        found = even.for_epsilon(composed(sigma, shift, count), at)
        if found is None:
            continue
        wrong = replace(found, log_moment=found.log_moment + 2 * SHIFT)
        exact = discrete_gaussian_delta(sigma, shift, count, at)
        try:
            Judge(SHIFT).log_delta("wrong", *bounds_at(wrong, at)[:2], exact)
        except AssertionError:
            refuted += 1
    assert refuted >= 15


@pytest.mark.parametrize(
    ("plan", "delta"),
    [
        (370 * dp.DiscreteGaussian(1.423), 1e-5),
        (1000 * dp.DiscreteGaussian(2.0), 1e-5),
        (2 * dp.DiscreteGaussian(1.188417309255205, 39), 0.5),
        (3187 * dp.DiscreteGaussian(0.5192714082518999, 5), 1.9e-29),
        (100 * dp.DiscreteGaussian(1e5), 1e-8),
        (10**9 * dp.DiscreteGaussian(0.5), 1e-5),
    ],
)
def test_answers_that_were_wide_or_slow(plan: dp.Mechanism, delta: float) -> None:
    box = plan.epsilon_interval(delta)
    assert box.width <= 1e-11 * box.upper, box
