"""Golden: the profile of point masses at a few and at many points, against sums in 50 digits."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp, mpf

from dptally.checks import Floats
from dptally.laws.atoms import log_atomic_profile


def truth(loss: Floats, mass: Floats, epsilon: float) -> mpf:
    rows = zip(loss.tolist(), mass.tolist(), strict=True)
    return sum((-mpf(m) * mp.expm1(mpf(epsilon) - mpf(at)) for at, m in rows if at > epsilon), mpf(0))


@pytest.mark.parametrize("points", [3, 400])
def test_profiles_contain_the_sum(points: int) -> None:
    """400 points of at most 20 atoms are answered from tables at the atoms, three are summed one by one."""
    draw = np.random.default_rng(5)
    with mp.workdps(50):
        for _ in range(30):
            n = int(draw.integers(2, 20))
            loss = np.sort(draw.normal(size=n)) * 10.0 ** draw.uniform(-6, 2)
            loss[1] = loss[0]
            mass = draw.dirichlet(np.ones(n)) * 10.0 ** draw.uniform(-30, 0, n)
            asked = np.concatenate((np.linspace(loss[0] - 0.1, loss[-1] + 0.1, points), [0.5 * (loss[-2] + loss[-1])]))
            asked[0] = np.nextafter(loss[-1], -np.inf)
            lower, upper = log_atomic_profile(loss, mass, asked)
            for i in (0, points, *draw.integers(1, points, 6).tolist()):
                total = truth(loss, mass, float(asked[i]))
                if total == 0:
                    assert lower[i] == upper[i] == -np.inf
                    continue
                assert mpf(float(lower[i])) <= mp.log(total) <= mpf(float(upper[i]))
                assert upper[i] - lower[i] < 2e-12


def test_next_to_an_atom_at_zero_nothing_underflows() -> None:
    loss, mass = np.array([-1.0, 0.0, 1.0]), np.array([0.5, 1e-240, 1e-245])
    asked = np.concatenate((np.full(20, -1e-300), np.full(20, 1.0 - 1e-16)))
    lower, upper = log_atomic_profile(loss, mass, asked)
    with mp.workdps(50):
        for i in (0, 39):
            assert mpf(float(lower[i])) <= mp.log(truth(loss, mass, float(asked[i]))) <= mpf(float(upper[i]))
