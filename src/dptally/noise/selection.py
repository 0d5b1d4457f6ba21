"""Exact selection: which candidate is chosen is decided by integers, from scores that are exact rationals.

Both samplers toss coins of probability exp(-epsilon (best - score) / (2 sensitivity)), which rationals allow exactly;
no noise is ever rounded, so nothing of it can be seen in ties. How many coins are tossed depends on the scores: who can
time a draw learns something of them, as with every rejection sampler.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dptally.errors import InvalidArgument
from dptally.noise import parameters, scalar, vector
from dptally.noise.parameters import Exact
from dptally.noise.samplers import FEW
from dptally.noise.source import SYSTEM, ByteSource, forget

__all__ = ["exponential_choice", "permute_and_flip"]


@overload
def exponential_choice(
    scores: Sequence[Exact], epsilon: Exact, sensitivity: Exact = ..., size: None = ..., *, _source: ByteSource = ...
) -> int: ...
@overload
def exponential_choice(
    scores: Sequence[Exact], epsilon: Exact, sensitivity: Exact, size: int, *, _source: ByteSource = ...
) -> NDArray[np.int64]: ...
@overload
def exponential_choice(
    scores: Sequence[Exact], epsilon: Exact, sensitivity: Exact = ..., *, size: int, _source: ByteSource = ...
) -> NDArray[np.int64]: ...
def exponential_choice(
    scores: Sequence[Exact],
    epsilon: Exact,
    sensitivity: Exact = 1,
    size: int | None = None,
    *,
    _source: ByteSource = SYSTEM,
) -> int | NDArray[np.int64]:
    """The place of a candidate, drawn with probability exactly proportional to exp(epsilon score / (2 sensitivity)).

    A candidate is drawn uniformly and kept with the probability of its coin, until one is kept: at most as many times,
    on average, as there are candidates. [McSherry, Talwar 2007]

    >>> exponential_choice([0, 10_000, 3], epsilon=1)
    1
    """
    exponents = _exponents(scores, epsilon, sensitivity)
    number = parameters.size_of(size)
    try:
        if number is None:
            return _one(_source, exponents)
        if number < FEW or not _fits(exponents):
            return np.array([_one(_source, exponents) for _ in range(number)], dtype=np.int64)
        return _many(_source, exponents, number)
    finally:
        forget(_source)


def _one(source: ByteSource, exponents: list[Fraction]) -> int:
    while True:
        place = scalar.below(source, len(exponents))
        if _keeps(source, exponents[place]):
            return place


def _fits(exponents: list[Fraction]) -> bool:
    """Whether the coins can be tossed in 64-bit integers."""
    bottom = math.lcm(*(x.denominator for x in exponents))
    return bottom <= vector.WIDEST and max(exponents) <= vector.WIDEST and len(exponents) <= vector.WIDEST


def _many(source: ByteSource, exponents: list[Fraction], number: int) -> NDArray[np.int64]:
    """The same for arrays: those that were not kept are drawn again."""
    bottom = math.lcm(*(x.denominator for x in exponents))
    whole = np.array([math.floor(x) for x in exponents], dtype=np.int64)
    rest = np.array([int((x - math.floor(x)) * bottom) for x in exponents], dtype=np.int64)
    out = np.zeros(number, dtype=np.int64)
    left = np.arange(number)
    while left.size:
        place = vector.below(source, len(exponents), left.size).astype(np.int64)
        kept = vector.bernoulli_exp(source, whole[place], rest[place], bottom)
        out[left[kept]] = place[kept]
        left = left[~kept]
    return out


def permute_and_flip(
    scores: Sequence[Exact], epsilon: Exact, sensitivity: Exact = 1, *, _source: ByteSource = SYSTEM
) -> int:
    """The place of a candidate: they are taken in random order, and the first whose coin falls well is the one.

    The best has a coin that never fails. [McKenna, Sheldon 2020]; the same as the largest score after exponential noise
    of scale 2 sensitivity / epsilon. [Ding et al. 2021]

    >>> permute_and_flip([0, 10_000, 3], epsilon=1)
    1
    """
    exponents = _exponents(scores, epsilon, sensitivity)
    left = list(range(len(exponents)))
    try:
        while True:
            place = left.pop(scalar.below(_source, len(left)))
            if _keeps(_source, exponents[place]):
                return place
    finally:
        forget(_source)


def _exponents(scores: Sequence[Exact], epsilon: Exact, sensitivity: Exact) -> list[Fraction]:
    """epsilon (best - score) / (2 sensitivity) of every candidate, at least 0."""
    rate = parameters.rational("epsilon", epsilon)
    if not rate >= 0:
        raise InvalidArgument("epsilon", "at least 0", epsilon)
    rate = rate / (2 * parameters.positive("sensitivity", sensitivity))
    exact = [parameters.rational("scores", score) for score in scores]
    if not exact:
        raise InvalidArgument("scores", "those of at least one candidate", "none")
    best = max(exact)
    return [rate * (best - score) for score in exact]


def _keeps(source: ByteSource, exponent: Fraction) -> bool:
    return scalar.bernoulli_exp(source, exponent.numerator, exponent.denominator)
