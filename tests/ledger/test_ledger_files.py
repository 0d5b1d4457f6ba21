"""Contract: the file under a SQLite ledger is forked over, copied, cut, removed and replaced; nothing is lost."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ledger_workers import PLAN, Worker, finish, note, publish, start

import dptally as dp
from dptally.errors import InvalidArgument, LedgerUnavailable
from dptally.ledger import Ledger, guard

SOAK = bool(os.environ.get("DPTALLY_SOAK"))


@pytest.fixture
def ledger(sqlite_url: str) -> Ledger:
    made = Ledger.open(sqlite_url, create=True)
    made.create("d", budget=dp.PureDP(1e6))
    made.spend("d", PLAN, key="first").release()
    return made


def spend_some(ledger: Ledger, out: Path, name: str, number: int) -> None:
    for i in range(number):
        ledger.spend("d", PLAN, key=f"{name}-{i}").release()
        publish(str(out), f"{name}-{i}")
        time.sleep(random.uniform(0, 0.005))


def nothing_lost(url: str, out: Path) -> int:
    """How many acknowledged debits there are; all must be in a ledger that verifies."""
    acknowledged = set(out.read_text().split())
    with Ledger.open(url) as ledger:
        kept = {entry.key for entry in ledger.history("d")}
        assert acknowledged <= kept, f"{len(acknowledged - kept)} of {len(acknowledged)} debits were lost"
        ledger.verify()
    note("files", acknowledged=len(acknowledged), lost=len(acknowledged - kept))
    return len(acknowledged)


# -- forks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [True, False])
def test_a_parent_that_closes_takes_nothing_from_its_children(
    ledger: Ledger, sqlite_url: str, tmp_path: Path, own: bool
) -> None:
    out = tmp_path / "out"

    def child(name: str) -> None:
        mine = Ledger.open(sqlite_url) if own else ledger
        spend_some(mine, out, name, 5)

    workers = [start(child, f"c{i}") for i in range(5)]
    ledger.close()
    finish(workers)
    assert nothing_lost(sqlite_url, out) == 25


def test_a_fork_in_the_middle_of_a_transaction(ledger: Ledger, sqlite_url: str, tmp_path: Path) -> None:
    out, stop = tmp_path / "out", threading.Event()

    def spin() -> None:
        i = 0
        while not stop.is_set():
            ledger.spend("d", PLAN, key=f"t-{i}").release()
            publish(str(out), f"t-{i}")
            i += 1

    def child(i: int) -> None:
        mine = Ledger.open(sqlite_url) if i % 2 else ledger
        spend_some(mine, out, f"c{i}", 1)

    thread = threading.Thread(target=spin)
    thread.start()
    workers = []
    for i in range(100 if SOAK else 12):
        time.sleep(random.uniform(0, 0.01))
        workers.append(start(child, i))
    finish(workers)
    stop.set()
    thread.join()
    ledger.close()
    assert nothing_lost(sqlite_url, out) >= 12


def test_a_fork_that_python_does_not_see(ledger: Ledger, sqlite_url: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    workers = []
    for i in range(4):
        pid = ctypes.PyDLL(None).fork()
        if pid == 0:
            status = 1
            try:
                mine = Ledger.open(sqlite_url) if i % 2 else ledger
                spend_some(mine, out, f"c{i}", 3)
                status = 0
            finally:
                os._exit(status)
        workers.append(Worker(pid))
    spend_some(ledger, out, "parent", 3)
    ledger.close()
    finish(workers)
    assert nothing_lost(sqlite_url, out) == 15


@pytest.mark.parametrize("busy", ["reading", "exclusive_files"])
def test_a_child_of_an_open_transaction_is_refused(ledger: Ledger, sqlite_url: str, busy: str) -> None:
    """Forked by other means while a thread is at work: its SQLite cannot be trusted, and it says so at once."""
    script = f"""
import ctypes, os, sys, threading
import dptally as dp
from dptally.ledger import Ledger
ledger = Ledger.open({sqlite_url!r})
begun, over = threading.Event(), threading.Event()
def work():
    with ledger._store.{busy}():
        begun.set()
        over.wait()
