"""One step has a closed form: the law's own certified profile, and its inverse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from dptally.law.law import Floats, Law

__all__ = ["epsilon", "log_delta"]

_GRID = np.concatenate((np.geomspace(1e-15, 1e15, 61), np.geomspace(1e18, 1e300, 95)))


class Profiled(Protocol):
    """A law, or anything else with a certified profile."""

    @property
    def supremum(self) -> float: ...

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]: ...


def log_delta(law: Profiled, epsilon: float) -> tuple[float, float]:
    """Certified bounds of the log of the finite part of delta(epsilon)."""
    lower, upper = law.log_profile(np.array([epsilon]))
    return float(lower[0]), float(upper[0])


def epsilon(law: Profiled, log_target: tuple[float, float]) -> tuple[float, float]:
    """Certified bounds of the smallest epsilon >= 0 whose finite delta is below a target inside ``log_target``.

    The upper end is a point where the certified upper bound of delta is at most the target, the lower end one where the
    certified lower bound exceeds it (0 if there is none): points that were evaluated, however they were found.
    """
    if isinstance(law, Law) and (around := _around(law, log_target)) is not None:
        return _ends(law, log_target, around, around)
    if (ends := _at_the_supremum(law, log_target)) is not None:
        return ends
    grid = _GRID[law.supremum > _GRID]
    points = np.concatenate(([0.0], grid, [law.supremum] if math.isfinite(law.supremum) else [1e307]))
    lower, upper = law.log_profile(points)
    above = points[lower > log_target[1]]
    fits = np.nonzero(upper <= log_target[0])[0]
    start = float(above[-1]) if above.size else None
    if not fits.size:  # the upper bound of a tiny delta does not vanish, even at the largest loss
        return _lower_end(law, log_target, start, law.supremum), math.inf
    last = int(fits[0])
    if last == 0:
        return 0.0, 0.0
    return _ends(law, log_target, (float(points[last - 1]), float(points[last])), (start, None))


def _at_the_supremum(law: Profiled, log_target: tuple[float, float]) -> tuple[float, float] | None:
    """The largest loss and a point next to it, where the answer lies between them: the rule at the smallest deltas."""
    if not 0 < law.supremum < math.inf:
        return None
    points = law.supremum * np.array([1 - 1e-15, 1.0])
    lower, upper = law.log_profile(points)
    if lower[0] > log_target[1] and upper[1] <= log_target[0]:
        return float(points[0]), float(points[1])
    return None


def _ends(
    law: Profiled, log_target: tuple[float, float], high: tuple[float, float], low: tuple[float | None, float | None]
) -> tuple[float, float]:
    """Both ends, the upper one between the points ``high``; the lower one at least ``low[0]``, or 0."""
    upper = _edge(lambda x: law.log_profile(x)[1] - log_target[0], *high)[1]
    return _lower_end(law, log_target, low[0], upper), upper


def _lower_end(law: Profiled, log_target: tuple[float, float], start: float | None, end: float) -> float:
    """The last point from ``start`` up to ``end`` that is seen to be below the answer; 0 where there is no start."""
    if start is None or math.isinf(end):
        return start or 0.0
    return _edge(lambda x: law.log_profile(x)[0] - log_target[1], start, end)[0]


def _around(law: Law, log_target: tuple[float, float]) -> tuple[float, float] | None:
    """Points on both sides of what the law takes for the answer, near each other; None where it does not know."""
    guess = law.about_epsilon(0.5 * (log_target[0] + log_target[1])) if math.isfinite(log_target[0]) else None
    if guess is None or not 0 < guess < law.supremum:
        return None
    for reach in (1e-8, 1e-6, 1e-3, 0.1):
        points = guess * np.array([1 - reach, 1 + reach])
        lower, upper = law.log_profile(points)
        if lower[0] > log_target[1] and upper[1] <= log_target[0]:
            return float(points[0]), float(points[1])
    return None


def _edge(excess: Callable[[Floats], Floats], a: float, b: float) -> tuple[float, float]:
    """Neighbours a < b with excess(a) > 0 >= excess(b): secants that look at both sides of where they point."""
    values = excess(np.array([a, b]))
    at_a, at_b = float(values[0]), float(values[1])
    for _ in range(80):
        gap = 4e-16 * b
        if b - a <= 2 * gap:
            break
        share = at_a / (at_a - at_b) if math.isfinite(at_a) and math.isfinite(at_b) and at_a > at_b else 0.5
        x = a + min(max(share, 1e-3), 1 - 1e-3) * (b - a) if b - a > 1e-3 * b else a + share * (b - a)
        tried = np.clip(np.array([x - 8 * gap, x + 8 * gap, 0.5 * (a + b)]), a, b)
        for point, value in zip(tried.tolist(), excess(tried).tolist(), strict=True):
            if value > 0 and point > a:
                a, at_a = point, value
            elif value <= 0 and point < b:
                b, at_b = point, value
    return a, b
