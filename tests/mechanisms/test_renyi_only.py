"""Laws and contract: declared guarantees that bound Renyi divergences and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dptally as dp
from dptally import gdp
from dptally.answers.convert import convert
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.law import Composition
from dptally.laws.moment_bound import RenyiBound, ZCDPBound
from dptally.mechanisms.alpha_dp import AlphaDP
from dptally.mechanisms.gaussian import Gaussian
from dptally.mechanisms.json import from_json, to_json
from dptally.mechanisms.laplace import Laplace
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.pure_dp import PureDP
from dptally.mechanisms.renyi_dp import RenyiDP
from dptally.mechanisms.zcdp import ZCDP

ALL = [ZCDP(0.5), RenyiDP((2.0, 4.0), (0.1, 0.3)), AlphaDP(3.0, 0.2)]


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_only_moments_are_known(mechanism: Mechanism) -> None:
    (law,) = mechanism.laws()
    assert not law.determined
    assert (law.supremum, law.infimum, law.infinity_mass) == (math.inf, -math.inf, 0.0)
    for question in (lambda: law.log_profile(np.zeros(1)), lambda: law.tail(np.zeros(1))):
        with pytest.raises(Unanswerable, match="epsilon\\(delta="):
            question()
    for t in (np.array([0.5 + 1j]), np.array([-1.5])):
        with pytest.raises(Unanswerable, match="real t"):
            law.log_moment(t)
    assert (law.log_moment(np.array([-1.0, -0.5, 0.0])) == 0).all()
    assert from_json(to_json(2 * mechanism)) == 2 * mechanism
    assert eval(repr(mechanism)) == mechanism  # the print is the line to write


def test_zcdp() -> None:
    (law,) = ZCDP(0.5).laws()
    assert law.log_moment(np.array([1.0, 3.0])).tolist() == [1.0, 6.0]
    assert (law.mean, law.closed_rho()) == (0.5, 0.5)
    assert ZCDP(0.0).laws() == ()
    (composed,) = (3 * ZCDP(0.1) + ZCDP(0.2)).directions()
    ((sum_law, count),) = composed.parts
    assert isinstance(sum_law, ZCDPBound)
    assert count == 1
    assert 0.5 <= sum_law.rho <= 0.5 * (1 + 1e-15)
    assert Composition.of([(ZCDPBound(0.1), 1)]).parts == ((ZCDPBound(0.1), 1),)


def test_zcdp_is_the_gaussian_curve() -> None:
    t = np.array([0.5, 2.0, 50.0])
    gaussian = Gaussian(2.0).laws()[0].log_moment(t)
    assert ZCDP(0.125).laws()[0].log_moment(t) == pytest.approx(gaussian, rel=1e-15)


def response_moment(t: float, x: float) -> float:
    """log(p e^(t x) + q e^(-t x)), p = 1/(1 + e^-x), q = 1 - p."""
    p = 1 / (1 + math.exp(-x))
    return math.log(p * math.exp(t * x) + (1 - p) * math.exp(-t * x))


def largest_loss(fits: Callable[[float], bool]) -> float:
    low, high = 0.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def test_renyi_between_below_and_beyond_the_orders() -> None:
    (law,) = RenyiDP((2, 4), (0.1, 0.3)).laws()
    at = np.array([0.5, 1.0, 2.0, 3.0, 3.01])
    # (a - 1) D_a: below order 2 that of the response whose divergence of order 2 is .1, then linear to .9 at order 4 or
    # that of its response, then unknown
    low = largest_loss(lambda x: response_moment(1.0, x) <= 0.1)
    high = largest_loss(lambda x: response_moment(3.0, x) <= 0.9)
    told = [response_moment(0.5, low), 0.1, min(0.5, response_moment(2.0, high)), 0.9]
    assert law.log_moment(at).tolist()[:4] == pytest.approx(told, rel=1e-13)
    assert law.log_moment(at)[4] == math.inf
    assert (law.log_moment(at[:4]) >= np.array(told) * (1 - 1e-15)).all()
    assert law.mean == pytest.approx(low * math.tanh(low / 2))


def test_a_point_above_the_envelope_is_ignored() -> None:
    """Declared .5 at order 3 is implied to be less by the other two: K is convex."""
    (law,) = RenyiDP((2, 3, 5), (0.1, 0.5, 0.2)).laws()
    (without,) = RenyiDP((2, 5), (0.1, 0.2)).laws()
    found = float(law.log_moment(np.array([2.0]))[0])
    assert found == float(without.log_moment(np.array([2.0]))[0])
    assert found <= 0.1 + (0.8 - 0.1) / 3


def test_order_infinity() -> None:
    (law,) = RenyiDP((2.0, math.inf), (0.1, 1.0)).laws()
    response = PureDP(1.0).laws()[0]
    assert isinstance(law, RenyiBound)
    assert law.log_moment(np.array([1.0])) == pytest.approx(0.1)
    assert law.log_moment(np.array([7.0])) == pytest.approx(response.log_moment(np.array([7.0])))
    assert law.mean == pytest.approx(RenyiDP((2.0,), (0.1,)).laws()[0].mean)
    # order infinity alone, or beside orders that it implies, is pure DP
    assert RenyiDP((math.inf,), (1.0,)).laws() == RenyiDP((2.0, math.inf), (0.74, 1.0)).laws() == (response,)


def test_order_infinity_answers_as_pure_dp_does() -> None:
    plan, pure = 50 * RenyiDP((math.inf,), (0.2,)), 50 * PureDP(0.2)
    assert plan.epsilon_interval(1e-3) == pure.epsilon_interval(1e-3)
    assert plan.epsilon(1e-3) == pytest.approx(4.731139738, abs=1e-8)  # kov.eps of tests/golden.json
    one = RenyiDP((math.inf,), (1.0,))
    assert gdp.identify(one).verdict == gdp.Verdict.GDP
    assert convert(one, "gaussian").mu == pytest.approx(1.2320353853, abs=1e-9)
    assert convert(one, "zcdp").rho() == pytest.approx(math.tanh(0.5), rel=1e-12)
    assert convert(one, "renyi", order=2.0).epsilons[0] == pytest.approx(0.735325664056, rel=1e-11)
    # two declared orders: the better of pure DP and the Renyi bound, at every delta
    both = RenyiDP((2.0, math.inf), (0.1, 1.0))
    for delta in (1e-9, 1e-3, 0.2):
        least = min(PureDP(1.0).epsilon(delta), RenyiDP((2.0,), (0.1,)).epsilon(delta))
        assert both.epsilon(delta) <= least * (1 + 1e-12)
    assert gdp.identify(both).verdict == gdp.Verdict.GDP
    assert gdp.measure(both).mu.upper <= 1.2320354


@given(
    orders=st.lists(st.floats(1.01, 60), min_size=1, max_size=6, unique=True),
    scale=st.floats(0.3, 10),
    t=st.floats(1e-3, 59),
)
def test_a_declared_curve_bounds_the_mechanism_it_came_from(orders: list[float], scale: float, t: float) -> None:
    law = Laplace(scale).laws()[0]
    exact = [float(law.log_moment(np.array([a - 1.0]))[0]) / (a - 1.0) for a in orders]
    (bound,) = RenyiDP(orders, exact).laws()
    got, truth = float(bound.log_moment(np.array([t]))[0]), float(law.log_moment(np.array([t]))[0])
    assert got >= truth * (1 - 1e-13)
    if t > max(orders) - 1 + 1e-9:
        assert got == math.inf


@given(alpha=st.floats(1.001, 200), epsilon=st.floats(-12, 3).map(lambda x: 10.0**x))
def test_alpha_is_renyi_in_other_units(alpha: float, epsilon: float) -> None:
    """docs/errata.md: 1 + a (a - 1) eps = exp((a - 1) D_a)."""
    (law,) = AlphaDP(alpha, epsilon).laws()
    at = np.array([alpha - 1])
    (renyi,) = RenyiDP((alpha,), (math.log1p(alpha * (alpha - 1) * epsilon) / (alpha - 1),)).laws()
    assert law.log_moment(at) == pytest.approx(renyi.log_moment(at), rel=1e-13)
    assert law.log_moment(at) >= math.log1p(alpha * (alpha - 1) * epsilon) * (1 - 1e-14)
    assert law.log_moment(at * 0.5) == pytest.approx(renyi.log_moment(at * 0.5), rel=1e-13)


def test_alpha_without_overflow() -> None:
    (law,) = AlphaDP(1e200, 1.0).laws()
    (at,) = law.orders()
    assert float(law.log_moment(np.array([at]))[0]) == pytest.approx(400 * math.log(10), rel=1e-12)
    # the response of loss (log M + log 2)/t has moment M; p = q = 1/2 at so small a loss
    below = 0.1 * (400 * math.log(10) + math.log(2)) - math.log(2)
    assert float(law.log_moment(np.array([1e199]))[0]) == pytest.approx(below, rel=1e-12)
    assert AlphaDP(2.0, 0.0).laws() == ()
    assert RenyiDP((2.0,), (0.0,)).laws() == ()


def test_sequences_of_any_kind() -> None:
    assert RenyiDP([4, 2], [0.3, 0.1]) == RenyiDP(np.array([2.0, 4.0]), np.array([0.1, 0.3]))
    assert hash(RenyiDP([4, 2], [0.3, 0.1])) == hash(RenyiDP((2.0, 4.0), (0.1, 0.3)))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: ZCDP(-0.1), InvalidArgument, "rho must be at least 0"),
        (lambda: ZCDP(math.nan), InvalidArgument, "rho"),
        (lambda: ZCDP(math.inf), InvalidArgument, "rho"),
        (lambda: ZCDP(True), InvalidType, "rho"),
        (lambda: AlphaDP(1.0, 0.1), InvalidArgument, "alpha must be greater than 1"),
        (lambda: AlphaDP(math.inf, 0.1), InvalidArgument, "alpha must be finite"),
        (lambda: AlphaDP(2.0, -0.1), InvalidArgument, "epsilon"),
        (lambda: RenyiDP((), ()), InvalidArgument, "at least one"),
        (lambda: RenyiDP((2.0,), (0.1, 0.2)), InvalidArgument, "one for each"),
        (lambda: RenyiDP((1.0,), (0.1,)), InvalidArgument, "greater than 1"),
        (lambda: RenyiDP((math.nan,), (0.1,)), InvalidArgument, "orders"),
        (lambda: RenyiDP((2.0, 2.0), (0.1, 0.1)), InvalidArgument, "different"),
        (lambda: RenyiDP((2.0,), (-0.1,)), InvalidArgument, "epsilons"),
        (lambda: RenyiDP((2.0,), (math.inf,)), InvalidArgument, "epsilons"),
        (lambda: RenyiDP(2.0, 0.1), InvalidType, "a sequence"),
        (lambda: RenyiDP("23", (0.1, 0.2)), InvalidType, "a sequence"),
        (lambda: RenyiDP((True,), (0.1,)), InvalidType, "orders"),
    ],
)
def test_bad_input(make: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(("rho", "xi"), [(0.5, 1.0), (0.01, 0.2), (2.0, 0.01), (0.0, 0.7)])
def test_a_shifted_guarantee_contains_what_keeps_it(rho: float, xi: float) -> None:
    """Pure DP beside Gaussian noise keeps (xi, rho)-zCDP; at rho 0 the two definitions are one."""
    stated = dp.ShiftedZCDP(rho, xi)
    kept = dp.PureDP(xi) + dp.ZCDP(0.0) if rho == 0 else dp.PureDP(xi) + dp.Gaussian(math.sqrt(0.5 / rho))
    for order in (1.01, 2.0, 10.0, 1e4):
        assert kept.renyi(order) <= stated.renyi(order) <= (xi + rho * order) * (1 + 1e-12)
    for delta in (1e-3, 1e-6, 1e-12):
        assert kept.epsilon_interval(delta).lower <= stated.epsilon(delta)
    assert rho + xi <= stated.rho() <= (rho + xi) * (1 + 1e-12) or rho == 0
    assert (3 * stated).renyi(2.0) == pytest.approx(3 * (xi + 2 * rho), rel=1e-12) or rho == 0


def test_a_shifted_guarantee_without_a_shift_is_zcdp() -> None:
    assert dp.ShiftedZCDP(0.5, 0.0).epsilon(1e-6) == pytest.approx(dp.ZCDP(0.5).epsilon(1e-6), rel=1e-12)


def test_groups_of_a_shifted_guarantee_contain_those_of_what_keeps_it() -> None:
    """k records of pure DP and Gaussian noise: k xi + k^2 rho a."""
    stated, kept = dp.ShiftedZCDP(0.125, 0.3), dp.PureDP(0.3) + dp.Gaussian(2.0)
    for size in (1, 2, 7, 1000, 1001, 5000):
        group = stated.group(size)
        assert kept.group(size).renyi(3.0) <= group.renyi(3.0)
        harmonic = sum(1 / one for one in range(1, size + 1))
        assert group.renyi(3.0) == pytest.approx(0.3 * size * harmonic + 0.375 * size**2, rel=1e-6)
    with pytest.raises(dp.InvalidArgument):
        dp.ShiftedZCDP(0.0, 1e308).group(10)
