"""Golden (mpmath and balls) and laws: Gaussian noise on a Poisson sample, each side by itself."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptally.law.adjacency import Direction
from dptally.laws.quadrature.losses import expm1_minus, minus_log1p
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.laws.sampled.pair import add_factor, add_inner, remove_inner
from strategies import rates
from truth.sampled import one_step_delta

CASES = [(0.01, 1.0), (1e-9, 0.35), (1e-20, 0.45), (1 - 1e-7, 0.5), (0.3, 20.0), (1e-4, 0.6), (0.9, 1.3)]
sigmas = st.floats(-0.52, 1.3).map(lambda x: 10.0**x)
sides = st.sampled_from(list(Direction))


def true_moment(q: float, sigma: float, side: Direction, t: complex) -> mp.mpc:
    """log E[A^zeta] by a dense trapezoid sum at 34 digits, without the terms of mean zero."""
    with mp.workdps(34 if q > 1e-12 else 70):
        rate, s = mp.mpf(q), mp.mpf(sigma)
        zeta = 1 + mp.mpmathify(t) if side is Direction.REMOVE else -mp.mpmathify(t)
        real = float(mp.re(zeta))

        def summand(x: mp.mpf) -> mp.mpf:
            ratio = rate * mp.expm1(x / s - 1 / (2 * s * s))
            return (mp.e ** (zeta * mp.log1p(ratio)) - 1 - zeta * ratio) * mp.npdf(x)

        step = min(0.25, sigma / 5) / (1 + abs(t) / 20)
        low, high = -13 + min(0.0, real) / sigma, 13 + max(real, 2.0) / sigma
        number = int((high - low) / step)
        return mp.log1p(mp.fsum(summand(mp.mpf(low + k * step)) for k in range(number + 1)) * step)


@pytest.mark.parametrize("side", list(Direction))
@pytest.mark.parametrize(("q", "sigma"), CASES)
def test_log_moment_is_relatively_accurate_however_small(q: float, sigma: float, side: Direction) -> None:
    law = SampledGaussianLaw(q, sigma, side)
    orders = [1e-6, 0.5, 3.0, 25.0, -0.5]
    got = law.log_moment(np.array(orders))
    for t, value in zip(orders, got, strict=True):
        assert abs(value / true_moment(q, sigma, side, t) - 1) < 2e-14


@pytest.mark.parametrize("side", list(Direction))
@pytest.mark.parametrize(("q", "sigma"), [(0.01, 1.0), (1e-6, 0.4), (0.5, 5.0)])
def test_log_moment_on_vertical_lines(q: float, sigma: float, side: Direction) -> None:
    law = SampledGaussianLaw(q, sigma, side)
    points = [0.7 + 3j, 2 + 30j, 1e-3 + 1j]
    got = law.log_moment(np.array(points))
    for t, value in zip(points, got, strict=True):
        truth = true_moment(q, sigma, side, t)
        # the moment is a sum of size e^K(Re t): that is what its error is relative to
        size = mp.e ** true_moment(q, sigma, side, t.real) - 1
        assert abs(mp.expm1(complex(value)) - mp.expm1(truth)) < 2e-13 * size + 1e-14 * abs(mp.expm1(truth))


@pytest.mark.parametrize("side", list(Direction))
def test_high_orders_do_not_overflow(side: Direction) -> None:
    q, sigma = 0.01, 0.5
    orders = np.array([1e3, 1e4])
    got = SampledGaussianLaw(q, sigma, side).log_moment(orders)
    assert np.isfinite(got).all()
    if side is Direction.REMOVE:
        # E A^a >= q^a E e^{a w}, and A <= max(1, e^w) for the other direction
        quadratic = 0.5 * (orders + 1) * orders / sigma**2
        assert (got >= ((orders + 1) * math.log(q) + quadratic) * (1 - 1e-14)).all()
        assert (got <= quadratic + math.log(2)).all()
    else:
        assert (got <= orders * -math.log1p(-q)).all()
        assert (got >= orders * -math.log1p(-q) * 0.85).all()


@pytest.mark.parametrize("side", list(Direction))
def test_rate_next_to_one_is_nearly_the_gaussian(side: Direction) -> None:
    t = np.array([0.5, 3.0])
    got = SampledGaussianLaw(1 - 2**-53, 2.0, side).log_moment(t)
    assert got == pytest.approx(t * (t + 1) / 8, rel=1e-12)


def certified_inside(law: SampledGaussianLaw, epsilon: float) -> float:
    """Asserts containment of the truth in balls; returns the width of the interval of log delta."""
    lower, upper = (float(v) for v in law.log_profile(np.asarray(epsilon)))
    truth = one_step_delta(law.sigma, law.rate, epsilon, law.side.value)
    assert not math.isnan(lower)
    if truth > 0:
        log_truth = truth.log()
        assert not (log_truth < lower)
        assert not (log_truth > upper)
    else:
        assert lower == -math.inf
    return upper - lower if upper > -math.inf else 0.0


@given(q=rates, sigma=sigmas, side=sides, inner=st.floats(-5, 36))
def test_profile_contains_the_truth(q: float, sigma: float, side: Direction, inner: float) -> None:
    """epsilon is taken where the record shows at ``inner`` standard deviations: delta down to 1e-280."""
    w = inner / sigma
    if side is Direction.REMOVE:
        epsilon = math.log1p(q * math.expm1(w)) if w < 600 else w + math.log(q)
    else:
        epsilon = -math.log1p(q * math.expm1(-w)) if w > -600 else w - math.log(q)
    certified_inside(SampledGaussianLaw(q, sigma, side), epsilon)


@given(q=rates, sigma=sigmas, side=sides, sign=st.sampled_from([-1, 1]), gap=st.floats(-16, 0))
def test_profile_next_to_the_threshold(q: float, sigma: float, side: Direction, sign: int, gap: float) -> None:
    edge = math.log1p(-q) if side is Direction.REMOVE else -math.log1p(-q)
    certified_inside(SampledGaussianLaw(q, sigma, side), edge * (1 + sign * 10.0**gap))


@given(q=rates, sigma=sigmas, side=sides, size=st.floats(-9, 2), sign=st.sampled_from([-1, 1]))
def test_profile_at_any_epsilon(q: float, sigma: float, side: Direction, size: float, sign: int) -> None:
    certified_inside(SampledGaussianLaw(q, sigma, side), sign * 10.0**size)


def test_profile_is_sharp() -> None:
    for q, sigma, epsilon in [(0.01, 1.0, 0.1), (1e-9, 0.5, 1e-6), (0.5, 3.0, 5.0), (0.01, 0.7, 30.0)]:
        assert certified_inside(SampledGaussianLaw(q, sigma, Direction.REMOVE), epsilon) < 1e-11
    for q, sigma, epsilon in [(0.01, 1.0, 0.009), (0.5, 3.0, 0.3), (0.9, 0.7, 2.0)]:
        assert certified_inside(SampledGaussianLaw(q, sigma, Direction.ADD), epsilon) < 3e-12


@given(q=rates, sigma=sigmas, epsilon=st.floats(-3, 3))
def test_the_two_sides_are_dual(q: float, sigma: float, epsilon: float) -> None:
    """delta of (Q, P) at eps is 1 - e^eps + e^eps delta of (P, Q) at -eps."""
    remove = np.exp(SampledGaussianLaw(q, sigma, Direction.REMOVE).log_profile(np.asarray(-epsilon)))
    add = np.exp(SampledGaussianLaw(q, sigma, Direction.ADD).log_profile(np.asarray(epsilon)))
    dual = -math.expm1(epsilon) + math.exp(epsilon) * np.asarray(remove)
    assert add[0] <= dual[1] + 1e-14 * math.exp(epsilon)
    assert add[1] >= dual[0] - 1e-14 * math.exp(epsilon)


@given(q=rates, sigma=sigmas, side=sides)
def test_moment_is_convex_and_zero_at_zero(q: float, sigma: float, side: Direction) -> None:
    t = np.linspace(-0.9, 6.0, 24)
    moment = SampledGaussianLaw(q, sigma, side).log_moment(t)
    assert SampledGaussianLaw(q, sigma, side).log_moment(np.zeros(1)) == 0
    size = np.abs(moment).max()
    assert (np.diff(moment, 2) >= -1e-13 * size).all()
    assert (moment[t > 0] > 0).all()
    assert (moment[t < 0] < 0).all()


@given(q=rates, sigma=sigmas)
def test_one_function_serves_both_sides(q: float, sigma: float) -> None:
    """K_add(t) = K_remove(-1 - t): both are log E[A^-t]."""
    t = np.array([-0.75, -0.5, -0.25])
    remove, add = (SampledGaussianLaw(q, sigma, side).log_moment for side in (Direction.REMOVE, Direction.ADD))
    assert add(t) == pytest.approx(remove(-1 - t), rel=1e-12)


@pytest.mark.parametrize("side", list(Direction))
@pytest.mark.parametrize(("q", "sigma"), [(0.2, 0.8), (0.01, 2.0)])
def test_distribution_agrees_with_itself(q: float, sigma: float, side: Direction) -> None:
    law = SampledGaussianLaw(q, sigma, side)
    edge = math.log1p(-q)
    start, end = (edge, 14.0) if side is Direction.REMOVE else (-14.0, -edge)
    # substitute so that the nodes crowd towards the edge of the support
    u = np.linspace(0, 1, 40001)[1:-1]
    gap = (end - start) * u**4
    losses = start + gap if side is Direction.REMOVE else end - gap
    weight = law.density(losses) * 4 * (end - start) * u**3 / 40000
    assert weight.sum() == pytest.approx(1.0, abs=2e-6)
    assert (weight * losses).sum() == pytest.approx(law.mean, abs=2e-6)
    cut = float(np.median(losses))
    assert weight[losses > cut].sum() == pytest.approx(float(law.tail(np.asarray(cut))), abs=1e-4)
    epsilon = 0.05 if side is Direction.REMOVE else -edge / 2
    delta = (weight * np.maximum(0, -np.expm1(epsilon - losses))).sum()
    assert delta == pytest.approx(math.exp(law.log_profile(np.asarray(epsilon))[1]), rel=1e-3)
    outside = np.array([start - 1e-3]) if side is Direction.REMOVE else np.array([end + 1e-3])
    assert law.density(outside) == 0
    assert law.tail(outside) == (1.0 if side is Direction.REMOVE else 0.0)
    assert law.mean == pytest.approx(float(law.log_moment(np.array([1e-7]))[0]) * 1e7, rel=1e-5)
    assert law.atoms() == ()
    assert law.infinity_mass == 0


def test_support() -> None:
    q = 0.25
    remove, add = (SampledGaussianLaw(q, 1.0, side) for side in (Direction.REMOVE, Direction.ADD))
    assert (remove.supremum, add.infimum) == (math.inf, -math.inf)
    assert remove.infimum <= math.log(0.75)
    assert add.supremum >= -math.log(0.75)
    assert add.supremum == pytest.approx(-math.log(0.75), rel=1e-14)


def test_thresholds_at_rate_one() -> None:
    at = np.array([-2.0, 0.5])
    assert (remove_inner(1.0, at)[0] == at).all()
    factor = add_factor(1.0, at)
    assert (factor[0] == 0).all()
    low, high = add_inner(1.0, at, factor)
    assert (low <= at).all()
    assert (high >= at).all()


def test_building_blocks() -> None:
    with mp.workdps(40):
        for u in [1e-8, -0.29, 0.31, 2.0, -30.0]:
            assert float(expm1_minus(np.array([u]))[0] / (mp.expm1(u) - u) - 1) == pytest.approx(0, abs=3e-15)
        for x in [1e-8, -0.29, 0.31, 5.0, -0.999]:
            got = minus_log1p(np.array([x]), np.array([math.log1p(x)]))[0]
            assert float(got / (mp.mpf(x) - mp.log1p(x)) - 1) == pytest.approx(0, abs=3e-15)
        value = expm1_minus(np.array([0.1 + 0.2j]))[0]
        assert abs(complex(mp.expm1(0.1 + 0.2j) - (0.1 + 0.2j)) / value - 1) < 1e-14
