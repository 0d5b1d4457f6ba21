"""The loss of a plan beside its epsilon: ``python benchmarks/bench_loss.py``. A quantile should cost a small factor."""

from __future__ import annotations

import time

import dptally as dp

PLANS = (
    dp.dpsgd(1.0, 0.01, 1000),
    dp.dpsgd(1.0, 0.001, 100_000),
    50 * dp.Laplace(scale=5) + 10 * dp.Gaussian(sigma=10),
    50 * dp.PureDP(0.2),
)


def best(question: object, *values: float) -> float:
    """The shortest of a few calls with different arguments, in milliseconds: nothing is remembered between them."""
    times = []
    for value in values:
        start = time.perf_counter()
        question(value)  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main() -> None:
    print("| plan | epsilon, ms | quantile, ms | factor |\n|---|---|---|---|")
    for plan in PLANS:
        epsilon = best(plan.epsilon, 1e-5, 1.1e-5, 1.2e-5)
        quantile = best(lambda p, plan=plan: plan.loss().quantile(p), 0.99, 0.98, 0.97)
        print(f"| `{plan!r}` | {epsilon:.1f} | {quantile:.1f} | {quantile / epsilon:.1f} |")


if __name__ == "__main__":
    main()
