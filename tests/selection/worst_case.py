"""Truth for selection that shares no code with the library: closed forms, enumeration, nested searches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Profile = Callable[[float], float]

GOLDEN = (math.sqrt(5) - 1) / 2


def nothing(epsilon: float) -> float:
    return max(0.0, -math.expm1(epsilon))


def one_use(size: float) -> Profile:
    """The sup over u of the two-point pairs with losses u and u - size, in closed form."""

    def profile(epsilon: float) -> float:
        if epsilon >= size:
            return 0.0
        if epsilon <= -size:
            return -math.expm1(epsilon)
        return math.expm1(0.5 * (epsilon - size)) ** 2 / -math.expm1(-size)

    return profile


def two_points(u: float, size: float) -> float:
    """P(loss = u) where the other loss is u - size."""
    return math.expm1(u - size) / math.expm1(-size)


def one_more(size: float, rest: Profile, places: int = 33) -> Profile:
    """sup over u of p rest(e - u) + (1 - p) rest(e - u + size): a grid, then golden sections around its three best."""

    def profile(epsilon: float) -> float:
        def value(u: float) -> float:
            p = two_points(u, size)
            return p * rest(epsilon - u) + (1 - p) * rest(epsilon - u + size)

        grid = [size * i / (places - 1) for i in range(places)]
        values = [value(u) for u in grid]
        best = max(values)
        for i in sorted(range(places), key=lambda i: -values[i])[:3]:
            low, high = grid[max(i - 1, 0)], grid[min(i + 1, places - 1)]
            for _ in range(40):
                a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
                if value(a) > value(b):
                    high = b
                else:
                    low = a
            best = max(best, value(0.5 * (low + high)))
        return best

    return profile


def any_order(*sizes: float) -> Profile:
    """The worst of all orders, one more use at a time."""
    if len(sizes) == 1:
        return one_use(sizes[0])
    options = [
        one_more(size, any_order(*(sizes[:i] + sizes[i + 1 :])), 9 if len(sizes) > 2 else 33)
        for i, size in enumerate(sizes)
        if size not in sizes[:i]
    ]
    return lambda epsilon: max(option(epsilon) for option in options)


def exponential(scores: Floats, epsilon: float) -> Floats:
    """Probabilities of the exponential mechanism, sensitivity 1; one row of scores for each dataset."""
    weights = np.exp(0.5 * epsilon * (scores - scores.max(axis=-1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def permute_and_flip(scores: Floats, epsilon: float) -> Floats:
    """Its probabilities, over all orders of the candidates."""
    stops = np.exp(0.5 * epsilon * (scores - scores.max(axis=-1, keepdims=True)))
    out = np.zeros_like(stops)
    number = scores.shape[-1]
    for order in itertools.permutations(range(number)):
        left = np.ones(scores.shape[:-1])
        for i in order:
            out[..., i] += left * stops[..., i]
            left = left * (1 - stops[..., i])
    return out / math.factorial(number)


def hockey_stick(p: Floats, q: Floats, epsilon: float) -> Floats:
    return np.asarray(np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=-1))


def neighbours(
    generator: np.random.Generator, number: int, candidates: int, monotone: bool = False
) -> tuple[Floats, Floats]:
    """Random scores and those of a neighbour, which moves each by at most 1; many of them by all of it."""
    scores = generator.normal(0.0, generator.choice([0.3, 1.0, 4.0], (number, 1)), (number, candidates))
    moves = generator.uniform(-1.0, 1.0, (number, candidates))
    extreme = np.sign(moves)
    moves = np.where(generator.random((number, 1)) < 0.7, extreme, moves)
    return scores, scores + (0.5 * (moves + 1.0) if monotone else moves)
