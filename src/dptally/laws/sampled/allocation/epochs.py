r"""Several epochs of random allocation: the sum of independent losses, each known by its certified profile.

For one epoch H_l is the profile in the loss l, and for Re z > 0 and a soft cut w(L) = Phi((c - L)/v) of large losses

    E_P[w(L) e^{zL}] = int (z(1+z) w + (2z+1) w' + w'') e^{zl} H_l dl,          (integration by parts, twice)

by the trapezoid rule. H continues to l + ia with |H(l + ia)| <= e^{t a^2/(2 m^2)} H_l, because the ratios of all
steps can be
turned together, and |w(l + ia)| <= e^{a^2/(2 v^2)} w(l): so the rule converges geometrically, and
|phi(u)| <= exp(-u^2 / (2 (t/m^2 + 1/v^2))). What the cut leaves out, at most E times E_P[1 - w], is added to the
upper end.
Derivations: docs/batching.md, "Epochs".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dptally.checks import Floats
from dptally.law.adjacency import Direction
from dptally.law.characteristic import Characteristic
from dptally.laws.sampled.allocation.independent import IndependentEpochs
from dptally.laws.sampled.allocation.law import AllocationLaw
from dptally.laws.sampled.allocation.rough import is_long, rough_bounds
from dptally.laws.sampled.allocation.summand import epochs_at
from dptally.laws.sampled.allocation.sums import PAYOFF, Parts, log_bounds, tilts_of
from dptally.numerics.normal import gaussian_epsilon_log, log_gaussian_delta
from dptally.numerics.rounding import EPS
from dptally.numerics.special import log_ndtr

Complexes = NDArray[np.complex128]

__all__ = ["AllocationEpochsLaw"]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_FIRST, _FIRST_ADD, _LAST = 1e-12, 1e-18, 1e-35  # what cuts leave out, in all epochs
_FEW = 16  # more losses than these are asked to find their way: then far losses are bounded, not computed
_WORTH = 3e-7  # of delta: what a cut may cost
_ENOUGH = 1e-6  # of log delta
_VANISHED = -800.0
_FURTHEST = 1e6  # losses beyond are not asked
_MANY = 8  # steps of an epoch from which contours of the sum itself are short
_NEARBY = 20.0  # losses up to which one epoch is asked without tables first
_SHARP = 10.0  # widths of the window beyond the cut: large tilts lift what it leaves
_NEGLIGIBLE = -52.0  # log of what is left out on the left


@dataclass(frozen=True, slots=True)
class _Nodes:
    """At l_j = h j: log of h H_l (middle), relative half-width of its bounds; the losses below are 1 - e^l."""

    step: float
    loss: Floats
    log_mass: Floats
    doubt: Floats
    log_left: float  # log of what H - (1 - e^l) is at the first node, at most


@dataclass(frozen=True, slots=True)
class CutEpoch:
    """One epoch without its largest losses: the summand of :mod:`sums`."""

    law: AllocationLaw
    cut: float

    @property
    def width(self) -> float:
        """v: such that turning costs about as much as for the law itself."""
        return self.law.shift / math.sqrt(self.law.steps)

    @property
    def _stiffness(self) -> float:
        """t / m^2 + 1 / v^2."""
        return self.law.steps / self.law.shift**2 + self.width**-2

    def tilts(self) -> Floats:
        scale = math.sqrt(self._stiffness)
        return np.asarray(2.0 ** (np.arange(-24, 13) / 2.0) * min(scale, 64.0))

    # -- nodes ---------------------------------------------------------------------------------------------

    def _window(self, nodes: _Nodes) -> tuple[Floats, Floats, Floats]:
        """log of w, log |v w'|, and (l - c)/v; v^2 w'' = -x phi(x)... with the sign of x = (c - l)/v."""
        x = (self.cut - nodes.loss) / self.width
        return log_ndtr(x), -0.5 * x * x - _HALF_LOG_TAU, x

    def sums(self, nodes: _Nodes, z: Complexes, centre: float) -> tuple[Complexes, Floats]:
        """(the sum for each z times e^{-z centre}, a bound of its relative-to-moduli rounding and doubt)."""
        log_w, log_d, x = self._window(nodes)
        v = self.width
        theta = float(z.real[0])
        base = nodes.log_mass + theta * (nodes.loss - centre)
        first, second = np.exp(base + log_w), np.exp(base + log_d)
        third = second * x
        turn = np.exp(1j * np.multiply.outer(z.imag, nodes.loss - centre))
        pair = z * (1 + z)
        # w' = -phi(x)/v, w'' = -x phi(x)/v^2
        total = pair * (turn @ first) - (2 * z + 1) / v * (turn @ second) - turn @ third / v**2
        # the doubt of each node, and rounding: n + 40 ulps of each, exponents, phases
        ulps = EPS * (len(base) + 60 + 2 * np.abs(base) + 2 * x * x + 4 * np.abs(theta * nodes.loss))
        blame = nodes.doubt + ulps
        error = np.abs(pair) * float(first @ blame) + np.abs(2 * z + 1) / v * float(second @ blame)
        error = error + float(np.abs(third) @ blame) / v**2
        phase = 4 * EPS * float(first @ np.abs(nodes.loss - centre)) * np.abs(pair) * np.abs(z.imag)
        # the nodes on the left, where w = 1 and H = 1 - e^l: two geometric series
        last = float(nodes.loss[0]) - nodes.step
        left = np.zeros_like(total)
        size = np.zeros(len(z))
        for k, sign in ((0.0, 1.0), (1.0, -1.0)):
            series = nodes.step * np.exp((z + k) * (last - centre) + k * centre) / -np.expm1(-(z + k) * nodes.step)
            left, size = left + sign * pair * series, size + np.abs(pair * series)
        # ends: what is missed by H = 1 - e^l on the left, and beyond the window on the right
        missed = (
            np.abs(pair)
            * math.exp(min(nodes.log_left + theta * (last - centre), 700.0))
            / -math.expm1(-theta * nodes.step)
            * nodes.step
        )
        right = (
            (np.abs(pair) + np.abs(2 * z + 1) / v + 20 / v**2)
            * 4
            * float(second[-1] + first[-1])
            * (1 + abs(float(x[-1])))
        )
        return total + left, error + phase + EPS * 40 * (1 + np.abs(z * (last - centre))) * size + missed + right

    def _log_rule_error(self, nodes: _Nodes, theta: float, reach: float, centre: float) -> float:
        """log of 2 N(a) / (e^{2 pi a/h} - 1), times e^{-theta centre}; N by the cells' larger ends."""
        log_w, log_d, x = self._window(nodes)
        v, h = self.width, nodes.step
        modulus = math.hypot(theta, reach) * math.hypot(1 + theta, reach)
        twice = math.hypot(2 * theta + 1, 2 * reach)
        best = math.inf
        for a in np.sqrt(np.array([10.0, 20.0, 40.0, 70.0, 110.0, 160.0]) / self._stiffness):
            turned = float(a) / v
            # on a cell H and w fall; phi(x) changes by e^{|x| h/v}
            inside = np.exp(nodes.log_mass + theta * (nodes.loss - centre + h) + log_w) * modulus
            edge = np.exp(nodes.log_mass + theta * (nodes.loss - centre + h) + log_d + (np.abs(x) + h / v) * h / v)
            edge = edge * (twice / v + (np.abs(x) + h / v + turned) / v**2)
            whole = float(inside.sum() + edge.sum())
            left = modulus * math.exp(min(theta * (float(nodes.loss[0]) - centre), 700.0)) / theta
            exponent = 0.5 * float(a) ** 2 * self._stiffness + reach * float(a) - 2 * math.pi * float(a) / h
            best = min(best, exponent + math.log(2.1 * (whole + left)) + 1e-6)
        return best

    def _step(self, reach: float) -> float:
        """A step that makes the rule's error about e^-45, from a ladder."""
        a = np.sqrt(np.array([20.0, 40.0, 70.0, 110.0]) / self._stiffness)
        h = float((2 * math.pi * a / (55.0 + 0.5 * a * a * self._stiffness + reach * a)).max())
        return float(2.0 ** (math.floor(2 * math.log2(h)) / 2))

    def nodes(self, reach: float) -> _Nodes:
        return _nodes(self.law, self.cut + _SHARP * self.width, self.cut + 14.0 * self.width, self._step(reach))

    # -- the summand ---------------------------------------------------------------------------------------

    def log_moment(self, tilt: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        nodes = self.nodes(0.0)
        out = np.full((4, len(tilt)), np.inf)
        for i, theta in enumerate(tilt.tolist()):
            if theta * self.width > 3.0 or theta * nodes.step > 3.0:
                continue  # the window's end would matter
            gap = 1e-3 * theta
            z = np.array([theta - gap, theta, theta + gap], dtype=np.complex128)
            values, errors = np.empty(3), np.empty(3)
            centre = self._centre(nodes, theta)
            for k in range(3):
                total, error = self.sums(nodes, z[k : k + 1], centre)
                values[k], errors[k] = float(total[0].real), float(error[0])
            missed = math.exp(min(self._log_rule_error(nodes, theta, 0.0, centre), 700.0))
            if not (values > 0).all() or not errors[1] + missed < 0.01 * values[1]:
                continue
            logs = np.log(values) + z.real * centre
            k_value, k_error = (
                float(logs[1]),
                1.01 * (errors[1] + missed) / values[1] + 8 * EPS * (1 + abs(theta * centre)),
            )
            first = (logs[2] - logs[0]) / (2 * gap)
            second = (logs[2] - 2 * logs[1] + logs[0]) / gap**2
            out[:, i] = k_value, k_error, first, max(second, 1e-6 / self._stiffness)
        return out[0], out[1], out[2], out[3]

    def _centre(self, nodes: _Nodes, theta: float) -> float:
        """Where the summands are largest: only to avoid overflow and to turn slowly."""
        log_w = self._window(nodes)[0]
        return float(nodes.loss[int(np.argmax(nodes.log_mass + theta * nodes.loss + log_w))])

    def characteristic(self, tilt: float, reach: float, log_tolerance: float) -> Characteristic | None:
        del log_tolerance
        k, error, _, _ = (float(v[0]) for v in self.log_moment(np.array([tilt])))
        if not math.isfinite(k):
            return None
        nodes = self.nodes(reach)
        centre = self._centre(nodes, tilt)
        missed = self._log_rule_error(nodes, tilt, reach, centre) + tilt * centre - k
        if not missed < -5.0:  # the nodes do not carry so far
            return None
        return _EpochCharacteristic(self, nodes, tilt, k, error, centre, math.exp(missed))

    def log_decay(self, tilt: float, start: Floats) -> Floats:
        del tilt
        return np.asarray(-0.5 * start * start / self._stiffness * (1 - 16 * EPS))

    def left_out(self) -> float:
        """An upper bound of E_P[1 - w(L)] = -int (w' + w'') H dl."""
        nodes = self.nodes(0.0)
        _, log_d, x = self._window(nodes)
        v = self.width
        weight = np.exp(nodes.log_mass + log_d) / v
        total = float(weight @ (1 + x / v))
        error = float(
            weight
            @ ((1 + np.abs(x) / v) * (nodes.doubt + EPS * (len(x) + 60 + 2 * x * x + 2 * np.abs(nodes.log_mass))))
        )
        missed = self._log_left_out_error(nodes)
        ends = 4 * float(np.exp(log_d[0]) + np.exp(log_d[-1])) * (1 + max(abs(float(x[0])), abs(float(x[-1]))) / v)
        return total + 1.01 * error + missed + ends  # beyond both ends |w'| and |w''| only fall, and H <= 1

    def _log_left_out_error(self, nodes: _Nodes) -> float:
        _, log_d, x = self._window(nodes)
        v, h = self.width, nodes.step
        edge = np.exp(nodes.log_mass + log_d + (np.abs(x) + h / v) * h / v)
        best = math.inf
        for a in np.sqrt(np.array([20.0, 40.0, 70.0, 110.0]) / self._stiffness):
            whole = float((edge * (1 / v + (np.abs(x) + h / v + float(a) / v) / v**2)).sum()) + math.exp(-90.0) / v**2
            exponent = 0.5 * float(a) ** 2 * self._stiffness - 2 * math.pi * float(a) / h
            best = min(best, math.exp(exponent) * 2.1 * whole)
        return best + 1e-38 / v**2  # beyond both ends of the window: x = -14, and where w' is e^{-x^2/2} of nothing


@lru_cache(maxsize=64)
def _nodes(law: AllocationLaw, sharp: float, right: float, step: float) -> _Nodes:
    """Bounds of the profile at the nodes; beyond ``sharp``, where the window hides them, only bounds."""
    left = _left_end(law)
    j = np.arange(math.floor(left / step), math.ceil(right / step) + 1)
    loss = np.asarray(step * j, dtype=np.float64)
    far = loss > sharp
    lower, upper = np.empty((2, len(loss)))
    lower[~far], upper[~far] = law.log_profile(loss[~far])
    lower[far], upper[far] = replace(law, sharp=False).log_profile(loss[far])
    middle = np.logaddexp(lower, upper) - math.log(2.0)
    with np.errstate(invalid="ignore"):
        doubt = np.where(np.isfinite(lower), np.exp(np.minimum(upper - middle, 5.0)) - 1.0, 1.0)
    excess = float(law.log_excess(loss[:1])[1][0])
    return _Nodes(step, loss, middle + math.log(step), 1.01 * doubt + 8 * EPS, excess)


@lru_cache(maxsize=64)
def _left_end(law: AllocationLaw) -> float:
    """A loss below which H - (1 - e^l) does not matter."""
    points = -np.geomspace(1e-4, 80.0, 160)
    while points.size > 1:  # halving: further out contours are deeper
        middle = points.size // 2
        small = float(law.log_excess(points[middle - 1 : middle])[1][0]) < _NEGLIGIBLE
        points = points[:middle] if small else points[middle:]
    return float(points[0])


@lru_cache(maxsize=256)
def _cut(law: AllocationLaw, epochs: int, level: float) -> tuple[CutEpoch, float] | None:
    """A cut that leaves out about ``level`` in all epochs, and what it leaves out at most; None where there is none."""
    spread, goal = law.shift / math.sqrt(law.steps), math.log(level / epochs)

    def is_rare(loss: float) -> bool:
        _, high, rate = (float(v[0]) for v in law.log_excess(np.array([loss])))
        return high + math.log1p(max(rate, 0.0)) < goal  # about log P(L > loss)

    near, far = 2.0 * spread, 2.0 * spread
    while not is_rare(far):
        near, far = far, 1.22 * far  # contours far out are long: step by step
        if far > 40.0 * law.shift * (1 + law.shift):
            return None
    while far > 1.06 * near:
        middle = math.sqrt(near * far)
        near, far = (near, middle) if is_rare(middle) else (middle, far)
    for further in (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 15.0):  # the window is soft
        cut = CutEpoch(law, far + further * spread)
        lost = epochs * cut.left_out()
        if lost < 10 * level:
            return cut, lost
    return None


@dataclass(frozen=True, slots=True)
class _EpochCharacteristic(Characteristic):
    source: CutEpoch
    nodes: _Nodes
    tilt: float
    log_moment: float
    log_moment_error: float
    centre: float
    defect: float

    @property
    def size(self) -> int:
        return len(self.nodes.loss)

    def on_grid(self, step: float, number: int) -> tuple[Complexes, Floats]:
        value, error = np.empty(number, dtype=np.complex128), np.empty(number)
        scale = math.exp(self.tilt * self.centre - self.log_moment)
        for i in range(0, number, 1024):
            u = step * np.arange(i, min(i + 1024, number), dtype=np.float64)
            total, blame = self.source.sums(
                self.nodes, np.asarray(self.tilt + 1j * u, dtype=np.complex128), self.centre
            )
            value[i : i + 1024], error[i : i + 1024] = total * scale, blame * scale
        value = value - 1.0
        value[0] = 0.0
        error = 1.02 * error + 2.2 * self.defect + 2 * self.log_moment_error
        error[0] = 0.0
        return value, error

    def in_rows(self, step: float, first: Floats, column: Floats) -> Complexes:
        raise NotImplementedError

    def row_error(self) -> tuple[float, float]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class AllocationEpochsLaw(IndependentEpochs[AllocationLaw]):
    """Independent epochs of random allocation with Gaussian steps, of one direction, as one law."""

    profile_by: ClassVar[str] = "contours of the ratio"  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def supremum(self) -> float:
        return math.inf

    @property
    def infimum(self) -> float:
        return -math.inf

    @property
    def mean(self) -> float:
        return math.fsum(count * law.mean for law, count in self.parts)

    def about_epsilon(self, log_delta: float) -> float | None:
        """Newton's method on log delta, from a Gaussian loss of the same second moment."""
        squares = [count * np.log1p(np.expm1(min(law.shift**2, 600.0)) / law.steps) for law, count in self.parts]
        x = float(gaussian_epsilon_log(math.sqrt(math.fsum(squares)), log_delta)[1])
        if not 0 < x < _FURTHEST:
            return None
        for _ in range(12):
            low, high, rate = (float(v[0]) for v in self.bounds(np.array([x])))
            off = (0.5 * (low + high) if math.isfinite(low) else high) - log_delta
            if not (math.isfinite(off) and rate > 0):
                return None
            step = min(max(off / rate, -0.5 * x), x)
            x += step
            if abs(step) < 1e-10 * x:
                break
        return x

    def bounds(self, epsilon: Floats) -> tuple[Floats, Floats, Floats]:
        """Bounds of log H at eps >= 0, and about P(L > eps) / H - 1, minus the logarithmic derivative."""
        low, rate = np.full(len(epsilon), -np.inf), np.ones(len(epsilon))
        high = np.full(len(epsilon), np.inf)
        asked = epsilon < _FURTHEST
        few, level = bool(np.count_nonzero(asked) <= _FEW), 0
        wide = asked
        if self.epochs == 1 and self.parts[0][0].steps >= _MANY:
            index = np.flatnonzero(asked & (epsilon < _NEARBY))
            self._take(index, self.parts[0][0].log_excess_near(epsilon[index]), (low, high, rate))
            wide = self._wide(asked, low, high)
        if wide.any() or not asked.all():
            high = np.minimum(high, log_gaussian_delta(self._single, epsilon, mu_ulps=16)[1])
            wide = self._wide(wide, low, high)
        # a search asks both ends of where it looks: what is deeper is made when nothing that is asked is sharp
        while wide.any() and (level == 0 or (few and (wide == asked).all())):
            parts = epochs_at(self.parts, level)
            table = None if parts is None else tilts_of(parts, PAYOFF)
            if parts is None or table is None or not len(table.tilt):
                break
            index = np.flatnonzero(wide)
            with np.errstate(over="ignore", invalid="ignore"):
                self._take(index, log_bounds(parts, epsilon[index], PAYOFF), (low, high, rate))
            wide = self._wide(asked, low, high)
            level += 1
            if not (table.saddles(epsilon[wide]) >= 0.8 * float(table.tilt[-1])).any():
                break  # the saddles are inside the table
        if wide.any() and (level == 0 or (few and (wide == asked).all())):
            index = np.flatnonzero(wide)
            self._take(index, self._without_tables(epsilon[index], float(high[index].max())), (low, high, rate))
        return low, high, rate

    @property
    def _single(self) -> float:
        """mu of the Gaussian pair that dominates: the ratio of an epoch is an average of ratios of its steps, so less
        in the convex order than one of them (Jensen).
        """
        return math.hypot(*(math.sqrt(count) * law.shift for law, count in self.parts))

    @staticmethod
    def _wide(asked: NDArray[np.bool_], low: Floats, high: Floats) -> NDArray[np.bool_]:
        return asked & ~(high - low < _ENOUGH) & (high > _VANISHED)

    @staticmethod
    def _take(
        index: NDArray[np.int64], found: tuple[Floats, Floats, Floats], best: tuple[Floats, Floats, Floats]
    ) -> None:
        """What was found at ``index`` narrows what is known."""
        lower, upper, rate = found
        low, high, rates = best
        upper = np.where(np.isnan(upper), np.inf, upper)
        rates[index] = np.where(lower >= low[index], rate, rates[index])
        low[index], high[index] = np.maximum(low[index], lower), np.minimum(high[index], upper)

    def _without_tables(self, epsilon: Floats, log_largest: float) -> tuple[Floats, Floats, Floats]:
        if self.epochs == 1:
            return self.parts[0][0].log_excess(epsilon)
        if any(is_long(law) for law, _ in self.parts):
            return rough_bounds(self.parts, epsilon)
        return self._by_cuts(epsilon, log_largest)

    def _cuts(self, level: float, sharp: bool) -> tuple[Parts, float] | None:
        """Every epoch cut so that all together leave out about ``level``, and what that is at most."""
        parts, lost = [], 0.0
        for law, count in self.parts:
            found = _cut(replace(law, sharp=sharp), count, level / len(self.parts))
            if found is None:
                return None
            parts.append((found[0], count))
            lost += found[1]
        return tuple(parts), lost * (1 + 1e-12)

    def _by_cuts(self, epsilon: Floats, log_largest: float) -> tuple[Floats, Floats, Floats]:
        """``log_largest``: an upper bound of every log delta; cuts that leave out more than that are not made."""
        low, high, rate = np.full(len(epsilon), -np.inf), np.zeros(len(epsilon)), np.ones(len(epsilon))
        pending = np.abs(epsilon) < _FURTHEST
        few = bool(np.count_nonzero(pending) <= _FEW)
        # large losses are rarer where the record is absent
        first = _FIRST if self.parts[0][0].side is Direction.REMOVE else _FIRST_ADD
        level = max(min(first, _level(log_largest)), 10.0 * _LAST)
        while pending.any() and level > _LAST:
            found = self._cuts(level, few or level >= _FIRST_ADD)
            if found is None:
                break
            index = np.flatnonzero(pending)
            log_lost = math.log(max(found[1], 1e-320))
            with np.errstate(over="ignore", invalid="ignore"):
                lower, upper, ratio = log_bounds(found[0], epsilon[index], PAYOFF)
                upper = np.logaddexp(upper, log_lost) + 4 * EPS
            upper = np.where(np.isnan(upper), np.inf, upper)
            rate[index] = np.where(lower >= low[index], ratio, rate[index])
            low[index], high[index] = np.maximum(low[index], lower), np.minimum(high[index], upper)
            pending[index] = lower + math.log(_WORTH) < log_lost
            # the next level serves the largest delta that is not sharp yet
            level = min(1e-4 * level, _level(float(high[pending].max(initial=-800.0))))
        return low, high, rate


def _level(log_delta: float) -> float:
    """What cuts may leave out of such a delta, well below what is worth it."""
    return float(10.0 ** math.floor(math.log10(_WORTH) - 1 + max(log_delta, -600.0) / math.log(10)))
