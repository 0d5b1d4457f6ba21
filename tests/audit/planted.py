"""Mechanisms with one planted bug each, with the claim that their authors would make."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction as F
from typing import Any

import numpy as np

from dptally import noise
from dptally.mechanisms import (
    ApproxDP,
    DiscreteLaplace,
    GaussianDP,
    Mechanism,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
)
from dptally.noise import vector
from dptally.noise.source import SYSTEM

RNG = np.random.default_rng(20)  # float noise; all other draws follow the fixed bytes


@dataclass(frozen=True)
class Planted:
    name: str
    mechanism: Callable[..., Any]
    d0: Any
    d1: Any
    claim: Mechanism
    samples: int = 40_000
    batched: bool = True
    options: dict[str, Any] = field(default_factory=dict)


def scale_times_nine_tenths(x, n):
    return x + noise.discrete_laplace(F(9, 20), n)  # 1/2 was meant


def sigma_times_nine_tenths(x, n):
    return x + noise.discrete_gaussian(18, n)  # 20 was meant


def off_by_one_sensitivity(records, n):
    """A person may have three records, noise is for two."""
    return sum(records) + noise.discrete_laplace(F(1), n)


def textbook_float_laplace(x, n):
    """Inverse transform in doubles, added in doubles [Mironov 2012]."""
    uniform = RNG.random(n) - 0.5
    return x + np.sign(uniform) * -np.log(1 - 2 * np.abs(uniform))


def float_gaussian(x, n):
    return x + RNG.standard_normal(n)


def one_sided_noise(x, n):
    return x + np.abs(noise.discrete_laplace(2, n))


def noise_reused_for_every_bin(counts, n):
    return np.asarray(counts)[None, :] + noise.discrete_laplace(2, n)[:, None]


def add_remove_noise_for_replaced_records(records, n):
    """Sensitivity max(|lower|, |upper|) = 4, but replacing -4 by 4 moves the sum by 8."""
    return sum(records) + noise.discrete_laplace(F(4), n)


def clipping_forgotten(records, n):
    return sum(records) + noise.discrete_laplace(F(4), n)  # bounds are 0 and 4


def biased_division(x, n):
    """A coin whose bias is a quotient cut to one binary digit: right at scale 2, wrong at scale 3."""
    honest = vector.bernoulli
    vector.bernoulli = lambda source, tops, bottom: vector.below(source, 2, len(tops)) < tops * 2 // bottom
    try:
        return x + vector.laplace(SYSTEM, 3, 1, n)
    finally:
        vector.bernoulli = honest


def fixed_seed(x, n):
    rng = random.Random(20)
    return np.array([x + rng.randint(-50, 50) for _ in range(n)])


def empty_bins_without_noise(counts, n):
    """Bins that nobody is in are left at zero: their support tells."""
    noisy = np.asarray(counts)[None, :] + noise.discrete_laplace(2, 2 * n).reshape(n, 2)
    return np.where(np.asarray(counts)[None, :] == 0, 0, noisy)


def response_that_may_return_the_truth(x, n):
    """The replacement is drawn among all four categories, so the truth comes too often."""
    kept = noise.bernoulli(F(1, 2), n)
    return np.where(kept, x, noise.uniform_below(4, n))


def test_without_a_margin(bits):
    """Propose-test-release that passes when the noisy distance is positive: delta is forgotten."""
    margin = 2 * sum(bits) - len(bits)
    away = margin - 1 if margin >= 1 else -margin
    return int(margin >= 1) if away + noise.discrete_laplace(1) > 0 else None


test_without_a_margin.__test__ = False


def bounds_read_off_the_data(records, n):
    low, high = min(records), max(records)
    width = high - low
    return sum(records) + noise.discrete_laplace(F(max(width, 1)), n)


def gaussian_cut_at_three_sigma(x, n):
    return x + np.clip(noise.discrete_gaussian(20, n), -60, 60)


def grid_that_follows_the_data(x, n):
    """Noise on the grid of the answer's own last bit."""
    step = 0.25 if x == 0.25 else 0.125
    return x + noise.discrete_laplace(F(1) / F(step), n) * step


