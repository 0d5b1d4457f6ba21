"""Histograms and quantiles: counts of persons (or rows) in public bins, flat or as a tree.

A histogram is a count for each pair of group and bin. A person counts once in a group, in the bin of the mean of
her rows; with max_rows her rows count one by one, in at most max_groups pairs and max_rows times in each.

A tree counts the same on every level, from single bins to the whole range, each level with noise of its own:
h levels cost h histograms. Least squares make the levels agree (post-processing), and any quantile is read off.
Its error bar is a set that is inverted: a bin is left out if the noisy number of values below its lower edge is
too large for the quantile to lie there, or the one below its upper edge too small; each happens to the true bin
with probability at most 2.5 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidType
from dptally.noise import parameters
from dptally.tables import accuracy
from dptally.tables.aggregates import Aggregate, Cell, Estimate, _value, _within
from dptally.tables.measures import Measure, Noisy, Setting
from dptally.tables.steps import Steps

__all__ = ["BRANCHES", "Bins", "Histogram", "Quantile", "edges_of", "levels_of"]

BRANCHES = 4
_MOST = 1024
_Z_LAPLACE = math.log(20) / math.sqrt(2)  # the 97.5 % point of one Laplace draw in standard deviations


def edges_of(argument: str, bins: object) -> tuple[Fraction, ...]:
    """The edges of the bins: two or more increasing numbers."""
    if bins is None:
        raise InvalidArgument(argument, "given: the public edges of the bins", bins, "write bins=range(0, 101, 10)")
    try:
        found = tuple(parameters.rational(argument, edge) for edge in bins)  # type: ignore[attr-defined]
    except TypeError as error:
        if isinstance(error, InvalidType):
            raise
        raise InvalidType(argument, "a sequence of increasing numbers", bins) from None
    if not (2 <= len(found) <= _MOST + 1 and all(a < b for a, b in pairwise(found))):
        raise InvalidArgument(argument, f"2 to {_MOST + 1} increasing numbers", bins)
    return found


@dataclass(frozen=True, slots=True)
class Bins(Aggregate):
    """What histograms and quantiles share: a column, edges, and the step of every edge."""

    column: str = ""
    edges: tuple[Fraction, ...] = ()
    shape: ClassVar[str] = "bins"
    clamps: ClassVar[bool] = False  # whether values beyond the edges count in the outer bins

    @property
    def expression(self) -> str:
        return self.column

    @property
    def steps(self) -> Steps:
        return Steps.of(self.edges[0], self.edges[-1], by_width=True)

    @property
    def cuts(self) -> tuple[int, ...]:
        """The inner edges in steps above the lowest, which must stay apart."""
        steps = self.steps
        cuts = tuple(steps.at(edge) - steps.low for edge in self.edges[1:-1])
        if any(a >= b for a, b in zip((0, *cuts), cuts, strict=False)):
            raise InvalidArgument("bins", "wider than a four-millionth of the range", [float(e) for e in self.edges])
        return cuts

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of cells on each level, the bins first."""
        return (len(self.edges) - 1,)

    def measures(self, setting: Setting, index: int, /) -> tuple[Measure, ...]:
        pairs = setting.person and setting.max_rows is not None
        values = ((f"v{index}", _value(self.column, setting)),)
        return (Measure(f"{self.label}", 0, setting.rows, values=values, levels=self.levels, pairs=pairs),)


def bin_sql(cuts: Sequence[int], step: str, first: int = 0) -> str:
    """The number of the bin of a step: a balanced tree of comparisons."""
    if not cuts:
        return str(first)
    half = len(cuts) // 2
    below, above = bin_sql(cuts[:half], step, first), bin_sql(cuts[half + 1 :], step, first + half + 1)
    return f"CASE WHEN {step} < {cuts[half]} THEN {below} ELSE {above} END"


@dataclass(frozen=True, slots=True)
class Histogram(Bins):
    """A noisy count for every bin [edge, next edge); the last bin holds its upper edge. Others do not count."""

    @property
    def columns(self) -> tuple[str, ...]:
        edges = [f"{float(edge):g}" for edge in self.edges]
        return tuple(f"{self.label}_{a}_{b}" for a, b in pairwise(edges))

    def size_within(self, _setting: Setting, gaussian: bool, /) -> float:
        return accuracy.widest(gaussian, _within(self.ask))

    def estimates(self, cell: Cell) -> list[Estimate]:
        measure = cell.measures[0]
        wide = accuracy.width(measure.noise.gaussian, measure.parameter)
        return [(int(value), int(value) - wide, int(value) + wide) for value in cell.values[0]]

    def half_width(self, measures: Sequence[Noisy], groups: int, /) -> float | None:
        return super(Histogram, self).half_width(measures, 1 if groups == 1 else groups * self.levels[0])

    def said(self) -> str:
        return f"the number in each of {self.levels[0]} bins of {self.column}"


