"""The two writes of a spend: the debit before the data is touched, the settlement after.

A debit locks the dataset, answers a known key with the entry that holds it, checks every cap, appends to the
chain and updates the totals. Either all of it is durable or none of it happened.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from dptally.errors import (
    BudgetExceeded,
    CannotPrice,
    ChainBroken,
    DptallyError,
    InvalidArgument,
    KeyReused,
    NotReleasable,
)
from dptally.law.adjacency import REPLACE
from dptally.ledger import hints
from dptally.ledger.books import DATASET, Books
from dptally.ledger.chain import canonical
from dptally.ledger.entries import (
    Entry,
    Request,
    State,
    cost_of,
    differences,
    now,
    plan_from_json,
    plan_to_json,
    settle_body,
    spend_body,
    stamp,
    state_of,
)
from dptally.ledger.journal import Journal, find_keys, settlements
from dptally.ledger.names import alike
from dptally.ledger.schema import accounts, entries
from dptally.ledger.stated import check_plan
from dptally.ledger.statements import Statement
from dptally.ledger.status import exceeded
from dptally.ledger.terms import Terms
from dptally.ledger.units import Amount
from dptally.ledger.values import decoded
from dptally.ledger.verification import key_column
from dptally.mechanisms.mechanism import Mechanism

__all__ = [
    "Asked",
    "Refused",
    "check_request",
    "debit",
    "entry_of",
    "is_deferred",
    "settle",
    "settle_once",
]

_DEFERRED = "deferred:"  # a call of this kind gives its value out only after it was stored


def is_deferred(call: str) -> bool:
    """Whether a spend was reserved: no value leaves before it is settled, so it may run again until then."""
    return call.startswith(_DEFERRED)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request on its way: ``call`` tells a repeated transaction of this call from another caller's."""

    request: Request
    plan_json: str
    call: str = field(default_factory=lambda: secrets.token_hex(8))
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", key_column(self.request.key, self.call))

    @classmethod
    def of(cls, request: Request, deferred: bool = False) -> Asked:
        text = plan_to_json(request.plan)
        if plan_from_json(text) != request.plan:  # the history must be able to say what was paid for
            raise InvalidArgument("plan", "one that its JSON gives back unchanged", request.plan)
        return cls(request, text, _DEFERRED + secrets.token_hex(8)) if deferred else cls(request, text)


@dataclass(slots=True, eq=False)
class Refused(Exception):
    """A spend does not fit. Raised out of the transaction; what would fit is worked out without the lock."""

    dataset: str
    terms: Terms
    books: Books
    request: Request
    holder: str
    cost: Amount

    def explained(self) -> BudgetExceeded:
        by, partition, part = self.request.by, self.request.partition, self.request.part

        def fits(plan: Mechanism) -> bool:
            try:
                return self.books.refused_by(by, self.terms.price(plan), partition, part) is None
            except CannotPrice:
                return False

        hint = hints.fitting_noise(self.request.plan, fits)
        return exceeded(self.dataset, self.terms, self.books, self.holder, self.cost, partition, part, hint)


def debit(connection: sa.Connection, dataset: str, asked: Sequence[Asked]) -> list[tuple[Entry, bool]]:
    """Charge every request that is new, or none: (entry, replayed) for each."""
    journal = Journal.locked(connection, dataset)
    terms = journal.terms
    found = find_keys(connection, dataset, (one.key for one in asked))
    fresh = {one.key: one for one in reversed(asked) if one.key not in found}
    analysts = {one.request.by for one in fresh.values()}
    places = {(one.request.partition, one.request.part) for one in fresh.values()}
    before = journal.load(analysts, places)
    books = before.copy()
    at = now()
    bodies: list[tuple[str, dict[str, Any]]] = []
    for one in asked:
        if fresh.get(one.key) is one:
            cost = check_request(connection, dataset, terms, books, one.request)
            books.charge(one.request.by, cost, one.request.partition, one.request.part)
            body = spend_body(one.request, one.plan_json, dataset, journal.length + len(bodies) + 1, one.call, cost, at)
            bodies.append((one.key, body))
    if bodies:
        journal.save(before, books)
        hashes = journal.append([("spend", key, None, canonical(body)) for key, body in bodies])
        found |= {key: (body, digest) for (key, body), digest in zip(bodies, hashes, strict=True)}
    return _answers(connection, dataset, terms, asked, found)


