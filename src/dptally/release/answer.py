"""Noise for the answer of any other query, on a grid that does not depend on it."""

from __future__ import annotations

import numpy as np

from dptally import noise
from dptally.errors import InvalidType
from dptally.noise import grid as grids
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release.additive import additive
from dptally.release.released import Released

__all__ = ["answer"]


def answer(
    value: float,
    *,
    sensitivity: Exact,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    grid: Exact | None = None,
) -> Released:
    """A number computed from the data elsewhere, rounded to a grid and released with discrete noise on it.

    ``sensitivity`` is the caller's statement of how far one record can move the number as it was computed,
    float rounding included. In grid steps it becomes ceil(sensitivity / grid): see :mod:`dptally.noise.grid`.

    >>> answer(0.3, sensitivity=1, scale=4, grid=0.25).mechanism
    DiscreteLaplace(scale=16.0, sensitivity=4)
    """
    chosen = additive(scale, sigma)
    reach = parameters.positive("sensitivity", sensitivity)
    step = noise.natural_grid(min(chosen.parameter, reach)) if grid is None else grid
    chosen = chosen.on_grid(parameters.power_of_two("grid", step))
    mechanism = chosen.mechanism(noise.grid_sensitivity(reach, step))
    if isinstance(value, (bool, str)) or np.ndim(value) != 0:
        raise InvalidType("value", "one real number", type(value).__name__)
    noisy = chosen.add(int(grids.to_grid(value, chosen.exponent)))
    return Released(float(grids.from_grid(noisy, chosen.exponent)), mechanism, "answer")
