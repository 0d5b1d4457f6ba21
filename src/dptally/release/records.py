"""Records of bounded numbers as integers: clipped, and rounded to a fine grid that the bounds alone fix."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dptally import noise
from dptally.errors import InvalidArgument
from dptally.law.adjacency import Adjacency
from dptally.noise import grid as grids
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release.additive import Additive
from dptally.release.column import DROP, Rule

__all__ = ["Range", "checked_adjacency", "checked_bounds", "grid_for", "missing_value", "range_of", "steps_of"]

_NARROW = 1 << 51  # whole bounds up to here: integers and doubles are then clipped to the same numbers


@dataclass(frozen=True, slots=True)
class Range:
    """The records' range in steps of 2^exponent: lower <= step <= upper, inside what the caller declared."""

    lower: int
    upper: int
    exponent: int
    integers: bool = False  # whether records of integers may be added as they are


def checked_bounds(lower: Exact, upper: Exact) -> tuple[Fraction, Fraction]:
    low, high = parameters.rational("lower", lower), parameters.rational("upper", upper)
    if not low < high:
        raise InvalidArgument("lower, upper", "ordered (lower < upper)", (lower, upper))
    return low, high


def range_of(low: Fraction, high: Fraction, integers: bool) -> Range:
    """The finest grid on which the bounds need no more than 53 bits; steps of 1 for a column of integers
    between whole bounds.

    It serves to add exactly. The account and the grid of the noise come from the declared bounds alone, which
    contain this range. A column of integers gives the sum that the same column of doubles would give: one
    missing value turns the one into the other in many libraries.
    """
    largest = max(abs(low), abs(high))
    whole = low.denominator == high.denominator == 1 and largest <= _NARROW
    if integers and whole:
        return Range(int(low), int(high), 0, True)
    exponent = largest.numerator.bit_length() - largest.denominator.bit_length() - 52
    return Range(grids.ceil_steps(low, exponent), grids.floor_steps(high, exponent), exponent)


def steps_of(records: NDArray[Any], inside: Range) -> NDArray[np.int64]:
    if inside.integers:
        if records.dtype == np.uint64:
            records = np.minimum(records, np.uint64(_NARROW))
        return np.minimum(np.maximum(records.astype(np.int64), inside.lower), inside.upper)
    doubled = _scaled(records, 1 - inside.exponent)
    # bounds of 53 bits are exact doubles, and so are twice these
    np.clip(doubled, 2.0 * inside.lower, 2.0 * inside.upper, out=doubled)
    return grids.halved_up(np.floor(doubled, out=doubled))


def _scaled(records: NDArray[Any], exponent: int) -> NDArray[np.float64]:
    """records * 2^exponent, rounded only where the product is subnormal: far below half a step."""
    with np.errstate(over="ignore", under="ignore"):
        if abs(exponent) <= 1000:  # a power of two that is a double: one multiplication, which numpy does in vectors
            product: NDArray[np.float64] = np.multiply(records, 2.0**exponent, dtype=np.float64)
            return product
        return np.ldexp(records.astype(np.float64), exponent)


def checked_adjacency(adjacency: object) -> Adjacency:
    if not isinstance(adjacency, Adjacency):
        raise InvalidArgument("adjacency", "ADD_REMOVE or REPLACE: it changes the sensitivity", adjacency)
    return adjacency


def grid_for(chosen: Additive, sensitivity: Fraction, grid: Exact | None) -> Additive:
    """The noise on the grid that was asked for, or on one fine beside both the noise and the sensitivity."""
    step = noise.natural_grid(min(chosen.parameter, sensitivity)) if grid is None else grid
    return chosen.on_grid(parameters.power_of_two("grid", step))


def missing_value(missing: object, low: Fraction, high: Fraction) -> float | Rule:
    """What a missing value counts as, inside the bounds; DROP to leave it out."""
    if missing is DROP:
        return DROP
    value = parameters.rational("missing", missing)
    return float(min(max(value, low), high))
