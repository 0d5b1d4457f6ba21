r"""Bounds off the real line of one of the two factors of a sampled Gaussian's law, on cells and beyond them.

The integrand of K(z), z = theta + iu, is phi(t) A(t)^{1+z}, under REPLACE times A(-t)^{-z}. With lam(t) = log A(t) -
log(1 - q) each factor is a power of e^{lam}: a :class:`MixtureFactor` is lam(t), which grows to the right, or lam(-t),
which grows to the left, at the ends of cells, and the soft edges w(lam) = Phi(rho (1 - lam/x)) that cut it. At
t +- i s a, 0 <= a < pi/2, Re lam and \|Im lam\| <= min(a, tan(a) Re lam) grow outwards, so does d Re lam / dt <= 1/s.
:class:`UnitFactor` stands for no factor. Derivations: docs/certificates.md, "Soft edges".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dptally.law.characteristic import SoftCut
from dptally.numerics.arrays import Floats
from dptally.numerics.special import log_ndtr

Bound = float | Floats

__all__ = ["MixtureFactor", "UnitFactor", "WindowBounds", "log1p_exp"]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_INNER, _OUTER = slice(None, -1), slice(1, None)


class OffAxis(NamedTuple):
    """For each cell the least and the most of Re lam and of \\|Im lam\\| at some angles."""

    least: Bound
    most: Bound
    less: Bound
    more: Bound


class WindowBounds(NamedTuple):
    """Logs of bounds of \\|w_high - w_low\\|, \\|w_high\\|, \\|w_low\\|; an edge that is not there is one."""

    change: Bound
    high: Bound
    low: Bound


@dataclass(frozen=True, slots=True)
class UnitFactor:
    """No factor, at the ends t of cells."""

    t: Floats
    scale: float

    def log_power(self, power: Bound) -> Bound:
        """log A^power at the ends."""
        del power
        return 0.0

    def size(self, power: Bound) -> Bound:
        """What the rounding of :meth:`log_power` is relative to."""
        del power
        return 0.0

    def bulge(self, power: Bound) -> Bound:
        """For each cell, how much the curve of log A^power bends down: a bound of minus its second derivative."""
        del power
        return 0.0

    def log_growth(self, power: Bound, angle: Bound) -> Bound:
        """For each cell a bound of log \\|A(t + i s a) / A(t)\\|^power for all angles up to this one."""
        del power, angle
        return 0.0

    def log_shrink(self, power: Bound, angle: Bound) -> Bound:
        """The same for all angles from this one on."""
        del power, angle
        return 0.0

    def turn(self, angle: Bound) -> OffAxis:
        """At one angle."""
        del angle
        return OffAxis(0.0, 0.0, 0.0, 0.0)

    def between(self, small: Floats, large: Floats) -> OffAxis:
        """At angles that lie between these, for each cell its own."""
        del small, large
        return OffAxis(0.0, 0.0, 0.0, 0.0)

    def slope(self) -> Bound:
        """For each cell a bound of s times the derivative of :meth:`share`."""
        return 0.0

    def share(self) -> tuple[Bound, Bound]:
        """For each cell the least and the most of d lam / dw = q e^w / A."""
        return 0.0, 0.0

    def gates(self, turn: OffAxis) -> WindowBounds:
        """For each cell."""
        del turn
        return WindowBounds(-math.inf, 0.0, 0.0)

    def missing(self) -> tuple[Bound, Bound]:
        """For each cell (log of the least w_high, log of the most 1 - w_high) on the real line."""
        return 0.0, -math.inf

    def log_within(self, power: Bound, angle: Bound, reach: float, which: slice) -> tuple[Bound, WindowBounds]:
        """For some ends, bounds of log \\|A^power e^{iu lam}\\|, \\|u\\| <= reach, and of the edges, inwards."""
        del power, angle, reach, which
        return 0.0, WindowBounds(-math.inf, 0.0, 0.0)

    def log_beyond(self, power: Bound, angle: Bound, reach: float, which: slice) -> tuple[Floats, Floats]:
        """For some ends, logs of bounds of the integral, and of the sum, of \\|phi A^power e^{iu lam}\\| times an edge
        outwards, and of the same times w_high - w_low; Im t is s times the angle, or less where reach is zero.
        """
        del power, reach
        t = self.t[which]
        tail = _half_line(t) - (0.5 * t * t + _HALF_LOG_TAU) + 0.5 * (self.scale * angle) ** 2
        return np.asarray(tail), np.full_like(tail, -math.inf)


@dataclass(frozen=True, slots=True)
class MixtureFactor(UnitFactor):
    """The factor of lam(``sign`` t)."""

    sign: int
    rate: float
    low: SoftCut | None
    high: SoftCut | None
    lam: Floats
    ratio: Floats  # share

    @property
    def _log_rest(self) -> float:
        return math.log1p(-self.rate)

    @property
    def _inner(self) -> slice:
        return _INNER if self.sign > 0 else _OUTER

    @property
    def _outer(self) -> slice:
        return _OUTER if self.sign > 0 else _INNER

    def _off_line(self, which: slice, angle: Bound) -> tuple[Floats, Floats]:
        """(Re lam, |Im lam|) at t + i s angle."""
        share, cosine = self.ratio[which], np.cos(angle)
        gap = share * (1 - share) * (2 - 2 * cosine)
        imaginary = np.arctan2(share * np.sin(angle), 1 - share + share * cosine)
        return self.lam[which] + 0.5 * np.log1p(-gap), imaginary

    def _steepness(self, which: slice, angle: Bound) -> Floats:
        """The least d Re lam / dw of all angles up to this one."""
        share, cosine = self.ratio[which], np.cos(angle)
        turned = (share**2 + share * (1 - share) * cosine) / (1 - share * (1 - share) * (2 - 2 * cosine))
        return np.asarray(np.minimum(turned, share))

    def _product(self) -> tuple[Floats, Floats]:
        """The least and the most of share(1 - share) on each cell."""
        low, high = self.ratio[self._inner], self.ratio[self._outer]
        return np.minimum(low * (1 - low), high * (1 - high)), np.minimum(0.25, high * (1 - low))

    def log_power(self, power: Bound) -> Floats:
        return np.asarray(power * (self.lam + self._log_rest))

    def size(self, power: Bound) -> Floats:
        s, rest = self.scale, -self._log_rest
        argument = np.abs(self.t) / s + 0.5 / s**2 + rest - math.log(self.rate)  # it errs by ulps of its summands
        return np.asarray(np.abs(power) * (self.lam + rest + self.ratio * argument))

    def bulge(self, power: Bound) -> Floats:
        return np.asarray(np.maximum(-power, 0.0) * self._product()[1] / self.scale**2)

    def log_growth(self, power: Bound, angle: Bound) -> Floats:
        return np.asarray(0.5 * np.minimum(power, 0.0) * np.log1p(-self._product()[1] * (2 - 2 * np.cos(angle))))

    def log_shrink(self, power: Bound, angle: Bound) -> Floats:
        return np.asarray(0.5 * np.maximum(power, 0.0) * np.log1p(-self._product()[0] * (2 - 2 * np.cos(angle))))

    def turn(self, angle: Bound) -> OffAxis:
        real, imaginary = self._off_line(slice(None), angle)
        inner, outer = self._inner, self._outer
        return OffAxis(real[..., inner], real[..., outer], imaginary[..., inner], imaginary[..., outer])

    def between(self, small: Floats, large: Floats) -> OffAxis:
        most, _ = self._off_line(self._outer, small)
        more = self._off_line(self._outer, large)[1]
        least = self._off_line(self._inner, large)[0]
        return OffAxis(least, most, self._off_line(self._inner, small)[1], more)

    def slope(self) -> Floats:
        return self._product()[1]

    def share(self) -> tuple[Floats, Floats]:
        return self.ratio[self._inner], self.ratio[self._outer]

    def gates(self, turn: OffAxis) -> WindowBounds:
        """\\|Phi(a + ib)\\| <= e^{b^2/2} Phi(a), of either tail."""
        least, most, _, imaginary = turn
        w, v = [], []
        for edge in (self.low, self.high):
            if edge is not None:
                growth = 0.5 * (imaginary / edge.width) ** 2
                below = growth + log_ndtr(edge.rho * (1.0 - least / edge.at))
                above = growth + log_ndtr(edge.rho * (most / edge.at - 1.0))
                w.append(np.minimum(below, log1p_exp(above)))
                v.append(np.minimum(above, log1p_exp(below)))
        if self.low is not None and self.high is not None:
            return WindowBounds(np.minimum(np.logaddexp(w[0], w[1]), np.logaddexp(v[0], v[1])), w[1], w[0])
        if self.low is not None:
            return WindowBounds(v[0], 0.0, w[0])
        return WindowBounds(-math.inf, 0.0, 0.0) if self.high is None else WindowBounds(v[0], w[0], 0.0)

    def missing(self) -> tuple[Bound, Bound]:
        if self.high is None:
            return 0.0, -math.inf
        z = self.high.rho * (self.lam[self._outer] / self.high.at - 1.0)
        return log_ndtr(-z), log_ndtr(z)

    def log_within(self, power: Bound, angle: Bound, reach: float, which: slice) -> tuple[Bound, WindowBounds]:
        lam = self.lam[which]
        imaginary = self._off_line(which, angle)[1]
        grown = power * self._log_rest + np.maximum(power, 0.0) * lam
        return np.asarray(grown + reach * imaginary), self.gates(OffAxis(-math.inf, lam, 0.0, imaginary))

    def log_beyond(self, power: Bound, angle: Bound, reach: float, which: slice) -> tuple[Floats, Floats]:
        """With m = Re lam / x an edge is below exp(-rho^2 ((m-1)^2 - g)/2) for m >= 1, where g is (angle / x)^2 or
        tan^2(angle) m^2. Together with A^power the logarithm of that, where it falls, is concave in Re lam and falls
        outwards ever faster, Re lam being convex. It holds for every smaller angle, too: Re lam falls with the angle,
        and its slope is between those of this angle and of none.
        """
        s, outwards = self.scale, self.sign * self.t[which]
        real, _ = self._off_line(which, angle)
        slope = self._steepness(which, angle)
        tan = np.tan(angle) ** 2
        log_f = power * self._log_rest + np.where(power > 0, power * self.lam[which], power * real)
        log_f = log_f + 0.5 * (angle * s) ** 2 - (0.5 * outwards * outwards + _HALF_LOG_TAU)
        best = np.full(np.broadcast_shapes(log_f.shape, real.shape), math.inf)
        for turned in (True, False):  # Im lam <= tan(angle) Re lam, and Im lam <= angle
            gates, pulls = [], []
            for edge in (self.low, self.high):
                if edge is None:
                    continue
                m = real / edge.at
                falls = (m - 1.0) - (tan * m if turned else 0.0)
                growth = edge.rho**2 * tan * m * m if turned else (angle / edge.width) ** 2
                value = 0.5 * growth - 0.5 * edge.rho**2 * (m - 1.0) ** 2
                usable = (m >= 1.0) & (falls >= 0.0)  # elsewhere an edge is only known to be below its growth
                gates.append(np.where(usable, value, 0.5 * (angle / edge.width) ** 2))
                pulls.append(np.where(usable, falls * edge.rho / edge.width, 0.0))
            gate: Bound = np.logaddexp.reduce(gates) if gates else 0.0
            pull: Bound = np.minimum.reduce(pulls) if pulls else 0.0
            if self.high is None:
                gate, pull = (log1p_exp(gate) if gates else 0.0), 0.0
            flat = reach * angle + _log_swell(power - pull, slope, s, outwards)
            steep = reach * np.tan(angle)
            swell = np.minimum(flat, steep * real + _log_swell(power + steep - pull, slope, s, outwards))
            best = np.fmin(best, log_f + gate + swell)  # inf - inf is no bound
        return best, best if self.low is not None or self.high is not None else np.full_like(best, -math.inf)


def _half_line(g: Floats) -> Floats:
    """log of a bound of int e^{gy - y^2/2} dy over y > 0, and of the same as a sum of step <= 1.

    For g < 0 the integral is below sqrt(pi / 2), which counts where g^2 / 2 and log Phi(g) only leave their rounding.
    """
    integral = _HALF_LOG_TAU + 0.5 * g * g + log_ndtr(g)
    integral = np.where(g < 0, np.fmin(integral, _HALF_LOG_TAU - math.log(2.0)), integral)
    return np.asarray(np.logaddexp(integral, 0.5 * np.maximum(g, 0.0) ** 2))


def _log_swell(rate: Bound, slope: Floats, s: float, t: Floats) -> Floats:
    """log of a bound of int phi(t + y) / phi(t) e^{rate (Re lam(t + y) - Re lam(t))} dy, and of the sum of step <= 1.

    Re lam is convex in t and grows by ``slope`` / s at t and by at most 1 / s anywhere.
    """
    return _half_line(np.where(rate > 0, rate, rate * slope) / s - t)


def log1p_exp(x: Bound) -> Floats:
    return np.asarray(np.logaddexp(0.0, x))
