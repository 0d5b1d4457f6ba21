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

import numpy as np
from numpy.typing import NDArray

from dptally.law.characteristic import MomentTable, NodeCharacteristic
from dptally.laws.quadrature.legendre import gauss_legendre
from dptally.laws.sampled.gaussian.kernel import SampledGaussianNodes
from dptally.numerics.rounding import EPS

Floats = NDArray[np.float64]

__all__ = ["FixedSizeNodes"]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_RHO = np.array([1.2, 1.5, 2.0, 2.7, 3.5, 5.0])
_MOST_POINTS = 160  # of one panel
_MAX_NODES = 20_000
_TABLE_POINTS = 16
_HIGHEST = 4.0  # how far a path is moved at most
_CELL, _HALVINGS = 1 / 8, 16
_GAUSS_ULPS = 16.0  # of nodes (absolute, of 1) and weights (relative): one is enough


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
        half = min(1.0, self.scale)
        number = math.ceil(end / (2 * half))
        return np.asarray(half * (2.0 * np.arange(number) + 1.0), dtype=np.float64), half

    def _log_excess(self, centres: Floats, half: float, theta: Floats, reach: float) -> Floats:
        """For each theta and rho at least the log of the sum over the panels of H (64/15) S / (1 - rho^-2); inf where
        the ellipse is too tall.
        """
        m, s = 1.0 / self.scale, self.scale
        long, tall = 0.5 * half * (_RHO + 1 / _RHO), 0.5 * half * (_RHO - 1 / _RHO)
        ends = np.stack((centres - long[:, None], centres + long[:, None]))
        share = self._share_any(ends)
        angle = m * tall[:, None]
        usable = angle[:, 0] < 1.2
        angle = np.minimum(angle, 1.2)
        product = np.minimum(0.25, share[1] * (1 - share[0]))
        argument = np.minimum(angle, share[1] * np.tan(angle))
        log_phi = -0.5 * (ends + 0.5 * m) ** 2 - _HALF_LOG_TAU
        log_a = self._log_a_any(ends)
        shrunk = np.log(np.maximum(np.cos(0.5 * angle) ** 2, 1 - angle**2 * product))
        square = 0.5 * long[:, None] ** 2  # (2 long)^2 / 8
        order = np.asarray(theta, dtype=np.float64)[:, None, None]
        rise = np.maximum(*(phi + (1 + order) * log for phi, log in zip(log_phi, log_a, strict=True)))
        fall = np.maximum(*(phi - order * log for phi, log in zip(log_phi, log_a, strict=True)))
        fall += order * (product * (square / s**2) - 0.5 * shrunk)
        total = np.maximum(rise, fall) + (reach * argument + 0.5 * tall[:, None] ** 2 + square)
        out = total.max(axis=2) + math.log(2.0 * len(centres) * half * 64 / 15) - np.log1p(-(_RHO**-2)) + 1e-9
        return np.where(usable, out, np.inf)

    def _nodes(self, centres: Floats, half: float, number: int) -> tuple[Floats, Floats]:
        points, weights = gauss_legendre(number)
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
        powers = np.stack((np.ones_like(loss), loss, loss * loss), axis=1)
        exponent = base + np.multiply.outer(1 + theta, loss)
        top = np.maximum(exponent.max(axis=1), 0.0)
        rise = np.exp(exponent - top[:, None]) @ powers
        fall = np.exp(base - np.multiply.outer(theta, loss)) @ powers * np.exp(-top)[:, None]  # below 1: loss >= 0
        total = rise[:, 0] + fall[:, 0] + self.atom * np.exp(-top)
        first = (rise[:, 1] - fall[:, 1]) / total
        second = (rise[:, 2] + fall[:, 2]) / total - first * first
        k = top + np.log(total)
        log_defect = (self._log_excess(centres, half, theta, 0.0) - 2 * _TABLE_POINTS * np.log(_RHO)).min(axis=1)
        defect = np.exp(np.minimum(log_defect - k, 700.0))
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
        excess = np.logaddexp(
            self._log_excess(centres, half, np.array([theta]), reach)[0],
            self._log_excess(centres, half, np.zeros(1), 0.0)[0],
        )
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
        r"""For each U in ``start``: a bound of log \|phi(u)\| for all u >= U; the losses above 0 are taken along
        x + i y(x), those below along x - i y(x), y >= 0 growing from y(0) = 0.

        With angle = y/s, arg = arg A(x + iy) >= 0 and f the tilted density of either side, \|phi(u)\| M is at most the
        atom and the integrals of f e^X \|1 + iy'\|, where
            X = y^2/2 + zeta log\|A(x + iy)/A(x)\| - U arg,     zeta = 1 + theta above and -theta below,
            y = s beta tanh(kappa U share ramp / (s^2 beta)),    ramp = min(x/min(s, 1), 1).
        share, y and arg grow with x, so the ends of a cell bound each term, and the path over it is no longer than the
        cell and the rise of y.
        """
        s = self.scale
        ceiling = 0.5 * min(1.1 * s, _HIGHEST) ** 2 + theta * 0.32 + math.log1p(float(start.max()) / s**2)
        edges = self._decay_edges(self.end(theta, -40.0 - ceiling))
        if edges.size > _MAX_NODES:
            return np.zeros_like(start)
        loss, share = self.log_a(edges), self.share(edges)
        width, low, high = np.diff(edges), share[:-1], share[1:]
        product = np.minimum(0.25, high * (1 - low))
        least_product = np.minimum(low * (1 - low), high * (1 - high))
        log_phi = -0.5 * (edges + 0.5 / s) ** 2 - _HALF_LOG_TAU
        sides = [
            _Cells.of(log_phi + (1 + theta) * loss, width, 1.0, (1 + theta) / s**2 * product - 1.0),
            _Cells.of(log_phi - theta * loss, width, 1.0 + theta / s**2 * product, -1.0),
        ]
        top = max(0.0, *(side.top for side in sides))
        atom = self.atom * math.exp(-top)
        most, least = (
            atom + math.fsum(float(mass.sum()) * math.exp(side.top - top) for side, mass in zip(sides, of, strict=True))
            for of in ([side.most for side in sides], [side.least for side in sides])
        )
        slack = 1e-9 + 16 * EPS * float(((edges + 0.5 / s) ** 2 + (1 + theta) * loss).max())
        beta, gentle = min(1.1, _HIGHEST / s), s * s / (1 + s * s)
        u, best = start[:, None], np.zeros_like(start)
        length = min(s, 1.0)
        ramp = np.minimum(edges / length, 1.0)
        for kappa in (gentle, 0.5 * gentle):
            push = kappa * u / s**2
            angle = beta * np.tanh(push / beta * (share * ramp))
            left, right = angle[:, :-1], angle[:, 1:]
            slope = product * ramp[1:] + s * high / length * (edges[:-1] < length)
            slope = push * slope * (1 - (left / beta) ** 2)
            steep = 0.5 * np.log1p(slope * slope)
            rise = np.log1p(s * (right - left) / width)
            x = 0.5 * (s * right) ** 2 - u * np.arctan2(low * np.sin(left), 1 - low + low * np.cos(left))
            above = x + 0.5 * (1 + theta) * np.log1p(-2 * least_product * (1 - np.cos(left)))
            below = x - 0.5 * theta * np.log1p(-2 * product * (1 - np.cos(right)))
            change = sum(
                side.change(exponent, steep, rise, slack) * math.exp(side.top - top)
                for side, exponent in zip(sides, (above, below), strict=True)
            )
            best = np.minimum(best, np.where(change < 0, change / most, change / least))
        return np.asarray(np.log1p(np.clip(best + 3 * math.exp(-40.0), 1e-12 - 1.0, 0.0)))

    def _decay_edges(self, end: float) -> Floats:
        """Cells: ever finer towards 0, where paths leave the real line."""
        cell = _CELL * min(self.scale, 1.0)
        fine = cell * 2.0 ** np.arange(-_HALVINGS, 0.0)
        return np.concatenate(([0.0], fine, cell * np.arange(1.0, math.ceil(end / cell) + 1.0)))


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Bounds of the mass of a density on cells, relative to e^top: at most, at least, and width times its maximum."""

    top: float
    most: Floats
    least: Floats
    tallest: Floats

    @classmethod
    def of(cls, log_f: Floats, width: Floats, bend: float | Floats, lift: float | Floats) -> _Cells:
        """``bend`` >= -(log f)'', ``lift`` >= (log f)''. log f is above its chord by at most bend h^2/8, and the mean
        of e^chord is at most that of its ends; the mean of log f is below the chord's by at most lift h^2/12, and
        e^mean is at most the mean of f (Jensen).
        """
        top, square = float(log_f.max()), width * width
        f = np.exp(log_f - top)
        bulge = np.exp(bend * square / 8) * width
        dip = np.maximum(lift, 0.0) * square / 12
        least = np.exp(0.5 * (log_f[:-1] + log_f[1:]) - (dip + top)) * width
        return cls(top, 0.5 * (f[:-1] + f[1:]) * bulge, least, np.maximum(f[:-1], f[1:]) * bulge)

    def change(self, x: Floats, steep: Floats, rise: Floats, slack: float) -> Floats:
        """An upper bound of the integral of f (e^x |1 + iy'| - 1), cell by cell: by the slope of the path, or by its
        length and the maximum of f.
        """
        gain = np.expm1(np.minimum(x + steep, 700.0))
        gained = np.where(gain > 0, gain * (self.most * (1 + slack)), gain * (self.least * (1 - slack)))
        whole = np.exp(np.minimum(x + rise, 700.0)) * (self.tallest * (1 + slack)) - self.least * (1 - slack)
        return np.asarray(np.minimum(gained, whole).sum(axis=1))
