"""Golden: the binomial sum against high-precision sums, and against the lattice's neighbours at huge
counts."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptally as dp
from dptally.accounting.certified.lattice import binomial
from dptally.law import Composition
from dptally.laws.atoms import AtomicLaw
from dptally.laws.two_point import TwoPointLaw


def truth(epsilon: float, count: int, at: float, infinity: float = 0.0) -> mp.mpf:
    with mp.workdps(60):
        e, at = mp.mpf(epsilon), mp.mpf(at)
        p = 1 / (1 + mp.exp(-e))
        total = mp.fsum(
            mp.binomial(count, k) * p**k * (1 - p) ** (count - k) * -mp.expm1(at - (2 * k - count) * e)
            for k in range(count + 1)
            if (2 * k - count) * e > at
        )
        return mp.log(total) + count * mp.log(1 - mp.mpf(infinity)) if total else mp.ninf


def responses(epsilon: float, count: int, infinity: float = 0.0) -> Composition:
    return Composition.of([(TwoPointLaw.of_guarantee(epsilon, infinity), count)])


@settings(max_examples=80, deadline=None)
@given(st.floats(1e-3, 6.0), st.integers(1, 300), st.floats(-0.5, 0.999), st.sampled_from([0.0, 1e-6, 0.2]))
def test_delta_is_contained(epsilon: float, count: int, share: float, infinity: float) -> None:
    at = share * epsilon * count
    bounds = binomial.log_delta(responses(epsilon, count, infinity), at)
    assert bounds is not None
    exact = truth(epsilon, count, at, infinity)
    assert mp.mpf(bounds[0]) <= exact <= mp.mpf(bounds[1])
    if bounds[0] > -math.inf:
        assert bounds[1] - bounds[0] < 1e-9 * (1 + abs(bounds[0])) or share > 0.99


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 100), (1.0, 7), (0.01, 500), (3.0, 50)])
@pytest.mark.parametrize("log_delta", [-0.5, -11.5, -200.0, -690.0])
def test_epsilon_is_contained(epsilon: float, count: int, log_delta: float) -> None:
    bounds = binomial.epsilon(responses(epsilon, count), log_delta)
    assert bounds is not None
    low, high = bounds
    assert low == 0 or truth(epsilon, count, low) >= log_delta
    assert truth(epsilon, count, high) <= log_delta
    assert high - low <= 1e-8 * max(high, 1e-3) or high == pytest.approx(epsilon * count, rel=1e-12)


def test_large_counts_stay_sharp() -> None:
    """Ten thousand responses (reference: the same sum in 60 digits), then a million and a thousand
    million."""
    bounds = binomial.epsilon(responses(0.1, 10_000), math.log(1e-5))
    assert bounds is not None
    assert bounds[1] - bounds[0] < 1e-8
    with mp.workdps(30):
        e = mp.mpf(0.1)
        p = 1 / (1 + mp.exp(-e))
        at = mp.mpf(bounds[0])
        first = int(mp.ceil((at / e + 10_000) / 2))
        total = mp.fsum(
            mp.binomial(10_000, k) * p**k * (1 - p) ** (10_000 - k) * -mp.expm1(at - (2 * k - 10_000) * e)
            for k in range(first, first + 700)
        )
        assert abs(mp.log(total) - mp.log(mp.mpf("1e-5"))) < 1e-8
    for count, epsilon in ((10**6, 0.01), (10**9, 1e-4)):
        bounds = binomial.epsilon(responses(epsilon, count), math.log(1e-5))
        assert bounds is not None
        assert 0 < bounds[1] - bounds[0] < 1e-7
        # Gaussian limit: mu = epsilon sqrt(n), known eps for mu = 10 and 3.162...
        assert bounds[0] == pytest.approx({10**6: 91.816, 10**9: 17.8566}[count], rel=1e-4)


def test_an_uneven_pair_of_values() -> None:
    """Not symmetric: P = (0.3, 0.7) against Q = (0.6, 0.4)."""
    low, high = math.log(0.3 / 0.6), math.log(0.7 / 0.4)
    composition = Composition.of([(AtomicLaw(((low, 0.3), (high, 0.7))), 12)])
    bounds = binomial.log_delta(composition, 1.0)
    assert bounds is not None
    with mp.workdps(40):
        a, b = mp.mpf(low), mp.mpf(high)
        total = mp.fsum(
            mp.binomial(12, k) * mp.mpf(0.7) ** k * mp.mpf(0.3) ** (12 - k) * -mp.expm1(1 - (12 - k) * a - k * b)
            for k in range(13)
            if (12 - k) * a + k * b > 1
        )
        assert mp.mpf(bounds[0]) <= mp.log(total) <= mp.mpf(bounds[1])


def test_what_is_not_two_valued_is_declined() -> None:
    three = AtomicLaw(((-0.1, 0.3), (0.0, 0.3), (0.1, 0.4)))
    two = TwoPointLaw.of_guarantee(0.1)
    assert binomial.two_valued(Composition.of([(three, 3)])) is None
    assert binomial.two_valued(Composition.of([(two, 3), (TwoPointLaw.of_guarantee(0.2), 1)])) is None
    assert binomial.two_valued(Composition.of([(AtomicLaw(((-0.1, 0.3), (0.1, 0.4))), 3)])) is None  # mass is missing
    assert binomial.log_delta(Composition.of([(three, 3)]), 0.1) is None
    assert binomial.epsilon(Composition.of([(three, 3)]), -1.0) is None


def test_beyond_the_largest_loss_nothing_is_left() -> None:
    assert binomial.log_delta(responses(0.1, 5), 0.6) == (-math.inf, -math.inf)
    assert binomial.epsilon(responses(0.1, 5), math.log(0.9)) == (0.0, 0.0)


def test_masses_next_to_the_least_double_are_left_to_other_routes() -> None:
    """An outcome of probability 3e-310: its quotients overflow, and its digits are few."""
    plan = 5 * dp.DiscreteLaplace(0.0014033386081958898, 1)
    assert all(binomial.two_valued(composition) is None for composition in plan.directions())
    box = plan.epsilon_interval(1e-5)
    most = 5 / 0.0014033386081958898
    assert box.lower <= most + math.log1p(-1e-5) <= box.upper <= most
