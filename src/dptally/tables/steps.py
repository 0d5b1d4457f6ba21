"""Values as whole numbers of steps: the one place where a double becomes an integer.

A step is 2^exponent of the column's units, chosen from the declared bounds alone. Inside the bounds a value is
rounded to the nearest step, outside it is taken at the bound; NULL, NaN and the infinities are missing. Only
comparisons, FLOOR, one product by a power of two and one addition are used, and FLOOR sees nothing but finite
numbers inside the bounds: no engine can fail, and all give the same integers. The sensitivity does not depend
on how a step is rounded: every row adds an integer between the bounds, whatever it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dptally.errors import InvalidArgument, InvalidType
from dptally.noise import grid, parameters
from dptally.tables.dialect import Dialect
from dptally.tables.kinds import Kind

__all__ = ["EXACT", "FINE", "ROWS", "SQUARES", "Steps", "bounds"]

FINE = 22  # bits of a person's bound: with up to 2^40 persons every sum stays below 2^62
SQUARES = 13  # bits of a range whose squares are added
ROWS = 16  # a row enters a person's total at up to this multiple of the larger bound
EXACT = 1 << 52  # far enough below 2^53, up to which whole numbers are doubles
_LARGEST = "1.7976931348623157E308"


@dataclass(frozen=True, slots=True)
class Steps:
    """A range [low, high] of whole steps of 2^exponent."""

    low: int
    high: int
    exponent: int

    @classmethod
    def of(cls, low: Fraction, high: Fraction, bits: int = FINE, *, by_width: bool = False) -> Steps:
        """The finest grid on which the larger bound (or the width) has this many bits.

        Bounds that are whole numbers below 2^bits are on the grid, so integers stay integers.
        """
        largest = high - low if by_width else max(abs(low), abs(high))
        exponent = grid.floor_steps(largest, 0).bit_length() if largest >= 1 else _log2(largest)
        exponent -= bits
        return cls(grid.ceil_steps(low, exponent), grid.floor_steps(high, exponent), exponent)

    @property
    def unit(self) -> Fraction:
        return parameters.two_to(self.exponent)

    @property
    def width(self) -> int:
        return self.high - self.low

    @property
    def middle(self) -> int:
        return (self.low + self.high) // 2

    @property
    def reach(self) -> int:
        """How far a step of the range is from the middle, at most."""
        return max(self.high - self.middle, self.middle - self.low)

    def at(self, value: Fraction) -> int:
        """The step nearest to a value (the larger of two), as the engines round."""
        return grid.floor_steps(value + self.unit / 2, self.exponent)

    def widened(self, factor: int) -> Steps:
        """The same grid with room for rows on their way into a person's total."""
        far = factor * max(abs(self.low), abs(self.high))
        return Steps(-far, far, self.exponent)

    def real_sql(self, dialect: Dialect, value: str) -> str:
        """The step of a double, 0 where it has none, as a double: for sums that are added up in doubles.

        **A sum that says itself whether it is exact.** Rounding is monotone, so a sum of doubles >= 0 is at least
        each of its partial sums, in whatever order they were added. If the steps are whole numbers and the
        result is at most 2^53, every partial sum was a whole number of at most 2^53, and none was rounded. So
        results beyond EXACT are asked for again in integers: the answer is the same integer either way.
        Bounds of both signs have no such word: their partial sums may be larger than the result.
        """
        if not dialect.real_sums or not (self.low >= 0 or self.high <= 0):
            return ""
        return self._case(
            dialect, value, self._floor(dialect, value), *(dialect.number(float(n)) for n in (self.low, self.high, 0))
        )

    def sql(self, dialect: Dialect, value: str, missing: str, offset: int = 0, outside: str = "") -> str:
        """The step of a double minus ``offset``; ``missing`` where it has none.

        ``outside`` stands for what lies beyond the bounds or is missing, where the bound itself will not do.
        NaN is above everything on some engines and incomparable on others; it reaches ELSE on both.
        """
        low, high = self._ends(dialect)
        inside = self._floor(dialect, value)
        less = f" - {offset}" if offset > 0 else f" + {-offset}" if offset < 0 else ""
        nearest = f"{dialect.cast(inside, Kind.INTEGER)}{less}"
        if outside:
            return f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {nearest} ELSE {outside} END"
        return self._case(dialect, value, nearest, str(self.low - offset), str(self.high - offset), missing)

    def _floor(self, dialect: Dialect, value: str) -> str:
        """The nearest step. Where a step is two units or more, what is below one unit is at 0 without a product:
        PostgreSQL fails where a product of tiny numbers underflows.
        """
        if self.exponent > 0:
            one, nothing = dialect.number(1.0), dialect.number(0.0)
            value = f"(CASE WHEN {value} > -{one} AND {value} < {one} THEN {nothing} ELSE {value} END)"
        return f"FLOOR({value} * {dialect.number(float(1 / self.unit))} + {dialect.number(0.5)})"

    def _ends(self, dialect: Dialect) -> tuple[str, str]:
        return dialect.number(float(self.low * self.unit)), dialect.number(float(self.high * self.unit))

    def _case(self, dialect: Dialect, value: str, nearest: str, lowest: str, highest: str, missing: str) -> str:
        """Most values are inside: their test comes first. The ends are steps, and would be rounded to themselves."""
        (low, high), limit = self._ends(dialect), f"CAST({_LARGEST} AS {dialect.real})"
        return (
            f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {nearest} "
            f"WHEN {value} >= -{limit} AND {value} <= {low} THEN {lowest} "
            f"WHEN {value} >= {high} AND {value} <= {limit} THEN {highest} ELSE {missing} END"
        )


def _log2(value: Fraction) -> int:
    """The smallest e with value < 2^e, for value below 1."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    while parameters.two_to(exponent) <= value:
        exponent += 1
    return exponent


def bounds(argument: str, each: object) -> tuple[Fraction, Fraction]:
    """The declared bounds (low, high) as exact numbers."""
    if each is None:
        raise InvalidArgument(
            argument, "given as (low, high): what one contribution may be", each, "write each=(0, 100)"
        )
    if not isinstance(each, (tuple, list)) or len(each) != 2:
        raise InvalidType(argument, "a pair (low, high)", each)
    low, high = (parameters.rational(argument, bound) for bound in each)
    if not low < high:
        raise InvalidArgument(argument, "ordered: low < high", each)
    if not (
        Fraction(1, 10**30) <= max(abs(low), abs(high)) <= 10**30 and high - low > max(abs(low), abs(high)) / 2**16
    ):
        raise InvalidArgument(argument, "of moderate size, and not too near to one another", each)
    return low, high
