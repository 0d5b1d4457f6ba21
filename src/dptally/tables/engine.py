"""Engines: something that runs one text of SQL and gives back rows of integers and keys.

Whatever an engine says when it fails may quote data, and that it failed may depend on data. So its words are
dropped: the caller reads EngineFailed, without cause and without context.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NoReturn

from dptally.errors import EngineFailed, InvalidArgument
from dptally.tables.dialect import Dialect

__all__ = ["Engine", "run"]

Rows = list[tuple[Any, ...]]


class Engine(ABC):
    """A connection to a database. ``name`` is what a report says was asked.

    It belongs to the process that opened it: after a fork its threads are gone, and a query would wait for ever.
    """

    dialect: Dialect
    name: str

    def __init__(self) -> None:
        self._process = os.getpid()

    def check_process(self) -> None:
        if self._process != os.getpid():
            raise InvalidArgument(
                "table", "opened in the process that asks it", "a table from before a fork", "open the Table here"
            )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a table belongs to the process that opened it; send its path and open the Table there")

    @abstractmethod
    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        """All rows of a query."""

    def progress(self) -> float | None:
        """The share of the running query that is done, None where the engine does not say."""
        return None

    def same(self, other: Engine) -> bool:
        """Whether the other's tables can be read on this connection."""
        return other is self


def run(engine: Engine, sql: str) -> Rows:
    """The rows, or EngineFailed without a word of the engine's."""
    engine.check_process()
    rows: Rows | None = None
    try:
        rows = [tuple(row) for row in engine.rows(sql)]
    except Exception:  # whatever a driver raises: none of its text may go on
        rows = None
    if rows is None:
        raise EngineFailed(
            f"{engine.name} did not answer. Nothing was released; what was debited stays debited, and the same key "
            "may be tried again without another debit. The engine's own words may quote data and are not repeated"
        )
    return rows


def integer(engine: Engine, value: object) -> int:
    """A number of the answer, which every engine gives as an integer (or a decimal without digits)."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and not (isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value()):
        raise EngineFailed(f"{engine.name} answered something that the core query cannot give; nothing was released")
    return int(value)  # type: ignore[call-overload, no-any-return]
