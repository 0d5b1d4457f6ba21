"""Poisson sampling of any mechanism that has a dominating pair: one law for each side."""

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
from dptally.law.law import Numbers
from dptally.laws.quadrature.losses import (
    LossNodes,
    add_divergence,
    moment_and_error,
    moment_by_nodes,
    remove_divergence,
    weighted_losses,
)
from dptally.laws.sampled.pair import (
    add_factor,
    add_inner,
    log_profile_add,
    log_profile_remove,
    mixture,
    mixture_bounds,
    remove_inner,
)
from dptally.numerics.exact import between
from dptally.numerics.rounding import EPS

__all__ = ["SampledLaw"]


@dataclass(frozen=True, slots=True)
class SampledLaw(Law):
    """The loss of sampling at rate q, 0 < q < 1, from the loss of the mechanism on the same side.

    REMOVE: ``inner`` is the loss of (P1, P0); the sampled loss is log(1 - q + q e^L) under (1-q) P0 + q P1.
    ADD:    ``inner`` is the loss of (P0, P1); the sampled loss is -log(1 - q + q e^-L) under P0.
    ``reverse_mass`` is the mass of the inner pair's second member where the first has none. On the REMOVE
    side it stays behind with ratio 1 - q: an atom at log(1-q) of mass (1-q) reverse_mass. On the ADD side
    the inner mass at infinity becomes an atom at -log(1-q): once sampling mixes P0 into both members no
    output proves absence. The exact q lies between ``rate_lower`` (without it: q) and ``rate``; every profile grows
    with it.
    """

    inner: Law
    rate: float
    side: Direction
    reverse_mass: float = 0.0
    rate_lower: float | None = None
    theorem: ClassVar[str] = "Zhu, Dong, Wang 2022, Optimal accounting of DP via characteristic function, Thm. 11"

    # -- the log-moment ------------------------------------------------------------------------------------

    def log_moment(self, t: Numbers) -> Numbers:
        """K(t), from the inner atoms and Gauss-Legendre panels of the inner density."""
        return moment_by_nodes(self.nodes, t)

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        return moment_and_error(self.nodes, t)

    def nodes(self, tilts: Floats, frequency: float = 0.0) -> LossNodes:
        """The rule that integrates e^{tL} for Re t in ``tilts`` and \\|Im t\\| <= ``frequency``."""
        modulus = math.hypot(float(np.abs(tilts).max()), frequency)
        return self._mixed(*weighted_losses(self.inner, float(tilts.max()), modulus))

    def _mixed(self, inner: Floats, log_mass: Floats) -> LossNodes:
        """The sampled losses at losses of the mechanism inside, which have these masses there."""
        q = self.rate
        longest = float(np.abs(inner).max()) - math.log(q)
        edge = _row(-q), _row(math.log1p(-q))  # A - 1 and log A where only P0 has mass
        if self.side is Direction.REMOVE:
            x, log_ratio = mixture(self.rate, inner)
            log_base = log_mass - inner
            log_mixed = log_base + log_ratio
            nodes = [(log_mixed, log_ratio, remove_divergence(log_mixed, log_base, x, log_ratio))]
            if self.reverse_mass:
                base = _row(math.log(self.reverse_mass))
                nodes.append((base + edge[1], edge[1], remove_divergence(base + edge[1], base, *edge)))
            return _joined(nodes, q * self.inner.infinity_mass, 0.0, longest)
        x, log_ratio = mixture(self.rate, -inner)
        nodes = [(log_mass, -log_ratio, add_divergence(log_mass, x, log_ratio))]
        if self.inner.infinity_mass:
            base = _row(math.log(self.inner.infinity_mass))
            nodes.append((base, -edge[1], add_divergence(base, *edge)))
        return _joined(nodes, 0.0, q * self.reverse_mass, longest)

    # -- the distribution ----------------------------------------------------------------------------------

    def is_reverse_of(self, other: Law) -> bool:
        """The same rate on the other side, where the inner pair is turned as well."""
        if not isinstance(other, SampledLaw) or (self.rate, self.rate_lower) != (other.rate, other.rate_lower):
            return False
        turned = self.side is not other.side and self.inner.is_reverse_of(other.inner)
        return turned and (self.reverse_mass, other.reverse_mass) == (
            other.inner.infinity_mass,
            self.inner.infinity_mass,
        )

    @property
    def mean(self) -> float:
        return self.nodes(np.zeros(1), 1.0).mean

    @property
    def atom_error(self) -> float:
        """An ulp of the loss inside moves this one by at most so many of its own as the loss is long."""
        return (64 + 4 * self._longest()) * EPS

    @property
    def has_all_mass(self) -> bool:
        return self.inner.infinity_mass == 0 if self.side is Direction.REMOVE else self.reverse_mass == 0

    @property
    def infinity_mass(self) -> float:
        return self.infinity_mass_interval.upper

    @property
    def infinity_mass_interval(self) -> Interval:
        if self.side is Direction.ADD:
            return Interval(0.0, 0.0)
        inner = self.inner.infinity_mass_interval
        lower = between(Fraction(self._least().rate) * Fraction(inner.lower))[0]
        return Interval(lower, between(Fraction(self.rate) * Fraction(inner.upper))[1])

    @property
    def supremum(self) -> float:
        return self.supremum_interval.upper

    @property
    def infimum(self) -> float:
        return self.infimum_interval.lower

    @property
    def supremum_interval(self) -> Interval:
        inner = self.inner.supremum_interval
        if self.side is Direction.ADD and self.inner.infinity_mass:
            inner = Interval(math.inf, math.inf)
        low, high = self._least()._moved_bounds(inner.lower), self._moved_bounds(inner.upper)
        return Interval(low[0], high[1])

    @property
    def infimum_interval(self) -> Interval:
        inner = self.inner.infimum_interval
        if self.side is Direction.REMOVE and self.reverse_mass:
            inner = Interval(-math.inf, -math.inf)
        # a negative loss falls with the rate
        low, high = self._moved_bounds(inner.lower), self._least()._moved_bounds(inner.upper)
        return Interval(low[0], high[1])

    def _longest(self) -> float:
        ends = (self.inner.infimum, self.inner.supremum)
        return max((abs(end) for end in ends if math.isfinite(end)), default=0.0)

    def _least(self) -> SampledLaw:
        return self if self.rate_lower is None else replace(self, rate=self.rate_lower, rate_lower=None)

    def _moved_bounds(self, loss: float) -> tuple[float, float]:
        """Bounds of the sampled loss of an inner loss, which may be infinite."""
        if self.side is Direction.REMOVE:
            return mixture_bounds(self.rate, loss)
        lower, upper = mixture_bounds(self.rate, -loss)
        return -upper, -lower

    def _moved(self, loss: float) -> float:
        """The sampled loss of an inner loss, which may be infinite."""
        w = loss if self.side is Direction.REMOVE else -loss
        if math.isinf(w):
            log_ratio = math.inf if w > 0 else math.log1p(-self.rate)
        else:
            log_ratio = float(mixture(self.rate, _row(w))[1][0])
        return log_ratio if self.side is Direction.REMOVE else -log_ratio

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        lower, upper = self._log_profile(epsilon)
        return (lower, upper) if self.rate_lower is None else (self._least()._log_profile(epsilon)[0], upper)

    def _log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        if self.side is Direction.REMOVE:
            return log_profile_remove(self.rate, epsilon, self.inner.log_profile, self.inner.infinity_mass)
        return log_profile_add(self.rate, epsilon, self._inner_total)

    def _inner_total(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """The inner profile with its mass at infinity."""
        lower, upper = self.inner.log_profile(epsilon)
        mass = self.inner.infinity_mass
        if not mass:
            return lower, upper
        slack = 4 * EPS * (1.0 - math.log(mass))
        lower, upper = (np.logaddexp(end, math.log(mass)) for end in (lower, upper))
        return lower - slack, np.minimum(upper + slack, 0.0)

    def _inner_loss(self, loss: Floats) -> Floats:
        """The inner loss that becomes this sampled loss; infinite outside the range."""
        if self.side is Direction.REMOVE:
            low, high = remove_inner(self.rate, loss)
        else:
            low, high = add_inner(self.rate, loss, add_factor(self.rate, loss))
        open_end = np.isinf(low) | np.isinf(high)
        middle = 0.5 * (np.where(open_end, 0.0, low) + np.where(open_end, 0.0, high))
        return np.where(open_end, low if self.side is Direction.REMOVE else high, middle)

    def tail(self, loss: Floats) -> Floats:
        q, at = self.rate, self._inner_loss(loss)
        inside = np.isfinite(at)
        w = np.where(inside, at, 0.0)
        tail = self.inner.tail(w)
        if self.side is Direction.ADD:
            above = tail + self.inner.infinity_mass
            return np.where(inside, above, 0.0)
        # Q(L > w) = e^-w (P(w < L < inf) - E[(1 - e^{w-L})+])
        with np.errstate(under="ignore"):
            reverse = np.exp(-w) * np.maximum(tail - np.exp(self.inner.log_profile(w)[1]), 0.0)
        return np.where(inside, q * tail + (1.0 - q) * reverse, 1.0 - q * self.inner.infinity_mass)

    def atoms(self) -> tuple[tuple[float, float], ...]:
        moved = []
        for loss, mass in self.inner.atoms():
            sampled = self._moved(loss)
            moved.append(
                (sampled, mass * math.exp(min(sampled - loss, 709.0)) if self.side is Direction.REMOVE else mass)
            )
        edge = math.log1p(-self.rate)
        if self.side is Direction.REMOVE and self.reverse_mass:
            moved.insert(0, (edge, (1.0 - self.rate) * self.reverse_mass))
        if self.side is Direction.ADD and self.inner.infinity_mass:
            moved.append((-edge, self.inner.infinity_mass))
        return tuple(moved)

    def density(self, loss: Floats) -> Floats:
        at = self._inner_loss(loss)
        inside = np.isfinite(at)
        w = np.where(inside, at, 0.0)
        # dL/dy = A / (q e^L) on the REMOVE side, where the mixture weighs P by A e^-L; else A e^L / q
        power = 2.0 * (loss - w) if self.side is Direction.REMOVE else w - loss
        return np.where(inside, self.inner.density(w) * np.exp(np.where(inside, power, 0.0)) / self.rate, 0.0)

    def breakpoints(self) -> tuple[float, ...]:
        return tuple(self._moved(loss) for loss in self.inner.breakpoints())


def _row(value: float) -> Floats:
    return np.array([value], dtype=np.float64)


def _joined(
    nodes: list[tuple[Floats, Floats, Floats]], infinity_mass: float, reverse_mass: float, longest: float
) -> LossNodes:
    log_mass, loss, divergence = (np.concatenate(column) for column in zip(*nodes, strict=True))
    # d log A / dw = share <= 1, and at most |1 - 1/A| (1 + ...) beside it: an ulp of the loss inside, times its size
    slip = 8 * EPS * (8.0 + longest) + 8 * EPS * np.abs(log_mass)
    blur = 8 * EPS * np.abs(loss) + 8 * EPS * longest * -np.expm1(-np.abs(loss))
    return LossNodes(log_mass, loss, divergence, infinity_mass, reverse_mass, slip, blur)
