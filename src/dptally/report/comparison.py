"""Comparison bars: every framework's epsilon for one plan."""

from __future__ import annotations

import math
from typing import Any

from dptally.answers.compare import compare
from dptally.mechanisms import Mechanism
from dptally.numerics.shown import shown_up
from dptally.report.figure import axes_or_new, short

__all__ = ["plot_compare"]


def plot_compare(plan: Mechanism, delta: float, ax: Any = None) -> Any:
    """One bar per framework that has an answer, the tightest on top and black; the others are listed below.

    The axis is logarithmic where the largest epsilon is more than thirty times the smallest.
    """
    found = compare(plan, delta)
    rows = [row for row in found.rows if row.epsilon is not None and math.isfinite(row.epsilon)]
    silent = [row.framework for row in found.rows if row not in rows]
    ax = axes_or_new(ax, (7.6, 1.4 + 0.34 * len(found.rows)))
    values = [float(row.epsilon or 0.0) for row in rows]
    shades = ["black", *["0.62"] * (len(rows) - 1)]
    bars = ax.barh([row.framework for row in rows], values, color=shades[: len(rows)], height=0.62)
    ax.bar_label(bars, labels=[shown_up(value, 5) for value in values], padding=4, fontsize=9)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    if values and min(values) > 0 and max(values) > 30 * min(values):
        ax.set_xscale("log")
        ax.set_xlim(0.5 * min(values), 4 * max(values))
    else:
        ax.set_xlim(0, 1.18 * max(values, default=1.0) or 1.0)
    below = f"\nno answer: {', '.join(silent)}" if silent else ""
    ax.set(xlabel=f"epsilon at delta = {delta:g}{below}", title=short(plan))
    return ax
