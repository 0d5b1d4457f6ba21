"""Statements that run on every spend, compiled once for each dialect.

On SQLite they go straight to the driver's connection, inside the transaction that SQLAlchemy holds on it: its
cursors cost ten times what the statements do. The driver's errors are put into plain words by ``failures``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.compiler import SQLCompiler

__all__ = ["Statement"]

Row = tuple[Any, ...]
Values = Mapping[str, Any] | Sequence[Any]


class Statement:
    """A statement as text with named parameters; with ``order``, these come as sequences in that order. ``(-1)``
    in the text stands for a list of literal integers.
    """

    __slots__ = ("_clause", "_order", "_texts")

    def __init__(self, clause: sa.ClauseElement, order: Sequence[str] = ()) -> None:
        self._clause = clause
        self._order = tuple(order)
        self._texts: dict[str, str] = {}

    def rows(self, connection: sa.Connection, values: Mapping[str, Any], numbers: Sequence[int] = ()) -> list[Row]:
        """Everything that the statement finds."""
        text = self._text(connection.dialect)
        if numbers:
            text = text.replace("(-1)", f"({','.join(str(int(n)) for n in numbers)})")
        driver = _driver(connection)
        if driver is not None:
            return driver.execute(text, values).fetchall()  # type: ignore[no-any-return]
        return [tuple(row) for row in connection.exec_driver_sql(text, dict(values))]

    def stream(self, connection: sa.Connection, values: Mapping[str, Any]) -> Iterable[Any]:
        """What the statement finds, row by row, for more rows than memory should hold."""
        text, driver = self._text(connection.dialect), _driver(connection)
        if driver is not None:
            return driver.execute(text, values)  # type: ignore[no-any-return]
        return connection.execution_options(yield_per=2000).exec_driver_sql(text, dict(values))

    def first(self, connection: sa.Connection, values: Mapping[str, Any]) -> Row | None:
        """The row that the statement finds, of which there is at most one."""
        return next(iter(self.rows(connection, values)), None)

    def run(self, connection: sa.Connection, *values: Values) -> None:
        """Run the statement once for each set of values."""
        text, driver = self._text(connection.dialect), _driver(connection)
        if driver is None:
            named = [dict(zip(self._order, one, strict=True)) if self._order else dict(one) for one in values]
            connection.exec_driver_sql(text, named if len(named) > 1 else named[0])
        elif len(values) == 1:
            driver.execute(text, values[0])
        else:
            driver.executemany(text, values)

    def _text(self, dialect: sa.Dialect) -> str:
        text = self._texts.get(dialect.name)
        if text is None:
            style = "pyformat" if dialect.name != "sqlite" else "qmark" if self._order else "named"
            made = self._clause.compile(dialect=type(dialect)(paramstyle=style))  # type: ignore[call-arg]
            if self._order:
                assert isinstance(made, SQLCompiler)
                assert set(made.params) == set(self._order), "the statement takes these values"
                assert style != "qmark" or tuple(made.positiontup or ()) == self._order, "in this order"
            self._texts[dialect.name] = text = str(made)
        return text


def _driver(connection: sa.Connection) -> Any:
    """The driver's own connection where statements go straight to it, otherwise None."""
    return connection.connection.dbapi_connection if connection.dialect.name == "sqlite" else None
