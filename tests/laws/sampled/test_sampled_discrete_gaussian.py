"""Containment: discrete Gaussian noise on a sample, its moments, transform and sums, against exact outcomes."""

from __future__ import annotations

import math
import random

import mpmath as mp
import numpy as np
import pytest

import dptally as dp
from depth import thinned
from dptally.accounting.certified import engine
from dptally.accounting.certified.route import bounds_at
from dptally.accounting.certified.routes import SmoothedContour
from dptally.laws.sampled.discrete_gaussian import SampledDiscreteGaussianLaw
from walking import profiles_near

Atoms = list[tuple[mp.mpf, mp.mpf]]


def outcomes(sigma: float, shift: int, rate: float, remove: bool) -> Atoms:
    """(loss, probability) of every output that has more than 1e-250, built from the two densities."""
    reach = math.ceil(34 * sigma) + shift
    variance, q = mp.mpf(sigma) ** 2, mp.mpf(rate)
    weight = {k: mp.exp(-(mp.mpf(k) ** 2) / (2 * variance)) for k in range(-reach - shift, reach + shift + 1)}
    total = mp.fsum(weight.values())
    rows = []
    for k in range(-reach, reach + 1):
        without, within = weight[k] / total, weight[k - shift] / total
        mixed = (1 - q) * without + q * within
        first, second = (mixed, without) if remove else (without, mixed)
        rows.append((mp.log(first / second), first))
    return rows


def drawn(draw: random.Random) -> tuple[dp.Mechanism, SampledDiscreteGaussianLaw, Atoms]:
    sigma, shift = math.exp(draw.uniform(math.log(0.4), math.log(6))), draw.choice((1, 1, 2))
    rate, side = math.exp(draw.uniform(math.log(1e-3), math.log(0.9))), draw.randrange(2)
    mechanism = dp.PoissonSampled(dp.DiscreteGaussian(sigma, shift), rate)
    law = mechanism.laws()[side]
    assert isinstance(law, SampledDiscreteGaussianLaw)
    return mechanism, law, outcomes(sigma, shift, rate, side == 0)


@pytest.mark.parametrize("seed", range(thinned(100)))
def test_moments_transform_and_list(seed: int) -> None:
    draw = random.Random(seed)
    with mp.workdps(60):
        _, law, atoms = drawn(draw)
        theta = np.array([0.01, 0.7, 3.0, draw.uniform(0.1, 12.0)])
        table = law.moment_table(np.sort(theta))
        for t, moment, error in zip(table.theta, table.moment, table.error, strict=True):
            exact = mp.log(mp.fsum(p * mp.exp(t * loss) for loss, p in atoms))
            assert abs(exact - moment) <= error
            assert error < 1e-9 * (1 + abs(moment))
        tilt, step = float(theta[-1]), draw.uniform(0.01, 3.0)
        found = law.characteristic(tilt, 10 * step, math.log(1e-15))
        assert found is not None
        values, errors = found.on_grid(step, 8)
        norm = mp.fsum(p * mp.exp(tilt * loss) for loss, p in atoms)
        for k in range(8):
            turned = mp.fsum(p * mp.exp((tilt + 1j * k * step) * loss) for loss, p in atoms) / norm
            exact = turned * mp.exp(-1j * k * step * mp.mpf(found.centre)) - 1
            assert abs(exact - complex(values[k])) <= errors[k] + 4e-15 * k * step * abs(found.centre)
        listed = law.listed_atoms()
        assert listed is not None
        for x in (-0.1, 0.0, 0.2):
            exact = mp.fsum(p for loss, p in atoms if loss > x)
            assert listed.least[listed.low > x].sum() <= exact * (1 + mp.mpf("1e-12"))
            assert listed.most[listed.high > x].sum() * (1 + 1e-12) + math.exp(listed.log_missed) >= exact


@pytest.mark.parametrize("seed", range(thinned(100)))
def test_two_steps_on_a_smoothed_contour(seed: int) -> None:
    draw = random.Random(1000 + seed)
    with mp.workdps(60):
        mechanism, law, atoms = drawn(draw)
        kept = [(loss, p) for loss, p in atoms if p > 1e-60]
        pairs = [(a + b, p * q) for a, p in kept for b, q in kept if p * q > 1e-60]
        epsilon = abs(draw.gauss(0.0, 1.0)) * float(max(loss for loss, p in kept if p > 1e-12))
        exact = mp.fsum(p * -mp.expm1(epsilon - loss) for loss, p in pairs if loss > epsilon)
        composition = next(side for side in (2 * mechanism).directions() if side.parts[0][0] == law)
        box = engine.delta_interval([composition], epsilon)
        assert box.lower <= exact * (1 + mp.mpf("1e-12")) + mp.mpf("1e-55")
        assert box.upper >= exact * (1 - mp.mpf("1e-12"))
        for profile in profiles_near(SmoothedContour(), composition, epsilon):
            low, high, _ = bounds_at(profile, epsilon)
            if exact > 1e-40:
                assert low <= mp.log(exact) + 1e-9
                assert high >= mp.log(exact) - 1e-9


def test_many_steps_are_sharp_and_fast_enough_to_ask() -> None:
    plan = 13 * dp.PoissonSampled(dp.DiscreteGaussian(8.708894644660088, 2), 0.26039387345533044)
    box = plan.epsilon_interval(4.4359395176555926e-16)
    assert box.method == "smoothed inversion"
    assert box.upper - box.lower <= 1e-6 * box.upper
