"""A chain and the Merkle tree beside it as entries are appended: what ``chain.chained`` and ``merkle.extended`` say,
in bytes, with the constant beginnings hashed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from dptally.ledger.chain import ENTRY
from dptally.ledger.merkle import NODE

__all__ = ["Growth"]

_entry, _node = sha256(ENTRY).copy, sha256(NODE).copy


class Growth:
    """The last hash of a chain, its length, and the peaks of its tree."""

    __slots__ = ("_hash", "_peaks", "length")

    def __init__(self, length: int, head: str, peaks: Sequence[str]) -> None:
        self.length = length
        self._hash = bytes.fromhex(head)
        self._peaks = [bytes.fromhex(peak) for peak in peaks]

    @property
    def head(self) -> str:
        return self._hash.hex()

    @property
    def peaks(self) -> list[str]:
        return [peak.hex() for peak in self._peaks]

    def append(self, body: str) -> tuple[str, str | None]:
        """The hash of an entry that follows, and its node of the tree."""
        hashing = _entry()
        hashing.update(self._hash + body.encode())
        self._hash = top = hashing.digest()
        self.length = rest = self.length + 1
        if rest & 1:
            self._peaks.append(top)
            return top.hex(), None
        digest = top.hex()
        while not rest & 1:
            hashing = _node()
            hashing.update(self._peaks.pop() + top)
            top = hashing.digest()
            rest >>= 1
        self._peaks.append(top)
        return digest, top.hex()
