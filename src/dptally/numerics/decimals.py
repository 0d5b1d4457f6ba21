"""Sixty-digit arithmetic for what enters both ends of an answer, and the way back to doubles.

The decimal module rounds every operation correctly, exp and ln included. A value that is formed from fewer than 1e6
operations without cancellation is right to ``KEPT`` = 1e-40 of itself; :func:`around` gives the doubles on both sides
of it.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction

__all__ = ["KEPT", "LARGEST", "around", "exact", "expm1", "log1p", "sixty_digits"]

KEPT = Decimal("1e-40")  # relative error allowed to a value: 20 digits are spare
LARGEST = 1e17  # the largest exponent whose exponential is formed
_SMALL = Decimal("1e-8")
_CONTEXT = decimal.Context(
    prec=60,
    Emin=decimal.MIN_EMIN,
    Emax=decimal.MAX_EMAX,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)


@contextmanager
def sixty_digits(more: int = 0) -> Iterator[None]:
    """Work with sixty digits, or ``more`` of them where differences cancel."""
    with decimal.localcontext(_CONTEXT) as context:
        context.prec += more
        yield


def exact(value: float | Fraction) -> Decimal:
    """The number, to sixty digits."""
    if isinstance(value, Fraction):
        return Decimal(value.numerator) / Decimal(value.denominator)
    return +Decimal(value)


def expm1(x: Decimal) -> Decimal:
    """e^x - 1 with relative accuracy: by its series where the difference would cancel."""
    if abs(x) >= _SMALL:
        return x.exp() - 1
    term = total = x
    for k in range(2, 8):  # the first term left out is below 1e-60 of x
        term = term * x / k
        total += term
    return total


def log1p(x: Decimal) -> Decimal:
    """log(1 + x) with relative accuracy, x > -1."""
    if abs(x) >= _SMALL:
        return (1 + x).ln()
    power = total = x
    for k in range(2, 8):
        power = -power * x
        total += power / k
    return total


def around(value: Decimal, error: Decimal = KEPT) -> tuple[float, float]:
    """The closest doubles around every number within a relative ``error`` of the value; zero is zero."""
    if not value:
        return 0.0, 0.0
    slack = abs(value) * error
    low, high = value - slack, value + slack
    lower = upper = float(value)
    while Decimal(lower) > low:  # comparisons of decimals are exact
        lower = math.nextafter(lower, -math.inf)
    while Decimal(upper) < high:
        upper = math.nextafter(upper, math.inf)
    return lower, upper
