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
from dptally.law.adjacency import ADD_REMOVE, REPLACE, Adjacency
from dptally.noise import grid as grids
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.additive import Additive, additive
from dptally.release.column import DROP, Rule
from dptally.release.function import Stated, checked_unit, release_function
from dptally.release.released import ROW, Released

__all__ = ["bounded_sum", "mean"]

CHUNK = 1 << 14  # the working arrays stay in the processor's cache
_TOGETHER = 512  # records of up to 53 bits that can be added in 64
_NARROW = 1 << 51  # whole bounds up to here: integers and doubles are then clipped to the same numbers


@dataclass(frozen=True, slots=True)
class _Range:
    """The records' range in steps of 2^exponent: lower <= step <= upper, inside what the caller declared."""

    lower: int
    upper: int
    exponent: int
    integers: bool = False  # whether records of integers may be added as they are


def _bounds(lower: Exact, upper: Exact) -> tuple[Fraction, Fraction]:
    low, high = parameters.rational("lower", lower), parameters.rational("upper", upper)
    if not low < high:
        raise InvalidArgument("lower, upper", "ordered (lower < upper)", (lower, upper))
    return low, high


def _range(low: Fraction, high: Fraction, integers: bool) -> _Range:
    """The finest grid on which the bounds need no more than 53 bits; steps of 1 for a column of integers
    between whole bounds.

    It serves to add exactly. The account and the grid of the noise come from the declared bounds alone, which
    contain this range. A column of integers gives the sum that the same column of doubles would give: one
    missing value turns the one into the other in many libraries.
    """
    largest = max(abs(low), abs(high))
    whole = low.denominator == high.denominator == 1 and largest <= _NARROW
    if integers and whole:
        return _Range(int(low), int(high), 0, True)
    exponent = largest.numerator.bit_length() - largest.denominator.bit_length() - 52
    return _Range(grids.ceil_steps(low, exponent), grids.floor_steps(high, exponent), exponent)


def _exact_sum(records: NDArray[Any], inside: _Range) -> int:
    """The sum of the clipped records in grid steps: an exact integer of any width."""
    total = 0
    for start in range(0, len(records), CHUNK):
        steps = _steps(records[start : start + CHUNK], inside)
        total += sum(np.add.reduceat(steps, np.arange(0, len(steps), _TOGETHER)).tolist())
    return total


def _steps(records: NDArray[Any], inside: _Range) -> NDArray[np.int64]:
    if inside.integers:
        if records.dtype == np.uint64:
            records = np.minimum(records, np.uint64(_NARROW))
        return np.minimum(np.maximum(records.astype(np.int64), inside.lower), inside.upper)
    scaled = _scaled(records, -inside.exponent)
    # bounds of 53 bits are exact doubles
    np.minimum(np.maximum(scaled, inside.lower, out=scaled), inside.upper, out=scaled)
    return grids.nearest_steps(scaled)


def _scaled(records: NDArray[Any], exponent: int) -> NDArray[np.float64]:
    """records * 2^exponent, rounded only where the product is subnormal: far below half a step."""
    with np.errstate(over="ignore", under="ignore"):
        if abs(exponent) <= 1000:  # a power of two that is a double: one multiplication, which numpy does in vectors
            product: NDArray[np.float64] = np.multiply(records, 2.0**exponent, dtype=np.float64)
            return product
        return np.ldexp(records.astype(np.float64), exponent)


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


def _missing(missing: object, low: Fraction, high: Fraction) -> float | Rule:
    """What a missing value counts as, inside the bounds; DROP to leave it out."""
    if missing is DROP:
        return DROP
    value = parameters.rational("missing", missing)
    return float(min(max(value, low), high))


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
    chosen, which = additive(scale, sigma), _adjacency(adjacency)
    low, high = _bounds(lower, upper)
    instead = _missing(missing, low, high)
    if which is ADD_REMOVE:
        sensitivity = max(abs(low), abs(high))
    elif instead is DROP:  # a record may become one that is left out, and count as 0
        sensitivity = max(high, Fraction(0)) - min(low, Fraction(0))
    else:
        sensitivity = high - low
    chosen = _grid_for(chosen, sensitivity, grid)
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
    inside = _range(plan.low, plan.high, integers=records.dtype.kind != "f")
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
    chosen, which = additive(scale, sigma), _adjacency(adjacency)
    low, high = _bounds(lower, upper)
    instead = _missing(missing, low, high)
    counted = count_scale is not None or count_sigma is not None
    if which is REPLACE and counted and instead is not DROP:
        required = "left out under REPLACE where no record is left out: the count is public"
        raise InvalidArgument("count_scale, count_sigma", required, (count_scale, count_sigma))
    counting = additive(count_scale, count_sigma, "count_") if which is ADD_REMOVE or counted else None
    sensitivity = (high - low) / 2 if which is ADD_REMOVE else high - low
    chosen = _grid_for(chosen, sensitivity, grid)
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
    inside = _range(plan.low, plan.high, integers=records.dtype.kind != "f")
    # distances from the middle of the range, in half steps so that the middle is one of them
    exponent = inside.exponent - 1
    centred = 2 * _exact_sum(records, inside) - (inside.lower + inside.upper) * len(records)
    noisy = plan.noise.add(grids.rescaled(centred, exponent, plan.noise.exponent))
    total = noisy * parameters.two_to(plan.noise.exponent)
    number = column.length("data", data) if plan.counting is None else plan.counting.add(len(records))
    middle = (inside.lower + inside.upper) * parameters.two_to(exponent)
    value = min(max(middle + total / max(1, number), plan.low), plan.high)
    return plan.stated.released(float(value))
