"""Ways to look at an output: each gives scores, and an event is a score on one side of a threshold.

A view is fitted on one part of the samples and never sees the part on which its event is tested, so it may be
as greedy as it likes: a bad view loses power, never truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dptally.checks import Floats

__all__ = ["VIEWS", "View", "fitted", "lowest_bit"]

Outputs = NDArray[np.float64] | NDArray[np.int64]
Score = Callable[[Outputs], Floats]

_BINS = 64
_ZERO = 1 << 12  # the lowest bit of zero: beyond that of every double


@dataclass(frozen=True, slots=True)
class View:
    """A fitted score with a name that says what it looks at."""

    name: str
    score: Score


def lowest_bit(values: Floats) -> NDArray[np.int64]:
    """The exponent of the lowest set bit of each double: the largest e for which it is a multiple of 2^e.

    >>> lowest_bit(np.array([1.0, 0.75, 6.0])).tolist()
    [0, -2, 1]
    """
    fraction, exponent = np.frexp(values)
    mantissa = np.ldexp(np.where(np.isfinite(values), fraction, 0.0), 53).astype(np.int64)
    lowest = mantissa & -mantissa
    position = np.frexp(lowest.astype(np.float64))[1].astype(np.int64) - 1
    return np.where(lowest == 0, _ZERO, exponent.astype(np.int64) - 53 + position)


def _likelihoods(keys0: Outputs, keys1: Outputs) -> Score:
    """The log of how much more often a key was seen in the first sample than in the second; 0 for new keys."""
    keys, inverse = np.unique(np.concatenate([keys0, keys1]), return_inverse=True)
    seen0 = np.bincount(inverse[: len(keys0)], minlength=len(keys))
    seen1 = np.bincount(inverse[len(keys0) :], minlength=len(keys))
    scores = np.log((seen0 + 0.5) / (seen1 + 0.5))

    def score(new: Outputs) -> Floats:
        place = np.minimum(np.searchsorted(keys, new), len(keys) - 1)
        return np.where(keys[place] == new, scores[place], 0.0)

    return score


def _columns(outputs: Outputs) -> list[int]:
    return list(range(outputs.shape[1])) if outputs.ndim == 2 else []


def _value_views(fit0: Outputs, fit1: Outputs) -> list[View]:
    del fit1
    if fit0.ndim == 1:
        return [View("the value", lambda x: x.astype(np.float64))]
    return [View(f"coordinate {j}", lambda x, j=j: x[:, j].astype(np.float64)) for j in _columns(fit0)]  # type: ignore[misc]


def _outcome_views(fit0: Outputs, fit1: Outputs) -> list[View]:
    if fit0.ndim == 1:
        return [View("the outcome", _likelihoods(fit0, fit1))]
    weights = _mixing_weights(fit0.shape[1])
    score = _likelihoods(fit0 @ weights, fit1 @ weights)
    return [View("the outcome", lambda x: score(x @ weights))]


def _mixing_weights(columns: int) -> Floats:
    """Weights that give different rows different sums, but for accidents that cost power only."""
    return np.asarray(np.sqrt(np.arange(2, 2 + columns)) + np.pi * np.arange(columns), dtype=np.float64)


def _bin_views(fit0: Outputs, fit1: Outputs) -> list[View]:
    if fit0.ndim != 1:
        return []
    edges = np.unique(np.quantile(np.concatenate([fit0, fit1]), np.linspace(0, 1, _BINS + 1)[1:-1]))

    def place(x: Outputs) -> Floats:
        return np.searchsorted(edges, x, side="right").astype(np.float64)

    score = _likelihoods(place(fit0), place(fit1))
    return [View("the bin", lambda x: score(place(x)))]


def _linear_views(fit0: Outputs, fit1: Outputs) -> list[View]:
    """The direction that best separates two clouds of rows: Fisher's discriminant."""
    if fit0.ndim != 2:
        return []
    spread = np.atleast_2d(np.cov(fit0, rowvar=False) + np.cov(fit1, rowvar=False))
    ridge = 1e-9 * np.trace(spread) * np.eye(len(spread))
    weights = np.linalg.pinv(spread + ridge) @ (fit0.mean(axis=0) - fit1.mean(axis=0))
    return [View("a linear combination", lambda x: np.asarray(x @ weights, dtype=np.float64))]


def _granularity_views(fit0: Outputs, fit1: Outputs) -> list[View]:
    if fit0.dtype.kind != "f" and fit1.dtype.kind != "f":
        return []

    def bits(x: Outputs) -> Floats:
        return lowest_bit(x.astype(np.float64)).astype(np.float64)

    if fit0.ndim == 1:
        score = _likelihoods(bits(fit0), bits(fit1))
        return [View("the lowest set bit", lambda x: score(bits(x)))]
    views = []
    for j in _columns(fit0):
        one = _likelihoods(bits(fit0[:, j]), bits(fit1[:, j]))
        name = f"the lowest set bit of coordinate {j}"
        views.append(View(name, lambda x, j=j, one=one: one(bits(x[:, j]))))  # type: ignore[misc]
    return views


VIEWS: dict[str, Callable[[Outputs, Outputs], list[View]]] = {
    "value": _value_views,
    "outcome": _outcome_views,
    "bins": _bin_views,
    "linear": _linear_views,
    "granularity": _granularity_views,
}


def fitted(names: tuple[str, ...], fit0: Outputs, fit1: Outputs) -> list[View]:
    return [view for name in names for view in VIEWS[name](fit0, fit1)]
