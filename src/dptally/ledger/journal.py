"""Writing under a dataset's lock: append to its chain, load and save its totals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa

from dptally.errors import ChainBroken, UnknownDataset
from dptally.ledger.books import DATASET, EVERYONE, WHOLE, Books, Slot
from dptally.ledger.chain import chained
from dptally.ledger.schema import accounts, datasets, entries, slots
from dptally.ledger.terms import Terms, amount_from_json, amount_to_json
from dptally.ledger.units import Amount

__all__ = ["REGISTER", "Journal", "find_keys", "load_books", "read_terms", "save_books", "settlements"]

T = TypeVar("T")

REGISTER = ""  # the chain that lists the datasets


@dataclass(slots=True)
class Journal:
    """The chain of one dataset, locked until the transaction ends."""

    connection: sa.Connection
    dataset: str
    terms_json: str
    length: int
    head: str

    @classmethod
    def locked(cls, connection: sa.Connection, dataset: str) -> Journal:
        """Lock the dataset's row; the last entry must be the one that the row remembers."""
        row = connection.execute(_LOCK, {"dataset": dataset}).one_or_none()
        if row is None:
            raise UnknownDataset(dataset)
        journal = cls(connection, dataset, row.terms, row.length, row.head)
        if journal.length:
            last = connection.execute(_HASH, {"dataset": dataset, "seq": journal.length}).scalar_one_or_none()
            if last != journal.head:
                raise ChainBroken(
                    dataset,
                    journal.length,
                    "the last entry is not the one that the ledger remembers; nothing was debited",
                )
        return journal

    @property
    def terms(self) -> Terms:
        return Terms.from_json(self.terms_json)

    def append(self, rows: Sequence[tuple[str, str | None, int | None, str]]) -> list[str]:
        """Append (type, key, settles, body) rows, numbered from length + 1; the new hashes."""
        prepared: list[dict[str, Any]] = []
        for kind, key, settles, body in rows:
            self.length += 1
            self.head = chained(self.head, body)
            prepared.append(
                {
                    "dataset": self.dataset,
                    "seq": self.length,
                    "type": kind,
                    "key": key,
                    "settles": settles,
                    "body": body,
                    "hash": self.head,
                }
            )
        self.connection.execute(_INSERT, prepared)
        self.connection.execute(_ADVANCE, {"dataset": self.dataset, "new_length": self.length, "new_head": self.head})
        return [row["hash"] for row in prepared]


_LOCK = (
    sa.select(datasets.c.terms, datasets.c.length, datasets.c.head)
    .where(datasets.c.name == sa.bindparam("dataset"))
    .with_for_update()
)
_TERMS = sa.select(datasets.c.terms).where(datasets.c.name == sa.bindparam("dataset"))
_HASH = sa.select(entries.c.hash).where(
    entries.c.dataset == sa.bindparam("dataset"), entries.c.seq == sa.bindparam("seq")
)
_INSERT = sa.insert(entries)
_ADVANCE = (
    sa.update(datasets)
    .where(datasets.c.name == sa.bindparam("dataset"))
    .values(length=sa.bindparam("new_length"), head=sa.bindparam("new_head"))
)
_KEYS = sa.select(entries.c.key, entries.c.body, entries.c.hash).where(
    entries.c.dataset == sa.bindparam("dataset"), entries.c.key.in_(sa.bindparam("keys", expanding=True))
)
_SETTLED = sa.select(entries.c.settles, entries.c.body).where(
    entries.c.dataset == sa.bindparam("dataset"),
    entries.c.settles.in_(sa.bindparam("numbers", expanding=True)),
)
_HOLDERS = sa.select(accounts.c.holder, accounts.c.caps, accounts.c.amounts).where(
    accounts.c.dataset == sa.bindparam("dataset"),
    accounts.c.holder.in_(sa.bindparam("holders", expanding=True)),
)
_SLOTS = sa.select(slots.c.holder, slots.c.partition, slots.c.part, slots.c.amounts).where(
    slots.c.dataset == sa.bindparam("dataset"),
    slots.c.holder.in_(sa.bindparam("holders", expanding=True)),
    slots.c.partition.in_(sa.bindparam("partitions", expanding=True)),
    slots.c.part.in_(sa.bindparam("parts", expanding=True)),
)


def read_terms(connection: sa.Connection, dataset: str) -> Terms:
    text = connection.execute(_TERMS, {"dataset": dataset}).scalar_one_or_none()
    if text is None or dataset == REGISTER:
        raise UnknownDataset(dataset)
    return Terms.from_json(text)


