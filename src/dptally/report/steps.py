"""Epsilon against the number of steps, with a budget line and the stopping point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dptally import checks
from dptally.mechanisms import Mechanism
from dptally.report.figure import STYLES, axes_or_new, short

__all__ = ["StepCurve", "draw_curve", "epsilon_curve", "plot_steps"]


@dataclass(frozen=True, slots=True)
class StepCurve:
    """Upper bounds of epsilon after some numbers of steps. ``stop``: the last step within the budget."""

    plan: Mechanism
    delta: float
    steps: tuple[int, ...]
    epsilons: tuple[float, ...]
    budget: float | None = None
    stop: int | None = None


def epsilon_curve(
    plan: Mechanism, first: int, last: int, delta: float, points: int = 40, budget: float | None = None
) -> StepCurve:
    """Epsilon of n runs of ``plan`` for ``points`` numbers n from ``first`` to ``last``, and where to stop.

    The stopping point is exact: epsilon does not fall with n, so it is found by halving.

    >>> from dptally import Gaussian
    >>> epsilon_curve(Gaussian(sigma=10.0), 1, 100, delta=1e-5, points=3, budget=2.0).stop
    25
    """
    first, last = checks.count("first", first, 1), checks.count("last", last, 1)
    steps = sorted({round(x) for x in np.linspace(first, last, checks.count("points", points, 2)).tolist()})
    epsilons = [(n * plan).epsilon(delta) for n in steps]
    if budget is None:
        return StepCurve(plan, delta, tuple(steps), tuple(epsilons))
    stop = _stop(plan, delta, checks.nonnegative("budget", budget), steps, epsilons)
    return StepCurve(plan, delta, tuple(steps), tuple(epsilons), budget, stop)


def _stop(
    plan: Mechanism, delta: float, budget: float, steps: Sequence[int], epsilons: Sequence[float]
) -> int | None:
    within = [n for n, e in zip(steps, epsilons, strict=True) if e <= budget]
    if not within:
        return None
    low = within[-1]
    high = next((n for n, e in zip(steps, epsilons, strict=True) if e > budget), low + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if (middle * plan).epsilon(delta) <= budget else (low, middle)
    return low


def draw_curve(curve: StepCurve, ax: Any = None) -> Any:
    """Draw a curve that is at hand; returns the matplotlib axes."""
    ax = axes_or_new(ax)
    ax.plot(curve.steps, curve.epsilons, **STYLES[0], label="certified upper bound")
    if curve.budget is not None:
        ax.axhline(curve.budget, color="0.35", linestyle="--", linewidth=1, label=f"budget {curve.budget:g}")
        if curve.stop is not None and curve.stop < curve.steps[-1]:
            ax.axvline(curve.stop, color="0.35", linestyle=":", linewidth=1)
            ax.plot([curve.stop], [curve.budget], "o", color="black", label=f"stop after step {curve.stop}")
    ax.set(xlabel="steps", ylabel="epsilon", title=f"{short(curve.plan)}\nat delta = {curve.delta:g}")
    ax.set_ylim(bottom=0)
    ax.legend()
    return ax


def plot_steps(
    plan: Mechanism, steps: int, delta: float, budget: float | None = None, points: int = 40, ax: Any = None
) -> Any:
    """Epsilon after 1 to ``steps`` runs of ``plan``, the budget line and the stopping point."""
    return draw_curve(epsilon_curve(plan, 1, steps, delta, points, budget), ax)
