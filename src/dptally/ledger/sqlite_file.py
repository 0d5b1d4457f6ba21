"""A ledger in a SQLite file: WAL, synchronous FULL, BEGIN IMMEDIATE, under the guard of the side file."""

from __future__ import annotations

import glob
import os
import random
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import QueuePool

from dptally.errors import InvalidArgument, LedgerUnavailable
from dptally.ledger.guard import Guard, guard_of
from dptally.ledger.schema import meta

__all__ = [
    "check_file",
    "check_present",
    "checked_path",
    "replaced",
    "run_alone",
    "set_durability",
    "set_writing",
    "sqlite_engine",
    "tidy",
]

T = TypeVar("T")

_LOG_LIMIT = 4 << 20  # bytes of write-ahead log after which it is moved into the file
_LOG_FLOOD = 128 << 20  # bytes after which it is moved even if readers are never away
_HEADER = b"SQLite format 3\x00"
_PRAGMAS = (
    "synchronous=FULL",
    "fullfsync=ON",
    "checkpoint_fullfsync=ON",
    "foreign_keys=ON",
    "trusted_schema=OFF",
    "cell_size_check=ON",
    "cache_size=-65536",  # 64 MiB: the index of keys of a long ledger is read all over
    "wal_autocheckpoint=0",  # see ``tidy``
)
_LONGEST_NAME = 220  # bytes: a ledger in the making, its log and its side file have longer names than the ledger
_DRAFT = re.compile(r"\.[0-9a-f]{16}")  # what the name of a ledger in the making ends in
_kept: list[object] = []  # connections that must not be closed any more, not even by the garbage collector


class Connection(sqlite3.Connection):
    """A connection that is closed only under the guard: the last close of all deletes the log."""

    guard: Guard
    patience = 30.0
    shut = False
    writes = False  # what the next transaction does
    at_once: bool | None = None  # whether a commit waits for the disk, where that is known

    def close(self) -> None:
        if self.shut:
            return
        if self.guard.pid != os.getpid():
            _kept.append(self)
            return
        try:
            with self.guard.writing(self.patience):
                last = self.guard.connections == 1
                if last and not self.guard.inherited:
                    self.guard.unpin()
                self.shut = True
                if last:
                    self.guard.note(known=False)
                super().close()
                self.guard.connections -= 1
                if last:
                    self.guard.note()
                    self.guard.forget()
        except LedgerUnavailable:
            _kept.append(self)

    def __del__(self) -> None:
        if hasattr(self, "guard"):
            self.close()


def checked_path(url: sa.URL) -> Path:
    """The file of a URL; memory and options are refused."""
    path = url.database
    if not path or path == ":memory:" or path.startswith("file:") or url.query or "\x00" in path:
        raise InvalidArgument(
            "url",
            "a file, such as sqlite:///budget.db (memory is not durable, options are not taken)",
            url.render_as_string(hide_password=True),
        )
    if not Path(path).absolute().parent.is_dir():
        raise LedgerUnavailable(f"the directory of {_shown(path)} does not exist; nothing was created")
    if len(os.fsencode(Path(path).name)) > _LONGEST_NAME:
        raise InvalidArgument("url", f"a file whose name has at most {_LONGEST_NAME} bytes", _shown(path))
    return Path(path).absolute()


def _shown(path: str) -> str:
    return repr(path) if len(path) <= 200 else f"{path[:197]!r}..."


def check_present(path: Path) -> None:
    """There must be a file, before anything (such as a side file) is laid beside it."""
    if not path.is_file():
        raise LedgerUnavailable(
            f"there is no ledger at {str(path)!r}; nothing was created. "
            "Restore it from a backup, or make a new one: Ledger.open(url, create=True), or dptally ledger init"
        )


def check_file(path: Path) -> None:
    """A file that is empty or shorter than it says was cut: it must not become a new ledger. Nor must the database of
    another program, which is not even opened by SQLite for writing: that would turn it to a write-ahead log. Nothing
    is laid beside the file or written to it here.
    """
    check_present(path)
    try:
        with path.open("rb") as file:
            header = file.read(100)
            size = file.seek(0, os.SEEK_END)
    except OSError as error:
        raise LedgerUnavailable(f"the file {str(path)!r} cannot be read ({error.strerror})") from None
    _check_only_name(path)
    if not header:
        raise LedgerUnavailable(
            f"the file {str(path)!r} is empty: it is no ledger, or it was cut. Restore it from a backup, "
            "or remove it and open with create=True"
        )
    if len(header) < 100 or not header.startswith(_HEADER):
        raise LedgerUnavailable(f"the file {str(path)!r} is damaged or is no ledger; nothing was debited")
    log = Path(f"{path}-wal")
    page = int.from_bytes(header[16:18], "big")
    promised = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    if size < promised and not (log.exists() and log.stat().st_size):
        raise LedgerUnavailable(
            f"the file {str(path)!r} is damaged: it has {size} bytes of {promised}. Restore it from a backup"
        )
    if not _holds_ledger(path):
        raise LedgerUnavailable(f"there is no ledger in the file {str(path)!r}; nothing was created")


