"""Golden and laws: what one Renyi order proves, against the pairs on two points that attain it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mpmath import exp, findroot, mp, mpf

import dptally as dp
from dptally.accounting import renyi, two_points
from dptally.conversions import edge
from dptally.conversions.renyi import renyi_to_approx, renyi_to_approx_delta


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mp.workdps(30):
        yield


def attained(order: float, epsilon: float, q: mpf) -> mpf:
    """The largest p with D_a <= epsilon of (p, 1-p) and (q, 1-q) in both directions, by bisection."""
    a, most = mpf(order), exp((mpf(order) - 1) * mpf(epsilon))
    low, high = q, mpf(1)

    def moment(p: mpf, q: mpf) -> mpf:
        return p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)

    for _ in range(90):
        p = (low + high) / 2
        if p < 1 and max(moment(p, q), moment(q, p)) <= most:
            low = p
        else:
            high = p
    return low


def best_pair(order: float, epsilon: float, at: float) -> mpf:
    """sup over pairs on two points of P(S) - e^at Q(S), by golden section over log q (it is concave in q)."""
    low, high = mpf(-80), mpf(-1) / 10**6
    ratio = (mp.sqrt(5) - 1) / 2

    def value(log_q: mpf) -> mpf:
        q = exp(log_q)
        return attained(order, epsilon, q) - exp(mpf(at)) * q

    for _ in range(55):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if value(left) > value(right) else (left, high)
    return value((low + high) / 2)


@pytest.mark.parametrize(
    ("order", "epsilon", "delta", "exact"),
    [(10.0, 0.1, 1e-5, 0.9600814205709), (1.5, 0.3, 0.1, 0.84494393220925)],
)
def test_golden_values(order: float, epsilon: float, delta: float, exact: float) -> None:
    assert edge("renyi", "approx").function(order, epsilon, delta) == pytest.approx(exact, rel=1e-12)
    assert dp.RenyiDP((order,), (epsilon,)).epsilon(delta) == pytest.approx(exact, rel=1e-9)
    assert dp.convert(dp.RenyiDP((order,), (epsilon,)), "approx", delta=delta).epsilon(delta) <= exact * (1 + 1e-9)


@pytest.mark.parametrize(
    ("order", "epsilon", "at"),
    [(10.0, 0.1, 0.96), (2.0, 1.0, 3.0), (4.0, 0.5, 0.2), (30.0, 2.0, 2.5), (10.0, 1.0, 0.0), (1.5, 5.0, 2.5)],
)
def test_some_pair_attains_the_bound(order: float, epsilon: float, at: float) -> None:
    truth, bound = best_pair(order, epsilon, at), renyi_to_approx_delta(order, epsilon, at)
    assert truth <= bound * (1 + mpf("1e-13"))
    assert bound <= truth * (1 + mpf("1e-7"))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(1.05, 50), st.floats(1e-3, 3), st.floats(-14, -0.05), st.floats(-30, -0.01))
def test_no_pair_beats_the_bound(order: float, epsilon: float, log_delta: float, log_q: float) -> None:
    delta = math.exp(log_delta)
    found = renyi_to_approx(order, epsilon, delta)
    q = exp(mpf(log_q))
    p = attained(order, epsilon, q)
    assert p - exp(mpf(found)) * q <= delta * (1 + 1e-12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(-3, 3), st.floats(-4, 2), st.floats(-40, -0.01), st.floats(0, 0.3))
def test_never_above_the_simple_conversion_and_back_again(
    log_t: float, log_e: float, log_d: float, mass: float
) -> None:
    t, epsilon, delta = 10**log_t, 10**log_e, math.exp(log_d)
    found = two_points.epsilon(t, t * epsilon, delta)
    simple = epsilon - (math.log(delta) + t * math.log1p(1 / t) + math.log1p(t)) / t
    assert found <= simple + 1e-9 * abs(simple) + 1e-12
    assert two_points.epsilon(t, t * epsilon, delta, mass) >= found - 1e-9 * (1 + abs(found))
    if found > 0:
        assert two_points.log_delta(t, t * epsilon, found) == pytest.approx(log_d, rel=1e-6, abs=1e-6)


def test_a_declared_order_beside_a_mass_at_infinity() -> None:
    """RenyiDP beside ApproxDP: E[r] = 1 - p enters the bound; the certified upper end covers an explicit pair."""
    plan = dp.RenyiDP((4.0,), (0.2,)) + dp.ApproxDP(0.1, 0.01)
    for delta in (0.02, 0.1):
        assert plan.epsilon(delta) >= (dp.RandomizedResponse(0.6) + dp.ApproxDP(0.1, 0.01)).epsilon(delta) - 0.5
        assert plan.epsilon(delta) < renyi.epsilon(plan, delta, "cks").value * (1 + 1e-12)


def test_conversions_by_name() -> None:
    plan = 50 * dp.PureDP(0.2)
    values = {name: renyi.epsilon(plan, 0.01, name).value for name in ("mironov", "cks", "tightest", "optimal")}
    assert values["optimal"] < values["tightest"] == values["cks"] < values["mironov"]
    assert values["optimal"] > plan.epsilon_interval(0.01).lower
    assert "Asoodeh" in renyi.epsilon(plan, 0.01, "optimal").theorem
    assert renyi.epsilon(plan, 0.01, "optimal", orders=range(2, 20)).value >= values["optimal"] * (1 - 1e-6)
    assert renyi.delta(plan, 4.0, "optimal").value < renyi.delta(plan, 4.0, "cks").value


def test_one_direction_alone_at_large_delta() -> None:
    """At delta >= 1/a the best pair of one direction has P on one point: epsilon + log(1 - delta), from the pair."""
    exact = findroot(lambda e: 1 - exp(e) / exp(mpf(1)) - mpf("0.5"), 0.3)
    assert two_points.epsilon(99.0, 99.0, 0.5) == pytest.approx(float(exact), rel=1e-12)
    assert dp.RenyiDP((100.0,), (1.0,)).epsilon(0.5) == 0.0  # both directions: randomized response has delta(0) = 0.465
