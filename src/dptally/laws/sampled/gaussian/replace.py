r"""Poisson sampling when a neighbour replaces one record by another.

Theorem (proof in docs/sampling.md). Let (P1, P0) dominate the mechanism with a record against without it,
whichever record it is, and let F be the law of dP1/dP0 under P0. Then the sampled mechanism under REPLACE
is dominated, in both directions, by the pair of densities on (0, 1)

    1 - q + q F^-1(u)      against      1 - q + q F^-1(1 - u),

with q times the mass of P1 that is singular to P0 added at loss +inf. The two ratios are coupled as
oppositely as can be, because (x - a y - c)+ is submodular in (x, y).

Gaussian noise: (1-q) N(0, 1) + q N(1/sigma, 1) against (1-q) N(0, 1) + q N(-1/sigma, 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.law.characteristic import Characteristic, MomentTable, SoftCut
from dptally.law.law import Numbers
from dptally.laws.quadrature.losses import LossNodes, divergence, moment_and_error, moment_by_nodes
from dptally.laws.quadrature.trapezoid import REACH, significant_points, strip_step
from dptally.laws.sampled.gaussian.kernel import SampledGaussianNodes
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.laws.sampled.gaussian.parameters import Declared
from dptally.laws.sampled.gaussian.replace_kernel import SampledReplaceNodes
from dptally.laws.sampled.gaussian.window import SampledGaussianBand
from dptally.numerics.normal import log_gaussian_delta
from dptally.numerics.rounding import EPS
from dptally.numerics.special import ndtr

__all__ = ["REPLACE_THEOREM", "SampledReplaceGaussianLaw", "mirrored"]

REPLACE_THEOREM = "dptally docs/sampling.md, Theorem 1 (countermonotone coupling; Lorentz 1953, Tchen 1980)"


@dataclass(frozen=True, slots=True)
class SampledReplaceGaussianLaw(Law):
    r"""Gaussian noise sigma per unit of one record's contribution, sampled at rate q in (0, 1).

    With A(s) = 1 - q + q exp(s/sigma - 1/(2 sigma^2)) and s ~ N(0, 1): L = l(s) = log A(s) - log A(-s), odd
    and increasing, under A(s) phi(s) ds; the same in both directions.

    Profile: with l(s) = eps and m = 1/sigma, the bracket A(r) - e^eps A(-r) vanishes at r = s, so its
    constant term can be replaced by exponentials, which leaves a sum of two Gaussian profiles,

        delta(eps) = q ( delta_m(s m - m^2/2) + e^{eps - s m - m^2/2} delta_m(s m + m^2/2) ).

    Both terms fall as s grows, so an interval that holds s bounds delta. ``rate`` and ``sigma`` are exact, or rounded
    to the safe side of ``declared_as``.
    """

    rate: float
    sigma: float
    declared_as: Declared | None = field(default=None, repr=False)
    has_characteristic: ClassVar[bool] = True
    theorem: ClassVar[str] = REPLACE_THEOREM

    def moment_table(self, theta: Floats) -> MomentTable:
        return SampledReplaceNodes(self.rate, self.sigma).moment_table(theta)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        return SampledReplaceNodes(self.rate, self.sigma).characteristic(theta, reach, log_tolerance)

    def log_decay(self, theta: float, start: Floats) -> Floats:
        return SampledReplaceNodes(self.rate, self.sigma).log_decay(theta, start)

    def band(self, low: SoftCut | None, high: SoftCut | None) -> SampledGaussianBand:
        return SampledGaussianBand(SampledGaussianNodes(self.rate, self.sigma, True), low, high, mirrored=True)

    def reverse(self) -> SampledReplaceGaussianLaw:
        return self

    def optimistic(self) -> SampledReplaceGaussianLaw:
        if self.declared_as is None:
            return self
        return SampledReplaceGaussianLaw(*self.declared_as.optimistic())

    def _ratio(self, s: Floats) -> Floats:
        """log A(s)."""
        return SampledGaussianLaw(self.rate, self.sigma, Direction.REMOVE).ratio(s)[1]

    def _share(self, s: Floats, log_ratio: Floats) -> Floats:
        """q e^w / A = sigma d(log A)/ds."""
        return np.asarray(self.rate * np.exp(s / self.sigma - 0.5 / self.sigma**2 - log_ratio))

    def _loss(self, s: Floats) -> tuple[Floats, Floats, Floats]:
        """(l, l', bound of the error of l)."""
        up, down = self._ratio(s), self._ratio(-s)
        share = self._share(s, up) + self._share(-s, down)
        m = 1.0 / self.sigma
        error = EPS * (8.0 * (np.abs(up) + np.abs(down)) + 4.0 * m * (np.abs(s) + m) * share)
        return up - down, share * m, error

    # -- the log-moment ------------------------------------------------------------------------------------

    def log_moment(self, t: Numbers) -> Numbers:
        """K(t) = log E[A(s)^(1+t) A(-s)^(-t)] by trapezoid sums, as for one side of ADD_REMOVE."""
        return moment_by_nodes(self.nodes, t)

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        return moment_and_error(self.nodes, t)

    def nodes(self, tilts: Floats, frequency: float = 0.0) -> LossNodes:
        """The trapezoid rule that integrates e^{tL} for Re t in ``tilts`` and \\|Im t\\| <= ``frequency``."""
        least, most = float(tilts.min()), float(tilts.max())
        step = strip_step(self.sigma, 2.0 * frequency, max(0.0, most, -1.0 - least))
        centres = self._centres(tilts)
        s = significant_points(self._law_at, centres, step, min(0.5, 4 * step), tilts, frequency)
        log_mass, loss = self._law_at(s)
        log_mass = log_mass + math.log(step / math.sqrt(2 * math.pi))
        kernel = SampledGaussianNodes(self.rate, self.sigma, True)
        up, down = self._ratio(s), self._ratio(-s)
        blur = kernel.loss_error(s, up, kernel.share(s))
        slip = 4 * EPS * (s * s + np.abs(up)) + blur
        blur = blur + kernel.loss_error(-s, down, kernel.share(-s)) + EPS * np.abs(loss)
        return LossNodes(log_mass, loss, divergence(log_mass, loss), mass_error=slip, loss_error=blur)

    def _centres(self, tilts: Floats) -> Floats:
        """Where the modes of A(s)^(1+t) A(-s)^-t phi(s) can lie: sigma s = (1+t) share(s) + t share(-s)."""
        m = 1.0 / self.sigma
        crossing = self.sigma * (math.log1p(-self.rate) - math.log(self.rate)) + 0.5 * m
        around = crossing + 40.0 * self.sigma * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
        around = np.concatenate([around, -around])
        around = around[np.abs(around) <= (2.0 * np.abs(tilts).max() + 2.0) * m + REACH]
        ends = [(1.0 + tilts) * m, (1.0 + 2.0 * tilts) * m]
        return np.concatenate([m * np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), around, *ends])

    def _law_at(self, s: Floats) -> tuple[Floats, Floats]:
        up = self._ratio(s)
        return up - 0.5 * s * s, up - self._ratio(-s)

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

    @property
    def _furthest(self) -> float:
        """The loss at s = 1e150, about: beyond, s^2 overflows, and log delta is below -1e299."""
        m = 1.0 / self.sigma
        return 1e150 * m + m * m

    def _position(self, loss: Floats) -> Floats:
        """The s with l(s) = loss: s m = loss/2 + asinh(x), x = (1-q)/q e^{m^2/2} sinh(loss/2), and a step of Newton's.

        A(s) = e^loss A(-s) is a quadratic equation in e^{sm}.
        """
        target, m = np.minimum(np.abs(loss), self._furthest), 1.0 / self.sigma
        with np.errstate(divide="ignore"):
            log_twice_sinh = 0.5 * target + np.log(-np.expm1(-target))
        log_twice_x = log_twice_sinh + (math.log1p(-self.rate) - math.log(self.rate) + 0.5 * m * m)
        large = log_twice_x > 40.0
        angle = np.where(large, log_twice_x, np.arcsinh(0.5 * np.exp(np.where(large, 0.0, log_twice_x))))
        s = (0.5 * target + angle) * self.sigma
        value, slope, _error = self._loss(s)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = s - (value - target) / slope
        return np.copysign(np.where(np.abs(newton - s) <= 1e-6 * s, newton, s), loss)

    def _enclosed(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Bounds of s for epsilon >= 0, verified by the sign of l(s) - eps with the error of l."""
        s = self._position(epsilon)
        _value, slope, error = self._loss(s)
        shift = np.minimum(error / np.where(slope > 0, slope, 1.0), 1.0)
        radius = 4.0 * (EPS * (1.0 + np.abs(s)) + np.where(slope > 0, shift, 1.0))
        radius = np.where(epsilon == 0, 0.0, radius)  # l(0) = 0
        held = epsilon == 0
        for _ in range(64):
            below, _, below_error = self._loss(s - radius)
            above, _, above_error = self._loss(s + radius)
            held = held | ((below + below_error <= epsilon) & (above - above_error >= epsilon))
            if held.all():
                break
            radius = np.where(held, radius, 4.0 * radius)
        # l is odd and increasing, and at least log q + s m - m^2/2: known wherever it is too flat to be told from eps
        most = ((epsilon - math.log(self.rate)) * self.sigma + 0.5 / self.sigma) * (1.0 + 16 * EPS)
        return np.where(held, np.maximum(s - radius, 0.0), 0.0), np.where(held, np.minimum(s + radius, most), most)

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        # delta falls with eps, so what bounds it at the furthest loss bounds it beyond
        size = np.minimum(np.abs(epsilon), self._furthest)
        low, high = self._enclosed(size)
        lower, upper = self._log_sum(high, size, -1), self._log_sum(low, size, 1)
        lower = np.where(np.abs(epsilon) > size, -np.inf, lower)
        if not (epsilon < 0).any():
            return lower, upper
        return mirrored(epsilon, lower, -1), mirrored(epsilon, upper, 1)

    def _log_sum(self, s: Floats, epsilon: Floats, sign: int) -> Floats:
        """log of the sum of two profiles, rounded up (sign 1) or down (sign -1)."""
        m, end = 1.0 / self.sigma, (1 + sign) // 2
        error = 4 * EPS * (m * np.abs(s) + m * m)
        first = log_gaussian_delta(m, s * m - 0.5 * m * m - sign * error, mu_ulps=4)[end]
        second = log_gaussian_delta(m, s * m + 0.5 * m * m - sign * error, mu_ulps=4)[end]
        factor = epsilon - s * m - 0.5 * m * m + sign * (error + 2 * EPS * epsilon)
        total = np.logaddexp(first, factor + second) + math.log(self.rate)
        slack = 4 * EPS * (4.0 + np.abs(total) + np.abs(second) + np.abs(factor) - math.log(self.rate))
        slack = np.where(np.isneginf(total), 0.0, slack)
        return np.minimum(total + sign * slack, 0.0)

    def tail(self, loss: Floats) -> Floats:
        s = self._position(loss)
        return np.asarray((1.0 - self.rate) * ndtr(-s) + self.rate * ndtr(1.0 / self.sigma - s))

    def density(self, loss: Floats) -> Floats:
        s = self._position(loss)
        slope = self._loss(s)[1]
        # where the slope underflows the density is beyond doubles: all but an atom
        height = np.exp(self._ratio(s) - 0.5 * s * s) / math.sqrt(2 * math.pi)
        return np.where(slope > 0, height / np.where(slope > 0, slope, 1.0), np.inf)


def mirrored(epsilon: Floats, log_delta: Floats, sign: int) -> Floats:
    """log delta at eps from log delta at |eps|, for a pair that is the same in both directions.

    delta(-e) = 1 - e^-e + e^-e delta(e): a sum of nonnegative terms. Rounded up (sign 1) or down (sign -1).
    """
    size = np.maximum(-epsilon, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        total = -np.expm1(-size) + np.exp(-size) * np.exp(log_delta)
        value = np.log(total)
        size_in_ulps = 8.0 * (1.0 + np.abs(value) + np.where(log_delta > -700, np.abs(log_delta), 0.0))
        value = value + sign * EPS * np.where(np.isneginf(value), 0.0, size_in_ulps)
    return np.where(epsilon < 0, np.minimum(value, 0.0), log_delta)
