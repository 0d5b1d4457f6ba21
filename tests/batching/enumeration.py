"""Every way of drawing batches, enumerated for a few records with contributions on the line: no code of the library.

An output is a mixture of Gaussians of one dimension per step; H_a is an integral on a grid.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Weighted = list[tuple[float, tuple[float, ...]]]  # (probability, mean of each step's output)


def poisson(data: tuple[float, ...], rate: float) -> Iterator[tuple[float, tuple[int, ...]]]:
    for coins in itertools.product((0, 1), repeat=len(data)):
        chance = math.prod(rate if coin else 1 - rate for coin in coins)
        yield chance, tuple(i for i, coin in enumerate(coins) if coin)


def truncated(data: tuple[float, ...], rate: float, cap: int) -> Weighted:
    out: Weighted = []
    for chance, chosen in poisson(data, rate):
        kept = list(itertools.combinations(chosen, cap)) if len(chosen) > cap else [chosen]
        out += [(chance / len(kept), (sum(data[i] for i in subset),)) for subset in kept]
    return out


def fixed(data: tuple[float, ...], size: int) -> Weighted:
    subsets = list(itertools.combinations(range(len(data)), size))
    return [(1 / len(subsets), (sum(data[i] for i in subset),)) for subset in subsets]


def allocated(data: tuple[float, ...], steps: int, times: int = 1) -> Weighted:
    """Each record in a uniform subset of the steps."""
    subsets = list(itertools.combinations(range(steps), times))
    out: Weighted = []
    for places in itertools.product(subsets, repeat=len(data)):
        means = tuple(sum(x for x, place in zip(data, places, strict=True) if step in place) for step in range(steps))
        out.append((len(subsets) ** -len(data), means))
    return out


def shuffled(data: tuple[float, ...], steps: int) -> Weighted:
    orders = list(itertools.permutations(range(len(data))))
    size = len(data) // steps
    return [
        (1 / len(orders), tuple(sum(data[i] for i in order[k * size : (k + 1) * size]) for k in range(steps)))
        for order in orders
    ]


def hockey_stick(p: Weighted, q: Weighted, sigma: float, a: Iterable[float], step: float = 0.01) -> Floats:
    """sup over events of P - a Q, by the midpoint rule."""
    reach = 7 * sigma + max(abs(x) for _, means in (*p, *q) for x in means)
    axis = np.arange(-reach, reach, step) + 0.5 * step
    dimensions = len(p[0][1])

    def density(mixture: Weighted) -> Floats:
        total = np.zeros((len(axis),) * dimensions)
        for weight, means in mixture:
            parts = [np.exp(-0.5 * ((axis - mean) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi)) for mean in means]
            product = parts[0]
            for part in parts[1:]:
                product = np.multiply.outer(product, part)
            total += weight * product
        return total

    one, other = density(p), density(q)
    cell = step**dimensions
    return np.array([float(np.maximum(one - value * other, 0.0).sum()) * cell for value in a])
