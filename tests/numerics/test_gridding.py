"""Containment: sums of waves on a grid against balls, with a power check for the bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import acb, arb

from dptally.law.characteristic import NodeCharacteristic
from dptally.numerics import gridding
from dptally.numerics.arrays import Floats
from dptally.numerics.rounding import EPS
from truth.balls import precision


def waves(seed: int, size: int) -> tuple[Floats, Floats]:
    """Places from 1e-9 to a hundred turns, weights that sum to one."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=size) * np.exp(draw.uniform(-20, 6, size=size))
    weights = draw.exponential(size=size) * np.exp(draw.uniform(-20, 0, size=size))
    return x, weights / weights.sum()


def excess(x: Floats, weights: Floats, number: int) -> float:
    """The largest error at a few frequencies, in units of what is stated for it."""
    values = gridding.exponential_sums(x, weights, number)
    worst = 0.0
    with precision(160):
        for k in (0, 1, number // 3, number - 1):
            exact = sum((acb(0, k * arb(a)).exp() * arb(w) for a, w in zip(x, weights, strict=True)), acb(0))
            stated = EPS * ((1.03 * len(x) + 250) * weights.sum() + 3 * k * float(np.dot(weights, np.abs(x))))
            worst = max(worst, float((abs(acb(complex(values[k])) - exact) / stated).upper()))
    return worst


@pytest.mark.parametrize("seed", range(6))
def test_errors_are_below_what_is_stated(seed: int) -> None:
    x, weights = waves(seed, 300 + 40 * seed)
    assert excess(x, weights, (37, 1000, 4097, 30_000)[seed % 4]) <= 1


@pytest.mark.parametrize(("name", "value"), [("_REACH", 8), ("_C", 30.0)])
def test_power(monkeypatch: pytest.MonkeyPatch, name: str, value: float) -> None:
    """Less spreading, or a wider function, is found out."""
    monkeypatch.setattr(gridding, name, value)
    assert excess(*waves(3, 300), 1000) > 1


def test_the_stated_terms() -> None:
    """The two truncations of the derivation, and that 2 J + 8 ulps cover everything from the fewest waves on."""
    c, s = gridding._C, gridding._REACH + 0.5
    a = math.pi**2 / c
    assert 2.1 * math.exp(-0.75 * c) < 2.2e-15
    assert math.sqrt(math.pi / c) * math.exp(c / 64) * 2 * math.exp(-a * s * s) * (1 + 1 / (2 * a * s)) < 3.7e-15
    assert 1.03 * gridding.FEWEST + 250 <= 2 * gridding.FEWEST + 8
    assert gridding.grid_length(1 << 18) <= gridding.MOST
    assert all(8 * n <= gridding.grid_length(n) <= 16 * n for n in range(1, 400))


def test_rows_are_the_same_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    losses, weights = waves(1, 400)
    phi = NodeCharacteristic.of(
        losses,
        weights,
        loss_error=np.zeros(400),
        weight_error=np.zeros(400),
        defect=0.0,
        log_moment=0.0,
        log_moment_error=0.0,
    )
    first, column = np.array([0.0, 120.0, 7200.0]), np.arange(120.0)
    plain = phi.in_rows(1e-3, first, column)
    calls: list[int] = []
    original = gridding.exponential_sums
    monkeypatch.setattr(gridding, "MOST", 1 << 30)
    monkeypatch.setattr(gridding, "exponential_sums", lambda *a: calls.append(1) or original(*a))
    many = np.arange(0.0, 14_400.0, 120.0)
    gridded = phi.in_rows(1e-3, many, column)
    flat, slope = phi.row_error()
    assert calls
    where = np.searchsorted(many, first)
    u = 1e-3 * (first[:, None] + column)
    assert (np.abs(gridded[where] - plain) <= 2 * (flat + slope * u)).all()
