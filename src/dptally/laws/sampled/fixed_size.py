r"""Fixed-size batches of any mechanism whose pair is its own mirror image, when a record is replaced.

The losses l > 0 of the step become log A(l), A = 1 - g + g e^l, under A dQ and -log A under dQ; the rest of the mass,
(1-g)(P(l > 0) - Q(l > 0)) = (1-g) H_0, is an atom at 0 (docs/batching.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.law import Numbers
from dptally.laws.by_profile import ProfileLaw
from dptally.laws.quadrature.losses import (
    LossNodes,
    add_divergence,
    moment_and_error,
    moment_by_nodes,
    panels,
    remove_divergence,
)
from dptally.laws.sampled.gaussian.fixed_size import FIXED_SIZE_THEOREM
from dptally.laws.sampled.pair import log_profile_remove, mixture
from dptally.numerics.rounding import EPS, up

__all__ = ["FixedSizeLaw"]


@dataclass(frozen=True, slots=True)
class FixedSizeLaw(ProfileLaw):
    """``inner`` is the loss of the step for two batches that differ in one record, bounded, with atoms at its ends and
    one smooth density between them; ``rate`` g = m/n in (0, 1).
    """

    inner: Law
    rate: float
    theorem: ClassVar[str] = FIXED_SIZE_THEOREM

    def reverse(self) -> FixedSizeLaw:
        return self

    @property
    def supremum(self) -> float:
        largest = self.inner.supremum
        return up(float(mixture(self.rate, np.array([largest]))[1][0]), 8) if np.isfinite(largest) else largest

    @property
    def infimum(self) -> float:
        return -self.supremum

    # -- the log-moment ------------------------------------------------------------------------------------

    def log_moment(self, t: Numbers) -> Numbers:
        """K(t) from the atoms and Gauss-Legendre panels of the density."""
        return moment_by_nodes(self.nodes, t)

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        return moment_and_error(self.nodes, t)

    @property
    def mean(self) -> float:
        return self.nodes(np.zeros(1), 1.0).mean

    def nodes(self, tilts: Floats, frequency: float = 0.0) -> LossNodes:
        """The rule that integrates e^{tL} for Re t in ``tilts`` and \\|Im t\\| <= ``frequency``."""
        modulus = math.hypot(float(np.abs(tilts).max()), frequency)
        atoms = np.array([atom for atom in self.inner.atoms() if atom[0] > 0]).reshape(-1, 2)
        points, weights = panels(0.0, self.inner.supremum, modulus)
        inner = np.concatenate((atoms[:, 0], points))
        log_base = np.log(np.concatenate((atoms[:, 1], weights * self.inner.density(points)))) - inner
        x, log_ratio = mixture(self.rate, inner)
        log_mixed = log_base + log_ratio
        middle = math.log1p(-self.rate) + float(self.inner.log_profile(np.zeros(1))[1][0])
        log_mass = np.concatenate((log_mixed, log_base, [middle]))
        loss = np.concatenate((log_ratio, -log_ratio, [0.0]))
        above = remove_divergence(log_mixed, log_base, x, log_ratio)
        longest = self.inner.supremum - math.log(self.rate)
        slip = 8 * EPS * (8.0 + longest + np.abs(log_mass))
        blur = 8 * EPS * np.abs(loss) + 8 * EPS * longest * -np.expm1(-np.abs(loss))
        spread = np.concatenate((above, add_divergence(log_base, x, log_ratio), [0.0]))
        return LossNodes(log_mass, loss, spread, mass_error=slip, loss_error=blur)

    # -- the distribution ----------------------------------------------------------------------------------

    def log_excess(self, loss: Floats) -> tuple[Floats, Floats, Floats]:
        """H above 0, and e^l H_{-l} below."""
        size = np.abs(loss)
        lower, upper = log_profile_remove(self.rate, size, self.inner.log_profile)
        below = np.minimum(loss, 0.0)
        step = 1e-6 * (1 + size)
        further = log_profile_remove(self.rate, size + step, self.inner.log_profile)[1]
        with np.errstate(invalid="ignore"):
            rate = np.where(np.isfinite(upper), (upper - further) / step, 0.0)
        rate = np.where(np.isfinite(rate), rate, 0.0)
        return lower + below, upper + below, np.where(loss < 0, -1.0 - rate, rate)
