"""The core query: the one text of SQL that touches data, written here and golden-tested for every engine.

It uses comparisons, CASE, FLOOR, SUM, COUNT, ROW_NUMBER and a hash, and returns one row of integers for each
group that has data. The order is always the same: what works on one person at a time (filter, values, joins),
then her totals per group, then the choice of at most k groups, then the clamp, then the sum over persons. The
bound is the last step before the sum, put there by this compiler.

Which k groups of a person count is decided by the rank of (hash(person, group), group) after her rows have been
grouped: a function of her rows alone, without ties. An order of rows, LIMIT, FIRST or a random draw would not
be one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from dptally.tables.aggregates import Distinct, scaled
from dptally.tables.bins import BRANCHES, Bins, bin_sql
from dptally.tables.dialect import Dialect
from dptally.tables.keys import Key
from dptally.tables.kinds import Column, Kind
from dptally.tables.measures import Measure, Setting

__all__ = ["Frame", "bins_sql", "distinct_sql", "totals_sql"]

_T = "dptally_t"


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the rows come from, whose they are, which count, and how they are grouped."""

    relation: str
    person: Column | None
    filters: tuple[str, ...]
    columns: tuple[Column, ...]
    keys: tuple[Key, ...] | None  # None: private
    stable: bool
    setting: Setting

    @property
    def dialect(self) -> Dialect:
        return self.setting.dialect

    @property
    def key_names(self) -> list[str]:
        """The names of the group in the middle of the query: a code for public keys, the values for private."""
        if not self.columns:
            return []
        return ["c"] if self.keys is not None else [f"k{i}" for i in range(len(self.columns))]

    @property
    def chooses(self) -> bool:
        """Whether some person may have more groups than count."""
        return self.setting.person and (self.setting.groups is None or self.setting.max_groups < self.setting.groups)

    def person_sql(self) -> str:
        assert self.person is not None
        return self.dialect.identity(self.person)


def _key_columns(frame: Frame) -> list[str]:
    return [frame.dialect.column(column) for column in frame.columns]


def _named(frame: Frame, column: Column) -> str:
    """Rows whose group has a name here; a date that Python cannot hold (infinity, the year 20000) has none."""
    sql = frame.dialect.column(column)
    if column.kind is not Kind.DATE:
        return f"{sql} IS NOT NULL"
    return f"{sql} >= {frame.dialect.literal(date.min)} AND {sql} <= {frame.dialect.literal(date.max)}"


def _listed(frame: Frame, *, narrow: bool = True) -> str:
    """The public keys as a table of constants: code and values. ``narrow`` codes are faster to group by."""
    assert frame.keys is not None
    dialect, many = frame.dialect, len(frame.keys)
    rows = [
        [dialect.code(code, many) if narrow else str(code), *map(dialect.literal, key)]
        for code, key in enumerate(frame.keys)
    ]
    return dialect.values("dptally_k", ["c", *(f"k{i}" for i in range(len(frame.columns)))], rows)


def _rows_sql(frame: Frame, values: Sequence[tuple[str, str]], *, named: bool = True) -> str:
    """The rows that count: person, group, values; ``named`` leaves out those whose private group has no name."""
    chosen = [f"{frame.person_sql()} AS p"] if frame.person is not None else []
    source, where = f"{frame.relation} AS {_T}", list(frame.filters)
    if frame.person is not None:
        where.insert(0, f"{_T}.{frame.dialect.name_of(frame.person.name)} IS NOT NULL")
    if frame.columns and frame.keys is not None:
        on = " AND ".join(f"{sql} = dptally_k.k{i}" for i, sql in enumerate(_key_columns(frame)))
        source += f" JOIN {_listed(frame)} ON {on}"
        chosen.append("dptally_k.c AS c")
    elif frame.columns:
        chosen += [f"{sql} AS k{i}" for i, sql in enumerate(_key_columns(frame))]
        where += [_named(frame, column) for column in frame.columns if named]
    chosen += [f"{sql} AS {name}" for name, sql in values]
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {', '.join(chosen) or '1 AS one'} FROM {source}{condition}"


