"""Laws: composition forgets order, merges copies, opens what is nested, and adds log-moments."""

from __future__ import annotations

import math
import random
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dptally as dp
from dptally.errors import InvalidArgument
from dptally.law import Composition
from dptally.mechanisms.composed import Composed

POOL = (
    dp.Laplace(5.0),
    dp.Laplace(2.0, 3.0),
    dp.Gaussian(10.0),
    dp.Gaussian(2.0),
    dp.GaussianDP(0.3),
    dp.RandomizedResponse(0.6),
    dp.RandomizedResponse(0.4, 5),
    dp.DiscreteLaplace(4.0, 3),
    dp.DiscreteGaussian(3.0),
    dp.PureDP(0.2),
    dp.ApproxDP(0.1, 1e-7),
    dp.PureDP(0.0),
    dp.PoissonSampled(dp.Gaussian(1.0), 0.1),
)
plans = st.lists(st.tuples(st.sampled_from(POOL), st.integers(0, 5)), max_size=8)


@given(plans, st.randoms(use_true_random=False))
def test_order_is_forgotten(rows: list[tuple[dp.Mechanism, int]], shuffle: random.Random) -> None:
    first = dp.Composed.of(rows)
    split = [(m, 1) for m, n in rows for _ in range(n)]
    shuffle.shuffle(split)
    second = sum((n * m for m, n in split), start=dp.Composed(()))
    assert first == second
    assert hash(first) == hash(second)
    assert repr(first) == repr(second)
    assert dp.to_json(first) == dp.to_json(second)
    assert first.directions() == second.directions()
    assert [hash(d) for d in first.directions()] == [hash(d) for d in second.directions()]


@given(plans, plans)
def test_log_moments_add(left: list[tuple[dp.Mechanism, int]], right: list[tuple[dp.Mechanism, int]]) -> None:
    t = np.array([1e-6, 0.5, 3.0])
    whole = (dp.Composed.of(left) + dp.Composed.of(right)).directions()
    parts = [dp.Composed.of(rows).directions() for rows in (left, right)]
    pick = lambda directions, d: directions[min(d, len(directions) - 1)]  # noqa: E731
    for d, composition in enumerate(whole):
        total = sum(pick(part, d).log_moment(t) for part in parts)
        assert composition.log_moment(t) == pytest.approx(total, rel=1e-13, abs=1e-300)
        assert composition.mean == pytest.approx(sum(pick(part, d).mean for part in parts), rel=1e-13)
    assert len(whole) <= 2


def test_operators() -> None:
    m = dp.Laplace(1.0)
    assert 3 * m == m * 3 == m + m + m == np.int64(3) * m == sum([m, m, m])
    assert 2 * (m + dp.PureDP(1.0)) == 2 * dp.PureDP(1.0) + 2 * m
    assert (0 * m).parts == ()
    assert (0 * m).directions() == (Composition(()),)
    assert (0 * m).renyi(3.0) == 0.0
    assert repr(1 * m) == "1 * Laplace(scale=1.0, sensitivity=1.0)"
    assert repr(0 * m) == "Composed(parts=())"
    assert repr(m + 2 * dp.PureDP(1)) == "Laplace(scale=1.0, sensitivity=1.0) + 2 * PureDP(epsilon=1.0)"


def test_nested_compositions_are_opened() -> None:
    m = dp.Laplace(1.0)
    assert dp.Composed(((2 * m, 3), (m, 1))) == 7 * m


def test_the_two_directions_of_sampling_survive_composition() -> None:
    plan = 3 * dp.PoissonSampled(dp.Gaussian(1.0), 0.1) + dp.Laplace(2.0)
    remove, add = plan.directions()
    assert remove != add
    assert {type(law).__name__ for law, _ in remove.parts} == {type(law).__name__ for law, _ in add.parts}


