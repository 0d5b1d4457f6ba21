"""Alpha-divergence differential privacy: (exp K(a-1) - 1)/(a (a-1)), Renyi DP in other units.  [ADP paper, Def. 8]"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dptally.accounting import renyi
from dptally.checks import Floats
from dptally.errors import InvalidArgument
from dptally.law import Composition

__all__ = ["divergence", "log_divergence"]


def divergence(directions: Sequence[Composition], orders: Floats) -> Floats:
    """Alpha divergence of each order in [1, inf), the larger direction: (exp((a-1) D_a) - 1) / (a (a-1)); order 1 is KL.

    inf where the divergence is infinite or where the double itself overflows; :func:`log_divergence` tells which.
    """
    with np.errstate(over="ignore"):
        return np.exp(log_divergence(directions, orders))


def log_divergence(directions: Sequence[Composition], orders: Floats) -> Floats:
    """The logarithm of :func:`divergence`: no overflow; -inf where the divergence is zero."""
    orders = np.asarray(orders, dtype=np.float64)
    if not np.all((orders >= 1) & (orders < np.inf)):
        raise InvalidArgument("order", "an order in [1, inf)", orders.tolist())
    rates = renyi.divergence(directions, orders)
    t = orders - 1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        k = t * rates
        log_expm1 = np.where(k < 40, np.log(np.expm1(np.minimum(k, 40.0))), k + np.log1p(-np.exp(-k)))
        above = log_expm1 - np.log(orders) - np.log(t)
        return np.where(t > 0, above, np.log(rates))
