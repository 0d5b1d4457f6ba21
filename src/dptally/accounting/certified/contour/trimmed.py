r"""Point masses without their rarest large losses: what no single tilt reaches, and what hardly matters, is left out.

Of a law whose atoms are listed, move every loss of an event of probability at most p to infinity, and call the law of
what stays finite the trimmed one. With n_j steps of law j, some step takes part in such an event with probability at
most sum n_j p_j, and otherwise all steps have the losses of the trimmed laws. So, finite losses throughout,

    delta_trimmed(eps)  <=  delta(eps)  <=  delta_trimmed(eps) + sum over j of n_j p_j.

The trimmed laws are measures of mass at most one with bounded losses: their moments do not explode beyond the saddle,
and contours of them have short periods. docs/certificates-smoothing.md, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dptally.law import Law
from dptally.law.characteristic import MomentTable, NodeCharacteristic
from dptally.numerics.arrays import Floats
from dptally.numerics.rounding import EPS

__all__ = ["TrimmedAtoms", "TrimmedParts", "trimmed"]

_LEAST_MASS = 1e-290  # below, the product of a mass and its error leaves double range
_KNOWN = 1e-6  # relative error up to which a mass counts as known
_BLURRED = 1e-3  # tilt times loss error from which on nothing is said
_MOST_ATOMS = 1 << 13


@dataclass(frozen=True, slots=True)
class TrimmedAtoms:
    """Atoms at ``loss`` -/+ ``blur`` with masses exp(``log_mass``), each right to ``slip`` relatively.

    |log of a computed mass e^{theta l} - true| <= slip + theta blur + rounding =: e, and K, the log of a sum of such,
    is the log of a mean of factors between e^-e and e^e: it errs by at most the tilted mean of e^e - 1 <= 1.01 e.
    """

    loss: Floats
    blur: Floats
    log_mass: Floats
    slip: Floats

    @property
    def supremum(self) -> float:
        return float(self.loss.max())

    def _errors(self, theta: float, exponent: Floats) -> Floats:
        """e of each atom: slip, blur, two roundings of the product, one of the sum, exp and a quotient."""
        return np.asarray(
            self.slip + theta * self.blur + EPS * (16 + 2 * np.abs(exponent) + 2 * np.abs(theta * self.loss))
        )

    def _tilted(self, theta: float) -> tuple[Floats, Floats, float, float]:
        """(weights, their relative errors, K, its error)."""
        exponent = self.log_mass + theta * self.loss
        top = float(exponent.max())
        raw = np.exp(exponent - top)
        total = math.fsum(raw)
        weights, error = raw / total, self._errors(theta, exponent)
        moment = top + math.log(total)
        blur = 1.01 * float(np.dot(weights, error)) + 4 * EPS * (1 + abs(moment) + abs(top))
        return weights, error, moment, blur if theta * float(self.blur.max()) < _BLURRED else math.inf

    def moment_table(self, theta: Floats) -> MomentTable:
        """K at real tilts with error bounds, infinite where losses are too blurred for the tilt."""
        rows = []
        for tilt in theta.tolist():
            weights, _, moment, error = self._tilted(tilt)
            first = float(np.dot(weights, self.loss))
            second = float(np.dot(weights, (self.loss - first) ** 2))
            rows.append((moment if error < math.inf else math.inf, error, first, second))
        return MomentTable(theta, *np.array(rows).reshape(-1, 4).T)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> NodeCharacteristic | None:
        """The atoms are the nodes, for every u."""
        del reach, log_tolerance
        weights, weight_error, moment, error = self._tilted(theta)
        if not error < math.inf:
            return None
        return NodeCharacteristic.of(
            self.loss,
            weights,
            loss_error=self.blur,
            weight_error=weight_error,
            defect=0.0,
            log_moment=moment,
            log_moment_error=error,
        )

    def log_decay(self, theta: float, start: Floats) -> Floats:
        """Atoms: |phi| <= 1."""
        del theta
        return np.zeros_like(start)


@dataclass(frozen=True, slots=True)
class TrimmedParts:
    """The laws of a plan, some of them trimmed, and log of a bound of the chance that a step lost what was moved."""

    parts: tuple[tuple[Law | TrimmedAtoms, int], ...]
    log_moved: float


def trimmed(parts: Sequence[tuple[Law, int]], log_floor: float) -> TrimmedParts | None:
    """As much of the largest losses moved to infinity as has at most the probability exp(log_floor) in all steps; None
    where that changes no law.
    """
    rows: list[tuple[Law | TrimmedAtoms, int]] = []
    moved: list[float] = []
    for law, count in parts:
        found = _trimmed(law, math.exp(max(log_floor, -700.0)) / (len(parts) * count))
        rows.append((law if found is None else found[0], count))
        moved += [] if found is None else [count * found[1]]
    total = math.fsum(moved)
    return TrimmedParts(tuple(rows), math.log(total) + 1e-9) if total > 0 else None


def _trimmed(law: Law, budget: float) -> tuple[TrimmedAtoms, float] | None:
    """The law without its largest losses, and what they have at most; None where nothing is left out, or more would
    have to be than the budget allows.
    """
    listed = law.listed_atoms()
    if listed is None or not 0 < len(listed.low) <= _MOST_ATOMS:
        return None
    order = np.argsort(listed.high)
    low, high, least, most = (column[order] for column in (listed.low, listed.high, listed.least, listed.most))
    missed = math.exp(min(listed.log_missed, 0.0)) * (1 + 1e-9)
    unknown = ~((least > _LEAST_MASS) & (most - least < _KNOWN * least))
    missed += float(most[unknown].sum()) * (1 + 1e-9)
    tail = np.cumsum(np.where(unknown, 0.0, most)[::-1])[::-1] * (1 + 1e-9)
    rare = (missed + tail <= budget) & (high > 0)
    kept = ~(unknown | rare)
    left_out = missed + (float(tail[rare][0]) if rare.any() else 0.0)
    if not 0 < left_out <= budget or not kept.any():
        return None
    low, high, least, most = (column[kept] for column in (low, high, least, most))
    middle, mass = 0.5 * (low + high), 0.5 * (least + most)
    blur = 0.5 * (high - low) + EPS * np.abs(middle)
    slip = 0.51 * (most - least) / least + EPS * (8 + 4 * np.abs(np.log(mass)))
    return TrimmedAtoms(middle, blur, np.log(mass), np.asarray(slip)), left_out
