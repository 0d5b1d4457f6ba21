"""Failures of a store in plain words. Statements, parameters and driver errors never leave this module: they
may hold names, reasons and released values.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from dptally.errors import LedgerUnavailable

__all__ = ["plain_words", "worth_retrying"]

_RETRIED = ("40001", "40P01")  # PostgreSQL: serialization failure, deadlock
_UNKNOWN = (
    "if a debit was under way, whether it was made is not known: ask again with the same key, which never charges twice"
)


@contextmanager
def plain_words() -> Iterator[None]:
    """Translate what the driver and SQLAlchemy raise. The new error has no cause and no context."""
    try:
        yield
        return
    except exc.SQLAlchemyError as error:
        failure = _translated(error)
    except sqlite3.Error as error:
        failure = _translated(exc.DBAPIError.instance("", None, error, sqlite3.Error))
    except LedgerUnavailable as error:
        failure = error
    try:
        raise failure
    finally:  # Python hangs the error that was being handled on the new one, even if it does not show it
        failure.__context__ = None


def worth_retrying(error: LedgerUnavailable) -> bool:
    """A lost race or a lost connection; everything else will fail again."""
    cause = error.__cause__
    return bool(getattr(error, "retry", False)) or (isinstance(cause, exc.DBAPIError) and cause.connection_invalidated)


def _translated(error: exc.SQLAlchemyError) -> LedgerUnavailable:
    if isinstance(error, exc.TimeoutError):
        return LedgerUnavailable(
            "every connection of this ledger was in use for too long; nothing was debited. "
            "Use fewer threads, or open the ledger with a longer timeout"
        )
    if not isinstance(error, exc.DBAPIError):
        return LedgerUnavailable(f"the ledger's store failed ({type(error).__name__}); {_UNKNOWN}")
    reason = _first_line(error.orig)
    if isinstance(error, exc.IntegrityError):
        return LedgerUnavailable(f"a constraint of the store refused the entry ({reason}); nothing was debited")
    failure = LedgerUnavailable(f"the ledger's store failed ({reason}): {_advice(error, reason.lower())}")
    if error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _RETRIED:
        failure.retry = True  # type: ignore[attr-defined]
    return failure


def _first_line(error: BaseException | None) -> str:
    """The driver's first line: details, which may quote values, come after it."""
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__


def _advice(error: exc.DBAPIError, text: str) -> str:
    if "locked" in text or "busy" in text or "lock timeout" in text:
        return "another process holds its lock; nothing was debited"
    if "readonly" in text or "read-only" in text or "read only" in text:
        return "it is read-only; nothing was debited"
    if "permission denied" in text or "row-level security" in text or "must be owner" in text:
        return "this role may not do that; nothing was debited"
    if "not a database" in text or "malformed" in text or "corrupt" in text:
        return "the file is damaged or is no ledger; nothing was debited"
    if "full" in text and "disk" in text:
        return "nothing was debited"
    if error.connection_invalidated or "connection" in text or "disk" in text:
        return _UNKNOWN
    return "nothing was debited"
