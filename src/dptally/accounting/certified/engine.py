"""Which method answers which plan, and what every answer goes through: mass at infinity, both directions, zero.

For each direction the finite part of delta is bounded by the first of these that is sharp enough, and where several
were
needed their certified intervals are intersected:

    closed form                  one step: the law's own profile (closed.py)
    inversion                    smooth losses: one contour sum (inversion.py)
    inversion of the reverse     eps next to 0: the other direction of the same pair at -eps (reversal.py)
    inversion, split by jumps    rare large losses: a contour for every size of loss (jumps.py)
    smoothed inversion           different laws with point masses: a contour with a little noise (smoothing.py)
    lattice of deciding losses   few steps of one law (few_steps.py)
    tilted lattice               anything with a profile (lattice.py)
    Chernoff                     always: delta(eps) <= c(t) exp(K(t) - t eps), c(t) = t^t / (1 + t)^(1 + t)

The mass at infinity p = 1 - prod (1 - p_j)^n_j enters as delta(eps) = p + (finite part); p is formed with its own
rounding
error and never by subtracting rounded logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from dptally.accounting import renyi
from dptally.accounting.certified import closed, inversion, jumps, reversal, smoothing
from dptally.accounting.moments import infinity_mass, log_moment_upper
from dptally.interval import Interval
from dptally.law import Composition
from dptally.law.law import Floats
from dptally.numerics.rounding import EPS, down, up

Answers = TypeVar("Answers")

_MANY = 16  # different laws
_LOG_LEAST = -746.0  # below the log of the least double

__all__ = ["delta_interval", "delta_profile", "epsilon_curve", "epsilon_interval"]


def delta_interval(directions: Sequence[Composition], epsilon: float) -> Interval:
    """Certified bounds of delta(epsilon) for a plan given by its directions; the larger direction counts."""
    boxes: list[Interval] = []
    for composition in directions:
        boxes.append(_delta(composition, epsilon, max((box.lower for box in boxes), default=0.0)))
    return _larger(boxes)


def delta_profile(composition: Composition) -> Callable[[float], Interval]:
    """:func:`delta_interval` of one direction, to be asked often: what was made for one eps serves its neighbours."""
    made: list[_Made] = []
    return lambda epsilon: _delta(composition, epsilon, made=made)


def epsilon_interval(directions: Sequence[Composition], delta: float) -> Interval:
    """Certified bounds of the smallest epsilon >= 0 with delta(epsilon) <= delta; the larger direction counts."""
    boxes: list[Interval] = []
    for composition in directions:
        boxes.append(_epsilon(composition, delta, max((box.lower for box in boxes), default=0.0)))
    return _larger(boxes)


def epsilon_curve(directions: Sequence[Composition], counts: Sequence[int], delta: float) -> list[Interval]:
    """:func:`epsilon_interval` of ``count`` repetitions of the plan, for each count; neighbouring counts share their
    work.
    """
    together: list[dict[int, tuple[float, float]]] = []
    for composition in directions:
        plain = delta > 0 and composition.determined and infinity_mass(composition)[1] == 0
        answers = inversion.curve(composition, counts, _log_bounds(delta)) if plain else {}
        together.append({k: (low, high) for k, (low, high) in answers.items() if high - low <= 1e-9 * high})
    out = []
    for count in counts:
        boxes = []
        for composition, answers in zip(directions, together, strict=True):
            if count in answers:
                boxes.append(Interval(*answers[count], "inversion"))
            else:
                repeated = Composition.of((law, count * n) for law, n in composition.parts)
                boxes.append(_epsilon(repeated, delta))
        out.append(_larger(boxes))
    return out


def _larger(intervals: list[Interval]) -> Interval:
    """The maximum of the unknown truths lies between the largest lower and the largest upper end."""
    if not intervals:
        return Interval(0.0, 0.0, "nothing was run")
    widest = max(intervals, key=lambda box: box.upper)
    return Interval(max(box.lower for box in intervals), widest.upper, widest.method)


def _delta(composition: Composition, epsilon: float, floor: float = 0.0, made: list[_Made] | None = None) -> Interval:
    """Bounds of one direction's delta; a direction that is below ``floor`` need not be sharp."""
    p_low, p_high = infinity_mass(composition)
    if not composition.determined:
        answer, firm = renyi.delta([composition], epsilon), composition.dominating()
        known = Interval(0.0, min(1.0, float(answer)), f"Renyi, upper bound only ({answer.theorem})")
        return known if firm is None else _tighter(known, _delta(firm, epsilon))
    low, high, method = _log_delta(composition, epsilon, floor, [] if made is None else made)
    lower = down(p_low + (down(math.exp(low), 4) if low > -740 else 0.0)) if low > -math.inf else p_low
    upper = up(p_high + up(math.exp(high), 4)) if high > -math.inf else p_high
    return Interval(min(1.0, max(0.0, lower, p_low)), min(1.0, upper), method)


