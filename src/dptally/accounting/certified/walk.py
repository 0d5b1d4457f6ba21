"""The finite part of one direction: one walk over the routes for each question.

The routes (routes.py) are asked in order; their certified intervals are intersected until one is sharp enough. Which
routes were asked and why the walk stopped is kept in a trail.
"""

from __future__ import annotations

import math

from dptally.accounting.certified.bounds import BoundedProfile, Ends, LogBounds, LogTarget, intersection
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.route import Route, Trail, Visit, answers_of, bounds_at
from dptally.accounting.certified.routes import in_order
from dptally.accounting.certified.tuning import Tuning

__all__ = ["Made", "walk_delta", "walk_epsilon"]

_LOG_LEAST = -746.0  # below the log of the least double
#: profiles that were made, each with its route: what answers one eps serves its neighbours
Made = list[tuple[Route, BoundedProfile]]


def walk_delta(plan: Plan, epsilon: float, trail: Trail, made: Made | None = None) -> LogBounds:
    """Certified bounds of log E[(1 - e^{eps - L})+; L < inf].

    What is in ``made`` is asked first, and what is found joins it.
    """
    if not plan.parts:
        trail.append(Visit("nothing was run", -math.inf, 0.0, "sharp"))
        return LogBounds(-math.inf, -math.inf if epsilon >= 0 else 0.0)
    if epsilon >= plan.supremum.upper:
        trail.append(Visit("epsilon is the largest possible loss", -math.inf, -math.inf, "sharp"))
        return LogBounds(-math.inf, -math.inf)
    made = [] if made is None else made
    for route, profile in reversed(made):
        bounds = bounds_at(profile, epsilon)
        if _is_sharp(route, bounds, epsilon, plan.tuning):
            trail.append(Visit(route.label(plan), bounds.lower, bounds.upper, "sharp"))
            return bounds
    best, slope = Ends(-math.inf, 0.0), 0.0
    last: Made = []
    log_floor = max(_LOG_LEAST, math.log(plan.floor) if plan.floor > 0 else -math.inf)
    for route in in_order(plan):
        if not route.applies(plan):
            continue
        if last and not route.final and _is_sharp(route, LogBounds(*best, slope), epsilon, plan.tuning):  # without it
            made.extend(last)
            return LogBounds(*best, slope)
        name = route.label(plan)
        for profile in answers_of(name, route.near_epsilon(plan, epsilon), trail):
            bounds = bounds_at(profile, epsilon)
            narrower = bounds.lower > best.lower or bounds.upper < best.upper
            best = intersection(best, bounds[:2], name)
            slope, last = bounds.slope, [(route, profile)]
            now = LogBounds(*best, slope)
            done = _is_sharp(route, now, epsilon, plan.tuning) or now.upper < log_floor
            trail.append(Visit(name, *best, "sharp" if done else "narrower" if narrower else "no narrower"))
            if done:
                if not route.final and now.upper >= log_floor:
                    made.append((route, profile))
                return now
    return LogBounds(*best)


def _is_sharp(route: Route, bounds: LogBounds, epsilon: float, tuning: Tuning) -> bool:
    """Narrow enough in log delta, or in eps where delta falls fast."""
    if route.final or bounds.upper == bounds.lower:
        return True
    return bounds.upper - bounds.lower <= route.sharp(tuning) * max(1.0, bounds.slope * epsilon)


def _is_narrow(ends: Ends, sharp: float) -> bool:
    return math.isfinite(ends.upper) and ends.upper - ends.lower <= sharp * ends.upper


def walk_epsilon(plan: Plan, target: LogTarget, trail: Trail) -> Ends:
    """Certified bounds of the smallest eps >= 0 whose finite delta is at most the target."""
    if target.low == -math.inf:
        # nothing may be left for finite losses: only the largest loss is certainly enough
        upper = max(0.0, plan.supremum.upper)
        if target.high == -math.inf:
            trail.append(Visit("the largest possible loss", max(0.0, plan.supremum.lower), upper, "sharp"))
            return Ends(max(0.0, plan.supremum.lower), upper)
        lower = walk_epsilon(plan, LogTarget(target.high, target.high, target.delta), trail).lower
        return Ends(min(lower, upper), upper)
    best = Ends(0.0, max(0.0, plan.supremum.upper))
    if best.upper < plan.floor:
        trail.append(Visit("the largest possible loss", *best, "sharp"))
        return best
    for route in in_order(plan):
        if not route.applies(plan):
            continue
        if _is_narrow(best, min(route.sharp(plan.tuning), plan.tuning.routes.known)):  # narrow without it
            return best
        name = route.label(plan)
        for ends in answers_of(name, route.epsilon(plan, target), trail):
            if math.isnan(ends.lower) or math.isnan(ends.upper):
                continue
            narrower = ends.lower > best.lower or ends.upper < best.upper
            best = intersection(best, ends, name)
            done = route.final or best.upper <= plan.floor or _is_narrow(best, route.sharp(plan.tuning))
            trail.append(Visit(name, *best, "sharp" if done else "narrower" if narrower else "no narrower"))
            if done:
                return best
    return best
