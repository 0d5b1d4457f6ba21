r"""Rare large losses ("big jumps"): cut the law softly at several sizes of loss and give every size its own tilt.

Where one or a few rare losses carry delta no single tilt is good: the tilted law has several modes, one of them nearly
an atom (no jump at all). Cut every law that can be cut at sizes x_0 < x_1 < ... < x_F by smooth edges; with
W_j the law below x_j, as measures,

    law^n = W_0^n + sum over j of (W_j^n - W_{j-1}^n) + (the rest: at least one loss above x_F),

all terms nonnegative, and delta(eps) is the sum of what they contribute. The term W_j^n - W_{j-1}^n (the largest loss
is of size j) is a contour sum of its own tilt; its transform falls as fast as that of the losses between the two edges,
which are smooth. A loss beyond x_F decides alone: its share is P - e^eps Q. The last term, W_0^n, is either
negligible by Chernoff's bound or a sum of many small losses, for which the plain contour is made.
Derivations: docs/certificates.md, "Soft edges".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dptally.accounting.certified.big_jump.contour import JumpTerm, contour, difference, finite
from dptally.accounting.certified.big_jump.decisive import Far, Rest
from dptally.accounting.certified.bounds import LogBounds
from dptally.accounting.certified.contour.aliasing import alias_period
from dptally.accounting.certified.contour.chernoff import log_chernoff
from dptally.accounting.certified.contour.inversion import Inversion, invert
from dptally.accounting.certified.contour.saddle import Saddle, log_size_at
from dptally.accounting.certified.contour.tables import Losses, added, merged, tabulate_at
from dptally.accounting.certified.tuning import STANDARD, Tuning
from dptally.law import Composition
from dptally.law.characteristic import MomentTable, SoftCut, Transformable
from dptally.law.law import Floats
from dptally.numerics.logspace import log_sum
from dptally.numerics.rounding import EPS

__all__ = ["JumpSum", "applies", "for_delta", "for_epsilon"]

_ANY = SoftCut(1.0, 10.0)  # to see whether a law can be cut at all
_LEAST_ROOM = 1e-3  # of eps


@dataclass(frozen=True, slots=True)
class JumpSum:
    """The computed terms and the bounds of the others; answers like an :class:`Inversion`."""

    computed: tuple[Inversion, ...]
    bounded: tuple[MomentTable, ...]
    far: Far
    saddle: float

    def estimate(self, epsilon: float) -> float:
        """log delta(eps), not a bound."""
        return log_sum([found.estimate(epsilon) for found in self.computed] + [self.far.log_share(epsilon)[0]])

    def log_delta(self, epsilon: float) -> LogBounds:
        answers = [found.log_delta(epsilon) for found in self.computed]
        far_low, far_high = self.far.log_share(epsilon)
        lower = log_sum([low for low, _, _ in answers] + [far_low])
        bounds = [float(log_chernoff(table, epsilon).min()) for table in self.bounded]
        upper = log_sum([high for _, high, _ in answers] + bounds + [far_high])
        slack = 8 * EPS * (4 + abs(lower)) if math.isfinite(lower) else 0.0
        weights = [math.exp(min(0.0, high - upper)) for _, high, _ in answers]
        rate = sum(w * r for w, (_, _, r) in zip(weights, answers, strict=True))
        if math.isfinite(far_high):  # d/d eps of P - e^eps Q
            rate += math.exp(min(1.0, self.far.log_q[1] + epsilon - upper))
        return LogBounds(lower - slack, min(0.0, upper + 8 * EPS * (4 + abs(upper))), rate)


def applies(composition: Composition) -> bool:
    """Some law can be cut, and all have characteristic functions."""
    parts = composition.parts
    return all(type(law).has_characteristic for law, _ in parts) and any(law.band(None, _ANY) for law, _ in parts)


def for_delta(composition: Composition, log_delta: float, guess: float, tuning: Tuning = STANDARD) -> Iterator[JumpSum]:
    """Split sums near the eps where delta(eps) is about exp(log_delta), likely the best last; ``guess``: a bound of
    that eps.
    """
    if 0 < guess < math.inf:
        for close in _ways(composition, guess, log_delta, tuning):
            yield from _for_delta(composition, log_delta, guess, close, tuning)


def _for_delta(
    composition: Composition, log_delta: float, guess: float, close: bool, tuning: Tuning
) -> Iterator[JumpSum]:
    least = _least(composition)
    jumps = tuning.jumps
    plan = _Plan(composition, guess, log_delta, tuning, close=close)
    at = max(plan.likely(), least)
    for _ in range(jumps.looks[0]):  # the first guess may be too large by far
        if not (at > 0 and plan.room(at) < jumps.near * plan.room(plan.epsilon)):
            break
        plan = _Plan(composition, at, log_delta, tuning, close=close)
        at = max(plan.likely(), least)
    for _ in range(jumps.looks[1]):
        found = plan.build(at)
        if found is None:
            return
        yield found
        rate = found.log_delta(at)[2]
        move = (found.estimate(at) - log_delta) / rate if rate > 0 else math.nan
        room = plan.room(at)
        # losses decide alone for somewhat larger eps, too
        if not math.isfinite(move) or (
            -jumps.still[0] * room < move and plan.room(at + move) < jumps.still[1] * plan.room(plan.epsilon)
        ):
            return
        down, up, steps = jumps.moves
        at += min(max(jumps.overshoot * move, (down - 1) * room), (up - 1) * room + steps * least)
        plan = _Plan(composition, at, log_delta, tuning, close=close)


def for_epsilon(
    composition: Composition, epsilon: float, log_guess: float, tuning: Tuning = STANDARD
) -> Iterator[JumpSum]:
    """Split sums near this eps; ``log_guess``: an upper bound of log delta(eps)."""
    at = max(epsilon, _least(composition))
    if not 0 < at < math.inf:
        return
    for close in _ways(composition, at, log_guess, tuning):
        plans = [_Plan(composition, at, log_guess - 3.0, tuning, close=close)]
        for _ in range(tuning.jumps.looks[2]):  # the first guess may be too large by far
            size = plans[-1].log_size(at)
            if not -math.inf < size < plans[-1].log_delta - tuning.jumps.negligible / 2:
                break
            plans.append(_Plan(composition, at, size, tuning, close=close))
        found = next((found for plan in reversed(plans) if (found := plan.build(at)) is not None), None)
        if found is not None:
            yield found


def _uncut(composition: Composition) -> float:
    """The largest loss of all laws that cannot be cut; 0 where there are none."""
    return sum(n * law.supremum for law, n in composition.parts if law.band(None, _ANY) is None)


def _ways(composition: Composition, epsilon: float, log_delta: float, tuning: Tuning) -> tuple[bool, ...]:
    """Whether to cut closely, one way after the other: on the scale of what bounded laws leave of eps, or of a tiny
    delta.
    """
    left = 1 - _uncut(composition) / epsilon
    if 0 < left < tuning.jumps.tight:
        return True, False
    if log_delta < tuning.jumps.tiny:
        return True, False
    return (False, True) if 0 < left < 1 else (False,)


def _least(composition: Composition) -> float:
    """An eps of zero is answered by the split sum of one a little above, on the scale of the least losses, or of the
    total variation where there are none.
    """
    drift = -composition.infimum
    if math.isfinite(drift):
        return 1e-4 * drift
    profiles = [(n, float(law.log_profile(np.zeros(1))[1][0])) for law, n in composition.parts]
    return 1e-2 * math.fsum(n * math.exp(log_delta) for n, log_delta in profiles)


@dataclass(frozen=True, slots=True)
class _Layer:
    """All that is below an edge, its table, and the term between this edge and the next lower one."""

    whole: Losses
    table: MomentTable | None  # None above the last edge where no loss decides alone
    cut: JumpTerm | None  # None where no lower edge is needed, or none can be had

    def log_size(self, epsilon: float) -> float:
        """Chernoff's bound of the term, or of all below where that is less or there is no term; to steer by."""
        tables = [self.table] if self.cut is None else [self.table, self.cut.table]
        found = [float(log_chernoff(t, epsilon).min()) for t in tables if t is not None and len(t.theta)]
        return min(found, default=-math.inf)


