"""How many records."""

from __future__ import annotations

import numpy as np

from dptally.errors import InvalidArgument
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.additive import additive
from dptally.release.released import Released

__all__ = ["count"]


def count(data: object, where: object = None, *, scale: Exact | None = None, sigma: Exact | None = None) -> Released:
    """The number of records, or of those where ``where`` is true, with discrete Laplace or Gaussian noise.

    One record added, removed or replaced moves a count by at most 1, so the adjacency does not matter. (Under
    replacement the number of all records is public, and this adds noise to what needs none.)

    >>> count(["a", "b", "c"], where=[True, False, True], scale=2).mechanism
    DiscreteLaplace(scale=2.0, sensitivity=1)
    """
    noise = additive(scale, sigma)
    records = column.vector("data", data)
    chosen = None if where is None else column.flags("where", where)
    if chosen is not None and len(chosen) != len(records):
        raise InvalidArgument("where", "as long as the data", "a column of another length")
    mechanism = noise.mechanism(1)
    exact = len(records) if chosen is None else int(np.count_nonzero(chosen))
    return Released(noise.add(exact), mechanism, "count")
