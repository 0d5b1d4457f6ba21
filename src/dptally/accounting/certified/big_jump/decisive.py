r"""Losses that decide alone, or nearly so: at least one beyond the last edge, whatever the other steps lose.

Derivations: docs/certificates.md, "Soft edges".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptally.accounting.certified.big_jump.contour import finite
from dptally.accounting.certified.contour.tables import tabulate_at
from dptally.accounting.certified.tuning import JumpTuning
from dptally.law import Composition, Law
from dptally.law.characteristic import SoftCut, WindowedLaw
from dptally.numerics.logspace import log_sum
from dptally.numerics.rounding import EPS, down, up

__all__ = ["Far", "Rest"]


@dataclass(frozen=True, slots=True)
class Rest:
    """What the losses of all steps, or of all but one, add up to at least; under Q less than that has a chance of
    e^log_rare at most.
    """

    least: float
    log_rare: float

    @classmethod
    def of(cls, composition: Composition, epsilon: float, tuning: JumpTuning) -> Rest:
        """The sum of the least losses where that is small beside eps; else what -L, under Q the loss of the other
        direction, rarely exceeds in any step, summed; or by Chernoff's bound of the sum, K(s) >= 0 of each step there,
        so that one step less only makes it smaller.
        """
        exact = cls(composition.infimum, -math.inf)
        if -exact.least <= tuning.small * epsilon:
            return exact
        others = [(law.reverse(), n) for law, n in composition.parts]
        turned = [(law, n) for law, n in others if law is not None]
        if len(turned) < len(others):
            return exact
        log_rare = min(tuning.log_rare, 0.0)
        each = [_rarely(law, log_rare - math.log(composition.steps)) for law, _ in turned]
        depth = math.fsum(n * x for x, (_, n) in zip(each, turned, strict=True))
        if tuning.far_off * epsilon < depth < math.inf:
            table = finite(tabulate_at(turned, np.geomspace(10.0 / depth, 60.0 / max(each), 16)))
            chernoff = (table.moment + table.error - log_rare) / table.theta
            depth = min(depth, float(chernoff.min(initial=math.inf)))
        level = -depth * (1 + 1e-9)
        return cls(level, log_rare + 1e-6) if level > exact.least else exact

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
class Far:
    """At least one loss beyond the last edge: E[(1 - e^{eps - L})+] = P - e^eps Q + E_Q[(e^eps - e^L)+], and the last
    term, of losses that do not decide alone after all, is bounded by the edge.
    """

    parts: list[tuple[WindowedLaw, int, float]]  # a band, its count, and what the other steps lose at least
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
        leak = log_sum([*leaks, self.log_rare])
        blur = 8 * EPS * (2 + abs(epsilon) + abs(top) + abs(self.log_q[0]))
        low = p_low - q_high - blur * (p_low + q_high)
        high = min(p_high, max(0.0, p_high - q_low + math.exp(min(leak + epsilon - top, 1.0))))
        high = min(1.0, high + blur * (p_high + q_high))
        return (math.log(low) + top if low > 0 else -math.inf), math.log(high) + top

    @classmethod
    def of(cls, composition: Composition, rest: Rest, edge: SoftCut | None) -> Far | None:
        """P and Q of at least one loss beyond the last edge: 1 - prod (1 - p_i)^n_i."""
        parts: list[tuple[WindowedLaw, int, float]] = []
        if edge is None:
            return cls(parts, -math.inf, (-math.inf, -math.inf), (-math.inf, -math.inf))
        together: list[float] = []
        logs: list[list[float]] = [[], [], [], []]
        for law, n in composition.parts:
            band = law.band(edge, None)
            if band is None:
                continue
            parts.append((band, n, rest.beside(law)))
            p, q = band.characteristic(0.0, 0.0, -34.0), band.characteristic(-1.0, 0.0, -34.0)
            if p is None or q is None:
                return None
            for row, mass in ((0, p), (2, q)):
                for side, sign in ((0, -1.0), (1, 1.0)):
                    logs[row + side].append(_log_some(mass.log_moment + sign * mass.log_moment_error, n))
            together.append(q.log_moment + q.log_moment_error + math.log(n))
        ends = [_log_any(values) for values in logs]
        blur = 32 * EPS * (4 + len(parts))
        return cls(
            parts,
            rest.log_rare + log_sum(together) + 1e-9 if together else -math.inf,
            (ends[0] - blur * (1 + abs(ends[0])), ends[1] + blur * (1 + abs(ends[1]))),
            (ends[2] - blur * (1 + abs(ends[2])), ends[3] + blur * (1 + abs(ends[3]))),
        )


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
        return log_sum(logs)
    if most > -1e-15:  # one of them is certain, up to rounding
        return most
    return math.log(-math.expm1(math.fsum(math.log1p(-math.exp(x)) for x in logs)))
