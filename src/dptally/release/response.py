"""Randomised response: each answer is made private on its own, and counts are estimated from the answers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dptally import mechanisms, noise
from dptally.checks import Floats
from dptally.errors import InvalidArgument
from dptally.law.adjacency import REPLACE
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.function import Stated, checked_unit, release_function
from dptally.release.released import ROW, Released

__all__ = ["estimate_counts", "randomized_response"]


def _stated(*, p: Exact, categories: Sequence[Any] = (0, 1), missing: Any = None, unit: str = ROW) -> Stated:
    keep, listed = _checked(p, categories)
    column.place_of_missing(listed, missing)
    if not _are_plain(listed):
        raise InvalidArgument("categories", "plain values, not rows", listed)
    mechanism = mechanisms.RandomizedResponse(keep, len(listed))
    return Stated(mechanism, "randomised response", REPLACE, checked_unit(unit), tuple(listed))


@release_function(_stated)
def randomized_response(
    data: object, *, p: Exact, categories: Sequence[Any] = (0, 1), missing: Any = None, unit: str = ROW
) -> Released:
    """Each answer is kept with probability ``p``, else replaced by one of the others, all equally likely.

    Every record is protected on its own (local privacy); the number of records is public, so the adjacency is
    REPLACE. There is an answer for every record. For a value that is missing or was not declared it is that of
    ``"other"`` where this is declared, and of a category drawn at random where it is not; ``missing`` chooses a
    category.

    >>> answers = randomized_response([True, False, True], p=0.75, categories=(False, True))
    >>> answers.mechanism
    RandomizedResponse(p=0.75, categories=2)
    """
    stated = _stated(p=p, categories=categories, missing=missing, unit=unit)
    keep, listed = _checked(p, categories)
    codes = column.categorical("data", data, listed, column.place_of_missing(listed, missing))
    answers = noise.randomized_response(_filled(codes, len(listed)), keep, len(listed))
    value = np.array(listed)[answers]
    value.setflags(write=False)
    return stated.released(value)


def _are_plain(categories: list[Any]) -> bool:
    try:
        return np.array(categories).ndim == 1
    except ValueError:  # rows of different lengths
        return False


def _filled(codes: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """Foreign values become a category drawn at random: what is answered for them says nothing.

    Such an answer is uniform, the average of the answers of all categories, so its divergence from any of them
    is at most the largest between two categories (divergences are jointly convex).
    """
    drawn = noise.uniform_below(number, len(codes))  # for every record: how many are foreign does not show
    return np.where(codes < 0, drawn, codes)


def estimate_counts(answers: object, *, p: Exact, categories: Sequence[Any] = (0, 1)) -> Floats:
    """Unbiased estimates of how many records truly are of each category, from randomised answers.

    (c_j - n q) / (p - q) with c_j the number of answers j, n of all, q = (1 - p) / (categories - 1). They may
    be negative. Records that were answered by a category drawn at random count 1 / categories in each.

    >>> estimate_counts([0, 0, 0, 1], p=0.75)
    array([4., 0.])
    """
    keep, listed = _checked(p, categories)
    chance = Fraction(keep)
    other = (1 - chance) / (len(listed) - 1)
    if chance == other:
        raise InvalidArgument("p", "different from 1 / categories: such answers say nothing", p)
    codes = column.categorical("answers", answers, listed)
    if (codes < 0).any():  # the answers are public: what is wrong with them may be said
        raise InvalidArgument("answers", "a column of the declared categories only", "a column with others")
    counts = np.bincount(codes, minlength=len(listed)).tolist()
    return np.array([float((c - len(codes) * other) / (chance - other)) for c in counts])


def _checked(p: Exact, categories: Sequence[Any]) -> tuple[float, list[Any]]:
    keep = parameters.double("p", parameters.probability("p", p))
    column.declared(categories, least=2)
    return keep, list(categories)
