"""The tilted characteristic function of a loss, with bounds: what contour inversion needs of a law.

For a real tilt theta, phi(u) = exp(K(theta + iu) - K(theta)) is the characteristic function of the law tilted by
exp(theta L). A :class:`Characteristic` holds K(theta) with an error bound and evaluates phi on a grid with an error
bound.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from dptally.numerics import gridding
from dptally.numerics.arrays import Complexes as Complexes
from dptally.numerics.arrays import Floats as Floats
from dptally.numerics.rounding import EPS, FUNCTION_ULPS

__all__ = [
    "Characteristic",
    "CompiledLaw",
    "GaussianCharacteristic",
    "MomentTable",
    "NodeCharacteristic",
    "SoftCut",
    "Transformable",
    "WindowedLaw",
]

_TURN_ULPS = 8 * FUNCTION_ULPS + 8
_FEW_ROWS = 16  # of e^{iku} - 1 that are computed by themselves, before they are doubled
_LONG, _LUMP = 256, 64  # nodes beyond which sums are taken in lumps, and the length of these


@dataclass(frozen=True, slots=True)
class MomentTable:
    """K at increasing real tilts theta > 0, bounds of its absolute error, and estimates of K' and K''."""

    theta: Floats
    moment: Floats
    error: Floats
    first: Floats
    second: Floats


class CompiledLaw(NamedTuple):
    """What the compiled kernel wants to know of a sampled Gaussian: docs/kernel.md."""

    rate: float
    scale: float
    remove: bool


class Transformable(Protocol):
    """What contour inversion works on: a law, or a part of one (a measure of mass below one)."""

    def moment_table(self, theta: Floats) -> MomentTable:
        """K at real tilts with error bounds; +inf where it is infinite or too expensive to evaluate."""
        ...

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        """phi for |u| <= reach to exp(log_tolerance); None where that cannot be had."""
        ...

    def log_decay(self, theta: float, start: Floats) -> Floats:
        """For each start, an upper bound of log |phi(u)| over every u >= start."""
        ...


@dataclass(frozen=True, slots=True)
class SoftCut:
    """A soft cut: of a loss that exceeds the least one by lam the share Phi(rho (1 - lam / at)) counts as below.

    A law without least loss is cut on both sides, or on that of large positive losses alone.
    """

    at: float
    rho: float
    both: bool = True

    @property
    def width(self) -> float:
        return self.at / self.rho


class WindowedLaw(Transformable, Protocol):
    """The part of a law between two soft edges."""

    def log_mass_below(self, theta: float, loss: float) -> float:
        """log of a bound of the integral of e^{theta L} over the band's losses less than ``loss``."""
        ...


class Characteristic(ABC):
    """phi of one law at one tilt. ``centre`` is close to K'(theta); phi below is that of L - centre."""

    log_moment: float  #: K(theta), computed
    log_moment_error: float  #: |computed - true| <= this
    centre: float

    @property
    def size(self) -> int:
        """The number of nodes: what one value of phi costs."""
        return 1

    @abstractmethod
    def on_grid(self, step: float, number: int) -> tuple[Complexes, Floats]:
        """phi(k step) - 1 for k = 0..number-1, and bounds of the absolute errors."""

    @abstractmethod
    def in_rows(self, step: float, first: Floats, column: Floats) -> Complexes:
        """phi((first_i + column_j) step): for many nodes, where an absolute error will do."""

    @abstractmethod
    def row_error(self) -> tuple[float, float]:
        """(a, b): the values of :meth:`in_rows` err by at most a + b u."""


