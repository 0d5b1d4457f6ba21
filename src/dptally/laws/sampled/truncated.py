r"""Truncated Poisson sampling: batches of at most B of n records, a uniform part of larger ones being dropped.

With full = P(Bin(n-1, q) >= B) and kept = P(Bin(n, q) > B) B / (n full), for every data set under ADD_REMOVE

    H_a <= (1 - full) H_a(Poisson pair at rate q) + full H_a(Poisson pair under REPLACE at rate kept, twice the
    contribution)

[Ganesh 2025, arXiv 2508.15089; proof in docs/batching.md]: a mixture of pairs that reveals which case held.
Under REPLACE

    H_a <= (1 - full) H_a(Poisson pair under REPLACE at rate q) + full H_a(fixed-size pair under REPLACE at share kept).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.laws.gaussian import GaussianLaw
from dptally.laws.mixed import MixedLaw
from dptally.laws.sampled.gaussian.fixed_size import FixedSizeGaussianLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.laws.sampled.gaussian.replace import SampledReplaceGaussianLaw
from dptally.numerics.exact import between

__all__ = ["NEVER", "TRUNCATED_THEOREM", "Overflow", "least_rate", "truncated_poisson_law", "truncated_replace_law"]

TRUNCATED_THEOREM = "Ganesh 2025, arXiv 2508.15089; a bounding pair: proof in dptally docs/batching.md"
_EXACT = 400  # records up to which the probabilities are exact fractions
_LEAST = 1e-100  # of the rates
_WIDER = 1e-9  # relative: what the incomplete beta function may be off by


@dataclass(frozen=True, slots=True)
class Overflow:
    """How batches overflow: upper bounds of P(Bin(n-1, q) < B), of ``full``, and of ``kept``, the rate given a full
    batch. The first two may add up to more than one.
    """

    room: float
    full: float
    kept: float

    @classmethod
    def of(cls, rate: float, records: int, cap: int) -> Overflow:
        if cap >= records:
            return NEVER
        room, full, beyond = _tails(rate, records, cap)
        kept = beyond[1] * cap / records / full[0] if full[0] > 0 else 1.0
        return cls(room[1], full[1], min(1.0, max(kept * (1 + 1e-15), _LEAST)))


NEVER = Overflow(1.0, 0.0, 0.0)
_Bounds = tuple[float, float]


@lru_cache(maxsize=64)
def _tails(rate: float, records: int, cap: int) -> tuple[_Bounds, _Bounds, _Bounds]:
    """Bounds of P(Bin(n-1, q) < B), of P(Bin(n-1, q) >= B) and of P(Bin(n, q) > B); cap < records."""
    if records <= _EXACT:
        q = Fraction(rate)
        full = _tail(q, records - 1, cap)
        return between(1 - full), between(full), between(_tail(q, records, cap + 1))
    from dptally.numerics.special import betainc, betaincc

    at = float(cap), float(records - cap), rate
    return _widened(betaincc(*at)), _widened(betainc(*at)), _widened(betainc(cap + 1.0, at[1], rate))


def _widened(value: float) -> _Bounds:
    value = float(value)
    return max(0.0, value * (1 - _WIDER)), min(1.0, value * (1 + _WIDER) + 1e-300)


def _tail(q: Fraction, number: int, least: int) -> Fraction:
    return sum((math.comb(number, k) * q**k * (1 - q) ** (number - k) for k in range(least, number + 1)), Fraction(0))


def least_rate(rate: float, records: int, cap: int) -> float:
    """A lower bound of the probability that a record is in the batch: q P(Bin(n-1, q) < B) + P(Bin(n, q) > B)
    B / n; cap < records."""
    room, _, beyond = _tails(rate, records, cap)
    return max(0.0, (rate * room[0] + beyond[0] * cap / records) * (1 - 1e-14))


def truncated_poisson_law(rate: float, sigma: float, overflow: Overflow, side: Direction) -> Law:
    """The bounding pair in one direction."""
    return _mixed(
        SampledGaussianLaw(rate, sigma, side),
        lambda kept: SampledReplaceGaussianLaw(kept, 0.5 * sigma),
        between(16 / Fraction(sigma) ** 2)[1],
        overflow,
    )


def truncated_replace_law(rate: float, sigma: float, overflow: Overflow) -> Law:
    """The bounding pair under REPLACE, the same in both directions."""
    return _mixed(
        SampledReplaceGaussianLaw(rate, sigma),
        lambda kept: FixedSizeGaussianLaw(kept, 0.5 * sigma),
        between(4 / Fraction(sigma) ** 2)[1],
        overflow,
    )


def _mixed(plain: Law, other: Callable[[float], Law], whole: float, overflow: Overflow) -> Law:
    """``plain`` where there is room, else ``other`` at the rate kept: a Gaussian of mu^2 ``whole`` where that is 1."""
    if overflow.full == 0.0:
        return plain
    full = GaussianLaw(whole) if overflow.kept >= 1.0 else other(overflow.kept)
    return MixedLaw(((plain, overflow.room), (full, overflow.full)), TRUNCATED_THEOREM) if overflow.room > 0 else full
