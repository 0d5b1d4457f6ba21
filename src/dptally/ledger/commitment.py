"""The totals of a dataset, bound to its chain: a spend checks what it builds on, in time that does not grow
with the history.

Every row of totals has a bucket, one of 256, given by a hash of its key. The digest of a bucket covers all
its rows; the digests of the buckets that are not empty, and the terms, give one hash, which stands in the
last entry of every transaction. A spend reads the buckets that it touches, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

from dptally.ledger.chain import canonical

__all__ = ["AMOUNTS", "bucket_of", "commitment", "digest_of", "row_text", "stated", "with_commitment"]

AMOUNTS = "amounts"
_BEGINNING = re.compile(r'\{"at":"[^"]*",')
_STATED = re.compile(r'\{"at":"[^"]*","books":"([0-9a-f]{64})"')
_DOMAIN = b"dptally ledger totals 1\x00"


@lru_cache(maxsize=8192)
def bucket_of(*key: str) -> int:
    """The bucket of a holder's totals, or of a (holder, partition, part)."""
    return sha256(canonical(key).encode()).digest()[0]


def row_text(key: tuple[str, ...], caps: str | None, amounts: str) -> str:
    """One row of totals as its bucket hashes it."""
    return canonical([*key, caps, amounts])


def digest_of(rows: Iterable[str]) -> str | None:
    """The digest of a bucket; None for one without rows."""
    ordered = sorted(rows)
    return sha256("\n".join(ordered).encode()).hexdigest() if ordered else None


def commitment(terms_json: str, buckets: str) -> str:
    """The hash of all totals, given as the canonical JSON of the buckets' digests, and of the terms."""
    terms = sha256(terms_json.encode()).digest()
    return sha256(_DOMAIN + terms + buckets.encode()).hexdigest()


def with_commitment(body: str, books: str) -> str:
    """The body with its totals stated; keys stay sorted, as "at" < "books" < every other key."""
    start = _BEGINNING.match(body)
    if start is None:
        raise ValueError("a body begins with its time")
    return f'{start.group()}"books":"{books}",{body[start.end() :]}'


def stated(body: str) -> str | None:
    """The totals that a body (or its first 200 characters) states; None where it states none."""
    found = _STATED.match(body)
    return None if found is None else found.group(1)
