"""An independent truth for small strategies: every pattern, in exact rationals, with records that are vectors."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np

Exact = list[list[Fraction]]


def patterns(steps: int, times: int, gap: int) -> Iterator[tuple[int, ...]]:
    """Every set of at most ``times`` steps that are ``gap`` or more apart."""
    for size in range(1, times + 1):
        for chosen in combinations(range(steps), size):
            if all(later - earlier >= gap for earlier, later in pairwise(chosen)):
                yield chosen


def cyclic(steps: int, gap: int) -> Iterator[tuple[int, ...]]:
    for start in range(min(gap, steps)):
        yield tuple(range(start, steps, gap))


def gram(matrix: np.ndarray) -> Exact:
    columns = [[Fraction(float(entry)) for entry in column] for column in np.asarray(matrix).T]
    return [[sum((a * b for a, b in zip(one, two, strict=True)), Fraction(0)) for two in columns] for one in columns]


def absolute(table: Exact, pattern: tuple[int, ...]) -> Fraction:
    """sum |G_ij|: at least what any records attain, and attained where no entry is negative."""
    return sum((abs(table[i][j]) for i in pattern for j in pattern), Fraction(0))


def signed(table: Exact, pattern: tuple[int, ...]) -> Fraction:
    """The most that records of one dimension attain."""
    first, *rest = pattern
    best = Fraction(0)
    for choice in range(1 << len(rest)):
        signs = {first: 1, **{i: 1 if choice >> bit & 1 else -1 for bit, i in enumerate(rest)}}
        best = max(best, sum((signs[i] * signs[j] * table[i][j] for i in pattern for j in pattern), Fraction(0)))
    return best


def vectors(table: Exact, pattern: tuple[int, ...], rng: np.random.Generator, starts: int = 4) -> float:
    """What unit vectors attain, found by turning one at a time towards the sum of the others; a lower bound."""
    inside = np.array([[float(table[i][j]) for j in pattern] for i in pattern])
    best = 0.0
    for _ in range(starts):
        u = rng.normal(size=(len(pattern), len(pattern)))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        for _ in range(60):
            for i in range(len(pattern)):
                pull = inside[i] @ u - inside[i, i] * u[i]
                if np.linalg.norm(pull) > 0:
                    u[i] = pull / np.linalg.norm(pull)
        best = max(best, float(np.sum(inside * (u @ u.T))))
    return best
