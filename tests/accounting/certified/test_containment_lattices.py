"""Golden: lattices of losses and binomial sums, each asked at several epsilons, contain closed forms and quadratures.

Every question counts once, and only where an interval moved a little beside the truth would be refuted. The
certificates hold for any step of a lattice: coarse ones are wide, quick, and as easily wrong.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from flint import arb

import dptally as dp
import tables
from depth import thinned
from dptally.accounting.certified.contour import chernoff
from dptally.accounting.certified.lattice import binomial
from dptally.accounting.certified.lattice import bracket as lattice
from dptally.accounting.certified.lattice import decisive as few_steps
from dptally.accounting.certified.route import bounds_at
from dptally.accounting.certified.tuning import STANDARD
from dptally.law import Composition
from truth import approx_delta, laplace_delta, randomized_response_delta
from truth.discrete import discrete_gaussian_delta
from truth.draws import log_uniform
from truth.judge import Judge
from truth.stored import pairs

pytestmark = pytest.mark.usefixtures("quiet")


# -- the lattice of deciding losses ----------------------------------------------------------------------------------


def few(composition: Composition, epsilon: float, width: float) -> few_steps.FewSteps | None:
    assert few_steps.applies(composition)
    bound = chernoff.chernoff_log_delta(composition, epsilon)
    return few_steps.for_epsilon(composition, epsilon, bound, replace(STANDARD.deciding, width=width))


@pytest.mark.parametrize("width", [3e-4, 1e-5])
def test_few_steps_at_several_epsilons(width: float) -> None:
    judge, first = Judge(40 * width), int(width < 1e-4)
    for sigma, rate, direction, answers in pairs("near")[first::2] + pairs("zero")[first::4]:
        found = few(tables.sampled_composition(sigma, rate, 2, direction), answers[0].epsilon, width)
        for epsilon, lower, upper in answers if found is not None else ():
            assert found is not None
            judge.log_delta((sigma, rate, direction, epsilon), *bounds_at(found, epsilon)[:2], (lower, upper))
    judge.close(thinned(1000))


def test_power_of_few_steps() -> None:
    """Without the lower end's price the spread alone is refuted: it is an upper bound only."""
    refuted = 0
    for sigma, rate, direction, answers in pairs("near")[:60]:
        found = few(tables.sampled_composition(sigma, rate, 2, direction), answers[0].epsilon, 3e-4)
        if found is not None:
            high = bounds_at(found, answers[0].epsilon)[1]
            try:
                Judge(1e-2).log_delta("spread", high - 1e-9, high, answers[0][1:])
            except AssertionError:
                refuted += 1
    assert refuted >= 30


# -- the tilted lattice ----------------------------------------------------------------------------------------------


@pytest.fixture
def brackets(monkeypatch: pytest.MonkeyPatch) -> list[lattice.Bracket]:
    """Every bracket that is made on the way to an answer."""
    made: list[lattice.Bracket] = []
    bracket = lattice._bracket

    def recorded(*arguments: object) -> lattice.Bracket | None:
        found = bracket(*arguments)  # type: ignore[arg-type]
        if found is not None:
            made.append(found)
        return found

    monkeypatch.setattr(lattice, "_bracket", recorded)
    return made


def bounds(brackets: list[lattice.Bracket], epsilon: float) -> tuple[float, float]:
    """All of them hold, so the narrowest ends do."""
    answers = [bracket.log_delta(epsilon) for bracket in brackets]
    return max(low for low, _ in answers), min(high for _, high in answers)


@pytest.mark.parametrize("effort", [0.003, 0.03])
def test_lattice_of_laplace(effort: float, brackets: list[lattice.Bracket]) -> None:
    draw, judge = random.Random(f"lattice at several epsilons, Laplace {effort}"), Judge(1e-4)
    for _ in range(thinned(200)):
        scale, count = log_uniform(draw, 0.3, 30), draw.choice((2, 2, 3, 5, 9, 30))
        at = count / scale * draw.uniform(0.02, 0.93)
        brackets.clear()
        lattice.log_delta((count * dp.Laplace(scale)).directions()[0], at, effort=effort)
        for epsilon in (at, 0.99 * at, 1.01 * at, 1.02 * at):
            exact = laplace_delta(1 / Fraction(scale), count, epsilon)
            judge.log_delta((scale, count, epsilon), *bounds(brackets, epsilon), exact)
    judge.close(thinned(500))


