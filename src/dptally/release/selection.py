"""The best of several candidates, or the k best, by their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dptally import checks, mechanisms, noise
from dptally.errors import InvalidArgument
from dptally.mechanisms import Mechanism
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.function import Stated, checked_unit, release_function
from dptally.release.released import ROW, Released

__all__ = ["choose", "finite", "top_k"]

_WAYS = ("exponential", "permute_and_flip")


def _mechanism(epsilon: float, sensitivity: Exact, method: str, monotone: bool) -> Mechanism:
    if method not in _WAYS:
        raise InvalidArgument("method", 'one of "exponential", "permute_and_flip"', method)
    if not isinstance(monotone, bool):
        raise InvalidArgument("monotone", "True or False: whether one record moves all scores one way", monotone)
    parameters.positive("sensitivity", sensitivity)
    positive = checks.positive("epsilon", epsilon)
    # all scores move one way: half the range, which is exact
    size = positive / 2 if monotone else positive
    if method == "exponential":
        return mechanisms.ExponentialMechanism(size)
    return mechanisms.PermuteAndFlip(size)


def _stated(
    *,
    candidates: Sequence[Any],
    epsilon: float,
    sensitivity: Exact = 1,
    method: str = "exponential",
    monotone: bool = False,
    missing: Exact = 0,
    unit: str = ROW,
) -> Stated:
    column.declared(candidates, 1, "candidates")
    parameters.rational("missing", missing)
    mechanism = _mechanism(epsilon, sensitivity, method, monotone)
    return Stated(mechanism, "choose", None, checked_unit(unit), tuple(candidates))


@release_function(_stated, data="scores")
def choose(
    scores: object,
    *,
    candidates: Sequence[Any],
    epsilon: float,
    sensitivity: Exact = 1,
    method: str = "exponential",
    monotone: bool = False,
    missing: Exact = 0,
    unit: str = ROW,
) -> Released:
    """One of the declared ``candidates``, the better the likelier, by ``scores`` in their order.

    One record moves each score by at most ``sensitivity``, as the caller states, float rounding included; ``monotone``:
    all of them in one direction (counts, when records are added or removed), which halves the cost. ``method`` is the
    exponential mechanism, or permute-and-flip, which errs less and costs more when it is used often. A score that is no
    finite number counts as ``missing``, and the statement is for it too.

    >>> choose([3, 50_000, 7], candidates="abc", epsilon=0.5).value
    'b'
    """
    stated = _stated(
        candidates=candidates,
        epsilon=epsilon,
        sensitivity=sensitivity,
        method=method,
        monotone=monotone,
        missing=missing,
        unit=unit,
    )
    draw = noise.exponential_choice if method == "exponential" else noise.permute_and_flip
    return stated.released(candidates[draw(_exact(scores, len(candidates), missing), epsilon, sensitivity)])


def _top_stated(
    *,
    candidates: Sequence[Any],
    k: int,
    epsilon: float,
    sensitivity: Exact = 1,
    missing: Exact = 0,
    unit: str = ROW,
) -> Stated:
    column.declared(candidates, 1, "candidates")
    parameters.rational("missing", missing)
    parameters.positive("sensitivity", sensitivity)
    mechanism = mechanisms.TopK(checks.positive("epsilon", epsilon), k)
    if mechanism.k > len(candidates):
        raise InvalidArgument("k", f"at most the {len(candidates)} candidates", k)
    return Stated(mechanism, "top k", None, checked_unit(unit), tuple(candidates), mechanism.k)


@release_function(_top_stated, data="scores")
def top_k(
    scores: object,
    *,
    candidates: Sequence[Any],
    k: int,
    epsilon: float,
    sensitivity: Exact = 1,
    missing: Exact = 0,
    unit: str = ROW,
) -> Released:
    """``k`` of the declared ``candidates``, the best first: each by the exponential mechanism on those that are left.

    ``epsilon`` is that of one of the k choices. Scores are treated as in :func:`choose`.

    >>> top_k([3, 50_000, 70_000], candidates="abc", k=2, epsilon=0.5).value
    ('c', 'b')
    """
    stated = _top_stated(
        candidates=candidates, k=k, epsilon=epsilon, sensitivity=sensitivity, missing=missing, unit=unit
    )
    left, exact, chosen = list(candidates), _exact(scores, len(candidates), missing), []
    for _ in range(stated.numbers):
        place = noise.exponential_choice(exact, epsilon, sensitivity)
        chosen.append(left.pop(place))
        exact.pop(place)
    return stated.released(tuple(chosen))


def _exact(scores: object, number: int, missing: Exact) -> list[Fraction]:
    """The scores as rationals, ``missing`` for what is no finite number. Only their number and type can be refused."""
    array = column.vector("scores", scores)
    if len(array) != number:
        raise InvalidArgument("scores", f"one for each of the {number} candidates", "another number of them")
    instead = parameters.rational("missing", missing)
    return [finite(value, instead) for value in array.tolist()]


def finite(value: Any, instead: Fraction) -> Fraction:
    """The number itself where it is a finite one. Of a Decimal with an exponent beyond all doubles, whose digits no
    memory would hold, a large one counts as infinite and a small one as 0.
    """
    return column.guarded(lambda number: _finite(number, instead), instead)(value)


def _finite(value: Any, instead: Fraction) -> Fraction:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > parameters.FARTHEST:
        return instead if value.adjusted() > 0 else Fraction(0)
    exact = isinstance(value, (int, Fraction))
    finite_one = exact or (isinstance(value, float) and math.isfinite(value))
    finite_one = finite_one or (isinstance(value, Decimal) and value.is_finite())
    if not finite_one:
        return instead
    over, under = Fraction(value).as_integer_ratio()
    return Fraction(int(over), int(under))  # of Python's own integers: a subclass may do anything later
