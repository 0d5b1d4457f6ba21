"""Histograms, and the mode read off a noisy one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from dptally.errors import InvalidArgument
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms import Mechanism
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.additive import Additive, additive
from dptally.release.released import Released

__all__ = ["histogram", "mode"]


def histogram(
    data: object,
    *,
    categories: Sequence[Any],
    adjacency: Adjacency,
    scale: Exact | None = None,
    sigma: Exact | None = None,
) -> Released:
    """A noisy count for each declared category, in their order; empty ones get noise too.

    A record added or removed moves one count by 1. A record replaced moves two counts by 1 each, which is
    exactly the composition of two counts: 2 * DiscreteLaplace(scale), 2 * DiscreteGaussian(sigma).

    >>> histogram(["a", "c", "a"], categories="abc", adjacency=ADD_REMOVE, scale=2).mechanism
    DiscreteLaplace(scale=2.0, sensitivity=1)
    """
    noise, mechanism, exact = _prepared(data, categories, adjacency, scale, sigma)
    return Released(noise.add_each(exact), mechanism, "histogram", adjacency)


def mode(
    data: object,
    *,
    categories: Sequence[Any],
    adjacency: Adjacency,
    scale: Exact | None = None,
    sigma: Exact | None = None,
) -> Released:
    """The category with the largest noisy count (the first of equals), paid for as a histogram.

    >>> mode(["a"] * 1000, categories="abc", adjacency=ADD_REMOVE, scale=2).value
    'a'
    """
    noise, mechanism, exact = _prepared(data, categories, adjacency, scale, sigma)
    return Released(categories[int(np.argmax(noise.add_each(exact)))], mechanism, "mode", adjacency)


def _prepared(
    data: object,
    categories: Sequence[Hashable],
    adjacency: Adjacency,
    scale: Exact | None,
    sigma: Exact | None,
) -> tuple[Additive, Mechanism, np.ndarray[Any, np.dtype[np.int64]]]:
    noise = additive(scale, sigma)
    if not isinstance(adjacency, Adjacency):
        raise InvalidArgument("adjacency", "ADD_REMOVE or REPLACE: it changes the sensitivity", adjacency)
    if len(categories) == 0 or len(set(categories)) != len(categories):
        raise InvalidArgument("categories", "distinct, and at least one", categories)
    codes = column.categorical("data", data, categories)
    each = noise.mechanism(1)
    mechanism = each if adjacency is ADD_REMOVE or len(categories) == 1 else 2 * each
    return noise, mechanism, np.bincount(codes, minlength=len(categories)).astype(np.int64)
