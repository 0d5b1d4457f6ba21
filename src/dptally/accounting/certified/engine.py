"""What every answer goes through: both directions, mass at infinity, zero and one, and a walk over the routes.

For each direction the routes (routes.py) are asked in order; their certified intervals are intersected until one is
sharp enough. Which routes were asked and why the walk stopped is kept in a trail, from which the answer's ``method``
comes. The mass at infinity p = 1 - prod (1 - p_j)^n_j enters as delta(eps) = p + (finite part), with bounds of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dptally.accounting import renyi
from dptally.accounting.certified.bounds import BoundedProfile, Ends, LogBounds, LogTarget, intersection, log_interval
from dptally.accounting.certified.contour import inversion, many
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.route import Route, Trail, Visit, answers_of, bounds_at
from dptally.accounting.certified.routes import in_order
from dptally.interval import Interval
from dptally.law import Composition
from dptally.numerics.rounding import down, up

__all__ = [
    "delta_interval",
    "delta_intervals",
    "delta_profile",
    "epsilon_curve",
    "epsilon_interval",
    "epsilon_intervals",
    "walk_delta",
    "walk_epsilon",
]

_LOG_LEAST = -746.0  # below the log of the least double
_Made = list[tuple[Route, BoundedProfile]]


def delta_interval(directions: Sequence[Composition], epsilon: float) -> Interval:
    """Certified bounds of delta(epsilon) for a plan given by its directions; the larger direction counts."""
    boxes: list[Interval] = []
    for composition in directions:
        boxes.append(_delta(composition, epsilon, max((box.lower for box in boxes), default=0.0), []))
    return _larger(boxes)


def delta_profile(composition: Composition) -> Callable[[float], Interval]:
    """:func:`delta_interval` of one direction, to be asked often: what was made for one eps serves its neighbours."""
    made: _Made = []
    return lambda epsilon: _delta(composition, epsilon, 0.0, made)


def epsilon_interval(directions: Sequence[Composition], delta: float) -> Interval:
    """Certified bounds of the smallest epsilon >= 0 with delta(epsilon) <= delta; the larger direction counts."""
    boxes: list[Interval] = []
    for composition in directions:
        boxes.append(_epsilon(composition, delta, max((box.lower for box in boxes), default=0.0)))
    return _larger(boxes)


def epsilon_curve(directions: Sequence[Composition], counts: Sequence[int], delta: float) -> list[Interval]:
    """:func:`epsilon_interval` of ``count`` repetitions of the plan, for each; neighbouring counts share their work."""
    together: list[dict[int, tuple[float, float]]] = []
    for composition in directions:
        plain = 0 < delta < 1 and _shares(composition)
        answers = inversion.curve(composition, counts, log_interval(delta)) if plain else {}
        together.append({k: (low, high) for k, (low, high) in answers.items() if high - low <= 1e-9 * high})
    out = []
    for count in counts:
        boxes = []
        for composition, answers in zip(directions, together, strict=True):
            if count in answers:
                boxes.append(Interval(*answers[count], "inversion"))
            else:
                repeated = Composition.of((law, count * n) for law, n in composition.parts)
                boxes.append(_epsilon(repeated, delta, 0.0))
        out.append(_larger(boxes))
    return out


def epsilon_intervals(directions: Sequence[Composition], deltas: Sequence[float]) -> list[Interval]:
    """:func:`epsilon_interval` at each delta; neighbouring deltas share their work."""
    boxes: list[dict[int, Interval]] = []
    for composition in directions:
        asked = [i for i, delta in enumerate(deltas) if 0 < delta < 1] if _shares(composition) else []
        bounds = np.array([log_interval(deltas[i]) for i in asked]).reshape(-1, 2)
        lower, upper = many.epsilons_by_contours(composition, bounds[:, 0], bounds[:, 1])
        boxes.append({i: Interval(a, b, "inversion") for i, a, b in zip(asked, lower, upper, strict=True) if b >= a})
    return [
        _larger(
            [
                found[i]
                if i in found
                else _epsilon(composition, delta, max((f[i].lower for f in boxes if i in f), default=0.0))
                for composition, found in zip(directions, boxes, strict=True)
            ]
        )
        for i, delta in enumerate(deltas)
    ]


def delta_intervals(directions: Sequence[Composition], epsilons: Sequence[float]) -> list[Interval]:
    """:func:`delta_interval` at each epsilon; neighbouring epsilons share their work."""
    boxes: list[dict[int, Interval]] = []
    profiles: list[_Made] = [[] for _ in directions]
    for composition in directions:
        logs = (np.full(len(epsilons), np.nan),) * 2
        if _shares(composition):
            logs = many.deltas_by_contours(composition, np.array(epsilons, dtype=np.float64))
        found = {i: (float(a), float(b)) for i, (a, b) in enumerate(zip(*logs, strict=True)) if b >= a}
        boxes.append({i: _with_mass(composition, a, b, "inversion") for i, (a, b) in found.items()})
    return [
        _larger(
            [
                found[i] if i in found else _delta(composition, epsilon, 0.0, made)
                for composition, found, made in zip(directions, boxes, profiles, strict=True)
            ]
        )
        for i, epsilon in enumerate(epsilons)
    ]


def _shares(composition: Composition) -> bool:
    """Whether contours may answer many questions at once: smooth finite losses, all of the mass."""
    if not composition.parts or not composition.determined or composition.optimistic() is not composition:
        return False
    return composition.infinity_mass_interval.upper == 0


def _larger(intervals: list[Interval]) -> Interval:
    """The maximum of the unknown truths lies between the largest lower and the largest upper end."""
    if not intervals:
        return Interval(0.0, 0.0, "nothing was run")
    widest = max(intervals, key=lambda box: box.upper)
    return Interval(max(box.lower for box in intervals), widest.upper, widest.method)


# -- one direction: mass at infinity, zero and one -------------------------------------------------------------------


def _delta(composition: Composition, epsilon: float, floor: float, made: _Made) -> Interval:
    """Bounds of one direction's delta; the lower end is that of the law whose parameters were rounded the other way."""
    box = _delta_of(composition, epsilon, floor, made)
    twin = composition.optimistic()
    return box if twin is composition else _with_lower(box, _delta_of(twin, epsilon, floor, []))


