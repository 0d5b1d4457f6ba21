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
from dptally.release.function import Stated, checked_unit, release_function
from dptally.release.released import ROW, Released

__all__ = ["mode_of_bits", "pass_threshold", "passes", "propose_test_release"]

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


def _stated(
    *,
    epsilon: float,
    delta: float,
    base_epsilon: float = 0.0,
    base_delta: float = 0.0,
    adjacency: Adjacency | None = None,
    unit: str = ROW,
) -> Stated:
    checks.positive("epsilon", epsilon)
    checks.open_probability("delta", delta)
    base_epsilon = checks.nonnegative("base_epsilon", base_epsilon)
    base_delta = checks.probability("base_delta", base_delta)
    if not base_delta < 1:
        raise InvalidArgument("base_delta", "below 1", base_delta)
    if adjacency is not None and not isinstance(adjacency, Adjacency):
        raise InvalidArgument("adjacency", "ADD_REMOVE or REPLACE: that in which distance counts", adjacency)
    total = float(epsilon) if base_epsilon == 0 else up(float(epsilon) + base_epsilon)
    mechanism = mechanisms.ApproxDP(total, max(float(delta), base_delta))
    return Stated(mechanism, "propose-test-release", adjacency, checked_unit(unit))


@release_function(_stated, secret=["base", "distance"])
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
    unit: str = ROW,
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
    stated = _stated(
        epsilon=epsilon,
        delta=delta,
        base_epsilon=base_epsilon,
        base_delta=base_delta,
        adjacency=adjacency,
        unit=unit,
    )
    passed = passes(distance(data), epsilon, delta)
    return stated.released(base(data) if passed else None)


def passes(away: object, epsilon: float, delta: float) -> bool:
    noisy = _checked_distance(away) + noise.discrete_laplace(1 / Fraction(float(epsilon)))
    return noisy > pass_threshold(epsilon, delta)


def _checked_distance(away: object) -> int:
    if isinstance(away, (bool, np.bool_)) or not isinstance(away, (int, np.integer)):
        raise InvalidType("distance", "a function that returns an integer", type(away).__name__)
    if away < 0:
        raise InvalidArgument("distance", "a function that returns a count, at least 0", "a negative one")
    return int(away)


def _bits_stated(*, epsilon: float, delta: float, adjacency: Adjacency, unit: str = ROW) -> Stated:
    if not isinstance(adjacency, Adjacency):
        raise InvalidArgument("adjacency", "ADD_REMOVE or REPLACE: it changes the sensitivity", adjacency)
    same = _stated(epsilon=epsilon, delta=delta, adjacency=adjacency, unit=unit)
    return Stated(same.mechanism, "mode of bits", adjacency, same.unit)


@release_function(_bits_stated)
def mode_of_bits(data: object, *, epsilon: float, delta: float, adjacency: Adjacency, unit: str = ROW) -> Released:
    """The majority bit of a column of bits (0 on a tie) by propose-test-release, or None.

    With the margin m = (number of ones) - (number of zeros), the mode is 1 if m >= 1. A record added or
    removed moves m by at most 1: the unsafe margins are 0 and 1. A record replaced moves it by at most 2: they
    are -1 to 2. A value that is neither 0 nor 1 is left out.

    >>> mode_of_bits([1] * 60 + [0] * 3, epsilon=1.0, delta=1e-6, adjacency=ADD_REMOVE).value
    1
    """
    stated = _bits_stated(epsilon=epsilon, delta=delta, adjacency=adjacency, unit=unit)
    ones, zeros = column.bits("data", data)
    margin = ones - zeros
    passed = passes(_distance_of_margin(margin, adjacency), epsilon, delta)
    return stated.released(int(margin >= 1) if passed else None)


def _distance_of_margin(margin: int, adjacency: Adjacency) -> int:
    if adjacency is ADD_REMOVE:
        return margin - 1 if margin >= 1 else -margin
    return max(0, (margin - 1) // 2 if margin >= 1 else -margin // 2)
