"""An answer with both ends: the truth lies between them, rounding included."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dptally.errors import InvalidArgument
from dptally.later import later

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Interval", "IntervalArray"]


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

    def _repr_html_(self) -> str:
        return str(later("interval_html")(self))

    def _repr_markdown_(self) -> str:
        return f"{self.lower!r} ≤ truth ≤ {self.upper!r}"

    def widened(self, ulps: int = 1) -> Interval:
        """Both ends moved outwards by ``ulps`` units in the last place."""
        return Interval(outwards(self.lower, -ulps), outwards(self.upper, ulps), self.method)


@dataclass(frozen=True, slots=True, eq=False)
class IntervalArray:
    """Many answers with both ends: lower <= truth <= upper, elementwise. An index gives one :class:`Interval`.

    >>> boxes = IntervalArray.of([Interval(0.0, 1.0), Interval(2.0, 2.5)])
    >>> boxes.upper, boxes[1].lower, len(boxes)
    (array([1. , 2.5]), 2.0, 2)
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    methods: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, boxes: Sequence[Interval], shape: tuple[int, ...] | None = None) -> IntervalArray:
        import numpy as np

        ends = np.array([[box.lower, box.upper] for box in boxes], dtype=np.float64).reshape(-1, 2)
        shape = (len(boxes),) if shape is None else shape
        return cls(ends[:, 0].reshape(shape), ends[:, 1].reshape(shape), tuple(box.method for box in boxes))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.lower.shape)

    @property
    def width(self) -> NDArray[np.float64]:
        import numpy as np

        same = self.lower == self.upper  # inf - inf where both ends are infinite
        return np.where(same, 0.0, np.subtract(self.upper, np.where(same, 0.0, self.lower)))

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, index: int | tuple[int, ...]) -> Interval:
        import numpy as np

        flat = np.arange(self.lower.size).reshape(self.shape)[index]
        if flat.ndim:
            raise InvalidArgument("index", f"one index for each of the {self.lower.ndim} axes", index)
        return Interval(
            float(self.lower.flat[int(flat)]),
            float(self.upper.flat[int(flat)]),
            self.methods[int(flat)] if self.methods else "",
        )

    def __iter__(self) -> Iterator[Interval]:
        return (self[i] for i in range(len(self)))

    def _repr_html_(self) -> str:
        return str(later("intervals_html")(self))

    def _repr_markdown_(self) -> str:
        return str(later("intervals_markdown")(self))


def outwards(value: float, ulps: int) -> float:
    """``value`` moved by that many units in the last place (up if positive, down if negative)."""
    towards = math.inf if ulps > 0 else -math.inf
    for _ in range(abs(ulps)):
        value = math.nextafter(value, towards)
    return value
