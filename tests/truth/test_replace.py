"""Golden: two sampled steps under REPLACE by brute force (mpmath, numpy) and as Gaussians; the table by recursion."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import erfc

from truth import ball, floats, gaussian_delta, mixture_delta
from truth.losses import SampledReplaceLoss
from truth.recursion import composed_delta
from truth.replace_piece import SampledReplacePiece
from truth.two_steps_replace import two_step_replace_delta

DATA = Path(__file__).parent / "data" / "replace.json"


def brute(sigma: float, rate: float, epsilon: float) -> mp.mpf:
    """E over the first step of P - e^left Q of the second beyond the point where its loss is what is left, found by
    bisection.
    """
    s, q, e = mp.mpf(sigma), mp.mpf(rate), mp.mpf(epsilon)

    def ratio(t: mp.mpf) -> mp.mpf:
        return 1 - q + q * mp.exp(t / s - 1 / (2 * s * s))

    def loss(t: mp.mpf) -> mp.mpf:
        return mp.log(ratio(t) / ratio(-t))

    def beyond(t: mp.mpf) -> mp.mpf:
        return mp.erfc(t / mp.sqrt(2)) / 2

    def inner(t: mp.mpf) -> mp.mpf:
        left = e - loss(t)
        low, high = mp.mpf(-60), mp.mpf(60)
        for _ in range(70):
            middle = (low + high) / 2
            low, high = (middle, high) if loss(middle) < left else (low, middle)
        p = (1 - q) * beyond(low) + q * beyond(low - 1 / s)
        other = (1 - q) * beyond(low) + q * beyond(low + 1 / s)
        return mp.npdf(t) * ratio(t) * (p - mp.exp(left) * other)

    return mp.quad(inner, mp.linspace(-9, 11, 9))


def test_brute_force() -> None:
    with mp.workdps(18):
        expected = brute(1.0, 0.1, 0.5)
        lower, upper = floats(two_step_replace_delta(1.0, 0.1, 0.5, 14))
        assert lower * (1 - 1e-11) <= expected <= upper * (1 + 1e-11)
        assert upper - lower < 1e-12 * upper


def test_trapezoid() -> None:
    """The same in doubles, on points so many that every flat stretch of the loss is seen."""
    draw = random.Random(31)
    t = np.linspace(-12, 20, 60_001)
    for _ in range(12):
        s, q = draw.uniform(0.6, 4), 10 ** draw.uniform(-3, -0.1)
        e = draw.uniform(0.1, 3.0) * q / s

        def loss(x: NDArray[np.float64], s: float = s, q: float = q) -> NDArray[np.float64]:
            up, down = np.exp(x / s - 0.5 / s**2), np.exp(-x / s - 0.5 / s**2)
            return np.asarray(np.log1p(q * (up - 1)) - np.log1p(q * (down - 1)))

        left, low, high = e - loss(t), np.full_like(t, -60.0), np.full_like(t, 60.0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            short = loss(middle) < left
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        plain, nearer, further = (erfc((low + shift) / math.sqrt(2)) / 2 for shift in (0, -1 / s, 1 / s))
        inner = (1 - q) * plain + q * nearer - np.exp(left) * ((1 - q) * plain + q * further)
        weight = np.exp(-0.5 * t * t) * (1 + q * np.expm1(t / s - 0.5 / s**2)) / math.sqrt(2 * math.pi)
        total = float((weight * inner).sum() * (t[1] - t[0]))
        assert float(two_step_replace_delta(s, q, e, 14)) == pytest.approx(total, rel=1e-10, abs=1e-14)


def test_grid() -> None:
    """max(P - e^eps Q, 0) summed over a grid of both outputs, with nothing solved for."""
    s, q, e = 0.8, 0.3, 0.4
    x = np.linspace(-9, 9, 4001)
    bell = lambda centre: np.exp(-0.5 * ((x - centre) / s) ** 2) / (s * math.sqrt(2 * math.pi))  # noqa: E731
    p, other = (1 - q) * bell(0) + q * bell(1), (1 - q) * bell(0) + q * bell(-1)
    total = np.maximum(np.outer(p, p) - math.exp(e) * np.outer(other, other), 0).sum() * (x[1] - x[0]) ** 2
    assert float(two_step_replace_delta(s, q, e, 12)) == pytest.approx(total, rel=1e-6)


def test_a_rate_near_one_is_nearly_a_gaussian() -> None:
    near = two_step_replace_delta(1.5, 1 - 1e-13, 1.0)
    assert abs(near / gaussian_delta(ball(8).sqrt() / 1.5, 1.0) - 1) < 1e-11


@pytest.mark.parametrize(("sigma", "rate", "steps", "epsilon"), [(1.0, 0.3, 8, 6.0), (2.0, 0.5, 20, 7.0)])
def test_inversion_against_the_recursion(sigma: float, rate: float, steps: int, epsilon: float) -> None:
    lower, upper = composed_delta([(SampledReplaceLoss(sigma, rate), steps)], epsilon, 1500)
    piece = SampledReplacePiece(sigma, rate, count=steps)
    first, other = mixture_delta([piece], epsilon, 13), mixture_delta([piece], epsilon, 15, skew=0.85)
    assert first.overlaps(other)
    assert first.rel_accuracy_bits() > 40
    assert lower <= first <= upper
    assert upper < 1.05 * lower


def test_inversion_of_a_rate_near_one_is_nearly_a_gaussian() -> None:
    near = mixture_delta([SampledReplacePiece(8.0, 1 - 2.0**-44, count=64)], 2.5, 14)
    assert abs(near / gaussian_delta(2, 2.5) - 1) < 1e-11


def test_the_table_against_the_recursion() -> None:
    """Two routes to the same truths: coarse lattices meet every sampled row, and none that was moved by their width."""
    rows = json.loads(DATA.read_text())["rows"]
    pairs = [row for row in rows if row[2] == 2]
    few, many = [row for row in rows if 2 < row[2] <= 30], [row for row in rows if row[2] > 30]
    assert len(pairs) >= 300
    assert len(few) >= 150
    assert len(many) >= 150
    for sigma, rate, steps, epsilon, lower, upper in pairs[::100] + few[::20]:
        low, high = composed_delta([(SampledReplaceLoss(sigma, rate), steps)], epsilon, 250)
        assert low <= upper, (sigma, rate, steps, epsilon)
        assert lower <= high, (sigma, rate, steps, epsilon)
        assert not lower * 1.01 * high / low <= high


def test_the_table_is_as_sharp_as_it_says() -> None:
    rows = json.loads(DATA.read_text())["rows"]
    for _, _, steps, _, lower, upper in rows:
        assert 0 < upper - lower < (0.02 if 2 < steps <= 30 else 1e-10) * upper
