"""Containment: rows of e^{iku} - 1 made by doubling, and what the error bounds of a node sum charge for them."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from dptally.law.characteristic import NodeCharacteristic, _units_minus_one
from dptally.numerics.rounding import EPS


@pytest.mark.parametrize("number", [16, 17, 33, 150])
def test_doubled_rows_err_by_few_ulps_of_their_angle(number):
    draw = np.random.default_rng(number)
    step = float(10 ** draw.uniform(-6, 1))
    x = draw.normal(size=5) * 10 ** draw.uniform(-8, 2, size=5)
    rows, doubled = _units_minus_one(step, number, x)
    assert rows.shape == (number, 5)
    assert (doubled > 0) == (number > 16)
    with mp.workdps(40):
        for k in {0, 1, number // 2, number - 2, number - 1}:
            for value, at in zip(rows[k], x, strict=True):
                truth = mp.expj(k * mp.mpf(step) * mp.mpf(float(at))) - 1
                allowed = (5 + 3 * doubled) * EPS * k * step * abs(float(at))
                assert abs(mp.mpc(complex(value)) - truth) <= allowed


def test_a_long_grid_stays_within_its_error_bounds():
    draw = np.random.default_rng(5)
    losses = draw.normal(size=40) * 0.3
    weights = draw.random(40)
    weights /= weights.sum()
    nothing = np.zeros(40)
    char = NodeCharacteristic(losses, weights, nothing, nothing, 0.0, 0.0, 0.0, 0.0)
    step, number = 0.37, 1200
    values, error = char.on_grid(step, number)
    with mp.workdps(40):
        total = mp.fsum(mp.mpf(float(w)) for w in weights)
        for k in (1, 16, 35, 36, 599, 1199):
            terms = (
                mp.mpf(float(w)) / total * (mp.expj(k * mp.mpf(step) * mp.mpf(float(x))) - 1)
                for w, x in zip(weights, losses, strict=True)
            )
            off = abs(mp.mpc(complex(values[k])) - mp.fsum(terms))
            assert off <= error[k]
            assert error[k] < 1e-11  # and they say something
