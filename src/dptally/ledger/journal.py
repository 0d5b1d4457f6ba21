"""Writing under a dataset's lock: append to its chain, load and save its totals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import sqlalchemy as sa

from dptally.errors import ChainBroken, InvalidArgument, LedgerUnavailable, UnknownDataset
from dptally.ledger.books import DATASET, EVERYONE, WHOLE, Books, Slot
from dptally.ledger.chain import canonical
from dptally.ledger.commitment import bucket_of, commitment, digest_of, row_text, stated, with_commitment
from dptally.ledger.growth import Growth
from dptally.ledger.reading import read_list, read_object
from dptally.ledger.schema import accounts, datasets, entries, meta, slots
from dptally.ledger.statements import Statement
from dptally.ledger.terms import Terms, amount_from_json
from dptally.ledger.units import Amount

__all__ = ["REGISTER", "Journal", "find_keys", "load_books", "read_terms", "save_books", "settlements"]

T = TypeVar("T")
Key = tuple[str, ...]  # a holder, or a slot
New = tuple[str, str | None, int | None, str]  # type, key, settles, body of a row to append

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
        row = _LOCK.first(connection, {"dataset": dataset})
        if row is None:
            if dataset == REGISTER:  # row security hides it from those who may not write it
                raise LedgerUnavailable("this role may not do that; nothing was changed")
            raise UnknownDataset(dataset)
        terms, length, head, peaks, books, ledger = row
        opened = connection.get_execution_options().get("dptally_ledger")
        if opened is not None and ledger != opened:
            raise LedgerUnavailable(
                "another ledger was put in the place of the one that was opened; nothing was debited"
            )
        journal = cls._read(connection, dataset, terms, length, head, peaks, books)
        journal._check_last(books)
        return journal

    @classmethod
    def unchecked(cls, connection: sa.Connection, row: Any) -> Journal:
        """The journal of a row of datasets as it stands, whatever the chain says."""
        return cls._read(connection, row.name, row.terms, row.length, row.head, row.peaks, row.books)

    @classmethod
    def _read(
        cls, connection: sa.Connection, dataset: str, terms: str, length: int, head: str, peaks: str, books: str
    ) -> Journal:
        try:
            return cls(connection, dataset, terms, length, head, read_list(peaks), read_object(books))
        except InvalidArgument:
            raise ChainBroken(dataset, None, "its row cannot be read; nothing was debited") from None

    def _check_last(self, books: str) -> None:
        """``books`` is the text of the buckets' digests."""
        if self.length == 0:
            if self.dataset != REGISTER and self.buckets != opening_buckets(self.terms):
                raise self._wrong_totals()
            return
        last = _LAST.first(self.connection, {"dataset": self.dataset, "seq": self.length})
        if last is None or last[0] != self.head:
            raise ChainBroken(
                self.dataset,
                self.length,
                "the last entry is not the one that the ledger remembers; nothing was debited",
            )
        if self.dataset != REGISTER and stated(last[1]) != commitment(self.terms_json, books):
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

    def append(self, rows: Sequence[New]) -> list[str]:
        """Append rows, numbered from length + 1; the new hashes. The last one states the totals: call :meth:`save`
        before.
        """
        books, dataset = canonical(self.buckets), self.dataset
        growth, prepared, hashes = Growth(self.length, self.head, self.peaks), [], []
        if dataset != REGISTER:
            *before, (kind, key, settles, body) = rows
            rows = [*before, (kind, key, settles, with_commitment(body, commitment(self.terms_json, books)))]
        for length, (kind, key, settles, body) in enumerate(rows, self.length + 1):
            digest, node = growth.append(body)
            hashes.append(digest)
            prepared.append((dataset, length, kind, key, settles, body, digest, whose(body), node))
        self.head, self.length, self.peaks = growth.head, growth.length, growth.peaks
        _INSERT.run(self.connection, *prepared)
        _ADVANCE.run(
            self.connection,
            {
                "dataset": dataset,
                "new_length": self.length,
                "new_head": self.head,
                "new_peaks": canonical(self.peaks),
                "new_books": books,
            },
        )
        return hashes

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
        for bucket in wanted:
            self.rows[bucket] = {}
        for row in _BUCKETED.rows(self.connection, {"dataset": self.dataset}, sorted(wanted)) if wanted else ():
            self._read_row(books, row)
        for bucket in wanted:
            if digest_of(self.rows[bucket].values()) != self.buckets.get(str(bucket)):
                raise self._wrong_totals()
        return books

    def _read_row(self, books: Books, row: Any) -> None:
        holder, partition, part, caps, amounts, cap, spent, failure_cap, failure_spent, bucket = row
        if partition is not None:
            slot = (holder, partition, part)
            books.slots[slot] = _amount(amounts)
            self.rows[bucket][slot] = row_text(slot, None, amounts)
            return
        books.spent[holder] = _amount(amounts)
        books.caps[holder] = None if caps is None else _amount(caps)
        found = {
            "caps": caps,
            "amounts": amounts,
            "cap": cap,
            "spent": spent,
            "failure_cap": failure_cap,
            "failure_spent": failure_spent,
            "bucket": bucket,
        }
        if holder_row(holder, books.caps[holder], books.spent[holder]) != found:
            raise self._wrong_totals()
        self.rows[bucket][(holder,)] = row_text((holder,), caps, amounts)

    def save(self, before: Books, after: Books) -> None:
        """Write the totals that changed, and their digests."""
        save_books(self.connection, self.dataset, before, after)
        touched = set()
        for holder, spent in after.spent.items():
            caps = after.caps.get(holder)
            if spent != before.spent.get(holder) or caps != before.caps.get(holder):
                text = None if caps is None else caps.text()
                touched.add(self._put((holder,), row_text((holder,), text, spent.text())))
        for slot, amount in after.slots.items():
            if before.slots.get(slot) != amount:
                touched.add(self._put(slot, row_text(slot, None, amount.text())))
        for bucket in touched:
            self.buckets[str(bucket)] = digest_of(self.rows[bucket].values()) or ""

    def _put(self, key: Key, text: str) -> int:
        bucket = bucket_of(*key)
        self.rows[bucket][key] = text
        return bucket


