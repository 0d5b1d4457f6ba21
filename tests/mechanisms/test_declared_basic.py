"""Golden and laws: the questions, asked of single mechanisms whose answers have closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dptally as dp
import golden
from strategies import log_uniform


@pytest.mark.parametrize("name", golden.ids("gdp.eps."))
def test_golden_epsilon_of_gaussian_dp(name: str) -> None:
    """F71, inverted."""
    given_ = golden.inputs(name)
    box = dp.GaussianDP(given_["mu"]).epsilon_interval(delta=given_["delta"])
    assert box.lower <= golden.value(name) <= box.upper
    assert box.width <= 1e-11 * box.upper


@pytest.mark.parametrize("name", golden.ids("gdp.delta."))
def test_golden_delta_of_gaussian_dp(name: str) -> None:
    """F71."""
    given_ = golden.inputs(name)
    box = dp.GaussianDP(given_["mu"]).delta_interval(epsilon=given_["eps"])
    assert box.lower <= golden.value(name) <= box.upper
    assert box.width <= 1e-11 * box.upper


def test_golden_tradeoff() -> None:
    """F67: Phi(Phi^{-1}(1 - fpr) - mu), from below."""
    (name,) = golden.ids("gdp.tradeoff.")
    given_ = golden.inputs(name)
    fnr = dp.GaussianDP(given_["mu"]).tradeoff(given_["alpha"])
    assert golden.value(name) * (1 - 1e-11) <= fnr <= golden.value(name)


@given(log_uniform(-3, 1), st.floats(0.01, 1.5))
def test_delta_of_laplace(reach: float, share: float) -> None:
    """F72: 1 - exp((eps - r)/2), 0 from r on."""
    box = dp.Laplace(1.0, reach).delta_interval(share * reach)
    truth = max(0.0, -math.expm1((share * reach - reach) / 2))
    assert box.lower <= truth * (1 + 1e-13)
    assert box.upper >= truth * (1 - 1e-13)
    assert box.width <= 1e-9 * truth + 1e-15


@given(log_uniform(-3, 1), log_uniform(-12, -2))
def test_epsilon_of_pure_dp(epsilon: float, delta: float) -> None:
    """F69 inverted: log(e^eps - delta (1 + e^eps)), at least 0."""
    box = dp.PureDP(epsilon).epsilon_interval(delta)
    room = math.exp(epsilon) - delta * (1 + math.exp(epsilon))
    truth = max(0.0, math.log(room))
    assert box.lower <= truth + 1e-14
    assert box.upper >= truth - 1e-14
    assert dp.PureDP(epsilon).epsilon(0.0) == pytest.approx(epsilon, rel=1e-13)
    assert dp.PureDP(epsilon).epsilon(0.0) >= epsilon


def test_mass_at_infinity_makes_epsilon_infinite_below_delta() -> None:
    mechanism = dp.ApproxDP(1.0, 1e-6)
    assert mechanism.epsilon(1e-7) == math.inf
    assert mechanism.epsilon(1e-6) == pytest.approx(1.0)
    assert mechanism.epsilon(1e-6) >= 1.0
    assert mechanism.delta(5.0) == pytest.approx(1e-6)
    assert mechanism.renyi(2.0) == math.inf
    assert mechanism.rho() == math.inf


def test_answers_are_in_kind() -> None:
    mechanism = dp.Laplace(2.0)
    assert isinstance(mechanism.renyi(2), float)
    assert mechanism.renyi([2, 3]).shape == (2,)
    assert mechanism.renyi(np.array([[2.0], [3.0]])).shape == (2, 1)
    assert isinstance(mechanism.alpha_divergence(2.0), float)
    assert mechanism.tradeoff([0.1, 0.5]).shape == (2,)
    assert mechanism.renyi(math.inf) == 0.5
    assert mechanism.renyi(1.0) == pytest.approx(0.5 + math.expm1(-0.5), rel=1e-15)


@pytest.mark.parametrize("bad", [0.5, -1.0, math.nan, "2", None, True, 1j, [1.0, 0.5]])
def test_bad_orders_are_refused(bad: object) -> None:
    with pytest.raises(dp.InvalidArgument, match="order"):
        dp.Laplace(1.0).renyi(bad)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, "0.1", None, True, [0.1, 1.1], ["0.1"]])
def test_bad_deltas_are_refused(bad: object) -> None:
    with pytest.raises(dp.InvalidArgument, match="delta"):
        dp.Laplace(1.0).epsilon(bad)


@pytest.mark.parametrize("bad", [-0.1, math.inf, math.nan, "0.1", None, True, [0.1, -0.1]])
def test_bad_epsilons_are_refused(bad: object) -> None:
    with pytest.raises(dp.InvalidArgument, match="epsilon"):
        dp.Laplace(1.0).delta(bad)


@pytest.mark.parametrize("order", [1 + 1e-6, 1e4, 1e8])
@pytest.mark.parametrize("mechanism", [dp.Laplace(0.05), dp.PureDP(30.0), dp.DiscreteLaplace(0.5, 4)])
def test_extreme_orders_are_finite_and_below_the_supremum(mechanism: dp.Mechanism, order: float) -> None:
    assert 0 < mechanism.renyi(order) <= mechanism.renyi(math.inf)


def test_a_plan_explains_itself() -> None:
    text = str((3 * dp.Laplace(5.0)).explain(delta=1e-6))
    assert "Laplace" in text
    assert "1e-06" in text or "1e-6" in text