@dataclass(frozen=True, slots=True)
class GaussianCharacteristic(Characteristic):
    """K = V t (t + 1) / 2, so phi(u) = exp(-V u^2 / 2) after centring at V (theta + 1/2): exact.

    ``relative`` bounds the relative error of the given variance V, ``defect`` what phi differs from it otherwise.
    """

    variance: float
    log_moment: float
    log_moment_error: float
    centre: float
    relative: float
    defect: float = 0.0

    @classmethod
    def of(cls, variance: float, theta: float, relative: float, defect: float = 0.0) -> GaussianCharacteristic:
        moment = 0.5 * variance * theta * (theta + 1.0)
        return cls(variance, moment, (relative + 4 * EPS) * moment, variance * (theta + 0.5), relative, defect)

    def on_grid(self, step: float, number: int) -> tuple[Complexes, Floats]:
        u = step * np.arange(number)
        exponent = -0.5 * self.variance * u * u
        # |e^{x(1+r)} - e^x| <= r |x| e^x (1 + r|x|); the centre's error, 4 ulps of the centre in all, is charged
        # by the caller
        value = np.expm1(exponent)
        error = np.exp(exponent) * (self.relative + 6 * EPS) * (-exponent) * 1.01 - FUNCTION_ULPS * EPS * value
        return value.astype(np.complex128), error + self.defect

    def in_rows(self, step: float, first: Floats, column: Floats) -> Complexes:
        u = step * (first[:, None] + column)
        return np.exp(-0.5 * self.variance * u * u).astype(np.complex128)

    def row_error(self) -> tuple[float, float]:
        return self.relative + 8 * EPS + self.defect, 0.0


