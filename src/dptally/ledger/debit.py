"""The two writes of a spend: the debit before the data is touched, the settlement after.

A debit locks the dataset, answers a known key with the entry that holds it, checks every cap, appends to the
chain and updates the totals. Either all of it is durable or none of it happened.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from dptally.errors import BudgetExceeded, CannotPrice, InvalidArgument, KeyReused, NotReleasable
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
    state_of,
)
from dptally.ledger.journal import Journal, find_keys, settlements
from dptally.ledger.schema import accounts
from dptally.ledger.status import exceeded
from dptally.ledger.terms import Terms
from dptally.ledger.units import Amount
from dptally.ledger.verification import key_column
from dptally.mechanisms.mechanism import Mechanism

__all__ = ["Asked", "Refused", "check_request", "debit", "entry_of", "settle"]


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
    def of(cls, request: Request) -> Asked:
        text = plan_to_json(request.plan)
        if plan_from_json(text) != request.plan:  # the history must be able to say what was paid for
            raise InvalidArgument("plan", "one that its JSON gives back unchanged", request.plan)
        return cls(request, text)


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
    if not request.by and _has_analyst_caps(connection, dataset):
        raise InvalidArgument("by", "given: analysts of this dataset have caps of their own", request.by)
    cost = terms.price(request.plan)
    holder = books.refused_by(request.by, cost, request.partition, request.part)
    if holder is not None:
        raise Refused(dataset, terms, books, request, holder, cost)
    return cost


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
        value=None if end is None else end.get("value"),
        amount=cost,
        call=body["call"],
    )


def settle(connection: sa.Connection, dataset: str, endings: Sequence[tuple[Entry, State, Any]]) -> list[str]:
    """Settle open spends; the reasons why some could not be released (those are burnt instead)."""
    journal = Journal.locked(connection, dataset)
    at = now()
    rows: list[tuple[str, str | None, int | None, str]] = []
    late: list[str] = []
    ends = settlements(connection, dataset, (entry.number for entry, _, _ in endings))
    for entry, state, value in endings:
        end = ends.get(entry.number)
        if end is not None:
            if end["state"] != state or end.get("value") != value:
                raise NotReleasable(
                    f"entry {entry.number} of dataset {dataset!r} is {end['state']} already; do not publish "
                    "another answer"
                )
            continue  # this very settlement was committed before the connection was lost
        if (
            state == "released"
            and entry.expires is not None
            and state_of({"expires": entry.expires}, None, at) == "burnt"
        ):
            late.append(f"the reservation of entry {entry.number} of dataset {dataset!r} expired at {entry.expires}")
            state, value = "burnt", None
        body = settle_body(dataset, journal.length + len(rows) + 1, entry.number, state, value, at, entry.by)
        rows.append(("settle", None, entry.number, body))
    if rows:
        journal.append(rows)
    return late