def _epsilon(composition: Composition, delta: float, floor: float = 0.0) -> Interval:
    """Bounds of one direction's epsilon; a direction that is below ``floor`` need not be sharp."""
    if not composition.parts:
        return Interval(0.0, 0.0, "nothing was run")
    if not composition.determined:
        answer, firm = renyi.epsilon([composition], delta), composition.dominating()
        known = Interval(0.0, float(answer), f"Renyi, upper bound only ({answer.theorem})")
        return known if firm is None else _tighter(known, _epsilon(firm, delta))
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
    low, high, method = _epsilon_finite(composition, (upper_target, lower_target), floor)
    return Interval(max(0.0, low), max(0.0, high), method)


def _tighter(one: Interval, other: Interval) -> Interval:
    """Two upper bounds of a guarantee that fixes no pair: the smaller counts, and neither has a lower end."""
    return one if one.upper <= other.upper else Interval(0.0, other.upper, f"{other.method}, upper bound only")


def _log_bounds(x: float) -> tuple[float, float]:
    """Bounds of log x, x > 0: the C library's log is within one ulp; near 1 the absolute error is that of the ulp
    itself.
    """
    value = math.log(x)
    return down(value, 2), up(value, 2)


# -- the finite part of one direction ------------------------------------------------------------------------------


def _log_delta(composition: Composition, epsilon: float, floor: float, made: list[_Made]) -> tuple[float, float, str]:
    """Certified bounds of log E[(1 - e^{eps - L})+; L < inf] and how they were found.

    Where the first route fails and Chernoff's bound is below ``floor``, or below every double, that is answer enough.
    What is in ``made`` is asked first, and what is found joins it.
    """
    if not composition.parts:
        return -math.inf, (-math.inf if epsilon >= 0 else 0.0), "nothing was run"
    if epsilon >= composition.supremum:
        return -math.inf, -math.inf, "epsilon is the largest possible loss"
    if composition.steps == 1:
        return *closed.log_delta(composition.parts[0][0], epsilon), "closed form"
    for route, found in reversed(made):
        low, high, rate = _asked(found, epsilon)
        if high - low <= route.enough * max(1.0, rate * epsilon):
            return low, high, route.name
    low, high, method = -math.inf, 0.0, "Chernoff"
    for number, route in enumerate(_ROUTES):
        if number == 1:
            bound = _chernoff_log_delta(composition, epsilon)
            if bound < max(_LOG_LEAST, math.log(floor) if floor > 0 else -math.inf):
                return -math.inf, bound, "Chernoff"
        for found in _tried(route.profiles(composition, epsilon)):
            found_low, found_high, rate = _asked(found, epsilon)
            if math.isnan(found_low) or math.isnan(found_high):
                continue
            if found_low > low or found_high < high:
                low, high = _met((low, high), (found_low, found_high))
                method = route.name
            if high - low <= route.enough * max(1.0, rate * epsilon):
                made.append((route, found))
                return low, high, method
    return *_met((low, high), (-math.inf, _chernoff_log_delta(composition, epsilon))), method


