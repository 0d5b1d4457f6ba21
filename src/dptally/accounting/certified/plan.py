"""One direction of a plan with what several routes want to know of it: each fact is computed once, when first asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dptally.accounting import renyi
from dptally.accounting.certified.big_jump import plan as jumps
from dptally.accounting.certified.contour import chernoff, inversion
from dptally.accounting.certified.contour.compiled import ready
from dptally.accounting.certified.contour.tables import tabulate_at
from dptally.accounting.certified.tuning import STANDARD, Tuning
from dptally.accounting.moments import log_moment_upper
from dptally.interval import Interval
from dptally.law import Composition, Law
from dptally.law.law import Floats
from dptally.numerics.rounding import EPS, down, up

if TYPE_CHECKING:
    from dptally.accounting.certified.lattice.enumeration import Enumerated

__all__ = ["Plan"]


class Plan:
    """A composition of laws that have a dominating pair. ``floor``: an answer certainly not above it decides nothing.

    ``tuning``: the choices of all routes. ``quick``: no lattice is asked.
    """

    def __init__(
        self, composition: Composition, floor: float = 0.0, tuning: Tuning = STANDARD, *, quick: bool = False
    ) -> None:
        self.composition = composition
        self.floor = floor
        self.tuning = tuning
        self.quick = quick
        self._chernoff: dict[tuple[str, float], float] = {}

    def above(self, floor: float) -> Plan:
        """The same plan with another floor, and with all that is known of it."""
        other = copy(self)
        other.floor = floor
        return other

    @property
    def parts(self) -> tuple[tuple[Law, int], ...]:
        return self.composition.parts

    @cached_property
    def steps(self) -> int:
        return self.composition.steps

    @cached_property
    def supremum(self) -> Interval:
        """Bounds of the largest finite loss."""
        return self.composition.supremum_interval

    @cached_property
    def infinity_mass(self) -> Interval:
        return self.composition.infinity_mass_interval

    @cached_property
    def transformable(self) -> bool:
        """Every law has a characteristic function."""
        return all(type(law).has_characteristic for law, _ in self.parts)

    @cached_property
    def cuttable(self) -> bool:
        """Rare large losses can be counted apart."""
        return jumps.applies(self.composition)

    @cached_property
    def has_few_outcomes(self) -> bool:
        """Whether a list of all outcomes costs less than contours and lattices: few steps, or few values."""
        few = self.tuning.outcomes
        if self.steps <= few.few_steps:
            return True
        if len(self.parts) > few.few_laws:
            return False
        lists = [(law.listed_atoms(), n) for law, n in self.parts]
        if any(listed is None or not 0 < len(listed.low) <= few.few_values for listed, _ in lists):
            return False
        values = ((len(listed.low), n) for listed, n in lists if listed is not None)
        return math.prod(math.comb(n + number - 1, number - 1) for number, n in values) <= few.few_outcomes

    @cached_property
    def enumerated(self) -> Enumerated | None:
        """All outcomes of the whole plan with their probabilities, where they are few."""
        from dptally.accounting.certified.lattice.enumeration import enumerated

        return enumerated(self.composition, self.tuning.outcomes)

    def chernoff_log_delta(self, epsilon: float) -> float:
        """An upper bound of log of the finite part of delta(eps): min over t of K(t) - t eps + log c(t)."""
        return self._once("log delta", epsilon, self._chernoff_log_delta)

    def chernoff_epsilon(self, log_delta: float) -> float:
        """An upper bound of the smallest eps >= 0 whose finite delta is at most exp(log_delta)."""
        return self._once("epsilon", log_delta, self._chernoff_epsilon)

    def is_below_floor(self, log_delta: float) -> bool:
        """Whether a few tilts show that eps is at most the floor: Chernoff's bound there, or a contour through one,
        first with the modulus of its integrand.

        delta falls with eps: where it is at most the target at the floor, eps is at most the floor.
        """
        known = ready(self.parts)
        if known is not None:
            return known.is_below(self.floor, log_delta, self.tuning.below)
        with np.errstate(all="ignore"):
            rows = chernoff.glance(self.composition, log_delta, self.floor, self.tuning.below)
            bounds = chernoff.epsilon_bounds(rows, log_delta)
            if not np.isfinite(bounds).all():
                return False
            if float(bounds.min()) <= self.floor:
                return True
            row = int(np.argmin(bounds))
            if chernoff.log_modulus(self.parts, rows, row, self.floor, self.tuning.below) <= log_delta:
                return True
            if len(self.parts) > 1:
                return False
            contour = inversion.at_row(self.composition, rows, row, self.floor, self.tuning.below)
            return contour is not None and contour.log_delta(self.floor).upper <= log_delta

    def _once(self, name: str, at: float, function: Callable[[float], float]) -> float:
        key = name, at
        if key not in self._chernoff:
            with np.errstate(all="ignore"):
                self._chernoff[key] = function(at)
        return self._chernoff[key]

    def _chernoff_log_delta(self, epsilon: float) -> float:
        if self.transformable:
            return chernoff.chernoff_log_delta(self.composition, epsilon, self.tuning.contour)
        bound, _ = renyi.best_delta(
            lambda t: log_moment_upper(self.composition, t), epsilon, orders=self._orders(-100.0)
        )
        return min(bound, 0.0)

    def _chernoff_epsilon(self, log_delta: float) -> float:
        if self.transformable:
            bound = chernoff.chernoff_epsilon(self.composition, log_delta, self.tuning.contour)
        else:
            delta = math.exp(log_delta)
            if delta < 1e-300:  # 1/delta would overflow
                return self.supremum.upper
            bound, _ = renyi.best_epsilon(
                lambda t: log_moment_upper(self.composition, t), down(delta, 1024.0), orders=self._orders(log_delta)
            )
        return min(bound, self.supremum.upper)

    def _orders(self, log_delta: float) -> Floats | None:
        """Orders for bounded losses whose moments are integrals that cost more with the order: the last is within 1 %.

        Of eps at order 1 + t all but -log(delta) / t is the exponent's slope, which is at most the largest loss.
        """
        largest = self.supremum.upper
        if not 0 < largest < math.inf:
            return None
        low, high, number = self.tuning.exits.order_range
        return np.asarray(1.0 + np.geomspace(low, high * (1.0 - log_delta), number) / largest)

    def log_total_variation(self) -> float:
        """An upper bound of the log of the finite part of delta(0). docs/certificates.md, "Early exits".

        With P_j the finite losses of a step (a measure of mass 1 - p_j) and Q_j its other side,

            P_1 P_2 - Q_1 Q_2 = (P_1 - Q_1) P_2 + Q_1 (P_2 - Q_2),

        so the positive parts add up at most: delta(0) <= sum of n_j delta_j(0), finite parts only, mass at infinity or
        not. And with p the mass at infinity of all, P' = P / (1 - p) is a distribution whose log-moment is
        K(t) - (1 + t) log(1 - p), at least t times its KL divergence for every t > 0; with Pinsker's inequality

            (P - Q)+ <= (P' - Q)+ <= sqrt(KL(P', Q) / 2),   KL <= (K(t) - log(1 - p)) / t - log(1 - p).
        """
        parts = self.parts
        total = math.fsum(n * math.exp(float(law.log_profile(np.zeros(1))[1][0])) for law, n in parts)
        bound = up(math.log(up(total, 8)), 2) if total > 0 else -math.inf
        missing = self.infinity_mass.upper
        if not self.transformable or missing >= 1:
            return bound
        rows = tabulate_at(parts, np.geomspace(*self.tuning.exits.pinsker))
        survived = up(-math.log1p(-missing), 4) if missing > 0 else 0.0
        with np.errstate(all="ignore"):
            shifted = rows.moment + rows.error + survived
            shifted += 4 * EPS * (np.abs(rows.moment) + rows.error + survived)
            divergence = (shifted / rows.theta + survived) * (1 + 8 * EPS)
        least = float(np.nanmin(divergence)) if np.isfinite(divergence).any() else math.inf
        if 0 < least < math.inf:
            bound = min(bound, up(0.5 * math.log(up(0.5 * least, 8)), 4))
        return bound

    def near_the_supremum(self, log_delta: float) -> float:
        """A lower bound of eps from steps that all lose nearly the most they can; 0 where losses are unbounded.

        For x below the largest loss s of a step, p(x) = P(L > x) >= delta_1(x) / (1 - e^{x - s}); so with X the sum of
        the x, delta(eps) >= prod p(x) (1 - e^{eps - X}), which exceeds the target below X + log(1 - target / prod p).
        """
        parts = self.parts
        boxes = [law.supremum_interval for law, _ in parts]
        if not 0 < self.supremum.lower < math.inf or any(not 0 < box.lower <= box.upper < math.inf for box in boxes):
            return 0.0
        short = np.geomspace(*self.tuning.exits.short)
        reached, log_p, doubt = np.zeros((3, len(short)))
        with np.errstate(all="ignore"):
            for (law, n), box in zip(parts, boxes, strict=True):
                x = box.lower * (1 - short)
                log_most = np.log(-np.expm1(-(box.upper - x) * (1 + 4 * EPS)))
                log_p += n * (law.log_profile(x)[0] - log_most)
                doubt += n * 8 * EPS * (1 + np.abs(log_most))
                reached += n * x
            ratio = np.exp(log_delta - log_p + doubt + 16 * EPS * (1 + np.abs(log_p) + abs(log_delta)))
            bounds = (reached + np.log1p(-ratio)) - 8 * EPS * (len(parts) + 4) * reached
        return float(np.nanmax(np.where(ratio < self.tuning.exits.most_ratio, bounds, 0.0), initial=0.0))