def _chosen(frame: Frame, grouped: str, names: Sequence[str], by: Sequence[str], partition: str = "p") -> str:
    """At most ``max_groups`` of the pairs of a person and ``by``: those of the smallest (hash, value)."""
    order = ", ".join([frame.dialect.hashed(["p", *by], frame.stable), *by])
    ranked = f"ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {order}) AS place"
    return (
        f"SELECT {', '.join(names)} FROM (SELECT {', '.join(names)}, {ranked} FROM ({grouped}) AS g) AS ranked "
        f"WHERE place <= {frame.setting.max_groups}"
    )


def _integer(frame: Frame, sql: str) -> str:
    return "COUNT(*)" if sql == "1" else frame.dialect.cast(f"SUM({sql})", Kind.INTEGER)


def _unique(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(pairs))


def totals_sql(frame: Frame, measures: Sequence[Measure], *, integers: bool = False) -> str:
    """One row for each group with data: the group, then the measures in order.

    ``integers`` leaves doubles out of the sums over rows, for the groups whose sums doubles cannot hold.
    """
    values = _unique([value for measure in measures for value in measure.values])
    names = frame.key_names
    if frame.person is None:
        return _row_totals(frame, measures, values, integers)
    inputs = _unique([given for measure in measures for given in measure.inputs])
    sums = [f"{_integer(frame, sql)} AS {name}" for name, sql in inputs]
    if any(re.search(r"\bn\b", measure.person) for measure in measures):
        sums, inputs = ["COUNT(*) AS n", *sums], [("n", ""), *inputs]
    grouped = (
        f"SELECT {', '.join(['p', *names, *sums])} FROM ({_rows_sql(frame, values)}) AS r "
        f"GROUP BY {', '.join(['p', *names])}"
    )
    if frame.chooses:
        grouped = _chosen(frame, grouped, ["p", *names, *(name for name, _ in inputs)], names)
    added = [f"{_integer(frame, measure.person)} AS m{i}" for i, measure in enumerate(measures)]
    by = f" GROUP BY {', '.join(names)}" if names else ""
    return f"SELECT {', '.join([*names, *added])} FROM ({grouped}) AS b{by}"


def _row_totals(frame: Frame, measures: Sequence[Measure], values: Sequence[tuple[str, str]], integers: bool) -> str:
    """Rows are grouped by the key's own values first: a row is in one group, whatever the engine calls equal.

    Rows without a group are dropped by the join with the public keys, which is cheaper than a filter of all rows.
    """
    rows = [measure.row if integers else measure.row_real or measure.row for measure in measures]
    added = [f"{_integer(frame, row)} AS m{i}" for i, row in enumerate(rows)]
    outer = [f"m{i}" for i in range(len(measures))]
    if not frame.columns:
        return f"SELECT {', '.join(added)} FROM ({_rows_sql(frame, values)}) AS r"
    raw = Frame(frame.relation, None, frame.filters, frame.columns, None, frame.stable, frame.setting)
    names = raw.key_names
    rows_sql = _rows_sql(raw, values, named=frame.keys is None)
    grouped = f"SELECT {', '.join([*names, *added])} FROM ({rows_sql}) AS r GROUP BY {', '.join(names)}"
    if frame.keys is None:
        return grouped
    on = " AND ".join(f"g.{name} = dptally_k.{name}" for name in names)
    return (
        f"SELECT dptally_k.c AS c, {', '.join(outer)} FROM ({grouped}) AS g JOIN {_listed(frame, narrow=False)} ON {on}"
    )


