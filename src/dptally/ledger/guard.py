"""A lock beside a SQLite file that no stray ``close`` can drop.

SQLite guards its files with POSIX locks, and these belong to a process and a file: when *any* descriptor of
the file is closed in the process (``shutil.copy``, a checksum, a backup tool) all of them are dropped, without
a word. So this ledger does not rest on them:

- every open, write, checkpoint and close holds the first byte of the side file ``<file>-lock``;
- every read shares its second byte, which a checkpoint needs for itself (it skips its turn if it cannot);
- the side file records size and time of the database after every checkpoint, so a file that was overwritten in
  place is noticed;
- while a process has the ledger open it holds *pins*: shared locks on the bytes by which SQLite finds out
  whether it is the last user. So nobody deletes the write-ahead log, or makes its index anew, under another;
- one pin more, on a byte of the database that its name gives, tells whether anybody uses the file under another
  name (a hard link, a link that was turned, a mount): that one would keep a log of its own.

All of these are locks of an open file description (F_OFD_SETLK), which only its own close ends. Where the system
has none (outside Linux) the side file is locked by ``flock`` and the rest is left to SQLite.
"""

from __future__ import annotations

import os
import random
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from dptally.errors import LedgerUnavailable

if TYPE_CHECKING:
    import fcntl
else:
    try:
        import fcntl
    except ImportError:  # pragma: no cover  (Windows: its locks belong to a handle, and a file in use stays)
        fcntl = None

__all__ = ["Guard", "guard_of", "identity_of"]

_OFD = sys.platform == "linux" and hasattr(fcntl, "F_OFD_SETLK")
_WRITE, _READ, _USERS = 0, 1, 2  # bytes of the side file; a process that has the ledger open shares the last
_RECORD = 16  # where the side file records the database
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510  # of the database: held shared by every SQLite connection
_DEAD_MAN = 128  # of the -shm file: held shared by every process that maps it
_NAMES, _MOST_NAMES = 1 << 40, 1 << 32  # of the database, far beyond its end: held shared by the users of each name


