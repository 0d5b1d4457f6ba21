"""What every strategy matrix is, how records take part in its steps, and its certified sensitivity."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.matrices.bounds import LARGEST, SMALLEST, Bounds
from dptally.mechanisms.sampling.cyclic import Cyclic
from dptally.mechanisms.value import Value
from dptally.numerics.arrays import Floats

__all__ = [
    "MOST_STEPS",
    "Participation",
    "Sensitivity",
    "Steps",
    "Strategy",
    "certified_sensitivity",
    "checked_participation",
    "entries",
    "number_of_steps",
    "sensitivity",
]

MOST_STEPS = 1_000_000
_ONCE = "1 (once), (k, b) (at most k times, at least b steps apart) or Cyclic(b) (every b-th step)"
_CLOSE = 1e-9  # relative: ends that agree so far are one number

#: how a record takes part, as it is written
Participation = Any


class Steps(NamedTuple):
    """At most ``times`` steps, ``gap`` or more apart; ``cyclic``: i, i + gap, .. to the end."""

    times: int
    gap: int
    cyclic: bool = False


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far one record of norm 1 moves C x: certainly at least ``lower`` for some records, never above ``upper``."""

    lower: float
    upper: float
    why: str

    @property
    def exact(self) -> bool:
        """Whether the two ends are one number but for rounding."""
        return self.lower >= self.upper * (1 - _CLOSE)


class Strategy(Value):
    """A matrix C with one column for each step: the mechanism releases C x + noise, and what follows from it."""

    __slots__ = ()

    @property
    @abstractmethod
    def length(self) -> int:
        """The number of steps."""

    @abstractmethod
    def squared(self, steps: Steps) -> Bounds:
        """Bounds of the squared sensitivity."""

    @abstractmethod
    def array(self) -> Floats:
        """C itself, its entries rounded to doubles."""

    def bandwidth(self) -> int | None:
        """The smallest w with C[t, i] = 0 unless i <= t < i + w; None where C is not lower triangular."""
        return self.length

    def keeps_apart(self, bins: int) -> bool:
        """Whether steps that differ modulo ``bins`` have columns without a common row."""
        return self.bandwidth() == 1 or bins == 1


def sensitivity(strategy: Strategy | ArrayLike, participation: Participation) -> float:
    """The most that one record of norm 1 moves C x in L2 norm, rounded up.

    ``strategy``: a matrix (array or lists of rows) or one of the strategies; ``participation``: 1 (once), (k, b) (at
    most k times, at least b steps apart) or ``Cyclic(b)`` (every b-th step). Records are vectors: where C^T C has
    negative entries the answer is an upper bound, sum |C^T C| over the worst pattern.

    >>> sensitivity([[1, 0], [2, 1]], 1)
    2.23606797749979
    >>> round(sensitivity([[1, 0], [1, 1]], (2, 1)), 12)
    2.2360679775
    """
    return certified_sensitivity(strategy, participation).upper


def certified_sensitivity(strategy: Strategy | ArrayLike, participation: Participation) -> Sensitivity:
    """The same between two bounds, with the reason."""
    if isinstance(strategy, Strategy):
        return _of_strategy(strategy, steps_of(participation))
    from dptally.mechanisms.matrices.dense_matrix import dense_bounds

    return _between(dense_bounds(entries("strategy", strategy, 2), steps_of(participation)))


@lru_cache(maxsize=256)
def _of_strategy(strategy: Strategy, steps: Steps) -> Sensitivity:
    return _between(strategy.squared(steps))


def _between(found: Bounds) -> Sensitivity:
    lower, upper = found.roots()
    return Sensitivity(min(lower, upper), upper, found.why)


def checked_participation(value: object) -> Participation:
    """1, a pair of counts, or a way in which records take part at random."""
    from dptally.mechanisms.matrices.participation import RandomParticipation

    if isinstance(value, (Cyclic, RandomParticipation)):
        return value
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise InvalidArgument("participation", _ONCE, value)
        return tuple(checks.count(f"participation {name}", n, 1) for name, n in zip("kb", value, strict=True))
    if isinstance(value, np.integer) or type(value) is int:
        times = checks.count("participation", value, 1)
        if times > 1:
            raise InvalidArgument("participation", _ONCE, times, f"({times}, b) with b steps between two uses")
        return times
    raise InvalidType("participation", _ONCE, value)


def steps_of(participation: Participation) -> Steps:
    """The patterns that a participation allows; those that are drawn at random have no sensitivity of their own."""
    given = checked_participation(participation)
    if given == 1:
        return Steps(1, 1)
    if isinstance(given, tuple):
        return Steps(*given)
    if isinstance(given, Cyclic):
        return Steps(MOST_STEPS, given.steps_per_epoch, cyclic=True)
    raise Unanswerable(
        f"a sensitivity is for steps that an attacker may know, and {given!r} draws them at random; "
        "ask MatrixMechanism(strategy, sigma, participation) for epsilon or delta"
    )


def number_of_steps(name: str, value: object) -> int:
    steps = checks.count(name, value, 1)
    if steps > MOST_STEPS:
        raise InvalidArgument(name, f"at most {MOST_STEPS}", steps)
    return steps


def entries(name: str, value: object, axes: int) -> Floats:
    """Finite numbers in an array of that many axes, each 0 or within 1e-100..1e100 in size."""
    array = checks.reals(name, value)
    if array.ndim != axes or not array.size:
        raise InvalidType(name, f"a non-empty {'matrix' if axes == 2 else 'list'} of numbers", value)
    size = np.abs(array)
    if not (size <= LARGEST).all():
        raise InvalidArgument(name, f"made of numbers of size at most {LARGEST}", float(size.max()))
    if ((size > 0) & (size < SMALLEST)).any():
        least = float(size[size > 0].min())
        raise InvalidArgument(name, f"made of 0 and numbers of size at least {SMALLEST}", least)
    return array
