r"""Certified tilted inversion: delta(eps) as a short trapezoid sum on a contour through the saddle point.

With phi the characteristic function of the loss tilted by theta > 0, and h(eps) = e^{theta eps - K(theta)} delta(eps),

    h(eps) = 1/(2 pi) \int phi(u) e^{-iu eps} / ((theta + iu)(theta + 1 + iu)) du .

The trapezoid sum of step Delta = 2 pi / P equals the sum over m of h(eps + m P)  [Poisson summation]; all of its terms
are nonnegative, so it is an upper bound and exceeds h by at most the aliasing bound. Everything is relative to
e^{K - theta eps}: delta = 1e-300 is as easy as 1e-5. Derivations: docs/certificates.md.

The recipe, :func:`invert`: a saddle (saddle.py), a period and a cut-off (aliasing.py, nodes.py), the values of phi at
the nodes (nodes.py), and the sum with its bounds (:class:`Inversion`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dptally.accounting.certified.bounds import LogBounds
from dptally.accounting.certified.contour.aliasing import Aliasing
from dptally.accounting.certified.contour.compiled import CompiledContour, ready
from dptally.accounting.certified.contour.nodes import MOST_ELEMENTS, Grid, Nodes
from dptally.accounting.certified.contour.saddle import Locate, Saddle, at_delta, at_epsilon, row_at
from dptally.accounting.certified.contour.tables import Losses, added, leading, merged, rows_of, tabulate
from dptally.accounting.certified.tuning import STANDARD, ContourTuning
from dptally.law import Composition, Law
from dptally.law.characteristic import MomentTable
from dptally.law.law import Floats
from dptally.numerics.rounding import EPS, FUNCTION_ULPS

Complexes = NDArray[np.complex128]

__all__ = ["Inversion", "at_row", "for_delta", "for_epsilon", "invert", "invertible", "tilted"]


@dataclass(frozen=True, slots=True)
class Inversion:
    """The nodes of one contour: evaluates log delta at any eps with certified bounds. Finite losses only."""

    theta: float
    log_moment: float
    log_moment_error: float
    centre: float
    step: float
    terms: Complexes  # phi(u_k) / ((theta + iu)(theta + 1 + iu)), the k = 0 term halved
    noise: float  # bound of the sum's error from the errors of phi
    phase_noise: float  # the part of that error that grows with |eps - centre|
    tail: float
    tilts: MomentTable
    saddle: float  # the eps whose saddle point theta is: where a search starts
    aliasing: Aliasing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        aliasing = Aliasing.of(self.tilts, self.theta, self.log_moment - self.log_moment_error, self.step)
        object.__setattr__(self, "aliasing", aliasing)

    @classmethod
    def of(cls, nodes: Nodes, grid: Grid, saddle: Saddle, tilts: MomentTable, times: int = 1) -> Inversion:
        """The contour of ``times`` copies of the parts at the nodes: values and error bounds added up."""
        number, step, theta = len(nodes.real), grid.step, saddle.theta
        u = step * np.arange(number)
        real, imag, growth = times * nodes.real, times * nodes.imag, times * nodes.growth
        log_moment, moment_error, centre, centre_size = [], 0.0, [], 0.0
        for char, once in nodes.parts:
            count = times * once
            log_moment.append(count * char.log_moment)
            moment_error += count * char.log_moment_error + EPS * abs(count * char.log_moment)
            centre.append(count * char.centre)
            centre_size += abs(count * char.centre)
        z = theta + 1j * u
        kernel = 1.0 / (z * (z + 1))
        kernel[0] *= 0.5
        phi = np.exp(real)
        weight = np.abs(kernel)
        # the true product is at most one, so an error never counts for more than two
        spread = np.minimum(np.exp(np.minimum(real + growth, 0.7)) - phi, 2.0)
        rounding = spread + phi * (EPS * (number + 24 + np.abs(real) + 2 * np.abs(imag)) + 4 * EPS * u * centre_size)
        return cls(
            theta=theta,
            log_moment=math.fsum(log_moment),
            log_moment_error=moment_error + 2 * EPS * sum(abs(x) for x in log_moment),
            centre=math.fsum(centre),
            step=step,
            terms=phi * np.exp(1j * imag) * kernel,
            noise=float(step / math.pi * np.dot(weight, rounding)) * 1.02,
            phase_noise=float(step / math.pi * np.dot(weight * phi, 4 * EPS * u)) * 1.02,
            tail=math.exp(min(grid.log_bound, 0.0)) / (math.pi * float(u[-1])) * 1.02,
            tilts=tilts,
            saddle=saddle.epsilon,
        )

    def estimate(self, epsilon: float) -> float:
        """log delta(eps), not a bound."""
        value = self._sum(epsilon)[0]
        return self.log_moment - self.theta * epsilon + math.log(value) if value > 0 else -math.inf

    def _sum(self, epsilon: float) -> tuple[float, float]:
        """(G, slope term): the sum for h, and the same without the factor 1/(theta + iu)."""
        k = np.arange(len(self.terms))
        rotated = self.terms * np.exp(-1j * (self.step * (epsilon - self.centre)) * k)
        value = self.step / math.pi * float(rotated.real.sum())
        slope = self.theta * value - self.step**2 / math.pi * float(np.dot(k, rotated.imag))
        return value, slope

    def log_delta(self, epsilon: float) -> LogBounds:
        """(lower, upper, slope): certified bounds of log delta(eps), and an estimate of -d log delta / d eps."""
        value, slope = self._sum(epsilon)
        if not math.isfinite(value):  # outside double range: nothing is known
            return LogBounds(-math.inf, 0.0, math.nan)
        error = self.tail + self.noise + self.phase_noise * (abs(epsilon) + abs(self.centre))
        upper = value + error
        lower = value - error - self.aliasing.bound(epsilon)
        base = self.log_moment - self.theta * epsilon
        base_error = self.log_moment_error + 4 * EPS * (abs(self.log_moment) + abs(self.theta * epsilon))
        high = base + math.log(upper) + base_error + 4 * EPS * abs(math.log(upper)) if upper > 0 else -math.inf
        low = base + math.log(lower) - base_error - 4 * EPS * abs(math.log(lower)) if lower > 0 else -math.inf
        rate = slope / value if value > 0 and slope > 0 else self.theta
        return LogBounds(low, min(high, 0.0), rate)

    def log_delta_many(self, epsilon: Floats) -> tuple[Floats, Floats, Floats]:
        """:meth:`log_delta` at many eps at once: the same sums and the same error bounds."""
        lower, upper, slope = np.full((3, len(epsilon)), -np.inf)
        k = np.arange(len(self.terms))
        pair = np.stack((self.terms, k * self.terms), axis=1)
        rows = max(1, MOST_ELEMENTS // max(1, len(k)))
        for start in range(0, len(epsilon), rows):
            eps = epsilon[start : start + rows]
            sums = np.exp(-1j * np.multiply.outer(self.step * (eps - self.centre), k)) @ pair
            value = self.step / math.pi * sums[:, 0].real
            fall = self.theta * value - self.step**2 / math.pi * sums[:, 1].imag
            error = self.tail + self.noise + self.phase_noise * (np.abs(eps) + abs(self.centre))
            most, least = value + error, value - error - self.aliasing.bound_many(eps)
            base = self.log_moment - self.theta * eps
            blur = self.log_moment_error + 4 * EPS * (abs(self.log_moment) + np.abs(self.theta * eps))
            trust = (FUNCTION_ULPS + 1) * EPS  # of the logarithm and the sum
            log_most, log_least = (np.log(np.where(x > 0, x, 1.0)) for x in (most, least))
            part = slice(start, start + rows)
            upper[part] = np.where(most > 0, base + log_most + blur + trust * np.abs(log_most), -np.inf)
            lower[part] = np.where(least > 0, base + log_least - blur - trust * np.abs(log_least), -np.inf)
            slope[part] = np.where((value > 0) & (fall > 0), fall / np.where(value > 0, value, 1.0), self.theta)
            unknown = ~np.isfinite(value)
            lower[part] = np.where(unknown, -np.inf, lower[part])
            upper[part] = np.where(unknown, 0.0, np.minimum(upper[part], 0.0))
        return lower, upper, slope


def invert(
    parts: Losses, saddle: Saddle, tilts: MomentTable, decaying: Losses, tuning: ContourTuning, most_work: int
) -> Inversion | None:
    """The contour through this saddle. ``decaying``: the parts whose decay is looked at.

    None where the error bounds cannot be met, or with more terms times nodes than ``most_work``.
    """
    grid = Grid.of([(saddle, tilts)], decaying, tuning)
    if grid is None:
        return None
    log_tolerance = grid.log_tolerance(tuning, sum(count for _, count in parts))
    nodes = Nodes.of(parts, saddle.theta, grid, log_tolerance, most_work)
    return None if nodes is None else Inversion.of(nodes, grid, saddle, tilts)


# -- the two questions ---------------------------------------------------------------------------------------------


def for_delta(
    composition: Composition, log_delta: float, tuning: ContourTuning = STANDARD.contour, most_work: int | None = None
) -> Inversion | CompiledContour | None:
    """The contour whose saddle is where delta(eps) is about exp(log_delta)."""
    return _located(composition, log_delta, False, tuning, most_work)


def for_epsilon(
    composition: Composition, epsilon: float, tuning: ContourTuning = STANDARD.contour, most_work: int | None = None
) -> Inversion | CompiledContour | None:
    """The contour through the saddle of this eps."""
    return _located(composition, epsilon, True, tuning, most_work)


def _located(
    composition: Composition, value: float, is_epsilon: bool, tuning: ContourTuning, most_work: int | None
) -> Inversion | CompiledContour | None:
    parts = composition.parts
    if not invertible(parts):
        return None
    most_work = tuning.most_work if most_work is None else most_work
    known = ready(parts)
    if known is not None:
        return known.contour(value, is_epsilon, tuning, most_work)
    found = tilted(parts, at_epsilon(value) if is_epsilon else at_delta(value), tuning)
    if found is None:
        return None
    tilts, row, decaying = found
    saddle = Saddle.of(row, asked=value if is_epsilon else None)
    return invert(parts, saddle, tilts, decaying, tuning, most_work)


def at_row(
    composition: Composition, tilts: MomentTable, row: int, epsilon: float, tuning: ContourTuning
) -> Inversion | None:
    """The contour through one tilt of a table, for this eps: any tilt is sound."""
    parts = composition.parts
    if not invertible(parts):
        return None
    saddle = Saddle.of(rows_of(tilts, slice(row, row + 1)), asked=epsilon)
    return invert(parts, saddle, tilts, parts, tuning, tuning.most_work)


def invertible(parts: Sequence[tuple[Law, int]]) -> bool:
    """Whether every law has a characteristic function, and at least one that decays: not point masses only."""
    return all(type(law).has_characteristic for law, _ in parts) and any(
        type(law).log_decay is not Law.log_decay for law, _ in parts
    )


def tilted(parts: Losses, locate: Locate, tuning: ContourTuning) -> tuple[MomentTable, MomentTable, Losses] | None:
    """K at many tilts and densely about the one looked for, the row there, and the parts that make phi decay."""
    table = tabulate(parts, lambda rows: 3 * locate(rows) < rows.theta[-1], tuning)
    if len(table.theta) < 2:
        return None
    theta = locate(table) * np.asarray(tuning.around)
    tables = [law.moment_table(theta) for law, _ in parts]
    fine = added(parts, theta, tables)
    if not np.isfinite(fine.moment).all():
        return None
    row = row_at(parts, fine, locate(fine), tuning)
    return merged(table, fine), row, leading(parts, tables, len(theta) // 2, tuning)
