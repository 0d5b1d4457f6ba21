"""Histograms, and the mode read off a noisy one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dptally.errors import InvalidArgument
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.noise.parameters import Exact
from dptally.release import column, tally
from dptally.release.additive import additive
from dptally.release.function import Stated, checked_unit, release_function
from dptally.release.released import ROW, Released

__all__ = ["histogram", "mode"]


def _stated(
    *,
    categories: Sequence[Hashable],
    adjacency: Adjacency,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    missing: Any = None,
    unit: str = ROW,
) -> Stated:
    noise = additive(scale, sigma)
    if not isinstance(adjacency, Adjacency):
        raise InvalidArgument("adjacency", "ADD_REMOVE or REPLACE: it changes the sensitivity", adjacency)
    column.declared(categories, least=1)
    column.place_of_missing(categories, missing)
    each = noise.mechanism(1)
    # two counts move when a record is replaced, one where it leaves the only category there is
    mechanism = each if adjacency is ADD_REMOVE or len(categories) == 1 else 2 * each
    return Stated(mechanism, "histogram", adjacency, checked_unit(unit), numbers=len(categories))


def _mode_stated(**arguments: Any) -> Stated:
    same = _stated(**arguments)
    return Stated(same.mechanism, "mode", same.adjacency, same.unit, tuple(arguments["categories"]))


@release_function(_stated)
def histogram(
    data: object,
    *,
    categories: Sequence[Any],
    adjacency: Adjacency,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    missing: Any = None,
    unit: str = ROW,
) -> Released:
    """A noisy count for each declared category, in their order; empty ones get noise too.

    A record added or removed moves one count by 1. A record replaced moves at most two counts by 1 each, which
    is exactly the composition of two counts: 2 * DiscreteLaplace(scale), 2 * DiscreteGaussian(sigma).

    A value that is missing or was not declared counts as ``"other"`` where that is a declared category, and is
    left out where it is not; ``missing`` chooses another category, or ``DROP``.

    >>> histogram(["a", "c", "a"], categories="abc", adjacency=ADD_REMOVE, scale=2).mechanism
    DiscreteLaplace(scale=2.0, sensitivity=1)
    """
    stated = _stated(categories=categories, adjacency=adjacency, scale=scale, sigma=sigma, missing=missing, unit=unit)
    return stated.released(additive(scale, sigma).add_each(_counts(data, categories, missing)))


@release_function(_mode_stated)
def mode(
    data: object,
    *,
    categories: Sequence[Any],
    adjacency: Adjacency,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    missing: Any = None,
    unit: str = ROW,
) -> Released:
    """The category with the largest noisy count (the first of equals), paid for as a histogram.

    Missing and undeclared values are treated as there.

    >>> mode(["a"] * 1000, categories="abc", adjacency=ADD_REMOVE, scale=2).value
    'a'
    """
    stated = _mode_stated(
        categories=categories, adjacency=adjacency, scale=scale, sigma=sigma, missing=missing, unit=unit
    )
    noisy = additive(scale, sigma).add_each(_counts(data, categories, missing))
    return stated.released(categories[int(np.argmax(noisy))])


def _counts(data: object, categories: Sequence[Hashable], missing: Any) -> NDArray[np.int64]:
    place = column.place_of_missing(categories, missing)
    array = column.vector("data", data)
    counts = tally.occurrences(array, categories)
    if counts is None:
        codes = column.categorical("data", array, categories, place)
        return np.bincount(codes[codes >= 0], minlength=len(categories)).astype(np.int64)
    if place >= 0:
        counts[place] += len(array) - int(counts.sum())
    return counts
