r"""K(t) of a loss that is known at quadrature nodes, accurate relative to K also where K is tiny.

With E_P[e^{-L}] = 1 the log-moment is a sum in which nothing cancels for t >= 0:

    E_P[e^{tL}] - 1 = E_P[e^{tL} - 1 - tL] + t E_P[L],      E_P[L] = E_P[L - 1 + e^{-L}],

so a node carries its mass under P, its loss, and its share of E_P[L - 1 + e^{-L}] >= 0. Both terms are nonnegative.
At rate q = 1e-9 the left side is of order q^2 = 1e-18 and still correct to a few ulps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dptally.checks import Floats
from dptally.law.law import Numbers

__all__ = ["LossNodes", "expm1_minus", "minus_log1p"]

_CELLS = 1 << 20  # entries of one (t, node) table: 16 MB of complex numbers
_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(14, 1, -1))


@dataclass(frozen=True, slots=True)
class LossNodes:
    """A quadrature rule for expectations under P: log of the mass, loss, share of E_P[L - 1 + e^{-L}]."""

    log_mass: Floats
    loss: Floats
    divergence: Floats

    @property
    def mean(self) -> float:
        """E_P[L], a sum of nonnegative terms."""
        return math.fsum(self.divergence)

    def log_moment(self, t: Numbers) -> Numbers:
        """log E_P[e^{tL}] for a one-dimensional array of real or complex t."""
        rows = max(1, _CELLS // max(1, self.loss.size))
        out = np.empty(t.shape, dtype=np.result_type(t.dtype, np.float64))
        for start in range(0, t.size, rows):
            out[start : start + rows] = self._block(t[start : start + rows])
        return out

    def _block(self, t: Numbers) -> Numbers:
        u = t[:, None] * self.loss
        peak = np.maximum((self.log_mass + u.real).max(axis=1), 0.0)
        out = np.empty(t.shape, dtype=u.dtype)
        mild = peak < 2.0
        # a large t E[L] would cancel against the rest: then the moment is far from 1 and the plain sum is as good as any
        near_one = mild & (np.abs(t) * self.mean < 0.5)
        plain = mild & ~near_one
        if near_one.any():
            out[near_one] = _log1p(self._excess(u[near_one]) + t[near_one] * self.mean)
        if plain.any():
            out[plain] = np.log(np.exp(self.log_mass + u[plain]).sum(axis=1))
        if not mild.all():
            out[~mild] = self._scaled(t[~mild], u[~mild], peak[~mild])
        return out

    def _excess(self, u: Numbers) -> Numbers:
        """sum of mass * (e^u - 1 - u); the few nodes where e^u overflows but mass * e^u does not go through the logarithm."""
        high = u.real > 500.0
        total: Numbers = expm1_minus(np.where(high, 0.0, u)) @ np.exp(self.log_mass)
        if high.any():
            total = total + np.where(high, np.exp(np.where(high, u + self.log_mass, 0.0)), 0.0).sum(axis=1)
        return total

    def _scaled(self, t: Numbers, u: Numbers, peak: Floats) -> Numbers:
        """The same sum divided by e^peak, where it would overflow."""
        lead = np.exp(u + self.log_mass - peak[:, None]).sum(axis=1)
        rest = np.exp(self.log_mass - peak[:, None])
        moment = lead - (rest * (1 + u)).sum(axis=1) + np.exp(-peak) * (1 + t * self.mean)
        return peak + np.log(moment)  # type: ignore[no-any-return]


def expm1_minus(u: Numbers) -> Numbers:
    """e^u - 1 - u, elementwise, with relative accuracy; real or complex."""
    small = np.abs(u) < 0.3
    v = np.where(small, u, 0.0)
    series: Any = np.full_like(v, _FACTORIALS[0])
    for coefficient in _FACTORIALS[1:]:
        series = series * v + coefficient
    return np.where(small, series * v * v, np.expm1(u) - u)


def minus_log1p(x: Floats, log1p_x: Floats) -> Floats:
    """x - log(1 + x) >= 0 with relative accuracy, given log(1 + x) with relative accuracy.

    For small x, with r = x / (2 + x): log(1 + x) = 2 artanh(r), and x - 2 r = x r.
    """
    small = np.abs(x) < 0.3
    v = np.where(small, x, 0.0)
    r = v / (2.0 + v)
    square = r * r
    series = np.full_like(r, 1.0 / 25.0)
    for k in range(23, 1, -2):
        series = series * square + 1.0 / k
    return np.where(small, r * (v - 2.0 * square * series), x - log1p_x)


def _log1p(x: Numbers) -> Numbers:
    """log(1 + x), real or complex; numpy's complex log1p loses the real part of a small x."""
    if not np.iscomplexobj(x):
        return np.asarray(np.log1p(x))
    square = x.real * (2.0 + x.real) + x.imag * x.imag  # |1 + x|^2 - 1
    with np.errstate(divide="ignore"):
        return 0.5 * np.log1p(np.maximum(square, -1.0)) + 1j * np.arctan2(x.imag, 1.0 + x.real)
