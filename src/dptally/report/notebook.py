"""What a notebook shows of a plan or an answer: a small card with a picture, as HTML or Markdown.

The cards state answers of the library, each on its safe side, and escape every text. They need no matplotlib, no
script and no style sheet. A card never raises for a plan that cannot answer: it says why there is no number.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from dptally.answers.assumptions import assumptions
from dptally.errors import DptallyError
from dptally.interval import Interval, IntervalArray
from dptally.mechanisms import Mechanism
from dptally.numerics.shown import shown_down, shown_up
from dptally.report import svg
from dptally.report.figure import short

if TYPE_CHECKING:
    from dptally.answers.accountant import Accountant
    from dptally.answers.compare import Comparison
    from dptally.answers.explain import Explanation
    from dptally.ledger.status import Balance, Status
    from dptally.release.released import Released

__all__ = [
    "accountant_html",
    "accountant_markdown",
    "comparison_html",
    "comparison_markdown",
    "explanation_html",
    "explanation_markdown",
    "interval_html",
    "intervals_html",
    "intervals_markdown",
    "plan_html",
    "plan_markdown",
    "profile_svg",
    "released_html",
    "released_markdown",
    "status_html",
    "status_markdown",
]

DELTAS = (1e-5, 1e-9, 1e-15)
_DRAWN = tuple(10.0 ** (-power / 2) for power in range(2, 25))  # 1e-1 to 1e-12
_PATIENCE = 0.5  # seconds of work, after which a card asks for no more numbers and no picture
_LONGEST = 300  # characters of a plan or a value
_MOST = 20  # answers of an array
_ENDS = ("index", "at least", "at most")

Rows = Sequence[Sequence[str]]


# -- intervals -----------------------------------------------------------------------------------------------


def interval_html(box: Interval) -> str:
    """Both ends, how far they agree, and where they lie."""
    method = f"<div>{escape(box.method)}</div>" if box.method else ""
    return _card(f"{shown_down(box.lower, 12)} &le; truth &le; {shown_up(box.upper, 12)}", method + _ends(box))


def _ends(box: Interval) -> str:
    if not 0 <= box.lower <= box.upper < math.inf or box.upper == 0:
        return ""
    width = 260.0
    left, right = (box.lower / box.upper) * (width - 12) + 6, width - 6
    left = min(left, right - 3)  # it is never drawn as nothing
    return (
        f'<svg role="img" viewBox="0 0 {width:g} 22" width="{width:g}" height="22" font-size="10" fill="currentColor" '
        f'xmlns="http://www.w3.org/2000/svg"><title>the interval on a line from 0 to its upper end</title>'
        f'<path d="M6,8H{right:g}M6,4v8" stroke="currentColor" stroke-opacity="0.5"/>'
        f'<rect class="tone-0" x="{left:.1f}" y="3" width="{right - left:.1f}" height="10" fill="{svg.TONES[0]}"/>'
        '<text x="3" y="21">0</text></svg>'
    )


def intervals_html(boxes: IntervalArray) -> str:
    """Both ends of the first answers, one row each."""
    return _card(_answers(boxes), _table(_ENDS, _rows(boxes)))


def intervals_markdown(boxes: IntervalArray) -> str:
    """The same as a table."""
    return _markdown(_answers(boxes), _ENDS, _rows(boxes))


def _answers(boxes: IntervalArray) -> str:
    return f"{boxes.lower.size} answer{'s' * (boxes.lower.size != 1)}, each with both ends"


def _rows(boxes: IntervalArray) -> Rows:
    """One row for each of the first answers, by index; a last row says how many more there are."""
    rows = [
        (",".join(map(str, index)), shown_down(float(boxes.lower[index]), 10), shown_up(float(boxes.upper[index]), 10))
        for index in islice(np.ndindex(*boxes.shape), _MOST)
    ]
    more = boxes.lower.size - len(rows)
    return [*rows, (f"and {more} more",)] if more > 0 else rows


# -- plans ---------------------------------------------------------------------------------------------------


def plan_html(plan: Mechanism) -> str:
    """Epsilon at three deltas with both ends, and the profile as a picture."""
    rows = _epsilons(plan)
    whole = len(rows) == len(DELTAS) and any(len(row) > 2 for row in rows)
    picture = profile_svg(plan) if whole else ""
    return _card(escape(_cut(short(plan, _LONGEST))), _table(("delta", "epsilon at most", "at least"), rows) + picture)


def plan_markdown(plan: Mechanism) -> str:
    """The same numbers as a table."""
    return _markdown(f"`{_cut(short(plan, _LONGEST))}`", ("delta", "epsilon at most", "at least"), _epsilons(plan))


@lru_cache(maxsize=64)  # a notebook asks for every form of what it shows
def _epsilons(plan: Mechanism, deltas: tuple[float, ...] = DELTAS) -> tuple[tuple[str, ...], ...]:
    """One row for each delta; fewer where the first answers take long."""
    rows: list[tuple[str, ...]] = []
    start = time.process_time()
    for delta in deltas:
        if rows and time.process_time() - start > _PATIENCE:
            break
        try:
            box = plan.epsilon_interval(delta)
        except DptallyError as refusal:
            rows.append((f"{delta:g}", f"no answer: {_cut(str(refusal))}"))
        else:
            rows.append((f"{delta:g}", shown_up(box.upper, 8), shown_down(box.lower, 8)))
    return tuple(rows)


def profile_svg(plan: Mechanism, deltas: Sequence[float] = _DRAWN, size: tuple[int, int] = (360, 210)) -> str:
    """delta against epsilon, both certified ends (mostly one line); empty where there is nothing finite to draw."""
    try:
        boxes = plan.epsilon_interval(list(deltas))
    except DptallyError:
        return ""
    upper = [(float(e), d) for e, d in zip(boxes.upper, deltas, strict=True) if math.isfinite(e)]
    lower = [(float(e), d) for e, d in zip(boxes.lower, deltas, strict=True) if math.isfinite(e)]
    most = max((e for e, _ in upper), default=0.0)
    if len(upper) < 2 or not most > 0:
        return ""
    lines = [svg.Line(upper, "certified upper end", 0)]
    if any(u - w > 0.01 * most for (u, _), (w, _) in zip(upper, lower, strict=False)):
        lines.append(svg.Line(lower, "certified lower end", 1))
    x, y = svg.Axis("epsilon", 0.0, 1.04 * most), svg.Axis("delta", min(deltas), max(deltas), log=True)
    return svg.chart(lines, x, y, f"delta against epsilon of {short(plan)}", size=size)


# -- comparisons and explanations ----------------------------------------------------------------------------


def comparison_html(found: Comparison) -> str:
    """One bar for each framework, the tightest first, and the theorems."""
    shown = [svg.Bar(row.framework, row.epsilon, _epsilon(row.epsilon)) for row in found.rows]
    rows = [
        (row.framework, row.theorem if row.epsilon is not None else f"no answer: {row.reason}") for row in found.rows
    ]
    about = f"epsilon at delta = {found.delta:g}, rounded up"
    body = svg.bars(shown, f"{about}, by framework") + _details("theorems", _table(("framework", "theorem"), rows))
    return _card(f"{escape(_cut(short(found.plan, _LONGEST)))}: {about}", body)


def comparison_markdown(found: Comparison) -> str:
    """The table of the frameworks."""
    rows = [
        (row.framework, _epsilon(row.epsilon), row.theorem if row.epsilon is not None else row.reason)
        for row in found.rows
    ]
    head = f"`{_cut(short(found.plan, _LONGEST))}` at delta = {found.delta:g}"
    return _markdown(head, ("framework", "epsilon at most", "theorem"), rows)


def explanation_html(found: Explanation) -> str:
    """The answer, what it means and what it takes for granted; route, theorems and sources to unfold."""
    facts = found.facts
    meaning = _list(
        [
            "an attacker with 1 % false positives finds at most "
            f"{shown_up(100 * facts.power_at_one_percent, 4)} % of the members",
            f"membership advantage at most {shown_up(facts.advantage, 4)}",
        ]
    )
    more = "".join(
        _details(name, _list(lines))
        for name, lines in (
            ("assumptions", found.assumptions),
            ("route", facts.route),
            ("theorems", facts.theorems),
            ("sources", [str(source) for source in facts.sources]),
        )
        if lines
    )
    head = f"epsilon = {shown_up(facts.epsilon.upper, 8)} at delta = {facts.delta:g}"
    ends = f"<div>at least {shown_down(facts.epsilon.lower, 8)} ({escape(facts.epsilon.method)})</div>"
    return _card(head, ends + meaning + profile_svg(found.plan) + more)


def explanation_markdown(found: Explanation) -> str:
    """The page as a block of text."""
    fence = "~~~~"
    return f"{fence}text\n{found}\n{fence}"


# -- what is counted, released and kept ------------------------------------------------------------------------


def accountant_html(account: Accountant) -> str:
    """What was recorded; with a budget, how much of it is spent."""
    steps = sum(count for _, count in account.history)
    head = f"{steps} steps recorded"
    budget, delta = account.budget, account.budget_delta
    if budget is None or delta is None:
        return _card(head, plan_html(account.plan) if steps else "")
    spent = account.epsilon(delta)
    text = f"epsilon {shown_up(spent)} of {budget:g} at delta = {delta:g}"
    body = f"<div>{text}</div>{svg.meter(spent / budget, text)}"
    return _card(head, body + (plan_html(account.plan) if steps else ""))


def accountant_markdown(account: Accountant) -> str:
    """What was recorded, as a table."""
    head = f"{sum(count for _, count in account.history)} steps recorded"
    if account.budget is not None and account.budget_delta is not None:
        spent = shown_up(account.epsilon(account.budget_delta))
        head += f": epsilon {spent} of {account.budget:g} at delta = {account.budget_delta:g}"
    return _markdown(head, ("times", "mechanism"), [(str(n), f"`{m!r}`") for m, n in account.history])


def released_html(made: Released) -> str:
    """The published value, and what it cost."""
    rows = _released(made)
    return _card(
        "released", _table(("", ""), [(name, _cut(value)) for name, value in rows]) + profile_svg(made.mechanism)
    )


def released_markdown(made: Released) -> str:
    """The published value, and what it cost."""
    return _markdown("released", ("", ""), [(name, _cut(value)) for name, value in _released(made)])


def _released(made: Released) -> list[tuple[str, str]]:
    rows = [
        ("query", made.query),
        ("value", repr(made.value)),
        ("mechanism", repr(made.mechanism)),
        ("unit", made.unit),
    ]
    rows += [("epsilon", f"{row[1]} at delta = {row[0]}") for row in _epsilons(made.mechanism, DELTAS[:1])]
    return rows + [("assumes", line) for line in assumptions(made.mechanism)]


def status_html(status: Status) -> str:
    """What is spent and left, as bars: the dataset and each analyst."""
    balances = [("dataset", status.balance), *((one.holder, one) for one in status.analysts)]
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{svg.meter(one.share, text)}</td><td>{escape(text)}</td></tr>"
        for name, one, text in ((name, one, _balance(one)) for name, one in balances)
    )
    said = [f"budget {status.budget}, unit: {status.unit}, neighbours: {status.adjacency}"]
    said += [] if status.epsilon is None else [_odometer(status)]
    return _card(f"ledger: {escape(status.dataset)}", f"{_list(said)}<table>{rows}</table>")


def status_markdown(status: Status) -> str:
    """What is spent and left, as a table."""
    balances = [("dataset", status.balance), *((one.holder, one) for one in status.analysts)]
    rows = [(name, _balance(one)) for name, one in balances]
    rows += [] if status.epsilon is None else [("odometer", _odometer(status))]
    return _markdown(f"ledger: {_inert(status.dataset)}", ("holder", "spent"), rows)


def _odometer(status: Status) -> str:
    return f"epsilon so far at most {shown_up(status.epsilon or 0.0)} at delta = {status.delta:g}"


def _balance(one: Balance) -> str:
    spent = f"{one.symbol} {shown_up(one.spent)} spent"
    if one.cap is None or one.left is None:
        return f"{spent}, no cap"
    return f"{spent} of {shown_down(one.cap)}, {shown_down(one.left)} left"


# -- pieces ----------------------------------------------------------------------------------------------------


def _epsilon(value: float | None) -> str:
    return "-" if value is None else shown_up(value, 6)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _card(head: str, body: str) -> str:
    """``head`` is HTML already."""
    return f'<div class="dptally"><p><strong>{head}</strong></p>{body}</div>'


def _table(columns: Sequence[str], rows: Rows) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    head = f"<tr>{head}</tr>" if any(columns) else ""
    last = len(columns) - 1
    body = ""
    for row in rows:
        short_of = last + 1 - len(row)
        cells = [f"<td>{escape(cell)}</td>" for cell in row]
        if short_of > 0:
            cells[-1] = f'<td colspan="{1 + short_of}">{escape(row[-1])}</td>'
        body += f"<tr>{''.join(cells)}</tr>"
    return f"<table>{head}{body}</table>"


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _details(name: str, body: str) -> str:
    return f"<details><summary>{escape(name)}</summary>{body}</details>"


def _inert(text: str) -> str:
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").split())


def _markdown(head: str, columns: Sequence[str], rows: Rows) -> str:
    lines = [head, "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(_inert, row))} |" for row in rows)])
