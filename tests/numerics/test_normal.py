"""Golden and laws: normal tails and the Gaussian profile against 30-digit values and ball arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import golden
from dptally.numerics import normal
from dptally.numerics.rounding import EPS
from strategies import log_uniform


def ball_log_delta(mu: float, epsilon: float) -> arb:
    """log( Phi(-x) - e^eps Phi(-y) ) by the defining formula, at whatever precision it takes."""
    before = ctx.prec
    try:
        for bits in (400, 2000, 10_000, 60_000):
            ctx.prec = bits
            m, e, root = arb(mu), arb(epsilon), arb(2).sqrt()
            x, y = e / m - m / 2, e / m + m / 2
            delta = ((x / root).erfc() - e.exp() * (y / root).erfc()) / 2
            if delta > 0 and delta < 1:
                logged = delta.log()
                if logged.rad() < abs(logged) * arb("1e-30"):
                    return logged
        raise AssertionError("no precise reference")
    finally:
        ctx.prec = before


def ball_log_tail(x: float, times: int = 1) -> arb:
    """log(times Phi(-x))."""
    before = ctx.prec
    try:
        ctx.prec = 6000
        return ((arb(x) / arb(2).sqrt()).erfc() * times / 2).log()
    finally:
        ctx.prec = before


def contains(bounds: tuple[np.ndarray, np.ndarray], truth: arb) -> bool:
    lower, upper = (float(end) for end in bounds)
    return arb(lower) <= truth <= arb(upper)


# -- the profile ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", golden.ids("gdp.delta."))
def test_golden_delta(name: str) -> None:
    given_ = golden.inputs(name)
    lower, upper = normal.log_gaussian_delta(given_["mu"], given_["eps"])
    assert math.exp(lower) * (1 - 1e-12) <= golden.value(name) <= math.exp(upper) * (1 + 1e-12)
    assert math.exp(0.5 * (lower + upper)) == pytest.approx(golden.value(name), rel=1e-11)


@pytest.mark.parametrize("name", golden.ids("gdp.logdelta."))
def test_golden_log_delta(name: str) -> None:
    given_ = golden.inputs(name)
    lower, upper = normal.log_gaussian_delta(given_["mu"], given_["eps"])
    assert lower <= golden.value(name) <= upper
    assert upper - lower <= 1e-14 * abs(golden.value(name))


@given(log_uniform(-8, 2), st.one_of(st.floats(0, 40), log_uniform(-6, 2.5)), st.booleans())
@settings(max_examples=250)
def test_profile_contains_the_truth(mu: float, c: float, negative: bool) -> None:
    """epsilon = c mu; exact mu, both signs."""
    epsilon = -c * mu if negative else c * mu
    bounds = normal.log_gaussian_delta(mu, epsilon, 0.0)
    truth = ball_log_delta(mu, epsilon)
    assert contains(bounds, truth)
    lower, upper = (float(end) for end in bounds)
    if truth > -690:
        assert upper - lower <= 1e-12


@given(st.floats(0.3, 60), st.floats(-38, 38), st.floats(-8, 8))
def test_profile_near_its_saddle(mu: float, x: float, ulps: float) -> None:
    """epsilon = mu^2/2 + mu x covers delta from 1 - 1e-300 to 1e-300; a mu that is off by 2 ulps is covered
    too.
    """
    epsilon = 0.5 * mu * mu + mu * x
    assume(epsilon >= 0)
    assert contains(normal.log_gaussian_delta(mu, epsilon, 0.0), ball_log_delta(mu, epsilon))
    shifted = mu * (1 + 0.24 * ulps * EPS)
    assert contains(normal.log_gaussian_delta(mu, epsilon), ball_log_delta(shifted, epsilon))


@pytest.mark.parametrize(
    ("mu", "c"),
    [(0.5, 2.0), (0.49999, 2.0), (0.49999, 1.99999), (0.5, 1.9999), (1.0, 4.0), (1.0, 4.00001), (3.0, 12.0)],
)
def test_profile_at_the_seams_of_its_formulas(mu: float, c: float) -> None:
    assert contains(normal.log_gaussian_delta(mu, c * mu, 0.0), ball_log_delta(mu, c * mu))


def test_profile_far_out() -> None:
    lower, upper = normal.log_gaussian_delta(1.0, np.array([math.inf, 1e200, -math.inf, -800.0]))
    assert lower.tolist()[:2] == [-math.inf, -math.inf]
    assert upper[0] == -math.inf
    assert upper[1] == -1e299
    assert upper[2:].tolist() == [0.0, 0.0]
    assert (lower[2:] > -1e-300).all()
    lower, upper = normal.log_gaussian_delta(1e-300, np.array([0.0, 1e-299, 1.0]))
    assert lower[0] <= math.log(1e-300) - 0.5 * math.log(2 * math.pi) <= upper[0]
    assert np.isfinite(lower[1])
    assert upper[2] == -1e299


@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, math.inf, 1e101])
def test_profile_refuses_mu_outside_its_domain(mu: float) -> None:
    with pytest.raises(ValueError, match="mu must be in"):
        normal.log_gaussian_delta(mu, 1.0)


def test_profile_broadcasts() -> None:
    lower, upper = normal.log_gaussian_delta(np.array([[0.1], [1.0]]), np.array([0.0, 1.0, -1.0]))
    assert lower.shape == upper.shape == (2, 3)
    for i, mu in enumerate((0.1, 1.0)):
        for j, epsilon in enumerate((0.0, 1.0, -1.0)):
            assert lower[i, j] == normal.log_gaussian_delta(mu, epsilon)[0]


# -- tails ---------------------------------------------------------------------------------------------------


@given(st.one_of(st.floats(-38, 38), st.floats(-1e3, 1e3), log_uniform(-12, 1)))
@settings(max_examples=150)
def test_log_tail_contains_the_truth(x: float) -> None:
    bounds = normal.log_normal_tail(x)
    if x > -100:
        assert contains(bounds, ball_log_tail(x))
    lower, upper = (float(end) for end in bounds)
    assert upper <= 0
    assert upper - lower <= 1e-14 * (10 + x * x) * abs(lower) + 1e-320


def test_log_tail_at_the_ends() -> None:
    lower, upper = normal.log_normal_tail(np.array([math.inf, 1e200, -math.inf]))
    assert lower[:2].tolist() == [-math.inf, -math.inf]
    assert (upper[:2] < -1e299).all()
    assert lower[2] > -1e-300
    assert upper[2] == 0


@given(st.one_of(log_uniform(-12, 6).map(lambda x: -x)))
def test_tail_quantile_inverts_the_tail(log_tail: float) -> None:
    lower, upper = normal.normal_tail_quantile(log_tail)
    assert ball_log_tail(float(lower)) >= arb(log_tail) or lower > 1e3
    assert ball_log_tail(float(upper)) <= arb(log_tail) or upper > 1e3
    assert upper - lower <= 1e-9 * max(1.0, abs(float(upper)))


def test_erfcx_stays_within_the_ulps_that_are_relied_on() -> None:
    """The one assumption about scipy: half of the 8 ulps that mills() claims."""
    from scipy.special import erfcx

    points = np.concatenate([np.linspace(0, 6, 700), np.geomspace(1e-9, 1e3, 300)])
    before, ctx.prec = ctx.prec, 4000
    try:
        for x, value in zip(points, erfcx(points), strict=True):
            ball = arb(float(x))
            ratio = arb(float(value)) / ((ball * ball).exp() * ball.erfc())
            assert abs(ratio - 1) < arb(5 * EPS)
    finally:
        ctx.prec = before


# -- inverses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", golden.ids("gdp.eps."))
def test_golden_epsilon(name: str) -> None:
    given_ = golden.inputs(name)
    lower, upper = normal.gaussian_epsilon(given_["mu"], given_["delta"])
    assert lower <= golden.value(name) <= upper
    assert upper - lower <= 1e-13 * golden.value(name)


@pytest.mark.parametrize("name", golden.ids("gdp.mu."))
def test_golden_mu(name: str) -> None:
    given_ = golden.inputs(name)
    lower, upper = normal.gaussian_mu(given_["eps"], given_["delta"])
    assert lower <= golden.value(name) <= upper
    assert upper - lower <= 1e-13 * golden.value(name)


@pytest.mark.parametrize("name", golden.ids("gdp.dmu_deps."))
def test_golden_slope_of_mu(name: str) -> None:
    """F75: d mu / d eps = Phi(b)/phi(b), at most sqrt(pi/2)."""
    given_ = golden.inputs(name)
    mu = normal.gaussian_mu(given_["eps"], given_["delta"])[0]
    assert float(normal.gaussian_mu_slope(given_["eps"], mu)) == pytest.approx(golden.value(name), rel=1e-13)


@pytest.mark.parametrize("name", golden.ids("gdp.mu_of_pure."))
def test_golden_mu_of_pure(name: str) -> None:
    """F80."""
    mu = normal.gaussian_mu_of_pure(golden.inputs(name)["eps"])
    assert golden.value(name) <= mu <= golden.value(name) * (1 + 1e-13)


@given(log_uniform(-6, 2), log_uniform(-12, 4).map(lambda x: -x))
def test_epsilon_inverts_delta(mu: float, log_delta: float) -> None:
    lower, upper = (float(end) for end in normal.gaussian_epsilon_log(mu, log_delta, 0.0))
    assert 0 <= lower <= upper
    assert normal.log_gaussian_delta(mu, upper, 0.0)[1] <= log_delta
    if lower > 0:
        assert normal.log_gaussian_delta(mu, lower, 0.0)[0] >= log_delta
        assert upper - lower <= 1e-8 * upper
        wide = normal.gaussian_epsilon_log(mu, log_delta)
        assert wide[0] <= lower
        assert upper <= wide[1]


@given(st.one_of(st.just(0.0), log_uniform(-8, 3)), log_uniform(-12, 4).map(lambda x: -x))
def test_mu_inverts_delta(epsilon: float, log_delta: float) -> None:
    lower, upper = (float(end) for end in normal.gaussian_mu_log(epsilon, log_delta))
    assume(upper > 1e-290)
    assert upper - lower <= 1e-10 * upper
    assert normal.log_gaussian_delta(upper, epsilon, 0.0)[0] >= log_delta
    assert normal.log_gaussian_delta(lower, epsilon, 0.0)[1] <= log_delta


def test_inverses_at_the_ends() -> None:
    ends = normal.gaussian_epsilon(np.array([1.0, 1.0, 2.0, 2.0]), np.array([0.0, 1.0, 0.99, 5e-324]))
    assert ends[0].tolist()[:3] == ends[1].tolist()[:3] == [math.inf, 0.0, 0.0]
    assert np.isfinite(ends[1][3])
    ends = normal.gaussian_mu(np.array([0.0, 3.0, 0.0, 10.0]), np.array([0.0, 1.0, 1e-300, 1 - 2**-53]))
    assert ends[0].tolist()[:2] == ends[1].tolist()[:2] == [0.0, math.inf]
    assert ends[0][2] <= 1e-300 * math.sqrt(2 * math.pi) <= ends[1][2]
    assert ends[1][3] - ends[0][3] < 1e-12
    tiny = normal.gaussian_mu(0.0, 5e-324)
    assert tiny[0] == 0
    assert tiny[1] < 1e-299
    near_one = normal.gaussian_mu_log(5.0, -1e-300)
    assert near_one[1] - near_one[0] < 1e-10
    nearer = normal.gaussian_mu_log(np.array([0.0, 5.0]), np.array([-5e-324, -1e-310]))
    assert (nearer[0] > 74).all()
    assert np.isinf(nearer[1]).all()


@given(log_uniform(-15, 5).map(lambda x: -x))
def test_mu_at_zero(log_rest: float) -> None:
    """1 - delta_mu(0) = 2 Phi(-mu/2)."""
    lower, upper = normal.gaussian_mu_at_zero(log_rest, 0.0)
    assert upper - lower <= 1e-12 * upper
    if upper < 100:
        assert ball_log_tail(float(upper) / 2, 2) <= arb(log_rest) <= ball_log_tail(float(lower) / 2, 2)


def test_mu_at_zero_takes_arrays_across_its_two_forms() -> None:
    mixed = normal.gaussian_mu_at_zero(np.array([-1e-9, -0.5, -3.0, -700.0]))
    alone = [normal.gaussian_mu_at_zero(x) for x in (-1e-9, -0.5, -3.0, -700.0)]
    assert mixed[0] == pytest.approx([float(a[0]) for a in alone], rel=1e-14)
    assert mixed[1] == pytest.approx([float(a[1]) for a in alone], rel=1e-14)
