"""The samplers in Python integers: any width, one draw at a time.

Every outcome is decided by comparing integers. [Canonne, Kamath, Steinke 2020, The discrete Gaussian for
differential privacy, Algorithms 1-3]. ``vector.py`` holds the same algorithms for arrays of 64-bit integers.
"""

from __future__ import annotations

import math

from dptally.noise.source import ByteSource

__all__ = ["below", "bernoulli", "bernoulli_exp", "gaussian", "laplace"]


def below(source: ByteSource, bound: int) -> int:
    """Uniform on {0, ..., bound - 1}: as many bits as needed, redrawn until they fall below the bound."""
    if bound == 1:
        return 0
    bits = (bound - 1).bit_length()
    size = (bits + 7) >> 3
    excess = 8 * size - bits
    while True:
        drawn = (source.take(1)[0] if size == 1 else int.from_bytes(source.take(size), "little")) >> excess
        if drawn < bound:
            return drawn


def bernoulli(source: ByteSource, numerator: int, denominator: int) -> bool:
    """True with probability numerator / denominator, for 0 <= numerator <= denominator."""
    return below(source, denominator) < numerator


def _exp_of_fraction(source: ByteSource, numerator: int, denominator: int) -> bool:
    """True with probability exp(-x), x = numerator / denominator in [0, 1], by von Neumann's series.

    Let K be the first k at which a coin of bias x / k fails. P(K > k) = x^k / k!, so P(K odd) = exp(-x).
    """
    k = 1
    while below(source, k) == 0 and below(source, denominator) < numerator:
        k += 1
    return k % 2 == 1


def _exp_of_one(source: ByteSource) -> bool:
    """True with probability exp(-1): the first coin of the series is certain, so it starts at the second."""
    k = 2
    while below(source, k) == 0:
        k += 1
    return k % 2 == 1


def bernoulli_exp(source: ByteSource, numerator: int, denominator: int) -> bool:
    """True with probability exp(-numerator / denominator), for any exponent >= 0."""
    whole, rest = divmod(numerator, denominator)
    for _ in range(whole):
        if not _exp_of_one(source):
            return False
    return _exp_of_fraction(source, rest, denominator)


def laplace(source: ByteSource, numerator: int, denominator: int) -> int:
    """P(x) proportional to exp(-|x| / s) on the integers, s = numerator / denominator.  [CKS 2020, Alg. 2]"""
    while True:
        low = below(source, numerator)
        if not _exp_of_fraction(source, low, numerator):
            continue
        high = 0
        while _exp_of_one(source):
            high += 1
        size = (low + numerator * high) // denominator
        negative = below(source, 2)
        if negative and size == 0:  # zero has one sign only
            continue
        return -size if negative else size


def gaussian(source: ByteSource, numerator: int, denominator: int) -> int:
    """P(x) proportional to exp(-x^2 / (2 v)) on the integers, v = numerator / denominator.  [CKS 2020, Alg.
    3]

    A discrete Laplace draw y of integer scale t = floor(sqrt(v)) + 1 is kept with probability
    exp(-(|y| - v/t)^2 / (2 v)) = exp(-(|y| d t - n)^2 / (2 n d t^2)).
    """
    scale = math.isqrt(numerator // denominator) + 1
    step = denominator * scale
    bottom = 2 * numerator * denominator * scale * scale
    while True:
        drawn = laplace(source, scale, 1)
        if bernoulli_exp(source, (abs(drawn) * step - numerator) ** 2, bottom):
            return drawn
