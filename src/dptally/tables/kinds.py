"""What a column holds, as far as a private query needs to know. Read from the schema, never from a row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from dptally.errors import InvalidArgument

__all__ = ["Column", "Kind", "Schema"]


class Kind(Enum):
    """The kinds of columns that the closed list of operations knows."""

    INTEGER = "integer"  # fits 64 bits
    WIDE = "wide integer"  # may not fit: a person's id, or a number as a double
    REAL = "number"
    TEXT = "text"
    BOOLEAN = "true or false"
    DATE = "date"
    TIMESTAMP = "time without zone"
    INSTANT = "time with zone"
    COARSE = "time in seconds or milliseconds"  # of which the engine fails to read the largest
    OTHER = "another type"

    @property
    def numeric(self) -> bool:
        return self in (Kind.INTEGER, Kind.WIDE, Kind.REAL)

    @property
    def groups(self) -> bool:
        """Whether equal values are equal on every engine: what a key may be."""
        return self in (Kind.INTEGER, Kind.TEXT, Kind.BOOLEAN, Kind.DATE)

    @property
    def identifies(self) -> bool:
        """Whether a person's id may be of this kind."""
        return self in (Kind.INTEGER, Kind.WIDE, Kind.TEXT)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the source. ``plain`` says that its type is the engine's own for this kind: no cast needed."""

    name: str
    kind: Kind
    plain: bool = True


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns by name. Names are taken as written, or without regard to case where that is unambiguous."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, columns: Iterable[Column]) -> Schema:
        found = tuple(columns)
        lower = [column.name.lower() for column in found]
        for column in found:
            if lower.count(column.name.lower()) > 1:
                raise InvalidArgument("source", "a table whose column names differ in more than case", column.name)
        return cls(found)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def find(self, name: str) -> Column | None:
        exact = [column for column in self.columns if column.name == name]
        near = [column for column in self.columns if column.name.lower() == name.lower()]
        return next(iter(exact or near), None)

    def get(self, argument: str, name: object) -> Column:
        """The column of this name, or an error that lists the names (they are not secret: the schema is public)."""
        found = self.find(name) if isinstance(name, str) else None
        if found is None:
            known = ", ".join(self.names[:20]) + (", ..." if len(self.names) > 20 else "")
            raise InvalidArgument(argument, f"a column of the table ({known})", name)
        return found
