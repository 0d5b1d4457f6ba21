"""Small pictures as SVG, written by hand: they need no matplotlib, no script and no style sheet.

Ink is the colour of the text around the picture, so that it reads on light and dark pages; a page may restyle a line by
its class (``tone-0``, ``tone-1``, ...). Lines differ by dash as well as by colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["TONES", "Axis", "Bar", "Line", "Mark", "Spread", "bars", "chart", "meter", "spreads"]

#: each at least 3:1 on white and on near-black paper
TONES = ("#2f7fd6", "#d0602a", "#3d9a5f", "#8f6fd0", "#8a8a8a")
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 3")
_TOP, _RIGHT, _BOTTOM = 12.0, 14.0, 38.0
_TICKS = 5  # about


@dataclass(frozen=True, slots=True)
class Axis:
    """A labelled range, linear or logarithmic."""

    label: str
    low: float
    high: float
    log: bool = False

    def part(self, value: float) -> float:
        """Where a value lies between the ends, 0 to 1; what is beyond an end stays at the end."""
        if self.log:
            place = (_log10(value, self.low) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        else:
            place = (value - self.low) / (self.high - self.low)
        return min(max(place, 0.0), 1.0)

    def ticks(self) -> list[float]:
        """Round numbers, about five of them."""
        if self.log:
            low, high = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            apart = max(1, math.ceil((high - low) / _TICKS))
            return [10.0**power for power in range(low, high + 1, apart)]
        step = _round_step((self.high - self.low) / _TICKS)
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class Line:
    """Points joined by straight lines; ``tone`` chooses colour and dash."""

    points: Sequence[tuple[float, float]]
    name: str = ""
    tone: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """One point with a word beside it."""

    x: float
    y: float
    text: str = ""
    tone: int = 1
    before: bool = False  # the word stands on the left, where a rising line leaves room


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a bar chart; ``value`` None is a row that has no answer."""

    name: str
    value: float | None
    text: str


@dataclass(frozen=True, slots=True)
class Spread:
    """One row of error bars: a value between its ends."""

    name: str
    value: float
    low: float
    high: float
    text: str


def chart(
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    title: str,
    marks: Sequence[Mark] = (),
    size: tuple[int, int] = (420, 250),
    rising: bool = False,
) -> str:
    """Lines in a frame with labelled axes and a legend; ``title`` is read aloud instead of the picture.

    The legend stands in the corner that the lines leave free: on the left where they are ``rising``.
    """
    width, height = size
    left = 22.0 + 6.6 * max((len(_tick(value)) for value in y.ticks()), default=3)
    inner_width, inner_height = width - left - _RIGHT, height - _TOP - _BOTTOM

    def place(a: float, b: float) -> tuple[float, float]:
        return left + x.part(a) * inner_width, _TOP + (1.0 - y.part(b)) * inner_height

    out = [_open(width, height, title)]
    out += _frame(x, y, left, width, height)
    for line in lines:
        drawn = [place(a, b) for a, b in line.points if math.isfinite(a) and not math.isnan(b)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in drawn)
        out.append(f'<polyline class="tone-{line.tone}" fill="none" {_stroke(line.tone)} points="{path}"/>')
    for mark in marks:
        out += _mark(mark, *place(mark.x, mark.y), width)
    out += _legend([line for line in lines if line.name], left + 10 if rising else None, width)
    return "".join([*out, "</svg>"])


def bars(rows: Sequence[Bar], title: str, width: int = 460) -> str:
    """Horizontal bars from 0, each with its text; a logarithmic length where the largest is 30 times the smallest."""
    names = 8.0 + 6.4 * max((len(row.name) for row in rows), default=0)
    known = [row.value for row in rows if row.value is not None and 0 < row.value < math.inf]
    axis = _bar_axis(known)
    room, step = max(width - names - 78, 60.0), 20
    height = step * len(rows) + 8
    out = [_open(width, height, title)]
    for i, row in enumerate(rows):
        y = 6 + step * i
        length = 0.0 if row.value is None else room * (1.0 if math.isinf(row.value) else axis.part(row.value))
        tone = 0 if i == 0 else 4
        out.append(f'<text x="{names - 6:.0f}" y="{y + 11}" text-anchor="end">{escape(row.name)}</text>')
        if row.value is not None:
            out.append(
                f'<rect class="tone-{tone}" x="{names:.0f}" y="{y}" width="{max(length, 1.0):.1f}" height="14" '
                f'fill="{TONES[tone]}"/>'
            )
        out.append(f'<text x="{names + length + 5:.1f}" y="{y + 11}">{escape(row.text)}</text>')
    return "".join([*out, "</svg>"])


