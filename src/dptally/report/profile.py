"""The privacy profile on a log axis: all frameworks, and the certified band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dptally.answers.compare import compare
from dptally.mechanisms import Mechanism
from dptally.report.figure import STYLES, axes_or_new, short

__all__ = ["plot_profile"]

_CERTIFIED = "certified numerical"


def plot_profile(plan: Mechanism, deltas: Sequence[float] | None = None, ax: Any = None) -> Any:
    """delta against epsilon for every framework; between the certified ends lies the truth.

    Each framework is asked for epsilon at each of ``deltas`` (by default 1e-1 to 1e-15).
    """
    asked = list(deltas) if deltas is not None else np.logspace(-1, -15, 9).tolist()
    finer = asked if deltas is not None else np.logspace(-1, -15, 33).tolist()
    boxes = [plan.epsilon_interval(delta) for delta in finer]
    curves: dict[str, list[tuple[float, float]]] = {}
    for delta in asked:
        for row in compare(plan, delta).rows:
            if row.epsilon is not None and math.isfinite(row.epsilon) and row.framework != _CERTIFIED:
                curves.setdefault(row.framework, []).append((row.epsilon, delta))
    ax = axes_or_new(ax, (7.6, 5.0))
    lower, upper = [box.lower for box in boxes], [box.upper for box in boxes]
    ax.fill_betweenx(finer, lower, upper, color="0.75", label="certified band")
    ax.plot(upper, finer, **{**STYLES[0], "linewidth": 2.4}, label="certified upper end")
    # a framework that is more than twice as far is named in no picture: it would flatten the others
    widest = 2.0 * max((e for e in upper if math.isfinite(e)), default=1.0)
    shown = [(name, points) for name, points in curves.items() if points[-1][0] <= widest]
    for i, (name, points) in enumerate(shown):
        style = STYLES[1 + i % (len(STYLES) - 1)] | {"markevery": 1, "linewidth": 1.1}
        # those that coincide stay visible: hollow signs of growing size
        hollow = {"markersize": min(4.0 + i, 8.0), "markerfacecolor": "none"}
        ax.plot(*zip(*points, strict=True), **(style | hollow), label=name)
    farthest = max([*upper, *(points[-1][0] for _, points in shown)])
    ax.set_xlim(0, 1.05 * (farthest if 0 < farthest < math.inf else 1.0))
    ax.set_yscale("log")
    ax.set(xlabel="epsilon", ylabel="delta", title=short(plan))
    ax.legend(fontsize=8, loc="best")
    return ax
