"""The trade-off curve with a log-log inset and the mu-GDP fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptally import checks, gdp
from dptally.errors import Unanswerable
from dptally.mechanisms import GaussianDP, Mechanism
from dptally.report.figure import STYLES, axes_or_new, short

__all__ = ["plot_tradeoff"]


def plot_tradeoff(plan: Mechanism, points: int = 21, mu: float | None = None, ax: Any = None) -> Any:
    """The smallest false-negative rate of any attacker against the false-positive rate.

    The inset shows the largest true-positive rate on log-log axes, where attacks are judged. The dashed curve
    is the mu-GDP curve with the same advantage (GDPT at epsilon 0): a fit, not a guarantee, unless ``mu`` is
    given.
    """
    number = checks.count("points", points, 4)
    rates = np.unique(
        np.concatenate([np.logspace(-5, -1, number // 2), np.linspace(0.0, 1.0, number - number // 2)])
    )
    wrong = plan.tradeoff(rates)
    fitted = _fit(plan) if mu is None else checks.nonnegative("mu", mu)
    fine = np.unique(np.concatenate([np.logspace(-5, -1, 60), np.linspace(0.0, 1.0, 101)]))
    gauss = None if fitted is None else GaussianDP(fitted).tradeoff(fine)
    ax = axes_or_new(ax, (5.8, 5.6))
    ax.fill_between(rates, wrong, color="0.93")
    ax.plot(rates, wrong, **STYLES[0], label="no attacker is below (certified)")
    if gauss is not None:
        kind = "fit of equal advantage" if mu is None else "given"
        ax.plot(fine, gauss, **(STYLES[1] | {"marker": ""}), label=f"mu-GDP, mu = {fitted:.4g} ({kind})")
    ax.plot([0, 1], [1, 0], **(STYLES[3] | {"color": "0.5", "marker": ""}), label="perfect privacy")
    ax.set(
        xlabel="false-positive rate",
        ylabel="false-negative rate",
        title=short(plan, 60),
        xlim=(0, 1),
        ylim=(0, 1),
    )
    # the curve is convex and below the diagonal, so that the upper right is free for the legend and the inset
    inset = ax.inset_axes((0.52, 0.40, 0.45, 0.36))
    inset.loglog(rates[1:-1], 1 - wrong[1:-1], **STYLES[0])
    if gauss is not None:
        inset.loglog(fine[1:-1], 1 - gauss[1:-1], **(STYLES[1] | {"marker": ""}))
    inset.loglog([1e-5, 1], [1e-5, 1], **(STYLES[3] | {"color": "0.5", "marker": ""}))
    inset.set(xlim=(1e-5, 1), ylim=(1e-5, 1.2))
    inset.set_title("largest TPR against FPR", fontsize=8)
    inset.tick_params(labelsize=7)
    ax.legend(fontsize=8, loc="upper right")
    return ax


def _fit(plan: Mechanism) -> float | None:
    """The mu with the plan's own advantage; None where the plan has no profile or no such mu."""
    try:
        found = gdp.transform(plan, 0.0).upper
    except Unanswerable:
        return None
    return found if math.isfinite(found) else None