def bins_sql(frame: Frame, aggregate: Bins, measure: Measure) -> str:
    """One row for each cell with data: the group's code, the level, the cell of that level, the count."""
    steps, dialect, names = aggregate.steps, frame.dialect, frame.key_names
    ((value, _),) = measure.values
    outside = "" if aggregate.clamps else "NULL"
    step = steps.sql(dialect, value, "NULL", offset=steps.low, outside=outside)
    chosen = ", ".join([*_person_name(frame), *names, f"{step} AS s"])
    rows = f"SELECT {chosen} FROM ({_rows_sql(frame, measure.values)}) AS r"
    if frame.person is not None and not measure.pairs:
        valid = "CASE WHEN s IS NULL THEN 0 ELSE 1 END"
        grouped = (
            f"SELECT {', '.join(['p', *names])}, {_integer(frame, 'CASE WHEN s IS NULL THEN 0 ELSE s END')} AS total, "
            f"{_integer(frame, valid)} AS n FROM ({rows}) AS s GROUP BY {', '.join(['p', *names])}"
        )
        if frame.chooses:
            grouped = _chosen(frame, grouped, ["p", *names, "total", "n"], names)
        mean = scaled(dialect, "total", "n", 1)
        rows = f"SELECT {', '.join([*names, f'{mean} AS s'])} FROM ({grouped}) AS g WHERE n > 0"
    kept = [*(_person_name(frame) if measure.pairs else []), *names, f"{bin_sql(aggregate.cuts, 's')} AS b"]
    binned = f"SELECT {', '.join(kept)} FROM ({rows}) AS v WHERE s IS NOT NULL"
    if measure.pairs:
        return _pairs(frame, binned, measure)
    by = ", ".join([*names, "b"])
    return f"SELECT {', '.join([*names, '0 AS level', 'b'])}, COUNT(*) AS m0 FROM ({binned}) AS w GROUP BY {by}"


def _person_name(frame: Frame) -> list[str]:
    return ["p"] if frame.person is not None else []


def _pairs(frame: Frame, binned: str, measure: Measure) -> str:
    """Rows one by one: on each level at most max_groups pairs of group and cell, each at most max_rows times."""
    names, dialect, most = frame.key_names, frame.dialect, measure.high
    spans = [[str(level), str(BRANCHES**level)] for level in range(len(measure.levels))]
    levels = dialect.values("dptally_l", ["level", "span"], spans)
    node = dialect.divide.format("w.b", "dptally_l.span")
    cells = (
        f"SELECT {', '.join(f'w.{name}' for name in ['p', *names])}, dptally_l.level AS level, {node} AS b "
        f"FROM ({binned}) AS w CROSS JOIN {levels}"
    )
    by = ", ".join(["p", *names, "level", "b"])
    grouped = f"SELECT {by}, COUNT(*) AS n FROM ({cells}) AS x GROUP BY {by}"
    chosen = _chosen(frame, grouped, [*names, "level", "b", "n"], [*names, "level", "b"], partition="p, level")
    kept = f"CASE WHEN n > {most} THEN {most} ELSE n END"
    by = ", ".join([*names, "level", "b"])
    return f"SELECT {by}, {_integer(frame, kept)} AS m0 FROM ({chosen}) AS b0 GROUP BY {by}"


def distinct_sql(frame: Frame, aggregate: Distinct, column: Column) -> str:
    """One row for each group with data: the group's code and the number of different values that were kept."""
    names = frame.key_names
    rows = _rows_sql(frame, [("d", frame.dialect.column(column))])
    by = f" GROUP BY {', '.join(names)}" if names else ""
    counted = ", ".join([*names, "COUNT(DISTINCT d) AS m0"])
    if frame.person is None:
        return f"SELECT {counted} FROM ({rows}) AS r WHERE d IS NOT NULL{by}"
    listed = ", ".join(["p", *names, "d"])
    grouped = f"SELECT {listed} FROM ({rows}) AS r WHERE d IS NOT NULL GROUP BY {listed}"
    value_order = ", ".join([frame.dialect.hashed(["p", *names, "d"], frame.stable), "d"])
    ranks = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(['p', *names])} ORDER BY {value_order}) AS place"
    kept = f"place <= {aggregate.most}"
    if frame.chooses:
        group_order = ", ".join([frame.dialect.hashed(["p", *names], frame.stable), *names])
        ranks += f", DENSE_RANK() OVER (PARTITION BY p ORDER BY {group_order}) AS seat"
        kept += f" AND seat <= {frame.setting.max_groups}"
    return f"SELECT {counted} FROM (SELECT {listed}, {ranks} FROM ({grouped}) AS g) AS ranked WHERE {kept}{by}"
