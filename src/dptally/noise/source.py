"""Where the randomness comes from: the operating system, and nothing else.

There is no seed and no way to set one. Bytes are fetched in blocks because a system call costs more than the
bytes it brings. A block belongs to one thread, is dropped in the child after a fork (parent and child must
not share noise), and is never written anywhere: the source refuses to be pickled or copied.
"""

from __future__ import annotations

import os
import threading
from typing import NoReturn, Protocol

__all__ = ["SYSTEM", "ByteSource", "SystemBytes"]

BLOCK = 1 << 14


class ByteSource(Protocol):
    """Anything that hands out independent uniform bytes. Only tests have another one than the system's."""

    def take(self, count: int) -> bytes: ...


class SystemBytes(threading.local):
    """``os.urandom`` with a buffer per thread; each byte is handed out once.

    >>> len(SystemBytes().take(5))
    5
    """

    def __init__(self) -> None:
        self._block = b""
        self._used = 0

    def take(self, count: int) -> bytes:
        start = self._used
        end = start + count
        if end <= len(self._block):
            self._used = end
            return self._block[start:end]
        if count >= BLOCK:
            return os.urandom(count)
        self._block = os.urandom(BLOCK)
        self._used = count
        return self._block[:count]

    def drop(self) -> None:
        """Forget what is buffered."""
        self._block = b""
        self._used = 0

    def __reduce__(self) -> NoReturn:
        raise TypeError("a source of randomness is never copied: two copies would draw the same noise")


SYSTEM = SystemBytes()
os.register_at_fork(after_in_child=SYSTEM.drop)
