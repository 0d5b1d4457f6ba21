"""Columns of data as numpy vectors, without a copy where numpy's own protocol needs none.

Lists, numpy vectors, pandas and polars series and Arrow arrays are accepted. Reading is total: whether there is
an error depends on what kind of thing a column is (its type, its dimensions), never on the values in it, for one
record more or less would then be seen for certain. A value that is missing, or that is not of the kind that is
asked for, follows a rule that was chosen before the data were looked at. So does a value whose own methods raise
(:func:`guarded`); and each value is compared with what was declared alone, never with another record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dptally.errors import InvalidArgument, InvalidType

__all__ = [
    "DROP",
    "OTHER",
    "Rule",
    "bits",
    "categorical",
    "declared",
    "flags",
    "guarded",
    "length",
    "numbers",
    "numeric",
    "place_of_missing",
    "vector",
]

Vector = NDArray[Any]
T = TypeVar("T")

OTHER = "other"  # the category that undeclared values fall into where it is declared


class Rule(Enum):
    """DROP: a missing or foreign value is left out."""

    DROP = "drop"

    def __repr__(self) -> str:
        return self.name


DROP = Rule.DROP


def guarded(read: Callable[[Any], T], foreign: T) -> Callable[[Any], T]:
    """How the value of a record is read: what ``read`` makes of it, and ``foreign`` where that raises anything.

    Values are objects of anybody's classes: their hash, comparisons and conversions are code that may raise.
    """

    def reading(value: Any) -> T:
        try:
            return read(value)
        except Exception:
            return foreign

    return reading


def vector(name: str, data: object) -> Vector:
    """A vector of anything, perhaps empty. What is not a typed column is taken value by value."""
    if isinstance(data, (str, bytes, dict, set, frozenset)) or not hasattr(data, "__len__"):
        raise InvalidType(name, "a list, a vector, a pandas, polars or Arrow column", type(data).__name__)
    if isinstance(data, np.ma.MaskedArray):  # numpy would bring the hidden values back
        raise InvalidType(name, "a column without a mask", "a masked one")
    if not hasattr(data, "__array__"):
        if not isinstance(data, Iterable):
            raise InvalidType(name, "a list, a vector, a pandas, polars or Arrow column", type(data).__name__)
        return np.fromiter(data, dtype=object, count=len(data))  # type: ignore[arg-type]
    array = np.asarray(data)
    if array.ndim != 1:
        raise InvalidType(name, "one column (one dimension)", "another shape")
    return array


def length(name: str, data: object) -> int:
    """The number of records."""
    return len(vector(name, data))


def numeric(name: str, data: object, missing: float | Rule = DROP) -> Vector:
    """A vector of integers (booleans are 0 and 1) or of floats without NaN; infinities are for clipping.

    A value that is missing, NaN or no real number is left out, or counts as ``missing``. An integer beyond
    every double counts as an infinity. A list has no type of its own: its numbers are taken as doubles, for the
    type that numpy would infer depends on the values.
    """
    array = vector(name, data)
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    if array.dtype == object:
        array = numbers(array.tolist())
    if array.dtype.kind not in "iuf":
        raise InvalidType(name, "a column of real numbers", array.dtype.name)
    if array.dtype.kind == "f":
        if array.dtype.itemsize > 8:
            raise InvalidType(name, "a column of doubles, singles or integers", array.dtype.name)
        if _has_nan(array):
            gaps = np.isnan(array)
            array = array[~gaps] if missing is DROP else np.where(gaps, np.float64(missing), array)
    return array


def _has_nan(array: Vector) -> bool:
    """Whether there is a NaN: the least of the values is one then."""
    with np.errstate(all="ignore"):
        return bool(np.isnan(np.min(array, initial=np.inf)))


def numbers(values: Sequence[Any]) -> NDArray[np.float64]:
    """Values of any kind as doubles, each by itself: NaN for what is no real number."""
    return np.fromiter(map(guarded(_number, math.nan), values), dtype=np.float64, count=len(values))


def _number(value: Any) -> float:
    """The value as a double: NaN for what is no real number, an infinity for what is beyond the largest."""
    try:
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, int):
            return int.__float__(value)
        if isinstance(value, (np.integer, np.floating, np.bool_)) or type(value) in (Fraction, Decimal):
            return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return math.nan
    return math.nan


def flags(name: str, data: object, missing: bool = False) -> NDArray[np.bool_]:
    """A vector of booleans: true where the value is true or 1, ``missing`` where it is neither 0 nor 1."""
    array = vector(name, data)
    if array.dtype == np.bool_:
        return array
    ones, zeros = _bits(name, array)
    return ones | ~(ones | zeros) if missing else ones


def bits(name: str, data: object) -> tuple[int, int]:
    """How many records are 1 (or true) and how many are 0; the others are left out."""
    ones, zeros = _bits(name, vector(name, data))
    return int(np.count_nonzero(ones)), int(np.count_nonzero(zeros))


def _bits(name: str, array: Vector) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    if array.dtype == object:
        array = numbers(array.tolist())
    if array.dtype.kind not in "biuf":
        raise InvalidType(name, "a column of booleans, or of the integers 0 and 1", array.dtype.name)
    return array == 1, array == 0


def declared(categories: Sequence[Hashable], least: int, name: str = "categories") -> None:
    """Categories are a sequence of distinct values that can be hashed."""
    required = f"distinct, and at least {('one', 'two')[least - 1]}"
    try:
        enough = len(categories) >= least and len(set(categories)) == len(categories)
    except TypeError:
        raise InvalidType(name, "a sequence of values that can be hashed", type(categories).__name__) from None
    if not enough:
        raise InvalidArgument(name, required, categories)


def place_of_missing(categories: Sequence[Hashable], missing: Any) -> int:
    """The category that undeclared values count as: its place, or -1 where they are left out.

    ``missing`` is a declared category, DROP, or None for the rule: "other" where it is declared, else left out.
    """
    place = {category: i for i, category in enumerate(categories)}
    if missing is None:
        return place.get(OTHER, -1)
    if missing is DROP:
        return -1
    try:
        return place[missing]
    except (KeyError, TypeError):
        raise InvalidArgument("missing", "a declared category, or release.DROP", missing) from None


def categorical(name: str, data: object, categories: Sequence[Hashable], missing: int = -1) -> NDArray[np.int64]:
    """The place of each record's value in ``categories``; ``missing`` for a value that was not declared."""
    array = vector(name, data)
    place = {category: i for i, category in enumerate(categories)}
    if array.dtype.kind in "biufUS":
        values, codes = np.unique(array, return_inverse=True)
        return _places(place, values.tolist(), missing)[codes] if len(codes) else codes.astype(np.int64)
    return _places(place, array.tolist(), missing)


def _places(place: dict[Hashable, int], values: list[Any], missing: int) -> NDArray[np.int64]:
    """The place of each value. A dictionary of the categories is asked, so no value is compared with another one."""
    try:
        return np.fromiter(map(place.get, values, repeat(missing)), dtype=np.int64, count=len(values))
    except Exception:  # of a value's own methods, or because it cannot be hashed
        find = guarded(lambda value: place.get(value, missing), missing)
        return np.fromiter(map(find, values), dtype=np.int64, count=len(values))
