r"""Some laws of few outcomes beside others: the others, once for every outcome.

Let A be the part of a plan whose losses are listed, B the rest. Given the loss l of A, the whole loses l more than B:

    delta(eps) = sum over l of P(A = l) delta_B(eps - l),

finite losses throughout, all terms nonnegative. delta_B falls, so upper ends of losses and probabilities give an upper
bound and lower ends a lower one (lattice/enumeration.py). Where B is a plan whose rare large losses no single tilt
reaches, atoms beside it take the routes away that could count them apart; here they are asked of B alone. An outcome
beyond eps needs delta_B at x < 0, between max(1 - e^x, delta_B(0)) and 1 - e^x (1 - delta_B(0)): with (P, Q) the pair
of B, sup P(S) - e^x Q(S) = 1 - e^x + e^x sup (Q(S^c) - e^{-x} P(S^c)), and the last is at most the total variation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dptally.accounting.certified.bounds import NOTHING_KNOWN, Ends, LogBounds, LogTarget
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.route import answers_of, bounds_at
from dptally.accounting.certified.solve import epsilon_ends
from dptally.accounting.certified.tuning import OutcomeTuning
from dptally.law import Composition, Law
from dptally.law.law import Floats
from dptally.numerics.logspace import log_sum
from dptally.numerics.rounding import EPS, down, up

if TYPE_CHECKING:
    from dptally.accounting.certified.lattice.enumeration import Enumerated
    from dptally.accounting.certified.walk import Made

__all__ = ["Conditioned", "for_delta", "for_epsilon", "splits"]

_LADDER = 0.05  # ratio, less one, of the places where a first bound is taken
_BEFORE = 0.01  # of x: so far below it a bound that shall serve its neighbours is taken


def splits(composition: Composition, tuning: OutcomeTuning) -> bool:
    """Whether some laws have few outcomes and others a density, or outcomes too many to be listed."""
    short = sum(_is_short(law, n, tuning) for law, n in composition.parts)
    return 0 < short < len(composition.parts)


def _is_short(law: Law, count: int, tuning: OutcomeTuning) -> bool:
    if count >= tuning.most_beside:
        return False
    listed = law.listed_atoms()
    if listed is None or not 0 < len(listed.low) <= tuning.most_beside:
        return False
    return min(math.comb(count + len(listed.low) - 1, count), _evenly(listed.low, count)) <= tuning.most_beside


def _evenly(losses: Floats, count: int) -> float:
    """The number of different sums of ``count`` losses whose gaps are multiples of one length; inf where they are
    not."""
    from dptally.accounting.certified.lattice.grid import spacing

    rising = np.sort(losses)
    base = spacing(rising) if len(rising) > 1 else None
    return math.inf if base is None else round(float(rising[-1] - rising[0]) / base) * count + 1


@dataclass(frozen=True, slots=True)
class Conditioned:
    """The outcomes of A, and B with the profiles that were made of it; answers like an Inversion."""

    outcomes: Enumerated
    rest: Plan
    saddle: float
    made: Made = field(default_factory=list)
    tails: list[tuple[float, float]] = field(default_factory=list)  # (x, bound): log delta_B is at most this from x on
    walks: list[float] = field(default_factory=list)  # where B was asked afresh

    def estimate(self, epsilon: float) -> float:
        """log delta(eps), not a bound."""
        low, high, _ = self.log_delta(epsilon)
        return 0.5 * (low + high)

    def log_delta(self, epsilon: float) -> LogBounds:
        """(lower, upper, slope): certified bounds of log delta(eps), and an estimate of -d log delta / d eps."""
        lows, highs, slopes = [-math.inf], [self.outcomes.log_beyond], [0.0]
        for low, high, least, most in self._by_size(epsilon):
            log_most = math.log(most)
            # what does not matter beside the largest contribution so far need not be known from below
            floor = max(highs) - log_most - self.rest.tuning.outcomes.negligible
            rough = self._rough(down(epsilon - high))
            if rough < floor:
                highs.append(log_most + rough)
                slopes.append(0.0)
                continue
            upper = self._rest(down(epsilon - high), floor)
            highs.append(log_most + upper.upper)
            slopes.append(upper.slope)
            if upper.upper < floor:
                continue
            if upper.upper - upper.lower > self._sharp * max(1.0, upper.slope * epsilon):
                return NOTHING_KNOWN
            lower = upper if low == high else self._rest(up(epsilon - low), floor)
            lows.append(math.log(least) + lower.lower if least > 0 else -math.inf)
        lowest, highest = log_sum(lows), log_sum(highs)
        rate = sum(math.exp(min(0.0, x - highest)) * slope for x, slope in zip(highs, slopes, strict=True))
        ulps = EPS * (len(highs) + 8)
        if math.isfinite(lowest):
            lowest -= ulps * (4 + abs(lowest))
        return LogBounds(lowest, min(0.0, highest + ulps * (4 + abs(highest))), rate)

    def _by_size(self, epsilon: float) -> list[tuple[float, float, float, float]]:
        """(low, high, least, most) of every outcome, those that contribute most by Chernoff's bound first."""
        atoms = self.outcomes.atoms
        rows = zip(*(column.tolist() for column in (atoms.low, atoms.high, atoms.least, atoms.most)), strict=True)

        def size(row: tuple[float, ...]) -> float:
            return math.log(row[3]) + self._rough(down(epsilon - row[1]))

        return sorted((row for row in rows if row[3] > 0), key=size, reverse=True)

    def _rough(self, x: float) -> float:
        """Chernoff's bound of log delta_B at x or a little below, which holds at x as well because delta_B falls: a
        few places serve all outcomes."""
        if not x > 0:
            return 0.0
        before = math.exp(_LADDER * math.floor(math.log(x) / _LADDER))
        return self.rest.chernoff_log_delta(min(before, x))

    def _rest(self, x: float, log_floor: float) -> LogBounds:
        """Bounds of log delta_B(x), any real x; one below the floor need not be sharp."""
        if x >= 0:
            found = self._known(x, log_floor) or self._walked(x, log_floor, self.made)
            return self._sloped(found, x) if self.rest.steps == 1 else found
        whole = self.rest.composition
        low, high, _ = self._walked(0.0, -math.inf, self.made)
        if whole.infinity_mass_interval.upper > 0 or not all(law.has_all_mass for law, _ in whole.parts):
            return LogBounds(low, 0.0, 0.0)
        plain, total = -math.expm1(x), math.exp(min(high, 0.0))
        most = plain + math.exp(x) * total
        least = max(low, math.log(plain)) if plain > 0 else low
        return LogBounds(least - 4 * EPS * (1 + abs(least)), min(0.0, math.log(most) + 16 * EPS / most), 1.0)

    def _sloped(self, bounds: LogBounds, x: float) -> LogBounds:
        """With the slope that a closed form does not state, by a difference."""
        from dptally.accounting.certified.walk import walk_delta

        gap = 1e-5 * x + 1e-9
        fall = (bounds.upper - walk_delta(self.rest, x + gap, []).upper) / gap
        return bounds._replace(slope=fall if 0 < fall < math.inf else 0.0)

    def _walked(self, x: float, log_floor: float, made: Made) -> LogBounds:
        """One walk for B; nothing is known once there were too many."""
        from dptally.accounting.certified.walk import walk_delta

        self.walks.append(x)
        if len(self.walks) > self.rest.tuning.outcomes.most_walks and self.rest.steps > 1:
            return NOTHING_KNOWN
        return walk_delta(self.rest.above(math.exp(max(min(log_floor, 0.0), -740.0))), x, [], made)

    def _known(self, x: float, log_floor: float) -> LogBounds | None:
        """What the profiles that were made already, or one look a little below x, know well enough."""
        for _, profile in reversed(self.made):
            bounds = bounds_at(profile, x)
            if bounds.upper - bounds.lower <= self._sharp * max(1.0, bounds.slope * x):
                return bounds
        if log_floor > -math.inf and self.made:
            if not any(at <= x and bound < log_floor for at, bound in self.tails):
                before = (1 - _BEFORE) * x
                self.tails.append((before, self._walked(before, log_floor, []).upper))
            most = min((bound for at, bound in self.tails if at <= x), default=0.0)
            if most < log_floor:
                return LogBounds(-math.inf, most, 0.0)
        return None

    @property
    def _sharp(self) -> float:
        return self.rest.tuning.routes.sharp_lattice


