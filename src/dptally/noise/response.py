"""k-ary randomised response."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.noise.samplers import bernoulli, uniform_below
from dptally.noise.source import SYSTEM, ByteSource

__all__ = ["randomized_response"]


def randomized_response(
    values: NDArray[Any], p: Exact, categories: int = 2, *, _source: ByteSource = SYSTEM
) -> NDArray[np.int64]:
    """Each value is kept with probability exactly ``p``, else replaced by one of the other categories.

    Values are 0, ..., categories - 1; the others are equally likely.

    >>> randomized_response(np.array([0, 2, 1]), p=1, categories=3).tolist()
    [0, 2, 1]
    """
    keep = parameters.probability("p", p)
    number = checks.count("categories", categories, least=2)
    truth = np.asarray(values)
    if truth.dtype.kind not in "iub" or truth.ndim != 1:
        raise InvalidArgument("values", "a vector of integers", truth.dtype)
    if truth.size and not (int(truth.min()) >= 0 and int(truth.max()) < number):
        raise InvalidArgument("values", "codes from 0 to categories - 1", "a code outside")
    honest = bernoulli(keep, len(truth), _source=_source)
    other = uniform_below(number - 1, len(truth), _source=_source)
    truth = truth.astype(np.int64)
    return np.where(honest, truth, other + (other >= truth))  # the others, with the true one skipped
