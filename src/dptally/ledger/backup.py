"""A copy of a ledger while others spend: SQLite's online backup of one snapshot."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from dptally.errors import InvalidArgument, InvalidType, LedgerUnavailable
from dptally.ledger.chain import Head
from dptally.ledger.failures import plain_words
from dptally.ledger.opening import put, read_head
from dptally.ledger.store import Store

__all__ = ["backup"]


def backup(store: Store, ledger: str, path: str | Path) -> Head:
    """Copy the ledger to a new file, which appears complete or not at all; the head that it holds."""
    if not isinstance(path, (str, Path)):
        raise InvalidType("path", "a path", path)
    target = Path(path).absolute()
    if not store.sqlite:
        raise LedgerUnavailable("a ledger on PostgreSQL is copied by PostgreSQL: write pg_dump, or use a base backup")
    if "\x00" in str(target):
        raise InvalidArgument("path", "a path", str(target))
    if os.path.lexists(target):
        raise InvalidArgument("path", "a new file: a backup never replaces one", str(target))
    if not target.parent.is_dir():
        raise InvalidArgument("path", "in a directory that exists", str(target))
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with store.reading() as connection:
            head = read_head(connection, ledger)
            _copy(connection.connection.dbapi_connection, draft)
        put(draft, target)
    except OSError as error:
        raise LedgerUnavailable(f"no backup could be made at {str(target)!r} ({error.strerror})") from None
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                Path(f"{draft}{suffix}").unlink(missing_ok=True)
    return head


def _copy(source: Any, draft: Path) -> None:
    with plain_words():
        copy = sqlite3.connect(draft, isolation_level=None)
        try:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=WAL").fetchone()
            verdict = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
        finally:
            copy.close()
    if verdict != "ok":
        raise LedgerUnavailable("the copy is damaged; no backup was made")
    with draft.open("rb+") as file:
        os.fsync(file.fileno())
