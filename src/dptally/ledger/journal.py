"""Writing under a dataset's lock: append to its chain, load and save its totals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import sqlalchemy as sa

from dptally.errors import ChainBroken, InvalidArgument, LedgerUnavailable, UnknownDataset
from dptally.ledger.books import DATASET, EVERYONE, WHOLE, Books, Slot
from dptally.ledger.chain import canonical, chained
from dptally.ledger.commitment import bucket_of, commitment, digest_of, row_text, stated, with_commitment
from dptally.ledger.merkle import extended
from dptally.ledger.reading import read_list, read_object
from dptally.ledger.schema import accounts, datasets, entries, meta, slots
from dptally.ledger.terms import Terms, amount_from_json, amount_to_json
from dptally.ledger.units import Amount

__all__ = ["REGISTER", "Journal", "find_keys", "load_books", "read_terms", "save_books", "settlements"]

T = TypeVar("T")
Key = tuple[str, ...]  # a holder, or a slot

REGISTER = ""  # the chain that lists the datasets


@dataclass(slots=True)
class Journal:
    """The chain of one dataset, locked until the transaction ends."""

    connection: sa.Connection
    dataset: str
    terms_json: str
    length: int
    head: str
    peaks: list[str] = field(default_factory=list)
    buckets: dict[str, str] = field(default_factory=dict)
    rows: dict[int, dict[Key, str]] = field(default_factory=dict)  # the totals that were read, by bucket

    @classmethod
    def locked(cls, connection: sa.Connection, dataset: str) -> Journal:
        """Lock the dataset's row; the ledger must be the one that was opened, the last entry the one that the
        row remembers, and the totals and terms those that the last entry states.
        """
        row = connection.execute(_LOCK, {"dataset": dataset}).one_or_none()
        if row is None:
            if dataset == REGISTER:  # row security hides it from those who may not write it
                raise LedgerUnavailable("this role may not do that; nothing was changed")
            raise UnknownDataset(dataset)
        opened = connection.get_execution_options().get("dptally_ledger")
        if opened is not None and row.ledger != opened:
            raise LedgerUnavailable(
                "another ledger was put in the place of the one that was opened; nothing was debited"
            )
        journal = cls.unchecked(connection, row, dataset)
        journal._check_last()
        return journal

    @classmethod
    def unchecked(cls, connection: sa.Connection, row: Any, dataset: str | None = None) -> Journal:
        name = row.name if dataset is None else dataset
        try:
            peaks, buckets = read_list(row.peaks), read_object(row.books)
        except InvalidArgument:
            raise ChainBroken(name, None, "its row cannot be read; nothing was debited") from None
        return cls(connection, name, row.terms, row.length, row.head, peaks, buckets)

    def _check_last(self) -> None:
        books = commitment(self.terms_json, self.buckets)
        if self.length == 0:
            if self.dataset != REGISTER and self.buckets != opening_buckets(self.terms):
                raise self._wrong_totals()
            return
        last = self.connection.execute(_LAST, {"dataset": self.dataset, "seq": self.length}).one_or_none()
        if last is None or last.hash != self.head:
            raise ChainBroken(
                self.dataset,
                self.length,
                "the last entry is not the one that the ledger remembers; nothing was debited",
            )
        if self.dataset != REGISTER and stated(last.beginning) != books:
            raise self._wrong_totals()

    def _wrong_totals(self) -> ChainBroken:
        return ChainBroken(
            self.dataset,
            None,
            "the totals or terms that it remembers are not those that its chain states; nothing was debited",
        )

    @property
    def terms(self) -> Terms:
        return Terms.from_json(self.terms_json)

    # -- entries ---------------------------------------------------------------------------------------------

    def append(self, rows: Sequence[tuple[str, str | None, int | None, str]]) -> list[str]:
        """Append (type, key, settles, body) rows, numbered from length + 1; the new hashes. The last one
        states the totals: call :meth:`save` before.
        """
        prepared: list[dict[str, Any]] = []
        head, length, peaks = self.head, self.length, self.peaks
        last = len(rows) - 1
        for place, (kind, key, settles, body) in enumerate(rows):
            if place == last and self.dataset != REGISTER:
                body = with_commitment(body, commitment(self.terms_json, self.buckets))
            length += 1
            head = chained(head, body)
            prepared.append(
                {
                    "dataset": self.dataset,
                    "seq": length,
                    "type": kind,
                    "key": key,
                    "settles": settles,
                    "body": body,
                    "hash": head,
                    "by": whose(body),
                    "node": extended(peaks, length, head),
                }
            )
        self.head, self.length = head, length
        self.connection.execute(_INSERT, prepared)
        self.connection.execute(
            _ADVANCE,
            {
                "dataset": self.dataset,
                "new_length": length,
                "new_head": head,
                "new_peaks": canonical(peaks),
                "new_books": canonical(self.buckets),
            },
        )
        return [row["hash"] for row in prepared]

    # -- totals ----------------------------------------------------------------------------------------------

    def load(self, analysts: Iterable[str] = (), places: Iterable[tuple[str, str]] = ()) -> Books:
        """The totals of the dataset, of these analysts, and of these (partition, part) places, each checked
        against the digest of its bucket.
        """
        holders = sorted({DATASET, EVERYONE, *analysts})
        keys: set[Key] = {(holder,) for holder in holders}
        for partition, part in places:
            if partition:
                keys |= {(holder, partition, one) for holder in holders for one in (part, WHOLE)}
        wanted = {bucket_of(*key) for key in keys} - set(self.rows)
        books = Books(self.terms.zero)
        for chunk in _chunks(sorted(wanted)):
            question = {"dataset": self.dataset, "buckets": chunk}
            for bucket in chunk:
                self.rows[bucket] = {}
            for row in self.connection.execute(_BUCKETED_ACCOUNTS, question):
                books.spent[row.holder] = _amount(row.amounts)
                books.caps[row.holder] = None if row.caps is None else _amount(row.caps)
                columns = holder_row(row.holder, books.caps[row.holder], books.spent[row.holder])
                if any(getattr(row, name) != value for name, value in columns.items()):
                    raise self._wrong_totals()
                self.rows[row.bucket][(row.holder,)] = row_text((row.holder,), row.caps, row.amounts)
            for row in self.connection.execute(_BUCKETED_SLOTS, question):
                key = (row.holder, row.partition, row.part)
                books.slots[key] = _amount(row.amounts)
                self.rows[row.bucket][key] = row_text(key, None, row.amounts)
        for bucket in wanted:
            if digest_of(self.rows[bucket].values()) != self.buckets.get(str(bucket)):
                raise self._wrong_totals()
        return books

    def save(self, before: Books, after: Books) -> None:
        """Write the totals that changed, and their digests."""
        save_books(self.connection, self.dataset, before, after)
        touched = set()
        for holder, spent in after.spent.items():
            caps = after.caps.get(holder)
            if spent != before.spent.get(holder) or caps != before.caps.get(holder):
                text = None if caps is None else amount_text(caps)
                touched.add(self._put((holder,), row_text((holder,), text, amount_text(spent))))
        for slot, amount in after.slots.items():
            if before.slots.get(slot) != amount:
                touched.add(self._put(slot, row_text(slot, None, amount_text(amount))))
        for bucket in touched:
            self.buckets[str(bucket)] = digest_of(self.rows[bucket].values()) or ""

    def _put(self, key: Key, text: str) -> int:
        bucket = bucket_of(*key)
        self.rows[bucket][key] = text
        return bucket


def whose(body: str) -> str | None:
    """Whose spend a body is or settles, read from its beginning; None where it does not say."""
    found = _WHOSE.match(body)
    return None if found is None else json.loads(found.group(1))  # type: ignore[no-any-return]


def opening_buckets(terms: Terms) -> dict[str, str]:
    """The digests of the totals of a dataset on which nothing was spent."""
    text = row_text((DATASET,), amount_text(terms.cap), amount_text(terms.zero))
    return {str(bucket_of(DATASET)): digest_of([text]) or ""}


_WHOSE = re.compile(r'\{"at":"[^"]*",(?:"books":"[^"]*",)?"by":("(?:[^"\\]|\\.)*")')
_LOCK = (
    sa.select(
        datasets.c.terms,
        datasets.c.length,
        datasets.c.head,
        datasets.c.peaks,
        datasets.c.books,
        sa.select(meta.c.value).where(meta.c.name == "ledger").scalar_subquery().label("ledger"),
    )
    .where(datasets.c.name == sa.bindparam("dataset"))
    .with_for_update(of=datasets)
)
_TERMS = sa.select(datasets.c.terms).where(datasets.c.name == sa.bindparam("dataset"))
_LAST = sa.select(entries.c.hash, sa.func.substr(entries.c.body, 1, 200).label("beginning")).where(
    entries.c.dataset == sa.bindparam("dataset"), entries.c.seq == sa.bindparam("seq")
)
_INSERT = sa.insert(entries)
_ADVANCE = (
    sa.update(datasets)
    .where(datasets.c.name == sa.bindparam("dataset"))
    .values(
        length=sa.bindparam("new_length"),
        head=sa.bindparam("new_head"),
        peaks=sa.bindparam("new_peaks"),
        books=sa.bindparam("new_books"),
    )
)
_BUCKETED_ACCOUNTS = sa.select(accounts).where(
    accounts.c.dataset == sa.bindparam("dataset"), accounts.c.bucket.in_(sa.bindparam("buckets", expanding=True))
)
_BUCKETED_SLOTS = sa.select(slots).where(
    slots.c.dataset == sa.bindparam("dataset"), slots.c.bucket.in_(sa.bindparam("buckets", expanding=True))
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


def was_created_so(connection: sa.Connection, dataset: str, terms: str, shares: dict[str, list[str]]) -> bool:
    """Whether the register holds this dataset with the same terms and the same analysts' shares."""
    here = entries.c.dataset == REGISTER, entries.c.type == "register"
    for (text,) in connection.execute(sa.select(entries.c.body).where(*here)):
        body = read_object(text)
        if body["name"] == dataset:
            return bool(body["terms"] == terms and body.get("shares", {}) == shares)
    return False


