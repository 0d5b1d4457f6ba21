"""Golden: what an attacker can achieve, against closed forms."""

import math

import pytest

from dptally.meaning import attacks
from dptally.mechanisms import ApproxDP, Gaussian, PureDP


def test_declared_numbers_and_the_plan_agree():
    plan = ApproxDP(1.0, 0.01).directions()
    for fpr in (0.0, 1e-9, 0.01, 0.3, 0.9):
        assert attacks.approx_true_positive_rate(1.0, 0.01, fpr) == pytest.approx(
            attacks.true_positive_rate(plan, fpr), rel=1e-6
        )
    assert attacks.approx_advantage(1.0, 0.01) == pytest.approx(attacks.advantage(plan), rel=1e-12)


def test_gaussian():
    plan = Gaussian(0.5).directions()
    assert attacks.gaussian_true_positive_rate(2.0, 0.01) == pytest.approx(
        attacks.true_positive_rate(plan, 0.01), rel=1e-12
    )
    assert attacks.advantage(plan) == pytest.approx(math.erf(1 / math.sqrt(2)), rel=1e-12)
    assert attacks.accuracy(plan) == pytest.approx(0.5 + 0.5 * math.erf(1 / math.sqrt(2)), rel=1e-12)


def test_advantage_is_attained_by_randomized_response():
    assert attacks.advantage(PureDP(1.0).directions()) == pytest.approx(math.tanh(0.5), rel=1e-12)
    assert attacks.approx_advantage(1.0, 0.0) >= math.tanh(0.5)
    assert attacks.approx_advantage(0.0, 1.0) == 1.0
    assert attacks.accuracy(PureDP(0.0).directions()) == pytest.approx(0.5)
