"""The ledger's pages: what is left, who spent what, verification, heads. Read-only unless the server has a token."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from dptally.cli.plans import of_text
from dptally.errors import ChainBroken, DptallyError, InvalidArgument, RolledBack
from dptally.numerics.shown import shown_down, shown_up
from dptally.report import svg
from dptally.web.settings import Settings
from dptally.web.workers import NO_LEDGER, Refusal

if TYPE_CHECKING:
    from dptally.ledger import Entry, Ledger
    from dptally.ledger.status import Balance, Status

__all__ = ["Accounts", "Spending", "price"]

_PAGE = 50  # spends on a page
_LOOK, _LOOKS = 500, 40  # a search reads so many entries at once, and so often, for one page
_LONGEST_SEARCH = 200


@dataclass(frozen=True, slots=True)
class Spending:
    """A spend that was asked for on the page."""

    dataset: str
    plan: str
    by: str
    why: str
    key: str


class Accounts:
    """The ledger that the server was started with, opened when it is first asked."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ledger: Ledger | None = None
        self._lock = Lock()  # a verification reads everything: one at a time

    @property
    def ledger(self) -> Ledger:
        """The open ledger; 404 where the server has none."""
        if self._settings.ledger is None:
            raise Refusal(404, NO_LEDGER)
        if self._ledger is None:
            from dptally.ledger import Ledger

            self._ledger = Ledger.open(self._settings.ledger, read_only=self._settings.token is None)
        return self._ledger

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()

    def overview(self) -> list[dict[str, Any]]:
        """Where every account stands."""
        return [self.standing(name) for name in self.ledger.datasets()]

    def standing(self, dataset: str) -> dict[str, Any]:
        """One account: its budget, its meter, its people."""
        status = self.ledger.status(dataset)
        people = [_meter(one.holder, one) for one in status.analysts]
        return {"status": status, "meter": _meter("dataset", status.balance), "people": people, "said": _said(status)}

    def history(self, dataset: str, search: str, after: int) -> dict[str, Any]:
        """A page of spends; ``search`` is looked for in who, why, key, labels and plan."""
        if len(search) > _LONGEST_SEARCH:
            raise InvalidArgument("search", f"at most {_LONGEST_SEARCH} characters", f"{len(search)} characters")
        wanted, rows, place = search.casefold(), [], after
        for _ in range(_LOOKS):
            entries = self.ledger.history(dataset, after=place, limit=_LOOK)
            for entry in entries:
                place = entry.number
                if wanted in _words(entry):
                    rows.append(_row(entry))
                if len(rows) == _PAGE:
                    return {"rows": rows, "next": place}
            if len(entries) < _LOOK:
                return {"rows": rows, "next": None}
        return {"rows": rows, "next": place}

    def verify(self) -> dict[str, Any]:
        """Follow every chain; what is broken is an answer, too."""
        if not self._lock.acquire(blocking=False):
            raise Refusal(503, "the ledger is being verified already; ask again when that has ended")
        try:
            found = self.ledger.verify()
        except ChainBroken as broken:
            return {"whole": False, "text": str(broken)}
        finally:
            self._lock.release()
        return {
            "whole": True,
            "text": f"every chain is whole: {found.entries} entries were followed and their sums replayed",
        }

    def head(self) -> str:
        return self.ledger.head().to_json()

    def check_head(self, text: str) -> dict[str, Any]:
        """Whether the ledger continues a head that was kept."""
        from dptally.ledger import Head

        old, new = Head.from_json(text), self.ledger.head()
        try:
            self.ledger.consistency(old, new).check(old, new)
        except (ChainBroken, RolledBack) as broken:
            return {"whole": False, "text": str(broken)}
        return {"whole": True, "text": "the ledger continues this head: nothing before it was removed or changed"}

    def check_receipt(self, text: str) -> dict[str, Any]:
        """Whether the entry of a proof that was kept still stands in the ledger, unchanged."""
        from dptally.ledger import Inclusion

        kept, head = Inclusion.from_json(text), self.ledger.head()
        length, _ = head.chains.get(kept.dataset, (0, ""))
        said = f"entry {kept.number} of {kept.dataset!r}"
        if kept.ledger != head.ledger:
            return {"whole": False, "text": f"{said} is of another ledger"}
        if kept.number > length:
            return {"whole": False, "text": f"{said} is gone: the ledger has {length} entries there"}
        now = self.ledger.inclusion(kept.dataset, kept.number, head)
        try:
            now.check(head)
        except ChainBroken as broken:
            return {"whole": False, "text": str(broken)}
        if now.hash != kept.hash:
            return {"whole": False, "text": f"{said} was changed since the proof was given"}
        return {"whole": True, "text": f"{said} stands in the ledger as the proof says"}

    def receipt(self, dataset: str, number: int) -> str:
        """The proof that an entry is in the ledger, as JSON."""
        return self.ledger.inclusion(dataset, number).to_json()

    def spend(self, asked: Spending) -> dict[str, Any]:
        """Debit a plan; the receipt says under which number."""
        if self._settings.token is None:
            raise Refusal(403, "this server only reads; write: dptally serve --ledger URL --allow-spend")
        mechanism = of_text(asked.plan).mechanism
        receipt = self.ledger.spend(asked.dataset, mechanism, by=asked.by, why=asked.why, key=asked.key or None)
        return {"text": repr(receipt), "number": receipt.number, "replayed": receipt.replayed}


