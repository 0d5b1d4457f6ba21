"""Laplace noise on a Poisson sample under REPLACE (theorem and proof in docs/sampling.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.interval import Interval
from dptally.law import Law
from dptally.law.characteristic import Characteristic, MomentTable
from dptally.law.law import Numbers
from dptally.laws.quadrature.losses import LossNodes, divergence, moment_and_error, moment_by_nodes, panels
from dptally.laws.sampled import laplace_contour as contour
from dptally.laws.sampled.gaussian.replace import REPLACE_THEOREM, mirrored
from dptally.numerics.decimals import LARGEST, around, exact, expm1, log1p, sixty_digits
from dptally.numerics.rounding import EPS, down, up

__all__ = ["SampledReplaceLaplaceLaw"]


@dataclass(frozen=True, slots=True)
class SampledReplaceLaplaceLaw(Law):
    r"""Laplace noise, r = one record's contribution / scale, sampled at rate q in (0, 1), under REPLACE.

    The pair is (1-q) Lap(0) + q Lap(r) against (1-q) Lap(0) + q Lap(-r). With A(w) = 1 - q + q e^w, an
    output y in (0, r) has loss log A(2y - r)/A(-r), everything beyond r the largest loss
    l = log A(r)/A(-r); the loss is odd in y.

    Profile, 0 <= eps < l: delta = q Y / (1 + sqrt(1 - Y)),  Y = A(r) / (q e^r) (1 - e^{eps - l}).
    (Lap's profile q (1 - e^{(w - r)/2}) at the w that solves A(w) = e^eps A(-r), where e^{w - r} = 1 - Y.)

    The exact r lies between ``reach_lower`` and ``reach``, the exact q between ``rate_lower`` (without it: q) and
    ``rate``; the profile grows with both.
    """

    rate: float
    reach: float
    reach_lower: float
    rate_lower: float | None = None
    has_characteristic: ClassVar[bool] = True
    theorem: ClassVar[str] = REPLACE_THEOREM

    def _log_ratio(self, w: Floats) -> Floats:
        """log(A(w) / A(-r)) = log1p(q e^-r (e^{w + r} - 1) / A(-r)), relatively accurate, -r <= w <= r."""
        q, r = self.rate, self.reach
        bottom = (1.0 - q) + q * math.exp(-r)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            near = np.log1p(q * math.exp(-r) * np.expm1(np.minimum(w + r, 600.0)) / bottom)
            far = w + math.log(q) + np.log1p((1.0 - q) / q * np.exp(-np.maximum(w, 1.0))) - math.log(bottom)
        if r >= 600.0:
            return np.where(w > 1.0, far, self._mixed(w))
        return np.where((w > 1.0) & (w + r > 600.0), far, near)

    def _mixed(self, w: Floats) -> Floats:
        """The same where e^-r underflows: log A(w) - log A(-r)."""
        q = self.rate
        top = np.log1p(q * np.expm1(np.minimum(w, 1.0))) - math.log1p(-q)
        return np.maximum(top, 0.0)

    # -- the log-moment ------------------------------------------------------------------------------------

    def log_moment(self, t: Numbers) -> Numbers:
        """K(t) from the two atoms and Gauss-Legendre panels in y."""
        return moment_by_nodes(self.nodes, t)

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        return moment_and_error(self.nodes, t)

    def nodes(self, tilts: Floats, frequency: float = 0.0) -> LossNodes:
        """The rule that integrates e^{tL} for Re t in ``tilts`` and \\|Im t\\| <= ``frequency``."""
        q, r = self.rate, self.reach
        y, weight = panels(0.0, r, 2.0 * math.hypot(float(np.abs(tilts).max()), frequency) + 1.0)
        y, log_weight = np.append(y, r), np.append(np.log(weight) - y, -r) - math.log(2.0)
        loss = self._log_ratio(2.0 * y - r)
        log_bottom = math.log((1.0 - q) + q * math.exp(-r)) + log_weight
        loss, log_mass = np.concatenate([-loss, loss]), np.concatenate([log_bottom, log_bottom + loss])
        # exponents of the size of r and y; a loss is as uncertain as log A(w), w good to a few ulps of r
        slip = 8 * EPS * (8.0 + r + np.abs(log_mass))
        blur = 8 * EPS * (np.abs(loss) + r * -np.expm1(-np.abs(loss)))
        return LossNodes(log_mass, loss, divergence(log_mass, loss), mass_error=slip, loss_error=blur)

    # -- contours: laplace_contour.py ------------------------------------------------------------------------

    @property
    def noise_reach(self) -> float:
        return self.reach

    @property
    def powers(self) -> contour.Powers:
        return contour.Powers(rising=True, falling=True)

    def losses(self, rule: contour.Rule) -> LossNodes:
        """Positive losses at the outputs beyond 0, and their mirror images; the atoms are the last of each."""
        q, r, w = self.rate, self.reach, rule.w[1:]
        loss = self._log_ratio(w)
        log_bottom = math.log((1.0 - q) + q * math.exp(-r)) + rule.log_base[1:]
        share = q * np.exp(w - loss) / ((1.0 - q) + q * math.exp(-r))  # d log A / dw = q e^w / A
        blur = 8 * EPS * (loss + r * (share + q * math.exp(-r)))
        losses, log_mass = np.concatenate([-loss, loss]), np.concatenate([log_bottom, log_bottom + loss])
        slip = 8 * EPS * (8.0 + 2 * r + np.abs(log_mass))
        return LossNodes(
            log_mass, losses, divergence(log_mass, losses), mass_error=slip, loss_error=np.concatenate([blur, blur])
        )

    def atom_rows(self, number: int) -> tuple[int, int]:
        return number // 2 - 1, number - 1

    def log_ends(self, theta: float) -> tuple[float, ...]:
        q, r = self.rate, self.reach
        bottom = contour.log_a(q, -r)
        head = math.log(0.25) + 0.5 * (math.log(q) - r) - 1.5 * math.log(q)
        return tuple(
            head + power * contour.log_a(q, w) - 1.5 * w + rest
            for power, rest in ((theta + 2, -theta * bottom), (1 - theta, (1 + theta) * bottom))
            for w in (-r, r)
        )

    def moment_table(self, theta: Floats) -> MomentTable:
        return contour.moment_table(self, theta)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        return contour.characteristic(self, theta, reach, log_tolerance)

    def log_decay(self, theta: float, start: Floats) -> Floats:
        return contour.log_decay(self, theta, start)

    def optimistic(self) -> Law:
        return self if self.rate_lower is None else self._least()

    # -- the distribution ----------------------------------------------------------------------------------

    @property
    def atom_error(self) -> float:
        """An ulp of the reach moves the largest loss by at most so many of its own as the reach is long."""
        return (64 + 4 * self.reach) * EPS

    @property
    def has_all_mass(self) -> bool:
        return True

    def is_reverse_of(self, other: Law) -> bool:
        """The same in both directions."""
        return self == other

    @property
    def mean(self) -> float:
        return self.nodes(np.zeros(1), 1.0).mean

    @property
    def supremum(self) -> float:
        return self.supremum_interval.upper

    @property
    def infimum(self) -> float:
        return -self.supremum

    @property
    def supremum_interval(self) -> Interval:
        least = self._least()
        return Interval(_largest(least.rate, least.reach)[0], _largest(self.rate, self.reach)[1])

    @property
    def infimum_interval(self) -> Interval:
        lower, upper = self.supremum_interval
        return Interval(-upper, -lower)

    def _least(self) -> SampledReplaceLaplaceLaw:
        """The law of the lower parameters."""
        rate = self.rate if self.rate_lower is None else self.rate_lower
        return SampledReplaceLaplaceLaw(rate, self.reach_lower, self.reach_lower)

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        size = np.abs(epsilon)
        lower = self._least()._log_positive(size, -1)
        upper = self._log_positive(size, 1)
        if not (epsilon < 0).any():
            return lower, upper
        return mirrored(epsilon, lower, -1), mirrored(epsilon, upper, 1)

    def _log_y(self, epsilon: Floats, sign: int) -> Floats:
        """log Y, rounded up (sign 1) or down (sign -1); -inf at and beyond the largest loss."""
        q, r = self.rate, self.reach
        top = float(self._log_ratio(np.asarray(r)))
        gap = np.maximum(top - epsilon + sign * 8 * EPS * (top + epsilon), 0.0)
        with np.errstate(divide="ignore"):
            part = np.log(-np.expm1(-gap))
        head = math.log1p((1.0 - q) / q * math.exp(-r))
        slack = np.where(np.isneginf(part), 0.0, 8 * EPS * (1.0 + np.abs(part) + head))
        return np.asarray(np.minimum(part + head + sign * slack, 0.0))

    def _log_positive(self, epsilon: Floats, sign: int) -> Floats:
        log_y = self._log_y(epsilon, sign)
        value = log_y + math.log(self.rate) - np.log1p(np.sqrt(-np.expm1(log_y)))
        slack = 8 * EPS * (2.0 + np.abs(np.where(np.isneginf(value), 0.0, value)) - math.log(self.rate))
        return np.asarray(np.where(np.isneginf(value), value, value + sign * slack))

    def _output(self, loss: Floats) -> Floats:
        """The y in [0, r] whose loss is \\|loss\\|."""
        y = np.exp(0.5 * (self._log_y(np.abs(loss), -1) + self._log_y(np.abs(loss), 1)))
        return np.asarray(np.clip(self.reach + 0.5 * np.log1p(-np.minimum(y, 1.0 - EPS)), 0.0, self.reach))

    def tail(self, loss: Floats) -> Floats:
        q, r, y = self.rate, self.reach, self._output(loss)
        bottom = (1.0 - q) + q * math.exp(-r)
        above = 0.5 * (1.0 - q) * np.exp(-y) + q * (1.0 - 0.5 * np.exp(y - r))
        below = 1.0 - 0.5 * bottom * np.exp(-y)
        top = self.supremum
        return np.select([loss >= top, loss >= 0, loss >= -top], [0.0, above, below], 1.0)

    def atoms(self) -> tuple[tuple[float, float], ...]:
        q, r = self.rate, self.reach
        top = float(self._log_ratio(np.asarray(r)))
        bottom = ((1.0 - q) + q * math.exp(-r)) * math.exp(-r) / 2
        return ((-top, bottom), (top, 0.5 * ((1.0 - q) * math.exp(-r) + q)))

    def density(self, loss: Floats) -> Floats:
        """A(w) e^-y / 2 (below 0: A(-r) e^-y / 2) divided by the slope of the loss in y, 2 q e^w / A(w)."""
        q, r, y = self.rate, self.reach, self._output(loss)
        log_bottom = math.log((1.0 - q) + q * math.exp(-r))
        w = 2.0 * y - r
        size = np.minimum(np.abs(loss), self.supremum)
        log_density = 2.0 * (size + log_bottom) - w - y - math.log(4.0 * q) - np.where(loss < 0, size, 0.0)
        return np.where(np.abs(loss) < self.supremum, np.exp(log_density), 0.0)

    def breakpoints(self) -> tuple[float, ...]:
        return (0.0,)


@lru_cache(maxsize=256)
def _largest(rate: float, reach: float) -> tuple[float, float]:
    """The closest doubles around log A(r)/A(-r) = log1p(q (e^r - e^-r) / A(-r)) of these doubles."""
    if reach > LARGEST:
        return down(reach + math.log(rate / (1 - rate)), 8), up(reach + math.log(rate / (1 - rate)), 8)
    with sixty_digits():
        q, r = exact(rate), exact(reach)
        return around(log1p(q * (expm1(r) - expm1(-r)) / (1 + q * expm1(-r))))
