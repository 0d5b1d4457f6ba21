"""Columns of data as numpy vectors, without a copy where numpy's own protocol needs none.

Lists, numpy vectors, pandas and polars series and Arrow arrays are accepted. Whatever is wrong with the data
is said without saying what the data are: errors name types, lengths and rules, never a value.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dptally.errors import InvalidArgument, InvalidType

__all__ = ["categorical", "flags", "numeric", "vector"]

Vector = NDArray[Any]


def vector(name: str, data: object) -> Vector:
    """A non-empty vector of anything."""
    if isinstance(data, (str, bytes, dict, set)) or not hasattr(data, "__len__"):
        raise InvalidType(name, "a list, a vector, a pandas, polars or Arrow column", type(data).__name__)
    if isinstance(data, np.ma.MaskedArray):  # numpy would bring the hidden values back
        raise InvalidType(name, "a column without a mask", "a masked one")
    try:
        array = np.asarray(data)
    except ValueError:  # ragged; numpy's own text may quote the data
        array = np.empty((0, 0))
    if array.ndim != 1:
        raise InvalidType(name, "one column (one dimension)", "another shape")
    if array.size == 0:
        raise InvalidArgument(name, "a column with at least one record", "an empty one")
    return array


def numeric(name: str, data: object) -> Vector:
    """A vector of integers (booleans are 0 and 1) or of floats without NaN; infinities are for clipping.

    A list has no type of its own. Its numbers are taken as doubles, for the type that numpy would infer
    depends on the values, and one record more could change how all are treated.
    """
    array = vector(name, data)
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    if array.dtype.kind not in "iuf":
        raise InvalidType(name, "a column of real numbers without gaps", array.dtype.name)
    if array.dtype.kind == "f":
        if array.dtype.itemsize > 8:
            raise InvalidType(name, "a column of doubles, singles or integers", array.dtype.name)
        if np.isnan(array).any():
            raise InvalidArgument(name, "free of NaN and of missing values", "a column with some")
    return array if hasattr(data, "__array__") else array.astype(np.float64)


def flags(name: str, data: object) -> NDArray[np.bool_]:
    """A vector of booleans, or of the integers 0 and 1."""
    array = vector(name, data)
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind not in "iu":
        raise InvalidType(name, "a column of booleans, or of the integers 0 and 1", array.dtype.name)
    if not ((array == 0) | (array == 1)).all():
        raise InvalidArgument(name, "a column of zeros and ones", "a column with other integers")
    return array.astype(np.bool_)


def categorical(name: str, data: object, categories: Sequence[Hashable]) -> NDArray[np.int64]:
    """The position of each record's value in ``categories``; a value that was not declared is refused."""
    array = vector(name, data)
    place = {category: i for i, category in enumerate(categories)}
    try:
        distinct, codes = _distinct(array)
    except TypeError:
        raise InvalidType(name, "a column of hashable values", array.dtype.name) from None
    known = np.array([place.get(value, -1) for value in distinct], dtype=np.int64)
    if (known < 0).any():
        raise InvalidArgument(name, "a column of the declared categories only", "a column with others")
    return known[codes]


def _distinct(array: Vector) -> tuple[list[Any], NDArray[np.int64]]:
    if array.dtype.kind in "biufUS":
        values, codes = np.unique(array, return_inverse=True)
        return values.tolist(), codes
    seen: dict[Any, int] = {}
    codes = np.array([seen.setdefault(_key(x), len(seen)) for x in array.tolist()], dtype=np.int64)
    return list(seen), codes


def _key(value: Any) -> Any:
    """NaN is not equal to itself; as a category it is simply not one of the declared."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
