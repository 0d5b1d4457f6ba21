"""Tiny laws for tests of the lattice: a profile and what the abstract law asks for, nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dptally.law import Law

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class UniformLaw(Law):
    """The loss is uniform on [low, high] with total mass ``mass``; the rest is at infinity."""

    low: float
    high: float
    mass: float = 1.0

    def log_moment(self, t: NDArray[np.generic]) -> NDArray[np.generic]:
        raise NotImplementedError

    @property
    def mean(self) -> float:
        return 0.5 * (self.low + self.high) * self.mass

    @property
    def infinity_mass(self) -> float:
        return 1.0 - self.mass

    @property
    def supremum(self) -> float:
        return self.high

    @property
    def infimum(self) -> float:
        return self.low

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """mass / (high - low) times the integral of 1 - e^{eps - l} over l > max(eps, low)."""
        start = np.clip(epsilon, self.low, self.high)
        # with d = high - start: d - e^{eps - start} (1 - e^-d), by series where that cancels
        d, factor = self.high - start, np.exp(epsilon - start)
        small = d < 1e-2
        series = d * d / 2 * (1 - d / 3 * (1 - d / 4 * (1 - d / 5 * (1 - d / 6 * (1 - d / 7 * (1 - d / 8))))))
        inner = np.where(small, series, d + np.expm1(-d))
        value = self.mass / (self.high - self.low) * (inner + (1 - factor) * -np.expm1(-d))
        with np.errstate(divide="ignore"):
            log_value = np.log(np.maximum(value, 0.0))
        slack = np.where(log_value > -math.inf, 1e-13, 0.0)
        return log_value - slack, log_value + slack

    def tail(self, loss: Floats) -> Floats:
        return self.mass * np.clip((self.high - loss) / (self.high - self.low), 0.0, 1.0)

    def uniform_log_delta(self, count: int, epsilon: float) -> float:
        """log delta of ``count`` copies, by simulation-free quadrature: the Irwin-Hall density against the
        payoff."""
        width = self.high - self.low
        start, stop = max(epsilon, count * self.low), count * self.high
        x = np.linspace(start, stop, 200_001)
        u = (x - count * self.low) / width
        density = sum((-1) ** j * math.comb(count, j) * np.maximum(u - j, 0.0) ** (count - 1) for j in range(count + 1))
        values = density / math.factorial(count - 1) / width * -np.expm1(epsilon - x)
        weights = np.ones_like(x)
        weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
        total = float((values * weights).sum()) * (x[1] - x[0]) / 3
        return count * math.log(self.mass) + math.log(total)


@dataclass(frozen=True, slots=True)
class BrokenLaw(UniformLaw):
    """A law whose profile is NaN somewhere: the answer must stay safe."""

    spoil: Callable[[Floats], Floats] = np.isfinite

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        lower, upper = UniformLaw.log_profile(self, epsilon)
        hole = (epsilon > 0.2) & (epsilon < 0.3)
        return np.where(hole, math.nan, lower), np.where(hole, math.nan, upper)
