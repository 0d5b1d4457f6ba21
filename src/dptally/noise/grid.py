"""Laplace and Gaussian noise for real answers, on a grid of powers of two that does not depend on the data.

The answer is rounded to the grid first, then an integer number of grid steps is added. Both are exact. So the
released number is a multiple of the grid whatever the data were: its lowest bits carry nothing [Mironov 2012;
Haney et al. 2022]. What accounts for it is the discrete mechanism in units of the grid, with sensitivity
ceil(sensitivity / grid): rounding is floor(x / grid + 1/2), and |x - y| <= k implies |floor(x + 1/2) -
floor(y + 1/2)| <= k for every integer k.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidType
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.noise.samplers import discrete_gaussian, discrete_laplace
from dptally.noise.source import SYSTEM, ByteSource

__all__ = [
    "ceil_steps",
    "floor_steps",
    "from_grid",
    "grid_gaussian",
    "grid_laplace",
    "grid_sensitivity",
    "halved_up",
    "natural_grid",
    "nearest_steps",
    "rescaled",
    "to_grid",
]

_NARROW = float(1 << 61)
_EXACT = float(1 << 53)  # up to here every integer is a double
_HALF_WIDTH = 1 << 61  # two of these can be added in 64 bits


def natural_grid(scale: Exact) -> Fraction:
    """The largest power of two of at most scale / 64: fine beside the noise, chosen by the noise alone.

    >>> natural_grid(5)
    Fraction(1, 16)
    """
    ratio = parameters.positive("scale", scale) / 64
    exponent = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    return parameters.two_to(exponent if parameters.two_to(exponent) <= ratio else exponent - 1)


def grid_sensitivity(sensitivity: Exact, grid: Exact) -> int:
    """How many grid steps the rounded answer of one query can move: ceil(sensitivity / grid).

    >>> grid_sensitivity(1, 0.25), grid_sensitivity(0.3, 0.25)
    (4, 2)
    """
    return ceil_steps(parameters.positive("sensitivity", sensitivity), parameters.power_of_two("grid", grid))


def floor_steps(value: Fraction, exponent: int) -> int:
    """floor(value / 2^exponent)."""
    top, bottom = value.numerator, value.denominator
    return (top << -exponent) // bottom if exponent < 0 else top // (bottom << exponent)


def ceil_steps(value: Fraction, exponent: int) -> int:
    """ceil(value / 2^exponent)."""
    return -floor_steps(-value, exponent)


def rescaled(steps: int, exponent: int, onto: int) -> int:
    """Steps of 2^exponent in steps of 2^onto, rounded as floor(x + 1/2)."""
    shift = onto - exponent
    return steps << -shift if shift <= 0 else (steps + (1 << (shift - 1))) >> shift


def to_grid(values: object, exponent: int) -> NDArray[Any]:
    """floor(x / 2^exponent + 1/2) for each value, exactly; Python integers where 64 bits may not do."""
    array = _as_array(values)
    if array.dtype.kind == "O":
        return _to_grid_wide(array, exponent)
    if array.dtype.kind not in "iuf":
        raise InvalidType("values", "real numbers", array.dtype)
    array = array.astype(np.float64) if array.dtype.kind == "f" else array
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InvalidArgument("values", "finite", "a value that is not")
    if array.dtype.kind == "f":
        with np.errstate(over="ignore", under="ignore"):
            steps = np.ldexp(array, -exponent)  # exact, unless it overflows (caught) or is far below 1/2
        if not (np.abs(steps) < _NARROW).all():
            return _to_grid_wide(array, exponent)
        return nearest_steps(steps)
    if exponent == 0 and array.dtype != np.uint64:
        return array.astype(np.int64)
    return _to_grid_wide(array, exponent)


def _as_array(values: object) -> NDArray[Any]:
    """The values as numpy takes them, but for Python integers beyond what a double or 64 bits hold exactly: one of
    them makes an array of Python numbers, which nothing rounds.
    """
    array = np.asarray(values)
    if hasattr(values, "__array__") and array.dtype.kind != "O":
        return array
    if array.dtype.kind == "f" and array.size and not (np.abs(array) < _EXACT).all():
        array = np.asarray(values, dtype=object)  # among floats numpy rounds integers, and tells nobody
    if array.dtype.kind != "O":
        return array
    numbers = [x.item() if isinstance(x, np.generic) else x for x in array.ravel().tolist()]
    if not all(isinstance(x, (int, float, Fraction)) and not isinstance(x, bool) for x in numbers):
        raise InvalidType("values", "real numbers", array.dtype)
    if not all(isinstance(x, (int, Fraction)) or math.isfinite(x) for x in numbers):
        raise InvalidArgument("values", "finite", "a value that is not")
    out = np.empty(len(numbers), dtype=object)
    out[:] = numbers
    return out.reshape(array.shape)


def nearest_steps(steps: Floats) -> NDArray[np.int64]:
    """floor(x + 1/2) for doubles of less than 2^61, exactly."""
    return halved_up(np.floor(steps + steps))  # doubling is exact


def halved_up(floors: Floats) -> NDArray[np.int64]:
    """floor(x + 1/2) = floor((floor(2 x) + 1) / 2) from floor(2 x)."""
    out = floors.astype(np.int64)
    out += 1
    out >>= 1
    return out


def _to_grid_wide(array: NDArray[Any], exponent: int) -> NDArray[Any]:
    step = parameters.two_to(exponent)
    flat = [math.floor(Fraction(x) / step + Fraction(1, 2)) for x in array.ravel().tolist()]
    out = np.empty(len(flat), dtype=object)
    out[:] = flat
    return out.reshape(array.shape)


def from_grid(units: Any, exponent: int) -> Any:
    """units * 2^exponent as the nearest double: a rounding of what is already private."""
    array = np.asarray(units)
    if array.dtype == object:
        flat = [_nearest_double(Fraction(x) * parameters.two_to(exponent)) for x in array.ravel().tolist()]
        return np.array(flat, dtype=np.float64).reshape(array.shape)
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(array.astype(np.float64), exponent)


def _nearest_double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@overload
def grid_laplace(values: float, scale: Exact, grid: Exact, *, _source: ByteSource = ...) -> float: ...
@overload
def grid_laplace(values: Floats, scale: Exact, grid: Exact, *, _source: ByteSource = ...) -> Floats: ...
def grid_laplace(values: Any, scale: Exact, grid: Exact, *, _source: ByteSource = SYSTEM) -> Any:
    """Round each value to the grid and add discrete Laplace noise on it; ``scale`` is in the values' units.

    Accounted for by DiscreteLaplace(scale / grid, sensitivity=ceil(sensitivity / grid)).

    >>> (grid_laplace(0.3, scale=2, grid=0.25) * 4).is_integer()
    True
    """
    exponent = parameters.power_of_two("grid", grid)
    ratio = parameters.positive("scale", scale) / parameters.two_to(exponent)
    units = to_grid(values, exponent)
    noise = discrete_laplace(ratio, units.size, _source=_source)
    return _noisy(units, noise, exponent)


@overload
def grid_gaussian(values: float, sigma: Exact, grid: Exact, *, _source: ByteSource = ...) -> float: ...
@overload
def grid_gaussian(values: Floats, sigma: Exact, grid: Exact, *, _source: ByteSource = ...) -> Floats: ...
def grid_gaussian(values: Any, sigma: Exact, grid: Exact, *, _source: ByteSource = SYSTEM) -> Any:
    """Round each value to the grid and add discrete Gaussian noise on it; ``sigma`` is in the values' units.

    Accounted for by DiscreteGaussian(sigma / grid, sensitivity=ceil(sensitivity / grid)).

    >>> (grid_gaussian(0.3, sigma=2, grid=0.25) * 4).is_integer()
    True
    """
    exponent = parameters.power_of_two("grid", grid)
    ratio = parameters.positive("sigma", sigma) / parameters.two_to(exponent)
    units = to_grid(values, exponent)
    noise = discrete_gaussian(ratio, units.size, _source=_source)
    return _noisy(units, noise, exponent)


def _noisy(units: NDArray[Any], noise: NDArray[Any], exponent: int) -> Any:
    if not (_is_narrow(units) and _is_narrow(noise)):
        units, noise = units.astype(object), noise.astype(object)
    out = from_grid(units + noise.reshape(units.shape), exponent)
    return float(out) if np.ndim(out) == 0 else out


def _is_narrow(steps: NDArray[Any]) -> bool:
    """Whether every one of them is so far inside 64 bits that a sum of two cannot wrap."""
    return steps.dtype != object and not bool(((steps >= _HALF_WIDTH) | (steps <= -_HALF_WIDTH)).any())
