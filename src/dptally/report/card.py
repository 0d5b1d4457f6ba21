"""The guarantee card: one page about a plan, as Markdown, self-contained HTML or JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape

import numpy as np

import dptally
from dptally import checks
from dptally.answers.assumptions import stated
from dptally.errors import InvalidArgument, Unanswerable
from dptally.gdp import Measurement, identify, measure, measure_until
from dptally.interval import Interval
from dptally.meaning import attacks
from dptally.mechanisms import Mechanism
from dptally.numerics.shown import shown_down, shown_up

__all__ = ["DELTAS", "Card", "card"]

DELTAS = (1e-5, 1e-9, 1e-15)
_RATES = (0.001, 0.01, 0.1)
_UNIT = "one record (not stated otherwise)"


@dataclass(frozen=True, slots=True)
class Card:
    """What the page says; every number is on the safe side."""

    title: str
    unit: str
    plan: str
    adjacency: str
    sampling: str
    mechanisms: tuple[tuple[int, str, str], ...]  # count, mechanism, theorem
    epsilons: tuple[tuple[float, Interval], ...]  # delta, certified ends
    mu: Interval | None  # measured for epsilons up to ``head`` (inf: for every one)
    head: float
    left_out: float  # what delta may be beyond the head
    closed_mu: float | None  # a mu for every epsilon, in closed form
    rho: float | None
    risk: tuple[tuple[float, float], ...]  # false-positive rate, largest true-positive rate
    advantage: float
    theorems: tuple[str, ...]
    sources: tuple[str, ...]
    assumptions: tuple[str, ...]
    version: str

    @property
    def cite(self) -> str:
        return f"dptally {self.version}, and the sources listed here."

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON; infinity is the string "inf"."""
        out: dict[str, object] = asdict(self)
        out["mechanisms"] = [{"count": n, "mechanism": m, "theorem": t} for n, m, t in self.mechanisms]
        out["epsilons"] = [
            {"delta": delta, "lower": _finite(box.lower), "upper": _finite(box.upper), "method": box.method}
            for delta, box in self.epsilons
        ]
        out["mu"] = None if self.mu is None else {"lower": _finite(self.mu.lower), "upper": _finite(self.mu.upper)}
        out["head"] = _finite(self.head)
        out["closed_mu"] = None if self.closed_mu is None else _finite(self.closed_mu)
        out["risk"] = [{"false_positive_rate": x, "true_positive_rate": y} for x, y in self.risk]
        return out | {"cite": self.cite}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def to_markdown(self) -> str:
        lines = [f"# {_cell(self.title)}", "", f"**{self.headline}**", ""]
        for name, columns, rows in self._tables():
            lines += ["", f"## {name}", "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
            lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
        for name, items in self._lists():
            lines += ["", f"## {name}", "", *(f"- {item}" for item in items)]
        return "\n".join([*lines, ""])

    def to_html(self) -> str:
        """One file that needs no other."""
        body = [f"<h1>{escape(self.title)}</h1>", f'<p class="answer">{_breakable(self.headline)}</p>']
        for name, columns, rows in self._tables():
            head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns if column)
            cells = "".join("<tr>" + "".join(f"<td>{_breakable(cell)}</td>" for cell in row) + "</tr>" for row in rows)
            body.append(
                f'<h2>{escape(name)}</h2><div class="wide"><table>{head and f"<tr>{head}</tr>"}{cells}</table></div>'
            )
        for name, items in self._lists():
            body.append(
                f"<h2>{escape(name)}</h2><ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
            )
        page = "\n".join(body)
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(self.title)}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{_CSS}</style></head>\n<body>\n{page}\n</body></html>\n"
        )

    @property
    def headline(self) -> str:
        delta, box = self.epsilons[0]
        return f"epsilon = {shown_up(box.upper)} at delta = {delta:g}, for {self.unit}"

    def _tables(self) -> Iterable[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
        stated: list[tuple[str, ...]] = [
            ("unit of privacy", self.unit),
            ("adjacency", self.adjacency),
            ("sampling", self.sampling),
        ]
        stated += [("Gaussian DP", self.gaussian)]
        if self.closed_mu is not None and math.isfinite(self.head):
            stated += [("Gaussian DP, every epsilon", f"mu = {shown_up(self.closed_mu)} (closed form)")]
        stated += [("zero-concentrated DP", "none known" if self.rho is None else f"rho = {shown_up(self.rho)}")]
        yield "The guarantee", ("", ""), stated
        yield (
            "Epsilon",
            ("delta", "epsilon, rounded up", "at least", "found by"),
            [
                (f"{delta:g}", shown_up(box.upper, 8), shown_down(box.lower, 8), box.method)
                for delta, box in self.epsilons
            ],
        )
        risks: list[tuple[str, ...]] = [(f"{100 * x:g} %", f"{shown_up(100 * y, 4)} %") for x, y in self.risk]
        risks.append(("any (TPR - FPR)", shown_up(self.advantage, 4)))
        yield "Risk", ("an attacker with false positives", "finds at most, of the members"), risks
        yield (
            "What was run",
            ("times", "mechanism", "theorem"),
            [(str(n), m, t) for n, m, t in self.mechanisms],
        )

    @property
    def gaussian(self) -> str:
        """The mu of Gaussian DP in words, with its head and what is left out."""
        if self.mu is None or math.isinf(self.mu.upper):
            return "no mu is known to be enough"
        mu = f"mu = {shown_up(self.mu.upper)}"
        if math.isinf(self.head):
            return mu
        return f"{mu} for epsilon up to {shown_down(self.head)}; beyond, delta is at most {shown_up(self.left_out, 3)}"

    def _lists(self) -> Iterable[tuple[str, Sequence[str]]]:
        yield "Assumptions", self.assumptions
        yield "Theorems used", self.theorems
        yield "How to cite", (self.cite, *self.sources)


_CSS = (
    ":root{color-scheme:light dark;--ink:#111;--paper:#fff;--line:#bbb}"
    "@media screen and (prefers-color-scheme:dark){:root{--ink:#e8e8e8;--paper:#16181b;--line:#4a4e54}}"
    "body{font:15px/1.45 system-ui,sans-serif;max-width:50em;margin:2em auto;padding:0 1em;"
    "color:var(--ink);background:var(--paper)}"
    "h1{font-size:1.5em}h2{font-size:1.05em;margin:1.4em 0 .3em}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%}"
    "td,th{border:1px solid var(--line);padding:.25em .6em;text-align:left;font-variant-numeric:tabular-nums}"
    "td:first-child,.number{white-space:nowrap}li,.answer{overflow-wrap:break-word}"
    ".answer{font-size:1.2em;font-weight:bold;border-left:4px solid;padding-left:.6em}"
    "@page{size:A4;margin:11mm}"
    "@media print{body{margin:0;max-width:none;padding:0;font-size:9px;line-height:1.25}h1{margin:0 0 .3em}"
    "h2{margin:.7em 0 .2em}td,th{padding:.1em .4em}ul{margin:0}p{margin:.3em 0}tr,li{break-inside:avoid}}"
)


def card(plan: Mechanism, deltas: Sequence[float] | float = DELTAS, title: str = "", unit: str = "") -> Card:
    """The card of a plan at one delta or several; ``unit`` is what one record stands for ("one patient").

    >>> from dptally import Gaussian
    >>> print(card(Gaussian(sigma=1.0), deltas=[1e-5], unit="one patient").headline)
    epsilon = 4.37718 at delta = 1e-05, for one patient
    """
    deltas = [checks.probability("deltas", delta) for delta in np.atleast_1d(checks.reals("deltas", deltas)).tolist()]
    if not deltas:
        raise InvalidArgument("deltas", "at least one", deltas)
    explained = plan.explain(deltas[0])
    facts, directions = explained.facts, plan.directions()
    boxes = [facts.epsilon, *(plan.epsilon_interval(delta) for delta in deltas[1:])]
    measured = _measured(plan, min(deltas))
    said = {one.topic: one.sentence.split(": ", 1)[-1] for one in stated(plan)}
    return Card(
        title=title or "Privacy guarantee",
        unit=unit or _UNIT,
        plan=repr(plan),
        adjacency=said.get("adjacency", "as stated"),
        sampling=said.get("sampling", "none"),
        mechanisms=tuple((n, name, theorem) for name, n, theorem in explained.parts),
        epsilons=tuple(zip(deltas, boxes, strict=True)),
        mu=None if measured is None else measured.mu,
        head=math.inf if measured is None else measured.head,
        left_out=0.0 if measured is None else measured.left_out,
        closed_mu=_closed(plan),
        rho=_rho(plan),
        risk=tuple((x, attacks.true_positive_rate(directions, x)) for x in _RATES),
        advantage=facts.advantage,
        theorems=facts.theorems,
        sources=tuple(str(source) for source in facts.sources),
        assumptions=explained.assumptions,
        version=dptally.__version__,
    )


def _measured(plan: Mechanism, delta: float) -> Measurement | None:
    """As ``dptally gdp`` measures it; None where the plan's tail is not known."""
    try:
        return measure_until(plan, delta) if delta > 0 else measure(plan, tolerance=1e-4)
    except Unanswerable:
        return None


def _closed(plan: Mechanism) -> float | None:
    """A mu for every epsilon, from closed forms."""
    found = identify(plan).enough
    return found if math.isfinite(found) else None


def _rho(plan: Mechanism) -> float | None:
    try:
        found = plan.rho()
    except Unanswerable:
        return None
    return found if math.isfinite(found) else None


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _breakable(text: str) -> str:
    """HTML of a text: a line may break within ``Gaussian(sigma=2.0)`` after a bracket or an equals sign, but
    never within a number such as 1e-05.
    """
    text = re.sub(r"\d[\d.]*e-\d+", r'<span class="number">\g<0></span>', escape(text))
    return re.sub(r"(?<=\w)[(=](?=\w)", r"\g<0><wbr>", text)


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"
