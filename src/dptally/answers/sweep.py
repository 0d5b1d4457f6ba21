"""A grid of answers: one plan for every combination of parameters, one certified answer for every plan."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dptally import checks
from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidType, MissingExtra
from dptally.interval import Interval, IntervalArray
from dptally.mechanisms.mechanism import Mechanism

__all__ = ["Sweep", "sweep"]

_LARGEST = 1_000_000  # answers of one grid


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """The answers over the grid of ``axes``: ``lower`` and ``upper`` have one dimension for each axis, in their order.

    ``quantity`` is "epsilon" or "delta".
    """

    axes: Mapping[str, tuple[Any, ...]]
    quantity: str
    lower: Floats
    upper: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.upper.shape)

    def at(self, **point: object) -> Interval:
        """The answer at one point of the grid, named by the values of all axes."""
        if set(point) != set(self.axes):
            raise InvalidArgument("point", f"one value for each of {list(self.axes)}", sorted(point))
        index = []
        for name, values in self.axes.items():
            if point[name] not in values:
                raise InvalidArgument(name, f"one of {values}", point[name])
            index.append(values.index(point[name]))
        return Interval(float(self.lower[tuple(index)]), float(self.upper[tuple(index)]))

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each point: the parameters, then ``<quantity>_lower`` and ``<quantity>_upper``."""
        points = itertools.product(*self.axes.values())
        return [
            dict(zip(self.axes, point, strict=True))
            | {f"{self.quantity}_lower": float(low), f"{self.quantity}_upper": float(high)}
            for point, low, high in zip(points, self.lower.ravel(), self.upper.ravel(), strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        axes = {name: list(values) for name, values in self.axes.items()}
        return {"quantity": self.quantity, "axes": axes, "lower": self.lower.tolist(), "upper": self.upper.tolist()}

    def __str__(self) -> str:
        grid = " x ".join(f"{name} ({len(values)})" for name, values in self.axes.items())
        if not self.upper.size:
            return f"{self.quantity} over {grid}: nothing was asked"
        return f"{self.quantity} over {grid}: {float(self.upper.min()):.6g} to {float(self.upper.max()):.6g}"


def sweep(
    make: Callable[..., Mechanism],
    *,
    delta: float | Sequence[float] | Floats | None = None,
    epsilon: float | Sequence[float] | Floats | None = None,
    jobs: int = 1,
    **axes: Sequence[Any] | Floats,
) -> Sweep:
    """epsilon at ``delta``, or delta at ``epsilon``, of ``make(**point)`` for every point of the grid of ``axes``.

    Several deltas (or epsilons) are one more axis, the last, and share their work. ``jobs`` other than 1 runs on
    joblib's current backend (Dask, Ray, processes), which needs the extra ``audit``.

    >>> import dptally as dp
    >>> grid = dp.sweep(lambda sigma, rate: dp.dpsgd(sigma, rate, 100), sigma=[1.0, 2.0], rate=[0.01], delta=1e-5)
    >>> grid.shape, bool(grid.at(sigma=1.0, rate=0.01).upper > grid.at(sigma=2.0, rate=0.01).upper)
    ((2, 1), True)
    """
    if not callable(make):
        raise InvalidType("make", "a function that makes a plan from the parameters", make)
    if (delta is None) == (epsilon is None):
        raise InvalidArgument("delta, epsilon", "exactly one of the two", (delta, epsilon))
    name, asked = ("delta", delta) if epsilon is None else ("epsilon", epsilon)
    values = checks.reals(name, asked)
    if values.ndim > 1:
        raise InvalidArgument(name, "one number or a flat sequence of numbers", asked)
    grid = {axis: _axis(axis, entries) for axis, entries in axes.items()}
    if math.prod(map(len, grid.values())) * max(1, values.size) > _LARGEST:
        raise InvalidArgument("axes", f"a grid of at most {_LARGEST} answers", {k: len(v) for k, v in grid.items()})
    points = [dict(zip(grid, point, strict=True)) for point in itertools.product(*grid.values())]
    answers = _answered(make, points, name, values.ravel(), jobs)
    if values.ndim:
        grid[name] = tuple(values.tolist())
    shape = tuple(len(entries) for entries in grid.values())
    lower, upper = np.array(answers, dtype=np.float64).reshape(-1, 2).T
    quantity = "epsilon" if name == "delta" else "delta"
    return Sweep(MappingProxyType(grid), quantity, lower.reshape(shape), upper.reshape(shape))


def _axis(name: str, entries: object) -> tuple[Any, ...]:
    if isinstance(entries, np.ndarray) and entries.ndim == 1:
        return tuple(entries.tolist())
    if isinstance(entries, Sequence) and not isinstance(entries, (str, bytes)):
        return tuple(entries)
    raise InvalidType(name, "a sequence of values (one axis of the grid)", entries)


def _answered(
    make: Callable[..., Mechanism], points: list[dict[str, Any]], name: str, values: Floats, jobs: int
) -> list[tuple[float, float]]:
    if jobs == 1:
        return [ends for point in points for ends in _of_point(make, point, name, values)]
    try:
        import joblib
    except ImportError:
        raise MissingExtra("joblib", "audit") from None
    batches = joblib.Parallel(n_jobs=jobs)(joblib.delayed(_of_point)(make, point, name, values) for point in points)
    return [ends for batch in batches for ends in batch]


def _of_point(
    make: Callable[..., Mechanism], point: dict[str, Any], name: str, values: Floats
) -> list[tuple[float, float]]:
    plan = make(**point)
    if not isinstance(plan, Mechanism):
        raise InvalidType("make(...)", "a mechanism or plan", plan)
    if values.size == 1:
        at = float(values[0])
        box = plan.epsilon_interval(at) if name == "delta" else plan.delta_interval(at)
        return [(box.lower, box.upper)]
    boxes: IntervalArray = plan.epsilon_interval(values) if name == "delta" else plan.delta_interval(values)
    return list(zip(boxes.lower.tolist(), boxes.upper.tolist(), strict=True))
