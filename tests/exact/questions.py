"""Random finite plans, the questions an attacker would ask about them, and the verdict on the answers."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

import dptally as dp
from dptally.accounting import approximate, optimal, renyi
from exact import pairs
from exact.pairs import Pair, exact
from exact.plans import UNIT, Profile, outcomes

Draw = random.Random
MOST_OUTCOMES = 6000
QUESTIONS = 16  # of one plan


@dataclass(frozen=True)
class Step:
    """One mechanism: as the library knows it, as pairs (remove, add), and its mass at infinity where rational."""

    text: str
    remove: tuple[Any, ...]
    add: tuple[Any, ...]
    infinite: tuple[Fraction | None, Fraction | None]

    @property
    def mechanism(self) -> dp.Mechanism:
        return _mechanism(self.text)


@cache
def _mechanism(text: str) -> dp.Mechanism:
    names = {name: getattr(dp, name) for name in dp.__all__ if name[0].isupper()}
    built = eval(text, {"__builtins__": {}}, names)
    assert isinstance(built, dp.Mechanism)
    return built


def log_uniform(draw: Draw, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def _loss(draw: Draw) -> float:
    """A loss: mostly ordinary, sometimes 1e-14 or 1e3."""
    return draw.choice(
        (log_uniform(draw, 1e-3, 4), log_uniform(draw, 1e-14, 1e-3), log_uniform(draw, 1, 1e3), 0.5, 1.0, 1e-6)
    )


def _tiny(draw: Draw) -> float:
    """A probability of telling all: from 1e-16 to nearly one."""
    return draw.choice((log_uniform(draw, 1e-16, 0.3), draw.uniform(0.01, 0.95), 0.25, 2.0**-20))


def _rate(draw: Draw) -> float:
    return draw.choice((log_uniform(draw, 1e-9, 1), draw.uniform(0.01, 0.99), 0.5, 1 - log_uniform(draw, 1e-12, 0.1)))


def _symmetric(text: str, pair: Pair, infinite: Fraction | None = None) -> Step:
    mass = Fraction(0) if infinite is None else infinite
    return Step(text, tuple(pair), tuple(pairs.mirrored(pair)), (mass, mass))


def _pure(draw: Draw) -> Step:
    epsilon = _loss(draw)
    return _symmetric(f"PureDP({epsilon!r})", pairs.guarantee(epsilon))


def _approx(draw: Draw) -> Step:
    epsilon, delta = draw.choice((_loss(draw), 0.0)), _tiny(draw)
    return _symmetric(f"ApproxDP({epsilon!r}, {delta!r})", pairs.guarantee(epsilon, delta), Fraction(delta))


def _response(draw: Draw) -> Step:
    categories = draw.choice((2, 2, 3, 7, 1000, 10**6))
    middle = 1 / categories
    p = draw.choice(
        (
            draw.uniform(0.01, 0.99),
            log_uniform(draw, 1e-9, 0.5),
            1 - log_uniform(draw, 1e-12, 0.1),
            middle * (1 + draw.choice((-1, 1)) * log_uniform(draw, 1e-12, 0.5)),
        )
    )
    if not 0 < p < 1 or Fraction(p) * categories == 1:
        p = 0.75
    return _symmetric(f"RandomizedResponse({p!r}, {categories})", pairs.response(p, categories))


def _discrete(draw: Draw) -> Step:
    scale, shift = draw.choice((log_uniform(draw, 0.2, 20), log_uniform(draw, 1e-3, 1e9))), draw.choice((1, 1, 2, 3, 6))
    return _symmetric(f"DiscreteLaplace({scale!r}, {shift})", pairs.discrete_laplace(scale, shift))


def _profile(draw: Draw) -> Step:
    number = draw.choice((1, 2, 3, 5))
    epsilons = sorted({draw.choice((0.0, log_uniform(draw, 1e-6, 5), draw.uniform(0, 3))) for _ in range(number)})
    deltas = sorted((log_uniform(draw, 1e-12, 0.5) for _ in epsilons), reverse=True)
    if draw.random() < 0.4:
        deltas[-1] = 0.0
    points = list(zip(epsilons, deltas, strict=True))
    if points[0] == (0.0, 0.0):
        points = [(0.5, 0.0)]
    text = f"Profile(None, {points!r})"
    return _symmetric(text, pairs.profile(points), Fraction(points[-1][1]))


PLAIN = (_pure, _approx, _response, _discrete, _profile)


def _sampled(draw: Draw) -> Step:
    inside, rate = draw.choice(PLAIN)(draw), _rate(draw)
    text, whole = f"PoissonSampled({inside.text}, {rate!r})", Fraction(rate)
    if draw.random() < 0.2:
        outer = _rate(draw)
        text, whole = f"PoissonSampled({text}, {outer!r})", whole * Fraction(outer)
    if not 1e-100 < whole < 1:
        return inside
    remove = pairs.sampled(list(inside.remove), whole)
    mass = inside.infinite[0]
    return Step(
        text, tuple(remove), tuple(pairs.mirrored(remove)), (None if mass is None else whole * mass, Fraction(0))
    )


def _replaced(draw: Draw) -> Step:
    inside, rate = draw.choice(PLAIN)(draw), draw.choice((_rate(draw), _rate(draw), 1.0))
    text, whole = f"PoissonSampled({inside.text}, {rate!r}, REPLACE)", Fraction(rate)
    if draw.random() < 0.2:
        outer = _rate(draw)
        text, whole = f"PoissonSampled({text}, {outer!r}, REPLACE)", whole * Fraction(outer)
    if not 1e-100 < whole <= 1 or any(0 < b < _LEAST for _, b in inside.remove):
        return inside  # the second: an outcome that is lost beside 1 in as many bits
    pair = pairs.sampled_replace(list(inside.remove), whole)
    mass = inside.infinite[0]
    # at rate 1 an output that one of the two cannot give may meet any other: the balls say how much
    known = None if mass is None or (whole == 1 and mass > 0) else whole * mass
    return Step(text, tuple(pair), tuple(pairs.mirrored(pair)), (known, known))


_LEAST = exact(Fraction(1, 2**1600))
KINDS = (*PLAIN, _sampled, _sampled, _replaced, _replaced)


@dataclass(frozen=True)
class Plan:
    """Steps with their counts, the library's plan, and the profile of each direction."""

    parts: tuple[tuple[Step, int], ...]
    plan: dp.Mechanism
    directions: tuple[Profile, Profile]

    @property
    def text(self) -> str:
        return " + ".join(step.text if n == 1 else f"{n} * {step.text}" for step, n in self.parts)


