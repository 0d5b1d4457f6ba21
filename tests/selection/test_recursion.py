"""Laws: the recursion for several uses against nested searches, enumeration and all chords of random profiles."""

from __future__ import annotations

import math
import random

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import binom

import dptally as dp
from depth import thinned
from dptally.laws.bounded_range import recursion
from dptally.laws.bounded_range.law import BoundedRangeLaw
from dptally.laws.bounded_range.moments import BoundedRangeMoments
from selection.worst_case import any_order, nothing, one_more, one_use, two_points


def bounds(*uses: tuple[float, int]) -> BoundedRangeLaw:
    return BoundedRangeLaw(uses)


def check_contains(law: BoundedRangeLaw, truth: float, epsilon: float, sharp: float) -> None:
    lower, upper = (math.exp(float(end)) for end in law.log_profile(np.asarray(epsilon)))
    assert lower * (1 - 1e-13) <= truth <= upper * (1 + 1e-13), (law, epsilon, lower, truth, upper)
    assert upper - lower <= sharp * upper


@pytest.mark.parametrize("size", [1e-3, 0.1, 1.0, 6.0])
@pytest.mark.parametrize("uses", [2, 3])
def test_a_few_uses_against_nested_searches(size: float, uses: int) -> None:
    truth = any_order(*[size] * uses)
    for share in (-1.3, 0.0, 0.37, 1.0, 1.618, 1.9) if uses == 2 else (0.2, 1.7):
        check_contains(bounds((size, uses)), truth(share * size), share * size, 1e-4)


@pytest.mark.parametrize(("small", "large"), [(0.3, 0.8), (0.1, 0.1234567), (0.02, 1.5)])
def test_the_worst_order_counts(small: float, large: float) -> None:
    truth, one, other = any_order(small, large), one_more(small, one_use(large)), one_more(large, one_use(small))
    differ = 0.0
    for share in (0.1, 0.5, 0.85):
        epsilon = share * (small + large)
        check_contains(bounds((small, 1), (large, 1)), truth(epsilon), epsilon, 0.05)
        differ = max(differ, abs(one(epsilon) - other(epsilon)) / truth(epsilon))
    assert differ > 1e-6  # the order matters


def test_golden_epsilons() -> None:
    """From the specification of selection, found there with a grid of u and in double precision."""
    hundred = (100 * dp.ExponentialMechanism(0.1)).epsilon_interval(1e-6)
    assert 2.25074 <= hundred.lower <= hundred.upper <= 2.25117
    mixed = (9 * dp.ExponentialMechanism(0.2) + 4 * dp.BoundedRange(0.5)).epsilon_interval(1.7e-5)
    assert mixed.lower <= 2.21740
    assert mixed.upper >= 2.21735
    assert mixed.upper - mixed.lower < 2e-5
    # what others would say: one randomised response each, the one-use pair composed, zCDP
    assert (100 * dp.PureDP(0.1)).epsilon(1e-6) == pytest.approx(4.775, abs=2e-3)
    assert dp.accounting.concentrated.epsilon(100 * dp.ExponentialMechanism(0.1), 1e-6).value == pytest.approx(
        2.419, abs=1e-3
    )


def test_a_fixed_strategy_is_below_and_zcdp_above() -> None:
    for size, uses, delta in ((0.1, 100, 1e-6), (0.5, 20, 1e-9), (2.0, 7, 1e-3), (0.01, 300, 1e-4)):
        plan = uses * dp.ExponentialMechanism(size)
        box = plan.epsilon_interval(delta)
        fixed = (uses * dp.PureDP(size / 2)).epsilon_interval(delta)  # u = size / 2: randomised response
        assert fixed.lower <= box.upper
        assert box.lower >= fixed.lower * (1 - 1e-3)
        assert box.upper <= dp.accounting.renyi.epsilon(plan, delta).value
        assert box.upper - box.lower <= 3e-3 * box.upper