def _epsilon_finite(
    composition: Composition, log_target: tuple[float, float], floor: float = 0.0
) -> tuple[float, float, str]:
    """Certified bounds of the smallest eps >= 0 whose finite delta is at most a target inside ``log_target``.

    Where the first route fails and Chernoff's bound is below ``floor`` that is answer enough.
    """
    if log_target[0] == -math.inf:
        supremum = max(0.0, composition.supremum)
        if log_target[1] == -math.inf:
            if composition.steps == 1 or not 0 < supremum < math.inf:  # the law has rounded it up itself
                low = supremum if supremum in (0.0, math.inf) else down(supremum)
                return low, supremum, "the largest possible loss"
            return down(supremum, 4), up(supremum, 4), "the largest possible loss"
        low, _, method = _epsilon_finite(composition, (log_target[1], log_target[1]))
        return low, up(supremum, 4), method
    if composition.steps == 1:
        return *closed.epsilon(composition.parts[0][0], log_target), "closed form"
    low, high, method = 0.0, max(0.0, composition.supremum), "Chernoff"
    # one look at every law: before the second route, or where that takes as long as the smoothed contour after it
    look = 4 if len(composition.parts) >= _MANY and not jumps.applies(composition) else 1
    for number, route in enumerate(_ROUTES):
        if number == look:  # asked only when the first route failed
            if _log_delta_at_zero(composition) <= log_target[0]:
                return 0.0, 0.0, "delta exceeds the total variation"
            low = max(low, _near_the_largest(composition, log_target[1]))
            if math.isfinite(high) and high - low <= 1e-9 * high:
                return low, high, "the largest possible loss"
            bound = _chernoff_epsilon(composition, log_target[0]) if floor > 0 else math.inf
            if bound < floor:
                return 0.0, bound, "Chernoff"
        for found_low, found_high in _tried(route.epsilon(composition, log_target)):
            if math.isnan(found_low) or math.isnan(found_high):
                continue
            if found_low > low or found_high < high:
                low, high = _met((low, high), (found_low, found_high))
                method = route.name
            if math.isfinite(high) and high - low <= route.enough * high:
                return low, high, method
    alone, together = _basic(composition, log_target)
    return *_met((low, high), (alone, min(_chernoff_epsilon(composition, log_target[0]), together))), method


