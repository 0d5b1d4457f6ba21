"""Golden: wide discrete Gaussian noise, alone and on a sample, has the transform of its own sum over the integers."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import dptally as dp
from dptally.law.adjacency import Direction
from dptally.law.characteristic import Characteristic, GaussianCharacteristic
from dptally.laws.discrete_gaussian import DiscreteGaussianLaw


def transform(losses: list[mp.mpf], weights: list[mp.mpf], theta: float, u: float) -> tuple[mp.mpf, mp.mpc]:
    """(K, phi) of a list of losses."""
    tilted = [w * mp.exp(theta * x) for w, x in zip(weights, losses, strict=True)]
    total = mp.fsum(tilted)
    phi = mp.fsum(t * mp.expjpi(u * x / mp.pi) for t, x in zip(tilted, losses, strict=True)) / total
    return mp.log(total / mp.fsum(weights)), phi


def check(char: Characteristic, moment: mp.mpf, phi: mp.mpc, u: float) -> None:
    assert abs(char.log_moment - moment) <= char.log_moment_error
    minus_one, error = char.on_grid(u, 2)
    turned = (1 + mp.mpc(complex(minus_one[1]))) * mp.expjpi(u * mp.mpf(char.centre) / mp.pi)
    slack = 4 * 2.0**-52 * u * abs(char.centre)  # of the centre: charged by the caller
    assert abs(turned - phi) <= error[1] + slack, (u, float(abs(turned - phi)), error[1])
    assert abs(turned - phi) <= 1e-11


@pytest.mark.parametrize(
    ("sigma", "shift", "theta"), [(8.0, 1, 3.0), (8.0, 5, 0.7), (33.3, 2, 40.0), (250.0, 1, 900.0)]
)
def test_alone(sigma: float, shift: int, theta: float) -> None:
    law = DiscreteGaussianLaw(sigma, shift)
    deviation = shift / sigma
    with mp.workdps(60):
        s = mp.mpf(sigma)
        centre = round(-theta * shift)
        ks = range(centre - int(14 * sigma), centre + int(14 * sigma) + 1)
        losses = [mp.mpf(shift) * (shift - 2 * k) / (2 * s * s) for k in ks]
        weights = [mp.exp(-(mp.mpf(k) ** 2) / (2 * s * s)) for k in ks]
        norm = mp.fsum(mp.exp(-(mp.mpf(k) ** 2) / (2 * s * s)) for k in range(-int(16 * sigma), int(16 * sigma) + 1))
        for times in (0.1, 1.0, 4.0):
            u = times / deviation
            char = law.characteristic(theta, 2 * u, -36.0)
            assert isinstance(char, GaussianCharacteristic)
            moment, phi = transform(losses, weights, theta, u)
            moment += mp.log(mp.fsum(weights) / norm)
            check(char, moment, phi, u)


@pytest.mark.parametrize("side", [Direction.REMOVE, Direction.ADD])
def test_on_a_sample(side: Direction) -> None:
    sigma, rate, theta = 1000.0, 0.25, 300.0
    law = DiscreteGaussianLaw(sigma, 1).sampled(Fraction(rate), side)
    with mp.workdps(40):
        ks = range(-9 * int(sigma), 10 * int(sigma) + 1, 1)
        base = [mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in ks]
        mixed = [1 - mp.mpf(rate) + mp.mpf(rate) * mp.exp((2 * mp.mpf(k) - 1) / (2 * mp.mpf(sigma) ** 2)) for k in ks]
        remove = side is Direction.REMOVE
        weights = [b * a for b, a in zip(base, mixed, strict=True)] if remove else base
        losses = [mp.log(a) if remove else -mp.log(a) for a in mixed]
        total = mp.fsum(base)
        weights = [w / total for w in weights]
        for u in (300.0, 8000.0):
            char = law.characteristic(theta, 2 * u, -36.0)
            assert char is not None
            moment, phi = transform(losses, weights, theta, u)
            check(char, moment, phi, u)
            table = law.moment_table(np.array([theta]))
            assert abs(table.moment[0] - moment) <= table.error[0]


@pytest.mark.parametrize(
    ("plan", "delta"),
    [
        (100 * dp.DiscreteGaussian(1e5) + 5 * dp.DiscreteLaplace(1e5), 1e-6),
        (3 * dp.DiscreteGaussian(1e5) + 2 * dp.DiscreteGaussian(2e4), 1e-9),
        (1000 * dp.PoissonSampled(dp.DiscreteGaussian(5e3), 0.1) + 3 * dp.DiscreteGaussian(1e4), 1e-6),
    ],
)
def test_vast_noise_is_answered(plan: dp.Mechanism, delta: float) -> None:
    box = plan.epsilon_interval(delta)
    assert box.width <= 1e-6 * box.upper
    assert math.isfinite(box.upper)
