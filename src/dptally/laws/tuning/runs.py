r"""How many runs are made: a number K that is drawn before the search and does not depend on the data.

f(x) = E x^K. The winner lies above a level that one run passes with probability v if any run does:

    hit(v) = 1 - f(1 - v),        f'(1) = E K = m.

Truncated negative binomial (shape eta > -1, g in (0, 1]):  f'(x) = m (g / (1 - (1-g) x))^{eta+1}, K >= 1. With
k = (1-g)/g and z = log(1 + k v):   hit(v) = (1 - e^{-eta z}) / (1 - g^eta);  z / log(1/g) for eta = 0. Shape 1 is
geometric, shape 0 logarithmic.   Poisson(mu):  hit(v) = 1 - e^{-mu v}; K may be 0.

What one run's guarantee Q(S) <= a P(S) + d says of the winner is in docs/tuning.md: with u the probability that a run
beats the winner, the density of the winner is f'(1 - u) times that of a run, and f'(1 - u_P) / f'(1 - u_Q) is

    at most (max(1 + k d, g + (1-g)(a + d)))^{eta+1}   or   e^{mu (a - 1 + d)}                       (``log_ratio``)

and f'(1 - u_P)^{1+t} f'(1 - u_Q)^{-t} at most m (1 + k d)^{t (eta+1)} where a <= (1 + 1/t)(1 + k d), or m e^{t mu d}
where a <= 1 + 1/t                                                                               (``order_cost``).

That bounds log E e^{tL} of the winner by that of a run, K(t):  log m + K(t) + t cost,  or, for Poisson numbers, the
smaller one of log(1 + mu e^{t cost} (e^{K(t)} - 1)) and mu (e^{K(t)} - 1)                      (``log_moment``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dptally.checks import Floats
from dptally.errors import InvalidArgument
from dptally.numerics.rounding import EPS, up

__all__ = ["NegativeBinomialRuns", "PoissonRuns", "Runs"]

_LONGEST = 400.0  # log(1/g)


class Runs(ABC):
    """The law of K."""

    __slots__ = ()

    @property
    @abstractmethod
    def mean_upper(self) -> float:
        """E K, rounded up."""

    @property
    @abstractmethod
    def none(self) -> float:
        """P(K = 0), rounded up."""

    @abstractmethod
    def hits(self, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Bounds of hit(before) - hit(after), before >= after, elementwise."""

    @abstractmethod
    def log_ratio(self, a: float, delta: float) -> float:
        """The logarithm of the first bound above, rounded up."""

    @abstractmethod
    def crossing(self, level: float, slope: float) -> float:
        """About the a with the least ``log_ratio``, where delta(a) = level - slope a."""

    @abstractmethod
    def passes(self, a: Floats, delta: Floats) -> Floats:
        """The second bound holds where this is at most 1 + 1/t; rounded up."""

    @abstractmethod
    def order_cost(self, delta: Floats) -> Floats:
        """The logarithm of the second bound, without m and for t = 1, rounded up."""

    @abstractmethod
    def log_moment(self, t: Floats, moment: Floats, cost: Floats, infinite: float = 0.0) -> Floats:
        """The last bound above, rounded up, where a run has at most ``moment`` >= 0, of finite losses alone.

        ``infinite``: the probability that a run loses everything.
        """