def whose(body: str) -> str | None:
    """Whose spend a body is or settles, read from its beginning; None where it does not say."""
    if body.startswith('","by":"', _AFTER_STAMP):
        text = body[_AFTER_STAMP + 8 : body.index('"', _AFTER_STAMP + 8)]
        if "\\" not in text:
            return text
    found = _WHOSE.match(body)
    if found is None:
        return None
    text = found.group(1)
    return str(json.loads(text)) if "\\" in text else text[1:-1]


def opening_buckets(terms: Terms) -> dict[str, str]:
    """The digests of the totals of a dataset on which nothing was spent."""
    text = row_text((DATASET,), terms.cap.text(), terms.zero.text())
    return {str(bucket_of(DATASET)): digest_of([text]) or ""}


_AFTER_STAMP = len('{"at":"2026-01-01T00:00:00.000000Z')
_WHOSE = re.compile(r'\{"at":"[^"]*",(?:"books":"[^"]*",)?"by":("(?:[^"\\]|\\.)*")')
_LOCK = Statement(
    sa.select(
        datasets.c.terms,
        datasets.c.length,
        datasets.c.head,
        datasets.c.peaks,
        datasets.c.books,
        sa.select(meta.c.value).where(meta.c.name == sa.literal_column("'ledger'")).scalar_subquery().label("ledger"),
    )
    .where(datasets.c.name == sa.bindparam("dataset"))
    .with_for_update(of=datasets)
)
_TERMS = sa.select(datasets.c.terms).where(datasets.c.name == sa.bindparam("dataset"))
_LAST = Statement(
    sa.select(entries.c.hash, sa.literal_column("substr(body, 1, 200)").label("beginning")).where(
        entries.c.dataset == sa.bindparam("dataset"), entries.c.seq == sa.bindparam("seq")
    )
)
_INSERT = Statement(sa.insert(entries), [column.name for column in entries.c])
_ADVANCE = Statement(
    sa.update(datasets)
    .where(datasets.c.name == sa.bindparam("dataset"))
    .values(
        length=sa.bindparam("new_length"),
        head=sa.bindparam("new_head"),
        peaks=sa.bindparam("new_peaks"),
        books=sa.bindparam("new_books"),
    )
)
_BUCKETED = Statement(
    sa.select(
        accounts.c.holder,
        sa.null().label("partition"),
        sa.null().label("part"),
        accounts.c.caps,
        accounts.c.amounts,
        accounts.c.cap,
        accounts.c.spent,
        accounts.c.failure_cap,
        accounts.c.failure_spent,
        accounts.c.bucket,
    )
    .where(accounts.c.dataset == sa.bindparam("dataset"), sa.literal_column("bucket IN (-1)"))
    .union_all(
        sa.select(
            slots.c.holder,
            slots.c.partition,
            slots.c.part,
            sa.null(),
            slots.c.amounts,
            *[sa.cast(sa.null(), sa.BigInteger)] * 4,
            slots.c.bucket,
        ).where(slots.c.dataset == sa.bindparam("dataset"), sa.literal_column("bucket IN (-1)"))
    )
)
_HERE = accounts.c.dataset == sa.bindparam("of_dataset"), accounts.c.holder == sa.bindparam("of_holder")
_TOTALS: dict[str, Any] = {
    name: sa.bindparam(name) for name in ("amounts", "cap", "spent", "failure_cap", "failure_spent")
}
_SPENT = Statement(sa.update(accounts).where(*_HERE).values(_TOTALS))  # an analyst's database role may write these
_LIMITED = Statement(sa.update(accounts).where(*_HERE).values({**_TOTALS, "caps": sa.bindparam("caps")}))
_KEY = Statement(
    sa.select(entries.c.key, entries.c.body, entries.c.hash).where(
        entries.c.dataset == sa.bindparam("dataset"), entries.c.key == sa.bindparam("key")
    )
)
_ENDING = Statement(
    sa.select(entries.c.settles, entries.c.body).where(
        entries.c.dataset == sa.bindparam("dataset"), entries.c.settles == sa.bindparam("number")
    )
)
_KEYS = sa.select(entries.c.key, entries.c.body, entries.c.hash).where(
    entries.c.dataset == sa.bindparam("dataset"), entries.c.key.in_(sa.bindparam("many", expanding=True))
)
_SETTLED = sa.select(entries.c.settles, entries.c.body).where(
    entries.c.dataset == sa.bindparam("dataset"),
    entries.c.settles.in_(sa.bindparam("many", expanding=True)),
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


# without statistics SQLite would answer a list of keys by reading the whole chain; a cross join keeps its order
_KEYS_OF_SQLITE = (
    "SELECT e.key, e.body, e.hash FROM json_each(:many) AS k CROSS JOIN dptally_entries AS e "
    "WHERE e.dataset = :dataset AND e.key = k.value"
)
_SETTLED_OF_SQLITE = (
    "SELECT e.settles, e.body FROM json_each(:many) AS k CROSS JOIN dptally_entries AS e "
    "WHERE e.dataset = :dataset AND e.settles = k.value"
)


def _many(
    connection: sa.Connection, question: sa.Executable, text: str, dataset: str, values: Sequence[Any]
) -> Iterable[Any]:
    if connection.dialect.name == "sqlite":
        return connection.exec_driver_sql(text, {"dataset": dataset, "many": canonical(list(values))})
    return connection.execute(question, {"dataset": dataset, "many": values})


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
    wanted, found = sorted(set(keys)), {}
    if len(wanted) == 1:
        one = _KEY.rows(connection, {"dataset": dataset, "key": wanted[0]})
        return {key: (read_object(body), digest) for key, body, digest in one}
    for chunk in _chunks(wanted):
        for key, body, digest in _many(connection, _KEYS, _KEYS_OF_SQLITE, dataset, chunk):
            found[key] = (read_object(body), digest)
    return found


def settlements(connection: sa.Connection, dataset: str, numbers: Iterable[int]) -> dict[int, dict[str, Any]]:
    """How the spends of these numbers ended, those that have."""
    wanted, found = sorted(set(numbers)), {}
    if len(wanted) == 1:
        rows = _ENDING.rows(connection, {"dataset": dataset, "number": wanted[0]})
        return {number: read_object(body) for number, body in rows}
    for chunk in _chunks(wanted):
        for number, body in _many(connection, _SETTLED, _SETTLED_OF_SQLITE, dataset, chunk):
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
    known = [h for h in changed if h in before.spent]
    same = [h for h in known if after.caps.get(h) == before.caps.get(h)]
    for statement, holders in ((_SPENT, same), (_LIMITED, [h for h in known if h not in same])):
        rows = [{"of_dataset": dataset, "of_holder": h, **_holder_row(after, h)} for h in holders]
        if rows:
            statement.run(connection, *rows)
    if new:
        connection.execute(sa.insert(accounts), new)
    moved = [slot for slot, amount in after.slots.items() if before.slots.get(slot) != amount]
    old_slots = [{**_slot_key("of_", dataset, s), "amounts": after.slots[s].text()} for s in moved if s in before.slots]
    new_slots = [
        {**_slot_key("", dataset, s), "amounts": after.slots[s].text(), "bucket": bucket_of(*s)}
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
        "caps": None if caps is None else caps.text(),
        "amounts": spent.text(),
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


@lru_cache(maxsize=1024)
def _amount(text: str) -> Amount:
    return amount_from_json(read_list(text))


def _chunks(values: Sequence[T]) -> Iterable[list[T]]:
    return (list(values[start : start + 500]) for start in range(0, len(values), 500))
