"""The tilted lattice: certified bounds of delta and epsilon for any composition of laws that have a profile.

Each law becomes two lattice measures, one with a profile above its own and one with a profile below
(spread.py); each is composed by tilted Fourier transforms with bounded rounding (lattice_terms.py), cut into
light and heavy pieces where one rare loss carries delta (lattice_plan.py). The gap closes with the square of
the step, so the step is halved until the width is small or the budget is spent; what is returned then is
honestly wider. docs/certificates-lattice.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dptally.accounting.certified.lattice.convolve import Factor, Term, Weights, convolve, log_payoff_peak
from dptally.accounting.certified.lattice.grid import Layout, layouts, step_for
from dptally.accounting.certified.lattice.measure import (
    LatticeMeasure,
    Table,
    combined,
    lower_spread,
    point_spread,
    upper_spread,
)
from dptally.accounting.certified.lattice.plan import Layer, Outline, Plan, tilts_of
from dptally.accounting.certified.tuning import STANDARD, LatticeTuning
from dptally.law import Composition
from dptally.numerics.logspace import log_sum
from dptally.numerics.rounding import EPS, up

__all__ = ["epsilon", "log_delta"]

_DEEPEST = -745.0  # log-profiles below this are not resolved: doubles end here
Parts = Sequence[tuple[LatticeMeasure, int]]


@dataclass(frozen=True, slots=True)
class LatticeBound:
    """One certified bound of log delta as a function of eps: a sum of terms, and what was left out of
    them."""

    terms: tuple[Term, ...]
    offset: float
    shift: float
    log_factor: float
    upper: bool
    log_constant: float  # mass moved to infinity
    rest: tuple[tuple[float, float], ...]  # (K, s): the terms that are not computed, at most exp(K - s eps) each
    blur: float = 0.0  # variance of the Gaussian that dominates what was done to point masses between nodes

    def log_bound(self, epsilon: float) -> float:
        at = epsilon - self.offset + (-self.shift if self.upper else self.shift)
        logs = []
        for term in self.terms:
            low, high, scale = term.bounds(at)
            value = high if self.upper else low
            if value > 0:
                logs.append(scale + math.log(value))
        if self.upper:
            logs += [moment - tilt * at for moment, tilt in self.rest]
        total = log_sum(logs)
        if math.isnan(total):
            return 0.0 if self.upper else -math.inf
        if not self.upper:
            total = self._without_blur(total, at) + self.log_factor
            return total - 8 * EPS * (1 + abs(total)) if total > -math.inf else -math.inf
        total += self.log_factor
        total = log_sum([total, self.log_constant])
        return min(0.0, total + 8 * EPS * (1 + abs(total))) if total > -math.inf else -math.inf

    def _without_blur(self, total: float, at: float) -> float:
        """log(delta - bias): dividing point masses between nodes raised delta by at most (1 + 2m) m / sqrt(2
        pi) c E[exp(-d^2 / (2.2 v) - d/2)], v = m^2 the blur, d = L - eps (section 7)."""
        v = self.blur
        if not v or total == -math.inf:
            return total
        m = math.sqrt(v)
        if m > 1:
            return -math.inf
        wide = 1.1
        c = (2 / math.pi + v / math.pi**2) / (2 * wide) + v / (2 * math.pi) + v / (2 * math.pi**2 * wide * (wide - 1))
        logs = [term.log_bump(at, wide * v) for term in self.terms]
        for moment, s in self.rest:
            logs.append(moment - log_payoff_peak(s) - s * at + 0.5 * wide * v * (s + 0.5) ** 2)
        bias = log_sum(logs) + c + math.log1p(2 * m) + math.log(m / math.sqrt(2 * math.pi)) + 1e-12
        return total + math.log1p(-math.exp(bias - total)) if bias < total - 1e-9 else -math.inf


@dataclass(frozen=True, slots=True)
class Bracket:
    """Both sides at one step."""

    upper: LatticeBound
    lower: LatticeBound | None
    step: float
    smallest: float  # the smallest step that the budget allows
    tilts: tuple[float, ...]
    estimate: float  # about log delta at the centre

    @property
    def exhausted(self) -> bool:
        return self.step <= 1.5 * self.smallest

    def next_step(self, excess: float) -> float:
        """The step that brings a width ``excess`` times too large to its goal: widths go with the square of
        the step."""
        return max(self.smallest, self.step * min(0.5, max(1 / 16, 0.9 / math.sqrt(excess))))

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        return self.log_lower(epsilon), self.log_upper(epsilon)

    def log_lower(self, epsilon: float) -> float:
        return _safe(self.lower.log_bound(epsilon), -math.inf) if self.lower else -math.inf

    def log_upper(self, epsilon: float) -> float:
        return _safe(self.upper.log_bound(epsilon), 0.0)


def log_delta(
    composition: Composition, epsilon: float, tuning: LatticeTuning = STANDARD.lattice, *, effort: float = 1.0
) -> tuple[float, float]:
    """Certified (lower, upper) bounds of log E[(1 - exp(epsilon - L))+; all losses finite].

    ``effort`` scales the number of nodes that may be spent (1.0: about a million, well under 300 MB).

    >>> from dptally.mechanisms.laplace import Laplace
    >>> low, high = log_delta((50 * Laplace(scale=5)).directions()[0], 5.0)  # delta is 3.0372379966929...e-4
    >>> low <= math.log(3.0372379966929e-4) <= high
    True
    """
    floor, tilt = -40.0, 0.0
    best, step = (-math.inf, 0.0), math.inf
    for _ in range(tuning.rounds):
        rows = layouts(composition, floor - tuning.negligible, tilt, tuning)
        step = min(step, _first_step(rows, tuning))
        bracket = _bracket(rows, step, lambda _: epsilon, effort, tuning)
        if bracket is None:
            break
        low, high = bracket.log_delta(epsilon)
        best = max(best[0], low), min(best[1], high)
        width, tolerance = (
            best[1] - best[0],
            max(_rate(bracket, epsilon) * min(tuning.relative * epsilon, tuning.absolute), tuning.enough),
        )
        if width <= tolerance:
            break
        tilt, guess = min(bracket.tilts) / 2, max(best[0], bracket.estimate - 5.0)
        if guess < floor and floor > _DEEPEST:  # delta is smaller than the profile was followed to
            floor = max(_DEEPEST, guess, 2.5 * floor)
            continue
        if bracket.exhausted:
            break
        step = bracket.next_step(width / tolerance)
    return best


def epsilon(
    composition: Composition,
    log_target: float | tuple[float, float],
    tuning: LatticeTuning = STANDARD.lattice,
    *,
    effort: float = 1.0,
) -> tuple[float, float]:
    """Certified (lower, upper) bounds of the smallest eps >= 0 whose finite delta is at most exp(log_target).

    Of a pair the target is only known to lie in between: the upper end holds for its first, the lower end for
    its second.

    >>> from dptally.mechanisms.laplace import Laplace
    >>> low, high = epsilon((50 * Laplace(scale=5)).directions()[0], math.log(1e-4))
    >>> low <= 5.3794158889104871 <= high and high - low < 1e-6
    True
    """
    log_delta_target, most = log_target if isinstance(log_target, tuple) else (log_target, log_target)
    if not log_delta_target < 0:
        return 0.0, 0.0
    best, step, tilt = (0.0, up(max(0.0, composition.supremum), 4)), math.inf, 0.0
    for _ in range(tuning.rounds):
        rows = layouts(composition, max(log_delta_target, _DEEPEST) - tuning.negligible, tilt, tuning)
        step = min(step, _first_step(rows, tuning))
        highest = min(best[1], sum(row.count * max(row.last, 0.0) for row in rows))
        guess = math.nan

        def centre(outline: Outline) -> float:
            nonlocal guess
            guess = outline.solve(log_delta_target, highest)  # noqa: B023
            return guess

        bracket = _bracket(rows, step, centre, effort, tuning)
        if bracket is None:
            break
        best = _solve(bracket, (log_delta_target, most), best, guess)
        width, tolerance = best[1] - best[0], max(min(tuning.relative * best[1], tuning.absolute), 1e-12)
        if width <= tolerance or bracket.exhausted:
            break
        tilt, step = min(bracket.tilts) / 2, bracket.next_step(width / tolerance)
    return best


def _first_step(rows: Sequence[Layout], tuning: LatticeTuning) -> float:
    return max(row.length for row in rows) * tuning.first_step or 1e-3


def _solve(
    bracket: Bracket, target: tuple[float, float], known: tuple[float, float], guess: float
) -> tuple[float, float]:
    """eps with upper bound < target is an upper end; eps with lower bound > target a lower end. Both are
    verified."""
    low, high = known
    top = high if math.isfinite(high) else 1e12
    # tilted sums know little beyond a few units of 1 / tilt; where they know nothing so close, further off
    for reach in (
        max(min(1e-4 * guess, 1 / max(bracket.tilts)), 1e-3 * bracket.step),
        max(1e-4 * guess, 0.1 * bracket.step),
    ):
        enough = _edge(lambda e: bracket.log_upper(e) - target[0], guess, low, top, reach)
        # the lower end lies next to the upper one: a walk from a poor guess may step over the window of the terms
        start = guess if enough is None else enough
        short = _edge(lambda e: target[1] - bracket.log_lower(e), start, low, top, -reach)
        if enough is not None and short is not None:
            break
    high = high if enough is None else min(high, enough)
    low = low if short is None else max(low, short)
    return low, max(low, high)


def _edge(excess: Callable[[float], float], guess: float, low: float, high: float, reach: float) -> float | None:
    """A point where ``excess`` is negative, next to where it stops being so; expected on the side of ``reach``.

    Walks away from the guess until it is, then closes in on the edge. None if it is so nowhere that was tried.
    """
    guess = min(max(guess, low), high)
    good = bad = None
    value = excess(guess)
    if value < 0:
        good, reach = (guess, value), -reach
    else:
        bad = guess, value
    for _ in range(60):
        if good is not None and bad is not None:
            break
        at = min(max(guess + reach, low), high)
        value = excess(at)
        if value < 0:
            good = at, value
        else:
            bad = at, value
        if at in (low, high):
            break
        reach *= 3
    if good is None or bad is None:
        return None if good is None else good[0]
    return _closed_in(excess, good, bad)


def _closed_in(excess: Callable[[float], float], good: tuple[float, float], bad: tuple[float, float]) -> float:
    """The negative end of a bracket made as narrow as doubles allow: Illinois' false position, which halves an end
    that has stayed twice, and the middle at every third step."""
    side = 0
    for turn in range(200):
        if not abs(good[0] - bad[0]) > 1e-15 * abs(good[0]):
            break
        share = good[1] / (good[1] - bad[1]) if math.isfinite(good[1] - bad[1]) and turn % 3 < 2 else 0.5
        at = good[0] + share * (bad[0] - good[0])
        if at in (good[0], bad[0]):
            at = 0.5 * (good[0] + bad[0])
        if at in (good[0], bad[0]):
            break
        value = excess(at)
        if value < 0:
            good, side, bad = (at, value), max(side, 0) + 1, (bad[0], 0.5 * bad[1] if side > 0 else bad[1])
        else:
            bad, side, good = (at, value), min(side, 0) - 1, (good[0], 0.5 * good[1] if side < 0 else good[1])
    return good[0]


# -- one step ------------------------------------------------------------------------------------------


def _bracket(
    rows: Sequence[Layout], wanted: float, centre: Callable[[Outline], float], effort: float, tuning: LatticeTuning
) -> Bracket | None:
    longest = max(row.length for row in rows)
    smallest = 2 * longest / (tuning.points * effort)
    wanted = max(wanted, smallest)
    step = step_for(rows, wanted)
    if longest > step * tuning.points * effort:  # the lattice of small losses is too fine beside a long one
        step = wanted
    if step > wanted:  # a lattice of its own: nothing is gained by a smaller step
        smallest = step
    points = _grouped([(_points(row, step), row.count) for row in rows if row.discrete])
    uppers = list(points)
    lowers: list[tuple[LatticeMeasure, int]] | None = list(points)
    for row in rows:
        if row.discrete:
            continue
        offset, before = row.origin(step)
        cells = max(before + 2, math.ceil((row.last - offset) / step - 1e-9))
        if row.last == row.law.supremum:  # the last node is not below the largest loss
            cells += int(offset + step * cells < row.last)
        table = Table.of(row.law, offset, step, cells)
        uppers.append((upper_spread(table), row.count))
        if row.periodic and row.positions[-1] > row.last - 0.5 * step:  # listed as far as it matters
            below: LatticeMeasure | None = point_spread(row.positions, row.masses, offset, step, row.law.atom_error)
        else:
            below = lower_spread(table.from_node(before), trimmed=row.trimmed) or lower_spread(table, trimmed=True)
        lowers = None if below is None or lowers is None else [*lowers, (below, row.count)]
    if not all(_is_sound(spread) for spread, _ in [*uppers, *(lowers or [])]):
        return None
    outline = Outline.of(uppers, tuning)
    epsilon = centre(outline)
    plan = outline.plan(epsilon)
    upper = _side(uppers, plan, epsilon, effort, tuning, upper=True)
    if upper is None:
        return None
    lower = None
    if len(points) == len(uppers) and not any(spread.blur for spread, _ in points):
        lower = replace(upper, log_factor=-upper.log_factor, upper=False, log_constant=-math.inf, rest=())
    elif lowers is not None:
        lower = _side(lowers, plan, epsilon, effort, tuning, upper=False)
    size = max(term.size for term in upper.terms)
    smallest = max(smallest, step * size / (tuning.nodes * effort))
    return Bracket(upper, lower, step, smallest, plan.tilts, plan.estimate)


def _points(row: Layout, step: float) -> LatticeMeasure:
    spread = point_spread(row.positions, row.masses, row.origin(step)[0], step, row.atom_error)
    return replace(spread, log_beyond=row.log_missed)


def _is_sound(spread: LatticeMeasure) -> bool:
    """Finite throughout: overflow or a NaN of the law ends in the trivial answer."""
    return bool(np.isfinite(spread.masses).all()) and math.isfinite(spread.log_factor)


def _grouped(parts: list[tuple[LatticeMeasure, int]]) -> list[tuple[LatticeMeasure, int]]:
    """Many different measures of a few points each, convolved directly in groups: fewer transforms are
    needed."""
    short = [
        count <= 4 and np.count_nonzero(spread.masses) <= 8 and spread.log_beyond == -math.inf
        for spread, count in parts
    ]
    few = [part for part, is_short in zip(parts, short, strict=True) if is_short]
    if len(few) < 4:
        return parts
    rest = [part for part, is_short in zip(parts, short, strict=True) if not is_short]
    return rest + [(combined(few[i : i + 10]), 1) for i in range(0, len(few), 10)]


def _side(
    parts: Parts, plan: Plan, epsilon: float, effort: float, tuning: LatticeTuning, *, upper: bool
) -> LatticeBound | None:
    offset = math.fsum(spread.offset * count for spread, count in parts)
    steps = sum(count for _, count in parts)
    shift = sum(spread.shift * count for spread, count in parts)
    shift += 4 * EPS * (abs(epsilon) + sum(abs(spread.offset) * count for spread, count in parts))
    log_factor = math.fsum(spread.log_factor * count for spread, count in parts)
    log_factor += (1 if upper else -1) * 4 * EPS * (steps + abs(log_factor))
    at = epsilon - offset
    margin = max(0.02 * abs(epsilon), 64 * parts[0][0].step, min(8.0 / min(plan.tilts), abs(epsilon)))
    span = at - margin, at + margin
    blur = 0.0 if upper else sum(spread.blur * count for spread, count in parts)
    terms = []
    limit = int(tuning.nodes * min(1.0, 4.5 / len(plan.tilts)))  # all terms are kept, of both sides
    most = min(limit, int(tuning.nodes * effort))
    rest = []
    for layer in plan.layers:
        factors = [_factor(spread, count, layer) for spread, count in parts]
        tilt = min(layer.tilt, 100 / parts[0][0].step)
        jumping = layer.low is not None
        if not layer.counts:
            bounded = _bounded(factors, tilt, jumping=jumping)
            rest += [] if bounded is None else [bounded]
            continue
        if not _exists(factors, jumping=jumping):
            continue
        term = convolve(factors, tilt, span, tilts_of(tuning), most, limit, jumping=jumping, keep=blur > 0)
        if term is not None:
            terms.append(term)
        elif upper:  # underflow: a term that exists may not be left out
            return None
    if not terms:
        return None
    constant = _log_beyond(parts) if upper else -math.inf
    return LatticeBound(tuple(terms), offset, shift, log_factor, upper, constant, tuple(rest), blur)


def _cut(spread: LatticeMeasure, cut: float | None) -> int:
    n = len(spread.masses)
    return n if cut is None else min(n, max(0, math.ceil((cut - spread.offset) / spread.step)))


def _factor(spread: LatticeMeasure, count: int, layer: Layer) -> Factor:
    """The losses below the upper cut: all of them light where there is no lower one."""
    end = _cut(spread, layer.high)
    return Factor(spread, count, end if layer.low is None else min(end, _cut(spread, layer.low)), end)


def _exists(factors: Sequence[Factor], *, jumping: bool) -> bool:
    """Every law has masses below the upper cut and, with a lower one, some law has masses between the two."""
    if not all((factor.spread.masses[: factor.end] > 0).any() for factor in factors):
        return False
    return not jumping or any((factor.spread.masses[factor.cut : factor.end] > 0).any() for factor in factors)


def _bounded(factors: Sequence[Factor], s: float, *, jumping: bool) -> tuple[float, float] | None:
    """(K, s): the term is at most exp(K - s eps), Chernoff's bound (section 6); None where it is zero."""
    if not _exists(factors, jumping=jumping):
        return None
    at = np.array([s])
    light, heavy = (
        [piece.log_moments(at)[0] for piece in row] for row in zip(*(f.pieces() for f in factors), strict=True)
    )
    counts = [factor.count for factor in factors]
    weights = Weights.of(light, heavy, counts, jumping=jumping)
    if weights is None:
        return math.inf, s
    value = weights.log_mass + log_payoff_peak(s)
    return value + 64 * EPS * (weights.size + abs(value) + sum(counts)), s


def _log_beyond(parts: Parts) -> float:
    """log of the probability that some loss was moved to +inf: at most sum of count w_j, times the other
    masses."""
    logs, others = [], 0.0
    for spread, count in parts:
        if spread.log_beyond > -math.inf:
            logs.append(math.log(count) + spread.log_beyond)
        total = float(spread.log_moments(np.zeros(1))[0]) + spread.log_factor
        others += count * max(0.0, np.logaddexp(total, spread.log_beyond) + 1e-12)
    return log_sum(logs) + others + 64 * EPS if logs else -math.inf


def _rate(bracket: Bracket, epsilon: float) -> float:
    """-d log delta / d eps, an estimate."""
    gap = 1e-4 * (abs(epsilon) + 1e-6)
    a, b = bracket.log_delta(epsilon - gap)[1], bracket.log_delta(epsilon + gap)[1]
    return max(0.0, (a - b) / (2 * gap)) if math.isfinite(a) and math.isfinite(b) else 0.0


def _safe(value: float, trivial: float) -> float:
    return trivial if math.isnan(value) else float(value)
