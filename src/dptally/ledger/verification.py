"""Verifying a ledger: follow every chain, replay its sums, and compare with what the ledger remembers.

The first disagreement is raised as :class:`dptally.errors.ChainBroken` with its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from dptally.errors import ChainBroken, InvalidArgument
from dptally.ledger.books import DATASET, Books
from dptally.ledger.chain import _ENTRY, Head, genesis
from dptally.ledger.journal import REGISTER, amount_text, holder_row
from dptally.ledger.schema import VERSION, accounts, datasets, entries, meta, slots
from dptally.ledger.terms import Terms, amount_from_json
from dptally.ledger.units import Amount

__all__ = ["Verified", "verify", "verify_export"]

_STATES = ("released", "burnt")
_decode = json.JSONDecoder().raw_decode  # bodies are canonical: nothing stands around them


@dataclass(frozen=True, slots=True)
class Verified:
    """The ledger agrees with itself; ``head`` is what was verified."""

    entries: int
    datasets: int
    head: Head


@dataclass(slots=True)
class _Chain:
    """One chain, replayed."""

    dataset: str
    hash: str
    books: Books
    length: int = 0
    terms: dict[str, str] = field(default_factory=dict)  # in the register: dataset -> terms
    unsettled: set[int] = field(default_factory=set)

    def broken(self, reason: str) -> ChainBroken:
        return ChainBroken(self.dataset, self.length, reason)

    def follow(self, rows: Iterable[tuple[int, str, str | None, int | None, str, str]]) -> None:
        """Check (seq, type, key, settles, body, hash) rows in order."""
        previous, expected = bytes.fromhex(self.hash), self.length
        for seq, kind, key, settles, body, digest in rows:
            expected += 1
            self.length = expected
            if seq != expected:
                raise self.broken(f"it is missing (the next one there is {seq})")
            found = sha256(_ENTRY + previous + body.encode())
            if found.hexdigest() != digest:
                raise self.broken("its hash does not follow from its content and the entry before it")
            previous = found.digest()
            self._check(_decode(body)[0], kind, key, settles)
        self.hash = previous.hex()

    def _check(self, body: dict[str, Any], kind: str, key: str | None, settles: int | None) -> None:
        if body["seq"] != self.length or body["type"] != kind or body.get("dataset", REGISTER) != self.dataset:
            raise self.broken("its columns do not agree with its signed content")
        wanted = key_column(body["key"], body["call"]) if kind == "spend" else None
        if key != wanted or settles != (body["of"] if kind == "settle" else None):
            raise self.broken("its key or what it settles does not agree with its signed content")
        if self.dataset == REGISTER:
            self._register(body, kind)
        elif kind == "spend":
            self._spend(body)
        elif kind == "settle":
            if settles not in self.unsettled or body["state"] not in _STATES:
                raise self.broken(f"it settles entry {settles}, which is not an open spend")
            self.unsettled.discard(settles)
        elif kind == "limit":
            self.books.caps[body["holder"]] = None if body["cap"] is None else amount_from_json(body["cap"])
            self.books.spent.setdefault(body["holder"], self.books.zero)
        else:
            raise self.broken(f"an entry of type {kind!r} does not belong here")

    def _register(self, body: dict[str, Any], kind: str) -> None:
        if kind == "register":
            self.terms[body["name"]] = body["terms"]
        elif kind != "migrate":
            raise self.broken(f"an entry of type {kind!r} does not belong here")

    def _spend(self, body: dict[str, Any]) -> None:
        place = body["by"], amount_from_json(body["cost"]), body["partition"], body["part"]
        if min(place[1].meters) < 0 or place[1].failure < 0 or self.books.charge(*place) is not None:
            raise self.broken("it passes a cap")
        self.unsettled.add(self.length)


def key_column(key: str | None, call: str) -> str:
    """What stands in the unique key column: the caller's key, or the call's own random one."""
    return f"c:{call}" if key is None else f"k:{key}"


def register_chain(ledger: str) -> _Chain:
    return _Chain(REGISTER, genesis(ledger, REGISTER), Books(Amount(())))


def dataset_chain(ledger: str, dataset: str, terms_json: str) -> _Chain:
    terms = Terms.from_json(terms_json)
    books = Books(terms.zero, {DATASET: terms.zero}, {DATASET: terms.cap})
    return _Chain(dataset, genesis(ledger, dataset), books)


# -- a ledger in a store -------------------------------------------------------------------------------------


def verify(connection: sa.Connection, ledger: str) -> Verified:
    """Follow every chain of the store in one snapshot."""
    _check_file(connection)
    identity = {row.name: row.value for row in connection.execute(sa.select(meta.c.name, meta.c.value))}
    if identity != {"ledger": ledger, "schema": str(VERSION)}:
        raise ChainBroken(REGISTER, None, "the ledger's identity was changed")
    remembered = {row.name: row for row in connection.execute(sa.select(datasets))}
    register = register_chain(ledger)
    _follow(connection, register)
    _compare_head(register, remembered.get(REGISTER))
    if remembered[REGISTER].terms != "{}" or set(register.terms) != set(remembered) - {REGISTER}:
        raise ChainBroken(REGISTER, None, "the datasets are not those that were registered")
    total, chains = register.length, {REGISTER: (register.length, register.hash)}
    for dataset, terms_json in register.terms.items():
        if remembered[dataset].terms != terms_json:
            raise ChainBroken(dataset, None, "its terms are not those that were registered")
        chain = dataset_chain(ledger, dataset, terms_json)
        _follow(connection, chain)
        _compare_head(chain, remembered[dataset])
        _compare_totals(connection, chain)
        total += chain.length
        chains[dataset] = (chain.length, chain.hash)
    if connection.execute(sa.select(sa.func.count()).select_from(entries)).scalar_one() != total:
        raise ChainBroken(REGISTER, None, "there are entries of datasets that were never registered")
    for table in (accounts, slots):
        strangers = (
            sa.select(sa.func.count()).select_from(table).where(table.c.dataset.not_in(sa.select(datasets.c.name)))
        )
        if connection.execute(strangers).scalar_one():
            raise ChainBroken(REGISTER, None, "there are totals of datasets that were never registered")
    return Verified(total, len(register.terms), Head(ledger, chains))


def _check_file(connection: sa.Connection) -> None:
    if connection.dialect.name == "sqlite":
        verdict = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
        if verdict != "ok":
            raise ChainBroken(REGISTER, None, f"SQLite finds the file damaged ({verdict.splitlines()[0]})")


def _follow(connection: sa.Connection, chain: _Chain) -> None:
    columns = sa.select(entries.c.seq, entries.c.type, entries.c.key, entries.c.settles, entries.c.body, entries.c.hash)
    question = columns.where(entries.c.dataset == chain.dataset).order_by(entries.c.seq)
    rows = connection.execution_options(yield_per=2000).execute(question)
    for block in rows.partitions(2000):
        try:
            chain.follow(block)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise chain.broken("it cannot be read") from None


def _compare_head(chain: _Chain, row: Any) -> None:
    if row is None:
        raise ChainBroken(chain.dataset, None, "its row is missing")
    if row.length != chain.length:
        raise ChainBroken(
            chain.dataset,
            chain.length + 1,
            f"it is missing: the ledger remembers {row.length} entries, {chain.length} are there",
        )
    if row.head != chain.hash:
        raise ChainBroken(chain.dataset, chain.length, "the ledger remembers another last hash")


def _compare_totals(connection: sa.Connection, chain: _Chain) -> None:
    books = chain.books
    expected = {holder: holder_row(books.caps.get(holder), spent) for holder, spent in books.spent.items()}
    found = {
        row.pop("holder"): row
        for row in (
            dict(r._mapping) for r in connection.execute(sa.select(accounts).where(accounts.c.dataset == chain.dataset))
        )
        if row.pop("dataset") == chain.dataset
    }
    if found != expected:
        raise ChainBroken(chain.dataset, None, "the totals that it remembers are not the sums of its entries")
    places = {slot: amount_text(amount) for slot, amount in books.slots.items()}
    remembered = connection.execute(sa.select(slots).where(slots.c.dataset == chain.dataset))
    if {(row.holder, row.partition, row.part): row.amounts for row in remembered} != places:
        raise ChainBroken(chain.dataset, None, "the totals of its parts are not the sums of their entries")


# -- an exported ledger --------------------------------------------------------------------------------------


def verify_export(lines: Iterable[str]) -> Verified:
    """Verify the JSON lines that ``Ledger.export`` wrote, without a database."""
    stream = iter(lines)
    try:
        header = json.loads(next(stream))
        if header["dptally_ledger_export"] != 1:
            raise ValueError("another format")
        ledger = str(header["ledger"])
    except (StopIteration, ValueError, KeyError, TypeError):
        raise InvalidArgument("lines", "the JSON lines that Ledger.export wrote", "something else") from None
    chains = {REGISTER: register_chain(ledger)}
    head: Head | None = None
    for line in stream:
        if head is not None:
            raise ChainBroken(REGISTER, None, "the export goes on after its head")
        try:
            row = json.loads(line)
            if "dptally_ledger_head" in row:
                head = Head.from_json(line)
                continue
            chain = _exported_chain(chains, ledger, row["dataset"])
            body = json.loads(row["body"])
            key = key_column(body["key"], body["call"]) if body["type"] == "spend" else None
            chain.follow([(row["seq"], body["type"], key, body.get("of"), row["body"], row["hash"])])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ChainBroken(REGISTER, None, "a line of the export cannot be read") from None
    found = {name: (chain.length, chain.hash) for name, chain in chains.items()}
    unused = {name: (0, genesis(ledger, name)) for name in chains[REGISTER].terms if name not in chains}
    if head is None or dict(head.chains) != found | unused or head.ledger != ledger:
        raise ChainBroken(REGISTER, None, "the export does not end with the head of its own entries")
    return Verified(sum(chain.length for chain in chains.values()), len(chains[REGISTER].terms), head)


def _exported_chain(chains: dict[str, _Chain], ledger: str, dataset: str) -> _Chain:
    if dataset not in chains:
        terms = chains[REGISTER].terms.get(dataset)
        if terms is None:
            raise ChainBroken(dataset, None, "it was never registered")
        chains[dataset] = dataset_chain(ledger, dataset, terms)
    return chains[dataset]
