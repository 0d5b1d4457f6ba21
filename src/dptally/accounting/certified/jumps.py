r"""Rare large losses ("big jumps"): split the heavy-tailed law and give every number of jumps its own tilt.

Where one rare loss carries all of delta no single tilt is good: the tilted law has two modes. Cut the law into a
light part
(losses below a level) and a heavy part; with n steps of it,

    delta(eps) = sum over k of C(n, k) delta_k(eps),   delta_k = E[(1 - e^{eps - L})+; exactly k steps are heavy],

all terms nonnegative, and delta_k is the contour sum of n - k light and k heavy losses at a tilt of its own. Terms
that do
not matter are bounded by Chernoff's bound of the same parts, or by the probability of so many jumps, and count
towards the
upper end only. Any level is valid; the one whose Chernoff bounds are tightest is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dptally.accounting.certified.inversion import (
    Inversion,
    Losses,
    invert,
    merged,
    solve,
    tabulate_at,
)
from dptally.law import Composition
from dptally.law.characteristic import Jumps, MomentTable, Transformable
from dptally.law.law import Floats
from dptally.numerics.rounding import EPS

__all__ = ["WHOLE", "JumpSum", "applies", "for_delta", "for_epsilon"]

WHOLE = (math.inf,)  # no split: only the losses that decide alone are taken out
_LEVELS = (0.1, 0.03, 0.3, 0.01, 0.6, 2.0)  # of the estimated epsilon, in the order they are tried
_NEGLIGIBLE = 25.0  # nats below delta at which a term is bounded instead of computed
_MOST_JUMPS = 8
_MARGIN = 1.15  # far jumps are those that exceed this many times the estimated epsilon whatever else happens
_CHERNOFF_SLACK = 2.5  # nats by which Chernoff's bound typically exceeds delta; for estimates only
_AROUND = np.exp([-0.15, -0.08, -0.04, -0.02, -0.01, 0.0, 0.01, 0.02, 0.04, 0.08, 0.15])


@dataclass(frozen=True, slots=True)
class _Term:
    """k jumps: the parts, the log of the number of ways, and K at a table of tilts."""

    parts: Losses
    log_ways: float
    table: MomentTable

    def chernoff(self, epsilon: float) -> tuple[float, float]:
        """(log of a bound of C(n, k) delta_k(eps), its tilt): (1 - e^{-x})+ <= e^{t x} t^t / (1 + t)^{1 + t}."""
        bound = _chernoff(self.table, epsilon)
        i = int(np.argmin(bound))
        return self.log_ways + float(bound[i]), float(self.table.theta[i])


def _chernoff(table: MomentTable, epsilon: float) -> Floats:
    t = table.theta
    log_c = t * np.log1p(1 / t) + np.log1p(t)
    rounding = 8 * EPS * (np.abs(table.moment) + t * abs(epsilon) + log_c)
    return np.asarray(table.moment + table.error - t * epsilon - log_c + rounding)


@dataclass(frozen=True, slots=True)
class _Rest:
    """What is not in any term: one or more far jumps, in closed form; and what was left out.

    With one far jump the sum exceeds eps whatever the other steps lose, as long as eps <= ``valid``; then
    E[(1 - e^{eps - L})+; far] = P(far) - e^eps Q(far), P(far) = 1 - (1 - p)^n and Q(far) likewise.
    """

    far: float
    far_q: float
    valid: float
    log_left_out: float

    def log_far(self, epsilon: float) -> tuple[float, float]:
        """Bounds of the log of the far jumps' share of delta.

        A normal tail at t is good to t^2 + 4 ulps, and t^2 <= -2 log Phi(-t). Where e^eps Q leaves the doubles only
        0 <= share <= P is used.
        """
        if self.far == 0.0:
            return -math.inf, -math.inf
        sharp = epsilon <= min(self.valid, 690.0) and self.far_q > 1e-280
        p, q = self.far, math.exp(epsilon) * self.far_q if sharp else 0.0
        error = EPS * (160 + 8 * abs(math.log(max(self.far_q, 1e-320)))) * (p + q)
        low = p - q - error if sharp else 0.0
        high = p - q + error
        return (math.log(low) if low > 0 else -math.inf), math.log(high)


@dataclass(frozen=True, slots=True)
class JumpSum:
    """The computed terms and the bounds of the others; answers like an :class:`Inversion`."""

    computed: tuple[tuple[float, Inversion], ...]  # log of the number of ways, contour
    bounded: tuple[_Term, ...]
    rest: _Rest
    saddle: float

    def estimate(self, epsilon: float) -> float:
        """log delta(eps), not a bound."""
        return _log_sum(
            [ways + found.estimate(epsilon) for ways, found in self.computed] + [self.rest.log_far(epsilon)[0]]
        )

    def log_delta(self, epsilon: float) -> tuple[float, float, float]:
        answers = [(ways, *found.log_delta(epsilon)) for ways, found in self.computed]
        far_low, far_high = self.rest.log_far(epsilon)
        lower = _log_sum([ways + low for ways, low, _, _ in answers] + [far_low])
        bounds = [term.chernoff(epsilon)[0] for term in self.bounded]
        upper = _log_sum([ways + high for ways, _, high, _ in answers] + bounds + [self.rest.log_left_out, far_high])
        ways = 16 + 4 * max((abs(ways) for ways, _ in self.computed), default=0.0)
        slack = 8 * EPS * (ways + abs(lower)) if math.isfinite(lower) else 0.0
        weights = [math.exp(min(0.0, ways + high - upper)) for ways, _, high, _ in answers]
        rate = (
            sum(w * r for w, (_, _, _, r) in zip(weights, answers, strict=True)) / sum(weights)
            if sum(weights) > 0
            else 0.0
        )
        return lower - slack, min(0.0, upper + 8 * EPS * (ways + abs(upper))), rate


def _log_sum(logs: list[float]) -> float:
    """log of a sum of exponentials, to a few ulps."""
    top = max(logs, default=-math.inf)
    if not math.isfinite(top):
        return top
    return top + math.log(math.fsum(math.exp(x - top) for x in logs))


def _log_ways(n: int, k: int) -> float:
    return math.fsum(math.log((n - i) / (i + 1)) for i in range(k))


def applies(composition: Composition) -> bool:
    """Exactly one law of the composition can be split, and all have characteristic functions."""
    parts = composition.parts
    return all(type(law).has_characteristic for law, _ in parts) and sum(type(law).splits for law, _ in parts) == 1


def for_delta(
    composition: Composition, log_delta: float, guess: float, levels: Sequence[float] = _LEVELS
) -> Iterator[JumpSum]:
    """Split sums near the eps where delta(eps) is about exp(log_delta), likely the best first; ``guess``: a bound of
    that eps.
    """
    for level in levels:
        found = None
        at, terms = _come_near(composition, level, log_delta, guess)
        for _ in range(3):
            if terms is None:
                break
            found = _build(at, *terms)
            solved = None if found is None else solve(found, log_delta)
            if solved is None or abs(solved - at) < 0.03 * at:
                break
            at = max(solved, 0.2 * at)
            terms = _terms(composition, level * at, log_delta, at)
        if found is not None:
            yield found


def _come_near(
    composition: Composition, level: float, log_delta: float, guess: float
) -> tuple[float, tuple[list[_Term], _Rest] | None]:
    """An eps near the target from Chernoff's bounds, and its terms; the first guess may be too large by far."""
    at, terms = guess, None
    for _ in range(6):
        terms = _terms(composition, level * at, log_delta, at)
        if terms is None:
            break
        before, at = at, max(_solve(*terms, log_delta, guess), 0.02 * at)
        if at > 0.7 * before:
            break
    return at, terms


