"""Fixed-size batches under REPLACE: decay and moments against plain integration; shares of truncated batches."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from mpmath import mp, mpf, quad
from scipy.special import erf

from dptally.law.adjacency import Direction
from dptally.laws.mixed import MixedLaw
from dptally.laws.sampled.gaussian.fixed_size_kernel import FixedSizeNodes
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.laws.sampled.truncated import Overflow, least_rate

FREQUENCIES = np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0])


def moduli(rate: float, scale: float, theta: float, u: np.ndarray) -> np.ndarray:
    """|phi(u)| of the tilted loss by Simpson's rule on a fine grid."""
    m = 1 / scale
    x = np.linspace(0.0, 40.0 * max(1.0, m) + (theta + 2) * m, 400_001)
    weight = np.full(len(x), 2 * x[1] / 3)
    weight[1::2] *= 2
    weight[[0, -1]] /= 2
    loss = np.logaddexp(np.log1p(-rate), np.log(rate) + m * x)
    base = -0.5 * (x + 0.5 * m) ** 2 - 0.5 * np.log(2 * np.pi)
    above, below = np.exp(base + (1 + theta) * loss) * weight, np.exp(base - theta * loss) * weight
    atom = (1 - rate) * erf(m / 2 / np.sqrt(2))
    total = above.sum() + below.sum() + atom
    turned = [above @ np.exp(1j * v * loss) + below @ np.exp(-1j * v * loss) + atom for v in u]
    return np.abs(turned) / total


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.3, 0.9])
@pytest.mark.parametrize(
    ("scale", "theta"), [(0.15, 0.1), (0.5, 2.0), (0.5, 10.0), (1.0, 2.0), (4.0, 10.0), (20.0, 0.1)]
)
def test_the_decay_is_never_below_the_truth_and_not_far_above(rate: float, scale: float, theta: float) -> None:
    u = FREQUENCIES / (rate * min(1 / scale, 5.0))
    true = np.log(np.maximum.accumulate(moduli(rate, scale, theta, u)[::-1])[::-1])
    bound = FixedSizeNodes(rate, scale).log_decay(theta, u)
    assert (bound >= true - 1e-9).all()
    assert (np.diff(bound) <= 1e-12).all()
    assert bound[-1] < 0.1 * true[-1]  # and it says something
    if scale >= 0.5 and theta <= 2.0:  # a contour of a few times the terms that the truth would need
        assert (bound <= 0.1 * true + 1e-9).all()


@pytest.mark.parametrize(("rate", "scale"), [(0.01, 0.5), (0.3, 2.0), (0.9, 0.25)])
def test_moments_hold_the_truth(rate: float, scale: float) -> None:
    theta = np.array([0.2, 1.0, 4.0])
    table = FixedSizeNodes(rate, scale).moment_table(theta)
    with mp.workdps(30):
        g, m = mpf(rate), 1 / mpf(scale)
        atom = (1 - g) * mp.erf(m / 2 / mp.sqrt(2))
        for k, t in enumerate(theta.tolist()):

            def integrand(x: mpf, t: float = t) -> mpf:
                a = 1 - g + g * mp.exp(m * x)
                return mp.npdf(x + m / 2) * (a ** (1 + mpf(t)) + a ** -mpf(t))

            value = mp.log(atom + quad(integrand, [0, 1, 2, 4, 8, 16, 24, 40 + 6 * m]))
            assert abs(value - mpf(float(table.moment[k]))) <= mpf(float(table.error[k]))
            assert table.error[k] < 1e-10


@pytest.mark.parametrize(("records", "rate", "cap"), [(500, 0.1, 30), (500, 0.1, 70), (2000, 0.01, 3), (401, 0.5, 201)])
def test_shares_of_full_batches_are_rounded_up_each_by_itself(records: int, rate: float, cap: int) -> None:
    """A smaller share of either pair may be the better one: none may be rounded down with the other one's help."""
    q = Fraction(rate)

    def tail(number: int, least: int) -> Fraction:
        less = sum((comb(number, k) * q**k * (1 - q) ** (number - k) for k in range(least)), Fraction(0))
        return 1 - less

    full, beyond = tail(records - 1, cap), tail(records, cap + 1)
    found = Overflow.of(rate, records, cap)
    kept = beyond * cap / (records * full)
    for ours, true in ((found.room, 1 - full), (found.full, full), (found.kept, kept)):
        assert true <= Fraction(ours) <= true * (1 + Fraction(1, 10**8))
    least = q * (1 - full) + beyond * cap / records
    assert least * (1 - Fraction(1, 10**8)) <= Fraction(least_rate(rate, records, cap)) <= least


def test_a_rare_part_of_a_mixture_counts_whole_in_the_decay() -> None:
    plain, other = SampledGaussianLaw(0.01, 1.0, Direction.REMOVE), SampledGaussianLaw(0.2, 3.0, Direction.REMOVE)
    start = np.array([5.0, 20.0, 60.0, 200.0])
    for share in (1e-9, 1e-4, 0.3):
        law = MixedLaw(((plain, 1 - share), (other, share)), "test")
        bound = law.log_decay(2.0, start)
        char = law.characteristic(2.0, 210.0, -30.0)
        assert char is not None
        value = np.abs(1 + char.on_grid(5.0, 42)[0])
        for u, b in zip(start, bound, strict=True):
            assert value[round(u / 5.0) :].max() <= np.exp(b) + 1e-9