def find_keys(connection: sa.Connection, dataset: str, keys: Iterable[str]) -> dict[str, tuple[dict[str, Any], str]]:
    """The spends that hold these keys: key -> (body, hash)."""
    found = {}
    for chunk in _chunks(sorted(set(keys))):
        for key, body, digest in connection.execute(_KEYS, {"dataset": dataset, "keys": chunk}):
            found[key] = (read_object(body), digest)
    return found


def settlements(connection: sa.Connection, dataset: str, numbers: Iterable[int]) -> dict[int, dict[str, Any]]:
    """How the spends of these numbers ended, those that have."""
    found = {}
    for chunk in _chunks(sorted(set(numbers))):
        for number, body in connection.execute(_SETTLED, {"dataset": dataset, "numbers": chunk}):
            found[number] = read_object(body)
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
    new = [{"dataset": dataset, "holder": h, **_holder_row(after, h)} for h in changed if h not in before.spent]
    here = accounts.c.dataset == sa.bindparam("of_dataset"), accounts.c.holder == sa.bindparam("of_holder")
    for holder in changed:
        if holder in before.spent:
            row = _holder_row(after, holder)
            if after.caps.get(holder) == before.caps.get(holder):
                del row["caps"], row["bucket"]  # an analyst's database role may not write these
            connection.execute(sa.update(accounts).where(*here), {"of_dataset": dataset, "of_holder": holder, **row})
    if new:
        connection.execute(sa.insert(accounts), new)
    moved = [slot for slot, amount in after.slots.items() if before.slots.get(slot) != amount]
    old_slots = [
        {**_slot_key("of_", dataset, s), "amounts": amount_text(after.slots[s])} for s in moved if s in before.slots
    ]
    new_slots = [
        {**_slot_key("", dataset, s), "amounts": amount_text(after.slots[s]), "bucket": bucket_of(*s)}
        for s in moved
        if s not in before.slots
    ]
    if old_slots:
        there = (slots.c[name] == sa.bindparam(f"of_{name}") for name in ("dataset", "holder", "partition", "part"))
        connection.execute(sa.update(slots).where(*there), old_slots)
    if new_slots:
        connection.execute(sa.insert(slots), new_slots)


def holder_row(holder: str, caps: Amount | None, spent: Amount) -> dict[str, Any]:
    """The columns of an account: all meters as JSON, and the leading one as numbers for the constraints."""
    meter = 0 if caps is None else spent.leading(caps)
    return {
        "caps": None if caps is None else amount_text(caps),
        "amounts": amount_text(spent),
        "cap": None if caps is None else caps.meters[meter],
        "spent": min(spent.meters[meter], 2**62) if caps is None else spent.meters[meter],
        "failure_cap": None if caps is None else caps.failure,
        "failure_spent": spent.failure,
        "bucket": bucket_of(holder),
    }


def _holder_row(books: Books, holder: str) -> dict[str, Any]:
    return holder_row(holder, books.caps.get(holder), books.spent[holder])


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
    return amount_from_json(read_list(text))


def _chunks(values: Sequence[T]) -> Iterable[list[T]]:
    return (list(values[start : start + 500]) for start in range(0, len(values), 500))
