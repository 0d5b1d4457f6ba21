"""One page about a verdict: text for a terminal, one HTML sheet that prints on one page, JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import dptally
from dptally.answers.assumptions import assumptions
from dptally.errors import DptallyError
from dptally.numerics.shown import shown_down, shown_up
from dptally.opinion.context import Reading, Remedy, readings, remedy
from dptally.opinion.picture import picture
from dptally.opinion.settings import SAMPLERS
from dptally.opinion.verdict import STATUSES, Verdict

__all__ = ["Page", "page"]


@dataclass(frozen=True, slots=True)
class Page:
    """A verdict with all that stands around it."""

    verdict: Verdict
    readings: tuple[Reading, ...]
    remedy: Remedy | None
    theorems: tuple[str, ...]
    sources: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The verdict's plain values and those of the page."""
        rows = [
            {
                "sampler": row.sampler,
                "adjacency": row.adjacency,
                "epsilon": None
                if row.interval is None
                else {"lower": _finite(row.interval.lower), "upper": _finite(row.interval.upper)},
                "reason": row.reason,
            }
            for row in self.readings
        ]
        noise = None
        if self.remedy is not None:
            noise = {"factor": self.remedy.factor, "noise_multiplier": self.remedy.noise_multiplier}
        more = {"readings": rows, "noise_that_makes_it_true": noise, "theorems": list(self.theorems)}
        return self.verdict.to_dict() | more | {"sources": list(self.sources)}

    def to_text(self) -> str:
        """The page for a terminal."""
        lines = [self.verdict.headline]
        for name, items in self.sections():
            found = list(items)
            if found:
                lines += ["", name, *(f"  {item}" for item in found)]
        return "\n".join(lines) + "\n"

    def to_html(self) -> str:
        """One file that needs no other and prints on one sheet."""
        verdict = self.verdict
        body = [
            f'<h1 class="{verdict.status}">{escape(STATUSES[verdict.status])}</h1>',
            f"<p class=claim>claimed: epsilon {verdict.claimed.epsilon:g} at delta {verdict.claimed.delta:g}</p>",
            picture(verdict),
        ]
        for name, items in self.sections():
            found = list(items)
            if found:
                kind = " class=fine" if name in _FINE_PRINT else ""
                lines = "".join(f"<li>{escape(item)}</li>" for item in found)
                body.append(f"<h2>{escape(name)}</h2><ul{kind}>{lines}</ul>")
        page = "\n".join(body)
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>A second opinion</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{_CSS}</style></head>\n<body>\n{page}\n</body></html>\n"
        )

    def sections(self) -> Iterator[tuple[str, Iterable[str]]]:
        """(heading, lines) of all that the page says below the verdict; a section may be empty."""
        claim = self.verdict.claim
        yield "why", self.verdict.reasons
        yield "the run", [] if claim.plan is None else [repr(claim.plan)]
        yield "not said, and taken as", claim.assumed
        yield "to be asked", claim.questions
        yield "remarks", claim.notes
        yield "the same run under other samplers and adjacencies", self._readings()
        yield "the noise that makes it true", self._remedy()
        yield "what this takes for granted", [] if claim.plan is None else assumptions(claim.plan)
        yield "theorems", self.theorems
        yield "sources", self.sources
        yield (
            "by",
            [f"dptally {dptally.__version__}; run again: dptally check --verify on the file that --proof writes"],
        )

    def _readings(self) -> Iterator[str]:
        yield from map(_reading, self.readings)
        left = [name for name in SAMPLERS if name not in {row.sampler for row in self.readings}]
        if self.readings and left:
            yield f"{', '.join(left)}: dptally check --samplers, which may take a minute"

    def _remedy(self) -> Iterator[str]:
        if self.remedy is None or self.verdict.status == "true":
            return
        factor, noise = self.remedy.factor, self.remedy.noise_multiplier
        if noise is not None:
            yield f"noise multiplier {shown_up(noise)} ({shown_up(factor, 4)} times the stated noise)"
        else:
            yield f"every noise width times {shown_up(factor)}"


def page(verdict: Verdict, samplers: bool = False) -> Page:
    """The page about a verdict; with ``samplers`` the run is accounted for under every sampler."""
    judged = verdict.interval.method != "not determined"
    theorems, sources = _theorems(verdict) if judged else ((), ())
    return Page(verdict, readings(verdict.claim, samplers), remedy(verdict.claim), theorems, sources)


def _theorems(verdict: Verdict) -> tuple[tuple[str, ...], tuple[str, ...]]:
    plan = verdict.claim.plan
    if plan is None:
        return (), ()
    try:
        facts = plan.explain(verdict.claimed.delta).facts
    except DptallyError:  # what cannot be explained was still judged
        return (), ()
    return tuple(facts.theorems), tuple(f"[{source.tag}] {source}" for source in facts.sources)


def _reading(row: Reading) -> str:
    name = f"{row.sampler}, {row.adjacency}"
    if row.interval is None:
        return f"{name:<28} no answer: {row.reason}"
    return f"{name:<28} {shown_down(row.interval.lower, 7)} <= epsilon <= {shown_up(row.interval.upper, 7)}"


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


_FINE_PRINT = ("what this takes for granted", "theorems", "sources")  # in two columns on paper
_CSS = (
    "@page{size:A4;margin:12mm}body{font:14px/1.4 system-ui,sans-serif;max-width:52em;margin:1.5em auto;padding:0 1em;"
    "color:#111;background:#fff}h1{margin:0;font-size:1.7em;border-left:8px solid;padding-left:.4em}"
    ".refuted{border-color:#b5461d}.true,.loose{border-color:#2e7d4f}.undetermined{border-color:#8a8a8a}"
    ".claim{font-size:1.15em;font-weight:bold;margin:.3em 0}h2{font-size:1em;margin:.8em 0 .1em}"
    "ul{margin:0;padding-left:1.2em}li{overflow-wrap:anywhere}svg{max-width:100%;height:auto}"
    "@media print{body{margin:0;max-width:none;padding:0;font-size:9.5px;line-height:1.25}svg{max-height:50mm}"
    "h2{margin:.5em 0 0}li{break-inside:avoid}.fine{font-size:8px;columns:2;column-gap:8mm}}"
)