@dataclass(frozen=True, slots=True)
class NegativeBinomialRuns(Runs):
    """Truncated negative binomial; ``g`` is exact, the mean follows from it."""

    shape: float
    g: float

    @classmethod
    def of_mean(cls, mean: float, shape: float) -> NegativeBinomialRuns:
        """The g whose mean is the given one, to the last bits."""
        return cls(shape, _g_of_mean(mean, shape))

    @property
    def _odds(self) -> float:
        """(1 - g) / g, within 2 ulps."""
        return (1.0 - self.g) / self.g

    @property
    def _length(self) -> float:
        """log(1/g)."""
        return -math.log(self.g)

    @property
    def mean_upper(self) -> float:
        return up(_mean(self._odds, self._length, self.shape), 32)

    @property
    def none(self) -> float:
        return 0.0

    def hits(self, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """hit(b) - hit(a) = e^{-eta z_a} (1 - e^{-eta y}) / (1 - g^eta), y = log(1 + k (b - a)/(1 + k a)).

        z and y are good to 8 ulps, a product with eta z of at most eta log(1/g) is exponentiated.
        """
        gap = before - after
        if self.g == 1.0:
            return np.maximum(gap * (1 - 2 * EPS), 0.0), gap * (1 + 2 * EPS)
        k, eta = self._odds, self.shape
        y = np.log1p(k * gap / (1.0 + k * after))
        if eta == 0:
            value = y / self._length
        else:
            z = np.log1p(k * after)
            value = np.exp(-eta * z) * (np.expm1(-eta * y) / math.expm1(-eta * self._length))
        error = EPS * (64 + 16 * abs(eta) * self._length)
        return value * (1 - error), value * (1 + error)

    def log_ratio(self, a: float, delta: float) -> float:
        tied, spread = math.log1p(self._odds * delta), math.log(self.g + (1.0 - self.g) * (a + delta))
        return up((self.shape + 1.0) * (max(tied, spread, 0.0) + 8 * EPS), 8)

    def crossing(self, level: float, slope: float) -> float:
        return (1.0 + self._odds * level) / (1.0 + self._odds * slope)

    def passes(self, a: Floats, delta: Floats) -> Floats:
        return up(a / (1.0 + self._odds * delta), 8)

    def order_cost(self, delta: Floats) -> Floats:
        return up((self.shape + 1.0) * np.log1p(self._odds * delta), 8)

    def log_moment(self, t: Floats, moment: Floats, cost: Floats, infinite: float = 0.0) -> Floats:
        del infinite
        return up(moment + t * cost + up(math.log(self.mean_upper), 4), 16)


@dataclass(frozen=True, slots=True)
class PoissonRuns(Runs):
    """K ~ Poisson(mean)."""

    mean: float

    @property
    def mean_upper(self) -> float:
        return self.mean

    @property
    def none(self) -> float:
        return up(math.exp(-self.mean), 4)

    def hits(self, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        value = np.exp(-self.mean * after) * -np.expm1(-self.mean * (before - after))
        error = EPS * (16 + 4 * self.mean)
        return value * (1 - error), value * (1 + error)

    def log_ratio(self, a: float, delta: float) -> float:
        return up(self.mean * (up(max(a - 1.0, 0.0)) + delta), 4)

    def crossing(self, level: float, slope: float) -> float:
        del level, slope
        return 1.0

    def passes(self, a: Floats, delta: Floats) -> Floats:
        del delta
        return a

    def order_cost(self, delta: Floats) -> Floats:
        return up(self.mean * delta, 4)

    def log_moment(self, t: Floats, moment: Floats, cost: Floats, infinite: float = 0.0) -> Floats:
        """The sum of logarithms is good to its largest terms; of it log(1 + e^x) grows by no more than that."""
        if infinite > 0:
            moment = up(np.logaddexp(moment, np.log1p(t) + math.log(infinite)) + 8 * EPS * (1 - math.log(infinite)), 16)
        terms = np.array([np.full_like(t, math.log(self.mean)), t * cost, moment, np.log(-np.expm1(-moment))])
        total = terms.sum(axis=0)
        total = np.where(np.isfinite(total), total + 8 * EPS * np.abs(terms).sum(axis=0), total)
        listed = self.mean * np.expm1(moment) if infinite == 0 else np.full_like(t, np.inf)
        return np.asarray(up(np.minimum(np.logaddexp(0.0, total), listed), 8))


def _mean(odds: float, length: float, shape: float) -> float:
    """E K = k eta / (1 - g^eta): k / log(1/g) for shape 0, and 1 where g = 1."""
    if odds == 0:
        return 1.0
    return odds * (1.0 / length if shape == 0 else shape / -math.expm1(-shape * length))


@lru_cache(maxsize=256)
def _g_of_mean(mean: float, shape: float) -> float:
    """Bisection on log(1/g); what it leaves is a g of its own, whose mean is the one that counts."""
    if mean == 1.0:
        return 1.0
    low, high = 0.0, _LONGEST
    if not _mean(math.expm1(high), high, shape) >= mean:
        raise InvalidArgument("mean, shape", f"a law with g >= e^-{_LONGEST:g}: a smaller mean, a larger shape", mean)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if _mean(math.expm1(middle), middle, shape) < mean else (low, middle)
    return math.exp(-high)