def random_profile(generator: np.random.Generator, nodes: int, step: float) -> np.ndarray:
    """A profile at nodes 0, 1, ..: that of a random pair of losses on the nodes, the same in both directions."""
    loss = step * np.arange(nodes)
    kept = generator.random(nodes) < generator.choice([0.05, 0.3, 1.0])
    kept[-1] = True
    mass = np.where(kept, generator.exponential(size=nodes) * np.exp(-generator.choice([0.0, 2.0, 9.0]) * loss), 0.0)
    mass = mass / (mass * (1 + np.exp(-loss))).sum()
    return np.array([(mass * -np.expm1(np.minimum(e - loss, 0.0))).sum() for e in loss])


def extended(values: np.ndarray, loss: np.ndarray, step: float) -> np.ndarray:
    """Linear in e^loss between the nodes, 0 beyond, and the mirror image below 0."""
    at = np.exp(np.abs(loss))
    inside = np.interp(at, np.exp(step * np.arange(len(values))), values)
    return np.where(loss < 0, -np.expm1(-np.abs(loss)) + np.exp(-np.abs(loss)) * inside, inside)


@pytest.mark.parametrize("seed", range(thinned(36)))
def test_three_nodes_for_each_segment_are_all_chords(seed: int) -> None:
    """One step on random convex profiles, some with few kinks, against every chord on a fine grid of b."""
    generator = np.random.default_rng(seed)
    m, nodes = int(generator.choice([1, 2, 5, 12])), int(generator.integers(4, 40))
    step = float(generator.choice([0.003, 0.05, 0.4]))
    chord = recursion.chord_of(m, math.expm1(step), m)
    values = random_profile(generator, nodes, chord.step)
    values[-1] = 0.0
    top = nodes - 1 + m
    above = recursion.upper_step(recursion.Row(np.maximum(values, recursion.FLOOR)), top, chord).values
    below = recursion.lower_step(values, top, chord)
    size = m * chord.step
    fine = np.linspace(0.0, size, 64 * m + 1)
    for i in range(top + 1):
        epsilon = i * chord.step
        share = np.expm1(fine - size) / np.expm1(-size)
        every = share * extended(values, epsilon - fine, chord.step)
        every = every + (1 - share) * extended(values, epsilon - fine + size, chord.step)
        assert above[i] >= every.max() * (1 - 1e-12)
        assert above[i] <= every.max() * (1 + 2e-2) + 1e-14
        assert below[i] <= above[i]
        nodes_only = every[::64].max()
        assert below[i] <= nodes_only * (1 + 1e-12)


def test_random_strategies_stay_below() -> None:
    """Three uses, each u chosen by what came before: all eight outcomes counted."""
    generator = np.random.default_rng(7)
    size = 0.7
    law = bounds((size, 3))
    epsilons = np.array([-1.0, 0.0, 0.3, 0.8, 1.4])
    upper = np.exp(law.log_profile(epsilons)[1])
    best = np.zeros(len(epsilons))
    for _ in range(thinned(3000)):
        paths = [(1.0, 0.0)]
        for _ in range(3):
            grown = []
            for p, loss in paths:
                u = size * generator.beta(2.0, 2.0)
                share = two_points(u, size)
                grown += [(p * share, loss + u), (p * (1 - share), loss + u - size)]
            paths = grown
        p, loss = np.array(paths).T
        found = np.array([(p * -np.expm1(np.minimum(e - loss, 0.0))).sum() for e in epsilons])
        assert (found <= upper).all()
        best = np.maximum(best, found)
    assert (best >= 0.7 * upper).all()


def test_beside_others_the_uses_may_depend_on_their_results() -> None:
    """Randomised response first, then two uses whose u depends on what it said: the worst order."""
    size, plan = 0.6, 2 * dp.ExponentialMechanism(0.6) + dp.RandomizedResponse(0.7)
    loss = math.log(0.7 / 0.3)
    rest = any_order(size, size)
    for epsilon in (0.9,):
        truth = 0.7 * rest(epsilon - loss) + 0.3 * rest(epsilon + loss)
        box = plan.delta_interval(epsilon)
        assert box.lower <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= box.upper
        assert box.upper - box.lower < 1e-3 * box.upper


