"""Ball arithmetic helpers: exact inputs, working precision, outward rounding to doubles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq

Number = int | float | str | Fraction | arb

GOOD_BITS = 80  # relative accuracy that every truth reaches unless it says otherwise


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with that many bits, then restore."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: Number) -> arb:
    """The exact number meant: a float is the double itself, a string or Fraction the decimal or ratio
    written.
    """
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return value if isinstance(value, arb) else arb(value)


def floats(value: arb) -> tuple[float, float]:
    """Doubles (lower, upper) around the ball, rounded outwards."""
    with precision(200):
        lower, upper = float(value.lower()), float(value.upper())
        # float() rounds to nearest: one step outwards, only where it moved to the inside
        if not arb(lower) <= value.lower():
            lower = math.nextafter(lower, -math.inf)
        if not arb(upper) >= value.upper():
            upper = math.nextafter(upper, math.inf)
    return lower, upper


def refine(compute: Callable[[], arb], bits: int = 128, good: int = GOOD_BITS, most: int = 40_000) -> arb:
    """Repeat with doubled precision until the relative accuracy is good; an exact zero is accepted."""
    while True:
        with precision(bits):
            value = compute()
        if value.is_finite() and (value.rel_accuracy_bits() >= good or value.is_zero()):
            return value
        bits *= 2
        if bits > most:
            raise ArithmeticError(f"only {value} after {bits // 2} bits")


def positive_part(value: arb) -> arb:
    """max(value, 0): of a ball that straddles 0, the enclosure of both cases."""
    return value.max(arb(0))


def normal_cdf(x: arb) -> arb:
    """Phi(x), with relative accuracy in the left tail."""
    return (-x / arb(2).sqrt()).erfc() / 2
