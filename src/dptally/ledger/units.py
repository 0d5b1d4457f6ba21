"""Exact amounts: integers that count a decimal unit. Costs round up, budgets round down, sums are exact.

An account's unit is 10^-digits, chosen so that its cap is between 10^17 and 10^18 units: every sum below the
cap fits into 63 bits, and a million entries lose less than 10^-11 of the budget to rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dptally.errors import InvalidArgument

__all__ = ["GONE", "Amount", "as_float_down", "as_float_up", "digits_for", "units_down", "units_up"]

#: what an infinite (or absurdly large) cost is written as: more than any cap, for ever
GONE = 10**30


def digits_for(cap: Fraction) -> int:
    """The number of decimal digits of the unit: 10^17 <= cap * 10^digits < 10^18.

    >>> digits_for(Fraction(1, 2))
    18
    """
    if not cap > 0:
        raise InvalidArgument("budget", "positive", cap)
    digits = 17 - math.floor(math.log10(cap.numerator) - math.log10(cap.denominator))
    while cap * Fraction(10) ** digits >= 10**18:
        digits -= 1
    while cap * Fraction(10) ** digits < 10**17:
        digits += 1
    return digits


def units_up(value: float | Fraction, digits: int) -> int:
    """A cost in units, rounded up; infinity and whatever is beyond every cap is GONE.

    >>> units_up(0.1, 18), units_up(5e-324, 18)
    (100000000000000006, 1)
    """
    if not value >= 0:
        raise InvalidArgument("cost", "at least 0", value)
    if value == math.inf:
        return GONE
    return min(math.ceil(Fraction(value) * Fraction(10) ** digits), GONE)


def units_down(value: Fraction, digits: int) -> int:
    """A budget in units, rounded down."""
    return math.floor(value * Fraction(10) ** digits)


@lru_cache(maxsize=4096)
def as_float_up(units: int, digits: int) -> float:
    """The amount as a double that is not below it."""
    exact = Fraction(units) / Fraction(10) ** digits
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def as_float_down(units: int, digits: int) -> float:
    """The amount as a double that is not above it."""
    exact = Fraction(units) / Fraction(10) ** digits
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)


@dataclass(frozen=True, slots=True)
class Amount:
    """Units on each meter (one, or one for each Renyi order), and units of failure probability."""

    meters: tuple[int, ...]
    failure: int = 0

    def __add__(self, other: Amount) -> Amount:
        if len(self.meters) == 1:
            return Amount((self.meters[0] + other.meters[0],), self.failure + other.failure)
        return Amount(tuple(map(int.__add__, self.meters, other.meters)), self.failure + other.failure)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(tuple(map(int.__sub__, self.meters, other.meters)), self.failure - other.failure)

    def text(self) -> str:
        """As JSON: units as strings, the failure probability last. They are digits alone: nothing to escape."""
        if len(self.meters) == 1:
            return f'["{self.meters[0]}","{self.failure}"]'
        return '["' + '","'.join(map(str, self.meters)) + f'","{self.failure}"]'

    def larger(self, other: Amount) -> Amount:
        """The larger of the two on every meter."""
        return Amount(tuple(map(max, self.meters, other.meters)), max(self.failure, other.failure))

    def within(self, cap: Amount) -> bool:
        """Some meter is not exhausted, and the failure probability is not."""
        if len(self.meters) == 1:
            return self.meters[0] <= cap.meters[0] and self.failure <= cap.failure
        return self.failure <= cap.failure and any(map(int.__le__, self.meters, cap.meters))

    def leading(self, cap: Amount) -> int:
        """The meter with the most left: the one that still certifies the account."""
        left = tuple(map(int.__sub__, cap.meters, self.meters))
        return left.index(max(left))
