"""Directions that cross: a pair whose larger direction depends on epsilon, composed, against sums of fractions."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import mpmath
import pytest

import dptally as dp
from dptally.law import Law
from dptally.laws.atoms import AtomicLaw

P = (Fraction(6, 10), Fraction(1, 10), Fraction(299, 1000), Fraction(1, 1000))
Q = (Fraction(3, 10), Fraction(5, 10), Fraction(1999, 10000), Fraction(1, 10000))


def _law(p: tuple[Fraction, ...], q: tuple[Fraction, ...]) -> AtomicLaw:
    """To within some ulps: a law from outside states plain numbers."""
    return AtomicLaw(
        tuple(sorted((math.log(x / y), float(x)) for x, y in zip(p, q, strict=True))),
        reverse_mass=0.0,
        cited="Wasserman, Zhou 2010, Sec. 2",
    )


@dataclass(frozen=True)
class Lopsided(dp.Mechanism):
    """A mechanism of somebody else with one pair of distributions, in both directions."""

    theorem: ClassVar[str] = "Wasserman, Zhou 2010, Sec. 2"

    def laws(self) -> tuple[Law, ...]:
        return _law(P, Q), _law(Q, P)


def _truth(p: tuple[Fraction, ...], q: tuple[Fraction, ...], count: int, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(50):
        a, total = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(0)
        for places in itertools.product(range(len(p)), repeat=count):
            x, y = (math.prod((side[i] for i in places), start=Fraction(1)) for side in (p, q))
            total += max(mpmath.mpf(x.numerator) / x.denominator - a * y.numerator / y.denominator, 0)
        return total


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_answer_is_the_larger_direction_on_both_sides_of_the_crossing(count: int) -> None:
    winners = set()
    for epsilon in (count * each for each in (0.0, 0.1, 0.4, 0.8, 1.2, 1.5, 1.61, 1.65, 1.9, 2.2, 2.28)):
        forward, backward = _truth(P, Q, count, epsilon), _truth(Q, P, count, epsilon)
        truth = max(forward, backward)
        box = (count * Lopsided()).delta_interval(epsilon)
        assert box.lower <= truth + 1e-14  # the law was rounded
        assert box.upper >= truth - 1e-14
        assert box.upper - box.lower <= 1e-4 * truth + 1e-15  # the smaller direction would be seen
        if abs(forward - backward) > 0.01 * truth:
            winners.add(forward > backward)
            delta = float(truth)
            asked = (count * Lopsided()).epsilon_interval(delta)
            assert asked.lower - 1e-9 <= epsilon <= asked.upper + 1e-9
    assert winners == {True, False}
