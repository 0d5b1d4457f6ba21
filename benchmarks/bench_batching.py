"""How long the ways of batching take, first call and again, beside other packages where they are installed and answer.

``python benchmarks/bench_batching.py``; ``--peers`` also asks PLD_accounting, random-allocation and dp-accounting
(some of their rows take minutes). Times are CPU times of one run; the memory is the largest of the whole run.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", action="store_true")
    asked = parser.parse_args()
    dp.dpsgd(1.0, 0.02, 10).epsilon(1e-5)  # what loads once
    dp.training(1.5, dp.BallsInBins(12), epochs=1).epsilon(1e-5)
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
