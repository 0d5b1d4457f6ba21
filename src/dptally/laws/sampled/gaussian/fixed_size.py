r"""Gaussian noise on a batch of fixed size, when one record is replaced by another.

Batches of m out of n records, drawn without replacement, g = m/n; (P, Q) dominates the step for two batches that differ
in one record. For every data set [Zhu, Dong, Wang 2022, Prop. 30; proof in docs/batching.md]

    H_a = H_a((1-g) Q + g P, Q) for a >= 1,          H_a = 1 - a + a H_{1/a} for a < 1:

the same in both directions. The losses above 0 are those of the remove pair of Poisson sampling at rate g, those below
0 their mirror image, and the rest of the mass is an atom at 0. For Gaussian noise, with A(t) = 1 - g + g e^{m(t -
m/2)}:

    loss +log A(t) under A(t) phi(t) dt and loss -log A(t) under phi(t) dt, t > m/2;   (1-g)(1 - 2 Phi(-m/2)) at 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.characteristic import Characteristic, MomentTable
from dptally.law.law import Numbers
from dptally.laws.quadrature.losses import LossNodes, divergence, moment_by_nodes, panels
from dptally.laws.sampled.gaussian.fixed_size_kernel import FixedSizeNodes
from dptally.laws.sampled.gaussian.replace import mirrored
from dptally.laws.sampled.pair import log_profile_remove, remove_inner
from dptally.numerics.normal import log_gaussian_delta
from dptally.numerics.special import ndtr

__all__ = ["FIXED_SIZE_THEOREM", "FixedSizeGaussianLaw"]

FIXED_SIZE_THEOREM = (
    "Zhu, Dong, Wang 2022, Optimal accounting of DP via characteristic function, Prop. 30; "
    "proof in dptally docs/batching.md"
)
_REACH = 39.0  # standard deviations beyond which phi is zero as a double


@dataclass(frozen=True, slots=True)
class FixedSizeGaussianLaw(Law):
    """``rate`` g = m/n in (0, 1); ``sigma`` is the noise per unit of the change when a record is replaced."""

    rate: float
    sigma: float
    has_characteristic: ClassVar[bool] = True
    theorem: ClassVar[str] = FIXED_SIZE_THEOREM

    def _kernel(self) -> FixedSizeNodes:
        return FixedSizeNodes(self.rate, self.sigma)

    def moment_table(self, theta: Floats) -> MomentTable:
        return self._kernel().moment_table(theta)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        return self._kernel().characteristic(theta, reach, log_tolerance)

    def log_decay(self, theta: float, start: Floats) -> Floats:
        return self._kernel().log_decay(theta, start)

    def reverse(self) -> FixedSizeGaussianLaw:
        return self

    # -- the log-moment ------------------------------------------------------------------------------------

    def log_moment(self, t: Numbers) -> Numbers:
        """K(t) by Gauss-Legendre panels on t > m/2, and the atom."""
        return moment_by_nodes(self.nodes, t)

    def nodes(self, tilts: Floats, frequency: float = 0.0) -> LossNodes:
        """The rule that integrates e^{tL} for Re t in ``tilts`` and \\|Im t\\| <= ``frequency``."""
        kernel = self._kernel()
        m = 1.0 / self.sigma
        order = float(np.abs(tilts).max())
        end = max(_REACH, (order + 2.0) * m + 15.0)
        x, weight = panels(0.0, end, m * (2.0 + 2.0 * frequency + order) + 10.0)
        log_a = kernel.log_a(x)
        log_base = -0.5 * (x + 0.5 * m) ** 2 + np.log(weight / math.sqrt(2 * math.pi))
        loss = np.concatenate([-log_a[::-1], [0.0], log_a])
        log_mass = np.concatenate([log_base[::-1], [math.log(kernel.atom)], log_base + log_a])
        return LossNodes(log_mass, loss, divergence(log_mass, loss))

    # -- the distribution ----------------------------------------------------------------------------------

    @property
    def mean(self) -> float:
        return self.nodes(np.zeros(1), 1.0).mean

    @property
    def supremum(self) -> float:
        return math.inf

    @property
    def infimum(self) -> float:
        return -math.inf

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        def inner(at: Floats) -> tuple[Floats, Floats]:
            return log_gaussian_delta(1.0 / self.sigma, at, mu_ulps=4)

        lower, upper = log_profile_remove(self.rate, np.abs(epsilon), inner)
        if not (np.asarray(epsilon) < 0).any():
            return lower, upper
        return mirrored(epsilon, lower, -1), mirrored(epsilon, upper, 1)

    def _position(self, size: Floats) -> Floats:
        """The t > m/2 at which log A(t) = size >= 0."""
        w = 0.5 * np.add(*remove_inner(self.rate, size))
        return np.asarray(self.sigma * w + 0.5 / self.sigma)

    def tail(self, loss: Floats) -> Floats:
        t, m = self._position(np.abs(loss)), 1.0 / self.sigma
        above = (1.0 - self.rate) * ndtr(-t) + self.rate * ndtr(m - t)
        return np.asarray(np.where(loss >= 0, above, 1.0 - ndtr(-t)))

    def atoms(self) -> tuple[tuple[float, float], ...]:
        return ((0.0, self._kernel().atom),)

    def density(self, loss: Floats) -> Floats:
        size = np.abs(loss)
        t = self._position(size)
        w = t / self.sigma - 0.5 / self.sigma**2
        power = np.where(loss >= 0, 2.0, 1.0) * size
        return np.asarray(np.exp(power - w - 0.5 * t * t) * (self.sigma / self.rate / math.sqrt(2 * math.pi)))

    def breakpoints(self) -> tuple[float, ...]:
        return (0.0,)
