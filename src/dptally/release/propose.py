"""Propose, test, release: publish a stable answer exactly where it is provably stable, else nothing.

The test and its proof are in docs/release.md; they settle what the lecture notes leave open (see docs/errata.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from dptally import checks, mechanisms, noise
from dptally.errors import InvalidArgument, InvalidType
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.numerics.rounding import up
from dptally.release import column
from dptally.release.released import Released

__all__ = ["mode_of_bits", "pass_threshold", "propose_test_release"]

Data = TypeVar("Data")


def pass_threshold(epsilon: float, delta: float) -> int:
    """The smallest integer T for which P(Z > T) <= delta is certain, Z discrete Laplace of scale 1 / epsilon.

    P(Z > T) = a^(T+1) / (1 + a), a = exp(-epsilon), so T + 1 >= log(1 / (delta (1 + a))) / epsilon. The
    logarithms are taken to be within 4 ulps of their larger terms; a threshold that is one too large is safe.

    >>> pass_threshold(1.0, 1e-6)
    13
    """
    epsilon, delta = checks.positive("epsilon", epsilon), checks.open_probability("delta", delta)
    logarithm = -math.log(delta) - math.log1p(math.exp(-epsilon))
    slack = 8 * np.finfo(np.float64).eps * (abs(math.log(delta)) + 1)
    return max(math.ceil(up(up(logarithm + slack) / epsilon)) - 1, 0)


def propose_test_release(
    data: Data,
    base: Callable[[Data], Any],
    distance: Callable[[Data], int],
    *,
    epsilon: float,
    delta: float,
    base_epsilon: float = 0.0,
    base_delta: float = 0.0,
    adjacency: Adjacency | None = None,
) -> Released:
    """Release ``base(data)`` if the data are safely far from every unsafe dataset, else None.

    ``distance(data)`` is the number of records that must change to reach a dataset that has a neighbour on
    which ``base`` answers differently (or, for a private base, not (base_epsilon, base_delta)-closely); 0 if
    the data are such a dataset themselves. It passes if distance + Z > T, Z discrete Laplace of scale 1 /
    epsilon. The result is (epsilon + base_epsilon, max(delta, base_delta))-DP under the adjacency in which
    ``distance`` counts.

    >>> far = propose_test_release([1] * 99, base=max, distance=len, epsilon=1.0, delta=1e-6)
    >>> far.value, far.mechanism
    (1, ApproxDP(epsilon=1.0, delta=1e-06))
    """
    threshold = pass_threshold(epsilon, delta)
    base_epsilon = checks.nonnegative("base_epsilon", base_epsilon)
    base_delta = checks.probability("base_delta", base_delta)
    if not base_delta < 1:
        raise InvalidArgument("base_delta", "below 1", base_delta)
    total = float(epsilon) if base_epsilon == 0 else up(float(epsilon) + base_epsilon)
    mechanism = mechanisms.ApproxDP(total, max(float(delta), base_delta))
    away = _checked_distance(distance(data))
    passed = away + noise.discrete_laplace(1 / Fraction(float(epsilon))) > threshold
    return Released(base(data) if passed else None, mechanism, "propose-test-release", adjacency)


def _checked_distance(away: object) -> int:
    if isinstance(away, (bool, np.bool_)) or not isinstance(away, (int, np.integer)):
        raise InvalidType("distance", "a function that returns an integer", type(away).__name__)
    if away < 0:
        raise InvalidArgument("distance", "a function that returns a count, at least 0", "a negative one")
    return int(away)


def mode_of_bits(data: object, *, epsilon: float, delta: float, adjacency: Adjacency) -> Released:
    """The majority bit of a column of bits (0 on a tie) by propose-test-release, or None.

    With the margin m = (number of ones) - (number of zeros), the mode is 1 if m >= 1. A record added or
    removed moves m by 1: the unsafe margins are 0 and 1. A record replaced moves it by 2: they are -1 to 2.

    >>> mode_of_bits([1] * 60 + [0] * 3, epsilon=1.0, delta=1e-6, adjacency=ADD_REMOVE).value
    1
    """
    if not isinstance(adjacency, Adjacency):
        raise InvalidArgument("adjacency", "ADD_REMOVE or REPLACE: it changes the sensitivity", adjacency)
    bits = column.flags("data", data)
    margin = 2 * int(np.count_nonzero(bits)) - len(bits)
    if adjacency is ADD_REMOVE:
        away = margin - 1 if margin >= 1 else -margin
    else:
        away = max(0, (margin - 1) // 2 if margin >= 1 else -margin // 2)
    released = propose_test_release(
        margin, lambda m: int(m >= 1), lambda _: away, epsilon=epsilon, delta=delta, adjacency=adjacency
    )
    return Released(released.value, released.mechanism, "mode of bits", adjacency)
