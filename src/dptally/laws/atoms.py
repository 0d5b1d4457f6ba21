"""A privacy loss with finitely many values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.law import Numbers
from dptally.laws.quadrature.losses import LossNodes, divergence
from dptally.numerics.rounding import EPS, up

__all__ = ["PAIR_THEOREM", "AtomicLaw", "log_atomic_profile", "scaled_profile"]

PAIR_THEOREM = "Zhu, Dong, Wang 2022, Optimal accounting of DP via characteristic function, Prop. 8"
_BLOCK = 64


@dataclass(frozen=True, slots=True)
class AtomicLaw(Law):
    """Point masses ``(loss, mass)`` in increasing order of loss, and a mass at infinity; symmetric.

    The doubles given are the law: whoever builds it makes sure that they dominate what they stand for, and
    states how far they may be above it: masses by a relative ``excess``, losses by ``loss_excess``. The
    lower bound of the profile is lowered by as much.
    """

    points: tuple[tuple[float, float], ...]
    mass_at_infinity: float = 0.0
    excess: float = 0.0
    loss_excess: float = 0.0
    cited: str = PAIR_THEOREM

    @property
    def theorem(self) -> str:  # type: ignore[override]
        """Where the atoms come from."""
        return self.cited

    def log_moment(self, t: Numbers) -> Numbers:
        t = np.asarray(t)
        if not self.points:
            return np.full(t.shape, -np.inf, dtype=np.result_type(t.dtype, np.float64))
        return self._nodes().log_moment(np.atleast_1d(t).ravel()).reshape(t.shape)

    def _nodes(self) -> LossNodes:
        loss, mass = self.columns()
        log_mass, infinite = np.log(mass), self.mass_at_infinity
        return LossNodes(log_mass, loss, divergence(log_mass, loss), infinite, infinite)

    def columns(self) -> tuple[Floats, Floats]:
        """(losses, masses)."""
        table = np.array(self.points, dtype=np.float64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    @property
    def mean(self) -> float:
        return math.fsum(loss * mass for loss, mass in self.points)

    @property
    def infinity_mass(self) -> float:
        return self.mass_at_infinity

    @property
    def supremum(self) -> float:
        return self.points[-1][0] if self.points else -math.inf

    @property
    def infimum(self) -> float:
        return self.points[0][0] if self.points else math.inf

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        lower, upper = log_atomic_profile(*self.columns(), epsilon)
        if self.loss_excess:
            lower = log_atomic_profile(*self.columns(), np.asarray(up(epsilon + self.loss_excess)))[0]
        return lower - self.excess, np.minimum(upper, 0.0)

    def tail(self, loss: Floats) -> Floats:
        at, mass = self.columns()
        beyond = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
        return beyond[np.searchsorted(at, loss, side="right")]

    def atoms(self) -> tuple[tuple[float, float], ...]:
        return self.points


def log_atomic_profile(loss: Floats, mass: Floats, epsilon: Floats) -> tuple[Floats, Floats]:
    """Certified bounds of log sum of mass (1 - e^{eps - loss})+ for losses in increasing order."""
    total, scale, relative = scaled_profile(loss, mass, np.atleast_1d(epsilon).ravel())
    known = total > 0
    log_total, log_scale = np.log(np.where(known, total, 1.0)), np.log(np.where(known, scale, 1.0))
    value = np.where(known, log_total + log_scale, -np.inf)
    step = np.where(known, relative + EPS * (2.0 + 2.0 * np.abs(log_total) + 2.0 * np.abs(log_scale)), 0.0)
    return (value - step).reshape(epsilon.shape), (value + step).reshape(epsilon.shape)


def scaled_profile(loss: Floats, mass: Floats, epsilon: Floats) -> tuple[Floats, Floats, float]:
    """(total, scale, relative error of total): the profile at each epsilon is total * scale.

    The scale is the largest mass beyond epsilon, so nothing that matters underflows. eps - loss is rounded
    once, so each term is within 6 ulps; sums of positive terms in blocks of 64, then of the blocks, add
    half an ulp per addition.
    """
    if not loss.size:
        return np.zeros_like(epsilon), np.zeros_like(epsilon), 0.0
    largest_beyond = np.append(np.maximum.accumulate(mass[::-1])[::-1], 0.0)
    scale = largest_beyond[np.searchsorted(loss, epsilon, side="right")]
    total = np.zeros_like(epsilon)
    blocks = -(-loss.size // _BLOCK)
    rows = max(1, (1 << 20) // loss.size)
    for start in range(0, epsilon.size, rows):
        part = slice(start, start + rows)
        gap = np.minimum(epsilon[part, None] - loss, 0.0)
        safe = np.where(scale[part] > 0, scale[part], 1.0)[:, None]
        table = np.zeros((gap.shape[0], blocks * _BLOCK))
        with np.errstate(under="ignore", over="ignore"):
            table[:, : loss.size] = np.where(gap < 0, mass / safe, 0.0) * -np.expm1(gap)
        total[part] = table.reshape(-1, blocks, _BLOCK).sum(axis=2).sum(axis=1)
    return total, scale, EPS * (6.0 + 0.5 * (_BLOCK + blocks))
