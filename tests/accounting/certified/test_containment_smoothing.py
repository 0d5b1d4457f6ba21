"""Golden: smoothed contours of different point masses, each asked at several epsilons, contain sums over all outcomes.

Every question counts once, and only where an interval moved a little beside the truth would be refuted.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from flint import arb

import dptally as dp
from depth import thinned
from dptally.accounting.certified.contour import smoothed as smoothing
from dptally.accounting.certified.route import bounds_at
from dptally.accounting.certified.solve import epsilon_ends
from truth import ball, laplace_delta
from truth.balls import precision
from truth.judge import Judge

SHIFT = 1e-5  # nats: the noise alone costs 7e-7 in eps, and delta falls steeply with eps


pytestmark = pytest.mark.usefixtures("quiet")


Response = tuple[float, int, int]  # probability of the truth, categories, count


def responses(draw: random.Random) -> list[Response]:
    parts = draw.randint(2, 3)
    return [(draw.uniform(0.51, 0.95), draw.choice((2, 2, 3, 8)), draw.randint(1, 3)) for _ in range(parts)]


def plan_of(parts: list[Response]) -> dp.Mechanism:
    first, *others = (count * dp.RandomizedResponse(p, categories) for p, categories, count in parts)
    return sum(others, first)


def largest(parts: list[Response]) -> float:
    return sum(count * math.log(p * (categories - 1) / (1 - p)) for p, categories, count in parts)


Outcomes = list[tuple[arb, arb]]  # probability, loss


def outcomes(parts: list[Response]) -> Outcomes:
    """Of every part its binomial or trinomial losses, then all combinations."""
    tables: list[Outcomes] = []
    for p, categories, count in parts:
        truth = Fraction(p)
        lie = (1 - truth) / (categories - 1)
        a, b, rest = ball(truth), ball(lie), ball(1 - truth - lie)
        step = (a / b).log()
        table = []
        for up in range(count + 1):
            for down in range(count + 1 - up):
                kept = count - up - down
                if kept == 0 or categories > 2:
                    ways = math.comb(count, up) * math.comb(count - up, down)
                    table.append((ways * a**up * b**down * rest**kept, (up - down) * step))
        tables.append(table)
    return [
        (math.prod((mass for mass, _ in row), start=arb(1)), sum((loss for _, loss in row), arb(0)))
        for row in product(*tables)
    ]


def responses_delta(all_of_them: Outcomes, epsilon: float) -> arb:
    e = ball(epsilon)
    return sum((mass * (1 - (e - loss).exp()).max(arb(0)) for mass, loss in all_of_them), arb(0))


def test_different_responses() -> None:
    draw, judge = random.Random("smoothing, responses"), Judge(SHIFT)
    for _ in range(thinned(500)):
        parts = responses(draw)
        composition = plan_of(parts).directions()[0]
        at = draw.uniform(0.05, 0.9) * largest(parts)
        found = smoothing.for_epsilon(composition, at) if smoothing.applies(composition) else None
        if found is None:
            continue
        with precision(200):
            table = outcomes(parts)
            for epsilon in (at, 0.98 * at, 1.01 * at, 1.04 * at):
                judge.log_delta((*parts, epsilon), *bounds_at(found, epsilon)[:2], responses_delta(table, epsilon))
    judge.close(thinned(1800))


def test_laplace_steps() -> None:
    """Residues in balls."""
    draw, judge = random.Random("smoothing, Laplace"), Judge(1e-2)
    for _ in range(80):
        scale, count = math.exp(draw.uniform(-0.7, 3)), draw.randint(2, 24)
        composition = (count * dp.Laplace(scale)).directions()[0]
        at = draw.uniform(0.05, 0.8) * count / scale
        found = smoothing.for_epsilon(composition, at) if smoothing.applies(composition) else None
        if found is None:
            continue
        for epsilon in (at, 0.98 * at, 1.02 * at):
            exact = laplace_delta(1 / Fraction(scale), count, epsilon)
            judge.log_delta((scale, count, epsilon), *bounds_at(found, epsilon)[:2], exact)
    judge.close(thinned(150))


def test_epsilon() -> None:
    draw, judge = random.Random("smoothing, epsilon"), Judge(1e-5)
    for _ in range(60):
        parts = responses(draw)
        composition = plan_of(parts).directions()[0]
        epsilon = draw.uniform(0.05, 0.9) * largest(parts)
        with precision(200):
            log_delta = responses_delta(outcomes(parts), epsilon).log()
            target = float(log_delta) * (1 + 1e-15), float(log_delta) * (1 - 1e-15)
        found = smoothing.for_delta(composition, target[0]) if smoothing.applies(composition) else None
        if found is not None:
            judge.epsilon((*parts, epsilon), *epsilon_ends(found, target), epsilon)
    judge.close(thinned(40))


def test_power() -> None:
    """A contour whose moment is a little wrong is refuted."""
    draw, refuted = random.Random("smoothing, power"), 0
    for _ in range(20):
        parts = responses(draw)
        composition = plan_of(parts).directions()[0]
        at = draw.uniform(0.05, 0.9) * largest(parts)
        found = smoothing.for_epsilon(composition, at)
        if found is None:
            continue
        wrong = replace(found, log_moment=found.log_moment + 2 * SHIFT)
        with precision(200):
            exact = responses_delta(outcomes(parts), at)
        try:
            Judge(SHIFT).log_delta("wrong", *bounds_at(wrong, at)[:2], exact)
        except AssertionError:
            refuted += 1
    assert refuted >= 10
