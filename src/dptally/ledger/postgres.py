"""A ledger on PostgreSQL: row locks, synchronous commits, and tables that survive a crash."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from dptally.errors import LedgerUnavailable, MissingExtra

__all__ = ["assert_logged", "postgres_engine"]


def postgres_engine(url: sa.URL, read_only: bool, timeout: float) -> sa.Engine:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtra("psycopg", "postgres") from None
    engine = sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,
        pool_timeout=timeout,
        hide_parameters=True,
        connect_args={"connect_timeout": max(2, int(timeout))},
        execution_options={"postgresql_readonly": True} if read_only else {},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        connection.autocommit = True
        connection.execute(f"SET lock_timeout TO {max(1, int(1000 * timeout))}")
        connection.execute("SET synchronous_commit TO on")
        connection.autocommit = False

    @event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        if connection.get_execution_options().get("dptally_write", False):
            # a connection pooler in between, or a trigger, may have changed what was set at connect
            connection.exec_driver_sql("SET LOCAL synchronous_commit TO on")

    return engine


_PERSISTENCE = sa.text(
    "SELECT relname, relpersistence FROM pg_class WHERE oid = ANY (ARRAY(SELECT to_regclass(name)::oid "
    "FROM unnest(CAST(:names AS text[])) AS name)) AND relpersistence <> 'p' ORDER BY relname"
)


def assert_logged(connection: sa.Connection, names: list[str]) -> None:
    """An UNLOGGED table is emptied after a crash of the server, and a temporary one with its session."""
    row = connection.execute(_PERSISTENCE, {"names": names}).first()
    if row is not None:
        raise LedgerUnavailable(
            f"the store is not durable: table {row.relname} is UNLOGGED or temporary and would be lost in a crash; "
            f"write ALTER TABLE {row.relname} SET LOGGED"
        )