class Guard:
    """The side file of one database, as one process uses it. Writers and readers are counted by thread."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.path = f"{database}-lock"
        self._log, self._index = f"{database}-wal", f"{database}-shm"
        self.connections = 0  # of this process, open
        self.inherited = False  # they came with a fork
        self._begin()

    def _begin(self) -> None:
        """The state of a process that holds nothing."""
        self.pid = os.getpid()
        self._mutex = threading.RLock()  # one writer of this process at a time
        self._depth = 0
        self._count = threading.Lock()
        self._readers = 0
        self._writing: int | None = None
        self._reading: int | None = None
        self._pins: list[int] = []
        self.files: tuple[tuple[int, int] | None, ...] = ()

    def after_fork(self) -> None:
        """In a child: what was inherited belongs to the parent. Closing these descriptors drops no lock of
        the parent, as it still has them open; locking them would share the parent's locks.
        """
        self.inherited = self.connections > 0
        for descriptor in (self._writing, self._reading, *self._pins):
            if descriptor is not None:
                os.close(descriptor)
        self._begin()

    # -- the side file ---------------------------------------------------------------------------------------

    def is_laid(self) -> bool:
        return os.path.lexists(self.path)

    def clear(self) -> None:
        """Called while writing, where there is no database: take the side file away. Whoever waits for its lock sees
        that it was replaced, and takes that of the next one.
        """
        if not os.path.lexists(self.database):
            with suppress(OSError):
                os.unlink(self.path)

    @contextmanager
    def writing(self, timeout: float) -> Iterator[None]:
        """Alone among all who open, write, checkpoint or close. Reentrant."""
        if not self._mutex.acquire(timeout=timeout):
            raise _locked()
        try:
            if self._depth == 0:
                self._take("_writing", _WRITE, timeout)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0 and self._writing is not None:
                    _lock(self._writing, _WRITE, None)
        finally:
            self._mutex.release()

    @contextmanager
    def reading(self, timeout: float) -> Iterator[None]:
        """No checkpoint moves pages while this lasts; writers go on."""
        if not _OFD:  # pragma: no cover
            yield
            return
        with self._count:
            if self._readers == 0:
                self._take("_reading", _READ, timeout, shared=True)
            self._readers += 1
        try:
            yield
        finally:
            with self._count:
                self._readers -= 1
                if self._readers == 0 and self._reading is not None:
                    _lock(self._reading, _READ, None)

    @contextmanager
    def without_readers(self) -> Iterator[bool]:
        """Whether no reader is there, in this process or another; none may begin while this lasts."""
        if not _OFD:  # pragma: no cover
            yield True
            return
        with self._count:
            if self._readers:
                yield False
                return
            self._reading = self._opened(self._reading)
            if self._reading is None or not _lock(self._reading, _READ, exclusive=True):
                yield False
                return
            try:
                yield True
            finally:
                _lock(self._reading, _READ, None)

    def _take(self, which: str, byte: int, timeout: float, shared: bool = False) -> None:
        """Lock a byte through the descriptor of this name, which is opened where it is not the side file's."""
        deadline = time.monotonic() + timeout
        pause = 0.0002
        while True:
            descriptor: int | None = getattr(self, which)
            if descriptor is None:
                descriptor = self._opened(None)
                setattr(self, which, descriptor)
            if descriptor is None:
                return
            taken = _lock(descriptor, byte, exclusive=not shared)
            if not _names(self.path, descriptor):  # the side file was replaced: its locks are nobody's any more
                setattr(self, which, None)
                os.close(descriptor)
                continue
            if taken:
                return
            if time.monotonic() > deadline:
                raise _locked()
            time.sleep(random.uniform(pause / 2, pause))
            pause = min(pause * 1.5, 0.005)

    def _opened(self, descriptor: int | None) -> int | None:
        """A descriptor of the side file that is there now; None where it can neither be made nor opened."""
        if fcntl is None:  # pragma: no cover
            return None
        if descriptor is not None:
            if _names(self.path, descriptor):
                return descriptor
            os.close(descriptor)
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _mode(self.database))
        except OSError as error:
            if os.access(self.database, os.W_OK) and os.path.exists(self.database):
                raise LedgerUnavailable(
                    f"the side file {self.path!r} that guards the ledger cannot be opened ({error.strerror})"
                ) from None
            return None  # a reader of a file that it may not write cannot harm it

    # -- pins ------------------------------------------------------------------------------------------------

    def pin(self) -> None:
        """Called while writing, when SQLite has the files open: nobody takes them away from now on."""
        if self._pins or not _OFD:
            self.files = self.files or self.present()
            return
        self._accept()
        for path, first, size in (
            (self.database, _SHARED_FIRST, _SHARED_SIZE),
            (self._index, _DEAD_MAN, 1),
        ):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue  # a read-only file without a log has nothing to pin
            self._pins.append(descriptor)
            if not _set(descriptor, fcntl.F_RDLCK, first, size):  # pragma: no cover  (only a foreign program could)
                raise _locked()
            if path == self.database:
                self._check_only_name(descriptor)
        self.files = self.present()

    def _check_only_name(self, descriptor: int) -> None:
        """Of two who open the file under different names at once, each locks before it looks: one sees the other."""
        mine = _place_of_name(self.database)
        _set(descriptor, fcntl.F_RDLCK, _NAMES + mine, 1)
        before, after = (_NAMES, mine), (_NAMES + mine + 1, _MOST_NAMES - mine - 1)
        if any(size and _is_held(descriptor, first, size) for first, size in (before, after)):
            raise LedgerUnavailable(
                f"the file {self.database!r} is in use under another name (a link, or a mount), which has a log of its "
                "own; nothing was debited. Open it under that name, or close it there first"
            )

    def _accept(self) -> None:
        """Take the file as it is, unless somebody else has it open in another state."""
        self._writing = self._opened(self._writing)
        if self._writing is None:
            return
        if not self._recorded():
            if not _lock(self._writing, _USERS, exclusive=True):
                raise self._replaced()
            self.note()
        _lock(self._writing, _USERS, exclusive=False)

    def unpin(self) -> None:
        """Before the last connection of this process is closed, which may now tidy up if it is the last of
        all. The descriptors are closed after it: see :meth:`forget`.
        """
        for descriptor in self._pins if _OFD else ():
            _set(descriptor, fcntl.F_UNLCK, 0, 0)

    def forget(self) -> None:
        while self._pins:
            os.close(self._pins.pop())
        self.files = ()
        if _OFD and self._writing is not None:
            _lock(self._writing, _USERS, None)

    def present(self) -> tuple[tuple[int, int] | None, ...]:
        """Which files stand at the paths of the database, its log, and the log's index."""
        return identity_of(self.database), identity_of(self._log), identity_of(self._index)

    def check(self) -> None:
        """The files must be those that were opened: what is written to a removed file is lost."""
        if not self.files:
            return
        found = _stat(self.database)
        present = _identity(found), identity_of(self._log), identity_of(self._index)
        if present != self.files or not self._recorded(found):
            raise self._replaced()

    def _replaced(self) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"the file {self.database!r}, or its -wal or -shm, was removed or replaced while the ledger was open; "
            "nothing was debited. Put it back and open the ledger again, with a head that was kept"
        )

    # -- the record ------------------------------------------------------------------------------------------

    def note(self, known: bool = True) -> None:
        """Record size and time of the database; before a checkpoint, that they are about to change."""
        if self._writing is None or not _OFD:
            return
        try:
            os.pwrite(self._writing, self._seen() if known else bytes(16), _RECORD)
        except OSError as error:
            raise LedgerUnavailable(f"the side file {self.path!r} cannot be written ({error.strerror})") from None

    def _recorded(self, found: os.stat_result | None = None) -> bool:
        """Whether the database is as it was recorded. Where nothing is (a new side file, or a process that died
        during a checkpoint) it is recorded now.
        """
        if self._writing is None or not _OFD:
            return True
        record = os.pread(self._writing, 16, _RECORD)
        if len(record) < 16 or record == bytes(16):
            self.note()
            return True
        return record == self._seen(found)

    def _seen(self, found: os.stat_result | None = None) -> bytes:
        found = found or _stat(self.database)
        return bytes(16) if found is None else struct.pack("qq", found.st_mtime_ns, found.st_size)


