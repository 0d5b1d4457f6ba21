"""The sweep's random plans as a soak: whatever is certified must agree with whatever else is certified.

    python benchmarks/soak_sweep.py --plans 2000 --seed 7
    python benchmarks/soak_sweep.py --seed 7 --first 5000 --plans 1000

No truth is known for most of these plans, so each is held against itself. Disjoint intervals of two routes and routes
that die are errors (warnings are raised). delta asked at the ends of the interval of epsilon, a question of its own
with contours and lattices of its own, must not exclude the delta that was given. Plans of one discrete Gaussian are
held against a power of a polynomial in balls (tests/truth), which shares no code with the engine. Of every tenth plan
every route is asked, whatever the others found, and all answers must meet.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from sweep import Overdue, Question, _give_up, question

import dptally as dp
from dptally.accounting.certified.bounds import LogTarget, log_interval
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.routes import ROUTES
from dptally.laws.discrete_gaussian import DiscreteGaussianLaw
from truth.discrete import discrete_gaussian_delta

PATIENCE = 10.0


def every_route(asked: Question, counted: Counter[str]) -> None:
    """All routes of all directions, without a floor: their ends must meet."""
    target = LogTarget(*log_interval(asked.delta), asked.delta)
    for composition in asked.plan.directions():
        if not composition.determined or composition.infinity_mass_interval.upper > 0:
            continue
        plan, low, high = Plan(composition), 0.0, max(0.0, composition.supremum_interval.upper)
        for route in ROUTES:
            with np.errstate(all="ignore"):
                if not route.applies(plan):
                    continue
                for ends in route.epsilon(plan, target):
                    assert ends.lower <= high, (route.name, ends, low, high)
                    assert ends.upper >= low, (route.name, ends, low, high)
                    low, high = max(low, ends.lower), min(high, ends.upper)
            counted[f"route asked: {route.name}"] += 1


def against_truth(asked: Question, box: dp.Interval, counted: Counter[str]) -> None:
    """One discrete Gaussian: delta at both ends from a polynomial in balls, where that is short."""
    (composition, *_), parts = asked.plan.directions(), asked.plan.directions()[0].parts
    del composition
    if len(parts) != 1 or not isinstance(parts[0][0], DiscreteGaussianLaw) or not box.upper < math.inf:
        return
    law, count = parts[0]
    size = count * (80 * law.sigma + 6 * box.upper * law.sigma**2 / law.shift)
    if size > 1200 or not box.lower > 0:
        return
    above = discrete_gaussian_delta(law.sigma, law.shift, count, box.upper)
    below = discrete_gaussian_delta(law.sigma, law.shift, count, box.lower)
    assert not above > asked.delta * (1 + 1e-15), ("upper end", asked, box)
    assert not below < asked.delta * (1 - 1e-15), ("lower end", asked, box)
    counted["held against balls"] += 1


def check(seed: int, index: int, counted: Counter[str]) -> None:
    asked = question(seed, index)
    if not asked.determined:
        counted["moments only"] += 1
        asked.plan.epsilon_interval(asked.delta)
        return
    box = asked.plan.epsilon_interval(asked.delta)
    assert 0 <= box.lower <= box.upper, box
    assert not math.isnan(box.lower + box.upper) or box.upper == math.inf, box
    for epsilon, side in ((box.upper, "upper"), (box.lower, "lower")):
        if not 0 < epsilon < math.inf:
            continue
        delta = asked.plan.delta_interval(epsilon)
        if side == "upper":
            assert delta.lower <= asked.delta, (side, box, delta)
        else:
            assert delta.upper >= asked.delta, (side, box, delta)
        counted["ends asked again"] += 1
    against_truth(asked, box, counted)
    if index % 10 == 0:
        every_route(asked, counted)
        counted["plans with every route"] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so much time on the clock")
    chosen = parser.parse_args()
    warnings.simplefilter("error")
    signal.signal(signal.SIGPROF, _give_up)
    counted: Counter[str] = Counter()
    faults, start = [], time.monotonic()
    for index in range(chosen.first, chosen.first + chosen.plans):
        if time.monotonic() - start > chosen.seconds:
            break
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        try:
            check(chosen.seed, index, counted)
        except Overdue:
            counted["given up at ten seconds"] += 1
        except Exception as fault:
            faults.append(index)
            print(f"FAULT {chosen.seed}/{index}: {type(fault).__name__}: {fault}", flush=True)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        counted["plans"] += 1
    for name, number in sorted(counted.items()):
        print(f"{number:8d} {name}")
    print(f"{len(faults)} faults: {faults}")


if __name__ == "__main__":
    main()