def for_epsilon(
    composition: Composition, epsilon: float, log_guess: float, levels: Sequence[float] = _LEVELS
) -> Iterator[JumpSum]:
    """Split sums near this eps; ``log_guess``: an upper bound of log delta(eps)."""
    for level in levels:
        terms = _terms(composition, level * epsilon, log_guess - 5.0, epsilon)
        found = None if terms is None else _build(epsilon, *terms)
        if found is not None:
            yield found


def _terms(composition: Composition, level: float, log_delta: float, guess: float) -> tuple[list[_Term], _Rest] | None:
    """One term for each number of jumps that can matter, and the log of what all else can add to delta."""
    if not 0 < guess < math.inf:
        return None
    theta = np.geomspace(0.3 / guess, max(60.0, -6 * log_delta) / guess, 32)
    log_dropped = log_delta - _NEGLIGIBLE - math.log(composition.steps)
    alone = len(composition.parts) == 1
    pieces = []
    for law, count in composition.parts:
        ceiling = _MARGIN * guess - count * law.infimum if alone else math.inf
        pieces.append((law, count, law.split(level, ceiling, log_dropped)))
    heavy = [(count, jumps) for _, count, jumps in pieces if jumps is not None]
    if not heavy:
        return None
    count, jumps = heavy[0]
    if count * jumps.heavy_mass > 1.0:  # jumps must be rare
        return None
    others = [(law, n) for law, n, split in pieces if split is None]
    light_table = tabulate_at([(jumps.light, 1)], theta)
    other_table = tabulate_at(others, theta)
    heavy_table = None if jumps.heavy is None else tabulate_at([(jumps.heavy, 1)], theta)
    terms: list[_Term] = []
    log_rest = -math.inf
    for k in range(min(count, _MOST_JUMPS) + 1):
        if k and (heavy_table is None or _log_mass(count, k, jumps) < log_dropped):
            break
        terms.append(_term(count, k, jumps, others, light_table, heavy_table, other_table))
        if not len(terms[-1].table.theta):
            return None
    if jumps.heavy is not None and len(terms) <= count:
        log_rest = _log_mass(count, len(terms), jumps)
    dropped = math.log(count) + math.log(jumps.dropped) if jumps.dropped > 0 else -math.inf
    far, far_q = (-math.expm1(count * math.log1p(-mass)) for mass in (jumps.far_mass, jumps.far_mass_q))
    return terms, _Rest(far, far_q, _MARGIN * guess, _log_sum([log_rest, dropped]) + 1e-9)