def _made_of(plan: Plan) -> tuple[Enumerated, Plan] | None:
    from dptally.accounting.certified.lattice.enumeration import enumerated

    tuning = plan.tuning.outcomes
    short = [(law, n) for law, n in plan.parts if _is_short(law, n, tuning)]
    rest = [(law, n) for law, n in plan.parts if not _is_short(law, n, tuning)]
    outcomes = enumerated(Composition(tuple(short)), tuning)
    if outcomes is None or len(outcomes.atoms.low) > tuning.most_beside:
        return None
    return outcomes, Plan(Composition(tuple(rest)), 0.0, plan.tuning, quick=True)


def for_epsilon(plan: Plan, epsilon: float) -> Iterator[Conditioned]:
    """The sum over the outcomes, made for this eps."""
    found = _made_of(plan)
    if found is not None:
        yield Conditioned(*found, epsilon)


def for_delta(plan: Plan, target: LogTarget) -> Iterator[Conditioned]:
    """The same near the eps of this target: the largest that one outcome needs by itself."""
    found = _made_of(plan)
    if found is None:
        return
    outcomes, rest = found
    rows = [
        (high, math.log(most))
        for high, most in zip(outcomes.atoms.high.tolist(), outcomes.atoms.most.tolist(), strict=True)
        if most > 0
    ]
    loss, log_mass = max(rows, key=lambda row: row[0] + _guess(rest, target.low - row[1]))
    share = target.low - log_mass
    ends = Ends(0.0, 0.0)
    made: Made = []
    if share < 0:
        ends, made = _asked(rest, LogTarget(share, share, math.exp(share)))
        if not ends.upper - ends.lower <= plan.tuning.routes.sharp_lattice * max(loss, ends.upper):
            return  # B by itself is no easier
    start = loss + (0.5 * (ends.lower + ends.upper) if math.isfinite(ends.upper) else ends.lower)
    if start > 0:
        yield Conditioned(outcomes, rest, start, made)


def _asked(rest: Plan, target: LogTarget) -> tuple[Ends, Made]:
    """Ends of the eps of B at this target, and the profile that gave them: it serves the neighbours as well."""
    from dptally.accounting.certified.routes import in_order
    from dptally.accounting.certified.walk import walk_epsilon

    sharp = rest.tuning.routes.sharp_lattice
    for route in in_order(rest):
        if not route.applies(rest):
            continue
        for profile in answers_of(route.name, route.near_delta(rest, target), []):
            ends = epsilon_ends(profile, target, rest.tuning.search)
            if math.isfinite(ends.upper) and ends.upper - ends.lower <= sharp * ends.upper:
                return ends, [(route, profile)]
    return walk_epsilon(rest, target, []), []


def _guess(rest: Plan, log_delta: float) -> float:
    """About the eps of B at this delta."""
    return rest.chernoff_epsilon(log_delta) if log_delta < 0 else 0.0
