"""Where questions are answered: processes of their own, each question with a budget of time and memory.

A plan from outside may cost any amount of work. What is not answered in time is ended with its process, and another
process takes its place; so no question can hold the page or its other readers for longer than that.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from collections import OrderedDict
from collections.abc import Hashable
from multiprocessing.connection import Connection
from queue import Empty, Queue
from threading import Lock
from typing import Any, Protocol

from dptally.errors import DptallyError

__all__ = ["NO_LEDGER", "Inline", "Refusal", "Runner", "Workers"]

NO_LEDGER = "this server was started without a ledger; write: dptally serve --ledger URL"

#: what may be asked: name -> module; a closed list, whatever a request says
TASKS = {
    "quick": "dptally.web.explorer",
    "more": "dptally.web.explorer",
    "samplers": "dptally.web.explorer",
    "noise": "dptally.web.explorer",
    "epsilon": "dptally.web.explorer",
    "card": "dptally.web.explorer",
    "bibtex": "dptally.web.explorer",
    "opinion": "dptally.web.opinions",
    "price": "dptally.web.accounts",
    "preview": "dptally.web.queries",
}
_PASSING = ("price", "preview")  # they say what is left, which changes
_MEMORY = 3 * 2**30  # bytes that a worker may use, where the system can limit it
_REMEMBERED = 512
_LARGEST_REMEMBERED = 20_000  # characters of a question


class Refusal(Exception):
    """A question that has no answer: ``status`` is that of the response."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Runner(Protocol):
    """Answers a task by name; raises :class:`Refusal`."""

    def start(self) -> None: ...
    def ask(self, task: str, *arguments: Hashable) -> Any: ...
    def close(self) -> None: ...


def answered(task: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    """("answer", value), or ("refused", why)."""
    try:
        return "answer", getattr(importlib.import_module(TASKS[task]), task)(*arguments)
    except DptallyError as error:
        return "refused", str(error)
    except (MemoryError, RecursionError):
        return "too large", ""


class Inline:
    """Answers in the caller's own thread, without a budget: for tests."""

    def start(self) -> None:
        """Nothing is needed."""

    def ask(self, task: str, *arguments: Hashable) -> Any:
        return _value(answered(task, arguments))

    def close(self) -> None:
        """Nothing is held."""


def _value(answer: tuple[str, Any]) -> Any:
    kind, value = answer
    if kind == "refused":
        raise Refusal(400, value)
    if kind == "too large":
        raise Refusal(413, "the question needs more memory than it may use; ask for less at once")
    return value


class Workers:
    """So many processes; answers are remembered."""

    def __init__(self, number: int, seconds: float) -> None:
        self._seconds = seconds
        self._free: Queue[_Worker | None] = Queue()
        for _ in range(number):
            self._free.put(None)
        self._known: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._lock = Lock()

    def start(self) -> None:
        """Have every process ready before the first question comes."""
        for _ in range(self._free.qsize()):
            self._free.put(self._free.get() or _Worker())

    def ask(self, task: str, *arguments: Hashable) -> Any:
        key = (task, *arguments)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        value = _value(self._answer(task, arguments))
        if task not in _PASSING and sum(len(str(part)) for part in arguments) <= _LARGEST_REMEMBERED:
            with self._lock:
                self._known[key] = value
                while len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
        return value

    def _answer(self, task: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
        try:
            worker = self._free.get(timeout=self._seconds)
        except Empty:
            raise Refusal(503, "the server is busy with other questions; ask again in a moment") from None
        keep: _Worker | None = None
        try:
            worker = worker or _Worker()
            answer = worker.ask(task, arguments, self._seconds)
            keep = worker
            return answer
        finally:
            self._free.put(keep)
            if keep is None and worker is not None:
                worker.end()

    def close(self) -> None:
        """End every process that is not at work; those at work end with the server."""
        while True:
            try:
                worker = self._free.get_nowait()
            except Empty:
                return
            if worker is not None:
                worker.end()


class _Worker:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        context = _context()
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._fresh = True

    def ask(self, task: str, arguments: tuple[Any, ...], seconds: float) -> tuple[str, Any]:
        patience = seconds + (20.0 if self._fresh else 0.0)  # a new process loads its modules first
        self._fresh = False
        try:
            self._pipe.send((task, arguments))
            if not self._pipe.poll(patience):
                raise Refusal(503, f"the question took more than {seconds:g} s of work and was ended; ask for less")
            found: tuple[str, Any] = self._pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise Refusal(500, "the question ended its process; the server's log has the reason") from None
        return found

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _context() -> Any:
    """Processes that share nothing with the server; a fork server has the modules loaded, where there is one."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(sorted(set(TASKS.values())))
    return context


def _work(pipe: Connection) -> None:  # pragma: no cover - runs in a process of its own
    """Answer until the other end is closed."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    while True:
        try:
            task, arguments = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        pipe.send(answered(task, arguments))
