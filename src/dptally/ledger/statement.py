"""The statement of an account: who spent what, what is left, where it stops. Computes no privacy."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dptally.errors import InvalidArgument
from dptally.ledger.entries import Entry
from dptally.ledger.reading import read_object
from dptally.ledger.status import Balance, Status
from dptally.numerics.rounding import up
from dptally.numerics.shown import shown_down, shown_up

__all__ = ["bar", "render", "visible"]

_WIDTH = 40
_MARKUP = re.compile(r"([\\`*_\[\]|~])")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_STYLE = (
    ":root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--line:#d5d9de;--bar:#2a6fbb;--cap:#b3261e}"
    "@media screen and (prefers-color-scheme:dark){:root{--ink:#e6e8ea;--paper:#16181b;--line:#44484e;"
    "--bar:#6ea8e6;--cap:#ff8a80}}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;"
    "color:var(--ink);background:var(--paper)}h1{overflow-wrap:anywhere}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;margin:.3rem 0 1rem}"
    "td,th{border-bottom:1px solid var(--line);padding:.25rem .6rem;text-align:left;vertical-align:top;"
    "font-variant-numeric:tabular-nums}"
    ".releases td:nth-child(2){white-space:nowrap}.releases td:nth-child(6){min-width:8rem}"
    "svg{width:100%;height:auto}svg rect{fill:var(--bar)}svg line{stroke:var(--ink)}"
    "svg .cap{stroke:var(--cap);stroke-width:2}figure{margin:1rem 0}figcaption{font-size:.9em}"
    "@media print{body{margin:0;font-size:11px}tr{break-inside:avoid}}"
)


def render(status: Status, spends: Sequence[Entry], costs: Sequence[float], more: int | None, format: str) -> str:
    """One of "markdown", "html", "json"."""
    writers = {"markdown": _markdown, "html": _html, "json": _json}
    if not isinstance(format, str) or format not in writers:
        raise InvalidArgument("format", "one of markdown, html, json", format)
    return writers[format](status, spends, costs, more)


def bar(balance: Balance, width: int = _WIDTH) -> str:
    """A budget bar: what is spent is filled, and never looks emptier or fuller than it is at the ends.

    >>> bar(Balance("", "rho", 0.125, 0.5, 0.375), width=8)
    '[##......]'
    """
    share = balance.share
    if share is None:
        return "[" + "-" * width + "]"
    filled = round(share * width)
    if 0 < share < 1:
        filled = min(max(filled, 1), width - 1)
    return "[" + "#" * filled + "." * (width - filled) + "]"


def _facts(status: Status, more: int | None) -> list[tuple[str, str]]:
    facts = [
        ("dataset", status.dataset),
        ("about", status.about),
        ("budget", status.budget),
        ("neighbours", status.adjacency),
        ("privacy unit", status.unit),
        ("counted in", status.balance.symbol),
        ("cap", _down(status.balance.cap)),
        ("spent", _up(status.balance.spent)),
        ("left", _down(status.balance.left)),
    ]
    if status.failure is not None:
        facts.append(("failure probability left", f"{_down(status.failure.left)} of {_down(status.failure.cap)}"))
    if status.epsilon is not None:
        facts.append((f"epsilon spent at delta {status.delta:.3g} (odometer)", _up(status.epsilon)))
    if more is not None:
        facts.append(("stopping point", f"{more} more like the last release, if nothing else is spent"))
    facts.append(("filter", status.theorem))
    return [(name, value) for name, value in facts if value]


def _table(spends: Sequence[Entry], costs: Sequence[float]) -> list[tuple[str, ...]]:
    """One row for each release. The running sum adds all parts; what counts against the cap may be less."""
    rows: list[tuple[str, ...]] = []
    running = 0.0
    for entry, cost in zip(spends, costs, strict=True):
        running = running if cost == 0 else up(running + cost)
        where = f"{entry.partition}={entry.part}" if entry.partition else "all"
        rows.append(
            (
                str(entry.number),
                entry.at[:19].replace("T", " "),
                entry.by,
                _plan(entry),
                where,
                entry.why,
                shown_up(cost, 4),
                shown_up(running, 4),
                entry.state,
            )
        )
    return rows


_COLUMNS = ("entry", "time (UTC)", "by", "plan", "records", "why", "cost", "running sum", "state")


def _people(status: Status, spends: Sequence[Entry]) -> list[tuple[str, ...]]:
    releases = Counter(entry.by for entry in spends)
    rows: list[tuple[str, ...]] = []
    for person in status.analysts:
        rows.append(
            (
                person.holder,
                str(releases[person.holder]),
                _up(person.spent),
                _down(person.cap) or "none",
                _down(person.left) or "-",
            )
        )
    if releases[""]:
        rows.append(("(not named)", str(releases[""]), "", "none", "-"))
    return rows


_PEOPLE = ("analyst", "releases", "spent", "own cap", "left")


# -- formats -------------------------------------------------------------------------------------------------


def _markdown(status: Status, spends: Sequence[Entry], costs: Sequence[float], more: int | None) -> str:
    lines = [f"# Privacy ledger: {_inert(status.dataset)}", ""]
    lines += _markdown_table(("", ""), _facts(status, more))
    lines += ["", "```text", *_picture(status), "```"]
    people = _people(status, spends)
    if people:
        lines += ["", "## By analyst", "", *_markdown_table(_PEOPLE, people)]
    lines += (
        ["", "## Releases", "", *_markdown_table(_COLUMNS, _table(spends, costs))]
        if spends
        else ["", "Nothing was spent."]
    )
    return "\n".join(lines) + "\n"


def _picture(status: Status) -> list[str]:
    people = [(_plain(person.holder), person) for person in status.analysts]
    balances = [("dataset", status.balance), *people]
    wide = max(len(label) for label, _ in balances)
    lines = []
    for label, item in balances:
        amount = _up(item.spent) if item.cap is None else f"{_up(item.spent)} of {_down(item.cap)}"
        shown = (
            item if item.cap is not None else Balance(item.holder, item.symbol, item.spent, status.balance.cap, None)
        )
        lines.append(f"{label:<{wide}} {bar(shown)} {amount}")
    return lines


def _plain(text: str) -> str:
    """A name inside a block of code, where nothing can be escaped."""
    return "".join(c if c.isalnum() or c in " .,:@+-_'" else "?" for c in visible(text))


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(map(_inert, row)) + " |" for row in rows]


def _inert(text: str) -> str:
    """A text that Markdown shows as it is: no markup, no link, no picture, no HTML."""
    shown = _MARKUP.sub(r"\\\1", html.escape(visible(text), quote=False))
    return " ".join(shown.replace("://", "&#58;//").replace("www.", "www&#46;").split())


def visible(text: str) -> str:
    """Control, format and direction characters as escapes: an older ledger, or an edited one, may hold them."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in _INVISIBLE else c.encode("unicode_escape").decode()
        for c in text
    )


