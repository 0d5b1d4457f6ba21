"""Many questions of one plan at once: neighbouring deltas and epsilons share a contour and its sums.

A contour answers every eps with certified bounds, and sharply in a range about its saddle. So the question in the
middle gets a contour, all that it answers sharply are done, and the rest goes on in the same way; what no contour
answers is asked by itself. Every answer is verified like a single one: an upper end of eps is a point where the
certified upper bound of delta is at most the target.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dptally.accounting.certified.contour import inversion
from dptally.accounting.certified.contour.compiled import CompiledContour
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.routes import Contour
from dptally.accounting.certified.tuning import STANDARD, SearchTuning, Tuning
from dptally.law import Composition
from dptally.law.law import Floats
from dptally.numerics.rounding import EPS

__all__ = ["deltas_by_contours", "epsilons_by_contours"]

Contours = inversion.Inversion | CompiledContour
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]


def epsilons_by_contours(
    composition: Composition, low: Floats, high: Floats, tuning: Tuning = STANDARD
) -> tuple[Floats, Floats]:
    """Ends of eps for targets whose logarithms lie in [low, high], elementwise; NaN where no contour was sharp."""

    def made(i: int) -> Contours | None:
        return inversion.for_delta(composition, float(low[i]), tuning.contour)

    def answered(contour: Contours, rows: Rows) -> tuple[Floats, Floats]:
        return _epsilon_ends(contour, low[rows], high[rows], tuning.search)

    sharp = tuning.routes.sharp_contour
    plan = Plan(composition, tuning=tuning)
    return _shared(plan, low, made, answered, lambda _, lower, upper: upper - lower <= sharp * upper)


def deltas_by_contours(
    composition: Composition, epsilon: Floats, tuning: Tuning = STANDARD, enough: Floats | None = None
) -> tuple[Floats, Floats]:
    """Bounds of log delta of the finite losses at each eps; NaN where no contour was sharp.

    ``enough``: an upper bound that is no larger than this need not be sharp.
    """
    known = np.full(len(epsilon), -np.inf) if enough is None else enough

    def made(i: int) -> Contours | None:
        return inversion.for_epsilon(composition, float(epsilon[i]), tuning.contour)

    def answered(contour: Contours, rows: Rows) -> tuple[Floats, Floats]:
        lower, upper, _ = contour.log_delta_many(epsilon[rows])
        return lower, upper

    sharp = tuning.routes.sharp_contour
    plan = Plan(composition, tuning=tuning)
    return _shared(
        plan, epsilon, made, answered, lambda rows, lower, upper: (upper - lower <= sharp) | (upper <= known[rows])
    )


def _shared(
    plan: Plan,
    order: Floats,
    made: Callable[[int], Contours | None],
    answered: Callable[[Contours, Rows], tuple[Floats, Floats]],
    sharp: Callable[[Rows, Floats, Floats], Mask],
) -> tuple[Floats, Floats]:
    lower, upper = np.full((2, len(order)), np.nan)
    if not Contour().applies(plan) or plan.steps <= 1 or len(order) < plan.tuning.routes.few_shared:
        return lower, upper
    blocks = [np.argsort(order, kind="stable")]
    while blocks:
        block = blocks.pop()
        middle = int(block[len(block) // 2])
        with np.errstate(all="ignore"):
            contour = made(middle)
            if contour is None:
                continue
            low, high = answered(contour, block)
            good = sharp(block, low, high) & np.isfinite(high)
        lower[block[good]], upper[block[good]] = low[good], high[good]
        if not good[len(block) // 2]:
            continue  # not even its own question
        rest = np.nonzero(~good)[0]
        for part in (rest[rest < len(block) // 2], rest[rest > len(block) // 2]):
            if len(part):
                blocks.append(block[part])
    return lower, upper


def _epsilon_ends(contour: Contours, low: Floats, high: Floats, tuning: SearchTuning) -> tuple[Floats, Floats]:
    """As :func:`~dptally.accounting.certified.solve.epsilon_ends`, for many targets: Newton, then verified ends."""
    goal = 0.5 * (low + high)
    eps = np.full(len(goal), contour.saddle)
    below, above, slope = contour.log_delta_many(eps)
    move = (0.5 * (below + above) - goal) / slope
    active = np.isfinite(move)
    for _ in range(tuning.newton_steps):
        active &= np.isfinite(move) & (np.abs(move) > 0.1 * tuning.converged * np.minimum(np.abs(eps), 1 / slope))
        rows = np.nonzero(active)[0]
        if not len(rows):
            break
        eps[rows] += move[rows]
        below[rows], above[rows], slope[rows] = contour.log_delta_many(eps[rows])
        move[rows] = (0.5 * (below[rows] + above[rows]) - goal[rows]) / slope[rows]
    upper = _verified(contour, eps, (above - low) / slope, 1.0, tuning, lambda rows, bounds: bounds[1] <= low[rows])
    lower = _verified(contour, eps, (high - below) / slope, -1.0, tuning, lambda rows, bounds: bounds[0] > high[rows])
    return np.where(np.isnan(lower), 0.0, np.maximum(lower, 0.0)), np.where(
        np.isnan(upper), np.inf, np.maximum(upper, 0)
    )


def _verified(
    contour: Contours,
    start: Floats,
    distance: Floats,
    sign: float,
    tuning: SearchTuning,
    holds: Callable[[Rows, tuple[Floats, Floats, Floats]], Mask],
) -> Floats:
    """The nearest tried points beyond ``start`` in the direction of ``sign`` at which the bounds hold; NaN for none."""
    found = np.full(len(start), np.nan)
    step = np.maximum(distance, 0.0) * tuning.margin + 4 * EPS * np.abs(start) + 1e-300
    rows = np.nonzero(np.isfinite(step))[0]
    for _ in range(tuning.tries_of_many):
        if not len(rows):
            break
        point = start[rows] + sign * step[rows]
        good = holds(rows, contour.log_delta_many(point))
        found[rows[good]] = point[good]
        if sign < 0:  # no eps is negative: 0 is a lower end
            found[rows[~good & (point < 0)]] = 0.0
            good |= point < 0
        rows = rows[~good]
        step[rows] *= tuning.growth
    return found
