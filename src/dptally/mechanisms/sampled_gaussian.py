"""Gaussian noise on a Poisson sample: the step of DP-SGD, one law for each side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.adjacency import Side
from dptally.law.characteristic import Characteristic, MomentTable
from dptally.law.law import Numbers
from dptally.mechanisms.loss_quadrature import LossNodes, minus_log1p, moment_by_nodes
from dptally.mechanisms.sampled_gaussian_nodes import SampledGaussianNodes
from dptally.mechanisms.sampled_profile import log_profile_add, log_profile_remove, remove_inner
from dptally.numerics.normal import log_gaussian_delta
from dptally.numerics.rounding import up

__all__ = ["SampledGaussianLaw"]

_NATS = 50.0  # a node is left out, and the trapezoid rule refined, where what remains is e^-50 of the whole
_REACH = 13.0  # standard deviations around a mode that hold all but e^-80 of it


@dataclass(frozen=True, slots=True)
class SampledGaussianLaw(Law):
    r"""The loss of one step at rate q with noise sigma per unit of one record's contribution, 0 < q < 1.

    With s ~ N(0, 1) and A(s) = 1 - q + q exp(s/sigma - 1/(2 sigma^2)):
        REMOVE: L = log A under A(s) phi(s) ds,   K(t) = log E[A^(1+t)];
        ADD:    L = -log A under phi(s) ds,       K(t) = log E[A^(-t)].
    The expectations are trapezoid sums: the integrand is analytic for \|Im s\| < pi sigma, so the error falls like
    exp(-2 pi a / step) for every a below pi sigma, and the step is chosen to make it e^-50 of the answer.
    """

    rate: float
    sigma: float
    side: Side
    has_characteristic: ClassVar[bool] = True
    theorem: ClassVar[str] = "Zhu, Dong, Wang 2022, Optimal accounting of DP via characteristic function, Thm. 11"

    # -- the log-moment --------------------------------------------------------------------------------------------

    def log_moment(self, t: Numbers) -> Numbers:
        """K(t) for Re t > -1; relative accuracy about 1e-14 for real t >= 0, however small K is.

        For complex t the imaginary part is that of the principal logarithm.
        """
        return moment_by_nodes(self.nodes, t)

    def nodes(self, tilt: float, frequency: float = 0.0) -> LossNodes:
        """The trapezoid rule that integrates e^{tL} for Re t = ``tilt`` and \\|Im t\\| <= ``frequency``."""
        step = self._step(tilt, frequency)
        low, high = self._range(tilt)
        coarse = np.arange(low, high + 1.0, 0.5 if self._exponent(tilt) > 0 else min(0.5, 4 * step))
        size = self._log_size(coarse, tilt, math.hypot(tilt, frequency))
        kept = coarse[size > size.max() - _NATS]
        gap = float(coarse[1] - coarse[0])
        points = step * np.unique(np.concatenate([np.arange(a // step, b // step + 2) for a, b in _runs(kept, gap)]))
        x, log_ratio = self._ratio(points)
        log_weight = -0.5 * points * points + math.log(step / math.sqrt(2 * math.pi))
        if self.side is Side.REMOVE:
            log_mass = log_weight + log_ratio
            divergence = _remove_divergence(log_mass, log_weight, x, log_ratio)
            return LossNodes(log_mass, log_ratio, divergence)
        return LossNodes(log_weight, -log_ratio, _add_divergence(log_weight, x, log_ratio))

    def _exponent(self, tilt: float) -> float:
        """zeta: K(t) = log E[A^zeta]."""
        return 1.0 + tilt if self.side is Side.REMOVE else -tilt

    def _ratio(self, s: Floats) -> tuple[Floats, Floats]:
        """(A(s) - 1, log A(s)), each with relative accuracy; the first may overflow to inf."""
        w = s / self.sigma - 0.5 / self.sigma**2
        with np.errstate(over="ignore", divide="ignore"):
            x = self.rate * np.expm1(w)
            small = np.log1p(np.maximum(x, -0.5))
            low = np.log((1.0 - self.rate) + self.rate * np.exp(np.minimum(w, 1.0)))
            far = w + math.log(self.rate) + np.log1p((1.0 - self.rate) / self.rate * np.exp(-np.maximum(w, 30.0)))
        return x, np.select([w > 30.0, x < -0.5], [far, low], small)

    def _step(self, tilt: float, frequency: float) -> float:
        """Strip of half-width a = beta sigma: the integrand grows by at most a^2/2 + frequency beta - zeta_- log cos(beta/2)."""
        beta = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 1.1, 1.6, 2.1, 2.6])
        a = np.minimum(beta * self.sigma, 10.0 + frequency / self.sigma)
        beta = a / self.sigma
        shrink = max(0.0, -self._exponent(tilt))
        growth = 0.5 * a * a + frequency * beta - shrink * np.log(np.cos(0.5 * beta))
        return float((2 * math.pi * a / (_NATS + growth)).max())

    def _range(self, tilt: float) -> tuple[float, float]:
        """Where the modes of the integrand can lie, and ``_REACH`` around."""
        zeta = self._exponent(tilt)
        if zeta >= 0:
            return -_REACH, max(zeta, 2.0) / self.sigma + _REACH
        at_zero = float(self._ratio(np.zeros(1))[1][0])
        share = self.rate * math.exp(-0.5 / self.sigma**2 - at_zero)  # q e^w / A at 0, its largest value on the left
        return zeta * share / self.sigma - _REACH, 2.0 / self.sigma + _REACH

    def _log_size(self, s: Floats, tilt: float, modulus: float) -> Floats:
        """log of (a bound of) the summand e^{tL} - 1 - tL + t(L - 1 + e^-L) under P, for choosing nodes only."""
        x, log_ratio = self._ratio(s)
        loss = log_ratio if self.side is Side.REMOVE else -log_ratio
        log_mass = -0.5 * s * s + (log_ratio if self.side is Side.REMOVE else 0.0)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            u = modulus * np.abs(loss)
            power = np.maximum(tilt * loss, 0.0)
            first = power + np.minimum(2 * np.log(u), np.log(2 + u))
            # L - 1 + e^-L under P is at most L^2 for |L| < 1, and |L| + e^-L
            second = math.log(modulus) + np.minimum(2 * np.log(np.abs(loss)), np.logaddexp(np.log(np.abs(loss)), -loss)) if modulus else -np.inf
        return log_mass + np.maximum(np.maximum(first, second), -1e300)

    # -- contour inversion -----------------------------------------------------------------------------------------

    def moment_table(self, theta: Floats) -> MomentTable:
        return self._kernel().moments(theta)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        return self._kernel().characteristic(theta, reach, log_tolerance)

    def log_decay(self, theta: float, start: Floats) -> Floats:
        return self._kernel().log_decay(theta, start)

    def _kernel(self) -> SampledGaussianNodes:
        return SampledGaussianNodes(self.rate, self.sigma, self.side is Side.REMOVE)

    # -- the distribution ------------------------------------------------------------------------------------------

    @property
    def mean(self) -> float:
        return self.nodes(0.0, 1.0).mean

    @property
    def supremum(self) -> float:
        return math.inf if self.side is Side.REMOVE else up(-math.log1p(-self.rate), 4)

    @property
    def infimum(self) -> float:
        return -math.inf if self.side is Side.ADD else -up(-math.log1p(-self.rate), 4)

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        def inner(at: Floats) -> tuple[Floats, Floats]:
            return log_gaussian_delta(1.0 / self.sigma, at)

        if self.side is Side.REMOVE:
            return log_profile_remove(self.rate, epsilon, inner)
        return log_profile_add(self.rate, epsilon, inner)

    def _position(self, log_ratio: Floats) -> Floats:
        """The s at which log A(s) takes this value; -inf below log(1-q)."""
        w = 0.5 * np.add(*remove_inner(self.rate, log_ratio))
        return self.sigma * w + 0.5 / self.sigma

    def tail(self, loss: Floats) -> Floats:
        if self.side is Side.REMOVE:
            s = self._position(loss)
            return np.asarray((1.0 - self.rate) * ndtr(-s) + self.rate * ndtr(1.0 / self.sigma - s))
        return np.asarray(ndtr(self._position(-loss)))

    def density(self, loss: Floats) -> Floats:
        log_ratio = loss if self.side is Side.REMOVE else -loss
        s = self._position(log_ratio)
        inside = np.isfinite(s)
        s = np.where(inside, s, 0.0)
        w = s / self.sigma - 0.5 / self.sigma**2
        # ds / d(log A) = sigma A / (q e^w); under the mixture the density of s is A phi(s)
        power = (2.0 if self.side is Side.REMOVE else 1.0) * log_ratio
        log_density = power - w - 0.5 * s * s + math.log(self.sigma / self.rate / math.sqrt(2 * math.pi))
        return np.where(inside, np.exp(np.where(inside, log_density, 0.0)), 0.0)


def _runs(kept: Floats, gap: float) -> list[tuple[float, float]]:
    """Maximal runs of neighbouring coarse points, widened by one gap on each side."""
    cuts = np.flatnonzero(np.diff(kept) > 1.5 * gap)
    starts, ends = np.append(0, cuts + 1), np.append(cuts, kept.size - 1)
    return [(float(kept[i]) - gap, float(kept[j]) + gap) for i, j in zip(starts, ends, strict=True)]


def _remove_divergence(log_mass: Floats, log_weight: Floats, x: Floats, log_ratio: Floats) -> Floats:
    """A log A - (A - 1) per weight: x l - (x - l) for moderate x, and A (l - 1) + 1 where x is large."""
    moderate = x < 1e3
    v, log_v = np.where(moderate, x, 0.0), np.where(moderate, log_ratio, 0.0)
    small = np.exp(log_weight) * (v * log_v - minus_log1p(v, log_v))
    return np.where(moderate, small, np.exp(log_mass) * (log_ratio - 1.0) + np.exp(log_weight))


def _add_divergence(log_weight: Floats, x: Floats, log_ratio: Floats) -> Floats:
    """(A - 1) - log A per weight."""
    moderate = x < 1e3
    small = np.exp(log_weight) * minus_log1p(np.where(moderate, x, 0.0), np.where(moderate, log_ratio, 0.0))
    return np.where(moderate, small, np.exp(log_weight + log_ratio) - np.exp(log_weight) * (1.0 + log_ratio))