_guards: dict[str, Guard] = {}
_guards_mutex = threading.Lock()


def guard_of(path: Path) -> Guard:
    """The guard of a file: one for each file and process, however often it is opened."""
    name = os.path.realpath(path)
    with _guards_mutex:
        if name not in _guards:
            _guards[name] = Guard(name)
        return _guards[name]


def guards() -> list[Guard]:
    return list(_guards.values())


def forget_mutex() -> None:
    """In a child: another thread of the parent may have held it."""
    global _guards_mutex
    _guards_mutex = threading.Lock()


def _lock(descriptor: int, byte: int, exclusive: bool | None) -> bool:
    """Lock a byte of the side file, or unlock it (None); whether that was possible at once."""
    if _OFD:
        kind = fcntl.F_UNLCK if exclusive is None else fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK
        return _set(descriptor, kind, byte, 1)
    if fcntl is not None:  # pragma: no cover
        try:
            fcntl.flock(descriptor, fcntl.LOCK_UN if exclusive is None else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True  # pragma: no cover


def _set(descriptor: int, kind: int, first: int, size: int) -> bool:
    """fcntl(F_OFD_SETLK): struct flock with a process id of 0; a size of 0 is everything."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, first, size, 0))
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        raise LedgerUnavailable(
            f"the file system keeps no locks ({error.strerror}); nothing was debited. Put the ledger on a local disk"
        ) from None
    return True


def _is_held(descriptor: int, first: int, size: int) -> bool:
    """fcntl(F_OFD_GETLK): whether somebody else holds a lock in this range."""
    question = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, first, size, 0)
    answer: int = struct.unpack("hhqqi4x", fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, question))[0]
    return answer != fcntl.F_UNLCK


def _place_of_name(database: str) -> int:
    """A number for the name of a file: its directory, by identity, and what it is called there."""
    folder, name = os.path.split(database)
    digest = sha256(f"{identity_of(folder or '.')} {name}".encode(errors="surrogateescape")).digest()
    return int.from_bytes(digest[:4], "big")


def _names(path: str, descriptor: int) -> bool:
    here = os.fstat(descriptor)
    return identity_of(path) == (here.st_dev, here.st_ino)


def identity_of(path: str) -> tuple[int, int] | None:
    return _identity(_stat(path))


def _identity(found: os.stat_result | None) -> tuple[int, int] | None:
    return None if found is None else (found.st_dev, found.st_ino)


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _mode(database: str) -> int:
    """The side file may be written by whoever may write the database."""
    try:
        return os.stat(database).st_mode & 0o666 or 0o600
    except OSError:
        return 0o666


def _locked() -> LedgerUnavailable:
    return LedgerUnavailable("the ledger's store failed: another process holds its lock; nothing was debited")
