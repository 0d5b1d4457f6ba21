"""How fast exact noise is drawn, per second of one core, beside opendp where it is installed.

    python benchmarks/bench_noise.py [--draws 1000000]

Processor time is counted, so that other work on the machine does not. The parameters are not powers of two.
The last rows are too wide for 64-bit integers and are drawn one by one in Python integers.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from fractions import Fraction

from dptally import noise

GOALS = {"discrete_laplace": 1_000_000, "discrete_gaussian": 300_000}


def rate(draw: Callable[[int], object], number: int, repeats: int = 3) -> float:
    """Draws per second of processor time, the best of a few runs."""
    draw(number // 10)
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        draw(number)
        best = min(best, time.process_time() - start)
    return number / best


def opendp_draws(kind: str, scale: float) -> Callable[[int], object] | None:
    try:
        import opendp.prelude as odp
    except ImportError:
        return None
    odp.enable_features("contrib")
    domain = odp.vector_domain(odp.atom_domain(T=int))
    if kind == "discrete_laplace":
        measurement = odp.m.make_laplace(domain, odp.l1_distance(T=int), scale)
    else:
        measurement = odp.m.make_gaussian(domain, odp.l2_distance(T=float), scale)
    return lambda number: measurement([0] * number)


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact noise, draws per second of one core.")
    parser.add_argument("--draws", type=int, default=1_000_000)
    draws = parser.parse_args().draws
    F = Fraction
    rows = [
        *[("discrete_laplace", x, draws) for x in (F(1, 3), F(7, 5), F(10, 3), F(1000, 7), F(1000003))],
        *[("discrete_gaussian", x, draws) for x in (F(1, 3), F(7, 5), F(10, 3), F(1000, 7), F(6001))],
        ("discrete_laplace", F(0.1), draws),
        ("discrete_laplace", F(10**25 + 7, 10**24 + 1), draws // 50),
        ("discrete_gaussian", F(math.pi), draws // 50),
    ]
    print(f"{'sampler':<18} {'parameter':>24} {'dptally/s':>12} {'goal/s':>12} {'opendp/s':>12} {'times':>7}")
    for kind, parameter, number in rows:
        ours = rate(lambda n, k=kind, x=parameter: getattr(noise, k)(x, size=n), number)  # type: ignore[misc]
        other = opendp_draws(kind, float(parameter))
        theirs = None if other is None else rate(other, max(draws // 20, 1000), repeats=1)
        times = "-" if theirs is None else f"{ours / theirs:.1f}x"
        label = str(parameter) if len(str(parameter)) <= 24 else f"about {float(parameter):.6g}"
        goal = shown(GOALS[kind] if number == draws else None)
        print(f"{kind:<18} {label:>24} {shown(ours):>12} {goal:>12} {shown(theirs):>12} {times:>7}")


if __name__ == "__main__":
    main()
