"""How long the ways of batching take: ``python benchmarks/bench_batching.py``. One run of each, the first call."""

from __future__ import annotations

import time
from collections.abc import Callable

import dptally as dp

ROWS: dict[str, Callable[[], dp.Interval]] = {
    "sampled Gaussian, 1000 steps": lambda: dp.dpsgd(1.0, 0.01, 1000).epsilon_interval(1e-5),
    "fixed size REPLACE, 1000 steps": lambda: dp.training(
        1.0, dp.FixedSize(10, 1000), steps=1000, adjacency=dp.REPLACE
    ).epsilon_interval(1e-5),
    "group of 4, 1000 steps": lambda: dp.training(1.0, dp.Poisson(0.01), steps=1000, per_user=4).epsilon_interval(1e-5),
    "truncated, 1000 steps": lambda: dp.training(
        1.0, dp.TruncatedPoisson(0.01, 10_000, 150), steps=1000
    ).epsilon_interval(1e-5),
    "balls and bins t=100, 1 epoch": lambda: dp.training(1.0, dp.BallsInBins(100), epochs=1).epsilon_interval(1e-5),
    "balls and bins t=100, 10 epochs": lambda: dp.training(1.0, dp.BallsInBins(100), epochs=10).epsilon_interval(1e-5),
    "balls and bins t=1e4, 100 epochs": lambda: dp.training(1.0, dp.BallsInBins(10_000), epochs=100).epsilon_interval(
        1e-5
    ),
}


def main() -> None:
    dp.dpsgd(1.0, 0.02, 10).epsilon(1e-5)  # what loads once
    for name, ask in ROWS.items():
        start, cpu = time.perf_counter(), time.process_time()
        box = ask()
        wall, spent = time.perf_counter() - start, time.process_time() - cpu
        print(f"{name:36} {wall:8.3f} s wall {spent:8.3f} s cpu   {box}   relative width {box.width / box.upper:.1e}")


if __name__ == "__main__":
    main()
