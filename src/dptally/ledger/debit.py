"""The two writes of a spend: the debit before the data is touched, the settlement after.

A debit locks the dataset, answers a known key with the entry that holds it, checks every cap, appends to the
chain and updates the totals. Either all of it is durable or none of it happened.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

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
from dptally.ledger.books import DATASET, Books, Running
from dptally.ledger.entries import (
    Entry,
    Fresh,
    Request,
    Spend,
    State,
    cost_of,
    differences,
    ending_of,
    facts_of,
    now,
    plan_from_json,
    plan_to_json,
    settle_body,
    spend_body,
    stamp,
    state_of,
)
from dptally.ledger.journal import Journal, New, find_keys, settlements
from dptally.ledger.names import alike
from dptally.ledger.pricing import price_of
from dptally.ledger.reading import read_object
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
    "PendingRequest",
    "Refused",
    "Till",
    "asked_of",
    "debit",
    "entry_of",
    "is_deferred",
    "settle",
    "settle_once",
]

_TOKEN = 8  # random bytes of a call
_DEFERRED = "deferred:"  # a call of this kind gives its value out only after it was stored


def is_deferred(call: str) -> bool:
    """Whether a spend was reserved: no value leaves before it is settled, so it may run again until then."""
    return call.startswith(_DEFERRED)


class PendingRequest(NamedTuple):
    """A request on its way. ``call`` tells a repeated transaction of this call from another caller's; ``key`` is
    what stands in the unique column of keys.
    """

    request: Request
    plan_json: str
    call: str
    key: str


def asked_of(requests: Sequence[Request], deferred: bool = False) -> list[PendingRequest]:
    """The requests with their plans as JSON and a random call each."""
    texts: dict[int, str] = {}  # by the identity of the plan: many requests of a batch share one
    tokens, kind = secrets.token_hex(_TOKEN * len(requests)), _DEFERRED if deferred else ""
    asked = []
    for place, request in enumerate(requests):
        text = texts.get(id(request.plan))
        if text is None:
            text = texts[id(request.plan)] = _checked_json(request.plan)
        call = kind + tokens[2 * _TOKEN * place : 2 * _TOKEN * (place + 1)]
        asked.append(PendingRequest(request, text, call, key_column(request.key, call)))
    return asked


def _checked_json(plan: Mechanism) -> str:
    """The history must be able to say what was paid for."""
    text = plan_to_json(plan)
    if plan_from_json(text) != plan:
        raise InvalidArgument("plan", "one that its JSON gives back unchanged", plan)
    return text


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


def debit(connection: sa.Connection, dataset: str, asked: Sequence[PendingRequest]) -> list[tuple[Spend, bool]]:
    """Charge every request that is new, or none: (spend, replayed) for each."""
    journal = Journal.locked(connection, dataset)
    found = find_keys(connection, dataset, [one.key for one in asked])
    fresh: dict[str, PendingRequest] = {}
    for one in asked:
        if one.key not in found:
            fresh.setdefault(one.key, one)
    charged = _charge(journal, list(fresh.values())) if fresh else {}
    old = _old_entries(journal, [one for one in asked if one.key in found], found)
    answers: list[tuple[Spend, bool]] = []
    for one in asked:
        first = fresh.get(one.key)
        if first is None:
            answers.append((old[one.key], old[one.key].call != one.call))
            continue
        if first is not one:
            _check_same(dataset, facts_of(first.request, first.plan_json), one)
        answers.append((charged[one.key], first is not one))
    return answers


def _charge(journal: Journal, fresh: Sequence[PendingRequest]) -> dict[str, Fresh]:
    """Write the spends of these requests, all new; the spends by key."""
    dataset = journal.dataset
    analysts = {one.request.by for one in fresh}
    places = {(one.request.partition, one.request.part) for one in fresh}
    before = journal.load(analysts, places)
    till = Till(journal.connection, dataset, journal.terms, before.copy())
    at, length = now(), journal.length
    stamped, rows, made = stamp(at), [], []
    for number, one in enumerate(fresh, length + 1):
        price, expires = till.charge(one.request), ending_of(one.request, at)
        body = spend_body(one.request, one.plan_json, dataset, number, one.call, price.amount, stamped, expires)
        rows.append(("spend", one.key, None, body))
        made.append((price, expires))
    till.close()
    journal.save(before, till.books)
    hashes = journal.append(rows)
    return {
        one.key: Fresh(
            dataset,
            number,
            stamped,
            one.request,
            one.plan_json,
            one.call,
            price.number,
            price.symbol,
            price.amount,
            expires,
            digest,
        )
        for number, (one, (price, expires), digest) in enumerate(zip(fresh, made, hashes, strict=True), length + 1)
    }


class Price(NamedTuple):
    """What a plan costs: the number that is shown, and in exact units."""

    number: float
    symbol: str
    amount: Amount

    @classmethod
    def of(cls, terms: Terms, amount: Amount) -> Price:
        meter = terms.cheapest(amount)
        return cls(terms.number_up(amount.meters[meter]), terms.symbol(meter), amount)


@dataclass(slots=True)
class Till:
    """Charges requests to the books of a dataset under its lock, or to a copy of them to see whether they fit."""

    connection: sa.Connection
    dataset: str
    terms: Terms
    books: Books
    prices: dict[int, Price] = field(default_factory=dict)  # by the identity of the plan, which its request holds
    capped: bool | None = None  # whether analysts have caps, once somebody asked
    running: Running = field(init=False)  # sums that are not in the books yet
    analysts: set[str] = field(init=False)  # who is known, and whose name was looked at

    def __post_init__(self) -> None:
        self.running = Running(self.books)
        self.analysts = set(self.books.spent)

    def charge(self, request: Request) -> Price:
        """The price of a request that fits, now charged; otherwise Refused, or what is wrong with it."""
        if request.partition:
            self._check_part(request)
        if request.by and request.by not in self.analysts:
            self._check_analyst(request.by)
        if not request.by and self._has_analyst_caps():
            raise InvalidArgument("by", "given: analysts of this dataset have caps of their own", request.by)
        price = self.prices.get(id(request.plan))
        if price is None:
            check_plan(self.dataset, self.terms, request.plan)
            price = Price.of(self.terms, price_of(self.terms, request.plan))
            self.prices[id(request.plan)] = price
        holder = self._add(request, price.amount)
        if holder is not None:
            self.close()
            raise Refused(self.dataset, self.terms, self.books, request, holder, price.amount)
        return price

    def _add(self, request: Request, cost: Amount) -> str | None:
        if request.partition or cost.failure or len(cost.meters) > 1:
            self.close()
            return self.books.charge(request.by, cost, request.partition, request.part)
        return self.running.add(request.by, cost.meters[0])  # pyright: ignore[reportGeneralTypeIssues]

    def close(self) -> None:
        """Write all sums into the books."""
        self.running.close()

    def _check_part(self, request: Request) -> None:
        if self.terms.adjacency is REPLACE:
            raise InvalidArgument(
                "partition",
                "left out: under REPLACE a record may leave one part and enter another, so parts do not compose "
                "in parallel",
                request.partition,
            )
        self.terms.check_part(request.partition, request.part)

    def _check_analyst(self, by: str) -> None:
        """A new name must not look like an analyst's who is known here, or is new in the same batch."""
        holders = sa.select(accounts.c.holder).where(accounts.c.dataset == self.dataset)
        twin = alike(by, [*self.connection.execute(holders).scalars(), *self.analysts])
        if twin is not None:
            raise InvalidArgument("by", f"a name that does not look like the analyst {twin!r}, who is another", by)
        self.analysts.add(by)

    def _has_analyst_caps(self) -> bool:
        if self.capped is None:
            here = (accounts.c.dataset == self.dataset, accounts.c.holder != DATASET, accounts.c.caps.is_not(None))
            found = self.connection.execute(sa.select(sa.literal(1)).where(*here).limit(1)).first()
            self.capped = found is not None
        return self.capped