@lru_cache(maxsize=64)
def levels_of(leaves: int) -> tuple[int, ...]:
    """The cells on each level of a tree over so many leaves, the leaves first and the root last.

    >>> levels_of(10)
    (10, 3, 1)
    """
    levels = [leaves]
    while levels[-1] > 1:
        levels.append(-(-levels[-1] // BRANCHES))
    return tuple(levels)


@lru_cache(maxsize=16)
def _tree(leaves: int) -> tuple[Floats, Floats]:
    """The incidence matrix of nodes and leaves, and the covariance of the least squares for unit noise."""
    rows = []
    for level, cells in enumerate(levels_of(leaves)):
        span = BRANCHES**level
        for node in range(cells):
            row = np.zeros(leaves)
            row[node * span : (node + 1) * span] = 1.0
            rows.append(row)
    incidence = np.array(rows)
    return incidence, np.asarray(np.linalg.inv(incidence.T @ incidence), dtype=np.float64)


def _below(leaves: int, share: float) -> Floats:
    """Row i: the number below edge i minus ``share`` of all, as weights of the leaves."""
    return np.tril(np.ones((leaves + 1, leaves)), -1) - share


@lru_cache(maxsize=64)
def _spread(leaves: int, share: float) -> Floats:
    """The standard deviation, for unit noise, of the number below each edge minus its share of all."""
    weights, covariance = _below(leaves, share), _tree(leaves)[1]
    return np.asarray(np.sqrt(np.maximum(((weights @ covariance) * weights).sum(axis=1), 0.0)))


@dataclass(frozen=True, slots=True)
class Quantile(Bins):
    """Quantiles of a column, read off a noisy tree of counts; values beyond the edges count in the outer bins."""

    shares: tuple[float, ...] = (0.5,)
    clamps: ClassVar[bool] = True

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{self.label}_q{float(f'{100 * share:.10g}'):g}" for share in self.shares)

    @property
    def levels(self) -> tuple[int, ...]:
        return levels_of(len(self.edges) - 1)

    def rank_width(self, measure: Noisy) -> float:
        """How far the number below an edge may be off from its share, at 95 %."""
        worst = max(float(_spread(len(self.edges) - 1, share).max()) for share in self.shares)
        return measure.parameter * worst * _deviations(measure.noise.gaussian)

    def size_within(self, _setting: Setting, gaussian: bool, /) -> float:
        """``within`` is a number of persons (or rows): how far the rank of the answer may be off."""
        worst = max(float(_spread(len(self.edges) - 1, share).max()) for share in self.shares)
        return float(_within(self.ask)) / (worst * _deviations(gaussian))

    def estimates(self, cell: Cell) -> list[Estimate]:
        measure = cell.measures[0]
        leaves = len(self.edges) - 1
        incidence, covariance = _tree(leaves)
        counts = covariance @ (incidence.T @ np.array([float(v) for v in cell.values[0]]))
        edges = np.array([float(edge) for edge in self.edges])
        size = measure.parameter * _deviations(measure.noise.gaussian)
        return [self._read(counts, edges, share, size) for share in self.shares]

    def _read(self, counts: Floats, edges: Floats, share: float, size: float) -> Estimate:
        excess = _below(len(counts), share) @ counts
        wide = size * _spread(len(counts), share)
        may = ~((excess[:-1] > wide[:-1]) | (excess[1:] < -wide[1:]))
        smooth = np.maximum.accumulate(excess)
        value = float(np.interp(0.0, smooth, edges)) if smooth[0] < 0 < smooth[-1] else float(edges[len(counts) // 2])
        if not may.any() or not counts.sum() > 0:
            return value, float(edges[0]), float(edges[-1])
        bins = np.flatnonzero(may)
        low, high = float(edges[bins[0]]), float(edges[bins[-1] + 1])
        return min(max(value, low), high), low, high

    def half_width(self, _measures: Sequence[Noisy], _groups: int, /) -> float | None:
        return None

    def said(self) -> str:
        return f"quantiles of {self.column}, from a tree of {len(self.levels)} levels over {self.levels[0]} bins"


def _deviations(gaussian: bool) -> float:
    """How many parameters wide 95 % are: for sums of Laplace draws that of a single one, which is the widest."""
    return 1.959963984540054 if gaussian else _Z_LAPLACE * math.sqrt(2)
