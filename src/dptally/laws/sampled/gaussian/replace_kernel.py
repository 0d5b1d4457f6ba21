r"""Contour quadrature for the Poisson-sampled Gaussian under REPLACE: l(t) = log A(t) - log A(-t) under A(t) phi(t) dt.

K(z) = log \int A(t)^{1+z} A(-t)^{-z} phi(t) dt, the same in both directions. The pieces are those of
kernel.py: on Im t = a, 0 <= a < pi s, with angle = a/s, \|A(t+ia)\| <= A(t), \|A(-t-ia)\| >= A(-t)
cos(angle/2), and Im l(t + ia) = arg A(t+ia) + arg A(-t+ia), two arguments that lie between 0 and the angle.
docs/certificates.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptally.law.characteristic import MomentTable, NodeCharacteristic
from dptally.laws.sampled.gaussian.kernel import SampledGaussianNodes, strip_defect, weighted_expm1
from dptally.numerics.arrays import Floats
from dptally.numerics.rounding import EPS

__all__ = ["SampledReplaceNodes"]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_MAX_NODES = 20_000
_MAX_TABLE = 400_000  # nodes times tilts
_LINES = np.array([0.25, 0.5, 0.8, 1.1, 1.4, 1.7, 2.0, 2.3, 2.6])  # how far contours move, in units of the scale
_HIGHEST = 4.0
_CELL = 1 / 16
_ANGLES = np.array([0.005, 0.02, 0.06, 0.15, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5])
_FINE_ANGLES = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.2, 2.0])
_FAST, _SHORT = (
    50.0,
    1 / 256,
)  # turns of one step from which on, and steps up to which, the finer bound is worth its time
_MOST_CELLS = 20_000


@dataclass(frozen=True, slots=True)
class SampledReplaceNodes:
    """``rate`` q in (0, 1) and the noise-to-contribution ratio ``scale`` s."""

    rate: float
    scale: float

    def _kernel(self) -> SampledGaussianNodes:
        return SampledGaussianNodes(self.rate, self.scale, True)

    def _ends(self, theta: float, log_tolerance: float) -> tuple[float, float]:
        """Outside of which the tilted mass is below the tolerance, as an integral and as a sum, relative to M >= 1.

        Left of -1/(2s): A(t) <= 1 <= A(-t), so the mass is below Phi(left). Right: A(-t) >= 1 - q, so the mass is that
        of the remove direction times at most (1-q)^-theta.
        """
        plain = max(math.sqrt(-2 * log_tolerance), 0.5 / self.scale)
        _, right = self._kernel().ends(theta, log_tolerance + theta * math.log1p(-self.rate))
        return -plain - 1.0, max(plain, right) + 1.0

    def _exponent(self, t: Floats, theta: float) -> tuple[Floats, Floats, Floats]:
        """(log of the tilted density, loss, log A(t))."""
        up, down = self._kernel().log_a(t), self._kernel().log_a(-t)
        return -0.5 * t * t - _HALF_LOG_TAU + (1.0 + theta) * up - theta * down, up - down, up

    def _step(self, theta: float, reach: float, log_tolerance: float) -> float:
        """The largest step with 2 N(a)/(e^{2 pi a/h} - 1) below the tolerance; N as bounded above."""
        a = np.minimum(_ANGLES * self.scale, 6.0)
        step = _largest(a, self._log_most(a, theta, reach), log_tolerance)
        if reach * step < _FAST and step > _SHORT:
            return step
        a = np.minimum(_FINE_ANGLES * self.scale, 6.0)
        return max(step, _largest(a, self._log_strip(a, theta, reach, log_tolerance), log_tolerance))

    def _log_most(self, a: Floats, theta: float, reach: float) -> Floats:
        """log of a bound of N(a) / M: both arguments of A at most the angle."""
        return np.asarray(0.5 * a * a + 2 * reach * a / self.scale - theta * np.log(np.cos(0.5 * a / self.scale)))

    def _log_strip(self, a: Floats, theta: float, reach: float, log_tolerance: float) -> Floats:
        r"""The same cell by cell, for a reach at which the arguments decide: with share = q e^w / A,

            arg A(t + ia) = atan(share sin / (1 - share (1 - cos))),
            |A(-t - ia)|^2 = A(-t)^2 (1 - 2 share(-t) (1 - share(-t)) (1 - cos)),

        the first growing with t, that of -t falling. On a cell the log of the tilted density exceeds its ends by at
        most an eighth of the square of the cell times 1 + theta share(-t) (1 - share(-t)) / s^2, and its mean (so, by
        Jensen, the log of M's share) falls below theirs by at most a twelfth times (1 + theta) share(t) (1 - share(t))
        / s^2 - 1. Outside of the cells there is less than the tolerance even where everything else is at its largest.
        """
        s, worst = self.scale, self._log_most(a, theta, reach)
        left, right = self._ends(theta, log_tolerance - float(worst.max()))
        cell = min(_CELL, _CELL * s)
        if (right - left) / cell > _MOST_CELLS:  # the highest line needs the most cells: the others without it
            below = self._log_strip(a[:-1], theta, reach, log_tolerance) if len(a) > 1 else worst[:0]
            return np.append(below, worst[-1])
        edges = np.asarray(cell * np.arange(math.floor(left / cell), math.ceil(right / cell) + 1), dtype=np.float64)
        log_f = self._exponent(edges, theta)[0]
        grow, fall = self._kernel().share(edges), self._kernel().share(-edges)
        rising = np.minimum(0.25, grow[1:] * (1 - grow[:-1]))
        falling = np.minimum(0.25, fall[:-1] * (1 - fall[1:]))
        mean = 0.5 * (log_f[:-1] + log_f[1:]) - np.maximum(0.0, (1 + theta) * rising / s**2 - 1.0) * cell**2 / 12
        top = float(mean.max())
        log_least = top + math.log(float(np.exp(mean - top).sum()))
        log_most = np.maximum(log_f[:-1], log_f[1:]) + (1.0 + theta * falling / s**2) * cell**2 / 8 - log_least
        angle = (a / s)[:, None]
        less, sine = 1 - np.cos(angle), np.sin(angle)
        argument = np.arctan2(grow[1:] * sine, 1 - grow[1:] * less) + np.arctan2(fall[:-1] * sine, 1 - fall[:-1] * less)
        exponent = log_most + reach * argument - 0.5 * theta * np.log1p(-2 * falling * less)
        peak = exponent.max(axis=1)
        inside = peak + np.log(np.exp(exponent - peak[:, None]).sum(axis=1)) + 0.5 * a * a
        return np.asarray(np.logaddexp(inside, log_tolerance) + 1e-6)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> NodeCharacteristic | None:
        step = self._step(theta, reach, log_tolerance)
        left, right = self._ends(theta, log_tolerance)
        if (right - left) / step > _MAX_NODES:
            return None
        t = np.asarray(step * np.arange(math.floor(left / step), math.ceil(right / step) + 1), dtype=np.float64)
        exponent, loss, log_a = self._exponent(t, theta)
        kernel = self._kernel()
        up_error = kernel.loss_error(t, log_a, kernel.share(t))
        loss_error = up_error + kernel.loss_error(-t, log_a - loss, kernel.share(-t)) + EPS * np.abs(loss)
        weight_error = EPS * (t * t + 3 * np.abs(theta * loss) + 3 * np.abs(log_a) + 8) + theta * loss_error + up_error
        top = float(exponent.max())
        raw = np.exp(exponent - top)
        total = float(raw.sum())
        weights = raw / total
        defect = 6.2 * math.exp(log_tolerance)
        log_moment = top + math.log(total * step)
        error = 1.01 * float(np.dot(weights, weight_error)) + EPS * (len(t) + 8 + 4 * abs(log_moment) + 4 * abs(top))
        if abs(log_moment) < 0.5:
            base, lifted = weighted_expm1(math.log(step) - 0.5 * t * t - _HALF_LOG_TAU + log_a, theta * loss)
            sharp = math.fsum(lifted)
            size = np.abs(lifted)
            error = float(np.dot(size, weight_error + 10 * EPS)) + theta * float(np.dot(base + size, loss_error))
            log_moment, error = math.log1p(sharp), 1.05 * error / (1 + sharp) + 4 * EPS * abs(sharp)
        return NodeCharacteristic.of(
            loss,
            weights,
            loss_error=loss_error,
            weight_error=weight_error,
            defect=defect,
            log_moment=log_moment,
            log_moment_error=error + defect,
        )

    def moment_table(self, theta: Floats) -> MomentTable:
        """K(theta) for many real theta >= 0, bounds of its absolute error, K' and K''; one grid serves many tilts.

        As for one side of ADD_REMOVE: N(a) <= e^{a^2/2} cos(a/2s)^-theta M.
        """
        most, s = float(theta.max()), self.scale
        left, right = self._ends(most, math.log(1e-20))
        h = 2.0 ** math.floor(math.log2(min(0.5, 0.25 * math.pi * s, 0.9 * s / math.sqrt(max(most, 1e-300)))))
        nodes = (right - left) / h
        if nodes > _MAX_NODES or nodes * len(theta) > _MAX_TABLE:
            return self._in_halves(theta)
        t = np.asarray(h * np.arange(math.floor(left / h), math.ceil(right / h) + 1), dtype=np.float64)
        kernel = self._kernel()
        up, down = kernel.log_a(t), kernel.log_a(-t)
        loss = up - down
        exponent = np.multiply.outer(theta, loss)
        exponent += up - 0.5 * t * t
        top = exponent.max(axis=1)
        exponent -= top[:, None]
        powers = np.stack((np.ones_like(t), loss, loss * loss))
        total, first, second = np.einsum("kn,tn->kt", powers, np.exp(exponent, out=exponent))
        first /= total
        second = second / total - first * first
        k = top + np.log(total) + (math.log(h) - _HALF_LOG_TAU)
        a = np.minimum(s * _LINES, 2 * math.pi / h)
        log_defect = (0.5 * a - 2 * math.pi / h) * a - np.multiply.outer(theta, np.log(np.cos((0.5 / s) * a)))
        defect = strip_defect(log_defect.min(axis=1))
        sloppy = kernel.loss_error(t, up, kernel.share(t)) + kernel.loss_error(-t, down, kernel.share(-t))
        longest = float(np.abs(up).max()) + theta * float(np.abs(loss).max())
        rounding = len(t) + 8 + 4 * longest + float((t * t).max()) + 4 * np.abs(k) + np.abs(top)
        error = 2.2 * defect + 1e-18 + EPS * rounding + (1 + theta) * float(sloppy.max())
        return MomentTable(theta, k, error, first, second)

    def _in_halves(self, theta: Floats) -> MomentTable:
        """The smaller tilts need fewer nodes; one that needs too many by itself is out of reach."""
        if len(theta) == 1:
            return MomentTable(theta, *np.full((4, 1), math.inf))
        middle = len(theta) // 2
        low, high = self.moment_table(theta[:middle]), self.moment_table(theta[middle:])
        columns = ((getattr(part, name) for part in (low, high)) for name in ("moment", "error", "first", "second"))
        return MomentTable(theta, *(np.concatenate(tuple(column)) for column in columns))

    def log_decay(self, theta: float, start: Floats) -> Floats:
        r"""As in :meth:`SampledGaussianNodes.log_decay`, with y = a tanh(kappa U S/(s a)), S = share(t) + share(-t).

        share(t) grows and share(-t) falls along a cell, so its ends give bounds of S, of y and of both arguments.
        """
        s, zeta = self.scale, 1.0 + theta
        built = self.characteristic(theta, 0.0, -25.0)
        if built is None:
            return np.zeros_like(start)
        least_k, most_k = built.log_moment - built.log_moment_error, built.log_moment + built.log_moment_error
        ceiling = 0.5 * min(1.5 * s, _HIGHEST) ** 2 + math.log1p(float(start.max()) / s**2)
        left, right = self._ends(theta, -60.0 - ceiling - 0.32 * theta)
        cell = min(_CELL, _CELL * s)
        if (right - left) / cell > 40_000:
            return np.zeros_like(start)
        edges = np.asarray(cell * np.arange(math.floor(left / cell), math.ceil(right / cell) + 1), dtype=np.float64)
        log_f, loss, log_a = self._exponent(edges, theta)
        kernel = self._kernel()
        grow, fall = kernel.share(edges), kernel.share(-edges)
        size = edges**2 + zeta * np.abs(log_a) + theta * np.abs(loss - log_a)
        size += (zeta * grow + theta * fall) * (np.abs(edges) / s + 0.5 / s**2 - math.log(self.rate))
        slack = 1e-9 + 16 * EPS * float(size.max())  # rounding of the masses and of X
        up_product = np.minimum(0.25, grow[1:] * (1 - grow[:-1]))
        down_product = np.minimum(0.25, fall[:-1] * (1 - fall[1:]))
        log_most = np.logaddexp(log_f[:-1], log_f[1:]) - math.log(2.0) - least_k + math.log(cell)
        log_most += (1.0 + theta * down_product / s**2) * cell**2 / 8
        dip = np.maximum(0.0, zeta * up_product / s**2 - 1.0) * cell**2 / 12
        least = np.exp(0.5 * (log_f[:-1] + log_f[1:]) - dip - most_k) * cell
        # the cells that matter, by a bound of X that holds for every start
        highest = ceiling - 0.5 * theta * np.log1p(-2 * down_product * (1 - math.cos(min(1.1, _HIGHEST / s))))
        keep = log_most + highest > -69.0
        outside = float(np.exp((log_most + highest)[~keep]).sum()) + 1e-24
        log_most, least, down_product = log_most[keep], least[keep], down_product[keep]
        most = np.exp(log_most)
        low_up, low_down = grow[:-1][keep], fall[1:][keep]
        low_sum, high_sum = low_up + low_down, (grow[1:] + fall[:-1])[keep]
        slope_top = np.maximum(up_product[keep], down_product) / s**2  # of a difference: share(-t) falls
        u = start[:, None]
        gentle = s * s / (1 + s * s)
        best = np.zeros_like(start)
        for shape, kappa in ((1.1, gentle), (1.1, 0.5 * gentle), (0.6, min(1.0, 2 * gentle))):
            beta = min(shape, _HIGHEST / s)
            small = beta * np.tanh(kappa * u * low_sum / (s * s * beta))
            large = beta * np.tanh(kappa * u * high_sum / (s * s * beta))
            first = np.arctan2(low_up * np.sin(small), 1 - low_up + low_up * np.cos(small))
            second = np.arctan2(low_down * np.sin(small), 1 - low_down + low_down * np.cos(small))
            slope = kappa * u * slope_top
            x = 0.5 * (s * large) ** 2 - u * (first + second) + 0.5 * np.log1p(slope * slope)
            x -= 0.5 * theta * np.log1p(-2 * down_product * (1 - np.cos(large)))
            gain = np.expm1(np.minimum(x, 700.0))
            parts = np.where(gain > 0, gain * most, gain * least)
            parts = np.where(x > 600.0, np.exp(np.minimum(x + log_most, 700.0)), parts)  # e^X alone overflows
            total = parts.sum(axis=1) + slack * np.abs(parts).sum(axis=1) + outside
            best = np.minimum(best, np.log1p(np.maximum(total, -1 + 1e-300)))
        return best


def _largest(a: Floats, log_n: Floats, log_tolerance: float) -> float:
    """The largest step that one of the lines Im t = a allows."""
    best = min(0.5, float((2 * math.pi * a / (math.log(2.0) + log_n - log_tolerance + 0.1)).max()))
    return max(math.floor(best * 4096), 1) / 4096.0
