"""Epsilon against the number of steps, with a budget line and the stopping point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.mechanisms import Mechanism
from dptally.report.figure import STYLES, axes_or_new, short

__all__ = ["StepCurve", "draw_curve", "epsilon_curve", "plot_steps"]


@dataclass(frozen=True, slots=True)
class StepCurve:
    """Upper bounds of epsilon after some numbers of steps.

    ``stop`` is the last step within the budget, None where the first one passes it.
    """

    plan: Mechanism
    delta: float
    steps: tuple[int, ...]
    epsilons: tuple[float, ...]
    budget: float | None = None
    stop: int | None = None


def epsilon_curve(plan: Mechanism, steps: Sequence[int], delta: float, budget: float | None = None) -> StepCurve:
    """Epsilon of n runs of ``plan`` for every n in ``steps``, and where to stop.

    The stopping point is exact up to the last of ``steps``: epsilon does not fall with n, so it is found by
    halving.

    >>> from dptally import Gaussian
    >>> epsilon_curve(Gaussian(sigma=10.0), [1, 50, 100], delta=1e-5, budget=2.0).stop
    25
    """
    asked = sorted({checks.count("steps", n, 1) for n in steps})
    if not asked:
        raise InvalidArgument("steps", "at least one number of steps", steps)
    epsilons = plan.epsilon_curve(asked, delta)
    if budget is None:
        return StepCurve(plan, delta, tuple(asked), tuple(epsilons))
    stop = _stop(plan, delta, checks.nonnegative("budget", budget), asked, epsilons)
    return StepCurve(plan, delta, tuple(asked), tuple(epsilons), budget, stop)


def _stop(plan: Mechanism, delta: float, budget: float, steps: Sequence[int], epsilons: Sequence[float]) -> int | None:
    within = [n for n, e in zip(steps, epsilons, strict=True) if e <= budget]
    # none of the steps asked for: look before the first of them
    low = within[-1] if within else 0
    high = next((n for n, e in zip(steps, epsilons, strict=True) if e > budget), low + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if (middle * plan).epsilon(delta) <= budget else (low, middle)
    return low or None


def draw_curve(curve: StepCurve, ax: Any = None) -> Any:
    """Draw a curve that is at hand; returns the matplotlib axes."""
    ax = axes_or_new(ax)
    step = "step" if sum(count for _, count in curve.plan.parts) == 1 else "run"
    ax.plot(curve.steps, curve.epsilons, **STYLES[0], label="certified upper bound")
    if curve.budget is not None:
        ax.axhline(curve.budget, color="0.35", linestyle="--", linewidth=1, label=f"budget {curve.budget:g}")
        if curve.stop is not None and curve.stop < curve.steps[-1]:
            ax.axvline(curve.stop, color="0.35", linestyle=":", linewidth=1)
            ax.plot([curve.stop], [curve.budget], "o", color="black", label=f"stop after {step} {curve.stop}")
    ax.set_xlabel("steps" if step == "step" else "runs of the whole plan")
    ax.set(ylabel="epsilon", title=f"{short(curve.plan)}\nat delta = {curve.delta:g}")
    ax.set_ylim(bottom=0)
    ax.legend()
    return ax


def plot_steps(
    plan: Mechanism, steps: int, delta: float, budget: float | None = None, points: int = 120, ax: Any = None
) -> Any:
    """Epsilon after 1 to ``steps`` runs of ``plan``, the budget line and the stopping point."""
    last = checks.count("steps", steps, 1)
    # denser at the start, where the curve bends
    asked = (1 + (last - 1) * np.linspace(0.0, 1.0, checks.count("points", points, 2)) ** 2).round()
    return draw_curve(epsilon_curve(plan, [int(n) for n in asked], delta, budget), ax)
