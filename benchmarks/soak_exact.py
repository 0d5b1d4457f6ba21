"""Random finite plans against exact truths, question after question: every certified interval must contain the truth.

    python benchmarks/soak_exact.py                            # 100,000 questions on two cores
    python benchmarks/soak_exact.py --questions 2000 --seed 7  # fewer, the same ones every time
    python benchmarks/soak_exact.py --resume                   # continue a run that was stopped
    python benchmarks/soak_exact.py --seed 7 --plan 123        # one plan again

Plan i of a run depends on (seed, i) alone and is asked 16 questions: deltas and epsilons at random, at atoms, next to
them, at 0, at 1, next to the mass at infinity (tests/exact). One plan in four is also held against the cheap bounds
that the library has anyway: optimal composition, basic composition and Renyi must not lie below a lower end. State is
kept in build/soak-exact-<seed>.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from exact.questions import QUESTIONS, ask, contradictions, make_plan

STATE = Path(__file__).resolve().parent.parent / "build"


def one_plan(job: tuple[int, int]) -> tuple[int, int, list[str], float]:
    """(plan, questions asked, faults, seconds); a crash or a bare warning is a fault."""
    seed, index = job
    draw = random.Random(f"{seed}/{index}")
    start, faults, asked = time.process_time(), [], 0
    warnings.simplefilter("error")
    plan = make_plan(draw)
    try:
        for _ in range(QUESTIONS):
            verdict = ask(draw, plan)
            asked += 1
            if verdict.fault:
                faults.append(f"{verdict.fault}: {verdict.question} = {verdict.answer}")
        if index % 4 == 0:
            faults += contradictions(draw, plan)
    except (ArithmeticError, LookupError, ValueError, TypeError, AttributeError, AssertionError, Warning) as error:
        faults.append(f"CRASHED {type(error).__name__}: {error}: {plan.text}")
    return index, asked, faults, time.process_time() - start


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
    state = {"done": 0, "questions": 0, "faults": [], "slowest": [0.0, -1]}
    if chosen.resume and path.exists():
        state = json.loads(path.read_text())
    STATE.mkdir(exist_ok=True)
    last = -(-chosen.questions // QUESTIONS)
    jobs = ((chosen.seed, index) for index in range(state["done"], last))
    with multiprocessing.Pool(chosen.jobs) as pool:
        for index, asked, faults, seconds in pool.imap(one_plan, jobs, chunksize=4):
            state["done"], state["questions"] = index + 1, state["questions"] + asked
            state["slowest"] = max(state["slowest"], [seconds, index])
            for fault in faults:
                state["faults"].append(f"plan {index}: {fault}")
                print(state["faults"][-1], flush=True)
            if index % 50 == 49:
                path.write_text(json.dumps(state, indent=1))
                print(f"{state['questions']} questions, {len(state['faults'])} faults", flush=True)
    path.write_text(json.dumps(state, indent=1))
    print(f"seed {chosen.seed}: {state['done']} plans, {state['questions']} questions, {len(state['faults'])} faults")
    sys.exit(1 if state["faults"] else 0)


if __name__ == "__main__":
    main()
