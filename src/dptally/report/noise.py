"""The noise that a target epsilon needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dptally.calibration import calibrate
from dptally.mechanisms import Mechanism
from dptally.report.figure import STYLES, axes_or_new, short

__all__ = ["plot_noise"]


def plot_noise(
    make: Callable[[float], Mechanism],
    delta: float,
    epsilons: Sequence[float] | None = None,
    name: str = "noise",
    ax: Any = None,
) -> Any:
    """The calibrated parameter of ``make`` against epsilon at ``delta``, on log-log axes.

    Every point is certainly enough for its epsilon: it is what ``dp.calibrate`` answers.
    """
    targets = list(epsilons) if epsilons is not None else np.logspace(-1, 1, 9).tolist()
    values = [calibrate(make, epsilon=epsilon, delta=delta) for epsilon in targets]
    ax = axes_or_new(ax)
    ax.loglog(targets, values, **(STYLES[1] | {"markevery": 1, "color": "black", "linestyle": "-"}))
    ax.set(xlabel=f"epsilon at delta = {delta:g}", ylabel=name)
    ax.set_title(f"{name} in {short(make(values[0]))}".replace(repr(values[0]), name))
    return ax
