"""The density of the privacy loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.law import Law
from dptally.mechanisms import Mechanism
from dptally.report.figure import STYLES, axes_or_new, short

__all__ = ["plot_loss"]

_MOST_ATOMS = 400
_MOST_PARTS = 4


def plot_loss(plan: Mechanism, points: int = 400, ax: Any = None) -> Any:
    """The privacy loss of one step of each different part, densities as lines and point masses as stems.

    The worse direction's law is drawn (removing the record). Gaussian steps are drawn as the one Gaussian that
    they compose to.
    """
    parts = plan.directions()[0].parts
    if not parts:
        raise Unanswerable("nothing was run, so there is no privacy loss to draw")
    ax = axes_or_new(ax)
    masses, highest = None, 0.0
    for i, (law, count) in enumerate(parts[:_MOST_PARTS]):
        style = STYLES[i] | {"marker": ""}
        name = f"{count} x {type(law).__name__.removesuffix('Law')}" if len(parts) > 1 or count > 1 else "density"
        low, high = _range(law)
        atoms = [(loss, mass) for loss, mass in law.atoms() if low <= loss <= high][:_MOST_ATOMS]
        grid = np.linspace(low, high, points)
        density = law.density(grid)
        if density.any():
            ax.plot(grid, density, **style, label=name)
            ax.fill_between(grid, density, color=style["color"], alpha=0.08)
        if atoms:
            masses = ax if not density.any() and masses is None and len(parts) == 1 else (masses or ax.twinx())
            shown = masses.stem(
                *zip(*atoms, strict=True),
                linefmt="0.3",
                markerfmt="o",
                basefmt=" ",
                label="point masses" if name == "density" else f"{name}: point masses",
            )
            shown.markerline.set(color=style["color"], markersize=4)
            shown.stemlines.set(color=style["color"], linewidth=1.2)
            highest = max(highest, *(mass for _, mass in atoms))
            masses.set_ylim(0, 1.12 * highest)
            masses.set_ylabel("probability of a point mass")
    ax.axvline(0, color="0.6", linewidth=0.8)
    ax.set(xlabel="privacy loss of one step", title=short(plan))
    if masses is not ax:
        ax.set_ylabel("density")
        ax.set_ylim(bottom=0)
    _legend(ax, masses)
    return ax


def _legend(ax: Any, masses: Any) -> None:
    handles, labels = ax.get_legend_handles_labels()
    if masses is not None and masses is not ax:
        more = masses.get_legend_handles_labels()
        handles, labels = handles + more[0], labels + more[1]
    ax.legend(handles, labels, fontsize=8)


def _range(law: Law) -> tuple[float, float]:
    """Where all but a thousandth of the loss lies on either side, with a margin; found by halving."""
    low, high = _quantile(law, 0.999), _quantile(law, 0.001)
    margin = 0.08 * max(high - low, 1e-9)
    return low - margin, high + margin


def _quantile(law: Law, tail: float) -> float:
    low = law.infimum if math.isfinite(law.infimum) else law.mean - 1.0
    high = law.supremum if math.isfinite(law.supremum) else law.mean + 1.0
    total = 1.0 - law.infinity_mass
    while not math.isfinite(law.infimum) and _tail(law, low) < tail * total and low > -1e6:
        low -= high - low
    while not math.isfinite(law.supremum) and _tail(law, high) > tail * total and high < 1e6:
        high += high - low
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _tail(law, middle) > tail * total else (low, middle)
    return high


def _tail(law: Law, loss: float) -> float:
    at: Floats = np.array([loss])
    return float(law.tail(at)[0])
