"""Gaussian noise with a random shift: groups and users under sampling, one law for each direction."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.law.characteristic import Characteristic, MomentTable
from dptally.law.law import Numbers
from dptally.laws.mixture.kernel import MixtureNodes
from dptally.laws.mixture.ratio import MixtureRatio
from dptally.laws.quadrature.losses import LossNodes, add_divergence, moment_by_nodes, remove_divergence
from dptally.laws.quadrature.trapezoid import significant_points, strip_step
from dptally.numerics.normal import log_gaussian_delta
from dptally.numerics.rounding import EPS, down, up
from dptally.numerics.special import ndtr

__all__ = ["MixtureLaw"]

_SHIFT_ULPS = 4.0


@dataclass(frozen=True, slots=True)
class MixtureLaw(Law):
    r"""(sum_j w_j N(m_j, 1), N(0, 1)) in the remove direction, the reverse in the add direction; m_0 < m_1 < ..

    With A(s) = sum_j w_j exp(m_j s - m_j^2/2): REMOVE has L = log A under A(s) phi(s) ds, ADD L = -log A under phi(s).

    Profile. Let x solve A(x) = e^eps (REMOVE) or A(x) = e^-eps (ADD), l_j = m_j x - m_j^2/2. Nothing cancels:
        REMOVE: sum_j w_j delta_{m_j}(l_j),       ADD: e^eps sum_j w_j e^{l_j} delta_{m_j}(-l_j),
    delta_m the profile of N(m, 1) against N(0, 1). The first falls and the second grows with x, so an interval that
    holds
    x bounds them.
    """

    shifts: tuple[float, ...]
    weights: tuple[float, ...]
    side: Direction
    has_characteristic: ClassVar[bool] = True
    theorem: ClassVar[str] = (
        "dptally docs/batching.md, Mixtures of Gaussians (Choquette-Choo et al. 2023, arXiv 2310.15526, Cor. 4.7; "
        "groups: Ganesh 2024, arXiv 2401.10294)"
    )

    @property
    def _ratio(self) -> MixtureRatio:
        return MixtureRatio(self.shifts, self.weights)

    @property
    def _removes(self) -> bool:
        return self.side is Direction.REMOVE

    # -- the log-moment ------------------------------------------------------------------------------------

    def log_moment(self, t: Numbers) -> Numbers:
        """K(t) for Re t > -1."""
        return moment_by_nodes(self.nodes, t)

    def nodes(self, tilts: Floats, frequency: float = 0.0) -> LossNodes:
        """The trapezoid rule that integrates e^{tL} for Re t in ``tilts`` and \\|Im t\\| <= ``frequency``."""
        zeta = 1.0 + tilts if self._removes else -tilts
        least = float(zeta.min())
        ratio = self._ratio
        step = strip_step(1.0 / max(ratio.range, 0.5 * ratio.most), frequency, max(0.0, -least))
        centres = self._centres(zeta)
        points = significant_points(self._law_at, centres, step, min(0.5, 4 * step), tilts, frequency)
        log_ratio = ratio.log_a(points)
        x = np.expm1(np.minimum(log_ratio, 700.0))
        log_weight = -0.5 * points * points + math.log(step / math.sqrt(2 * math.pi))
        if self._removes:
            log_mass = log_weight + log_ratio
            return LossNodes(log_mass, log_ratio, remove_divergence(log_mass, log_weight, x, log_ratio))
        return LossNodes(log_weight, -log_ratio, add_divergence(log_weight, x, log_ratio))

    def _law_at(self, s: Floats) -> tuple[Floats, Floats]:
        """(log density under P up to a constant, loss)."""
        log_ratio = self._ratio.log_a(s)
        return (log_ratio - 0.5 * s * s, log_ratio) if self._removes else (-0.5 * s * s, -log_ratio)

    def _centres(self, zeta: Floats) -> Floats:
        """Modes of A^zeta phi lie where s = zeta S(s), between zeta m and zeta M."""
        low, high = self.shifts[0], self.shifts[-1]
        span = np.linspace(0.0, 1.0, 9)
        between = np.multiply.outer(zeta, low + (high - low) * span).ravel()
        return np.concatenate([[0.0, high, 2.0 * high, 0.5 * high], between])

    # -- contour inversion ---------------------------------------------------------------------------------

    def _kernel(self) -> MixtureNodes:
        return MixtureNodes(self._ratio, self._removes)

    def moment_table(self, theta: Floats) -> MomentTable:
        return self._kernel().moment_table(theta)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        return self._kernel().characteristic(theta, reach, log_tolerance)

    def log_decay(self, theta: float, start: Floats) -> Floats:
        return self._kernel().log_decay(theta, start)

    def reverse(self) -> MixtureLaw:
        return replace(self, side=Direction.ADD if self._removes else Direction.REMOVE)

    # -- the distribution ----------------------------------------------------------------------------------

    @property
    def mean(self) -> float:
        return self.nodes(np.zeros(1), 1.0).mean

    def _bottom(self) -> float:
        """log w_0 where the least shift is zero, -inf else: the infimum of log A."""
        return math.log(self.weights[0]) if self.shifts[0] == 0.0 else -math.inf

    @property
    def supremum(self) -> float:
        return math.inf if self._removes else up(-self._bottom(), 8)

    @property
    def infimum(self) -> float:
        return down(self._bottom(), 8) if self._removes else -math.inf

    def closed_rho(self) -> float | None:
        """REMOVE: M^2 / 2, that of the largest shift; E[A^a] <= sum w_j E[r_j^a], and the limit forgives w_j^a."""
        return up(0.5 * self.shifts[-1] ** 2, 8) if self._removes else None

    def _position(self, log_ratio: Floats) -> Floats:
        """About the x with log A(x) = log_ratio: Newton's method inside a bracket; -inf below the infimum."""
        ratio, bottom = self._ratio, self._bottom()
        target = np.where(log_ratio > bottom, log_ratio, 0.0)
        m, w = ratio.columns()
        # every term is at most A: x is at most where the last term alone is e^target, and at least where M e^{l}
        # could be
        high = np.min((target[:, None] - np.log(w) + 0.5 * m * m)[:, m > 0] / m[m > 0], axis=1)
        low = high - 1.0
        for _ in range(200):
            wrong = ratio.log_a(low) > target
            if not wrong.any():
                break
            low = np.where(wrong, low - 2.0 * (high - low), low)
        x = 0.5 * (low + high)
        for _ in range(80):
            value, slope = ratio.log_a(x) - target, ratio.posterior(x).mean
            low, high = np.where(value < 0, x, low), np.where(value < 0, high, x)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = x - value / slope
            good = (newton > low) & (newton < high)
            moved = np.where(good, newton, 0.5 * (low + high))
            if np.all(np.abs(moved - x) <= 4 * EPS * (1 + np.abs(x))):
                x = moved
                break
            x = moved
        return np.where(log_ratio > bottom, x, -np.inf)

    def _enclosed(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        """Bounds of x, verified by the sign of log A(x) - log_ratio with the error of log A; -inf where unknown."""
        ratio = self._ratio
        x = self._position(log_ratio)
        inside = np.isfinite(x)
        x = np.where(inside, x, 0.0)
        target = np.where(inside, log_ratio, 0.0)
        slope = np.maximum(ratio.posterior(x).mean, 1e-300)
        radius = 4.0 * (EPS * (1 + np.abs(x)) + np.minimum(ratio.loss_error(x, ratio.log_a(x)) / slope, 1.0))
        below = above = ~inside
        low, high = x, x
        for _ in range(64):
            low, high = np.where(below, low, x - radius), np.where(above, high, x + radius)
            at_low, at_high = ratio.log_a(low), ratio.log_a(high)
            below = below | (at_low + ratio.loss_error(low, at_low) <= target)
            above = above | (at_high - ratio.loss_error(high, at_high) >= target)
            if (below & above).all():
                break
            radius = 4.0 * radius
        return np.where(inside & below, low, -np.inf), np.where(inside & above, high, np.where(inside, np.inf, -np.inf))

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        shape = np.shape(epsilon)
        flat = np.asarray(epsilon, dtype=np.float64).ravel()
        low, high = self._enclosed(flat if self._removes else -flat)
        if self._removes:
            lower, upper = self._remove_sum(high, flat, -1), self._remove_sum(low, flat, 1)
        else:
            lower, upper = self._add_sum(low, flat, -1), self._add_sum(high, flat, 1)
        return lower.reshape(shape), upper.reshape(shape)

    def _remove_sum(self, x: Floats, epsilon: Floats, sign: int) -> Floats:
        """log sum_j w_j delta_{m_j}(l_j); where A exceeds e^eps everywhere the profile is 1 - e^eps."""
        inside = np.isfinite(x)
        total = self._log_sum(np.where(inside, x, 0.0), 0.0, sign)
        with np.errstate(divide="ignore"):
            missing = -np.expm1(np.minimum(epsilon, 0.0))
            all_of_it = np.log(missing)
        slack = 8 * EPS * (1 + np.where(missing > 0, np.abs(np.where(missing > 0, all_of_it, 0.0)), 0.0))
        if sign < 0:  # 1 - e^eps is a lower bound always; x = +inf: nothing else is known
            return np.minimum(np.maximum(np.where(inside, total, -np.inf), all_of_it - slack), 0.0)
        trivial = np.zeros_like(total)  # the lower end of x is not known
        outside = np.where(epsilon <= self._bottom() - 8 * EPS, all_of_it + slack, trivial)
        return np.minimum(np.where(inside, total, outside), 0.0)

    def _add_sum(self, x: Floats, epsilon: Floats, sign: int) -> Floats:
        """log of e^eps sum_j w_j e^{l_j} delta_{m_j}(-l_j); zero beyond the largest loss."""
        inside = np.isfinite(x)
        total = self._log_sum(np.where(inside, x, 0.0), 1.0, sign) + epsilon
        total = total + sign * 2 * EPS * (np.abs(epsilon) + np.where(np.isfinite(total), np.abs(total), 0.0))
        if sign < 0:
            return np.where(inside, np.minimum(total, 0.0), -np.inf)
        beyond = (
            -epsilon <= self._bottom() - 8 * EPS * (1 + abs(self._bottom())) if self._bottom() > -math.inf else False
        )
        outside = np.where(beyond, -np.inf, 0.0)
        return np.where(inside, np.minimum(total, 0.0), outside)

    def _log_sum(self, x: Floats, power: float, sign: int) -> Floats:
        """log sum_j w_j e^{power l_j} delta_{m_j}(+-l_j), rounded up (sign 1) or down (sign -1)."""
        m, w = self._ratio.columns()
        positive = m > 0
        m, w = m[positive], w[positive]
        terms = x[:, None] * m - 0.5 * m * m
        error = 4 * EPS * (np.abs(x[:, None]) * m + m * m)
        at = (terms if power == 0 else -terms) - sign * error
        part = log_gaussian_delta(np.broadcast_to(m, at.shape), at, mu_ulps=_SHIFT_ULPS)[(1 + sign) // 2]
        part = part + np.log(w) + power * (terms + sign * error)
        top = part.max(axis=1)
        safe = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            total = safe + np.log(np.exp(part - safe[:, None]).sum(axis=1))
        size = 8 + len(m) + 2 * np.abs(safe) + np.abs(np.log(w)).max() + 2 * power * np.abs(terms).max(axis=1)
        return np.asarray(np.where(np.isneginf(total), total, total + sign * 4 * EPS * size))

    def tail(self, loss: Floats) -> Floats:
        m, w = self._ratio.columns()
        flat = np.asarray(loss, dtype=np.float64).ravel()
        if self._removes:
            x = self._position(flat)
            return np.asarray(ndtr(m - x[:, None]) @ w).reshape(np.shape(loss))
        return np.asarray(ndtr(self._position(-flat))).reshape(np.shape(loss))

    def density(self, loss: Floats) -> Floats:
        flat = np.asarray(loss, dtype=np.float64).ravel()
        log_ratio = flat if self._removes else -flat
        x = self._position(log_ratio)
        inside = np.isfinite(x)
        x = np.where(inside, x, 0.0)
        slope = np.maximum(self._ratio.posterior(x).mean, 1e-300)
        height = -0.5 * x * x + (log_ratio if self._removes else 0.0) - np.log(slope)
        return np.where(inside, np.exp(height) / math.sqrt(2 * math.pi), 0.0).reshape(np.shape(loss))
