r"""The losses of a Poisson-sampled Gaussian (remove direction, or REPLACE) between two soft edges.

With lam(t) = log A(t) - log(1 - q) >= 0, the loss of the remove direction above its least value, an edge at x is the
entire function

    w(lam) = Phi(rho (1 - lam / x)),

close to one below x and to zero above. A band is the law times w_high - w_low: bands add up to the law; where rho and
x / rho grow from edge to edge so does w for every lam >= 0, and no band is negative anywhere; and as the edges are
smooth the characteristic function of a band falls as fast as that of a Gaussian of width x / rho. Off the real line
|Phi(a + ib)| <= e^{b^2/2} Phi(a). Under REPLACE the loss is lam(t) - lam(-t), and an edge is w(lam(t)) w(lam(-t)):
large losses of either sign are beyond it (or w(lam(t)) alone, ``SoftCut.both`` false: only large positive ones).
Derivations: docs/certificates.md, "Soft edges".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dptally.law.characteristic import MomentTable, NodeCharacteristic, SoftCut
from dptally.laws.sampled.gaussian.factors import Bound, MixtureFactor, UnitFactor, WindowBounds
from dptally.laws.sampled.gaussian.kernel import SampledGaussianNodes, weighted_expm1
from dptally.numerics.arrays import Floats
from dptally.numerics.rounding import EPS
from dptally.numerics.special import expit, ndtr

__all__ = ["SampledGaussianBand"]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_MAX_NODES = 60_000
_MAX_TABLE = 600_000  # nodes times tilts
_CELL = 0.125
_ANGLES = np.array([0.02, 0.05, 0.1, 0.17, 0.27, 0.4, 0.6, 0.9, 1.2, 1.5])
_MARKS = np.arange(-60.0, 60.0, 1 / 3)  # ends of cells about an edge, in units of its width
_TINY = 1e-290  # a share of an edge below this counts as none, and as missed
_BEYOND = 3.5  # of an edge's loss: how far beyond it cells reach, for off the real line it falls later
_FURTHER = 30.0  # cells reach this much further than the mass if that takes them beyond an edge
_HIGHEST = 6.0  # how far a contour is moved at most
_BEND = ((0.7, 1.0), (0.7, 0.4), (0.45, 0.6), (0.25, 0.3), (0.12, 0.2))  # largest angle, and how soon it is taken


@dataclass(frozen=True, slots=True)
class _Cells:
    """Ends t of cells and what is known there; the law is phi(t) A(t)^{1+theta}, under REPLACE times A(-t)^-theta."""

    t: Floats
    right: MixtureFactor
    left: UnitFactor

    def log_f(self, theta: Bound) -> Floats:
        powers = self.right.log_power(1.0 + theta) + self.left.log_power(-theta)
        return np.asarray(powers - 0.5 * self.t * self.t - _HALF_LOG_TAU)

    def log_excess(self, theta: Bound) -> Floats:
        """log of a cell's width, and by how much log f exceeds its chord at most: -t^2/2 by h^2/8, convex powers by
        nothing.
        """
        width = np.diff(self.t)
        bulge = 1.0 + self.right.bulge(1.0 + theta) + self.left.bulge(-theta)
        return np.asarray(bulge * (width * width / 8) + np.log(width))

    def log_mass(self, theta: Bound) -> Floats:
        """log of a bound of the integral of f over each cell."""
        log_f = self.log_f(theta)
        return np.asarray(np.maximum(log_f[..., 1:], log_f[..., :-1]) + self.log_excess(theta))

    def size(self, theta: float) -> float:
        """The largest number that goes into log f: what its rounding is relative to."""
        return float((self.t**2 + self.right.size(1.0 + theta) + self.left.size(-theta)).max())

    def loss(self) -> tuple[Floats, Floats]:
        """(the losses at the ends, ample bounds of their errors)."""
        loss = self.right.log_power(1.0) + self.left.log_power(-1.0)
        return loss, np.asarray(16 * EPS * (self.right.size(1.0) + self.left.size(1.0)))


class _Nodes(NamedTuple):
    """What is known at nodes t: log A, the loss and bounds of the error of either, the window and bounds of its own."""

    t: Floats
    log_a: Floats
    loss: Floats
    loss_error: Floats
    window: Floats
    window_error: Floats


@dataclass(frozen=True, slots=True)
class SampledGaussianBand:
    """The measure A(t) phi(t) (w_high - w_low) dt with loss log A(t), less log A(-t) if ``mirrored``.

    None: no edge there (not at both ends). Edges are nested as above, and none above one that is not ``both`` is.
    Tilts are at least -1.
    """

    kernel: SampledGaussianNodes
    low: SoftCut | None
    high: SoftCut | None
    mirrored: bool = False

    def _edges(self) -> list[SoftCut]:
        return [edge for edge in (self.low, self.high) if edge is not None]

    def _left_edges(self) -> tuple[SoftCut | None, SoftCut | None]:
        """(low, high) of large negative losses."""
        low, high = (edge if edge is not None and edge.both else None for edge in (self.low, self.high))
        return (low, high) if self.mirrored else (None, None)

    def _argument(self, t: Floats) -> Floats:
        """log of q e^w / (1 - q): lam = log(1 + e^this)."""
        s, q = self.kernel.scale, self.kernel.rate
        return np.asarray(t / s + (math.log(q) - math.log1p(-q) - 0.5 / s**2))

    def position(self, lam: Floats) -> Floats:
        """The t at which lam(t) is this, to a few ulps."""
        s, q = self.kernel.scale, self.kernel.rate
        return np.asarray(s * (lam + np.log(-np.expm1(-lam)) - math.log(q) + math.log1p(-q)) + 0.5 / s)

    # -- on the real line ------------------------------------------------------------------------------------

    def _losses(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        """(log A, loss, bounds of the error of either)."""
        kernel = self.kernel
        log_a = kernel.log_a(t)
        error = kernel.loss_error(t, log_a, kernel.share(t))
        if not self.mirrored:
            return log_a, log_a, error
        down = kernel.log_a(-t)
        loss = log_a - down
        return log_a, loss, error + kernel.loss_error(-t, down, kernel.share(-t)) + EPS * np.abs(loss)

    def _nodes(self, step: float, start: float, end: float) -> _Nodes:
        """Multiples of the step that cover these ends."""
        t = np.asarray(step * np.arange(math.floor(start / step), math.ceil(end / step) + 1), dtype=np.float64)
        log_a, loss, loss_error = self._losses(t)
        return _Nodes(t, log_a, loss, loss_error, *self._window(t, loss_error))

    def _window(self, t: Floats, loss_error: Floats) -> tuple[Floats, Floats]:
        """(w_high - w_low, bounds of its absolute error), a sum of products of nonnegative numbers; zero where it is
        tiny.
        """
        right = self._shares(t, loss_error, self.low, self.high)
        if not self.mirrored:
            window, error = right.high if self.low is None else right.change
        else:
            left = self._shares(-t, loss_error, *self._left_edges())
            window, error = _times(left.high, right.high)
            if self.low is not None:
                one, other = _times(left.high, right.change), _times(right.low, left.change)
                window, error = one[0] + other[0], one[1] + other[1]
        # a difference may be tiny because it cancelled: its error remains
        tiny = window < _TINY
        return np.where(tiny, 0.0, window), np.where(tiny, error + 2 * _TINY, error)

    def _shares(self, t: Floats, loss_error: Floats, low: SoftCut | None, high: SoftCut | None) -> _Shares:
        """The edges on lam(t), differences formed from the smaller tails."""
        nothing, all_of_it = (np.zeros_like(t), np.zeros_like(t)), (np.ones_like(t), np.zeros_like(t))
        if low is None and high is None:
            return _Shares(nothing, all_of_it, all_of_it)
        lam = np.logaddexp(0.0, self._argument(t))
        sloppy = loss_error + (8 - 4 * math.log1p(-self.kernel.rate)) * EPS * lam
        tails = []
        for edge in (low, high):
            if edge is None:
                tails.append((all_of_it, nothing))
                continue
            z = edge.rho * (1.0 - lam / edge.at)
            blur = sloppy / edge.width + 4 * EPS * edge.rho * (1 + lam / edge.at)
            tails.append((_edge(z, blur), _edge(-z, blur)))
        (low_in, low_out), (high_in, high_out) = tails
        inside = low_in[0] < 0.5  # there both shares are formed from below
        change = np.where(inside, high_in[0] - low_in[0], low_out[0] - high_out[0])
        error = np.where(inside, high_in[1] + low_in[1], low_out[1] + high_out[1])
        error = error + EPS * np.where(inside, high_in[0] + low_in[0], low_out[0] + high_out[0])
        return _Shares((np.maximum(change, 0.0), error), high_in, low_in)

    # -- off the real line -----------------------------------------------------------------------------------

    def _cells(self, theta: float, depth: float) -> _Cells | None:
        """Cells around all but about e^-depth of the mass, fine at the edges; None where that is too far."""
        s, q = self.kernel.scale, self.kernel.rate
        low, high = self._left_edges()
        right, right_marks = self._extent(max(1.0 + theta, 1.0), depth, self.low, self.high)
        left, left_marks = self._extent(max(-theta, 0.0) if self.mirrored else 0.0, depth, low, high)
        if not 0 < right + left < 4000:
            return None
        cell = max(min(_CELL, s / 2), 1e-3 * (right + left)) if self.mirrored else _CELL
        uniform = np.linspace(-left, right, math.ceil((right + left) / cell) + 2)
        sharp = np.concatenate((right_marks, -left_marks))
        t = np.unique(np.concatenate((uniform, sharp[(sharp > -left) & (sharp < right)])))
        up = self._argument(t)
        side = MixtureFactor(t, s, 1, q, self.low, self.high, np.logaddexp(0.0, up), np.asarray(expit(up)))
        if not self.mirrored:
            return _Cells(t, side, UnitFactor(t, s))
        down = self._argument(-t)
        mirror = MixtureFactor(t, s, -1, q, low, high, np.logaddexp(0.0, down), np.asarray(expit(down)))
        return _Cells(t, side, mirror)

    def _extent(self, power: float, depth: float, low: SoftCut | None, high: SoftCut | None) -> tuple[float, Floats]:
        """How far out the law matters, with A to this power, and ends of cells about the edges."""
        plain = math.sqrt(2 * depth) + 1.0
        extent = power / self.kernel.scale + plain
        if low is not None:
            extent = max(extent, float(self.position(np.array([low.at]))[0]) + plain)
        marks = [np.zeros(0)]
        for edge in (low, high):
            if edge is None:
                continue
            reach = plain + (power * edge.width if edge is high else 0.0)
            lam = edge.at + edge.width * _MARKS[(-edge.rho < _MARKS) & (reach + 1 > _MARKS)]
            marks.append(self.position(lam[lam > 0]))
            if edge is high:
                end = edge.at + max(edge.width * reach, _BEYOND * edge.at)
                beyond = float(self.position(np.array([end]))[0])
                extent = beyond if beyond < extent + _FURTHER else extent
        return extent, np.concatenate(marks)

    def _log_gate(self, right: WindowBounds, left: WindowBounds) -> Bound:
        """log of a bound of |w_high w'_high - w_low w'_low| by those of the two sides."""
        if self.low is None:
            return right.high + left.high
        one = np.logaddexp(left.high + right.change, right.low + left.change)
        return np.minimum(one, np.logaddexp(right.high + left.change, left.low + right.change))

    def _log_left(self, cells: _Cells, theta: Bound, angle: Bound, reach: float, which: slice) -> Floats:
        """For some t of the cells, log of a bound of the mass left of t on Im t = scale angle, as integral and as sum.

        What grows to the right is at most its value at t. It holds for every smaller angle, too, if reach is zero.
        """
        grown, gates = cells.right.log_within(1.0 + theta, angle, reach, which)
        return self._log_outside(grown, gates, *cells.left.log_beyond(-theta, angle, reach, which))

    def _log_right(self, cells: _Cells, theta: Bound, angle: Bound, reach: float, which: slice) -> Floats:
        """The same for the mass right of t."""
        grown, gates = cells.left.log_within(-theta, angle, reach, which)
        return self._log_outside(grown, gates, *cells.right.log_beyond(1.0 + theta, angle, reach, which))

    def _log_outside(self, grown: Bound, gates: WindowBounds, edge: Floats, change: Floats) -> Floats:
        """|w_high w'_high - w_low w'_low| <= |w_high - w_low| |w'| + |w_high| |w'_high - w'_low|, w' = w'_low."""
        if self.low is None:
            return np.asarray(grown + gates.high + edge)
        return np.asarray(grown + np.logaddexp(gates.change + edge, gates.high + change))

    def _log_ends(self, cells: _Cells, theta: Bound, angle: Bound, reach: float) -> Floats:
        """log of a bound of the mass outside of the cells."""
        left = self._log_left(cells, theta, angle, reach, slice(0, 1))
        return np.asarray(np.logaddexp(left, self._log_right(cells, theta, angle, reach, slice(-1, None)))[..., 0])

    def _log_modulus(self, cells: _Cells, theta: Bound, reach: float, angle: Bound) -> Floats:
        """log of a bound of the integral of |phi A e^{(theta + iu) L} band|, |u| <= reach, on Im t = scale angle."""
        right, left = cells.right.turn(angle), cells.left.turn(angle)
        gate = self._log_gate(cells.right.gates(right), cells.left.gates(left))
        turned = reach * (right.more + left.more)
        turned = turned + cells.right.log_growth(1.0 + theta, angle) + cells.left.log_growth(-theta, angle)
        inside = _log_sum(cells.log_mass(theta) + (gate + turned + 0.5 * (self.kernel.scale * angle) ** 2))
        return np.asarray(np.logaddexp(inside, self._log_ends(cells, theta, angle, reach)))

    # -- nodes -----------------------------------------------------------------------------------------------

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> NodeCharacteristic | None:
        """Nodes that represent phi(u), |u| <= reach, to exp(log_tolerance); None where that needs too many."""
        cells = self._cells(theta, 40.0 - log_tolerance)
        if cells is None:
            return None
        target = log_tolerance + self._log_mass(cells, theta)
        left = np.flatnonzero(self._log_left(cells, theta, 0.0, 0.0, slice(None)) <= target)
        right = np.flatnonzero(self._log_right(cells, theta, 0.0, 0.0, slice(None)) <= target)
        if not (left.size and right.size) or left[-1] >= right[0]:
            return None
        ends = int(left[-1]), int(right[0])
        start, end = (float(cells.t[k]) for k in ends)
        step, log_defect = self._step(cells, theta, reach, target)
        if not (end - start) / step < _MAX_NODES:
            return None
        nodes = self._nodes(step, start, end)
        built = _at(nodes, step, theta, float(np.logaddexp(log_defect, target + 1.4)))  # four ends of e^target
        if built is None or self.low is not None or abs(built.log_moment) > 0.5:
            return built
        return self._sharpened(built, cells, nodes, step, theta, ends)

    def _log_mass(self, cells: _Cells, theta: float) -> float:
        """About the log of the band's moment; only to choose ranges and steps by."""
        right, left = cells.right.turn(0.0), cells.left.turn(0.0)
        right, left = (side._replace(least=side.most, most=side.least) for side in (right, left))
        gate = self._log_gate(cells.right.gates(right), cells.left.gates(left))
        return float(_log_sum(cells.log_mass(theta) + gate))

    def _step(self, cells: _Cells, theta: float, reach: float, target: float) -> tuple[float, float]:
        """The largest step whose trapezoid error for |u| <= reach is about e^target, and the log of its bound."""
        log_n, a = self._lines(cells, theta, reach)
        best = min(0.5, float((2 * math.pi * a / np.maximum(log_n - target, 1.0)).max()))
        step = 2.0 ** (math.floor(8 * math.log2(best)) / 8)
        return step, _log_rule(log_n, a, step)

    def _lines(self, cells: _Cells, theta: float, reach: float) -> tuple[Floats, Floats]:
        """log 2 N(a) and a for several a, N(a) the integral of the modulus on Im t = +-a, bounded cell by cell."""
        angles = np.minimum(_ANGLES, _HIGHEST / self.kernel.scale)
        log_n = self._log_modulus(cells, theta, reach, angles[:, None]) + math.log(2.0)
        return log_n, self.kernel.scale * angles

    def _sharpened(
        self, built: NodeCharacteristic, cells: _Cells, nodes: _Nodes, step: float, theta: float, ends: tuple[int, int]
    ) -> NodeCharacteristic:
        """K = log1p(E_P[w expm1(theta L)] - P(above)): its rounding error is relative to theta E|L|, not to 1.

        The rule is asked for two integrals, of e^{theta L} and of 1; what it misses of the second is bounded anew.
        """
        outside, blur = _mass_above(self.kernel, self._edges()[0], self.mirrored)
        if not blur < 0.01:
            return built
        t, log_a, loss, loss_error, window, _ = nodes
        base, lifted = weighted_expm1(math.log(step) - 0.5 * t * t - _HALF_LOG_TAU + log_a, theta * loss)
        size = np.abs(window * lifted)
        sharp = math.fsum(window * lifted) - outside
        error = float(np.dot(size, built.weight_error + 10 * EPS)) + abs(theta) * float(
            np.dot(window * base + size, loss_error + EPS * np.abs(loss))
        )
        error = 1.05 * (error + (blur + 4 * EPS) * outside) / (1 + sharp) + 4 * EPS * abs(sharp)
        first, last = (slice(k, k + 1) for k in ends)
        log_missed = [
            _log_rule(*self._lines(cells, 0.0, 0.0), step),
            math.log(2.0) + float(self._log_left(cells, 0.0, 0.0, 0.0, first)[0]),
            math.log(2.0) + float(self._log_right(cells, 0.0, 0.0, 0.0, last)[0]),
        ]
        error += built.defect + 2.2 * (math.exp(float(np.logaddexp.reduce(log_missed))) + 2 * _TINY)
        if not error < built.log_moment_error:
            return built
        return replace(built, log_moment=math.log1p(sharp), log_moment_error=error)

    def moment_table(self, theta: Floats) -> MomentTable:
        """K at increasing tilts and its derivatives; one grid serves all."""
        columns = np.full((4, len(theta)), math.inf)
        s = self.kernel.scale
        sharp = 16.0 / max(edge.rho for edge in self._edges()) ** 2
        angle = min(math.atan(math.sqrt(sharp / (1 + sharp))), _HIGHEST / s)  # there an edge has grown by e^8
        step = 2 * math.pi * angle * s / 40.0
        cells = self._cells(float(theta.max()), 60.0)
        if cells is None or (cells.t[-1] - cells.t[0]) / step * len(theta) > _MAX_TABLE:
            some = 3 * len(theta) // 4  # only the smaller tilts are within reach
            if some:
                lower = self.moment_table(theta[:some])
                columns[:, :some] = lower.moment, lower.error, lower.first, lower.second
            return MomentTable(theta, *columns)
        nodes = self._nodes(step, float(cells.t[0]), float(cells.t[-1]))
        t, log_a, loss, loss_error, window, window_error = nodes
        column = theta[:, None]
        exponent = (log_a - 0.5 * t * t)[None, :] + column * loss[None, :]
        top = (exponent + np.where(window > 0, 0.0, -math.inf)).max(axis=1)
        weights = np.exp(np.minimum(exponent - top[:, None], 700.0))
        columns_of = np.stack((window, window * loss, window * loss * loss, window_error))
        total, mean, second, blurred = np.einsum("tn,kn->kt", weights, columns_of)  # BLAS would start threads for it
        mean, second, blurred = mean / total, second / total, blurred / total
        second = second - mean * mean
        k = top + np.log(total) + math.log(step) - _HALF_LOG_TAU
        log_n = self._log_modulus(cells, column, 0.0, angle) + math.log(2.0) + 0.01
        log_missed = np.logaddexp(log_n - 40.0, math.log(2.0) + self._log_ends(cells, column, 0.0, 0.0))
        longest = np.abs(log_a).max() + np.abs(theta) * np.abs(loss).max()
        rounding = EPS * (len(t) + 8 + 4 * longest + (t * t).max() + 4 * np.abs(k) + np.abs(top))
        rounding += (1 + np.abs(theta)) * float(loss_error.max())
        error = 2.2 * np.exp(np.minimum(log_missed - k, 50.0)) + rounding + blurred
        good = np.isfinite(k) & (error < 0.01)
        columns[:, good] = np.array([k, 1.01 * error, mean, second])[:, good]
        return MomentTable(theta, *columns)

    def log_mass_below(self, theta: float, loss: float) -> float:
        """log of a bound of the integral of e^{theta L} over the band's losses less than ``loss``."""
        cells = self._cells(0.0, 60.0)
        if cells is None:
            return math.inf
        ends, slack = cells.loss()
        gate = self._log_gate(cells.right.gates(cells.right.turn(0.0)), cells.left.gates(cells.left.turn(0.0)))
        below = ends - slack < loss
        inside = (cells.log_mass(theta) + gate)[below[:-1]]
        left = float(self._log_left(cells, theta, 0.0, 0.0, slice(0, 1))[0])
        beyond = float(self._log_right(cells, theta, 0.0, 0.0, slice(-1, None))[0])
        outside = [left, beyond] if below[-1] else [left]
        total = float(np.logaddexp.reduce(np.concatenate((inside, outside)))) + 1e-9 + 16 * EPS * cells.size(theta)
        return math.inf if math.isnan(total) else total

    # -- decay -----------------------------------------------------------------------------------------------

    def log_decay(self, theta: float, start: Floats) -> Floats:
        r"""For each U in ``start``: a bound of log |phi(u)| for all u >= U, by a contour t + i y(t), 0 <= y < s pi/2.

        arg A(t) >= 0 >= arg A(-t) there, so |phi(u)| M <= int f e^X dt, X = y^2/2 + (1+theta) log|A(t+iy)/A(t)| - theta
        log|A(-t-iy)/A(-t)| + log|band| - U (arg A(t+iy) - arg A(-t-iy)) + log(1 + y'^2)/2. Bands with a lower edge take
        y constant; without one the law's bulk at small losses has no use for a y, and y = a tanh(kappa U S / (s a)),
        S = share(t) + share(-t), in the cells, constant outside.
        """
        cells = self._cells(theta, 90.0)
        table = self.moment_table(np.array([theta]))
        log_moment = float(table.moment[0])
        if cells is None or not math.isfinite(log_moment):
            return np.zeros_like(start)
        error = float(table.error[0]) + 1e-9 + 16 * EPS * cells.size(theta)
        best = np.zeros_like(start)  # fmin: inf - inf is no bound
        if self.low is not None:
            for angle in _ANGLES[3:].tolist():
                best = np.fmin(best, self._straight(cells, theta, start, angle) - log_moment + error)
        else:
            for most_angle, kappa in _BEND:
                best = np.fmin(best, self._bent(cells, theta, start, most_angle, kappa, log_moment, error))
        return best

    def _straight(self, cells: _Cells, theta: float, start: Floats, angle: float) -> Floats:
        angle = min(angle, _HIGHEST / self.kernel.scale)
        right, left = cells.right.turn(angle), cells.left.turn(angle)
        fixed = cells.log_mass(theta) + self._log_gate(cells.right.gates(right), cells.left.gates(left))
        fixed = fixed + self._log_bent(cells, theta, angle, angle)
        inside = _log_sum(fixed - start[:, None] * (right.less + left.less))
        return np.asarray(np.logaddexp(inside, self._log_ends(cells, theta, angle, 0.0)))

    def _log_bent(self, cells: _Cells, theta: float, small: Bound, large: Bound) -> Bound:
        """For each cell a bound of log|f(t + iy) / f(t)| for all angles between these."""
        powers = ((cells.right, 1.0 + theta), (cells.left, -theta))
        shrink = sum(side.log_shrink(power, small) for side, power in powers)
        growth = sum(side.log_growth(power, large) for side, power in powers)
        return shrink + growth + 0.5 * (self.kernel.scale * large) ** 2

    def _bent(
        self,
        cells: _Cells,
        theta: float,
        start: Floats,
        most_angle: float,
        kappa: float,
        log_moment: float,
        blur: float,
    ) -> Floats:
        """E[e^X], and 1 + E[e^X - w]: the supremum of each cell times an upper bound of its mass, or a lower one where
        it is negative. The first is better where there is much decay, the second where there is little.
        """
        s, u = self.kernel.scale, start[:, None]
        beta = min(most_angle, _HIGHEST / s)
        (right_low, right_high), (left_low, left_high) = cells.right.share(), cells.left.share()
        small = beta * np.tanh(kappa * u * (right_low + left_low) / (s * s * beta))
        large = beta * np.tanh(kappa * u * (right_high + left_high) / (s * s * beta))
        right, left = cells.right.between(small, large), cells.left.between(small, large)
        slope = kappa * u * np.maximum(cells.right.slope(), cells.left.slope()) / s**2 * (1 - (small / beta) ** 2)
        x = self._log_bent(cells, theta, small, large) - u * (right.less + left.less) + 0.5 * np.log1p(slope * slope)
        x = x + self._log_gate(cells.right.gates(right), cells.left.gates(left))
        log_f = cells.log_f(theta)
        width = np.diff(cells.t)
        curved = (np.maximum(1.0 + theta, 0.0) * cells.right.slope() + max(-theta, 0.0) * cells.left.slope()) / s**2
        log_most = np.logaddexp(log_f[1:], log_f[:-1]) - math.log(2.0) + cells.log_excess(theta) - log_moment
        log_least = 0.5 * (log_f[1:] + log_f[:-1]) - np.maximum(0.0, curved - 1.0) * width * width / 12
        log_least += np.log(width) - log_moment
        # near one the supremum of e^X - w is taken first, and the mass of the cell after; beyond an edge, and where e^X
        # overflows, each alone
        (log_in, log_out), (log_in_left, log_out_left) = cells.right.missing(), cells.left.missing()
        cut = np.exp(log_out) + np.exp(log_out_left)
        gain = np.expm1(np.minimum(x, 700.0)) + cut * (1 + 1e-9)
        inside = gain * np.where(gain > 0, np.exp(np.minimum(log_most + blur, 700.0)), np.exp(log_least - blur))
        outside = np.exp(x + log_most + blur) - np.exp(log_in + log_in_left + log_least - blur)
        parts = np.where((cut < 0.5) & (x < 600.0), inside, outside)
        total = parts.sum(axis=1) + blur * np.abs(parts).sum(axis=1)
        near = np.log(np.maximum(1.0 + total + 1e-24, 1e-12))
        direct = _log_sum(x + log_most) + 2 * blur
        log_ends = float(self._log_ends(cells, theta, beta, 0.0)) - log_moment + blur
        return np.asarray(np.logaddexp(np.minimum(near, direct), log_ends))