def spreads(rows: Sequence[Spread], title: str, width: int = 460) -> str:
    """Values with their error bars, one below the other on one scale, each with its text."""
    names = 8.0 + 6.4 * max((len(row.name) for row in rows), default=0)
    texts = 12.0 + 6.4 * max((len(row.text) for row in rows), default=0)
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    axis = Axis("", low, high if high > low else low + 1.0)
    room, step = max(width - names - texts, 60.0), 20
    out = [_open(names + room + texts, step * len(rows) + 8, title)]
    for i, row in enumerate(rows):
        y = 13 + step * i
        left, middle, right = (names + room * axis.part(end) for end in (row.low, row.value, row.high))
        bar = f"M{left:.1f},{y - 4}v8m0,-4H{right:.1f}m0,-4v8"
        out += [
            f'<text x="{names - 6:.0f}" y="{y + 4}" text-anchor="end">{escape(row.name)}</text>',
            f'<path class="tone-0" d="{bar}" fill="none" {_stroke(0)}/>',
            f'<circle class="tone-0" cx="{middle:.1f}" cy="{y}" r="3.5" fill="{TONES[0]}"/>',
            f'<text x="{names + room + 8:.1f}" y="{y + 4}">{escape(row.text)}</text>',
        ]
    return "".join([*out, "</svg>"])


def meter(share: float | None, title: str, width: int = 260, height: int = 14) -> str:
    """How much of a whole is used; an empty frame where there is no whole."""
    used = 0.0 if share is None else min(max(share, 0.0), 1.0) * (width - 2)
    if share is not None and 0 < share < 1:
        used = min(max(used, 2.0), width - 4.0)  # neither empty nor full unless it is
    frame = f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" fill="none" stroke="currentColor"/>'
    fill = f'<rect class="tone-0" x="1" y="1" width="{used:.1f}" height="{height - 2}" fill="{TONES[0]}"/>'
    return f"{_open(width, height, title)}{fill}{frame}</svg>"


def _open(width: float, height: float, title: str) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        'xmlns="http://www.w3.org/2000/svg" '
        'font-family="system-ui, sans-serif" font-size="11" fill="currentColor">'
        f"<title>{escape(title)}</title>"
    )


def _stroke(tone: int) -> str:
    dash = _DASHES[tone % len(_DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'stroke="{TONES[tone % len(TONES)]}" stroke-width="2"{dashed}'


def _frame(x: Axis, y: Axis, left: float, width: float, height: float) -> Iterator[str]:
    base, end = height - _BOTTOM, width - _RIGHT
    for value in y.ticks():
        at = _TOP + (1.0 - y.part(value)) * (base - _TOP)
        yield f'<path d="M{left:.1f},{at:.1f}H{end:.1f}" stroke="currentColor" stroke-opacity="0.15"/>'
        yield f'<text x="{left - 5:.1f}" y="{at + 4:.1f}" text-anchor="end">{_tick(value)}</text>'
    for value in x.ticks():
        at = left + x.part(value) * (end - left)
        yield f'<path d="M{at:.1f},{base:.1f}v4" stroke="currentColor"/>'
        anchor, place = ("end", width - 1) if at + 3.2 * len(_tick(value)) > width - 1 else ("middle", at)
        yield f'<text x="{place:.1f}" y="{base + 15:.1f}" text-anchor="{anchor}">{_tick(value)}</text>'
    yield f'<path d="M{left:.1f},{_TOP:.1f}V{base:.1f}H{end:.1f}" fill="none" stroke="currentColor"/>'
    yield f'<text x="{(left + end) / 2:.1f}" y="{height - 6:.1f}" text-anchor="middle">{escape(x.label)}</text>'
    middle = (_TOP + base) / 2
    yield (
        f'<text x="11" y="{middle:.1f}" text-anchor="middle" transform="rotate(-90 11 {middle:.1f})">'
        f"{escape(y.label)}</text>"
    )


def _mark(mark: Mark, x: float, y: float, width: float) -> Iterator[str]:
    tone = TONES[mark.tone % len(TONES)]
    yield f'<circle class="tone-{mark.tone}" cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{tone}"/>'
    if mark.text:
        last = mark.before or x + 8 + 6 * len(mark.text) > width - _RIGHT
        anchor, at = ("end", x - 8) if last else ("start", x + 8)
        yield f'<text x="{at:.1f}" y="{max(y - 6, 11):.1f}" text-anchor="{anchor}">{escape(mark.text)}</text>'


def _legend(lines: Sequence[Line], start: float | None, width: float) -> Iterator[str]:
    if len(lines) < 2:
        return
    long = 6.2 * max(len(line.name) for line in lines) + 34
    left = width - _RIGHT - long if start is None else start
    for i, line in enumerate(lines):
        y = _TOP + 10 + 15 * i
        yield f'<path class="tone-{line.tone}" d="M{left:.1f},{y - 4:.1f}h24" fill="none" {_stroke(line.tone)}/>'
        yield f'<text x="{left + 30:.1f}" y="{y:.1f}">{escape(line.name)}</text>'


def _bar_axis(values: Iterable[float]) -> Axis:
    known = sorted(values)
    if not known:
        return Axis("", 0.0, 1.0)
    if known[-1] > 30 * known[0]:
        return Axis("", 0.5 * known[0], known[-1], log=True)
    return Axis("", 0.0, known[-1])


def _log10(value: float, least: float) -> float:
    return math.log10(value) if value > least else math.log10(least)


def _round_step(wanted: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= wanted * (1 - 1e-9))


def _tick(value: float) -> str:
    if 1e3 <= abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.3g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
