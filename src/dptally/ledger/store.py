"""The database behind a ledger: durable transactions on SQLite or PostgreSQL, and their failures in plain
words.

SQLite runs with WAL, synchronous FULL and BEGIN IMMEDIATE; PostgreSQL with row locks. Both are asserted at
open: a store that could lose a committed debit is refused.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event, exc

from dptally.errors import InvalidArgument, InvalidType, LedgerUnavailable, MissingExtra

__all__ = ["Store"]

T = TypeVar("T")
_ATTEMPTS = 8  # of a transaction that lost a race or its connection
_RETRIED = ("40001", "40P01")  # PostgreSQL: serialization failure, deadlock
_SQLITE_FULL = 2


class Store:
    """One database. ``write`` has committed durably when it returns."""

    def __init__(self, url: str, read_only: bool, timeout: float) -> None:
        self.read_only = read_only
        self._timeout = timeout
        self._url = _checked_url(url)
        self.sqlite = self._url.get_backend_name() == "sqlite"
        self.engine = self._sqlite_engine() if self.sqlite else self._postgres_engine()
        self._pid = os.getpid()
        try:
            with self.reading() as connection:
                self._assert_durable(connection)
        except BaseException:
            self.engine.dispose()
            raise

    def close(self) -> None:
        self.engine.dispose()

    # -- transactions ----------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A consistent snapshot."""
        self._after_fork()
        options: dict[str, Any] = (
            {} if self.sqlite else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        )
        with (
            _plain_words(),
            self.engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
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
        self._after_fork()
        options: dict[str, Any] = {"dptally_write": True}
        if not self.sqlite:
            options["isolation_level"] = "READ COMMITTED"
        with (
            _plain_words(),
            self.engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            return work(connection)

    def _retried(self, attempt: Callable[[], T]) -> T:
        for number in range(1, _ATTEMPTS):
            try:
                return attempt()
            except LedgerUnavailable as error:
                if not _worth_retrying(error):
                    raise
                time.sleep(random.uniform(0, 0.01 * 2**number))
        return attempt()

    def _after_fork(self) -> None:
        """Connections do not survive a fork: a child process opens its own."""
        if self._pid != os.getpid():
            self.engine.dispose(close=False)
            self._pid = os.getpid()

    # -- SQLite ----------------------------------------------------------------------------------------------

    def _sqlite_engine(self) -> sa.Engine:
        path = self._url.database
        if not path or path == ":memory:" or path.startswith("file:") or self._url.query:
            raise InvalidArgument(
                "url",
                "a file, such as sqlite:///budget.db (memory is not durable, options are not taken)",
                str(self._url),
            )
        if self.read_only and not Path(path).is_file():
            raise LedgerUnavailable(f"there is no ledger at {path!r} to open read-only")
        if not Path(path).absolute().parent.is_dir():
            raise LedgerUnavailable(f"the directory of {path!r} does not exist; nothing was created")
        mode = "ro" if self.read_only else "rwc"
        file = f"file:{quote(str(Path(path).absolute()))}"
        address = sa.URL.create("sqlite", database=file, query={"mode": mode, "uri": "true"})
        engine = sa.create_engine(address, connect_args={"timeout": self._timeout})

        @event.listens_for(engine, "connect")
        def _prepare(connection: Any, _record: object) -> None:
            connection.isolation_level = None  # transactions are begun below, not by the driver
            cursor = connection.cursor()
            pragmas = [
                "synchronous=FULL",
                "fullfsync=ON",
                "checkpoint_fullfsync=ON",
                "foreign_keys=ON",
                "trusted_schema=OFF",
                "cache_size=-65536",  # 64 MiB: the index of keys of a long ledger is read all over
            ]
            for pragma in ["query_only=ON"] if self.read_only else pragmas:
                cursor.execute(f"PRAGMA {pragma}")
            if not self.read_only:
                _patiently(lambda: cursor.execute("PRAGMA journal_mode=WAL"), self._timeout)
            cursor.close()

        @event.listens_for(engine, "begin")
        def _begin(connection: sa.Connection) -> None:
            write = connection.get_execution_options().get("dptally_write", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN DEFERRED")

        return engine

    # -- PostgreSQL ------------------------------------------------------------------------------------------

    def _postgres_engine(self) -> sa.Engine:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise MissingExtra("psycopg", "postgres") from None
        url = self._url.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(
            url,
            pool_pre_ping=True,
            connect_args={"connect_timeout": max(2, int(self._timeout))},
            execution_options={"postgresql_readonly": True} if self.read_only else {},
        )

        @event.listens_for(engine, "connect")
        def _prepare(connection: Any, _record: object) -> None:
            connection.autocommit = True
            connection.execute(f"SET lock_timeout TO {int(1000 * self._timeout)}")
            connection.execute("SET synchronous_commit TO on")
            connection.autocommit = False

        return engine

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


def _patiently(switch: Callable[[], object], timeout: float) -> None:
    """The switch to WAL does not wait for other openers by itself, so wait here."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            switch()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0, 0.02))


def _checked_url(url: str) -> sa.URL:
    if not isinstance(url, str):
        raise InvalidType("url", "a text such as 'sqlite:///budget.db'", url)
    try:
        parsed = sa.make_url(url)
    except exc.ArgumentError:
        raise InvalidArgument(
            "url", "a database URL such as 'sqlite:///budget.db' or 'postgresql+psycopg://host/name'", "..."
        ) from None
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg"):
        raise InvalidArgument(
            "url", "of SQLite ('sqlite:///...') or PostgreSQL ('postgresql+psycopg://...')", parsed.drivername
        )
    return parsed


# -- failures in plain words ---------------------------------------------------------------------------------


@contextmanager
def _plain_words() -> Iterator[None]:
    """Translate the driver's errors; bodies and values never reach the text."""
    try:
        yield
    except exc.IntegrityError as error:
        text = str(error.orig).splitlines()[0]
        raise LedgerUnavailable(f"a constraint of the store refused the entry ({text}); nothing was debited") from error
    except exc.DBAPIError as error:
        raise LedgerUnavailable(_explained(error)) from error


def _explained(error: exc.DBAPIError) -> str:
    lines = str(error.orig).splitlines() or [type(error.orig).__name__]
    text = lines[0].lower()
    if "locked" in text or "busy" in text or "lock timeout" in text:
        why = "another process holds its lock; nothing was debited"
    elif "readonly" in text or "read-only" in text:
        why = "it is read-only; nothing was debited"
    elif "not a database" in text or "malformed" in text or "corrupt" in text:
        why = "the file is damaged or is no ledger; nothing was debited"
    elif error.connection_invalidated or "connection" in text or "disk" in text:
        why = (
            "if a debit was under way, whether it was made is not known: "
            "ask again with the same key, which never charges twice"
        )
    else:
        why = "nothing was debited"
    return f"the ledger's store failed ({lines[0]}): {why}"


def _worth_retrying(error: LedgerUnavailable) -> bool:
    cause = error.__cause__
    if not isinstance(cause, exc.DBAPIError) or isinstance(cause, exc.IntegrityError):
        return False
    return cause.connection_invalidated or getattr(cause.orig, "sqlstate", None) in _RETRIED