class _Plan:
    """Where to cut a composition for one eps and about one delta."""

    def __init__(
        self,
        composition: Composition,
        epsilon: float,
        log_delta: float,
        tuning: Tuning = STANDARD,
        *,
        close: bool = False,
    ) -> None:
        self.tuning = tuning.jumps
        self.close = close
        self.uncut = _uncut(composition) if close else 0.0
        self.contours = tuning.contour
        self.composition, self.epsilon, self.log_delta = composition, epsilon, log_delta
        self.rest = Rest.of(composition, epsilon, self.tuning)
        self.far = Far.of(composition, self.rest, self._top())
        self._made: list[_Layer] = []
        self._making = self._make()

    def layers(self) -> Iterator[_Layer]:
        """From the largest size down, made when asked for; the last one is negligible, or no smaller can be had."""
        yield from self._made
        for layer in self._making:
            self._made.append(layer)
            yield layer

    def _make(self) -> Iterator[_Layer]:
        least = self.rest.least
        widest = self.epsilon - (least if math.isfinite(least) else 0.0)
        drift = self.composition.infimum
        scale = max(self.epsilon, 1e-5 * widest if math.isinf(drift) else 1e-3 * (self.epsilon - drift))
        room = self.room(self.epsilon)
        if room < self.epsilon:  # other laws leave less
            scale = min(scale, room)
        least_tilt, most_tilt = 0.05 / widest, max(60.0, -4 * self.log_delta) / scale
        number = math.ceil(6 * math.log(most_tilt / least_tilt))
        if number < 2:
            return  # the losses drift further than any jump reaches
        theta = np.geomspace(least_tilt, most_tilt, min(self.tuning.tilts, number))
        high, sizes = self._top(), self._sizes(widest)
        whole: Losses = [] if high is None else self._below(high)
        table = None if high is None else finite(tabulate_at(whole, theta))
        for _ in range(self.tuning.most_cuts):
            if table is not None and (not len(table.theta) or self._negligible(table, self.tuning.near * self.epsilon)):
                yield _Layer(whole, table, None)
                return
            low = SoftCut(next(sizes), self._rho())
            light = self._below(low)
            tables = [law.moment_table(theta) for law, _ in light]
            if self.close and not all(np.isfinite(rows.moment).any() for rows in tables):
                continue  # a law beyond whose tables this edge lies: a lower one
            yield _Layer(whole, table, self._term(light, tables, low, high, theta))
            whole, table = light, finite(added(light, theta, tables))
            high = low

    def _sizes(self, widest: float) -> Iterator[float]:
        """Where to cut: closely about the loss that decides where others leave little room, or delta is tiny: tails
        that fall less than exponentially pull a tilted law to the edges of a wide band.
        """
        room = self.room(self.epsilon)
        above, below = self.tuning.about
        size = widest / self.tuning.first
        if room < self.tuning.tight * self.epsilon:
            yield above * room
            size = below * room
        elif self.close and self.log_delta < self.tuning.tiny:
            size = below * widest
        while True:
            yield size
            size /= self.tuning.following

    def room(self, epsilon: float) -> float:
        """What eps leaves to the laws that are cut when all others lose the most they can: the scale of the tilts."""
        return max(epsilon - self.uncut, _LEAST_ROOM * epsilon) if self.uncut < epsilon else epsilon

    def _negligible(self, table: MomentTable, epsilon: float) -> bool:
        return float(log_chernoff(table, epsilon).min(initial=math.inf)) < self.log_delta - self.tuning.negligible

    def likely(self) -> float:
        """Where Chernoff's bounds of all terms, less what they exceed delta by at least, take the target."""
        low, high = 0.0, self.epsilon
        for _ in range(25):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.log_size(middle) > self.log_delta else (low, middle)
        return high

    def log_size(self, epsilon: float) -> float:
        """About log delta: Chernoff's bounds of all terms, less what they exceed delta by at least."""
        sizes = [layer.log_size(epsilon) - self.tuning.slack for layer in self.layers()]
        return log_sum(sizes if self.far is None else [*sizes, self.far.log_least(epsilon)])

    def build(self, epsilon: float) -> JumpSum | None:
        """Contours for the terms that matter at this eps, the plan's or one near it."""
        if self.far is None:
            return None
        computed: list[Inversion] = []
        bounded: list[MomentTable] = []
        for layer in self.layers():
            if layer.table is not None:
                if not len(layer.table.theta):
                    return None
                if self._negligible(layer.table, epsilon):
                    return self._sum(computed, [*bounded, layer.table], epsilon)
                found = self._whole(layer.whole, layer.table, epsilon)
                if found is not None:
                    return self._sum([*computed, found], bounded, epsilon)
            if layer.cut is None:
                return None
            if self._negligible(layer.cut.table, epsilon):
                bounded.append(layer.cut.table)
                continue
            built = contour(layer.cut, epsilon, self.log_delta, self.tuning)
            if built is None:
                return None
            computed.append(built)
        return None

    def _sum(self, computed: list[Inversion], bounded: list[MomentTable], epsilon: float) -> JumpSum | None:
        if self.far is None or not (computed or self.far.parts):
            return None
        return JumpSum(tuple(computed), tuple(bounded), self.far, epsilon)

    def _rho(self) -> float:
        """So sharp that of the bulk, at losses near the least, hardly anything counts as a jump."""
        return math.sqrt(2 * (self.tuning.bulk + math.log(self.composition.steps) - min(0.0, self.log_delta)))

    def _top(self) -> SoftCut | None:
        """The edge beyond which a loss decides alone, whatever the others are, or nearly so; None where the others are
        unbounded, or have less than all of their mass, under P or under Q, at finite losses: P and Q of such a loss
        would not be what they are by itself.
        """
        least = self.rest.least
        if not math.isfinite(least) or not all(law.has_all_mass for law, _ in self.composition.parts):
            return None
        rho = max(self.tuning.far_rho, 2 * self.tuning.far_depth, self._rho() + 10.0)
        lost = [-law.infimum for law, _ in self.composition.parts if math.isfinite(law.infimum)]
        own = max(lost, default=0.0) if self.rest.log_rare > -math.inf else 0.0  # of the large loss itself
        return SoftCut(
            (self.tuning.margin * self.epsilon - least + own) / (1 - self.tuning.far_depth / rho), rho, both=False
        )

    def _below(self, edge: SoftCut) -> Losses:
        return [(law.band(None, edge) or law, n) for law, n in self.composition.parts]

    def _whole(self, parts: Losses, table: MomentTable, epsilon: float) -> Inversion | None:
        """The plain contour of the losses below an edge."""
        bound = log_chernoff(table, epsilon)
        theta = float(table.theta[int(np.argmin(bound))])
        fine = tabulate_at(parts, theta * np.asarray(self.tuning.around))
        if not np.isfinite(fine.moment).all():
            return None
        best = int(np.argmin(log_chernoff(fine, epsilon)))
        row = MomentTable(*(getattr(fine, name)[[best]] for name in ("theta", "moment", "error", "first", "second")))
        tilts = merged(table, fine)
        saddle = Saddle.of(row, asked=epsilon)
        log_size = log_size_at(saddle.theta, saddle.variance)
        period = alias_period(tilts, saddle.theta, saddle.moment, epsilon, log_size, self.contours.relative)
        if not math.isfinite(period):
            return None
        last = np.array([self.tuning.most_terms * 2 * math.pi / period])
        decay = sum(n * float(law.log_decay(saddle.theta, last)[0]) for law, n in parts)
        if decay - math.log(last[0]) > log_size - 24.0:
            return None  # it would take too many terms
        found = invert(parts, saddle, tilts, parts, self.contours, self.tuning.most_work // 8)
        if found is None:
            return None
        low, high, _ = found.log_delta(epsilon)
        return (
            found if high - low < self.tuning.sharp else None
        )  # where the tilt suits rare jumps but they do not carry delta

    def _term(
        self, light: Losses, tables: list[MomentTable], low: SoftCut, high: SoftCut | None, theta: Floats
    ) -> JumpTerm | None:
        heavy: list[tuple[Transformable, int] | None] = []
        for law, n in self.composition.parts:
            band = law.band(low, high)
            heavy.append(None if band is None else (band, n))
        table = difference(light, tables, heavy, theta)
        return JumpTerm(light, heavy, low, table) if len(table.theta) else None
