"""Random plans against independent truths, every code path by itself: every certified interval must contain the truth.

    make soak                                   # 100,000 plans
    make soak SOAK='--plans 2000 --seed 7'      # fewer, the same ones every time
    make soak SOAK='--resume'                   # continue a run that was stopped
    make soak SOAK='--seed 7 --index 123'       # one plan again

Plan i of a run depends on (seed, i) alone. Truths come from tests/truth: closed forms in balls, residues of k-fold
Laplace, binomial and lattice sums, the tables of sampled Gaussians, and (rarely, they are slow) quadrature and
inversion in balls for plans that no table holds.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "accounting" / "certified"))

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import dptally as dp
import tables
import truth
from dptally.accounting.certified import engine
from dptally.accounting.certified.contour import chernoff, inversion
from dptally.accounting.certified.contour import smoothed as smoothing
from dptally.accounting.certified.lattice import binomial
from dptally.accounting.certified.lattice import bracket as lattice
from dptally.accounting.certified.lattice import decisive as few_steps
from dptally.accounting.certified.route import bounds_at
from dptally.accounting.certified.routes import ROUTES
from dptally.accounting.certified.tuning import STANDARD
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.laws.gaussian import GaussianLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from truth import stored
from truth.balls import precision
from truth.discrete import discrete_gaussian_delta
from truth.losses import LaplaceLoss, Loss, SampledReplaceLoss
from walking import profiles_near

Draw = random.Random
STATE = Path(__file__).resolve().parent.parent / "build" / "soak.json"


@dataclass(frozen=True)
class Result:
    """Whether the truth was inside (None: it could not be had), what was asked, and the relative width."""

    inside: bool | None
    text: str
    width: float


def log_uniform(draw: Draw, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def small(draw: Draw) -> float:
    """delta: mostly ordinary, sometimes tiny."""
    return log_uniform(draw, 1e-30, 0.1) if draw.random() < 0.9 else log_uniform(draw, 1e-290, 1e-30)


# -- two ways to judge -----------------------------------------------------------------------------------------------


def asked(
    draw: Draw, plan: Any, delta_of: Callable[[float], Any], scale: float, side: int = 0, least: float = 0.0
) -> Result:
    """One question to the engine, delta or epsilon, about one direction; ``least``: the smallest delta asked for."""
    directions = plan.directions()
    composition = directions[min(side, len(directions) - 1)]
    delta_asked = draw.random() < 0.5
    if delta_asked:
        at = scale * draw.choice((0.0, draw.random(), log_uniform(draw, 1e-4, 1)))
        box = engine.delta_interval([composition], at)
    else:
        at = max(small(draw), least)
        box = engine.epsilon_interval([composition], at)
    text = f"{plan!r} side {side} {'delta' if delta_asked else 'epsilon'}({at!r}) in [{box.lower!r}, {box.upper!r}]"
    try:
        if delta_asked:
            value = delta_of(at)
            inside = not truth.ball(box.lower) > value and not truth.ball(box.upper) < value
        else:
            target = truth.ball(at)
            inside = box.lower <= box.upper
            inside &= box.upper == math.inf or not delta_of(box.upper) > target
            inside &= box.lower <= 0 or not delta_of(box.lower) < target
    except (ArithmeticError, ValueError) as reason:
        return Result(None, f"{text}: {reason}", math.nan)
    width = (box.upper - box.lower) / box.upper if 0 < box.upper < math.inf else float(box.lower != box.upper)
    return Result(bool(inside), f"{text} by {box.method}", width)


def bounded(bounds: tuple[float, float] | None, exact: tuple[float, float], text: str) -> Result:
    """Bounds of log delta against a truth lower .. upper; None where the route does not apply."""
    if bounds is None or not exact[0] > 0:
        return Result(None, text, math.nan)
    inside = tables.log_outside(*bounds, exact) <= 0
    return Result(inside, f"{text}: log delta in {bounds}, truth {exact}", bounds[1] - bounds[0])


def profile_of(loss: Loss) -> Callable[[float], Any]:
    def delta_of(epsilon: float) -> Any:
        with precision(400):
            e = truth.ball(epsilon)
            p, q = loss.above(e)
            return p - e.exp() * q

    return delta_of


# -- one step: closed forms ------------------------------------------------------------------------------------------


def one_step(draw: Draw) -> Result:
    sigma, rate, side = log_uniform(draw, 0.2, 20), log_uniform(draw, 1e-6, 0.999), draw.randrange(2)
    direction = tables.SIDES[side]
    scale = -math.log1p(-rate) if side else math.log1p(rate * math.expm1(min(4 / sigma, 50)))
    return asked(draw, dp.dpsgd(sigma, rate, 1), lambda e: truth.one_step_delta(sigma, rate, e, direction), scale, side)


def one_step_others(draw: Draw) -> Result:
    kind, side = draw.randrange(5), draw.randrange(2)
    if kind == 0:
        sigma, rate = log_uniform(draw, 0.2, 20), log_uniform(draw, 1e-6, 0.999)
        delta_of = profile_of(SampledReplaceLoss(sigma, rate))
        return asked(draw, dp.dpsgd(sigma, rate, 1, dp.REPLACE), delta_of, 3 * rate / sigma)
    if kind == 1:
        scale, rate = log_uniform(draw, 0.2, 30), log_uniform(draw, 1e-4, 1)
        loss = LaplaceLoss(1 / Fraction(scale), rate, tables.SIDES[side])
        top = loss.most()
        assert top is not None
        return asked(draw, dp.PoissonSampled(dp.Laplace(scale), rate), profile_of(loss), 1.01 * float(top), side)
    if kind == 2:
        p, categories = draw.uniform(0.55, 0.98), draw.choice((2, 3, 10))
        top = math.log(p * (categories - 1) / (1 - p))
        plan = dp.RandomizedResponse(p, categories)
        return asked(draw, plan, lambda e: truth.randomized_response_delta(p, categories, 1, e), 1.01 * top)
    if kind == 3:
        width = log_uniform(draw, 0.1, 50)
        return asked(draw, dp.Laplace(width), lambda e: truth.laplace_delta(1 / Fraction(width), 1, e), 1.01 / width)
    sigma, n = log_uniform(draw, 0.05, 200), draw.choice((1, 2, 7, 1000))
    return asked(draw, n * dp.Gaussian(sigma), lambda e: truth.sigma_delta(sigma, e, n), 6 * n / sigma)


# -- contours --------------------------------------------------------------------------------------------------------


def contour_gaussian(draw: Draw) -> Result:
    """Gaussians that were not collapsed: the identity and the sum itself, delta to 1e-290."""
    mu, count = log_uniform(draw, 0.01, 5), draw.choice((2, 3, 10, 1000, 10**6))
    variance = mu * mu / count
    epsilon = 0.5 * mu * mu + mu * draw.uniform(-1, 35)
    composition = Composition(((GaussianLaw(variance), count),))
    found = inversion.for_epsilon(composition, epsilon * draw.choice((1.0, 0.9, 1.1)))
    with precision(300):
        exact = truth.floats(truth.gaussian_delta((truth.ball(variance) * count).sqrt(), epsilon))
    return bounded(found and found.log_delta(epsilon)[:2], exact, f"{count} Gaussians of {variance!r} at {epsilon!r}")


NEAR = 1 - 2.0**-44


def near_one(draw: Draw, counts: tuple[int, ...]) -> tuple[Composition, float, tuple[float, float], str]:
    """Sampled steps at a rate next to 1: q^T delta_G(eps - T log q) <= delta(eps) <= delta_G(eps) (remove)."""
    count = draw.choice(counts)
    sigma = max(0.4, math.sqrt(count) / log_uniform(draw, 0.03, 5))
    mu = math.sqrt(count) / sigma
    epsilon = max(0.5 * mu * mu + mu * draw.uniform(-0.5, 14), 1e-6)
    with precision(300):
        exact = truth.ball(count).sqrt() / truth.ball(sigma)
        upper = truth.gaussian_delta(exact, epsilon)
        moved = truth.ball(epsilon) - count * truth.ball(NEAR).log()
        lower = truth.ball(NEAR) ** count * truth.gaussian_delta(exact, moved)
        bounds = truth.floats(lower)[0], truth.floats(upper)[1]
    composition = Composition.of([(SampledGaussianLaw(NEAR, sigma, Direction.REMOVE), count)])
    return composition, epsilon, bounds, f"{composition!r} at {epsilon!r}"


def contour_sampled(draw: Draw) -> Result:
    """Node sums by matrix products, through all the machinery of sampled steps."""
    composition, epsilon, exact, text = near_one(draw, (2, 5, 20, 100, 1000, 100_000))
    found = inversion.for_epsilon(composition, epsilon)
    return bounded(found and found.log_delta(epsilon)[:2], exact, text)


@cache
def sharp_rows(*, pairs: bool) -> list[Any]:
    return [row for row in tables.sampled() if (row[2] == 2) is pairs]


def contour_table(draw: Draw) -> Result:
    *plan, epsilon, lower, upper = draw.choice(sharp_rows(pairs=False))
    composition = tables.sampled_composition(*plan)
    built = epsilon * draw.uniform(0.85, 1.15)
    found = inversion.for_epsilon(composition, built)
    text = f"{plan} at {epsilon!r}, built at {built!r}"
    return bounded(found and found.log_delta(epsilon)[:2], (lower, upper), text)


def with_gaussian(draw: Draw) -> Result:
    """A Gaussian and n equal binary responses: the Gaussian profile averaged over a binomial loss."""
    sigma, p, n = log_uniform(draw, 0.3, 30), draw.uniform(0.51, 0.95), draw.choice((1, 4, 9))

    def delta_of(e: Any) -> Any:
        with precision(300):
            a, b = truth.ball(p), 1 - truth.ball(p)
            step, mu = (a / b).log(), 1 / truth.ball(sigma)
            terms = (
                math.comb(n, j) * a**j * b ** (n - j) * truth.gaussian_delta(mu, truth.ball(e) - (2 * j - n) * step)
                for j in range(n + 1)
            )
            return sum(terms, truth.ball(0))

    scale = 6 / sigma + n * math.log(p / (1 - p))
    return asked(draw, dp.Gaussian(sigma) + n * dp.RandomizedResponse(p), delta_of, scale)


# -- few steps and jumps ---------------------------------------------------------------------------------------------


def few_coarse(draw: Draw) -> Result:
    """Two steps on a lattice of any coarseness: its certificate holds for every step."""
    *plan, epsilon, lower, upper = draw.choice(sharp_rows(pairs=True))
    composition = tables.sampled_composition(*plan)
    coarse = replace(STANDARD.deciding, width=log_uniform(draw, 1e-5, 1e-2))
    found = few_steps.for_epsilon(composition, epsilon, chernoff.chernoff_log_delta(composition, epsilon), coarse)
    return bounded(found and found.log_delta(epsilon)[:2], (lower, upper), f"{plan} at {epsilon!r}")


@cache
def few_rows() -> list[Any]:
    return tables.few_steps()


@cache
def replaced_rows() -> list[stored.Replaced]:
    return stored.replaced()


def jump_sums(draw: Draw) -> Result:
    """Every answer of every route but the lattices, made for an eps nearby; the worst is reported."""
    kind = draw.randrange(6)
    if kind == 0:
        composition, epsilon, exact, text = near_one(draw, (30, 100, 400))
    elif kind == 1:
        row = draw.choice([row for row in few_rows() if row["family"] in ("remove", "tiny rate", "add", "mix")])
        composition, epsilon, exact = tables.composition_of(row), row["epsilon"], (row["lower"], row["upper"])
        text = repr(row)
    elif kind in (2, 3):
        plan = draw.choice(replaced_rows())
        composition = dp.dpsgd(plan.sigma, plan.rate, plan.steps, dp.REPLACE).directions()[0]
        epsilon, *exact = plan.answer
        text = repr(plan)
    else:
        *plan, epsilon, lower, upper = draw.choice(sharp_rows(pairs=kind == 4))
        composition, exact, text = tables.sampled_composition(*plan), (lower, upper), f"{plan} at {epsilon!r}"
    built = epsilon * draw.uniform(0.9, 1.05)
    results = [
        bounded((low, high), tuple(exact), f"{route.name} built at {built!r}: {text}")
        for route in ROUTES
        if "lattice" not in route.name
        for found in profiles_near(route, composition, built)
        for low, high, _ in [bounds_at(found, epsilon)]
    ]
    return min(results, key=lambda r: bool(r.inside), default=Result(None, text, math.nan))


def few_table(draw: Draw) -> Result:
    """2 to 30 steps of any law through the engine against the two-sided truths of the recursion."""
    row = draw.choice(few_rows())
    composition, epsilon, question = tables.composition_of(row), row["epsilon"], draw.randrange(3)
    if question == 0:
        box = engine.delta_interval([composition], epsilon)
        inside = box.lower <= row["upper"] and row["lower"] <= box.upper
    else:
        box = engine.epsilon_interval([composition], row["lower"] if question == 1 else row["upper"])
        inside = epsilon <= box.upper if question == 1 else box.lower <= epsilon
    width = (box.upper - box.lower) / box.upper if box.upper > 0 else 0.0
    return Result(inside, f"{row} question {question} [{box.lower!r}, {box.upper!r}] by {box.method}", width)


def two_steps(draw: Draw) -> Result:
    sigma, rate, side = log_uniform(draw, 0.4, 4), log_uniform(draw, 1e-4, 0.9), draw.randrange(2)
    scale = -1.2 * math.log1p(-rate) if side else math.log1p(rate * math.expm1(min(3 / sigma, 20)))
    return asked(
        draw,
        dp.dpsgd(sigma, rate, 2),
        lambda e: truth.sampled_gaussian_delta(sigma, rate, 2, e, tables.SIDES[side], digits=12),
        scale,
        side,
        1e-12,
    )


def dpsgd(draw: Draw) -> Result:
    sigma, rate = log_uniform(draw, 0.5, 8), log_uniform(draw, 1e-3, 0.9)
    steps, side = round(log_uniform(draw, 100, 1e6)), draw.randrange(2)
    mu = rate * math.sqrt(steps * math.expm1(sigma**-2))
    if not 0.05 < mu < 30:
        steps = max(30, round(steps * (log_uniform(draw, 0.3, 3) / mu) ** 2))
        mu = rate * math.sqrt(steps * math.expm1(sigma**-2))
    return asked(
        draw,
        dp.dpsgd(sigma, rate, steps),
        lambda e: truth.sampled_gaussian_delta(sigma, rate, steps, e, tables.SIDES[side], digits=14),
        mu * mu / 2 + 8 * mu,
        side,
        1e-40,
    )


# -- lattices and binomial sums --------------------------------------------------------------------------------------


def lattice_laplace(draw: Draw) -> Result:
    scale, count = log_uniform(draw, 0.3, 30), draw.choice((2, 3, 5, 9, 20))
    epsilon, effort = count / scale * draw.uniform(0.02, 0.97), log_uniform(draw, 3e-3, 0.05)
    bounds = lattice.log_delta((count * dp.Laplace(scale)).directions()[0], epsilon, effort=effort)
    exact = truth.floats(truth.laplace_delta(1 / Fraction(scale), count, epsilon))
    return bounded(bounds, exact, f"{count} * Laplace({scale!r}) at {epsilon!r}, effort {effort!r}")


def lattice_discrete(draw: Draw) -> Result:
    sigma, shift, count = log_uniform(draw, 0.4, 3), draw.choice((1, 1, 2)), draw.choice((2, 3, 6))
    mean = count * shift**2 / (2 * sigma**2)
    epsilon = max(mean + shift / sigma * math.sqrt(count) * draw.uniform(-0.5, 7), 1e-3)
    effort = log_uniform(draw, 3e-3, 0.05)
    bounds = lattice.log_delta((count * dp.DiscreteGaussian(sigma, shift)).directions()[0], epsilon, effort=effort)
    exact = truth.floats(discrete_gaussian_delta(sigma, shift, count, epsilon))
    return bounded(bounds, exact, f"{count} * DiscreteGaussian({sigma!r}, {shift}) at {epsilon!r}, effort {effort!r}")


def different_responses(draw: Draw) -> tuple[Composition, float, tuple[float, float], str]:
    """Two or three kinds of binary responses, all outcomes added up in balls."""
    parts = [(draw.uniform(0.52, 0.9), draw.choice((1, 2, 3))) for _ in range(draw.choice((2, 3)))]
    epsilon = draw.uniform(0.02, 0.95) * sum(count * math.log(p / (1 - p)) for p, count in parts)
    first, *others = (count * dp.RandomizedResponse(p) for p, count in parts)
    with precision(200):
        outcomes = [(truth.ball(1), truth.ball(0))]
        for p, count in parts:
            a, b = truth.ball(p), 1 - truth.ball(p)
            step = (a / b).log()
            outcomes = [
                (mass * math.comb(count, j) * a**j * b ** (count - j), loss + (2 * j - count) * step)
                for mass, loss in outcomes
                for j in range(count + 1)
            ]
        gains = (m * (1 - (truth.ball(epsilon) - x).exp()).max(truth.ball(0)) for m, x in outcomes)
        exact = truth.floats(sum(gains, truth.ball(0)))
    return sum(others, first).directions()[0], epsilon, exact, f"responses {parts} at {epsilon!r}"


def lattice_responses(draw: Draw) -> Result:
    composition, epsilon, exact, text = different_responses(draw)
    effort = log_uniform(draw, 3e-3, 0.05)
    return bounded(lattice.log_delta(composition, epsilon, effort=effort), exact, f"{text}, effort {effort!r}")


def smoothed_responses(draw: Draw) -> Result:
    composition, epsilon, exact, text = different_responses(draw)
    with np.errstate(all="ignore"):
        found = smoothing.for_epsilon(composition, epsilon)
        return bounded(None if found is None else found.log_delta(epsilon)[:2], exact, text)


def laplace(draw: Draw) -> Result:
    scale, n = log_uniform(draw, 0.3, 100), draw.choice((2, 3, 8, 30))
    return asked(
        draw, n * dp.Laplace(scale), lambda e: truth.laplace_delta(1 / Fraction(scale), n, e), n / scale, 0, 2.0**-n
    )


def binomial_sum(draw: Draw) -> Result:
    epsilon0, count = log_uniform(draw, 1e-3, 4), draw.choice((2, 3, 10, 30, 80))
    at = epsilon0 * count * draw.uniform(0, 0.98)
    bounds = binomial.log_delta((count * dp.PureDP(epsilon0)).directions()[0], at)
    exact = truth.floats(truth.approx_delta(epsilon0, 0.0, count, at))
    return bounded(bounds, exact, f"{count} * PureDP({epsilon0!r}) at {at!r}")


def guarantee(draw: Draw) -> Result:
    """Declared guarantees with mass at infinity, delta next to it; the largest loss itself is tested elsewhere."""
    epsilon, n = log_uniform(draw, 1e-3, 5), draw.choice((1, 2, 10, 30))
    mass = draw.choice((0.0, log_uniform(draw, 1e-14, 1e-3)))
    largest = (1 + math.exp(-epsilon)) ** -n
    least = float(1 - (1 - Fraction(mass)) ** n + Fraction(largest * log_uniform(draw, 1e-5, 0.1)))
    plan = n * dp.ApproxDP(epsilon, mass)
    return asked(draw, plan, lambda e: truth.approx_delta(epsilon, mass, n, e), 0.999 * n * epsilon, 0, least)


def response(draw: Draw) -> Result:
    n, categories = draw.choice((2, 5, 20)), draw.choice((2, 2, 3))
    p = draw.uniform(1 / categories + 1e-2, 0.98)
    n = min(n, 8) if categories > 2 else n
    top = n * math.log(p * (categories - 1) / (1 - p))
    plan = n * dp.RandomizedResponse(p, categories)
    truth_of = lambda e: truth.randomized_response_delta(p, categories, n, e)  # noqa: E731
    return asked(draw, plan, truth_of, 0.999 * top, 0, 1e-5 * p**n)


#: path -> how often it is drawn; rare ones are slow, by their truth or by themselves
FAMILIES: dict[str, tuple[Callable[[Draw], Result], float]] = {
    "one step": (one_step, 14),
    "one step, others": (one_step_others, 10),
    "contour, Gaussian": (contour_gaussian, 14),
    "contour, sampled": (contour_sampled, 12),
    "contour, table": (contour_table, 10),
    "contour, mix": (with_gaussian, 6),
    "few steps, coarse": (few_coarse, 6),
    "few steps, table": (few_table, 0.6),
    "jumps": (jump_sums, 10),
    "two steps": (two_steps, 0.5),
    "DP-SGD": (dpsgd, 0.2),
    "lattice, Laplace": (lattice_laplace, 6),
    "lattice, discrete": (lattice_discrete, 1.5),
    "lattice, responses": (lattice_responses, 5),
    "smoothing": (smoothed_responses, 3),
    "Laplace": (laplace, 0.5),
    "binomial": (binomial_sum, 6),
    "guarantee": (guarantee, 5),
    "response": (response, 1.5),
}


def check(job: tuple[int, int, tuple[str, ...]]) -> tuple[int, str, str, Result, float]:
    """(index, family, verdict, result, seconds): verdict is "contained", "unchecked" or a failure."""
    seed, index, families = job
    draw = random.Random(f"{seed}/{index}")
    family = draw.choices(families, [FAMILIES[name][1] for name in families])[0]
    start = time.process_time()
    warnings.simplefilter("error")  # a bare warning of the arithmetic is a failure, and so is a crash: the soak goes on
    try:
        result = FAMILIES[family][0](draw)
    except (ArithmeticError, LookupError, ValueError, TypeError, AttributeError, Warning) as error:
        return index, family, "CRASHED", Result(False, f"{type(error).__name__}: {error}", math.nan), 0.0
    verdict = "unchecked" if result.inside is None else ("contained" if result.inside else "NOT CONTAINED")
    return index, family, verdict, result, time.process_time() - start


@dataclass
class Run:
    """What is written down between stops: which plans, how far, and what was found."""

    seed: int
    plans: int
    families: tuple[str, ...]
    done: int
    counts: Counter[str]
    failures: list[str]

    def save(self) -> None:
        STATE.parent.mkdir(exist_ok=True)
        STATE.write_text(json.dumps(vars(self), indent=1))

    @classmethod
    def load(cls) -> Run:
        state = json.loads(STATE.read_text())
        return cls(**state | {"families": tuple(state["families"]), "counts": Counter(state["counts"])})


def soak(run: Run, jobs: int, console: Console) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    todo = ((run.seed, index, run.families) for index in range(run.done, run.plans))
    with multiprocessing.Pool(jobs) as pool, Progress(*columns, console=console) as progress:
        task = progress.add_task("plans", total=run.plans, completed=run.done)
        for index, family, verdict, result, seconds in pool.imap(check, todo, chunksize=8):
            run.counts[f"{family}|{verdict}"] += 1
            run.counts[f"{family}|wide"] += result.width > 1e-6
            run.counts[f"{family}|milliseconds"] += round(1000 * seconds)
            if verdict in ("NOT CONTAINED", "CRASHED"):
                run.failures.append(f"--seed {run.seed} --index {index} ({family}) {verdict}: {result.text}")
                console.print(run.failures[-1], markup=False)
            run.done = index + 1
            if run.done % 500 == 0:
                run.save()
            progress.update(task, advance=1, description=f"plans ({len(run.failures)} failures)")
    run.save()


def report(run: Run, console: Console) -> None:
    for family in run.families:
        kinds = ("contained", "unchecked", "NOT CONTAINED", "CRASHED", "wide")
        counts = ", ".join(f"{run.counts[f'{family}|{kind}']} {kind}" for kind in kinds)
        total = sum(run.counts[f"{family}|{kind}"] for kind in kinds[:-1])
        console.print(f"{family:20} {counts}; {run.counts[f'{family}|milliseconds'] / max(total, 1):.0f} ms each")
    for failure in run.failures:
        console.print(f"FAILURE {failure}", markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--index", type=int, help="repeat this one plan")
    parser.add_argument("--resume", action="store_true", help="continue the run that was stopped")
    parser.add_argument("--family", action="append", choices=list(FAMILIES), help="only these paths")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    chosen = parser.parse_args()
    console = Console()
    families = tuple(chosen.family or FAMILIES)
    if chosen.index is not None:
        console.print(check((chosen.seed, chosen.index, families)), markup=False)
        return
    run = Run.load() if chosen.resume else Run(chosen.seed, chosen.plans, families, 0, Counter(), [])
    console.print(f"seed {run.seed}, {run.plans} plans, {run.done} of them done")
    soak(run, chosen.jobs, console)
    report(run, console)
    sys.exit(1 if run.failures else 0)


if __name__ == "__main__":
    main()
