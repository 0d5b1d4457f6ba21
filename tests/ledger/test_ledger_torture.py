"""Contract: recorded histories of racing, killed, stopped and disturbed clients are strictly serialisable.

0 lost, 0 overspent, 0 unpaid: every acknowledged debit is in the ledger, no cap is passed, nothing is published
without a debit. Short here; ``make soak`` runs the same for longer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from ledger_workers import Worker, finish, note, publish, start
from serialisability import Account, Operation, explained

import dptally as dp
from conftest import _binaries, _unprivileged
from dptally.errors import LedgerUnavailable, NotReleasable
from dptally.ledger import Ledger
from dptally.ledger.store import Store

SOAK = bool(os.environ.get("DPTALLY_SOAK"))
CAP = 60


# -- the checker itself --------------------------------------------------------------------------------------


def test_the_checker_accepts_what_is_serial_and_rejects_what_is_not() -> None:
    paid = Operation(0, 1, "a", 3, "paid", 1)
    start = Account(5)
    assert explained([paid, Operation(2, 3, "b", 3, "refused")], start)
    assert explained([paid, Operation(0.5, 2, "b", 3, "refused")], start)
    assert not explained([Operation(2, 3, "a", 3, "paid", 1), Operation(0, 1, "b", 3, "refused")], start)  # too early
    assert not explained([paid, Operation(2, 3, "b", 3, "paid", 2)], start)  # overspent
    assert not explained([paid, Operation(2, 3, "a", 3, "paid", 2)], start)  # charged twice
    assert not explained([paid, Operation(2, 3, "b", 1, "replayed", 1)], start)  # replayed from nowhere
    assert explained([paid, Operation(0, 9, "b", 2, "lost")], start)
    assert explained([Operation(0, 1, "b", 3, "lost"), Operation(5, 6, "c", 3, "refused")], start)
    assert explained([Operation(0, 1, "b", 3, "lost"), Operation(5, 6, "c", 3, "paid", 1)], start)
    assert not explained([paid], start, ())  # acknowledged and not there
    assert not explained([paid], start, ("a", "b"))  # there and never asked for
    assert explained([paid, Operation(0, 9, "b", 2, "lost")], start, ("a", "b"))


# -- recording -----------------------------------------------------------------------------------------------


def recorded(url: str, out: Path, name: str, number: int, seed: int, keys: int, started: Path | None = None) -> None:
    """Spend at random and record call, return and answer of each operation; ``started`` is made after the first."""
    rng = random.Random(seed)
    with Ledger.open(url, timeout=60) as ledger:
        for i in range(number):
            key = f"k{rng.randrange(keys)}" if rng.random() < 0.3 else f"{name}-{i}"
            cost = 1 if key.startswith("k") else rng.randrange(1, 4)
            called = time.monotonic()
            publish(str(out), json.dumps(["call", name, i, called, key, cost]))
            answer, entry = "paid", 0
            try:
                receipt = ledger.spend("d", dp.PureDP(float(cost)), key=key)
                answer, entry = "replayed" if receipt.replayed else "paid", receipt.number
            except dp.BudgetExceeded:
                answer = "refused"
            except LedgerUnavailable:
                answer = "lost"
            returned = time.monotonic()
            publish(str(out), json.dumps(["return", name, i, returned, answer, entry]))
            if started is not None and i == 0:
                publish(str(started), name)
            if answer == "paid":
                with contextlib.suppress(LedgerUnavailable):  # not settled: then it is not published
                    receipt.release(i)
                    publish(f"{out}.published", key)
            elif answer == "lost":
                time.sleep(0.1)


def history_of(out: Path) -> list[Operation]:
    calls: dict[tuple[str, int], tuple[float, str, int]] = {}
    returns: dict[tuple[str, int], tuple[float, str, int]] = {}
    for line in out.read_text().splitlines():
        what, name, i, at, *rest = json.loads(line)
        (calls if what == "call" else returns)[name, i] = (at, *rest)
    found = []
    for place, (called, key, cost) in calls.items():
        returned, answer, number = returns.get(place, (float("inf"), "lost", 0))
        found.append(Operation(called, returned, key, cost, answer, number))
    return found


def judge(url: str, out: Path) -> list[Operation]:
    """The history is explained, ends in the entries that are there, and nothing was published unpaid."""
    history = history_of(out)
    with Ledger.open(url) as ledger:
        entries = ledger.history("d")
        ledger.verify(prices=True)
        paid = tuple(entry.key or "" for entry in entries)
        assert sum(round(entry.cost) for entry in entries) <= CAP
        assert {op.key for op in history if op.answer == "paid"} <= set(paid)
        numbers = {entry.key: entry.number for entry in entries}
        assert all(numbers[op.key] == op.number for op in history if op.answer in ("paid", "replayed"))
        published = Path(f"{out}.published")
        assert set(published.read_text().split() if published.exists() else []) <= set(paid)
        assert explained(history, Account(CAP), paid)
    note("histories", operations=len(history), paid=len(paid), lost_answers=sum(op.answer == "lost" for op in history))
    return history


@pytest.fixture
def made(url: str) -> str:
    with Ledger.open(url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(float(CAP)))
    return url


class Careless:
    """An account that reads, waits and writes without a lock: it loses updates and overspends."""

    def __init__(self, cap: int, lock: contextlib.AbstractContextManager[Any]) -> None:
        self.cap, self.lock, self.entries = cap, lock, []  # type: ignore[var-annotated]

    def spend(self, key: str, cost: int) -> str:
        with self.lock:
            found = list(self.entries)
            time.sleep(0.001)
            if any(key == one for one, _ in found):
                return "replayed"
            if sum(paid for _, paid in found) + cost > self.cap:
                return "refused"
            self.entries = [*found, (key, cost)]
            return "paid"


@pytest.mark.parametrize("careful", [True, False])
def test_the_checker_finds_lost_updates_in_a_recorded_race(careful: bool) -> None:
    account = Careless(20, threading.Lock() if careful else contextlib.nullcontext())
    history: list[Operation] = []

    def client(name: str) -> None:
        rng = random.Random(name)
        for i in range(6):
            key, cost = rng.choice([f"k{i}", f"{name}-{i}"]), 2
            called = time.monotonic()
            answer = account.spend(key, cost)
            history.append(Operation(called, time.monotonic(), key, cost, answer))

    threads = [threading.Thread(target=client, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert explained(history, Account(20), tuple(key for key, _ in account.entries)) is careful


def test_the_checker_finds_what_is_planted_in_a_recorded_history(made: str, tmp_path: Path) -> None:
    out = tmp_path / "history"
    finish([start(recorded, made, out, f"w{i}", 12, i, 4) for i in range(3)])
    history = judge(made, out)
    with Ledger.open(made) as ledger:
        paid = tuple(entry.key or "" for entry in ledger.history("d"))
    assert explained(history, Account(CAP), paid)
    assert not explained(history, Account(CAP), paid[:-1])  # a debit that was acknowledged is gone
    assert not explained(history, Account(CAP), paid[1:])
    assert not explained(history, Account(CAP), (*paid, "nobody"))  # one that nobody asked for
    assert not explained(history, Account(CAP), paid[::-1])  # another order than that of time
    assert not explained(history, Account(CAP - sum(op.cost for op in history if op.answer == "paid")), paid)
    for place, one in enumerate(history):
        if one.answer in ("refused", "replayed"):  # paid beyond the cap, or paid twice
            forged = [*history[:place], dataclasses.replace(one, answer="paid"), *history[place + 1 :]]
            assert not explained(forged, Account(CAP), paid)


# -- disturbances --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10 if SOAK else 2))
def test_racing_clients(made: str, tmp_path: Path, seed: int) -> None:
    out = tmp_path / "history"
    finish([start(recorded, made, out, f"w{i}", 12, 100 * seed + i, 5) for i in range(4)])
    history = judge(made, out)
    assert {operation.answer for operation in history} >= {"paid", "replayed"}


def test_killed_stopped_and_slow_clients(made: str, tmp_path: Path) -> None:
    out, rng = tmp_path / "history", random.Random(3)
    for round_ in range(20 if SOAK else 3):
        started = tmp_path / f"started-{round_}"
        workers = [start(recorded, made, out, f"r{round_}w{i}", 6, 10 * round_ + i, 5, started) for i in range(3)]
        while not started.exists():
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.1))
        os.kill(workers[0].pid, signal.SIGSTOP)  # perhaps while it holds the lock
        os.kill(workers[1].pid, signal.SIGKILL)
        time.sleep(0.15)
        os.kill(workers[0].pid, signal.SIGCONT)
        assert workers[0].join() == 0
        assert workers[1].join() in (0, -signal.SIGKILL)
        finish(workers[2:])
    judge(made, out)


def test_swallowed_answers_of_commits(made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit happened, and its answer is lost on the way, sometimes again and again."""
    out, rng, real = tmp_path / "history", random.Random(5), Store._write_once

    def flaky(store: Store, work: Callable[[sa.Connection], object]) -> object:
        if rng.random() < 0.1:
            raise _lost()
        done = real(store, work)
        if rng.random() < 0.4:
            raise _lost()
        return done

    monkeypatch.setattr(Store, "_write_once", flaky)
    monkeypatch.setattr("dptally.ledger.store.time.sleep", lambda seconds: None)
    recorded(made, out, "w", 100 if SOAK else 25, 1, 5)
    monkeypatch.undo()
    judge(made, out)


