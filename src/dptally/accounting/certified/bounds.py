"""What routes hand to the engine, by name: bounds of log delta, ends of epsilon, the target, and their intersection."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple, Protocol

from dptally.numerics.rounding import down, up

__all__ = [
    "NOTHING_KNOWN",
    "BoundedProfile",
    "Contradiction",
    "Ends",
    "LogBounds",
    "LogTarget",
    "intersection",
    "log_interval",
]


class LogBounds(NamedTuple):
    """lower <= log delta(eps) <= upper at one eps, and an estimate of -d log delta / d eps there."""

    lower: float
    upper: float
    slope: float = 0.0


#: log delta <= 0 and nothing more
NOTHING_KNOWN = LogBounds(-math.inf, 0.0, 0.0)


class BoundedProfile(Protocol):
    """Certified bounds of log delta at every eps, the trivial ones where it was not made for."""

    @property
    def saddle(self) -> float:
        """Where a search for eps starts."""
        ...

    def estimate(self, epsilon: float) -> float:
        """log delta(eps), not a bound."""
        ...

    def log_delta(self, epsilon: float) -> LogBounds:
        """Bounds of log delta(eps) and the slope there."""
        ...


class Ends(NamedTuple):
    """lower <= epsilon <= upper."""

    lower: float
    upper: float


class LogTarget(NamedTuple):
    """The finite part of the delta that is asked for: its logarithm lies in [low, high].

    Upper ends of epsilon hold for ``low``, lower ends for ``high``. ``delta`` is the whole, mass at infinity included.
    """

    low: float
    high: float
    delta: float


class Contradiction(RuntimeWarning):
    """Two certified intervals that do not meet: one of the routes is wrong. The answer is their hull."""


def intersection(one: tuple[float, float], other: tuple[float, float], what: str = "") -> Ends:
    """Where both intervals hold. Two that contain the truth meet; if they do not, a warning, and their hull."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    if low <= high:
        return Ends(low, high)
    warnings.warn(
        Contradiction(f"disjoint certified intervals {tuple(one)!r} and {tuple(other)!r} of {what}"),
        stacklevel=3,
    )
    return Ends(min(one[0], other[0]), max(one[1], other[1]))


def log_interval(x: float) -> tuple[float, float]:
    """Bounds of log x, x > 0: the C library's log is within one ulp of the logarithm."""
    value = math.log(x)
    return down(value, 2), up(value, 2)
