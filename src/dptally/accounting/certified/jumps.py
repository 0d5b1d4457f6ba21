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

from dptally.accounting.certified.inversion import (
    Inversion,
    Losses,
    added,
    alias_period,
    invert,
    log_chernoff,
    merged,
    tabulate_at,
)
from dptally.law import Composition, Law
from dptally.law.characteristic import Band, Characteristic, Edge, MomentTable, Transformable
from dptally.law.law import Floats
from dptally.numerics.complexes import log1p_complex
from dptally.numerics.rounding import EPS, down, up

__all__ = ["JumpSum", "applies", "for_delta", "for_epsilon"]

_NEGLIGIBLE = 20.0  # nats below delta at which a term is bounded instead of computed
_FIRST, _NEXT = 5.0, 7.0  # ratios of the sizes at which the law is cut
_MOST_CUTS = 8
_SLACK = 1.0  # nats by which Chernoff's bound nearly always exceeds delta
_FAR_RHO, _FAR_DEPTH = 25.0, 8.0  # the edge of the losses that decide alone: how sharp, and how far beyond them
_NEAR = 0.75  # a plan for one eps will do down to this share of it
_SMALL = 0.1  # of eps: where the least losses of all steps are less there is no need to know them better
_LOG_RARE = -24.0  # log of the chance of losses below what the other steps are taken to lose at the least
_MARGIN = 1.1  # they decide alone for every eps up to this many times the estimated one
_RELATIVE = 1e-13  # what each truncation may cost, relative to the term
_MOST_WORK = 40_000_000  # terms times nodes: about 0.15 s
_SHARP = 1e-8  # relative width at which the plain contour below an edge will do
_MOST_RATIO = 350.0  # nats between the moments of jumps and of the rest
_MOST_TERMS = 3000  # of the plain contour below an edge; with more another cut is better
_AROUND = np.exp([-0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2])
#: candidates for the end of a contour, in units of 1 / (width of the lower edge)
_CUTS = np.concatenate((np.arange(1.0, 13.0), 13.0 * 1.25 ** np.arange(6.0)))


@dataclass(frozen=True, slots=True)
class _Term:
    """W_j^n - W_{j-1}^n: for each law its count, the part below the lower edge and the part between the edges."""

    light: Losses
    heavy: list[tuple[Transformable, int] | None]  # None for a law that is not cut
    edge: Edge
    table: MomentTable  # of log(M_j^n - M_{j-1}^n), upper bounds


@dataclass(frozen=True, slots=True)
class _Rest:
    """What the losses of all steps, or of all but one, add up to at the least; under Q less than that has a chance of
    e^log_rare at the most.
    """

    least: float
    log_rare: float

    @classmethod
    def of(cls, composition: Composition, epsilon: float) -> _Rest:
        """The sum of the least losses where that is small beside eps; else what -L, under Q the loss of the other
        direction, rarely exceeds in any step, summed; or by Chernoff's bound of the sum, K(s) >= 0 of each step there,
        so that one step less only makes it smaller.
        """
        exact = cls(composition.infimum, -math.inf)
        if -exact.least <= _SMALL * epsilon:
            return exact
        others = [(law.reverse(), n) for law, n in composition.parts]
        turned = [(law, n) for law, n in others if law is not None]
        if len(turned) < len(others):
            return exact
        each = [_rarely(law, _LOG_RARE - math.log(composition.steps)) for law, _ in turned]
        depth = math.fsum(n * x for x, (_, n) in zip(each, turned, strict=True))
        if _NEXT * epsilon < depth < math.inf:
            table = _finite(tabulate_at(turned, np.geomspace(10.0 / depth, 60.0 / max(each), 16)))
            chernoff = (table.moment + table.error - _LOG_RARE) / table.theta
            depth = min(depth, float(chernoff.min(initial=math.inf)))
        level = -depth * (1 + 1e-9)
        return cls(level, _LOG_RARE + 1e-6) if level > exact.least else exact

    def beside(self, law: Law) -> float:
        """The same for all steps but one of this law."""
        if self.log_rare > -math.inf or not math.isfinite(law.infimum):
            return self.least
        return down(self.least - law.infimum)