def _epsilon(composition: Composition, delta: float, floor: float) -> Interval:
    """Bounds of one direction's epsilon, likewise."""
    box = _epsilon_of(composition, delta, floor)
    twin = composition.optimistic()
    return box if twin is composition else _with_lower(box, _epsilon_of(twin, delta, floor))


def _with_lower(box: Interval, twin: Interval) -> Interval:
    return Interval(min(twin.lower, box.upper), box.upper, box.method)


def _delta_of(composition: Composition, epsilon: float, floor: float, made: _Made) -> Interval:
    """Bounds of delta of these laws; an answer below ``floor`` need not be sharp."""
    if not composition.determined:
        answer, firm = renyi.delta([composition], epsilon), composition.dominating()
        known = Interval(0.0, min(1.0, float(answer)), f"Renyi, upper bound only ({answer.theorem})")
        return known if firm is None else _tighter(known, _delta(firm, epsilon, floor, []))
    mass = composition.infinity_mass_interval
    plan = Plan(composition, max(0.0, floor - mass.upper))
    trail: Trail = []
    low, high, _ = walk_delta(plan, epsilon, trail, made)
    return _with_mass(composition, low, high, _method(trail))


def _with_mass(composition: Composition, low: float, high: float, method: str) -> Interval:
    """Bounds of delta from those of the log of its finite part."""
    mass = composition.infinity_mass_interval
    lower = down(mass.lower + (down(math.exp(low), 4) if low > -740 else 0.0)) if low > -math.inf else mass.lower
    upper = up(mass.upper + up(math.exp(high), 4)) if high > -math.inf else mass.upper
    return Interval(min(1.0, max(0.0, lower, mass.lower)), min(1.0, upper), method)


def _epsilon_of(composition: Composition, delta: float, floor: float) -> Interval:
    """Bounds of epsilon of these laws; an answer below ``floor`` need not be sharp."""
    if not composition.parts:
        return Interval(0.0, 0.0, "nothing was run")
    if delta >= 1:
        return Interval(0.0, 0.0, "no delta exceeds one")
    if not composition.determined:
        answer, firm = renyi.epsilon([composition], delta), composition.dominating()
        known = Interval(0.0, float(answer), f"Renyi, upper bound only ({answer.theorem})")
        return known if firm is None else _tighter(known, _epsilon(firm, delta, floor))
    plan = Plan(composition, floor)
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


# -- the finite part of one direction: one walk over the routes for each question --------------------------------------


def walk_delta(plan: Plan, epsilon: float, trail: Trail, made: _Made | None = None) -> LogBounds:
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
        if _is_sharp(route, bounds, epsilon):
            trail.append(Visit(route.name, bounds.lower, bounds.upper, "sharp"))
            return bounds
    best = Ends(-math.inf, 0.0)
    log_floor = max(_LOG_LEAST, math.log(plan.floor) if plan.floor > 0 else -math.inf)
    for route in in_order(plan):
        if not route.applies(plan):
            continue
        for profile in answers_of(route.name, route.near_epsilon(plan, epsilon), trail):
            bounds = bounds_at(profile, epsilon)
            narrower = bounds.lower > best.lower or bounds.upper < best.upper
            best = intersection(best, bounds[:2], route.name)
            now = LogBounds(*best, bounds.slope)
            done = _is_sharp(route, now, epsilon) or now.upper < log_floor
            trail.append(Visit(route.name, *best, "sharp" if done else "narrower" if narrower else "no narrower"))
            if done:
                if route.sharp < math.inf and now.upper >= log_floor:
                    made.append((route, profile))
                return now
    return LogBounds(*best)


def _is_sharp(route: Route, bounds: LogBounds, epsilon: float) -> bool:
    """Narrow enough in log delta, or in eps where delta falls fast."""
    if bounds.upper == bounds.lower:
        return True
    width = bounds.upper - bounds.lower
    return route.sharp == math.inf or width <= route.sharp * max(1.0, bounds.slope * epsilon)


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
    for route in in_order(plan):
        if not route.applies(plan):
            continue
        for ends in answers_of(route.name, route.epsilon(plan, target), trail):
            if math.isnan(ends.lower) or math.isnan(ends.upper):
                continue
            narrower = ends.lower > best.lower or ends.upper < best.upper
            best = intersection(best, ends, route.name)
            done = route.sharp == math.inf or best.upper < plan.floor
            done = done or (math.isfinite(best.upper) and best.upper - best.lower <= route.sharp * best.upper)
            trail.append(Visit(route.name, *best, "sharp" if done else "narrower" if narrower else "no narrower"))
            if done:
                return best
    return best
