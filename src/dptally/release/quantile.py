"""A quantile, chosen among declared candidates."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dptally import checks, mechanisms, noise
from dptally.errors import InvalidArgument
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.function import Stated, checked_unit, release_function
from dptally.release.records import missing_value
from dptally.release.released import ROW, Released

__all__ = ["quantile"]

_LARGEST = Fraction(float(np.finfo(np.float64).max))


def _prepared(
    *,
    q: Exact,
    candidates: Sequence[float],
    epsilon: float,
    adjacency: Adjacency,
    missing: Any = column.DROP,
    unit: str = ROW,
) -> tuple[Stated, Fraction, Fraction]:
    """What it will be, the share q, and how far one record moves a score."""
    share = parameters.probability("q", q)
    if not isinstance(adjacency, Adjacency):
        raise InvalidArgument("adjacency", "ADD_REMOVE or REPLACE: it changes the sensitivity", adjacency)
    places = checks.reals("candidates", list(candidates)) if not isinstance(candidates, str) else np.empty(0)
    if places.ndim != 1 or not places.size or not np.isfinite(places).all() or not (np.diff(places) > 0).all():
        raise InvalidArgument("candidates", "finite numbers in increasing order, at least one", candidates)
    missing_value(missing, -_LARGEST, _LARGEST)
    mechanism = mechanisms.ExponentialMechanism(checks.positive("epsilon", epsilon))
    moved = max(share, 1 - share) if adjacency is ADD_REMOVE else Fraction(1)
    return Stated(mechanism, "quantile", adjacency, checked_unit(unit), tuple(places.tolist())), share, moved


def _stated(**arguments: Any) -> Stated:
    return _prepared(**arguments)[0]


@release_function(_stated)
def quantile(
    data: object,
    *,
    q: Exact,
    candidates: Sequence[float],
    epsilon: float,
    adjacency: Adjacency,
    missing: Any = column.DROP,
    unit: str = ROW,
) -> Released:
    """One of the ``candidates`` near the ``q``-quantile of the data, by the exponential mechanism.

    c is a q-quantile of n numbers if at most q n are below it and at most (1 - q) n above it. The score of c is minus
    the larger of the two excesses, below(c) - q n and above(c) - (1 - q) n, or 0. A record added or removed moves
    it by at most max(q, 1 - q), one replaced by at most 1. A missing value is left out, or counts as ``missing``.

    >>> quantile(range(100_000), q=0.5, candidates=[0, 25_000, 50_000, 75_000], epsilon=1, adjacency=ADD_REMOVE).value
    50000.0
    """
    stated, share, moved = _prepared(
        q=q, candidates=candidates, epsilon=epsilon, adjacency=adjacency, missing=missing, unit=unit
    )
    values = np.sort(column.numeric("data", data, missing_value(missing, -_LARGEST, _LARGEST)))
    places = np.asarray(stated.labels, dtype=np.float64)
    number = len(values)
    below = np.searchsorted(values, places, side="left").tolist()
    above = (number - np.searchsorted(values, places, side="right")).tolist()
    scores = [
        -max(low - share * number, high - (1 - share) * number, Fraction(0))
        for low, high in zip(below, above, strict=True)
    ]
    return stated.released(stated.labels[noise.exponential_choice(scores, epsilon, moved)])
