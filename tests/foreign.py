"""Laws and mechanisms as somebody else would write them, for tests of what an open interface must survive."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import dptally as dp
from dptally.law import Law
from dptally.law.law import Floats, Numbers

__all__ = ["Coin", "CoinLaw", "Rated"]


@dataclass(frozen=True, slots=True)
class CoinLaw(Law):
    """Losses l and -l of randomized response, l = ``variance``: a name that the Gaussian law uses for its own."""

    variance: float
    theorem: ClassVar[str] = "Warner 1965, Randomized response, Sec. 2"

    @property
    def reach(self) -> float:
        return self.variance

    @property
    def likely(self) -> float:
        return 1.0 / (1.0 + math.exp(-self.reach))

    def log_moment(self, t: Numbers) -> Numbers:
        t = np.asarray(t)
        likely, reach = self.likely, self.reach
        return np.log1p(likely * np.expm1(t * reach) + (1.0 - likely) * np.expm1(-t * reach))

    @property
    def mean(self) -> float:
        return (2.0 * self.likely - 1.0) * self.reach

    @property
    def supremum(self) -> float:
        return self.reach

    @property
    def infimum(self) -> float:
        return -self.reach

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        gain = [sum(mass * -math.expm1(min(e - loss, 0.0)) for loss, mass in self.atoms()) for e in np.ravel(epsilon)]
        with np.errstate(divide="ignore"):
            value = np.log(np.array(gain)).reshape(np.shape(epsilon))
        return value - 1e-14, value + 1e-14

    def tail(self, loss: Floats) -> Floats:
        return np.where(loss < -self.reach, 1.0, np.where(loss < self.reach, self.likely, 0.0))

    def atoms(self) -> tuple[tuple[float, float], ...]:
        return ((-self.reach, 1.0 - self.likely), (self.reach, self.likely))

    def reverse(self) -> Law:
        return self


@dataclass(frozen=True, slots=True)
class Coin(dp.Mechanism):
    """A mechanism of somebody else, with a law of their own."""

    loss: float
    json_name: ClassVar[str] = "coin"

    def laws(self) -> tuple[Law, ...]:
        return (CoinLaw(self.loss),)


@dataclass(frozen=True, slots=True)
class Rated(dp.Mechanism):
    """A coin with parameters that mean something else here than elsewhere: nothing is sampled, nothing declared."""

    rate: float
    sigma: float
    adjacency: str
    sensitivity: float
    declared_epsilon: float = 0.0

    def laws(self) -> tuple[Law, ...]:
        return (CoinLaw(self.rate),)
