"""A question to the declared table: read from a form's fields, priced and previewed without a look at its rows.

:func:`preview` is a task of a worker. The one way to rows is :meth:`dptally.tables.Query.release`, which debits first.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dptally.cli.plans import of_text
from dptally.errors import InvalidArgument
from dptally.numerics.shown import shown_down, shown_up
from dptally.report import svg
from dptally.tables import Price, Query, Session, Table, private
from dptally.tables.kinds import Column, Kind
from dptally.web.question import number
from dptally.web.settings import Declared

if TYPE_CHECKING:
    from dptally.ledger import Ledger

__all__ = ["FIELDS", "MEASURES", "NOISES", "fields_of", "preview", "query", "session"]

AGGREGATES = 3  # so many on a form
_OF_ONE = ("what", "column", "low", "high", "bins", "shares", "most", "least", "noise", "amount", "name")
FIELDS = (
    *("by", "where", "cost", "group1", "keys1", "group2", "keys2", "threshold"),
    *(f"{field}{n}" for n in range(1, AGGREGATES + 1) for field in _OF_ONE),
)
NOISES = ("within", "sigma", "scale")
_LONGEST = 1_000_000  # characters of a field
_WHOLE = re.compile(r"[+-]?\d{1,18}")
Fields = tuple[tuple[str, str], ...]


def fields_of(given: Mapping[str, str]) -> Fields:
    """What a form says of a question, without what is empty and without what is no part of it."""
    found = tuple((name, given[name].strip()) for name in FIELDS if given.get(name, "").strip())
    for name, text in found:
        if len(text) > _LONGEST:
            raise InvalidArgument(name, f"at most {_LONGEST} characters", f"{len(text)} characters")
    return found


def session(ledger: Ledger, declared: Declared, by: str) -> Session:
    """The table on its account; the account's unit says whose rows they are. The schema is read, never a row."""
    unit = ledger.terms(declared.dataset).unit
    person = None if unit == "row" else unit.removeprefix("person:")
    table = Table(declared.source, person=person, max_groups=declared.max_groups, max_rows=declared.max_rows)
    return Session(table, ledger=ledger, dataset=declared.dataset, by=by)


def query(asked: Session, given: Mapping[str, str]) -> Query:
    """The query of a form's fields."""
    made: Any = asked
    if given.get("where"):
        made = made.where(given["where"])
    made = _grouped(made, asked.table, given)
    for n in range(1, AGGREGATES + 1):
        one = {field: given[f"{field}{n}"] for field in _OF_ONE if f"{field}{n}" in given}
        made = _aggregated(made, one)
    if not isinstance(made, Query) or not made.aggregates:
        raise InvalidArgument("aggregate", "one of " + ", ".join(MEASURES), "none")
    return made.cost(of_text(given["cost"]).mechanism) if given.get("cost") else made


def preview(url: str, declared: Declared, fields: Fields) -> dict[str, Any]:
    """Price, error bars and explanation of a query. Nothing is debited and no row is read."""
    from dptally.ledger import Ledger

    given = dict(fields)
    with Ledger.open(url, read_only=True) as ledger:
        asked = query(session(ledger, declared, given.get("by", "")), given)
        price, widths = asked.price(), asked.preview()
        return {
            "price": _price(price),
            "lines": [_line(line, widths.groups) for line in widths.lines],
            "groups": widths.groups,
            "truncates": widths.truncates,
            # who reads the page need not know where the files lie
            "explanation": asked.explain().replace(declared.source, Path(declared.source).name),
        }


def _price(price: Price) -> dict[str, Any]:
    failure = shown_up(price.failure, 4) if price.failure else ""
    costs = {"cost": shown_up(price.cost, 6), "symbol": price.symbol, "failure": failure}
    return {**costs, "left": shown_down(price.left, 6), "fits": price.fits, "plan": repr(price.plan)}


