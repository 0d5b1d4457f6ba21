"""The loss of a plan beside its epsilon: ``python benchmarks/bench_loss.py``. A quantile should cost a small factor.

CPU time of this process, the median of calls whose arguments differ, so that nothing is remembered between them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import dptally as dp

PLANS = (
    dp.dpsgd(1.0, 0.01, 1000),
    dp.dpsgd(1.0, 0.001, 100_000),
    50 * dp.Laplace(scale=5) + 10 * dp.Gaussian(sigma=10),
    20 * dp.DiscreteGaussian(sigma=10.0),
    50 * dp.PureDP(0.2),
)
LEVELS = (0.05, 0.5, 0.99, 0.999999)


def middle(question: Callable[[float], object], around: float) -> float:
    """The median of five calls near one argument, in milliseconds of CPU."""
    times = []
    for i in range(5):
        value = around * (1 - 0.003 * i)
        start = time.process_time()
        question(value)
        times.append(time.process_time() - start)
    return 1e3 * statistics.median(times)


def main() -> None:
    heads = [f"quantile {level:g}" for level in LEVELS]
    print(f"| plan | epsilon, ms | {' | '.join(heads)} |\n|{'---|' * (2 + len(heads))}")
    for plan in PLANS:
        plan.epsilon(1e-5)
        epsilon = middle(plan.epsilon, 1e-5)
        cells = []
        for level in LEVELS:
            taken = middle(lambda p, plan=plan: plan.loss().quantile(1 - p), 1 - level)
            cells.append(f"{taken:.1f} ms, {taken / epsilon:.1f} x")
        print(f"| `{plan!r}` | {epsilon:.1f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
