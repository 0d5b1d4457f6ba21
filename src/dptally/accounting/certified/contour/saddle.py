r"""Saddle points: the tilt at which the integrand of delta(eps) is least on the real line and largest on the contour.

The exponent K(theta) - theta eps - log theta(1 + theta) is stationary where eps = K'(theta) - 1/theta - 1/(1 + theta).
All of this only steers: any tilt theta > 0 gives certified bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dptally.accounting.certified.contour.tables import Losses, tabulate_at
from dptally.accounting.certified.tuning import ContourTuning
from dptally.law.characteristic import MomentTable
from dptally.law.law import Floats

__all__ = ["Locate", "Saddle", "at_delta", "at_epsilon", "log_size_at", "row_at", "saddle_epsilon", "saddle_log_size"]

Locate = Callable[[MomentTable], float]


@dataclass(frozen=True, slots=True)
class Saddle:
    """A tilt with K and K'' there, the eps whose saddle it is, the eps it is asked for, and about how large the
    integral is for that one, in logarithms.
    """

    theta: float
    moment: float
    variance: float
    epsilon: float
    asked: float
    log_size: float

    @classmethod
    def of(cls, row: MomentTable, times: float = 1.0, asked: float | None = None) -> Saddle:
        """Of a table of one row, for ``times`` as many steps; asked for its own eps unless for another one."""
        theta = float(row.theta[0])
        moment, first, second = (times * float(x[0]) for x in (row.moment, row.first, row.second))
        own = first - 1 / theta - 1 / (1 + theta)
        eps = own if asked is None else asked
        off = min(0.5 * (eps - own) ** 2 / _spread(theta, second), 60.0)
        return cls(theta, moment, second, own, eps, log_size_at(theta, second) - off)


def _spread(theta: float, variance: float) -> float:
    return max(variance, 0.0) + theta**-2 + (1 + theta) ** -2  # rounding may push a variance below 0


def log_size_at(theta: float, variance: float) -> float:
    """log of the integral relative to e^{K - theta eps} at the saddle's own eps, about."""
    return -math.log(theta * (1 + theta)) - 0.5 * math.log(2 * math.pi * _spread(theta, variance))


def saddle_epsilon(table: MomentTable) -> Floats:
    return np.asarray(table.first - 1 / table.theta - 1 / (1 + table.theta))


def saddle_log_size(table: MomentTable) -> Floats:
    """The saddle-point approximation of log delta at the eps whose saddle is theta."""
    theta = table.theta
    spread = np.maximum(table.second, 0.0) + theta**-2 + (1 + theta) ** -2
    return np.asarray(
        table.moment - theta * saddle_epsilon(table) - np.log(theta * (1 + theta)) - 0.5 * np.log(2 * np.pi * spread)
    )


def at_delta(log_delta: float) -> Locate:
    """theta whose saddle-point approximation of delta is the target."""
    return lambda table: _crossing(table.theta, saddle_log_size(table) - log_delta)


def at_epsilon(epsilon: float) -> Locate:
    """theta that minimises K - theta eps - log theta(1 + theta)."""
    return lambda table: _crossing(table.theta, epsilon - saddle_epsilon(table))


def _crossing(theta: Floats, value: Floats) -> float:
    """Where ``value``, positive at first, becomes negative, by interpolation in log theta; an end of the table if
    nowhere.
    """
    below = np.nonzero(value <= 0)[0]
    if not below.size:
        return float(theta[-1])
    i = int(below[0])
    if i == 0:
        return float(theta[0])
    share = value[i - 1] / (value[i - 1] - value[i])
    return float(theta[i - 1] * (theta[i] / theta[i - 1]) ** share)


def row_at(parts: Losses, table: MomentTable, theta: float, tuning: ContourTuning) -> MomentTable:
    """The row at theta: by Taylor's formula from the nearest one where K'' hardly changes from row to row, else
    computed.
    """
    i = int(np.argmin(np.abs(table.theta - theta)))
    nearby = table.second[max(i - 1, 0) : i + 2]
    if not float(nearby.max()) < tuning.steady * float(nearby.min()):
        return tabulate_at(parts, np.array([theta]))
    gap = theta - table.theta[i : i + 1]
    first, second = table.first[i : i + 1], table.second[i : i + 1]
    moment = table.moment[i : i + 1] + gap * (first + 0.5 * gap * second)
    return MomentTable(table.theta[i : i + 1] + gap, moment, table.error[i : i + 1], first + gap * second, second)