def _line(line: Any, groups: int | None) -> dict[str, Any]:
    widths = [("one answer", line.half_width)]
    if groups is not None and groups > 1:
        widths.append((f"all {groups} at once", line.all_at_once))
    known = [(name, width) for name, width in widths if width is not None and math.isfinite(width)]
    bars = [svg.Spread(name, 0.0, -width, width, f"± {width:.6g}") for name, width in known]
    drawn = svg.spreads(bars, f"error bars of {line.label}, around the answer") if bars else ""
    return {"label": line.label, "noise": line.noise, "note": line.note, "picture": drawn}


# -- the parts of a form ---------------------------------------------------------------------------------------


def _grouped(made: Any, table: Table, given: Mapping[str, str]) -> Any:
    columns = [table.schema.get("group by", given[name]) for name in ("group1", "group2") if given.get(name)]
    if not columns:
        return made
    names = [column.name for column in columns]
    if given.get("threshold"):
        return made.group_by(*names, keys=private(threshold=_whole(given, "threshold")))
    listed = [given.get(name.replace("group", "keys"), "") for name in ("group1", "group2") if given.get(name)]
    keys = {column.name: _keys(column, text) for column, text in zip(columns, listed, strict=True)}
    return made.group_by(*names, keys=keys)


def _keys(column: Column, text: str) -> list[Any]:
    """Groups, separated by commas or lines; one with a comma stands in quotes."""
    words = [word.strip() for row in csv.reader(text.splitlines(), skipinitialspace=True) for word in row]
    return [_key(column, word) for word in words if word]


def _key(column: Column, word: str) -> Any:
    if column.kind is Kind.INTEGER and _WHOLE.fullmatch(word):
        return int(word)
    if column.kind is Kind.BOOLEAN and word.lower() in ("true", "false"):
        return word.lower() == "true"
    return word  # what is not of its column's kind is refused by the query


def _aggregated(made: Any, one: Mapping[str, str]) -> Any:
    what = one.get("what")
    if what is None:
        return made
    if what not in MEASURES:
        raise InvalidArgument("aggregate", "one of " + ", ".join(MEASURES), what)
    return MEASURES[what](made, one, _noise(one) | ({"name": one["name"]} if "name" in one else {}))


def _noise(one: Mapping[str, str]) -> dict[str, Any]:
    kind = one.get("noise")
    if kind is None:
        return {}
    if kind not in NOISES:
        raise InvalidArgument("noise", "one of " + ", ".join(NOISES), kind)
    return {kind: _number(one, "amount")}


def _number(one: Mapping[str, str], name: str) -> float:
    found = number(one, name)
    if found is None:
        raise InvalidArgument(name, "a number", "nothing")
    return found


def _whole(one: Mapping[str, str], name: str, default: int | None = None) -> int:
    if name not in one and default is not None:
        return default
    found = _number(one, name)
    if not found.is_integer():
        raise InvalidArgument(name, "a whole number", one[name])
    return int(found)


def _numbers(one: Mapping[str, str], name: str) -> list[float]:
    words = re.split(r"[,\s]+", one.get(name, "").strip(", \n"))
    return [_number({name: word}, name) for word in words]


def _each(one: Mapping[str, str]) -> tuple[float, float]:
    return _number(one, "low"), _number(one, "high")


def _column(one: Mapping[str, str]) -> str:
    if "column" not in one:
        raise InvalidArgument("column", "a column of the table", "nothing")
    return one["column"]


_Adder = Callable[[Any, Mapping[str, str], dict[str, Any]], Query]
MEASURES: dict[str, _Adder] = {
    "persons": lambda made, _, more: made.persons(**more),
    "rows": lambda made, _, more: made.rows(**more),
    "sum": lambda made, one, more: made.sum(_column(one), _each(one), **more),
    "mean": lambda made, one, more: made.mean(_column(one), _each(one), persons=_whole(one, "least", 100), **more),
    "variance": lambda made, one, more: made.variance(
        _column(one), _each(one), persons=_whole(one, "least", 100), **more
    ),
    "quantile": lambda made, one, more: made.quantile(
        _column(one), _numbers(one, "shares") if "shares" in one else 0.5, _numbers(one, "bins"), **more
    ),
    "histogram": lambda made, one, more: made.histogram(_column(one), _numbers(one, "bins"), **more),
    "distinct": lambda made, one, more: made.count_distinct(_column(one), _whole(one, "most", 1), **more),
}
