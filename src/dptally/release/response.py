"""Randomised response: each answer is made private on its own, and counts are estimated from the answers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dptally import mechanisms, noise
from dptally.checks import Floats
from dptally.errors import InvalidArgument
from dptally.law.adjacency import REPLACE
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.released import Released

__all__ = ["estimate_counts", "randomized_response"]


def randomized_response(data: object, *, p: Exact, categories: Sequence[Any] = (0, 1)) -> Released:
    """Each answer is kept with probability ``p``, else replaced by one of the others, all equally likely.

    Every record is protected on its own (local privacy); the number of records is public, so the adjacency is
    REPLACE.

    >>> answers = randomized_response([True, False, True], p=0.75, categories=(False, True))
    >>> answers.mechanism
    RandomizedResponse(p=0.75, categories=2)
    """
    keep, codes_of = _checked(p, categories)
    mechanism = mechanisms.RandomizedResponse(keep, len(codes_of))
    labels = np.array(codes_of)
    if labels.ndim != 1:
        raise InvalidArgument("categories", "plain values, not rows", codes_of)
    codes = column.categorical("data", data, codes_of)
    answers = noise.randomized_response(codes, keep, len(codes_of))
    value = labels[answers]
    value.setflags(write=False)
    return Released(value, mechanism, "randomised response", REPLACE)


def estimate_counts(answers: object, *, p: Exact, categories: Sequence[Any] = (0, 1)) -> Floats:
    """Unbiased estimates of how many records truly are of each category, from randomised answers.

    (c_j - n q) / (p - q) with c_j the number of answers j, n of all, q = (1 - p) / (categories - 1). They may
    be negative.

    >>> estimate_counts([0, 0, 0, 1], p=0.75)
    array([4., 0.])
    """
    keep, codes_of = _checked(p, categories)
    chance = Fraction(keep)
    other = (1 - chance) / (len(codes_of) - 1)
    if chance == other:
        raise InvalidArgument("p", "different from 1 / categories: such answers say nothing", p)
    codes = column.categorical("answers", answers, codes_of)
    counts = np.bincount(codes, minlength=len(codes_of)).tolist()
    return np.array([float((c - len(codes) * other) / (chance - other)) for c in counts])


def _checked(p: Exact, categories: Sequence[Any]) -> tuple[float, list[Any]]:
    keep = parameters.double("p", parameters.probability("p", p))
    if len(categories) < 2 or len(set(categories)) != len(categories):
        raise InvalidArgument("categories", "distinct, and at least two", categories)
    return keep, list(categories)
