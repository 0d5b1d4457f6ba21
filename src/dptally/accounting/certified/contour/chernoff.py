r"""Upper bounds from a table of K.

Chernoff's: (1 - e^{-x})+ <= e^{t x} t^t / (1 + t)^{1 + t} for every t > 0. And the inversion integral with every factor
replaced by its modulus, which also uses that \|phi\| decays:

    delta(eps) <= e^{K(t) - t eps} / pi \int_0^\infty |phi(u)| / (|t + iu| |t + 1 + iu|) du .
"""

from __future__ import annotations

import math

import numpy as np

from dptally.accounting.certified.contour.tables import Losses, tabulate, tabulate_at
from dptally.accounting.certified.tuning import STANDARD, ContourTuning
from dptally.law import Composition
from dptally.law.characteristic import MomentTable
from dptally.law.law import Floats
from dptally.numerics.rounding import EPS

__all__ = ["chernoff_epsilon", "chernoff_log_delta", "epsilon_bounds", "glance", "log_chernoff", "log_modulus"]


def chernoff_epsilon(composition: Composition, log_delta: float, tuning: ContourTuning = STANDARD.contour) -> float:
    """min over t of (K(t) - log delta + log c(t)) / t, c(t) = t^t / (1 + t)^(1 + t): an upper bound of eps, rounded
    up.
    """

    def passed(rows: MomentTable) -> bool:
        return bool(np.argmin(epsilon_bounds(rows, log_delta)) < len(rows.theta) - 4)

    table = tabulate(composition.parts, passed, tuning)
    return max(0.0, float(epsilon_bounds(table, log_delta).min())) if len(table.theta) else math.inf


def glance(composition: Composition, log_delta: float, epsilon: float, tuning: ContourTuning) -> MomentTable:
    """K at a few tilts about the one at which a Gaussian loss would have this epsilon at this delta."""
    theta = min(max(2.0 * -log_delta / epsilon, 1e-6), 1e6) * np.asarray(tuning.glance)
    return tabulate_at(composition.parts, theta)


def epsilon_bounds(rows: MomentTable, log_delta: float) -> Floats:
    """(K(t) - log delta + log c(t)) / t at each tilt, rounded up."""
    t = rows.theta
    log_c = t * np.log1p(1 / t) + np.log1p(t)
    size = np.abs(rows.moment) + abs(log_delta) + log_c
    return np.asarray((rows.moment + rows.error - log_delta - log_c + 8 * EPS * size) / t * (1 + 4 * EPS))


def log_chernoff(table: MomentTable, epsilon: float) -> Floats:
    """K(t) - t eps + log c(t) at each tilt: upper bounds of log delta(eps), rounded up."""
    t = table.theta
    log_c = t * np.log1p(1 / t) + np.log1p(t)
    rounding = 8 * EPS * (np.abs(table.moment) + t * abs(epsilon) + log_c)
    return np.asarray(table.moment + table.error - t * epsilon - log_c + rounding)


def log_modulus(parts: Losses, table: MomentTable, row: int, epsilon: float, tuning: ContourTuning) -> float:
    """An upper bound of log delta(eps) from the modulus of the inversion integral at one tilt of the table.

    On a cell [a, b] \\|phi\\| is at most its bound for u >= a and the kernel at most its value at a; beyond the last
    point U the kernel is below 1/u^2, whose integral is 1/U.
    """
    t, variance = float(table.theta[row]), float(table.second[row])
    if not 0 < variance < math.inf:
        return 0.0
    u = np.asarray(tuning.modulus) / math.sqrt(variance)
    decay = np.zeros_like(u)
    for law, count in parts:
        decay += count * law.log_decay(t, u)
    start = np.append(0.0, u)
    height = np.append(1.0, np.exp(np.minimum(decay, 0.0))) / (np.hypot(t, start) * np.hypot(t + 1, start))
    last = height[-1] * math.hypot(t, u[-1]) * math.hypot(t + 1, u[-1]) / u[-1]
    total = (float(np.dot(height[:-1], np.diff(start))) + float(last)) / math.pi
    exponent = float(table.moment[row] + table.error[row]) - t * epsilon
    # the sum has positive terms, each a few ulps off; the decay itself, a negative number, is relative to the count
    rounding = 8 * EPS * (abs(float(table.moment[row])) + t * abs(epsilon) + len(u) + 8 - float(decay.min()))
    return exponent + math.log(total) + rounding


def chernoff_log_delta(composition: Composition, epsilon: float, tuning: ContourTuning = STANDARD.contour) -> float:
    """The least of :func:`log_chernoff` over the tilts."""

    def passed(rows: MomentTable) -> bool:
        return bool(np.argmin(log_chernoff(rows, epsilon)) < len(rows.theta) - 4)

    table = tabulate(composition.parts, passed, tuning)
    return min(0.0, float(log_chernoff(table, epsilon).min())) if len(table.theta) else 0.0
