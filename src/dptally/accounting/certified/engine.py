"""Which method answers which plan, and what every answer goes through: mass at infinity, both directions, zero.

For each direction the finite part of delta is bounded by the first of these that is sharp enough, and where several were
needed their certified intervals are intersected:

    closed form          one step: the law's own profile
    inversion            smooth losses: the contour sum of inversion.py
    split by jumps       one rare large loss carries delta: jumps.py
    lattice              anything with a profile: the tilted lattice of lattice.py
    Chernoff             always: delta(eps) <= c(t) exp(K(t) - t eps), c(t) = t^t / (1 + t)^(1 + t)

The mass at infinity p = 1 - prod (1 - p_j)^n_j enters as delta(eps) = p + (finite part); p is formed with its own rounding
error and never by subtracting rounded logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dptally.accounting import renyi
from dptally.accounting.certified import closed, inversion, jumps
from dptally.accounting.moments import infinity_mass, log_moment_upper
from dptally.interval import Interval
from dptally.law import Composition
from dptally.numerics.rounding import down, up

__all__ = ["delta_interval", "epsilon_interval"]

_SHARP = 1e-9  # a relative width that needs no second method


def delta_interval(directions: Sequence[Composition], epsilon: float) -> Interval:
    """Certified bounds of delta(epsilon) for a plan given by its directions; the larger direction counts."""
    return _larger([_delta(composition, epsilon) for composition in directions])


def epsilon_interval(directions: Sequence[Composition], delta: float) -> Interval:
    """Certified bounds of the smallest epsilon >= 0 with delta(epsilon) <= delta; the larger direction counts."""
    return _larger([_epsilon(composition, delta) for composition in directions])


def _larger(intervals: list[Interval]) -> Interval:
    """The maximum of the unknown truths lies between the largest lower and the largest upper end."""
    if not intervals:
        return Interval(0.0, 0.0, "nothing was run")
    widest = max(intervals, key=lambda box: box.upper)
    return Interval(max(box.lower for box in intervals), widest.upper, widest.method)


def _delta(composition: Composition, epsilon: float) -> Interval:
    p_low, p_high = infinity_mass(composition)
    if not composition.determined:
        answer = renyi.delta([composition], epsilon)
        return Interval(0.0, min(1.0, float(answer)), f"Renyi, upper bound only ({answer.theorem})")
    low, high, method = _log_delta(composition, epsilon)
    lower = down(p_low + (down(math.exp(low), 4) if low > -740 else 0.0)) if low > -math.inf else p_low
    upper = up(p_high + up(math.exp(high), 4)) if high > -math.inf else p_high
    return Interval(min(1.0, max(0.0, lower, p_low)), min(1.0, upper), method)


def _epsilon(composition: Composition, delta: float) -> Interval:
    if not composition.parts:
        return Interval(0.0, 0.0, "nothing was run")
    if not composition.determined:
        answer = renyi.epsilon([composition], delta)
        return Interval(0.0, float(answer), f"Renyi, upper bound only ({answer.theorem})")
    p_low, p_high = infinity_mass(composition)
    if delta < p_low:
        return Interval(math.inf, math.inf, "the mass at infinity exceeds delta")
    # delta - p of the given doubles is within one rounding; the difference is never formed from logarithms
    least, most = delta - p_high, delta - p_low
    least, most = (least if least <= 0 else max(0.0, down(least))), up(most) if most > 0 else 0.0
    if p_low == p_high == 0.0:
        least = most = delta
    upper_target = _log_bounds(least)[0] if least > 0 else -math.inf
    lower_target = _log_bounds(most)[1] if most > 0 else -math.inf
    if least < 0:
        low, _, method = _epsilon_finite(composition, (lower_target, lower_target))
        return Interval(low, math.inf, method)
    low, high, method = _epsilon_finite(composition, (upper_target, lower_target))
    return Interval(max(0.0, min(low, high)), max(0.0, high), method)


def _log_bounds(x: float) -> tuple[float, float]:
    """Bounds of log x, x > 0: the C library's log is within one ulp; near 1 the absolute error is that of the ulp itself."""
    value = math.log(x)
    return down(value, 2), up(value, 2)


# -- the finite part of one direction ------------------------------------------------------------------------------


def _log_delta(composition: Composition, epsilon: float) -> tuple[float, float, str]:
    """Certified bounds of log E[(1 - e^{eps - L})+; L < inf] and how they were found."""
    if not composition.parts:
        return -math.inf, (-math.inf if epsilon >= 0 else 0.0), "nothing was run"
    if epsilon >= composition.supremum:
        return -math.inf, -math.inf, "epsilon is the largest possible loss"
    if composition.steps == 1:
        return *closed.log_delta(composition.parts[0][0], epsilon), "closed form"
    low, high, method = -math.inf, 0.0, "Chernoff"
    for found, name in _log_delta_routes(composition, epsilon):
        found_low, found_high, rate = found.log_delta(epsilon)
        if found_low > low or found_high < high:
            low, high, method = max(low, found_low), min(high, found_high), name
        if high - low <= _SHARP * max(1.0, rate * epsilon):
            return low, high, method
    bound, _ = renyi.best_delta(lambda t: log_moment_upper(composition, t), epsilon)
    return low, min(high, bound), method


def _log_delta_routes(composition: Composition, epsilon: float) -> Iterator[tuple[inversion.Profiled, str]]:
    """The numerical methods that may answer, the usually best first."""
    found = inversion.for_epsilon(composition, epsilon)
    if found is not None:
        yield found, "inversion"
    bound, _ = renyi.best_delta(lambda t: log_moment_upper(composition, t), epsilon)
    for split in jumps.for_epsilon(composition, epsilon, bound):
        yield split, "inversion, split by jumps"


def _epsilon_finite(composition: Composition, log_target: tuple[float, float]) -> tuple[float, float, str]:
    """Certified bounds of the smallest eps >= 0 whose finite delta is at most a target inside ``log_target``."""
    if log_target[0] == -math.inf:
        supremum = max(0.0, composition.supremum)
        if log_target[1] == -math.inf:
            return max(0.0, down(supremum, 4)), up(supremum, 4) if supremum else 0.0, "the largest possible loss"
        low, _, method = _epsilon_finite(composition, (log_target[1], log_target[1]))
        return low, up(supremum, 4), method
    if composition.steps == 1:
        return *closed.epsilon(composition.parts[0][0], log_target), "closed form"
    low, high, method = 0.0, max(0.0, composition.supremum), "Chernoff"
    for found, name in _epsilon_routes(composition, log_target[0]):
        found_low, found_high = inversion.epsilon(found, log_target)
        if found_low > low or found_high < high:
            low, high, method = max(low, found_low), min(high, found_high), name
        if high - low <= _SHARP * high:
            return low, high, method
    return low, min(high, _chernoff_epsilon(composition, log_target[0])), method


def _epsilon_routes(composition: Composition, log_delta: float) -> Iterator[tuple[inversion.Profiled, str]]:
    """The numerical methods that may answer, the usually best first."""
    found = inversion.for_delta(composition, log_delta)
    if found is not None:
        yield found, "inversion"
    for split in jumps.for_delta(composition, log_delta, _chernoff_epsilon(composition, log_delta)):
        yield split, "inversion, split by jumps"


def _chernoff_epsilon(composition: Composition, log_delta: float) -> float:
    bound, _ = renyi.best_epsilon(lambda t: log_moment_upper(composition, t), max(math.exp(log_delta), 1e-308))
    return bound
