"""The tilted lattice: certified bounds of delta and epsilon for any composition of laws that have a profile.

Each law becomes two lattice measures, one with a profile above its own and one with a profile below (spread.py); each is
composed by tilted Fourier transforms with bounded rounding (lattice_terms.py), cut into light and heavy pieces where one
rare loss carries delta (lattice_plan.py). The gap closes with the square of the step, so the step is halved until the
width is small or the budget is spent; what is returned then is honestly wider. docs/certificates-lattice.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dptally.accounting.certified.lattice_grid import Layout, layouts, step_for
from dptally.accounting.certified.lattice_plan import TILTS, Outline, Plan
from dptally.accounting.certified.lattice_terms import Factor, Term, convolve, log_payoff_peak
from dptally.accounting.certified.spread import ATOM_ERROR, Spread, Table, lower_spread, point_spread, upper_spread
from dptally.law import Composition
from dptally.numerics.rounding import EPS

__all__ = ["METHOD", "epsilon", "log_delta"]

METHOD = "tilted lattice"
_NODES = 1 << 20  # nodes of one transform
_POINTS = 1 << 17  # profile values of one law
_NEGLIGIBLE = 23.0  # nats below delta
_RELATIVE = 4e-7  # width of epsilon that needs no smaller step
Parts = Sequence[tuple[Spread, int]]


@dataclass(frozen=True, slots=True)
class Side:
    """One certified bound of log delta as a function of eps: a sum of terms, and what was left out of them."""

    terms: tuple[Term, ...]
    offset: float
    shift: float
    log_factor: float
    upper: bool
    log_constant: float  # mass moved to infinity
    rest: tuple[float, float] | None  # (K, s): the terms that are not computed, at most exp(K - s eps)

    def log_bound(self, epsilon: float) -> float:
        at = epsilon - self.offset + (-self.shift if self.upper else self.shift)
        logs = []
        for term in self.terms:
            low, high, scale = term.bounds(at)
            value = high if self.upper else low
            if value > 0:
                logs.append(scale + math.log(value))
        if self.upper and self.rest is not None:
            logs.append(self.rest[0] - self.rest[1] * at)
        total = _log_sum(logs) + self.log_factor
        if not self.upper:
            return total - 8 * EPS * (1 + abs(total)) if total > -math.inf else -math.inf
        total = _log_sum([total, self.log_constant])
        return min(0.0, total + 8 * EPS * (1 + abs(total))) if total > -math.inf else -math.inf


@dataclass(frozen=True, slots=True)
class Bracket:
    """Both sides at one step."""

    upper: Side
    lower: Side | None
    exhausted: bool  # a smaller step would pass the budget
    tilts: tuple[float, ...]
    estimate: float  # about log delta at the centre

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        low = self.lower.log_bound(epsilon) if self.lower else -math.inf
        return _safe(low, -math.inf), _safe(self.upper.log_bound(epsilon), 0.0)


def log_delta(composition: Composition, epsilon: float, *, effort: float = 1.0) -> tuple[float, float]:
    """Certified (lower, upper) bounds of log E[(1 - exp(epsilon - L))+; all losses finite].

    ``effort`` scales the number of nodes that may be spent (1.0: about a million, well under 300 MB).
    """
    floor, tilt = -40.0, 0.0
    best, step = (-math.inf, 0.0), math.inf
    for _ in range(10):
        rows = layouts(composition, floor - _NEGLIGIBLE, tilt)
        step = min(step, _first_step(rows))
        bracket = _bracket(rows, step, lambda outline: epsilon, effort)
        if bracket is None:
            break
        low, high = bracket.log_delta(epsilon)
        best = max(best[0], low), min(best[1], high)
        width, tolerance = best[1] - best[0], max(_RELATIVE * _rate(bracket, epsilon) * epsilon, 1e-9)
        if width <= tolerance or bracket.exhausted:
            break
        floor, tilt = min(floor, max(best[0], bracket.estimate)), min(bracket.tilts) / 2
        step *= _shrink(width / tolerance)
    return best


def epsilon(composition: Composition, log_delta_target: float, *, effort: float = 1.0) -> tuple[float, float]:
    """Certified (lower, upper) bounds of the smallest eps >= 0 whose finite delta is at most exp(log_delta_target)."""
    if not log_delta_target < 0:
        return 0.0, 0.0
    best, step, tilt = (0.0, max(0.0, composition.supremum)), math.inf, 0.0
    for _ in range(10):
        rows = layouts(composition, log_delta_target - _NEGLIGIBLE, tilt)
        step = min(step, _first_step(rows))
        highest = min(best[1], sum(row.count * max(row.last, 0.0) for row in rows))
        guess = math.nan

        def centre(outline: Outline) -> float:
            nonlocal guess
            guess = outline.solve(log_delta_target, highest)  # noqa: B023
            return guess

        bracket = _bracket(rows, step, centre, effort)
        if bracket is None:
            break
        best = _solve(bracket, log_delta_target, best, guess)
        width, tolerance = best[1] - best[0], max(_RELATIVE * best[1], 1e-12)
        if width <= tolerance or bracket.exhausted:
            break
        tilt = min(bracket.tilts) / 2
        step *= _shrink(width / tolerance)
    return best


def _shrink(excess: float) -> float:
    """The factor on the step that brings a width ``excess`` times too large to its goal: widths go with the square."""
    return min(0.5, max(1 / 16, 0.9 / math.sqrt(excess)))


def _first_step(rows: Sequence[Layout]) -> float:
    longest = max(row.length for row in rows)
    return longest / 400


def _solve(bracket: Bracket, target: float, known: tuple[float, float], guess: float) -> tuple[float, float]:
    """eps with upper bound <= target is an upper end; eps with lower bound > target a lower end. Both are verified."""
    low, high = known
    top = high if math.isfinite(high) else 1e12
    enough = _edge(lambda e: bracket.log_delta(e)[1] <= target, guess, low, top, 1)
    short = _edge(lambda e: bracket.log_delta(e)[0] > target, guess, low, top, -1)
    high = high if enough is None else min(high, enough)
    low = low if short is None else max(low, short)
    return low, max(low, high)


def _edge(holds: Callable[[float], bool], guess: float, low: float, high: float, sign: int) -> float | None:
    """A point where ``holds`` is true, next to where it stops being so; it is expected to hold on the side of ``sign``.

    Walks away from the guess until it holds, then bisects back. None if it holds nowhere that was tried.
    """
    guess = min(max(guess, low), high)
    reach = 1e-4 * guess + 1e-300
    good = bad = None
    for _ in range(40):
        at = min(max(guess + sign * reach, low), high)
        if holds(at):
            good = at
            break
        bad = at
        if at in (low, high):
            return None
        reach *= 3
    if good is None:
        return None
    if bad is None:
        reach = 1e-4 * guess + 1e-300
        for _ in range(40):
            at = min(max(guess - sign * reach, low), high)
            if not holds(at):
                bad = at
                break
            good = at
            if at in (low, high):
                return at
            reach *= 3
    if bad is None:
        return good
    for _ in range(80):
        middle = 0.5 * (good + bad)
        if middle in (good, bad) or abs(good - bad) <= 1e-15 * abs(good):
            break
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good


# -- one step ------------------------------------------------------------------------------------------------------


def _bracket(rows: Sequence[Layout], wanted: float, centre: Callable[[Outline], float], effort: float) -> Bracket | None:
    longest = max(row.length for row in rows)
    smallest = 2 * longest / (_POINTS * effort)
    wanted = max(wanted, smallest)
    step = step_for(rows, wanted)
    uppers: list[tuple[Spread, int]] = []
    lowers: list[tuple[Spread, int]] | None = []
    same = True
    for row in rows:
        if row.discrete:
            spread = point_spread(row.positions, row.masses, row.origin(step)[0], step, mass_error=ATOM_ERROR)
            uppers.append((spread, row.count))
            if lowers is not None:
                lowers.append((spread, row.count))
            continue
        same = False
        offset, before = row.origin(step)
        cells = max(before + 2, math.ceil((row.last - offset) / step - 1e-9))
        table = Table.of(row.law, offset, step, cells)
        uppers.append((upper_spread(table), row.count))
        below = lower_spread(table.from_node(before), trimmed=row.trimmed)
        lowers = None if below is None or lowers is None else [*lowers, (below, row.count)]
    outline = Outline.of(uppers)
    epsilon = centre(outline)
    plan = outline.plan(epsilon)
    upper = _side(uppers, plan, epsilon, effort, upper=True)
    if upper is None:
        return None
    lower = None
    if same:
        lower = Side(upper.terms, upper.offset, upper.shift, -upper.log_factor, False, -math.inf, None)
    elif lowers is not None:
        lower = _side(lowers, plan, epsilon, effort, upper=False)
    size = max(len(term.node_values) for term in upper.terms)
    return Bracket(upper, lower, wanted == smallest or size >= _NODES * effort, plan.tilts, plan.estimate)


def _side(parts: Parts, plan: Plan, epsilon: float, effort: float, *, upper: bool) -> Side | None:
    offset = math.fsum(spread.offset * count for spread, count in parts)
    steps = sum(count for _, count in parts)
    shift = sum(spread.shift * count for spread, count in parts)
    shift += 4 * EPS * (abs(epsilon) + sum(abs(spread.offset) * count for spread, count in parts))
    log_factor = math.fsum(spread.log_factor * count for spread, count in parts)
    log_factor += (1 if upper else -1) * 4 * EPS * (steps + abs(log_factor))
    factors = [Factor(spread, count, _cut(spread, plan.cut)) for spread, count in parts]
    at = epsilon - offset
    slope = 1.0 / max(plan.tilts[0], 1e-300)
    margin = max(0.02 * abs(epsilon), 64 * parts[0][0].step, min(slope, abs(epsilon)))
    span = at - margin, at + margin
    terms = []
    for jumps, theta in enumerate(plan.tilts):
        term = convolve(factors, jumps, min(theta, 100 / parts[0][0].step), span, TILTS, int(_NODES * effort))
        if term is not None:
            terms.append(term)
    if not terms:
        return None
    rest = _rest(factors, plan, len(plan.tilts)) if upper and plan.cut is not None else None
    constant = _log_beyond(parts) if upper else -math.inf
    return Side(tuple(terms), offset, shift, log_factor, upper, constant, rest)


def _cut(spread: Spread, cut: float | None) -> int:
    n = len(spread.masses)
    return n if cut is None else min(n, max(1, math.ceil((cut - spread.offset) / spread.step)))


def _rest(factors: Sequence[Factor], plan: Plan, jumps: int) -> tuple[float, float] | None:
    """All terms with ``jumps`` or more heavy losses, by Chernoff at the tilt s: with x = sum of count heavy/light,
    sum over k >= jumps of x^k / k! <= x^jumps e^x / jumps!  (section 6)."""
    s = plan.rest
    light, x, size = 0.0, 0.0, 0.0
    if jumps > sum(f.count for f in factors if f.has_heavy):
        return None
    for factor in factors:
        first, second = factor.pieces()
        base, _, error = first.tilted(s)[1], None, first.tilted(s)[2]
        light += factor.count * (base + error)
        size += factor.count * abs(base)
        if second is not None:
            _, heavy, heavy_error = second.tilted(s)
            x += factor.count * math.exp(min(heavy - base + error + heavy_error, 700.0)) if heavy > -math.inf else 0.0
    if x == 0:
        return None
    value = light + jumps * math.log(x) - math.lgamma(jumps + 1) + x + log_payoff_peak(s)
    return value + 64 * EPS * (size + abs(value) + x + jumps + 1), s


def _log_beyond(parts: Parts) -> float:
    """log of the probability that some loss was moved to +inf: at most sum of count w_j, times the other masses."""
    logs, others = [], 0.0
    for spread, count in parts:
        if spread.log_beyond > -math.inf:
            logs.append(math.log(count) + spread.log_beyond)
        total = float(spread.log_moments(np.zeros(1))[0]) + spread.log_factor
        others += count * max(0.0, np.logaddexp(total, spread.log_beyond) + 1e-12)
    return _log_sum(logs) + others + 64 * EPS if logs else -math.inf


def _rate(bracket: Bracket, epsilon: float) -> float:
    """-d log delta / d eps, an estimate."""
    gap = 1e-4 * (abs(epsilon) + 1e-6)
    a, b = bracket.log_delta(epsilon - gap)[1], bracket.log_delta(epsilon + gap)[1]
    return max(0.0, (a - b) / (2 * gap)) if math.isfinite(a) and math.isfinite(b) else 0.0


def _log_sum(logs: Sequence[float]) -> float:
    top = max(logs, default=-math.inf)
    return top if top in (-math.inf, math.inf) else top + math.log(math.fsum(math.exp(v - top) for v in logs))


def _safe(value: float, trivial: float) -> float:
    return trivial if math.isnan(value) else value
