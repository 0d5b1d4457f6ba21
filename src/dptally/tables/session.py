"""A session: one analyst, one table, one account. It debits before the data is touched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dptally.errors import InvalidArgument, InvalidType, TermsMismatch
from dptally.law.adjacency import Adjacency
from dptally.mechanisms import Mechanism
from dptally.tables.keys import public_keys
from dptally.tables.kinds import Kind
from dptally.tables.query import Asking, Query
from dptally.tables.table import Table

if TYPE_CHECKING:
    from dptally.ledger import Ledger
    from dptally.ledger.receipts import Reservation

__all__ = ["Session"]

_PARTS = "parts:"  # a label of the ledger's entries: the table whose parts were asked
_PAGE = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Session(Asking):
    """Ask a table on an account. ``table`` and account must state the same unit of privacy; the adjacency is the
    account's. ``by`` is who asks.
    """

    table: Table
    ledger: Ledger
    dataset: str
    by: str
    part: tuple[str, Any] | None = None

    def __init__(self, table: Table, *, ledger: Ledger, dataset: str, by: str = "") -> None:
        if not isinstance(table, Table):
            raise InvalidType("table", "a Table", type(table).__name__)
        if not hasattr(ledger, "reserve"):
            raise InvalidType("ledger", "a Ledger", type(ledger).__name__)
        unit = ledger.terms(dataset).unit
        if unit != table.unit:
            instead = f"Write Table(..., person={unit[7:]!r})" if unit != "row" else "Leave out person="
            raise TermsMismatch(dataset, "table", table.unit, unit, f"{instead}, or ask on another account.")
        for name, value in (("table", table), ("ledger", ledger), ("dataset", dataset), ("by", by), ("part", None)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        where = "" if self.part is None else f", part={self.part}"
        return f"Session({self.table!r}, dataset={self.dataset!r}, by={self.by!r}{where})"

    def _query(self) -> Query:
        return Query(self)

    @property
    def adjacency(self) -> Adjacency:
        return self.ledger.terms(self.dataset).adjacency

    @property
    def kind(self) -> str:
        """The kind of the account's budget: pure, zcdp, gdp or approx."""
        return self.ledger.terms(self.dataset).kind

    # -- the account -----------------------------------------------------------------------------------------

    def left(self) -> float:
        """What the account (or this analyst) may still spend, in the budget's own parameter."""
        return self.ledger.remaining(self.dataset, self.by)

    def price(self, plan: Mechanism) -> tuple[float, str, float]:
        """Cost, what it is counted in, and the failure probability, of a plan on this account."""
        terms = self.ledger.terms(self.dataset)
        amount = terms.price(plan)
        meter = terms.cheapest(amount)
        failure = amount.failure / 10**terms.failure_digits if amount.failure else 0.0
        return terms.number_up(amount.meters[meter]), terms.symbol(meter), failure

    def would_exceed(self, plan: Mechanism) -> bool:
        partition, part = self._part()
        return self.ledger.would_exceed(self.dataset, plan, by=self.by, partition=partition, part=part)

    def reserve(self, plan: Mechanism, why: str, key: str | None, fingerprint: str) -> Reservation:
        """The debit; a known key with the same query is not charged again."""
        partition, part = self._part()
        labels = (f"query:{fingerprint}", *self._parts_label())
        self._check_parts()
        reservation = self.ledger.reserve(
            self.dataset, plan, by=self.by, why=why, key=key, labels=labels, partition=partition, part=part
        )
        self._check_parts()  # of two who were first at once, the ledger's order says who was
        return reservation

    def _part(self) -> tuple[str, str]:
        return ("", "") if self.part is None else (self.part[0], str(self.part[1]))

    def _parts_label(self) -> tuple[str, ...]:
        return () if self.part is None else (_PARTS + self.table.origin.fingerprint(),)

    def _check_parts(self) -> None:
        """The first table whose parts an account paid for is the one: in another a person may be in another part."""
        if self.part is None:
            return
        first = next(self._parts_paid(self.part[0]), None)
        if first is not None and first not in self._parts_label():
            raise InvalidArgument(
                "table",
                f"the one whose parts by {self.part[0]!r} account {self.dataset!r} has paid for (a person may be in "
                "another part of another table; nothing was released)",
                self.table.origin.label,
                "open an account for this table, or ask without parts",
            )

    def _parts_paid(self, partition: str) -> Iterator[str]:
        """The labels of the tables whose parts were paid for, in order."""
        page = self.ledger.history(self.dataset, limit=_PAGE)
        while page:
            for entry in page:
                if entry.partition == partition:
                    yield from (label for label in entry.labels if label.startswith(_PARTS))
            page = self.ledger.history(self.dataset, after=page[-1].number, limit=_PAGE)

    # -- parts of the population -----------------------------------------------------------------------------

    def parts(self, column: str, values: Sequence[Any]) -> dict[Any, Session]:
        """A session for each part of the population, by an attribute: what is asked of different parts costs the
        account only the most that any one of them spent.

        A person is in one part only, whatever her rows say: that of the smallest value that she has, in the table
        as it was before joins. The account must declare the parts: ``ledger.create(..., parts={column: values})``.
        """
        found = self.table.origin.schema.get("column", column)
        if not found.kind.groups:
            raise InvalidArgument(
                "column", "text, integers, truth values or dates", f"{found.name}: {found.kind.value}"
            )
        if self.part is not None:
            raise InvalidArgument("parts", "made of a whole population", self.part)
        sessions = {}
        for (value,) in public_keys((found,), list(values)):
            made = Session(self.table, ledger=self.ledger, dataset=self.dataset, by=self.by)
            object.__setattr__(made, "part", (found.name, value))
            sessions[value] = made
        return sessions

    def relation(self) -> tuple[str, tuple[str, ...]]:
        """What stands in FROM, and the filter that keeps this session's part."""
        source = self.table.source
        if self.part is None:
            return source.relation, ()
        name, value = self.part
        dialect, origin = source.dialect, self.table.origin
        column = origin.schema.get("column", name)
        test = dialect.literal(value)
        if self.table.person is None:
            return source.relation, (f"{dialect.column(column)} = {test}",)
        person = origin.schema.get("person", self.table.person)
        theirs, raw = dialect.identity(person, "dptally_o"), f"dptally_o.{dialect.name_of(person.name)}"
        own = dialect.column(column, "dptally_o")
        if column.kind is Kind.BOOLEAN:  # PostgreSQL has no least truth value
            own, test = f"CASE WHEN {own} THEN 1 WHEN NOT {own} THEN 0 END", str(int(value))
        members = (
            f"SELECT {theirs} FROM {origin.relation} AS dptally_o WHERE {raw} IS NOT NULL "
            f"GROUP BY {theirs} HAVING MIN({own}) = {test}"
        )
        return source.relation, (f"{dialect.identity(person)} IN ({members})",)

    # -- SQL -------------------------------------------------------------------------------------------------

    def sql(
        self,
        text: str,
        *,
        keys: Mapping[str, Sequence[Any]] | Any = None,
        each: Mapping[str, tuple[Any, Any]] | None = None,
        cost: Mechanism | None = None,
    ) -> Query:
        """A query from a SELECT: COUNT(DISTINCT person), COUNT(*), SUM, AVG, VARIANCE of columns, WHERE and GROUP
        BY. ``keys`` are the public groups of each column, ``each`` the bounds of each column. Anything else is
        refused with the place and the reason.
        """
        from dptally.tables.selects import query_of

        query = query_of(self, text, keys, each or {})
        return query if cost is None else query.cost(cost)