def _old_entries(
    journal: Journal, asked: Sequence[PendingRequest], found: Mapping[str, tuple[Mapping[str, Any], str]]
) -> dict[str, Entry]:
    """The entries that hold these keys; a different request under the same key is refused."""
    if not asked:
        return {}
    entries = {}
    ends = settlements(
        journal.connection,
        journal.dataset,
        [found[one.key][0]["seq"] for one in asked if found[one.key][0]["call"] != one.call],
    )
    for one in asked:
        body, digest = found[one.key]
        _check_same(journal.dataset, body, one)
        entries[one.key] = entry_of(journal.dataset, journal.terms, body, digest, ends.get(body["seq"]))
    return entries


def _check_same(dataset: str, spend: Mapping[str, Any], one: PendingRequest) -> None:
    differs = differences(spend, one.request, one.plan_json)
    if differs:
        raise KeyReused(dataset, str(one.request.key), differs)


def entry_of(dataset: str, terms: Terms, body: Mapping[str, Any], digest: str, end: Mapping[str, Any] | None) -> Entry:
    price = Price.of(terms, cost_of(body))
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
        cost=price.number,
        symbol=price.symbol,
        expires=body["expires"],
        hash=digest,
        state=state_of(body, end, now()) if end is not None or body["expires"] is not None else "reserved",
        value=None if end is None else _stored(dataset, body["seq"], end),
        amount=price.amount,
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
_of = sa.select(entries.c.seq, entries.c.settles, entries.c.body).where(entries.c.dataset == sa.bindparam("dataset"))
_CHARGE_AND_END = Statement(
    _of.where(entries.c.seq == sa.bindparam("number")).union_all(_of.where(entries.c.settles == sa.bindparam("number")))
)


@dataclass(slots=True)
class _Settling:
    """Spends about to be settled, under the dataset's lock: who was charged, and which have ended."""

    journal: Journal
    bodies: dict[int, str]
    ends: dict[int, dict[str, Any]]
    rows: list[New] = field(default_factory=list)

    @classmethod
    def locked(cls, connection: sa.Connection, dataset: str, numbers: Sequence[int]) -> _Settling:
        journal = Journal.locked(connection, dataset)
        if len(numbers) == 1:
            return cls._of_one(journal, numbers[0])
        bodies: dict[int, str] = {}
        for start in range(0, len(numbers), 500):
            some = numbers[start : start + 500]
            bodies.update(_CHARGED.rows(connection, {"dataset": dataset}, some))
        return cls(journal, bodies, settlements(connection, dataset, numbers))

    @classmethod
    def _of_one(cls, journal: Journal, number: int) -> _Settling:
        found = _CHARGE_AND_END.rows(journal.connection, {"dataset": journal.dataset, "number": number})
        bodies = {seq: body for seq, settles, body in found if settles is None}
        return cls(journal, bodies, {settles: read_object(body) for _, settles, body in found if settles is not None})

    def check_charged(self, entry: Spend) -> None:
        """The entry must hold the token of the call. (Inside a JSON text quotes are escaped, so these are not.)"""
        if not entry.call or f'"call":"{entry.call}"' not in self.bodies.get(entry.number, ""):
            raise NotReleasable(f"entry {entry.number} of dataset {entry.dataset!r} was charged to another caller")

    def end(self, entry: Spend, state: State, value: Any, call: str, at: datetime) -> str | None:
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
    connection: sa.Connection, dataset: str, endings: Sequence[tuple[Spend, State, Any]], call: str
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
