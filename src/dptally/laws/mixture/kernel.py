r"""Quadrature nodes for a mixture of Gaussians, with every error bounded: the kernel of the sampled Gaussian, for any
number of shifts.

M(zeta) = E A(t)^zeta, t ~ N(0, 1); the remove direction has K(z) = log M(1 + z) and loss log A, the add direction
K(z) = log M(-z) and loss -log A. On Im t = a, with D the range of the shifts and a D < pi:

    A(t) cos(a D / 2) <= |A(t + ia)| <= A(t),     |A(t + ia)|^2 >= A(t)^2 (1 - a^2 V(t)),     m a <= arg A <= M a,

and arg A(t + ia) grows with t and with a while a M <= pi / 2. Derivations: docs/batching.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dptally.law.characteristic import MomentTable, NodeCharacteristic
from dptally.laws.mixture.ratio import MixtureRatio, Posterior
from dptally.numerics.rounding import EPS

Floats = NDArray[np.float64]

__all__ = ["MixtureNodes"]

_CELL = 0.25
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_MAX_NODES = 20_000
_MAX_TABLE = 4_000_000  # nodes times tilts
_HIGHEST = 4.0
_ANGLES = (0.01, 0.03, 0.08, 0.15, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5)
_HEIGHTS = (0.5, 1.0, 2.0, 3.0, 4.5, 6.0)
_LINES = np.array([0.03, 0.1, 0.25, 0.5, 1.0, 1.6, 2.2, 2.8])


@dataclass(frozen=True, slots=True)
class MixtureNodes:
    """The kernel of one direction."""

    ratio: MixtureRatio
    remove: bool

    def order(self, theta: float) -> float:
        """zeta of the tilt theta."""
        return 1.0 + theta if self.remove else -theta

    # -- where the mass is ---------------------------------------------------------------------------------

    def ends(self, theta: float, log_tolerance: float) -> tuple[float, float]:
        """[left, right] outside of which the mass of phi(t) A^zeta, as an integral and as a sum of step at most one,
        is below the tolerance, relative to M(zeta) >= 1. Also outside of which phi(t) itself is.

        Remove: A <= 1 for t <= 0, so the left tail is below Phi(left); right of R, A <= e^{l(t)} A(R) / e^{l(R)} with l
        the term of the largest shift, which leaves a normal tail about zeta M. Add: A >= w_j e^{l_j} for each j bounds
        the left tail, A >= 1 right of M / 2 the other one.
        """
        plain = math.sqrt(2 * -log_tolerance)
        m, w = self.ratio.columns()
        most = self.ratio.most
        if not self.remove:
            excess = -theta * np.log(w) + 0.5 * theta * (theta + 1) * m * m
            left = theta * m + np.sqrt(2 * np.maximum(0.0, excess - log_tolerance))
            return -max(plain, float(left.min())), max(plain, 0.5 * most)
        zeta = 1 + theta
        top = zeta * most
        log_gauss = 0.5 * (zeta * zeta - zeta) * most * most

        def beyond(right: float) -> float:
            """log of the tail, integral and largest term, less its normal factor; falls with ``right``."""
            share = float(np.log(w @ np.exp(np.minimum((m - most) * right - 0.5 * (m * m - most * most), 700.0))))
            return log_gauss + zeta * share + 0.34

        near = max(plain, 0.5 * most)
        base = max(top, near)
        far = base + math.sqrt(2 * (max(0.0, beyond(base)) - log_tolerance))
        for _ in range(7 + max(0, math.frexp(far)[1] - 6)):
            middle = 0.5 * (near + far)
            fits = beyond(middle) - 0.5 * max(0.0, middle - top) ** 2 <= log_tolerance
            near, far = (near, middle) if fits else (middle, far)
        return -plain, far

    # -- K at many tilts -----------------------------------------------------------------------------------

    def moment_table(self, theta: Floats) -> MomentTable:
        """K(theta) for many real theta >= 0: N(a) <= e^{a^2/2} M, in the add direction times cos(a D / 2)^-theta."""
        zeta = 1.0 + theta if self.remove else -theta
        left, right = self.ends(float(np.max(theta)), math.log(1e-20))
        scale = 1.0 / self.ratio.range
        h = min(0.5, 0.25 * math.pi * scale)
        if not self.remove:
            h = min(h, 0.9 * scale / math.sqrt(max(float(theta.max()), 1e-3)))
        h = 2.0 ** math.floor(math.log2(h))
        if not (right - left) / h * len(theta) <= _MAX_TABLE or not (right - left) / h <= _MAX_NODES:
            return MomentTable(theta, *np.full((4, len(theta)), math.inf))
        t = _points(left, right, h)
        loss = self.ratio.log_a(t)
        exponent = np.multiply.outer(zeta, loss) - 0.5 * t * t
        top = exponent.max(axis=1)
        exponent -= top[:, None]
        powers = np.stack((np.ones_like(loss), loss, loss * loss))
        total, first, second = powers @ np.exp(exponent, out=exponent).T
        first, second = first / total, second / total
        second = second - first * first
        k = top + np.log(total) + (math.log(h) - _HALF_LOG_TAU)
        a = np.minimum(scale * _LINES, 2 * math.pi / h)
        log_defect = (0.5 * a - 2 * math.pi / h) * a
        if not self.remove:
            log_defect = log_defect - np.multiply.outer(theta, np.log(np.cos((0.5 / scale) * a)))
        defect = np.exp(np.minimum(log_defect.min(axis=-1), 0.0))
        sloppy = float(self.ratio.loss_error(t, loss).max())
        furthest = max(float(t[0]) ** 2, float(t[-1]) ** 2)
        longest = float(np.abs(loss).max())
        rounding = len(t) + 8 + 4 * longest * np.abs(zeta) + furthest + 4 * np.abs(k)
        error = 2.2 * defect + 1e-18 + EPS * rounding + sloppy * np.abs(zeta)
        return MomentTable(theta, k, error, first if self.remove else -first, second)

    # -- phi -----------------------------------------------------------------------------------------------

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> NodeCharacteristic | None:
        """Nodes that represent phi(u), \\|u\\| <= reach, to exp(log_tolerance); None where that needs too many."""
        zeta = self.order(theta)
        left, right = self.ends(theta, log_tolerance)
        if not (right - left) <= 0.25 * _MAX_NODES:
            return None
        step, log_mass = self._step(left, right, zeta, reach, log_tolerance)
        if (right - left) / step > _MAX_NODES:
            return None
        t = _points(left, right, step)
        loss = self.ratio.log_a(t)
        loss_error = self.ratio.loss_error(t, loss)
        exponent = -0.5 * t * t + zeta * loss
        weight_error = EPS * (t * t + 3 * np.abs(zeta * loss) + 8) + abs(zeta) * loss_error
        top = float(exponent.max())
        raw = np.exp(exponent - top)
        total = float(raw.sum())
        log_moment, moment_error = self._log_moment(
            t, step, loss, zeta, raw / total, top, total, weight_error, loss_error
        )
        missed = max(0.0, log_mass - log_moment + 1e-6)
        defect = 2.2 * math.exp(log_tolerance + missed) + 4 * math.exp(log_tolerance)
        return NodeCharacteristic.of(
            loss if self.remove else -loss,
            raw / total,
            loss_error=loss_error,
            weight_error=weight_error,
            defect=defect,
            log_moment=log_moment,
            log_moment_error=moment_error + defect,
        )

    def _step(self, left: float, right: float, zeta: float, reach: float, log_tolerance: float) -> tuple[float, float]:
        """(h, log m): the largest step whose trapezoid error at \\|u\\| <= reach is certainly below the tolerance
        times m,
        a mass close to M. Cells as for the sampled Gaussian: arg A at their right ends, V at its largest.
        """
        most, width = self.ratio.most, self.ratio.range
        highest = min(2.5 / width, max(3000.0 / (reach * most), 0.01 / most)) if reach > 0 else 2.5 / width
        lines = [line for line in (*(x / width for x in _ANGLES), *_HEIGHTS) if line <= highest]
        lines = lines or [min(0.01 / width, highest)]
        a = np.array(lines)[:, None]
        furthest = max(lines)
        bound = furthest * most * reach + 0.5 * furthest**2 + max(0.0, -zeta) * 1.2
        far = max(right, zeta * most) + math.sqrt(2 * (bound - log_tolerance))
        grid = _points(left, far, _CELL)
        log_f = -0.5 * grid * grid + zeta * self.ratio.log_a(grid) - _HALF_LOG_TAU
        peak = float(log_f.max())
        log_mass = peak + math.log(float(np.exp(log_f - peak).sum()) * _CELL)
        at = self.ratio.posterior(grid)
        variance = self.ratio.largest_variance(_part(at, slice(None, -1)), _part(at, slice(1, None)), np.array(_CELL))
        cell_log = (
            np.maximum(log_f[:-1], log_f[1:]) + (1 + max(0.0, -zeta) * variance) * (_CELL**2 / 8) + math.log(_CELL)
        )
        argument = self._argument(at.weights[1:], a[:, 0])
        exponent = reach * argument + (cell_log - log_mass)
        shrunk = np.cos(0.5 * width * a)
        if zeta < 0:
            least = np.maximum(1 - a * a * variance, shrunk**2)
            exponent = exponent + 0.5 * zeta * np.log(least)
        high = exponent.max(axis=1, keepdims=True)
        log_n = high[:, 0] + np.log(np.exp(exponent - high).sum(axis=1)) + 0.5 * a[:, 0] ** 2
        first = reach * argument[:, 0] + min(zeta, 0.0) * np.log(shrunk[:, 0]) + 0.5 * a[:, 0] ** 2
        log_n = np.logaddexp(log_n, np.logaddexp(log_tolerance + first, log_tolerance))
        steps = 2 * math.pi * a[:, 0] / (math.log(2.0) + log_n - log_tolerance + 0.1)
        best = min(0.5, float(steps.max()))
        return max(math.floor(best * 4096), 1) / 4096.0, log_mass

    def _argument(self, weights: Floats, heights: Floats) -> Floats:
        """An upper bound of arg A at and left of each point, for each height; the height times M where it may turn."""
        m = np.array(self.ratio.shifts)
        rows = []
        for a in heights.tolist():
            if a * self.ratio.most <= 0.5 * math.pi:
                rows.append(np.arctan2(weights @ np.sin(a * m), weights @ np.cos(a * m)) * (1 + 1e-12))
            else:
                rows.append(np.full(len(weights), a * self.ratio.most))
        return np.array(rows)

    def _log_moment(
        self,
        t: Floats,
        step: float,
        loss: Floats,
        zeta: float,
        weights: Floats,
        top: float,
        total: float,
        weight_error: Floats,
        loss_error: Floats,
    ) -> tuple[float, float]:
        """K and its rounding error; by expm1 where K is small (E_P[1] = 1 in both directions)."""
        k = top + math.log(total * step) - _HALF_LOG_TAU
        if not abs(k) < 0.5:
            return k, float(np.dot(weights, weight_error)) * 1.01 + (len(t) + 8) * EPS + 4 * EPS * (abs(k) + abs(top))
        tilt = zeta - 1.0 if self.remove else zeta
        base = np.exp(math.log(step) - 0.5 * t * t - _HALF_LOG_TAU + (loss if self.remove else 0.0))
        x = tilt * loss
        high = x > 500.0
        lifted = base * np.expm1(np.where(high, 0.0, x))
        lifted = np.where(high, np.exp(np.minimum(np.log(np.maximum(base, 1e-300)) + x, 700.0)), lifted)
        size = np.abs(lifted)
        sharp = math.fsum(lifted)
        error = float(np.dot(size, weight_error + 10 * EPS))
        error += abs(tilt) * float(np.dot(base + size, loss_error + EPS * np.abs(loss)))
        return math.log1p(sharp), 1.05 * error / (1 + sharp) + 4 * EPS * abs(sharp)

    # -- decay ---------------------------------------------------------------------------------------------

    def log_decay(self, theta: float, start: Floats) -> Floats:
        r"""For each U in ``start``: a bound of log \|phi(u)\| for all u >= U; the contour moves to t + i y(t), y >= 0.

        \|phi(u)\| <= E_theta[e^X], X = y^2/2 + zeta log\|A(t+iy)/A(t)\| - U arg A(t+iy) + log(1 + y'^2)/2,
        y = b tanh(kappa U S / b), b M <= 1.1: S, y and arg A grow with t, so the ends of a cell bound them, and V is
        known to a factor e^{D d} on a cell of width d. E[e^X] as for the sampled Gaussian, by the smaller of two sums.
        """
        ratio, zeta = self.ratio, self.order(theta)
        b = min(1.1 / ratio.most, _HIGHEST)
        ceiling = 0.5 * b * b + max(0.0, -zeta) * 0.32 + math.log1p(float(start.max()) * ratio.range**2)
        cell = min(_CELL, 2.0 ** math.floor(math.log2(0.25 / ratio.range)))
        left, right = self.ends(theta, -40.0 - ceiling)
        if not (right - left) / cell <= _MAX_NODES:
            return np.zeros_like(start)
        edges = _points(left, right, cell)
        log_a, at = ratio.log_a(edges), ratio.posterior(edges)
        low, high = _part(at, slice(None, -1)), _part(at, slice(1, None))
        most_v, least_v = (f(low, high, np.array(cell)) for f in (ratio.largest_variance, ratio.smallest_variance))
        log_f = -0.5 * edges * edges + zeta * log_a - _HALF_LOG_TAU
        top = float(log_f.max())
        f = np.exp(log_f - top)
        most = 0.5 * cell * (f[:-1] + f[1:]) * np.exp((1.0 + max(0.0, -zeta) * most_v) * (cell * cell / 8))
        dip = np.maximum(0.0, zeta * most_v - 1.0) * (cell * cell / 12)
        least = np.exp(0.5 * (log_f[:-1] + log_f[1:]) - (dip + top)) * cell
        most, least = most / float(least.sum()), least / float(most.sum())
        slack = (
            1e-9
            + 16 * EPS * float((edges * edges + np.abs(zeta * log_a)).max())
            + abs(zeta) * 4 * float(ratio.loss_error(edges, log_a).max())
        )
        m = np.array(ratio.shifts)
        whole = float(most.sum())
        best = np.full(len(start), np.inf)
        for kappa in self._shapes(zeta, at, least):
            for i, u in enumerate(start.tolist()):
                y = b * np.tanh(kappa * u / b * at.mean)
                inner, outer = y[:-1, None] * m, y[1:]
                argument = np.arctan2(
                    (low.weights * np.sin(inner)).sum(axis=1), (low.weights * np.cos(inner)).sum(axis=1)
                )
                slope = kappa * u * most_v * (1 - (y[:-1] / b) ** 2)
                x = 0.5 * outer * outer - u * argument + 0.5 * np.log1p(slope * slope)
                if zeta >= 0:  # 1 - cos x >= 0.9 x^2 / 2 for x <= 1.1
                    x += 0.5 * zeta * np.log1p(-0.9 * np.minimum(y[:-1] ** 2 * least_v, 0.9))
                else:
                    shrunk = np.maximum(1 - outer * outer * most_v, np.cos(0.5 * ratio.range * outer) ** 2)
                    x += 0.5 * zeta * np.log(shrunk)
                gain = np.expm1(np.minimum(x, 700.0))
                gained = np.maximum(gain, 0.0)
                more, less = float(gained @ most), float((gained - gain) @ least)
                near_one = more - less + slack * (more + less)
                small = (float(gain @ most) + whole * (1 + 8 * EPS * len(edges))) * (1 + slack) - 1.0
                best[i] = min(best[i], near_one, small)
        total = best + 3 * math.exp(-40.0)
        return np.asarray(np.log1p(np.minimum(np.maximum(total, 1e-12 - 1.0), 0.0)))

    def _shapes(self, zeta: float, at: Posterior, mass: Floats) -> list[float]:
        """The kappa that are worth trying: X = U^2 (c kappa^2/2 - kappa) S^2 for small U; any is valid."""
        gentle = 1 / (1 + self.ratio.most**2)
        mean, variance = at.mean[:-1], at.variance[:-1]
        total = float(mass @ (mean * mean))
        if not total > 0:
            return [gentle]
        bent = float(mass @ (variance * variance)) / total - zeta * float(mass @ (variance * mean * mean)) / total
        mixed = 1 / max(2 / 3, 1 + bent)
        return [gentle] if 0.8 < mixed / gentle < 1.25 else [gentle, mixed]


def _part(at: Posterior, which: slice) -> Posterior:
    return Posterior(at.weights[which], at.mean[which], at.variance[which])


def _points(left: float, right: float, step: float) -> Floats:
    """Multiples of the step that cover [left, right]."""
    return np.asarray(step * np.arange(math.floor(left / step), math.ceil(right / step) + 1), dtype=np.float64)
