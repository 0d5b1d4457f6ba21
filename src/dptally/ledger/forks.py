"""No SQLite connection crosses a fork.

SQLite keeps a table of its open files and locks in memory. A child inherits the table but not the locks: it
believes in locks that it does not hold. So before a fork the running transactions are waited for and every
idle connection is closed; parent and child open new ones when they need them. A fork that goes around Python
is noticed by its process id: idle connections are closed then. Where a transaction was open at such a fork
nothing helps, and the child is refused.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from dptally.errors import LedgerUnavailable
from dptally.ledger import guard

__all__ = ["inside", "register"]

_PATIENCE = 60.0  # seconds that a fork waits for the transactions of other threads


class Handle(Protocol):
    """What a store does at a fork."""

    def let_go(self) -> None:
        """In the parent, before a fork: close the idle connections."""

    def start_anew(self, idle: bool) -> None:
        """In the child: drop what was inherited, which no transaction uses if ``idle``."""

    def close(self) -> None:
        """At the end of the process."""


class _Gate:
    """The transactions of this process, counted; a fork waits until there are none."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.changed = threading.Condition()
        self.running = 0
        self.forking = 0
        self.mine = threading.local()
        self.tainted = False

    def depth(self) -> int:
        return getattr(self.mine, "depth", 0)

    def enter(self) -> None:
        with self.changed:
            while self.forking and not self.depth():
                self.changed.wait()
            self.running += 1
        self.mine.depth = self.depth() + 1

    def leave(self) -> None:
        self.mine.depth = self.depth() - 1
        with self.changed:
            self.running -= 1
            self.changed.notify_all()

    def close_for_fork(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        with self.changed:
            self.forking += 1
            while self.running > self.depth() and time.monotonic() < deadline:
                self.changed.wait(deadline - time.monotonic())


_gate = _Gate()
_handles: weakref.WeakSet[Handle] = weakref.WeakSet()


def register(handle: Handle) -> None:
    _handles.add(handle)


@contextmanager
def inside() -> Iterator[None]:
    """Every use of a connection happens in here."""
    if _gate.pid != os.getpid():
        _in_child()  # the fork was made by other means than Python's
    if _gate.tainted:
        raise LedgerUnavailable(
            "this process was forked in the middle of a transaction of a ledger, so it cannot use a SQLite ledger; "
            "nothing was debited. Fork while no spend is under way, or start workers with 'spawn' or 'forkserver'"
        )
    _gate.enter()
    try:
        yield
    finally:
        _gate.leave()


def _before() -> None:
    _gate.close_for_fork()
    if not _gate.running:
        for handle in list(_handles):
            handle.let_go()


def _in_parent() -> None:
    with _gate.changed:
        _gate.forking -= 1
        _gate.changed.notify_all()


def _in_child() -> None:
    global _gate
    idle = not _gate.tainted and _gate.running == 0
    _gate = _Gate()
    _gate.tainted = not idle
    guard.forget_mutex()
    for one in guard.guards():
        one.after_fork()
    for handle in list(_handles):
        handle.start_anew(idle)


def _at_exit() -> None:
    for handle in list(_handles):
        handle.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
atexit.register(_at_exit)
