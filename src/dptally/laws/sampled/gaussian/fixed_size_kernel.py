r"""Quadrature for fixed-size batches under REPLACE, with every error bounded.

With x = t - m/2 >= 0, w = m x and A = 1 + g (e^w - 1) >= 1 the moment is

    M(z) = int_0^inf phi(x + m/2) (A^{1+z} + A^{-z}) dx + atom,       z = theta + iu,

by Gauss-Legendre panels: on the Bernstein ellipse rho of a panel of half-width H, n points err by at most
H (64/15) S rho^{-2n} / (1 - rho^{-2}), S the supremum of the integrand's modulus on it  [Trefethen 2008, Thm. 4.5].
M >= 1, because the mean loss is not negative. Derivations: docs/batching.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dptally.law.characteristic import MomentTable, NodeCharacteristic
from dptally.laws.sampled.gaussian.kernel import SampledGaussianNodes
from dptally.numerics.rounding import EPS
from dptally.numerics.special import ndtr

Floats = NDArray[np.float64]

__all__ = ["FixedSizeNodes"]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_RHO = np.array([1.2, 1.5, 2.0, 2.7, 3.5, 5.0])
_MOST_POINTS = 160  # of one panel
_MAX_NODES = 20_000
_TABLE_POINTS = 20
_GAUSS_ULPS = 16.0  # of nodes (absolute, of 1) and weights (relative) of numpy's rule


@lru_cache(maxsize=64)
def _rule(number: int) -> tuple[Floats, Floats]:
    points, weights = np.polynomial.legendre.leggauss(number)
    return points, weights


@dataclass(frozen=True, slots=True)
class FixedSizeNodes:
    """``rate`` g in (0, 1), ``scale`` s = 1/m: the noise per unit of the change of one replaced record."""

    rate: float
    scale: float

    @property
    def atom(self) -> float:
        """(1 - g)(1 - 2 Phi(-m/2)), by erf's symmetric difference: relative accuracy also for small m."""
        return (1.0 - self.rate) * math.erf(0.5 / self.scale / math.sqrt(2.0))

    @property
    def _atom_error(self) -> float:
        return 16 * EPS * self.atom + EPS

    def log_a(self, x: Floats) -> Floats:
        """log A, relatively accurate: A - 1 = g expm1(m x) >= 0."""
        w = x / self.scale
        log_rate = math.log(self.rate)
        near = np.log1p(self.rate * np.expm1(np.minimum(w, 600.0)))
        return np.asarray(
            np.where(
                w + log_rate > 40.0,
                w + log_rate + np.log1p((1 - self.rate) * np.exp(-np.maximum(w + log_rate, 30.0))),
                near,
            )
        )

    def share(self, x: Floats) -> Floats:
        """g e^w / A."""
        return np.asarray(
            np.exp(np.minimum(x / self.scale + math.log(self.rate) - self.log_a(np.maximum(x, 0.0)), 0.0))
        )

    def _share_any(self, x: Floats) -> Floats:
        offset = math.log(self.rate) - math.log1p(-self.rate)
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(x / self.scale + offset, -700.0, 700.0))))

    def _log_a_any(self, x: Floats) -> Floats:
        """log A for x of either sign, for bounds only."""
        w = x / self.scale
        return np.asarray(np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + w))

    def end(self, theta: float, log_tolerance: float) -> float:
        """x beyond which both integrals are below the tolerance, relative to M >= 1."""
        _, right = SampledGaussianNodes(self.rate, self.scale, True).ends(theta, log_tolerance)
        return max(right, math.sqrt(-2 * log_tolerance)) - 0.5 / self.scale + 0.5

    def _panels(self, end: float) -> tuple[Floats, float]:
        """(centres, half-width) of panels that cover [0, end]."""
        half = 0.5 * min(1.0, self.scale)
        number = math.ceil(end / (2 * half))
        return np.asarray(half * (2.0 * np.arange(number) + 1.0), dtype=np.float64), half

    def _log_excess(self, centres: Floats, half: float, theta: float, reach: float) -> Floats:
        """For each rho the log of the sum over the panels of H (64/15) S / (1 - rho^-2); inf where the ellipse is too
        tall.
        """
        m, s = 1.0 / self.scale, self.scale
        long, tall = 0.5 * half * (_RHO + 1 / _RHO), 0.5 * half * (_RHO - 1 / _RHO)
        left, right = centres - long[:, None], centres + long[:, None]
        share_l, share_r = self._share_any(left), self._share_any(right)
        angle = m * tall[:, None]
        usable = angle[:, 0] < 1.2
        angle = np.minimum(angle, 1.2)
        variance = np.minimum(0.25, share_r * (1 - share_l)) / s**2
        argument = np.minimum(angle, share_r * np.tan(angle))
        log_phi = -0.5 * (np.stack((left, right)) + 0.5 * m) ** 2 - _HALF_LOG_TAU
        log_a = np.stack((self._log_a_any(left), self._log_a_any(right)))
        square = 0.5 * long[:, None] ** 2  # (2 long)^2 / 8
        rise = (log_phi + (1 + theta) * log_a).max(axis=0) + square
        fall = (log_phi - theta * log_a).max(axis=0) + (1 + theta * variance) * square
        shrunk = np.maximum(np.cos(0.5 * angle) ** 2, 1 - angle**2 * np.minimum(0.25, share_r * (1 - share_l)))
        fall = fall - 0.5 * theta * np.log(shrunk)
        total = np.logaddexp(rise, fall) + reach * argument + 0.5 * tall[:, None] ** 2
        top = total.max(axis=1)
        out = top + np.log(np.exp(total - top[:, None]).sum(axis=1))
        out += math.log(half * 64 / 15) - np.log1p(-(_RHO**-2)) + 1e-9
        return np.where(usable, out, np.inf)

    def _nodes(self, centres: Floats, half: float, number: int) -> tuple[Floats, Floats]:
        points, weights = _rule(number)
        return (centres[:, None] + half * points).ravel(), np.tile(half * weights, len(centres))

    # -- K at many tilts -----------------------------------------------------------------------------------

    def moment_table(self, theta: Floats) -> MomentTable:
        highest = float(theta.max())
        centres, half = self._panels(self.end(highest, math.log(1e-20)))
        if len(centres) * _TABLE_POINTS > _MAX_NODES:
            return MomentTable(theta, *np.full((4, len(theta)), math.inf))
        x, weight = self._nodes(centres, half, _TABLE_POINTS)
        loss = self.log_a(x)
        base = np.log(weight) - 0.5 * (x + 0.5 / self.scale) ** 2 - _HALF_LOG_TAU
        rise = base + np.multiply.outer(1 + theta, loss)
        fall = base - np.multiply.outer(theta, loss)
        top = np.maximum(np.maximum(rise.max(axis=1), fall.max(axis=1)), 0.0)[:, None]
        rise, fall = np.exp(rise - top), np.exp(fall - top)
        total = rise.sum(axis=1) + fall.sum(axis=1) + self.atom * np.exp(-top[:, 0])
        first = (rise - fall) @ loss / total
        second = (rise + fall) @ (loss * loss) / total - first * first
        k = top[:, 0] + np.log(total)
        log_defect = [
            float((self._log_excess(centres, half, t, 0.0) - 2 * _TABLE_POINTS * np.log(_RHO)).min())
            for t in theta.tolist()
        ]
        defect = np.exp(np.minimum(np.array(log_defect) - k, 700.0))
        furthest = float(x[-1] + 0.5 / self.scale)
        longest = float(loss[-1])
        rounding = len(x) + 40 + furthest**2 + (8 * longest + 4 * furthest / self.scale) * (1 + theta) + 4 * np.abs(k)
        error = 1.1 * defect + 1e-18 + EPS * rounding
        bad = ~(error < 0.01)
        return MomentTable(theta, np.where(bad, np.inf, k), error, first, second)

    # -- phi -----------------------------------------------------------------------------------------------

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> NodeCharacteristic | None:
        m = 1.0 / self.scale
        centres, half = self._panels(self.end(theta, log_tolerance))
        if len(centres) > 2000:
            return None
        # the rule stands for E e^{zL} and, where K is formed by expm1, for E 1 as well
        excess = np.logaddexp(self._log_excess(centres, half, theta, reach), self._log_excess(centres, half, 0.0, 0.0))
        needed = np.ceil((excess - log_tolerance) / (2 * np.log(_RHO)))
        number = int(max(8.0, float(needed.min()))) if np.isfinite(needed.min()) else _MOST_POINTS + 1
        if number > _MOST_POINTS or 2 * number * len(centres) > _MAX_NODES:
            return None
        number = -(-number // 4) * 4
        x, weight = self._nodes(centres, half, number)
        loss, share = self.log_a(x), self.share(x)
        shifted = _GAUSS_ULPS * EPS * half + 2 * EPS * x  # of x itself
        loss_error = EPS * (6 * loss + 4 * m * x * share) + m * share * shifted
        base = np.log(weight) - 0.5 * (x + 0.5 * m) ** 2 - _HALF_LOG_TAU
        base_error = EPS * (_GAUSS_ULPS + 8 + 2 * (x + m) ** 2 + 2 * np.abs(base)) + (x + 0.5 * m) * shifted
        losses = np.concatenate((-loss[::-1], [0.0], loss))
        log_mass = np.concatenate((base[::-1], [math.log(self.atom)], base + loss))
        mass_error = np.concatenate((base_error[::-1], [self._atom_error / self.atom], base_error + loss_error))
        loss_error = np.concatenate((loss_error[::-1], [0.0], loss_error))
        exponent = log_mass + theta * losses
        weight_error = mass_error + theta * loss_error + EPS * (4 + 2 * np.abs(exponent))
        top = float(exponent.max())
        raw = np.exp(exponent - top)
        total = float(raw.sum())
        weights = raw / total
        log_moment = top + math.log(total)
        error = float(weights @ weight_error) * 1.01 + (len(x) + 8) * EPS + 4 * EPS * (abs(log_moment) + abs(top))
        if abs(log_moment) < 0.5 and theta * float(loss[-1]) < 600:
            mass = np.exp(log_mass)
            lifted = mass * np.expm1(theta * losses)
            size = np.abs(lifted)
            sharp = math.fsum(lifted)
            error = float(size @ (mass_error + 10 * EPS)) + theta * float(
                (mass + size) @ (loss_error + EPS * np.abs(losses))
            )
            log_moment, error = math.log1p(sharp), 1.05 * error / (1 + sharp) + 4 * EPS * abs(sharp)
        defect = 4.4 * math.exp(log_tolerance)  # the rule and the ends, numerator and denominator; M >= 1
        return NodeCharacteristic.of(
            losses,
            weights,
            loss_error=loss_error,
            weight_error=weight_error,
            defect=defect,
            log_moment=log_moment,
            log_moment_error=error + defect,
        )

    # -- decay ---------------------------------------------------------------------------------------------

    def log_decay(self, theta: float, start: Floats) -> Floats:
        r"""\|phi(u)\| <= (atom + min(C, T / u)) / M: T the total variation of the tilted density of the loss, C its
        mass.

        The density is phi A^{1+theta} / (m share) in the loss above 0 and phi A^{-theta} / (m share) below, of one
        value at
        0; below it only falls outwards. Above, it changes on a cell by at most d sup f sup |(log f)'|.
        """
        m = 1.0 / self.scale
        x_end = self.end(theta, -60.0)
        cell = min(1 / 32, self.scale / 32)
        number = math.ceil(x_end / cell)
        if number > 10 * _MAX_NODES:
            return np.zeros_like(start)
        x = cell * np.arange(number + 1.0)
        t, loss, share = x + 0.5 * m, self.log_a(x), self.share(x)
        log_f = -0.5 * t * t - _HALF_LOG_TAU + (1 + theta) * loss
        top = max(float(log_f.max()), 0.0)
        f = np.exp(log_f - top)
        excess = math.exp(cell * cell / 8)
        height = np.maximum(f[:-1], f[1:]) * excess / (m * share[:-1])
        low = -t[1:] + m * share[:-1] * (2 + theta) - m
        high = -t[:-1] + m * share[1:] * (2 + theta) - m
        changes = height * np.maximum(np.abs(low), np.abs(high)) * cell
        at_zero = float(np.exp(-0.125 * m * m - _HALF_LOG_TAU - top)) / (m * self.rate)
        last = float(f[-1] / (m * share[-1]))  # beyond the cells the density falls
        variation = at_zero + float(changes.sum()) + last
        # masses relative to e^top: above 0 from the cells at their least, at most; below 0 at most Phi(-m/2)
        scale = math.exp(-top)
        below = float(ndtr(-0.5 * m)) * scale
        above_most = float((0.5 * cell * (f[:-1] + f[1:])).sum()) * excess + math.exp(-60.0)
        slack = 1e-9 + 16 * EPS * float((t * t + (1 + theta) * loss).max())
        least = self._least(theta, loss, t, cell, top)
        atom = self.atom * scale
        together = least + atom  # a lower bound of M: the losses below 0 are left out
        part = np.minimum(variation / start, above_most + below)
        bound = (atom + part) / together * (1 + 4 * slack)
        return np.asarray(np.log(np.minimum(bound, 1.0)))

    def _least(self, theta: float, loss: Floats, t: Floats, cell: float, top: float) -> float:
        """A lower bound of the integral above 0, relative to e^top: Jensen's inequality on every cell."""
        log_f = -0.5 * t * t - _HALF_LOG_TAU + (1 + theta) * loss
        dip = max(0.0, (1 + theta) / (4 * self.scale**2) - 1.0) * cell * cell / 12
        return float(np.exp(0.5 * (log_f[:-1] + log_f[1:]) - dip - top).sum()) * cell
