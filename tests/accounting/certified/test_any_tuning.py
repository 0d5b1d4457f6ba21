"""Containment under any tuning: the numbers of ``Tuning`` decide how wide an answer is, never whether it is true.

Tunings are drawn wildly (each number by factors up to e^3, tolerances from 1e-16 to 1e-2, budgets down to nothing), the
truths are those of tests/truth. Power: with one charge of the proof removed the same questions find it out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import pytest

import tables
from depth import thinned
from dptally.accounting.certified import engine
from dptally.accounting.certified.contour.aliasing import Aliasing
from dptally.accounting.certified.contour.inversion import Inversion
from dptally.accounting.certified.contour.smoothed import Smoothed
from dptally.accounting.certified.lattice.decisive import FewSteps
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.route import answers_of, bounds_at
from dptally.accounting.certified.routes import ROUTES
from dptally.accounting.certified.tuning import STANDARD, Tuning
from dptally.law import Composition
from truth.stored import replaced

pytestmark = pytest.mark.usefixtures("quiet")

Draw = random.Random
#: a budget may shrink to nothing; larger ones only take longer
BUDGETS = ("most_work", "most_terms", "most_points", "most_sums", "most_pairs", "most", "longest", "nodes", "points")
BUDGETS += (
    "most_cuts",
    "looks",
    "levels",
    "rounds",
    "tries",
    "tries_of_many",
    "newton_steps",
    "most_nodes",
    "coarse",
    "bins",
    "furthest",
    "tilts",
)
TOLERANCES = ("relative", "node_tolerance", "nothing", "left_out")

Question = tuple[Composition, float, tuple[float, float]]


@cache
def questions() -> list[Question]:
    """(direction of a plan, epsilon, bounds of delta there)."""
    few = [(tables.composition_of(row), row["epsilon"], (row["lower"], row["upper"])) for row in tables.few_steps()]
    many = [(tables.sampled_composition(*row[:4]), row[4], (row[5], row[6])) for row in tables.sampled()[::7]]
    swap = [
        (tables.composition_of({"direction": "remove", "parts": [part]}), row.answer.epsilon, row.answer[1:])
        for row in replaced()[::7]
        for part in [
            {"kind": "sampled gaussian, replace", "sigma": row.sigma, "rate": row.rate, "count": row.steps},
        ]
    ]
    return [*few, *many, *swap]  # type: ignore[list-item]


def wild(draw: Draw, section: Any = STANDARD) -> Any:
    """The same tuning with every number changed."""
    return replace(section, **{f.name: _changed(draw, f.name, getattr(section, f.name)) for f in fields(section)})


def _changed(draw: Draw, name: str, value: Any) -> Any:
    if is_dataclass(value):
        return wild(draw, value)
    if name in TOLERANCES and not isinstance(value, tuple):
        return 10.0 ** draw.uniform(-16, -2)
    if name == "blocks":
        move = draw.randint(-4, 8)
        return tuple(k + move for k in value[: draw.randint(4, len(value))])
    if name == "tilts" and isinstance(value, tuple):
        return value[0] + draw.randint(0, 20), value[1] - draw.randint(0, 20)
    if isinstance(value, bool):
        return draw.random() < 0.5
    factor = math.exp(draw.uniform(-4.0, -0.5) if name in BUDGETS else draw.uniform(-3.0, 3.0))
    if name == "around":
        return tuple(x**factor for x in value)
    if isinstance(value, tuple):
        return tuple(max(1, round(x * factor)) if isinstance(x, int) else x * factor for x in value)
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def outside(question: Question, tuning: Tuning, draw: Draw) -> list[str]:
    """Every route by itself, and both questions of the engine: which bounds exclude the truth."""
    composition, epsilon, truth = question
    plan, found = Plan(composition, tuning=tuning), []
    for route in ROUTES:
        if route.name == "tilted lattice" and draw.random() < 0.8:
            continue  # it takes longest
        answers = route.near_epsilon(plan, epsilon) if route.applies(plan) else iter(())
        for profile in answers_of(route.name, answers, []):
            low, high, _ = bounds_at(profile, epsilon)
            if tables.log_outside(low, high, truth) > 0:
                found.append(f"{route.name}: [{low!r}, {high!r}] for {truth}")
    if draw.random() < 0.1:
        box = engine.delta_interval([composition], epsilon, tuning)
        if not (box.lower <= truth[1] and truth[0] <= box.upper):
            found.append(f"delta {box} for {truth}")
        for delta, sign in ((truth[0], 1), (truth[1], -1)):
            ends = engine.epsilon_interval([composition], delta, tuning)
            # delta(epsilon) >= truth[0]: the answer for truth[0] is no less than epsilon; for truth[1] no more
            if (ends.upper < epsilon) if sign > 0 else (ends.lower > epsilon):
                found.append(f"epsilon {ends} for {epsilon}")
    return found


def failures(number: int, seed: str) -> list[str]:
    draw, asked = Draw(seed), questions()
    found = []
    for _ in range(number):
        tuning, question = wild(draw), draw.choice(asked)
        found += [f"{what}; {question}; {tuning}" for what in outside(question, tuning, draw)]
    return found


def test_every_number_is_drawn() -> None:
    """No number of the tuning stays what it is."""

    def numbers(section: Any) -> list[Any]:
        return [
            number
            for f in fields(section)
            for value in [getattr(section, f.name)]
            for number in (numbers(value) if is_dataclass(value) else [(f.name, value)])
        ]

    drawn = [wild(Draw(seed)) for seed in range(8)]
    for i, (name, value) in enumerate(numbers(STANDARD)):
        assert any(numbers(tuning)[i][1] != value for tuning in drawn), name


def test_any_tuning_is_sound() -> None:
    assert failures(thinned(75), "tuning") == []


def _coarse(**sections: dict[str, Any]) -> Tuning:
    return replace(STANDARD, **{name: replace(getattr(STANDARD, name), **new) for name, new in sections.items()})


#: a route, a tuning under which its truncations cost a lot, and the charge that pays for them
CHARGES: dict[str, tuple[str, Tuning, Callable[[pytest.MonkeyPatch], None]]] = {
    "aliases": (
        "inversion",
        _coarse(contour={"relative": 1e-2}),
        lambda patch: patch.setattr(Aliasing, "bound", lambda self, epsilon: 0.0),
    ),
    "cut-off": (
        "inversion",
        _coarse(contour={"relative": 1e-2, "fair": 20.0, "hopeless": 20.0}, routes={"most_terms": 1e3}),
        lambda patch: patch.setattr(Inversion, "of", _without_tail(Inversion.of)),
    ),
    "spread": (
        "lattice of deciding losses",
        _coarse(deciding={"width": 1e-3}),
        lambda patch: patch.setattr(FewSteps, "log_delta", _upper_alone(FewSteps.log_delta)),
    ),
    "smoothing": (
        "smoothed inversion",
        _coarse(smoothed={"width": 1e-2}),
        lambda patch: patch.setattr(Smoothed, "log_delta", _upper_alone(Smoothed.log_delta)),
    ),
}


def _without_tail(original: Callable[..., Inversion]) -> Callable[..., Inversion]:
    return lambda *arguments, **named: replace(original(*arguments, **named), tail=0.0)


def _upper_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    """The upper bound taken for the truth."""

    def bounds(self: Any, epsilon: float) -> Any:
        found = original(self, epsilon)
        return found._replace(lower=found.upper - 1e-9) if found.lower > -math.inf else found

    return bounds


@pytest.mark.parametrize("charge", CHARGES)
def test_power(charge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any tuning is sound because of what is charged: without one charge the same questions find it out."""
    name, tuning, remove = CHARGES[charge]
    route = next(route for route in ROUTES if route.name == name)

    def refuted() -> bool:
        asked = 0
        for composition, epsilon, truth in questions():
            plan = Plan(composition, tuning=tuning)
            for profile in answers_of(name, route.near_epsilon(plan, epsilon), []) if route.applies(plan) else ():
                asked += 1
                if tables.log_outside(*bounds_at(profile, epsilon)[:2], truth) > 0:
                    return True
            if asked >= 30:
                break
        return False

    assert not refuted()
    remove(monkeypatch)
    assert refuted()
