"""SELECT texts: a closed subset of SQL, read into a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from dptally.errors import InvalidArgument, InvalidType, RefusedExpression
from dptally.tables.expressions import parse, place_of
from dptally.tables.query import Query

if TYPE_CHECKING:
    from dptally.tables.session import Session

__all__ = ["query_of"]

_CLAUSES = {"expressions", "from_", "from", "where", "group"}
_AGGREGATES = "COUNT(DISTINCT person), COUNT(*), SUM, AVG, VARIANCE"


def query_of(session: Session, text: str, keys: Any, each: Mapping[str, Any]) -> Query:
    """The query that a SELECT asks for."""
    if not isinstance(each, Mapping):
        raise InvalidType("each", "a dictionary of bounds, such as {'cost': (0, 2000)}", each)
    tree = parse("sql", text, into="Select")
    reader = _Reader(session, text, keys, {name.lower(): pair for name, pair in each.items()})
    return reader.read(tree)


class _Reader:
    def __init__(self, session: Session, text: str, keys: Any, each: Mapping[str, Any]) -> None:
        self.session, self.text, self.keys, self.each = session, text, keys, each

    def refuse(self, node: Any, reason: str) -> NoReturn:
        raise RefusedExpression("sql", self.text, 0 if node is None else place_of(node), reason)

    def read(self, tree: Any) -> Query:
        if type(tree).__name__ != "Select":
            self.refuse(tree, "only SELECT is read")
        for clause, given in tree.args.items():
            if given and clause not in _CLAUSES:
                word = clause.strip("_").upper()
                self.refuse(given if hasattr(given, "walk") else tree, f"{word} is not in the subset that is read")
        self._check_from(tree)
        query = Query(self.session)
        where = tree.args.get("where")
        if where is not None:
            query = query.where(self._words(where.this))
        group = tree.args.get("group")
        names = self._groups(group)
        if names:
            query = query.group_by(*names, keys=self.keys)
        elif self.keys is not None:
            raise InvalidArgument("keys", "left out without GROUP BY", self.keys)
        for node in tree.expressions:
            query = self._selected(query, node, names)
        if not query.aggregates:
            self.refuse(tree, f"nothing is aggregated; write {_AGGREGATES}")
        return query

    def _words(self, node: Any) -> str:
        """The text of a part, as it is checked again by itself."""
        try:
            return str(node.sql(dialect="duckdb"))
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
            self.refuse(node, "this cannot be read as SQL")

    def _check_from(self, tree: Any) -> None:
        source = tree.args.get("from_") or tree.args.get("from")
        if source is None or type(source.this).__name__ != "Table":
            self.refuse(tree, f"FROM {self.session.table.name} is missing")
        table = source.this
        extra = {name for name, given in table.args.items() if given and name != "this"}
        if extra or type(table.this).__name__ != "Identifier" or table.name.lower() != self.session.table.name.lower():
            self.refuse(table, f"FROM must be followed by the table's name alone, {self.session.table.name}")

    def _groups(self, group: Any) -> list[str]:
        if group is None:
            return []
        extra = {name for name, given in group.args.items() if given and name != "expressions"}
        if extra or not group.expressions:
            self.refuse(group, "GROUP BY is followed by columns")
        return [self._column(node) for node in group.expressions]

    def _column(self, node: Any) -> str:
        if type(node).__name__ != "Column" or node.args.get("table") is not None:
            self.refuse(node, "a column's name alone is needed here")
        found = self.session.table.schema.find(node.name)
        if found is None:
            self.refuse(node, f"the table has no column {node.name!r}")
        return found.name

    def _selected(self, query: Query, node: Any, names: list[str]) -> Query:
        alias = None
        if type(node).__name__ == "Alias":
            alias, node = node.alias, node.this
        kind = type(node).__name__
        if kind == "Column":
            if alias is not None or self._column(node) not in names:
                self.refuse(node, "a column beside aggregates must stand in GROUP BY, under its own name")
            return query
        if kind == "Count":
            return self._count(query, node, alias)
        ask = {"Sum": query.sum, "Avg": query.mean, "Variance": query.variance, "VariancePop": query.variance}.get(kind)
        extra = {name for name, given in node.args.items() if given and name != "this"}
        if ask is None or extra or node.this is None or type(node.this).__name__ == "Distinct":
            self.refuse(node, f"only {_AGGREGATES} of columns are read here")
        column = self._column(node.this) if type(node.this).__name__ == "Column" else self._words(node.this)
        bounds = self.each.get(column.lower())
        if bounds is None:
            raise InvalidArgument(
                "each",
                f"given for {column}: what one contribution may be",
                None,
                f"write each={{{column!r}: (0, 100)}}",
            )
        return ask(column, bounds) if alias is None else ask(column, bounds, name=alias)

    def _count(self, query: Query, node: Any, alias: str | None) -> Query:
        named = {} if alias is None else {"name": alias}
        inner, person = node.this, self.session.table.person
        if type(inner).__name__ == "Star" and not node.expressions:
            return query.rows(**named)
        if type(inner).__name__ == "Distinct" and len(inner.expressions) == 1 and not node.expressions:
            column = self._column(inner.expressions[0])
            if column == person:
                return query.persons(**named)
            self.refuse(
                node, f"COUNT(DISTINCT ...) counts persons ({person}); for values write count_distinct(column, most)"
            )
        return self.refuse(node, "write COUNT(*) or COUNT(DISTINCT person)")
