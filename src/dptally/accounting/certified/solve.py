"""From bounds of delta at any eps to bounds of eps: a search that may be sloppy, ends that are verified."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dptally.accounting.certified.bounds import BoundedProfile, Ends
from dptally.accounting.certified.tuning import STANDARD, SearchTuning
from dptally.numerics.rounding import EPS

__all__ = ["epsilon_ends", "solve"]


def solve(profile: BoundedProfile, log_delta: float, tuning: SearchTuning = STANDARD.search) -> float | None:
    """The eps at which the estimate takes this value, by Newton's method; None where it fails."""
    step = _newton(profile, log_delta, tuning)
    return None if step is None else step.start + step.move


@dataclass(frozen=True, slots=True)
class _Step:
    """The last step of a Newton search: where it starts, the bounds of log delta and the slope there, the step."""

    start: float
    low: float
    high: float
    slope: float
    move: float


def _newton(profile: BoundedProfile, log_delta: float, tuning: SearchTuning) -> _Step | None:
    """Newton's method, halving where a step would leave what is known to enclose the answer: delta falls with eps, but
    between point masses its slope jumps.
    """
    eps, least, most = profile.saddle, -math.inf, math.inf
    for _ in range(tuning.newton_steps):
        low, high, slope = profile.log_delta(eps)
        estimate = 0.5 * (low + high) if high - low < tuning.narrow else profile.estimate(eps)
        if estimate == -math.inf and least > -math.inf:  # so far out that rounding hides delta
            eps, most = 0.5 * (least + eps), eps
            continue
        if not (math.isfinite(estimate) and slope > 0):
            return None
        least, most = (eps, most) if estimate > log_delta else (least, eps)
        move = (estimate - log_delta) / slope
        if not least <= eps + move <= most:
            move = 0.5 * (least + most) - eps
        step = _Step(eps, low, high, slope, move)
        if abs(move) <= tuning.converged * min(abs(eps), 1 / slope):  # what is left is of the order of its square
            return step
        eps += move
    low, high, slope = profile.log_delta(eps)
    return _Step(eps, low, high, slope, 0.0) if slope > 0 else None


def epsilon_ends(profile: BoundedProfile, target: tuple[float, ...], tuning: SearchTuning = STANDARD.search) -> Ends:
    """Certified bounds of the smallest eps >= 0 with delta(eps) at most a target whose logarithm lies between the first
    two numbers of ``target``.

    An upper end is accepted only when the certified upper bound of delta there is below the target, a lower end only
    when the certified lower bound is above it, so the estimates need not be good.
    """
    step = _newton(profile, 0.5 * (target[0] + target[1]), tuning)
    if step is None:
        return Ends(0.0, math.inf)
    eps = step.start + step.move
    above = (step.high - target[0]) / step.slope - step.move
    under = (target[1] - step.low) / step.slope + step.move
    upper = _first_certified_point(lambda x: profile.log_delta(x)[1] <= target[0], eps, above, 1.0, tuning)
    lower = _first_certified_point(lambda x: profile.log_delta(x)[0] > target[1], eps, under, -1.0, tuning)
    return Ends(
        max(0.0, lower) if lower is not None else 0.0,
        max(0.0, upper) if upper is not None else math.inf,
    )


def _first_certified_point(
    holds: Callable[[float], bool], start: float, distance: float, sign: float, tuning: SearchTuning
) -> float | None:
    """The nearest tried point beyond ``start`` in the direction of ``sign`` at which ``holds`` is true."""
    if not math.isfinite(distance):
        return None
    step = max(distance, 0.0) * tuning.margin + 4 * EPS * abs(start) + 1e-300
    for _ in range(tuning.tries):
        point = start + sign * step
        if holds(point):
            return point
        if sign < 0 and point < 0:
            return 0.0
        step *= tuning.growth
    return None
