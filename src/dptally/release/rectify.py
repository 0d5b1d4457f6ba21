"""Clip and rectify: from head Gaussian DP to Gaussian DP, around any algorithm with one number as its output."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from dptally import checks, mechanisms, noise
from dptally.errors import InvalidArgument, InvalidType
from dptally.noise import grid as grids
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release.released import Released

__all__ = ["clip_and_rectify"]

Data = TypeVar("Data")


def clip_and_rectify(
    algorithm: Callable[[Data], float],
    data: Data,
    *,
    lower: Exact,
    upper: Exact,
    head_epsilon: float,
    mu: float,
    grid: Exact | None = None,
) -> Released:
    """Run the algorithm, clip its output to [lower, upper], add Laplace noise of scale width / head_epsilon.

    If the algorithm is (head_epsilon, mu)-head Gaussian DP (its profile is that of mu-GDP for epsilon <=
    head_epsilon, the caller's statement), the result is mu-GDP.  [Liu et al. 2022, Thm. 4.4]: clipping, rounding
    and noise are post-processing, so the head stays; and whatever the data, the clipped number moves by at
    most the width, so the noise alone makes it head_epsilon-DP and the profile is zero beyond the head. The
    same holds on a grid: the noise is discrete Laplace of scale (width in grid steps) / head_epsilon. An
    output that is NaN counts as ``lower``.

    >>> clip_and_rectify(sum, [1.0, 2.0], lower=0, upper=8, head_epsilon=10.0, mu=1.0).mechanism
    GaussianDP(mu=1.0)
    """
    head = checks.positive("head_epsilon", head_epsilon)
    mechanism = mechanisms.GaussianDP(mu)
    low, high = parameters.rational("lower", lower), parameters.rational("upper", upper)
    if not low < high:
        raise InvalidArgument("lower, upper", "ordered (lower < upper)", (lower, upper))
    scale = (high - low) / Fraction(head)
    step = noise.natural_grid(min(scale, high - low)) if grid is None else grid
    exponent = parameters.power_of_two("grid", step)
    first, last = grids.ceil_steps(low, exponent), grids.floor_steps(high, exponent)
    if not first < last:
        raise InvalidArgument("grid", "fine enough for two of its points to lie between the bounds", grid)
    steps = _clipped_steps(algorithm(data), first, last, exponent)
    noisy = steps + noise.discrete_laplace((last - first) / Fraction(head))
    value = float(grids.from_grid(noisy, exponent))
    return Released(value, mechanism, "clip and rectify")


def _clipped_steps(output: Any, first: int, last: int, exponent: int) -> int:
    """The output in grid steps, inside the bounds. Its value never reaches an error message."""
    required = "a function that returns one real number"
    if isinstance(output, (bool, str, bytes)) or np.ndim(output) != 0:
        raise InvalidType("algorithm", required, type(output).__name__)
    try:
        number = float(output)
    except (TypeError, ValueError, OverflowError):
        raise InvalidType("algorithm", required, type(output).__name__) from None
    if math.isnan(number) or number == -math.inf:
        return first
    if number == math.inf:
        return last
    return min(max(int(grids.to_grid(number, exponent)), first), last)