def sampling_forgotten(records, n):
    return len(records) + noise.discrete_laplace(F(1, 2), n)  # the claim is for a sample at rate 1/10


def noise_forgotten_once_in_a_hundred(x, n):
    lost = noise.bernoulli(F(1, 100), n)
    return np.where(lost, 1000 * x, x + noise.discrete_laplace(1, n))


def none_for_small_counts(x):
    """Small counts are suppressed by the exact count."""
    return None if x < 5 else x + noise.discrete_laplace(1)


def rounding_after_float_sum(records):
    """A float sum depends on the order of the records [Casacuberta et al. 2022]."""
    total = 0.0
    for record in records:
        total += record
    return total + float(noise.discrete_laplace(F(1)))


def rectified_with_the_inverse_scale(x, n):
    """Clip and rectify with b = head_epsilon / width: at width 16 there is no noise to speak of."""
    return np.clip(x, 0, 16) + noise.grid_laplace(np.zeros(n), F(1, 16), F(1, 64))


HUGE = [2.0**53] + [1.0] * 64
TIED = [1] * 4 + [0] * 4

PLANTED = [
    Planted("scale x 0.9", scale_times_nine_tenths, 0, 1, PureDP(2.0), 400_000),
    Planted("sigma x 0.9", sigma_times_nine_tenths, 0, 60, GaussianDP(3.0), 200_000),
    Planted("off-by-one sensitivity", off_by_one_sensitivity, [0], [3], PureDP(2.0)),
    Planted("textbook float Laplace", textbook_float_laplace, 0.0, 1.0, PureDP(1.0)),
    Planted("float Gaussian", float_gaussian, 0.0, 1.0, GaussianDP(1.0)),
    Planted("one-sided noise", one_sided_noise, 0, 1, PureDP(0.5)),
    Planted("reused noise", noise_reused_for_every_bin, [3, 5], [3, 6], PureDP(0.5)),
    Planted("wrong adjacency", add_remove_noise_for_replaced_records, [-4], [4], PureDP(1.0)),
    Planted("ignored clipping", clipping_forgotten, [1], [1, 40], PureDP(1.0)),
    Planted("biased rational division", biased_division, 0, 1, PureDP(1 / 3), 200_000),
    Planted("fixed seed", fixed_seed, 0, 1, PureDP(1.0)),
    Planted("empty bins without noise", empty_bins_without_noise, [3, 0], [3, 1], PureDP(0.5)),
    Planted("response with the truth", response_that_may_return_the_truth, 0, 1, RandomizedResponse(0.5, 4)),
    Planted("test with no margin", test_without_a_margin, TIED, [1, *TIED], ApproxDP(1, 1e-3), 9_000, False),
    Planted("bounds read off the data", bounds_read_off_the_data, [1, 1], [1, 1, 9], PureDP(1.0)),
    Planted("Gaussian cut at three sigma", gaussian_cut_at_three_sigma, 0, 20, GaussianDP(1.0), 100_000),
    Planted("grid that follows the data", grid_that_follows_the_data, 0.25, 0.375, PureDP(0.125)),
    Planted("sampling forgotten", sampling_forgotten, [0], [0, 0], PoissonSampled(DiscreteLaplace(0.5), 0.1)),
    Planted("noise forgotten at times", noise_forgotten_once_in_a_hundred, 0, 1, PureDP(1.0)),
    Planted("suppression by the exact count", none_for_small_counts, 4, 5, PureDP(1.0), 10_000, False),
    Planted("float sum", rounding_after_float_sum, HUGE, [*HUGE[1:], HUGE[0]], PureDP(2.0), 10_000, False),
    Planted("rectified with the inverse scale", rectified_with_the_inverse_scale, 0.0, 16.0, GaussianDP(1.0)),
]
