"""What the noise should be: exact probabilities, a chi-square test against them, byte sources for tests."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.special import gammaincc


def laplace_cdf(scale: Fraction, x: np.ndarray) -> np.ndarray:
    """P(X <= x) = a^-x / (1 + a) below zero and 1 - a^(x+1) / (1 + a) from zero on, a = exp(-1 / scale)."""
    rate = 1 / float(scale)
    small = np.exp(-rate * np.where(x < 0, -x, x + 1)) / (1 + math.exp(-rate))
    return np.where(x < 0, small, 1 - small)


def gaussian_cdf(sigma: Fraction, x: np.ndarray) -> np.ndarray:
    reach = int(40 * sigma) + 40
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / float(sigma)) ** 2)
    return (np.cumsum(weights) / weights.sum())[np.clip(np.asarray(x) + reach, 0, 2 * reach)]


def chi_square(draws: np.ndarray, cdf: Callable[[np.ndarray], np.ndarray], spread: float, cells: int = 150) -> float:
    """The p-value of integer draws: neighbouring integers form cells that expect enough draws each."""
    edges = np.rint(float(spread) * np.linspace(-20, 20, 4 * cells)).astype(np.int64)  # cells (a, b]
    edges = np.unique(np.concatenate([edges, np.arange(-3, 3)]))
    expected = len(draws) * np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(expected)).astype(float)
    pooled: list[list[float]] = [[0.0, 0.0]]
    for cell in zip(expected, observed, strict=True):
        if pooled[-1][0] >= 10:
            pooled.append([0.0, 0.0])
        pooled[-1][0] += cell[0]
        pooled[-1][1] += cell[1]
    if pooled[-1][0] < 10:
        last = pooled.pop()
        pooled[-1][0] += last[0]
        pooled[-1][1] += last[1]
    assert len(pooled) >= 2, "one cell tests nothing"
    statistic = sum((seen - hoped) ** 2 / hoped for hoped, seen in pooled)
    return float(gammaincc((len(pooled) - 1) / 2, statistic / 2))


def binomial_p_value(successes: int, n: int, p: float) -> float:
    """Two-sided, by the chi-square of two cells."""
    return float(gammaincc(0.5, (successes - n * p) ** 2 / (n * p * (1 - p)) / 2))


class Scripted:
    """Hands out the given bytes, then fails: for paths that no honest source would ever take."""

    def __init__(self, script: bytes) -> None:
        self.script = script

    def take(self, count: int) -> bytes:
        taken, self.script = self.script[:count], self.script[count:]
        assert len(taken) == count, "the script is used up"
        return taken


class Hashed:
    """A fixed stream of bytes, so that a test can be repeated bit for bit."""

    def __init__(self, name: str) -> None:
        self.name, self.counter = name, 0

    def take(self, count: int) -> bytes:
        self.counter += 1
        return hashlib.shake_128(f"{self.name}:{self.counter}".encode()).digest(count)


class Forbidden:
    """Fails the test if a single byte is asked for."""

    def take(self, count: int) -> bytes:
        raise AssertionError("randomness was drawn")
