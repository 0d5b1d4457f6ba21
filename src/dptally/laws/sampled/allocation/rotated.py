r"""E e^{-sY} of a Gaussian step's ratio on a turned path, where s is nearly imaginary.

With s = |s| e^{ir} and the path x - ir/m the exponent -sY becomes real: E e^{-sY} = e^{k^2/2} int phi(x) e^{ikx}
e^{-|s| Y} dx,
k = r/m. The trapezoid rule errs by 2 N(a)/(e^{2 pi a/h} - 1), N(a) <= e^{(k + a)^2/2} f(|s| cos ma), f(c) = E e^{-cY}
<= 1. The
factor e^{k^2/2} <= e^{pi^2/(8 m^2)} is small where m is not. Derivations: docs/batching.md, "Sums of ratios".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dptally.law.characteristic import Characteristic
from dptally.numerics.rounding import EPS

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

__all__ = ["TurnedCharacteristic"]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_SHIFT_ULPS = 2.0
_LUMP = 16  # nodes that are added up at once: rounding of sums


@dataclass(frozen=True, slots=True)
class TurnedCharacteristic(Characteristic):
    """phi of W = -Y at the tilt c, centred; ``log_tolerance`` relative to f(c)."""

    shift: float
    tilt: float
    log_tolerance: float
    log_moment: float
    log_moment_error: float
    centre: float

    def _rule(self) -> tuple[Floats, float]:
        m = self.shift
        goal = -self.log_tolerance - min(self.log_moment - self.log_moment_error, 0.0) + math.log(4.0) + 0.2
        turn = 0.5 * math.pi / m
        a = np.linspace(0.1, 1.4, 14) / m
        h = float((2 * math.pi * a / (goal + 0.5 * (turn + a) ** 2)).max())
        far = math.sqrt(2 * (goal + 0.5 * turn * turn))
        number = math.ceil(far / h)
        return h * np.arange(-number, number + 1.0), h

    @property
    def size(self) -> int:
        return len(self._rule()[0])

    def on_grid(self, step: float, number: int) -> tuple[Complexes, Floats]:
        m = self.shift
        x, h = self._rule()
        y = np.exp(m * x - 0.5 * m * m)
        log_base = -0.5 * x * x + (math.log(h) - _HALF_LOG_TAU - self.log_moment)
        value, error = np.empty(number, dtype=np.complex128), np.empty(number)
        ends = np.arange(0, len(x), _LUMP)
        y_error = EPS * (4 + (4 + _SHIFT_ULPS) * (np.abs(m * x) + m * m))
        for i in range(0, number, 512):
            u = step * np.arange(i, min(i + 512, number), dtype=np.float64)
            modulus, angle = np.hypot(self.tilt, u), np.arctan2(u, self.tilt)
            k = angle / m
            decay = np.exp(np.minimum(log_base - np.multiply.outer(modulus, y), 700.0))
            turned = np.exp(1j * np.multiply.outer(k, x))
            factor = np.exp(0.5 * k * k)
            total = np.add.reduceat(decay * turned, ends, axis=1).sum(axis=1) * factor
            size = decay.sum(axis=1)
            rounding = decay @ (2 * x * x + 2 * (_LUMP + len(ends)) + 40 + 2 * abs(self.log_moment)) * EPS
            rounding += (modulus[:, None] * decay * (y * y_error)).sum(axis=1) + 4 * EPS * (decay * np.abs(x)).sum(
                axis=1
            ) * k
            rounding += size * EPS * (8 + 4 * k * k)
            value[i : i + 512] = total * np.exp(-1j * u * self.centre)
            error[i : i + 512] = 1.05 * factor * rounding + 4 * EPS * u * abs(self.centre)
        error = error + 2.2 * math.exp(self.log_tolerance) + 2 * self.log_moment_error
        value = value - 1.0
        value[0], error[0] = 0.0, 0.0
        return value, error

    def in_rows(self, step: float, first: Floats, column: Floats) -> Complexes:
        raise NotImplementedError

    def row_error(self) -> tuple[float, float]:
        raise NotImplementedError
