r"""A piece of the ratio of a Gaussian step as a summand: Y = exp(m x - m^2/2) with low < x <= high, for large sums.

A measure, not a probability. E e^{zY}, z = c + iu, c > 0, by Gauss-Legendre panels in x that narrow towards the upper
end:
on the Bernstein ellipse of a panel |e^{zY}| <= exp(Y_right (c + |u| sin(m tall))). Decay of a piece without lower
end: the
path x + ib/m, then straight down to the upper end, gives for every u >= U and 0 < b < pi/2

    |E e^{zY}| <= e^{b^2/(2m^2)} ( E e^{Y (c cos b - U sin b)} + phi(high) e^{cB} min(b/m, pi / (2 m B U)) ),   B =
    Y(high).

Derivations: docs/batching.md, "Sums of ratios".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dptally.law.characteristic import NodeCharacteristic
from dptally.numerics.rounding import EPS

Floats = NDArray[np.float64]

__all__ = ["LargeLogNormal"]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_RHO = np.array([1.3, 1.7, 2.2, 3.0, 4.0])
_FAR = 39.0
_MAX_NODES = 30_000
_POINTS = 20
_MOST_PANELS = 2500
_ANGLES = np.array([0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.5])
_FIXED = np.array([0.05, 0.1, 0.3, 0.6, 1.0, 1.3])
_STEEP = 4.0  # how much zY may change over a panel's half-width
_GAUSS_ULPS = 16.0
_SHIFT_ULPS = 2.0


@lru_cache(maxsize=64)
def _rule(number: int) -> tuple[Floats, Floats]:
    points, weights = np.polynomial.legendre.leggauss(number)
    return points, weights


@dataclass(frozen=True, slots=True)
class _Panels:
    """Centres and half-widths, from right to left."""

    centre: Floats
    half: Floats

    def nodes(self, number: int) -> tuple[Floats, Floats]:
        points, weights = _rule(number)
        return (self.centre[:, None] + self.half[:, None] * points).ravel(), np.multiply.outer(
            self.half, weights
        ).ravel()


@dataclass(frozen=True, slots=True)
class LargeLogNormal:
    """W = Y on low < x <= high, x the standard normal variable; ``low`` = -39 stands for -inf."""

    shift: float
    low: float
    high: float

    @property
    def largest(self) -> float:
        """B = Y(high), about."""
        return math.exp(min(self.shift * self.high - 0.5 * self.shift**2, 690.0))

    def tilts(self) -> Floats:
        return np.asarray(2.0 ** (np.arange(-20, 19) / 2.0) / self.largest)

    def _panels(self, modulus: float) -> _Panels | None:
        """Panels on which zY, |z| <= modulus, changes by at most e^_STEEP, no longer than one and than 1/m: of equal
        length
        in Y near the upper end, in x further down. None where that needs too many.
        """
        m, widest = self.shift, min(0.5, 0.5 / self.shift)
        turn = (math.log(_STEEP / (m * modulus * widest)) + 0.5 * m * m) / m  # left of here panels have the full length
        ends = [np.array([self.high])]
        if turn < self.high:
            start = max(turn, self.low)
            bottom = math.exp(m * start - 0.5 * m * m)
            number = math.ceil((self.largest - bottom) * modulus / (2 * _STEEP))
            if not number <= _MOST_PANELS:
                return None
            y = np.linspace(self.largest, bottom, number + 1)[1:-1]
            ends.append((np.log(y) + 0.5 * m * m) / m)
            ends.append(np.array([start]))
        start = float(ends[-1][-1])
        if start > self.low:
            number = math.ceil((start - self.low) / (2 * widest))
            ends.append(np.linspace(start, self.low, number + 1)[1:])
        edges = np.concatenate(ends)
        return _Panels(0.5 * (edges[:-1] + edges[1:]), 0.5 * (edges[:-1] - edges[1:]))

    def _log_excess(self, panels: _Panels, tilt: Floats, reach: float) -> Floats:
        """For each tilt and rho: log of the sum over the panels of H (64/15) S / (1 - rho^-2)."""
        m = self.shift
        long = 0.5 * (_RHO + 1 / _RHO)[:, None] * panels.half
        tall = 0.5 * (_RHO - 1 / _RHO)[:, None] * panels.half
        usable = (m * tall < 1.5).all(axis=1)
        nearest = np.maximum(np.abs(panels.centre) - long, 0.0)
        turned = reach * np.sin(np.minimum(m * tall, 1.5))
        y = np.exp(np.minimum(m * (panels.centre + long) - 0.5 * m * m, 690.0))
        fixed = -0.5 * nearest**2 + 0.5 * tall**2 + turned * y - _HALF_LOG_TAU + np.log(panels.half)
        log_s = fixed + np.multiply.outer(np.maximum(tilt, 0.0), y)
        top = log_s.max(axis=2)
        out = (
            top + np.log(np.exp(log_s - top[:, :, None]).sum(axis=2)) + math.log(64 / 15) - np.log1p(-(_RHO**-2)) + 1e-9
        )
        return np.where(usable, out, np.inf)

    def log_moment(self, tilt: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """K at real tilts; those below zero serve as bounds only. inf where the rule would be too long."""
        highest = max(float(tilt.max()), 1.0 / self.largest)
        panels = self._panels(2.0 ** math.ceil(math.log2(highest)))
        if panels is None:
            half = tilt <= 0.5 * highest
            if not half.any():
                return tuple(np.full((4, len(tilt)), np.inf))  # type: ignore[return-value]
            out = np.full((4, len(tilt)), np.inf)
            out[:, half] = np.stack(self.log_moment(tilt[half]))
            return out[0], out[1], out[2], out[3]
        x, weight = panels.nodes(_POINTS)
        m = self.shift
        y = np.exp(m * x - 0.5 * m * m)
        base = np.log(weight) - 0.5 * x * x - _HALF_LOG_TAU
        exponent = base + np.multiply.outer(tilt, y)
        top = exponent.max(axis=1)
        exponent -= top[:, None]
        w = np.exp(exponent, out=exponent)
        shifted = _GAUSS_ULPS * EPS * (1 + np.abs(x))
        size = EPS * (40 + 2 * x * x) + shifted * (np.abs(x) + 1)
        moved = EPS * (8 + (4 + _SHIFT_ULPS) * (np.abs(m * x) + m * m)) + m * shifted
        total, first, second, sized, swayed = np.stack((np.ones_like(y), y, y * y, size, y * moved)) @ w.T
        k = top + np.log(total)
        first, second = first / total, second / total
        second = second - first * first
        missed = (self._log_excess(panels, tilt, 0.0) - 2 * _POINTS * np.log(_RHO)).min(axis=1)
        if self.low <= -_FAR:
            missed = np.logaddexp(missed, -0.5 * _FAR**2)
        defect = np.exp(np.minimum(missed - k, 300.0))
        error = (sized + np.abs(tilt) * swayed) / total + EPS * (len(x) + 8 + 4 * np.abs(k) + 2 * np.abs(top))
        error = 1.05 * (error + defect) + 1e-18
        k = np.where((error < 0.01) | (tilt < 0), k, np.inf)
        return k, error, first, np.maximum(second, 0.0)

    def characteristic(self, tilt: float, reach: float, log_tolerance: float) -> NodeCharacteristic | None:
        m = self.shift
        k, k_error, _, _ = (float(v[0]) for v in self.log_moment(np.array([tilt])))
        if not math.isfinite(k):
            return None
        panels = self._panels(math.hypot(tilt, reach))
        if panels is None:
            return None
        goal = log_tolerance + k - k_error
        needed = np.ceil((self._log_excess(panels, np.array([tilt]), reach)[0] - goal) / (2 * np.log(_RHO)))
        if not np.isfinite(needed.min()):
            return None
        number = int(max(8.0, float(needed.min())))
        number = -(-number // 4) * 4
        if number > 200 or number * len(panels.centre) > _MAX_NODES:
            return None
        x, weight = panels.nodes(number)
        y = np.exp(m * x - 0.5 * m * m)
        exponent = np.log(weight) - 0.5 * x * x - _HALF_LOG_TAU + tilt * y
        top = float(exponent.max())
        keep = exponent > top + log_tolerance - math.log(len(x)) - 1.0  # together below the tolerance
        x, y, exponent = x[keep], y[keep], exponent[keep]
        raw = np.exp(exponent - top)
        total = float(raw.sum())
        weights = raw / total
        shifted = _GAUSS_ULPS * EPS * (1 + np.abs(x))
        y_error = y * (EPS * (8 + (4 + _SHIFT_ULPS) * (np.abs(m * x) + m * m)) + m * shifted)
        weight_error = EPS * (40 + 2 * x * x + 2 * np.abs(exponent)) + shifted * (np.abs(x) + 1) + tilt * y_error
        defect = 5.0 * math.exp(log_tolerance)
        if self.low <= -_FAR:
            defect += math.exp(min(-0.5 * _FAR**2 - k + k_error, 0.0))
        log_moment = top + math.log(total)
        error = (
            1.01 * float(weights @ weight_error) + (len(x) + 8) * EPS + 4 * EPS * (abs(log_moment) + abs(top)) + defect
        )
        return NodeCharacteristic.of(
            y,
            weights,
            loss_error=y_error,
            weight_error=weight_error,
            defect=defect,
            log_moment=log_moment,
            log_moment_error=error,
        )

    def log_decay(self, tilt: float, start: Floats) -> Floats:
        if self.low > -_FAR:
            return np.zeros_like(start)
        m, largest = self.shift, self.largest * (1 + 1e-9)
        k, error, _, _ = (float(v[0]) for v in self.log_moment(np.array([tilt])))
        log_edge = -0.5 * self.high**2 - _HALF_LOG_TAU + tilt * largest - (k - error) + 1e-9
        u = start[:, None]
        angle = np.concatenate((u * (m * m) * _ANGLES, np.broadcast_to(_FIXED, (len(start), len(_FIXED)))), axis=1)
        angle = np.minimum(angle, 1.5)
        inner, inner_error, _, _ = self.log_moment((tilt * np.cos(angle) - u * np.sin(angle)).ravel())
        # below zero the error is only absolute: the value and what the rule may miss
        inner = np.where(np.isfinite(inner), inner + np.log1p(np.minimum(inner_error, 1e300)), np.inf).reshape(
            angle.shape
        )
        edge = log_edge + np.log(np.minimum(angle / m, math.pi / (2 * m * largest * u)))
        bound = 0.5 * (angle / m) ** 2 + np.logaddexp(inner - (k - error), edge)
        return np.asarray(np.minimum(0.0, bound.min(axis=1) + 1e-12))
