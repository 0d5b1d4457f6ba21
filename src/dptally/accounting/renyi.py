"""Renyi differential privacy: D_a = K(a-1)/(a-1), and K adds under composition.  [Mironov 2017]"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dptally.checks import Floats
from dptally.errors import InvalidArgument
from dptally.law import Composition

__all__ = ["divergence"]


def divergence(directions: Sequence[Composition], orders: Floats) -> Floats:
    """Renyi divergence of each order in [1, inf], the larger direction; accurate to a few ulps, not rounded.

    D_a = K(a-1)/(a-1) for 1 < a < inf; order 1 is the mean loss (KL), order inf the supremum of the loss
    [Mironov 2017, Def. 3]. Every order is +inf where the loss is infinite with positive probability.
    """
    orders = np.asarray(orders, dtype=np.float64)
    if not np.all(orders >= 1):
        raise InvalidArgument("order", "an order in [1, inf]", orders.tolist())
    out = np.zeros(orders.shape)
    for composition in directions:
        out = np.maximum(out, _one_direction(composition, orders))
    return out


def _one_direction(composition: Composition, orders: Floats) -> Floats:
    if composition.log_survival < 0:
        return np.full(orders.shape, np.inf)
    t = orders - 1
    out = np.full(orders.shape, composition.mean)
    middle = (t > 0) & np.isfinite(t)
    if middle.any():
        with np.errstate(over="ignore"):
            out[middle] = np.asarray(composition.log_moment(t[middle]), dtype=np.float64) / t[middle]
    out[np.isinf(t)] = composition.supremum
    return np.maximum(out, 0.0)  # a divergence is never negative: a tiny negative K is round-off around zero