def _rarely(law: Law, log_chance: float) -> float:
    """A loss that is exceeded with at most this chance: P(L >= 5x/4) <= delta(x) / (1 - e^{-x/4})."""
    x = np.geomspace(1e-9, 1e4, 160)
    log_tail = law.log_profile(x)[1] - np.log(-np.expm1(-0.25 * x)) + 1e-9
    fits = np.flatnonzero(log_tail <= log_chance)
    return 1.25 * float(x[fits[0]]) if fits.size else math.inf


@dataclass(frozen=True, slots=True)
class _Far:
    """At least one loss beyond the last edge: E[(1 - e^{eps - L})+] = P - e^eps Q + E_Q[(e^eps - e^L)+], and the last
    term, of losses that do not decide alone after all, is bounded by the edge.
    """

    parts: list[tuple[Band, int, float]]  # a band, its count, and what the other steps lose at the least
    log_rare: float  # log of a bound of the Q of such a loss beside others that lose less than that
    log_p: tuple[float, float]
    log_q: tuple[float, float]

    def log_least(self, epsilon: float) -> float:
        """log(P - e^eps Q), about."""
        share = -math.expm1(min(0.0, self.log_q[0] + epsilon - self.log_p[0])) if self.parts else 0.0
        return self.log_p[0] + math.log(share) if share > 0 else -math.inf

    def log_share(self, epsilon: float) -> tuple[float, float]:
        """Bounds of the log of the share of delta."""
        if not self.parts:
            return -math.inf, -math.inf
        top = self.log_p[1]
        p_low, p_high = (math.exp(x - top) for x in self.log_p)
        q_low, q_high = (math.exp(min(x + epsilon - top, 1.0)) for x in self.log_q)
        leaks = [math.log(n) + band.log_mass_below(-1.0, up(epsilon - rest)) for band, n, rest in self.parts]
        leak = _log_sum([*leaks, self.log_rare])
        blur = 8 * EPS * (2 + abs(epsilon) + abs(top) + abs(self.log_q[0]))
        low = p_low - q_high - blur * (p_low + q_high)
        high = min(p_high, max(0.0, p_high - q_low + math.exp(min(leak + epsilon - top, 1.0))))
        high = min(1.0, high + blur * (p_high + q_high))
        return (math.log(low) + top if low > 0 else -math.inf), math.log(high) + top


@dataclass(frozen=True, slots=True)
class JumpSum:
    """The computed terms and the bounds of the others; answers like an :class:`Inversion`."""

    computed: tuple[Inversion, ...]
    bounded: tuple[MomentTable, ...]
    far: _Far
    saddle: float

    def estimate(self, epsilon: float) -> float:
        """log delta(eps), not a bound."""
        return _log_sum([found.estimate(epsilon) for found in self.computed] + [self.far.log_share(epsilon)[0]])

    def log_delta(self, epsilon: float) -> tuple[float, float, float]:
        answers = [found.log_delta(epsilon) for found in self.computed]
        far_low, far_high = self.far.log_share(epsilon)
        lower = _log_sum([low for low, _, _ in answers] + [far_low])
        bounds = [float(log_chernoff(table, epsilon).min()) for table in self.bounded]
        upper = _log_sum([high for _, high, _ in answers] + bounds + [far_high])
        slack = 8 * EPS * (4 + abs(lower)) if math.isfinite(lower) else 0.0
        weights = [math.exp(min(0.0, high - upper)) for _, high, _ in answers]
        rate = sum(w * r for w, (_, _, r) in zip(weights, answers, strict=True))
        if math.isfinite(far_high):  # d/d eps of P - e^eps Q
            rate += math.exp(min(1.0, self.far.log_q[1] + epsilon - upper))
        return lower - slack, min(0.0, upper + 8 * EPS * (4 + abs(upper))), rate


def _log_sum(logs: list[float]) -> float:
    """log of a sum of exponentials, to a few ulps."""
    top = max(logs, default=-math.inf)
    if not math.isfinite(top):
        return top
    return top + math.log(math.fsum(math.exp(x - top) for x in logs))


def applies(composition: Composition) -> bool:
    """Some law can be cut, and all have characteristic functions."""
    edge = Edge(1.0, 10.0)
    parts = composition.parts
    return all(type(law).has_characteristic for law, _ in parts) and any(law.band(None, edge) for law, _ in parts)


