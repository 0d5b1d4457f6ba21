"""An answer with both ends: the truth lies between them, rounding included."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from dptally.errors import InvalidArgument

__all__ = ["Interval"]


@dataclass(frozen=True, slots=True)
class Interval:
    """lower <= truth <= upper. ``method`` says how it was found and takes no part in comparisons.

    >>> box = Interval(1.0, 1.5)
    >>> 1.2 in box, box.width
    (True, 0.5)
    >>> lower, upper = box
    """

    lower: float
    upper: float
    method: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise InvalidArgument("lower, upper", "ordered (lower <= upper)", (self.lower, self.upper))

    @property
    def width(self) -> float:
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @property
    def midpoint(self) -> float:
        """A point inside; an estimate, not a bound."""
        return self.lower if self.lower == self.upper else 0.5 * self.lower + 0.5 * self.upper

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __iter__(self) -> Iterator[float]:
        yield self.lower
        yield self.upper

    def __str__(self) -> str:
        return f"[{self.lower:.10g}, {self.upper:.10g}]"

    def widened(self, ulps: int = 1) -> Interval:
        """Both ends moved outwards by ``ulps`` units in the last place."""
        return Interval(outwards(self.lower, -ulps), outwards(self.upper, ulps), self.method)


def outwards(value: float, ulps: int) -> float:
    """``value`` moved by that many units in the last place (up if positive, down if negative)."""
    towards = math.inf if ulps > 0 else -math.inf
    for _ in range(abs(ulps)):
        value = math.nextafter(value, towards)
    return value
