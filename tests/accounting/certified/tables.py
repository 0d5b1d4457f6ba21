"""The tables of truths (tests/truth/data) as the plans of this library, and what it means to contain a truth."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dptally as dp
import truth
from dptally.accounting.certified.route import bounds_at
from dptally.accounting.certified.routes import ROUTES
from dptally.law import Composition
from walking import profiles_near

DATA = Path(truth.__file__).parent / "data"
SIDES = ("remove", "add")


def few_steps() -> list[dict[str, Any]]:
    """2 to 30 steps of several laws: dicts with direction, parts, epsilon, lower, upper."""
    return list(json.loads((DATA / "few_steps.json").read_text()))


def sampled() -> list[tuple[float, float, int, str, float, float, float]]:
    """Sampled Gaussians, sharp: (sigma, rate, steps, direction, epsilon, lower, upper)."""
    return [tuple(row) for row in json.loads((DATA / "sampled.json").read_text())["rows"]]


def composition_of(row: dict[str, Any]) -> Composition:
    """The one direction of the plan that the row speaks of."""
    plan = sum((part["count"] * _mechanism(part) for part in row["parts"][1:]), _first(row["parts"][0]))
    directions = plan.directions()
    return directions[SIDES.index(row["direction"])] if len(directions) > 1 else directions[0]


def sampled_composition(sigma: float, rate: float, steps: int, direction: str) -> Composition:
    return dp.dpsgd(sigma, rate, steps).directions()[SIDES.index(direction)]


def _first(part: dict[str, Any]) -> Any:
    return part["count"] * _mechanism(part)


def _mechanism(part: dict[str, Any]) -> Any:
    match part["kind"]:
        case "sampled gaussian":
            return dp.PoissonSampled(dp.Gaussian(part["sigma"]), part["rate"])
        case "sampled gaussian, replace":
            return dp.PoissonSampled(dp.Gaussian(part["sigma"]), part["rate"], dp.REPLACE)
        case "sampled laplace":
            return dp.PoissonSampled(dp.Laplace(part["scale"]), part["rate"])
        case "laplace":
            return dp.Laplace(part["scale"])
        case "gaussian":
            return dp.Gaussian(part["sigma"])
        case "response":
            return dp.RandomizedResponse(part["p"])
    raise ValueError(part["kind"])


def every_route(composition: Composition, epsilon: float) -> Iterator[tuple[str, float, float]]:
    """(route, lower, upper) of log delta(eps): every answer of every route of the engine, needed or not."""
    for route in ROUTES:
        for found in profiles_near(route, composition, epsilon):
            low, high, _ = bounds_at(found, epsilon)
            yield route.name, low, high


def log_outside(low: float, high: float, delta: tuple[float, float]) -> float:
    """How far [low, high] of log delta lies from the truth delta[0] .. delta[1]: <= 0 where they meet.

    The logarithms here are within 2 ulps, a slack of 1e-15 relative.
    """
    slack = 1e-15 * (1 + abs(math.log(delta[0])))
    return max(low - math.log(delta[1]), math.log(delta[0]) - high if high < 0 else -math.inf) - slack