def _at(nodes: _Nodes, step: float, theta: float, log_missed: float) -> NodeCharacteristic | None:
    """The law on nodes; what they miss of the moment, for any u, is below e^log_missed."""
    t, log_a, loss, loss_error, window, window_error = nodes
    exponent = -0.5 * t * t + log_a + theta * loss
    weight_error = EPS * (t * t + 3 * np.abs(log_a) + 3 * np.abs(theta * loss) + 8) + (1 + abs(theta)) * loss_error
    weight_error += np.where(window > 0, window_error / np.maximum(window, _TINY), 0.0)
    top = float(exponent[window > 0].max(initial=-math.inf))
    raw = window * np.exp(np.minimum(exponent - top, 0.0))
    total = math.fsum(raw)
    if not total > 0.0:
        return None
    if (window == 0).any():
        lost = exponent[window == 0] + np.log(window_error[window == 0])
        log_lost = float(_log_sum(lost)) + math.log(step) - _HALF_LOG_TAU
        log_missed = float(np.logaddexp(log_missed, log_lost + 0.01))
    weights = raw / total
    log_moment = top + math.log(total * step) - _HALF_LOG_TAU
    error = 1.01 * float(np.dot(weights, weight_error)) + 8 * EPS + 4 * EPS * (abs(top) + abs(log_moment))
    defect = 2.2 * math.exp(min(log_missed - log_moment, 0.0))  # of numerator and denominator
    if not defect < 0.01:
        return None
    return NodeCharacteristic.of(
        loss,
        weights,
        loss_error=loss_error,
        weight_error=weight_error,
        defect=defect,
        log_moment=log_moment,
        log_moment_error=error + defect,
    )


