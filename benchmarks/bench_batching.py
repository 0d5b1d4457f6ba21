"""How long the ways of batching take, first call and again, beside other packages where they are installed and answer.

``python benchmarks/bench_batching.py``; ``--peers`` also asks PLD_accounting, random-allocation and dp-accounting
(some of their rows take minutes). Times are CPU times of one run; the memory is the largest of the whole run.
``--sweep 200 --limit 20 --seed 1`` asks that many random questions instead, each in a process of its own that is ended
at the limit of CPU seconds, and lists the slow, the wide and the unanswered.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import dptally as dp


def bins(steps: int, sigma: float, epochs: int, delta: float = 1e-5) -> Callable[[], dp.Interval]:
    return lambda: dp.training(sigma, dp.BallsInBins(steps), epochs=epochs).epsilon_interval(delta)


ROWS: dict[str, Callable[[], dp.Interval]] = {
    "sampled Gaussian, 1000 steps": lambda: dp.dpsgd(1.0, 0.01, 1000).epsilon_interval(1e-5),
    "the same under REPLACE": lambda: dp.dpsgd(1.0, 0.01, 1000, adjacency=dp.REPLACE).epsilon_interval(1e-5),
    "fixed size ADD_REMOVE, 1000 steps": lambda: dp.training(1.0, dp.FixedSize(10, 1000), steps=1000).epsilon_interval(
        1e-5
    ),
    "fixed size REPLACE, 1000 steps": lambda: dp.training(
        1.0, dp.FixedSize(10, 1000), steps=1000, adjacency=dp.REPLACE
    ).epsilon_interval(1e-5),
    "group of 4, 1000 steps": lambda: dp.training(1.0, dp.Poisson(0.01), steps=1000, per_user=4).epsilon_interval(1e-5),
    "truncated, 1000 steps": lambda: dp.training(
        1.0, dp.TruncatedPoisson(0.01, 10_000, 150), steps=1000
    ).epsilon_interval(1e-5),
    "balls and bins t=100, 1 epoch": bins(100, 1.0, 1),
    "balls and bins t=1000, 1 epoch": bins(1000, 1.0, 1),
    "balls and bins t=1e4, 1 epoch": bins(10_000, 1.0, 1),
    "balls and bins t=100, 10 epochs": bins(100, 1.0, 10),
    "balls and bins t=1e4, 100 epochs": bins(10_000, 1.0, 100),
    "the same at delta 1e-12": bins(10_000, 1.0, 100, 1e-12),
    "Laplace in bins t=100, 3 epochs": lambda: dp.Sampled(
        dp.Laplace(2.0), dp.BallsInBins(100), epochs=3
    ).epsilon_interval(1e-5),
}


def peers() -> dict[str, Callable[[], object]]:
    """Rows of other packages, those that are installed."""
    rows: dict[str, Callable[[], object]] = {}
    try:
        from PLD_accounting import gaussian_allocation_epsilon_range as interval

        rows["PLD_accounting, bins t=100, 1 epoch"] = lambda: interval(delta=1e-5, sigma=1.0, num_steps=100)
        rows["PLD_accounting, bins t=1000, 1 epoch"] = lambda: interval(delta=1e-5, sigma=1.0, num_steps=1000)
    except ImportError:
        pass
    try:
        from random_allocation import PrivacyParams, SchemeConfig, allocation_epsilon_direct

        params = PrivacyParams(sigma=1.0, num_steps=100, num_selected=1, num_epochs=1, delta=1e-5)
        rows["random-allocation, bins t=100, 1 epoch"] = lambda: allocation_epsilon_direct(params, SchemeConfig())
    except ImportError:
        pass
    try:
        import dp_accounting
        from dp_accounting.pld import PLDAccountant

        def mixture() -> object:
            event = dp_accounting.MixtureOfGaussiansDpEvent(
                1.0, [0, 1, 2, 3, 4], [0.96059601, 0.03881196, 0.00058806, 3.96e-06, 1e-08]
            )
            account = PLDAccountant(value_discretization_interval=1e-3)
            return account.compose(event, 1000).get_epsilon(1e-5)

        rows["dp-accounting, group of 4, 1000 steps"] = mixture
    except ImportError:
        pass
    return rows


@dataclass(frozen=True)
class Question:
    """One question of the sweep."""

    sampler: str
    sigma: float
    steps: int
    epochs: int
    delta: float
    times: int  # of RandomAllocation

    @classmethod
    def drawn(cls, random_: random.Random) -> Question:
        def between(low: float, high: float) -> float:
            return float(f"{low * (high / low) ** random_.random():.3g}")

        return cls(
            random_.choice(["BallsInBins", "RandomAllocation", "ShuffledBatches"]),
            between(0.3, 10.0),
            int(between(2, 1e5)),
            int(between(1, 1001)),
            between(1e-15, 1e-2),
            random_.choice([1, 2, 5]),
        )

    def plan(self) -> dp.Plan:
        rules = {
            "BallsInBins": lambda: dp.BallsInBins(self.steps),
            "RandomAllocation": lambda: dp.RandomAllocation(self.steps, min(self.times, self.steps)),
            "ShuffledBatches": lambda: dp.ShuffledBatches(self.steps),
        }
        return dp.training(self.sigma, rules[self.sampler](), epochs=self.epochs)

    def answer(self, limit: int) -> tuple[float, str]:
        """(CPU seconds, the interval and its relative width, or why there is none), in a process of its own."""
        here, there = multiprocessing.Pipe(duplex=False)
        worker = multiprocessing.get_context("fork").Process(target=self._work, args=(there, limit))
        worker.start()
        there.close()
        try:
            found: tuple[float, str] = here.recv()
        except EOFError:
            found = (float(limit), "NO ANSWER")
        worker.join()
        return found

    def _work(self, out: Connection, limit: int) -> None:
        used = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (used + limit, used + limit))
        start = time.process_time()
        try:
            box = self.plan().epsilon_interval(self.delta)
            said = f"{box.lower:.7g} .. {box.upper:.7g}  width {box.width / box.upper if box.upper else 0.0:.1e}"
        except (ValueError, OverflowError) as error:
            said = f"refused: {error}"
        out.send((time.process_time() - start, said))


def sweep(number: int, limit: int, seed: int, slow: float) -> None:
    """Random questions: every one is listed that is slow, and the slowest times."""
    random_ = random.Random(seed)
    times = []
    for _ in range(number):
        question = Question.drawn(random_)
        taken, said = question.answer(limit)
        times.append(taken)
        if taken > slow or "refused" in said:
            print(f"{taken:7.2f} s  {question}  {said}", flush=True)
    times.sort()
    marks = ", ".join(f"{100 * q:g} % {times[min(int(q * number), number - 1)]:.2f} s" for q in (0.5, 0.9, 0.99))
    print(f"{number} questions: {marks}, slowest {times[-1]:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--sweep", type=int, default=0, metavar="QUESTIONS")
    parser.add_argument("--limit", type=int, default=20, help="CPU seconds of one question of the sweep")
    parser.add_argument("--slow", type=float, default=3.0, help="CPU seconds from which a question is listed")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    dp.dpsgd(1.0, 0.02, 10).epsilon(1e-5)  # what loads once
    dp.training(1.5, dp.BallsInBins(12), epochs=1).epsilon(1e-5)
    if asked.sweep:
        sweep(asked.sweep, asked.limit, asked.seed, asked.slow)
        return
    for name, ask in ROWS.items():
        start = time.process_time()
        box = ask()
        first = time.process_time() - start
        start = time.process_time()
        ask()
        again = time.process_time() - start
        width = box.width / box.upper
        print(f"{name:36} {first:8.3f} s, again {again:7.3f} s   {box}   relative width {width:.1e}", flush=True)
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    for name, run in peers().items() if asked.peers else ():
        start = time.process_time()
        found = run()
        print(f"{name:40} {time.process_time() - start:8.3f} s   {found}", flush=True)


if __name__ == "__main__":
    main()
