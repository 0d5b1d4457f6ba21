"""Containment of continuous losses against Arb: every class of false ends that was found, and questions around it."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import acb, arb

import dptally as dp
import truth
from dptally.accounting.moments import log_moment_upper
from dptally.laws.quadrature.legendre import gauss_legendre
from dptally.laws.sampled.gaussian.kernel import SampledGaussianNodes
from dptally.laws.sampled.gaussian.replace_kernel import SampledReplaceNodes
from truth.balls import precision

Draw = random.Random


def log_uniform(draw: Draw, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


@pytest.mark.parametrize("number", [4, 5, 20, 33, 64, 160, 640])
def test_gauss_legendre_rules(number: int) -> None:
    """numpy's outermost weights are off by 313 ulps at 20 points and by 2.5 million at 400."""
    nodes, weights = gauss_legendre(number)
    assert nodes.shape == weights.shape == (number,)
    with precision(200):
        for k in sorted({0, 1, 2, number // 3, number // 2, number - 1}):
            node, weight = arb.legendre_p_root(number, k, weight=True)
            at = number - 1 - k
            assert abs(arb(float(nodes[at])) - node) <= 2.0**-53 * (1 + 1e-9)
            assert abs(arb(float(weights[at])) - weight) <= 2.0**-53 * weight * (2 + 1e-9)


def test_laplace_contours() -> None:
    """The worst plan of the attack, and random ones around it, against residues in balls."""
    draw = Draw("laplace")
    cases = [(0.01496034315245301, 88, 0.1)]
    cases += [(log_uniform(draw, 0.01, 30), draw.choice((20, 40, 88)), log_uniform(draw, 1e-12, 0.3)) for _ in range(4)]
    for scale, count, delta in cases:
        box = (count * dp.Laplace(scale)).epsilon_interval(delta)
        with precision(4000):
            at_lower, at_upper = (truth.laplace_delta(1 / Fraction(scale), count, e) for e in box)
            assert not at_upper > truth.ball(delta), (scale, count, delta, box)
            assert box.lower == 0 or not at_lower < truth.ball(delta), (scale, count, delta, box)


def log_moment(rate: float, sigma: float, power: arb) -> arb:
    """log E[A^power], A = 1 - q + q e^{t/s - 1/(2 s^2)}, t ~ N(0, 1)."""
    q, s = truth.ball(rate), truth.ball(sigma)
    far = float(abs(power)) / sigma + 14.0
    norm = (2 * arb.pi()).sqrt()

    def density(t: acb, _: bool) -> acb:
        mixed = 1 - q + q * (t / s - 1 / (2 * s * s)).exp()
        return ((mixed.log() * power) - t * t / 2).exp() / norm

    ends = [-far, *np.linspace(-14, far, 24).tolist()]
    return sum((acb.integral(density, a, b).real for a, b in pairwise(ends)), arb(0)).log()


@pytest.mark.parametrize("theta", [1e-12, 3.3e-9, 1e-6, 1e-3, 0.7])
@pytest.mark.parametrize("remove", [True, False])
def test_k_at_tiny_tilts(theta: float, remove: bool) -> None:
    """(1 + theta) - 1 is another tilt than theta: at large epsilons the ends were off by 4e-8 in log delta."""
    rate, sigma = 0.999999, 0.5
    found = SampledGaussianNodes(rate, sigma, remove).characteristic(theta, 1.0, math.log(1e-30))
    assert found is not None
    with precision(240):
        exact = log_moment(rate, sigma, 1 + truth.ball(theta) if remove else -truth.ball(theta))
        off = abs(truth.ball(found.log_moment) - exact)
        assert off <= truth.ball(found.log_moment_error) + 1e-30
        assert found.log_moment_error <= 1e-12 * found.log_moment + 1e-29


@pytest.mark.parametrize(
    ("rate", "sigma", "order"),
    [(1e-9, 4.9102265120385455, 1000.0), (1e-6, 2.0, 41.0), (1e-3, 0.7, 31.0), (0.3, 5.0, 4.0), (1e-9, 1.0, 2.5)],
)
def test_log_moments_are_never_below_the_truth(rate: float, sigma: float, order: float) -> None:
    """Exponents of twenty thousand that cancel cost more than a fixed number of ulps of K."""
    for side, composition in enumerate(dp.PoissonSampled(dp.Gaussian(sigma), rate).directions()):
        upper = float(log_moment_upper(composition, np.array([order - 1.0]))[0])
        with precision(400):
            exact = log_moment(rate, sigma, truth.ball(order) if side == 0 else 1 - truth.ball(order))
            assert truth.ball(upper) >= exact
            assert upper <= float(exact) * (1 + 2e-10)


def test_a_strip_that_proves_nothing_says_so() -> None:
    """At huge tilts the bound of the trapezoid error exceeds the sum: the error of K is infinite, not 2.2."""
    table = SampledGaussianNodes(1e-12, 1000.0, False).moment_table(np.array([1e9]))
    assert table.error[0] == math.inf or table.error[0] < 0.2
    table = SampledReplaceNodes(1e-12, 1000.0).moment_table(np.array([1e9]))
    assert table.error[0] == math.inf or table.error[0] < 0.2


@pytest.mark.parametrize(
    ("plan", "sigma", "rate"),
    [
        (dp.PoissonSampled(dp.Gaussian(3, 0.7), 0.01), Fraction(3) / Fraction(0.7), Fraction(0.01)),
        (dp.PoissonSampled(dp.Gaussian(1, 3), 0.01), Fraction(1, 3), Fraction(0.01)),
        (dp.PoissonSampled(dp.PoissonSampled(dp.Gaussian(1), 0.1), 0.3), Fraction(1), Fraction(0.1) * Fraction(0.3)),
        (dp.PoissonSampled(dp.GaussianDP(0.3), 0.2), 1 / Fraction(0.3), Fraction(0.2)),
    ],
)
def test_the_declared_mechanism_is_enclosed(plan: dp.Mechanism, sigma: Fraction, rate: Fraction) -> None:
    """Noise per unit of sensitivity and products of rates are no doubles: both ends hold for the declared ones."""
    for epsilon in (0.01, 0.5, 2.0):
        with precision(2000):
            s, q = truth.ball(sigma), truth.ball(rate)
            exact = max(
                (truth.one_step_delta(s, q, epsilon, side) for side in ("remove", "add")), key=lambda d: float(d)
            )
            for box in (plan.prove(epsilon=epsilon), plan.delta_interval(epsilon)):
                assert truth.ball(box.lower) <= exact <= truth.ball(box.upper), (plan, epsilon, box)
            proved = plan.prove(epsilon=epsilon)
            assert proved.upper - proved.lower <= 1e-14 * proved.upper


def test_replacement_at_rate_one_is_a_gaussian_of_twice_the_shift() -> None:
    plan = dp.PoissonSampled(dp.Gaussian(0.7, 0.3), 1.0, dp.REPLACE)
    with precision(300):
        exact = truth.gaussian_delta(2 * truth.ball(0.3) / truth.ball(0.7), 1.0)
        for box in (plan.prove(epsilon=1.0), plan.delta_interval(1.0)):
            assert truth.ball(box.lower) <= exact <= truth.ball(box.upper)