def check_request(connection: sa.Connection, dataset: str, terms: Terms, books: Books, request: Request) -> Amount:
    """The price of a request that fits; otherwise Refused, or the error that says what is wrong with it."""
    if request.partition and terms.adjacency is REPLACE:
        raise InvalidArgument(
            "partition",
            "left out: under REPLACE a record may leave one part and enter another, so parts do not compose "
            "in parallel",
            request.partition,
        )
    if request.partition:
        terms.check_part(request.partition, request.part)
    check_plan(dataset, terms, request.plan)
    if request.by and request.by not in books.spent:
        _check_analyst(connection, dataset, request.by)
    if not request.by and _has_analyst_caps(connection, dataset):
        raise InvalidArgument("by", "given: analysts of this dataset have caps of their own", request.by)
    cost = terms.price(request.plan)
    holder = books.refused_by(request.by, cost, request.partition, request.part)
    if holder is not None:
        raise Refused(dataset, terms, books, request, holder, cost)
    return cost


def _check_analyst(connection: sa.Connection, dataset: str, by: str) -> None:
    """A new name must not look like an analyst's who is known here."""
    known = connection.execute(sa.select(accounts.c.holder).where(accounts.c.dataset == dataset)).scalars()
    twin = alike(by, known)
    if twin is not None:
        raise InvalidArgument("by", f"a name that does not look like the analyst {twin!r}, who is another", by)


def _has_analyst_caps(connection: sa.Connection, dataset: str) -> bool:
    capped = (accounts.c.dataset == dataset, accounts.c.holder != DATASET, accounts.c.caps.is_not(None))
    return connection.execute(sa.select(sa.literal(1)).where(*capped).limit(1)).first() is not None


def _answers(
    connection: sa.Connection,
    dataset: str,
    terms: Terms,
    asked: Sequence[Asked],
    found: Mapping[str, tuple[Mapping[str, Any], str]],
) -> list[tuple[Entry, bool]]:
    """The entries that hold the requests' keys; a different request under the same key is refused."""
    answers = []
    old = (body["seq"] for one in asked for body, _ in [found[one.key]] if body["call"] != one.call)
    ends = settlements(connection, dataset, old)
    for one in asked:
        body, digest = found[one.key]
        differs = differences(body, one.request, one.plan_json)
        if differs:
            raise KeyReused(dataset, str(one.request.key), differs)
        entry = entry_of(dataset, terms, body, digest, ends.get(body["seq"]))
        answers.append((entry, body["call"] != one.call))
    return answers


def entry_of(dataset: str, terms: Terms, body: Mapping[str, Any], digest: str, end: Mapping[str, Any] | None) -> Entry:
    cost = cost_of(body)
    meter = terms.cheapest(cost)
    return Entry(
        dataset=dataset,
        number=body["seq"],
        at=body["at"],
        by=body["by"],
        why=body["why"],
        key=body["key"],
        labels=tuple(body["labels"]),
        partition=body["partition"],
        part=body["part"],
        plan_json=body["plan"],
        cost=terms.number_up(cost.meters[meter]),
        symbol=terms.symbol(meter),
        expires=body["expires"],
        hash=digest,
        state=state_of(body, end, now()) if end is not None or body["expires"] is not None else "reserved",
        value=None if end is None else _stored(dataset, body["seq"], end),
        amount=cost,
        call=body["call"],
        kept=end is not None and "value" in end,
    )


