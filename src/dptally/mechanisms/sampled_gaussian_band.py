r"""The losses of a Poisson-sampled Gaussian (remove direction) between two soft edges.

With lam = log A - log(1 - q) >= 0, the loss above its least value, an edge at x is the entire function

    w(lam) = Phi(rho (1 - lam / x)),

close to one below x and to zero above. A band is the law times w_high - w_low: bands add up to the law; where rho and
x / rho grow from edge to edge so does w for every lam >= 0, and no band is negative anywhere; and as the edges are
smooth the characteristic function of a band falls as fast as that of a Gaussian of width x / rho. Off the real line
|Phi(a + ib)| <= e^{b^2/2} Phi(a).
Derivations: docs/certificates.md, "Soft edges".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dptally.law.characteristic import Edge, MomentTable, NodeCharacteristic
from dptally.mechanisms.sampled_gaussian_nodes import SampledGaussianNodes, weighted_expm1
from dptally.numerics.rounding import EPS
from dptally.numerics.special import expit, log_ndtr, ndtr

Floats = NDArray[np.float64]

__all__ = ["SampledGaussianBand"]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_MAX_NODES = 60_000
_MAX_TABLE = 300_000  # nodes times tilts
_CELL = 0.125
_ANGLES = np.array([0.02, 0.05, 0.1, 0.17, 0.27, 0.4, 0.6, 0.9, 1.2, 1.5])
_MARKS = np.arange(-60.0, 60.0, 1 / 3)  # ends of cells about an edge, in units of its width
_TINY = 1e-290  # a share of an edge below this counts as none, and as missed
_BEYOND = 3.5  # of an edge's loss: how far beyond it cells reach, for off the real line it falls later
_HIGHEST = 6.0  # how far a contour is moved at the most
_BEND = ((0.7, 1.0), (0.7, 0.4), (0.45, 0.6), (0.25, 0.3), (0.12, 0.2))  # largest angle, and how soon it is taken


@dataclass(frozen=True, slots=True)
class _Cells:
    """Ends t of cells, what is known there, and the log of a bound of the integral of phi A^zeta over each cell."""

    t: Floats
    log_phi: Floats
    log_a: Floats
    lam: Floats
    share: Floats

    def log_mass(self, zeta: float | Floats) -> Floats:
        """-t^2/2 is at most h^2/8 above its chord and zeta log A, convex, is below."""
        width = np.diff(self.t)
        log_f = self.log_phi + zeta * self.log_a
        return np.asarray(np.maximum(log_f[..., 1:], log_f[..., :-1]) + (width * width / 8 + np.log(width)))


@dataclass(frozen=True, slots=True)
class SampledGaussianBand:
    """The measure A(t) phi(t) (w_high - w_low) dt with loss log A(t); None: no edge there (not at both ends)."""

    kernel: SampledGaussianNodes
    low: Edge | None
    high: Edge | None

    def _edges(self) -> list[Edge]:
        return [edge for edge in (self.low, self.high) if edge is not None]

    def _argument(self, t: Floats) -> Floats:
        """log of q e^w / (1 - q): lam = log(1 + e^this)."""
        s, q = self.kernel.scale, self.kernel.rate
        return np.asarray(t / s + (math.log(q) - math.log1p(-q) - 0.5 / s**2))

    def position(self, lam: Floats) -> Floats:
        """The t at which the loss is lam above its least value, to a few ulps."""
        s, q = self.kernel.scale, self.kernel.rate
        return np.asarray(s * (lam + np.log(-np.expm1(-lam)) - math.log(q) + math.log1p(-q)) + 0.5 / s)

    def _window(self, t: Floats, loss_error: Floats) -> tuple[Floats, Floats]:
        """(w_high - w_low, bounds of its absolute error), formed from the smaller tails; zero where it is tiny."""
        lam = np.logaddexp(0.0, self._argument(t))
        sloppy = loss_error + (8 - 4 * math.log1p(-self.kernel.rate)) * EPS * lam
        z, blur = [], []
        for edge in self._edges():
            z.append(edge.rho * (1.0 - lam / edge.at))
            blur.append(sloppy / edge.width + 4 * EPS * edge.rho * (1 + lam / edge.at))
        window, error = self._between(z, blur)
        return np.where(window < _TINY, 0.0, window), np.where(window < _TINY, _TINY, error)

    def _between(self, z: list[Floats], blur: list[Floats]) -> tuple[Floats, Floats]:
        if self.low is None:
            return _edge(z[0], blur[0])
        if self.high is None:
            return _edge(-z[0], blur[0])
        flip = np.where(z[0] > 0, -1.0, 1.0)
        low, low_error = _edge(flip * z[0], blur[0])
        high, high_error = _edge(flip * z[1], blur[1])
        return np.maximum(flip * (high - low), 0.0), low_error + high_error + EPS * (low + high)

    # -- off the real line -----------------------------------------------------------------------------------

    def _cells(self, zeta: float, depth: float) -> _Cells | None:
        """Cells around all but about e^-depth of the mass, fine at the edges; None where that is too far."""
        s = self.kernel.scale
        plain = math.sqrt(2 * depth) + 1.0
        left, right = -plain, max(zeta, 1.0) / s + plain
        if self.low is not None:
            right = max(right, float(self.position(np.array([self.low.at]))[0]) + plain)
        marks = [np.zeros(0)]
        for edge in self._edges():
            reach = plain + (zeta * edge.width if edge is self.high else 0.0)
            lam = edge.at + edge.width * _MARKS[(-edge.rho < _MARKS) & (reach + 1 > _MARKS)]
            marks.append(self.position(lam[lam > 0]))
            if edge is self.high:
                end = edge.at + max(edge.width * reach, _BEYOND * edge.at)
                right = min(right, float(self.position(np.array([end]))[0]))
        if not 0 < right - left < 4000:
            return None
        uniform = np.linspace(left, right, math.ceil((right - left) / _CELL) + 2)
        sharp = np.concatenate(marks)
        t = np.unique(np.concatenate((uniform, sharp[(sharp > left) & (sharp < right)])))
        argument = self._argument(t)
        lam = np.logaddexp(0.0, argument)
        log_a = lam + math.log1p(-self.kernel.rate)
        return _Cells(t, -0.5 * t * t - _HALF_LOG_TAU, log_a, lam, np.asarray(expit(argument)))

    def _log_bound(self, least: Floats, most: Floats, imaginary: Floats) -> Floats:
        """log of a bound of |w_high - w_low| where least <= Re lam <= most and |Im lam| <= imaginary."""
        w, v = [], []
        for edge in self._edges():
            growth = 0.5 * (imaginary / edge.width) ** 2
            below = growth + log_ndtr(edge.rho * (1.0 - least / edge.at))
            above = growth + log_ndtr(edge.rho * (most / edge.at - 1.0))
            w.append(np.minimum(below, _log1p_exp(above)))
            v.append(np.minimum(above, _log1p_exp(below)))
        if self.low is None:
            return np.asarray(w[0])
        if self.high is None:
            return np.asarray(v[0])
        return np.asarray(np.minimum(np.logaddexp(w[0], w[1]), np.logaddexp(v[0], v[1])))

    def _log_left(
        self, cells: _Cells, zeta: float | Floats, angle: float | Floats, reach: float, which: slice
    ) -> Floats:
        """For some t of the cells, log of a bound of the mass left of t on Im t = scale angle, as integral and as sum.

        A, arg A, Re lam and Im lam grow with t: all are at most their value at t, and phi leaves a normal tail. It
        holds for every smaller angle, too, as Re lam <= lam.
        """
        t = cells.t[which]
        lam = cells.lam[which]
        _, imaginary, _ = _off_line(lam, cells.share[which], angle)
        gate = self._log_bound(np.full_like(imaginary, -math.inf), np.broadcast_to(lam, imaginary.shape), imaginary)
        grown = 0.5 * (angle * self.kernel.scale) ** 2 + reach * imaginary + zeta * cells.log_a[which]
        return np.asarray(grown + gate + np.logaddexp(log_ndtr(t), -0.5 * np.minimum(t, 0.0) ** 2 - _HALF_LOG_TAU))

    def _log_right(
        self, cells: _Cells, zeta: float | Floats, angle: float | Floats, reach: float, which: slice
    ) -> Floats:
        """The same for the mass right of t.

        Im lam = arg A is at most the angle; and lam = int_0^1 z / (1 + xz) dx, z = e^{w + i angle} q/(1-q), has an
        argument of at most the angle. So with m = Re lam / x an edge is below exp(-rho^2 ((m-1)^2 - g)/2) for m >= 1,
        g = (angle / x)^2 or tan^2(angle) m^2. Together with A^zeta the logarithm of that, where it falls, is concave in
        Re lam and falls with t ever faster, Re lam being convex in t. It holds for every smaller angle, too: Re lam
        falls with the angle, and its slope is between those of this angle and of none.
        """
        s, t = self.kernel.scale, cells.t[which]
        real, _, slope = _off_line(cells.lam[which], cells.share[which], angle)
        slope = np.minimum(slope, cells.share[which])
        tan = np.tan(angle) ** 2
        log_f = cells.log_phi[which] + zeta * cells.log_a[which] + 0.5 * (angle * s) ** 2
        best = np.full(np.broadcast_shapes(log_f.shape, real.shape), math.inf)
        for turned in (True, False):  # Im lam <= tan(angle) Re lam, and Im lam <= angle
            gates, pulls = [], []
            for edge in self._edges():
                m = real / edge.at
                falls = (m - 1.0) - (tan * m if turned else 0.0)
                growth = edge.rho**2 * tan * m * m if turned else (angle / edge.width) ** 2
                value = 0.5 * growth - 0.5 * edge.rho**2 * (m - 1.0) ** 2
                usable = (m >= 1.0) & (falls >= 0.0)  # elsewhere an edge is only known to be below its growth
                gates.append(np.where(usable, value, 0.5 * (angle / edge.width) ** 2))
                pulls.append(np.where(usable, falls * edge.rho / edge.width, 0.0))
            if self.high is None:
                gate, pull = _log1p_exp(gates[0]), np.zeros_like(real)
            else:
                gate, pull = np.logaddexp.reduce(gates), np.minimum.reduce(pulls)
            flat = reach * angle + _log_swell(zeta - pull, slope, s, t)
            steep = reach * np.tan(angle)
            swell = np.minimum(flat, steep * real + _log_swell(zeta + steep - pull, slope, s, t))
            best = np.fmin(best, log_f + gate + swell)  # inf - inf is no bound
        return np.asarray(best)

    def _log_ends(self, cells: _Cells, zeta: float | Floats, angle: float | Floats, reach: float) -> Floats:
        """log of a bound of the mass outside of the cells."""
        left = self._log_left(cells, zeta, angle, reach, slice(0, 1))
        return np.asarray(np.logaddexp(left, self._log_right(cells, zeta, angle, reach, slice(-1, None)))[..., 0])

    def _log_modulus(self, cells: _Cells, zeta: float | Floats, reach: float, angle: float | Floats) -> Floats:
        """log of a bound of the integral of |phi A^zeta band e^{iu log A}|, |u| <= reach, on Im t = scale angle."""
        real, imaginary, _ = _off_line(cells.lam, cells.share, angle)  # and |A(t + ia)| <= A(t)
        imaginary = imaginary[..., 1:]
        gate = self._log_bound(real[..., :-1], real[..., 1:], imaginary) + reach * imaginary
        inside = _log_sum(cells.log_mass(zeta) + (gate + 0.5 * (self.kernel.scale * angle) ** 2))
        return np.asarray(np.logaddexp(inside, self._log_ends(cells, zeta, angle, reach)))

    # -- nodes -----------------------------------------------------------------------------------------------

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> NodeCharacteristic | None:
        """Nodes that represent phi(u), |u| <= reach, to exp(log_tolerance); None where that needs too many."""
        zeta = 1.0 + theta
        cells = self._cells(zeta, 40.0 - log_tolerance)
        if cells is None:
            return None
        target = log_tolerance + self._log_mass(cells, zeta)
        left = np.flatnonzero(self._log_left(cells, zeta, 0.0, 0.0, slice(None)) <= target)
        right = np.flatnonzero(self._log_right(cells, zeta, 0.0, 0.0, slice(None)) <= target)
        if not (left.size and right.size) or left[-1] >= right[0]:
            return None
        start, end = float(cells.t[left[-1]]), float(cells.t[right[0]])
        step, log_defect = self._step(cells, zeta, reach, target)
        if not (end - start) / step < _MAX_NODES:
            return None
        t = np.asarray(step * np.arange(math.floor(start / step), math.ceil(end / step) + 1), dtype=np.float64)
        return self._at(t, step, theta, float(np.logaddexp(log_defect, target + 1.4)))  # four ends of e^target

    def _log_mass(self, cells: _Cells, zeta: float) -> float:
        """About the log of the band's moment; only to choose ranges and steps by."""
        gate = self._log_bound(cells.lam[1:], cells.lam[:-1], np.zeros(len(cells.t) - 1))
        return float(_log_sum(cells.log_mass(zeta) + gate))

    def _step(self, cells: _Cells, zeta: float, reach: float, target: float) -> tuple[float, float]:
        """The largest step whose trapezoid error for |u| <= reach is about e^target, and the log of its bound.

        The error is at most 2 N(a) / (e^{2 pi a / h} - 1), N(a) the integral of the modulus on Im t = +-a, bounded
        cell by cell [Trefethen, Weideman 2014, Thm. 5.1].
        """
        angles = np.minimum(_ANGLES, _HIGHEST / self.kernel.scale)
        log_n = self._log_modulus(cells, zeta, reach, angles[:, None]) + math.log(2.0)
        a = self.kernel.scale * angles
        best = min(0.5, float((2 * math.pi * a / np.maximum(log_n - target, 1.0)).max()))
        step = 2.0 ** (math.floor(8 * math.log2(best)) / 8)
        room = 2 * math.pi * a / step
        return step, float((log_n - room - np.log(-np.expm1(-room))).min())

    def _at(self, t: Floats, step: float, theta: float, log_missed: float) -> NodeCharacteristic | None:
        """The nodes t; what they miss of the moment, for any u, is below e^log_missed."""
        zeta, kernel = 1.0 + theta, self.kernel
        loss = kernel.log_a(t)
        loss_error = kernel.loss_error(t, loss, kernel.share(t))
        window, window_error = self._window(t, loss_error)
        exponent = -0.5 * t * t + zeta * loss
        weight_error = EPS * (t * t + 3 * np.abs(zeta * loss) + 8) + zeta * loss_error
        weight_error += np.where(window > 0, window_error / np.maximum(window, _TINY), 0.0)
        top = float(exponent[window > 0].max(initial=-math.inf))
        raw = window * np.exp(np.minimum(exponent - top, 0.0))
        total = math.fsum(raw)
        if not total > 0.0:
            return None
        if (window == 0).any():
            log_lost = float(_log_sum(exponent[window == 0])) + math.log(step * _TINY) - _HALF_LOG_TAU
            log_missed = float(np.logaddexp(log_missed, log_lost + 0.01))
        weights = raw / total
        log_moment = top + math.log(total * step) - _HALF_LOG_TAU
        error = 1.01 * float(np.dot(weights, weight_error)) + 8 * EPS + 4 * EPS * (abs(top) + abs(log_moment))
        defect = 2.2 * math.exp(min(log_missed - log_moment, 0.0))  # of numerator and denominator
        if not defect < 0.01:
            return None
        error += defect
        if self.low is None and abs(log_moment) < 0.5:
            sharp = self._near_one(t, step, loss, window, theta, weight_error, loss_error, defect)
            log_moment, error = min((log_moment, error), sharp, key=lambda found: found[1])
        return NodeCharacteristic.of(
            loss,
            weights,
            loss_error=loss_error,
            weight_error=weight_error,
            defect=defect,
            log_moment=log_moment,
            log_moment_error=error,
        )

    def _near_one(
        self,
        t: Floats,
        step: float,
        loss: Floats,
        window: Floats,
        theta: float,
        weight_error: Floats,
        loss_error: Floats,
        defect: float,
    ) -> tuple[float, float]:
        """K = log1p(E_P[w expm1(theta L)] - P(above)): its rounding error is relative to theta E|L|, not to 1."""
        outside, blur = _mass_above(self.kernel, self._edges()[0])
        if not blur < 0.01:
            return 0.0, math.inf
        base, lifted = weighted_expm1(math.log(step) - 0.5 * t * t - _HALF_LOG_TAU + loss, theta * loss)
        size = np.abs(window * lifted)
        sharp = math.fsum(window * lifted) - outside
        error = float(np.dot(size, weight_error + 10 * EPS)) + theta * float(
            np.dot(window * base + size, loss_error + EPS * np.abs(loss))
        )
        error = 1.05 * (error + (blur + 4 * EPS) * outside) / (1 + sharp) + 4 * EPS * abs(sharp)
        # A >= 1 - q: the integral of 1 misses at most (1 - q)^-theta times as much as that of e^{theta L}
        more = math.exp(min(-theta * math.log1p(-self.kernel.rate), 700.0))
        return math.log1p(sharp), error + defect * (1 + 2 * more)

    def moment_table(self, theta: Floats) -> MomentTable:
        """K at tilts theta >= -1 and its derivatives; one grid serves all."""
        zeta = 1.0 + theta
        columns = np.full((4, len(theta)), math.inf)
        s = self.kernel.scale
        sharp = 16.0 / max(edge.rho for edge in self._edges()) ** 2
        angle = min(math.atan(math.sqrt(sharp / (1 + sharp))), _HIGHEST / s)  # there an edge has grown by e^8
        step = 2 * math.pi * angle * s / 40.0
        cells = self._cells(float(zeta.max()), 60.0)
        if cells is None or (cells.t[-1] - cells.t[0]) / step * len(theta) > _MAX_TABLE:
            some = 3 * len(theta) // 4  # only the smaller tilts are within reach
            if some:
                lower = self.moment_table(theta[:some])
                columns[:, :some] = lower.moment, lower.error, lower.first, lower.second
            return MomentTable(theta, *columns)
        first, last = math.floor(float(cells.t[0]) / step), math.ceil(float(cells.t[-1]) / step)
        t = np.asarray(step * np.arange(first, last + 1), dtype=np.float64)
        loss = self.kernel.log_a(t)
        loss_error = self.kernel.loss_error(t, loss, self.kernel.share(t))
        window, window_error = self._window(t, loss_error)
        exponent = (-0.5 * t * t)[None, :] + zeta[:, None] * loss[None, :]
        top = (exponent + np.where(window > 0, 0.0, -math.inf)).max(axis=1)
        weights = np.exp(np.minimum(exponent - top[:, None], 700.0))
        columns_of = np.stack((window, window * loss, window * loss * loss, window_error))
        total, mean, second, blurred = np.einsum("tn,kn->kt", weights, columns_of)  # BLAS would start threads for it
        mean, second, blurred = mean / total, second / total, blurred / total
        second = second - mean * mean
        k = top + np.log(total) + math.log(step) - _HALF_LOG_TAU
        column = zeta[:, None]
        log_n = self._log_modulus(cells, column, 0.0, angle) + math.log(2.0) + 0.01
        log_missed = np.logaddexp(log_n - 40.0, math.log(2.0) + self._log_ends(cells, column, 0.0, 0.0))
        rounding = EPS * (len(t) + 8 + 4 * zeta * np.abs(loss).max() + (t * t).max() + 4 * np.abs(k) + np.abs(top))
        rounding += zeta * float(loss_error.max())
        error = 2.2 * np.exp(np.minimum(log_missed - k, 50.0)) + rounding + blurred
        good = np.isfinite(k) & (error < 0.01)
        columns[:, good] = np.array([k, 1.01 * error, mean, second])[:, good]
        return MomentTable(theta, *columns)

    def log_mass_below(self, theta: float, lam: float) -> float:
        """log of a bound of the integral of e^{theta L} over the band's losses less than lam above the least."""
        cells = self._cells(1.0, 60.0)
        if cells is None or lam <= 0:
            return math.inf if cells is None else -math.inf
        gate = self._log_bound(cells.lam[:-1], cells.lam[1:], np.zeros(len(cells.t) - 1))
        inside = (cells.log_mass(1.0 + theta) + gate)[cells.lam[:-1] < lam * (1 + 1e-9)]
        left = float(self._log_left(cells, 1.0 + theta, 0.0, 0.0, slice(0, 1))[0])
        beyond = float(self._log_right(cells, 1.0 + theta, 0.0, 0.0, slice(-1, None))[0])
        outside = [left, beyond] if lam * (1 + 1e-9) > cells.lam[-1] else [left]
        return float(np.logaddexp.reduce(np.concatenate((inside, outside)))) + 1e-9

    # -- decay -----------------------------------------------------------------------------------------------

    def log_decay(self, theta: float, start: Floats) -> Floats:
        r"""For each U in ``start``: a bound of log |phi(u)| for all u >= U, by a contour t + i y(t), 0 <= y < s pi/2.

        arg A >= 0 there, so |phi(u)| M <= int phi A^zeta e^X dt, X = y^2/2 + zeta log|A(t+iy)/A(t)| + log|band| - U arg
        A + log(1 + y'^2)/2. Bands with a lower edge take y constant; without one the law's bulk at small losses has no
        use for a y, and y = a tanh(kappa U share / (s a)) in the cells, constant outside.
        """
        zeta = 1.0 + theta
        cells = self._cells(zeta, 90.0)
        table = self.moment_table(np.array([theta]))
        log_moment = float(table.moment[0])
        if cells is None or not math.isfinite(log_moment):
            return np.zeros_like(start)
        error = float(table.error[0]) + 1e-9 + 16 * EPS * float((cells.t**2 + np.abs(zeta * cells.log_a)).max())
        best = np.zeros_like(start)
        if self.low is not None:
            for angle in _ANGLES[3:].tolist():
                best = np.minimum(best, self._straight(cells, zeta, start, angle) - log_moment + error)
        else:
            for most_angle, kappa in _BEND:
                best = np.minimum(best, self._bent(cells, zeta, start, most_angle, kappa, log_moment, error))
        return best

    def _straight(self, cells: _Cells, zeta: float, start: Floats, angle: float) -> Floats:
        angle = min(angle, _HIGHEST / self.kernel.scale)
        share = cells.share
        real, imaginary, _ = _off_line(cells.lam, share, angle)
        gate = self._log_bound(real[:-1], real[1:], imaginary[1:])
        product = share * (1 - share)
        shrink = 0.5 * zeta * np.log1p(-np.minimum(product[1:], product[:-1]) * (2 - 2 * math.cos(angle)))
        fixed = cells.log_mass(zeta) + gate + shrink + 0.5 * (angle * self.kernel.scale) ** 2
        inside = _log_sum(fixed - start[:, None] * imaginary[:-1])
        return np.asarray(np.logaddexp(inside, self._log_ends(cells, zeta, angle, 0.0)))

    def _bent(
        self,
        cells: _Cells,
        zeta: float,
        start: Floats,
        most_angle: float,
        kappa: float,
        log_moment: float,
        blur: float,
    ) -> Floats:
        """E[e^X], and 1 + E[e^X - w]: the supremum of each cell times an upper bound of its mass, or a lower one where
        it is negative. The first is better where there is much decay, the second where there is little.
        """
        s, share, u = self.kernel.scale, cells.share, start[:, None]
        beta = min(most_angle, _HIGHEST / s)
        angle = beta * np.tanh(kappa * u * share / (s * s * beta))
        left, right = angle[:, :-1], angle[:, 1:]
        low, high = share[:-1], share[1:]
        product = np.minimum(0.25, high * (1 - low))
        least, argument, _ = _off_line(cells.lam[:-1], low, left)
        least = cells.lam[:-1] + 0.5 * np.log1p(-low * (1 - low) * (2 - 2 * np.cos(right)))  # Re lam falls with y
        _, most_argument, _ = _off_line(cells.lam[1:], high, right)
        slope = kappa * u * product / s**2 * (1 - (left / beta) ** 2)
        x = 0.5 * (s * right) ** 2 - u * argument + 0.5 * np.log1p(slope * slope)
        x += 0.5 * zeta * np.log1p(-2 * np.minimum(low * (1 - low), high * (1 - high)) * (1 - np.cos(left)))
        x += self._log_bound(least, np.broadcast_to(cells.lam[1:], least.shape), most_argument)
        edge = self._edges()[0]
        z = edge.rho * (cells.lam[1:] / edge.at - 1.0)  # the edge keeps Phi(-z) or more of a cell
        log_f = cells.log_phi + zeta * cells.log_a
        width = np.diff(cells.t)
        curved = zeta * product / s**2
        log_most = np.logaddexp(log_f[1:], log_f[:-1]) + (width * width / 8 + np.log(0.5 * width)) - log_moment
        log_least = 0.5 * (log_f[1:] + log_f[:-1]) - np.maximum(0.0, curved - 1.0) * width * width / 12
        log_least += np.log(width) - log_moment
        # near one the supremum of e^X - w is taken first, and the mass of the cell after; beyond the edge each alone
        gain = np.expm1(np.minimum(x, 700.0)) + ndtr(z) * (1 + 1e-9)
        inside = gain * np.where(gain > 0, np.exp(np.minimum(log_most + blur, 700.0)), np.exp(log_least - blur))
        outside = np.exp(x + log_most + blur) - np.exp(log_ndtr(-z) + log_least - blur)
        parts = np.where(z < 0, inside, outside)
        total = parts.sum(axis=1) + blur * np.abs(parts).sum(axis=1)
        near = np.log(np.maximum(1.0 + total + 1e-24, 1e-12))
        direct = _log_sum(x + log_most) + 2 * blur
        log_ends = float(self._log_ends(cells, zeta, beta, 0.0)) - log_moment + blur
        return np.asarray(np.logaddexp(np.minimum(near, direct), log_ends))


