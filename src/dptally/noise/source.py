"""Where the randomness comes from: the operating system, and nothing else.

There is no seed and no way to set one. Bytes are fetched in small blocks because a system call costs more than
the bytes it brings, and what is left of a block is forgotten when the draw ends: between two draws there is
nothing that a copy of the process could draw again. Within a draw every byte that is handed out is preceded by a
check that this is still the process that fetched the block: its id, a counter that forks in Python advance, and a
page that the kernel wipes in a child where it can, however the child was made. The source refuses to be pickled
or copied.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
from typing import NoReturn, Protocol

__all__ = ["SYSTEM", "ByteSource", "SystemBytes", "forget"]

BLOCK = 256
_WIPE_ON_FORK = 18  # MADV_WIPEONFORK, Linux 4.14 and later


class ByteSource(Protocol):
    """Anything that hands out independent uniform bytes. Only tests have another one than the system's."""

    def take(self, count: int) -> bytes: ...


def _wiped_page() -> mmap.mmap | None:
    """A page that holds a 1 here and a 0 in every child; None where the system has no such pages."""
    if not sys.platform.startswith("linux"):
        return None
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        page.madvise(_WIPE_ON_FORK)
    except OSError:
        page.close()
        return None
    page[0] = 1
    return page


class _Generation:
    """Which copy of the process this is: ``forks`` changes with every fork that can be noticed."""

    __slots__ = ("forks", "page")

    def __init__(self) -> None:
        self.forks = 0
        self.page = _wiped_page()

    def wiped(self) -> bool:
        """Whether the kernel made a child of us unseen; the page is then written again."""
        if self.page is None or self.page[0] == 1:
            return False
        self.page[0] = 1
        self.forks += 1
        return True


_GENERATION = _Generation()


class SystemBytes(threading.local):
    """``os.urandom`` with a small buffer per thread; each byte is handed out once, and in one process.

    >>> len(SystemBytes().take(5))
    5
    """

    def __init__(self) -> None:
        self._block = b""
        self._used = 0
        self._process = 0
        self._forks = 0

    def take(self, count: int) -> bytes:
        end = self._used + count
        if end <= len(self._block) and self._is_ours():
            self._used, start = end, self._used
            return self._block[start:end]
        if count >= BLOCK:
            return os.urandom(count)
        _GENERATION.wiped()
        self._process, self._forks = os.getpid(), _GENERATION.forks
        self._block, self._used = os.urandom(BLOCK), count
        return self._block[:count]

    def _is_ours(self) -> bool:
        """Whether this process, and no copy of it, fetched the block."""
        return not _GENERATION.wiped() and self._forks == _GENERATION.forks and self._process == os.getpid()

    def drop(self) -> None:
        """Forget what is buffered."""
        self._block = b""
        self._used = 0

    def __reduce__(self) -> NoReturn:
        raise TypeError("a source of randomness is never copied: two copies would draw the same noise")


SYSTEM = SystemBytes()


def forget(source: ByteSource) -> None:
    """Called when a draw ends: nothing stays in the system's buffer."""
    if source is SYSTEM:
        SYSTEM.drop()


def _after_fork() -> None:
    _GENERATION.forks += 1
    SYSTEM.drop()


os.register_at_fork(after_in_child=_after_fork)