def _log_mass(count: int, k: int, jumps: Jumps) -> float:
    """log of a bound of the probability of k or more jumps: C(n, k) p^k (union over the sets of k steps)."""
    return _log_ways(count, k) + k * math.log(jumps.heavy_mass) if jumps.heavy_mass > 0 else -math.inf


def _term(
    count: int, k: int, jumps: Jumps, others: Losses, light: MomentTable, heavy: MomentTable | None, rest: MomentTable
) -> _Term:
    parts: list[tuple[Transformable, int]] = [(jumps.light, count - k)] if count > k else []
    if jumps.heavy is not None and k:
        parts.append((jumps.heavy, k))
    parts.extend(others)
    columns = []
    for name in ("moment", "error", "first", "second"):
        column: Floats = (count - k) * getattr(light, name) + getattr(rest, name)
        columns.append(column + k * getattr(heavy, name) if heavy is not None and k else column)
    keep = np.isfinite(columns).all(axis=0)
    return _Term(parts, _log_ways(count, k), MomentTable(light.theta[keep], *(c[keep] for c in columns)))


def _solve(terms: list[_Term], rest: _Rest, log_delta: float, highest: float) -> float:
    """Where Chernoff's bounds take the target, somewhat above where the sum does. Bisection on [0, highest]."""
    low, high = 0.0, highest
    for _ in range(30):
        middle = 0.5 * (low + high)
        sizes = [term.chernoff(middle)[0] for term in terms]
        if _log_sum([*sizes, rest.log_far(middle)[0]]) > log_delta:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _build(epsilon: float, terms: list[_Term], rest: _Rest) -> JumpSum | None:
    """Contours for the terms that matter at this eps."""
    bounds = [term.chernoff(epsilon) for term in terms]
    total = _log_sum([bound - _CHERNOFF_SLACK for bound, _ in bounds] + [rest.log_far(epsilon)[0]])
    computed, bounded = [], []
    for term, (bound, theta) in zip(terms, bounds, strict=True):
        if bound < total - _NEGLIGIBLE:
            bounded.append(term)
            continue
        fine = tabulate_at(term.parts, theta * _AROUND)
        least = np.where(np.isfinite(fine.moment), _chernoff(fine, epsilon), np.inf)
        at = tabulate_at(term.parts, fine.theta[[int(np.argmin(least))]])
        found = invert(term.parts, merged(term.table, fine), at, epsilon) if np.isfinite(fine.moment).all() else None
        if found is None:
            return None
        computed.append((term.log_ways, found))
    return JumpSum(tuple(computed), tuple(bounded), rest, epsilon) if computed else None
