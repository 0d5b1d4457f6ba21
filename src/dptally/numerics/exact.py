"""Neighbouring doubles around an exact rational: what is left of a parameter's rounding, made visible."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

__all__ = ["between", "quotient", "root"]

_LARGEST = sys.float_info.max


def between(value: Fraction) -> tuple[float, float]:
    """The closest doubles with lower <= value <= upper; equal where the value is a double.

    Beyond the largest double lies infinity, which is a bound too.

    >>> between(Fraction(1, 2)), between(Fraction(1, 20))[1]
    ((0.5, 0.5), 0.05)
    """
    numerator, denominator = value.numerator, value.denominator
    try:
        nearest = numerator / denominator  # of two integers: rounded correctly
    except OverflowError:
        return (_LARGEST, math.inf) if numerator > 0 else (-math.inf, -_LARGEST)
    over, under = nearest.as_integer_ratio()
    excess = over * denominator - numerator * under
    if not excess:
        return nearest, nearest
    if excess > 0:
        return math.nextafter(nearest, -math.inf), nearest
    return nearest, math.nextafter(nearest, math.inf)


def quotient(numerator: float, denominator: float) -> tuple[float, float]:
    """The closest doubles around the exact quotient of two finite doubles."""
    return between(Fraction(numerator) / Fraction(denominator))


def root(value: Fraction) -> tuple[float, float]:
    """The closest doubles around the square root of a positive rational whose size is that of a double.

    >>> root(Fraction(9, 4)), root(Fraction(2))[0] ** 2 < 2 < root(Fraction(2))[1] ** 2
    ((1.5, 1.5), True)
    """
    lower = upper = math.sqrt(float(value))
    if Fraction(lower) ** 2 == value:
        return lower, lower
    while Fraction(lower) ** 2 > value:
        lower = math.nextafter(lower, -math.inf)
    while Fraction(upper) ** 2 < value:
        upper = math.nextafter(upper, math.inf)
    above, below = math.nextafter(lower, math.inf), math.nextafter(upper, -math.inf)
    if Fraction(above) ** 2 <= value:
        lower = above
    if Fraction(below) ** 2 >= value:
        upper = below
    return lower, upper
