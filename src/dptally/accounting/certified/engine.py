"""What every answer goes through: both directions of a plan, of which the larger counts; one question or many.

One direction is answered in direction.py by a walk over the routes (walk.py, routes.py). Many questions of one plan
share contours where they can (contour/many.py, contour/curve.py); what they leave open is asked by itself. ``tuning``:
choices that decide how long an answer takes and how wide it is, never whether it is true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dptally.accounting.certified.bounds import log_interval
from dptally.accounting.certified.contour import many
from dptally.accounting.certified.contour.curve import curve
from dptally.accounting.certified.direction import delta_of, epsilon_of, with_mass
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.tuning import STANDARD, Tuning
from dptally.accounting.certified.walk import Made
from dptally.interval import Interval
from dptally.law import Composition
from dptally.law.law import Floats

__all__ = [
    "Profile",
    "delta_interval",
    "delta_intervals",
    "delta_profile",
    "epsilon_curve",
    "epsilon_interval",
    "epsilon_intervals",
]


def delta_interval(directions: Sequence[Composition], epsilon: float, tuning: Tuning = STANDARD) -> Interval:
    """Certified bounds of delta(epsilon) for a plan given by its directions; the larger direction counts."""
    boxes: list[Interval] = []
    for composition in directions:
        boxes.append(delta_of(composition, epsilon, max((box.lower for box in boxes), default=0.0), [], tuning))
    return _larger(boxes)


def delta_profile(composition: Composition) -> Callable[[float], Interval]:
    """:func:`delta_interval` of one direction, to be asked often: what was made for one eps serves its neighbours."""
    made: Made = []
    return lambda epsilon: delta_of(composition, epsilon, 0.0, made, STANDARD)


def epsilon_interval(directions: Sequence[Composition], delta: float, tuning: Tuning = STANDARD) -> Interval:
    """Certified bounds of the smallest epsilon >= 0 with delta(epsilon) <= delta; the larger direction counts."""
    boxes: list[Interval] = []
    for composition in directions:
        boxes.append(epsilon_of(composition, delta, max((box.lower for box in boxes), default=0.0), tuning))
    return _larger(boxes)


def epsilon_curve(
    directions: Sequence[Composition], counts: Sequence[int], delta: float, tuning: Tuning = STANDARD
) -> list[Interval]:
    """:func:`epsilon_interval` of ``count`` repetitions of the plan, for each; neighbouring counts share their work."""
    together: list[dict[int, tuple[float, float]]] = []
    for composition in directions:
        plain = 0 < delta < 1 and _shares(composition) and _multiplies(composition)
        found = curve(composition, counts, log_interval(delta), tuning) if plain else {}
        together.append(
            {k: (low, high) for k, (low, high) in found.items() if high - low <= tuning.routes.sharp_contour * high}
        )
    out = []
    for count in counts:
        boxes = []
        for composition, answers in zip(directions, together, strict=True):
            if count in answers:
                boxes.append(Interval(*answers[count], "inversion"))
            else:
                repeated = Composition.of((law, count * n) for law, n in composition.parts)
                boxes.append(epsilon_of(repeated, delta, 0.0, tuning))
        out.append(_larger(boxes))
    return out


def epsilon_intervals(
    directions: Sequence[Composition], deltas: Sequence[float], tuning: Tuning = STANDARD
) -> list[Interval]:
    """:func:`epsilon_interval` at each delta; neighbouring deltas share their work."""
    boxes: list[dict[int, Interval]] = []
    for composition in directions:
        asked = [i for i, delta in enumerate(deltas) if 0 < delta < 1] if _shares(composition) else []
        bounds = np.array([log_interval(deltas[i]) for i in asked]).reshape(-1, 2)
        lower, upper = many.epsilons_by_contours(composition, bounds[:, 0], bounds[:, 1], tuning)
        boxes.append({i: Interval(a, b, "inversion") for i, a, b in zip(asked, lower, upper, strict=True) if b >= a})
    return [
        _larger(
            [
                found[i]
                if i in found
                else epsilon_of(composition, delta, max((f[i].lower for f in boxes if i in f), default=0.0), tuning)
                for composition, found in zip(directions, boxes, strict=True)
            ]
        )
        for i, delta in enumerate(deltas)
    ]


def delta_intervals(
    directions: Sequence[Composition], epsilons: Sequence[float], tuning: Tuning = STANDARD
) -> list[Interval]:
    """:func:`delta_interval` at each epsilon; neighbouring epsilons share their work."""
    return Profile(directions, tuning)(epsilons)


class Profile:
    """delta of a whole plan, to be asked often: neighbouring epsilons, of earlier calls too, share their work."""

    def __init__(self, directions: Sequence[Composition], tuning: Tuning = STANDARD) -> None:
        self._directions: list[tuple[Composition, Made]] = [(composition, []) for composition in directions]
        self._tuning = tuning

    def __call__(self, epsilons: Sequence[float], floors: Sequence[float] | None = None) -> list[Interval]:
        """Certified bounds at each epsilon. A delta that is certainly below its floor need not be known any better."""
        at, floor = np.array(epsilons, dtype=np.float64), np.zeros(len(epsilons))
        if floors is not None:
            floor[:] = floors
        boxes: list[list[Interval]] = [[] for _ in epsilons]
        for composition, made in self._directions:
            found = self._shared(composition, at, floor)
            for i, epsilon in enumerate(epsilons):
                if i in found:
                    boxes[i].append(found[i])
                    continue
                least = max((box.lower for box in boxes[i]), default=0.0)
                boxes[i].append(delta_of(composition, epsilon, max(least, float(floor[i])), made, self._tuning))
        return [_larger(each) for each in boxes]

    def _shared(self, composition: Composition, at: Floats, floor: Floats) -> dict[int, Interval]:
        """The epsilons that Chernoff's bound or common contours answer."""
        if not _shares(composition):
            return {}
        plan, found = Plan(composition, tuning=self._tuning), dict[int, Interval]()
        if plan.transformable and (floor > 0).any():
            most = plan.log_total_variation()
            for i in np.nonzero(floor > 0)[0].tolist():
                bound = min(plan.chernoff_log_delta(float(at[i])), most)
                box = with_mass(composition, -math.inf, bound, "Chernoff")
                if box.upper < floor[i]:
                    found[i] = box
        rest = np.array([i for i in range(len(at)) if i not in found], dtype=np.intp)
        lower, upper = many.deltas_by_contours(composition, at[rest], self._tuning)
        for i, low, high in zip(rest.tolist(), lower.tolist(), upper.tolist(), strict=True):
            if high >= low:
                found[i] = with_mass(composition, low, high, "inversion")
        return found


def _shares(composition: Composition) -> bool:
    """Whether contours may answer many questions at once: smooth finite losses, all of the mass."""
    if not composition.parts or not composition.determined or composition.optimistic() is not composition:
        return False
    return composition.infinity_mass_interval.upper == 0


def _multiplies(composition: Composition) -> bool:
    """Whether twice the plan is every law twice; uses of bounded range make one law of their own."""
    twice = tuple((law, 2 * n) for law, n in composition.parts)
    return Composition.of(twice).parts == twice


def _larger(intervals: list[Interval]) -> Interval:
    """The maximum of the unknown truths lies between the largest lower and the largest upper end."""
    if not intervals:
        return Interval(0.0, 0.0, "nothing was run")
    widest = max(intervals, key=lambda box: box.upper)
    return Interval(max(box.lower for box in intervals), widest.upper, widest.method)