def test_one_use_is_exact_and_composes_with_noise() -> None:
    plan = dp.ExponentialMechanism(0.8)
    for epsilon in (0.0, 0.3, 0.79):
        box = plan.delta_interval(epsilon)
        truth = one_use(0.8)(epsilon)
        assert box.lower <= truth <= box.upper
        assert box.upper - box.lower <= 1e-12 * truth
    both = (plan + dp.Gaussian(3.0)).delta_interval(0.5)
    u = np.linspace(-0.8, 0.8, 4001)
    middle = 0.5 * (u[1:] + u[:-1])
    density = np.exp(0.5 * middle) / (4 * math.sinh(0.4))
    parts = dp.Gaussian(3.0).laws()[0].log_profile(0.5 - middle)[1]
    assert float((density * np.exp(parts)).sum() * (u[1] - u[0])) == pytest.approx(both.upper, rel=1e-6)


def test_the_sampled_pair_of_one_use() -> None:
    rate, size, epsilon = 0.1, 0.5, 0.02
    box = dp.PoissonSampled(dp.ExponentialMechanism(size), rate).delta_interval(epsilon)
    truth = rate * one_use(size)(math.log1p(math.expm1(epsilon) / rate))
    assert box.lower <= truth <= box.upper
    assert box.upper - box.lower <= 1e-12 * truth
    many = (20 * dp.PoissonSampled(dp.ExponentialMechanism(size), rate)).epsilon_interval(1e-5)
    attained = (20 * dp.PoissonSampled(dp.PureDP(size / 2), rate)).epsilon_interval(1e-5)
    assert many.lower == pytest.approx(attained.lower, rel=1e-6)
    assert many.lower < many.upper
    with pytest.raises(dp.Unanswerable, match="each use by itself"):
        dp.PoissonSampled(2 * dp.ExponentialMechanism(size), rate).epsilon(1e-5)
    with pytest.raises(dp.Unanswerable, match="REPLACE"):
        dp.PoissonSampled(dp.ExponentialMechanism(size), rate, dp.REPLACE).epsilon(1e-5)


def test_moments_are_the_worst_at_each_order() -> None:
    for size in (1e-4, 0.3, 2.0, 9.0):
        law = BoundedRangeMoments(((size, 1),))
        u = np.linspace(0.0, size, 20001)[1:-1]
        p = np.expm1(u - size) / np.expm1(-size)
        for t in (0.05, 1.0, 6.5):
            worst = float(np.log1p(p * np.expm1(t * u) + (1 - p) * np.expm1(t * (u - size))).max())
            value, error = (float(x) for x in law.log_moment_and_error(np.asarray(t)))
            assert worst * (1 - 1e-9) <= value + error
            assert value == pytest.approx(worst, rel=1e-6)
            assert value <= size * size * t * (t + 1) / 8 * (1 + 1e-12)
    assert dp.ExponentialMechanism(0.1).rho() == pytest.approx(0.1**2 / 8, rel=1e-15)


def test_the_table_knows_its_own_moments() -> None:
    """K and the mean of several uses against the integral of the profile from above."""
    law = bounds((0.5, 4))
    loss = np.linspace(0.0, 2.0, 20001)
    middle = 0.5 * (loss[1:] + loss[:-1])
    profile = np.exp(law.log_profile(middle)[1])
    for t in (0.0, 0.5, 3.0):
        integral = float((profile * (np.exp(t * middle) + np.exp(-(1 + t) * middle))).sum() * 1e-4)
        if t == 0:
            assert law.mean == pytest.approx(integral, rel=1e-6)
        else:
            assert float(law.log_moment(np.asarray(t))) == pytest.approx(math.log1p(t * (t + 1) * integral), rel=1e-6)
    dp.check_law(law)
    dp.check_law(BoundedRangeLaw.once(0.7))


