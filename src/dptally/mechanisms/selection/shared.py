"""What the mechanisms of selection share: the size of a range, and what their callers state."""

from __future__ import annotations

from fractions import Fraction

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.laws.bounded_range.law import BoundedRangeLaw
from dptally.mechanisms.assumption import Assumption
from dptally.numerics.exact import between

__all__ = ["SCORES", "bounded_range", "checked_range", "grown"]

SCORES = Assumption(
    "sensitivity", "scores: neighbouring datasets change the score of each candidate by at most its sensitivity"
)
_SMALLEST, _LARGEST = 1e-100, 1e15  # its square is a normal double; sixty digits are good for its exponential


def checked_range(name: str, value: float) -> float:
    """An epsilon of selection: 0, or of a size that accounting can square."""
    epsilon = checks.nonnegative(name, value)
    if epsilon and not _SMALLEST <= epsilon <= _LARGEST:
        raise InvalidArgument(name, f"0 or between {_SMALLEST:g} and {_LARGEST:g}", epsilon)
    return epsilon


def grown(epsilon: float, size: int) -> float:
    """The epsilon for ``size`` records together, whose scores move that much further, rounded up."""
    return between(size * Fraction(epsilon))[1]


def bounded_range(epsilon: float) -> tuple[Law, ...]:
    """The law of one use; none where nothing leaks."""
    return (BoundedRangeLaw.once(epsilon),) if epsilon > 0 else ()
