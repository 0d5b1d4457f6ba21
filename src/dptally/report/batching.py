"""A picture of what each way of batching costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dptally.answers.batching import BatchingRow
from dptally.report.figure import axes_or_new

__all__ = ["plot_batching"]


def plot_batching(rows: Sequence[BatchingRow], ax: Any = None) -> Any:
    """One bar for each way of batching up to the certified upper end; what is not certain, down to the lower end, is
    pale.
    """
    axes = axes_or_new(ax)
    known = [row for row in rows if row.epsilon is not None][::-1]
    for place, row in enumerate(known):
        assert row.epsilon is not None
        axes.barh(place, row.epsilon.lower, color="#0b4f8a", height=0.6)
        axes.barh(place, row.epsilon.width, left=row.epsilon.lower, color="#9db8d2", hatch="//", height=0.6)
        axes.annotate(f" {row.epsilon.upper:.4g}", (row.epsilon.upper, place), va="center")
    axes.set_yticks(range(len(known)), [row.name for row in known])
    axes.set_xlabel("epsilon")
    axes.set_xlim(0.0, 1.12 * max((row.epsilon.upper for row in known if row.epsilon is not None), default=1.0) or 1.0)
    return axes
