"""Laplace losses: everything that is true of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.interval import Interval
from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.law.ball import BallLoss
from dptally.law.characteristic import Characteristic, Complexes, MomentTable
from dptally.law.law import Numbers
from dptally.laws.quadrature.tilted import exponential_rule, tilted_nodes
from dptally.numerics.exact import between
from dptally.numerics.logspace import LOG1MEXP_ULPS, exp_divided_difference, expm1_ratio, log1mexp, log1p, widened
from dptally.numerics.normal import gaussian_mu_at_zero
from dptally.numerics.rounding import EPS

__all__ = ["LaplaceCharacteristic", "LaplaceLaw"]

_MOMENT_ULPS = 64.0


_MANY_TURNS = 400.0  # u r beyond which the characteristic function is taken in closed form


@dataclass(frozen=True, slots=True)
class LaplaceCharacteristic(Characteristic):
    """phi in closed form, z = theta + iu:  ((1 + z) e^{zr} + z e^{-(1+z)r}) / (1 + 2z), over its value at u = 0.

    For many turns of e^{iur}, where nodes are expensive. As u grows |1 + z| / |1 + 2z| falls and |z| / |1 + 2z| rises
    to 1/2, so the two terms together never exceed 3/2. ``off``: the relative error of r.
    """

    reach: float
    theta: float
    off: float
    log_moment: float
    log_moment_error: float
    centre: float

    def in_rows(self, step: float, first: Floats, column: Floats) -> Complexes:
        r, theta = self.reach, self.theta
        turned = np.multiply.outer(np.exp(1j * (r * step) * first), np.exp(1j * (r * step) * column))
        z = theta + 1j * (step * (first[:, None] + column))
        up = math.exp(theta * r - self.log_moment)
        down = math.exp(-(1 + theta) * r - self.log_moment)
        return np.asarray((up * (1 + z) * turned + down * z * turned.conj()) / (1 + 2 * z), dtype=np.complex128)

    def row_error(self) -> tuple[float, float]:
        """Of each term: its exponent, r and a dozen roundings; of e^{iur}: r u and its halves."""
        size = 2 * self.theta * self.reach + self.reach + abs(self.log_moment)
        flat = EPS * (40 + 4 * size) + size * self.off + self.log_moment_error
        return 1.5 * flat, 1.5 * self.reach * (self.off + 6 * EPS)

    def on_grid(self, step: float, number: int) -> tuple[Complexes, Floats]:
        block = math.isqrt(max(number - 1, 0)) + 1
        first = block * np.arange(float(-(-number // block)))
        flat, steep = self.row_error()
        values = self.in_rows(step, first, np.arange(float(block))).ravel()[:number]
        return values - 1.0, flat + steep * step * np.arange(float(number))


@dataclass(frozen=True, slots=True)
class LaplaceLaw(Law):
    r"""The loss of Lap(0, b) against Lap(s, b), r = s/b: the same in both directions.

    Atoms 1/2 at r and exp(-r)/2 at -r; density exp(-(r - l)/2) / 4 between them. With a = t r and c = -(1 +
    t) r:  exp K(t) = ((1 + t) e^a + t e^c) / (1 + 2t), and exp K(t) - 1 = -a c exp[0, a, c], a second
    divided difference, which nothing cancels in.

    The exact r lies between ``reach_lower`` and ``reach``, neighbouring doubles (or one double);
    log_profile holds for it.
    """

    reach: float
    reach_lower: float
    has_characteristic: ClassVar[bool] = True
    theorem: ClassVar[str] = "Mironov 2017, Prop. 6; Balle, Barthe, Gaboardi 2018, Thm. 3 (profile)"

    def sampled(self, rate: Fraction, direction: Direction) -> Law:
        from dptally.laws.sampled.laplace_sides import SampledLaplaceLaw

        lower, upper = between(rate)
        return SampledLaplaceLaw(self, upper, direction, 0.0, None if lower == upper else lower)

    def sampled_replace(self, rate: Fraction) -> Law:
        if rate == 1:
            return LaplaceLaw(2.0 * self.reach, 2.0 * self.reach_lower)
        from dptally.laws.sampled.laplace import SampledReplaceLaplaceLaw

        lower, upper = between(rate)
        return SampledReplaceLaplaceLaw(upper, self.reach, self.reach_lower, None if lower == upper else lower)

    def ball(self, count: int) -> BallLoss | None:
        from dptally.laws.ball.losses import LaplaceBall

        return LaplaceBall(self.reach, self.reach_lower, count)

    def log_moment(self, t: Numbers) -> Numbers:
        t = np.asarray(t)
        t = np.where(t.real < -0.5, -1.0 - t, t)  # both directions have one law: K(t) = K(-1 - t)  # pyright: ignore[reportAttributeAccessIssue]
        a, c = t * self.reach, -(1.0 + t) * self.reach
        small = (np.abs(a) < 1) & (np.abs(c) < 1)
        large = ~small & ((a.real > 2) | (a.real < -0.5))
        first, second = np.where(small, a, 0.0), np.where(small, c, 0.0)
        series = -first * second * exp_divided_difference(first, second)
        ratio = a * expm1_ratio(c - a)
        with np.errstate(under="ignore"):
            middle = np.expm1(np.where(large, 0.0, a)) - np.exp(np.where(large, 0.0, a)) * ratio
        return np.where(large, a + log1p(-ratio), log1p(np.where(small, series, np.where(large, 0.0, middle))))

    def moment_table(self, theta: Floats) -> MomentTable:
        table = Law.moment_table(self, theta)
        return replace(table, error=_MOMENT_ULPS * EPS * table.moment)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        """Two atoms, and Gauss-Legendre nodes for the density: e^{(theta + 1/2 + iu) l} is entire."""
        r = self.reach
        if r * reach > _MANY_TURNS:
            return self._closed(theta)
        rule = exponential_rule(r * (theta + 0.5), r * reach, log_tolerance)
        if rule is None:
            return None
        x, w = rule
        losses = np.concatenate(([-r], r * x, [r]))
        masses = np.concatenate(([0.5 * math.exp(-r)], 0.25 * r * w * np.exp(-0.5 * r * (1 - x)), [0.5]))
        off = (self.reach - self.reach_lower) / self.reach + 4 * EPS
        return tilted_nodes(
            losses, masses, theta, loss_error=off, mass_error=(64 + 8 * r) * EPS, defect=math.exp(log_tolerance)
        )

    def _closed(self, theta: float) -> LaplaceCharacteristic:
        moment = float(self.log_moment(np.array([theta]))[0])
        off = (self.reach - self.reach_lower) / self.reach + 4 * EPS
        return LaplaceCharacteristic(self.reach, theta, off, moment, _MOMENT_ULPS * EPS * moment, 0.0)

    def log_decay(self, theta: float, start: Floats) -> Floats:
        """|phi(u)| <= tilted mass of the atoms + (variation of the tilted density) / u; the density is monotone."""
        r = self.reach
        log_k = float(self.log_moment(np.array([theta]))[0]) * (1 - 1e-12)
        atoms = 0.5 * math.exp(theta * r - log_k) + 0.5 * math.exp(-(1 + theta) * r - log_k)
        bound = (atoms + 0.5 * math.exp(theta * r - log_k) / start) * (1 + 1e-9)
        return np.minimum(0.0, np.log(bound))

    @property
    def has_all_mass(self) -> bool:
        return True

    def is_reverse_of(self, other: Law) -> bool:
        """The same in both directions."""
        return self == other

    @property
    def mean(self) -> float:
        """r + exp(-r) - 1."""
        r = self.reach
        return float(r * r * exp_divided_difference(np.zeros(()), np.asarray(-r))) if r < 1 else r + math.expm1(-r)

    @property
    def supremum(self) -> float:
        return self.reach

    @property
    def infimum(self) -> float:
        return -self.reach

    @property
    def supremum_interval(self) -> Interval:
        return Interval(self.reach_lower, self.reach)

    @property
    def infimum_interval(self) -> Interval:
        return Interval(-self.reach, -self.reach_lower)

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """log(1 - exp((eps - r)/2)) for |eps| < r, log(1 - exp(eps)) below, -inf above: increasing in r, so
        the lower bound takes the lower r. The argument of each exponential is rounded outwards.
        """
        lower, upper = self._log_profile(epsilon, self.reach_lower, -1), self._log_profile(epsilon, self.reach, 1)
        return widened(lower, upper, LOG1MEXP_ULPS)

    def _log_profile(self, epsilon: Floats, reach: float, sign: int) -> Floats:
        half = np.nextafter(0.5 * (epsilon - reach), -math.inf * sign)  # half an ulp of the difference, outwards
        inner = log1mexp(np.where(epsilon < reach, np.minimum(half, 0.0), 0.0))
        return np.where(epsilon < -reach, log1mexp(np.minimum(epsilon, 0.0)), inner)

    def tail(self, loss: Floats) -> Floats:
        inner = 1.0 - 0.5 * np.exp(0.5 * np.minimum(loss - self.reach, 0.0))
        return np.where(loss < -self.reach, 1.0, np.where(loss < self.reach, inner, 0.0))

    def atoms(self) -> tuple[tuple[float, float], ...]:
        return ((-self.reach, 0.5 * math.exp(-self.reach)), (self.reach, 0.5))

    def density(self, loss: Floats) -> Floats:
        inside = np.abs(loss) < self.reach
        return np.where(inside, 0.25 * np.exp(0.5 * np.where(inside, loss - self.reach, 0.0)), 0.0)

    def gaussian_mu(self) -> float:
        """-2 Phi^{-1}(exp(-r/2)/2), exact.

        With F the Laplace distribution function, T(F, F(. - r)) >= G_mu means S(u) - S(u - r) <= mu for
        every u, where S = Phi^{-1} o F. S is odd, and for u > 0 its slope (1 - F)/phi(S) is the Mills ratio
        at S(u), which falls; so the slope is even and falls away from 0, and the centred interval, u = r/2,
        has the largest difference 2 S(r/2).
        """
        return float(gaussian_mu_at_zero(np.asarray(-0.5 * self.reach))[1])