def _stored(dataset: str, number: int, end: Mapping[str, Any]) -> Any:
    try:
        return decoded(end.get("value"))
    except (ValueError, TypeError, KeyError, ArithmeticError, DptallyError):
        raise ChainBroken(dataset, number, "the value that was stored for it cannot be read") from None


_CHARGED = Statement(
    sa.select(entries.c.seq, entries.c.body).where(
        entries.c.dataset == sa.bindparam("dataset"), sa.literal_column("seq IN (-1)")
    )
)


@dataclass(slots=True)
class _Settling:
    """Spends about to be settled, under the dataset's lock: who was charged, and which have ended."""

    journal: Journal
    bodies: dict[int, str]
    ends: dict[int, dict[str, Any]]
    rows: list[tuple[str, str | None, int | None, str]] = field(default_factory=list)

    @classmethod
    def locked(cls, connection: sa.Connection, dataset: str, numbers: Sequence[int]) -> _Settling:
        journal = Journal.locked(connection, dataset)
        bodies: dict[int, str] = {}
        for start in range(0, len(numbers), 500):
            some = numbers[start : start + 500]
            bodies.update((row.seq, row.body) for row in _CHARGED(connection, {"dataset": dataset}, some))
        return cls(journal, bodies, settlements(connection, dataset, numbers))

    def check_charged(self, entry: Entry) -> None:
        """The entry must hold the token of the call. (Inside a JSON text quotes are escaped, so these are not.)"""
        if not entry.call or f'"call":"{entry.call}"' not in self.bodies.get(entry.number, ""):
            raise NotReleasable(f"entry {entry.number} of dataset {entry.dataset!r} was charged to another caller")

    def end(self, entry: Entry, state: State, value: Any, call: str, at: datetime) -> str | None:
        """Write the ending of one spend; where it expired it is burnt instead, and the reason is returned."""
        late = None
        if state == "released" and entry.expires is not None and entry.expires <= stamp(at):
            late = f"the reservation of entry {entry.number} of dataset {entry.dataset!r} expired at {entry.expires}"
            state, value = "burnt", None
        number = self.journal.length + len(self.rows) + 1
        body = settle_body(entry.dataset, number, entry.number, state, value, at, call, entry.by)
        self.rows.append(("settle", None, entry.number, body))
        return late

    def write(self) -> None:
        if self.rows:
            self.journal.append(self.rows)


def settle(
    connection: sa.Connection, dataset: str, endings: Sequence[tuple[Entry, State, Any]], call: str
) -> list[str]:
    """Settle open spends, each once; the reasons why some could not be released (those are burnt instead).

    ``call`` is one random text for one attempt. An ending that carries it was committed by this very attempt
    before the connection was lost; any other was written by somebody else.
    """
    settling = _Settling.locked(connection, dataset, [entry.number for entry, _, _ in endings])
    at, late = now(), []
    for entry, state, value in endings:
        settling.check_charged(entry)
        end = settling.ends.get(entry.number)
        if end is None:
            late.append(settling.end(entry, state, value, call, at))
        elif end.get("call") != call:
            raise NotReleasable(
                f"entry {entry.number} of dataset {dataset!r} is {end['state']} already; do not publish another answer"
            )
        elif end["state"] != state:
            late.append(f"the reservation of entry {entry.number} of dataset {dataset!r} expired at {entry.expires}")
    settling.write()
    return [reason for reason in late if reason is not None]


def settle_once(connection: sa.Connection, entry: Entry, state: State, value: Any, call: str) -> tuple[State, Any]:
    """Compare and set: end a reserved spend unless it has ended; how it ended, by us or by another."""
    settling = _Settling.locked(connection, entry.dataset, [entry.number])
    settling.check_charged(entry)
    end = settling.ends.get(entry.number)
    if end is None:
        late = settling.end(entry, state, value, call, now())
        settling.write()
        return ("burnt", None) if late is not None else (state, value)
    ended: State = end["state"]
    return ended, end.get("value")
