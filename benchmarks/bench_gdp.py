"""How long the GDPT toolkit takes: closed-form profiles to 1e-6 (target 20 ms), DP-SGD on a head of 20 (0.5
s).

Run ``python benchmarks/bench_gdp.py``. Times are the best of several runs; the number of looks at the profile
is what the search controls, the rest is the price of one look.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import dptally as dp
from dptally import gdp


def best_of(runs: int, call: Callable[[], gdp.Measurement]) -> tuple[float, gdp.Measurement]:
    """(seconds of the fastest run, its answer)."""
    fastest, answer = float("inf"), call()
    for _ in range(runs):
        start = time.perf_counter()
        answer = call()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest, answer


def main() -> None:
    laplace = dp.Laplace(scale=0.5)
    sgd = gdp.refined(gdp.noisy_sgd(2.0, 1.0, 2.0))
    plan = dp.dpsgd(1.0, 0.01, 1000)
    cases: list[tuple[str, int, Callable[[], gdp.Measurement]]] = [
        ("Laplace, closed form", 20, lambda: gdp.measure(laplace)),
        ("Laplace sampled at 50 %", 20, lambda: gdp.measure(dp.PoissonSampled(laplace, 0.5))),
        (
            "Laplace sampled at 10 %, to 1e-9",
            20,
            lambda: gdp.measure(dp.PoissonSampled(laplace, 0.1), None, 1e-9),
        ),
        ("noisy SGD, refined", 20, lambda: gdp.measure(sgd)),
        ("discrete Gaussian, tail covered", 20, lambda: gdp.measure(dp.DiscreteGaussian(2.0))),
        ("50-fold 0.2-DP, optimum", 3, lambda: gdp.measure(50 * dp.PureDP(0.2))),
        ("DP-SGD 1, 0.01, 1000, head 20", 3, lambda: gdp.measure(plan, head=20.0)),
        ("the same, with its regret", 3, lambda: gdp.summary(plan, head=20.0).measurement),
    ]
    print(f"{'case':36s} {'ms':>9s} {'looks':>6s}  mu")
    for name, runs, call in cases:
        seconds, found = best_of(runs, call)
        print(f"{name:36s} {1e3 * seconds:9.1f} {found.points:6d}  {found.mu}")


if __name__ == "__main__":
    main()
