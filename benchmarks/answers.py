"""Record the answers to 3,000 random questions over all routes and frameworks, and compare two recordings.

    python benchmarks/answers.py record before.json            # on one commit
    python benchmarks/answers.py record after.json             # on another one, on the same machine
    python benchmarks/answers.py compare before.json after.json             # identical to the last bit?
    python benchmarks/answers.py compare before.json after.json --widened   # intervals meet, at most 1.001x as wide

Question i depends on (seed, i) alone, so two commits are asked the same. Last bits differ between processors (numpy
chooses its loops): record both on one machine. A refusal is an answer, too: its kind is recorded. A question that takes
more than ``--limit`` seconds of processor time is given up: counted, not compared. A recording that was stopped
goes on where it stood.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dptally as dp
from dptally.accounting import alpha, approximate, concentrated, gaussian, optimal, pure, renyi

Draw = random.Random
WIDER = 1.001
GIVEN_UP = "given up"
AGREED = {"identical", "within the bounds", "not compared"}


def log_uniform(draw: Draw, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


# -- plans -----------------------------------------------------------------------------------------------------------


def noise(draw: Draw) -> dp.Mechanism:
    kinds: tuple[Callable[[], dp.Mechanism], ...] = (
        lambda: dp.Gaussian(log_uniform(draw, 0.3, 100.0)),
        lambda: dp.Laplace(log_uniform(draw, 0.3, 100.0)),
        lambda: dp.RandomizedResponse(draw.uniform(0.05, 0.95), draw.choice((2, 2, 3, 8))),
        lambda: dp.DiscreteGaussian(log_uniform(draw, 0.6, 20.0), draw.choice((1, 1, 3))),
        lambda: dp.DiscreteLaplace(log_uniform(draw, 0.6, 20.0), draw.choice((1, 1, 3))),
    )
    return draw.choice(kinds)()


def guarantee(draw: Draw) -> dp.Mechanism:
    kinds: tuple[Callable[[], dp.Mechanism], ...] = (
        lambda: dp.PureDP(log_uniform(draw, 1e-3, 3.0)),
        lambda: dp.ApproxDP(log_uniform(draw, 1e-3, 3.0), log_uniform(draw, 1e-12, 1e-3)),
        lambda: dp.GaussianDP(log_uniform(draw, 1e-2, 3.0)),
        lambda: dp.Profile(points=[(log_uniform(draw, 0.01, 1.0), 1e-3), (log_uniform(draw, 1.0, 4.0), 1e-9)]),
    )
    return draw.choice(kinds)()


def moments_only(draw: Draw) -> dp.Mechanism:
    kinds: tuple[Callable[[], dp.Mechanism], ...] = (
        lambda: dp.ZCDP(log_uniform(draw, 1e-4, 1.0)),
        lambda: dp.RenyiDP((2.0, 8.0, 32.0), tuple(sorted(log_uniform(draw, 1e-3, 2.0) for _ in range(3)))),
        lambda: dp.AlphaDP(draw.uniform(1.5, 10.0), log_uniform(draw, 1e-3, 1.0)),
    )
    return draw.choice(kinds)()


def sampled(draw: Draw) -> dp.Mechanism:
    adjacency = draw.choice((dp.ADD_REMOVE, dp.ADD_REMOVE, dp.REPLACE))
    inside = draw.choice(
        (lambda: dp.Gaussian(log_uniform(draw, 0.5, 5.0)), lambda: noise(draw), lambda: guarantee(draw))
    )
    return dp.PoissonSampled(inside(), log_uniform(draw, 1e-4, 1.0), adjacency)


def plan_of(draw: Draw) -> dp.Mechanism:
    """One kind of plan after another, each with its share of the routes."""
    steps = max(1, round(log_uniform(draw, 1.0, 3000.0)))
    few = draw.choice((1, 2, 3, 10))
    kinds: tuple[Callable[[], dp.Mechanism], ...] = (
        lambda: noise(draw),
        lambda: steps * noise(draw),
        lambda: steps * guarantee(draw),
        lambda: steps * dp.PoissonSampled(dp.Gaussian(log_uniform(draw, 0.5, 5.0)), log_uniform(draw, 1e-4, 0.3)),
        lambda: few * sampled(draw),
        lambda: few * sampled(draw) + few * noise(draw),
        lambda: (
            steps * dp.RandomizedResponse(draw.uniform(0.4, 0.6)) + few * dp.RandomizedResponse(draw.uniform(0.5, 0.9))
        ),
        lambda: few * noise(draw) + few * noise(draw) + guarantee(draw),
        lambda: steps * moments_only(draw),
        lambda: moments_only(draw) + few * noise(draw),
    )
    return draw.choice(kinds)()


# -- questions -------------------------------------------------------------------------------------------------------


def questions(draw: Draw) -> dict[str, Callable[[dp.Mechanism], Any]]:
    delta = log_uniform(draw, 1e-15, 1e-2)
    epsilon = log_uniform(draw, 0.01, 10.0)
    order = 1.0 + log_uniform(draw, 0.01, 100.0)
    fpr = log_uniform(draw, 1e-6, 0.5)
    return {
        f"epsilon_interval({delta!r})": lambda plan: plan.epsilon_interval(delta),
        f"delta_interval({epsilon!r})": lambda plan: plan.delta_interval(epsilon),
        f"renyi({order!r})": lambda plan: plan.renyi(order),
        f"alpha_divergence({order!r})": lambda plan: plan.alpha_divergence(order),
        "rho()": lambda plan: plan.rho(),
        f"tradeoff({fpr!r})": lambda plan: plan.tradeoff(fpr),
        f"renyi.epsilon({delta!r})": lambda plan: renyi.epsilon(plan.directions(), delta).value,
        f"concentrated.epsilon({delta!r})": lambda plan: concentrated.epsilon(plan.directions(), delta).value,
        f"alpha.epsilon({delta!r})": lambda plan: alpha.epsilon(plan.directions(), delta).value,
        f"basic({delta!r})": lambda plan: approximate.epsilon(plan.directions(), delta, "basic").value,
        f"optimal({delta!r})": lambda plan: optimal.epsilon(plan.directions(), delta).value,
        f"gaussian({delta!r})": lambda plan: gaussian.epsilon(plan.directions(), delta).value,
        "pure()": lambda plan: pure.epsilon(plan.directions()).value,
    }


class TooLong(BaseException):
    """The limit of a question has passed; no ``Exception``, so that nothing on the way takes it for its own."""


def _give_up(*_: object) -> None:
    raise TooLong


def asked(job: tuple[int, int, float]) -> tuple[str, list[str] | str]:
    """(the question, its answer): the two ends of an interval or a number, exactly; or the kind of the refusal."""
    seed, number, limit = job
    draw = random.Random(f"{seed}:{number}")
    plan = plan_of(draw)
    known = questions(draw)
    # half of them are asked of the engine, the rest of the frameworks
    name = draw.choice(list(known)[:2]) if draw.random() < 0.5 else draw.choice(list(known)[2:])
    signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        answer = known[name](plan)
    except dp.DptallyError as refusal:
        return f"{plan!r}.{name}", type(refusal).__name__
    except TooLong:
        return f"{plan!r}.{name}", GIVEN_UP
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    ends = [answer.lower, answer.upper] if isinstance(answer, dp.Interval) else [float(answer)]
    return f"{plan!r}.{name}", [float(end).hex() for end in ends]


def record(path: Path, number: int, seed: int, jobs: int, limit: float) -> None:
    started = time.perf_counter()
    document: dict[str, Any] = {"seed": seed, "number": number, "version": dp.__version__, "answers": {}}
    if path.exists():
        document = json.loads(path.read_text(encoding="utf-8"))
        if (document["seed"], document["number"]) != (seed, number):
            raise SystemExit(f"{path} is a recording of other questions")
    answers = document["answers"]
    left = [i for i in range(number) if str(i) not in answers]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for i, answer in zip(left, pool.imap(asked, [(seed, i, limit) for i in left]), strict=True):
            answers[str(i)] = answer
            if i % 100 == 99:
                path.write_text(json.dumps(document, indent=0), encoding="utf-8")
            if sys.stderr.isatty():
                print(f"\r{i + 1} of {number}, {time.perf_counter() - started:.0f} s", end="", file=sys.stderr)
    path.write_text(json.dumps(document, indent=0), encoding="utf-8")
    kinds = Counter(value if isinstance(value, str) else "answered" for _, value in answers.values())
    print(f"{number} questions in {time.perf_counter() - started:.0f} s: {dict(kinds)}")


# -- comparing -------------------------------------------------------------------------------------------------------


def differs(before: Any, after: Any, widened: bool) -> str:
    """Why two answers do not agree; empty where they do."""
    if before == after:
        return ""
    if isinstance(before, str) or isinstance(after, str):
        return "another kind of answer"
    if not widened:
        return "other bits"
    old, new = ([float.fromhex(end) for end in answer] for answer in (before, after))
    if len(old) == 1:
        return "" if new[0] <= old[0] * WIDER + 1e-300 else "a larger number"
    if not (new[0] <= old[1] and old[0] <= new[1]):
        return "disjoint intervals"
    return "" if new[1] - new[0] <= WIDER * (old[1] - old[0]) + 4 * math.ulp(old[1]) else "a wider interval"


def compare(before: Path, after: Path, widened: bool) -> int:
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    if (old["seed"], old["number"]) != (new["seed"], new["number"]):
        raise SystemExit("the recordings are of other questions")
    found: Counter[str] = Counter()
    for i, (question, answer) in old["answers"].items():
        other, again = new["answers"][i]
        why = "another question" if other != question else differs(answer, again, widened)
        if other == question and GIVEN_UP in (answer, again):
            found["not compared"] += 1
            continue
        found[why or ("identical" if answer == again else "within the bounds")] += 1
        if why:
            print(f"{i}: {why}\n    {question}\n    {answer}\n    {again}")
    print(f"{old['number']} questions: {dict(found)}")
    return 0 if set(found) <= AGREED else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record")
    recorder.add_argument("path", type=Path)
    recorder.add_argument("--number", type=int, default=3000)
    recorder.add_argument("--seed", type=int, default=20261116)
    recorder.add_argument("--jobs", type=int, default=2)
    recorder.add_argument("--limit", type=float, default=60.0, help="seconds of processor time for one question")
    comparer = commands.add_parser("compare")
    comparer.add_argument("before", type=Path)
    comparer.add_argument("after", type=Path)
    comparer.add_argument("--widened", action="store_true")
    given = parser.parse_args()
    if given.command == "record":
        record(given.path, given.number, given.seed, given.jobs, given.limit)
        return 0
    return compare(given.before, given.after, given.widened)


if __name__ == "__main__":
    sys.exit(main())
