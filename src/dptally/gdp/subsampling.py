"""Subsampling without and with replacement, as amplification of a privacy profile.

[Balle, Barthe, Gaboardi 2018, Thm. 9 and 10; Liu et al. 2022, Sec. 4.3.] The profile is the mechanism's own when one
record of its input is replaced by another; Poisson sampling is ``Curve.sampled``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType
from dptally.gdp.curve import Curve
from dptally.numerics.exact import between
from dptally.numerics.rounding import down, up

__all__ = ["with_replacement", "without_replacement"]


def without_replacement(curve: Curve, batch: int, size: int) -> Curve:
    """The curve of running on ``batch`` of ``size`` records, drawn without replacement.

    delta'(log(1 + g (e^eps - 1))) = g delta(eps), g = batch/size: the best possible for every base profile, when one
    record is replaced; and, with the same base profile, when one is added or removed and the batch keeps its size
    (``size`` is then the larger one) [Zhu, Dong, Wang 2022; Lebeda et al. 2024].

    >>> round(without_replacement(Curve(lambda e: 0.5 * math.exp(-e)), 10, 100).delta(0.0), 12)
    0.05
    """
    batch, size = checks.count("batch", batch, 1), checks.count("size", size, 1)
    if batch > size:
        raise InvalidArgument("batch", f"at most size = {size}", batch)
    return _curve(curve).sampled(between(Fraction(batch, size))[1])


def with_replacement(group: Callable[[int], Curve], draws: int, size: int) -> Curve:
    """A bound of the curve of running on ``draws`` draws from ``size`` records with replacement, one record replaced.

    ``group(j)`` is the curve for j copies of a record replaced together, as many as may be drawn. With
    w = 1 - (1 - 1/size)^draws and eps' = log(1 + w (e^eps - 1)),

        delta'(eps') <= sum over j = 1..draws of C(draws, j) (1/size)^j (1 - 1/size)^(draws - j) delta_j(eps)

    [Balle, Barthe, Gaboardi 2018, Thm. 10]. It is a bound, not the truth, and only of one run: composed or as an event
    of another tool, sampling with replacement is refused.

    >>> bound = with_replacement(lambda j: Curve(lambda e: min(1.0, 0.01 * j * math.exp(-e / j))), draws=10, size=100)
    >>> 0.0 < bound.delta(0.0) < 0.01
    True
    """
    draws, size = checks.count("draws", draws, 1), checks.count("size", size, 1)
    if not callable(group):
        raise InvalidType("group", "a function of j that returns a dptally.gdp.Curve", group)
    if draws > _MOST_DRAWS:
        raise InvalidArgument("draws", f"at most {_MOST_DRAWS}", draws)
    share = Fraction(1, size)
    whole = between(1 - (1 - share) ** draws)[1]
    weights = [between(math.comb(draws, j) * share**j * (1 - share) ** (draws - j))[1] for j in range(1, draws + 1)]
    kept = [(j, weight) for j, weight in enumerate(weights, 1) if weight > _LEAST]
    rest = up(math.fsum(weight for weight in weights if weight <= _LEAST), 4) if len(kept) < draws else 0.0
    curves = [(_curve(group(j)), weight) for j, weight in kept]

    def delta(epsilon: float) -> float:
        # the inner epsilon is rounded down, where delta is larger
        if epsilon > 1:
            inner = epsilon - math.log(whole) + math.log1p((whole - 1.0) * math.exp(-epsilon))
        else:
            inner = math.log1p(math.expm1(epsilon) / whole)
        inner = max(down(inner, 16), 0.0)
        return min(1.0, up(math.fsum(weight * curve.delta(inner) for curve, weight in curves) + rest, 8))

    return Curve(delta, f"{draws} draws of {size} with replacement, a bound")


_MOST_DRAWS = 10_000
_LEAST = 1e-18  # smaller weights count with delta_j = 1


def _curve(value: object) -> Curve:
    if not isinstance(value, Curve):
        raise InvalidType("curve", "a dptally.gdp.Curve", value)
    return value
