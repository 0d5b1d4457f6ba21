"""Statistical: every sampler against its exact probabilities; total alpha 1e-9; power: test_noise_power."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from noise_reference import binomial_p_value, chi_square, gaussian_cdf, laplace_cdf
from scipy.special import gammaincc

from dptally import noise
from dptally.noise import samplers, scalar, vector
from dptally.noise.source import SYSTEM

pytestmark = pytest.mark.statistical
ALPHA = 1e-9 / 100  # fewer than 100 p-values in this file
DRAWS = 1_000_000

F = Fraction
LAPLACE_SCALES = [
    F(1, 10), F(1, 7), F(2, 7), F(1, 3), F(5, 9), F(0.7), F(13, 11), F(7, 5), F(3, 2), F(22, 7), F(10, 3),
    F(17, 3), F(99, 10), F(math.pi), F(1000, 7), F(123456789, 1000), F(10**6 + 3),
]  # fmt: skip
GAUSSIAN_SIGMAS = [
    F(1, 4), F(2, 7), F(1, 3), F(5, 9), F(13, 11), F(7, 5), F(3, 2), F(22, 7), F(10, 3), F(17, 3), F(99, 10),
    F(1000, 7), F(6001),
]  # fmt: skip


@pytest.mark.parametrize("scale", LAPLACE_SCALES, ids=str)
def test_discrete_laplace_has_its_exact_probabilities(scale):
    assert vector.laplace_fits(scale.numerator, scale.denominator)
    draws = noise.discrete_laplace(scale, size=DRAWS)
    assert draws.dtype == np.int64
    assert chi_square(draws, lambda x: laplace_cdf(scale, x), scale) > ALPHA


@pytest.mark.parametrize("sigma", GAUSSIAN_SIGMAS, ids=str)
def test_discrete_gaussian_has_its_exact_probabilities(sigma):
    variance = sigma**2
    assert vector.gaussian_fits(variance.numerator, variance.denominator)
    draws = noise.discrete_gaussian(sigma, size=DRAWS)
    assert chi_square(draws, lambda x: gaussian_cdf(sigma, x), sigma) > ALPHA


@pytest.mark.parametrize("sigma", [F(math.e), F(1234.56789012345), F(10**20 + 1, 10**20)], ids=["e", "large", "near 1"])
def test_sigmas_of_many_digits_have_their_exact_probabilities(sigma):
    draws = noise.discrete_gaussian(sigma, size=DRAWS // 2)
    assert draws.dtype == np.int64
    assert chi_square(draws, lambda x: gaussian_cdf(sigma, x), sigma) > ALPHA


def test_what_the_first_bits_leave_open_is_decided_by_the_others(monkeypatch):
    monkeypatch.setattr(vector, "_HEAD_BITS", 1)  # every second toss is open
    sigma = F(math.e)
    variance = sigma**2
    draws = vector.gaussian(SYSTEM, variance.numerator, variance.denominator, 20_000)
    assert chi_square(draws, lambda x: gaussian_cdf(sigma, x), sigma, cells=40) > ALPHA
    assert chi_square(draws, lambda x: gaussian_cdf(sigma * F(11, 10), x), sigma, cells=40) < ALPHA  # power


@pytest.mark.parametrize("scale", [F(10, 3), F(0.3), F(10**25 + 7, 10**24 + 1)], ids=["10/3", "0.3", "wide"])
def test_the_python_integers_draw_the_same_laplace(scale):
    draws = np.array([scalar.laplace(SYSTEM, scale.numerator, scale.denominator) for _ in range(30_000)])
    assert chi_square(draws, lambda x: laplace_cdf(scale, x), scale, cells=40) > ALPHA


@pytest.mark.parametrize("sigma", [F(7, 5), F(math.e)], ids=["7/5", "e"])
def test_the_python_integers_draw_the_same_gaussian(sigma):
    variance = sigma**2
    top, bottom = variance.numerator, variance.denominator
    draws = np.array([scalar.gaussian(SYSTEM, top, bottom) for _ in range(30_000)])
    assert chi_square(draws, lambda x: gaussian_cdf(sigma, x), sigma, cells=40) > ALPHA


def test_a_scale_too_wide_for_64_bits_gives_python_integers():
    scale = F(10**30)
    draws = noise.discrete_laplace(scale, size=20_000)
    assert draws.dtype == object
    tenths = np.floor(np.array([x / 10**29 for x in draws])).astype(int)

    def continuous(x):  # at this scale the steps are too small to see
        edge = (x + 1) / 10
        return np.where(edge < 0, np.exp(-np.abs(edge)) / 2, 1 - np.exp(-np.abs(edge)) / 2)

    assert chi_square(tenths, continuous, 10, cells=40) > ALPHA
    assert any(x % 2 for x in draws.tolist()), "the low bits are drawn as well"


@pytest.mark.parametrize("bound", [3, 6, 1000, 1023, 65537, 3 * 2**30, 2**32 + 1, 3 * 2**61], ids=str)
def test_uniform_integers_are_uniform_in_the_large_and_in_the_small(bound):
    draws = noise.uniform_below(bound, size=300_000)
    assert draws.min() >= 0
    assert draws.max() < bound
    block = -(-bound // 100)
    observed = np.bincount(draws // block)
    edges = [min(bound, i * block) for i in range(len(observed) + 1)]
    expected = np.array([len(draws) * (b - a) / bound for a, b in pairwise(edges)])
    statistic = float(((observed - expected) ** 2 / expected).sum())
    assert gammaincc((len(observed) - 1) / 2, statistic / 2) > ALPHA
    odd = int((draws % 2).sum())
    assert binomial_p_value(odd, len(draws), (bound // 2) / bound) > ALPHA


@pytest.mark.parametrize("p", [F(1, 3), F(2, 7), F(999, 1000), 0.1, F(1, 10**20) + F(1, 4)], ids=str)
def test_bernoulli_has_its_probability(p):
    size = 400_000 if F(p).denominator < 2**63 else 20_000
    assert binomial_p_value(int(noise.bernoulli(p, size=size).sum()), size, float(p)) > ALPHA
    few = sum(noise.bernoulli(p) for _ in range(20_000))
    assert binomial_p_value(few, 20_000, float(p)) > ALPHA


@pytest.mark.parametrize("x", [F(1, 3), F(1), F(7, 5), F(22, 7), 0.1, F(10**20 + 1, 10**20)], ids=str)
def test_bernoulli_exp_has_its_probability(x):
    size = 400_000 if F(x).denominator < 2**63 else 20_000
    assert binomial_p_value(int(noise.bernoulli_exp(x, size=size).sum()), size, math.exp(-x)) > ALPHA
    few = sum(noise.bernoulli_exp(x) for _ in range(20_000))
    assert binomial_p_value(few, 20_000, math.exp(-x)) > ALPHA


@pytest.mark.parametrize(("p", "categories"), [(F(1, 2), 2), (F(3, 7), 3), (0.9, 5), (F(1, 10), 4)])
def test_randomized_response_keeps_with_p_and_spreads_the_rest_evenly(p, categories):
    for truth in range(categories):
        answers = noise.randomized_response(np.full(100_000, truth), p, categories)
        for code, count in enumerate(np.bincount(answers, minlength=categories)):
            chance = float(p if code == truth else (1 - F(p)) / (categories - 1))
            assert binomial_p_value(int(count), len(answers), chance) > ALPHA


@pytest.mark.parametrize(("draw", "cdf"), [(noise.grid_laplace, laplace_cdf), (noise.grid_gaussian, gaussian_cdf)])
def test_noise_on_the_grid_is_the_discrete_noise_in_grid_steps(draw, cdf):
    values = np.full(300_000, 0.7)  # rounds to 1.5 half-steps of 1/2: floor(1.4 + 1/2) = 1
    steps = draw(values, F(10, 3), F(1, 2)) * 2 - 1
    assert (steps == np.rint(steps)).all()
    assert chi_square(steps.astype(int), lambda x: cdf(F(20, 3), x), 7) > ALPHA


def test_neighbouring_draws_are_independent():
    draws = noise.discrete_laplace(F(10, 3), size=400_000)
    both = int(((draws[:-1] > 0) & (draws[1:] > 0)).sum())
    chance = float(laplace_cdf(F(10, 3), np.array([-1]))[0])  # of a negative draw, and of a positive one
    variance = chance**2 * (1 - chance**2) + 2 * chance**3 * (1 - chance)
    deviation = math.sqrt(len(draws) * variance)
    assert abs(both - len(draws) * chance**2) < 7 * deviation


def test_small_and_large_sizes_take_different_engines_and_both_answer():
    for size in (0, 1, samplers.FEW - 1, samplers.FEW, vector.BLOCK + 1):
        assert noise.discrete_laplace(3, size=size).shape == (size,)
        assert noise.discrete_gaussian(3, size=size).shape == (size,)
        assert noise.uniform_below(3, size=size).shape == (size,)
