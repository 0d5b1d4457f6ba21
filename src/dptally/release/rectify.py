"""Clip and rectify: from head Gaussian DP to Gaussian DP, around any algorithm with one number as its output."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from dptally import checks, mechanisms, noise
from dptally.errors import InvalidArgument, InvalidType
from dptally.law.adjacency import Adjacency
from dptally.noise import grid as grids
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.function import Stated, checked_unit, release_function
from dptally.release.released import ROW, Released

__all__ = ["clip_and_rectify"]

Data = TypeVar("Data")


@dataclass(frozen=True, slots=True)
class _Rectifier:
    """Clipping and noise as the arguments state them, in grid steps."""

    stated: Stated
    first: int
    last: int
    exponent: int
    scale: Fraction


def _prepared(
    *,
    lower: Exact,
    upper: Exact,
    head_epsilon: float,
    mu: float,
    grid: Exact | None = None,
    adjacency: Adjacency | None = None,
    unit: str = ROW,
) -> _Rectifier:
    head = checks.positive("head_epsilon", head_epsilon)
    mechanism = mechanisms.GaussianDP(mu)
    low, high = parameters.rational("lower", lower), parameters.rational("upper", upper)
    if not low < high:
        raise InvalidArgument("lower, upper", "ordered (lower < upper)", (lower, upper))
    if adjacency is not None and not isinstance(adjacency, Adjacency):
        raise InvalidArgument(
            "adjacency", "ADD_REMOVE or REPLACE: that of your statement about the algorithm", adjacency
        )
    scale = (high - low) / Fraction(head)
    step = noise.natural_grid(min(scale, high - low)) if grid is None else grid
    exponent = parameters.power_of_two("grid", step)
    first, last = grids.ceil_steps(low, exponent), grids.floor_steps(high, exponent)
    if not first < last:
        raise InvalidArgument("grid", "fine enough for two of its points to lie between the bounds", grid)
    stated = Stated(mechanism, "clip and rectify", adjacency, checked_unit(unit))
    return _Rectifier(stated, first, last, exponent, (last - first) / Fraction(head))


def _stated(**arguments: Any) -> Stated:
    return _prepared(**arguments).stated


@release_function(_stated, secret=["algorithm"])
def clip_and_rectify(
    algorithm: Callable[[Data], float],
    data: Data,
    *,
    lower: Exact,
    upper: Exact,
    head_epsilon: float,
    mu: float,
    grid: Exact | None = None,
    adjacency: Adjacency | None = None,
    unit: str = ROW,
) -> Released:
    """Run the algorithm, clip its output to [lower, upper], add Laplace noise of scale width / head_epsilon.

    If the algorithm is (head_epsilon, mu)-head Gaussian DP (its profile is that of mu-GDP for epsilon <=
    head_epsilon, the caller's statement), the result is mu-GDP.  [Liu et al. 2022, Thm. 4.4]: clipping, rounding
    and noise are post-processing, so the head stays; and whatever the data, the clipped number moves by at
    most the width, so the noise alone makes it head_epsilon-DP and the profile is zero beyond the head. The
    same holds on a grid: the noise is discrete Laplace of scale (width in grid steps) / head_epsilon. An
    output that is NaN counts as ``lower``. ``adjacency`` is that of the caller's statement, None for both.

    >>> clip_and_rectify(sum, [1.0, 2.0], lower=0, upper=8, head_epsilon=10.0, mu=1.0).mechanism
    GaussianDP(mu=1.0)
    """
    plan = _prepared(
        lower=lower, upper=upper, head_epsilon=head_epsilon, mu=mu, grid=grid, adjacency=adjacency, unit=unit
    )
    steps = _clipped_steps(algorithm(data), plan.first, plan.last, plan.exponent)
    noisy = steps + noise.discrete_laplace(plan.scale)
    return plan.stated.released(float(grids.from_grid(noisy, plan.exponent)))


def _clipped_steps(output: Any, first: int, last: int, exponent: int) -> int:
    """The output in grid steps, inside the bounds. Its value never reaches an error message."""
    required, kind = "a function that returns one real number", type(output)
    if issubclass(kind, (bool, str, bytes)) or column.guarded(np.ndim, 0)(output) != 0 or not _is_number(kind):
        raise InvalidType("algorithm", required, kind.__name__)
    number = column.guarded(_as_double, math.nan)(output)
    if math.isnan(number) or number == -math.inf:
        return first
    if number == math.inf:
        return last
    return min(max(int(grids.to_grid(number, exponent)), first), last)


def _is_number(kind: type) -> bool:
    return hasattr(kind, "__float__") or hasattr(kind, "__index__")


def _as_double(output: Any) -> float:
    try:
        return float(output)
    except OverflowError:  # an integer beyond every double
        return math.inf if output > 0 else -math.inf
