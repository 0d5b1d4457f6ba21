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

from dptally import noise
from dptally.errors import InvalidArgument
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.noise import grid as grids
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.additive import Additive, additive
from dptally.release.released import Released

__all__ = ["bounded_sum", "mean"]

CHUNK = 1 << 16
_HALF = 26  # a record of up to 53 bits is split in two halves, so that 2^36 of them can be added in 64 bits
_WIDEST = 1 << 62


@dataclass(frozen=True, slots=True)
class _Range:
    """The records' range in steps of 2^exponent: lower <= step <= upper, inside what the caller declared."""

    lower: int
    upper: int
    exponent: int


def _bounds(lower: Exact, upper: Exact) -> tuple[Fraction, Fraction]:
    low, high = parameters.rational("lower", lower), parameters.rational("upper", upper)
    if not low < high:
        raise InvalidArgument("lower, upper", "ordered (lower < upper)", (lower, upper))
    return low, high


def _range(low: Fraction, high: Fraction, integers: bool) -> _Range:
    """The finest grid on which the bounds need no more than 53 bits; steps of 1 for a column of integers.

    It serves to add exactly. The account and the grid of the noise come from the declared bounds alone, which
    contain this range.
    """
    largest = max(abs(low), abs(high))
    exponent = 0 if integers else largest.numerator.bit_length() - largest.denominator.bit_length() - 52
    inside = _Range(grids.ceil_steps(low, exponent), grids.floor_steps(high, exponent), exponent)
    if not inside.lower < inside.upper:
        raise InvalidArgument("lower, upper", "wide enough to hold two integers", (low, high))
    if not (inside.lower > -_WIDEST and inside.upper < _WIDEST):
        raise InvalidArgument("lower, upper", "below 2^62 for a column of integers", (low, high))
    return inside


def _exact_sum(records: NDArray[Any], inside: _Range) -> int:
    """The sum of the clipped records in grid steps: an exact integer of any width."""
    total = 0
    for start in range(0, len(records), CHUNK):
        steps = _steps(records[start : start + CHUNK], inside)
        high = steps >> _HALF
        total += (int(high.sum()) << _HALF) + int((steps - (high << _HALF)).sum())
    return total


def _steps(records: NDArray[Any], inside: _Range) -> NDArray[np.int64]:
    if records.dtype.kind == "f":
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(records.astype(np.float64), -inside.exponent)
        # bounds of 53 bits are exact doubles
        return grids.nearest_steps(np.minimum(np.maximum(scaled, inside.lower), inside.upper))
    if records.dtype == np.uint64:
        records = np.minimum(records, np.uint64(_WIDEST))
    return np.minimum(np.maximum(records.astype(np.int64), inside.lower), inside.upper)


def _adjacency(adjacency: object) -> Adjacency:
    if not isinstance(adjacency, Adjacency):
        raise InvalidArgument("adjacency", "ADD_REMOVE or REPLACE: it changes the sensitivity", adjacency)
    return adjacency


def _grid_for(chosen: Additive, sensitivity: Fraction, grid: Exact | None) -> Additive:
    """The noise on the grid that was asked for, or on one fine beside both the noise and the sensitivity."""
    step = noise.natural_grid(min(chosen.parameter, sensitivity)) if grid is None else grid
    return chosen.on_grid(parameters.power_of_two("grid", step))


def _value(steps: int, exponent: int) -> int | float:
    return steps << exponent if exponent >= 0 else float(grids.from_grid(steps, exponent))


def bounded_sum(
    data: object,
    *,
    lower: Exact,
    upper: Exact,
    adjacency: Adjacency,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    grid: Exact | None = None,
) -> Released:
    """The sum of the records clipped to [lower, upper], with discrete noise on a fixed grid.

    Sensitivity: max(|lower|, |upper|) under ADD_REMOVE, upper - lower under REPLACE, in grid steps rounded
    up. ``scale`` and ``sigma`` are in the data's units. The grid is a power of two, by default about a
    hundredth of the smaller of noise and sensitivity; on a grid of 1 or coarser the result is an integer.

    >>> ages = [34, 51, 29]
    >>> bounded_sum(ages, lower=0, upper=100, adjacency=ADD_REMOVE, scale=200).mechanism
    DiscreteLaplace(scale=200.0, sensitivity=100)
    """
    chosen, which = additive(scale, sigma), _adjacency(adjacency)
    low, high = _bounds(lower, upper)
    sensitivity = max(abs(low), abs(high)) if which is ADD_REMOVE else high - low
    chosen = _grid_for(chosen, sensitivity, grid)
    mechanism = chosen.mechanism(grids.ceil_steps(sensitivity, chosen.exponent))
    records = column.numeric("data", data)
    inside = _range(low, high, integers=records.dtype.kind != "f")
    exact = grids.rescaled(_exact_sum(records, inside), inside.exponent, chosen.exponent)
    return Released(_value(chosen.add(exact), chosen.exponent), mechanism, "bounded sum", which)


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
) -> Released:
    """The mean of the records clipped to [lower, upper]; ``scale`` or ``sigma`` is for the noise on the sum.

    Under REPLACE the number of records n is public: a noisy sum of sensitivity upper - lower, divided by n.
    Under ADD_REMOVE it is not: a noisy sum of the distances from the middle (sensitivity half the width),
    divided by a noisy count (``count_scale`` or ``count_sigma``); both are paid for. The result is clipped to
    the bounds.

    >>> from dptally.law.adjacency import REPLACE
    >>> mean([1.0, 2.0, 4.0], lower=0, upper=4, adjacency=REPLACE, sigma=8, grid=1).mechanism
    DiscreteGaussian(sigma=8.0, sensitivity=4)
    """
    chosen, which = additive(scale, sigma), _adjacency(adjacency)
    counting = None
    if which is ADD_REMOVE:
        counting = additive(count_scale, count_sigma, "count_")
    elif count_scale is not None or count_sigma is not None:
        required = "left out under REPLACE: the count is public"
        raise InvalidArgument("count_scale, count_sigma", required, (count_scale, count_sigma))
    low, high = _bounds(lower, upper)
    sensitivity = (high - low) / 2 if which is ADD_REMOVE else high - low
    chosen = _grid_for(chosen, sensitivity, grid)
    mechanism = chosen.mechanism(grids.ceil_steps(sensitivity, chosen.exponent))
    plan = mechanism if counting is None else mechanism + counting.mechanism(1)
    records = column.numeric("data", data)
    inside = _range(low, high, integers=records.dtype.kind != "f")
    # distances from the middle of the range, in half steps so that the middle is one of them
    exponent = inside.exponent - 1
    centred = 2 * _exact_sum(records, inside) - (inside.lower + inside.upper) * len(records)
    noisy = chosen.add(grids.rescaled(centred, exponent, chosen.exponent))
    total = noisy * parameters.two_to(chosen.exponent)
    number = len(records) if counting is None else max(1, counting.add(len(records)))
    middle = (inside.lower + inside.upper) * parameters.two_to(exponent)
    return Released(float(min(max(middle + total / number, low), high)), plan, "mean", which)
