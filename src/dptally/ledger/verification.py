"""Verifying a ledger: follow every chain, replay its sums, and compare with what the ledger remembers.

The first disagreement is raised as :class:`dptally.errors.ChainBroken` with its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from dptally.errors import ChainBroken, DptallyError, InvalidArgument, InvalidType
from dptally.ledger.books import DATASET, Books, Running
from dptally.ledger.chain import Head, canonical, genesis
from dptally.ledger.commitment import bucket_of, commitment, digest_of, row_text, stated
from dptally.ledger.entries import plan_from_json
from dptally.ledger.growth import Growth
from dptally.ledger.journal import REGISTER, holder_row
from dptally.ledger.merkle import root
from dptally.ledger.plain import PlainReader
from dptally.ledger.pricing import priced
from dptally.ledger.reading import HEAD_LIMIT, read_object
from dptally.ledger.schema import VERSION, accounts, datasets, entries, meta, slots
from dptally.ledger.statements import Statement
from dptally.ledger.structure import check_structure
from dptally.ledger.terms import Terms, amount_from_json
from dptally.ledger.units import Amount

__all__ = ["Verified", "verify", "verify_export"]

_STATES = ("released", "burnt")
_SLACK = 10**9  # a price may differ in its last digits between machines: one part in 10^9 is let pass
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
Row = tuple[int, str, str | None, int | None, str, str, str | None, Any]


@dataclass(frozen=True, slots=True)
class Verified:
    """The ledger agrees with itself; ``head`` is what was verified. ``plans`` is how many different plans were
    priced again.
    """

    entries: int
    datasets: int
    head: Head
    plans: int = 0


@dataclass(slots=True)
class _Chain:
    """One chain, replayed."""

    dataset: str
    hash: str
    books: Books
    terms_json: str = "{}"
    length: int = 0
    terms: dict[str, str] = field(default_factory=dict)  # in the register: dataset -> terms
    unsettled: dict[int, str] = field(default_factory=dict)  # the open spends, and whose they are
    stated: str | None = None  # the totals that the last entry states
    priced: dict[tuple[str, tuple[str, ...]], int] | None = None  # plan and cost -> the first entry that has them
    growth: Growth = field(init=False)
    running: Running = field(init=False)  # sums that are not in the books yet
    reader: PlainReader = field(init=False)

    def __post_init__(self) -> None:
        self.growth = Growth(0, self.hash, [])
        self.running = Running(self.books)
        self.reader = PlainReader(self.dataset)

    def broken(self, reason: str) -> ChainBroken:
        return ChainBroken(self.dataset, self.length, reason)

    def follow(self, rows: Iterable[Row]) -> None:
        """Check (seq, type, key, settles, body, hash, by, node) rows in order. A node of ... is not checked."""
        expected, append, last = self.length, self.growth.append, ""
        for seq, kind, key, settles, body, digest, by, node in rows:
            self.length = expected = expected + 1
            if seq != expected:
                raise self.broken(f"it is missing (the next one there is {seq})")
            right, expected_node = append(body)
            if right != digest:
                raise self.broken("its hash does not follow from its content and the entry before it")
            if node != expected_node and node is not ...:
                raise self.broken("its node of the Merkle tree is not the hash of the entries below it")
            if not (
                (kind == "spend" and self._is_plain_spend(body, key, settles, by))
                or (kind == "settle" and self._is_plain_ending(body, key, settles, by))
            ):
                self._check(read_object(body), kind, key, settles, by)
            last = body
        self.running.close()
        if last:
            self.hash, self.stated = self.growth.head, stated(last)

    @property
    def peaks(self) -> list[str]:
        return self.growth.peaks

    def _is_plain_spend(self, body: str, key: str | None, settles: int | None, by: str | None) -> bool:
        """Whether the entry is a plain spend that agrees with its columns; then it is charged."""
        if settles is not None or by is None or len(self.books.zero.meters) != 1:
            return False
        found = self.reader.spend(body, self.length, by, key)
        if found is None:
            return False
        units, cost, plan = found
        if self.running.add(by, units) is not None:
            raise self.broken("it passes a cap")
        self.unsettled[self.length] = by
        if self.priced is not None:
            self.priced.setdefault((plan, (cost, "0")), self.length)
        return True

    def _is_plain_ending(self, body: str, key: str | None, settles: int | None, by: str | None) -> bool:
        """Whether the entry is an ending without a value that agrees with its columns; then it is settled."""
        if key is not None or settles is None or self.unsettled.get(settles) != by or by is None:
            return False
        if not self.reader.ending(body, self.length, by, settles):
            return False
        del self.unsettled[settles]
        return True

    def _check(self, body: dict[str, Any], kind: str, key: str | None, settles: int | None, by: str | None) -> None:
        if (
            body["seq"] != self.length
            or body["type"] != kind
            or body.get("dataset", REGISTER) != self.dataset
            or body.get("by") != by
        ):
            raise self.broken("its columns do not agree with its signed content")
        if kind == "spend":
            if self.dataset == REGISTER:
                raise self.broken(f"an entry of type {kind!r} does not belong here")
            if key != key_column(body["key"], body["call"]) or settles is not None:
                raise self.broken("its key or what it settles does not agree with its signed content")
            self._spend(body)
            return
        if key is not None or settles != (body["of"] if kind == "settle" else None):
            raise self.broken("its key or what it settles does not agree with its signed content")
        if self.dataset == REGISTER:
            self._register(body, kind)
        elif kind == "settle":
            whose = self.unsettled.pop(body["of"], None)
            if whose is None or body["state"] not in _STATES or by not in (None, whose):
                raise self.broken(f"it settles entry {settles}, which is not an open spend")
        elif kind == "limit":
            self.running.close()
            self.books.caps[body["holder"]] = None if body["cap"] is None else amount_from_json(body["cap"])
            self.books.spent.setdefault(body["holder"], self.books.zero)
        elif kind != "migrate" or "from" not in body:
            raise self.broken(f"an entry of type {kind!r} does not belong here")

    def _register(self, body: dict[str, Any], kind: str) -> None:
        if kind == "register":
            self.terms[body["name"]] = body["terms"]
        elif kind != "migrate":
            raise self.broken(f"an entry of type {kind!r} does not belong here")

    def _spend(self, body: dict[str, Any]) -> None:
        by, raw = body["by"], body["cost"]
        cost = amount_from_json(raw)
        self.running.close()
        if (
            min(cost.meters) < 0
            or cost.failure < 0
            or self.books.charge(by, cost, body["partition"], body["part"]) is not None
        ):
            raise self.broken("it passes a cap")
        self.unsettled[self.length] = by
        if self.priced is not None:
            self.priced.setdefault((body["plan"], tuple(raw)), self.length)

    @property
    def root(self) -> str:
        return root(self.peaks, self.hash)

    def price_again(self) -> int:
        """Price each different plan again; the number of them. An entry that was charged less is named."""
        terms = Terms.from_json(self.terms_json)
        for (plan, raw), number in (self.priced or {}).items():
            self.length = number
            try:
                charged, price = amount_from_json(raw), priced(terms, plan_from_json(plan))
            except (DptallyError, *_UNREADABLE):
                raise self.broken("its plan cannot be priced again") from None
            pairs = zip((*charged.meters, charged.failure), (*price.meters, price.failure), strict=True)
            if any(_SLACK * units < (_SLACK - 1) * cost for units, cost in pairs):
                raise self.broken("it was charged less than its plan costs")
        return len(self.priced or {})


def key_column(key: str | None, call: str) -> str:
    """What stands in the unique key column: the caller's key, or the call's own random one."""
    return f"c:{call}" if key is None else f"k:{key}"


def register_chain(ledger: str) -> _Chain:
    return _Chain(REGISTER, genesis(ledger, REGISTER), Books(Amount(())))


def dataset_chain(ledger: str, dataset: str, terms_json: str) -> _Chain:
    try:
        terms = Terms.from_json(terms_json)
    except (DptallyError, *_UNREADABLE):
        raise ChainBroken(dataset, None, "its terms cannot be read") from None
    books = Books(terms.zero, {DATASET: terms.zero}, {DATASET: terms.cap})
    return _Chain(dataset, genesis(ledger, dataset), books, terms_json)


# -- a ledger in a store -------------------------------------------------------------------------------------


def verify(connection: sa.Connection, ledger: str, prices: bool = False) -> Verified:
    """Follow every chain of the store in one snapshot; with ``prices``, price each different plan again."""
    check_structure(connection)
    identity = {row.name: row.value for row in connection.execute(sa.select(meta.c.name, meta.c.value))}
    if identity != {"ledger": ledger, "schema": str(VERSION)}:
        raise ChainBroken(REGISTER, None, "the ledger's identity was changed")
    remembered = {row.name: row for row in connection.execute(sa.select(datasets))}
    register = register_chain(ledger)
    _follow(connection, register)
    _compare_head(register, remembered.get(REGISTER))
    row = remembered[REGISTER]
    if (row.terms, row.books) != ("{}", "{}") or set(register.terms) != set(remembered) - {REGISTER}:
        raise ChainBroken(REGISTER, None, "the datasets are not those that were registered")
    total, plans = register.length, 0
    chains, roots = {REGISTER: (register.length, register.hash)}, {REGISTER: register.root}
    for dataset, terms_json in register.terms.items():
        if remembered[dataset].terms != terms_json:
            raise ChainBroken(dataset, None, "its terms are not those that were registered")
        chain = replayed_dataset(connection, ledger, dataset, terms_json, prices)
        _compare_head(chain, remembered[dataset])
        _compare_statement(chain, remembered[dataset])
        total += chain.length
        chains[dataset], roots[dataset] = (chain.length, chain.hash), chain.root
        plans += chain.price_again()
    _compare_strangers(connection, total)
    return Verified(total, len(register.terms), Head(ledger, chains, roots), plans)


def replayed_dataset(
    connection: sa.Connection, ledger: str, dataset: str, terms_json: str, prices: bool = False
) -> _Chain:
    """The chain of a dataset, followed to its end; its sums must be the totals that the store holds."""
    chain = dataset_chain(ledger, dataset, terms_json)
    chain.priced = {} if prices else None
    _follow(connection, chain)
    _compare_totals(connection, chain)
    return chain


def _compare_strangers(connection: sa.Connection, total: int) -> None:
    if connection.execute(sa.select(sa.func.count()).select_from(entries)).scalar_one() != total:
        raise ChainBroken(REGISTER, None, "there are entries of datasets that were never registered")
    for table in (accounts, slots):
        strangers = (
            sa.select(sa.func.count()).select_from(table).where(table.c.dataset.not_in(sa.select(datasets.c.name)))
        )
        if connection.execute(strangers).scalar_one():
            raise ChainBroken(REGISTER, None, "there are totals of datasets that were never registered")


def _compare_statement(chain: _Chain, row: Any) -> None:
    """The digests of the totals, and the hash of them that the last entry states."""
    buckets = canonical(digests(chain.books))
    if row.books != buckets:
        raise ChainBroken(chain.dataset, None, "the digests of its totals are not those of its entries")
    if chain.length and chain.stated != commitment(chain.terms_json, buckets):
        raise ChainBroken(chain.dataset, chain.length, "the totals that it states are not the sums of the entries")


def digests(books: Books) -> dict[str, str]:
    """The digest of every bucket of totals that is not empty."""
    texts: dict[int, list[str]] = {}
    for holder, spent in books.spent.items():
        caps = books.caps.get(holder)
        text = row_text((holder,), None if caps is None else caps.text(), spent.text())
        texts.setdefault(bucket_of(holder), []).append(text)
    for slot, amount in books.slots.items():
        texts.setdefault(bucket_of(*slot), []).append(row_text(slot, None, amount.text()))
    return {str(bucket): digest_of(rows) or "" for bucket, rows in texts.items()}


def _follow(connection: sa.Connection, chain: _Chain) -> None:
    try:
        chain.follow(_CHAIN.stream(connection, {"dataset": chain.dataset}))
    except _UNREADABLE:
        raise chain.broken("it cannot be read") from None


_CHAIN = Statement(
    sa.select(*(entries.c[name] for name in ("seq", "type", "key", "settles", "body", "hash", "by", "node")))
    .where(entries.c.dataset == sa.bindparam("dataset"))
    .order_by(entries.c.seq)
)


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
    if row.peaks != canonical(chain.peaks):
        raise ChainBroken(chain.dataset, chain.length, "the ledger remembers other peaks of its Merkle tree")


def _compare_totals(connection: sa.Connection, chain: _Chain) -> None:
    books = chain.books
    expected = {holder: holder_row(holder, books.caps.get(holder), spent) for holder, spent in books.spent.items()}
    found = {
        row.pop("holder"): row
        for row in (
            dict(r._mapping) for r in connection.execute(sa.select(accounts).where(accounts.c.dataset == chain.dataset))
        )
        if row.pop("dataset") == chain.dataset
    }
    if found != expected:
        raise ChainBroken(chain.dataset, None, "the totals that it remembers are not the sums of its entries")
    places = {slot: (amount.text(), bucket_of(*slot)) for slot, amount in books.slots.items()}
    remembered = connection.execute(sa.select(slots).where(slots.c.dataset == chain.dataset))
    if {(row.holder, row.partition, row.part): (row.amounts, row.bucket) for row in remembered} != places:
        raise ChainBroken(chain.dataset, None, "the totals of its parts are not the sums of their entries")


# -- an exported ledger --------------------------------------------------------------------------------------


def verify_export(lines: Iterable[str]) -> Verified:
    """Verify the JSON lines that ``Ledger.export`` wrote, without a database."""
    if not isinstance(lines, Iterable):
        raise InvalidType("lines", "the JSON lines that Ledger.export wrote", lines)
    stream = iter(lines)
    ledger = _exported_ledger(stream)
    if ledger is None:
        raise InvalidArgument("lines", "the JSON lines that Ledger.export wrote", "something else")
    chains = {REGISTER: register_chain(ledger)}
    head: Head | None = None
    for line in stream:
        if head is not None:
            raise ChainBroken(REGISTER, None, "the export goes on after its head")
        try:
            row = read_object(line, "line", HEAD_LIMIT)
            if "dptally_ledger_head" in row:
                head = Head.from_json(line)
                continue
            chain = _exported_chain(chains, ledger, row["dataset"])
            text = row["body"]
            body = read_object(text)
            key = key_column(body["key"], body["call"]) if body["type"] == "spend" else None
            chain.follow([(row["seq"], body["type"], key, body.get("of"), text, row["hash"], body.get("by"), ...)])
        except _UNREADABLE:
            raise ChainBroken(REGISTER, None, "a line of the export cannot be read") from None
    for name, terms in chains[REGISTER].terms.items():
        chains.setdefault(name, dataset_chain(ledger, name, terms))
    found = {name: (chain.length, chain.hash) for name, chain in chains.items()}
    roots = {name: chain.root for name, chain in chains.items()}
    if head is None or head.ledger != ledger or dict(head.chains) != found or dict(head.roots) not in ({}, roots):
        raise ChainBroken(REGISTER, None, "the export does not end with the head of its own entries")
    return Verified(sum(chain.length for chain in chains.values()), len(chains[REGISTER].terms), head)


def _exported_ledger(stream: Iterator[str]) -> str | None:
    try:
        header = read_object(next(stream), "line")
        return str(header["ledger"]) if header["dptally_ledger_export"] == 1 else None
    except (StopIteration, *_UNREADABLE):
        return None


def _exported_chain(chains: dict[str, _Chain], ledger: str, dataset: str) -> _Chain:
    if dataset not in chains:
        terms = chains[REGISTER].terms.get(dataset)
        if terms is None:
            raise ChainBroken(dataset, None, "it was never registered")
        chains[dataset] = dataset_chain(ledger, dataset, terms)
    return chains[dataset]