@lru_cache(maxsize=64)
def _mass_above(kernel: SampledGaussianNodes, edge: Edge) -> tuple[float, float]:
    """(mass above the edge, bound of its relative error)."""
    above = SampledGaussianBand(kernel, edge, None).characteristic(0.0, 0.0, -36.0)
    return (0.0, math.inf) if above is None else (math.exp(above.log_moment), 1.01 * above.log_moment_error)


def _edge(z: Floats, blur: Floats) -> tuple[Floats, Floats]:
    """(Phi(z), bounds of its error): a normal tail is good to z^2 + 4 ulps, and d log Phi / dz <= |z| + 1."""
    value = np.asarray(ndtr(z))
    below = np.abs(np.minimum(z, 0.0))
    return value, value * (EPS * (below * below + 4) + (below + 1) * blur) * 1.01


def _off_line(lam: Floats, share: Floats, angle: float | Floats) -> tuple[Floats, Floats, Floats]:
    """(Re lam, Im lam, d Re lam / dw) at t + i scale angle; all grow with t for angles up to pi/2."""
    cosine = np.cos(angle)
    gap = share * (1 - share) * (2 - 2 * cosine)
    imaginary = np.arctan2(share * np.sin(angle), 1 - share + share * cosine)
    slope = (share**2 + share * (1 - share) * cosine) / (1 - gap)
    return lam + 0.5 * np.log1p(-gap), imaginary, slope


def _log_swell(rate: Floats, slope: Floats, s: float, t: Floats) -> Floats:
    """log of a bound of int phi(t + y) / phi(t) e^{rate (Re lam(t + y) - Re lam(t))} dy, and of the sum of step <= 1.

    Re lam is convex in t and grows by ``slope`` / s at t and by at most 1 / s anywhere.
    """
    g = np.where(rate > 0, rate, rate * slope) / s - t
    return np.asarray(np.logaddexp(_HALF_LOG_TAU + 0.5 * g * g + log_ndtr(g), 0.5 * np.maximum(g, 0.0) ** 2))


def _log1p_exp(x: Floats) -> Floats:
    return np.asarray(np.logaddexp(0.0, x))


def _log_sum(x: Floats) -> Floats:
    """log of the sum of exponentials over the last axis."""
    top = x.max(axis=-1)
    return np.asarray(top + np.log(np.exp(x - top[..., None]).sum(axis=-1)))
