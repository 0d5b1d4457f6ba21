r"""A part of the Poisson-sampled Gaussian, low <= t <= high, of the remove direction: its bulk or its jumps.

Composite Gauss-Legendre quadrature of n points on panels of half-width r. A function analytic in the Bernstein
ellipse of
parameter rho and bounded there by S is integrated with an error of at most r (64/15) S rho^{-2n} / (1 - rho^{-2})
[Trefethen 2008, Thm. 4.5]. On an ellipse about m the real part of t stays within r(rho + 1/rho)/2 of m and the
imaginary
part b below r(rho - 1/rho)/2, where \|f e^{iul}\| <= f(Re t) e^{b^2/2 + u arg A} and arg A <= b/s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dptally.law.characteristic import MomentTable, NodeCharacteristic
from dptally.mechanisms.sampled_gaussian_nodes import SampledGaussianNodes, weighted_expm1
from dptally.numerics.rounding import EPS

Floats = NDArray[np.float64]

__all__ = ["SampledGaussianPiece"]

_POINTS = 32
_RHO = 3.0
_X, _W = np.polynomial.legendre.leggauss(_POINTS)
_LONG, _TALL = 0.5 * (_RHO + 1 / _RHO), 0.5 * (_RHO - 1 / _RHO)
_LOG_RATE = math.log(64 / 15 / (1 - _RHO**-2)) - 2 * _POINTS * math.log(_RHO)
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_MAX_NODES = 60_000


@dataclass(frozen=True, slots=True)
class SampledGaussianPiece:
    """The measure A(t) phi(t) dt on [low, high] with loss log A(t). ``bulk`` says that it holds nearly all of the
    mass.
    """

    kernel: SampledGaussianNodes
    low: float
    high: float
    bulk: bool

    def _log_f(self, t: Floats, zeta: float) -> Floats:
        return -0.5 * t * t - _HALF_LOG_TAU + zeta * self.kernel.log_a(t)

    def _log_defect(self, panels: int, zeta: float, reach: float) -> float:
        """log of a bound of the error of the rule for f e^{iul}, |u| <= reach; zeta >= 0.

        Angles stay below pi/2, up to which arg A grows with the imaginary part as well as with the real one.
        """
        length = self.high - self.low
        long, tall = 0.5 * length / panels * _LONG, 0.5 * length / panels * _TALL
        angle = tall / self.kernel.scale
        if angle >= 1.5:
            return math.inf
        edges = np.linspace(self.low - long, self.high + long, 129)
        log_f = self._log_f(edges, zeta)
        share = self.kernel.share(edges[1:])
        argument = np.arctan2(share * math.sin(angle), 1 - share + share * math.cos(angle))
        # log f is above its chord by at most h^2/8
        worst = float((np.maximum(log_f[:-1], log_f[1:]) + reach * argument).max()) + (edges[1] - edges[0]) ** 2 / 8
        return float(math.log(length) + worst + 0.5 * tall * tall + _LOG_RATE)

    def _panels(self, zeta: float, reach: float, log_tolerance: float) -> tuple[int, float] | None:
        """The least power of two of panels whose error is about exp(log_tolerance) of the integral, and its bound."""
        inside = self._log_f(np.linspace(self.low, self.high, 257), zeta)
        top = float(inside.max())
        log_mass = top + math.log(float(np.exp(inside - top).sum()) * (self.high - self.low) / 257) - 1.0
        for power in range(14):
            if _POINTS << power > _MAX_NODES:
                return None
            log_defect = self._log_defect(2**power, zeta, reach)
            if log_defect - log_mass <= log_tolerance:
                return 2**power, log_defect
        return None

    def _rule(self, panels: int) -> tuple[Floats, Floats]:
        edges = np.linspace(self.low, self.high, panels + 1)
        half = 0.5 * np.diff(edges)[:, None]
        t = (0.5 * (edges[1:] + edges[:-1]))[:, None] + half * _X
        return t.ravel(), (half * _W).ravel()

    def moment_table(self, theta: Floats) -> MomentTable:
        columns = np.full((4, len(theta)), math.inf)
        for i, tilt in enumerate(theta):
            built = self.characteristic(float(tilt), 0.0, -25.0)
            if built is None:
                continue
            second = float(np.dot(built.weights, built.losses**2))
            columns[:, i] = built.log_moment, built.log_moment_error, built.centre, second
        return MomentTable(theta, *columns)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> NodeCharacteristic | None:
        zeta, s = 1.0 + theta, self.kernel.scale
        found = self._panels(zeta, reach, log_tolerance)
        if found is None:
            return None
        panels, log_defect = found
        t, rule = self._rule(panels)
        loss = self.kernel.log_a(t)
        share = self.kernel.share(t)
        loss_error = self.kernel.loss_error(t, loss, share) + 4 * EPS * share * np.abs(t) / s
        exponent = -0.5 * t * t - _HALF_LOG_TAU + zeta * loss
        # the abscissae are rounded: f moves by |t| + zeta share / s ulps of t, the rule's weights by a few ulps
        weight_error = EPS * (2 * t * t + 3 * zeta * np.abs(loss) + 32) + zeta * loss_error
        top = float(exponent.max())
        raw = rule * np.exp(exponent - top)
        total = math.fsum(raw)
        weights = raw / total
        centre = float(np.dot(weights, loss))
        error = 1.01 * float(np.dot(weights, weight_error)) + 8 * EPS + 4 * EPS * abs(top)
        log_moment = top + math.log(total)
        defect = 2.2 * math.exp(min(log_defect - log_moment, 0.0))  # of numerator and denominator, relative to M
        if self.bulk and abs(log_moment) < 0.5:
            log_moment, error = self._near_one(t, rule, loss, theta, weight_error, loss_error)
            error += 2 * math.exp(min(self._log_defect(panels, 1.0, 0.0), 0.0))  # of the rule for the density itself
        return NodeCharacteristic(
            losses=loss - centre,
            weights=weights,
            loss_error=loss_error + EPS * (np.abs(loss) + abs(centre)),
            weight_error=weight_error,
            defect=defect,
            log_moment=log_moment,
            log_moment_error=error + defect,
            centre=centre,
        )

    def _near_one(
        self, t: Floats, rule: Floats, loss: Floats, theta: float, weight_error: Floats, loss_error: Floats
    ) -> tuple[float, float]:
        """K = log1p(E_P[expm1(theta L)] - mass outside): its rounding error is relative to theta E|L|, not to 1."""
        base, lifted = weighted_expm1(np.log(rule) - 0.5 * t * t - _HALF_LOG_TAU + loss, theta * loss)
        size = np.abs(lifted)
        outside = self.kernel.mass_below(self.low) + self.kernel.mass_above(self.high)
        blur = EPS * (32 + 2 * self.low**2 + 2 * self.high**2)  # ndtr errs by t^2 ulps
        sharp = math.fsum(lifted) - outside
        error = float(np.dot(size, weight_error + 10 * EPS)) + theta * float(
            np.dot(base + size, loss_error + EPS * np.abs(loss))
        )
        return math.log1p(sharp), 1.05 * (error + blur * outside) / (1 + sharp) + 4 * EPS * abs(sharp)

    def log_decay(self, theta: float, start: Floats) -> Floats:
        if not self.bulk:
            return np.zeros_like(start)
        built = self.characteristic(theta, 0.0, -25.0)
        if built is None:
            return np.zeros_like(start)
        decay = self.kernel.log_decay(theta, start, self.high, built.log_moment, built.log_moment_error)
        # what the cells count below ``low``, and the way up from the real line at ``low`` (y <= 4)
        log_density = float(self._log_f(np.array([self.low]), 1.0 + theta)[0])
        extra = 1.01 * self.kernel.mass_below(self.low) + 4 * math.exp(8.0 + log_density)
        return np.asarray(np.logaddexp(decay, math.log(extra) - built.log_moment) if extra > 0 else decay)
