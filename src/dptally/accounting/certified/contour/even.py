r"""Losses on a progression: one short sum over half a period of the characteristic function, exact up to its aliases.

Every loss of the one law is start + h j, j an integer; so is the sum of n of them, with n start. With phi the
characteristic function of the sum tilted by theta, x the first point of the progression above eps, d = x - eps, and
N nodes v = 2 pi k / N, u = v / h over one period,

    e^{theta eps - K} delta(eps) + aliases = (e^{-theta d} / N) sum over k of phi(u) e^{-iux} (1/a - e^{-d} / b),
    a = 1 - e^{-theta h - iv},   b = 1 - e^{-(theta + 1) h - iv}.

The aliases are those of a contour with period N h: nonnegative, and bounded by K at other tilts. No noise is added and
nothing is spread. Where \|phi\| is small on the rest of the half period its sum is bounded by the last value: \|phi\|
falls there. Derivations: docs/certificates.md, section 15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dptally.accounting.certified.bounds import NOTHING_KNOWN, LogBounds
from dptally.accounting.certified.contour.aliasing import Aliasing, alias_period
from dptally.accounting.certified.contour.nodes import Grid, Nodes
from dptally.accounting.certified.contour.saddle import Locate, Saddle, at_delta, at_epsilon
from dptally.accounting.certified.contour.tables import merged, tabulate_at
from dptally.accounting.certified.tuning import STANDARD, Tuning
from dptally.law import Composition, Law
from dptally.law.characteristic import MomentTable
from dptally.law.law import Floats
from dptally.law.listed import Progression
from dptally.numerics.rounding import EPS

Complexes = NDArray[np.complex128]

__all__ = ["EvenInversion", "applies", "for_delta", "for_epsilon"]


@dataclass(frozen=True, slots=True)
class EvenInversion:
    """The nodes of half a period: bounds of log delta at any eps. Finite losses only."""

    theta: float
    log_moment: float
    log_moment_error: float
    centre: float
    centre_size: float
    losses: Progression  # of the sum
    length: int  # nodes of a whole period, an odd number
    phi: Complexes  # of the sum less its centre, at u = 2 pi k / (length h), k = 0, 1, ...
    error: Floats  # of phi, the phase of the centre not included
    rest: float  # a bound of |phi| on what is left of the half period; 0 where nothing is
    aliasing: Aliasing
    saddle: float

    def _sums(self, epsilon: float) -> tuple[float, float, float, float, Fraction]:
        """(sum, its error, the sum for the slope, d, x), all relative to e^{K - theta x}."""
        h = float(self.losses.spacing)
        place = (Fraction(epsilon) - self.losses.start) / self.losses.spacing
        x = self.losses.start + self.losses.spacing * (math.floor(place) + 1)
        d, off = float(x - Fraction(epsilon)), float(x - Fraction(self.centre))
        v = np.asarray((2 * math.pi / self.length) * np.arange(len(self.phi)), dtype=np.float64)
        a, b = _one_less(self.theta * h, v), _one_less((self.theta + 1) * h, v)
        step, first = -math.expm1(-h), -math.expm1(-d)
        small = math.exp(-self.theta * h) * step
        kernel = (small * np.exp(-1j * v) + a * first) / (a * b)
        size = (small + np.abs(a) * first) / (np.abs(a) * np.abs(b))
        weight = np.full(len(v), 2.0 / self.length)
        weight[0] = 1.0 / self.length
        turned = weight * self.phi * np.exp(-1j * (off / h) * v)
        value, slope = float((turned * kernel).real.sum()), float((turned / b).real.sum()) * math.exp(-d)
        phases = (8 * EPS * abs(off) + 4 * EPS * self.centre_size) / h * v
        error = self.error + np.abs(self.phi) * (EPS * (len(v) + 80) + phases)
        noise = 1.02 * (float(np.dot(weight * size, error)) + self.rest * float(size[0]))
        return value, noise, slope, d, x

    def estimate(self, epsilon: float) -> float:
        """log delta(eps), not a bound."""
        value, _, _, _, x = self._sums(epsilon)
        return self.log_moment - self.theta * float(x) + math.log(value) if value > 0 else -math.inf

    def log_delta(self, epsilon: float) -> LogBounds:
        """(lower, upper, slope): certified bounds of log delta(eps), and an estimate of -d log delta / d eps."""
        value, noise, slope, d, x = self._sums(epsilon)
        if not (math.isfinite(value) and math.isfinite(noise)):  # outside double range
            return NOTHING_KNOWN
        moved = float(Fraction(self.theta) * x)
        base = self.log_moment - moved
        blur = self.log_moment_error + 4 * EPS * (abs(self.log_moment) + abs(moved))
        alias = self.aliasing.bound(epsilon)
        lift = math.exp(min(700.0, self.theta * d)) * (1 + 8 * EPS * (1 + self.theta * d))
        upper, lower = value + noise, value - noise - alias * lift
        high = base + math.log(upper) + blur + 4 * EPS * abs(math.log(upper)) if upper > 0 else -math.inf
        low = base + math.log(lower) - blur - 4 * EPS * abs(math.log(lower)) if lower > 0 else -math.inf
        rate = slope / value if value > 0 and slope > 0 else self.theta
        return LogBounds(low if self.theta * d < 700.0 else -math.inf, min(high, 0.0), rate)


def _one_less(fall: float, v: Floats) -> Complexes:
    """1 - e^{-fall - iv} for fall > 0, both parts to a few ulps of its modulus."""
    kept = math.exp(-fall)
    out = np.empty(v.shape, dtype=np.complex128)
    out.real = -math.expm1(-fall) + 2 * kept * np.sin(0.5 * v) ** 2
    out.imag = kept * np.sin(v)
    return out


def applies(composition: Composition) -> bool:
    """One law whose losses lie on a progression."""
    parts = composition.parts
    return len(parts) == 1 and parts[0][0].progression() is not None


def for_delta(composition: Composition, log_delta: float, tuning: Tuning = STANDARD) -> EvenInversion | None:
    """The sum whose saddle is where delta(eps) is about exp(log_delta)."""
    return _located(composition, at_delta(log_delta), None, tuning)


def for_epsilon(composition: Composition, epsilon: float, tuning: Tuning = STANDARD) -> EvenInversion | None:
    """The sum through the saddle of this eps."""
    return _located(composition, at_epsilon(epsilon), epsilon, tuning)


def _located(composition: Composition, locate: Locate, asked: float | None, tuning: Tuning) -> EvenInversion | None:
    (law, count), *_ = composition.parts
    losses = law.progression()
    if losses is None:
        return None
    losses = Progression(count * losses.start, losses.spacing)
    found = _saddle(law, count, locate, asked, tuning)
    if found is None:
        return None
    saddle, tilts = found
    h = float(losses.spacing)
    contour = tuning.contour
    period = alias_period(tilts, saddle.theta, saddle.moment, saddle.asked, saddle.log_size, contour.relative)
    if not period / h < 2.0**900:
        return None
    length = 2 * math.ceil(0.5 * period / h) + 1
    step = 2 * math.pi / (length * h)
    far = tuning.even.far / math.sqrt(max(saddle.variance, 1e-300))
    number = min(length // 2 + 1, math.ceil(min(far / step, 2.0**50)) + 1)
    if number > contour.most_terms:
        return None
    grid = Grid(step, number, 0.0)
    nodes = Nodes.of(composition.parts, saddle.theta, grid, grid.log_tolerance(contour, count), contour.most_work)
    return None if nodes is None else _assembled(nodes, saddle, tilts, losses, length)


def _saddle(
    law: Law, count: int, locate: Locate, asked: float | None, tuning: Tuning
) -> tuple[Saddle, MomentTable] | None:
    """K at tilts on the scale of the sum's standard deviation, then densely about the one looked for."""
    unit = math.sqrt(2 * law.mean * count)  # about the standard deviation of the sum
    if not 0 < unit < math.inf:
        return None
    parts = [(law, count)]
    table = tabulate_at(parts, np.geomspace(*tuning.even.tilts) / unit)
    table = _finite(table)
    if len(table.theta) < 2:
        return None
    fine = _finite(tabulate_at(parts, locate(table) * np.asarray(tuning.contour.around)))
    if len(fine.theta) < 2:
        return None
    row = _finite(tabulate_at(parts, np.array([locate(fine)])))
    return None if not len(row.theta) else (Saddle.of(row, asked=asked), merged(table, fine))


