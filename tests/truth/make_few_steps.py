"""Write data/few_steps.json: two-sided truths of plans of 2 to 30 steps, by the recursion of recursion.py.

    python tests/truth/make_few_steps.py --check 7  # every seventh row again, on half as many points: must overlap

Row i depends on i alone. delta is drawn between 1e-30 and 1e-2 and eps chosen to match; the bounds are of delta(eps).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from flint import arb
from rich.progress import track

from truth.losses import Loss
from truth.plans import Row, losses_of
from truth.recursion import composed_delta

DATA = Path(__file__).parent / "data" / "few_steps.json"

#: family and how many rows of it
FAMILIES = {"remove": 110, "add": 90, "tiny rate": 40, "replace": 40, "sampled laplace": 30, "laplace": 10, "mix": 40}


def short(value: float) -> float:
    """Three digits: the rows are read by people too."""
    return float(f"{value:.3g}")


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    return short(math.exp(draw.uniform(math.log(low), math.log(high))))


def plan(family: str, draw: random.Random) -> tuple[str, list[dict[str, Any]]]:
    """(direction, parts) without an epsilon."""
    steps = round(log_uniform(draw, 2, 30.4))
    direction = draw.choice(("remove", "add"))
    sigma, rate = log_uniform(draw, 0.3, 10), log_uniform(draw, 1e-5, 1)
    rate = min(rate, 0.999)
    if family == "remove" or family == "add":
        return family, [{"kind": "sampled gaussian", "sigma": sigma, "rate": rate, "count": steps}]
    if family == "tiny rate":
        sigma, rate = log_uniform(draw, 0.3, 1.2), log_uniform(draw, 1e-8, 1e-3)
        return "remove", [{"kind": "sampled gaussian", "sigma": sigma, "rate": rate, "count": steps}]
    if family == "replace":
        return "both", [{"kind": "sampled gaussian, replace", "sigma": sigma, "rate": rate, "count": min(steps, 12)}]
    if family == "sampled laplace":
        scale, rate = log_uniform(draw, 0.3, 10), max(rate, 1e-3)
        return direction, [{"kind": "sampled laplace", "scale": scale, "rate": rate, "count": min(steps, 12)}]
    if family == "laplace":
        return "both", [{"kind": "laplace", "scale": log_uniform(draw, 0.2, 10), "count": steps}]
    first = {"kind": "sampled gaussian", "sigma": max(sigma, 0.5), "rate": max(rate, 1e-3), "count": draw.randint(1, 6)}
    others = [
        {"kind": "gaussian", "sigma": log_uniform(draw, 1, 10), "count": 1},
        {"kind": "response", "p": short(draw.uniform(0.51, 0.9)), "count": draw.randint(1, 5)},
        {"kind": "laplace", "scale": log_uniform(draw, 1, 10), "count": draw.randint(1, 4)},
    ]
    sigma, rate = log_uniform(draw, 0.5, 3), log_uniform(draw, 1e-2, 0.5)
    others.append({"kind": "sampled gaussian", "sigma": sigma, "rate": rate, "count": 2})
    return direction, [first, *draw.sample(others, draw.randint(1, 2))]


def start(parts: list[tuple[Loss, int]], log_delta: float) -> float:
    """An eps that is surely not too large, or nearly so: that of one step alone, or a little of a typical loss."""
    target = arb(log_delta).exp()
    best = 0.0
    for loss, count in parts:
        low, high = math.log(1e-7), math.log(300)
        for _ in range(12):
            middle = 0.5 * (low + high)
            x = arb(math.exp(middle))
            p, q = loss.above(x)
            if p - x.exp() * q > target or p > arb(0.2) / count:
                low = middle
            else:
                high = middle
        best = max(best, math.exp(low))
    return best


def chosen_epsilon(row: Row, log_delta: float) -> float | None:
    """An eps whose delta is near the target, from coarse lattices; None where delta(0+) is below it."""
    parts = losses_of(row)

    def size(epsilon: float) -> float:
        lower, upper = composed_delta(parts, epsilon, 160)
        middle = math.sqrt(lower * upper) if lower > 0 else upper * 1e-3
        return math.log(max(middle, 1e-290))

    high = start(parts, log_delta)
    before = size(high)
    if before < log_delta:
        return None
    while (found := size(2 * high)) > log_delta and high < 100:
        high, before = 2 * high, found
    a, b, fa, fb = high, 2 * high, before, found
    for _ in range(6):  # regula falsi in log eps, bisecting where delta ends abruptly
        share = (fa - log_delta) / (fa - fb) if fa > fb > -600 else 0.5
        middle = a * (b / a) ** min(max(share, 0.1), 0.9)
        value = size(middle)
        if abs(value - log_delta) < 1.5:
            return short(middle)
        a, b, fa, fb = (middle, b, value, fb) if value > log_delta else (a, middle, fa, value)
    return short(0.995 * a)


def rows() -> Iterator[tuple[str, int]]:
    """Families take turns, so that a part of the table is already a fair sample."""
    for number in range(max(FAMILIES.values())):
        for family, most in FAMILIES.items():
            if number < most:
                yield family, number


def made(family: str, number: int) -> Row:
    for attempt in range(20):
        draw = random.Random(f"{family}/{number}/{attempt}")
        direction, parts = plan(family, draw)
        row: Row = {"family": family, "number": number, "direction": direction, "parts": parts}
        epsilon = chosen_epsilon(row, draw.uniform(math.log(1e-30), math.log(1e-2)))
        if epsilon is None:
            continue
        lower, upper = composed_delta(losses_of(row), epsilon, 1500)
        if not (lower > 0 and upper < 0.9):
            continue
        needed = 1500 * math.sqrt((upper - lower) / (3e-5 * upper))  # the width falls as 1 / points^2; aim: 1e-6 of eps
        most = 16384 if sum(part["count"] for part in parts) <= 10 else 10240
        lower, upper = composed_delta(losses_of(row), epsilon, round(min(max(needed, 3000), most)))
        if lower > 1e-40 and upper < 0.9:
            return row | {"epsilon": epsilon, "lower": lower, "upper": upper}
    raise ArithmeticError(f"no plan for {family} {number}")


def check(table: list[Row], every: int) -> None:
    """Coarser lattices enclose the same truths."""
    for row in track(table[::every], description="again"):
        lower, upper = composed_delta(losses_of(row), row["epsilon"], 3000)
        if not (lower <= row["upper"] and row["lower"] <= upper):
            raise ArithmeticError(f"disjoint: {row} and {lower}, {upper}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", type=int, metavar="EVERY")
    chosen = parser.parse_args()
    table: list[Row] = json.loads(DATA.read_text()) if DATA.exists() else []
    if chosen.check:
        check(table, chosen.check)
        return
    done = {(row["family"], row["number"]) for row in table}
    for family, number in track([key for key in rows() if key not in done], description="truths"):
        table.append(made(family, number))
        DATA.write_text("[\n" + ",\n".join(json.dumps(row) for row in table) + "\n]\n")


if __name__ == "__main__":
    main()
