"""Random plans against independent truths: every certified interval must contain the truth. Prints the seeds
of failures.

Plan i of a run depends on (seed, i) alone, so `--seed S --index I` repeats one failure. Truths come from
tests/truth: closed forms, the residue sum of k-fold Laplace, and contour inversion in ball arithmetic (slow,
so drawn rarely).
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import dptally as dp
import truth
from dptally.accounting import certified

Truth = Callable[[Any], Any]  # epsilon -> a ball around delta


@dataclass(frozen=True)
class Case:
    """A plan, which of its directions is asked, and the truth of that direction."""

    plan: Any
    direction: int
    delta_of: Truth
    infinity: Any = 0.0  # mass at infinity: below it no epsilon is finite


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def gaussian(draw: random.Random) -> Case:
    sigma, sensitivity, n = (
        log_uniform(draw, 0.05, 200),
        log_uniform(draw, 0.1, 10),
        draw.choice((1, 1, 2, 7, 1000)),
    )
    return Case(n * dp.Gaussian(sigma, sensitivity), 0, lambda e: truth.sigma_delta(sigma, e, n, sensitivity))


def response(draw: random.Random) -> Case:
    n, categories = draw.choice((1, 2, 5, 20, 60)), draw.choice((2, 2, 3, 10))
    p = draw.uniform(1 / categories + 1e-3, 0.98)
    n = min(n, 20) if categories > 2 else n
    return Case(
        n * dp.RandomizedResponse(p, categories),
        0,
        lambda e: truth.randomized_response_delta(p, categories, n, e),
    )


def guarantee(draw: random.Random) -> Case:
    epsilon, n = log_uniform(draw, 1e-3, 5), draw.choice((1, 2, 10, 60))
    delta = draw.choice((0.0, log_uniform(draw, 1e-14, 1e-3)))
    mass = 1 - (1 - Fraction(delta)) ** n
    return Case(n * dp.ApproxDP(epsilon, delta), 0, lambda e: truth.approx_delta(epsilon, delta, n, e), mass)


def laplace(draw: random.Random) -> Case:
    scale, n = log_uniform(draw, 0.3, 100), draw.choice((1, 2, 3, 8, 30, 80))
    reach = 1 / Fraction(scale)
    return Case(n * dp.Laplace(scale), 0, lambda e: truth.laplace_delta(reach, n, e))


def one_step(draw: random.Random) -> Case:
    sigma, rate, side = log_uniform(draw, 0.2, 20), log_uniform(draw, 1e-6, 0.999), draw.randrange(2)
    return Case(
        dp.dpsgd(sigma, rate, 1),
        side,
        lambda e: truth.one_step_delta(sigma, rate, e, ("remove", "add")[side]),
    )


def with_gaussian(draw: random.Random) -> Case:
    """A Gaussian and n equal binary responses: the Gaussian profile averaged over a binomial loss."""
    sigma, p, n = log_uniform(draw, 0.3, 30), draw.uniform(0.51, 0.95), draw.choice((1, 4, 15))

    def delta_of(e: Any) -> Any:
        with truth.balls.precision(300):
            a, b = truth.ball(p), 1 - truth.ball(p)
            step, mu = (a / b).log(), 1 / truth.ball(sigma)
            terms = (
                math.comb(n, j)
                * a**j
                * b ** (n - j)
                * truth.gaussian_delta(mu, truth.ball(e) - (2 * j - n) * step)
                for j in range(n + 1)
            )
            return sum(terms, truth.ball(0))

    return Case(dp.Gaussian(sigma) + n * dp.RandomizedResponse(p), 0, delta_of)


def dpsgd(draw: random.Random) -> Case:
    sigma, rate = log_uniform(draw, 0.4, 8), log_uniform(draw, 1e-3, 0.9)
    steps, side = round(log_uniform(draw, 100, 1e7)), draw.randrange(2)
    return Case(
        dp.dpsgd(sigma, rate, steps),
        side,
        lambda e: truth.sampled_gaussian_delta(sigma, rate, steps, e, ("remove", "add")[side], digits=16),
    )


def two_steps(draw: random.Random) -> Case:
    sigma, rate, side = log_uniform(draw, 0.4, 4), log_uniform(draw, 1e-4, 0.9), draw.randrange(2)
    return Case(
        dp.dpsgd(sigma, rate, 2),
        side,
        lambda e: truth.sampled_gaussian_delta(sigma, rate, 2, e, ("remove", "add")[side], digits=12),
    )


#: family -> how often it is drawn; the last two cost about a second a plan
FAMILIES: dict[str, tuple[Callable[[random.Random], Case], float]] = {
    "gaussian": (gaussian, 20),
    "response": (response, 20),
    "guarantee": (guarantee, 20),
    "laplace": (laplace, 15),
    "one step": (one_step, 20),
    "with gaussian": (with_gaussian, 10),
    "two steps": (two_steps, 0.3),
    "dpsgd": (dpsgd, 0.2),
}


def small(draw: random.Random) -> float:
    """delta: mostly ordinary, sometimes tiny."""
    return log_uniform(draw, 1e-30, 0.1) if draw.random() < 0.9 else log_uniform(draw, 1e-300, 1e-30)


def check(job: tuple[int, int, tuple[str, ...]]) -> tuple[int, str, str, str, float]:
    """(index, family, verdict, description, relative width): verdict is "contained", "unchecked" or a
    failure.
    """
    seed, index, families = job
    draw = random.Random(f"{seed}/{index}")
    family = draw.choices(families, [FAMILIES[name][1] for name in families])[0]
    case = FAMILIES[family][0](draw)
    directions = case.plan.directions()
    composition = directions[min(case.direction, len(directions) - 1)]
    side = f" direction {case.direction}"
    if draw.random() < 0.5:
        epsilon = draw.choice((0.0, log_uniform(draw, 1e-6, 30)))
        box = certified.delta_interval([composition], epsilon)
        text = f"{case.plan!r}{side} delta({epsilon!r}) in [{box.lower!r}, {box.upper!r}] {box.method}"
        try:
            value = case.delta_of(epsilon)
        except ArithmeticError as reason:
            return index, family, "unchecked", f"{text}: {reason}", math.nan
        inside = not truth.ball(box.lower) > value and not truth.ball(box.upper) < value
        width = box.width / box.upper if box.upper > 0 else 0.0
    else:
        delta = small(draw)
        box = certified.epsilon_interval([composition], delta)
        text = f"{case.plan!r}{side} epsilon({delta!r}) in [{box.lower!r}, {box.upper!r}] {box.method}"
        try:
            inside = _epsilon_inside(case, box, delta)
        except ArithmeticError as reason:
            return index, family, "unchecked", f"{text}: {reason}", math.nan
        width = (
            box.width / box.upper
            if 0 < box.upper < math.inf
            else (0.0 if box.lower == box.upper else math.inf)
        )
    return index, family, "contained" if inside else "NOT CONTAINED", text, width


def _epsilon_inside(case: Case, box: Any, delta: float) -> bool:
    if box.lower == math.inf:
        return bool(Fraction(delta) < case.infinity)
    if box.upper == math.inf:
        return bool(Fraction(delta) <= case.infinity) or truth.epsilon_is_within(
            box.lower, math.inf, delta, case.delta_of
        )
    return truth.epsilon_is_within(box.lower, box.upper, delta, case.delta_of)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--index", type=int, help="repeat this one plan")
    parser.add_argument("--family", action="append", choices=list(FAMILIES), help="only these families")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    chosen = parser.parse_args()
    console = Console()
    families = tuple(chosen.family or FAMILIES)
    if chosen.index is not None:
        console.print(check((chosen.seed, chosen.index, families)), markup=False)
        return
    console.print(f"seed {chosen.seed}, {chosen.plans} plans")
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    wide: Counter[str] = Counter()
    failures = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    jobs = ((chosen.seed, index, families) for index in range(chosen.plans))
    with multiprocessing.Pool(chosen.jobs) as pool, Progress(*columns, console=console) as progress:
        task = progress.add_task("plans", total=chosen.plans)
        for index, family, verdict, text, width in pool.imap_unordered(check, jobs, chunksize=16):
            verdicts[family][verdict] += 1
            wide[family] += width > 1e-6
            if verdict == "NOT CONTAINED":
                failures += 1
                console.print(
                    f"FAILURE --seed {chosen.seed} --index {index} ({family}): {text}", markup=False
                )
            progress.update(task, advance=1, description=f"plans ({failures} failures)")
    for family, counts in verdicts.items():
        console.print(f"{family:14} {dict(counts)}, {wide[family]} wider than 1e-6 relative")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
