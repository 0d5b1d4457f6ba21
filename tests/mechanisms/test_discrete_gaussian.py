"""Laws: the discrete Gaussian against sums over its atoms at 60 digits."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptally as dp
from dptally.errors import Unanswerable
from dptally.laws.discrete_gaussian import ATOM_FLOOR
from law_reference import TILTS, check_moments, check_profile, over_atoms

CASES = [(0.1, 1), (0.3, 1), (0.45, 3), (0.499, 1), (0.5, 1), (0.8, 1), (1.0, 2), (3.0, 1), (10.0, 7)]


def atoms(sigma: float, shift: int) -> list[tuple[mp.mpf, mp.mpf]]:
    s, reach = mp.mpf(sigma), int(max(30 * sigma, 34 * shift)) + 20
    weights = [mp.exp(-(mp.mpf(k) ** 2) / (2 * s * s)) for k in range(-reach, reach + 1)]
    total = mp.fsum(weights)
    return [(shift * (shift - 2 * k) / (2 * s * s), weights[k + reach] / total) for k in range(-reach, reach + 1)]


@pytest.mark.parametrize(("sigma", "shift"), CASES)
def test_against_its_atoms(sigma: float, shift: int) -> None:
    law = dp.DiscreteGaussian(sigma, shift).laws()[0]
    with mp.workdps(90):
        points = atoms(sigma, shift)
        expect = over_atoms(points)
        check_moments(law, expect, TILTS)
        unit = shift / sigma**2
        epsilons = [
            0.0,
            1e-9,
            0.01,
            0.3,
            1.0,
            0.5 * shift * unit,
            1.7 * unit,
            3.0 * unit,
            -0.01,
            -0.3,
            -1.0,
            -20.0,
        ]
        check_profile(law, expect, epsilons)
        assert law.mean == pytest.approx(float(expect(lambda loss: loss)), rel=1e-14)
        for at in (-2.3 * unit, -0.2 * unit, 0.3 * unit, 4.4 * unit):
            truth = float(expect(lambda loss, a=at: mp.mpf(loss > a)))
            assert float(law.tail(np.asarray(at))) == pytest.approx(truth, rel=1e-12)
    listed = law.atoms()
    assert math.fsum(mass for _, mass in listed) == pytest.approx(1.0, abs=1e-13)
    assert all(mass >= ATOM_FLOOR * (1 - 1e-12) for _, mass in listed)
    assert [loss for loss, _ in listed] == sorted(loss for loss, _ in listed)


@given(st.floats(0.2, 2.0), st.integers(1, 3), st.floats(0.0, 12.0))
@settings(max_examples=25)
def test_profile_of_any_sigma(sigma: float, shift: int, depth: float) -> None:
    epsilon = 0.5 * (shift / sigma) ** 2 + depth * shift / sigma
    with mp.workdps(90):
        check_profile(
            dp.DiscreteGaussian(sigma, shift).laws()[0],
            over_atoms(atoms(sigma, shift)),
            [epsilon, -min(epsilon, 50.0)],
        )


@given(
    st.one_of(st.floats(0.15, 3.0), st.sampled_from([0.125, 0.25, 0.5, 1.0, 2.0])),
    st.integers(1, 3),
    st.lists(st.floats(-0.5, 14.0), min_size=9, max_size=12),
)
@settings(max_examples=5)
def test_many_epsilons_at_once(sigma: float, shift: int, places: list[float]) -> None:
    """More than eight share their sums: at random, exactly at atoms, and next to them."""
    unit = shift / sigma**2
    at_atoms = [unit * (0.5 * shift + k) for k in range(4)]
    epsilons = [unit * place for place in places] + at_atoms + [math.nextafter(e, math.inf) for e in at_atoms]
    law = dp.DiscreteGaussian(sigma, shift).laws()[0]
    with mp.workdps(90):
        expect = over_atoms(atoms(sigma, shift))
        lower, upper = law.log_profile(np.array(epsilons))
        for epsilon, low, high in zip(epsilons, lower, upper, strict=True):
            value = expect(lambda loss, e=epsilon: max(mp.mpf(0), -mp.expm1(e - loss)))
            if value > mp.mpf(10) ** -300:
                assert low <= mp.log(value) <= high
    few = [law.log_profile(np.array([epsilon])) for epsilon in epsilons]
    assert all(a[0] <= high and low <= a[1] for a, low, high in zip(few, lower, upper, strict=True))
    assert (upper - lower)[: len(places)].max() < 1e-10


@given(st.floats(0.2, 4.0), st.integers(1, 5), st.floats(1e-9, 50.0))
def test_never_above_the_continuous_moment(sigma: float, shift: int, t: float) -> None:
    """Canonne, Kamath, Steinke 2020, Thm. 4: rho = s^2/(2 sigma^2), with equality where t s is whole."""
    law = dp.DiscreteGaussian(sigma, shift).laws()[0]
    bound = t * (t + 1) * 0.5 * (shift / sigma) ** 2
    assert float(law.log_moment(np.asarray(t))) <= bound * (1 + 1e-14)
    assert float(law.log_moment(np.asarray(3.0))) == pytest.approx(6 * (shift / sigma) ** 2, rel=1e-14)
    assert law.closed_rho() >= 0.5 * (shift / sigma) ** 2 * (1 - 1e-15)


def test_it_is_not_the_continuous_stand_in() -> None:
    """At sigma 1 the profiles differ by far more than their bounds, on both sides."""
    discrete, continuous = dp.DiscreteGaussian(1.0).laws()[0], dp.Gaussian(1.0).laws()[0]
    epsilon = np.array([0.0, 0.5, 1.0, 1.5])
    gap = discrete.log_profile(epsilon)[0] - continuous.log_profile(epsilon)[1]
    assert (np.abs(gap) > 1e-3).all()


def test_large_sigma_is_close_to_continuous_and_bracketed() -> None:
    exact = dp.DiscreteGaussian(3e4).laws()[0].log_profile(np.asarray(1e-4))
    assert exact[1] - exact[0] < 1e-12
    for sigma in (1e6, 1e13):
        law = dp.DiscreteGaussian(sigma, round(sigma)).laws()[0]
        near = dp.Gaussian(sigma, round(sigma)).laws()[0]
        epsilon = np.array([0.0, 0.7, 5.0, 40.0, -1.0])
        lower, upper = law.log_profile(epsilon)
        assert (lower <= near.log_profile(epsilon)[1]).all()
        assert (near.log_profile(epsilon)[0] <= upper).all()
        assert (upper - lower < 100 / sigma + 1e-11).all()


def test_the_integral_brackets_the_sum() -> None:
    """The bracket for large sigma, used where the sum is still possible."""
    from fractions import Fraction

    law = dp.DiscreteGaussian(500.0, 300).laws()[0]
    for epsilon in (0.0, 0.18, 0.5, 2.0, 8.0):
        x = Fraction(300, 2) - Fraction(epsilon) * 500**2 / 300
        outer = law._by_integral(epsilon, x, 300 / 500.0**2)
        inner = [float(end[0]) for end in law.log_profile(np.array([epsilon]))]
        assert outer[0] <= inner[0] <= inner[1] <= outer[1]


def test_far_out() -> None:
    law = dp.DiscreteGaussian(1.0).laws()[0]
    lower, upper = law.log_profile(np.array([1e5, 1e20, 1e300, math.inf, -1e20]))
    assert lower[0] == pytest.approx(-5e9, rel=1e-4)
    assert lower[1] == -math.inf
    assert upper[1] < -1e39
    assert upper[3] == -math.inf
    assert upper[4] == 0.0
    huge = dp.DiscreteGaussian(1.0, 2**50).laws()[0]
    assert huge.log_profile(np.asarray(0.0))[1] == 0.0
    assert dp.DiscreteGaussian(1e140).laws()[0].log_profile(np.asarray(1.0))[1] < -1e270
    with pytest.raises(Unanswerable, match="atoms"):
        dp.DiscreteGaussian(1e6).laws()[0].atoms()
    assert float(dp.DiscreteGaussian(1e6).laws()[0].tail(np.asarray(0.0))) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("arguments", [(1e-101,), (1e141,), (1.0, 2**53 + 1), (1e-90, 10**12)])
def test_out_of_range(arguments: tuple[float, ...]) -> None:
    with pytest.raises(dp.InvalidArgument, match=r"sigma|sensitivity"):
        dp.DiscreteGaussian(*arguments)


@pytest.mark.parametrize(("sigma", "shift"), [(2e6, 1), (3e7, 5), (1e100, 1), (5e6, 10**7), (1e7, 10**8)])
def test_vast_sigmas_at_many_epsilons_are_those_one_by_one(sigma: float, shift: int) -> None:
    """Places in doubles, rounding charged, against places in rationals: no narrower, and hardly wider."""
    law = dp.DiscreteGaussian(sigma, shift).directions()[0].parts[0][0]
    draw = np.random.default_rng(2)
    at = np.concatenate([[0.0], 10 ** draw.uniform(-5, 3, 40) * shift / sigma])
    middle = shift**2 / sigma**2 / 2 * (1 + draw.normal(size=9) * 1e-9)  # both parts of z nearly cancel
    epsilon = np.concatenate([at, middle])
    one_by_one = np.array([law._beyond_sums(float(e)) for e in epsilon]).T
    lower, upper = law._by_integrals(epsilon)
    lose = 1e-12 * (1 + np.abs(np.where(np.isfinite(one_by_one), one_by_one, 0.0)))
    assert (lower <= one_by_one[0] + lose[0]).all()
    assert (upper >= one_by_one[1] - lose[1]).all()
    finite = np.isfinite(one_by_one[0])
    assert (lower[finite] >= one_by_one[0][finite] - 1e3 * lose[0][finite]).all()
    assert (upper <= one_by_one[1] + 1e3 * lose[1]).all()


def test_vast_sigmas_are_answered_at_once() -> None:
    box = (2 * dp.DiscreteGaussian(1e100)).delta_interval(1e-101)
    assert 3.4e-101 < box.lower <= box.upper < 1e-13
