"""Many numbers of steps at once: neighbouring counts share tilt, period, cut-off and the values of phi.

Only the power of phi differs from count to count. A single question of one law is answered in the same way: its count
belongs to a fixed block of neighbours, whose contour is kept for a while, so that a loop that asks after every step and
a search for a number of steps make one contour for many counts. Blocks do not depend on what was asked before, so no
answer does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dptally.accounting.certified.bounds import Ends
from dptally.accounting.certified.contour.aliasing import alias_period, alias_periods
from dptally.accounting.certified.contour.chernoff import epsilon_bounds
from dptally.accounting.certified.contour.compiled import CompiledBlock, CompiledContour, ready
from dptally.accounting.certified.contour.inversion import Inversion, invertible, tilted
from dptally.accounting.certified.contour.nodes import Grid, Nodes
from dptally.accounting.certified.contour.saddle import Saddle, at_delta
from dptally.accounting.certified.contour.tables import rows_of, scaled
from dptally.accounting.certified.solve import epsilon_ends
from dptally.accounting.certified.tuning import STANDARD, ContourTuning, Tuning
from dptally.law import Composition
from dptally.law.characteristic import MomentTable

__all__ = ["curve", "for_delta"]


@dataclass(frozen=True, slots=True)
class _Block:
    """The contour of counts next to ``middle``, before phi is raised to one of them."""

    middle: int
    nodes: Nodes
    grid: Grid
    row: MomentTable
    tilts: MomentTable

    def contour(self, count: int) -> Inversion:
        times = count / self.middle
        return Inversion.of(self.nodes, self.grid, Saddle.of(self.row, times), scaled(self.tilts, times), count)


def curve(
    composition: Composition, counts: Sequence[int], log_target: tuple[float, float], tuning: Tuning = STANDARD
) -> dict[int, Ends]:
    """Certified bounds of eps for each number of repetitions, at a delta whose log lies in ``log_target``.

    Counts that the contours cannot answer are left out.
    """
    found: dict[int, Ends] = {}
    if not composition.parts or not all(type(law).has_characteristic for law, _ in composition.parts):
        return found
    ordered = sorted({count for count in counts if count > 0})
    while ordered:
        counts = [count for count in ordered if count <= tuning.contour.curve_ratio * ordered[0]] or ordered[:1]
        ordered = ordered[len(counts) :]
        middle = counts[len(counts) // 2]
        block = _block(
            composition, (counts[0], middle, counts[-1]), log_target[0], tuning.contour, tuning.contour.most_work
        )
        if block is not None:
            found |= {count: epsilon_ends(block.contour(count), log_target, tuning.search) for count in counts}
    return found


def for_delta(
    composition: Composition, log_delta: float, tuning: ContourTuning = STANDARD.contour, most_work: int | None = None
) -> Inversion | CompiledContour | None:
    """The contour of a plan of one law near the eps where delta(eps) is about exp(log_delta), by way of its block."""
    ((law, count),) = composition.parts
    if not invertible(composition.parts):
        return None
    most_work = tuning.most_work if most_work is None else most_work
    block = _kept(Composition(((law, 1),)), _neighbours(count, tuning.block_ratio), log_delta, tuning, most_work)
    return None if block is None else block.contour(count)


def _neighbours(count: int, ratio: float) -> tuple[int, int, int]:
    """(first, middle, last) of the block that the count belongs to: those between two powers of the ratio."""
    if not ratio > 1:
        return count, count, count
    power = math.floor(math.log(count) / math.log(ratio))
    # rounding may put a count next to an edge into the wrong block: the block then reaches as far as to it
    first, last = min(count, math.ceil(ratio**power)), max(count, math.ceil(ratio ** (power + 1)) - 1)
    return first, (first + last) // 2, last


def _block(
    composition: Composition, counts: tuple[int, int, int], log_delta: float, tuning: ContourTuning, most_work: int
) -> _Block | CompiledBlock | None:
    """The recipe of a single contour for the first count, the last and all between: only the power of phi differs."""
    first, middle, last = counts
    known = ready(composition.parts, last)
    if known is not None:
        return known.block(counts, log_delta, tuning, most_work)
    found = tilted([(law, middle * n) for law, n in composition.parts], at_delta(log_delta), tuning)
    if found is None:
        return None
    tilts, row, _ = found
    row = _shorter(tilts, row, log_delta, tuning)
    ends = [(Saddle.of(row, c / middle), scaled(tilts, c / middle)) for c in dict.fromkeys((first, last))]
    # what decays for the fewest steps decays for all
    grid = Grid.of(ends, [(law, first * n) for law, n in composition.parts], tuning)
    if grid is None:
        return None
    log_tolerance = grid.log_tolerance(tuning, last * composition.steps)
    nodes = Nodes.of(composition.parts, ends[0][0].theta, grid, log_tolerance, most_work)
    return None if nodes is None else _Block(middle, nodes, grid, row, tilts)


def _shorter(tilts: MomentTable, row: MomentTable, log_delta: float, tuning: ContourTuning) -> MomentTable:
    """The row itself, or where K explodes just beyond its tilt, so that the period is very long, one at a smaller tilt.

    With eps about Chernoff's bound the integral at tilt t is about delta e^{t eps - K(t)}. Any tilt is sound.
    """
    saddle = Saddle.of(row)
    period = alias_period(tilts, saddle.theta, saddle.moment, saddle.asked, saddle.log_size, tuning.relative)
    if not period > tuning.long_period * math.sqrt(max(saddle.variance, 0.0)):
        return row
    epsilon = float(np.min(epsilon_bounds(tilts, log_delta)))
    log_size = log_delta + tilts.theta * epsilon - tilts.moment
    good = (tilts.theta < saddle.theta) & (log_size > -tuning.most_lost) & (tilts.second > 0)
    if not good.any():
        return row
    cost = alias_periods(tilts, epsilon, log_size, tuning.relative)[good] / np.sqrt(tilts.second[good])
    i = int(np.nonzero(good)[0][np.argmin(cost)])
    return rows_of(tilts, slice(i, i + 1))


_kept = lru_cache(maxsize=8)(_block)
