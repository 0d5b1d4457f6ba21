"""What a mechanism put out, in a form that events can be read from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dptally.errors import InvalidArgument
from dptally.release import Released

__all__ = ["codes_of", "paired", "plain"]


def plain(output: Any) -> Any:
    """The published value of a release; anything else as it is."""
    return output.value if isinstance(output, Released) else output


def paired(first: Sequence[Any], second: Sequence[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both samples as arrays of one kind: numbers, rows of numbers, or codes of whatever was put out."""
    arrays = [_numbers(first), _numbers(second)]
    if arrays[0] is not None and arrays[1] is not None and arrays[0].shape[1:] == arrays[1].shape[1:]:
        return arrays[0], arrays[1]
    codes: dict[Any, int] = {}
    return codes_of(first, codes), codes_of(second, codes)


def _numbers(outputs: Sequence[Any]) -> NDArray[Any] | None:
    """A vector or a matrix of numbers; None if that is not what the outputs are."""
    kinds = (bool, int, float, np.bool_, np.integer, np.floating, np.ndarray, tuple, list)
    if not all(isinstance(output, kinds) for output in outputs):
        return None
    try:
        array = np.array(outputs)
    except ValueError:  # rows of different lengths
        return None
    if array.dtype.kind == "O" and array.ndim == 1:  # integers beyond 64 bits
        array = np.array([float(x) for x in array]) if all(isinstance(x, int) for x in array) else array
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        return None
    return array.astype(np.int64) if array.dtype.kind in "bi" else array.astype(np.float64)


def codes_of(outputs: Sequence[Any], codes: dict[Any, int]) -> NDArray[np.int64]:
    """Each distinct output as a number of its own."""
    try:
        return np.array([codes.setdefault(_hashable(x), len(codes)) for x in outputs], dtype=np.int64)
    except TypeError:
        raise InvalidArgument(
            "mechanism", "a function with numbers, rows of numbers or hashable outputs", "others"
        ) from None


def _hashable(output: Any) -> Any:
    if isinstance(output, np.ndarray):
        return (output.shape, output.tobytes())
    return tuple(_hashable(x) for x in output) if isinstance(output, (list, tuple)) else output