def test_too_many_uses_are_answered_by_zcdp_and_say_so() -> None:
    box = (10**6 * dp.ExponentialMechanism(0.001)).epsilon_interval(1e-6)
    assert "Renyi, upper bound only" in box.method
    assert box.upper == pytest.approx(2.419, abs=1e-3)
    many = sum((dp.ExponentialMechanism(0.01 * (1 + i / 7)) for i in range(20)), start=dp.ExponentialMechanism(0.02))
    assert "upper bound only" in many.epsilon_interval(1e-6).method
    explained = (10**6 * dp.ExponentialMechanism(0.001)).explain(1e-6)
    assert "Cesar" in str(explained)


def test_no_use_costs_nothing() -> None:
    assert dp.ExponentialMechanism(0.0).epsilon(0.0) == 0.0
    assert nothing(-0.5) == pytest.approx(1 - math.exp(-0.5))
    assert (5 * dp.ExponentialMechanism(0.3)).epsilon(0.0) == pytest.approx(1.5, rel=1e-15)
    assert (5 * dp.ExponentialMechanism(0.3)).delta(0.0) < 1


@pytest.mark.parametrize(("size", "uses"), [(0.1, 1000), (0.497, 1000), (1.0, 300), (8.0, 40), (0.02, 400)])
def test_many_uses_stay_sharp(size: float, uses: int) -> None:
    """What is added for roundings grew with each use until it was all: 1000 of 0.1 were answered by [0, 100]."""
    box = (uses * dp.ExponentialMechanism(size)).epsilon_interval(1e-6)
    assert box.upper - box.lower <= 0.01 * box.upper
    plan, fixed = uses * dp.ExponentialMechanism(size), 0.0
    for share in (0.45, 0.5, 0.55, 0.6, 0.75, 0.9, 0.97):  # the same two losses each time: a strategy that is allowed
        p, number = two_points(share * size, size), np.arange(uses + 1)
        losses = uses * share * size - (uses - number) * size
        gains = np.maximum(-np.expm1(np.minimum(box.lower - losses, 0.0)), 0.0)
        fixed = max(fixed, float((binom.pmf(number, uses, p) * gains).sum()))
    assert 0 < fixed * (1 - 1e-9) <= plan.delta_interval(box.lower).upper


def test_values_that_overflow_are_no_numbers_that_are_none() -> None:
    """Infinite values met one another as NaN, and the route failed."""
    for size, uses in ((0.49723376795761887, 1000), (2.0, 300), (8.0, 60), (0.001, 2000)):
        law = bounds((size, uses))
        at = np.linspace(0.0, law.supremum, 40)
        lower, upper = law.log_profile(at)
        assert not np.isnan(lower).any()
        assert not np.isnan(upper).any()
        assert np.all(lower <= upper)
        assert np.all(upper <= 0)


def test_mean_and_variance_of_one_use() -> None:
    """The series of the mean ended too early (6e-13 below the truth at 0.2); at a range above 3 the variance was NaN or
    its ends crossed. Truth: the density e^{(l - eps)/2} / (2 (1 - e^-eps)) on [-eps, eps].
    """
    draw = random.Random("one use")
    with mp.workdps(60):
        for _ in range(thinned(600)):
            size = math.exp(draw.uniform(-7, 8))
            eps = mp.mpf(size)
            scale = mp.exp(-eps / 2) / (2 * (1 - mp.exp(-eps)))
            first, second = (
                scale * (polynomial(eps) * mp.exp(eps / 2) - polynomial(-eps) * mp.exp(-eps / 2))
                for polynomial in (lambda x: 2 * x - 4, lambda x: 2 * x * x - 8 * x + 16)
            )
            loss = dp.BoundedRange(size).loss()
            for box, true in ((loss.mean, first), (loss.variance, second - first**2)):
                assert mp.mpf(box.lower) <= true * (1 + mp.mpf(10) ** -30), (size, box, true)
                assert true * (1 - mp.mpf(10) ** -30) <= mp.mpf(box.upper), (size, box, true)
            apart = mp.expm1(-eps)
            means = [u - eps + eps * mp.expm1(u - eps) / apart for u in (eps * k / 64 for k in range(1, 64))]
            assert mp.mpf(dp.BoundedRange(size).renyi(1.0)) >= max(means) * (1 - mp.mpf(10) ** -30)
