"""Argument checks, written positively so that NaN fails them, and naming what was wrong.

Each returns the value as the plain Python type that the library computes with.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dptally.errors import InvalidArgument, InvalidType
from dptally.numerics.arrays import Floats as Floats


def real(name: str, value: object) -> float:
    """A real number that is not NaN (infinities allowed). Booleans, strings and arrays are refused."""
    if isinstance(value, (bool, np.bool_, str, bytes, complex, np.complexfloating)) or value is None:
        raise InvalidType(name, "a real number", value)
    if isinstance(value, np.ndarray) and value.ndim > 0:
        raise InvalidType(name, "one real number, not an array", value)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidType(name, "a real number", value) from None
    except OverflowError:
        raise InvalidArgument(name, "a number that a double can hold (at most about 1.8e308)", value) from None
    if math.isnan(number):
        raise InvalidArgument(name, "a number", value)
    return number


def finite(name: str, value: object) -> float:
    number = real(name, value)
    if not math.isfinite(number):
        raise InvalidArgument(name, "finite", value)
    return number


def positive(name: str, value: object) -> float:
    """A finite number > 0."""
    number = real(name, value)
    if not 0 < number < math.inf:
        raise InvalidArgument(name, "positive and finite", value)
    return number


def nonnegative(name: str, value: object) -> float:
    """A finite number >= 0."""
    number = real(name, value)
    if not 0 <= number < math.inf:
        raise InvalidArgument(name, "at least 0 and finite", value)
    return abs(number)  # -0.0 becomes 0.0


def probability(name: str, value: object) -> float:
    """A number in [0, 1]."""
    number = real(name, value)
    if not 0 <= number <= 1:
        raise InvalidArgument(name, "in [0, 1]", value)
    return abs(number)


def open_probability(name: str, value: object) -> float:
    """A number in (0, 1)."""
    number = real(name, value)
    if not 0 < number < 1:
        raise InvalidArgument(name, "strictly between 0 and 1", value)
    return number


def order(name: str, value: object) -> float:
    """A Renyi order in [1, inf]."""
    number = real(name, value)
    if not number >= 1:
        raise InvalidArgument(name, "an order in [1, inf]", value)
    return number


def count(name: str, value: object, least: int = 0) -> int:
    """An integer >= least; floats are refused even when whole."""
    if isinstance(value, (bool, np.bool_)):
        raise InvalidType(name, f"an integer of at least {least}", value)
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidType(name, f"an integer of at least {least}", value) from None
    if number < least:
        raise InvalidArgument(name, f"an integer of at least {least}", value)
    return number


def written_count(name: str, value: object, least: int = 0) -> int:
    """The same, where people write 1e6: a whole float is the integer that it is."""
    whole = isinstance(value, (float, np.floating)) and value.is_integer()
    return count(name, int(value) if whole else value, least)  # type: ignore[call-overload]


def is_array(value: object) -> bool:
    """Whether a question was asked of several numbers: a list, a tuple or an array with at least one axis."""
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def items(name: str, required: str, value: Any) -> tuple[Any, ...]:
    """The members of a list, a tuple, an array or another iterable; text and single values are refused."""
    if isinstance(value, (str, bytes, bytearray)):
        raise InvalidType(name, required, value)
    try:
        return tuple(value)
    except TypeError:
        raise InvalidType(name, required, value) from None


def reals(name: str, value: object) -> Floats:
    """A float64 array (any shape, a scalar becomes 0-d) without NaN."""
    if isinstance(value, (bool, str, bytes)) or value is None:
        raise InvalidType(name, "real numbers", value)
    try:
        raw: NDArray[Any] = np.asarray(value)
    except ValueError:
        raise InvalidType(name, "a rectangular array of real numbers", value) from None
    if raw.dtype.kind not in "iuf":
        if raw.dtype.kind == "O" and raw.ndim == 0:
            return np.asarray(real(name, value), dtype=np.float64)
        raise InvalidType(name, "real numbers", value)
    array = raw.astype(np.float64)
    if np.isnan(array).any():
        raise InvalidArgument(name, "free of NaN", value)
    return array
