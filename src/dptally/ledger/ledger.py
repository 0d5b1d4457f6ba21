"""The ledger: a budget that cannot be overspent, lost or quietly edited."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import sqlalchemy as sa

from dptally import checks
from dptally.errors import DatasetExists, InvalidArgument, InvalidType, LedgerUnavailable, NotReleasable, UnknownDataset
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.ledger import composition, statement
from dptally.ledger.backup import backup
from dptally.ledger.books import DATASET, EVERYONE, Books
from dptally.ledger.chain import Head, canonical, genesis
from dptally.ledger.collector import uncollected
from dptally.ledger.debit import Refused, Till, asked_of, debit, is_deferred, settle, settle_once
from dptally.ledger.entries import Entry, Request, Spend, State, entry_in, now, stamp
from dptally.ledger.history import export, spends
from dptally.ledger.journal import (
    REGISTER,
    Journal,
    holder_row,
    load_books,
    opening_buckets,
    read_terms,
    was_created_so,
)
from dptally.ledger.names import alike, identifier, name, prose
from dptally.ledger.opening import check_head, make_file, prepare, read_head
from dptally.ledger.paying import PaidRelease, answered, check_paid, released
from dptally.ledger.pricing import price_of
from dptally.ledger.proofs import Consistency, Inclusion, prove_consistency, prove_inclusion
from dptally.ledger.reading import read_whole
from dptally.ledger.receipts import Batch, Ending, Receipt, Reservation
from dptally.ledger.roles import grant_roles
from dptally.ledger.schema import accounts, datasets
from dptally.ledger.signing import Signer, check_signature
from dptally.ledger.stated import check_plan
from dptally.ledger.status import Status, balance, failure_balance, odometer, remaining, repeats
from dptally.ledger.store import Settlement, Store, checked_url
from dptally.ledger.terms import ALLOWANCE, ROW, Terms, amount_from_json, amount_to_json
from dptally.ledger.values import decoded, encoded
from dptally.ledger.verification import Verified, verify
from dptally.ledger.witness import Witness, witness_at
from dptally.mechanisms.mechanism import Mechanism
from dptally.release.function import ReleaseFunction

__all__ = ["Ledger"]

T = TypeVar("T")


class Ledger:
    """A durable account of privacy spent. Open it with :meth:`open`; it may be shared by threads and
    processes.

    >>> import dptally as dp, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(f"sqlite:///{folder.name}/budget.db", create=True)
    >>> ledger.create("ehr-2026", budget=dp.ZCDP(0.5), delta=1e-15)
    >>> plan = 1 * dp.Gaussian(sigma=2.0)
    >>> with ledger.spend("ehr-2026", plan, by="alice", why="ward counts", key="q-17") as receipt:
    ...     answer = 12  # the data is touched here, after the debit is durable
    >>> receipt
    Receipt('ehr-2026', number=1, rho=0.125, released)
    >>> round(ledger.remaining("ehr-2026"), 9)
    0.375
    >>> ledger.close(); folder.cleanup()
    """

    def __init__(self, store: Store, ledger: str, signer: Signer | None = None, witness: Witness | None = None) -> None:
        self._store = store
        self._id = ledger
        self._signer = signer
        self._witness = witness
        self._agreed: dict[str, Terms] = {}  # terms never change

    @classmethod
    def open(
        cls,
        url: str,
        *,
        create: bool = False,
        read_only: bool = False,
        head: Head | str | None = None,
        key: str | None = None,
        signer: str | Path | None = None,
        witness: str | Path | None = None,
        timeout: float = 30.0,
    ) -> Ledger:
        """Open the ledger at a database URL. One that is not there is made only with ``create=True``, which
        opens what is there. An empty or cut file is refused.

        ``head`` is what :meth:`head` gave earlier (or its JSON): a ledger that no longer contains it was
        rolled back or replaced, and is refused. With ``key``, a public key, the head must be signed by it.
        ``signer`` is the file of a private key: heads are signed from now on. ``witness`` is a file or an
        address that is told of every commit, and whose heads the ledger must hold. ``timeout`` is how many
        seconds to wait for another process's lock.
        """
        known = None if head is None else Head.known(head)
        if key is not None:
            if known is None:
                raise InvalidArgument("head", "given with the key that signed it", head)
            check_signature(known, key)
        signing = None if signer is None else Signer(signer)
        watching = None if witness is None else witness_at(witness)
        checks.positive("timeout", timeout)
        for option, value in (("create", create), ("read_only", read_only)):
            if not isinstance(value, int):  # as booleans are
                raise InvalidType(option, "True or False", value)
        if create and read_only:
            raise InvalidArgument("create", "left out for a ledger that is opened read-only", create)
        remembered = ([] if known is None else [known]) + ([] if watching is None else watching.latest())
        if create and checked_url(url).get_backend_name() == "sqlite":
            make_file(url, timeout, bool(remembered))
        store = Store(url, bool(read_only), timeout)
        try:
            ledger = cls(store, prepare(store, bool(create), bool(remembered)), signing, watching)
            for one in remembered:
                store.read(partial(check_head, ledger=ledger._id, head=one))
        except BaseException:
            store.close()
            raise
        return ledger

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- datasets --------------------------------------------------------------------------------------------

    def create(
        self,
        dataset: str,
        budget: Mechanism,
        *,
        delta: float | None = None,
        unit: str = ROW,
        adjacency: Adjacency = ADD_REMOVE,
        parts: Mapping[str, Sequence[str]] | Sequence[Any] = (),
        failure: float = 0.0,
        analysts: Mapping[str, Mechanism] | None = None,
        orders: Sequence[float] | None = None,
        allowance: float = ALLOWANCE,
        about: str = "",
    ) -> None:
        """Open an account with this budget: PureDP, ZCDP, GaussianDP, ApproxDP (kept by a Renyi filter), or a Menu
        (each spend is one of its items).

        ``delta`` is the one at which status and reports state an epsilon. ``unit`` and ``adjacency`` say whom
        the budget protects: one ``"row"``, or all rows of a person (``"person:<column>"``), added, removed or
        replaced. ``parts`` declares the disjoint parts that spends may name, as {partition: parts}.
        ``failure`` sets a probability apart for mechanisms that fail, in a pure, zCDP or Gaussian account.
        ``analysts`` gives analysts caps of their own (``"*"`` is the cap of everyone else, each). ``orders``
        are the Renyi orders of an ApproxDP account. The cap that is enforced is ``budget * (1 + allowance)``:
        room for costs that were rounded up, so that ten times 0.1 fit in 1.
        """
        dataset = identifier("dataset", dataset)
        about = prose("about", about)
        if not isinstance(analysts, (Mapping, type(None))):
            raise InvalidType("analysts", "a dictionary of analysts and their budgets", analysts)
        terms = Terms.agreed(budget, delta, orders, adjacency, allowance, about, unit, parts, failure)
        shares = {_analyst(who): terms.share(own, f"analysts[{who!r}]") for who, own in (analysts or {}).items()}
        for who in shares:
            _check_unlike("analysts", who, shares)
        limits = {who: list(amount_to_json(cap)) for who, cap in shares.items()}
        text = canonical(terms.to_dict())

        def work(connection: sa.Connection) -> None:
            register = Journal.locked(connection, REGISTER)
            known = connection.execute(sa.select(datasets.c.name)).scalars().all()
            if dataset in known:
                if was_created_so(connection, dataset, text, limits):
                    return  # by an earlier call whose answer was lost, or by another process
                raise DatasetExists(dataset)
            _check_unlike("dataset", dataset, known)
            body = {
                "at": stamp(now()),
                "name": dataset,
                "seq": register.length + 1,
                "shares": limits,
                "terms": text,
                "type": "register",
            }
            register.append([("register", None, None, canonical(body))])
            start = {
                "name": dataset,
                "terms": text,
                "length": 0,
                "head": genesis(self._id, dataset),
                "books": canonical(opening_buckets(terms)),
            }
            connection.execute(sa.insert(datasets), start)
            connection.execute(
                sa.insert(accounts),
                {"dataset": dataset, "holder": DATASET, **holder_row(DATASET, terms.cap, terms.zero)},
            )
            for who, cap in shares.items():
                self._limit(connection, dataset, who, list(amount_to_json(cap)))

        self._store.write(work)
        self._tell(REGISTER, dataset)

    def limit(self, dataset: str, analyst: str, budget: Mechanism | None) -> None:
        """Give an analyst (or everyone without a cap: ``"*"``) a new cap inside the dataset, or none. It is
        recorded in the chain.

        A cap is never set below what the analyst has spent.
        """
        dataset, who = name("dataset", dataset), _analyst(analyst)
        terms = self._terms(dataset)
        cap = None if budget is None else list(amount_to_json(terms.share(budget)))
        self._store.write(lambda connection: self._limit(connection, dataset, who, cap))
        self._tell(dataset)

    def _limit(self, connection: sa.Connection, dataset: str, who: str, cap: list[str] | None) -> None:
        journal = Journal.locked(connection, dataset)
        before = journal.load([who])
        if who not in before.spent:
            holders = sa.select(accounts.c.holder).where(accounts.c.dataset == dataset)
            _check_unlike("analyst", who, connection.execute(holders).scalars())
        books = Books(
            before.zero,
            {who: before.spent.get(who, before.zero)},
            {who: None if cap is None else amount_from_json(cap)},
        )
        new = books.caps[who]
        if new is not None and not books.spent[who].within(new):
            raise InvalidArgument(
                "budget",
                f"at least what {who!r} has spent; nothing was changed",
                balance(journal.terms, before, who).spent,
            )
        body = {
            "at": stamp(now()),
            "cap": cap,
            "dataset": dataset,
            "holder": who,
            "seq": journal.length + 1,
            "type": "limit",
        }
        journal.save(before, books)
        journal.append([("limit", None, None, canonical(body))])

    def datasets(self) -> tuple[str, ...]:
        """The names of the accounts."""
        question = sa.select(datasets.c.name).where(datasets.c.name != REGISTER)
        return tuple(sorted(self._store.read(lambda connection: connection.execute(question).scalars().all())))

    # -- spending --------------------------------------------------------------------------------------------

    def spend(
        self,
        dataset: str,
        plan: Mechanism,
        *,
        by: str = "",
        why: str = "",
        key: str | None = None,
        labels: Sequence[str] = (),
        partition: str = "",
        part: str = "",
        expires: float | None = None,
        stored: bool = False,
    ) -> Receipt:
        """Debit the plan's cost durably, or raise BudgetExceeded with nothing debited. Use the receipt as a
        context manager.

        A known ``key`` with the same request gives the same receipt (``replayed``) and charges nothing; with
        another request it is refused. A replayed receipt cannot be entered, unless ``stored=True`` asks for
        the value that was stored with it. ``partition`` and ``part`` say that the plan touches only one of
        the disjoint parts that the account declares. ``expires`` is the number of seconds after which the
        reservation can no longer be released.
        """
        request = Request(plan, by, why, key, labels, partition, part, expires)
        return self._receipts(dataset, [request], stored)[0]

    def spend_batch(self, dataset: str, requests: Iterable[Request | Mechanism]) -> Batch:
        """Debit many requests in one durable transaction: all of them, or none if any does not fit."""
        if not isinstance(requests, Iterable):
            raise InvalidType("requests", "a sequence of plans or Requests", requests)
        asked = [request if isinstance(request, Request) else Request(request) for request in requests]
        return Batch(self._receipts(dataset, asked))

    def _receipts(self, dataset: str, requests: Sequence[Request], stored: bool = False) -> list[Receipt]:
        with uncollected(len(requests)):
            found = self._debit(dataset, requests)
            return [Receipt(_for_readers(spend) if again else spend, again, self, stored) for spend, again in found]

    def reserve(
        self,
        dataset: str,
        plan: Mechanism,
        *,
        by: str = "",
        why: str = "",
        key: str | None = None,
        labels: Sequence[str] = (),
        partition: str = "",
        part: str = "",
        expires: float | None = None,
    ) -> Reservation:
        """Debit the plan for an answer that leaves only after it was stored (see :class:`Reservation`).

        The way to build on a ledger: what ``answer``, ``release`` and the tables do. A known ``key`` is not
        charged again: a settled one has its ``value``, one that nobody settled may be computed again, and one
        that was burnt, or was spent with :meth:`spend` and kept no value, is refused.
        """
        request = Request(plan, by, why, key, labels, partition, part, expires)
        ((spend, again),) = self._debit(dataset, [request], deferred=True)
        entry = entry_in(spend)
        settled = entry.state == "released" and entry.kept
        if again and not settled and not (entry.state == "reserved" and is_deferred(entry.call)):
            raise NotReleasable(
                f"key {entry.key!r} was charged before and is {entry.state} without a stored value; "
                "nothing was charged now. "
                "Ask again later if its first caller is still at work, or pay again under a new key"
            )
        return Reservation(entry, again, self)

    def answer(self, dataset: str, plan: Mechanism, compute: Callable[[], T], **request: Any) -> T:
        """Debit, compute, store, return: the safe way to answer a request that may be retried.

        ``compute`` touches the data and returns what may be published: numbers, texts, lists, dictionaries,
        numpy arrays, or a ``Released``, which is not released if it cost more than the debit. A retry with the
        same key gets the stored value; only a key whose first caller never finished computes again, and of
        several who compute at once all get the one value that was stored.
        """
        if not callable(compute):
            raise InvalidType("compute", "a function without arguments; nothing was debited", compute)
        return answered(self, self.reserve(dataset, plan, **request), compute)  # type: ignore[no-any-return]

    def release(
        self,
        dataset: str,
        release: ReleaseFunction[Any],
        data: Any,
        *,
        by: str = "",
        why: str = "",
        key: str | None = None,
        **arguments: Any,
    ) -> PaidRelease:
        """Pay for a release and run it: ``ledger.release("ehr", release.count, patients, sigma=49)``.

        ``release`` is a function of ``dptally.release``, ``arguments`` are its arguments. The mechanism that is
        debited is the one that they state; it is checked against the account's adjacency and unit, and
        whether the answer can be kept, before the debit; and only after the debit is ``data`` looked at.
        """
        return released(self, dataset, release, data, {"by": by, "why": why, "key": key}, arguments)

    def _debit(self, dataset: str, requests: Sequence[Request], deferred: bool = False) -> list[tuple[Spend, bool]]:
        """(spend, replayed) for each request, all of them charged or none."""
        dataset = name("dataset", dataset)
        terms = self._terms(dataset)
        asked = asked_of(requests, deferred)
        for plan in {id(request.plan): request.plan for request in requests}.values():
            check_plan(dataset, terms, plan)
            price_of(terms, plan)  # outside the lock; the price is remembered
        try:
            known = self._store.write(lambda connection: debit(connection, dataset, asked)) if asked else []
        except Refused as refusal:
            raise refusal.explained() from None
        if not all(again for _, again in known):
            self._tell(dataset)
        return known

    # what receipts and reservations are settled with: see receipts.Bank

    def _keep(self, entry: Entry, value: Any) -> Any:
        """The value as JSON, if it did not cost more than the debit and can be kept; for receipts."""
        made = encoded(value)
        check_paid(entry, self._terms(entry.dataset), decoded(made))  # what is kept, not what poses as it
        return made

    def _settle(self, endings: Sequence[Ending]) -> None:
        """Settle open spends of one dataset in one transaction; for receipts."""
        dataset, call = endings[0][0].dataset, secrets.token_hex(8)
        with uncollected(len(endings)):
            late = self._store.write(Settlement(lambda connection: settle(connection, dataset, endings, call)))
        self._tell(dataset)
        if late:
            raise NotReleasable(f"{late[0]}: do not publish the answer; it is burnt, and what it cost stays spent")

    def _settle_once(self, entry: Entry, state: State, value: Any) -> tuple[State, Any]:
        """Settle a reservation by compare-and-set: how it ended, by us or by another; for reservations."""
        call = secrets.token_hex(8)
        # durable, unlike other settlements: a value that has left must not be forgotten, or its key runs again
        ended = self._store.write(lambda connection: settle_once(connection, entry, state, value, call))
        self._tell(entry.dataset)
        return ended

    # -- questions -------------------------------------------------------------------------------------------

    def would_exceed(self, dataset: str, plan: Mechanism, *, by: str = "", partition: str = "", part: str = "") -> bool:
        """Whether a spend would be refused for lack of budget now. Only the spend itself is a promise."""
        dataset = name("dataset", dataset)
        request = Request(plan, by, partition=partition, part=part)

        def work(connection: sa.Connection) -> bool:
            terms = read_terms(connection, dataset)
            books = load_books(connection, dataset, terms, [request.by], [(request.partition, request.part)])
            try:
                Till(connection, dataset, terms, books).charge(request)
            except Refused:
                return True
            return False

        return self._store.read(work)

    def remaining(self, dataset: str, by: str = "") -> float:
        """What is left, rounded down, as the parameter of the budget's kind: the largest PureDP epsilon, ZCDP
        rho or GaussianDP mu that still fits; for an ApproxDP budget the largest PureDP epsilon. With ``by``,
        what that analyst may still spend.
        """
        dataset, by = name("dataset", dataset), _named("by", by)
        terms = self._terms(dataset)
        return remaining(terms, self._store.read(lambda connection: load_books(connection, dataset, terms, [by])), by)

    def status(self, dataset: str) -> Status:
        """Where the account stands, from its totals (the history is not read)."""
        return self._standing(dataset)[0]

    def _standing(self, dataset: str) -> tuple[Status, Terms, Books]:
        dataset = name("dataset", dataset)
        terms = self._terms(dataset)

        def work(connection: sa.Connection) -> tuple[Books, int]:
            rows = connection.execute(sa.select(accounts.c.holder).where(accounts.c.dataset == dataset)).scalars().all()
            length = connection.execute(sa.select(datasets.c.length).where(datasets.c.name == dataset)).scalar_one()
            return load_books(connection, dataset, terms, rows), length

        books, length = self._store.read(work)
        holders = sorted(holder for holder in books.spent if holder not in (DATASET, EVERYONE))
        status = Status(
            dataset=dataset,
            budget=terms.stated,
            kind=terms.kind,
            theorem=terms.filter.theorem,
            adjacency=terms.adjacency.value,
            unit=terms.unit,
            about=terms.about,
            delta=terms.delta,
            epsilon=None if terms.delta is None else odometer(terms, books, terms.delta),
            remaining=remaining(terms, books),
            entries=length,
            balance=balance(terms, books, DATASET),
            analysts=tuple(balance(terms, books, holder) for holder in holders),
            failure=failure_balance(terms, books),
        )
        return status, terms, books

    def odometer(self, dataset: str, delta: float | None = None) -> float:
        """An epsilon for everything spent so far, rounded up: valid for any adaptive choice at all times."""
        dataset = name("dataset", dataset)
        terms = self._terms(dataset)
        at = _delta(terms, delta)
        return odometer(terms, self._store.read(lambda connection: load_books(connection, dataset, terms)), at)

    def epsilon(self, dataset: str, delta: float | None = None) -> float:
        """The certified epsilon of everything spent, as one plan: tighter than the odometer, and valid where
        the plan did not depend on the answers (it was fixed beforehand). Reads the whole history.
        """
        terms = self._terms(dataset)
        return composition.epsilon(self._spends(dataset), _delta(terms, delta))

    def history(
        self,
        dataset: str,
        *,
        by: str | None = None,
        label: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> list[Entry]:
        """The spends in order, with their states; ``after`` and ``limit`` page through a long history."""
        after = read_whole("after", checks.count("after", after))
        most = None if limit is None else checks.count("limit", limit, least=1)
        by, label = None if by is None else _named("by", by), None if label is None else _named("label", label)
        found: list[Entry] = []
        for entry in self._spends(dataset, after):
            if (by is None or entry.by == by) and (label is None or label in entry.labels):
                found.append(entry)
                if len(found) == most:
                    break
        return found

    def _spends(self, dataset: str, after: int = 0) -> Iterable[Entry]:
        dataset = name("dataset", dataset)
        return spends(self._store, dataset, self._terms(dataset), after)

    # -- trust -----------------------------------------------------------------------------------------------

    def verify(self, prices: bool = False) -> Verified:
        """Follow every chain and replay its sums; raise ChainBroken at the first disagreement. With
        ``prices=True`` each different plan is priced again, and an entry that was charged less is named: a
        client prices its own plans, and nothing else finds one that lied.
        """
        with self._store.reading() as connection:
            return verify(connection, self._id, bool(prices))

    def head(self) -> Head:
        """The head of every chain, signed if the ledger has a signer. Keep it outside the ledger and give it
        back to :meth:`open`.
        """
        found = self._store.read(lambda connection: read_head(connection, self._id))
        return found if self._signer is None else self._signer.signed(found)

    def _tell(self, *chains: str) -> None:
        """Tell the witness, if there is one, where these chains stand."""
        if self._witness is None:
            return
        for chain in chains:
            head = self._store.read(partial(read_head, ledger=self._id, only=chain))
            self._witness.record(head if self._signer is None else self._signer.signed(head))

    def inclusion(self, dataset: str, number: int, head: Head | None = None) -> Inclusion:
        """A proof that an entry (a receipt's ``number``) is in the ledger, for a head that was kept or for the
        present one. It is checked with :meth:`Inclusion.check`, without the ledger.
        """
        name("dataset", dataset)

        def work(connection: sa.Connection) -> Inclusion:
            at = read_head(connection, self._id, dataset) if head is None else Head.known(head)
            if dataset not in at.chains:
                raise UnknownDataset(dataset)
            size = at.chains[dataset][0]
            if not 1 <= checks.count("number", number) <= size:
                raise InvalidArgument("number", f"an entry between 1 and {size}", number)
            return prove_inclusion(connection, self._id, dataset, number, size)

        return self._store.read(work)

    def consistency(self, old: Head, new: Head | None = None) -> Consistency:
        """A proof that the present head (or ``new``) continues an earlier one."""

        def work(connection: sa.Connection) -> Consistency:
            later = read_head(connection, self._id) if new is None else Head.known(new)
            return prove_consistency(connection, self._id, Head.known(old), later)

        return self._store.read(work)

    def grant(self, analysts: Iterable[str] = (), auditors: Iterable[str] = ()) -> None:
        """On PostgreSQL: let existing database roles spend (each as ``by`` its own name) or only read."""
        for which, roles in (("analysts", analysts), ("auditors", auditors)):
            if isinstance(roles, str) or not isinstance(roles, Iterable):
                raise InvalidType(which, "a sequence of the names of roles", roles)
        self._store.write(lambda connection: grant_roles(connection, tuple(analysts), tuple(auditors)))

    def backup(self, path: str | Path) -> Head:
        """Copy a SQLite ledger to a new file while others spend; the head that the copy holds.

        Never copy the files of an open ledger by hand: a copy of the file without its log is old, and a copy
        of both may be torn.
        """
        return backup(self._store, self._id, path)

    def export(self, path: str | Path) -> Head:
        """Write all entries as JSON lines that end with the head (see ``dptally.ledger.verify_export``)."""
        if not isinstance(path, (str, Path)):
            raise InvalidType("path", "a path", path)
        try:
            with self._store.reading() as connection, Path(path).open("w", encoding="utf-8") as out:
                return export(connection, self._id, out)
        except (OSError, ValueError) as error:  # the latter of a path with a NUL in it
            why = getattr(error, "strerror", None) or "no such path"
            raise LedgerUnavailable(f"the entries could not be written to {str(path)!r} ({why})") from None

    def report(self, dataset: str, format: str = "markdown") -> str:
        """Who spent what, what is left, where it stops: a table and a picture, as markdown, html or json."""
        status, terms, books = self._standing(dataset)
        made = list(self._spends(dataset))
        meter = books.spent[DATASET].leading(terms.cap)  # one meter for the whole statement
        costs = [terms.number_up(entry.amount.meters[meter]) for entry in made]
        more = repeats(terms, books, made[-1].amount) if made else None
        return statement.render(status, made, costs, more, format)

    def terms(self, dataset: str) -> Terms:
        """What was agreed when the account was made: budget, adjacency, privacy unit, parts. It never changes."""
        return self._terms(dataset)

    def _terms(self, dataset: str) -> Terms:
        dataset = name("dataset", dataset)
        if dataset not in self._agreed:
            self._agreed[dataset] = self._store.read(lambda connection: read_terms(connection, dataset))
        return self._agreed[dataset]


def _for_readers(spend: Spend) -> Entry:
    """A spend without the token by which the caller who was charged is known."""
    return replace(entry_in(spend), call="")


def _named(argument: str, text: object) -> str:
    """A name in normal form, or no name at all."""
    given = prose(argument, text)
    return name(argument, given) if given else given


def _analyst(who: str) -> str:
    return identifier("analyst", who)


def _check_unlike(argument: str, new: str, known: Iterable[str]) -> None:
    twin = alike(new, known)
    if twin is not None:
        raise InvalidArgument(argument, f"a name that does not look like {twin!r}, which is another", new)


def _delta(terms: Terms, delta: float | None) -> float:
    if delta is not None:
        return checks.open_probability("delta", delta)
    if terms.delta is None:
        raise InvalidArgument("delta", "given: this dataset was created without one", delta)
    return terms.delta