@lru_cache(maxsize=64)
def _mass_above(kernel: SampledGaussianNodes, edge: SoftCut, mirrored: bool) -> tuple[float, float]:
    """(mass above the edge, bound of its relative error)."""
    above = SampledGaussianBand(kernel, edge, None, mirrored).characteristic(0.0, 0.0, -36.0)
    return (0.0, math.inf) if above is None else (math.exp(above.log_moment), 1.01 * above.log_moment_error)


@dataclass(frozen=True, slots=True)
class _Shares:
    """w_high - w_low, w_high and w_low at nodes, each with bounds of its error; an edge that is not there is one."""

    change: tuple[Floats, Floats]
    high: tuple[Floats, Floats]
    low: tuple[Floats, Floats]


def _edge(z: Floats, blur: Floats) -> tuple[Floats, Floats]:
    """(Phi(z), bounds of its error): a normal tail is good to z^2 + 4 ulps, and d log Phi / dz <= |z| + 1."""
    value = np.asarray(ndtr(z))
    below = np.abs(np.minimum(z, 0.0))
    return value, value * (EPS * (below * below + 4) + (below + 1) * blur) * 1.01


def _times(x: tuple[Floats, Floats], y: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """(the product, bounds of its error) of numbers with errors; two ulps are for the product and a sum of such."""
    value = x[0] * y[0]
    return value, x[1] * (y[0] + y[1]) + x[0] * y[1] + 2 * EPS * value


def _log_rule(log_n: Floats, a: Floats, step: float) -> float:
    """log of the trapezoid error 2 N(a) / (e^{2 pi a / h} - 1), the best of several a [Trefethen, Weideman 2014,
    Thm. 5.1].
    """
    room = 2 * math.pi * a / step
    return float((log_n - room - np.log(-np.expm1(-room))).min())


def _log_sum(x: Floats) -> Floats:
    """log of the sum of exponentials over the last axis."""
    top = x.max(axis=-1)
    return np.asarray(top + np.log(np.exp(x - top[..., None]).sum(axis=-1)))
