"""Before paying: what a query costs, and how wide its error bars will be. Nothing here reads data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dptally.mechanisms import Mechanism
from dptally.tables import accuracy
from dptally.tables.aggregates import Mean, Variance
from dptally.tables.bins import Quantile
from dptally.tables.compiled import Compiled
from dptally.tables.pages import number

if TYPE_CHECKING:
    from dptally.tables.session import Session

__all__ = ["Preview", "Price"]

_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class Price:
    """What a query costs in the account's own measure; ``fits`` is how many such queries can still be paid."""

    plan: Mechanism
    cost: float
    symbol: str
    failure: float
    left: float
    fits: int

    @classmethod
    def of(cls, session: Session, plan: Mechanism) -> Price:
        cost, symbol, failure = session.price(plan)
        low, high = 0, 1
        while high <= _MOST and not session.would_exceed(high * plan):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if session.would_exceed(middle * plan) else (middle, high)
        return cls(plan, cost, symbol, failure, session.left(), low)

    def to_dict(self) -> dict[str, Any]:
        kept = ("cost", "symbol", "failure", "left", "fits")
        return {name: getattr(self, name) for name in kept} | {"plan": repr(self.plan)}

    def __str__(self) -> str:
        many = "1 such query fits" if self.fits == 1 else f"{self.fits} such queries fit"
        more = many if self.fits <= _MOST else "very many such queries fit"
        failure = f" and failure probability {self.failure:.4g}" if self.failure else ""
        return f"{self.symbol} {self.cost:.4g}{failure}; {self.left:.4g} left; {more}"


@dataclass(frozen=True, slots=True)
class Line:
    """One aggregate: the half-width at 95 % of one answer, and of all answers at once (None: it depends)."""

    label: str
    noise: str
    half_width: float | None
    all_at_once: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """The error bars of a query that was not run. What the bounds cut off is not in them: it is unknown."""

    lines: tuple[Line, ...]
    groups: int | None
    truncates: bool

    @classmethod
    def of(cls, compiled: Compiled) -> Preview:
        setting = compiled.frame.setting
        lines = []
        for aggregate, measures in zip(compiled.asked.aggregates, compiled.measures, strict=True):
            noise = measures[0].noise
            said = f"{'sigma' if noise.gaussian else 'scale'} {float(noise.parameter):.6g}"
            lines.append(
                Line(
                    aggregate.label,
                    said,
                    aggregate.half_width(measures, 1),
                    None if setting.groups is None else aggregate.half_width(measures, setting.groups),
                    _note(aggregate, measures),
                )
            )
        return cls(tuple(lines), setting.groups, setting.person)

    def __getitem__(self, label: str) -> Line:
        return next(line for line in self.lines if line.label == label)

    def to_dict(self) -> dict[str, Any]:
        fields = ("label", "noise", "half_width", "all_at_once", "note")
        return {"groups": self.groups, "aggregates": [{f: getattr(line, f) for f in fields} for line in self.lines]}

    def __str__(self) -> str:
        rows = []
        for line in self.lines:
            text = f"{line.label}: {line.noise}"
            if line.half_width is not None:
                text += f", +-{number(line.half_width)} (95 %)"
            if line.all_at_once is not None and (self.groups or 1) > 1:
                text += f", all {self.groups} groups at once +-{number(line.all_at_once)}"
            rows.append(text + (f"; {line.note}" if line.note else ""))
        if self.truncates:
            rows.append(
                "what the bounds of a person cut off is not in these widths: it depends on the data and is unknown "
                "(a paid histogram of groups per person would tell)"
            )
        return "\n".join(rows)


def _note(aggregate: Any, measures: Any) -> str:
    first = measures[0]
    gaussian, size = first.noise.gaussian, float(first.noise.parameter)
    if isinstance(aggregate, Variance):
        each = accuracy.ratio_width(gaussian, math.sqrt(2), 2.0) * size * aggregate.half
        return f"about +-{each / 1000:.3g} in a group of 1000, at most"
    if isinstance(aggregate, Mean):
        each = accuracy.ratio_width(gaussian, 1.0, 1.0) * size
        return f"+-{each / 1000:.3g} in a group of 1000, +-{each / 10_000:.3g} in one of 10000, at most"
    if isinstance(aggregate, Quantile):
        rank = aggregate.rank_width(first)
        return f"the rank is off by +-{rank:.0f} at most (95 %)"
    return ""
