"""Golden and laws: contours of mixes and of DP-SGD under REPLACE contain independent truths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb

import dptally as dp
from dptally.accounting.certified.contour import inversion
from dptally.accounting.certified.lattice import bracket as lattice
from dptally.law import Composition
from dptally.law.characteristic import NodeCharacteristic
from dptally.laws.laplace import LaplaceLaw
from dptally.laws.sampled.gaussian.replace_kernel import SampledReplaceNodes
from truth import AtomsPiece, GaussianPiece, LaplacePiece, SampledPiece, epsilon_is_within, mixture_delta


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-40])
@pytest.mark.parametrize("count", [1, 7, 60])
def test_laplace_and_gaussian(count: int, delta: float) -> None:
    plan = count * dp.Laplace(4.0) + dp.Gaussian(2.0)
    box = plan.epsilon_interval(delta)
    assert box.method == "inversion"
    assert box.width <= 1e-9 * box.upper
    pieces = [LaplacePiece(0.25, count), GaussianPiece(0.5)]
    assert epsilon_is_within(box.lower, box.upper, delta, lambda e: mixture_delta(pieces, e, 16))


@pytest.mark.parametrize("delta", [1e-4, 1e-12])
def test_atoms_gaussian_and_sampled_gaussian(delta: float) -> None:
    plan = 20 * dp.RandomizedResponse(0.75) + dp.Gaussian(4.0) + dp.dpsgd(1.0, 0.125, 64)
    box = plan.epsilon_interval(delta)
    assert box.width <= 1e-9 * box.upper
    atoms = AtomsPiece((0.75, 0.25), (0.25, 0.75), 20)
    sides = [
        (lambda e, side=side: mixture_delta([atoms, GaussianPiece(0.25), SampledPiece(1.0, 0.125, side, 64)], e, 16))
        for side in ("remove", "add")
    ]
    assert epsilon_is_within(box.lower, box.upper, delta, *sides)


@pytest.mark.parametrize("excess", [1e-9, 1e-4, 1.0])
def test_delta_barely_above_the_mass_at_infinity(excess: float) -> None:
    """delta - p is formed with its own rounding error: an answer from rounded logarithms would be too small."""
    d = 2.0**-20
    grow = arb(0.5).exp()
    delta = d * (1 + excess)
    box = (dp.ApproxDP(0.5, d) + dp.Gaussian(2.0)).epsilon_interval(delta)
    p = ((1 - arb(d)) * grow / (1 + grow), (1 - arb(d)) / (1 + grow), arb(d))
    atoms = AtomsPiece(p, (p[1], p[0], arb(0)))
    assert epsilon_is_within(box.lower, box.upper, delta, lambda e: mixture_delta([atoms, GaussianPiece(0.5)], e, 40))
    assert box.width <= 1e-6


def test_laplace_nodes_are_the_closed_form() -> None:
    for reach in (0.01, 0.5, 3.0, 20.0):
        law = LaplaceLaw(reach, reach)
        for theta in (0.1, 2.0, 30.0):
            char = law.characteristic(theta, 50.0 / reach, -34.0)
            assert isinstance(char, NodeCharacteristic)
            exact = float(law.log_moment(np.array([theta]))[0])
            assert abs(char.log_moment - exact) <= char.log_moment_error + 64 * 2.3e-16 * exact
            step = 5.0 / reach
            minus_one, error = char.on_grid(step, 10)
            u = step * np.arange(10)
            true = np.exp(law.log_moment(theta + 1j * u) - exact - 1j * u * char.centre) - 1
            assert np.all(np.abs(minus_one - true) <= error + 1e-13 * (1 + reach * theta))
            grid = np.geomspace(1 / reach, 1e4 / reach, 60)
            modulus = np.real(law.log_moment(theta + 1j * grid)) - exact
            assert np.all(modulus <= law.log_decay(theta, grid) + 1e-12)


@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.3, 2.0), (0.001, 0.6), (0.05, 5.0), (0.9, 1.5)])
def test_replace_contour_pieces(rate: float, sigma: float) -> None:
    """K against the law's own sums of positive terms, |phi| against its bound on a grid."""
    nodes = SampledReplaceNodes(rate, sigma)
    law = dp.PoissonSampled(dp.Gaussian(sigma), rate, dp.REPLACE).laws()[0]
    for theta in (0.2, 3.0, 15.0):
        char = nodes.characteristic(theta, 300.0, -38.0)
        assert char is not None
        exact = float(law.log_moment(np.array([theta]))[0])
        assert abs(char.log_moment - exact) <= char.log_moment_error + 1e-13 * exact
        start = np.geomspace(0.05, 100.0, 9)
        bound = nodes.log_decay(theta, start)
        for u in np.geomspace(0.05, 300.0, 40):
            minus_one, error = char.on_grid(float(u), 2)
            modulus = math.log(abs(1 + minus_one[1]) + 1e-300)
            here = bound[start <= u]
            assert modulus <= here.min() + error[1] / max(abs(1 + minus_one[1]), 1e-12) + 1e-12 if here.size else True


@pytest.mark.parametrize(
    ("rate", "sigma", "steps", "delta"), [(0.01, 1.0, 1000, 1e-5), (0.1, 2.0, 100, 1e-10), (0.3, 4.0, 40, 1e-3)]
)
def test_replace_agrees_with_the_lattice(rate: float, sigma: float, steps: int, delta: float) -> None:
    """Two certified intervals of one number overlap; the lattice knows the closed-form profile of one step only."""
    plan = dp.dpsgd(sigma, rate, steps, dp.REPLACE)
    box = plan.epsilon_interval(delta)
    assert box.method == "inversion"
    low, high = lattice.epsilon(plan.directions()[0], math.log(delta))
    assert low <= box.upper
    assert box.lower <= high
    assert high - low <= 1e-4 * high  # else the overlap would say nothing


def test_a_mix_without_decay_is_left_to_others() -> None:
    laws = [part for mechanism in (dp.RandomizedResponse(0.7), dp.PureDP(0.3)) for part in ((mechanism.laws()[0], 5),)]
    assert inversion.for_delta(Composition.of(laws), math.log(1e-6)) is None
