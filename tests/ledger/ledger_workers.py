"""What the race and crash tests run in processes of their own."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import event

import dptally as dp
from dptally.ledger import Ledger, sqlite_file

PLAN = dp.PureDP(1.0)


@dataclass
class Worker:
    """A real process, forked from the warm test process; it opens connections of its own."""

    pid: int
    exitcode: int | None = None

    def join(self) -> int:
        """Wait for the end: the exit code, or minus the signal that killed it."""
        if self.exitcode is None:
            self.exitcode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.exitcode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        assert self.join() == -signal.SIGKILL


def start(target: Callable[..., object], *arguments: object) -> Worker:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns where the test runner has threads
        pid = os.fork()
    if pid:
        return Worker(pid)
    sys.settrace(None)  # the child is not measured: it is only to be fast
    status = 1
    try:
        target(*arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def finish(workers: Sequence[Worker]) -> None:
    assert [worker.join() for worker in workers] == [0] * len(workers)


def note(what: str, **figures: int) -> None:
    """What a test has tried, for docs/reliability.md: a line in the file that DPTALLY_FIGURES names, if any."""
    if path := os.environ.get("DPTALLY_FIGURES"):
        publish(path, json.dumps({"what": what, **figures}))


def publish(path: str, text: str) -> None:
    """Append one line durably: the world has seen it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_SYNC)
    os.write(descriptor, f"{text}\n".encode())
    os.close(descriptor)


def spend_many(url: str, out: str, worker: int, number: int) -> None:
    """Spend until done, publishing each receipt."""
    with Ledger.open(url, create=True, timeout=120) as ledger:
        for i in range(number):
            try:
                with ledger.spend("d", PLAN, by=f"w{worker}", key=f"{worker}-{i}") as receipt:
                    publish(out, f"{receipt.number} {receipt.hash}")
            except dp.BudgetExceeded:
                publish(out, "refused")


def retry_many(url: str, out: str, seed: int, number: int, keys: int) -> None:
    """Ask for the same few keys again and again; publish only what this process was charged for."""
    rng = random.Random(seed)
    with Ledger.open(url, create=True, timeout=120) as ledger:
        for _ in range(number):
            key = f"k{rng.randrange(keys)}"
            receipt = ledger.spend("d", PLAN, key=key)
            if not receipt.replayed:
                with receipt:
                    publish(out, key)


def open_many(url: str, out: str, worker: int) -> None:
    """Open a ledger that may not exist yet."""
    with Ledger.open(url, create=True, timeout=60) as ledger:
        publish(out, ledger.head().ledger)


def die_at(url: str, out: str, point: int, key: str) -> None:
    """Spend and publish, and be killed at the given point: before or after any statement or commit."""
    with Ledger.open(url, create=True) as ledger:
        seen = 0

        def reached(*_: object) -> None:
            nonlocal seen
            if seen == point:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

        if url.startswith("sqlite"):
            driver = sqlite_file.Connection
            for name in ("execute", "executemany", "commit"):
                setattr(driver, name, _watched(getattr(driver, name), reached))
        else:
            for name in ("begin", "before_cursor_execute", "after_cursor_execute", "commit", "checkin"):
                event.listen(ledger._store.engine, name, reached)
        with ledger.spend("d", PLAN, key=key):
            reached()
            publish(out, key)
            reached()
        reached()
    publish(f"{out}.survived", key)


def _watched(method: Callable[..., object], reached: Callable[[], None]) -> Callable[..., object]:
    def watched(*given: object) -> object:
        reached()
        done = method(*given)
        reached()
        return done

    return watched


def spend_until_killed(url: str, out: str, life: int) -> None:
    with Ledger.open(url, create=True, timeout=60) as ledger:
        publish(f"{out}.started", str(life))
        i = 0
        while True:
            with ledger.spend("d", PLAN, key=f"{life}-{i}"):
                publish(out, f"{life}-{i}")
            i += 1
