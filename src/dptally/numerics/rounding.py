"""Directed rounding: the direction is in the name.

+, -, *, / and sqrt are correctly rounded, so one step of nextafter is a proof. exp, log, erfc and their kin are not:
numpy and the C library stay within a few units in the last place, and every caller states the number of ulps it allows.
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import NDArray

EPS = float(np.finfo(np.float64).eps)  # 2^-52: one ulp of 1.0, twice the unit round-off
TINY = float(np.finfo(np.float64).tiny)  # smallest normal number
SMALLEST = 5e-324  # smallest subnormal: the absolute error that underflow can add

Floats = NDArray[np.float64]


@overload
def up(x: float, ulps: float = ...) -> float: ...
@overload
def up(x: Floats, ulps: float = ...) -> Floats: ...
def up(x: float | Floats, ulps: float = 1.0) -> float | Floats:
    """An upper bound of a quantity whose computed value ``x`` is within ``ulps`` units in the last place."""
    step = np.where(np.isfinite(x), np.abs(x) * (EPS * ulps), 0.0)
    out = np.nextafter(x + step, np.inf)
    return out if isinstance(x, np.ndarray) else float(out)


@overload
def down(x: float, ulps: float = ...) -> float: ...
@overload
def down(x: Floats, ulps: float = ...) -> Floats: ...
def down(x: float | Floats, ulps: float = 1.0) -> float | Floats:
    """A lower bound of a quantity whose computed value ``x`` is within ``ulps`` units in the last place."""
    step = np.where(np.isfinite(x), np.abs(x) * (EPS * ulps), 0.0)
    out = np.nextafter(x - step, -np.inf)
    return out if isinstance(x, np.ndarray) else float(out)
