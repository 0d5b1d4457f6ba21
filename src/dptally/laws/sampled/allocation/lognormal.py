r"""The ratio of a Gaussian step as a summand: Y = exp(m x - m^2/2), x ~ N(0, 1), mean one.

Small sums need E e^{-sY}, Re s = c > 0. On x + ia the factor |exp(-s Y e^{ima})| is exp(-Y Re(s e^{ima})): so

    trapezoid rule: N(a) <= e^{a^2/2} f(c cos ma - |Im s| sin ma),  0 <= that argument,    f(c) = E e^{-cY};
    decay:          |f(c + iw)| <= e^{b^2/(2 m^2)} f(c cos b + U sin b) for every w >= U, 0 <= b < pi/2,

because f falls. Derivations: docs/batching.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dptally.law.characteristic import Characteristic, NodeCharacteristic
from dptally.laws.sampled.allocation.rotated import TurnedCharacteristic
from dptally.numerics.rounding import EPS

Floats = NDArray[np.float64]

__all__ = ["SmallLogNormal"]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_LINES = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.25, 1.45])  # angles of the lines of the table
_ANGLES = np.array([0.3, 0.5, 0.7, 0.85, 1.0, 1.3, 1.8, 2.5, 4.0])  # of turned paths: in parts of about the best
_FIXED = np.array([0.1, 0.3, 0.6, 1.0, 1.3])
_FURTHEST = 60.0  # standard deviations
_NOTHING = 39.0  # standard deviations beyond which a normal variable has no mass as a double
_MAX_NODES = 40_000
_MANY_NODES = 12000
_TURN = 0.6  # shifts from which a turned path costs little
_SHIFT_ULPS = 2.0


@dataclass(frozen=True, slots=True)
class SmallLogNormal:
    """W = -Y, whose large sums are the small sums of Y; ``shift`` is m."""

    shift: float

    def tilts(self) -> Floats:
        return _tilts(self.shift)

    def log_moment(self, tilt: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """log E e^{-cY} at real c >= 0, one grid for all; +inf where the tilted mass is beyond the grid."""
        m = self.shift
        a = np.minimum(_LINES / m, 8.0)
        h = float((2 * math.pi * a / (50.0 + 0.5 * a * a)).max())
        h = 2.0 ** math.floor(math.log2(min(h, 0.25)))
        # tilting moves mass to the left: right of 39 there is never more than P(X > 39), no double
        x = np.asarray(h * np.arange(-math.ceil(_FURTHEST / h), math.ceil(_NOTHING / h) + 1), dtype=np.float64)
        out = np.empty((4, len(tilt)))
        with np.errstate(over="ignore", under="ignore"):
            y = np.exp(np.minimum(m * x - 0.5 * m * m, 700.0))
            for i in range(0, len(tilt), 64):
                out[:, i : i + 64] = self._rows(tilt[i : i + 64], x, y, h)
        return out[0], out[1], out[2], out[3]

    def _rows(self, tilt: Floats, x: Floats, y: Floats, h: float) -> Floats:
        m = self.shift
        weights = -0.5 * x * x - np.multiply.outer(tilt, y)
        peak = np.argmax(weights, axis=1)
        top = weights[np.arange(len(tilt)), peak]
        weights -= top[:, None]
        np.exp(weights, out=weights)
        total = weights.sum(axis=1)
        k = top + np.log(total * h) - _HALF_LOG_TAU
        first = (weights @ y) / total
        with np.errstate(invalid="ignore"):
            second = (weights @ (y * y)) / total - first * first
        sharp = np.abs(k) < 0.3
        if sharp.any():  # E expm1(-cY)
            base = np.exp(-0.5 * x * x + (math.log(h) - _HALF_LOG_TAU))
            lifted = np.expm1(-np.multiply.outer(tilt[sharp], y)) @ base
            k[sharp] = np.log1p(lifted)
        # what the rule misses: 2 e^{a^2/2 - 2 pi a / h} f(c cos ma) / f(c), and of E 1; f by its own estimate, at
        # most 1
        angle = np.minimum(_LINES, 8.0 * m)
        a = angle / m
        # log f is convex in c: log f(c cos) <= log f(c) - c (1 - cos) (log f)'(c cos), and by f <= 1 at most -log f(c)
        log_defect = (0.5 * a - 2 * math.pi / h) * a + math.log(4.4) - np.minimum(k, 0.0)[:, None]
        defect = np.exp(np.minimum(log_defect.min(axis=1), 300.0))
        size = weights @ (x * x + 1) / total
        moved = tilt * (weights @ np.minimum(y * (np.abs(m * x) + m * m), 1e300)) / total
        rounding = np.where(sharp, 0.0, len(x) + 8 + size + 4 * np.abs(k) + 2 * np.abs(top))
        error = (
            defect
            + 1e-20
            + EPS * (rounding + (4 + _SHIFT_ULPS) * moved + 8 * tilt * first + (len(x) + 8) * tilt * first)
        )
        beyond = np.abs(x[peak]) > _FURTHEST - 15
        k = np.where(beyond | ~np.isfinite(second), np.inf, k)
        return np.stack((k, error, -first, np.maximum(second, 0.0)))

    def _log_f(self, c: Floats) -> Floats:
        """An upper bound of log f at c >= 0 (f = 1 at 0)."""
        k, error, _, _ = self.log_moment(c)
        return np.where(np.isfinite(k), np.minimum(k + error, 0.0), 0.0)

    def characteristic(self, tilt: float, reach: float, log_tolerance: float) -> Characteristic | None:
        m = self.shift
        k, error, _, _ = (float(v[0]) for v in self.log_moment(np.array([tilt])))
        if not math.isfinite(k):
            return None
        log_least = min(k - error, 0.0)
        # ends, relative to f(c), with f(0) = 1 on top: phi(x) alone on the left, phi(x) e^{-cY} on the right
        far = math.sqrt(2 * (-log_tolerance - log_least))
        largest = (math.log((-log_tolerance - log_least) / tilt) + 0.5 * m * m) / m
        right = min(far, max(largest, 0.0) + 1.0) if largest < far - 1 else far
        right = far  # E 1 is integrated by the same nodes where K is small
        height = np.concatenate(
            (math.atan2(tilt, reach) / m * np.array([0.05, 0.2, 0.5, 0.75, 0.9, 0.98, 1.0]), [0.3 / m])
        )
        height = np.minimum(height, 8.0)
        argument = tilt * np.cos(m * height) - reach * np.sin(m * height)
        usable = (argument >= 0) & (m * height < 0.5 * math.pi)
        height, argument = height[usable], argument[usable]
        log_n = 0.5 * height * height + self._log_f(argument) - log_least
        h = float((2 * math.pi * height / (math.log(4.0) + log_n - log_tolerance + 0.1)).max())
        h = min(h, 0.25)
        if m >= _TURN and 2 * far / h > _MANY_NODES:
            first = float(self.log_moment(np.array([tilt]))[2][0])
            return TurnedCharacteristic(m, tilt, log_tolerance, k, error, first)
        h = 2.0 ** (math.floor(8 * math.log2(h)) / 8)
        if not (far + right) / h <= _MAX_NODES:
            return None
        x = h * np.arange(-math.ceil(far / h), math.ceil(right / h) + 1)
        y = np.exp(np.minimum(m * x - 0.5 * m * m, 700.0))
        exponent = -0.5 * x * x - tilt * y
        keep = exponent > exponent.max() - 745.0
        keep |= x * x < 2 * 745.0
        x, y, exponent = x[keep], y[keep], exponent[keep]
        y_error = y * EPS * (4 + (4 + _SHIFT_ULPS) * (np.abs(m * x) + m * m))
        top = float(exponent.max())
        raw = np.exp(exponent - top)
        total = float(raw.sum())
        weights = raw / total
        weight_error = EPS * (2 * x * x + 3 * tilt * y + 8) + tilt * y_error
        alive = weights > 0
        log_moment = top + math.log(total * h) - _HALF_LOG_TAU
        moment_error = (
            float(weights[alive] @ weight_error[alive]) * 1.01
            + (len(x) + 8) * EPS
            + 4 * EPS * (abs(log_moment) + abs(top))
        )
        if abs(log_moment) < 0.5:
            base = np.exp(-0.5 * x * x + (math.log(h) - _HALF_LOG_TAU))
            lifted = base * np.expm1(-tilt * y)
            size = np.abs(lifted)
            sharp = math.fsum(lifted)
            moment_error = float(size @ (EPS * (2 * x * x + 12))) + float(
                base @ np.minimum(tilt * (y_error + EPS * y), 1.0)
            )
            moment_error = 1.05 * moment_error / (1 + sharp) + 4 * EPS * abs(sharp)
            log_moment = math.log1p(sharp)
        defect = 2.2 * 2.2 * math.exp(log_tolerance)  # numerator and denominator, the rule and the ends
        return NodeCharacteristic.of(
            -y[alive],
            weights[alive],
            loss_error=y_error[alive],
            weight_error=weight_error[alive],
            defect=defect,
            log_moment=log_moment,
            log_moment_error=moment_error + defect,
        )

    def log_decay(self, tilt: float, start: Floats) -> Floats:
        m = self.shift
        k, error, _, _ = (float(v[0]) for v in self.log_moment(np.array([tilt])))
        u = start[:, None]
        ideal = u * (m * m / (1 + tilt * m * m))
        angle = np.concatenate((ideal * _ANGLES, np.broadcast_to(_FIXED, (len(start), len(_FIXED)))), axis=1)
        angle = np.minimum(angle, 1.5)
        turned = self._log_f((tilt * np.cos(angle) + u * np.sin(angle)).ravel()).reshape(angle.shape)
        bound = 0.5 * (angle / m) ** 2 + turned - (k - error)
        return np.asarray(np.minimum(0.0, bound.min(axis=1) + 1e-12))


@lru_cache(maxsize=64)
def _tilts(m: float) -> Floats:
    """From far below one to where the tilted mass leaves the grid."""
    tilt = 2.0 ** (np.arange(-80, 141) / 2.0)
    k = SmallLogNormal(m).log_moment(tilt)[0]
    return np.asarray(tilt[np.isfinite(k)])
