"""What was released: numbers with error bars, and all that is needed to say how they came about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dptally.errors import InvalidArgument, MissingExtra
from dptally.mechanisms import Mechanism
from dptally.numerics.shown import shown_up
from dptally.tables import pages
from dptally.tables.aggregates import Cell
from dptally.tables.bins import Histogram
from dptally.tables.compiled import Compiled, key_from_json
from dptally.tables.explanation import unit_said
from dptally.tables.keys import Key

if TYPE_CHECKING:
    from dptally.ledger import Receipt

__all__ = ["Result"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Result:
    """A released answer. Everything in it but the numbers was known before the data was read."""

    compiled: Compiled
    stored: Mapping[str, Any]
    receipt: Receipt
    source: str
    engine: str

    @property
    def mechanism(self) -> Mechanism:
        """The account of this release."""
        return self.compiled.plan

    @property
    def sql(self) -> str:
        """The texts that were sent to the engine."""
        return ";\n".join(self.compiled.sql)

    @property
    def keys(self) -> list[Key]:
        """The groups that were published."""
        frame = self.compiled.frame
        if self.stored["keys"] is None:
            return list(frame.keys or ((),))
        return [key_from_json(frame.columns, stored) for stored in self.stored["keys"]]

    def rows(self, *, rounded: bool = False) -> list[dict[str, Any]]:
        """A dictionary for each group: its keys, then each answer with ``_low`` and ``_high`` (95 %).

        Noisy counts may be negative; ``rounded`` shows those as 0.
        """
        columns = self.compiled.frame.columns
        found = []
        for index, key in enumerate(self.keys):
            row: dict[str, Any] = {column.name: value for column, value in zip(columns, key, strict=True)}
            for aggregate, measures in zip(self.compiled.asked.aggregates, self.compiled.measures, strict=True):
                values = [self.stored["numbers"][measure.measure.name][index] for measure in measures]
                estimates = aggregate.estimates(Cell(measures, values))
                for name, (value, low, high) in zip(aggregate.columns, estimates, strict=True):
                    shown = max(value, 0) if rounded and isinstance(value, int) else value
                    row |= {name: shown, f"{name}_low": low, f"{name}_high": high}
            found.append(row)
        return found

    def histogram(self, label: str) -> list[dict[str, Any]]:
        """A histogram in long form: a dictionary for each group and bin."""
        known = {a.label: a for a in self.compiled.asked.aggregates if isinstance(a, Histogram)}
        if label not in known:
            raise InvalidArgument("label", f"a histogram of the query ({', '.join(known) or 'none'})", label)
        chosen, columns = known[label], [column.name for column in self.compiled.frame.columns]
        edges = [float(edge) for edge in chosen.edges]
        long = []
        for row in self.rows():
            for name, low, high in zip(chosen.columns, edges, edges[1:], strict=False):
                counts = {"count": row[name], "count_low": row[f"{name}_low"], "count_high": row[f"{name}_high"]}
                long.append({column: row[column] for column in columns} | {"from": low, "to": high} | counts)
        return long

    def frame(self) -> Any:
        """The rows as a pandas frame, or a polars frame where pandas is not installed."""
        try:
            import pandas as pd

            return pd.DataFrame(self.rows(), columns=self._written())
        except ModuleNotFoundError:
            pass
        try:
            import polars as pl
        except ModuleNotFoundError:
            raise MissingExtra("pandas", "tables") from None
        return pl.DataFrame(self.rows(), schema=self._written(), infer_schema_length=None)

    def _written(self) -> list[str]:
        bars = (f"{name}{end}" for name in self.columns for end in ("", "_low", "_high"))
        return [*self._named_keys(), *bars]

    def plot(self, column: str | None = None, ax: Any = None) -> Any:
        """The answers of one column with their error bars, on matplotlib axes."""
        from dptally.report.figure import axes_or_new

        names = self.columns
        chosen = names[0] if column is None else column
        if chosen not in names:
            raise InvalidArgument("column", f"one of {', '.join(names)}", column)
        rows = self.rows()
        labels = [", ".join(map(str, key)) or "all" for key in self.keys]
        axes = axes_or_new(ax)
        below = [max(row[chosen] - row[f"{chosen}_low"], 0) for row in rows]
        above = [max(row[f"{chosen}_high"] - row[chosen], 0) for row in rows]
        places = range(len(rows))
        axes.errorbar([row[chosen] for row in rows], places, xerr=[below, above], fmt="o", markersize=4, capsize=3)
        axes.set_yticks(list(places), labels, parse_math=False)  # a key may hold dollars
        axes.invert_yaxis()
        axes.set_xlabel(f"{chosen} (bars: 95 % of the noise)", parse_math=False)
        return axes

    @property
    def columns(self) -> list[str]:
        """The names of the answers, without the keys and without _low and _high."""
        return [name for aggregate in self.compiled.asked.aggregates for name in aggregate.columns]

    # -- pages -----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": [{name: _json(value) for name, value in row.items()} for row in self.rows()],
            "mechanism": repr(self.mechanism),
            "unit": "row" if self.compiled.frame.person is None else f"person:{self.compiled.frame.person.name}",
            "adjacency": self.compiled.frame.setting.adjacency.value,
            "source": self.source,
            "engine": self.engine,
            "dataset": self.receipt.dataset,
            "entry": self.receipt.number,
            "cost": self.receipt.cost,
            "sql": self.sql,
        }

    def report(self, format: str = "markdown") -> str:
        """The answers and where they come from, as markdown, html or json."""
        if format == "json":
            return json.dumps(self.to_dict(), indent=2)
        if format not in ("markdown", "html"):
            raise InvalidArgument("format", "one of markdown, html, json", format)
        page = pages.Page(self._named_keys(), tuple(self.columns), tuple(self.rows()), tuple(self._facts()))
        return page.markdown() if format == "markdown" else page.html()

    def _named_keys(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.compiled.frame.columns)

    def _facts(self) -> list[tuple[str, str]]:
        told, entry = self.to_dict(), self.receipt.entry
        return [
            *([("why", entry.why)] if entry.why else []),
            *([] if told["rows"] else [("groups", "no group had enough persons to be published")]),
            ("unit of privacy", unit_said(self.compiled.frame)),
            ("account", f"{told['dataset']}, entry {told['entry']}{f', asked by {entry.by}' if entry.by else ''}"),
            ("cost", f"{entry.symbol} {shown_up(told['cost'], 6)}"),
            ("mechanism", told["mechanism"]),
            ("source", f"{told['source']} ({told['engine']})"),
            ("error bars", "95 % of the noise; what the bounds of a person cut off is not in them"),
        ]

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        return f"Result({len(self.keys)} groups, {', '.join(self.columns)}, {self.receipt!r})"

    def _repr_html_(self) -> str:
        return pages.Page(self._named_keys(), tuple(self.columns), tuple(self.rows())).table()


def _json(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool)) else str(value)
