"""What every picture shares: axes, line styles that survive a grey printer, files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from dptally.errors import InvalidArgument, MissingExtra
from dptally.mechanisms import Mechanism

__all__ = ["STYLES", "axes_or_new", "pyplot", "saved", "short"]

#: told apart by dash and marker, not by colour alone; the colours differ in lightness
STYLES: tuple[dict[str, Any], ...] = tuple(
    {
        "color": color,
        "linestyle": dash,
        "marker": marker,
        "markevery": 0.12,
        "markersize": 4.5,
        "linewidth": 1.6,
    }
    for color, dash, marker in (
        ("#000000", "-", ""),
        ("#0b4f8a", "--", "o"),
        ("#b5461d", "-.", "s"),
        ("#2e7d4f", ":", "^"),
        ("#7b5ea7", (0, (5, 1, 1, 1, 1, 1)), "D"),
        ("#8a8a8a", (0, (1, 1)), "v"),
        ("#c49a1a", (0, (8, 2)), "x"),
        ("#4a9dc9", (0, (3, 1, 1, 1)), "P"),
    )
)


def pyplot() -> Any:
    """matplotlib.pyplot, loaded now; with the Agg back end where there is no display."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("matplotlib", "plots") from None
    headless = sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if headless and "MPLBACKEND" not in os.environ and "matplotlib.pyplot" not in sys.modules:
        matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def axes_or_new(ax: Any, size: tuple[float, float] = (7.2, 4.6)) -> Any:
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    _, made = pyplot().subplots(figsize=size, layout="constrained")
    made.grid(True, color="0.9", linewidth=0.6)
    made.set_axisbelow(True)
    return made


def saved(ax: Any, path: str | Path, dpi: int = 150) -> Path:
    """Write the figure of these axes as PNG or SVG (by the file's ending) and close it."""
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise InvalidArgument("output", "a file that ends in .png or .svg", str(path))
    plt = pyplot()
    figure = ax.figure
    # the same picture gives the same bytes
    with plt.rc_context({"svg.hashsalt": "dptally"}):
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
        figure.savefig(path, dpi=dpi, metadata=metadata)
    plt.close(figure)
    return path


def short(plan: Mechanism, most: int = 70) -> str:
    """The plan as one line for a title."""
    text = repr(plan).replace("mechanism=", "").replace(", sensitivity=1.0", "").replace(", sensitivity=1", "")
    text = text.replace(", adjacency=ADD_REMOVE", "")
    return text if len(text) <= most else text[: most - 3] + "..."