def find_keys(connection: sa.Connection, dataset: str, keys: Iterable[str]) -> dict[str, tuple[dict[str, Any], str]]:
    """The spends that hold these keys: key -> (body, hash)."""
    found = {}
    for chunk in _chunks(sorted(set(keys))):
        for key, body, digest in connection.execute(_KEYS, {"dataset": dataset, "keys": chunk}):
            found[key] = (json.loads(body), digest)
    return found


def settlements(connection: sa.Connection, dataset: str, numbers: Iterable[int]) -> dict[int, dict[str, Any]]:
    """How the spends of these numbers ended, those that have."""
    found = {}
    for chunk in _chunks(sorted(set(numbers))):
        for number, body in connection.execute(_SETTLED, {"dataset": dataset, "numbers": chunk}):
            found[number] = json.loads(body)
    return found


# -- totals --------------------------------------------------------------------------------------------------


def load_books(
    connection: sa.Connection,
    dataset: str,
    terms: Terms,
    analysts: Iterable[str] = (),
    places: Iterable[tuple[str, str]] = (),
) -> Books:
    """The totals of the dataset, of these analysts, and of these (partition, part) places."""
    books = Books(terms.zero)
    holders = sorted({DATASET, EVERYONE, *analysts})
    for chunk in _chunks(holders):
        for holder, caps, amounts in connection.execute(_HOLDERS, {"dataset": dataset, "holders": chunk}):
            books.spent[holder] = _amount(amounts)
            books.caps[holder] = None if caps is None else _amount(caps)
    wanted = {(partition, part) for partition, part in places if partition}
    if wanted:
        partitions = sorted({partition for partition, _ in wanted})
        for chunk in _chunks(sorted({WHOLE, *(part for _, part in wanted)})):
            question = {"dataset": dataset, "holders": holders, "partitions": partitions, "parts": chunk}
            for holder, partition, part, amounts in connection.execute(_SLOTS, question):
                books.slots[holder, partition, part] = _amount(amounts)
    return books


def save_books(connection: sa.Connection, dataset: str, before: Books, after: Books) -> None:
    """Write the totals that changed."""
    changed = [
        h for h in after.spent if after.spent[h] != before.spent.get(h) or after.caps.get(h) != before.caps.get(h)
    ]
    known = [{"of_dataset": dataset, "of_holder": h, **_holder_row(after, h)} for h in changed if h in before.spent]
    new = [{"dataset": dataset, "holder": h, **_holder_row(after, h)} for h in changed if h not in before.spent]
    if known:
        here = (
            accounts.c.dataset == sa.bindparam("of_dataset"),
            accounts.c.holder == sa.bindparam("of_holder"),
        )
        connection.execute(sa.update(accounts).where(*here), known)
    if new:
        connection.execute(sa.insert(accounts), new)
    moved = [slot for slot, amount in after.slots.items() if before.slots.get(slot) != amount]
    old_slots = [
        {**_slot_key("of_", dataset, s), "amounts": amount_text(after.slots[s])} for s in moved if s in before.slots
    ]
    new_slots = [
        {**_slot_key("", dataset, s), "amounts": amount_text(after.slots[s])} for s in moved if s not in before.slots
    ]
    if old_slots:
        there = (slots.c[name] == sa.bindparam(f"of_{name}") for name in ("dataset", "holder", "partition", "part"))
        connection.execute(sa.update(slots).where(*there), old_slots)
    if new_slots:
        connection.execute(sa.insert(slots), new_slots)


def holder_row(caps: Amount | None, spent: Amount) -> dict[str, Any]:
    """The columns of an account: all meters as JSON, and the leading one as numbers for the constraints."""
    meter = 0 if caps is None else spent.leading(caps)
    return {
        "caps": None if caps is None else amount_text(caps),
        "amounts": amount_text(spent),
        "cap": None if caps is None else caps.meters[meter],
        "spent": min(spent.meters[meter], 2**62) if caps is None else spent.meters[meter],
        "failure_cap": None if caps is None else caps.failure,
        "failure_spent": spent.failure,
    }


def _holder_row(books: Books, holder: str) -> dict[str, Any]:
    return holder_row(books.caps.get(holder), books.spent[holder])


def _slot_key(prefix: str, dataset: str, slot: Slot) -> dict[str, str]:
    holder, partition, part = slot
    return {
        f"{prefix}dataset": dataset,
        f"{prefix}holder": holder,
        f"{prefix}partition": partition,
        f"{prefix}part": part,
    }


def amount_text(amount: Amount) -> str:
    return json.dumps(amount_to_json(amount), separators=(",", ":"))


def _amount(text: str) -> Amount:
    return amount_from_json(json.loads(text))


def _chunks(values: Sequence[T]) -> Iterable[list[T]]:
    return (list(values[start : start + 500]) for start in range(0, len(values), 500))
