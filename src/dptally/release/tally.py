"""How often each declared category occurs, in one pass over a typed column.

Integers between the smallest and the largest category are counted by their value, and so are doubles. Fixed-width text
is hashed to a slot; the slot's only candidate is then compared character by character, so the hash decides speed and
nothing else.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["occurrences"]

Counts = NDArray[np.int64]

_CHUNK = 1 << 15  # the working arrays stay in the processor's cache
_LARGEST = (1 << 63) - 1
_WHOLE = 1 << 53  # categories of doubles are whole numbers below this
_SPAN = 1 << 20  # between the smallest and the largest integer category
_MULTIPLIER = 0x9E3779B97F4A7C15  # odd, about 2^64 divided by the golden ratio: products spread over the high bits
_SLOT_BITS = 16


def occurrences(array: NDArray[Any], categories: Sequence[Hashable]) -> Counts | None:
    """The count of each category, in their order; None where neither way applies."""
    if array.dtype.kind in "biu" and all(isinstance(c, (int, np.integer, str)) for c in categories):
        return _of_integers(array, categories)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return _of_doubles(array, categories)
    if (
        array.dtype.kind == "U"
        and array.dtype.isnative
        and array.dtype.itemsize
        and all(isinstance(c, str) for c in categories)
    ):
        return _of_text(np.ascontiguousarray(array), [str(c) for c in categories])
    return None


def _of_integers(array: NDArray[Any], categories: Sequence[Hashable]) -> Counts | None:
    numbers = {int(c): place for place, c in enumerate(categories) if isinstance(c, (int, np.integer))}
    if not numbers:
        return np.zeros(len(categories), dtype=np.int64)
    low, span = min(numbers), max(numbers) - min(numbers) + 1
    if span > _SPAN or not -(1 << 63) <= low <= max(numbers) < _LARGEST:
        return None
    by_value = np.zeros(span + 1, dtype=np.int64)  # the last slot: everything else
    for start in range(0, len(array), _CHUNK):
        chunk = array[start : start + _CHUNK]
        if chunk.dtype == np.uint64:
            chunk = np.minimum(chunk, np.uint64(_LARGEST))  # which is no category
        # one comparison for both ends: below the smallest category the difference wraps to 2^63 - low or more,
        # which is beyond the span
        steps = (chunk.astype(np.int64, copy=False) - np.int64(low)).view(np.uint64)
        by_value += np.bincount(np.minimum(steps, np.uint64(span)).view(np.int64), minlength=span + 1)
    counts = np.zeros(len(categories), dtype=np.int64)
    for value, place in numbers.items():
        counts[place] = by_value[value - low]
    return counts


def _of_doubles(array: NDArray[Any], categories: Sequence[Hashable]) -> Counts | None:
    """Where every category is a whole number, or a text, which no double equals."""
    numbers: dict[int, int] = {}
    for place, category in enumerate(categories):
        if isinstance(category, str):
            continue
        number = _whole(category)
        if number is None:
            return None
        numbers[number] = place
    counts = np.zeros(len(categories), dtype=np.int64)
    if not numbers:
        return counts
    below, above = min(numbers) - 1, max(numbers) + 1
    if above - below > _SPAN:
        return None
    by_value = np.zeros(above - below + 1, dtype=np.int64)  # the first slot: everything else, NaN included
    with np.errstate(invalid="ignore"):
        for start in range(0, len(array), _CHUNK):
            chunk = array[start : start + _CHUNK].astype(np.float64, copy=False)
            whole = np.fmin(np.fmax(chunk, below), above).astype(np.int64)
            # a double that is no whole number differs from its whole part
            by_value += np.bincount((whole - below) * (whole == chunk), minlength=len(by_value))
    for value, place in numbers.items():
        counts[place] = by_value[value - below]
    return counts


def _whole(category: Hashable) -> int | None:
    """The category as an integer, where it is one that every double next to it can be told from."""
    if isinstance(category, (float, np.float32, np.float16)):  # pyright: ignore[reportArgumentType]
        if not float(category).is_integer():
            return None
    elif not isinstance(category, (int, np.integer)):
        return None
    number = int(category)
    return number if abs(number) < _WHOLE else None


def _of_text(array: NDArray[Any], categories: list[str]) -> Counts | None:
    width = array.dtype.itemsize // 4
    # numpy drops NULs at the end of a text, so a category that ends in one occurs nowhere; nor does a longer one
    places = [i for i, c in enumerate(categories) if len(c) <= width and not c.endswith("\0")]
    counts = np.zeros(len(categories), dtype=np.int64)
    if not places:
        return counts
    letters = np.array([categories[i] for i in places], dtype=array.dtype).view(np.uint32).reshape(-1, width)
    slots = _slots(letters)
    if len(set(slots.tolist())) < len(places):
        return None  # two categories share a slot
    candidate = np.zeros(1 << _SLOT_BITS, dtype=np.int64)
    candidate[slots] = np.arange(len(places))
    found = np.zeros(len(places) + 1, dtype=np.int64)  # the last one: no category
    for start in range(0, len(array), _CHUNK):
        rows = array[start : start + _CHUNK].view(np.uint32).reshape(-1, width)
        guess = candidate[_slots(rows)]
        for column in range(width):
            guess[rows[:, column] != letters[np.minimum(guess, len(places) - 1), column]] = len(places)
        found += np.bincount(guess, minlength=len(places) + 1)
    counts[places] = found[:-1]
    return counts


def _slots(letters: NDArray[np.uint32]) -> NDArray[np.intp]:
    mixed = letters[:, 0].astype(np.uint64)
    for column in range(1, letters.shape[1]):
        mixed = mixed * np.uint64(_MULTIPLIER) + letters[:, column]
    return (mixed * np.uint64(_MULTIPLIER) >> np.uint64(64 - _SLOT_BITS)).astype(np.intp)
