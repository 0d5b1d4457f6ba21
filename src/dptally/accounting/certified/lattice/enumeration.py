"""Few losses of few values: every sum of losses by itself, with its probability, both bounded from either side.

Each step is a list of atoms whose losses and probabilities are known between two doubles; sums are rounded outwards
and products widened by two ulps. Sums that agree to 1e-14 of the largest become one atom, from the least of their
positions to the greatest. Every (1 - e^{eps - loss})+ grows with its loss, so the upper ends of positions and
probabilities bound delta from above and the lower ends from below, and with them what was left out of an infinite list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptally.accounting.certified.tuning import STANDARD, OutcomeTuning
from dptally.law import Composition
from dptally.law.law import Floats
from dptally.laws.atoms import log_atomic_profile
from dptally.numerics.logspace import log_sum
from dptally.numerics.rounding import EPS, SMALLEST, down, up

__all__ = ["Enumerated", "enumerated"]


@dataclass(frozen=True, slots=True)
class _Atoms:
    """Positions between ``low`` and ``high``, probabilities between ``least`` and ``most``."""

    low: Floats
    high: Floats
    least: Floats
    most: Floats

    def plus(self, other: _Atoms, tuning: OutcomeTuning) -> _Atoms | None:
        if len(self.low) * len(other.low) > tuning.most_pairs:
            return None
        least = (self.least[:, None] * other.least).ravel() * (1 - 2 * EPS)
        return _Atoms(
            down((self.low[:, None] + other.low).ravel()),
            up((self.high[:, None] + other.high).ravel()),
            np.where(least > 1e-300, least, 0.0),  # where it may have underflowed nothing is claimed
            (self.most[:, None] * other.most).ravel() * (1 + 2 * EPS) + SMALLEST,
        ).merged(tuning)

    def merged(self, tuning: OutcomeTuning) -> _Atoms | None:
        """Atoms at the same place made one; None where too many are left."""
        size = float(np.abs(self.high).max(initial=0.0))
        same = tuning.same * size
        place = np.floor(self.low / same) if same > 0 else np.zeros(len(self.low))
        order = np.argsort(place, kind="stable")
        starts = np.nonzero(np.append(True, np.diff(place[order]) != 0))[0]
        if len(starts) > tuning.most_sums:
            return None
        most = int(np.diff(np.append(starts, len(order))).max(initial=1))
        return _Atoms(
            np.minimum.reduceat(self.low[order], starts),
            np.maximum.reduceat(self.high[order], starts),
            np.add.reduceat(self.least[order], starts) * (1 - most * EPS),
            np.add.reduceat(self.most[order], starts) * (1 + most * EPS),
        )

    def times(self, count: int, tuning: OutcomeTuning) -> _Atoms | None:
        """The sum of ``count`` copies, by squaring."""
        total: _Atoms | None = None
        square: _Atoms | None = self
        while True:
            if square is None:
                return None
            if count & 1:
                total = square if total is None else total.plus(square, tuning)
                if total is None:
                    return None
            count >>= 1
            if not count:
                return total
            square = square.plus(square, tuning)


@dataclass(frozen=True, slots=True)
class Enumerated:
    """The finite loss of a whole plan as atoms; what it leaves out has at most the probability exp(log_beyond)."""

    atoms: _Atoms
    log_beyond: float
    supremum: float

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Certified bounds of log delta at each eps."""
        rise, fall = np.argsort(self.atoms.high), np.argsort(self.atoms.low)
        upper = log_atomic_profile(self.atoms.high[rise], self.atoms.most[rise], epsilon)[1]
        lower = log_atomic_profile(self.atoms.low[fall], self.atoms.least[fall], epsilon)[0]
        if self.log_beyond > -math.inf:
            upper = np.logaddexp(upper, self.log_beyond) + 4 * EPS * (1 + abs(self.log_beyond))
        return lower, np.minimum(upper, 0.0)


def enumerated(composition: Composition, tuning: OutcomeTuning = STANDARD.outcomes) -> Enumerated | None:
    """The atoms of the sum of all losses; None where a law has no short list or the sum would have too long a one."""
    total: _Atoms | None = None
    beyond: list[float] = []
    for law, count in composition.parts:
        if count > 4 * tuning.most_sums:
            return None
        listed = law.listed_atoms()
        if listed is None or not 0 < len(listed.low) <= tuning.most_sums:
            return None
        power = _Atoms(listed.low, listed.high, listed.least, listed.most).times(count, tuning)
        if power is None:
            return None
        total = power if total is None else total.plus(power, tuning)
        if total is None:
            return None
        beyond.append(math.log(count) + listed.log_missed)
    if total is None or not len(total.low) or not np.isfinite(total.high).all():
        return None
    log_beyond = log_sum(beyond)
    return Enumerated(total, _rounded_up(log_beyond), composition.supremum)


def _rounded_up(log: float) -> float:
    return log + 8 * EPS * (1 + abs(log)) if log > -math.inf else log
