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

__all__ = ["FINE", "ROWS", "SQUARES", "Steps", "bounds"]

FINE = 22  # bits of a person's bound: with up to 2^40 persons every sum stays below 2^62
SQUARES = 13  # bits of a range whose squares are added
ROWS = 16  # a row enters a person's total at up to this multiple of the larger bound
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

    def sql(self, dialect: Dialect, value: str, missing: str, offset: int = 0, outside: str = "") -> str:
        """The step of a double minus ``offset``; ``missing`` where it has none.

        ``outside`` stands for what lies beyond the bounds or is missing, where the bound itself will not do.
        NaN is above everything on some engines and incomparable on others; it reaches ELSE on both.
        """
        low, high = dialect.number(float(self.low * self.unit)), dialect.number(float(self.high * self.unit))
        limit = f"CAST({_LARGEST} AS {dialect.real})"
        inside = f"FLOOR({value} * {dialect.number(float(1 / self.unit))} + {dialect.number(0.5)})"
        less = f" - {offset}" if offset > 0 else f" + {-offset}" if offset < 0 else ""
        nearest = f"{dialect.cast(inside, Kind.INTEGER)}{less}"
        if outside:
            return (
                f"CASE WHEN {value} >= {low} AND {value} < {high} THEN {nearest} "
                f"WHEN {value} = {high} THEN {self.high - offset} ELSE {outside} END"
            )
        return (  # most values are inside: their test comes first
            f"CASE WHEN {value} > {low} AND {value} < {high} THEN {nearest} "
            f"WHEN {value} >= -{limit} AND {value} <= {low} THEN {self.low - offset} "
            f"WHEN {value} >= {high} AND {value} <= {limit} THEN {self.high - offset} ELSE {missing} END"
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
