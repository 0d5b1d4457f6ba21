"""Containment: few steps of few values against exact sums over all outcomes, in sixty digits, built from scratch."""

from __future__ import annotations

import math
import random

import mpmath as mp
import numpy as np
import pytest

import dptally as dp
from dptally.accounting.certified.lattice.enumeration import enumerated
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.routes import Enumeration

Atoms = list[tuple[mp.mpf, mp.mpf]]


def response(p: float, categories: int) -> Atoms:
    likely, lie = mp.mpf(p), (1 - mp.mpf(p)) / (categories - 1)
    likely, unlikely = max(likely, lie), min(likely, lie)
    loss = mp.log(likely / unlikely)
    return [(loss, likely), (-loss, unlikely), (mp.mpf(0), (categories - 2) * lie)]


def discrete_gaussian(sigma: float, shift: int) -> Atoms:
    variance, reach = mp.mpf(sigma) ** 2, math.ceil(45 * sigma) + 2
    weights = {k: mp.exp(-(mp.mpf(k) ** 2) / (2 * variance)) for k in range(-reach, reach + 1)}
    total = mp.fsum(weights.values())
    return [(shift * (mp.mpf(shift) - 2 * k) / (2 * variance), w / total) for k, w in weights.items()]


def convolved(parts: list[Atoms]) -> Atoms:
    total = [(mp.mpf(0), mp.mpf(1))]
    for part in parts:
        total = [(a + b, p * q) for a, p in total for b, q in part if p * q > mp.mpf(10) ** -400]
    return total


def delta(atoms: Atoms, epsilon: mp.mpf) -> mp.mpf:
    return mp.fsum(p * -mp.expm1(epsilon - loss) for loss, p in atoms if loss > epsilon)


def test_bounds_hold_at_random_epsilons_and_next_to_atoms() -> None:
    draw = random.Random(5)
    refutable = 0
    for _ in range(15):
        with mp.workdps(60):
            parts, plan = [], []
            for _ in range(draw.randint(2, 4)):
                if draw.random() < 0.3:
                    sigma, shift = draw.uniform(0.2, 0.6), draw.randint(1, 30)
                    parts.append(discrete_gaussian(sigma, shift))
                    plan.append(dp.DiscreteGaussian(sigma, shift))
                else:
                    p, categories = draw.uniform(0.001, 0.999), draw.choice((2, 3, 10**6))
                    parts.append(response(p, categories))
                    plan.append(dp.RandomizedResponse(p, categories))
            atoms = convolved(parts[:3])
            composition = sum(plan[1:3], plan[0]).directions()[0]
            found = enumerated(composition)
            assert found is not None
            largest = max(float(loss) for loss, _ in atoms)
            near = float(draw.choice(atoms)[0])
            for at in (draw.uniform(0, largest), 0.0, near, math.nextafter(near, math.inf), 0.999999 * largest):
                if not 0 <= at < largest:
                    continue
                truth = delta(atoms, mp.mpf(at))
                low, high = (float(x[0]) for x in found.log_profile(np.array([at])))
                assert low <= mp.log(truth) + mp.mpf(10) ** -30, (plan, at)
                assert mp.log(truth) <= high + mp.mpf(10) ** -30, (plan, at)
                refutable += high - low < 1e-9
    assert refutable > 25


@pytest.mark.parametrize(
    ("plan", "at", "truth"),
    [
        (3 * dp.RandomizedResponse(0.788831234500579, 10**6), 0.5, 30.2433334715),
        (2 * dp.DiscreteGaussian(1.188417309255205, 39), 0.5, 1076.24627947),
    ],
)
def test_few_widely_spaced_atoms_are_sharp(plan: dp.Mechanism, at: float, truth: float) -> None:
    box = plan.epsilon_interval(at)
    assert box.width <= 1e-9 * box.upper
    assert box.upper == pytest.approx(truth, rel=1e-9)


def test_where_it_does_not_apply() -> None:
    assert enumerated((3 * dp.Laplace(1.0)).directions()[0]) is None
    assert enumerated((2 * dp.DiscreteGaussian(1e3)).directions()[0]) is None
    assert not Enumeration().applies(Plan((10**6 * dp.RandomizedResponse(0.6)).directions()[0]))
    many = sum((dp.RandomizedResponse(0.5 + k / 100, 3) for k in range(1, 11)), dp.RandomizedResponse(0.9, 7))
    assert enumerated(many.directions()[0]) is None  # 3^11 sums
