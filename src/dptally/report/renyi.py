"""The Renyi curve with the chosen order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptally.accounting.renyi import epsilon
from dptally.mechanisms import Mechanism
from dptally.report.figure import STYLES, axes_or_new, short

__all__ = ["plot_renyi"]


def plot_renyi(plan: Mechanism, delta: float, points: int = 80, ax: Any = None) -> Any:
    """Renyi divergence against the order, and the order that gives the smallest epsilon at ``delta``."""
    answer = epsilon(plan.directions(), delta)
    chosen = answer.order if answer.order is not None and math.isfinite(answer.order) else None
    largest = max(64.0, 4.0 * chosen) if chosen is not None else 64.0
    smallest = min(0.1, 0.25 * (chosen - 1)) if chosen is not None else 0.1
    orders = 1.0 + np.logspace(math.log10(smallest), math.log10(largest), points)
    values = plan.renyi(orders)
    finite = np.isfinite(values)
    ax = axes_or_new(ax)
    ax.plot(orders[finite], values[finite], **STYLES[0], label="Renyi divergence")
    if chosen is not None:
        at = plan.renyi(chosen)
        ax.plot([chosen], [at], "o", color="black", markersize=7, label=f"chosen order {chosen:.4g}")
        ax.axvline(chosen, color="0.5", linestyle=":", linewidth=1)
    ax.set_xscale("log")
    if finite.any() and values[finite].min() > 0:
        ax.set_yscale("log")
    head = f"{short(plan)}\nRenyi DP gives epsilon = {answer.value:.5g} at delta = {delta:g}"
    ax.set(xlabel="order", ylabel="Renyi divergence", title=head)
    ax.legend(loc="upper left")
    return ax