def _html(status: Status, spends: Sequence[Entry], costs: Sequence[float], more: int | None) -> str:
    title = html.escape(visible(f"Privacy ledger: {status.dataset}"))
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        _html_table((), _facts(status, more)),
        _waterfall(status, spends, costs),
    ]
    people = _people(status, spends)
    if people:
        parts += ["<h2>By analyst</h2>", _html_table(_PEOPLE, people)]
    parts += (
        ["<h2>Releases</h2>", _html_table(_COLUMNS, _table(spends, costs), "releases")]
        if spends
        else ["<p>Nothing was spent.</p>"]
    )
    return "\n".join([*parts, "</body></html>", ""])


def _html_table(header: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "facts") -> str:
    head = "<tr>" + "".join(f"<th>{html.escape(visible(cell))}</th>" for cell in header) + "</tr>" if header else ""
    body = "".join("<tr>" + "".join(f"<td>{html.escape(visible(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table class="{kind}">{head}{body}</table></div>'


def _waterfall(status: Status, spends: Sequence[Entry], costs: Sequence[float]) -> str:
    """Steps up to what is spent, under the line of the cap. Beyond 200 steps several are drawn as one."""
    cap, wide, high = status.balance.cap or 1.0, 900, 260
    group = max(1, -(-len(spends) // 200))
    step = wide / max(1, -(-len(spends) // group))
    running, bars = 0.0, []
    scale = high / max(cap, status.balance.spent, sum(costs)) / 1.05
    for index in range(0, len(spends), group):
        cost = sum(costs[index : index + group])
        people = ", ".join(sorted({entry.by or "(not named)" for entry in spends[index : index + group]}))
        tall = max(cost * scale, 0.5)
        left, top, thick = index // group * step, high - running * scale - tall, max(step - 1, 0.5)
        bars.append(
            f'<rect x="{left:.2f}" y="{top:.2f}" width="{thick:.2f}" height="{tall:.2f}">'
            f"<title>{html.escape(visible(people))}: {shown_up(cost, 4)}</title></rect>"
        )
        running += cost
    line = high - cap * scale
    return (
        f'<figure><svg viewBox="0 0 {wide} {high + 2}" role="img" aria-label="releases and the cap">'
        + "".join(bars)
        + f'<line x1="0" x2="{wide}" y1="{line:.2f}" y2="{line:.2f}" class="cap"/>'
        f'<line x1="0" x2="{wide}" y1="{high}" y2="{high}"/></svg><figcaption>The releases in their order, each on '
        f"top of those before it; the line above is the cap, {status.balance.symbol} {shown_down(cap, 4)}."
        "</figcaption></figure>"
    )


def _json(status: Status, spends: Sequence[Entry], costs: Sequence[float], more: int | None) -> str:
    document: dict[str, Any] = {"dptally_ledger_report": 1, **status.to_dict(), "more_like_the_last": more}
    document["releases"] = [
        {
            "entry": entry.number,
            "at": entry.at,
            "by": entry.by,
            "why": entry.why,
            "labels": list(entry.labels),
            "partition": entry.partition,
            "part": entry.part,
            "plan": read_object(entry.plan_json),
            "cost": cost,
            "state": entry.state,
            "hash": entry.hash,
        }
        for entry, cost in zip(spends, costs, strict=True)
    ]
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def _up(value: float | None) -> str:
    return "" if value is None else shown_up(value)


def _down(value: float | None) -> str:
    return "" if value is None else shown_down(value)


def _plan(entry: Entry) -> str:
    text = repr(entry.plan)
    return text if len(text) <= 60 else text[:57] + "..."
