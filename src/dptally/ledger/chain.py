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

__all__ = ["Head", "canonical", "chained", "genesis"]

_ENTRY = b"dptally ledger entry 1\x00"
_GENESIS = b"dptally ledger genesis 1\x00"


def canonical(value: Any) -> str:
    """JSON with sorted keys, no spaces, ASCII only, no NaN: one text for one value.

    >>> canonical({"b": 1, "a": [True, "é"]})
    '{"a":[true,"\\\\u00e9"],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def genesis(ledger: str, dataset: str) -> str:
    """Where the chain of a dataset begins."""
    return hashlib.sha256(_GENESIS + ledger.encode() + b"\x00" + dataset.encode()).hexdigest()


def chained(previous: str, body: str) -> str:
    """The hash of an entry that follows the hash ``previous``."""
    return hashlib.sha256(_ENTRY + bytes.fromhex(previous) + body.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Head:
    """The length and the last hash of every chain: keep it elsewhere and give it back at open, and a restored
    backup is noticed.
    """

    ledger: str
    chains: Mapping[str, tuple[int, str]] = field(hash=False)

    def to_json(self) -> str:
        chains = {name: [length, digest] for name, (length, digest) in self.chains.items()}
        return canonical({"chains": chains, "dptally_ledger_head": 1, "ledger": self.ledger})

    @classmethod
    def from_json(cls, text: str) -> Head:
        """Read what ``to_json`` wrote; anything else is refused."""
        if not isinstance(text, str):
            raise InvalidType("head", "a Head or its JSON text", text)
        try:
            document = json.loads(text)
            if document["dptally_ledger_head"] != 1:
                raise ValueError("another format")
            chains = {str(name): (int(length), str(digest)) for name, (length, digest) in document["chains"].items()}
            return cls(str(document["ledger"]), chains)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidArgument("head", "the JSON text that Head.to_json() wrote", text) from None
