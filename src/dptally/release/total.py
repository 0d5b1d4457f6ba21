"""Sums and means of clipped records, in integers throughout.

A sum of floats has a larger sensitivity than its bounds say, because it rounds at every step and the order
matters [Casacuberta et al. 2022]. Here every record is clipped and rounded to a fine grid fixed by the
bounds, the grid steps are added as integers, and the exact sum is rounded once to the grid of the noise. The
sensitivity is then a statement about integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dptally.errors import InvalidArgument
from dptally.law.adjacency import ADD_REMOVE, REPLACE, Adjacency
from dptally.noise import grid as grids
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.additive import Additive, additive
from dptally.release.column import DROP, Rule
from dptally.release.function import Stated, checked_unit, release_function
from dptally.release.records import (
    Range,
    checked_adjacency,
    checked_bounds,
    grid_for,
    missing_value,
    range_of,
    steps_of,
)
from dptally.release.released import ROW, Released

__all__ = ["bounded_sum", "mean"]

CHUNK = 1 << 14  # the working arrays stay in the processor's cache
_TOGETHER = 512  # records of up to 53 bits that can be added in 64


def _exact_sum(records: NDArray[Any], inside: Range) -> int:
    """The sum of the clipped records in grid steps: an exact integer of any width."""
    total = 0
    for start in range(0, len(records), CHUNK):
        steps = steps_of(records[start : start + CHUNK], inside)
        total += sum(np.add.reduceat(steps, np.arange(0, len(steps), _TOGETHER)).tolist())
    return total


def _value(steps: int, exponent: int) -> int | float:
    return steps << exponent if exponent >= 0 else float(grids.from_grid(steps, exponent))


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum as its arguments state it."""

    stated: Stated
    noise: Additive
    low: Fraction
    high: Fraction
    missing: float | Rule


def _prepared_sum(
    *,
    lower: Exact,
    upper: Exact,
    adjacency: Adjacency,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    grid: Exact | None = None,
    missing: Exact | Rule = DROP,
    unit: str = ROW,
) -> _Sum:
    chosen, which = additive(scale, sigma), checked_adjacency(adjacency)
    low, high = checked_bounds(lower, upper)
    instead = missing_value(missing, low, high)
    if which is ADD_REMOVE:
        sensitivity = max(abs(low), abs(high))
    elif instead is DROP:  # a record may become one that is left out, and count as 0
        sensitivity = max(high, Fraction(0)) - min(low, Fraction(0))
    else:
        sensitivity = high - low
    chosen = grid_for(chosen, sensitivity, grid)
    mechanism = chosen.mechanism(grids.ceil_steps(sensitivity, chosen.exponent))
    return _Sum(Stated(mechanism, "bounded sum", which, checked_unit(unit)), chosen, low, high, instead)


def _sum_stated(**arguments: Any) -> Stated:
    return _prepared_sum(**arguments).stated


@release_function(_sum_stated)
def bounded_sum(
    data: object,
    *,
    lower: Exact,
    upper: Exact,
    adjacency: Adjacency,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    grid: Exact | None = None,
    missing: Exact | Rule = DROP,
    unit: str = ROW,
) -> Released:
    """The sum of the records clipped to [lower, upper], with discrete noise on a fixed grid.

    Sensitivity: max(|lower|, |upper|) under ADD_REMOVE. Under REPLACE it is upper - lower, or more where 0 lies
    outside the bounds: a value that is missing, NaN or no number is left out, and a record that becomes such a
    one moves the sum by its whole value: max(upper, 0) - min(lower, 0). With ``missing=m`` it counts as m,
    clipped, and the sensitivity is upper - lower. All in grid steps, rounded up.

    ``scale`` and ``sigma`` are in the data's units. The grid is a power of two, by default about a
    hundredth of the smaller of noise and sensitivity; on a grid of 1 or coarser the result is an integer.

    >>> ages = [34, 51, 29]
    >>> bounded_sum(ages, lower=0, upper=100, adjacency=ADD_REMOVE, scale=200).mechanism
    DiscreteLaplace(scale=200.0, sensitivity=100)
    """
    plan = _prepared_sum(
        lower=lower, upper=upper, adjacency=adjacency, scale=scale, sigma=sigma, grid=grid, missing=missing, unit=unit
    )
    records = column.numeric("data", data, plan.missing)
    inside = range_of(plan.low, plan.high, integers=records.dtype.kind != "f")
    onto = plan.noise.exponent
    exact = grids.rescaled(_exact_sum(records, inside), inside.exponent, onto)
    return plan.stated.released(_value(plan.noise.add(exact), onto))