def for_delta(composition: Composition, log_delta: float, guess: float) -> Iterator[JumpSum]:
    """Split sums near the eps where delta(eps) is about exp(log_delta), likely the best last; ``guess``: a bound of
    that eps.
    """
    if not 0 < guess < math.inf:
        return
    least = _least(composition)
    plan = _Plan(composition, guess, log_delta)
    at = max(plan.likely(), least)
    for _ in range(6):  # the first guess may be too large by far
        if not 0 < at < _NEAR * plan.epsilon:
            break
        plan = _Plan(composition, at, log_delta)
        at = max(plan.likely(), least)
    for _ in range(4):
        found = plan.build(at)
        if found is None:
            return
        yield found
        rate = found.log_delta(at)[2]
        move = (found.estimate(at) - log_delta) / rate if rate > 0 else math.nan
        # losses decide alone for somewhat larger eps, too
        if not math.isfinite(move) or (-0.06 * at < move and at + move < 1.05 * plan.epsilon):
            return
        at = min(max(at + 1.02 * move, 0.2 * at), 3 * at + 5e3 * least)  # half of the drift is a small step, too
        plan = _Plan(composition, at, log_delta)


def for_epsilon(composition: Composition, epsilon: float, log_guess: float) -> Iterator[JumpSum]:
    """Split sums near this eps; ``log_guess``: an upper bound of log delta(eps)."""
    at = max(epsilon, _least(composition))
    if not 0 < at < math.inf:
        return
    plans = [_Plan(composition, at, log_guess - 3.0)]
    for _ in range(3):  # the first guess may be too large by far
        size = plans[-1].log_size(at)
        if not -math.inf < size < plans[-1].log_delta - _NEGLIGIBLE / 2:
            break
        plans.append(_Plan(composition, at, size))
    for plan in reversed(plans):
        found = plan.build(at)
        if found is not None:
            yield found
            return


def _least(composition: Composition) -> float:
    """An eps of zero is answered by the split sum of one a little above, on the scale of the least losses."""
    drift = -composition.infimum
    return 1e-4 * drift if math.isfinite(drift) else 0.0


@dataclass(frozen=True, slots=True)
class _Layer:
    """All that is below an edge, its table, and the term between this edge and the next lower one."""

    whole: Losses
    table: MomentTable | None  # None above the last edge where no loss decides alone
    cut: _Term | None  # None where no lower edge is needed, or none can be had

    def log_size(self, epsilon: float) -> float:
        """Chernoff's bound of the term, or of all below where that is less or there is no term; to steer by."""
        tables = [self.table] if self.cut is None else [self.table, self.cut.table]
        found = [float(log_chernoff(t, epsilon).min()) for t in tables if t is not None and len(t.theta)]
        return min(found, default=-math.inf)


