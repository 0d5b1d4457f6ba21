"""Write data/pairs.json: two Poisson-sampled Gaussian steps at several epsilons each, by quadrature in balls.

    python tests/truth/make_pairs.py    # continues where it stopped; some five minutes in all

What a method builds for one epsilon answers its neighbours, too. Rows [sigma, rate, direction, answers], answers a list
of [epsilon, lower, upper] with the middle of the epsilons first: delta lies between the two doubles, some 1e-12 of it
apart. Row i depends on i alone; "near" rows lie anywhere, "zero" rows next to the total variation.
"""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.progress import track

from truth.balls import floats
from truth.losses import SampledGaussianLoss
from truth.make_sampled import log_uniform, short
from truth.recursion import composed_delta
from truth.two_steps import two_step_delta

DATA = Path(__file__).parent / "data" / "pairs.json"
DRAWS = {"near": 640, "zero": 640}


def near(draw: random.Random) -> tuple[float, float, str, list[float]] | None:
    """Any epsilon, delta down to some 1e-45 (remove) or 1e-16 (add)."""
    sigma, rate = log_uniform(draw, 0.3, 8), min(log_uniform(draw, 1e-5, 1), 0.99)
    direction = "add" if draw.random() < 0.12 else "remove"
    if direction == "add":
        epsilon = -2 * math.log1p(-rate) * draw.uniform(0.05, 0.55)
    else:
        epsilon = math.exp(draw.uniform(math.log(0.2 * rate), math.log(20 / sigma)))
    _, upper = composed_delta([(SampledGaussianLoss(sigma, rate, direction), 2)], epsilon, 60)
    if upper < (1e-45 if direction == "remove" else 1e-15):  # the balls would take too long
        return None
    return sigma, rate, direction, [short(share * epsilon) for share in (1.0, 0.97, 1.03, 1.07)]


def zero(draw: random.Random) -> tuple[float, float, str, list[float]]:
    """Epsilons from zero on, in units of the losses that are not rare."""
    sigma, rate = log_uniform(draw, 0.5, 8), min(log_uniform(draw, 1e-4, 1), 0.99)
    direction = draw.choice(("remove", "add"))
    scale = rate * min(1.0, 1 / sigma)
    first = draw.choice((0.0, 1e-9, 0.01, 0.3))
    return sigma, rate, direction, [short(scale * (first + share)) for share in (0.0, 0.02, 0.1)]


def made(kind: str, number: int) -> list[Any] | None:
    draw = random.Random(f"pairs/{kind}/{number}")
    plan = near(draw) if kind == "near" else zero(draw)
    if plan is None:
        return None
    sigma, rate, direction, epsilons = plan
    answers = []
    for epsilon in epsilons:
        lower, upper = floats(two_step_delta(sigma, rate, epsilon, direction, 13))
        if lower > 1e-290 and upper - lower < 1e-10 * upper:
            answers.append([epsilon, lower, upper])
    return [sigma, rate, direction, answers] if answers and answers[0][0] == epsilons[0] else None


def main() -> None:
    found: dict[str, Any] = json.loads(DATA.read_text()) if DATA.exists() else {"done": [0, 0], "near": [], "zero": []}
    for which, (kind, number) in enumerate(DRAWS.items()):
        for index in track(range(found["done"][which], number), description=kind):
            row = made(kind, index)
            if row is not None:
                found[kind].append(row)
            found["done"][which] = index + 1
            if index % 20 == 19 or index + 1 == number:
                tables = (f'"{name}": [\n' + ",\n".join(map(json.dumps, found[name])) + "\n]" for name in DRAWS)
                DATA.write_text(f'{{"done": {found["done"]},\n' + ",\n".join(tables) + "}\n")


if __name__ == "__main__":
    main()
