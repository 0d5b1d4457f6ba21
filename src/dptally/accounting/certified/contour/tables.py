"""K of a whole composition at increasing tilts, with the errors of all laws added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dptally.accounting.certified.tuning import ContourTuning
from dptally.law import Law
from dptally.law.characteristic import MomentTable, Transformable
from dptally.law.law import Floats
from dptally.numerics.rounding import EPS

__all__ = ["Losses", "added", "leading", "merged", "rows_of", "scaled", "tabulate", "tabulate_at"]

Losses = Sequence[tuple[Transformable, int]]


def tabulate_at(parts: Losses, theta: Floats) -> MomentTable:
    """K of the whole composition at these tilts."""
    return added(parts, theta, [law.moment_table(theta) for law, _ in parts])


def added(parts: Losses, theta: Floats, tables: list[MomentTable]) -> MomentTable:
    """The same of tables that are there already."""
    moment, error, first, second = np.zeros((4, len(theta)))
    for (_, count), table in zip(parts, tables, strict=True):
        moment += count * table.moment
        error += count * (table.error + 2 * EPS * np.abs(table.moment))
        first += count * table.first
        second += count * table.second
    return MomentTable(theta, moment, error + EPS * len(parts) * np.abs(moment), first, second)


def tabulate(parts: Losses, passed: Callable[[MomentTable], bool], tuning: ContourTuning) -> MomentTable:
    """K at increasing tilts, until ``passed`` says that the table reaches far enough or K becomes infinite."""
    columns = np.zeros((5, 0))
    for first, last in pairwise(tuning.blocks):
        theta = _tilts(first, last)
        tables = [_kept(law, first, last) if isinstance(law, Law) else law.moment_table(theta) for law, _ in parts]
        block = added(parts, theta, tables)
        rows = np.array([block.theta, block.moment, block.error, block.first, block.second])
        keep = np.isfinite(rows).all(axis=0)
        columns = np.concatenate((columns, rows[:, keep]), axis=1)
        if not keep.all() or passed(MomentTable(*columns)):
            break
    return MomentTable(*columns)


@lru_cache(maxsize=64)
def _tilts(first: int, last: int) -> Floats:
    """2^(k/2), first <= k < last."""
    return np.asarray(2.0 ** (np.arange(first, last) / 2.0))


@lru_cache(maxsize=512)
def _kept(law: Law, first: int, last: int) -> MomentTable:
    """K of one law at one block of tilts: the same for every count and every question."""
    return law.moment_table(_tilts(first, last))


def merged(*tables: MomentTable) -> MomentTable:
    """One table with the rows of all, in order of theta."""
    columns = [
        np.concatenate(rows)
        for rows in zip(*((t.theta, t.moment, t.error, t.first, t.second) for t in tables), strict=True)
    ]
    order = np.argsort(columns[0], kind="stable")
    return MomentTable(*(column[order] for column in columns))


def rows_of(table: MomentTable, which: slice) -> MomentTable:
    """Some rows of a table."""
    return MomentTable(*(x[which] for x in (table.theta, table.moment, table.error, table.first, table.second)))


def scaled(table: MomentTable, factor: float) -> MomentTable:
    """K of ``factor`` times as many steps, the rounding of the factor included in the error."""
    error = (table.error + 4 * EPS * np.abs(table.moment)) * factor
    return MomentTable(table.theta, factor * table.moment, error, factor * table.first, factor * table.second)


def leading(parts: Losses, tables: list[MomentTable], row: int, tuning: ContourTuning) -> Losses:
    """Of many parts those that carry most of the variance: they make phi decay, and for the others |phi| <= 1."""
    if len(parts) < tuning.few_parts:
        return parts
    sizes = np.array([count * float(table.second[row]) for (_, count), table in zip(parts, tables, strict=True)])
    order = np.argsort(-sizes)
    enough = int(np.searchsorted(np.cumsum(sizes[order]), tuning.leading * float(sizes.sum())))
    return [parts[i] for i in order[: enough + 1]]
