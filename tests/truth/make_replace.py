"""Write data/replace.json: Poisson-sampled Gaussians under REPLACE, by three methods that share little.

    python tests/truth/make_replace.py    # continues where it stopped; some half an hour in all

Rows [sigma, rate, steps, epsilon, lower, upper]: delta(epsilon) lies between the two doubles, which are some 1e-12 of
it apart for two steps (quadrature) and where inversion in balls is quick (12 steps and more), and up to 2 % for the
others of 3 to 30 steps (recursion: any plan). Row i of a kind depends on i alone.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


from truth.balls import floats
from truth.draws import fill
from truth.inversion import mixture_delta
from truth.losses import SampledReplaceLoss
from truth.make_few_steps import chosen_epsilon
from truth.recursion import composed_delta
from truth.replace_piece import SampledReplacePiece
from truth.two_steps_replace import two_step_replace_delta

DATA = Path(__file__).parent / "data" / "replace.json"
DRAWS = {"two": 1800, "few": 170, "many": 1000}


def short(value: float) -> float:
    return float(f"{value:.4g}")


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    return short(math.exp(draw.uniform(math.log(low), math.log(high))))


def two(draw: random.Random) -> list[Any] | None:
    sigma, rate = log_uniform(draw, 0.3, 8), log_uniform(draw, 1e-5, 0.9)
    epsilon = log_uniform(draw, 0.1 * rate, 20 / sigma)
    _, most = composed_delta([(SampledReplaceLoss(sigma, rate), 2)], epsilon, 60)
    if most < 1e-31:
        return None
    lower, upper = floats(two_step_replace_delta(sigma, rate, epsilon, 13))
    kept = lower > 1e-31 and upper - lower < 1e-10 * upper
    return [sigma, rate, 2, epsilon, lower, upper] if kept else None


def few(draw: random.Random) -> list[Any] | None:
    sigma, rate = log_uniform(draw, 0.3, 8), log_uniform(draw, 1e-5, 0.9)
    steps = round(math.exp(draw.uniform(math.log(2.51), math.log(30.49))))
    part = {"kind": "sampled gaussian, replace", "sigma": sigma, "rate": rate, "count": steps}
    row = {"direction": "both", "parts": [part]}
    epsilon = chosen_epsilon(row, draw.uniform(math.log(1e-30), math.log(1e-2)))
    if epsilon is None:
        return None
    losses = [(SampledReplaceLoss(sigma, rate), steps)]
    lower, upper = composed_delta(losses, epsilon, 1000)
    if not (lower > 1e-35 and upper < 0.3):
        return None
    needed = 1000 * math.sqrt((upper - lower) / (2e-5 * upper))  # the width falls as 1 / points^2
    lower, upper = composed_delta(losses, epsilon, round(min(max(needed, 2000), 10_000)))
    return [sigma, rate, steps, epsilon, lower, upper] if upper < 1.02 * lower else None


def many(draw: random.Random) -> list[Any] | None:
    sigma, rate = log_uniform(draw, 0.3, 8), log_uniform(draw, 1e-4, 0.9)
    steps = round(math.exp(draw.uniform(math.log(12), math.log(1e5))))
    mu = rate * math.sqrt(2 * steps * math.sinh(sigma**-2))
    if not 0.1 < mu < 30:
        return None
    # the central limit says where delta is between about 1e-2 and 1e-30; rare large losses make it larger
    epsilon = short(mu * mu / 2 + mu * draw.uniform(0.5, 11))
    try:
        lower, upper = floats(
            mixture_delta([SampledReplacePiece(sigma, rate, count=steps)], epsilon, 13, most_nodes=4000)
        )
    except (ArithmeticError, ValueError):  # more nodes than are worth waiting for, or no sensible tilt
        return None
    kept = lower > 1e-35 and upper - lower < 1e-10 * upper
    return [sigma, rate, steps, epsilon, lower, upper] if kept else None


def made(kind: str, number: int) -> list[Any] | None:
    return {"two": two, "few": few, "many": many}[kind](random.Random(f"replace/{kind}/{number}"))


if __name__ == "__main__":
    fill(DATA, DRAWS, made, 10)
