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
    """Repeat with doubled precision until the relative accuracy is good.

    A value below 2^-4000 counts as zero found; where inputs are balls themselves more bits stop helping and
    the enclosure is returned as it is.
    """
    before = -math.inf
    while True:
        with precision(bits):
            value = compute()
            accuracy = value.rel_accuracy_bits()
            if value.is_finite() and (accuracy >= good or value.abs_upper() < arb(2) ** -4000):
                return value
        if value.is_finite() and bits > 1000 and accuracy <= before + 8:
            return value
        before, bits = accuracy, 2 * bits
        if bits > most:
            raise ArithmeticError(f"only {value} after {bits // 2} bits")


def positive_part(value: arb) -> arb:
    """max(value, 0): of a ball that straddles 0, the enclosure of both cases."""
    return value.max(arb(0))


def normal_cdf(x: arb) -> arb:
    """Phi(x), with relative accuracy in the left tail."""
    return (-x / arb(2).sqrt()).erfc() / 2
