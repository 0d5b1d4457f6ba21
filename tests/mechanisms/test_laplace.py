"""Golden and laws: Laplace and discrete Laplace noise against closed forms and sums at 60 digits."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptally as dp
import golden
from dptally.errors import Unanswerable
from dptally.laws.laplace import LaplaceLaw
from dptally.numerics.normal import log_gaussian_delta
from dptally.numerics.rounding import EPS
from law_reference import TILTS, check_moments, check_profile, moment_error, over_atoms
from strategies import log_uniform


def closed_log_moment(r: mp.mpf, t: complex) -> mp.mpc:
    z = mp.mpc(t) if t != -0.5 else mp.mpc("-0.5", "1e-100")
    return mp.log1p(((z + 1) * mp.expm1(z * r) + z * mp.expm1(-(1 + z) * r)) / (2 * z + 1))


@pytest.mark.parametrize("name", golden.ids("rdp.laplace."))
def test_golden_renyi(name: str) -> None:
    """F59."""
    given_ = golden.inputs(name)
    assert dp.Laplace(1.0, given_["t"]).renyi(given_["alpha"]) == pytest.approx(golden.value(name), rel=1e-11)


@pytest.mark.parametrize("name", golden.ids("adp.laplace."))
def test_golden_alpha_divergence(name: str) -> None:
    """F20."""
    given_ = golden.inputs(name)
    got = dp.Laplace(1.0, given_["t"]).alpha_divergence(given_["alpha"])
    assert got == pytest.approx(golden.value(name), rel=1e-11)


@pytest.mark.parametrize("name", golden.ids("laplace.profile."))
def test_golden_profile(name: str) -> None:
    """F72."""
    given_ = golden.inputs(name)
    lower, upper = dp.Laplace(1.0, given_["t"]).laws()[0].log_profile(np.asarray(given_["eps"]))
    if golden.value(name) == 0:
        assert lower == upper == -math.inf
    else:
        assert lower <= mp.log(golden.exact(name)) <= upper


@pytest.mark.parametrize("name", golden.ids("gdp.mu_of_laplace."))
def test_golden_mu(name: str) -> None:
    """F80: the supremum of the Laplace GDPT is attained at epsilon 0 (proved in LaplaceLaw.gaussian_mu)."""
    mu = dp.Laplace(1.0, golden.inputs(name)["t"]).laws()[0].gaussian_mu()
    assert golden.value(name) * (1 - 1e-15) <= mu <= golden.value(name) * (1 + 1e-13)


@given(log_uniform(-3, 1.5), st.floats(0, 1))
def test_the_gaussian_with_that_mu_dominates(reach: float, share: float) -> None:
    law = dp.Laplace(1.0, reach).laws()[0]
    epsilon = np.asarray(share * reach)
    assert law.log_profile(epsilon)[0] <= log_gaussian_delta(law.gaussian_mu(), epsilon)[1]


@given(log_uniform(-3, 3), log_uniform(-12, 2))
@settings(max_examples=25)
def test_log_moment(scale: float, reach: float) -> None:
    mechanism = dp.Laplace(scale, reach * scale)
    exact = mp.mpf(mechanism.sensitivity) / mp.mpf(mechanism.scale)
    with mp.workdps(110):
        for t in TILTS:
            truth = closed_log_moment(exact, t)
            spread = 16 if not isinstance(t, complex) else 64 / min(1.0, float(abs(mp.exp(truth)))) + 64 * reach
            assert moment_error(mechanism.laws()[0], t, truth) <= spread * EPS


def test_density_and_atoms_make_the_law() -> None:
    law = dp.Laplace(2.0, 3.0).laws()[0]
    (low, at_low), (high, at_high) = law.atoms()
    assert (low, high) == (-1.5, 1.5)
    density = lambda x: float(law.density(np.asarray(float(x))))  # noqa: E731
    total = at_low + at_high + mp.quad(density, [-1.5, 1.5])
    assert float(total) == pytest.approx(1.0, abs=1e-14)
    assert float(law.tail(np.asarray(0.3))) == pytest.approx(at_high + float(mp.quad(density, [0.3, 1.5])), rel=1e-13)
    mean = at_low * low + at_high * high + mp.quad(lambda x: x * density(x), [-1.5, 1.5])
    assert law.mean == pytest.approx(float(mean), rel=1e-13)
    assert law.density(np.array([-2.0, 2.0])).tolist() == [0.0, 0.0]
    assert law.tail(np.array([-1.6, 1.5])).tolist() == [1.0, 0.0]
    assert law.mean == pytest.approx(dp.Laplace(2.0, 3.0).renyi(1.0))


@given(log_uniform(-6, 2), st.floats(-1.6, 1.2))
def test_profile_contains_the_truth(reach: float, share: float) -> None:
    mechanism = dp.Laplace(3.0, reach)
    r = mp.mpf(mechanism.sensitivity) / mp.mpf(3)
    law = mechanism.laws()[0]
    with mp.workdps(120):
        for epsilon in (
            share * float(r),
            float(r),
            math.nextafter(float(r), 0),
            math.nextafter(float(r), 9e9),
            -float(r),
        ):
            e = mp.mpf(epsilon)
            delta = mp.mpf(0) if e >= r else (-mp.expm1(e) if e < -r else -mp.expm1((e - r) / 2))
            truth = mp.log(delta) if delta > 0 else mp.mpf("-inf")
            lower, upper = (float(end) for end in law.log_profile(np.asarray(epsilon)))
            assert lower <= truth <= upper


def test_a_sensitivity_over_scale_that_is_no_double_is_rounded_safely() -> None:
    law = dp.Laplace(20).laws()[0]
    assert law.supremum == 0.05  # the double above 1/20
    assert law.log_profile(np.asarray(0.05))[1] == -math.inf
    assert dp.Laplace(3.0).laws()[0].supremum > 1 / 3


@pytest.mark.parametrize(
    ("scale", "sensitivity"),
    [(20.0, 3), (1.0, 2), (0.1, 5), (1e6, 60), (1e9, 7), (3.0, 100), (0.05, 3), (20.0, 1)],
)
def test_discrete_laplace_against_its_atoms(scale: float, sensitivity: int) -> None:
    law = dp.DiscreteLaplace(scale, sensitivity).laws()[0]
    with mp.workdps(120):
        x, s = 1 / mp.mpf(scale), sensitivity
        r = mp.exp(-x)
        atoms = [(s * x, 1 / (1 + r)), (-s * x, r**s / (1 + r))]
        atoms += [((s - 2 * k) * x, (1 - r) / (1 + r) * r**k) for k in range(1, s)]
        expect = over_atoms(atoms)
        check_moments(law, expect)
        reach = float(s * x)
        inside = [share * reach for share in (-1.3, -1.1, -0.9, -0.51, -0.3, 0.0, 0.01, 0.3, 0.49, 0.7, 0.9, 1.1)]
        check_profile(law, expect, [*inside, 1e-20, -1e-20])
        ends = [reach, -reach, math.nextafter(reach, 0), math.nextafter(reach, 1e9)]
        check_profile(law, expect, ends, width=math.inf)
        assert law.mean == pytest.approx(float(expect(lambda loss: loss)), rel=1e-13)
        for loss in np.linspace(-1.2, 1.2, 12) * reach + 1e-3 * reach / s:
            assert float(law.tail(np.asarray(loss))) == pytest.approx(
                float(expect(lambda value, at=loss: mp.mpf(value > at))), rel=1e-12
            )
        listed = law.atoms()
        assert [loss for loss, _ in listed] == sorted(loss for loss, _ in listed)
        for (loss, mass), (true_loss, true_mass) in zip(listed, sorted(atoms), strict=True):
            assert loss == pytest.approx(float(true_loss), rel=1e-14, abs=1e-14 * reach)
            assert mass == pytest.approx(float(true_mass), rel=1e-12)
        assert law.gaussian_mu() >= dp.PureDP(reach).laws()[0].gaussian_mu() * (1 - 1e-14)


def test_discrete_laplace_of_one_step_is_randomized_response() -> None:
    law = dp.DiscreteLaplace(2.0).laws()[0]
    assert law.log_profile(np.asarray(0.2)) == dp.PureDP(0.5).laws()[0].log_profile(np.asarray(0.2))


def test_discrete_laplace_with_fine_steps_is_laplace() -> None:
    fine = dp.DiscreteLaplace(1e9, 10**9).laws()[0]
    t = np.array([1e-6, 0.5, 3.0, 100.0])
    assert fine.log_moment(t) == pytest.approx(dp.Laplace(1.0).laws()[0].log_moment(t), rel=1e-12)
    with pytest.raises(Unanswerable, match="atoms"):
        fine.atoms()


@pytest.mark.parametrize("arguments", [(1e160, 1.0), (1e-200, 1.0), (1.0, 1e-200)])
def test_ratios_out_of_range_are_refused(arguments: tuple[float, float]) -> None:
    with pytest.raises(dp.InvalidArgument, match="sensitivity / scale"):
        dp.Laplace(*arguments)


def test_discrete_laplace_out_of_range() -> None:
    with pytest.raises(dp.InvalidArgument, match="scale"):
        dp.DiscreteLaplace(1e200)
    with pytest.raises(dp.InvalidArgument, match="sensitivity"):
        dp.DiscreteLaplace(1.0, 2**53 + 1)


def test_characteristic_function_in_closed_form() -> None:
    """For many turns it is not a node sum; both stand for ((1 + z) e^{zr} + z e^{-(1+z)r}) / (1 + 2z)."""
    for reach, theta in ((0.01, 3.0), (0.3, 0.2), (2.0, 7.0), (5.0, 0.01)):
        law = LaplaceLaw(reach, reach)
        far = law.characteristic(theta, 1e4 / reach, -30.0)
        near = law.characteristic(theta, 20.0 / reach, -34.0)
        assert far is not None
        assert near is not None
        assert far.size == 1 < near.size
        assert abs(far.log_moment - near.log_moment) <= far.log_moment_error + near.log_moment_error
        step = 1.3 / reach
        values, errors = far.on_grid(step, 10)
        with mp.workdps(40):
            r = mp.mpf(reach)

            def moment(z: mp.mpc, r: mp.mpf = r) -> mp.mpc:
                return ((1 + z) * mp.exp(z * r) + z * mp.exp(-(1 + z) * r)) / (1 + 2 * z)

            for k in (0, 1, 4, 9):
                exact = moment(mp.mpc(theta, mp.mpf(step) * k)) / moment(mp.mpf(theta)) - 1
                assert abs(complex(exact) - values[k]) <= errors[k]
        turned, other = near.on_grid(step, 10)
        shift = np.exp(1j * step * np.arange(10) * near.centre)
        assert (np.abs((1 + turned) * shift - (1 + values)) <= errors + other + 1e-13).all()
        assert errors[-1] < 1e-12
