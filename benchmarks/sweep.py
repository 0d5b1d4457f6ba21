"""How fast and how tight every kind of plan is answered: random plans over all mechanisms, samplers and mixes.

    python benchmarks/sweep.py                          # 2,000 plans; a run that was stopped goes on where it was
    python benchmarks/sweep.py --plans 200 --seed 7     # fewer, the same ones every time
    python benchmarks/sweep.py --seed 7 --index 123     # one plan again, with its trail of routes
    python benchmarks/sweep.py --report                 # the figures of what was recorded, nothing is asked

Plan i of a seed depends on (seed, i) alone: one to four different parts of any noise and any declared guarantee with a
dominating pair, alone or Poisson sampled, ADD_REMOVE or REPLACE where a theorem covers it, one to 10,000 times each;
delta is log-uniform in 1e-100..1e-2. Each is asked once, for its epsilon interval: processor time of that first answer,
no best of several, nothing of the plan kept from before. Goals: half of them within 5 ms, 99 % within 0.3 s, all within
2 s (a plan that takes more than ten is given up and counts as such); upper - lower <= 1e-6 max(upper, 1e-3) for all;
the process stays below 300 MB. Guarantees of moments alone (zCDP, Renyi, alpha-divergence) have no least epsilon: they
are asked and timed, and their width is no question.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dptally as dp
from dptally.accounting.certified.bounds import LogTarget, log_interval
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.route import Trail
from dptally.accounting.certified.tuning import STANDARD
from dptally.accounting.certified.walk import walk_epsilon

Draw = random.Random
STATE = Path(__file__).resolve().parent.parent / "build"
WIDTH, LEAST, PATIENCE = 1e-6, 1e-3, 10.0


def log_uniform(draw: Draw, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


# -- plans -----------------------------------------------------------------------------------------------------------


def noise(draw: Draw) -> dp.Mechanism:
    kinds: tuple[Callable[[], dp.Mechanism], ...] = (
        lambda: dp.Gaussian(log_uniform(draw, 0.3, 100.0), draw.choice((1.0, 1.0, log_uniform(draw, 0.1, 10.0)))),
        lambda: dp.Laplace(log_uniform(draw, 0.1, 100.0), draw.choice((1.0, 1.0, log_uniform(draw, 0.1, 10.0)))),
        lambda: dp.RandomizedResponse(draw.uniform(0.02, 0.98), draw.choice((2, 2, 3, 10, 1000, 10**6))),
        lambda: dp.DiscreteGaussian(log_uniform(draw, 0.5, 50.0), draw.choice((1, 1, 2, 5))),
        lambda: dp.DiscreteLaplace(log_uniform(draw, 0.3, 50.0), draw.choice((1, 1, 2, 5))),
    )
    return draw.choice(kinds)()


def guarantee(draw: Draw) -> dp.Mechanism:
    kinds: tuple[Callable[[], dp.Mechanism], ...] = (
        lambda: dp.PureDP(log_uniform(draw, 1e-3, 5.0)),
        lambda: dp.ApproxDP(log_uniform(draw, 1e-3, 5.0), log_uniform(draw, 1e-100, 1e-3)),
        lambda: dp.GaussianDP(log_uniform(draw, 1e-2, 5.0)),
        lambda: dp.Profile(
            points=[
                (log_uniform(draw, 0.01, 1.0), log_uniform(draw, 1e-4, 0.1)),
                (log_uniform(draw, 1.0, 5.0), log_uniform(draw, 1e-80, 1e-4)),
            ]
        ),
    )
    return draw.choice(kinds)()


def moments_only(draw: Draw) -> dp.Mechanism:
    kinds: tuple[Callable[[], dp.Mechanism], ...] = (
        lambda: dp.ZCDP(log_uniform(draw, 1e-4, 2.0)),
        lambda: dp.RenyiDP((2.0, 8.0, 32.0), tuple(sorted(log_uniform(draw, 1e-3, 3.0) for _ in range(3)))),
        lambda: dp.AlphaDP(draw.uniform(1.5, 10.0), log_uniform(draw, 1e-3, 1.0)),
    )
    return draw.choice(kinds)()


def sampled(draw: Draw) -> dp.Mechanism:
    rate = log_uniform(draw, 1e-4, 0.95)
    kind = draw.random()
    if kind < 0.5:
        adjacency = draw.choice((dp.ADD_REMOVE, dp.REPLACE))
        return dp.PoissonSampled(dp.Gaussian(log_uniform(draw, 0.4, 10.0)), rate, adjacency)
    if kind < 0.7:
        return dp.PoissonSampled(dp.Laplace(log_uniform(draw, 0.1, 20.0)), rate)
    inside = noise(draw) if kind < 0.9 else guarantee(draw)
    adjacency = draw.choice((dp.ADD_REMOVE, dp.REPLACE))
    try:
        mechanism = dp.PoissonSampled(inside, rate, adjacency)
        mechanism.directions()
    except dp.DptallyError:  # no theorem for REPLACE
        mechanism = dp.PoissonSampled(inside, rate)
    return mechanism


def part(draw: Draw) -> dp.Mechanism:
    count = round(log_uniform(draw, 1.0, 10.0 if draw.random() < 0.4 else 1e4))
    kind = draw.random()
    return count * (sampled(draw) if kind < 0.45 else noise(draw) if kind < 0.85 else guarantee(draw))


class Question(NamedTuple):
    """What is asked, and whether the plan determines an answer from both sides."""

    plan: dp.Mechanism
    delta: float
    determined: bool


def question(seed: int, index: int) -> Question:
    draw = random.Random(f"{seed}/{index}")
    plan = part(draw)
    for _ in range(draw.choice((0, 0, 0, 0, 0, 1, 1, 1, 2, 3))):
        plan = plan + part(draw)
    determined = draw.random() >= 0.03
    if not determined:
        plan = plan + moments_only(draw)
    return Question(plan, log_uniform(draw, 1e-100, 1e-2), determined)


# -- asking ----------------------------------------------------------------------------------------------------------


def resident() -> float:
    """Peak resident size of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Overdue(BaseException):
    """A plan took more than the patience in processor time."""