def _lost() -> LedgerUnavailable:
    error = LedgerUnavailable("the connection is lost")
    error.retry = True  # type: ignore[attr-defined]
    return error


def test_a_clock_that_jumps(made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time decides nothing but expiry: entries stay in their order, and a reservation never comes back."""
    from datetime import UTC, datetime

    moments = iter(datetime(year, 1, 1, tzinfo=UTC) for year in (2030, 1999, 2050, 2026) * 50)
    monkeypatch.setattr("dptally.ledger.debit.now", lambda: next(moments))
    with Ledger.open(made) as ledger:
        for i in range(6):
            ledger.spend("d", dp.PureDP(1.0), key=f"k{i}").release()
        expired = ledger.spend("d", dp.PureDP(1.0), expires=1)
        monkeypatch.setattr("dptally.ledger.debit.now", lambda: datetime(2099, 1, 1, tzinfo=UTC))
        with pytest.raises(NotReleasable, match="expired"):
            expired.release(1)
        monkeypatch.setattr("dptally.ledger.debit.now", lambda: datetime(2000, 1, 1, tzinfo=UTC))
        with pytest.raises(NotReleasable):
            expired.release(1)
        assert [entry.number for entry in ledger.history("d")] == sorted(e.number for e in ledger.history("d"))
        ledger.verify()


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 2 MiB, where the machine lets us mount one."""
    folder = Path(tempfile.mkdtemp())
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        shutil.rmtree(folder)
        pytest.skip("no small file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_full_disk_refuses_and_keeps_what_was_paid(small_disk: Path) -> None:
    url, paid, refused = f"sqlite:///{small_disk}/budget.db", [], 0
    with Ledger.open(url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(1e6))
        for i in range(3_000):
            try:
                ledger.spend("d", dp.PureDP(1.0), key=f"k{i}", why="x" * 1_500)
                paid.append(f"k{i}")
            except LedgerUnavailable:
                refused += 1
                if refused > 5:
                    break
        assert refused > 5
        assert [entry.key for entry in ledger.history("d")] == paid
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    with Ledger.open(url) as ledger:
        ledger.verify()
        assert [entry.key for entry in ledger.history("d")] == paid
        ledger.spend("d", dp.PureDP(1.0))


def test_a_file_that_may_not_grow(tmp_path: Path, sqlite_url: str) -> None:
    """The same without a mount: the process may write only so much to a file."""
    out = tmp_path / "paid"

    def child() -> None:
        import resource

        with Ledger.open(sqlite_url, create=True) as ledger:
            ledger.create("d", budget=dp.PureDP(1e6))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
            for i in range(500):
                try:
                    ledger.spend("d", dp.PureDP(1.0), key=f"k{i}", why="x" * 1_500)
                except LedgerUnavailable:
                    publish(str(out), "refused")
                    os._exit(0)
                publish(str(out), f"k{i}")

    finish([start(child)])
    *paid, last = out.read_text().split()
    assert last == "refused"
    with Ledger.open(sqlite_url) as ledger:
        ledger.verify()
        assert set(paid) <= {entry.key for entry in ledger.history("d")}
        ledger.spend("d", dp.PureDP(1.0))


# -- PostgreSQL: backends and servers that die ----------------------------------------------------------------


class Server:
    """A PostgreSQL server of its own, which may be killed and started again."""

    def __init__(self, folder: str) -> None:
        self.folder, self.user = folder, _unprivileged()
        self.binaries = _binaries()
        if self.binaries is None:
            pytest.skip("PostgreSQL IS NOT INSTALLED: the ledger's PostgreSQL tests did not run")
        if self.user is not None:
            shutil.chown(folder, self.user)
        self.run("initdb", "-U", "ledger", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()

    def run(self, program: str, *words: str) -> None:
        command = [f"{self.binaries}/{program}", "-D", f"{self.folder}/data", *words]
        done = subprocess.run(command, user=self.user, cwd=self.folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}'"
        self.run("pg_ctl", "-o", options, "-l", f"{self.folder}/log", "-w", "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-m", "immediate", "-w", "stop")  # as a crash: no checkpoint, no goodbye

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://ledger@/postgres?host={self.folder}"


@pytest.fixture
def server() -> Iterator[Server]:
    folder = tempfile.mkdtemp(prefix="dptally-pg-")
    made = Server(folder)
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_postgres_that_crashes_and_backends_that_are_killed(server: Server, tmp_path: Path) -> None:
    import psycopg

    out, rng = tmp_path / "history", random.Random(9)
    with Ledger.open(server.url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(float(CAP)))
    for round_ in range(10 if SOAK else 2):
        started = tmp_path / f"started-{round_}"
        workers: list[Worker] = [
            start(recorded, server.url, out, f"r{round_}w{i}", 12, 10 * round_ + i, 5, started) for i in range(3)
        ]
        while not started.exists():
            time.sleep(0.005)
        for _ in range(5):
            time.sleep(rng.uniform(0, 0.03))
            with psycopg.connect(f"host={server.folder} user=ledger dbname=postgres", autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                    "AND backend_type = 'client backend'"
                )
        server.stop()
        server.start()
        for worker in workers:
            worker.join()  # one that gave up while the server was away has recorded that its answer is lost
    history = judge(server.url, out)
    assert any(operation.answer == "paid" for operation in history)
