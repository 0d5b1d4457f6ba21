"""A fixed stream of bytes in place of the system's, so that a statistical test can be repeated bit for bit."""

from __future__ import annotations

import hashlib

from dptally.noise.source import SystemBytes

BLOCK = 1 << 18


class FixedBytes:
    """SHAKE-128 of a name and a counter, block by block."""

    def __init__(self, name: str) -> None:
        self.name, self.counter, self.block, self.used = name, 0, b"", 0

    def take(self, count: int) -> bytes:
        while len(self.block) - self.used < count:
            self.counter += 1
            fresh = hashlib.shake_128(f"{self.name}:{self.counter}".encode()).digest(BLOCK)
            self.block, self.used = self.block[self.used :] + fresh, 0
        self.used += count
        return self.block[self.used - count : self.used]


def fix_bytes(monkeypatch, name: str) -> None:
    """Every sampler of this process draws from the stream of this name until the test ends."""
    stream = FixedBytes(name)
    monkeypatch.setattr(SystemBytes, "take", lambda self, count: stream.take(count))