def _give_up(*_: object) -> None:
    raise Overdue


def ask(seed: int, index: int) -> dict[str, Any]:
    asked = question(seed, index)
    plan = dp.from_json(dp.to_json(asked.plan))  # as read from a file: nothing was kept in it
    start = time.thread_time()
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        box = plan.epsilon_interval(asked.delta)
    except Overdue:
        box = dp.Interval(0.0, math.inf, "given up")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    seconds = time.thread_time() - start
    exact = box.lower == box.upper
    width = 0.0 if exact or not asked.determined else (box.upper - box.lower) / max(box.upper, LEAST)
    if box.upper == math.inf and not exact:
        width = math.inf if asked.determined else 0.0
    return {
        "index": index,
        "plan": repr(asked.plan),
        "delta": asked.delta,
        "lower": box.lower,
        "upper": box.upper,
        "method": box.method if asked.determined else "moments only",
        "seconds": seconds,
        "width": width,
        "resident": resident(),
    }


def recorded(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


# -- figures ---------------------------------------------------------------------------------------------------------


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, math.ceil(share * len(values)) - 1)] if values else math.nan


def shown(rows: list[dict[str, Any]], worst: int) -> str:
    """The table of the routes, the goals, and the worst plans by time and by width."""
    routes: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        routes[row["method"].split(" (")[0]].append(row)
    out = [
        "| route | plans | p50 ms | p90 ms | p99 ms | max ms | share of the time | wider than 1e-6 |",
        "|---" * 8 + "|",
    ]
    total = sum(row["seconds"] for row in rows)
    for name, some in [("all", rows), *sorted(routes.items(), key=lambda item: -len(item[1]))]:
        times = [1e3 * row["seconds"] for row in some]
        cells = [f"{quantile(times, p):.3g}" for p in (0.5, 0.9, 0.99, 1.0)]
        wide = sum(row["width"] > WIDTH for row in some)
        out.append(f"| {name} | {len(some)} | {' | '.join(cells)} | {sum(times) / total / 10:.0f} % | {wide} |")
    out.append("")
    out.append(f"peak memory {max(row['resident'] for row in rows):.0f} MB, mean {1e3 * total / len(rows):.1f} ms")
    for key in ("seconds", "width"):
        out.append(f"\nworst by {key}:")
        for row in sorted(rows, key=lambda r: -r[key])[:worst]:
            if key == "seconds" or row["width"] > WIDTH:
                ends = f"[{row['lower']:.9g}, {row['upper']:.9g}]"
                out.append(
                    f"{row['index']:6d} {1e3 * row['seconds']:8.1f} ms width {row['width']:.1e} {row['method']} {ends}"
                    f"\n       ({row['plan']}).epsilon({row['delta']!r})"
                )
    return "\n".join(out)


def trail(asked: Question) -> None:
    """Every route that was asked of each direction for its finite losses, with what it gave."""
    for composition in asked.plan.directions():
        visits: Trail = []
        if composition.determined:
            walk_epsilon(Plan(composition, 0.0, STANDARD), LogTarget(*log_interval(asked.delta), asked.delta), visits)
        print(composition, *visits, sep="\n    ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--index", type=int, help="repeat this one plan")
    parser.add_argument("--state", type=Path, help="where answers are kept (build/sweep-<seed>.jsonl)")
    parser.add_argument("--fresh", action="store_true", help="forget what was recorded")
    parser.add_argument("--report", action="store_true", help="ask nothing")
    parser.add_argument("--worst", type=int, default=10)
    chosen = parser.parse_args()
    signal.signal(signal.SIGPROF, _give_up)
    if chosen.index is not None:
        print(json.dumps(ask(chosen.seed, chosen.index), indent=1))
        trail(question(chosen.seed, chosen.index))
        return
    path = chosen.state or STATE / f"sweep-{chosen.seed}.jsonl"
    path.parent.mkdir(exist_ok=True)
    if chosen.fresh:
        path.unlink(missing_ok=True)
    rows = list(recorded(path))
    if not chosen.report:
        for warm in range(20):  # every route's module is imported once
            ask(chosen.seed, -1 - warm)
        with path.open("a", encoding="utf-8") as out:
            for index in range(len(rows), chosen.plans):
                rows.append(ask(chosen.seed, index))
                out.write(json.dumps(rows[-1]) + "\n")
                out.flush()
    print(shown(rows[: chosen.plans], chosen.worst))


if __name__ == "__main__":
    main()