def price(url: str, dataset: str, plan: str, by: str) -> dict[str, Any]:
    """What a plan would cost, and whether it fits; nothing is debited and no data is looked at. A task of a worker."""
    from dptally.ledger import Ledger
    from dptally.ledger.pricing import priced

    mechanism = of_text(plan).mechanism
    with Ledger.open(url, read_only=True) as ledger:
        terms = ledger.terms(dataset)
        cost = priced(terms, mechanism)
        over = ledger.would_exceed(dataset, mechanism, by=by)
        symbol = ledger.status(dataset).balance.symbol
    return {"plan": repr(mechanism), "cost": shown_up(terms.number_up(cost.meters[0])), "symbol": symbol, "over": over}


def _meter(name: str, one: Balance) -> dict[str, str]:
    spent = f"{one.symbol} {shown_up(one.spent)} spent"
    text = f"{spent}, no cap of its own" if one.cap is None else f"{spent} of {shown_down(one.cap)}"
    left = "" if one.left is None else shown_down(one.left)
    return {"name": name, "text": text, "left": left, "picture": svg.meter(one.share, text)}


def _said(status: Status) -> list[tuple[str, str]]:
    rows = [
        ("about", status.about),
        ("budget", status.budget),
        ("privacy unit", status.unit),
        ("neighbours", status.adjacency),
        ("entries", str(status.entries)),
        ("filter", status.theorem),
    ]
    if status.epsilon is not None:
        rows.insert(2, (f"epsilon so far at delta {status.delta:g}", f"at most {shown_up(status.epsilon)}"))
    return [(name, value) for name, value in rows if value]


def _words(entry: Entry) -> str:
    return "\n".join((entry.by, entry.why, entry.key or "", *entry.labels, entry.plan_json)).casefold()


def _row(entry: Entry) -> dict[str, Any]:
    try:
        plan = repr(entry.plan)
    except DptallyError:  # written by a later dptally, or edited: the chain says which
        plan = entry.plan_json
    return {
        "number": entry.number,
        "at": entry.at[:19].replace("T", " "),
        "by": entry.by or "(not named)",
        "why": entry.why,
        "plan": plan if len(plan) <= 200 else plan[:197] + "...",
        "cost": f"{entry.symbol} {shown_up(entry.cost, 4)}",
        "state": entry.state,
        "hash": entry.hash,
    }
