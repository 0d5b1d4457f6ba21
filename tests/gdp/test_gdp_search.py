"""Laws: what the search calls proved is true on the whole cell, and it proves nearly all that is true."""

import math

import numpy as np
import pytest

import dptally as dp
from dptally import gdp
from dptally.gdp.search import _Cells, _proved, largest, stays_below
from dptally.gdp.view import View, view_of

MECHANISMS = [
    dp.Laplace(0.5),
    dp.PureDP(1.0),
    dp.PoissonSampled(dp.Laplace(0.5), 0.1),
    dp.DiscreteGaussian(0.8),
    dp.PoissonSampled(dp.Gaussian(1.0), 0.2),
    dp.ApproxDP(0.7, 1e-3),
]


@pytest.mark.parametrize("m", MECHANISMS)
@pytest.mark.parametrize("convex", [True, False])
def test_proved_cells_lie_below_the_threshold(m, convex):
    """Random cells, and thresholds within 1e-1 ... 1e-9 of the true maximum on the cell, on both sides."""
    view, rng = view_of(m), np.random.default_rng(7)
    proved_true = close = 0
    for _ in range(60):
        a = 2.0 * rng.random()
        b = a + 10.0 ** rng.uniform(-6, 0)
        x = np.linspace(a, b, 33)
        truth = float(gdp.transform(m, x).lower.max())
        high = view.log_delta(np.array([a, b]))[1]
        cell = _Cells(np.array([a]), high[:1], np.array([b]), high[1:])
        for distance in 10.0 ** rng.uniform(-9, -1, 4):
            low_top, high_top = truth - distance, truth + distance
            if low_top > 1e-9:
                assert not _proved(low_top, cell, convex)[0][0]
            if b - a < 0.5 * distance:  # Thm. 4.2: the staircase alone must succeed
                close += 1
                proved_true += bool(_proved(high_top, cell, convex)[0][0]) if high_top > 0 else 1
    assert proved_true == close > 0


def test_the_tangent_proves_in_second_order():
    """Near the maximum of a sampled Laplace a cell of width w is proved at a distance of order w^2, not w."""
    m = dp.PoissonSampled(dp.Laplace(0.5), 0.5)
    view, at, top = view_of(m), 0.769816, 0.978278398059
    for width in (1e-2, 1e-3, 1e-4):
        x = np.array([at - 0.4 * width, at + 0.6 * width])
        high = view.log_delta(x)[1]
        cell = _Cells(x[:1], high[:1], x[1:], high[1:])
        assert _proved(top + width**2, cell, True)[0][0]
        assert not _proved(top + width**2, cell, False)[0][0]


def test_thresholds():
    view = view_of(dp.Laplace(0.5))
    assert stays_below(view, 2.0, 1.8010)
    assert not stays_below(view, 2.0, 1.8009)
    found = largest(view, 2.0, 1e-7, floor=2.5)
    assert (found.lower, found.at) == (2.5, math.inf)  # what is known already is kept
    assert found.upper <= 2.5 + 1e-7


def test_a_profile_that_is_known_badly_gives_a_wide_interval():
    exact = view_of(dp.Laplace(0.5))

    def vague(epsilon):
        low, high = exact.log_delta(epsilon)
        return low - 0.01, np.minimum(high + 0.01, 0.0)

    view = View(vague, 2.0, True, 3_000, True)
    found = largest(view, 2.0, 1e-6)
    assert found.lower < 1.8009051932 < found.upper
    assert 1e-3 < found.upper - found.lower < 0.1
    assert not stays_below(view, 2.0, 1.8010)


def test_few_looks_end_in_a_wide_interval():
    exact = view_of(dp.PoissonSampled(dp.Laplace(0.5), 0.5))
    found = largest(View(exact.log_delta, exact.zero_from, False, 20, True), exact.zero_from, 1e-9)
    assert found.lower <= 0.9782783980 <= found.upper
    assert found.points <= 60
    assert not stays_below(View(exact.log_delta, exact.zero_from, False, 20, True), exact.zero_from, 0.97827840)


def test_below_the_smallest_double():
    """delta of a long composition far out: the logarithm goes on by Chernoff."""
    m = 3 * dp.PureDP(0.5) + dp.Gaussian(0.5)
    low, high = view_of(m).log_delta(np.array([90.0, 120.0]))
    assert (high < -700).all()
    assert (low <= high).all()
    mass = view_of(m + dp.ApproxDP(0.1, 1e-300)).log_delta(np.array([120.0]))
    assert mass[0][0] <= math.log(1e-300) <= mass[1][0] + 1e-12
