r"""Period, cut-off and nodes: phi of a composition on the grid of one contour, with its error.

The trapezoid sum is cut at a U beyond which \|phi\| <= B, at the price of B / (pi U); phi itself is a product of powers
of the laws' characteristic functions, each within a stated error. docs/certificates.md, sections 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dptally.accounting.certified.contour.aliasing import alias_period
from dptally.accounting.certified.contour.saddle import Saddle
from dptally.accounting.certified.contour.tables import Losses
from dptally.accounting.certified.tuning import ContourTuning
from dptally.law.characteristic import Characteristic, MomentTable
from dptally.law.law import Floats
from dptally.numerics.complexes import log1p_complex
from dptally.numerics.rounding import EPS

__all__ = ["MOST_ELEMENTS", "Grid", "Nodes", "cut_off"]

MOST_ELEMENTS = 1 << 19  # of matrices that are filled block by block: 8 MB
Parts = list[tuple[Characteristic, int]]


@dataclass(frozen=True, slots=True)
class Grid:
    """Where a trapezoid sum is taken: its step, the number of its terms, and log B beyond the last one."""

    step: float
    number: int
    log_bound: float

    @classmethod
    def of(cls, saddles: Sequence[tuple[Saddle, MomentTable]], decaying: Losses, tuning: ContourTuning) -> Grid | None:
        """Fine and long enough for all these saddles of one tilt, each with its table of K; the first one has the
        least variance. ``decaying``: the parts whose decay is looked at. None where it would not be worth its terms.
        """
        theta = saddles[0][0].theta
        period = max(
            alias_period(tilts, theta, saddle.moment, saddle.asked, saddle.log_size, tuning.relative)
            for saddle, tilts in saddles
        )
        if not math.isfinite(period):
            return None
        log_cut = math.log(tuning.relative) + min(saddle.log_size for saddle, _ in saddles)
        guess = math.sqrt(2 * max(1.0, -log_cut) / max(saddles[0][0].variance, 1e-300))
        step = 2 * math.pi / period
        cut, log_bound = cut_off(decaying, theta, guess, log_cut, tuning, step * tuning.most_terms)
        number = math.ceil(cut / step) + 1
        if number > tuning.most_terms or log_bound - math.log(cut) > log_cut + tuning.hopeless:
            return None
        return cls(step, number, log_bound)

    def log_tolerance(self, tuning: ContourTuning, steps: int) -> float:
        """What the nodes of one law may cost, so that those of all steps cost no more than one truncation."""
        return math.log(tuning.node_tolerance) - math.log(steps)


def cut_off(
    parts: Losses, theta: float, guess: float, log_tolerance: float, tuning: ContourTuning, most: float = math.inf
) -> tuple[float, float]:
    """(U, log B) with |phi| <= B for every u >= U: the first U that was tried with B / U below the tolerance.

    Nothing is looked for beyond ``most``: the first U that was fair is taken then, if there was one, or one above it.
    """
    closer = np.maximum(tuning.closer, 1.0)  # ever further out
    u, last, best, modest = guess * np.asarray(tuning.starts), math.inf, None, None
    while True:
        total = np.zeros_like(u)
        for law, count in parts:
            total += count * law.log_decay(theta, u)
        excess = total - np.log(u) - log_tolerance
        good, fair = np.nonzero(excess <= 0)[0], np.nonzero(excess <= tuning.fair)[0]
        if modest is None and fair.size:
            modest = float(u[fair[0]]), float(total[fair[0]])
        if good.size:
            best = float(u[good[0]]), float(total[good[0]])
        if best is not None:
            if not (good.size and good[0] == 0 and u[0] > 1.5 * last):
                return best
            u, last = np.geomspace(last, u[0], 8)[1:-1], math.inf  # the step was a long one: look in between
            continue
        last, found = float(u[-1]), float(total[-1])
        if last > min(most, tuning.furthest * guess):  # point masses: phi does not decay any further
            return (last, found) if modest is None else modest
        # log B falls like u^2 at first, later more slowly: so far it is at least to the goal
        missing = (log_tolerance + math.log(last)) / found if found < 0 else math.inf
        u = last * min(max(math.sqrt(max(missing, 0.0)), 1.1), 5.0) * closer


@dataclass(frozen=True, slots=True)
class Nodes:
    """log phi of all parts together on the grid: real and imaginary part, and the growth of the error."""

    parts: Parts
    real: Floats
    imag: Floats
    growth: Floats

    @classmethod
    def of(cls, parts: Losses, theta: float, grid: Grid, log_tolerance: float, most_work: int) -> Nodes | None:
        """None where a law has no characteristic function, or where this takes more work than that."""
        built: Parts = []
        for law, count in parts:
            char = law.characteristic(theta, grid.step * grid.number, log_tolerance)
            if char is None:
                return None
            built.append((char, count))
        if grid.number * sum(char.size for char, _ in built) > most_work:
            return None
        return cls._filled(built, grid)

    @classmethod
    def _filled(cls, parts: Parts, grid: Grid) -> Nodes:
        # |prod (a_j + e_j) - prod a_j| <= prod(|a_j| + e_j) - prod |a_j|; the logarithm itself errs by 12 ulps
        # of |log| + |phi - 1| (log1p_complex), its multiple, the sum over the parts and the multiple of that by one
        # ulp of |log| for each
        ulps = (17 + len(parts)) * EPS
        total = cls(parts, *np.zeros((3, grid.number)))
        rows = max(1, MOST_ELEMENTS // grid.number)
        for first in range(0, len(parts), rows):
            group = parts[first : first + rows]
            shape = len(group), grid.number
            minus_one, error = np.empty(shape, np.complex128), np.empty(shape)
            for row, (char, _) in enumerate(group):
                minus_one[row], error[row] = char.on_grid(grid.step, grid.number)
            counts = np.array([float(count) for _, count in group])
            log_phi = log1p_complex(minus_one)
            # where phi vanishes the logarithm is cut; the difference joins the error
            real = np.maximum(log_phi.real, -300.0)
            growth = np.log1p((error + 1e-130) * np.exp(-real))
            growth += ulps * (np.abs(real) + np.abs(log_phi.imag) + np.abs(minus_one))
            for sums, values in ((total.real, real), (total.imag, log_phi.imag), (total.growth, growth)):
                np.add(sums, counts @ values, out=sums)
        return total
