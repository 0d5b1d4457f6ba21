r"""The contour sum in ball arithmetic, its three errors as balls.

With theta > 0, h(eps) = e^{theta eps - K(theta)} delta(eps) = 1/(2 pi) \int phi(u) e^{-iu eps} /
((theta+iu)(theta+1+iu)) du. The trapezoid sum of step 2 pi / P is the sum over m of h(eps + m P) >= 0
[Poisson summation], so
    sum - alias - tail <= h(eps) <= sum + tail,
and the rounding, quadrature and parameter errors are in the balls already. Tilt, period and number of nodes
come from floats and may be poor: a poor choice widens the enclosure and never falsifies it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.law import Composition
from dptally.laws.ball.losses import Ball, BallLoss, ends, flint, working

__all__ = ["Contour"]

_MOST_NODES = 40_000
_GUARD_BITS = 80


@dataclass(frozen=True, slots=True)
class Contour:
    """The nodes of one contour: encloses the finite part of delta at any eps; sharp near the eps it was
    built for.
    """

    losses: tuple[BallLoss, ...]
    tables: tuple[_Tilts, _Tilts]
    bits: int
    theta: Ball
    period: Ball
    terms: list[Ball]  # phi(u_k) / ((theta + iu)(theta + 1 + iu)), the first one halved
    log_scale: Ball  # K(theta)
    tail: Ball
    log_tolerance: float

    @classmethod
    def through(cls, losses: Sequence[BallLoss], composition: Composition, epsilon: float, digits: int) -> Contour:
        theta, period, nodes, log_tolerance, tables = _choose(composition, epsilon, digits)
        # two tables of rotations of sqrt(nodes) rows lose about half a bit for each
        bits = int(-log_tolerance / math.log(2) + 2 * math.sqrt(nodes)) + _GUARD_BITS
        bits += int(math.log2(max(loss.count for loss in losses)))
        arb, acb = flint().arb, flint().acb
        with working(bits):
            tilt, p = arb(theta), arb(period)
            step = 2 * arb.pi() / p
            log_scale = sum((loss.count * loss.log_moment(tilt) for loss in losses), arb(0))
            total = [acb(1)] * (nodes + 1)
            for loss in losses:
                total = [a * b**loss.count for a, b in zip(total, loss.phis(tilt, step, nodes), strict=True)]
            for k in range(nodes + 1):
                z = acb(tilt, k * step)
                total[k] = total[k] / (z * (z + 1))
            total[0] = total[0] / 2
            tail = _tail(losses, tilt, step, nodes, log_tolerance)
        return cls(tuple(losses), tables, bits, tilt, p, total, log_scale, tail, log_tolerance)

    def delta(self, epsilon: Ball) -> Ball:
        """An enclosure of the finite part of delta(eps)."""
        arb, acb = flint().arb, flint().acb
        with working(self.bits):
            step = 2 * arb.pi() / self.period
            value = arb(0)
            for k, term in enumerate(self.terms):
                value += (term * acb(0, -k * step * epsilon).exp()).real
            value = value * step / arb.pi()
            low, high = value - self.tail - self._alias(epsilon), value + self.tail
            return low.max(arb(0)).union(high.max(arb(0))) * (self.log_scale - self.theta * epsilon).exp()

    def _alias(self, epsilon: Ball) -> Ball:
        """sum over m != 0 of h(eps + mP), by delta(x) <= e^{K(s) - s x}: s > theta for m > 0, 0 <= s <
        theta for m < 0.
        """
        arb = flint().arb
        t, x, p = float(self.theta), float(epsilon), float(self.period)
        total = arb(0)
        for table in self.tables:
            tilts, logs = table.tilts, table.logs(t, x, p)
            good = np.nonzero(logs < self.log_tolerance - 3)[0]  # the nearest good one: far tilts cost many nodes
            s = arb(float(tilts[int(good[0]) if good.size else int(np.argmin(logs))]))
            moment = sum((loss.count * loss.log_moment(s) for loss in self.losses), arb(0)) if s > 0 else arb(0)
            gap = abs(s - self.theta) * self.period
            total += (moment - self.log_scale - (s - self.theta) * epsilon - gap).exp() / (1 - (-gap).exp())
        return total.upper()


def _tail(losses: Sequence[BallLoss], theta: Ball, step: Ball, nodes: int, log_tolerance: float) -> Ball:
    """Upper bound of (step / pi) * sum over k > nodes of |phi(k step)| / (k step)^2: cells, block by
    block, then a power law.
    """
    arb = flint().arb
    bound, u = arb(0), arb(ends((nodes + 1) * step)[0])
    while True:
        constant, rate = arb(1), arb(0)
        for loss in losses:
            c, r = loss.beyond(theta, u)
            constant, rate = constant * c, rate + r
        # step * sum over nodes u' >= u of 1/u'^{2+r} <= step/u^{2+r} + integral
        rest = (constant / u ** (rate + 1) * (step / u + 1 / (rate + 1)) / arb.pi()).upper()
        if rest < math.exp(log_tolerance) / 1000:
            return (bound + rest).upper()
        if bound > 100 * math.exp(log_tolerance) or u > 1e9:
            return (bound + rest.min(2 / u)).upper()  # too wide to be useful; still a bound, as |phi| <= 1
        wish = min(loss.cell(theta, u, log_tolerance) for loss in losses)
        if not wish > 0:  # NaN too: the balls of phi have become useless
            raise Unanswerable("the balls are too wide for a proof of this plan; ask for fewer digits")
        cells = max(1, min(2000, math.ceil(0.4 * float(u) / wish)))
        width = arb(min(wish, 0.4 * float(u)))
        product = [arb(1)] * cells
        for loss in losses:
            product = [a * b for a, b in zip(product, loss.bounds(theta, u, width, cells), strict=True)]
        for k, cell in enumerate(product):
            x, y = u + k * width, u + (k + 1) * width
            bound += cell * (step / (x * x) + 1 / x - 1 / y) / arb.pi()
        bound, u = bound.upper(), arb(ends(u + cells * width)[0])


# -- choices in floats: never part of the proof
# ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tilts:
    """Tilts s on one side of theta with estimates of K(s) - K(theta): where to look for a good aliasing bound."""

    tilts: Floats
    gain: Floats

    @classmethod
    def beside(cls, composition: Composition, theta: float, rising: bool) -> _Tilts:
        if rising:
            tilts = theta * (1 + 0.02 * 1.5 ** np.arange(24.0))
        else:
            shrink = 0.02 * 1.4 ** np.arange(12.0)
            tilts = np.append(theta * (1 - shrink[shrink < 1]), 0.0)
        moments = np.asarray(composition.log_moment(np.append(tilts, theta)))
        return cls(tilts, moments[:-1] - moments[-1])

    def logs(self, theta: float, epsilon: float, period: float) -> Floats:
        """The logarithm of the aliasing bound at each tilt."""
        gap = self.tilts - theta
        return np.asarray(self.gain - gap * epsilon - np.abs(gap) * period)


Choice = tuple[float, float, int, float, tuple[_Tilts, _Tilts]]


def _choose(composition: Composition, epsilon: float, digits: int) -> Choice:
    """(tilt, period, nodes, log of the tolerance in units of e^{K - theta eps}, tilts to alias with)."""
    grid = np.exp(np.linspace(math.log(1e-4), math.log(1e5), 400))
    with np.errstate(over="ignore", invalid="ignore"):
        moments = np.asarray(composition.log_moment(grid))
        objective = moments - grid * epsilon - np.log(grid * (1 + grid))
    best = min(max(int(np.argmin(np.where(np.isfinite(objective), objective, np.inf))), 1), len(grid) - 2)
    theta = float(grid[best])
    slopes = np.diff(moments[best - 1 : best + 2]) / np.diff(grid[best - 1 : best + 2])
    spread = (
        max(float(slopes[1] - slopes[0]) / (0.5 * (grid[best + 1] - grid[best - 1])), 0.0)
        + theta**-2
        + (1 + theta) ** -2
    )
    log_tolerance = -math.log(theta * (1 + theta)) - 0.5 * math.log(2 * math.pi * spread) - digits * math.log(10)
    period = 6 * math.sqrt(spread)
    tables = _Tilts.beside(composition, theta, rising=True), _Tilts.beside(composition, theta, rising=False)
    for table in tables:
        while np.min(table.logs(theta, epsilon, period)) > log_tolerance:
            period *= 1.15
    cut, step = 1 / math.sqrt(spread), 1.15
    base = float(np.asarray(composition.log_moment(np.array([theta])))[0])
    while cut * period < 2 * math.pi * _MOST_NODES:
        fall = float(np.asarray(composition.log_moment(np.array([complex(theta, cut)]))).real[0]) - base  # pyright: ignore[reportAttributeAccessIssue]
        if fall - math.log(cut) < log_tolerance - 4:
            return theta, period, math.ceil(cut * period / (2 * math.pi)), log_tolerance, tables
        cut *= step
    raise Unanswerable(
        f"the proof would need more than {_MOST_NODES} nodes: the characteristic function of this plan "
        "hardly decays (few steps, or losses on few points); ask epsilon_interval or delta_interval, which "
        "certify it in floating point"
    )