def _holds_ledger(path: Path) -> bool:
    """Whether the tables of a ledger are in the file. It is read as it is, without its log and without locks, so
    where there is a log, or the file cannot be read so, only opening it can tell.
    """
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        return True
    with closing(sqlite3.connect(f"file:{quote(os.path.realpath(path))}?immutable=1", uri=True)) as connection:
        try:
            return connection.execute(f"SELECT 1 FROM sqlite_master WHERE name='{meta.name}'").fetchone() is not None
        except sqlite3.DatabaseError:
            return True


def _check_only_name(path: Path) -> None:
    """A log belongs to a name, so a file with two names could have two logs. The name that a maker of this ledger,
    killed in the middle, has left is taken away.
    """
    real = path.resolve()
    for draft in real.parent.glob(f".{glob.escape(real.name)}.*"):
        with suppress(OSError):
            if _DRAFT.fullmatch(draft.suffix) and draft.samefile(real):
                draft.unlink()
    names = real.stat().st_nlink
    if names > 1:
        raise LedgerUnavailable(
            f"the file {str(path)!r} has {names} names (hard links), and under each it would have a log of its own; "
            "nothing was debited. Keep the one that has a -wal file beside it, if any has, and remove the others"
        )


def sqlite_engine(path: Path, read_only: bool, timeout: float, fresh: bool, file: tuple[int, int] | None) -> sa.Engine:
    """Connections to one file, which must stay the file (device, inode) that it is now."""
    guard = guard_of(path)
    mode = "ro" if read_only else "rwc" if fresh else "rw"
    address = f"file:{quote(os.path.realpath(path))}?mode={mode}"

    def connect() -> Connection:
        with guard.writing(timeout):
            if file is not None and guard.present()[0] != file:
                raise replaced(path)
            made = sqlite3.connect(address, uri=True, timeout=timeout, check_same_thread=False, factory=Connection)
            made.patience = max(timeout, 1.0)
            made.guard = guard
            guard.connections += 1
            try:
                _prepare(made, read_only, timeout)
                guard.pin()
            except BaseException:
                made.close()
                raise
            return made

    engine = sa.create_engine(
        "sqlite://", creator=connect, poolclass=QueuePool, pool_size=4, max_overflow=-1, hide_parameters=True
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        if not driver.in_transaction:
            driver.execute("BEGIN IMMEDIATE" if driver.writes else "BEGIN DEFERRED")

    return engine


def run_alone(connection: sa.Connection, work: Callable[[sa.Connection], T]) -> T:
    """Run ``work`` in a transaction that writes. It is begun and ended on the driver's connection, which costs a tenth
    of SQLAlchemy's; a statement that goes through SQLAlchemy joins it.
    """
    driver: Any = connection.connection.dbapi_connection
    driver.execute("BEGIN IMMEDIATE")
    try:
        done = work(connection)
    except BaseException:
        connection.rollback() if connection.in_transaction() else driver.rollback()
        raise
    connection.commit() if connection.in_transaction() else driver.commit()
    return done


def set_writing(connection: sa.Connection, writes: bool) -> None:
    """Before a transaction: whether it takes the lock for writing at once."""
    driver: Any = connection.connection.dbapi_connection
    driver.writes = writes


def set_durability(connection: sa.Connection, at_once: bool) -> None:
    """Before a transaction: whether its commit waits for the disk. Only this function changes it after opening."""
    driver: Any = connection.connection.dbapi_connection
    if driver.at_once is not at_once:
        driver.at_once = None
        driver.execute(f"PRAGMA synchronous={'FULL' if at_once else 'NORMAL'}")
        driver.at_once = at_once


def replaced(path: Path) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"the file {str(path)!r} was removed or replaced while the ledger was open; nothing was debited. "
        "Put it back and open the ledger again, with a head that was kept"
    )


def _prepare(connection: sqlite3.Connection, read_only: bool, timeout: float) -> None:
    connection.isolation_level = None  # transactions are begun by the engine's event, not by the driver
    for pragma in ["query_only=ON"] if read_only else _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    if not read_only:
        _patiently(lambda: connection.execute("PRAGMA journal_mode=WAL").fetchone(), timeout)
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the log and its index


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


def tidy(connection: sa.Connection, guard: Guard) -> None:
    """After a commit, still under the guard: move a long log into the file while nobody reads.

    The entry is durable already, so a failure here is nobody's loss: the next commit tries again.
    """
    try:
        size = os.stat(f"{guard.database}-wal").st_size
    except OSError:
        return
    if size < _LOG_LIMIT:
        return
    driver: Any = connection.connection.dbapi_connection
    with guard.without_readers() as alone:
        if alone or size > _LOG_FLOOD:
            try:
                waits = driver.execute("PRAGMA busy_timeout").fetchone()[0]
                driver.execute("PRAGMA busy_timeout=0")
                guard.note(known=False)
                driver.execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if alone else 'PASSIVE'})").fetchone()
                guard.note()
                driver.execute(f"PRAGMA busy_timeout={int(waits)}")
            except (sqlite3.Error, LedgerUnavailable):
                return
