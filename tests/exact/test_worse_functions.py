"""Containment where every elementary function of numpy errs by what it promises: the charges cover it, and no more."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

import dptally as dp
import truth
from depth import thinned
from dptally.numerics.rounding import FUNCTION_ULPS
from exact.questions import ask, ask_together, make_plan
from exact.worse import worse_functions

PROMISED = FUNCTION_ULPS - 1.0  # beside the one that the functions themselves may be off by
PLANS = thinned(400)
WAYS = (-2, -1, 0, 1, 2)


def _finite(way: int, ulps: float, number: int) -> list[str]:
    faults = []
    for index in range(number):
        draw = random.Random(f"worse/{way}/{index}")
        plan = make_plan(draw, 40)
        with worse_functions(way, ulps):
            verdicts = [ask(draw, plan) for _ in range(6)] + ask_together(draw, plan, 2)
        faults += [f"{v.fault}: {v.question} = {v.answer}" for v in verdicts if v.fault]
    return faults


@pytest.mark.parametrize("way", WAYS)
def test_finite_plans(way: int) -> None:
    assert _finite(way, PROMISED, PLANS // 4) == []


def test_the_questions_would_find_functions_that_are_worse_than_promised() -> None:
    assert len(_finite(1, 40.0, 24)) > 5


def _smooth(way: int, index: int) -> tuple[dp.Interval, object, str]:
    """(what is answered, the truth in balls, the question): Gaussian, Laplace and sampled Gaussian steps."""
    draw = random.Random(f"smooth/{way}/{index}")
    sigma = math.exp(draw.uniform(-3, 4))
    kind = index % 4
    if kind == 0:
        epsilon, plan = draw.choice((0.0, draw.random(), 6 * draw.random())) / sigma, dp.Gaussian(sigma)
        value = truth.sigma_delta(sigma, epsilon, 1)
    elif kind == 1:
        epsilon, plan = draw.choice((0.0, draw.random(), 0.999)) / sigma, dp.Laplace(sigma)
        value = truth.laplace_delta(1 / Fraction(sigma), 1, epsilon)
    elif kind == 2:
        epsilon, plan = 12 * draw.random() / max(sigma, 0.3), 12 * dp.Laplace(max(sigma, 0.3))
        value = truth.laplace_delta(1 / Fraction(max(sigma, 0.3)), 12, epsilon)
    else:
        sigma, rate = max(sigma, 0.3), draw.random()
        epsilon, plan = draw.random() * 3 * rate / sigma, dp.dpsgd(sigma, rate, 1)
        value = max((truth.one_step_delta(sigma, rate, epsilon, side) for side in ("remove", "add")), key=float)
    with worse_functions(way, PROMISED):
        box = plan.delta_interval(epsilon)
    return box, value, f"{plan}.delta_interval({epsilon!r}) = {box!r}, truth {value}"


@pytest.mark.parametrize("way", WAYS)
def test_smooth_plans(way: int) -> None:
    for index in range(thinned(400)):
        box, value, question = _smooth(way, index)
        assert not truth.ball(box.lower) > value, question
        assert not truth.ball(box.upper) < value, question
