"""How long sensitivities of matrix strategies and menus take: ``python benchmarks/bench_matrices.py``.

Process time, the best of three, each without what an earlier run has kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import dptally as dp
from dptally.accounting.adaptive import menu_table
from dptally.mechanisms.matrices import banded_inverse, buffered_toeplitz, strategy

STEPS = 10_000
RNG = np.random.default_rng(0)
BANDS = [RNG.random(STEPS - d) for d in range(64)]
FALLING = np.sort(RNG.random(STEPS))[::-1]
DENSE = RNG.random((1000, 1000))
ROWS: dict[str, Callable[[], float]] = {
    "banded 1e4 x 1e4, 64 bands, built": lambda: float(dp.Banded(BANDS).length),
    "banded, once": lambda: dp.sensitivity(BANDED, 1),
    "banded, (16, 64): orthogonal": lambda: dp.sensitivity(BANDED, (16, 64)),
    "banded, any number 16 apart": lambda: dp.sensitivity(BANDED, (STEPS, 16)),
    "banded, cyclic 32": lambda: dp.sensitivity(BANDED, dp.Cyclic(32)),
    "Toeplitz 1e4, falling, (16, 625)": lambda: dp.sensitivity(dp.Toeplitz(FALLING, STEPS), (16, 625)),
    "banded inverse 1e4, (16, 625)": lambda: dp.sensitivity(dp.BandedInverse([1, -0.5, -0.125], STEPS), (16, 625)),
    "buffered Toeplitz 1e4, (16, 625)": lambda: dp.sensitivity(
        dp.BufferedToeplitz([0.99, 0.9, 0.5], [0.1, 0.1, 0.1], STEPS), (16, 625)
    ),
    "binary tree 1e6, (16, 62500)": lambda: dp.sensitivity(dp.BinaryTree(10**6), (16, 62_500)),
    "dense 1000 x 1000, (16, 60)": lambda: dp.sensitivity(DENSE, (16, 60)),
    "menu of 3, 50 uses": lambda: dp.Menu([dp.Gaussian(10.0), dp.Laplace(9.0), dp.PureDP(0.1)], 50).epsilon(1e-6),
}
BANDED = dp.Banded(BANDS)


def main() -> None:
    dp.Menu([dp.Gaussian(1.0)], 1).epsilon(1e-5)  # what loads once
    for name, ask in ROWS.items():
        best, answer = float("inf"), 0.0
        for _ in range(3):
            for kept in (strategy._of_strategy, banded_inverse._column, buffered_toeplitz._column, menu_table):
                kept.cache_clear()
            start = time.process_time()
            answer = ask()
            best = min(best, time.process_time() - start)
        print(f"{name:36} {best:8.4f} s   {answer:.9g}")


if __name__ == "__main__":
    main()
