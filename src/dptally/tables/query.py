"""A query: a frozen value. Price, preview and explanation come from its parameters alone, and are free."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType
from dptally.mechanisms import Mechanism
from dptally.tables import expressions
from dptally.tables.aggregates import Aggregate, Distinct, Mean, Persons, Rows, Total, Variance
from dptally.tables.bins import Histogram, Quantile, edges_of
from dptally.tables.compiled import Asked, Compiled, compile_query
from dptally.tables.core import Frame
from dptally.tables.explanation import explanation
from dptally.tables.keys import Key, PrivateKeys, check_kinds, public_keys
from dptally.tables.kinds import Column
from dptally.tables.measures import Ask, Setting
from dptally.tables.preview import Preview, Price
from dptally.tables.result import Result
from dptally.tables.steps import bounds

if TYPE_CHECKING:
    from dptally.tables.session import Session

__all__ = ["Asking", "Query"]


class Asking(ABC):
    """What can be asked of a session and added to a query: filters, groups and aggregates.

    Each aggregate takes one of ``within=`` (the half-width at 95 %), ``sigma=`` (discrete Gaussian noise),
    ``scale=`` (discrete Laplace noise) or ``cost=`` (what it may spend), in the column's units; or none, if the
    whole query is given a cost, which is then shared by ``weight``. ``name=`` is the name of its column.
    """

    __slots__ = ()

    @abstractmethod
    def _query(self) -> Query:
        """The query so far."""

    def where(self, text: str) -> Query:
        """Only rows for which this is true. Comparisons, AND OR NOT, IN, BETWEEN, IS NULL, LIKE, CASE, + - * and
        division by constants: what works on one row and cannot fail.
        """
        query = self._query()
        table = query.session.table
        expressions.condition("where", text, table.schema, table.source.dialect)
        return replace(query, filters=(*query.filters, text))

    def group_by(self, *columns: str, keys: Any = None) -> Query:
        """An answer for each group. ``keys`` are the public groups: a list for one column, a dictionary of lists
        (or tuples) for several; or ``dp.private(...)``.
        """
        query = self._query()
        if query.columns:
            raise InvalidArgument("group_by", "said once", query.columns)
        if not columns:
            raise InvalidArgument("columns", "one column or more", columns)
        found = tuple(query.session.table.schema.get("columns", column) for column in columns)
        if len({column.name for column in found}) != len(found):
            raise InvalidArgument("columns", "different from one another", columns)
        check_kinds(found)
        if isinstance(keys, PrivateKeys):
            return replace(query, columns=found, keys=(), rule=keys)
        return replace(query, columns=found, keys=public_keys(found, keys))

    def persons(self, *, name: str = "persons", **noise: Any) -> Query:
        """How many persons."""
        return self._query()._with(Persons(_label(name), Ask.of(**noise)))

    def rows(self, *, name: str = "rows", **noise: Any) -> Query:
        """How many rows; with persons each of them counts up to max_rows of her rows in a group."""
        return self._query()._with(Rows(_label(name), Ask.of(**noise)))

    def sum(self, column: str, each: Any = None, *, name: str | None = None, **noise: Any) -> Query:
        """The sum of a column. ``each`` bounds a person's total in a group, or a row's value under a row unit."""
        low, high = bounds("each", each)
        return self._query()._valued(Total(_named(column, "sum", name), Ask.of(**noise), column, low, high))

    def mean(
        self, column: str, each: Any = None, *, name: str | None = None, persons: int = 100, **noise: Any
    ) -> Query:
        """The mean of a column whose values are clamped to ``each``. ``sigma`` and ``scale`` are for the noise of
        the sum; ``within`` is what groups of at least ``persons`` get.
        """
        low, high = bounds("each", each)
        many = checks.count("persons", persons, least=1)
        return self._query()._valued(Mean(_named(column, "mean", name), Ask.of(**noise), column, low, high, many))

    def variance(
        self, column: str, each: Any = None, *, name: str | None = None, persons: int = 100, **noise: Any
    ) -> Query:
        """The variance of a column whose values are clamped to ``each``; noise as for the mean."""
        low, high = bounds("each", each)
        many = checks.count("persons", persons, least=1)
        return self._query()._valued(
            Variance(_named(column, "variance", name), Ask.of(**noise), column, low, high, many)
        )

    def quantile(
        self, column: str, q: float | Sequence[float] = 0.5, bins: Any = None, *, name: str | None = None, **noise: Any
    ) -> Query:
        """Quantiles of a column, from a tree of counts over public bins. Noise is that of each count; ``within``
        is how far the rank may be off.
        """
        given = (q,) if isinstance(q, (int, float)) else tuple(q)
        shares = tuple(checks.open_probability("q", share) for share in given)
        if not shares:
            raise InvalidArgument("q", "one share or more, such as 0.5", q)
        label = _named(column, "", name)
        return self._query()._valued(Quantile(label, Ask.of(**noise), column, edges_of("bins", bins), shares))

    def median(self, column: str, bins: Any = None, **noise: Any) -> Query:
        """The quantile of one half."""
        return self.quantile(column, 0.5, bins, **noise)

    def histogram(self, column: str, bins: Any = None, *, name: str | None = None, **noise: Any) -> Query:
        """A count for each bin between the edges ``bins``."""
        label = _named(column, "", name)
        return self._query()._valued(Histogram(label, Ask.of(**noise), column, edges_of("bins", bins)))

    def count_distinct(self, column: str, most: int = 1, *, name: str | None = None, **noise: Any) -> Query:
        """How many different values of a column; a person brings at most ``most`` of them to a group."""
        found = self._query().session.table.schema.get("column", column)
        label = _named(column, "distinct", name)
        kept = checks.count("most", most, least=1)
        return self._query()._valued(Distinct(label, Ask.of(**noise), found.name, kept))


@dataclass(frozen=True, slots=True)
class Query(Asking):
    """A filter, groups and aggregates on a session. Nothing is read before :meth:`release`."""

    session: Session
    filters: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    keys: tuple[Key, ...] = ()
    rule: PrivateKeys | None = None
    aggregates: tuple[Aggregate, ...] = ()
    budget: Mechanism | None = None

    def _query(self) -> Query:
        return self

    def __repr__(self) -> str:
        said = "; ".join(aggregate.said() for aggregate in self.aggregates) or "nothing yet"
        by = f" by {', '.join(column.name for column in self.columns)}" if self.columns else ""
        return f"Query({said}{by}{' where ' + ' and '.join(self.filters) if self.filters else ''})"

    def _with(self, aggregate: Aggregate) -> Query:
        taken = {name for known in self.aggregates for name in known.written} | {c.name for c in self.columns}
        again = taken & set(aggregate.written)
        if again:
            raise InvalidArgument("name", "a column name that is not taken", sorted(again)[0], "write name='...'")
        return replace(self, aggregates=(*self.aggregates, aggregate))

    def _valued(self, aggregate: Aggregate) -> Query:
        aggregate.measures(self._setting(), len(self.aggregates))  # a column that cannot be read is refused now
        return self._with(aggregate)

    def cost(self, cost: Mechanism) -> Query:
        """The query with a cost, shared by the aggregates that do not say what noise they want."""
        if not isinstance(cost, Mechanism):
            raise InvalidType("cost", "a guarantee such as ZCDP(0.002) or PureDP(0.1)", cost)
        return replace(self, budget=cost)

    # -- what follows from the parameters --------------------------------------------------------------------

    def _setting(self) -> Setting:
        session = self.session
        table = session.table
        most = table.max_groups
        if table.person is None or (not self.columns and most is None):
            most = 1
        if most is None:
            raise InvalidArgument(
                "max_groups", "given: in how many groups a person may count", None, "write Table(..., max_groups=3)"
            )
        groups = None if self.rule is not None else max(len(self.keys), 1)
        return Setting(
            table.person is not None,
            most,
            groups,
            table.max_rows,
            session.adjacency,
            table.source.dialect,
            table.schema,
        )

    def compiled(self, cost: Mechanism | None = None) -> Compiled:
        """Bounds, noise, account and SQL."""
        query = self if cost is None else self.cost(cost)
        table, session = query.session.table, query.session
        filters = [expressions.condition("where", text, table.schema, table.source.dialect) for text in query.filters]
        relation, part = session.relation()
        frame = Frame(
            relation,
            None if table.person is None else table.schema.get("person", table.person),
            (*part, *filters),
            query.columns,
            None if query.rule is not None else (query.keys or ((),)),
            table.stable,
            query._setting(),
        )
        return compile_query(Asked(frame, query.aggregates, query.rule, query.budget, session.kind == "pure"))

    def fingerprint(self) -> str:
        """What the query asks, as a hash: a key that was used for one query does not answer another, nor the same one
        of a table with other columns. Name and engine do not count: what one engine lost another may answer.
        """
        table = self.session.table
        parts = (
            [column.name for column in table.origin.schema.columns],
            table.unit,
            table.max_groups,
            table.max_rows,
            table.joined,
            self.session.part,
            self.filters,
            self.columns,
            self.keys,
            self.rule,
            self.aggregates,
            self.budget,
        )
        return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]

    def price(self, cost: Mechanism | None = None) -> Price:
        """What it costs, what is left, and how often it fits. Reads no data and spends nothing."""
        return Price.of(self.session, self.compiled(cost).plan)

    def preview(self, cost: Mechanism | None = None) -> Preview:
        """The error bars before paying."""
        return Preview.of(self.compiled(cost))

    def explain(self, cost: Mechanism | None = None) -> str:
        """Unit, bounds, how far each number can move, the theorems, and the SQL."""
        return explanation(self.session.table, self.session.dataset, self.filters, self.compiled(cost))

    def release(self, *, why: str = "", key: str | None = None, cost: Mechanism | None = None) -> Result:
        """Debit, run the SQL, add noise, store, return. A retry with the same key returns the stored answer.

        If the engine fails, nothing is released and the debit stands; the same key may be tried again without
        another debit. The answer leaves only after it was stored, and only one is ever stored for a key.
        """
        query = self if cost is None else self.cost(cost)
        compiled = query.compiled()
        session = query.session
        engine = session.table.source.engine
        engine.check_process()
        reservation = session.reserve(compiled.plan, why, key, query.fingerprint())
        stored = reservation.value if reservation.settled else reservation.settle(compiled.run(engine))
        return Result(compiled, stored, reservation.receipt, session.table.source.label, engine.name)


def _label(name: object) -> str:
    if not isinstance(name, str) or not name or not name.isprintable() or len(name) > 100:
        raise InvalidArgument("name", "a short printable text", name)
    return name


def _named(column: object, word: str, name: str | None) -> str:
    if not isinstance(column, str):
        raise InvalidType("column", "the name of a column, or an expression", column)
    if name is not None:
        return _label(name)
    return _label(f"{column}_{word}" if word else column)
