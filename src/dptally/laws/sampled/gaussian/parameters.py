"""The declared parameters of Gaussian noise on a sample, exactly, and the doubles on either side of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dptally.numerics.decimals import around, exact, log1p, sixty_digits
from dptally.numerics.exact import between, root

__all__ = ["Declared", "edge"]


@dataclass(frozen=True, slots=True)
class Declared:
    """The rate q, and mu^2 = 1/sigma^2, sigma the noise per unit of one record's contribution."""

    rate: Fraction
    variance: Fraction

    def pessimistic(self) -> tuple[float, float]:
        """(rate, sigma): more sampling and less noise tell more."""
        rate, sigma = _ends(self.rate, self.variance)
        return rate[1], sigma[0]

    def optimistic(self) -> tuple[float, float]:
        """(rate, sigma), rounded the other way; the rate stays positive."""
        rate, sigma = _ends(self.rate, self.variance)
        return rate[0], sigma[1]

    def rounded(self) -> tuple[tuple[float, float], Declared | None]:
        """:meth:`pessimistic`, and itself unless both are doubles."""
        rate, sigma = _ends(self.rate, self.variance)
        return (rate[1], sigma[0]), None if rate[0] == rate[1] and sigma[0] == sigma[1] else self


def _ends(rate: Fraction, variance: Fraction) -> tuple[tuple[float, float], tuple[float, float]]:
    """The closest doubles around the rate, and around sigma."""
    return between(rate), _noise(*variance.as_integer_ratio())


@lru_cache(maxsize=256)
def _noise(numerator: int, denominator: int) -> tuple[float, float]:
    """The closest doubles around sigma, from 1/sigma^2: both directions ask for them. (Integers are hashed fast.)"""
    return root(Fraction(denominator, numerator))


@lru_cache(maxsize=256)
def edge(rate: float | Fraction) -> tuple[float, float]:
    """The closest doubles around -log(1 - q), 0 < q < 1: the largest loss of absence."""
    with sixty_digits():
        return around(-log1p(-exact(rate)))
