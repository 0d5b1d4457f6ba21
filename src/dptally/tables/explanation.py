"""What a query does and why its price is right, in words, with the SQL."""

from __future__ import annotations

from collections.abc import Sequence

from dptally.law.adjacency import ADD_REMOVE
from dptally.tables.compiled import Compiled
from dptally.tables.core import Frame
from dptally.tables.table import Table

__all__ = ["explanation", "unit_said"]


def explanation(table: Table, dataset: str, filters: Sequence[str], compiled: Compiled) -> str:
    """One page of text."""
    setting = compiled.frame.setting
    lines = [f"source: {table.source.label} ({table.source.engine.name})", f"account: {dataset}"]
    lines += _unit(table, compiled)
    if filters:
        lines.append("filter (one row at a time, before the bound): " + " and ".join(f"({text})" for text in filters))
    lines += [f"joined before the bound: {said}" for said in table.joined]
    lines.append("")
    for aggregate, measures in zip(compiled.asked.aggregates, compiled.measures, strict=True):
        lines.append(f"{aggregate.label}: {aggregate.said()}")
        for measure in measures:
            moved = " and ".join(f"{move.count} x {move.shift}" for move in measure.moved)
            noise = f"{'discrete Gaussian, sigma' if measure.noise.gaussian else 'discrete Laplace, scale'}"
            lines.append(
                f"  {measure.measure.name}: moves {moved} steps of {float(measure.unit):g}; "
                f"{noise} {float(measure.noise.parameter):.6g}"
            )
    if compiled.asked.rule is not None:
        lines.append(_rule(compiled))
    lines += ["", f"account: {compiled.plan!r}", "", *_theorems(compiled)]
    lines += ["", f"SQL ({setting.dialect.name}):", *compiled.sql]
    return "\n".join(lines)


def unit_said(frame: Frame) -> str:
    """The unit of privacy in words."""
    verb = "added or removed" if frame.setting.adjacency is ADD_REMOVE else "replaced by another"
    return f"one row, {verb}" if frame.person is None else f"one person (all rows with one {frame.person.name}), {verb}"


def _unit(table: Table, compiled: Compiled) -> list[str]:
    setting = compiled.frame.setting
    lines = [f"unit of privacy: {unit_said(compiled.frame)}"]
    if table.person is None:
        return lines
    rows = (
        "her rows count as one, by their mean or total"
        if table.max_rows is None
        else f"up to {table.max_rows} rows in each"
    )
    lines.append(f"a person counts in at most {setting.k} groups; {rows}")
    lines.append(
        f"an id that many people share (an 'unknown' id, merged records) is one person: bounded like one, and most "
        f"of its rows do not count; rows without a {table.person} do not count at all"
    )
    return lines


def _rule(compiled: Compiled) -> str:
    rule = compiled.asked.rule
    assert rule is not None
    if rule.threshold is None:
        return f"groups: those that the optimal rule keeps, epsilon {rule.epsilon:g} and delta {rule.delta:g} for each"
    return f"groups: those whose noisy count is at least {rule.threshold}; a group of one person appears with delta0"


def _theorems(compiled: Compiled) -> list[str]:
    lines = [
        "why: what a person adds is a function of her rows alone, bounded as the last step before the sum, in whole "
        "numbers; so only her groups move, by at most the bounds (docs/tables.md, bound last)",
        "why: noise of different cells is independent and log-concave; the account is the composition of the full "
        "shifts, one for each cell that can move",
    ]
    if compiled.asked.rule is not None:
        lines.append(
            "why: a group that one person alone has appears with probability delta0 at most, and is absent without her "
            "(Korolova et al. 2009; Desfontaines et al. 2022 for the optimal rule)"
        )
    return lines
