"""Laws: selection on random scores, by exact formulas, never exceeds what is claimed; equality where it is tight."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dptally as dp
from depth import thinned
from selection.worst_case import exponential, hockey_stick, neighbours, permute_and_flip

EPSILONS = (0.0, 0.2, 0.5, 0.9)
SIZE = 1.0


def claimed(mechanism: dp.Mechanism) -> list[float]:
    return [mechanism.delta(epsilon) for epsilon in EPSILONS]


@pytest.mark.parametrize("candidates", [2, 3, 5])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_exponential_mechanism_on_random_scores(candidates: int, monotone: bool) -> None:
    generator = np.random.default_rng(candidates)
    one, other = neighbours(generator, thinned(6000), candidates, monotone)
    p, q = exponential(one, SIZE), exponential(other, SIZE)
    most = claimed(dp.NoisyMax(2 / SIZE, noise="gumbel", monotone=monotone))
    for epsilon, delta in zip(EPSILONS, most, strict=True):
        assert hockey_stick(p, q, epsilon).max() <= delta * (1 + 1e-12) + 1e-15
        assert hockey_stick(q, p, epsilon).max() <= delta * (1 + 1e-12) + 1e-15
    if not monotone:
        assert hockey_stick(p, q, 0.0).max() >= 0.9 * most[0]
    assert most == claimed(dp.ExponentialMechanism(SIZE if not monotone else SIZE / 2))


@pytest.mark.parametrize("candidates", [2, 3, 5])
@pytest.mark.parametrize("monotone", [False, True])
def test_permute_and_flip_on_random_scores(candidates: int, monotone: bool) -> None:
    generator = np.random.default_rng(10 + candidates)
    one, other = neighbours(generator, thinned(3000), candidates, monotone)
    p, q = permute_and_flip(one, SIZE), permute_and_flip(other, SIZE)
    assert p.sum(axis=1) == pytest.approx(np.ones(len(p)))
    most = claimed(dp.NoisyMax(2 / SIZE, noise="exponential", monotone=monotone))
    for epsilon, delta in zip(EPSILONS, most, strict=True):
        assert hockey_stick(p, q, epsilon).max() <= delta * (1 + 1e-12) + 1e-15
    assert most == claimed(dp.PermuteAndFlip(SIZE if not monotone else SIZE / 2))


def noisy_max_by_quadrature(scores: np.ndarray, scale: float) -> np.ndarray:
    """P(each is the largest) under Laplace noise, trapezoid sum with kinks at nodes to within a step."""
    x = np.linspace(-40.0 * scale, 40.0 * scale, 8001)
    z = (x[:, None] - scores) / scale
    density = 0.5 * np.exp(-np.abs(z)) / scale
    cdf = np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0.0)), 1 - 0.5 * np.exp(-np.maximum(z, 0.0)))
    out = []
    for i in range(len(scores)):
        others = np.delete(cdf, i, axis=1).prod(axis=1)
        out.append((density[:, i] * others).sum() * (x[1] - x[0]))
    return np.array(out)


def test_laplace_noisy_max_on_random_scores() -> None:
    generator = np.random.default_rng(3)
    most = claimed(dp.NoisyMax(2 / SIZE, noise="laplace"))
    for candidates in (2, 3):
        one, other = neighbours(generator, thinned(60), candidates)
        for a, b in zip(one, other, strict=True):
            p, q = noisy_max_by_quadrature(a, 2 / SIZE), noisy_max_by_quadrature(b, 2 / SIZE)
            for epsilon, delta in zip(EPSILONS, most, strict=True):
                assert hockey_stick(p, q, epsilon) <= delta + 2e-5


def test_where_it_is_tight_two_candidates_attain_it() -> None:
    for epsilon in EPSILONS:
        gap = np.linspace(-8.0, 8.0, 3201)[:, None]
        one, other = np.hstack((gap, 0.0 * gap)), np.hstack((gap - 1.0, 0.0 * gap + 1.0))
        for chosen, mechanism in (
            (exponential, dp.ExponentialMechanism(SIZE)),
            (permute_and_flip, dp.PermuteAndFlip(SIZE)),
        ):
            box = mechanism.delta_interval(epsilon)
            best = hockey_stick(chosen(one, SIZE), chosen(other, SIZE), epsilon).max()
            assert best == pytest.approx(box.upper, rel=1e-5)
            assert box.lower == pytest.approx(box.upper, rel=1e-12)


def test_permute_and_flip_is_not_bounded_range() -> None:
    """The profile exceeds that of bounded range, and rho exceeds eps^2/8: a quarter of the truth for small eps."""
    for size in (0.1, 1.0):
        flip, bounded = dp.PermuteAndFlip(size), dp.BoundedRange(size)
        assert flip.delta(0.0) > 1.5 * bounded.delta(0.0)
        pair = np.array([[1.0, 0.0], [0.0, 1.0]]) * 1.0
        p, q = permute_and_flip(pair, size)
        divergence = math.log(float((p**2 / q).sum()))  # of order 2, attained
        assert flip.renyi(2.0) >= divergence
        assert flip.rho() > 2 * size * size / 8
        assert flip.rho() >= divergence / 2
    assert dp.PermuteAndFlip(0.01).rho() > 3.5 * 0.01**2 / 8
    assert (20 * dp.PermuteAndFlip(0.1)).epsilon(1e-6) > (20 * dp.ExponentialMechanism(0.1)).epsilon(1e-6)


def test_lower_ends_of_several_uses_are_attained() -> None:
    """Two candidates whose favourite the neighbour exchanges, used several times."""
    x = 0.25
    exponential_loses = math.exp(-x) / 2
    p, q = permute_and_flip(np.array([[1.0, 0.0], [0.0, 1.0]]), 2 * x)
    assert q[0] == pytest.approx(exponential_loses)
    flips = (5 * dp.PermuteAndFlip(2 * x)).delta_interval(0.3)
    attained = (5 * dp.RandomizedResponse(float(p[0]))).delta_interval(0.3)
    assert flips.lower == pytest.approx(attained.lower, rel=1e-9)
    assert flips.upper == pytest.approx((5 * dp.Laplace(1.0, 2 * x)).delta(0.3), rel=1e-12)
    scale = 2.0
    p = noisy_max_by_quadrature(np.array([2 * scale * x, 0.0]), scale)
    laplace = (3 * dp.NoisyMax(scale, sensitivity=2 * scale * x, noise="laplace", monotone=False)).delta_interval(0.1)
    loses = math.exp(-2 * x) * (2 + 2 * x) / 4
    assert p[1] == pytest.approx(loses, abs=1e-5)
    assert laplace.lower == pytest.approx((3 * dp.RandomizedResponse(1 - loses)).delta(0.1), rel=1e-9)


def test_names_that_mean_the_same() -> None:
    assert dp.ExponentialMechanism(0.5).laws() == dp.NoisyMax(scale=4.0).laws() == dp.BoundedRange(0.5).laws()
    assert dp.NoisyMax(2.0, 0.5, monotone=True).laws() == dp.ExponentialMechanism(0.25).laws()
    assert dp.TopK(0.5, 4).epsilon(1e-6) == (4 * dp.ExponentialMechanism(0.5)).epsilon(1e-6)
    assert dp.TopK(0.5, 1).epsilon_interval(1e-6) == dp.ExponentialMechanism(0.5).epsilon_interval(1e-6)
    assert (dp.TopK(0.5, 3) + dp.NoisyMax(4.0)).epsilon(1e-6) == (4 * dp.ExponentialMechanism(0.5)).epsilon(1e-6)
    assert dp.AboveThreshold(0.25, 0.5, hits=3).epsilon(0.0) == 0.75
    assert dp.AboveThreshold(0.25, 0.5).epsilon(1e-6) == dp.PureDP(0.75).epsilon(1e-6)
    assert dp.AboveThreshold(0.25, 0.5).epsilon_interval(1e-6).lower == 0.0
    box = dp.TopK(0.5, 4).epsilon_interval(1e-6)
    assert box.lower == dp.ExponentialMechanism(0.5).epsilon_interval(1e-6).lower
    assert "first of the peels" in box.method


def test_groups_of_records() -> None:
    for single, three in (
        (dp.ExponentialMechanism(0.5), dp.ExponentialMechanism(1.5)),
        (dp.BoundedRange(0.5), dp.BoundedRange(1.5)),
        (dp.PermuteAndFlip(0.5), dp.PermuteAndFlip(1.5)),
        (dp.TopK(0.5, 2), dp.TopK(1.5, 2)),
        (dp.NoisyMax(2.0, noise="laplace"), dp.NoisyMax(2.0, 3.0, noise="laplace")),
        (dp.AboveThreshold(0.5, 0.25, 2), dp.AboveThreshold(1.5, 0.75, 2)),
    ):
        assert single.group(3) == three


def test_calibrated_and_sampled_and_refused() -> None:
    size = dp.calibrate(dp.ExponentialMechanism, epsilon=0.3, delta=1e-6)
    assert dp.ExponentialMechanism(size).epsilon(1e-6) <= 0.3
    scale = dp.calibrate(lambda b: 5 * dp.NoisyMax(b, noise="exponential"), epsilon=1.0, delta=1e-6)
    assert (5 * dp.NoisyMax(scale, noise="exponential")).epsilon(1e-6) <= 1.0
    with pytest.raises(dp.Unanswerable, match="REPLACE"):
        dp.PoissonSampled(dp.PermuteAndFlip(0.5), 0.1, dp.REPLACE).epsilon(1e-6)
    many = (4 * dp.PoissonSampled(dp.PermuteAndFlip(0.5), 0.1)).epsilon_interval(1e-6)
    assert 0 < many.lower < many.upper
    with pytest.raises(dp.Unanswerable, match="selection"):
        dp.Sampled(dp.ExponentialMechanism(0.5), dp.BallsInBins(10), epochs=1).epsilon(1e-6)
    assert dp.Sampled(dp.ExponentialMechanism(0.5), dp.Cyclic(10), epochs=2).epsilon(1e-6) <= 1.0
    assert dp.PoissonSampled(dp.AboveThreshold(0.2, 0.3), 0.1).epsilon_interval(1e-6).lower == 0.0
    with pytest.raises(dp.InvalidArgument, match="epsilon"):
        dp.ExponentialMechanism(1e-200)
    with pytest.raises(dp.InvalidArgument, match="scale"):
        dp.NoisyMax(1e-200)


@pytest.mark.parametrize("text", ["exponential(0.5)", "em(0.5)", "exponentialmechanism(epsilon=0.5)", "noisy_max(4)"])
def test_plan_texts(text: str) -> None:
    from dptally.cli.language import parse

    assert parse(f"3 * {text}").epsilon(1e-6) == (3 * dp.ExponentialMechanism(0.5)).epsilon(1e-6)


def test_events_of_dp_accounting() -> None:
    event = "SelfComposedDpEvent(event=ExponentialMechanismDpEvent(epsilon=0.1), count=100)"
    assert dp.from_dp_accounting(event) == 100 * dp.ExponentialMechanism(0.1)
    assert dp.from_dp_accounting("PermuteAndFlipDpEvent(epsilon=0.5)") == dp.PermuteAndFlip(0.5)


def test_noise_without_a_theorem_is_refused_with_what_to_write() -> None:
    """The advice is followed: k noisy scores, or the noise that is covered."""
    sigma, sensitivity, k = 4.0, 1.0, 5
    for noise in ("gaussian", "staircase", "cauchy"):
        with pytest.raises(dp.InvalidArgument, match=r"no theorem used here .* k \* Gaussian\(sigma, sensitivity\)"):
            dp.NoisyMax(sigma, sensitivity, noise=noise)
        with pytest.raises(dp.InvalidArgument, match=r"no theorem used here .* k \* Gaussian\(sigma, sensitivity\)"):
            dp.AboveThreshold(0.25, 0.5, noise=noise)
    every = k * dp.Gaussian(sigma, sensitivity)
    assert every.epsilon(1e-6) == pytest.approx(dp.Gaussian(sigma / math.sqrt(k)).epsilon(1e-6), rel=1e-9)
    for noise in ("gumbel", "laplace", "exponential"):
        assert dp.NoisyMax(sigma, sensitivity, noise=noise).epsilon(1e-6) < 1.0
    assert dp.AboveThreshold(0.25, 0.5, noise="laplace") == dp.AboveThreshold(0.25, 0.5)


def test_answers_name_the_recursion_that_gave_them() -> None:
    one, ten = dp.ExponentialMechanism(0.1), 10 * dp.ExponentialMechanism(0.1)
    assert one.epsilon_interval(1e-6).method == "closed form"
    assert ten.epsilon_interval(1e-6).method == ten.delta_interval(0.5).method == "recursion over the uses"
