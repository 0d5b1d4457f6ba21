"""Released answers on a page: numbers as people write them, a table, error bars. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from dptally.report import svg

__all__ = ["Page", "bar", "number", "picture"]

_DRAWN = 60  # groups in one picture
_PICTURES = 8
_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "div{overflow-x:auto}table{border-collapse:collapse}"
    "td,th{border-bottom:1px solid #8886;padding:.25rem .8rem .25rem 0;text-align:left}"
    ".n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}small{opacity:.75}"
    "figure{display:inline-block;margin:1rem 1.5rem 0 0}figcaption{font-weight:600}svg{max-width:100%;height:auto}"
    "dt{font-weight:600}dd{margin:0 0 .4rem;overflow-wrap:anywhere}"
)


def number(value: float) -> str:
    """Six digits; from 10 000 on whole, in groups of three digits that no line breaks apart."""
    if isinstance(value, int) and abs(value) < 10_000:
        return str(value)
    if isinstance(value, int) or 1e4 <= abs(value) < 1e15:
        return f"{round(value):,}".replace(",", "\N{NO-BREAK SPACE}")
    return f"{value:.6g}"


def bar(row: Mapping[str, Any], name: str) -> str:
    """An answer with its ends."""
    return f"{number(row[name])} [{number(row[f'{name}_low'])}, {number(row[f'{name}_high'])}]"


def picture(labels: Sequence[str], rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """A column's answers with their error bars; an answer without ends is left out."""
    spreads = []
    for label, row in zip(labels, rows, strict=True):
        value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
        if all(isinstance(end, (int, float)) and math.isfinite(end) for end in (value, low, high)):
            spreads.append(svg.Spread(label[:24], float(value), float(low), float(high), number(value)))
    return svg.spreads(spreads, f"{name} with error bars", width=430) if spreads else ""


@dataclass(frozen=True, slots=True)
class Page:
    """A release: the columns that name its groups, its answers, its rows, and what else is to be said."""

    keys: tuple[str, ...]
    answers: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    facts: tuple[tuple[str, str], ...] = ()

    def markdown(self) -> str:
        head = [*map(_cell, self.keys), *map(_cell, self.answers)]
        lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(self.keys) + "---:|" * len(self.answers)]
        for row in self.rows:
            cells = [*(_cell(str(row[key])) for key in self.keys), *(bar(row, name) for name in self.answers)]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join([*lines, "", *(f"- {name}: {_cell(said)}" for name, said in self.facts), ""])

    def table(self) -> str:
        """The table alone, as HTML."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.keys)
        head += "".join(f'<th class="n">{escape(name)}</th>' for name in self.answers)
        body = "".join(f"<tr>{self._row(row)}</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _row(self, row: Mapping[str, Any]) -> str:
        cells = [f"<td>{escape(str(row[key]))}</td>" for key in self.keys]
        for name in self.answers:
            value, ends = bar(row, name).split(" [", 1)
            cells.append(f'<td class="n">{escape(value)} <small>[{escape(ends)}</small></td>')
        return "".join(cells)

    def html(self) -> str:
        """A page of its own: the table, the error bars where they can be told apart, and the facts."""
        listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(said)}</dd>" for name, said in self.facts)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Private release</title>'
            '<meta name="viewport" content="width=device-width">'
            f"<style>{_STYLE}</style></head><body><h1>Private release</h1><div>{self.table()}</div>"
            f"{''.join(self._figures())}<dl>{listed}</dl></body></html>\n"
        )

    def _figures(self) -> list[str]:
        if len(self.rows) > _DRAWN or len(self.answers) > _PICTURES:
            return []
        labels = [", ".join(str(row[key]) for key in self.keys) or "all" for row in self.rows]
        drawn = [(name, picture(labels, self.rows, name)) for name in self.answers]
        return [f"<figure><figcaption>{escape(name)}</figcaption>{shown}</figure>" for name, shown in drawn if shown]


def _cell(text: str) -> str:
    """Private keys come from the data: they may hold neither columns nor markup."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