def test_composition_knows_its_ends_and_its_mass_at_infinity() -> None:
    (composition,) = (3 * dp.Laplace(2.0) + 2 * dp.ApproxDP(0.5, 0.25)).directions()
    assert composition.supremum == -composition.infimum
    assert composition.supremum == 2.5  # both reaches are doubles, and so is the sum
    assert composition.infinity_mass == pytest.approx(1 - 0.75**2, rel=1e-15)
    assert composition.log_survival == pytest.approx(2 * math.log(0.75), rel=1e-15)
    assert composition.steps == 5
    assert composition.determined
    (revealed,) = (2 * dp.ApproxDP(0.5, 1.0)).directions()
    assert revealed.log_survival == -math.inf
    assert revealed.infinity_mass == 1.0
    (silent,) = (0 * dp.Laplace(1.0)).directions()
    assert silent.supremum == silent.infimum == silent.mean == silent.infinity_mass == 0.0


@pytest.mark.parametrize("count", [-1, -1.0, 1.5, math.inf, 1e300, True, "2", None, np.array([1, 2]), 2**53 + 1])
def test_counts_are_checked(count: object) -> None:
    with pytest.raises(dp.InvalidArgument, match="count"):
        dp.Laplace(1.0) * count


@pytest.mark.parametrize("count", [1e6, np.float64(1e6), np.int64(10**6), np.float32(1e6)])
def test_a_whole_float_is_the_integer_that_it_is(count: float) -> None:
    assert count * dp.Laplace(1.0) == dp.Laplace(1.0) * count == 1_000_000 * dp.Laplace(1.0)
    assert 1.0 * dp.Laplace(1.0) + 0.0 * dp.Gaussian(1.0) == dp.Laplace(1.0) * 1


def test_counts_are_capped_after_merging() -> None:
    half = 2**52 * dp.Laplace(1.0)
    assert half + half
    with pytest.raises(dp.InvalidArgument, match="count"):
        half + half + dp.Laplace(1.0)


@pytest.mark.parametrize("other", [1, 0.5, "x", None])
def test_only_mechanisms_add(other: object) -> None:
    with pytest.raises(TypeError):
        dp.Laplace(1.0) + other
    with pytest.raises(TypeError):
        other + dp.Laplace(1.0)


def test_mechanisms_do_not_multiply() -> None:
    with pytest.raises(TypeError):
        dp.Laplace(1.0) * dp.Laplace(1.0)


@pytest.mark.parametrize("parts", [3, "ab", dp.Laplace(1.0), [(dp.Laplace(1.0),)], [(1, dp.Laplace(1.0))], [1]])
def test_parts_are_checked(parts: object) -> None:
    with pytest.raises(dp.InvalidType, match="parts"):
        dp.Composed(parts)


def test_a_composition_has_no_single_law() -> None:
    with pytest.raises(dp.InvalidType, match="single mechanism"):
        (2 * dp.Laplace(1.0)).laws()


def test_adding_one_by_one_is_adding_at_once():
    """Parts are put in their places; order, merging and the largest count are as for the whole."""
    generator = random.Random(5)
    steps = [dp.Gaussian(1 + generator.randrange(40) / 8) for _ in range(60)]
    steps += [3 * dp.Laplace(2.0), dp.Laplace(2.0) + dp.PureDP(0.5)]
    whole = Composed.of((part, n) for step in steps for part, n in step.parts)
    for _ in range(5):
        generator.shuffle(steps)
        found = sum(steps)
        assert (found, hash(found), repr(found)) == (whole, hash(whole), repr(whole))
        assert found.parts == whole.parts
    many = 2**53 * dp.PureDP(0.1) + dp.Laplace(1.0)
    with pytest.raises(InvalidArgument, match=r"2\^53"):
        many + dp.PureDP(0.1)
    with pytest.raises(TypeError):
        many + 3


def test_a_sum_of_many_is_not_quadratic():
    """800 different mechanisms took over a second of hashing."""
    parts = [dp.Gaussian(1 + i / 1000) for i in range(800)]
    sum(parts)
    start = time.process_time()
    sum(parts)
    assert time.process_time() - start < 0.3
