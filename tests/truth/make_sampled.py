"""Write data/sampled.json: sharp truths of sampled Gaussians, two steps (quadrature) and many (inversion), in balls.

    python tests/truth/make_sampled.py    # continues where it stopped; some thirty minutes in all

Rows [sigma, rate, steps, direction, epsilon, lower, upper]: delta(epsilon) lies between the two doubles, some 1e-12
of it apart. Row i of a kind depends on i alone; plans that the balls would take too long for are left out.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


from truth import floats, sampled_gaussian_delta
from truth.draws import fill
from truth.losses import SampledGaussianLoss
from truth.recursion import composed_delta

DATA = Path(__file__).parent / "data" / "sampled.json"
DRAWS = {"two": 1600, "many": 1750}


def short(value: float) -> float:
    return float(f"{value:.4g}")


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    return short(math.exp(draw.uniform(math.log(low), math.log(high))))


def two(draw: random.Random) -> tuple[float, float, int, str, float] | None:
    sigma, rate = log_uniform(draw, 0.3, 8), min(log_uniform(draw, 1e-5, 1), 0.99)
    direction = draw.choice(("remove", "remove", "add"))
    if direction == "add":
        epsilon = short(-2 * math.log1p(-rate) * draw.uniform(0.05, 0.6))
    else:
        epsilon = short(math.exp(draw.uniform(math.log(0.2 * rate), math.log(20 / sigma))))
    _, upper = composed_delta([(SampledGaussianLoss(sigma, rate, direction), 2)], epsilon, 100)
    slow = upper < (1e-55 if direction == "remove" else 1e-16)
    return None if slow else (sigma, rate, 2, direction, epsilon)


def many(draw: random.Random) -> tuple[float, float, int, str, float] | None:
    sigma, rate = log_uniform(draw, 0.5, 8), min(log_uniform(draw, 1e-4, 1), 0.99)
    steps = round(math.exp(draw.uniform(math.log(30), math.log(3e6))))
    mu = rate * math.sqrt(steps * math.expm1(sigma**-2))
    if not 0.05 < mu < 30:
        return None
    # the central limit says where delta is between about 1e-2 and 1e-30
    return sigma, rate, steps, draw.choice(("remove", "add")), short(mu * mu / 2 + mu * draw.uniform(0.5, 11))


def made(kind: str, number: int) -> list[Any] | None:
    draw = random.Random(f"{kind}/{number}")
    plan = two(draw) if kind == "two" else many(draw)
    if plan is None:
        return None
    sigma, rate, steps, direction, epsilon = plan
    try:
        lower, upper = floats(sampled_gaussian_delta(sigma, rate, steps, epsilon, direction, 13))
    except (ArithmeticError, ValueError):  # more nodes than are worth waiting for, or no sensible tilt
        return None
    return [*plan, lower, upper] if lower > 1e-290 and upper - lower < 1e-10 * upper else None


if __name__ == "__main__":
    fill(DATA, DRAWS, made, 50)
