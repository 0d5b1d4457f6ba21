"""Containment: random plans of finitely many outcomes, asked what an attacker would ask, against exact truths.

The same questions every time; ``benchmarks/soak_exact.py`` asks others, 100,000 and more.
"""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import dptally as dp
from exact import pairs, questions
from exact.pairs import exact
from exact.plans import Profile
from exact.questions import (
    QUESTIONS,
    Draw,
    Plan,
    Step,
    ask,
    ask_delta,
    ask_epsilon,
    ask_together,
    contradictions,
    judge_delta,
    judge_epsilon,
    make_plan,
    plan_of,
)

SOAK = bool(os.environ.get("DPTALLY_SOAK"))
PLANS = 600 if SOAK else 40


@pytest.mark.parametrize("seed", range(4))
def test_every_interval_contains_the_exact_truth(seed: int) -> None:
    asked: Counter[str] = Counter()
    for index in range(PLANS // 4):
        draw = random.Random(f"exact/{seed}/{index}")
        plan = make_plan(draw, 1200)
        for _ in range(QUESTIONS):
            verdict = ask(draw, plan)
            assert not verdict.fault, f"{verdict.fault}: {verdict.question} = {verdict.answer}"
            asked["narrow" if verdict.width < 1e-6 else "wide"] += 1
        if index % 4 == 0:
            assert not [verdict for verdict in ask_together(draw, plan, 3) if verdict.fault]
            assert not contradictions(draw, plan)
    assert asked["narrow"] > 0.7 * asked.total(), asked  # a wide interval refutes nothing


def test_a_moved_end_is_refuted() -> None:
    """The power of the judge: the same answers, moved by 1e-9 of themselves, are found out."""
    found = 0
    for index in range(12):
        plan = make_plan(random.Random(f"power/{index}"), 300)
        epsilon = 0.4 * float(plan.directions[0].largest)
        truth = max(float(side.delta(epsilon)) for side in plan.directions)
        box = plan.plan.delta_interval(epsilon)
        if not 1e-250 < truth < 0.999 or box.upper - box.lower > 1e-10 * truth:
            continue
        up, down = _Moved(1 + 1e-9), _Moved(1 - 1e-9)
        assert "above" in ask_delta(Plan(plan.parts, up.of(plan), plan.directions), epsilon).fault
        assert "below" in ask_delta(Plan(plan.parts, down.of(plan), plan.directions), epsilon).fault
        found += 1
    assert found >= 4


def test_a_moved_end_of_every_route_and_exit_is_refuted() -> None:
    """By what answered: the lower end moved up and the upper end moved down, each refuted at least once."""
    raised, lowered = set(), set()
    for index in range(25):
        draw = Draw(f"moved/{index}")
        plan = make_plan(draw, 150)
        for _ in range(12):
            if draw.random() < 0.5:
                at, judge, question = questions.a_delta(draw, plan), judge_epsilon, plan.plan.epsilon_interval
            else:
                at, judge, question = questions.an_epsilon(draw, plan), judge_delta, plan.plan.delta_interval
            box = question(at)
            step = max(1e-6 * min(box.upper, 1e300), 1e-9)
            if box.lower < math.inf and judge(plan, at, dp.Interval(box.lower + step, box.upper + step)).fault:
                raised.add(box.method)
            down = 1e300 if box.upper == math.inf else box.upper - step
            if down >= 0 and judge(plan, at, dp.Interval(0.0, down)).fault:
                lowered.add(box.method)
    sharp = {"closed form", "binomial sum", "sum over all outcomes", "the largest possible loss"}
    assert raised >= sharp | {"epsilon is the largest possible loss", "no delta exceeds one"}
    assert lowered >= sharp | {"the mass at infinity exceeds delta", "epsilon is the largest possible loss"}


class _Moved:
    """A plan that answers with intervals moved by a factor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def of(self, plan: Plan) -> dp.Mechanism:
        self.plan = plan.plan
        return self  # type: ignore[return-value]

    def delta_interval(self, epsilon: float) -> dp.Interval:
        box = self.plan.delta_interval(epsilon)
        return dp.Interval(box.lower * self.factor, box.upper * self.factor)


# -- every class of false ends that was ever found, and questions around it ------------------------------------------


def _asked(step: Step, count: int = 1) -> Plan:
    return plan_of(((step, count),))


def guaranteed(epsilon: float, delta: float) -> Step:
    text = f"ApproxDP({epsilon!r}, {delta!r})" if delta else f"PureDP({epsilon!r})"
    return questions._symmetric(text, pairs.guarantee(epsilon, delta), questions.Fraction(delta))


def on_a_sample(step: Step, rate: float, replace: bool = False) -> Step:
    fraction = questions.Fraction(rate)
    text = f"PoissonSampled({step.text}, {rate!r}{', REPLACE' if replace else ''})"
    mass = step.infinite[0]
    assert mass is not None
    if replace:
        pair = pairs.sampled_replace(list(step.remove), fraction)
        return Step(text, tuple(pair), tuple(pairs.mirrored(pair)), (fraction * mass,) * 2)
    pair = pairs.sampled(list(step.remove), fraction)
    return Step(text, tuple(pair), tuple(pairs.mirrored(pair)), (fraction * mass, questions.Fraction(0)))


def response(p: float, categories: int = 2) -> Step:
    return questions._symmetric(f"RandomizedResponse({p!r}, {categories})", pairs.response(p, categories))


def two_sided(scale: float, shift: int) -> Step:
    return questions._symmetric(f"DiscreteLaplace({scale!r}, {shift})", pairs.discrete_laplace(scale, shift))


def test_epsilon_between_the_mass_at_infinity_and_the_total_variation() -> None:
    """Pinsker's inequality with KL <= K(t)/t holds only without mass at infinity: epsilon was 0 for 0.9166."""
    plan = _asked(guaranteed(0.5, 1.2e-4), 5)
    box = plan.plan.epsilon_interval(0.2)
    assert 0.91659 < box.lower < box.upper < 0.9166
    assert not ask_epsilon(plan, 0.2).fault


@pytest.mark.parametrize("seed", range(2))
def test_many_plans_with_mass_at_infinity(seed: int) -> None:
    """Around the same exit: k * ApproxDP and mixes, deltas from the mass at infinity to the total variation."""
    draw = Draw(f"infinity/{seed}")
    for _ in range(500 if SOAK else 20):
        step = guaranteed(questions.log_uniform(draw, 1e-3, 2), questions.log_uniform(draw, 1e-9, 0.1))
        parts = [(step, draw.randrange(1, 40))]
        if draw.random() < 0.3:
            parts.append((guaranteed(questions.log_uniform(draw, 1e-3, 2), 0.0), draw.randrange(1, 12)))
        plan = plan_of(tuple(parts))
        side = plan.directions[0]
        least, most = float(side.mass), float(side.delta(0.0))
        for delta in (least + (most - least) * draw.random(), most * (1 - questions.log_uniform(draw, 1e-12, 0.5))):
            verdict = ask_epsilon(plan, min(max(delta, 0.0), 1.0))
            assert not verdict.fault, (verdict.question, verdict.answer)
        verdict = ask_delta(plan, 0.0)
        assert not verdict.fault, (verdict.question, verdict.answer)


def test_small_losses_on_a_sample_under_replace() -> None:
    """exp - exp of two small losses left 2^-52 / loss: upper ends lay below the truth."""
    plan = _asked(on_a_sample(guaranteed(1e-6, 0.0), 0.5, replace=True))
    assert plan.plan.epsilon(0.0) >= 1e-6
    for epsilon in (0.0, 5e-7, 9.9999e-7):
        assert not ask_delta(plan, epsilon).fault
    steps = two_sided(322067.75071729446, 2)
    plan = _asked(on_a_sample(steps, 0.001023440119020481, replace=True))
    assert plan.plan.delta_interval(0.0).upper >= 6.35541397132035e-09
    assert not ask_delta(plan, 0.0).fault


def test_the_largest_loss_at_delta_zero() -> None:
    """The law rounded it up by more ulps than the engine stepped down."""
    draw = Draw("largest")
    box = dp.RandomizedResponse(0.8335411581122145).epsilon_interval(0.0)
    assert box.lower <= 1.6109349978369818 <= box.upper
    makers: tuple[Callable[[Draw], Step], ...] = questions.KINDS
    for _ in range(1000 if SOAK else 60):
        plan = _asked(draw.choice(makers)(draw), draw.choice((1, 1, 2, 3)))
        verdict = ask_epsilon(plan, 0.0)
        assert not verdict.fault, (verdict.question, verdict.answer)


def test_the_mass_at_infinity_of_a_sample() -> None:
    """Rounded up, and then used as exact by lower ends."""
    step = on_a_sample(guaranteed(7.309991420871903e-09, 0.23989560788381517), 6.406975102046306e-07)
    assert not ask_epsilon(_asked(step, 3), 4.611014866590303e-07).fault
    draw = Draw("sampled infinity")
    for _ in range(500 if SOAK else 25):
        inside = guaranteed(questions._loss(draw), questions._tiny(draw))
        plan = _asked(on_a_sample(inside, questions._rate(draw)), draw.choice((1, 2, 3)))
        mass = float(plan.directions[0].mass)
        for delta in (mass, mass * (1 + questions.log_uniform(draw, 1e-16, 1e-6))):
            verdict = ask_epsilon(plan, min(delta, 1.0))
            assert not verdict.fault, (verdict.question, verdict.answer)


def test_sampled_responses_by_the_binomial_sum() -> None:
    """A position was off by as many ulps as the loss inside is long."""
    plan = _asked(on_a_sample(response(0.0005441147979440494), 2.1082742630754284e-05), 2)
    assert not ask_delta(plan, 0.07594814849134464).fault
    draw = Draw("binomial")
    for _ in range(300 if SOAK else 15):
        inside = response(questions.log_uniform(draw, 1e-6, 0.4))
        plan = _asked(on_a_sample(inside, questions.log_uniform(draw, 1e-6, 0.5)), draw.choice((2, 3, 20, 200)))
        top = float(plan.directions[0].largest)
        for epsilon in (top * (1 - questions.log_uniform(draw, 1e-12, 0.5)), top * draw.random()):
            verdict = ask_delta(plan, epsilon)
            assert not verdict.fault, (verdict.question, verdict.answer)


def test_moments_of_losses_that_are_nearly_always_infinite() -> None:
    """1 - p with p next to one cancelled in K: Chernoff's bound of a finite part lay 6e-5 below the truth."""
    draw = Draw("nearly always infinite")
    cases = [(25.875811327380898, 0.0013043358120179717)]
    cases += [(draw.uniform(0.1, 26), 10 ** draw.uniform(-4, -0.01)) for _ in range(40)]
    tilts = np.array([1e-6, 0.1, 1.0, 3.0])
    for epsilon, delta in cases:
        pair = pairs.sampled_replace(pairs.guarantee(epsilon, delta), 1)
        law = dp.PoissonSampled(dp.ApproxDP(epsilon, delta), 1.0, dp.REPLACE).laws()[0]
        if not law.atoms():
            assert not any(p != 0 and q != 0 for p, q in pair)
            continue
        table, stated = law.moment_table(tilts), law.log_moment_and_error(tilts)
        for i, tilt in enumerate(tilts.tolist()):
            terms = (p * ((p / q).log() * exact(tilt)).exp() for p, q in pair if p != 0 and q != 0)
            truth = sum(terms, exact(0)).log()
            for moment, error in ((table.moment, table.error), stated):
                assert abs(exact(float(moment[i])) - truth) <= exact(float(error[i])), (epsilon, delta, tilt)


def test_delta_one_needs_no_epsilon() -> None:
    """One step's finite part was compared with what the whole plan's mass at infinity leaves."""
    plan = 100 * dp.Gaussian(0.1) + 10**6 * dp.ApproxDP(1e-3, 1e-7)
    assert tuple(plan.epsilon_interval(1.0)) == (0.0, 0.0)
    sampled = dp.PoissonSampled(dp.ApproxDP(0.08599463629245148, 1.305236912832163e-07), 0.2140270975523881)
    box = (1929551 * sampled + 3 * dp.DiscreteGaussian(0.13003652800137877, 3)).delta_interval(1.0)
    assert 0 <= box.lower <= box.upper <= 1


def test_the_exact_profile_itself() -> None:
    """The truths by another way: closed forms of one response and of two coins."""
    side = Profile.of([(pairs.response(0.75, 2), 1)], questions.Fraction(0))
    assert float(side.delta(0.0)) == 0.5
    assert abs(float(side.largest) - 1.0986122886681098) < 1e-15
    two = Profile.of([(pairs.guarantee(1.0), 2)], questions.Fraction(0))
    heads = 1 / (1 + exact(-1.0).exp())
    assert abs(float(two.delta(0.5) - heads**2 * (1 - exact(-1.5).exp()))) < 1e-30
