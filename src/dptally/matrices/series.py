"""First columns that are given by a recursion, expanded in integers: coefficient times 2^bits, with an error bound.

Nothing is assumed of the recursion's stability: the error is carried along, and where it grows the bits are doubled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from dptally.errors import InvalidArgument
from dptally.matrices.bounds import LARGEST, SMALLEST
from dptally.matrices.toeplitz import Column
from dptally.numerics.rounding import up

__all__ = ["buffered", "inverse"]

Expansion = tuple[list[int], list[int]]
_FIRST_BITS, _MOST_BITS = 512, 1 << 15
_SHARP = 60  # bits of the largest coefficient that are kept


def inverse(coefficients: Sequence[float], steps: int) -> Column:
    """The first column of the inverse of the lower triangular Toeplitz matrix with first column ``coefficients``.

    c_0 = 1/a_0, c_i = -(a_1 c_{i-1} + a_2 c_{i-2} + ..)/a_0.
    """
    top, *rest = _integers(coefficients)

    def expand(bits: int) -> Expansion:
        value = [math.floor(2**bits / Fraction(coefficients[0]))]
        error = [1]
        weights, sizes = list(enumerate(rest, 1)), [(j, abs(a)) for j, a in enumerate(rest, 1)]
        for i in range(1, steps):
            value.append(-sum(a * value[i - j] for j, a in weights if j <= i) // top)
            error.append(-(-sum(a * error[i - j] for j, a in sizes if j <= i) // abs(top)) + 1)
        return value, error

    return _column(expand, steps)


def buffered(decays: Sequence[float], scales: Sequence[float], steps: int) -> Column:
    """c_0 = 1, c_i = sum_k scales_k decays_k^{i-1}; decays within [-1, 1], so an error never grows in a product."""

    def expand(bits: int) -> Expansion:
        unit = 1 << bits
        factors = [(Fraction(decay), Fraction(scale)) for decay, scale in zip(decays, scales, strict=True)]
        terms = [math.floor(scale * unit) for _, scale in factors]
        value, error = [unit], [0]
        for i in range(1, steps):
            value.append(sum(terms))
            error.append(i * len(terms))
            terms = [
                term * decay.numerator // decay.denominator for term, (decay, _) in zip(terms, factors, strict=True)
            ]
        return value, error

    return _column(expand, steps)


def _integers(numbers: Sequence[float]) -> list[int]:
    """The same numbers times a power of two."""
    exact = [Fraction(number) for number in numbers]
    common = max(number.denominator for number in exact)
    return [int(number * common) for number in exact]


def _column(expand: Callable[[int], Expansion], steps: int) -> Column:
    bits = _FIRST_BITS
    while True:
        value, error = expand(bits)
        largest = max(map(abs, value))
        if max(error) << _SHARP <= largest:
            return _rounded(value, error, bits, steps)
        bits *= 2
        if bits > _MOST_BITS:
            raise InvalidArgument(
                "coefficients", f"such that {steps} terms can be expanded with {_MOST_BITS} bits", f"{steps} steps"
            )


def _rounded(value: list[int], error: list[int], bits: int, steps: int) -> Column:
    unit = Fraction(1, 1 << bits)
    if not SMALLEST <= max(map(abs, value)) * unit <= LARGEST:
        raise InvalidArgument(
            "coefficients", f"such that the strategy's largest entry is within {SMALLEST}..{LARGEST}", f"{steps} steps"
        )
    center = np.array([float(one * unit) for one in value])
    off = np.array([float(one * unit) for one in error])
    # a double is within half an ulp of what was rounded to it; below 1e-100 the radius is raised to that
    return Column(center, np.maximum(up(off + np.abs(center) * 2.0**-52), SMALLEST), steps)
