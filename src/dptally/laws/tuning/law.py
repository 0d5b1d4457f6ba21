r"""What the best of K runs reveals, from the profile of one run.

With c = ``log_ratio`` of one run's guarantee, the winner's pair (A, A') has, for every real eps, L the loss of a run,

    A(S) - e^eps A'(S) <= int f'(F_P) (p - e^{eps - c} q)+ <= E[ f'(U) (1 - e^{eps - c - L})+ ],   L = F_L^-1(U)

[Hardy, Littlewood: the integral of a product is largest where both factors grow together]. The right side is the
profile of a law: its loss exceeds x + c with probability hit(P(L > x)), and it is 0 where nothing was run. It is never
above m delta(eps - c) [Koskela, Redberg, Wang 2024], since f' <= m. Proofs in docs/tuning.md.

Renyi [Papernot, Steinke 2022, Thm. 2 and 6, with the profile in the place of a second Renyi divergence]:

    K_A(t) <= log m + K(t) + t ``order_cost``(delta(a))     where a is small enough (``passes``),

and less for a Poisson number of runs (``Runs.log_moment``; docs/tuning.md, theorem 5). K is that of the finite losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.law import Composition, Law, MomentBound
from dptally.law.law import Numbers
from dptally.laws.atoms import AtomicLaw
from dptally.laws.guaranteed import law_of_masses, staircase
from dptally.laws.moment_bound import real_orders
from dptally.laws.tuning.runs import Runs
from dptally.numerics.rounding import EPS, down, up

__all__ = ["MOMENT_ORDERS", "TUNING_THEOREM", "TunedLaw", "log_ratio", "moment_upper", "moments_at", "tuned_table"]

TUNING_THEOREM = (
    "Koskela, Redberg, Wang 2024, Privacy profiles for private selection (arXiv 2402.06701), with a smaller ratio and "
    "the comonotone bound (docs/tuning.md); Papernot, Steinke 2022, Thm. 2 and 6, for Renyi divergences"
)
MOMENT_ORDERS = np.geomspace(1e-2, 4e3, 257)


@dataclass(frozen=True, slots=True)
class TunedLaw(MomentBound):
    """The best of ``runs`` runs of a plan given by its directions; the same law in both directions.

    ``profile``: (epsilon, delta) of one run, upper bounds in both directions. ``table`` dominates the winner's pair.
    """

    inner: tuple[Composition, ...]
    runs: Runs
    profile: tuple[tuple[float, float], ...] = field(repr=False, compare=False)
    table: AtomicLaw = field(repr=False, compare=False)
    theorem: ClassVar[str] = TUNING_THEOREM

    def dominating(self) -> Law | None:
        return self.table

    def log_moment(self, t: Numbers) -> Numbers:
        """K at t > 0; D_a grows with a, so below the best order its divergence serves. On [-1, 0] K is at most 0."""
        t = real_orders(self, t)
        shape, flat = t.shape, np.atleast_1d(t).ravel()
        best, divergence = _least(self)
        out = np.zeros(flat.shape)
        some = flat > 0
        out[some] = np.where(flat[some] < best, up(flat[some] * divergence, 2), self._moment(flat[some]))
        return out.reshape(shape)

    def _moment(self, t: Floats) -> Floats:
        passes, costs = _order_costs(self)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            least = down(1.0 + 1.0 / t, 4)
            at = np.searchsorted(passes, least, "right")
            cost = np.minimum(costs[np.maximum(at - 1, 0)], self.runs.order_cost(self._between(least)))
            moment = np.max([moment_upper(composition, t) for composition in self.inner], axis=0)
            total = self.runs.log_moment(t, moment, cost, _infinite(self.inner))
            bounded = up(t * self.supremum, 2)
        # the least knot is always allowed: there a = 1
        return np.minimum(np.where((at > 0) & ~np.isnan(total), total, np.inf), bounded)

    def _between(self, a: Floats) -> Floats:
        """Upper bounds of delta at a = e^eps >= 1: chords, since it is convex in a."""
        epsilon, delta = np.array(self.profile).T
        with np.errstate(over="ignore"):
            knots = np.minimum(np.exp(epsilon), 1e300)
        return np.asarray(up(np.interp(a * (1 - 8 * EPS), knots, delta), 16))

    @property
    def mean(self) -> float:
        """An upper bound of the KL divergence: the least Renyi divergence."""
        return _least(self)[1]

    @property
    def infinity_mass(self) -> float:
        """hit(p), where one run loses everything with probability p."""
        mass = _infinite(self.inner)
        return min(1.0, float(self.runs.hits(np.array([mass]), np.zeros(1))[1][0])) if mass > 0 else 0.0

    @property
    def supremum(self) -> float:
        """The largest loss of a run, which the table need not reach, and c."""
        return max(up(_largest(self.inner) + _shift(self), 2), 0.0)

    @property
    def infimum(self) -> float:
        return -self.supremum

    def _undetermined(self, what: str) -> Unanswerable:
        return Unanswerable(
            f"the best of a random number of runs depends on how runs are ranked, which leaves {what} open; "
            "ask epsilon(delta=...), delta(epsilon=...) or renyi(order) for a bound over all rankings"
        )


def tuned_table(epsilon: Floats, delta: Floats, runs: Runs) -> AtomicLaw:
    """The law above, where one run keeps these guarantees in both directions; epsilon increases from 0."""
    steps = staircase(epsilon, delta)
    shift = log_ratio(epsilon, delta, runs)
    masses = runs.hits(steps.before, steps.tails)[1]
    infinite = float(runs.hits(steps.tails[-1:], np.zeros(1))[1][0]) if steps.tails[-1] > 0 else 0.0
    losses = up(steps.knots + shift)
    if runs.none > 0:
        losses, masses = np.append(losses, 0.0), np.append(masses, runs.none)
    return law_of_masses(losses, masses, min(1.0, infinite), TUNING_THEOREM)


def log_ratio(epsilon: Floats, delta: Floats, runs: Runs) -> float:
    """The least c that a table of guarantees gives: at its knots, and between two of them on the chord in e^eps."""
    with np.errstate(over="ignore"):
        a = up(np.exp(epsilon), 4).tolist()  # infinite where no double holds it, and of no use there
    best = min(runs.log_ratio(x, d) for x, d in zip(a, delta.tolist(), strict=True))
    for j in range(len(epsilon) - 1):
        fall, gap = float(delta[j] - delta[j + 1]), a[j + 1] - a[j]
        if not (fall > 0 and 0 < gap < math.inf):
            continue
        slope = fall / gap
        at = runs.crossing(float(delta[j]) + slope * a[j], slope)
        if a[j] < at < a[j + 1]:
            loss = math.log(at)
            share = math.expm1(loss - float(epsilon[j])) / math.expm1(float(epsilon[j + 1] - epsilon[j]))
            chord = up(float(delta[j]) - fall * min(max(down(share, 64), 0.0), 1.0), 4)
            best = min(best, runs.log_ratio(up(math.exp(loss), 4), chord))
    return best


def moment_upper(composition: Composition, t: Floats) -> Floats:
    """An upper bound of K(t), t > 0: chords of a table, since K is convex with K(0) <= 0; beyond it K itself."""
    table = moments_at(composition)
    chord = np.interp(t, np.append(0.0, MOMENT_ORDERS), np.append(0.0, table))
    chord = np.where(np.isnan(chord), np.inf, up(chord, 16))
    beyond = t > MOMENT_ORDERS[-1]
    if beyond.any():
        chord[beyond] = _moments(composition, t[beyond])
    return chord


@lru_cache(maxsize=64)
def moments_at(composition: Composition) -> Floats:
    """Upper bounds of K at MOMENT_ORDERS."""
    return _moments(composition, MOMENT_ORDERS)


def _moments(composition: Composition, t: Floats) -> Floats:
    """From the tables of contours where a law has them, which cost least."""
    total = np.zeros_like(t)
    with np.errstate(over="ignore", invalid="ignore"):
        for law, count in composition.parts:
            moment, error = _tabulated(law, t) if type(law).has_characteristic else _stated(law, t)
            total = total + up(count * (moment + error), 4)
        total = up(total, len(composition.parts))
    return np.maximum(np.where(np.isnan(total), np.inf, total), 0.0)


def _stated(law: Law, t: Floats) -> tuple[Floats, Floats]:
    """K as the law states it; infinite where it cannot."""
    try:
        return law.log_moment_and_error(t)
    except Unanswerable:
        return np.full(t.shape, np.inf), np.zeros(t.shape)


def _tabulated(law: Law, t: Floats) -> tuple[Floats, Floats]:
    """K and its error: one table for each factor of 4, since a wide one is infinite where its last row is."""
    moment, error = np.empty((2, *t.shape))
    group = np.floor(0.5 * np.log2(t))
    for one in np.unique(group):
        rows = group == one
        table = law.moment_table(t[rows])
        moment[rows], error[rows] = table.moment, table.error  # pyright: ignore[reportIndexIssue]
        if not np.isfinite(table.moment[-1]):  # so is K beyond
            moment[group > one], error[group > one] = np.inf, 0.0  # pyright: ignore[reportIndexIssue]
            break
    return moment, error  # pyright: ignore[reportReturnType]


@lru_cache(maxsize=64)
def _largest(inner: tuple[Composition, ...]) -> float:
    return max(composition.supremum_interval.upper for composition in inner)


@lru_cache(maxsize=64)
def _infinite(inner: tuple[Composition, ...]) -> float:
    return max(composition.infinity_mass_interval.upper for composition in inner)


@lru_cache(maxsize=64)
def _shift(law: TunedLaw) -> float:
    """c of the table."""
    epsilon, delta = np.array(law.profile).T
    return log_ratio(epsilon, delta, law.runs)


@lru_cache(maxsize=64)
def _order_costs(law: TunedLaw) -> tuple[Floats, Floats]:
    """For each guarantee: where it may be used (``passes``, made increasing) and what it costs."""
    epsilon, delta = np.array(law.profile).T
    with np.errstate(over="ignore"):
        passes = law.runs.passes(up(np.exp(epsilon), 4), delta)
    return np.maximum.accumulate(passes), law.runs.order_cost(delta)


@lru_cache(maxsize=64)
def _least(law: TunedLaw) -> tuple[float, float]:
    """(t, D) with the least Renyi divergence among some orders, D rounded up."""
    with np.errstate(invalid="ignore", over="ignore"):
        divergence = up(law._moment(MOMENT_ORDERS) / MOMENT_ORDERS, 8)
    divergence = np.where(np.isnan(divergence), np.inf, divergence)
    at = int(np.argmin(divergence))
    return float(MOMENT_ORDERS[at]), float(divergence[at])
