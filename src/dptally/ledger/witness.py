"""A witness of heads: a file or an address outside the ledger that is told of every commit.

It is told after the debit is durable and before the receipt is given out, so whatever was released is known to
it. At open its heads must still be in the ledger: a restored backup or a rewritten chain is noticed.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from dptally.errors import InvalidArgument, InvalidType, LedgerUnavailable
from dptally.ledger.chain import Head

__all__ = ["Witness", "witness_at"]

_SECONDS = 10.0
_MOST = 256 << 20  # bytes that an address may answer


class Witness:
    """Where heads are kept, one JSON text on a line."""

    def record(self, head: Head) -> None:
        """Keep a head durably, or raise LedgerUnavailable."""
        raise NotImplementedError

    def lines(self) -> Iterable[str]:
        """What was kept so far."""
        raise NotImplementedError

    def latest(self) -> list[Head]:
        """One head for each chain that was seen: the longest."""
        longest: dict[tuple[str, str], Head] = {}
        for line in self.lines():
            head = Head.from_json(line)
            for chain, (length, _) in head.chains.items():
                known = longest.get((head.ledger, chain))
                if known is None or known.chains[chain][0] <= length:
                    roots = {chain: head.roots[chain]} if head.roots else {}
                    longest[head.ledger, chain] = Head(head.ledger, {chain: head.chains[chain]}, roots)
        return list(longest.values())


class FileWitness(Witness):
    """A file that is only appended to: on another disk, or where the ledger's users may not remove it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def record(self, head: Head) -> None:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
            try:
                line = f"{_begin(descriptor)}{head.to_json()}\n".encode()
                if os.write(descriptor, line) != len(line):
                    raise OSError("it was cut short")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _silent(f"the file {str(self.path)!r}", error.strerror or str(error)) from None

    def lines(self) -> Iterable[str]:
        try:
            if not self.path.exists():
                return
            with self.path.open(encoding="utf-8") as file:
                for line in file:
                    if line.endswith("\n") and not _is_cut(line):
                        yield line
        except (OSError, ValueError):  # the latter for what is no UTF-8, or no path
            raise LedgerUnavailable(f"the witness file {str(self.path)!r} cannot be read") from None


def _begin(descriptor: int) -> str:
    """What a new line begins with: where a crash or a full disk has cut the last one, its end."""
    size = os.fstat(descriptor).st_size
    os.lseek(descriptor, max(size - 1, 0), os.SEEK_SET)
    return "" if size == 0 or os.read(descriptor, 1) == b"\n" else "\n"


def _is_cut(line: str) -> bool:
    """A line that was cut was never answered for. A beginning of JSON is no JSON."""
    try:
        json.loads(line)
    except ValueError:
        return True
    except RecursionError:  # somebody else wrote it: it is refused as no head
        return False
    return False


class AddressWitness(Witness):
    """An address that takes a head by POST and answers GET with the heads it keeps."""

    def __init__(self, url: str) -> None:
        self.url = url

    def record(self, head: Head) -> None:
        self._ask(head.to_json().encode())

    def lines(self) -> Iterable[str]:
        return [line for line in self._ask(None).decode("utf-8", "replace").splitlines() if line.strip()]

    def _ask(self, data: bytes | None) -> bytes:
        request = urllib.request.Request(self.url, data=data, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                return bytes(answer.read(_MOST))
        except (OSError, ValueError) as error:  # URLError and HTTPError are OSErrors
            raise _silent("its address", str(getattr(error, "reason", "") or type(error).__name__)) from None


def _silent(where: str, why: str) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"the witness at {where} did not take the head ({why}): what was debited stays spent; do not touch the data"
    )


def witness_at(target: object) -> Witness:
    """A file, or an http or https address."""
    if isinstance(target, Witness):
        return target
    if not isinstance(target, (str, Path)):
        raise InvalidType("witness", "the path of a file or an address", target)
    text = str(target)
    if text.startswith(("http://", "https://")):
        return AddressWitness(text)
    if "://" in text or "\x00" in text or not Path(text).absolute().parent.is_dir():
        raise InvalidArgument("witness", "a file in a directory that exists, or an http(s) address", text)
    return FileWitness(text)
