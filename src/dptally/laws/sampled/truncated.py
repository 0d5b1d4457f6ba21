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

__all__ = ["TRUNCATED_THEOREM", "least_rate", "overflow", "truncated_poisson_law", "truncated_replace_law"]

TRUNCATED_THEOREM = "Ganesh 2025, arXiv 2508.15089; a bounding pair: proof in dptally docs/batching.md"
_EXACT = 400  # records up to which the probabilities are exact fractions
_WIDER = 1e-9  # relative: what the incomplete beta function may be off by


@lru_cache(maxsize=64)
def _tails(rate: float, records: int, cap: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Bounds of P(Bin(n-1, q) >= B) and of P(Bin(n, q) > B)."""
    if records <= _EXACT:
        q = Fraction(rate)
        return between(_tail(q, records - 1, cap)), between(_tail(q, records, cap + 1))
    from dptally.numerics.special import betainc

    found = []
    for number, least in ((records - 1, cap), (records, cap + 1)):
        value = float(betainc(float(least), float(number - least + 1), rate)) if least <= number else 0.0
        found.append((max(0.0, value * (1 - _WIDER)), min(1.0, value * (1 + _WIDER) + 1e-300)))
    return found[0], found[1]


def _tail(q: Fraction, number: int, least: int) -> Fraction:
    return sum((math.comb(number, k) * q**k * (1 - q) ** (number - k) for k in range(least, number + 1)), Fraction(0))


def overflow(rate: float, records: int, cap: int) -> tuple[float, float]:
    """Upper bounds of ``full`` and ``kept``; full is rounded up, kept such that full * kept is."""
    full, beyond = _tails(rate, records, cap)
    if not full[1] > 0:
        return 0.0, 0.0
    kept = beyond[1] * cap / records / max(full[0], 5e-324) if full[0] > 0 else 1.0
    return full[1], min(1.0, kept * (1 + 1e-15))


def least_rate(rate: float, records: int, cap: int) -> float:
    """A lower bound of the probability that a record is in the batch: q (1 - full) + P(Bin(n, q) > B) B / n."""
    full, beyond = _tails(rate, records, cap)
    return max(0.0, (rate * (1 - full[1]) + beyond[0] * cap / records) * (1 - 1e-14))


def truncated_poisson_law(rate: float, sigma: float, full: float, kept: float, side: Direction) -> Law:
    """The bounding pair in one direction."""
    plain = SampledGaussianLaw(rate, sigma, side)
    other: Law = SampledReplaceGaussianLaw(kept, 0.5 * sigma) if 1e-100 <= kept < 1.0 else plain
    if kept >= 1.0:
        other = GaussianLaw(between(16 / Fraction(sigma) ** 2)[1])
    return _mixed(plain, other, full if kept >= 1e-100 else 0.0)


def truncated_replace_law(rate: float, sigma: float, full: float, kept: float) -> Law:
    """The bounding pair under REPLACE, the same in both directions."""
    plain = SampledReplaceGaussianLaw(rate, sigma)
    other: Law = FixedSizeGaussianLaw(kept, 0.5 * sigma) if 1e-100 <= kept < 1.0 else plain
    if kept >= 1.0:
        other = GaussianLaw(between(4 / Fraction(sigma) ** 2)[1])
    return _mixed(plain, other, full if kept >= 1e-100 else 0.0)


def _mixed(plain: Law, other: Law, full: float) -> Law:
    """``other`` with probability ``full``; probabilities that may add up to a little more than one, both rounded up."""
    if full == 0.0:
        return plain
    if full >= 1.0:
        return other
    return MixedLaw(((plain, math.nextafter(1.0 - full, 1.0)), (other, full)), TRUNCATED_THEOREM)
