"""One direction of a plan: mass at infinity, zero and one, laws that fix no pair, and laws with an optimistic twin.

The mass at infinity p = 1 - prod (1 - p_j)^n_j enters as delta(eps) = p + (finite part), with bounds of its own.
"""

from __future__ import annotations

import math

from dptally.accounting import renyi
from dptally.accounting.certified.bounds import LogTarget, log_interval
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.route import Trail
from dptally.accounting.certified.tuning import Tuning
from dptally.accounting.certified.walk import Made, walk_delta, walk_epsilon
from dptally.interval import Interval
from dptally.law import Composition
from dptally.numerics.rounding import down, up

__all__ = ["delta_of", "epsilon_of", "with_mass"]


def delta_of(composition: Composition, epsilon: float, floor: float, made: Made, tuning: Tuning) -> Interval:
    """Bounds of one direction's delta; the lower end is that of the law whose parameters were rounded the other way."""
    box = _delta_of(composition, epsilon, floor, made, tuning)
    twin = composition.optimistic()
    return box if twin is composition else _with_lower(box, _delta_of(twin, epsilon, floor, [], tuning))


def epsilon_of(composition: Composition, delta: float, floor: float, tuning: Tuning) -> Interval:
    """Bounds of one direction's epsilon, likewise."""
    box = _epsilon_of(composition, delta, floor, tuning)
    twin = composition.optimistic()
    return box if twin is composition else _with_lower(box, _epsilon_of(twin, delta, floor, tuning))


def _with_lower(box: Interval, twin: Interval) -> Interval:
    return Interval(min(twin.lower, box.upper), box.upper, box.method)


def _delta_of(composition: Composition, epsilon: float, floor: float, made: Made, tuning: Tuning) -> Interval:
    """Bounds of delta of these laws; an answer below ``floor`` need not be sharp."""
    if not composition.determined:
        answer, firm = renyi.delta([composition], epsilon), composition.dominating()
        known = Interval(0.0, min(1.0, float(answer)), f"Renyi, upper bound only ({answer.theorem})")
        return known if firm is None else _tighter(known, delta_of(firm, epsilon, floor, [], tuning))
    mass = composition.infinity_mass_interval
    plan = Plan(composition, max(0.0, floor - mass.upper), tuning)
    trail: Trail = []
    low, high, _ = walk_delta(plan, epsilon, trail, made)
    return with_mass(composition, low, high, _method(trail))


def with_mass(composition: Composition, low: float, high: float, method: str) -> Interval:
    """Bounds of delta from those of the log of its finite part."""
    mass = composition.infinity_mass_interval
    lower = down(mass.lower + (down(math.exp(low), 4) if low > -740 else 0.0)) if low > -math.inf else mass.lower
    upper = up(mass.upper + up(math.exp(high), 4)) if high > -math.inf else mass.upper
    return Interval(min(1.0, max(0.0, lower, mass.lower)), min(1.0, upper), method)


def _epsilon_of(composition: Composition, delta: float, floor: float, tuning: Tuning) -> Interval:
    """Bounds of epsilon of these laws; an answer below ``floor`` need not be sharp."""
    if not composition.parts:
        return Interval(0.0, 0.0, "nothing was run")
    if delta >= 1:
        return Interval(0.0, 0.0, "no delta exceeds one")
    if not composition.determined:
        answer, firm = renyi.epsilon([composition], delta), composition.dominating()
        known = Interval(0.0, float(answer), f"Renyi, upper bound only ({answer.theorem})")
        return known if firm is None else _tighter(known, epsilon_of(firm, delta, floor, tuning))
    plan = Plan(composition, floor, tuning)
    mass = plan.infinity_mass
    if delta < mass.lower:
        return Interval(math.inf, math.inf, "the mass at infinity exceeds delta")
    trail: Trail = []
    ends = walk_epsilon(plan, _remaining(delta, mass), trail)
    upper = math.inf if delta < mass.upper else max(0.0, ends.upper)
    return Interval(max(0.0, ends.lower), upper, _method(trail))


def _remaining(delta: float, mass: Interval) -> LogTarget:
    """delta - p, what is left for the finite losses: one rounding of each end, -inf where it may be nothing."""
    if mass.upper == 0:
        least = most = delta
    else:
        least, most = delta - mass.upper, delta - mass.lower
        least, most = max(0.0, down(least)) if least > 0 else 0.0, up(most) if most > 0 else 0.0
    return LogTarget(
        log_interval(least)[0] if least > 0 else -math.inf,
        log_interval(most)[1] if most > 0 else -math.inf,
        delta,
    )


def _tighter(one: Interval, other: Interval) -> Interval:
    """Two upper bounds of a guarantee that fixes no pair: the smaller counts, and neither has a lower end."""
    return one if one.upper <= other.upper else Interval(0.0, other.upper, f"{other.method}, upper bound only")


def _method(trail: Trail) -> str:
    """The last route that made the answer narrower."""
    return next((visit.route for visit in reversed(trail) if visit.outcome in ("narrower", "sharp")), "Chernoff")
