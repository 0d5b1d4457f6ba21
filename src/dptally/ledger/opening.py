"""Opening a store: lay the tables, migrate an old schema, refuse a newer one, check the head."""

from __future__ import annotations

import secrets

import sqlalchemy as sa

from dptally.errors import LedgerUnavailable, RolledBack, SchemaTooNew
from dptally.ledger import schema
from dptally.ledger.chain import Head, canonical, genesis
from dptally.ledger.entries import now, stamp
from dptally.ledger.journal import REGISTER, Journal
from dptally.ledger.store import Store

__all__ = ["check_head", "prepare", "read_head"]

_LOCK_OF_POSTGRES = 0x6470_7461_6C6C_79  # "dptally"


def prepare(store: Store) -> str:
    """The id of the ledger in this store, which is made if there is none."""
    found = store.read(_identity)
    if found is None:
        if store.read_only:
            raise LedgerUnavailable("there is no ledger in this store to open read-only")
        found = store.write(_lay)
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
    journal = Journal.locked(connection, REGISTER)
    body = {
        "at": stamp(now()),
        "from": version,
        "seq": journal.length + 1,
        "to": schema.VERSION,
        "type": "migrate",
    }
    journal.append([("migrate", None, None, canonical(body))])


def read_head(connection: sa.Connection, ledger: str) -> Head:
    rows = connection.execute(sa.select(schema.datasets.c.name, schema.datasets.c.length, schema.datasets.c.head))
    return Head(ledger, {name: (length, digest) for name, length, digest in rows})


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
