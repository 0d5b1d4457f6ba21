"""Directed rounding: the direction is in the name.

+, -, *, / and sqrt are correctly rounded, so one step of nextafter is a proof. exp, log, erfc and their kin
are not: numpy promises FUNCTION_ULPS for its own, the C library stays within one, and every caller states the
number of ulps it allows.
"""

from __future__ import annotations

import math
from typing import overload

import numpy as np

from dptally.numerics.arrays import Floats as Floats

EPS = float(np.finfo(np.float64).eps)  # 2^-52: one ulp of 1.0, twice the unit round-off
TINY = float(np.finfo(np.float64).tiny)  # smallest normal number
FUNCTION_ULPS = 4.0  # what numpy promises of exp, log, expm1, log1p, sin and cos; tested by assumptions.py
SMALLEST = 5e-324  # smallest subnormal: the absolute error that underflow can add


@overload
def up(x: float, ulps: float = ...) -> float: ...
@overload
def up(x: Floats, ulps: float = ...) -> Floats: ...
def up(x: float | Floats, ulps: float = 1.0) -> float | Floats:
    """An upper bound of a quantity whose computed value ``x`` is within ``ulps`` units in the last place."""
    return _moved(x, ulps, math.inf)


@overload
def down(x: float, ulps: float = ...) -> float: ...
@overload
def down(x: Floats, ulps: float = ...) -> Floats: ...
def down(x: float | Floats, ulps: float = 1.0) -> float | Floats:
    """A lower bound of a quantity whose computed value ``x`` is within ``ulps`` units in the last place."""
    return _moved(x, ulps, -math.inf)


def _moved(x: float | Floats, ulps: float, towards: float) -> float | Floats:
    """x moved outwards; beyond the largest double lies infinity, which is a bound too."""
    sign = math.copysign(1.0, towards)
    if not isinstance(x, np.ndarray):
        number = float(x)
        step = abs(number) * (EPS * ulps) if math.isfinite(number) else 0.0
        return math.nextafter(number + sign * step, towards)
    with np.errstate(over="ignore"):
        steps = np.where(np.isfinite(x), np.abs(x) * (EPS * ulps), 0.0)
        return np.asarray(np.nextafter(x + sign * steps, towards), dtype=np.float64)