@dataclass(frozen=True, slots=True)
class NodeCharacteristic(Characteristic):
    """phi of a positive measure on nodes: sum of weights * exp(i u losses), standing for a law up to ``defect``.

    ``losses`` are centred; ``weights`` are tilted and sum to one. The true phi differs from the exact node sum by at
    most ``defect`` for |u| <= the reach it was built for; the nodes' own rounding is ``loss_error`` (absolute, each)
    and ``weight_error`` (relative, each).
    """

    losses: Floats
    weights: Floats
    loss_error: Floats
    weight_error: Floats
    defect: float
    log_moment: float
    log_moment_error: float
    centre: float

    @classmethod
    def of(
        cls,
        losses: Floats,
        weights: Floats,
        *,
        loss_error: Floats,
        weight_error: Floats,
        defect: float,
        log_moment: float,
        log_moment_error: float,
    ) -> NodeCharacteristic:
        """From losses that are not centred; the rounding of the difference joins their error."""
        centre = float(np.dot(weights, losses))
        return cls(
            losses=losses - centre,
            weights=weights,
            loss_error=loss_error + EPS * (np.abs(losses) + abs(centre)),
            weight_error=weight_error,
            defect=defect,
            log_moment=log_moment,
            log_moment_error=log_moment_error,
            centre=centre,
        )

    @property
    def size(self) -> int:
        return len(self.losses)

    def slope_error(self, depth: int, more: int = 0) -> float:
        """c with |computed - exact node sum| <= c u: rounding of weights, losses and of the sum itself.

        |e^{iux} - 1| <= u |x|, so a relative weight error d_j costs u d_j w_j |x_j|, and its mean once more because the
        weights are normalised; a loss error costs u w_j e_j. A complex sum in which no product passes more than
        ``depth`` additions errs by at most sqrt(2) depth EPS times the sum of their sizes: together <= 4 u w_j |x_j|,
        of which 3 are such products. The sines and cosines of e^{ia} - 1 make it err by 2 F + 3 ulps of |a|, F those of
        one function; in e^{i(a+b)} - 1 they count three times, and 6 are for the product: 6 F + 15 < 8 F + 8.
        ``more``: ulps that the factors e^{iux} - 1 err by besides.
        """
        size = self.weights * np.abs(self.losses)
        ulps = 5 * depth + _TURN_ULPS + more
        relative = self.weight_error + float(np.dot(self.weights, self.weight_error)) + ulps * EPS
        return float(1.01 * (np.dot(size, relative) + np.dot(self.weights, self.loss_error)))

    def on_grid(self, step: float, number: int) -> tuple[Complexes, Floats]:
        # e^{i(a+b)} - 1 = E_a E_b + E_a + E_b with E = e^{i.} - 1: trigonometry on about 2 sqrt(number) rows, the
        # rest is a
        # matrix product, and every term stays proportional to u |L|, so the error does too.
        block = max(1, math.isqrt(number - 1) + 1)
        giants = -(-number // block)
        small, doubled = _units_minus_one(step, block, self.losses)
        large, _ = _units_minus_one(step * block, giants, self.losses)
        weighted = small * self.weights
        long = self.size > _LONG
        sums = _product(large, weighted, _LUMP if long else None)
        if long:  # lumps, so that rounding stays that of a short sum
            ends = np.arange(0, self.size, _LUMP)
            sums += np.add.reduceat(large * self.weights, ends, axis=1).sum(axis=1)[:, None]
            sums += np.add.reduceat(weighted, ends, axis=1).sum(axis=1)[None, :]
        else:
            sums += (large @ self.weights)[:, None] + weighted.sum(axis=1)[None, :]
        depth = _LUMP + len(ends) if long else self.size  # pyright: ignore[reportPossiblyUnboundVariable]
        u = step * np.arange(number)
        error = np.asarray(self.defect + self.slope_error(depth, 3 * doubled) * u, dtype=np.float64)
        return sums.ravel()[:number], error

    def in_rows(self, step: float, first: Floats, column: Floats) -> Complexes:
        number = int(first[-1]) + len(column) if len(first) else 0
        length = gridding.grid_length(number) if number else 0
        if (
            self.size >= gridding.FEWEST
            and length <= gridding.MOST
            and self.size * first.size * column.size > 24 * length
        ):
            values = gridding.exponential_sums(step * self.losses, self.weights, number)
            return values[first.astype(np.int64)[:, None] + column.astype(np.int64)]
        turn = 1j * step
        large = np.asarray(np.exp(turn * np.multiply.outer(first, self.losses)) * self.weights, dtype=np.complex128)
        small = np.asarray(np.exp(turn * np.multiply.outer(column, self.losses)), dtype=np.complex128)
        if self.size > 4:
            return _product(large, small)
        total = np.multiply.outer(large[:, 0], small[:, 0])  # a few atoms: no matrix product, and no threads
        for k in range(1, self.size):
            total += np.multiply.outer(large[:, k], small[:, k])
        return total

    def row_error(self) -> tuple[float, float]:
        """The weights' errors count as they stand, and a complex sum of n products by 2 n + 8 ulps, gridded or not."""
        flat = 2 * float(np.dot(self.weights, self.weight_error))
        return self.defect + 1.01 * flat + (2 * self.size + 8) * EPS, self.slope_error(self.size)


def _product(left: Complexes, right: Complexes, most: int | None = None) -> Complexes:
    """left @ right.T in blocks, at most ``most`` long, that stay below the size where BLAS starts threads: their start
    costs more than they save.
    """
    block = max(16, 200_000 // (left.shape[0] * right.shape[0]))
    block = block if most is None else min(block, most)
    total = left[:, :block] @ right[:, :block].T
    for start in range(block, left.shape[1], block):
        total += left[:, start : start + block] @ right[:, start : start + block].T
    return total


def _units_minus_one(step: float, number: int, x: Floats) -> tuple[Complexes, int]:
    """E_k = exp(i k step x) - 1 for k = 0..number-1, and how often rows were doubled, by E_{a+b} = E_a E_b + E_a + E_b.

    If E_a and E_b err by at most c ulps of a |step x| and of b |step x|, then the sum by c ulps of (a + b) |step x|,
    since |1 + E| = 1; with |E_a| |E_b| <= (a + b) |step x|, |E_a E_b + E_a| = |E_a| and |E_{a+b}| <= (a + b) |step x|
    its three roundings cost 3 further ulps at most.
    """
    if number <= _FEW_ROWS:
        return _unit_minus_one(step * np.arange(number)[:, None] * x), 0
    rows = np.empty((number, len(x)), dtype=np.complex128)
    rows[:_FEW_ROWS] = _unit_minus_one(step * np.arange(_FEW_ROWS)[:, None] * x)
    have, doubled = _FEW_ROWS, 0
    while have < number:
        more, turned = rows[have : 2 * have], _unit_minus_one((step * have) * x)
        known = rows[: len(more)]
        np.multiply(known, turned, out=more)
        more += known
        more += turned
        have, doubled = have + len(more), doubled + 1
    return rows, doubled


def _unit_minus_one(x: Floats) -> Complexes:
    """exp(i x) - 1 with a relative error of a few ulps also for small x."""
    half = 0.5 * x
    sine, cosine = np.sin(half), np.cos(half)
    out = np.empty(x.shape, dtype=np.complex128)
    np.multiply(-2.0 * sine, sine, out=out.real)
    np.multiply(2.0 * sine, cosine, out=out.imag)
    return out