def _met(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Two intervals that contain the truth meet; where they do not one is wrong, and only their hull can be right."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return (low, high) if low <= high else (min(one[0], other[0]), max(one[1], other[1]))


def _basic(composition: Composition, log_target: tuple[float, float]) -> tuple[float, float]:
    """What one step alone shows, and basic composition.

    No plan is safer than one of its steps, and epsilons add up where each of the N steps gets delta / N.
    """
    share = log_target[0] - math.log(composition.steps) - 1e-15 * (1 + abs(log_target[0]))
    with np.errstate(all="ignore"):
        alone = max(closed.epsilon(law, log_target)[0] for law, _ in composition.parts)
        parts = [n * closed.epsilon(law, (share, share))[1] for law, n in composition.parts]
    total = math.fsum(parts) if all(math.isfinite(part) for part in parts) else math.inf
    return alone, up(total, 4) if math.isfinite(total) else math.inf


def _near_the_largest(composition: Composition, log_delta: float) -> float:
    """A lower bound of eps from steps that all lose nearly the most they can; 0 where losses are unbounded.

    For x below the largest loss s of a step, p(x) = P(L > x) >= delta_1(x) / (1 - e^{x - s}); so with X the sum of the
    x, delta(eps) >= prod p(x) (1 - e^{eps - X}), which exceeds the target up to X + log(1 - target / prod p(x)).
    """
    if not 0 < composition.supremum < math.inf or any(law.supremum <= 0 for law, _ in composition.parts):
        return 0.0
    short = np.geomspace(1e-12, 0.5, 24)
    reached, log_p = np.zeros((2, len(short)))
    with np.errstate(all="ignore"):
        for law, n in composition.parts:
            x = law.supremum * (1 - short)
            most = up(law.supremum, 4) * (1 + 4 * EPS) - x  # the law has rounded its largest loss itself
            log_p += n * (law.log_profile(x)[0] - np.log(-np.expm1(-most)) - 8 * EPS)
            reached += n * x
        ratio = np.exp(log_delta - log_p + 16 * EPS * (1 + np.abs(log_p) + abs(log_delta)))
        bounds = (reached + np.log1p(-ratio)) - 8 * EPS * (len(composition.parts) + 4) * reached
    return float(np.nanmax(np.where(ratio < 0.999, bounds, 0.0), initial=0.0))


def _log_delta_at_zero(composition: Composition) -> float:
    """log of an upper bound of delta(0), the total variation: subadditive under composition; and by Pinsker's
    inequality at most sqrt(KL / 2), where KL <= K(t) / t for every t > 0.
    """
    total = math.fsum(n * math.exp(float(law.log_profile(np.zeros(1))[1][0])) for law, n in composition.parts)
    bound = math.log(up(total, 4)) if total > 0 else -math.inf
    if all(type(law).has_characteristic for law, _ in composition.parts):
        rows = inversion.tabulate_at(composition.parts, np.geomspace(1e-3, 1.0, 7))
        least = float(((rows.moment + rows.error) / rows.theta).min())
        bound = min(bound, 0.5 * math.log(up(0.5 * least, 8)) + 1e-15) if math.isfinite(least) and least > 0 else bound
    return bound


def _tried(answers: Iterator[Answers]) -> Iterator[Answers]:
    """The answers of a route until its numbers leave the doubles or the memory: from there on it has none."""
    while True:
        try:
            with np.errstate(all="ignore"):
                answer = next(answers)
        except (StopIteration, OverflowError, MemoryError):
            return
        yield answer


def _asked(found: _Bounded, epsilon: float) -> tuple[float, float, float]:
    """Its bounds of log delta, the trivial ones where its numbers leave the doubles."""
    try:
        with np.errstate(all="ignore"):
            return found.log_delta(epsilon)
    except OverflowError:
        return -math.inf, 0.0, 0.0


# -- the routes: each yields certified bounds, or nothing where it does not apply ------------------------------------


class _Bounded(Protocol):
    """Anything with certified bounds of log delta at every eps, trivial ones where it was not made for, and a slope."""

    def log_delta(self, epsilon: float) -> tuple[float, float, float]: ...


@dataclass(frozen=True, slots=True)
class _Answer:
    """Bounds at one eps."""

    epsilon: float
    low: float
    high: float

    def log_delta(self, epsilon: float) -> tuple[float, float, float]:
        return (self.low, self.high, 0.0) if epsilon == self.epsilon else (-math.inf, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _Route:
    """A numerical method, and the relative width at which its answer needs no second method."""

    name: str
    enough: float
    profiles: Callable[[Composition, float], Iterator[_Bounded]]
    epsilon: Callable[[Composition, tuple[float, float]], Iterator[tuple[float, float]]]


_Made = tuple[_Route, _Bounded]


def _worth(composition: Composition) -> int:
    """How much work one plain contour is worth: less where rare large losses can be counted apart."""
    if not jumps.applies(composition):
        return inversion.MOST_WORK
    return min(inversion.MOST_WORK, inversion.MOST_WORK // 10 * len(composition.parts))


def _inversion_profiles(composition: Composition, epsilon: float) -> Iterator[_Bounded]:
    found = inversion.for_epsilon(composition, epsilon, _worth(composition))
    if found is not None:
        yield found


def _inversion_epsilon(composition: Composition, log_target: tuple[float, float]) -> Iterator[tuple[float, float]]:
    found = inversion.for_delta(composition, log_target[0], _worth(composition))
    if found is not None:
        yield inversion.epsilon(found, log_target)


def _smoothed_profiles(composition: Composition, epsilon: float) -> Iterator[_Bounded]:
    found = smoothing.for_epsilon(composition, epsilon) if smoothing.applies(composition) else None
    if found is not None:
        yield found


def _smoothed_epsilon(composition: Composition, log_target: tuple[float, float]) -> Iterator[tuple[float, float]]:
    found = smoothing.for_delta(composition, log_target[0]) if smoothing.applies(composition) else None
    if found is not None:
        yield inversion.epsilon(found, log_target)


def _reversed_profiles(composition: Composition, epsilon: float) -> Iterator[_Bounded]:
    return reversal.for_epsilon(composition, epsilon)


def _reversed_epsilon(composition: Composition, log_target: tuple[float, float]) -> Iterator[tuple[float, float]]:
    for found in reversal.for_delta(composition, log_target[0]):
        yield inversion.epsilon(found, log_target)


def _few_profiles(composition: Composition, epsilon: float) -> Iterator[_Bounded]:
    from dptally.accounting.certified import few_steps

    if few_steps.applies(composition):
        found = few_steps.for_epsilon(composition, epsilon, _chernoff_log_delta(composition, epsilon))
        if found is not None:
            yield found


def _few_epsilon(composition: Composition, log_target: tuple[float, float]) -> Iterator[tuple[float, float]]:
    from dptally.accounting.certified import few_steps

    if few_steps.applies(composition):
        found = few_steps.for_delta(composition, log_target[0], _chernoff_epsilon(composition, log_target[0]))
        if found is not None:
            yield inversion.epsilon(found, log_target)


def _jumps_profiles(composition: Composition, epsilon: float) -> Iterator[_Bounded]:
    if jumps.applies(composition):
        yield from jumps.for_epsilon(composition, epsilon, _chernoff_log_delta(composition, epsilon))


def _jumps_epsilon(composition: Composition, log_target: tuple[float, float]) -> Iterator[tuple[float, float]]:
    if jumps.applies(composition):
        for found in jumps.for_delta(composition, log_target[0], _chernoff_epsilon(composition, log_target[0])):
            yield inversion.epsilon(found, log_target)


def _lattice_profiles(composition: Composition, epsilon: float) -> Iterator[_Bounded]:
    from dptally.accounting.certified import lattice

    yield _Answer(epsilon, *lattice.log_delta(composition, epsilon))


def _lattice_epsilon(composition: Composition, log_target: tuple[float, float]) -> Iterator[tuple[float, float]]:
    from dptally.accounting.certified import lattice

    yield lattice.epsilon(composition, log_target)


_ROUTES = (
    _Route("inversion", 1e-9, _inversion_profiles, _inversion_epsilon),
    _Route("inversion of the reverse", 5e-7, _reversed_profiles, _reversed_epsilon),
    _Route("inversion, split by jumps", 5e-7, _jumps_profiles, _jumps_epsilon),
    _Route("smoothed inversion", 9e-7, _smoothed_profiles, _smoothed_epsilon),
    _Route("lattice of deciding losses", 9e-7, _few_profiles, _few_epsilon),
    _Route("tilted lattice", 9e-7, _lattice_profiles, _lattice_epsilon),
)


def _chernoff_epsilon(composition: Composition, log_delta: float) -> float:
    if all(type(law).has_characteristic for law, _ in composition.parts):
        with np.errstate(all="ignore"):
            bound = inversion.chernoff_epsilon(composition, log_delta)
    else:
        delta = math.exp(log_delta)
        if delta < 1e-300:  # too near the end of the doubles to form 1/delta
            return composition.supremum
        orders = _orders(composition, log_delta)
        bound, _ = renyi.best_epsilon(lambda t: log_moment_upper(composition, t), down(delta, 1024.0), orders=orders)
    return min(bound, composition.supremum)


def _chernoff_log_delta(composition: Composition, epsilon: float) -> float:
    if all(type(law).has_characteristic for law, _ in composition.parts):
        with np.errstate(all="ignore"):
            return inversion.chernoff_log_delta(composition, epsilon)
    orders = _orders(composition, -100.0)
    bound, _ = renyi.best_delta(lambda t: log_moment_upper(composition, t), epsilon, orders=orders)
    return min(bound, 0.0)


def _orders(composition: Composition, log_delta: float) -> Floats | None:
    """Orders for bounded losses whose moments are integrals, dearer with the order: the last is within 1 %.

    Of eps at order 1 + t all but -log(delta) / t is the exponent's slope, which is at most the largest loss.
    """
    largest = composition.supremum
    if not 0 < largest < math.inf:
        return None
    return np.asarray(1.0 + np.geomspace(1e-3, 1e2 * (1.0 - log_delta), 64) / largest)
