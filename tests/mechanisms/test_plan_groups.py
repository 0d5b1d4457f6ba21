"""Laws and golden: the group of a plan, against brute force."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import pytest
from mpmath import exp, mp, mpf, npdf, quad

import dptally as dp


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mp.workdps(15):
        yield


KINDS = [
    dp.Gaussian(5.0),
    dp.Laplace(5.0),
    dp.DiscreteGaussian(5.0),
    dp.DiscreteLaplace(5.0),
    dp.RandomizedResponse(0.6),
    dp.PureDP(0.1),
    dp.ApproxDP(0.1, 1e-6),
    dp.ZCDP(0.01),
    dp.RenyiDP((8.0, 32.0), (0.02, 0.1)),
    dp.AlphaDP(16.0, 0.01),
    dp.GaussianDP(0.2),
    dp.PoissonSampled(dp.Gaussian(1.0), 0.01),
    2 * dp.Laplace(5.0) + dp.ZCDP(0.01),
]


@pytest.mark.parametrize("plan", KINDS, ids=repr)
def test_every_kind_answers_under_every_framework(plan: dp.Mechanism) -> None:
    group = plan.group(2)
    assert isinstance(group, dp.Mechanism)
    assert plan.group(1) == plan
    assert group.epsilon(1e-4) >= plan.epsilon(1e-4)
    assert group.delta(0.5) >= plan.delta(0.5)
    assert group.tradeoff(0.1) <= plan.tradeoff(0.1) * (1 + 1e-12)
    assert dp.from_json(dp.to_json(group)) == group
    assert plan.group(4).epsilon(1e-4) >= group.epsilon(1e-4) * (1 - 1e-12)


def test_closed_forms() -> None:
    assert dp.Gaussian(5.0, 0.1).group(3).sensitivity == pytest.approx(0.3)
    assert dp.Gaussian(5.0, 0.1).group(3).sensitivity >= 3 * mpf(0.1)
    assert dp.GaussianDP(0.2).group(5).mu == pytest.approx(1.0)
    assert dp.ZCDP(0.01).group(3).rho() == pytest.approx(0.09)
    assert dp.PureDP(0.25).group(4) == dp.PureDP(1.0)
    three = dp.ApproxDP(0.5, 1e-6).group(3)
    assert three.delta(1.5) == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1.0)), rel=1e-9)


def test_reports_of_several_records_by_enumeration() -> None:
    """k records answer by randomized response: the worst event, over all 2^k answers."""
    p = mpf("0.7")
    for size in (2, 3):
        group = dp.RandomizedResponse(0.7).group(size)
        for epsilon in (0.0, 0.4, 1.0, 2.0):
            exact = mpf(0)
            for answers in product((0, 1), repeat=size):
                ones = sum(answers)
                one = p**ones * (1 - p) ** (size - ones)
                other = (1 - p) ** ones * p ** (size - ones)
                exact += max(one - exp(mpf(epsilon)) * other, 0)
            box = group.delta_interval(epsilon)
            assert box.lower <= exact * (1 + mpf("1e-12"))
            assert exact * (1 - mpf("1e-12")) <= box.upper <= float(exact) * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("size", [2, 3])
def test_a_sampled_group_covers_the_exact_mixture(size: int) -> None:
    """Records of the same contribution: sum_j Bin(j; size, q) N(j, s^2) against N(0, s^2), both directions."""
    q, s = mpf("0.1"), mpf(2)
    group = dp.PoissonSampled(dp.Gaussian(2.0), 0.1).group(size)
    weights = [math.comb(size, j) * q**j * (1 - q) ** (size - j) for j in range(size + 1)]

    def with_group(y: mpf) -> mpf:
        return sum(w * npdf((y - j) / s) / s for j, w in enumerate(weights))

    def without(y: mpf) -> mpf:
        return npdf(y / s) / s

    nodes = [-24, -8, -3, 0, 2, 4, 8, 24]
    for epsilon in (0.0, 0.2, 0.6):
        a = exp(mpf(epsilon))
        removed = quad(lambda y, a=a: max(with_group(y) - a * without(y), 0), nodes, maxdegree=5)
        added = quad(lambda y, a=a: max(without(y) - a * with_group(y), 0), nodes, maxdegree=5)
        assert max(removed, added) <= group.delta(epsilon) * (1 + 1e-3)  # the quadrature meets a kink


@pytest.mark.parametrize(
    "plan",
    [dp.PoissonSampled(dp.RandomizedResponse(0.6), 0.2), dp.PoissonSampled(dp.Gaussian(2.0), 0.05, dp.REPLACE)],
    ids=repr,
)
def test_the_general_bound_follows_the_lemma(plan: dp.Mechanism) -> None:
    group = plan.group(2)
    assert isinstance(group, dp.Profile)
    for epsilon, delta in group.points[::40]:
        single = plan.delta(epsilon / 2)
        assert delta >= min(single * (1 + math.exp(epsilon / 2)), 1.0) * (1 - 1e-9)


def test_renyi_groups_keep_the_better_constant() -> None:
    group = dp.RenyiDP((10.0,), (0.1,)).group(2)
    assert isinstance(group, dp.RenyiDP)
    assert group.orders == pytest.approx((5.0, 100 / 19))
    assert group.epsilons == pytest.approx((0.1 * 17 / 8, 0.1 * 19 / 9))
    pure = dp.RenyiDP((math.inf,), (0.1,)).group(3)
    assert pure.epsilon(0.0) == pytest.approx(0.3)
    with pytest.raises(dp.Unanswerable, match="large enough"):
        dp.RenyiDP((1.05,), (0.1,)).group(16)


def test_bad_sizes() -> None:
    for size in (0, -1, 2.0, True, "2"):
        with pytest.raises(dp.DptallyError, match="size"):
            dp.Gaussian(1.0).group(size)  # type: ignore[arg-type]
