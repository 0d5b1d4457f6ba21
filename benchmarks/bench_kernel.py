"""The compiled kernel beside the numpy code, in one run: ``make bench-kernel``. Processor time of one thread, best of
several; the two take turns. The heat map is asked once each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import dptally as dp
from dptally.accounting.certified.contour import curve
from dptally.law import Composition
from dptally.numerics import compiled


def best(function: Callable[[int], object], repeats: int, first: int) -> float:
    """Milliseconds of the fastest of several calls, each with a number of its own."""
    fastest = float("inf")
    for i in range(first, first + repeats):
        start = time.thread_time()
        function(i)
        fastest = min(fastest, time.thread_time() - start)
    return 1e3 * fastest


def headline(i: int) -> object:
    return dp.dpsgd(1.0 + 1e-6 * (i + 1), 0.01, 1000).epsilon(delta=1e-5)


def delta(i: int) -> object:
    return dp.dpsgd(1.0 + 1e-6 * (i + 1), 0.01, 1000).delta(epsilon=1.8)


def again(_: int) -> object:
    return dp.dpsgd(1.0, 0.01, 1000).epsilon(delta=1e-5)


def heat_map(_: int) -> object:
    sigma, rate = np.linspace(0.6, 3.0, 50), np.geomspace(1e-3, 0.1, 50)
    return dp.sweep(lambda sigma, rate: dp.dpsgd(sigma, rate, 1000), sigma=sigma, rate=rate, delta=1e-5)


def contours(i: int) -> object:
    composition = dp.dpsgd(1.0 + 1e-6 * (i + 1), 0.01, 1000).directions()[0]
    return curve.for_delta(Composition(composition.parts), -11.5)


WORK: tuple[tuple[str, Callable[[int], object], int], ...] = (
    ("epsilon of DP-SGD(sigma, 0.01, 1000) at 1e-5, a fresh sigma", headline, 50),
    ("the same plan asked again", again, 50),
    ("delta at epsilon 1.8, a fresh sigma", delta, 50),
    ("one contour", contours, 50),
    ("heat map of 50 x 50 epsilons", heat_map, 1),
)


def main() -> None:
    module = compiled.kernel()
    if module is None:
        sys.exit(f"the kernel is {compiled.described()}: make kernel")
    print("| question | numpy, ms | kernel, ms | ratio |\n|---|---|---|---|")
    for name, function, repeats in WORK:
        times = {}
        for label, which in (("numpy", None), ("kernel", module)):
            curve._kept.cache_clear()
            with compiled.switched(which):
                function(0) if repeats > 1 else None
                times[label] = best(function, repeats, 1000 if which is None else 2000)
        print(f"| {name} | {times['numpy']:.3g} | {times['kernel']:.3g} | {times['numpy'] / times['kernel']:.1f} |")


if __name__ == "__main__":
    main()
