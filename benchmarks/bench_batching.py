"""How long the ways of batching take, beside other packages where they are installed and answer.

``python benchmarks/bench_batching.py``; ``--peers`` also asks PLD_accounting, random-allocation and dp-accounting
(some of their rows take minutes). CPU times: of the first call, which may load modules; of fresh noise in a warm
process, the best of several; of the first question asked again, which is remembered. The memory is that of the run.
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

Ask = Callable[[float], dp.Mechanism]  # of the noise, 1 being the one that is reported


def bins(steps: int, sigma: float, epochs: int) -> Ask:
    return lambda noise: dp.training(sigma * noise, dp.BallsInBins(steps), epochs=epochs)


ROWS: dict[str, tuple[Ask, float]] = {
    "sampled Gaussian, 1000 steps": (lambda noise: dp.dpsgd(noise, 0.01, 1000), 1e-5),
    "the same under REPLACE": (lambda noise: dp.dpsgd(noise, 0.01, 1000, adjacency=dp.REPLACE), 1e-5),
    "fixed size ADD_REMOVE, 1000 steps": (lambda noise: dp.training(noise, dp.FixedSize(10, 1000), steps=1000), 1e-5),
    "fixed size REPLACE, 1000 steps": (
        lambda noise: dp.training(noise, dp.FixedSize(10, 1000), steps=1000, adjacency=dp.REPLACE),
        1e-5,
    ),
    "group of 4, 1000 steps": (lambda noise: dp.training(noise, dp.Poisson(0.01), steps=1000, per_user=4), 1e-5),
    "truncated, 1000 steps": (
        lambda noise: dp.training(noise, dp.TruncatedPoisson(0.01, 10_000, 150), steps=1000),
        1e-5,
    ),
    "truncated REPLACE, 1000 steps": (
        lambda noise: dp.training(noise, dp.TruncatedPoisson(0.01, 10_000, 150), steps=1000, adjacency=dp.REPLACE),
        1e-5,
    ),
    **{
        f"balls and bins t={steps}, sigma {sigma}, 1 epoch": (bins(steps, sigma, 1), 1e-5)
        for steps in (10, 100, 1000, 10_000, 100_000)
        for sigma in (0.5, 0.7, 1.0, 2.0, 4.0)
    },
    "balls and bins t=100, 10 epochs": (bins(100, 1.0, 10), 1e-5),
    "balls and bins t=1e4, 100 epochs": (bins(10_000, 1.0, 100), 1e-5),
    "the same at delta 1e-12": (bins(10_000, 1.0, 100), 1e-12),
    "Laplace in bins t=100, 3 epochs": (
        lambda noise: dp.Sampled(dp.Laplace(2.0 * noise), dp.BallsInBins(100), epochs=3),
        1e-5,
    ),
}


def timed(ask: Ask, noise: float, delta: float) -> tuple[float, dp.Interval]:
    """CPU seconds of one question, the plan being made before."""
    plan = ask(noise)
    start = time.process_time()
    box = plan.epsilon_interval(delta)
    return time.process_time() - start, box


def row(name: str, ask: Ask, delta: float) -> None:
    """The first call, the best of five of noise that was never asked before, and the best of three of the first."""
    first, box = timed(ask, 1.0, delta)
    fresh = min(timed(ask, 1.0 + 0.00137 * (i + 1), delta)[0] for i in range(5 if first < 0.5 else 2))
    again = min(timed(ask, 1.0, delta)[0] for _ in range(3))
    times = f"first {1e3 * first:8.2f} ms, fresh {1e3 * fresh:8.2f} ms, again {1e3 * again:8.2f} ms"
    print(f"{name:42} {times}   {box}   relative width {box.width / box.upper:.1e}", flush=True)


def peers() -> dict[str, Callable[[], object]]:
    """Rows of other packages, those that are installed."""
    rows: dict[str, Callable[[], object]] = {}
    try:
        from PLD_accounting import gaussian_allocation_epsilon_range as interval

        rows["PLD_accounting, bins t=100, 1 epoch"] = lambda: interval(delta=1e-5, sigma=1.0, num_steps=100)
        rows["PLD_accounting, bins t=1000, 1 epoch"] = lambda: interval(delta=1e-5, sigma=1.0, num_steps=1000)
        rows["PLD_accounting, bins t=100, 10 epochs"] = lambda: interval(
            delta=1e-5, sigma=1.0, num_steps=100, num_epochs=10
        )
    except ImportError:
        pass
    try:
        from random_allocation import PrivacyParams, SchemeConfig, allocation_epsilon_direct

        config = SchemeConfig(allocation_direct_alpha_orders=list(range(2, 61)))
        params = PrivacyParams(sigma=1.0, num_steps=100, num_selected=1, num_epochs=1, delta=1e-5)
        rows["random-allocation, bins t=100, 1 epoch"] = lambda: allocation_epsilon_direct(params, config)
    except ImportError:
        pass
    try:
        from dp_accounting import dp_event
        from dp_accounting.pld import PLDAccountant

        def mixture() -> object:
            event = dp_event.MixtureOfGaussiansDpEvent(
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

    def plan(self) -> dp.Mechanism:
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
    for name, (ask, delta) in ROWS.items():
        row(name, ask, delta)
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    for name, run in peers().items() if asked.peers else ():
        start = time.process_time()
        found = run()
        print(f"{name:40} {time.process_time() - start:8.3f} s   {found}", flush=True)


if __name__ == "__main__":
    main()
