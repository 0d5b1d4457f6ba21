"""A declared privacy profile: a curve of (epsilon, delta) guarantees, from a paper or from data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType
from dptally.law import Law
from dptally.law.adjacency import Adjacency
from dptally.laws.tabulated import Points, ProfileLaw, law_of_guarantees, stated_delta
from dptally.mechanisms.assumption import DECLARED, Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared

__all__ = ["Profile"]

_STEPS = 2048  # intervals of the table of a callable


_FARTHEST = 1024.0  # no epsilon beyond is looked at


_NEGLIGIBLE = 1e-300


def _from_text(points: Any) -> Profile:
    return Profile.from_points(points)


@declared(section="guarantees", plan="profile", maker=_from_text, example={"points": ((0.1, 1e-3), (1.0, 1e-9))})
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Profile(Mechanism):
    """Any mechanism that is (epsilon, delta_of_epsilon(epsilon))-DP for every epsilon >= 0.

    ``Profile(function)``: the function takes one float and must not increase, within [0, 1]. It is looked
    at on 2050 epsilons, denser towards 0, up to where it vanishes, falls below 1e-300 or stays level (1024
    at most). One run is answered with the smaller of the function and the table's envelope; compositions
    and samples use the table, which is made of valid guarantees and therefore dominates, being pessimistic
    only between its points.

    ``Profile(points=...)`` or ``Profile.from_points``: exactly these guarantees and no others. ``adjacency`` says for
    which neighbours they hold; left out, that is the caller's statement wherever they are used.

    >>> Profile.from_points([(0.1, 1e-3), (1.0, 1e-9)]).points
    ((0.1, 0.001), (1.0, 1e-09))
    """

    delta_of_epsilon: Callable[[float], float] | None
    points: Points
    adjacency: Adjacency | None
    json_name: ClassVar[str] = "profile"

    def __init__(
        self,
        delta_of_epsilon: Callable[[float], float] | None = None,
        points: Iterable[Iterable[float]] | None = None,
        adjacency: Adjacency | None = None,
    ) -> None:
        if (delta_of_epsilon is None) == (points is None):
            raise InvalidType("delta_of_epsilon, points", "one of the two, not both", (delta_of_epsilon, points))
        object.__setattr__(self, "delta_of_epsilon", delta_of_epsilon)
        table = _tabulated(delta_of_epsilon) if delta_of_epsilon is not None else _checked_points(points)
        object.__setattr__(self, "points", table)
        if adjacency is not None and not isinstance(adjacency, Adjacency):
            raise InvalidType("adjacency", "ADD_REMOVE or REPLACE, or left out", adjacency)
        object.__setattr__(self, "adjacency", adjacency)

    @classmethod
    def from_points(cls, points: Iterable[Iterable[float]], adjacency: Adjacency | None = None) -> Profile:
        """Finitely many guarantees (epsilon, delta); nothing is assumed between them but what they imply."""
        return cls(points=points, adjacency=adjacency)

    def parameters(self) -> dict[str, Any]:
        given: dict[str, Any] = {"points": self.points}
        if self.delta_of_epsilon is not None:
            given = {"delta_of_epsilon": self.delta_of_epsilon}
        return given if self.adjacency is None else {**given, "adjacency": self.adjacency}

    def assumptions(self) -> tuple[Assumption, ...]:
        return (DECLARED,)

    def laws(self) -> tuple[Law, ...]:
        table = law_of_guarantees(self.points)
        if table is None:
            return ()
        return (table if self.delta_of_epsilon is None else ProfileLaw(table, self.delta_of_epsilon),)


def _tabulated(function: Callable[[float], float]) -> Points:
    if not callable(function):
        raise InvalidType("delta_of_epsilon", "a function of epsilon (or use Profile.from_points)", function)
    end = 1.0
    while (
        end < _FARTHEST
        and stated_delta(function, end) > _NEGLIGIBLE
        and stated_delta(function, end) < stated_delta(function, 0.5 * end)
    ):
        end *= 2.0
    if stated_delta(function, end) <= _NEGLIGIBLE:
        end = _first_negligible(function, end)
    grid = [end * (k / _STEPS) ** 2 for k in range(_STEPS + 1)]
    grid = sorted({*grid, _tangent(function, grid)})
    return _falling([(epsilon, stated_delta(function, epsilon)) for epsilon in grid], "delta_of_epsilon")


def _tangent(function: Callable[[float], float], grid: list[float]) -> float:
    """The epsilon whose guarantee implies the most at epsilon 0: it maximises (1 - delta) / (1 + e^eps).

    [Liu et al. 2022, Sec. 2: the refined profile is the naive one beyond it and a line in e^eps below it.]
    """

    def implied(epsilon: float) -> float:
        return (1.0 - stated_delta(function, epsilon)) / (1.0 + math.exp(min(epsilon, 700.0)))

    best = max(range(len(grid)), key=lambda k: implied(grid[k]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    for _ in range(60):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (left, high) if implied(left) < implied(right) else (low, right)
    return high


def _first_negligible(function: Callable[[float], float], end: float) -> float:
    """The smallest epsilon, to 1e-12 and from above, where the function has become negligible."""
    low, high = 0.0, end
    if stated_delta(function, low) <= _NEGLIGIBLE:
        return end
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if stated_delta(function, middle) <= _NEGLIGIBLE else (middle, high)
    return high


def _checked_points(points: object) -> Points:
    pairs = []
    for point in _opened(points):
        pair = _opened(point)
        if len(pair) != 2:
            raise InvalidType("points", "pairs (epsilon, delta)", point)
        pairs.append((checks.nonnegative("points (epsilon)", pair[0]), checks.probability("points (delta)", pair[1])))
    if not pairs:
        raise InvalidArgument("points", "at least one pair (epsilon, delta)", points)
    pairs.sort()
    for (before, _), (after, _) in pairwise(pairs):
        if before == after:
            raise InvalidArgument("points", "at different epsilons", before)
    return _falling(pairs, "points")


def _opened(values: object) -> tuple[object, ...]:
    """What a list, an array or another collection holds."""
    alone = isinstance(values, (str, bytes)) or (isinstance(values, np.ndarray) and values.ndim == 0)
    if alone or not isinstance(values, Iterable):
        raise InvalidType("points", "pairs (epsilon, delta)", values)
    return tuple(values)


def _falling(pairs: list[tuple[float, float]], name: str) -> Points:
    for (before, higher), (after, lower) in pairwise(pairs):
        if lower > higher:
            raise InvalidArgument(
                name,
                "nonincreasing in epsilon",
                f"delta({before:.6g}) = {higher:.6g} and delta({after:.6g}) = {lower:.6g}",
            )
    return tuple(pairs)
