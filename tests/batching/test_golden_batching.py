"""Golden values of batching, with their origin in the text beside them, and the two witnesses for large t."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from scipy.special import log_ndtr

import dptally as dp
from dptally.law.adjacency import Direction
from dptally.laws.sampled.allocation.gaussian import GaussianSum
from dptally.laws.sampled.allocation.law import AllocationLaw

SOAK = bool(os.environ.get("DPTALLY_SOAK"))


def bins(t: int, sigma: float, epochs: int) -> dp.Mechanism:
    return dp.training(sigma, dp.BallsInBins(t), epochs=epochs)


@pytest.mark.parametrize(
    ("t", "sigma", "epochs", "coarse"),
    [
        (100, 1.0, 1, 0.62094),
        (10, 2.0, 1, 0.62206),
        (1000, 1.0, 1, 0.13885),
        (10, 2.0, 10, 2.14207),
        (100, 1.0, 10, 1.7015),
        (1000, 1.0, 10, 0.46447),
    ],
)
def test_balls_in_bins_lies_just_below_a_coarse_upper_lattice(t: int, sigma: float, epochs: int, coarse: float) -> None:
    box = bins(t, sigma, epochs).epsilon_interval(1e-5)
    assert coarse * 0.999 < box.lower
    assert box.upper < coarse * (1 + 1e-5)
    assert box.width <= 1e-6 * box.upper


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.120897), (1.0, 0.0718443), (2.0, 0.0285561), (4.0, 0.00428741)])
def test_balls_in_bins_at_little_noise(epsilon: float, delta: float) -> None:
    box = bins(1000, 0.35, 1).delta_interval(epsilon)
    assert box.lower == pytest.approx(delta, rel=2e-5)
    assert box.width < 1e-5 * delta


@pytest.mark.parametrize(("sigma", "epsilon"), [(1.0, 14.82067), (2.0, 2.198910), (4.0, 0.718571)])
def test_fixed_size_replace(sigma: float, epsilon: float) -> None:
    box = dp.training(sigma, dp.FixedSize(10, 1000), steps=1000, adjacency=dp.REPLACE).epsilon_interval(1e-5)
    assert box.lower == pytest.approx(epsilon, rel=1e-6)
    assert box.width < 1e-9 * epsilon


@pytest.mark.parametrize(
    ("epsilon", "attack", "plain"),
    [(0.5, 0.799958, 0.805304), (1.0, 0.753147, 0.757254), (2.0, 0.641776, 0.643878), (4.0, 0.383405, 0.383757)],
)
def test_shuffling(epsilon: float, attack: float, plain: float) -> None:
    box = dp.training(0.35, dp.ShuffledBatches(1000), epochs=1).delta_interval(epsilon)
    assert attack <= box.lower < attack * (1 + 1e-4)
    assert box.upper == pytest.approx(plain, rel=2e-6)
    assert "no amplification" in box.method
    best = max_event(1000, 0.35, epsilon)
    assert best - 1e-6 < box.lower < best + 1e-12


def max_event(steps: int, sigma: float, epsilon: float) -> float:
    """The published event, some output of the epoch above C, at its best C."""
    cut = np.linspace(0.0, 5.0, 200_001)

    def beyond(shift: float) -> np.ndarray:
        return -np.expm1(log_ndtr((cut - shift) / sigma) + (steps - 1) * log_ndtr(cut / sigma))

    return float((beyond(2.0) - math.exp(epsilon) * beyond(1.0)).max())


def test_mixtures() -> None:
    one = dp.MixtureOfGaussians(1.0, (0, 1, 2), (0.2, 0.6, 0.2))
    other = dp.MixtureOfGaussians(2.0, (0, 2, 3), (0.33, 0.34, 0.33))
    box = (3 * one + 2 * other).epsilon_interval(1e-6)
    assert box.lower == pytest.approx(17.193115, rel=1e-7)
    assert box.width < 1e-9
    deep = (3 * one + 2 * other).epsilon_interval(1e-300)
    assert deep.width < 1e-6 * deep.upper


def test_truncated() -> None:
    plan = dp.training(1.0, dp.TruncatedPoisson(0.5, 4, 2), steps=3) + dp.training(
        1.0, dp.TruncatedPoisson(0.5, 3, 2), steps=2
    )
    box = plan.epsilon_interval(1e-6)
    assert box.upper == pytest.approx(17.904330, rel=1e-7)
    assert "bounding pair" in box.method
    assert plan.epsilon(1e-300) < math.inf


def test_groups() -> None:
    box = dp.training(1.0, dp.Poisson(0.01), steps=1000, per_user=4).epsilon_interval(1e-5)
    assert box.lower == pytest.approx(8.899188, rel=1e-7)
    assert dp.PoissonSampled(dp.Gaussian(1.0), 0.01).grouped(1).epsilon(1e-5) == pytest.approx(
        dp.PoissonSampled(dp.Gaussian(1.0), 0.01).epsilon(1e-5), rel=1e-12
    )


# -- a second witness: importance sampling under P, with a power check --------------------------------------------


@pytest.mark.parametrize(("t", "sigma", "epsilon"), [(10, 1.0, 1.0), (100, 0.6, 1.0), (100, 1.0, 0.5), (30, 0.8, 1.5)])
def test_monte_carlo_under_p_agrees(t: int, sigma: float, epsilon: float) -> None:
    draw = np.random.default_rng(t)
    m, number = 1 / sigma, 200_000
    x = draw.standard_normal((number, t))
    x[:, 0] += m
    ratio = np.exp(m * x - 0.5 * m * m).sum(axis=1) / t
    pay = np.maximum(1 - math.exp(epsilon) / ratio, 0.0)
    mean, error = float(pay.mean()), float(pay.std()) / math.sqrt(number)
    low, high = AllocationLaw(m, t, Direction.REMOVE).log_profile(np.array([epsilon]))
    assert math.exp(float(low[0])) - 4.5 * error < mean < math.exp(float(high[0])) + 4.5 * error
    assert error < 0.15 * mean  # a delta that is 70 % off would be seen
    assert high[0] - low[0] < 1e-8


@pytest.mark.skipif(not SOAK, reason="soak")
def test_integer_moments_of_one_epoch() -> None:
    """E R^2 = 1 + (e^{m^2} - 1)/t and E R^3 by counting which of three uniform steps agree."""
    for t, m in ((7, 0.5),):
        law = AllocationLaw(m, t, Direction.REMOVE)
        second, third = np.exp(law.log_moment(np.array([1.0, 2.0])))
        w = math.exp(m * m)
        assert second == pytest.approx(1 + (w - 1) / t, rel=1e-8)
        assert third == pytest.approx((w**3 + 3 * (t - 1) * w + (t - 1) * (t - 2)) / t**2, rel=1e-8)


def test_two_steps_by_quadrature() -> None:
    """t = 2: E(S - b)+ and E(b - S)+ as integrals over one ratio of a Gaussian profile of the other."""
    from mpmath import mp, mpf, ncdf, npdf, quad

    mp.dps = 20
    m = mpf(1)

    def above(b: mpf) -> mpf:
        def inner(x: mpf) -> mpf:
            y = mp.exp(m * x - m * m / 2)
            rest = b - y
            if rest <= 0:
                return (1 - rest) * npdf(x)
            cut = (mp.log(rest) + m * m / 2) / m
            return (ncdf(m - cut) - rest * ncdf(-cut)) * npdf(x)

        edge = (mp.log(b) + m * m / 2) / m
        steps = [edge - mpf(8) / 4**k for k in range(7)]
        return quad(inner, [-14, *steps, edge, edge + mpf("0.5"), edge + 2, edge + 6, 16])

    found = GaussianSum(1.0, 2)
    for a in (1.0, 1.5, 4.0):
        truth = above(mpf(2 * a))
        low, high, _ = found.log_above(np.array([2 * a]))
        assert float(low[0]) <= float(mp.log(truth)) + 1e-12
        assert float(mp.log(truth)) <= float(high[0]) + 1e-12
        assert a > 3 or high[0] - low[0] < 1e-6
    for a in (0.2, 0.9):
        truth = above(mpf(2 * a)) + 2 * mpf(a) - 2
        low, high, _ = found.log_below(np.array([2 * a]))
        assert float(low[0]) <= float(mp.log(truth)) + 1e-12 <= float(high[0]) + 2e-12


def test_bounded_steps_against_exact_sums() -> None:
    """Randomised response has two ratios, 3 and 1/3: S is binomial."""
    t = 10
    plan = dp.Sampled(dp.RandomizedResponse(0.75), dp.BallsInBins(t), epochs=1)
    remove, add = (composition.parts[0][0] for composition in plan.directions())
    for epsilon in (-0.4, 0.0, 0.1, 0.6):
        chances = [math.comb(t, k) * 0.25**k * 0.75 ** (t - k) for k in range(t + 1)]
        ratios = [(3 * k + (t - k) / 3) / t for k in range(t + 1)]
        a = math.exp(epsilon)
        truth = math.fsum(p * max(r - a, 0.0) for p, r in zip(chances, ratios, strict=True))
        other = math.fsum(p * max(1 - a * r, 0.0) for p, r in zip(chances, ratios, strict=True))
        for law, value in ((remove, truth), (add, other)):
            low, high = (float(np.exp(end[0])) for end in law.log_profile(np.array([epsilon])))
            assert low <= value * (1 + 1e-12)
            assert value <= high * (1 + 1e-12)
            assert high - low < 1e-4 * value


def test_laplace_steps_by_monte_carlo() -> None:
    draw = np.random.default_rng(5)
    t, reach, number, epsilon = 50, 0.5, 100_000, 0.05
    x = draw.laplace(size=(number, t))
    x[:, 0] += reach
    ratio = np.exp(np.abs(x) - np.abs(x - reach)).mean(axis=1)
    pay = np.maximum(1 - math.exp(epsilon) / ratio, 0.0)
    mean, error = float(pay.mean()), float(pay.std()) / math.sqrt(number)
    law = dp.Sampled(dp.Laplace(2.0), dp.BallsInBins(t), epochs=1).directions()[0].parts[0][0]
    low, high = (float(np.exp(end[0])) for end in law.log_profile(np.array([epsilon])))
    assert low - 4.5 * error < mean < high + 4.5 * error
    assert error < 0.05 * mean
    assert high - low < 1e-4 * high
