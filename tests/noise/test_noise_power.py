"""Statistical: the power check. Planted faults are rejected by the same test at the same level."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from noise_reference import chi_square, gaussian_cdf, laplace_cdf

from dptally import noise
from dptally.noise import vector
from dptally.noise.source import SYSTEM

pytestmark = pytest.mark.statistical
ALPHA = 1e-9 / 100  # the level of test_noise_distribution
DRAWS = 1_000_000
F = Fraction


def laplace_p(draws, scale):
    return chi_square(draws, lambda x: laplace_cdf(scale, x), scale, cells=24)


def gaussian_p(draws, sigma):
    return chi_square(draws, lambda x: gaussian_cdf(sigma, x), sigma, cells=24)


def test_a_scale_one_percent_off_is_rejected():
    scale = F(10, 3)
    for factor in (F(101, 100), F(99, 100)):
        assert laplace_p(noise.discrete_laplace(scale * factor, size=4 * DRAWS), scale) < ALPHA
        assert gaussian_p(noise.discrete_gaussian(scale * factor, size=2 * DRAWS), scale) < ALPHA


def test_a_missing_sign_is_rejected():
    assert laplace_p(np.abs(noise.discrete_laplace(F(7, 5), size=DRAWS // 10)), F(7, 5)) < ALPHA
    assert gaussian_p(np.abs(noise.discrete_gaussian(F(7, 5), size=DRAWS // 10)), F(7, 5)) < ALPHA


def test_a_doubled_zero_is_rejected():
    """The classic slip: a negative zero is not redrawn, so zero comes twice as often."""
    scale = F(10, 3)
    size = np.abs(noise.discrete_laplace(scale, size=DRAWS))
    zeros = size == 0
    # magnitudes of the faulty sampler: P(|x| = 0) is 2 (1 - a) / 2 instead of (1 - a) / (1 + a)
    magnitudes = np.concatenate([size, size[zeros]])
    signs = np.where(noise.bernoulli(F(1, 2), size=len(magnitudes)), 1, -1)
    assert laplace_p(magnitudes * signs, scale) < ALPHA


def _divide_with_three_bits(source, numerators, denominator):
    """A coin whose bias is a quotient cut to three binary digits: right for halves, wrong for thirds."""
    return vector.below(source, 8, len(numerators)) < numerators * 8 // denominator


def test_a_biased_division_of_rationals_hides_at_dyadic_scales_and_is_rejected_at_others(monkeypatch):
    monkeypatch.setattr(vector, "bernoulli", _divide_with_three_bits)
    for scale in (F(1, 2), F(1), F(2)):
        assert laplace_p(vector.laplace(SYSTEM, scale.numerator, scale.denominator, DRAWS), scale) > ALPHA
    for scale in (F(3), F(3, 2), F(10, 3), F(7, 5)):
        assert laplace_p(vector.laplace(SYSTEM, scale.numerator, scale.denominator, DRAWS), scale) < ALPHA


def test_a_modulo_without_rejection_is_rejected(monkeypatch):
    def modulo(source, bound, count):
        return (np.frombuffer(source.take(count), dtype=np.uint8) % bound).astype(np.int64)

    monkeypatch.setattr(vector, "below", modulo)
    assert laplace_p(vector.laplace(SYSTEM, 10, 3, DRAWS), F(10, 3)) < ALPHA


def test_a_series_that_starts_late_is_rejected(monkeypatch):
    """exp(-1) coins with the first term forgotten have bias 1 - 1/e."""
    honest = vector._exp_of_one
    monkeypatch.setattr(vector, "_exp_of_one", lambda source, count: ~honest(source, count))
    assert laplace_p(vector.laplace(SYSTEM, 7, 5, DRAWS // 10), F(7, 5)) < ALPHA
