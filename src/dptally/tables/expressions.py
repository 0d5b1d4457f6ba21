"""What users may write in SQL: a closed list of operations that are total and look at one row only.

A query that fails on some data tells about the data, and so does an error that quotes it. Every operation here
gives a value (or NULL) whatever the row holds, on every engine: comparisons, AND OR NOT, IN, BETWEEN, IS NULL,
LIKE, CASE, and + - * and division by a constant on doubles. Subqueries, functions, casts, windows and
randomness are refused with the place and the reason. The text is read by sqlglot and checked node by node;
what is sent to the engine is printed here, from the checked tree, with types from the schema.

Doubles: a column enters arithmetic only between 1e-50 and 1e50 in size (smaller is 0, larger is missing), and
the sizes of products and sums are followed, so that no engine can overflow or underflow (PostgreSQL fails on
either).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NoReturn

from dptally.errors import InvalidType, MissingExtra, RefusedExpression
from dptally.tables.dialect import Dialect
from dptally.tables.kinds import Column, Kind, Schema

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Typed", "condition", "number", "parse"]

_LONGEST = 10_000  # characters
_DEEPEST = 60
_LARGE, _SMALL = 1e50, 1e-50
_MOST, _LEAST = 1e250, 1e-250


@dataclass(frozen=True, slots=True)
class Typed:
    """SQL with its kind; for numbers also the largest and the smallest size but 0; ``value`` of a constant."""

    sql: str
    kind: Kind
    largest: float = 2.0**64
    smallest: float = 1.0
    value: Any = None
    column: Column | None = None


def condition(argument: str, text: str, schema: Schema, dialect: Dialect) -> str:
    """A filter, checked and printed for an engine."""
    found = _Checker(argument, text, schema, dialect).typed(parse(argument, text))
    if found.kind is not Kind.BOOLEAN:
        raise RefusedExpression(argument, text, 0, f"a filter must be true or false, this is {found.kind.value}")
    return found.sql


def number(argument: str, text: str, schema: Schema, dialect: Dialect) -> str:
    """A column or an expression of one row, as a double (NULL where it has no value)."""
    column = schema.find(text)
    checker = _Checker(argument, text, schema, dialect)
    found = checker.of_column(column, None) if column is not None else checker.typed(parse(argument, text))
    return checker.real(found, None).sql


def parse(argument: str, text: object, into: str = "Condition") -> Any:
    """The tree of a text. Only its shape is read; nothing of it is executed."""
    if not isinstance(text, str):
        raise InvalidType(argument, "a text in SQL", text)
    try:
        import sqlglot
        from sqlglot import exp
        from sqlglot.errors import SqlglotError
    except ModuleNotFoundError:
        raise MissingExtra("sqlglot", "tables") from None
    if len(text) > _LONGEST:
        raise RefusedExpression(argument, text, _LONGEST, f"the text is longer than {_LONGEST} characters")
    bad = next((i for i, c in enumerate(text) if (ord(c) < 32 and c not in "\t\n\r") or 0xD800 <= ord(c) < 0xE000), -1)
    if bad >= 0:
        raise RefusedExpression(argument, text, bad, "control characters have no place here")
    try:
        return sqlglot.parse_one(text, dialect="duckdb", into=getattr(exp, into))
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError) as error:
        details = getattr(error, "errors", None) or [{}]
        line, col = details[0].get("line"), details[0].get("col")
        place = _offset(text, line, col) if line and col else 0
    raise RefusedExpression(argument, text, place, "this cannot be read as SQL")


def _offset(text: str, line: int, col: int) -> int:
    starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
    return min(starts[min(line, len(starts)) - 1] + max(col - 1, 0), max(len(text) - 1, 0))


def place_of(node: Any) -> int:
    """Where a node begins, as far as the parser kept it."""
    places = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(places, default=0)


_WHY = {
    "Select": "a subquery looks at other persons' rows",
    "Subquery": "a subquery looks at other persons' rows",
    "Exists": "a subquery looks at other persons' rows",
    "Window": "a window looks at other rows",
    "Rand": "randomness belongs to the noise alone",
    "Cast": "a cast may fail on data; columns already have the types of the schema",
    "TryCast": "casts are not in the list; columns already have the types of the schema",
    "Mod": "a remainder may fail on data",
    "IntDiv": "a division may fail on data; divide by a constant with /",
    "Star": "a star is not a value",
    "Null": "NULL is tested with IS NULL",
    "Placeholder": "parameters are not in the list; write the value",
    "Parameter": "parameters are not in the list; write the value",
}


class _Checker:
    """One walk over a tree: every node is in the list and has a kind, or the walk stops."""

    def __init__(self, argument: str, text: str, schema: Schema, dialect: Dialect) -> None:
        self.argument, self.text, self.schema, self.dialect = argument, text, schema, dialect
        self.depth = 0

    def refuse(self, node: Any, reason: str) -> NoReturn:
        raise RefusedExpression(self.argument, self.text, 0 if node is None else place_of(node), reason)

    def typed(self, node: exp.Expression) -> Typed:  # pyright: ignore[reportPrivateImportUsage]
        name = type(node).__name__
        handler: Callable[[Any], Typed] | None = getattr(self, f"_{name.lower()}", None) if name in _LIST else None
        if handler is None:
            self.refuse(node, _WHY.get(name, f"{_words(node)} is not in the list of allowed operations"))
        self.depth += 1
        if self.depth > _DEEPEST:
            self.refuse(node, f"more than {_DEEPEST} operations inside one another")
        found = handler(node)
        self.depth -= 1
        return found

    # -- leaves ----------------------------------------------------------------------------------------------

    def _column(self, node: exp.Column) -> Typed:
        if node.args.get("table") is not None or node.args.get("db") is not None or type(node.this).__name__ == "Star":
            self.refuse(node, "write the column's name alone")
        found = self.schema.find(node.name)
        if found is None:
            self.refuse(node, f"the table has no column {node.name!r}")
        return self.of_column(found, node)

    def of_column(self, found: Column, node: Any) -> Typed:
        if found.kind is Kind.OTHER:
            self.refuse(node, f"column {found.name!r} is of a type that no operation of the list takes")
        if found.kind is Kind.COARSE:
            self.refuse(
                node,
                f"column {found.name!r} counts seconds or milliseconds, and a query would fail where one is too large; "
                "keep it in microseconds",
            )
        kind = Kind.REAL if found.kind is Kind.WIDE else found.kind
        if kind is Kind.REAL:
            return Typed(self.dialect.column(found), kind, float("inf"), 0.0, column=found)
        return Typed(self.dialect.column(found), kind, column=found)

    def _literal(self, node: exp.Literal) -> Typed:
        if node.is_string:
            return Typed(self.dialect.literal(node.this), Kind.TEXT, value=node.this)
        return self._number(node, node.this)

    def _number(self, node: Any, digits: str) -> Typed:
        try:
            value: int | float = int(digits) if digits.lstrip("-").isdigit() and len(digits) < 30 else float(digits)
        except ValueError:
            self.refuse(node, "this number cannot be read")
        if isinstance(value, int) and abs(value) < 1 << 62:
            return Typed(self.dialect.literal(value), Kind.INTEGER, float(max(abs(value), 1)), 1.0, value)
        size = abs(float(value))
        if not (size == 0 or _SMALL <= size <= _LARGE):
            self.refuse(node, "a number must be 0 or between 1e-50 and 1e50 in size")
        return Typed(self.dialect.literal(float(value)), Kind.REAL, size or 1.0, size or 1.0, float(value))

    def _boolean(self, node: exp.Boolean) -> Typed:
        return Typed(self.dialect.literal(bool(node.this)), Kind.BOOLEAN, value=bool(node.this))

    def _paren(self, node: exp.Paren) -> Typed:
        inner = self.typed(node.this)
        return Typed(f"({inner.sql})", inner.kind, inner.largest, inner.smallest, inner.value, inner.column)

    def _neg(self, node: exp.Neg) -> Typed:
        inner = node.this
        if type(inner).__name__ == "Literal" and not inner.is_string:
            return self._number(node, f"-{inner.this}")
        real = self.real(self.typed(inner), node, arithmetic=True)
        return Typed(f"(-{real.sql})", Kind.REAL, real.largest, real.smallest)

    # -- truth -----------------------------------------------------------------------------------------------

    def _truth(self, node: Any) -> str:
        found = self.typed(node)
        if found.kind is not Kind.BOOLEAN:
            self.refuse(node, f"this must be true or false, it is {found.kind.value}")
        return found.sql

    def _and(self, node: exp.And) -> Typed:
        return Typed(f"({self._truth(node.this)} AND {self._truth(node.expression)})", Kind.BOOLEAN)

    def _or(self, node: exp.Or) -> Typed:
        return Typed(f"({self._truth(node.this)} OR {self._truth(node.expression)})", Kind.BOOLEAN)

    def _not(self, node: exp.Not) -> Typed:
        return Typed(f"(NOT {self._truth(node.this)})", Kind.BOOLEAN)

    def _is(self, node: exp.Is) -> Typed:
        if type(node.expression).__name__ != "Null":
            self.refuse(node, "IS is followed by NULL or NOT NULL")
        return Typed(f"({self.typed(node.this).sql} IS NULL)", Kind.BOOLEAN)

    def _compared(self, node: Any, sign: str) -> Typed:
        left, right = self.meet(self.typed(node.this), self.typed(node.expression), node)
        return Typed(f"({left} {sign} {right})", Kind.BOOLEAN)

    def _eq(self, node: exp.EQ) -> Typed:
        return self._compared(node, "=")

    def _neq(self, node: exp.NEQ) -> Typed:
        return self._compared(node, "<>")

    def _lt(self, node: exp.LT) -> Typed:
        return self._compared(node, "<")

    def _lte(self, node: exp.LTE) -> Typed:
        return self._compared(node, "<=")

    def _gt(self, node: exp.GT) -> Typed:
        return self._compared(node, ">")

    def _gte(self, node: exp.GTE) -> Typed:
        return self._compared(node, ">=")

    def _between(self, node: exp.Between) -> Typed:
        if node.args.get("symmetric"):
            self.refuse(node, "BETWEEN SYMMETRIC is not in the list")
        value = self.typed(node.this)
        above, low = self.meet(value, self.typed(node.args["low"]), node)
        below, high = self.meet(value, self.typed(node.args["high"]), node)
        return Typed(f"({above} >= {low} AND {below} <= {high})", Kind.BOOLEAN)

    def _in(self, node: exp.In) -> Typed:
        others = {name for name, given in node.args.items() if given and name not in ("this", "expressions")}
        if others or not node.expressions:
            self.refuse(node, "IN is followed by a list of constants")
        value = self.typed(node.this)
        tests = []
        for entry in node.expressions:
            constant = self.typed(entry)
            if constant.value is None:
                self.refuse(entry, "IN is followed by a list of constants")
            left, right = self.meet(value, constant, entry)
            tests.append((left, right))
        if len({left for left, _ in tests}) == 1:
            return Typed(f"({tests[0][0]} IN ({', '.join(right for _, right in tests)}))", Kind.BOOLEAN)
        return Typed(f"({' OR '.join(f'{left} = {right}' for left, right in tests)})", Kind.BOOLEAN)

    def _like(self, node: exp.Like) -> Typed:
        value, pattern = self.typed(node.this), self.typed(node.expression)
        if value.kind is not Kind.TEXT or not isinstance(pattern.value, str) or "\\" in pattern.value:
            self.refuse(node, "LIKE takes a text column and a constant without backslashes")
        return Typed(f"({value.sql} LIKE {pattern.sql})", Kind.BOOLEAN)

    # -- arithmetic and choice -------------------------------------------------------------------------------

    def _operands(self, node: Any) -> tuple[Typed, Typed]:
        return tuple(self.real(self.typed(part), part, arithmetic=True) for part in (node.this, node.expression))  # type: ignore[return-value]

    def _sized(self, node: Any, sql: str, largest: float, smallest: float) -> Typed:
        if not (largest <= _MOST and smallest >= _LEAST):
            self.refuse(node, "too many products: the result may leave the range of doubles")
        return Typed(f"({sql})", Kind.REAL, largest, smallest)

    def _add(self, node: exp.Add, sign: str = "+") -> Typed:
        a, b = self._operands(node)
        # the difference of two doubles that are not equal is at least a unit in the last place of the smaller
        return self._sized(
            node, f"{a.sql} {sign} {b.sql}", a.largest + b.largest, min(a.smallest, b.smallest) * 2.0**-53
        )

    def _sub(self, node: exp.Sub) -> Typed:
        return self._add(node, "-")  # type: ignore[arg-type]

    def _mul(self, node: exp.Mul) -> Typed:
        a, b = self._operands(node)
        return self._sized(node, f"{a.sql} * {b.sql}", a.largest * b.largest, a.smallest * b.smallest)

    def _div(self, node: exp.Div) -> Typed:
        divisor = self.typed(node.expression)
        if not isinstance(divisor.value, (int, float)) or isinstance(divisor.value, bool) or divisor.value == 0:
            self.refuse(node.expression, "a division may fail on data: only a constant other than 0 may divide")
        a, b = self.real(self.typed(node.this), node, arithmetic=True), self.real(divisor, node, arithmetic=True)
        return self._sized(node, f"{a.sql} / {b.sql}", a.largest / b.smallest, a.smallest / b.largest)

    def _case(self, node: exp.Case) -> Typed:
        if node.this is not None:
            self.refuse(node, "write CASE WHEN condition THEN value")
        tests = [(self._truth(branch.this), self.typed(branch.args["true"])) for branch in node.args["ifs"]]
        other = node.args.get("default")
        values = [value for _, value in tests] + ([] if other is None else [self.typed(other)])
        kinds = {Kind.REAL if value.kind.numeric else value.kind for value in values}
        if len(kinds) > 1:
            self.refuse(node, "the branches of CASE must be of one kind")
        if kinds == {Kind.REAL}:
            values = [self.real(value, node) for value in values]
        whens = " ".join(f"WHEN {test} THEN {value.sql}" for (test, _), value in zip(tests, values, strict=False))
        last = "" if other is None else f" ELSE {values[-1].sql}"
        largest, smallest = max(v.largest for v in values), min(v.smallest for v in values)
        return Typed(f"(CASE {whens}{last} END)", kinds.pop(), largest, smallest)

    # -- kinds -----------------------------------------------------------------------------------------------

    def real(self, found: Typed, node: Any, arithmetic: bool = False) -> Typed:
        """A number as a double; for arithmetic also of moderate size."""
        if found.kind is Kind.TEXT and found.column is not None and self.dialect.try_real:
            read = self.dialect.try_real.format(self.dialect.column(found.column))
            found = Typed(read, Kind.REAL, float("inf"), 0.0)
        if not found.kind.numeric:
            self.refuse(node, f"this must be a number, it is {found.kind.value}")
        sql = found.sql
        if found.kind is Kind.INTEGER:
            sql = self.dialect.literal(float(found.value)) if found.value is not None else self._cast(sql)
        if not arithmetic or (found.largest <= _MOST and found.smallest >= _LEAST):
            return Typed(sql, Kind.REAL, found.largest, found.smallest, found.value)
        inner, outer = self.dialect.number(_SMALL), self.dialect.number(_LARGE)
        moderate = (
            f"(CASE WHEN {sql} < -{outer} THEN NULL WHEN {sql} <= -{inner} THEN {sql} WHEN {sql} < {inner} "
            f"THEN {self.dialect.number(0.0)} WHEN {sql} <= {outer} THEN {sql} END)"
        )
        return Typed(moderate, Kind.REAL, _LARGE, _SMALL)

    def _cast(self, sql: str) -> str:
        return self.dialect.cast(sql, Kind.REAL)

    def meet(self, a: Typed, b: Typed, node: Any) -> tuple[str, str]:
        """Two values that may be compared, in one type. Constants are read in the other side's kind."""
        if a.kind is b.kind and a.kind in (Kind.INTEGER, Kind.TEXT, Kind.BOOLEAN, Kind.DATE):
            return a.sql, b.sql
        if a.kind is b.kind and a.kind in (Kind.TIMESTAMP, Kind.INSTANT):
            return a.sql, b.sql
        if a.kind.numeric and b.kind.numeric:
            return self.real(a, node).sql, self.real(b, node).sql
        for one, other, swap in ((a, b, False), (b, a, True)):
            if one.kind is Kind.TEXT and one.column is not None and other.kind.numeric and self.dialect.try_real:
                pair = self.real(one, node).sql, self.real(other, node).sql
                return (pair[1], pair[0]) if swap else pair
            if isinstance(other.value, str) and one.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT):
                pair = one.sql, self._moment(other.value, one.kind, node)
                return (pair[1], pair[0]) if swap else pair
        return self.refuse(node, f"{a.kind.value} and {b.kind.value} cannot be compared")

    def _moment(self, text: str, kind: Kind, node: Any) -> str:
        try:
            if kind is Kind.DATE:
                return self.dialect.literal(date.fromisoformat(text))
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.refuse(node, f"{text[:40]!r} is not a date such as 2026-01-31 or 2026-01-31 12:00:00")
        if moment.tzinfo is not None:
            self.refuse(node, "write times without a zone; they are taken as UTC")
        if kind is Kind.TIMESTAMP:
            return self.dialect.literal(moment)
        return f"CAST('{moment.isoformat(sep=' ')}+00:00' AS {self.dialect.instant})"


_LIST = frozenset(
    (
        *("Column", "Literal", "Boolean", "Paren", "Neg", "And", "Or", "Not", "Is", "EQ", "NEQ", "LT", "LTE", "GT"),
        *("GTE", "Between", "In", "Like", "Add", "Sub", "Mul", "Div", "Case"),
    )
)


def _words(node: Any) -> str:
    try:
        text = " ".join(node.sql(dialect="duckdb").split())
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        text = type(node).__name__
    return text if len(text) <= 40 else text[:37] + "..."