thread = threading.Thread(target=work)
thread.start()
begun.wait()
try:
    pid = ctypes.PyDLL(None).fork()
    if pid == 0:
        try:
            Ledger.open({sqlite_url!r})
        except dp.LedgerUnavailable as error:
            os._exit(0 if "forked in the middle of a transaction" in str(error) else 1)
        os._exit(2)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
finally:
    over.set()
thread.join()
ledger.spend("d", dp.PureDP(1.0), key="parent")
sys.exit(code)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=25).returncode == 0
    assert "parent" in {entry.key for entry in ledger.history("d")}
    ledger.close()


# -- copies --------------------------------------------------------------------------------------------------


def copying(folder: Path, name: str, stop: threading.Event) -> threading.Thread:
    """Copy the files by hand in a loop, inside this process: every close drops its POSIX locks."""

    def work() -> None:
        while not stop.is_set():
            for suffix in ("", "-wal", "-shm", "-lock"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copy(folder / f"budget.db{suffix}", folder / f"{name}{suffix}")
            time.sleep(0.0005)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def spend_and_copy(url: str, folder: Path, out: Path, name: str, seconds: float, copies: bool) -> None:
    stop, end, i = threading.Event(), time.monotonic() + seconds, 0
    thread = copying(folder, f"copy-{name}", stop) if copies else None
    try:
        while time.monotonic() < end:
            with Ledger.open(url, timeout=60) as ledger:  # closing is the dangerous part
                for _ in range(random.randrange(1, 6)):
                    with ledger.spend("d", PLAN, key=f"{name}-{i}"):
                        pass
                    publish(str(out), f"{name}-{i}")
                    i += 1
                if random.random() < 0.1:
                    ledger.verify()
    finally:
        stop.set()
        if thread is not None:
            thread.join()


def test_copying_by_hand_loses_nothing(ledger: Ledger, sqlite_url: str, tmp_path: Path) -> None:
    out, seconds = tmp_path / "out", 60.0 if SOAK else 2.5
    ledger.close()
    finish([start(spend_and_copy, sqlite_url, tmp_path, out, f"w{i}", seconds, i < 2) for i in range(3)])
    assert nothing_lost(sqlite_url, out) > 5


def test_a_backup_is_made_while_others_spend(ledger: Ledger, sqlite_url: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    worker = start(lambda: spend_some(Ledger.open(sqlite_url), out, "w", 20))
    heads = []
    for i in range(4):
        heads.append(ledger.backup(tmp_path / f"backup-{i}.db"))
        time.sleep(0.02)
    finish([worker])
    for i, head in enumerate(heads):
        with Ledger.open(f"sqlite:///{tmp_path}/backup-{i}.db", head=head) as copy:
            assert copy.verify().head.chains == head.chains
    with pytest.raises(InvalidArgument, match="never replaces"):
        ledger.backup(tmp_path / "backup-0.db")
    with pytest.raises(InvalidArgument, match="directory"):
        ledger.backup(tmp_path / "no" / "x.db")
    with pytest.raises(dp.InvalidType):
        ledger.backup(3)  # type: ignore[arg-type]
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    ledger.close()


def test_postgres_is_backed_up_by_postgres(postgres_url: str, tmp_path: Path) -> None:
    with Ledger.open(postgres_url, create=True) as ledger, pytest.raises(LedgerUnavailable, match="pg_dump"):
        ledger.backup(tmp_path / "x.db")


# -- removed, replaced, cut ----------------------------------------------------------------------------------


def remove(path: Path) -> None:
    path.unlink()


def replace_by_copy(path: Path) -> None:
    shutil.copy(path, f"{path}.old")
    os.replace(f"{path}.old", path)


def remove_the_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def rename_away(path: Path) -> None:
    path.rename(f"{path}.away")


def overwrite_in_place(path: Path) -> None:
    old = path.read_bytes()
    time.sleep(0.02)
    path.write_bytes(old)


@pytest.mark.parametrize("harm", [remove, replace_by_copy, remove_the_log, rename_away, overwrite_in_place])
def test_a_file_that_is_taken_away_is_written_no_more(
    ledger: Ledger, sqlite_url: str, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    harm(tmp_path / "budget.db")
    with pytest.raises(LedgerUnavailable, match=r"removed or replaced.*nothing was debited"):
        ledger.spend("d", PLAN)
    if harm is remove:
        with pytest.raises(LedgerUnavailable, match="nothing was created"):
            Ledger.open(sqlite_url)
        with pytest.raises(LedgerUnavailable, match="write-ahead log is there"):
            Ledger.open(sqlite_url, create=True)
    ledger.close()


def test_a_file_that_others_have_open_in_another_state_is_not_opened(
    ledger: Ledger, sqlite_url: str, tmp_path: Path
) -> None:
    overwrite_in_place(tmp_path / "budget.db")
    code = f"import dptally as dp; dp.Ledger.open({sqlite_url!r})"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert "removed or replaced" in done.stderr
    ledger.close()
    Ledger.open(sqlite_url).verify()  # alone, it is taken as it is


def test_a_link_that_is_turned_to_another_file_is_noticed(ledger: Ledger, tmp_path: Path) -> None:
    ledger.backup(tmp_path / "other.db")
    (tmp_path / "link.db").symlink_to(tmp_path / "budget.db")
    with Ledger.open(f"sqlite:///{tmp_path}/link.db") as linked:
        linked.spend("d", PLAN)
        (tmp_path / "link.db").unlink()
        (tmp_path / "link.db").symlink_to(tmp_path / "other.db")
        with pytest.raises(LedgerUnavailable, match="removed or replaced"):
            linked.spend("d", PLAN)
    ledger.close()


# a log belongs to a name: under two names one file would have two logs, and two processes the whole budget each


def spend_elsewhere(url: str) -> str:
    """What another process says that spends the whole budget."""
    code = f"import dptally as dp; print(dp.Ledger.open({url!r}).spend('small', dp.PureDP(1.0)))"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def test_a_file_is_not_used_under_two_names(sqlite_url: str, tmp_path: Path) -> None:
    with Ledger.open(sqlite_url, create=True) as made:
        made.create("small", budget=dp.PureDP(1.0))
    with Ledger.open(sqlite_url) as ledger:
        os.link(tmp_path / "budget.db", tmp_path / "twin.db")
        assert "has 2 names (hard links)" in spend_elsewhere(f"sqlite:///{tmp_path}/twin.db")
        (tmp_path / "twin.db").unlink()
        (tmp_path / "budget.db").rename(tmp_path / "moved.db")
        (tmp_path / "budget.db").symlink_to(tmp_path / "moved.db")
        assert "in use under another name" in spend_elsewhere(sqlite_url)
        (tmp_path / "budget.db").unlink()
        (tmp_path / "moved.db").rename(tmp_path / "budget.db")
        assert spend_elsewhere(sqlite_url).startswith("Receipt")
        with pytest.raises(dp.BudgetExceeded):
            ledger.spend("small", dp.PureDP(1.0))


def test_the_name_that_a_killed_maker_left_is_taken_away(ledger: Ledger, sqlite_url: str, tmp_path: Path) -> None:
    ledger.close()
    os.link(tmp_path / "budget.db", tmp_path / ".budget.db.0123456789abcdef")
    Ledger.open(sqlite_url).close()
    assert not list(tmp_path.glob(".budget*"))


def test_after_a_fork_the_file_must_still_be_the_same(ledger: Ledger, sqlite_url: str, tmp_path: Path) -> None:
    finish([start(lambda: None)])  # the connections were closed for it
    (tmp_path / "budget.db").unlink()
    with pytest.raises(LedgerUnavailable, match="removed or replaced"):
        ledger.remaining("d")
    ledger.close()


def test_another_ledger_in_the_same_schema_is_noticed(postgres_url: str) -> None:
    with Ledger.open(postgres_url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
        with ledger._store.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE dptally_meta SET value = 'another' WHERE name = 'ledger'")
        with pytest.raises(LedgerUnavailable, match="another ledger was put in the place"):
            ledger.spend("d", dp.PureDP(0.5))


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("kept", [0, 1, 50, 100, 4096])
def test_a_file_that_was_cut_is_refused(
    ledger: Ledger, sqlite_url: str, tmp_path: Path, kept: int, create: bool
) -> None:
    ledger.close()
    os.truncate(tmp_path / "budget.db", kept)
    with pytest.raises(LedgerUnavailable):
        Ledger.open(sqlite_url, create=create)
    assert (tmp_path / "budget.db").stat().st_size == kept


def test_a_ledger_is_made_only_when_asked(sqlite_url: str, postgres_url: str, tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="create=True"):
        Ledger.open(sqlite_url)
    with pytest.raises(LedgerUnavailable, match="create=True"):
        Ledger.open(postgres_url)
    with pytest.raises(InvalidArgument, match="read-only"):
        Ledger.open(sqlite_url, create=True, read_only=True)
    assert [path for path in tmp_path.iterdir() if path.name != "budget.db-lock"] == []
    Ledger.open(sqlite_url, create=True).close()
    first = Ledger.open(sqlite_url).head().ledger
    assert Ledger.open(sqlite_url, create=True).head().ledger == first


def test_another_database_is_not_made_into_a_ledger(sqlite_url: str, tmp_path: Path) -> None:
    raw = sqlite3.connect(tmp_path / "budget.db")
    raw.execute("CREATE TABLE t (x)")
    raw.commit()
    raw.close()
    with pytest.raises(LedgerUnavailable, match="no ledger in the file"):
        Ledger.open(sqlite_url, create=True)


# -- the side file -------------------------------------------------------------------------------------------


def test_a_long_log_is_moved_into_the_file(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "budget.db-wal"
    monkeypatch.setattr("dptally.ledger.sqlite_file._LOG_LIMIT", 1)
    with ledger._store.reading():  # a reader keeps the log as it is
        ledger.spend("d", PLAN)
        assert log.stat().st_size > 0
    ledger.spend("d", PLAN)
    assert log.stat().st_size == 0
    monkeypatch.setattr("dptally.ledger.sqlite_file._LOG_FLOOD", 1)
    with ledger._store.reading():
        ledger.spend("d", PLAN)
    ledger.close()
    assert not log.exists()


def test_a_slow_holder_of_the_side_file_times_out(sqlite_url: str, tmp_path: Path) -> None:
    with Ledger.open(sqlite_url, create=True, timeout=0.2) as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
        other = guard.Guard(str(tmp_path / "budget.db"))  # as another process has it
        with other.writing(1.0):
            with pytest.raises(LedgerUnavailable, match="another process holds its lock; nothing was debited"):
                ledger.spend("d", dp.PureDP(0.1))
            assert ledger.remaining("d") >= 1  # reading does not wait
        ledger.spend("d", dp.PureDP(0.1))
        thread = threading.Thread(target=lambda: time.sleep(0))
        thread.start()
        thread.join()


def test_a_file_system_without_locks_is_refused(
    ledger: Ledger, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.spend("d", PLAN)
    real = fcntl.fcntl

    def without(descriptor: int, command: int, *more: Any) -> Any:
        if command == fcntl.F_OFD_SETLK:
            raise OSError(errno.ENOLCK, "No locks available")
        return real(descriptor, command, *more)

    with monkeypatch.context() as patched:
        patched.setattr("dptally.ledger.guard.fcntl.fcntl", without)
        for attempt in (
            lambda: ledger.spend("d", PLAN),
            lambda: ledger.history("d"),
            lambda: Ledger.open(sqlite_url),
            lambda: Ledger.open(f"sqlite:///{tmp_path}/new.db", create=True),
        ):
            with pytest.raises(LedgerUnavailable, match="keeps no locks"):
                attempt()
    assert len(ledger.history("d")) == 2


def test_a_side_file_that_is_removed_is_made_again(ledger: Ledger, sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "budget.db-lock").unlink()
    ledger.spend("d", PLAN)
    assert (tmp_path / "budget.db-lock").exists()
    other = Ledger.open(sqlite_url)
    other.spend("d", PLAN)
    other.close()
    ledger.close()


def test_a_ledger_that_is_forgotten_is_closed_at_the_end(sqlite_url: str, tmp_path: Path) -> None:
    script = f"""
import dptally as dp
ledger = dp.Ledger.open({sqlite_url!r}, create=True)
ledger.create("d", budget=dp.PureDP(1.0))
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert not (tmp_path / "budget.db-wal").exists()
    del_me = Ledger.open(sqlite_url)
    del_me.spend("d", dp.PureDP(0.5))
    del del_me
    with Ledger.open(sqlite_url) as ledger:
        assert len(ledger.history("d")) == 1
