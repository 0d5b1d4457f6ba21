"""Golden and laws: Gaussian noise, Gaussian DP and the collapse of their compositions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dptally as dp
import golden
from dptally.law import Composition
from dptally.laws.gaussian import GaussianLaw
from dptally.numerics.rounding import EPS

positive = st.floats(-6, 6).map(lambda x: 10.0**x)


@pytest.mark.parametrize("name", golden.ids("rdp.gauss."))
def test_golden_renyi(name: str) -> None:
    """F60."""
    given_ = golden.inputs(name)
    plan = given_.get("n", 1) * dp.Gaussian(given_["sigma"])
    assert plan.renyi(given_["alpha"]) == pytest.approx(golden.value(name), rel=1e-11)


@pytest.mark.parametrize("name", golden.ids("adp.gauss.") + golden.ids("adp.limit_a1."))
def test_golden_alpha_divergence(name: str) -> None:
    """F21, and F12 for order 1."""
    given_ = golden.inputs(name)
    got = dp.Gaussian(given_["sigma"]).alpha_divergence(given_.get("alpha", 1.0))
    assert got == pytest.approx(golden.value(name), rel=1e-11)


def test_golden_loss_distribution() -> None:
    """F42: the loss of a Gaussian is N(rho, 2 rho)."""
    given_ = golden.inputs("plrv.gauss.rho")
    law = dp.Gaussian(given_["sigma"], abs(given_["mu"] - given_["mu_prime"])).laws()[0]
    assert law.mean == pytest.approx(golden.value("plrv.gauss.rho"), rel=1e-14)
    assert law.closed_rho() == law.mean
    given_ = golden.inputs("plrv.tail.rho0.5.t4")
    unit = dp.Gaussian(1.0).laws()[0]
    assert unit.mean == given_["rho"]
    tail = float(unit.tail(np.asarray(given_["t"])))
    assert tail == pytest.approx(golden.value("plrv.tail.rho0.5.t4"), rel=1e-13)


@pytest.mark.parametrize("name", golden.ids("gdp.compose."))
def test_golden_composition(name: str) -> None:
    """F67: mu's add in squares."""
    given_ = golden.inputs(name)
    (composition,) = (given_["n"] * dp.GaussianDP(given_["mu"])).directions()
    (law, count) = composition.parts[0]
    assert isinstance(law, GaussianLaw)
    assert count == 1
    assert law.mu == pytest.approx(golden.value(name), rel=1e-15)


@given(st.lists(st.tuples(positive, positive, st.integers(1, 10**9)), min_size=1, max_size=6))
def test_collapse_rounds_up_by_at_most_two_ulps(rows: list[tuple[float, float, int]]) -> None:
    parts = [(dp.Gaussian(sigma, sensitivity), n) for sigma, sensitivity, n in rows]
    (composition,) = sum((n * m for m, n in parts), start=dp.Composed(())).directions()
    ((law, count),) = composition.parts
    exact = sum(n * (Fraction(m.sensitivity) / Fraction(m.sigma)) ** 2 for m, n in parts)
    assert count == 1
    assert isinstance(law, GaussianLaw)
    assert exact <= Fraction(law.variance) <= exact * (1 + 2 * Fraction(EPS))
    assert law.closed_rho() >= float(exact / 2) * (1 - EPS)
    assert Fraction(law.gaussian_mu()) ** 2 >= exact


def test_gaussian_and_gaussian_dp_collapse_together() -> None:
    plan = dp.Gaussian(sigma=1.0) + 3 * dp.GaussianDP(1.0)
    (composition,) = plan.directions()
    assert composition == Composition.of([(GaussianLaw(4.0), 1)])


@given(positive, st.floats(-20, 20))
def test_density_is_the_slope_of_the_tail(mu: float, z: float) -> None:
    law = dp.GaussianDP(mu).laws()[0]
    loss = 0.5 * mu * mu + mu * z
    step = 1e-4 * mu
    slope = float(law.tail(np.asarray(loss - step)) - law.tail(np.asarray(loss + step))) / (2 * step)
    assert float(law.density(np.asarray(loss))) == pytest.approx(slope, rel=1e-4, abs=1e-11 / mu)


def test_characteristic_and_moments_agree() -> None:
    law = dp.Gaussian(2.0).laws()[0]
    assert law.supremum == -law.infimum == math.inf
    t = np.array([0.5 + 2j, 3.0 - 1j])
    assert law.log_moment(t) == pytest.approx(0.125 * t * (t + 1))
    assert law.characteristic(1.0, 10.0, -40.0).log_moment == 0.25
    assert law.moment_table(np.array([0.5, 1.0, 2.0])).moment.tolist() == [0.09375, 0.25, 0.75]


@pytest.mark.parametrize("arguments", [(1e200, 1e-200), (1e-200, 1.0), (1.0, 1e-150)])
def test_ratios_out_of_range_are_refused(arguments: tuple[float, float]) -> None:
    with pytest.raises(dp.InvalidArgument, match="sensitivity / sigma"):
        dp.Gaussian(*arguments)
    with pytest.raises(dp.InvalidArgument, match="mu"):
        dp.GaussianDP(1e-200)
