"""A table with its unit of privacy: rows of persons, each of whom may count in so many groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType
from dptally.tables.engine import integer, run
from dptally.tables.kinds import Column, Schema
from dptally.tables.sources import DuckEngine, Source, open_source

__all__ = ["Table"]


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Table:
    """A private table: a path or pattern of Parquet or CSV files, a DuckDB relation, a pandas, polars or Arrow
    frame, a Spark DataFrame, an Ibis table, or ``(connection, "table")``.

    ``person`` is the column that says whose row it is; without it the unit of privacy is a row. ``max_groups``
    and ``max_rows`` are how many groups a person may count in, and how many of her rows in each. ``name`` is
    what SQL texts call the table. ``stable`` chooses a person's groups by a hash that is the same on every
    engine. The schema is read, never a row.
    """

    source: Source
    person: str | None
    max_groups: int | None
    max_rows: int | None
    stable: bool
    joined: tuple[str, ...] = field(default=())
    origin: Source = field(init=False)  # before joins

    def __init__(
        self,
        source: object,
        *,
        person: str | None = None,
        max_groups: int | None = None,
        max_rows: int | None = None,
        name: str | None = None,
        stable: bool = False,
    ) -> None:
        if name is not None and (not isinstance(name, str) or not name):
            raise InvalidType("name", "a text", name)
        opened = open_source(source, name)
        whose = _person(opened.schema, person)
        if whose is None and (max_groups is not None or max_rows is not None):
            raise InvalidArgument(
                "person", "given with max_groups or max_rows: a row counts once, in one group", person, "write person="
            )
        for field_, value in (
            ("source", opened),
            ("person", None if whose is None else whose.name),
            ("max_groups", None if max_groups is None else checks.count("max_groups", max_groups, least=1)),
            ("max_rows", None if max_rows is None else _rows(max_rows)),
            ("stable", bool(stable)),
            ("joined", ()),
            ("origin", opened),
        ):
            object.__setattr__(self, field_, value)

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def schema(self) -> Schema:
        return self.source.schema

    @property
    def columns(self) -> tuple[str, ...]:
        return self.schema.names

    @property
    def unit(self) -> str:
        """The unit of privacy, as an account states it: "row" or "person:<column>"."""
        return "row" if self.person is None else f"person:{self.person}"

    def __repr__(self) -> str:
        bounds = f", max_groups={self.max_groups}, max_rows={self.max_rows}" if self.person is not None else ""
        return f"Table({self.source.label!r}, unit={self.unit!r}{bounds}, columns={len(self.columns)})"

    # -- joins -----------------------------------------------------------------------------------------------

    def join_public(self, source: object, on: str, *, how: Literal["inner", "left"] = "inner") -> Table:
        """With a public table that has a column of the same name. Rows may multiply under a person unit, whose
        bound comes after the join; under a row unit the public table must have each value once.
        """
        other = self._beside(source)
        mine, theirs = self.schema.get("on", on), other.schema.get("on", on)
        if mine.kind is not theirs.kind or not mine.kind.groups:
            raise InvalidArgument("on", "of one kind in both tables: text, integers, truth values or dates", on)
        if self.person is None:
            value = self.source.dialect.column(theirs)
            repeated = f"SELECT {value} AS v FROM {other.relation} AS dptally_t GROUP BY {value} HAVING COUNT(*) > 1"
            ((found,),) = run(other.engine, f"SELECT COUNT(*) FROM ({repeated}) AS d")
            if integer(other.engine, found) > 0:
                raise InvalidArgument("source", "a public table with each value once: a row may not multiply", on)
        dialect = self.source.dialect
        on_both = f"{dialect.column(mine)} = {dialect.column(theirs, 'dptally_o')}"
        return self._joined(other, theirs, on_both, how, f"public table on {mine.name}")

    def join_person(self, other: Table, *, how: Literal["inner", "left"] = "inner") -> Table:
        """With another private table, on the person: her rows of both in all combinations, nobody else's."""
        if not isinstance(other, Table):
            raise InvalidType("other", "a Table with persons", type(other).__name__)
        if self.person is None or other.person is None:
            raise InvalidArgument("other", "a table with persons, joined to one with persons", other.unit)
        beside = self._beside(other.source)
        mine, theirs = self.schema.get("person", self.person), beside.schema.get("person", other.person)
        if mine.kind is not theirs.kind:
            raise InvalidArgument("other", "a table whose persons are of the same kind", theirs.kind.value)
        dialect = self.source.dialect
        on_both = f"{dialect.identity(mine)} = {dialect.identity(theirs, 'dptally_o')}"
        return self._joined(beside, theirs, on_both, how, f"private table on {mine.name}")

    def _beside(self, source: object) -> Source:
        """The other table on this table's engine."""
        other = open_source(source, None)
        if self.source.engine.same(other.engine):
            return other
        if isinstance(self.source.engine, DuckEngine) and isinstance(other.engine, DuckEngine):
            return self.source.engine.adopt(other)
        raise InvalidArgument("source", f"on the same engine ({self.source.engine.name})", other.engine.name)

    def _joined(self, other: Source, theirs: Column, on: str, how: str, said: str) -> Table:
        if how not in ("inner", "left"):
            raise InvalidArgument("how", "inner or left", how)
        dialect = self.source.dialect
        taken = {name.lower() for name in self.columns}
        added = [column for column in other.schema.columns if column.name != theirs.name]
        for column in added:
            if column.name.lower() in taken:
                raise InvalidArgument("source", "a table whose other columns have names of their own", column.name)
        listed = [f"dptally_t.{dialect.name_of(column.name)}" for column in self.schema.columns]
        listed += [f"dptally_o.{dialect.name_of(column.name)}" for column in added]
        word = "LEFT JOIN" if how == "left" else "JOIN"
        relation = (
            f"(SELECT {', '.join(listed)} FROM {self.source.relation} AS dptally_t "
            f"{word} {other.relation} AS dptally_o ON {on})"
        )
        schema = Schema.of((*self.schema.columns, *added))
        made = Source(self.source.engine, relation, schema, f"{self.source.label} + {said}", self.name)
        table = Table(made, person=self.person, max_groups=self.max_groups, max_rows=self.max_rows, stable=self.stable)
        for name, value in (("joined", (*self.joined, said)), ("origin", self.origin)):
            object.__setattr__(table, name, value)
        return table


def _person(schema: Schema, person: str | None) -> Column | None:
    if person is None:
        return None
    found = schema.get("person", person)
    if not found.kind.identifies:
        raise InvalidArgument("person", "a column of text or integers", f"{found.name}: {found.kind.value}")
    return found


def _rows(max_rows: int) -> int:
    rows = checks.count("max_rows", max_rows, least=1)
    if rows > 1 << 20:
        raise InvalidArgument("max_rows", "at most 2^20", max_rows)
    return rows
