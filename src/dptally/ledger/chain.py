"""The hash chain: h_i = SHA-256(domain || h_{i-1} || canonical JSON of entry i).

Each dataset has a chain of its own, and one more (of the empty name) registers the datasets. A chain begins
at a hash of the ledger's random id and the dataset's name, so that entries cannot be moved between chains or
ledgers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dptally.errors import InvalidArgument, InvalidType
from dptally.ledger.reading import HEAD_LIMIT, read_object, read_whole

__all__ = ["ENTRY", "Head", "canonical", "chained", "genesis"]

ENTRY = b"dptally ledger entry 1\x00"
_GENESIS = b"dptally ledger genesis 1\x00"


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


def canonical(value: Any) -> str:
    """JSON with sorted keys, no spaces, ASCII only, no NaN: one text for one value.

    >>> canonical({"b": 1, "a": [True, "é"]})
    '{"a":[true,"\\\\u00e9"],"b":1}'
    """
    return _encode(value)


def genesis(ledger: str, dataset: str) -> str:
    """Where the chain of a dataset begins."""
    return hashlib.sha256(_GENESIS + ledger.encode() + b"\x00" + dataset.encode()).hexdigest()


def chained(previous: str, body: str) -> str:
    """The hash of an entry that follows the hash ``previous``."""
    return hashlib.sha256(ENTRY + bytes.fromhex(previous) + body.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Head:
    """The length and the last hash of every chain, and the root of its Merkle tree: keep it elsewhere and give
    it back at open, and a restored backup is noticed. ``signature`` is there once it was signed.
    """

    ledger: str
    chains: Mapping[str, tuple[int, str]] = field(hash=False)
    roots: Mapping[str, str] = field(hash=False, default_factory=dict)
    signature: str | None = None
    key: str | None = None

    @property
    def statement(self) -> str:
        """What a signature covers."""
        return canonical(self._facts())

    def _facts(self) -> dict[str, Any]:
        chains = {name: [length, digest] for name, (length, digest) in self.chains.items()}
        facts: dict[str, Any] = {"chains": chains, "dptally_ledger_head": 1, "ledger": self.ledger}
        if self.roots:
            facts["roots"] = dict(self.roots)
        return facts

    def to_json(self) -> str:
        signed = {} if self.signature is None else {"key": self.key, "signature": self.signature}
        return canonical({**self._facts(), **signed})

    @classmethod
    def known(cls, head: Head | str) -> Head:
        """A head, or what ``to_json`` wrote of one."""
        return head if isinstance(head, Head) else cls.from_json(head)

    @classmethod
    def from_json(cls, text: str) -> Head:
        """Read what ``to_json`` wrote; anything else is refused."""
        if not isinstance(text, str):
            raise InvalidType("head", "a Head or its JSON text", text)
        try:
            return cls._read(read_object(text, "head", HEAD_LIMIT))
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        raise InvalidArgument("head", "the JSON text that Head.to_json() wrote", text)

    @classmethod
    def _read(cls, document: dict[str, Any]) -> Head:
        if document["dptally_ledger_head"] != 1:
            raise ValueError("another format")
        chains = {
            name: (read_whole("length", length), _hexadecimal(digest))
            for name, (length, digest) in document["chains"].items()
        }
        roots = {name: _hexadecimal(top) for name, top in document.get("roots", {}).items()}
        if roots and set(roots) != set(chains):
            raise ValueError("a root for each chain")
        signed = document.get("signature") is not None
        return cls(
            str(document["ledger"]),
            chains,
            roots,
            _hexadecimal(document["signature"]) if signed else None,
            _hexadecimal(document["key"]) if signed else None,
        )


def _hexadecimal(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 256:
        raise ValueError("a hash as hexadecimal digits")
    bytes.fromhex(value)
    return value
