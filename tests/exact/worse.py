"""numpy with worse elementary functions: each value is moved by some ulps, the same way for the same argument."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["worse_functions"]

_NAMES = ("exp", "log", "log1p", "expm1", "sin", "cos", "arctan2")
_RANGES = {"exp": (0.0, np.inf), "expm1": (-1.0, np.inf), "sin": (-1.0, 1.0), "cos": (-1.0, 1.0)}


class _Worse:
    """A function of numpy whose values are off by -ulps, 0 or +ulps, or all by ``way`` times as many."""

    def __init__(self, name: str, way: int, ulps: float) -> None:
        self._function, self._way, self._ulps = getattr(np, name), way, ulps
        self._range = _RANGES.get(name, (-np.inf, np.inf))
        self._exact = 1.0 if name in ("exp", "cos") else 0.0  # values that every library gets right

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        out = self._function(*arguments, **options)
        value = np.asarray(out)
        if value.dtype != np.float64:
            return out
        with np.errstate(all="ignore"):
            moved = value + self._ways(np.asarray(arguments[0], dtype=np.float64), value) * np.spacing(np.abs(value))
            normal = np.isfinite(moved) & (np.abs(value) > 1e-290) & (value != self._exact)
            moved = np.clip(np.where(normal, moved, value), *self._range)
        if options.get("out") is not None:
            options["out"][...] = moved
            return out
        return moved if isinstance(out, np.ndarray) else np.float64(moved)

    def _ways(self, argument: Any, value: Any) -> Any:
        if self._way:
            return self._way * self._ulps
        bits = np.array(np.broadcast_to(argument, value.shape), ndmin=1).view(np.uint64)
        mixed = (bits * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(45)
        return ((mixed % np.uint64(3)).astype(np.float64) - 1.0).reshape(value.shape) * self._ulps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


@contextmanager
def worse_functions(way: int, ulps: float) -> Iterator[None]:
    """``way``: 1 up, -1 down, 2 and -2 logarithms the other way, 0 by the bits of the argument."""
    kept = {name: getattr(np, name) for name in _NAMES}
    made = {
        name: _Worse(name, (way > 0) - (way < 0) if abs(way) < 2 or "log" not in name else (way < 0) - (way > 0), ulps)
        for name in _NAMES
    }
    try:
        for name in _NAMES:
            setattr(np, name, made[name])
        yield
    finally:
        for name in _NAMES:
            setattr(np, name, kept[name])
