"""Golden and laws: randomized response, pure and approximate DP against closed forms and long sums."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptally as dp
import golden
from law_reference import check_moments, check_profile, over_atoms
from strategies import log_uniform


@pytest.mark.parametrize("name", golden.ids("rdp.rr."))
def test_golden_renyi(name: str) -> None:
    """F58."""
    given_ = golden.inputs(name)
    assert dp.RandomizedResponse(given_["p"]).renyi(given_["alpha"]) == pytest.approx(golden.value(name), rel=1e-11)


@pytest.mark.parametrize("name", golden.ids("adp.rr."))
def test_golden_alpha_divergence(name: str) -> None:
    """F19."""
    given_ = golden.inputs(name)
    got = dp.RandomizedResponse(given_["p"]).alpha_divergence(given_["alpha"])
    assert got == pytest.approx(golden.value(name), rel=1e-11)


@pytest.mark.parametrize("name", golden.ids("rrprofile."))
def test_golden_profile(name: str) -> None:
    given_ = golden.inputs(name)
    lower, upper = dp.PureDP(given_["eps0"]).laws()[0].log_profile(np.asarray(given_["eps"]))
    assert lower <= mp.log(golden.exact(name)) <= upper
    assert upper - lower < 3e-14


@pytest.mark.parametrize("name", [name for name in golden.ids("order.thm21.") if "eps" in golden.inputs(name)])
def test_golden_implied_guarantee(name: str) -> None:
    """F69: Thm. 2.1 of the GDPT paper is the profile of the dominating pair plus its mass at infinity."""
    given_ = golden.inputs(name)
    law = dp.ApproxDP(given_["eps0"], given_["delta0"]).laws()[0]
    lower, upper = law.log_profile(np.asarray(given_["eps"]))
    truth = golden.value(name)
    assert math.exp(lower) + law.infinity_mass <= truth * (1 + 1e-15)
    assert math.exp(upper) + law.infinity_mass >= truth * (1 - 1e-15)


@pytest.mark.parametrize("name", golden.ids("zcdp.from_pure_tight."))
def test_golden_rho(name: str) -> None:
    """F46, tight."""
    rho = dp.PureDP(golden.inputs(name)["eps"]).rho()
    assert golden.value(name) <= rho <= golden.value(name) * (1 + 1e-13)


@given(log_uniform(-9, 2), st.one_of(st.just(0.0), log_uniform(-12, -0.1)))
@settings(max_examples=30)
def test_declared_guarantees(epsilon: float, delta: float) -> None:
    law = dp.ApproxDP(epsilon, delta).laws()[0]
    with mp.workdps(120):
        e = mp.mpf(epsilon)
        high = (1 - mp.mpf(delta)) / (1 + mp.exp(-e))
        expect = over_atoms([(e, high), (-e, high * mp.exp(-e))])
        shares = [-1.3, -1.0, -0.7, 0.0, 0.2, 0.999, 1.0, 1.1]
        check_profile(law, expect, [*(share * epsilon for share in shares), math.nextafter(epsilon, 0)])
        if delta == 0:
            check_moments(law, expect)
            assert law.mean == pytest.approx(float(expect(lambda loss: loss)), rel=1e-14)
        else:
            for t in (1e-6, 0.5, 3.0, 1e4 / epsilon):
                z = mp.mpf(t)
                truth = mp.log(expect(lambda loss, z=z: mp.exp(z * loss)))
                assert abs(float(law.log_moment(np.asarray(t))) - truth) <= 1e-14 * (abs(truth) + delta)


@given(st.floats(1e-6, 1 - 1e-6), st.integers(2, 50))
@settings(max_examples=20)
def test_randomized_response(p: float, categories: int) -> None:
    mechanism = dp.RandomizedResponse(p, categories)
    if not mechanism.laws():
        return
    law = mechanism.laws()[0]
    with mp.workdps(120):
        truth = mp.mpf(p)
        lie = (1 - truth) / (categories - 1)
        loss = mp.log(truth / lie)
        expect = over_atoms([(loss, truth), (mp.mpf(0), (categories - 2) * lie), (-loss, lie)])
        check_moments(law, expect)
        reach = float(abs(loss))
        check_profile(law, expect, [share * reach for share in (-1.2, -0.9, -0.1, 0.0, 0.1, 0.6, 0.9, 1.1)])
        check_profile(law, expect, [reach, -reach, math.nextafter(reach, 0)], width=math.inf)
        assert law.mean == pytest.approx(float(expect(lambda value: value)), rel=1e-13)
        assert math.fsum(mass for _, mass in law.atoms()) == pytest.approx(1.0, abs=1e-14)
        for at in (-1.5 * reach, -0.5 * reach, 0.5 * reach, 1.5 * reach):
            assert float(law.tail(np.asarray(at))) == pytest.approx(
                float(expect(lambda value, a=at: mp.mpf(value > a))), rel=1e-13
            )


def test_lie_and_truth_of_equal_probability_reveal_nothing() -> None:
    assert dp.RandomizedResponse(0.5).laws() == ()
    assert dp.RandomizedResponse(0.25, 4).laws() == ()
    assert dp.RandomizedResponse(0.2, 5).laws() != ()  # 0.2 is not a fifth in binary


def test_very_many_categories() -> None:
    law = dp.RandomizedResponse(0.5, 10**400).laws()[0]
    assert law.supremum == pytest.approx(400 * math.log(10), rel=1e-12)


@pytest.mark.parametrize("mechanism", [dp.PureDP(0), dp.ApproxDP(0, 0), dp.GaussianDP(0)])
def test_guarantees_that_reveal_nothing(mechanism: dp.Mechanism) -> None:
    assert mechanism.laws() == ()
    assert mechanism.renyi(5.0) == 0.0
    assert mechanism.rho() == 0.0


def test_total_disclosure() -> None:
    law = dp.ApproxDP(1.0, 1.0).laws()[0]
    assert law.infinity_mass == 1.0
    assert law.atoms() == ()
    assert law.log_moment(np.array([0.5, 2.0])).tolist() == [-math.inf, -math.inf]
    assert law.log_profile(np.array([-3.0, 0.0, 2.0]))[1].tolist() == [-math.inf] * 3
    assert law.moment_table(np.array([0.5, 1.0, 2.0])).error.shape == (3,)


def test_delta_alone() -> None:
    law = dp.ApproxDP(0.0, 0.25).laws()[0]
    assert law.atoms() == ((0.0, 0.75),)
    assert law.supremum == law.mean == 0.0
    assert float(law.log_moment(np.asarray(3.0))) == math.log1p(-0.25)
    assert law.log_profile(np.asarray(0.0))[1] == -math.inf
    assert law.closed_rho() is None
    assert law.gaussian_mu() == math.inf


def test_extreme_epsilons_neither_overflow_nor_warn() -> None:
    law = dp.PureDP(1e300).laws()[0]
    assert law.log_moment(np.array([1e-300, 1.0, 1e10])).tolist() == [
        pytest.approx(1.0),
        pytest.approx(1e300),
        math.inf,
    ]
    assert dp.PureDP(1e-300).renyi(2.0) >= 0
    assert dp.PureDP(800.0).renyi(1e4) == pytest.approx(800.0)
    assert law.moment_table(np.array([0.5, 1.0, 2.0])).moment.shape == (3,)
