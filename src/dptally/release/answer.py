"""Noise for the answer of any other query, on a grid that does not depend on it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dptally import noise
from dptally.errors import InvalidType
from dptally.noise import grid as grids
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.additive import Additive, additive
from dptally.release.function import Stated, checked_unit, release_function
from dptally.release.released import ROW, Released
from dptally.release.selection import finite

__all__ = ["answer"]


def _prepared(
    *,
    sensitivity: Exact,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    grid: Exact | None = None,
    missing: Exact = 0,
    unit: str = ROW,
) -> tuple[Stated, Additive, Fraction]:
    chosen = additive(scale, sigma)
    reach = parameters.positive("sensitivity", sensitivity)
    step = noise.natural_grid(min(chosen.parameter, reach)) if grid is None else grid
    chosen = chosen.on_grid(parameters.power_of_two("grid", step))
    mechanism = chosen.mechanism(noise.grid_sensitivity(reach, step))
    return Stated(mechanism, "answer", None, checked_unit(unit)), chosen, parameters.rational("missing", missing)


def _stated(**arguments: Any) -> Stated:
    return _prepared(**arguments)[0]


@release_function(_stated, data="value")
def answer(
    value: float | None,
    *,
    sensitivity: Exact,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    grid: Exact | None = None,
    missing: Exact = 0,
    unit: str = ROW,
) -> Released:
    """A number computed from the data elsewhere, rounded to a grid and released with discrete noise on it.

    ``sensitivity`` is the caller's statement of how far one record can move the number as it was computed,
    float rounding included. In grid steps it becomes ceil(sensitivity / grid): see :mod:`dptally.noise.grid`.
    None, NaN and infinities (the mean of nothing) count as ``missing``, and the statement is for them too.

    >>> answer(0.3, sensitivity=1, scale=4, grid=0.25).mechanism
    DiscreteLaplace(scale=16.0, sensitivity=4)
    """
    stated, chosen, instead = _prepared(
        sensitivity=sensitivity, scale=scale, sigma=sigma, grid=grid, missing=missing, unit=unit
    )
    exact = _exact(value, instead)
    noisy = chosen.add(math.floor(exact / parameters.two_to(chosen.exponent) + Fraction(1, 2)))
    return stated.released(float(grids.from_grid(noisy, chosen.exponent)))


def _exact(value: Any, missing: Fraction) -> Fraction:
    """The number as it is; ``missing`` where it is no finite number. Only its type can be refused."""
    if value is None:
        return missing
    kind = type(value)  # not what the value says of itself
    if issubclass(kind, np.ndarray) and value.ndim == 0:
        return _exact(value[()], missing)
    if issubclass(kind, (bool, np.bool_)) or not issubclass(kind, (int, float, Fraction, np.integer, np.floating)):
        raise InvalidType("value", "one real number", kind.__name__)
    if issubclass(kind, np.longdouble):  # pyright: ignore[reportArgumentType]
        value = column.guarded(float, math.nan)(value)
    return finite(value, missing)
