"""Contract: every framework side by side, on the safe side of the certified lower end."""

import pytest

from dptally.accounting import certified
from dptally.accounting.compare import CONCENTRATED, ROUTES, rows
from dptally.errors import InvalidArgument, InvalidType
from dptally.mechanisms import ApproxDP, Gaussian, Laplace, PureDP, RandomizedResponse, dpsgd

PLANS = [
    Gaussian(1.0),
    50 * Laplace(5.0),
    10 * Gaussian(10.0) + 50 * Laplace(5.0),
    20 * RandomizedResponse(0.55),
    ApproxDP(1.0, 1e-8) + 20 * PureDP(0.1),
    dpsgd(1.0, 0.01, 200),
]


@pytest.mark.parametrize("plan", PLANS, ids=repr)
@pytest.mark.parametrize("delta", [1e-15, 1e-6])
def test_all_frameworks_are_listed_sorted_and_never_below_the_truth(plan, delta):
    table = rows(plan.directions(), delta)
    assert {row.framework for row in table} == {name for name, _ in (*ROUTES, *CONCENTRATED)}
    answered = [row for row in table if row.epsilon is not None]
    assert table[: len(answered)] == tuple(answered)
    assert [row.epsilon for row in answered] == sorted(row.epsilon for row in answered)
    truth = certified.epsilon_interval(plan.directions(), delta).lower
    assert all(row.epsilon >= truth for row in answered)
    assert all(row.theorem for row in answered)
    assert all(row.reason for row in table if row.epsilon is None)


def test_a_framework_that_cannot_answer_says_why():
    table = {row.framework: row for row in rows(Gaussian(1.0).directions(), 1e-5)}
    assert table["pure DP"].epsilon is None
    assert "unbounded" in table["pure DP"].reason
    table = {row.framework: row for row in rows(ApproxDP(1.0, 1e-3).directions(), 1e-2)}
    assert "zCDP" in table["zCDP, tightest conversion"].reason


def test_known_order_of_the_frameworks():
    """docs/errata.md: alpha divergence equals Mironov's Renyi conversion; the tight conversion beats both."""
    table = {row.framework: row.epsilon for row in rows((100 * Gaussian(20.0)).directions(), 1e-6)}
    assert table["alpha-divergence DP"] == table["Renyi DP, Mironov's conversion"]
    assert table["Renyi DP, tightest conversion"] < table["Renyi DP, Mironov's conversion"]
    assert table["certified numerical"] < table["Renyi DP, tightest conversion"]
    assert table["zCDP, Bun-Steinke's conversion"] == pytest.approx(table["alpha-divergence DP"], rel=1e-9)


def test_nothing_run_costs_nothing_everywhere():
    assert all(row.epsilon == 0.0 for row in rows((0 * Gaussian(1.0)).directions(), 1e-5))


def test_bad_input():
    with pytest.raises(InvalidArgument, match="delta"):
        rows(Gaussian(1.0).directions(), 1.5)
    with pytest.raises(InvalidType, match="directions"):
        rows([], 0.1)
