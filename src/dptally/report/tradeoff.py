"""The trade-off curve with a log-log inset and the mu-GDP fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptally import checks, gdp
from dptally.accounting.tradeoff import detection_curve
from dptally.errors import Unanswerable
from dptally.mechanisms import GaussianDP, Mechanism
from dptally.report.figure import STYLES, axes_or_new, short

__all__ = ["plot_tradeoff"]


def plot_tradeoff(plan: Mechanism, points: int = 48, mu: float | None = None, ax: Any = None) -> Any:
    """The smallest false-negative rate of any attacker against the false-positive rate.

    The profile at ``points`` epsilons bounds the whole curve, also between what is drawn. The inset shows the
    largest true-positive rate on log-log axes, where attacks are judged. The dashed curve is the mu-GDP curve
    with the same advantage (GDPT at epsilon 0): a fit, not a guarantee, unless ``mu`` is given.
    """
    number = checks.count("points", points, 4)
    rates = np.unique(np.concatenate([np.logspace(-5, -1, 101), np.linspace(0.0, 1.0, 401)]))
    right, wrong = detection_curve(plan.directions(), rates, number)
    fitted = _fit(plan) if mu is None else checks.nonnegative("mu", mu)
    gauss = None if fitted is None else detection_curve(GaussianDP(fitted).directions(), rates)[1]
    ax = axes_or_new(ax, (5.8, 5.6))
    ax.fill_between(rates, wrong, color="0.93")
    ax.plot(rates, wrong, **STYLES[0], label="no attacker is below (certified)")
    if gauss is not None:
        kind = "fit of equal advantage" if mu is None else "given"
        ax.plot(rates, gauss, **(STYLES[1] | {"marker": ""}), label=f"mu-GDP, mu = {fitted:.4g} ({kind})")
    ax.plot([0, 1], [1, 0], **(STYLES[3] | {"color": "0.5", "marker": ""}), label="perfect privacy")
    ax.set(
        xlabel="false-positive rate",
        ylabel="false-negative rate",
        title=short(plan, 60),
        xlim=(0, 1),
        ylim=(0, 1),
    )
    # the curve is convex and below the diagonal, so that the upper right is free for the legend and the inset
    inset = ax.inset_axes((0.63, 0.50, 0.34, 0.30))
    inset.loglog(rates[1:-1], right[1:-1], **STYLES[0])
    if gauss is not None:
        inset.loglog(rates[1:-1], 1 - gauss[1:-1], **(STYLES[1] | {"marker": ""}))
    inset.loglog([1e-5, 1], [1e-5, 1], **(STYLES[3] | {"color": "0.5", "marker": ""}))
    inset.set(xlim=(1e-5, 1), ylim=(1e-5, 1.2))
    inset.set_title("largest TPR against FPR", fontsize=8)
    inset.tick_params(labelsize=7)
    ax.legend(fontsize=8, loc="upper right")
    return ax


def _fit(plan: Mechanism) -> float | None:
    """The mu with the plan's own advantage; None where that is only bounded from above, or there is no such mu."""
    try:
        found = gdp.transform(plan, 0.0)
    except Unanswerable:
        return None
    known = math.isfinite(found.upper) and found.upper - found.lower <= 0.01 * found.upper
    return found.upper if known else None
