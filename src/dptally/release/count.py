"""How many records."""

from __future__ import annotations

import numpy as np

from dptally.errors import InvalidArgument
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.additive import additive
from dptally.release.function import Stated, checked_unit, release_function
from dptally.release.released import ROW, Released

__all__ = ["count"]


def _stated(
    *, scale: Exact | None = None, sigma: Exact | None = None, missing: bool = False, unit: str = ROW
) -> Stated:
    if not isinstance(missing, (bool, np.bool_)):
        raise InvalidArgument("missing", "True or False: whether a missing condition counts", missing)
    return Stated(additive(scale, sigma).mechanism(1), "count", None, checked_unit(unit))


@release_function(_stated, secret=["where"])
def count(
    data: object,
    where: object = None,
    *,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    missing: bool = False,
    unit: str = ROW,
) -> Released:
    """The number of records, or of those where ``where`` is true, with discrete Laplace or Gaussian noise.

    One record added, removed or replaced moves a count by at most 1, so the adjacency does not matter. (Under
    replacement the number of all records is public, and this adds noise to what needs none.) A condition that is
    neither true nor false (missing, or another number than 0 and 1) does not count, unless ``missing=True``.

    >>> count(["a", "b", "c"], where=[True, False, True], scale=2).mechanism
    DiscreteLaplace(scale=2.0, sensitivity=1)
    """
    stated = _stated(scale=scale, sigma=sigma, missing=missing, unit=unit)
    number = column.length("data", data)
    chosen = None if where is None else column.flags("where", where, bool(missing))
    if chosen is not None and len(chosen) != number:
        raise InvalidArgument("where", "as long as the data", "a column of another length")
    exact = number if chosen is None else int(np.count_nonzero(chosen))
    return stated.released(additive(scale, sigma).add(exact))