def make_plan(draw: Draw, most: int = MOST_OUTCOMES) -> Plan:
    """One step, many copies of one, or a few different ones: as many as can be listed."""
    shape = draw.randrange(4)
    steps = [draw.choice(KINDS)(draw) for _ in range(1 if shape < 3 else draw.choice((2, 2, 3)))]
    counts = [1 if shape < 1 else round(log_uniform(draw, 1, most if shape == 1 else 40)) for _ in steps]
    while outcomes([(list(step.remove), n) for step, n in zip(steps, counts, strict=True)]) > most:
        largest = counts.index(max(counts))
        if counts[largest] == 1:
            return make_plan(draw, most)
        counts[largest] = max(1, counts[largest] * 2 // 3)
    return plan_of(tuple(zip(steps, counts, strict=True)))


def plan_of(parts: tuple[tuple[Step, int], ...]) -> Plan:
    whole = None
    for step, n in parts:
        part = n * step.mechanism
        whole = part if whole is None else whole + part
    assert whole is not None
    profiles = []
    for side in (0, 1):
        masses = [(step.infinite[side], n) for step, n in parts]
        known = None
        if all(mass is not None for mass, _ in masses) and sum(n for mass, n in masses if mass) < 200:
            known = 1 - math.prod((1 - mass) ** n for mass, n in masses if mass is not None)
        rows = [(list((step.remove, step.add)[side]), n) for step, n in parts]
        profiles.append(Profile.of(rows, Fraction(known) if known is not None else None))
    return Plan(parts, whole, (profiles[0], profiles[1]))


# -- questions -------------------------------------------------------------------------------------------------------


def _beside(draw: Draw, x: float) -> float:
    """The number, its neighbours, or something a little further."""
    way = draw.randrange(5)
    if way < 3 or x == 0:
        return max(0.0, [x, math.nextafter(x, math.inf), math.nextafter(x, 0.0)][way % 3])
    return max(0.0, x * (1 + draw.choice((-1, 1)) * log_uniform(draw, 1e-16, 0.1)))


def an_epsilon(draw: Draw, plan: Plan) -> float:
    side = plan.directions[draw.randrange(2)]
    top = float(side.largest)
    way = draw.randrange(6)
    if way == 0:
        return 0.0
    if way == 1:
        return _beside(draw, top)
    if way == 2 and side.losses:
        return _beside(draw, max(0.0, -draw.choice(side.losses) / 2**UNIT))
    if way == 3:
        return top * log_uniform(draw, 1e-6, 1)
    if way == 4:
        return top * (1 - log_uniform(draw, 1e-15, 1))
    return draw.uniform(0, 1.2 * top)


def a_delta(draw: Draw, plan: Plan) -> float:
    side = plan.directions[draw.randrange(2)]
    way = draw.randrange(8)
    if way == 0:
        return draw.choice((0.0, 0.0, 1.0, math.nextafter(1.0, 0.0), 5e-324, 1e-300))
    if way == 1:
        return min(1.0, _beside(draw, float(side.mass)))
    if way == 2:
        return log_uniform(draw, 1e-30, 1)
    if way == 3:
        top = float(side.delta(0.0))
        return min(1.0, float(side.mass) + max(0.0, top - float(side.mass)) * draw.random())
    if way == 4:
        return min(1.0, _beside(draw, float(side.delta(0.0))))
    return min(1.0, _beside(draw, max(0.0, float(side.delta(an_epsilon(draw, plan))))))


@dataclass(frozen=True)
class Verdict:
    """What was asked and answered; ``fault`` is empty where the truth may lie inside."""

    question: str
    answer: str
    fault: str
    width: float
    method: str


def judge_delta(plan: Plan, epsilon: float, box: dp.Interval) -> Verdict:
    truth = plan.directions[0].delta(epsilon).max(plan.directions[1].delta(epsilon))
    fault = ""
    if exact(box.lower) > truth:
        fault = f"lower end above the truth by {float((exact(box.lower) - truth) / truth.max(exact(5e-324))):.3g}"
    elif exact(box.upper) < truth:
        fault = f"upper end below the truth by {float((truth - exact(box.upper)) / truth):.3g}"
    return Verdict(
        f"({plan.text}).delta_interval({epsilon!r})",
        f"[{box.lower!r}, {box.upper!r}] {box.method}; truth {float(truth)!r}",
        fault,
        (box.upper - box.lower) / box.upper if box.upper > 0 else 0.0,
        box.method,
    )


def judge_epsilon(plan: Plan, delta: float, box: dp.Interval) -> Verdict:
    fault = ""
    if any(side.exceeds(box.upper, delta) for side in plan.directions):
        fault = "upper end below the truth"
    elif all(side.falls_short(box.lower, delta) for side in plan.directions):
        fault = "lower end above the truth"
    width = 0.0 if box.lower == box.upper else (box.upper - box.lower) / box.upper if box.upper < math.inf else 1.0
    answer = f"[{box.lower!r}, {box.upper!r}] {box.method}"
    return Verdict(f"({plan.text}).epsilon_interval({delta!r})", answer, fault, width, box.method)


def ask_delta(plan: Plan, epsilon: float) -> Verdict:
    return judge_delta(plan, epsilon, plan.plan.delta_interval(epsilon))


def ask_epsilon(plan: Plan, delta: float) -> Verdict:
    return judge_epsilon(plan, delta, plan.plan.epsilon_interval(delta))


def ask(draw: Draw, plan: Plan) -> Verdict:
    return ask_delta(plan, an_epsilon(draw, plan)) if draw.random() < 0.5 else ask_epsilon(plan, a_delta(draw, plan))


def ask_together(draw: Draw, plan: Plan, number: int) -> list[Verdict]:
    """The same questions in arrays, which share contours and profiles that one question alone does not."""
    epsilons, deltas = ([one(draw, plan) for _ in range(number)] for one in (an_epsilon, a_delta))
    found = plan.plan.delta_interval(np.array(epsilons)), plan.plan.epsilon_interval(np.array(deltas))
    rows = [[dp.Interval(a, b, "array") for a, b in zip(box.lower, box.upper, strict=True)] for box in found]
    return [
        *(judge_delta(plan, e, box) for e, box in zip(epsilons, rows[0], strict=True)),
        *(judge_epsilon(plan, d, box) for d, box in zip(deltas, rows[1], strict=True)),
    ]


# -- a second line of defence ----------------------------------------------------------------------------------------


def contradictions(draw: Draw, plan: Plan) -> list[str]:
    """Bounds of the library that need none of its routes, against the interval: each must lie above its lower end.

    Optimal composition of the declared guarantees, basic composition and Renyi's conversion are upper bounds; one step
    of the plan alone is a lower bound of the whole.
    """
    delta = a_delta(draw, plan)
    if not 0 < delta < 1:
        return []
    box = plan.plan.epsilon_interval(delta)
    faults = []
    for name, bound in (
        ("optimal composition", lambda: optimal.epsilon(plan.plan, delta)),
        ("basic composition", lambda: approximate.epsilon(plan.plan, delta, "basic")),
        ("Renyi", lambda: renyi.epsilon(plan.plan, delta)),
    ):
        try:
            value = float(bound())
        except dp.Unanswerable:
            continue
        if value < box.lower:
            faults.append(f"{name} {value!r} below the lower end of ({plan.text}).epsilon_interval({delta!r}) = {box}")
    for step, _ in plan.parts:
        alone = step.mechanism.epsilon_interval(delta)
        if alone.lower > box.upper:
            faults.append(f"one step {alone} above ({plan.text}).epsilon_interval({delta!r}) = {box}")
    return faults
