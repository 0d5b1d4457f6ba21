"""Contract: stores that fail, are locked, damaged, too new or too old; the second line of constraints."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import event, exc

import dptally as dp
from dptally.errors import InvalidArgument, LedgerError, LedgerUnavailable, RolledBack, SchemaTooNew
from dptally.ledger import Ledger, schema
from dptally.ledger.store import Store

Opener = Callable[..., Ledger]


@pytest.fixture
def ledger(opened: Opener) -> Ledger:
    made = opened()
    made.create("d", budget=dp.PureDP(1.0))
    return made


def test_importing_dptally_does_not_load_sqlalchemy() -> None:
    code = "import sys, dptally; dptally.PureDP(1.0); sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_sqlalchemy_the_ledger_says_what_to_install() -> None:
    code = "import sys; sys.modules['sqlalchemy'] = None; import dptally; dptally.Ledger"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "pip install 'dptally[ledger]'" in done.stderr


def test_without_psycopg_postgres_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(dp.MissingExtra, match=r"dptally\[postgres\]"):
        Ledger.open("postgresql://nowhere/x")


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x.db?uri=true",
        "sqlite:///x.db?cache=shared",
        "mysql://host/db",
        "no url",
        7,
    ],
)
def test_urls_that_are_not_durable_or_not_known(url: str) -> None:
    with pytest.raises(InvalidArgument, match="url"):
        Ledger.open(url, create=True)


def test_bad_openings(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="directory"):
        Ledger.open(f"sqlite:///{tmp_path}/missing/x.db")
    with pytest.raises(LedgerUnavailable, match="no ledger at"):
        Ledger.open(f"sqlite:///{tmp_path}/x.db", read_only=True)
    with pytest.raises(InvalidArgument, match="timeout"):
        Ledger.open(f"sqlite:///{tmp_path}/x.db", timeout=0)
    for head in ("", "{}", "[]", '{"dptally_ledger_head":2}', 5):
        with pytest.raises(InvalidArgument, match="head"):
            Ledger.open(f"sqlite:///{tmp_path}/x.db", head=head)  # type: ignore[arg-type]
    assert not (tmp_path / "x.db").exists()


def test_awkward_paths(tmp_path: Path) -> None:
    folder = tmp_path / "a b#c ü"
    folder.mkdir()
    with Ledger.open(f"sqlite:///{folder}/bud get.db", create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(1))
    assert (folder / "bud get.db").exists()


def test_the_store_is_durable(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger.open(sqlite_url, create=True) as ledger, ledger._store.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
    monkeypatch.setattr("dptally.ledger.store._SQLITE_FULL", 3)
    with pytest.raises(LedgerUnavailable, match="not durable"):
        Ledger.open(sqlite_url, create=True)


def test_a_postgres_that_is_not_durable_is_refused(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = sa.Connection.exec_driver_sql

    def lying(connection: sa.Connection, statement: str, *args: object, **options: object) -> object:
        # type: ignore[arg-type]
        return real(connection, "SELECT 'off'" if statement == "SHOW fsync" else statement, *args, **options)

    monkeypatch.setattr(sa.Connection, "exec_driver_sql", lying)
    with pytest.raises(LedgerUnavailable, match="not durable"):
        Ledger.open(postgres_url, create=True)


def test_read_only(ledger: Ledger, opened: Opener) -> None:
    ledger.spend("d", dp.PureDP(0.25))
    reader = opened(read_only=True)
    assert reader.remaining("d") == pytest.approx(0.75)
    assert len(reader.history("d")) == 1
    reader.verify()
    for write in (lambda: reader.spend("d", dp.PureDP(0.1)), lambda: reader.create("e", budget=dp.PureDP(1))):
        with pytest.raises(LedgerUnavailable, match="read-only"):
            write()
    reader._store.read_only = False  # the store itself refuses too
    with pytest.raises(LedgerUnavailable, match="read-only"):
        reader._store.write(lambda connection: connection.execute(sa.delete(schema.entries)))
    assert len(ledger.history("d")) == 1


def test_read_only_needs_a_ledger(url: str, opened: Opener, tmp_path: Path) -> None:
    if url.startswith("sqlite"):
        sqlite3.connect(tmp_path / "budget.db").execute("PRAGMA journal_mode=WAL").connection.close()
        (tmp_path / "budget.db").touch()
    with pytest.raises(LedgerUnavailable):
        opened(read_only=True)


def test_a_locked_file_times_out_and_debits_nothing(sqlite_url: str) -> None:
    with Ledger.open(sqlite_url, create=True, timeout=0.1) as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
        other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable, match="another process holds its lock; nothing was debited"):
            ledger.spend("d", dp.PureDP(0.1))
        assert ledger.remaining("d") >= 1  # reading does not wait
        other.execute("ROLLBACK")
        other.close()
        ledger.spend("d", dp.PureDP(0.1))
        assert len(ledger.history("d")) == 1


def test_a_locked_row_times_out_and_debits_nothing(postgres_url: str) -> None:
    with Ledger.open(postgres_url, create=True, timeout=0.05) as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
        with ledger._store.engine.connect() as other, other.begin():
            other.execute(sa.select(schema.datasets).where(schema.datasets.c.name == "d").with_for_update())
            with pytest.raises(LedgerUnavailable, match="another process holds its lock"):
                ledger.spend("d", dp.PureDP(0.1))
        assert ledger.history("d") == []


def test_a_damaged_file_is_refused(tmp_path: Path, sqlite_url: str) -> None:
    (tmp_path / "budget.db").write_bytes(b"this is no database, and long enough to be sure of it" * 20)
    with pytest.raises(LedgerUnavailable, match="damaged or is no ledger"):
        Ledger.open(sqlite_url, create=True)


def test_a_ledger_without_its_identity_is_refused(ledger: Ledger, opened: Opener) -> None:
    ledger._store.write(lambda c: c.execute(sa.delete(schema.meta).where(schema.meta.c.name == "ledger")))
    with pytest.raises(LedgerUnavailable, match="identity"):
        opened()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes to everything")
def test_a_read_only_file_is_refused(tmp_path: Path, sqlite_url: str) -> None:  # pragma: no cover
    with Ledger.open(sqlite_url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
    (tmp_path / "budget.db").chmod(0o400)
    with pytest.raises(LedgerUnavailable):
        Ledger.open(sqlite_url, create=True).spend("d", dp.PureDP(0.1))


# -- schema versions -----------------------------------------------------------------------------------------


def test_a_newer_schema_is_not_touched(ledger: Ledger, opened: Opener) -> None:
    ledger._store.write(
        lambda c: c.execute(sa.update(schema.meta).where(schema.meta.c.name == "schema").values(value="99"))
    )
    with pytest.raises(SchemaTooNew, match="99"):
        opened()


def test_migration_runs_once_and_is_written_into_the_chain(
    ledger: Ledger, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    ledger.spend("d", dp.PureDP(0.25))
    monkeypatch.setattr(schema, "VERSION", 4)
    monkeypatch.setattr("dptally.ledger.verification.VERSION", 4)
    with pytest.raises(LedgerUnavailable, match="no way from schema version 2 to 3"):
        opened()
    monkeypatch.setattr(schema, "MIGRATIONS", {2: lambda c: ran.append(2), 3: lambda c: ran.append(3)})
    with pytest.raises(LedgerUnavailable, match="old schema"):
        opened(read_only=True)
    newer = opened()
    assert ran == [2, 3]
    opened()
    assert ran == [2, 3]
    assert newer.verify().entries == 3  # registered, spent, migrated
    assert newer.remaining("d") == pytest.approx(0.75)


# -- the second line -----------------------------------------------------------------------------------------


def test_the_store_itself_refuses_to_overspend_and_to_charge_or_settle_twice(ledger: Ledger) -> None:
    ledger.spend("d", dp.PureDP(0.25), key="k").release()
    row = {"dataset": "d", "seq": 9, "type": "spend", "key": "k:k", "settles": None, "body": "{}", "hash": ""}
    forbidden = [
        sa.update(schema.accounts).values(spent=schema.accounts.c.cap + 1),
        sa.update(schema.accounts).values(spent=-1),
        sa.update(schema.accounts).values(cap=None),
        sa.update(schema.accounts).values(failure_spent=1),
        sa.insert(schema.entries).values(**row),
        sa.insert(schema.entries).values(**{**row, "type": "settle", "key": None, "settles": 1}),
        sa.insert(schema.entries).values(**{**row, "key": None}),
        sa.insert(schema.entries).values(**{**row, "key": "new", "type": "gift"}),
        sa.insert(schema.entries).values(**{**row, "key": "new", "dataset": "nowhere"}),
    ]
    for statement in forbidden:
        with pytest.raises(LedgerUnavailable, match="constraint"):
            ledger._store.write(lambda connection, s=statement: connection.execute(s))  # type: ignore[misc]
    ledger.verify()


def test_the_constraints_stop_a_debit_that_the_code_let_through(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dptally.ledger.books.Books.cap", lambda self, holder: None)
    with pytest.raises(LedgerUnavailable, match="nothing was debited"):
        ledger.spend("d", dp.PureDP(1.5))
    assert ledger.history("d") == []


# -- lost connections ----------------------------------------------------------------------------------------


def lost() -> exc.DBAPIError:
    return exc.OperationalError("COMMIT", None, Exception("server closed the connection"), connection_invalidated=True)


@pytest.mark.parametrize("key", [None, "k"])
def test_a_commit_whose_answer_is_lost_is_not_charged_twice(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    real, failures = Store._write_once, iter([True, False, True, False])

    def flaky(store: Store, work: Callable[[sa.Connection], object]) -> object:
        done = real(store, work)
        if next(failures):
            raise LedgerUnavailable("lost") from lost()
        return done

    monkeypatch.setattr(Store, "_write_once", flaky)
    with ledger.spend("d", dp.PureDP(0.25), key=key) as receipt:
        assert not receipt.replayed  # this call was charged, so this call may release
    assert [entry.state for entry in ledger.history("d")] == ["released"]
    ledger.verify()


def test_a_store_that_stays_away_gives_up_and_says_so(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(connection: sa.Connection) -> None:
        raise lost()

    monkeypatch.setattr("dptally.ledger.store.time.sleep", lambda seconds: None)
    with pytest.raises(LedgerUnavailable, match="ask again with the same key"):
        ledger._store.write(down)


def test_an_ending_that_cannot_be_written_keeps_the_first_exception(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipt = ledger.spend("d", dp.PureDP(0.25))
    monkeypatch.setattr(Store, "write", lambda self, work: (_ for _ in ()).throw(LedgerUnavailable("gone")))
    with pytest.raises(ZeroDivisionError) as caught, receipt:
        1 / 0  # noqa: B018
    assert "could not be marked as burnt: gone" in caught.value.__notes__[0]
    with pytest.raises(LedgerUnavailable, match="gone"), receipt:
        pass
    assert receipt.state == "reserved"


def test_postgres_backends_may_be_killed_at_any_statement(postgres_url: str) -> None:
    import psycopg

    with Ledger.open(postgres_url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
        address = postgres_url.replace("postgresql+psycopg", "postgresql")
        for point in range(12):
            seen = iter(range(100))

            def kill(connection: sa.Connection, *_: object, seen: object = seen, point: int = point) -> None:
                if next(seen) == point:  # type: ignore[call-overload]
                    pid = connection.connection.dbapi_connection.info.backend_pid  # type: ignore[union-attr]
                    with psycopg.connect(address, autocommit=True) as admin:
                        admin.execute("SELECT pg_terminate_backend(%s)", [pid])

            event.listen(ledger._store.engine, "before_cursor_execute", kill)
            with ledger.spend("d", dp.PureDP(0.01)):
                pass
            event.remove(ledger._store.engine, "before_cursor_execute", kill)
        assert [entry.state for entry in ledger.history("d")] == ["released"] * 12
        ledger.verify()


# -- sharing
# ---------------------------------------------------------------------------------------------------


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    refused: list[LedgerError] = []

    def work() -> None:
        for _ in range(5):
            try:
                ledger.spend("d", dp.PureDP(1 / 16))
            except dp.BudgetExceeded as error:
                refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 4
    assert len(ledger.history("d")) == 16


def test_a_restored_backup_is_noticed(tmp_path: Path, sqlite_url: str) -> None:
    with Ledger.open(sqlite_url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
        ledger.spend("d", dp.PureDP(0.25))
    shutil.copy(tmp_path / "budget.db", tmp_path / "backup.db")
    with Ledger.open(sqlite_url, create=True) as ledger:
        ledger.spend("d", dp.PureDP(0.5))
        head = ledger.head()
    shutil.copy(tmp_path / "backup.db", tmp_path / "budget.db")
    with Ledger.open(sqlite_url, create=True) as restored:  # the chain alone cannot know
        restored.verify()
    with pytest.raises(RolledBack, match="old copy"):
        Ledger.open(sqlite_url, head=head)
    (tmp_path / "budget.db").unlink()
    with pytest.raises(RolledBack, match="another ledger"):
        Ledger.open(sqlite_url, head=head, create=True)
