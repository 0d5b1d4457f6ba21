"""The database behind a ledger: durable transactions on SQLite or PostgreSQL.

SQLite runs with WAL, synchronous FULL and BEGIN IMMEDIATE; PostgreSQL with row locks. Both are asserted at
open: a store that could lose a committed debit is refused.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from dptally.errors import InvalidArgument, InvalidType, LedgerUnavailable
from dptally.ledger import forks
from dptally.ledger.failures import plain_words, worth_retrying
from dptally.ledger.guard import Guard, guard_of, identity_of
from dptally.ledger.postgres import postgres_engine
from dptally.ledger.sqlite_file import (
    check_file,
    checked_path,
    replaced,
    run_alone,
    set_durability,
    set_writing,
    sqlite_engine,
    tidy,
)

__all__ = ["Settlement", "Store", "checked_url"]

T = TypeVar("T")
_ATTEMPTS = 8  # of a transaction that lost a race or its connection
_SQLITE_FULL = 2
_MOST_IDLE = 4
_READING: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
_left: list[object] = []  # engines and connections of a parent process: never used, never closed


class Settlement(Generic[T]):
    """Work that need not be on the disk at once: on SQLite it is there with the next commit.

    Only a power cut can lose it, and with it every process that holds the receipt; the entry is then reserved
    and stays spent. A PostgreSQL server may crash alone, so there it is as durable as a debit.
    """

    def __init__(self, work: Callable[[sa.Connection], T]) -> None:
        self._work = work

    def __call__(self, connection: sa.Connection) -> T:
        return self._work(connection)


class Store:
    """One database. ``write`` has committed durably when it returns."""

    def __init__(self, url: str, read_only: bool, timeout: float, fresh: bool = False) -> None:
        self.read_only = read_only
        self.identity: str | None = None  # of the ledger in it, once that is known
        self._timeout = timeout
        self._fresh = fresh
        self._url = checked_url(url)
        self.sqlite = self._url.get_backend_name() == "sqlite"
        self.path: Path | None = checked_path(self._url) if self.sqlite else None
        self._guard: Guard | None = None
        self._file: tuple[int, int] | None = None
        self._pid = os.getpid()
        if self.path is not None:
            with self._entered():  # before anything that another thread may have held at a fork
                self._guard = guard_of(self.path)
                if not fresh:
                    if not self._guard.is_laid():
                        check_file(self.path)  # nothing is laid beside what is no ledger
                    with self._guard.writing(timeout):
                        check_file(self.path)
                        self._file = self._guard.present()[0]
        self._idle: list[sa.Connection] = []  # of SQLite, at rest between two transactions
        self.engine = self._engine()
        forks.register(self)
        try:
            with self.reading() as connection:
                self._assert_durable(connection)
        except BaseException:
            self.engine.dispose()
            raise

    @property
    def _path(self) -> Path:
        assert self.path is not None
        return self.path

    def _engine(self) -> sa.Engine:
        if not self.sqlite:
            return postgres_engine(self._url, self.read_only, self._timeout)
        return sqlite_engine(self._path, self.read_only, self._timeout, self._fresh, self._file)

    def close(self) -> None:
        if self._pid == os.getpid():
            self._dispose()

    def _dispose(self) -> None:
        while self._idle:
            self._idle.pop().close()
        self.engine.dispose()

    # -- transactions ----------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A consistent snapshot."""
        with ExitStack() as stack:
            stack.enter_context(self._entered())
            if self._guard is not None:
                stack.enter_context(self._guard.reading(self._timeout))
            stack.enter_context(plain_words())
            connection = stack.enter_context(self._connected(writes=False))
            stack.enter_context(connection.begin())
            yield connection

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        return self._retried(lambda: self._read_once(work))

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work`` and commit. It may run again, so it must look before it inserts."""
        if self.read_only:
            raise LedgerUnavailable("the ledger was opened read-only; nothing was written")
        return self._retried(lambda: self._write_once(work))

    def _read_once(self, work: Callable[[sa.Connection], T]) -> T:
        with self.reading() as connection:
            return work(connection)

    def _write_once(self, work: Callable[[sa.Connection], T]) -> T:
        with self._entered(), self._exclusive(), plain_words(), self._connected(writes=True) as connection:
            if self._guard is None:
                with connection.begin():
                    return work(connection)
            set_durability(connection, at_once=not isinstance(work, Settlement))
            done = run_alone(connection, work)
            tidy(connection, self._guard)
            return done

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if self._guard is None:
            yield
            return
        with self._guard.writing(self._timeout):
            self._guard.check()
            if self._file is not None and self._present(self._guard) != self._file:
                raise replaced(self._path)
            yield

    def _present(self, guard: Guard) -> tuple[int, int] | None:
        """The file at the path, which the guard has just looked at where the path is no link."""
        path = str(self._path)
        return guard.files[0] if guard.files and path == guard.database else identity_of(path)

    @contextmanager
    def _connected(self, writes: bool) -> Iterator[sa.Connection]:
        if not self.sqlite:
            with self.engine.connect() as connection:
                yield connection.execution_options(**(self._writing_options if writes else _READING))
            return
        engine, idle = self.engine, self._idle
        connection = _taken(idle) or engine.connect()
        if connection.get_execution_options().get("dptally_ledger") != self.identity:
            connection.execution_options(dptally_ledger=self.identity)
        set_writing(connection, writes)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if engine is self.engine and len(idle) < _MOST_IDLE:
            idle.append(connection)
        else:
            connection.close()

    @property
    def _writing_options(self) -> dict[str, Any]:
        return {"isolation_level": "READ COMMITTED", "dptally_write": True, "dptally_ledger": self.identity}

    @contextmanager
    def exclusive_files(self) -> Iterator[None]:
        """While this lasts no dptally process opens, writes, checkpoints or closes this file."""
        with self._entered(), self._exclusive():
            yield

    def _retried(self, attempt: Callable[[], T]) -> T:
        for number in range(1, _ATTEMPTS):
            try:
                return attempt()
            except LedgerUnavailable as error:
                if not worth_retrying(error):
                    raise
            time.sleep(random.uniform(0, 0.01 * 2**number))
        return attempt()

    # -- forks -----------------------------------------------------------------------------------------------

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """Connections do not survive a fork: a child process opens its own."""
        if not self.sqlite:
            if self._pid != os.getpid():
                self.start_anew(False)
            yield
            return
        with forks.inside():
            yield

    def let_go(self) -> None:
        if self.sqlite:
            self._dispose()

    def start_anew(self, idle: bool) -> None:
        guard = self._guard
        if guard is not None and guard.inherited and idle:
            with guard.writing(self._timeout):
                guard.pin()  # so that these closes delete nothing
                self._dispose()
                if guard.connections == 0:
                    guard.inherited = False
        else:
            _left.append((self.engine, self._idle))
        self._idle = []
        self.engine = self._engine()
        self._pid = os.getpid()

    # -- durability ------------------------------------------------------------------------------------------

    def _assert_durable(self, connection: sa.Connection) -> None:
        if self.sqlite:
            wanted = (
                {"journal_mode": "wal"}
                if self.read_only
                else {"journal_mode": "wal", "synchronous": _SQLITE_FULL, "foreign_keys": 1}
            )
            found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in wanted}
        else:
            wanted = {"fsync": "on", "full_page_writes": "on"}
            found = {name: connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in wanted}
        if found != wanted:
            raise LedgerUnavailable(f"the store is not durable: it has {found}, a ledger needs {wanted}")


def _taken(idle: list[sa.Connection]) -> sa.Connection | None:
    try:
        return idle.pop()
    except IndexError:  # nobody has been here, or another thread was faster
        return None


def checked_url(url: str) -> sa.URL:
    if not isinstance(url, str):
        raise InvalidType("url", "a text such as 'sqlite:///budget.db'", url)
    try:
        parsed = sa.make_url(url)
    except (exc.ArgumentError, ValueError):  # the latter for a port that is no number
        parsed = None
    if parsed is None:
        raise InvalidArgument(
            "url", "a database URL such as 'sqlite:///budget.db' or 'postgresql+psycopg://host/name'", "..."
        )
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg"):
        raise InvalidArgument(
            "url", "of SQLite ('sqlite:///...') or PostgreSQL ('postgresql+psycopg://...')", parsed.drivername
        )
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise InvalidArgument("url", "an address with a port between 1 and 65535", parsed.port)
    return parsed
