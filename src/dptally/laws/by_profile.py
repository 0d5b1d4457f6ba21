r"""What a law can say from its privacy profile alone: K, the mean, the tail.

With a = e^l and H the profile of (P, Q), R = dP/dQ, for t > -1 [Taylor's formula with a as the kink]

    E_Q R^{1+t} = 1 - p + t (1 + t) ( int_{l > 0} e^{tl} H_l dl + int_{l < 0} e^{tl} (H_l - 1 + e^l) dl )      (p = 0),

a sum of nonnegative terms: H_l - (1 - e^l)+ = E_Q (R - a)+ for a >= 1 and E_Q (a - R)+ for a < 1. The mean is the two
integrals at t = 0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import lru_cache

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.law import Numbers
from dptally.laws.quadrature.legendre import gauss_legendre
from dptally.numerics.logspace import log1p

__all__ = ["ProfileLaw"]

_POINTS = 16
_NEGLIGIBLE = 60.0  # nats


class ProfileLaw(Law):
    """A law that states its profile, and ``log_excess``: log of H_l - (1 - e^l)+, which does not cancel."""

    __slots__ = ()

    @abstractmethod
    def log_excess(self, loss: Floats) -> tuple[Floats, Floats, Floats]:
        """Bounds of log(H_l - (1 - e^l)+), and an estimate of minus its derivative in l."""

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        flat = np.asarray(epsilon, dtype=np.float64).ravel()
        lower, upper, _ = self.log_excess(flat)
        missing = -np.expm1(np.minimum(flat, 0.0))
        with np.errstate(divide="ignore", over="ignore"):
            some = missing > 0
            low = np.where(some, np.log(missing + np.exp(lower)) - 1e-15, lower)
            high = np.where(some, np.log(missing + np.exp(upper)) + 1e-15, upper)
            low, high = (
                low - 4e-16 * np.abs(np.where(np.isfinite(low), low, 0.0)),
                high + 4e-16 * np.abs(np.where(np.isfinite(high), high, 0.0)),
            )
        shape = np.shape(epsilon)
        return low.reshape(shape), np.minimum(high, 0.0).reshape(shape)

    def log_moment(self, t: Numbers) -> Numbers:
        """An estimate by quadrature; where K has to be a bound, at real t > 0, every law of ours has its own."""
        t = np.asarray(t)
        flat = np.atleast_1d(t).ravel()
        out = np.empty(flat.shape, dtype=np.result_type(flat.dtype, np.float64))
        for i, at in enumerate(flat.tolist()):
            loss, log_mass = _rule(self, float(np.real(at)))
            if not loss.size:
                out[i] = np.inf
                continue
            top = float((log_mass + np.real(at) * loss).max())
            total = np.exp(log_mass + at * loss - top).sum() * math.exp(min(top, 690.0)) if top < 690 else math.inf
            if top >= 690:
                rest = np.log(np.exp(log_mass + at * loss - top).sum()) + top
                out[i] = rest + np.log(at * (1 + at))
                continue
            out[i] = log1p(np.asarray(at * (1 + at) * total))
        return out.reshape(t.shape)

    @abstractmethod
    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        """K at real t > 0 and bounds of its error: not from ``log_moment`` as it stands here."""

    @property
    def mean(self) -> float:
        loss, log_mass = _rule(self, 0.0)
        return float(np.exp(log_mass).sum()) if loss.size else math.inf

    def tail(self, loss: Floats) -> Floats:
        """P(L > l) = H_l - dH_l / dl; an estimate."""
        flat = np.asarray(loss, dtype=np.float64).ravel()
        lower, upper, rate = self.log_excess(flat)
        excess = np.exp(0.5 * (lower + upper))
        excess = np.where(np.isfinite(lower), excess, np.exp(upper))
        whole = np.where(flat < 0, 1.0, 0.0)
        return np.asarray(np.clip(whole + excess * (1.0 + rate), 0.0, 1.0)).reshape(np.shape(loss))

    def density(self, loss: Floats) -> Floats:
        step = 1e-4
        return np.asarray(np.maximum(self.tail(loss - step) - self.tail(loss + step), 0.0) / (2 * step))


@lru_cache(maxsize=64)
def _rule(law: ProfileLaw, tilt: float) -> tuple[Floats, Floats]:
    """(l, log of weight times excess) with all that matters at this tilt, and at zero; empty where it does not end."""
    sides = []
    for sign in (1.0, -1.0):
        points = sign * np.geomspace(1e-6, 1e4, 101)
        value = law.log_excess(points)[1] + max(tilt, 0.0) * points * (sign > 0) + min(tilt, 0.0) * points * (sign < 0)
        value = np.where(np.isnan(value), -np.inf, value)
        end = np.flatnonzero(value > float(value.max()) - _NEGLIGIBLE)
        last = int(end[-1]) + 1
        if last >= len(points):
            return np.empty(0), np.empty(0)
        edges = np.concatenate(([0.0], points[: last + 1]))
        edges = edges[np.concatenate(([True], np.abs(edges[1:]) > 1e-4 * abs(float(edges[-1]))))]
        sides.append(edges)
    nodes, weights = gauss_legendre(_POINTS)
    loss, log_mass = [], []
    for edges in sides:
        half = 0.5 * np.abs(np.diff(edges))
        middle = 0.5 * (edges[1:] + edges[:-1])
        x = (middle[:, None] + half[:, None] * nodes).ravel()
        loss.append(x)
        log_mass.append(np.log(np.multiply.outer(half, weights).ravel()) + law.log_excess(x)[1])
    return np.concatenate(loss), np.concatenate(log_mass)
