"""Sums and products of doubles as an unevaluated pair of doubles, exact."""

from __future__ import annotations

from dptally.numerics.rounding import Floats

__all__ = ["two_product", "two_sum"]


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """(sum, low) with a + b = sum + low exactly.  [Knuth 1969]"""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """(product, low), a b = product + low exactly, barring underflow; |a|, |b| <= 1e150.  [Dekker 1971]"""
    product = a * b
    a_high, b_high = 134217729.0 * a, 134217729.0 * b  # 2^27 + 1: the halves of the significands
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