def _finite(table: MomentTable) -> MomentTable:
    rows = np.array([table.theta, table.moment, table.error, table.first, table.second])
    return MomentTable(*rows[:, np.isfinite(rows).all(axis=0)])


def _assembled(nodes: Nodes, saddle: Saddle, tilts: MomentTable, losses: Progression, length: int) -> EvenInversion:
    ((char, count),) = nodes.parts
    phi = np.exp(nodes.real)
    spread = np.minimum(np.exp(np.minimum(nodes.real + nodes.growth, 0.7)) - phi, 2.0)
    error = spread + EPS * phi * (np.abs(nodes.real) + 2 * np.abs(nodes.imag))
    log_moment = count * char.log_moment
    blur = count * char.log_moment_error + 4 * EPS * abs(log_moment)
    left = len(phi) < length // 2 + 1
    return EvenInversion(
        theta=saddle.theta,
        log_moment=log_moment,
        log_moment_error=blur,
        centre=count * char.centre,
        centre_size=abs(count * char.centre),
        losses=losses,
        length=length,
        phi=np.asarray(phi * np.exp(1j * nodes.imag), dtype=np.complex128),
        error=error,
        rest=float(phi[-1] + error[-1]) * (1 + 8 * EPS) if left else 0.0,
        aliasing=Aliasing.of(tilts, saddle.theta, log_moment - blur, 2 * math.pi / (length * float(losses.spacing))),
        saddle=saddle.epsilon,
    )