def test_lattice_of_responses_with_three_losses(brackets: list[lattice.Bracket]) -> None:
    draw, judge = random.Random("lattice at several epsilons, responses"), Judge(1e-4)
    for _ in range(thinned(120)):
        p, categories, count = draw.uniform(0.4, 0.95), draw.choice((3, 4, 10)), draw.choice((2, 3, 5, 9))
        at = count * math.log(p * (categories - 1) / (1 - p)) * draw.uniform(0.03, 0.9)
        brackets.clear()
        lattice.log_delta((count * dp.RandomizedResponse(p, categories)).directions()[0], at, effort=0.03)
        for epsilon in (at, 0.99 * at, 1.02 * at):
            exact = randomized_response_delta(p, categories, count, epsilon)
            judge.log_delta((p, categories, count, epsilon), *bounds(brackets, epsilon), exact)
    judge.close(thinned(320))


def test_lattice_of_discrete_gaussians(brackets: list[lattice.Bracket]) -> None:
    draw, judge = random.Random("lattice at several epsilons, discrete"), Judge(1e-4)
    for _ in range(40):
        sigma, shift, count = log_uniform(draw, 0.4, 4), draw.choice((1, 1, 2)), draw.choice((2, 3, 6))
        at = count * shift**2 / (2 * sigma**2) + shift / sigma * math.sqrt(count) * draw.uniform(0.1, 7)
        brackets.clear()
        lattice.log_delta((count * dp.DiscreteGaussian(sigma, shift)).directions()[0], at, effort=0.03)
        for epsilon in (at, 0.99 * at, 1.02 * at):
            exact = discrete_gaussian_delta(sigma, shift, count, epsilon)
            judge.log_delta((sigma, shift, count, epsilon), *bounds(brackets, epsilon), exact)
    judge.close(thinned(100))


def test_lattice_of_two_steps(brackets: list[lattice.Bracket]) -> None:
    """Sampled Gaussians, whose losses have no point masses; rare large ones among them."""
    judge = Judge(3e-2)
    for sigma, rate, direction, answers in pairs("near")[::6]:
        brackets.clear()
        lattice.log_delta(tables.sampled_composition(sigma, rate, 2, direction), answers[0].epsilon, effort=0.03)
        for epsilon, lower, upper in answers if brackets else ():
            judge.log_delta((sigma, rate, direction, epsilon), *bounds(brackets, epsilon), (lower, upper))
    judge.close(thinned(250))


def test_power_of_lattices(brackets: list[lattice.Bracket]) -> None:
    """Bounds of n + 1 steps are none of n."""
    draw, refuted = random.Random("lattice power"), 0
    for _ in range(20):
        scale, count = log_uniform(draw, 0.3, 30), draw.choice((2, 3, 5))
        at = count / scale * draw.uniform(0.02, 0.9)
        brackets.clear()
        lattice.log_delta(((count + 1) * dp.Laplace(scale)).directions()[0], at, effort=0.03)
        try:
            Judge(1e-4).log_delta("wrong", *bounds(brackets, at), laplace_delta(1 / Fraction(scale), count, at))
        except AssertionError:
            refuted += 1
    assert refuted == 20


# -- binomial sums ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["guarantees", "responses"])
def test_binomial_sums(kind: str) -> None:
    draw, judge = random.Random(f"binomial at several epsilons, {kind}"), Judge(1e-10)
    for _ in range(thinned(350)):
        count = draw.choice((2, 3, 10, 40, 150))
        p = 1 / (1 + math.exp(-log_uniform(draw, 1e-3, 4)))
        most, plan = math.log(p / (1 - p)), count * dp.RandomizedResponse(p)
        if kind == "guarantees":
            most = log_uniform(draw, 1e-3, 4)
            plan = count * dp.PureDP(most)
        for share in (draw.uniform(0, 0.3), draw.uniform(0.3, 0.97), draw.uniform(0, 1) / math.sqrt(count)):
            epsilon = share * most * count
            found = binomial.log_delta(plan.directions()[0], epsilon)
            assert found is not None
            if kind == "guarantees":
                exact = approx_delta(most, 0.0, count, epsilon)
            else:
                exact = randomized_response_delta(p, 2, count, epsilon)
            if exact > arb(10) ** -300:
                judge.log_delta((most, count, epsilon), *found, exact)
    judge.close(thinned(1000))


def test_power_of_binomial_sums() -> None:
    """One step more, or an epsilon a millionth larger, is refuted."""
    for wrong in (
        binomial.log_delta((11 * dp.PureDP(0.3)).directions()[0], 1.0),
        binomial.log_delta((10 * dp.PureDP(0.3)).directions()[0], 1.000001),
    ):
        assert wrong is not None
        with pytest.raises(AssertionError):
            Judge(1e-10).log_delta("wrong", *wrong, approx_delta(0.3, 0.0, 10, 1.0))
