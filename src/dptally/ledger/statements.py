"""Statements that run on every spend, compiled once for each dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

__all__ = ["Statement"]

Values = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Statement:
    """A statement as text with named parameters. ``{}`` in a list of numbers stands for literal integers."""

    __slots__ = ("_clause", "_texts")

    def __init__(self, clause: sa.ClauseElement) -> None:
        self._clause = clause
        self._texts: dict[str, str] = {}

    def __call__(self, connection: sa.Connection, values: Values, numbers: Sequence[int] = ()) -> sa.CursorResult[Any]:
        dialect = connection.dialect
        text = self._texts.get(dialect.name)
        if text is None:
            style = "named" if dialect.name == "sqlite" else "pyformat"
            text = str(self._clause.compile(dialect=type(dialect)(paramstyle=style)))  # type: ignore[call-arg]
            self._texts[dialect.name] = text
        if numbers:
            text = text.replace("(-1)", f"({','.join(str(int(n)) for n in numbers)})")
        return connection.exec_driver_sql(text, values)
