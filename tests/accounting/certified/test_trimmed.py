"""Containment: contours without the rarest large losses, against all outcomes of sampled discrete noise in balls."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from flint import arb

import dptally as dp
from depth import thinned
from dptally.accounting.certified.contour import smoothed as smoothing
from dptally.accounting.certified.contour.saddle import at_delta
from dptally.accounting.certified.contour.trimmed import TrimmedAtoms, trimmed
from dptally.accounting.certified.route import bounds_at
from dptally.accounting.certified.tuning import STANDARD
from dptally.law import Composition
from truth import ball
from truth.balls import precision
from truth.judge import Judge

pytestmark = pytest.mark.usefixtures("quiet")

Case = tuple[float, float, float, int]  # sigma, rate, probability of a true response, steps of the sampled noise


def drawn(draw: random.Random) -> Case:
    return draw.uniform(0.5, 1.5), 10 ** draw.uniform(-5, -1), draw.uniform(0.55, 0.9), draw.randint(1, 2)


def composition_of(case: Case) -> Composition:
    sigma, rate, p, steps = case
    plan = steps * dp.PoissonSampled(dp.DiscreteGaussian(sigma), rate) + 2 * dp.RandomizedResponse(p)
    return plan.directions()[0]


def outcomes(case: Case) -> list[tuple[arb, arb]]:
    """(probability, loss) of every outcome; what lies beyond 40 sigma has less than e^-780."""
    sigma, rate, p, steps = case
    square, q, last = 2 * ball(sigma) ** 2, ball(rate), math.ceil(40 * sigma)
    weight = {k: (-ball(k * k) / square).exp() for k in range(-last - 1, last + 1)}
    total = sum(weight.values(), arb(0))
    one = []
    for k in range(-last, last + 1):
        mixed = (1 - q) * weight[k] + q * weight[k - 1]
        one.append((mixed / total, (mixed / weight[k]).log()))
    step = (ball(p) / (1 - ball(p))).log()
    answers = [(ball(p) ** 2, 2 * step), (2 * ball(p) * (1 - ball(p)), arb(0)), ((1 - ball(p)) ** 2, -2 * step)]
    rows = []
    for some in combinations_with_replacement(one, steps):
        ways = 1 if steps == 1 or some[0] is some[1] else 2
        mass, loss = ball(ways), arb(0)
        for m, x in some:
            mass, loss = mass * m, loss + x
        rows += [(mass * m, loss + x) for m, x in answers]
    return rows


def delta(rows: list[tuple[arb, arb]], epsilon: float) -> arb:
    e = ball(epsilon)
    return sum((mass * (1 - (e - loss).exp()) for mass, loss in rows if loss > e), arb(0))


def contours(case: Case, log_delta: float, nats: float) -> list[smoothing.Smoothed]:
    tuning = replace(STANDARD, smoothed=replace(STANDARD.smoothed, negligible=nats))
    return list(smoothing._without_rare(composition_of(case), log_delta, at_delta(log_delta), None, tuning))


def test_contained() -> None:
    """Whatever is left out, next to nothing or most of delta."""
    draw, judge = random.Random("trimmed"), Judge(1e-2)
    for _ in range(thinned(60)):
        case, nats = drawn(draw), draw.choice((25.0, 25.0, 6.0, 0.0))
        log_delta = -draw.uniform(5.0, 120.0)
        with precision(200):
            rows = outcomes(case)
            for found in contours(case, log_delta, nats):
                for epsilon in (found.saddle, 0.97 * found.saddle, 1.02 * found.saddle):
                    exact = delta(rows, epsilon)
                    low, high = bounds_at(found, epsilon)[:2]
                    if exact > 0 and not exact.contains(0):
                        judge.log_delta((case, log_delta, nats, found.variance, epsilon), low, high, exact)
    judge.close(thinned(60))


def test_power() -> None:
    """Without the probability of what was moved the upper end is refuted, where that is much of delta."""
    draw, refuted = random.Random("trimmed, power"), 0
    for _ in range(12):
        case = drawn(draw)
        log_delta = -draw.uniform(20.0, 120.0)
        with precision(200):
            rows = outcomes(case)
            for found in contours(case, log_delta, 0.0):
                wrong = replace(found, log_moved=-math.inf)
                refuted += bool(bounds_at(wrong, found.saddle)[1] < delta(rows, found.saddle).log())
    assert refuted > 0


def test_moments() -> None:
    """K of a trimmed law contains that of its atoms in balls."""
    law = composition_of((0.8, 1e-3, 0.7, 1)).parts
    found = trimmed(law, -60.0)
    assert found is not None
    atoms = [part for part, _ in found.parts if isinstance(part, TrimmedAtoms)]
    assert len(atoms) == 1
    last = atoms[0].supremum
    with precision(200):
        rows = [(m, x) for m, x in outcomes((0.8, 1e-3, 0.7, 1)) if x < 1e9]
        response = (ball(0.7) / (1 - ball(0.7))).log()
        alone = [(m / ball(0.7) ** 2, x - 2 * response) for m, x in rows[::3]]  # the first answer of each triple
        for theta in (0.5, 3.0, 20.0):
            table = atoms[0].moment_table(np.array([theta]))
            exact = sum((m * (ball(theta) * x).exp() for m, x in alone if x < last + 1e-6), arb(0)).log()
            assert abs(exact - ball(float(table.moment[0]))) <= float(table.error[0])
            assert table.error[0] < 1e-11
