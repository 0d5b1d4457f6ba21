r"""Quadrature nodes for the Poisson-sampled Gaussian, with every error bounded.

With t ~ N(0, 1), w = t/s - 1/(2 s^2), s = sigma/sensitivity and A(t) = 1 - q + q e^w, the moment of order zeta is
M(zeta) = E A(t)^zeta; the remove direction has K(z) = log M(1 + z) and loss log A, the add direction K(z) = log M(-z)
and
loss -log A. The trapezoid rule of step h on the whole line errs by at most 2 N(a) / (e^{2 pi a / h} - 1) for any a
below
pi s, where A has no zero and N(a) bounds the integral of the modulus on Im t = +-a  [Trefethen, Weideman 2014, Thm.
5.1].
The certificates are derived line by line in docs/certificates.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptally.law.characteristic import MomentTable, NodeCharacteristic
from dptally.laws.sampled.pair import mixture
from dptally.numerics.arrays import Floats
from dptally.numerics.rounding import EPS, FUNCTION_ULPS
from dptally.numerics.special import expit, ndtr

__all__ = ["SampledGaussianNodes"]

_CELL = 0.25  # width of the coarse cells on which bounds (not values) are computed
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_MAX_NODES = 20_000
_HIGHEST = 4.0  # how far a contour is moved at most
_ANGLES = (0.01, 0.03, 0.08, 0.15, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5)
_HEIGHTS = (0.5, 1.0, 2.0, 3.0, 4.5, 6.0)
#: angles are taken of no larger scale: a line at height a proves no step beyond 2 pi a / (a^2/2 - log tolerance), which
#: falls from sqrt(-2 log tolerance) on, while the cells must reach a beyond the mass
_TALLEST = 26.0
_LINES = np.array([0.03, 0.1, 0.25, 0.5, 1.0, 1.6, 2.2, 2.8])  # where contours may lie, in units of the scale
_FINE = np.arange(-12.0, 4.0, 0.125)  # fine edges about share = 1/2, in units of the scale


@dataclass(frozen=True, slots=True)
class SampledGaussianNodes:
    """The kernel of one direction: ``rate`` q in (0, 1), noise-to-sensitivity ratio ``scale`` s, ``remove`` or add."""

    rate: float
    scale: float
    remove: bool

    def log_a(self, t: Floats) -> Floats:
        """log A(t), relatively accurate also near A = 1 and for q near 0 and 1."""
        w = t / self.scale - 0.5 / self.scale**2
        if self.rate <= 0.5 and w.size and float(w.max()) + math.log(self.rate) < 30.0:
            return np.log1p(self.rate * np.expm1(w))  # A - 1 >= -1/2: the plain formula is as accurate, and fast
        log_a: Floats = mixture(self.rate, w)[1]
        return log_a

    def share(self, t: Floats) -> Floats:
        """s(t) = q e^w / A, the posterior probability of having been sampled; d log A / dt = s / scale."""
        offset = math.log(self.rate) - math.log1p(-self.rate)
        value: Floats = np.asarray(expit(t / self.scale - 0.5 / self.scale**2 + offset))
        return value

    def mass_above(self, t: float) -> float:
        """P of the remove direction beyond t, to a few ulps: (1 - q) Phi(-t) + q Phi(1/s - t)."""
        return float((1 - self.rate) * ndtr(-t) + self.rate * ndtr(1 / self.scale - t))

    def mass_below(self, t: float) -> float:
        """P of the remove direction below t."""
        return float((1 - self.rate) * ndtr(t) + self.rate * ndtr(t - 1 / self.scale))

    def loss_error(self, t: Floats, loss: Floats, share: Floats) -> Floats:
        """Bounds of the rounding error of log_a: of w (times d log A / dw = share), of expm1 and of log1p."""
        s = self.scale
        sloppy_w = share * (2 * np.abs(t) / s + 2 / s**2 + 2 * abs(math.log(self.rate)))
        ulps = FUNCTION_ULPS * np.abs(loss) + (FUNCTION_ULPS + 2) * np.abs(np.expm1(-loss)) + sloppy_w
        return np.asarray(EPS * ulps, dtype=np.float64)

    def order(self, theta: float) -> float:
        """zeta of the tilt theta."""
        return 1.0 + theta if self.remove else -theta

    def moment_table(self, theta: Floats) -> MomentTable:
        """K(theta) for many real theta >= 0, bounds of its absolute error, K' and K''. One coarse grid serves all.

        For real zeta >= 0, |A(t + ia)| <= A(t), so N(a) <= e^{a^2/2} M; for zeta < 0, |A(t + ia)| >= A(t) cos(a / 2s)
        gives the further factor cos(a/2s)^{zeta}. Ranges as in :meth:`ends`.
        """
        zeta = 1.0 + theta if self.remove else -theta
        left, right = self.ends(float(np.max(theta)), math.log(1e-20))
        h = min(0.5, 0.25 * math.pi * self.scale)
        if not self.remove:  # the tilted mass narrows as theta grows
            h = min(h, 0.9 * self.scale / math.sqrt(float(theta.max())))
        h = 2.0 ** math.floor(math.log2(h))
        if (right - left) / h > _MAX_NODES:
            return MomentTable(theta, *np.full((4, len(theta)), math.inf))
        t = _points(left, right, h)
        loss = self.log_a(t)
        exponent = np.multiply.outer(zeta, loss)
        exponent -= 0.5 * t * t
        top = exponent.max(axis=1)
        exponent -= top[:, None]
        powers = np.ones((3, len(t)))
        powers[1] = loss
        np.multiply(loss, loss, out=powers[2])
        total, first, second = powers @ np.exp(exponent, out=exponent).T
        first /= total
        second = second / total - first * first
        k = top + np.log(total) + (math.log(h) - _HALF_LOG_TAU)
        a = np.minimum(self.scale * _LINES, 2 * math.pi / h)
        log_defect = (0.5 * a - 2 * math.pi / h) * a
        if not self.remove:
            log_defect = log_defect - np.multiply.outer(theta, np.log(np.cos((0.5 / self.scale) * a)))
        defect = strip_defect(log_defect.min(axis=-1))
        longest = max(abs(float(loss[0])), abs(float(loss[-1])))  # the loss is monotone in t
        furthest = max(float(t[0]) ** 2, float(t[-1]) ** 2)
        sloppy = 2 * math.sqrt(furthest) / self.scale + 2 / self.scale**2 - 2 * math.log(self.rate)  # of w: loss_error
        per_order = (FUNCTION_ULPS + 2) * (1 + longest) + sloppy
        rounding = len(t) + 8 + per_order * np.abs(zeta) + furthest + 4 * np.abs(k)
        error = 2.2 * defect + 1e-18 + EPS * rounding
        return MomentTable(theta, k, error, first if self.remove else -first, second)

    def ends(self, theta: float, log_tolerance: float) -> tuple[float, float]:
        """[left, right] outside of which the mass of phi(t) A^zeta, as an integral and as a sum, is below the
        tolerance.

        Relative to M(zeta) >= 1 (Jensen: E A = 1 and zeta is outside (0, 1)). Also outside of which phi(t) itself is.
        Remove: A <= 1 left of 1/(2s), so the left tail is below Phi(left). On the right A <= e^w (q + (1-q)
        e^{-w(R)}), so the tail is below (q + (1-q)e^{-w(R)})^zeta e^{(zeta^2 - zeta)/(2 s^2)} times a normal tail
        about zeta/s. Add: A >= 1 - q and A >= q e^w bound the left tail by (1-q)^-theta Phi(left) and by q^-theta
        e^{theta (theta+1)/(2 s^2)} Phi(left + theta/s); A >= 1 right of 1/(2s).
        """
        q, s = self.rate, self.scale
        plain = math.sqrt(2 * -log_tolerance)
        if not self.remove:
            first = math.sqrt(2 * (-log_tolerance - theta * math.log1p(-q)))
            second_mass = -theta * math.log(q) + theta * (theta + 1) / (2 * s**2)
            second = theta / s + math.sqrt(2 * max(0.0, -log_tolerance + second_mass))
            return -max(plain, min(first, second)), max(plain, 0.5 / s)
        zeta = 1 + theta
        top = zeta / s
        log_gauss = (zeta * zeta - zeta) / (2 * s**2)

        def beyond(right: float) -> float:
            """log of the tail, integral and largest term, less its normal factor; falls with ``right``."""
            return log_gauss + zeta * math.log(q + (1 - q) * math.exp(0.5 / s**2 - right / s)) + 0.34

        near = max(plain, 0.5 / s)
        base = max(top, near)
        far = base + math.sqrt(2 * (max(0.0, beyond(base)) - log_tolerance))
        halvings = 7 + max(0, math.frexp(far)[1] - 6)
        for _ in range(halvings):  # Phi(-x) + phi(x) <= e^{-x^2/2} for x >= 0, and at most 1.4 below
            middle = 0.5 * (near + far)
            fits = beyond(middle) - 0.5 * max(0.0, middle - top) ** 2 <= log_tolerance
            near, far = (near, middle) if fits else (middle, far)
        return -plain, far

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> NodeCharacteristic | None:
        """Nodes that represent phi(u), |u| <= reach, to exp(log_tolerance); None where that needs too many."""
        zeta = self.order(theta)
        left, right = self.ends(theta, log_tolerance)
        if (right - left) > 0.25 * _MAX_NODES:
            return None
        step, log_mass = self._step(left, right, zeta, reach, log_tolerance)
        if (right - left) / step > _MAX_NODES:
            return None
        t = _points(left, right, step)
        loss = self.log_a(t)
        share_t = self.share(t)
        loss_error = self.loss_error(t, loss, share_t)
        exponent = -0.5 * t * t + zeta * loss
        weight_error = EPS * (t * t + 3 * np.abs(zeta * loss) + 8) + abs(zeta) * loss_error
        top = float(exponent.max())
        raw = np.exp(exponent - top)
        total = float(raw.sum())
        weights = raw / total
        log_moment, moment_error = self._log_moment(
            t, step, loss, theta, exponent, top, total, weight_error, loss_error
        )
        # the step was chosen relative to exp(log_mass): what that exceeds M by, the tolerance is missed by
        missed = max(0.0, log_mass - log_moment + 1e-6)
        defect = 2.2 * math.exp(log_tolerance + missed)  # numerator and denominator, integral error
        tails = 4 * math.exp(log_tolerance)
        moment_error += defect + tails
        sign = 1.0 if self.remove else -1.0
        centre = float(np.dot(weights, loss))
        centred = loss - centre
        loss_error = loss_error + EPS * (np.abs(loss) + abs(centre))
        return NodeCharacteristic(
            losses=sign * centred,
            weights=weights,
            loss_error=loss_error,
            weight_error=weight_error,
            defect=defect + tails,
            log_moment=log_moment,
            log_moment_error=moment_error,
            centre=sign * centre,
        )

    def _step(self, left: float, right: float, zeta: float, reach: float, log_tolerance: float) -> tuple[float, float]:
        """(h, log m): the largest step whose trapezoid error at |u| <= reach is certainly below the tolerance times
        m, a mass close to M.

        On Im t = a, with angle = a/s: |A(t+ia)| <= A for zeta >= 0, and exactly
        A^2 - |A(t+ia)|^2 = 2 A^2 share(1-share)(1 - cos angle);
        arg A(t+ia) grows with t, so the right end of a cell bounds it, and it is at most the angle. The cells reach
        so far to the right that what lies beyond is negligible even with the factor e^{reach angle}.
        """
        s = self.scale
        highest = min(2.5, max(3000.0 / reach, 0.01)) * s if reach > 0 else 2.5 * s
        lines = [line for line in (*(x * min(s, _TALLEST) for x in _ANGLES), *_HEIGHTS) if line <= highest]
        a = np.array(lines)[:, None]
        angle = a / s
        most = max(lines) / s * reach + 0.5 * max(lines) ** 2 + max(0.0, -zeta) * 1.2
        # at max(right, zeta/s) the normal tail that bounds the mass is below the tolerance; d further it has fallen
        # by e^{-d^2/2}
        far = max(right, zeta / s) + math.sqrt(2 * (most - log_tolerance))
        grid = _points(left, far, _CELL)
        log_f = -0.5 * grid * grid + zeta * self.log_a(grid) - _HALF_LOG_TAU
        top = float(log_f.max())
        log_mass = top + math.log(float(np.exp(log_f - top).sum()) * _CELL)
        share = self.share(grid)
        middle = np.minimum(0.25, share[1:] * (1 - share[:-1]))  # sup of share(1-share) on a cell
        cell_log = (
            np.maximum(log_f[:-1], log_f[1:])
            + (1.0 + max(0.0, -zeta) * middle / s**2) * (_CELL**2 / 8)
            + math.log(_CELL)
        )
        share = share[1:]
        less = 1 - np.cos(angle)
        argument = np.arctan2(share * np.sin(angle), 1 - share * less)
        exponent = reach * argument + (cell_log - log_mass)
        if zeta < 0:
            exponent += 0.5 * zeta * np.log1p(-2 * middle * less)
        peak = exponent.max(axis=1, keepdims=True)
        log_n = peak[:, 0] + np.log(np.exp(exponent - peak).sum(axis=1)) + 0.5 * a[:, 0] ** 2
        # left of the cells the mass is below the tolerance, and both factors are below those of the first cell, as
        # long as share(1-share) grows there
        first = exponent[:, 0] - (cell_log[0] - log_mass) + 0.5 * a[:, 0] ** 2
        if zeta < 0 and share[0] > 0.5:
            first = reach * argument[:, 0] + 0.5 * zeta * np.log(0.5 + 0.5 * np.cos(angle[:, 0])) + 0.5 * a[:, 0] ** 2
        log_n = np.logaddexp(log_n, np.logaddexp(log_tolerance + first, log_tolerance))
        steps = 2 * math.pi * a[:, 0] / (math.log(2.0) + log_n - log_tolerance + 0.1)
        best = min(0.5, float(steps.max()))
        return max(math.floor(best * 4096), 1) / 4096.0, log_mass

    def _log_moment(
        self,
        t: Floats,
        step: float,
        loss: Floats,
        theta: float,
        exponent: Floats,
        top: float,
        total: float,
        weight_error: Floats,
        loss_error: Floats,
    ) -> tuple[float, float]:
        """K and its rounding error; by expm1 where K is small, so that the error is relative to E|theta L|, not to
        1. There theta itself is the tilt: (1 + theta) - 1 would be another one.
        """
        n = len(t)
        k = top + math.log(total * step) - _HALF_LOG_TAU
        if not abs(k) < 0.5:
            weights = np.exp(exponent - top) / total
            return k, float(np.dot(weights, weight_error)) * 1.01 + (n + 8) * EPS + 4 * EPS * (abs(k) + abs(top))
        # E_P[e^{theta L}] - 1 = E_P[expm1(theta L)], and E_P[1] = 1 in both directions
        tilt = theta if self.remove else -theta
        base, lifted = weighted_expm1(
            math.log(step) - 0.5 * t * t - _HALF_LOG_TAU + (loss if self.remove else 0.0), tilt * loss
        )
        size = np.abs(lifted)
        sharp = math.fsum(lifted)  # exact sum: only the terms err
        error = float(np.dot(size, weight_error + 10 * EPS)) + abs(tilt) * float(
            np.dot(base + size, loss_error + EPS * np.abs(loss))
        )
        return math.log1p(sharp), 1.05 * error / (1 + sharp) + 4 * EPS * abs(sharp)

    def _decay_edges(self, theta: float, log_tolerance: float) -> Floats:
        """Cells: coarse everywhere, fine where share(t) grows from nothing towards one."""
        edges = _points(*self.ends(theta, log_tolerance), _CELL)
        if self.scale >= 8 * _CELL:
            return edges
        centre = 0.5 / self.scale - self.scale * (math.log(self.rate) - math.log1p(-self.rate))
        fine = centre + self.scale * _FINE
        fine = fine[np.searchsorted(fine, edges[0], "right") : np.searchsorted(fine, edges[-1])]
        if not fine.size:
            return edges
        before, after = np.searchsorted(edges, fine[0]), np.searchsorted(edges, fine[-1], "right")
        return np.concatenate((edges[:before], fine, edges[after:]))

    def log_decay(self, theta: float, start: Floats) -> Floats:
        r"""For each U in ``start``: a bound of log \|phi(u)\| for all u >= U; the contour moves to t + i y(t), y >= 0.

        arg A(t + iy) >= 0 for 0 <= y < pi s, so \|phi(u)\| <= E_theta[e^X] for every u >= U, with angle = y/s and
            X = y^2/2 + zeta log\|A(t+iy)/A(t)\| - U arg A(t+iy) + log(1 + y'^2)/2,
            y = a tanh(kappa U share / (s a)),  a <= s pi/2.
        E[e^X] is bounded cell by cell, by the smaller of two sums: the supremum of e^X times an upper bound of the
        cell's mass; and 1 + E[e^X - 1], the supremum of e^X - 1 times an upper bound of the mass where it is
        positive, a lower bound where it is negative. share, y, and arg A (in share and, for angles up to pi/2, in the
        angle) increase with t, so the ends of a cell bound each term of X.
        """
        s, zeta = self.scale, self.order(theta)
        ceiling = 0.5 * min(1.5 * s, _HIGHEST) ** 2 + max(0.0, -zeta) * 0.32 + math.log1p(float(start.max()) / s**2)
        # X is below the ceiling everywhere: what lies outside of the cells counts e^-40 on either side
        edges = self._decay_edges(theta, -40.0 - ceiling)
        log_a, share = self.log_a(edges), self.share(edges)
        log_f = -0.5 * edges * edges + zeta * log_a - _HALF_LOG_TAU
        width = edges[1:] - edges[:-1]
        low, high = share[:-1], share[1:]
        product = np.minimum(0.25, high * (1 - low))
        # log f is above its chord by at most (1 + ...) h^2/8, and its mean is below the chord's by at most its
        # convexity h^2/12;
        # the mean of e^chord is at most the mean of its ends, and e^(mean of log f) at most the mean of f (Jensen)
        top = float(log_f.max())
        f = np.exp(log_f - top)
        most = (0.5 * width) * (f[:-1] + f[1:]) * np.exp((1.0 + max(0.0, -zeta) / s**2 * product) * (width * width / 8))
        dip = np.maximum(0.0, zeta / s**2 * product - 1.0) * (width * width / 12)
        least = np.exp(0.5 * (log_f[:-1] + log_f[1:]) - (dip + top)) * width
        most, least = most / float(least.sum()), least / float(most.sum())  # the cells bound M themselves
        # rounding of the masses and of X
        slack = 1e-9 + 16 * EPS * float((edges * edges + np.abs(zeta * log_a)).max())
        beta = min(1.1, _HIGHEST / s)
        kappa = self._shapes(zeta, low, least)
        u = np.tile(start, len(kappa))[:, None]
        push = np.repeat(kappa, len(start))[:, None] * u / s**2
        angle = beta * np.tanh(push / beta * share)
        left, right = angle[:, :-1], angle[:, 1:]
        cosine = np.cos(angle)
        slope = push * product * (1 - (left / beta) ** 2)
        stray = 0.5 * (s * right) ** 2
        x = stray - u * np.arctan2(low * np.sin(left), 1 - low + low * cosine[:, :-1]) + 0.5 * np.log1p(slope * slope)
        if zeta >= 0:
            x += 0.5 * zeta * np.log1p(-2 * np.minimum(low * (1 - low), high * (1 - high)) * (1 - cosine[:, :-1]))
        else:
            x += 0.5 * zeta * np.log1p(-2 * product * (1 - cosine[:, 1:]))
        gain = np.expm1(np.minimum(x, 700.0))
        gained = np.maximum(gain, 0.0)
        up, down = gained @ most, (gained - gain) @ least
        near_one = up - down + slack * (up + down)
        whole = float(most.sum())
        small = (gain @ most + whole * (1 + 8 * EPS * len(width))) * (1 + slack) - 1.0
        total = np.minimum(near_one, small).reshape(len(kappa), -1).min(axis=0) + 3 * math.exp(-40.0)
        return np.asarray(np.log1p(np.minimum(np.maximum(total, 1e-12 - 1.0), 0.0)))

    def _shapes(self, zeta: float, share: Floats, mass: Floats) -> Floats:
        """The kappa that are worth trying: X = (U share/s)^2 (c kappa^2/2 - kappa) for small U, where
        c = 1 + ((1-share)^2 - zeta share(1-share))/s^2, for share near 0 and for the mean of c.
        """
        gentle = self.scale**2 / (1 + self.scale**2)
        weight = mass * share * share
        total = float(weight.sum())
        if not total > 0:
            return np.array([gentle])
        rest = 1 - share
        mean = float(np.dot(weight, rest * (rest - zeta * share))) / (total * self.scale**2)
        mixed = 1 / max(2 / 3, 1 + mean)
        return np.array([gentle] if 0.8 < mixed / gentle < 1.25 else [gentle, mixed])


def _points(left: float, right: float, step: float) -> Floats:
    """Multiples of the step that cover [left, right]."""
    return np.asarray(step * np.arange(math.floor(left / step), math.ceil(right / step) + 1), dtype=np.float64)


def strip_defect(log_defect: Floats) -> Floats:
    """What 2.2 times of bounds the error of K, from a bound of half the relative error of M: |log(1 - 2d)| <= 2.2 d for
    d <= e^-3; beyond, the strip proves nothing and the error is infinite.
    """
    return np.where(log_defect < -3.0, np.exp(np.minimum(log_defect, 0.0)), np.inf)


def weighted_expm1(log_weight: Floats, x: Floats) -> tuple[Floats, Floats]:
    """(w, w (e^x - 1)) for w = exp(log_weight), also where e^x overflows and the product does not."""
    weight = np.exp(log_weight)
    small = np.minimum(x, 500.0)
    return weight, np.where(x > 500.0, np.exp(np.minimum(log_weight + x, 700.0)), weight * np.expm1(small))