class _Plan:
    """Where to cut a composition for one eps and about one delta."""

    def __init__(self, composition: Composition, epsilon: float, log_delta: float) -> None:
        self.composition, self.epsilon, self.log_delta = composition, epsilon, log_delta
        self.rest = _Rest.of(composition, epsilon)
        self.far = self._far()
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
        least_tilt, most_tilt = 0.05 / widest, max(60.0, -4 * self.log_delta) / scale
        number = math.ceil(6 * math.log(most_tilt / least_tilt))
        if number < 2:
            return  # the losses drift further than any jump reaches
        theta = np.geomspace(least_tilt, most_tilt, min(64, number))
        high, size = self._top(), widest / _FIRST
        whole: Losses = [] if high is None else self._below(high)
        table = None if high is None else _finite(tabulate_at(whole, theta))
        for _ in range(_MOST_CUTS):
            if table is not None and (not len(table.theta) or self._negligible(table, _NEAR * self.epsilon)):
                yield _Layer(whole, table, None)
                return
            low = Edge(size, self._rho())
            light = self._below(low)
            tables = [law.moment_table(theta) for law, _ in light]
            yield _Layer(whole, table, self._term(light, tables, low, high, theta))
            whole, table = light, _finite(added(light, theta, tables))
            high, size = low, size / _NEXT

    def _negligible(self, table: MomentTable, epsilon: float) -> bool:
        return float(log_chernoff(table, epsilon).min(initial=math.inf)) < self.log_delta - _NEGLIGIBLE

    def likely(self) -> float:
        """Where Chernoff's bounds of all terms, less what they exceed delta by at the least, take the target."""
        low, high = 0.0, self.epsilon
        for _ in range(25):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.log_size(middle) > self.log_delta else (low, middle)
        return high

    def log_size(self, epsilon: float) -> float:
        """About log delta: Chernoff's bounds of all terms, less what they exceed delta by at the least."""
        sizes = [layer.log_size(epsilon) - _SLACK for layer in self.layers()]
        return _log_sum(sizes if self.far is None else [*sizes, self.far.log_least(epsilon)])

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
            built = _contour(layer.cut, epsilon, self.log_delta)
            if built is None:
                return None
            computed.append(built)
        return None

    def _sum(self, computed: list[Inversion], bounded: list[MomentTable], epsilon: float) -> JumpSum | None:
        if self.far is None or not (computed or self.far.parts):
            return None
        return JumpSum(tuple(computed), tuple(bounded), self.far, epsilon)

    def _rho(self) -> float:
        """So sharp that of the bulk, at losses near the least, less than e^-36 delta counts as a jump."""
        return math.sqrt(2 * (36.0 + math.log(self.composition.steps) - min(0.0, self.log_delta)))

    def _top(self) -> Edge | None:
        """The edge beyond which a loss decides alone, whatever the others are, or nearly so; None where the others are
        unbounded, or have less than all of their mass at finite losses: P and Q of such a loss would not be what they
        are by itself.
        """
        least = self.rest.least
        if not math.isfinite(least) or any(law.infinity_mass > 0 for law, _ in self.composition.parts):
            return None
        rho = max(_FAR_RHO, self._rho() + 10.0)
        lost = [-law.infimum for law, _ in self.composition.parts if math.isfinite(law.infimum)]
        own = max(lost, default=0.0) if self.rest.log_rare > -math.inf else 0.0  # of the large loss itself
        return Edge((_MARGIN * self.epsilon - least + own) / (1 - _FAR_DEPTH / rho), rho, both=False)

    def _below(self, edge: Edge) -> Losses:
        return [(law.band(None, edge) or law, n) for law, n in self.composition.parts]

    def _far(self) -> _Far | None:
        """P and Q of at least one loss beyond the last edge: 1 - prod (1 - p_i)^n_i."""
        parts: list[tuple[Band, int, float]] = []
        edge = self._top()
        if edge is None:
            return _Far(parts, -math.inf, (-math.inf, -math.inf), (-math.inf, -math.inf))
        together: list[float] = []
        logs: list[list[float]] = [[], [], [], []]
        for law, n in self.composition.parts:
            band = law.band(edge, None)
            if band is None:
                continue
            parts.append((band, n, self.rest.beside(law)))
            p, q = band.characteristic(0.0, 0.0, -34.0), band.characteristic(-1.0, 0.0, -34.0)
            if p is None or q is None:
                return None
            for row, mass in ((0, p), (2, q)):
                for side, sign in ((0, -1.0), (1, 1.0)):
                    logs[row + side].append(_log_some(mass.log_moment + sign * mass.log_moment_error, n))
            together.append(q.log_moment + q.log_moment_error + math.log(n))
        ends = [_log_any(values) for values in logs]
        blur = 32 * EPS * (4 + len(parts))
        return _Far(
            parts,
            self.rest.log_rare + _log_sum(together) + 1e-9 if together else -math.inf,
            (ends[0] - blur * (1 + abs(ends[0])), ends[1] + blur * (1 + abs(ends[1]))),
            (ends[2] - blur * (1 + abs(ends[2])), ends[3] + blur * (1 + abs(ends[3]))),
        )

    def _whole(self, parts: Losses, table: MomentTable, epsilon: float) -> Inversion | None:
        """The plain contour of the losses below an edge."""
        bound = log_chernoff(table, epsilon)
        theta = float(table.theta[int(np.argmin(bound))])
        fine = tabulate_at(parts, theta * _AROUND)
        if not np.isfinite(fine.moment).all():
            return None
        best = int(np.argmin(log_chernoff(fine, epsilon)))
        row = MomentTable(*(getattr(fine, name)[[best]] for name in ("theta", "moment", "error", "first", "second")))
        tilts = merged(table, fine)
        theta, spread = float(row.theta[0]), float(row.second[0] + row.theta[0] ** -2)
        log_size = -math.log(theta * (1 + theta)) - 0.5 * math.log(2 * math.pi * spread)
        period = alias_period(tilts, theta, float(row.moment[0]), epsilon, log_size)
        if not math.isfinite(period):
            return None
        last = np.array([_MOST_TERMS * 2 * math.pi / period])
        if sum(n * float(law.log_decay(theta, last)[0]) for law, n in parts) - math.log(last[0]) > log_size - 24.0:
            return None  # it would take too many terms
        found = invert(parts, tilts, row, epsilon, most_work=_MOST_WORK // 8)
        if found is None:
            return None
        low, high, _ = found.log_delta(epsilon)
        return found if high - low < _SHARP else None  # where the tilt suits rare jumps but they do not carry delta

    def _term(
        self, light: Losses, tables: list[MomentTable], low: Edge, high: Edge | None, theta: Floats
    ) -> _Term | None:
        heavy: list[tuple[Transformable, int] | None] = []
        for law, n in self.composition.parts:
            band = law.band(low, high)
            heavy.append(None if band is None else (band, n))
        table = _difference(light, tables, heavy, theta)
        return _Term(light, heavy, low, table) if len(table.theta) else None


def _log_some(log_p: float, n: int) -> float:
    """log(1 - (1 - p)^n) up to a few ulps of the logarithms involved: log of (n p) where that is small."""
    p = math.exp(min(log_p, 0.0))
    if p >= 1.0:
        return 0.0
    if p <= 1e-17:
        return log_p + math.log(n) if p * n < 1e-17 else math.log(-math.expm1(-p * n))
    return math.log(-math.expm1(n * math.log1p(-p)))


def _log_any(logs: list[float]) -> float:
    """log(1 - prod (1 - e^x)) for independent events of these log-probabilities."""
    if len(logs) == 1:
        return logs[0]
    most = max(logs, default=-math.inf)
    if most < -40.0:
        return _log_sum(logs)
    if most > -1e-15:  # one of them is certain, up to rounding
        return most
    return math.log(-math.expm1(math.fsum(math.log1p(-math.exp(x)) for x in logs)))


def _finite(table: MomentTable) -> MomentTable:
    columns = [table.theta, table.moment, table.error, table.first, table.second]
    keep = np.isfinite(columns).all(axis=0)
    return MomentTable(*(column[keep] for column in columns))


def _difference(
    light: Losses, tables: list[MomentTable], heavy: list[tuple[Transformable, int] | None], theta: Floats
) -> MomentTable:
    """log(prod (M_b + M_h)^n - prod M_b^n), rounded up, at the tilts where everything is finite."""
    base = np.zeros_like(theta)
    more = np.zeros_like(theta)
    for (_, n), table, jump in zip(light, tables, heavy, strict=True):
        base += n * (table.moment + table.error + 2 * EPS * np.abs(table.moment))
        if jump is not None:
            between = jump[0].moment_table(theta)
            ratio = between.moment + between.error - table.moment + table.error
            ratio += 4 * EPS * (np.abs(between.moment) + np.abs(table.moment))
            more += n * np.logaddexp(0.0, ratio) * (1 + 8 * EPS)
    moment = base + more + np.log(-np.expm1(-more))
    moment += 16 * EPS * (len(light) + np.abs(base) + more)
    zero = np.zeros_like(theta)
    return _finite(MomentTable(theta, moment, zero, zero, zero))


def _contour(term: _Term, epsilon: float, log_delta: float) -> Inversion | None:
    """The contour of one term near its saddle for this eps; a term far below delta may be less sharp."""
    bound = log_chernoff(term.table, epsilon)
    relative = _RELATIVE * math.exp(min(max(0.0, log_delta - float(bound.min())), 20.0))
    middle = float(term.table.theta[int(np.argmin(bound))])
    around = middle * _AROUND
    fine = _difference(term.light, [law.moment_table(around) for law, _ in term.light], term.heavy, around)
    tilts = merged(term.table, fine)
    if len(fine.theta) < 3:
        return None
    best = int(np.argmin(log_chernoff(fine, epsilon)[1:-1])) + 1
    theta = float(fine.theta[best])
    gap = np.diff(fine.theta[best - 1 : best + 2])
    slopes = np.diff(fine.moment[best - 1 : best + 2]) / gap
    variance = max(0.0, float((slopes[1] - slopes[0]) / gap.mean()))
    spread = variance + theta**-2 + (1 + theta) ** -2
    log_size = -math.log(theta * (1 + theta)) - 0.5 * math.log(2 * math.pi * spread) - 2.0
    period = alias_period(tilts, theta, float(fine.moment[best]), epsilon, log_size, relative)
    if not math.isfinite(period):
        return None
    step = 2 * math.pi / period
    log_cut = math.log(relative) + log_size
    u = _CUTS / term.edge.width
    decay = _log_decay(term, theta, u)
    good = np.flatnonzero(decay - np.log(u) <= log_cut)
    if not good.size:
        return None
    cut, log_tail = float(u[good[0]]), float(decay[good[0]])
    number = math.ceil(cut / step) + 1
    if number > _MOST_WORK // 100:
        return None
    built = _Pair.of(term, theta, step * number, math.log(1e-15) - math.log(sum(n for _, n in term.light)))
    if built is None or number * built.size > _MOST_WORK:
        return None
    return built.assemble(theta, step, number, log_tail, tilts, epsilon)


def _log_decay(term: _Term, theta: float, u: Floats) -> Floats:
    """log of a bound of |G| / N beyond each u: |prod a^n - prod b^n| <= sum n |a - b| for |a|, |b| <= 1."""
    total, common = np.full_like(u, -math.inf), np.zeros_like(u)
    jumps = 0.0
    for (law, n), jump in zip(term.light, term.heavy, strict=True):
        if jump is None:
            common += n * law.log_decay(theta, u)
            continue
        light, heavy = (part.moment_table(np.array([theta])) for part in (law, jump[0]))
        ratio = float(heavy.moment[0] - light.moment[0])
        if not math.isfinite(ratio):  # beyond the tables
            return np.zeros_like(u)
        error = float(heavy.error[0] + light.error[0])
        jumps += n * math.log1p(math.exp(min(ratio - error, 700.0)))
        share = ratio + error - float(np.logaddexp(0.0, ratio + error))
        total = np.logaddexp(total, math.log(n) + share + jump[0].log_decay(theta, u))
    if not jumps > 0:  # beyond the doubles
        return np.zeros_like(u)
    return np.asarray(np.minimum(total - math.log(-math.expm1(-jumps)) + 1e-9, 0.0) + common)


@dataclass(frozen=True, slots=True)
class _Pair:
    """For each law its count and the characteristic functions below the lower edge and between the edges."""

    rows: list[tuple[int, Characteristic, Characteristic | None]]

    @classmethod
    def of(cls, term: _Term, theta: float, reach: float, log_tolerance: float) -> _Pair | None:
        rows = []
        for (below, n), jump in zip(term.light, term.heavy, strict=True):
            light = below.characteristic(theta, reach, log_tolerance)
            heavy = None if jump is None else jump[0].characteristic(theta, reach, -34.0)
            if light is None or (jump is not None and heavy is None):
                return None
            if heavy is not None and abs(heavy.log_moment - light.log_moment) > _MOST_RATIO:
                return None  # the quotient of their transforms would leave the doubles
            rows.append((n, light, heavy))
        return cls(rows)

    @property
    def size(self) -> int:
        return sum(light.size + (0 if heavy is None else heavy.size) for _, light, heavy in self.rows)

    def _jumps(self) -> float:
        """S = sum of n log(1 + M_h / M_b): the expected number of jumps of the tilted law, about."""
        return math.fsum(
            n * math.log1p(math.exp(heavy.log_moment - light.log_moment))
            for n, light, heavy in self.rows
            if heavy is not None
        )

    def assemble(
        self, theta: float, step: float, number: int, log_tail: float, tilts: MomentTable, epsilon: float
    ) -> Inversion | None:
        r"""G(u) / N at the nodes, G = prod a_i^n_i - prod b_i^n_i, a = b + h, N its value at u = 0.

        G has nonnegative coefficients in b and h, so errors e_b, e_h of b and h cost at most
        sum of n_i R_i (e_h + e_b D), with R_i the product of (\|b\| + \|h\|)^n with one factor i less, and
        D = 1 - prod (\|b\| / (\|b\| + \|h\|))^n, all taken at \|b\| + e_b, \|h\| + e_h and relative to prod M_a^n.
        """
        u = step * np.arange(number)
        log_b = np.zeros(number, dtype=np.complex128)
        jumps = np.zeros(number, dtype=np.complex128)
        log_modulus, log_kept, relative, drift = np.zeros((4, number))
        costs = []
        log_moment, centre = [], []
        for n, light, heavy in self.rows:
            minus_one, light_error = light.on_grid(step, number)
            log_phi = log1p_complex(minus_one)
            log_phi.real = np.maximum(log_phi.real, -300.0)  # where phi vanishes; the difference joins the error
            phi = np.exp(log_phi.real)
            light_error = light_error + 1e-130
            log_b += n * log_phi
            logs = np.abs(log_phi.real) + np.abs(log_phi.imag) + np.abs(minus_one)
            relative += n * (20 + len(self.rows)) * EPS * logs
            ratio = 0.0 if heavy is None else math.exp(heavy.log_moment - light.log_moment)
            share = 1.0 / (1.0 + ratio)
            b = share * (phi * (1 + light.log_moment_error) + light_error)
            b_error = share * (light_error + 1.01 * phi * light.log_moment_error)
            h, h_error = np.zeros(number), np.zeros(number)
            if heavy is not None:
                minus_one, heavy_error = heavy.on_grid(step, number)
                value = 1.0 + minus_one
                size = np.abs(value)
                turned = value * np.exp(1j * ((heavy.centre - light.centre) * u))
                rho = ratio * turned / phi * np.exp(-1j * log_phi.imag)
                grown = np.where(np.abs(rho) > 1e20, np.log(rho), log1p_complex(rho))  # the latter squares rho
                jumps += n * grown
                drift += n * 16 * EPS * np.abs(grown)
                blur = heavy.log_moment_error + 40 * EPS + 6 * EPS * u * (abs(heavy.centre) + abs(light.centre))
                blur = blur + 4 * EPS * (abs(heavy.log_moment) + abs(light.log_moment))
                h_error = ratio * share * (heavy_error + 1.01 * size * blur)
                h = ratio * share * size + h_error
            modulus = b + h
            log_modulus += n * np.log(np.maximum(modulus, 1e-150))
            log_kept += n * np.log1p(h / np.maximum(b, 1e-150))
            costs.append((n, modulus, b_error, h_error))
            log_moment.append(n * light.log_moment)
            centre.append(n * light.centre)
        total = self._jumps()
        norm = -math.expm1(-total)
        many = np.exp(log_b + jumps - total) - np.exp(log_b - total)
        few = np.exp(log_b - total) * np.expm1(np.where(jumps.real > 1.0, 0.0, jumps))
        g = np.where(jumps.real > 1.0, many, few) / norm
        d = -np.expm1(-log_kept)
        log_modulus = np.minimum(log_modulus, 0.7)  # it exceeds zero by rounding only
        size = np.abs(g)
        error = size * np.expm1(relative) + np.exp(log_modulus) * np.expm1(drift) / norm
        for n, modulus, b_error, h_error in costs:
            error += n * np.exp(log_modulus) / np.maximum(modulus, 1e-150) * (h_error + b_error * d) / norm
        error = 1.01 * error + 1e-140 / norm
        error = np.minimum(np.where(log_modulus < 0.7, error, math.inf), size + 1.0 + error[0])  # |G| <= N
        if not (np.isfinite(g).all() and np.isfinite(error).all()):
            return None
        z = theta + 1j * u
        kernel = 1.0 / (z * (z + 1))
        kernel[0] *= 0.5
        weight = np.abs(kernel)
        centre_size = sum(abs(x) for x in centre)
        logs = np.abs(log_b.real) + 2 * np.abs(log_b.imag) + 2 * np.abs(jumps) + total
        rounding = error + EPS * size * (number + 40 + logs + 4 * u * centre_size)
        log_n = [*log_moment, total, math.log(norm)]
        return Inversion(
            theta=theta,
            log_moment=math.fsum(log_n),
            log_moment_error=8 * EPS * (1 + sum(abs(x) for x in log_n)) + 16 * EPS * total * len(self.rows),
            centre=math.fsum(centre),
            step=step,
            terms=np.asarray(g * kernel, dtype=np.complex128),
            noise=float(step / math.pi * np.dot(weight, rounding)) * 1.02,
            phase_noise=float(step / math.pi * np.dot(weight * size, 4 * EPS * u)) * 1.02,
            tail=math.exp(log_tail) / (math.pi * float(u[-1])) * 1.02,
            tilts=tilts,
            saddle=epsilon,
        )