@dataclass(frozen=True, slots=True)
class _Mean:
    """A mean as its arguments state it: a sum of distances from the middle, and perhaps a noisy count."""

    stated: Stated
    noise: Additive
    counting: Additive | None
    low: Fraction
    high: Fraction
    missing: float | Rule


def _prepared_mean(
    *,
    lower: Exact,
    upper: Exact,
    adjacency: Adjacency,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    count_scale: Exact | None = None,
    count_sigma: Exact | None = None,
    grid: Exact | None = None,
    missing: Exact | Rule = DROP,
    unit: str = ROW,
) -> _Mean:
    chosen, which = additive(scale, sigma), checked_adjacency(adjacency)
    low, high = checked_bounds(lower, upper)
    instead = missing_value(missing, low, high)
    counted = count_scale is not None or count_sigma is not None
    if which is REPLACE and counted and instead is not DROP:
        required = "left out under REPLACE where no record is left out: the count is public"
        raise InvalidArgument("count_scale, count_sigma", required, (count_scale, count_sigma))
    counting = additive(count_scale, count_sigma, "count_") if which is ADD_REMOVE or counted else None
    sensitivity = (high - low) / 2 if which is ADD_REMOVE else high - low
    chosen = grid_for(chosen, sensitivity, grid)
    mechanism = chosen.mechanism(grids.ceil_steps(sensitivity, chosen.exponent))
    plan = mechanism if counting is None else mechanism + counting.mechanism(1)
    return _Mean(Stated(plan, "mean", which, checked_unit(unit)), chosen, counting, low, high, instead)


def _mean_stated(**arguments: Any) -> Stated:
    return _prepared_mean(**arguments).stated


@release_function(_mean_stated)
def mean(
    data: object,
    *,
    lower: Exact,
    upper: Exact,
    adjacency: Adjacency,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    count_scale: Exact | None = None,
    count_sigma: Exact | None = None,
    grid: Exact | None = None,
    missing: Exact | Rule = DROP,
    unit: str = ROW,
) -> Released:
    """The mean of the records clipped to [lower, upper]; ``scale`` or ``sigma`` is for the noise on the sum.

    What is added up are the distances from the middle of the range, to which a record that is left out (its value
    is missing, NaN or no number) adds nothing. Under ADD_REMOVE the sensitivity is half the width, and the sum
    is divided by a noisy count of the others (``count_scale`` or ``count_sigma``), which is paid for too. Under
    REPLACE the sensitivity is the width, and how many are left out is private: with ``count_scale`` or
    ``count_sigma`` the sum is divided by a noisy count of the others; without, by the number of all records,
    which is public, and a record that is left out counts as the middle. With ``missing=m`` it counts as m,
    clipped. The result is clipped to the bounds; the mean of nothing is their middle, and noise.

    >>> from dptally.law.adjacency import REPLACE
    >>> mean([1.0, 2.0, 4.0], lower=0, upper=4, adjacency=REPLACE, sigma=8, grid=1).mechanism
    DiscreteGaussian(sigma=8.0, sensitivity=4)
    """
    plan = _prepared_mean(
        lower=lower, upper=upper, adjacency=adjacency, scale=scale, sigma=sigma, count_scale=count_scale,
        count_sigma=count_sigma, grid=grid, missing=missing, unit=unit,
    )  # fmt: skip
    records = column.numeric("data", data, plan.missing)
    inside = range_of(plan.low, plan.high, integers=records.dtype.kind != "f")
    # distances from the middle of the range, in half steps so that the middle is one of them
    exponent = inside.exponent - 1
    centred = 2 * _exact_sum(records, inside) - (inside.lower + inside.upper) * len(records)
    noisy = plan.noise.add(grids.rescaled(centred, exponent, plan.noise.exponent))
    total = noisy * parameters.two_to(plan.noise.exponent)
    number = column.length("data", data) if plan.counting is None else plan.counting.add(len(records))
    middle = (inside.lower + inside.upper) * parameters.two_to(exponent)
    value = min(max(middle + total / max(1, number), plan.low), plan.high)
    return plan.stated.released(float(value))
