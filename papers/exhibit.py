"""One exhibit of the gallery: a figure, a table or a claim of a paper, and what we find when we redo it."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

BUILD = Path(__file__).resolve().parent.parent / "build" / "papers"

# dark to light with different dashes, so that a grey print can still be read
INK, RED, GREEN, PURPLE, BLUE, GREY = "#111111", "#b2182b", "#1b7837", "#762a83", "#2166ac", "#8c8c8c"


@dataclass(frozen=True, slots=True)
class Table:
    """Column heads and rows of text."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """``verdict`` is confirmed, corrected, unsafe or not reproducible; the tests check ``numbers``."""

    name: str
    title: str
    verdict: str
    paper: str
    ours: str
    differs: str
    chosen: str = ""
    picture: Figure | None = None
    tables: tuple[Table, ...] = ()
    numbers: dict[str, float] = field(default_factory=dict)

    def png(self) -> bytes:
        """The picture as PNG, free of dates and versions."""
        if self.picture is None:
            raise ValueError(f"{self.name} has no picture")
        out = io.BytesIO()
        self.picture.savefig(out, format="png", dpi=110, metadata={"Software": None})
        return out.getvalue()


@dataclass(frozen=True, slots=True)
class Paper:
    """A founding document: what it is, and its exhibits in order."""

    name: str
    title: str
    source: str
    summary: str
    exhibits: tuple[Exhibit, ...]


def figure(columns: int = 1, rows: int = 1, width: float = 4.6, height: float = 3.3) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row."""
    drawn = Figure(figsize=(width * columns, height * rows), layout="constrained")
    panels = drawn.subplots(rows, columns, squeeze=False).ravel().tolist()
    for panel in panels:
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    return drawn, panels


def label(
    panel: Axes, title: str, x: str, y: str, legend: bool = True, at: tuple[str, float, float] | None = None
) -> None:
    """Title, axes and legend; ``at`` is a corner of the legend and where it stands, for panels with no free corner."""
    panel.set_title(title, fontsize=10)
    panel.set_xlabel(x, fontsize=9)
    panel.set_ylabel(y, fontsize=9)
    panel.tick_params(labelsize=8)
    if legend:
        place = {} if at is None else {"loc": at[0], "bbox_to_anchor": at[1:], "borderaxespad": 0.0}
        panel.legend(fontsize=7, framealpha=0.85, **place)


def table(head: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> Table:
    return Table(tuple(head), tuple(tuple(str(cell) for cell in row) for row in rows), caption)


def main(paper: Callable[[], Paper]) -> None:
    """Run one paper by itself: its pictures go to build/papers, its findings to the terminal."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for exhibit in paper().exhibits:
        print(f"{exhibit.title}: {exhibit.verdict}")
        if exhibit.picture is not None:
            path = BUILD / f"{exhibit.name}.png"
            path.write_bytes(exhibit.png())
            print(f"  {path}")
