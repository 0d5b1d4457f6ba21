"""Random finite plans against exact truths, question after question: every certified interval must contain the truth.

    python benchmarks/soak_exact.py                            # 100,000 questions on two cores
    python benchmarks/soak_exact.py --questions 2000 --seed 7  # fewer, the same ones every time
    python benchmarks/soak_exact.py --resume                   # continue a run that was stopped
    python benchmarks/soak_exact.py --seed 7 --plan 123        # one plan again

Plan i of a run depends on (seed, i) alone and is asked up to 64 questions, fewer where three answers took a lattice
or a long list of outcomes: deltas and epsilons at random, at atoms, next to them, at 0, at 1, next to the mass at
infinity (tests/exact). One plan in four is asked in arrays too, and held against the cheap bounds that the library has
anyway: optimal composition, basic composition and Renyi must not lie below a lower end. State, with the number of
answers by route, is kept in build/soak-exact-<seed>.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from exact.questions import Verdict, ask, ask_together, contradictions, make_plan

STATE = Path(__file__).resolve().parent.parent / "build"
ROUND = 50  # plans between two notes of the state


MOST, HEAVY, TOGETHER = 64, 3, 4  # questions of one plan, those of them that cost most, those of each kind in arrays
SIZES, SMALL = (40, 40, 40, 300, 6000), 40  # outcomes of a plan; lists of so few cost little
#: routes whose answers cost milliseconds
LIGHT = ("closed form", "binomial sum", "the largest", "the mass", "epsilon is", "no delta", "delta exceeds", "basic")


def one_plan(job: tuple[int, int]) -> tuple[int, Counter[str], list[str], float]:
    """(plan, answers by route, faults, seconds); a crash or a bare warning is a fault."""
    seed, index = job
    draw = random.Random(f"{seed}/{index}")
    start, faults, verdicts = time.process_time(), [], list[Verdict]()
    warnings.simplefilter("error")
    most = draw.choice(SIZES)
    plan, light = make_plan(draw, most), (*LIGHT, "sum over") if most <= SMALL else LIGHT
    try:
        while len(verdicts) < MOST and sum(not v.method.startswith(light) for v in verdicts) < HEAVY:
            verdicts.append(ask(draw, plan))
        if index % 4 == 0:
            verdicts += ask_together(draw, plan, TOGETHER)
            faults += contradictions(draw, plan)
    except (ArithmeticError, LookupError, ValueError, TypeError, AttributeError, AssertionError, Warning) as error:
        faults.append(f"CRASHED {type(error).__name__}: {error}: {plan.text}")
    faults += [f"{v.fault}: {v.question} = {v.answer}" for v in verdicts if v.fault]
    routes = Counter(v.method.split(" (")[0] for v in verdicts)
    return index, routes, faults, time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plan", type=int, help="repeat this one plan")
    parser.add_argument("--resume", action="store_true", help="continue the run of this seed that was stopped")
    parser.add_argument("--jobs", type=int, default=min(2, multiprocessing.cpu_count()))
    chosen = parser.parse_args()
    if chosen.plan is not None:
        print(*one_plan((chosen.seed, chosen.plan))[2], sep="\n")
        return
    path = STATE / f"soak-exact-{chosen.seed}.json"
    state = {"done": 0, "questions": 0, "routes": {}, "faults": [], "slowest": [0.0, -1]}
    if chosen.resume and path.exists():
        state = json.loads(path.read_text())
    STATE.mkdir(exist_ok=True)
    with multiprocessing.Pool(chosen.jobs) as pool:
        while state["questions"] < chosen.questions:
            jobs = [(chosen.seed, index) for index in range(state["done"], state["done"] + ROUND)]
            for index, routes, faults, seconds in pool.imap(one_plan, jobs, chunksize=2):
                state["done"], state["questions"] = index + 1, state["questions"] + routes.total()
                state["routes"] = dict(Counter(state["routes"]) + routes)
                state["slowest"] = max(state["slowest"], [seconds, index])
                for fault in faults:
                    state["faults"].append(f"plan {index}: {fault}")
                    print(state["faults"][-1], flush=True)
            path.write_text(json.dumps(state, indent=1))
            print(f"{state['questions']} questions, {len(state['faults'])} faults", flush=True)
    print(f"seed {chosen.seed}: {state['done']} plans, {state['questions']} questions, {len(state['faults'])} faults")
    sys.exit(1 if state["faults"] else 0)


if __name__ == "__main__":
    main()
