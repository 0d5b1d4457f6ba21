"""The Gaussian differential privacy transformation with its staircases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptally import checks, gdp
from dptally.mechanisms import Mechanism
from dptally.report.figure import STYLES, axes_or_new, short

__all__ = ["plot_gdpt"]


def plot_gdpt(plan: Mechanism, head: float | None = None, steps: int = 20, points: int = 40, ax: Any = None) -> Any:
    """G(epsilon) between its staircase bounds G- and G+ on [0, head]; the plan is mu-GDP iff mu covers G.

    The head is by default where delta is 1e-6 (or, for a bounded loss, where delta ends).
    """
    end = checks.positive("head", head) if head is not None else _head(plan)
    curve = gdp.transform(plan, np.linspace(0.0, end, checks.count("points", points, 2)))
    stairs = gdp.staircase(plan, end, steps)
    ax = axes_or_new(ax)
    edges = np.append(stairs.epsilon, end)
    for values, style, name in (
        (stairs.upper, "--", "G+ (staircase)"),
        (stairs.lower, ":", "G- (staircase)"),
    ):
        kept = np.where(np.isfinite(values), values, np.nan)
        ax.stairs(kept, edges, baseline=None, color="0.35", linestyle=style, linewidth=1.2, label=name)
    ax.fill_between(curve.epsilon, curve.lower, curve.upper, color="0.7")
    ax.plot(curve.epsilon, curve.upper, **(STYLES[0] | {"linewidth": 2.0}), label="G (GDPT)")
    top = int(np.argmax(curve.upper))
    ax.plot(
        [curve.epsilon[top]],
        [curve.upper[top]],
        "o",
        color="black",
        clip_on=False,
        zorder=3,
        label=f"largest seen: {curve.upper[top]:.5g}",
    )
    ax.set(xlabel="epsilon", ylabel="mu", title=short(plan), xlim=(0, end))
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=8)
    return ax


def _head(plan: Mechanism) -> float:
    end = plan.epsilon(1e-6)
    return end if 0 < end < math.inf else 1.0
