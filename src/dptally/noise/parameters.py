"""Parameters as exact rationals.

A double is a rational number and is taken at exactly its value: the noise drawn for 0.1 has the scale
3602879701896397 / 36028797018963968, which is also what an accountant that holds the double 0.1 accounts for.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import numpy as np

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType

__all__ = ["Exact", "double", "positive", "power_of_two", "probability", "rational", "size_of", "two_to"]

Exact: TypeAlias = int | float | Fraction | Decimal

FARTHEST = 400  # decimal exponent of a Decimal: beyond all doubles, and soon beyond all memory


def rational(name: str, value: object) -> Fraction:
    """The exact value of an int, Fraction, Decimal or finite float; strings and booleans are refused."""
    if type(value) is Fraction:
        return value
    if isinstance(value, (bool, np.bool_)):
        raise InvalidType(name, "an int, Fraction, Decimal or float", value)
    if isinstance(value, (np.integer, np.floating)):
        value = value.item()
    if not isinstance(value, (int, float, Fraction, Decimal)):
        raise InvalidType(name, "an int, Fraction, Decimal or float", value)
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > FARTHEST:
        raise InvalidArgument(name, f"a number between 1e-{FARTHEST} and 1e{FARTHEST}", value)
    try:
        return Fraction(value)
    except (ValueError, OverflowError):
        raise InvalidArgument(name, "a finite number", value) from None


def positive(name: str, value: object) -> Fraction:
    number = rational(name, value)
    if not number > 0:
        raise InvalidArgument(name, "positive", value)
    return number


def probability(name: str, value: object) -> Fraction:
    number = rational(name, value)
    if not 0 <= number <= 1:
        raise InvalidArgument(name, "in [0, 1]", value)
    return number


def double(name: str, value: Fraction) -> float:
    """The double that equals ``value``: what a mechanism can hold. Refused where there is none.

    Rounding would not do: the privacy profile of the discrete Gaussian is not monotone in sigma, so an
    account for the nearest double is not an account for the noise that was drawn.
    """
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf
    if not math.isfinite(nearest) or Fraction(nearest) != value:
        required = "exactly a double, so that the account is for the noise that is drawn"
        raise InvalidArgument(name, required, value, f"write {name}={nearest!r}")
    return nearest


def power_of_two(name: str, value: object) -> int:
    """The exponent e of a grid 2^e.

    >>> power_of_two("grid", 0.25)
    -2
    """
    number = positive(name, value)
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    if number != two_to(exponent) or not -1000 <= exponent <= 1000:
        raise InvalidArgument(name, "a power of two between 2^-1000 and 2^1000", value)
    return exponent


@cache
def two_to(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def size_of(size: int | None) -> int | None:
    return None if size is None else checks.count("size", size)
