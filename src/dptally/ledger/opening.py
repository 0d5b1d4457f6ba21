"""Opening a store: lay the tables, migrate an old schema, refuse a newer one, check the head."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import sqlalchemy as sa

from dptally.errors import LedgerUnavailable, RolledBack, SchemaTooNew
from dptally.ledger import forks, migration, schema
from dptally.ledger.chain import Head, genesis
from dptally.ledger.guard import guard_of
from dptally.ledger.journal import REGISTER, Journal
from dptally.ledger.merkle import root
from dptally.ledger.postgres import assert_logged
from dptally.ledger.reading import read_list
from dptally.ledger.sqlite_file import check_file, checked_path
from dptally.ledger.store import Store, checked_url

__all__ = ["check_head", "make_file", "prepare", "put", "read_head"]

_WITH_TREES = 2  # the first schema version with Merkle trees and bound totals
_LOCK_OF_POSTGRES = 0x6470_7461_6C6C_79  # "dptally"


def make_file(url: str, timeout: float, remembered: bool) -> None:
    """Make a new SQLite ledger where no file is. It is built elsewhere and then put into its place at once, so
    that nobody ever meets half a ledger.
    """
    path = checked_path(checked_url(url))
    if os.path.lexists(path):
        return
    _check_unknown(remembered)
    _check_no_log(path)
    with forks.inside():
        guard = guard_of(path)
        with guard.writing(timeout):
            try:
                if not os.path.lexists(path):
                    _check_no_log(path)
                    _make(path, timeout)
            except OSError as error:
                guard.clear()
                raise LedgerUnavailable(f"no ledger could be made at {str(path)!r} ({error.strerror})") from None
            except BaseException:
                guard.clear()
                raise


def _check_unknown(remembered: bool) -> None:
    """A ledger that a head or a witness remembers is not made anew."""
    if remembered:
        raise RolledBack(
            "there is no ledger in this store, and the head or witness given at open remembers one: another ledger is "
            "not put in its place. Nothing was created; restore it, or leave the head and the witness out"
        )


def _check_no_log(path: Path) -> None:
    if os.path.exists(f"{path}-wal") and os.stat(f"{path}-wal").st_size:
        raise LedgerUnavailable(
            f"the file {str(path)!r} is missing but its write-ahead log is there: it was removed. "
            "Nothing was created; restore it, or remove the log too"
        )


def _make(path: Path, timeout: float) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        store = Store(f"sqlite:///{draft}", False, timeout, fresh=True)
        try:
            store.write(_lay)
        finally:
            store.close()
        check_file(draft)  # whole, without its log
        put(draft, path)
    finally:
        for suffix in ("", "-wal", "-shm", "-lock"):
            Path(f"{draft}{suffix}").unlink(missing_ok=True)


def put(draft: Path, path: Path) -> None:
    """A hard link never replaces what is there; the directory is synchronised, so that the name survives."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise LedgerUnavailable(f"there is a file at {str(path)!r} already; nothing was replaced") from None
    except OSError:  # pragma: no cover  (a file system without hard links; the guard keeps others away)
        os.rename(draft, path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def prepare(store: Store, create: bool, remembered: bool) -> str:
    """The id of the ledger in this store. On PostgreSQL its tables are made if there are none and ``create``
    is given; a SQLite file is never made into a ledger after the fact.
    """
    found = store.read(_identity)
    if found is None:
        if store.read_only:
            raise LedgerUnavailable("there is no ledger in this store to open read-only")
        if store.sqlite or not create:
            raise LedgerUnavailable(
                "there is no ledger in this store; nothing was created"
                + ("" if store.sqlite else ". Make one with Ledger.open(url, create=True)")
            )
        _check_unknown(remembered)
        found = store.write(_lay)
    if not store.sqlite:
        store.read(
            lambda connection: assert_logged(connection, [table.name for table in schema.metadata.sorted_tables])
        )
    ledger, version = found
    if version > schema.VERSION:
        raise SchemaTooNew(
            f"the ledger has schema version {version}, this dptally knows up to {schema.VERSION}; upgrade dptally"
        )
    if version < schema.VERSION:
        if store.read_only:
            raise LedgerUnavailable(
                f"the ledger has the old schema version {version}; open it once for writing to migrate it"
            )
        store.write(_migrate)
    store.identity = ledger
    return ledger


def _identity(connection: sa.Connection) -> tuple[str, int] | None:
    if not sa.inspect(connection).has_table(schema.meta.name):
        return None
    rows = {row.name: row.value for row in connection.execute(sa.select(schema.meta.c.name, schema.meta.c.value))}
    try:
        return rows["ledger"], int(rows["schema"])
    except (KeyError, ValueError):
        raise LedgerUnavailable("the ledger's identity is damaged; nothing was written") from None


def _serialise(connection: sa.Connection) -> None:
    """One process lays or migrates tables at a time (SQLite's write lock does that by itself)."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK_OF_POSTGRES})")


def _lay(connection: sa.Connection) -> tuple[str, int]:
    _serialise(connection)
    found = _identity(connection)
    if found is not None:
        return found  # another process was first
    schema.metadata.create_all(connection)
    ledger = secrets.token_hex(16)
    rows = {"ledger": ledger, "schema": str(schema.VERSION)}
    connection.execute(sa.insert(schema.meta), [{"name": name, "value": value} for name, value in rows.items()])
    connection.execute(
        sa.insert(schema.datasets),
        {"name": REGISTER, "terms": "{}", "length": 0, "head": genesis(ledger, REGISTER)},
    )
    return ledger, schema.VERSION


def _migrate(connection: sa.Connection) -> None:
    _serialise(connection)
    found = _identity(connection)
    version = schema.VERSION if found is None else found[1]
    for step in range(version, schema.VERSION):
        if step not in schema.MIGRATIONS:
            raise LedgerUnavailable(f"there is no way from schema version {step} to {step + 1}; nothing was changed")
        schema.MIGRATIONS[step](connection)
    connection.execute(sa.update(schema.meta).where(schema.meta.c.name == "schema").values(value=str(schema.VERSION)))
    if version < _WITH_TREES and found is not None:
        migration.bind(connection, found[0], version)
    journal = Journal.locked(connection, REGISTER)
    journal.append([("migrate", None, None, migration.body(journal, version))])


def read_head(connection: sa.Connection, ledger: str, only: str | None = None) -> Head:
    """The head of every chain, or of one."""
    columns = schema.datasets.c
    question = sa.select(columns.name, columns.length, columns.head, columns.peaks)
    chains, roots = {}, {}
    for name, length, digest, peaks in connection.execute(
        question if only is None else question.where(columns.name == only)
    ):
        chains[name] = (length, digest)
        roots[name] = root(read_list(peaks), genesis(ledger, name))
    return Head(ledger, chains, roots)


def check_head(connection: sa.Connection, ledger: str, head: Head) -> None:
    """Every chain must contain the entry that the head remembers, at its place."""
    if head.ledger != ledger:
        raise RolledBack(
            f"the head belongs to ledger {head.ledger}, this is ledger {ledger}: another ledger was put in its place"
        )
    for dataset, (length, digest) in head.chains.items():
        if length == 0:
            continue
        here = (schema.entries.c.dataset == dataset, schema.entries.c.seq == length)
        found = connection.execute(sa.select(schema.entries.c.hash).where(*here)).scalar_one_or_none()
        if found != digest:
            what = f"dataset {dataset!r}" if dataset else "the register of datasets"
            raise RolledBack(
                f"{what} no longer holds entry {length} of the head given at open: an old copy was restored "
                "or it was edited"
            )
