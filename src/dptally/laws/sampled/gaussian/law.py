"""Gaussian noise on a Poisson sample: the step of DP-SGD, one law for each side."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.interval import Interval
from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.law.ball import BallLoss
from dptally.law.characteristic import Characteristic, CompiledLaw, MomentTable, SoftCut
from dptally.law.law import Numbers
from dptally.law.spread import LatticeLaw
from dptally.laws.quadrature.losses import (
    LossNodes,
    add_divergence,
    moment_and_error,
    moment_by_nodes,
    remove_divergence,
)
from dptally.laws.quadrature.trapezoid import REACH, significant_points, strip_step
from dptally.laws.sampled.gaussian.kernel import SampledGaussianNodes
from dptally.laws.sampled.gaussian.lattice import spread
from dptally.laws.sampled.gaussian.parameters import Declared, edge
from dptally.laws.sampled.gaussian.window import SampledGaussianBand
from dptally.laws.sampled.pair import log_profile_add, log_profile_remove, mixture, remove_inner
from dptally.numerics.normal import gaussian_epsilon_log, log_gaussian_delta
from dptally.numerics.rounding import EPS, down, up
from dptally.numerics.special import ndtr

__all__ = ["SampledGaussianLaw"]

_HALVINGS = 6  # of one: how closely a mode is found


@dataclass(frozen=True, slots=True)
class SampledGaussianLaw(Law):
    r"""The loss of one step at rate q with noise sigma per unit of one record's contribution, 0 < q < 1.

    With s ~ N(0, 1) and A(s) = 1 - q + q exp(s/sigma - 1/(2 sigma^2)):
        REMOVE: L = log A under A(s) phi(s) ds,   K(t) = log E[A^(1+t)];
        ADD:    L = -log A under phi(s) ds,       K(t) = log E[A^(-t)].
    The expectations are trapezoid sums: the integrand is analytic for \|Im s\| < pi sigma, so the error falls
    like exp(-2 pi a / step) for every a below pi sigma, and the step makes it e^-50 of the answer.

    ``rate`` and ``sigma`` are exact, or rounded to the safe side of ``declared_as``.
    """

    rate: float
    sigma: float
    side: Direction
    declared_as: Declared | None = field(default=None, repr=False)
    has_characteristic: ClassVar[bool] = True
    theorem: ClassVar[str] = "Zhu, Dong, Wang 2022, Optimal accounting of DP via characteristic function, Thm. 11"

    # -- the log-moment ------------------------------------------------------------------------------------

    def ball(self, count: int) -> BallLoss | None:
        from dptally.laws.ball.sampled_gaussian import SampledGaussianBall

        given = self.declared_as or Declared(Fraction(self.rate), 1 / Fraction(self.sigma) ** 2)
        return SampledGaussianBall(given.rate, given.variance, self.side is Direction.REMOVE, count)

    def log_moment(self, t: Numbers) -> Numbers:
        """K(t) for Re t > -1; relative accuracy about 1e-14 for real t >= 0, however small K is.

        For complex t the imaginary part is that of the principal logarithm.
        """
        return moment_by_nodes(self.nodes, t)

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        return moment_and_error(self.nodes, t)

    def nodes(self, tilts: Floats, frequency: float = 0.0) -> LossNodes:
        """The trapezoid rule that integrates e^{tL} for Re t in ``tilts`` and \\|Im t\\| <= ``frequency``."""
        # K(t) = log E[A^zeta]
        zeta = 1.0 + tilts if self.side is Direction.REMOVE else -tilts
        least = float(zeta.min())
        step = strip_step(self.sigma, frequency, max(0.0, -least))
        spacing = 0.5 if least > 0 else min(0.5, 4 * step)
        points = significant_points(self._law_at, self._centres(zeta), step, spacing, tilts, frequency)
        x, log_ratio = self.ratio(points)
        log_weight = -0.5 * points * points + math.log(step / math.sqrt(2 * math.pi))
        kernel = self._kernel()
        blur = kernel.loss_error(points, log_ratio, kernel.share(points))
        slip = 4 * EPS * (points * points + np.abs(log_ratio)) + blur
        if self.side is Direction.REMOVE:
            log_mass = log_weight + log_ratio
            divergence = remove_divergence(log_mass, log_weight, x, log_ratio)
            return LossNodes(log_mass, log_ratio, divergence, mass_error=slip, loss_error=blur)
        divergence = add_divergence(log_weight, x, log_ratio)
        return LossNodes(log_weight, -log_ratio, divergence, mass_error=slip, loss_error=blur)

    def ratio(self, s: Floats) -> tuple[Floats, Floats]:
        """(A(s) - 1, log A(s)), each with relative accuracy; the first may overflow to inf."""
        return mixture(self.rate, s / self.sigma - 0.5 / self.sigma**2)

    def _law_at(self, s: Floats) -> tuple[Floats, Floats]:
        """(log density under P up to a constant, loss)."""
        log_ratio = self.ratio(s)[1]
        if self.side is Direction.REMOVE:
            return log_ratio - 0.5 * s * s, log_ratio
        return -0.5 * s * s, -log_ratio

    def _centres(self, zeta: Floats) -> Floats:
        """Where the modes of the summand can lie.

        A^zeta phi(s) has its modes where s = zeta share(s) / sigma, share = q e^w / A: near 0, zeta / sigma
        or where share crosses 1/2, for zeta > 0; for zeta < 0 at one point, found by bisection to 1/64. What is
        subtracted, and L - 1 + e^-L, are at most quadratic in A: modes at 0, 1/sigma and 2/sigma.
        """
        m = 1.0 / self.sigma
        crossing = self.sigma * (math.log1p(-self.rate) - math.log(self.rate)) + 0.5 * m
        falling = zeta[zeta < 0]
        low, high = falling * m, np.zeros_like(falling)
        widest = -float(low.min(initial=0.0))
        for _ in range(min(60, math.frexp(widest)[1] + _HALVINGS) if widest > 0 else 0):
            middle = 0.5 * (low + high)
            share = self._kernel().share(middle)
            above = middle > falling * share * m
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        around = crossing + 40.0 * self.sigma * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
        around = around[np.abs(around) <= (np.abs(zeta).max() + 2.0) * m + REACH]
        return np.concatenate([[0.0, m, 2.0 * m], around, np.maximum(zeta, 0.0) * m, low, high])

    # -- contour inversion ---------------------------------------------------------------------------------

    def moment_table(self, theta: Floats) -> MomentTable:
        return self._kernel().moment_table(theta)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        return self._kernel().characteristic(theta, reach, log_tolerance)

    def log_decay(self, theta: float, start: Floats) -> Floats:
        return self._kernel().log_decay(theta, start)

    def compiled(self) -> CompiledLaw:
        return CompiledLaw(self.rate, self.sigma, self.side is Direction.REMOVE)

    def band(self, low: SoftCut | None, high: SoftCut | None) -> SampledGaussianBand | None:
        return SampledGaussianBand(self._kernel(), low, high) if self.side is Direction.REMOVE else None

    def reverse(self) -> SampledGaussianLaw:
        return replace(self, side=Direction.ADD if self.side is Direction.REMOVE else Direction.REMOVE)

    def spread(self, low: float, step: float, number: int) -> LatticeLaw | None:
        return spread(self._kernel(), low, step, number)

    def _kernel(self) -> SampledGaussianNodes:
        return SampledGaussianNodes(self.rate, self.sigma, self.side is Direction.REMOVE)

    # -- the distribution ----------------------------------------------------------------------------------

    @property
    def mean(self) -> float:
        return self.nodes(np.zeros(1), 1.0).mean

    @property
    def supremum(self) -> float:
        return self.supremum_interval.upper

    @property
    def infimum(self) -> float:
        return self.infimum_interval.lower

    @property
    def supremum_interval(self) -> Interval:
        return Interval(math.inf, math.inf) if self.side is Direction.REMOVE else Interval(*self._edge())

    @property
    def infimum_interval(self) -> Interval:
        if self.side is Direction.ADD:
            return Interval(-math.inf, -math.inf)
        low, high = self._edge()
        return Interval(-high, -low)

    def _edge(self) -> tuple[float, float]:
        return edge(self.rate if self.declared_as is None else self.declared_as.rate)

    def optimistic(self) -> SampledGaussianLaw:
        if self.declared_as is None:
            return self
        rate, sigma = self.declared_as.optimistic()
        return SampledGaussianLaw(rate, sigma, self.side)

    def closed_rho(self) -> float | None:
        """REMOVE: 1/(2 sigma^2), that of the noise without sampling; sampling only helps at finite orders.

        E[(1 - q + q R)^a] <= 1 - q + q E[R^a] <= E[R^a]; it is at least q^a E[R^a], which the limit forgives.
        """
        return up(0.5 / self.sigma**2, 4) if self.side is Direction.REMOVE else None

    def rho_slack(self, order: float) -> float:
        """REMOVE: -log(q + (1 - q) e^{-rho l}). With a = l + 1, Minkowski's inequality in L_a gives
        e^{K/a} = |1 - q + q R|_a <= 1 - q + q |R|_a = 1 - q + q e^{rho l}, which grows with rho.
        """
        rho = self.closed_rho()
        if rho is None:
            return 0.0
        unsampled = up((1 - self.rate) * up(math.exp(-down(rho * order)), 2), 2)
        return max(0.0, down(-math.log(up(self.rate + unsampled)), 2))

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        def inner(at: Floats) -> tuple[Floats, Floats]:
            return log_gaussian_delta(1.0 / self.sigma, at, mu_ulps=4)

        if self.side is Direction.REMOVE:
            return log_profile_remove(self.rate, epsilon, inner)
        return log_profile_add(self.rate, epsilon, inner)

    def about_epsilon(self, log_delta: float) -> float | None:
        """REMOVE: delta is q times that of the noise without sampling at log((e^eps - (1 - q)) / q)."""
        inner = log_delta - math.log(self.rate)
        if self.side is Direction.ADD or not inner < 0:
            return None
        unsampled = float(gaussian_epsilon_log(1.0 / self.sigma, inner)[1])
        return float(self._kernel().log_a(np.array([self.sigma * unsampled + 0.5 / self.sigma]))[0])

    def _position(self, log_ratio: Floats) -> Floats:
        """The s at which log A(s) takes this value; -inf below log(1-q)."""
        w = 0.5 * np.add(*remove_inner(self.rate, log_ratio))
        return self.sigma * w + 0.5 / self.sigma

    def tail(self, loss: Floats) -> Floats:
        if self.side is Direction.REMOVE:
            s = self._position(loss)
            return np.asarray((1.0 - self.rate) * ndtr(-s) + self.rate * ndtr(1.0 / self.sigma - s))
        return np.asarray(ndtr(self._position(-loss)))

    def density(self, loss: Floats) -> Floats:
        log_ratio = loss if self.side is Direction.REMOVE else -loss
        s = self._position(log_ratio)
        inside = np.isfinite(s)
        s = np.where(inside, s, 0.0)
        w = s / self.sigma - 0.5 / self.sigma**2
        # ds / d(log A) = sigma A / (q e^w); under the mixture the density of s is A phi(s)
        power = (2.0 if self.side is Direction.REMOVE else 1.0) * log_ratio
        log_density = power - w - 0.5 * s * s + math.log(self.sigma / self.rate / math.sqrt(2 * math.pi))
        return np.where(inside, np.exp(np.where(inside, log_density, 0.0)), 0.0)
