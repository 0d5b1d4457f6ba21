"""Laws (hypothesis): lattice measures lie on the right side of the profile, wherever one looks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles import UniformLaw
from hypothesis import given, settings
from hypothesis import strategies as st

from dptally.accounting.certified.lattice.measure import (
    LatticeMeasure,
    Table,
    combined,
    lower_spread,
    point_spread,
    profile_at_nodes,
    profile_error,
    suffix_error,
    suffix_sums,
    upper_spread,
)
from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.laws.gaussian import GaussianLaw
from dptally.laws.laplace import LaplaceLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw


def log_profile_of(spread: LatticeMeasure, x: np.ndarray) -> np.ndarray:
    """log sum of mass (1 - e^{x - node})+ of a measure, at any x: a plain sum."""
    nodes = spread.offset + spread.step * np.arange(len(spread.masses))
    with np.errstate(divide="ignore"):
        logs = np.log(spread.masses) - spread.tilt * (nodes - spread.offset)
        gains = np.log(-np.expm1(np.minimum(x[:, None] - nodes, 0.0)))
    return np.logaddexp.reduce(logs + gains, axis=1) + spread.log_factor


def uniform(low: float, high: float, share: float = 1.0) -> UniformLaw:
    """A uniform loss with as much mass as a privacy loss may have: E[exp(-L)] <= 1."""
    return UniformLaw(low, high, share * min(1.0, (high - low) / (math.exp(-low) - math.exp(-high))) * (1 - 1e-12))


laws = st.one_of(
    st.builds(GaussianLaw, st.floats(1e-3, 4.0)),
    st.floats(1e-2, 4.0).map(lambda t: LaplaceLaw(t, t)),
    st.builds(SampledGaussianLaw, st.floats(1e-4, 0.5), st.floats(0.4, 3.0), st.sampled_from(list(Direction))),
    st.builds(uniform, st.floats(-2.0, -0.1), st.floats(0.1, 2.0), st.floats(0.2, 1.0)),
)


def ends(law: Law) -> tuple[float, float]:
    """A range that holds most of the law."""
    x = np.concatenate([-np.geomspace(60, 1e-6, 200), np.geomspace(1e-6, 60, 200)])
    tail = law.tail(x)
    low = x[np.argmax(tail < (1 - law.infinity_mass) * (1 - 1e-9))]
    high = x[np.argmax(tail < 1e-12)]
    low = max(float(low), law.infimum) if math.isfinite(law.infimum) else float(low)
    return low, law.supremum if math.isfinite(law.supremum) else float(high)


@settings(max_examples=80, deadline=None)
@given(laws, st.integers(3, 400), st.booleans(), st.integers(0, 2**32 - 1))
def test_the_measures_enclose_the_profile(law: Law, cells: int, trimmed: bool, seed: int) -> None:
    low, high = ends(law)
    table = Table.of(law, low, (high - low) / cells, cells)
    x = low + (high - low) * np.random.default_rng(seed).uniform(-0.2, 1.1, 300)
    x = np.concatenate([x, low + table.step * np.arange(cells + 1)])
    lower, upper = law.log_profile(x)
    above = upper_spread(table)
    found = np.logaddexp(log_profile_of(above, x - table.shift), above.log_beyond)
    real = lower > -math.inf
    assert np.all(found[real] >= lower[real] - 1e-12 * (1 + np.abs(lower[real])))
    below = lower_spread(table, trimmed=trimmed)
    if below is not None:
        assert np.all(below.masses >= 0)
        found = log_profile_of(below, x + table.shift)
        real = found > -math.inf
        assert np.all(found[real] <= upper[real] + 1e-12 * (1 + np.abs(upper[real])))


@pytest.mark.parametrize("law", [GaussianLaw(1.0), LaplaceLaw(1.0, 1.0), uniform(-1.0, 1.0)])
def test_both_gaps_close_with_the_square_of_the_step(law: Law) -> None:
    low, high = (-8.0, 9.0) if math.isinf(law.supremum) else (-1.0, 1.0)
    x = np.array([0.0137])
    widths = []
    for cells in (400, 800, 1600):
        table = Table.of(law, low, (high - low) / cells, cells)
        below = lower_spread(table)
        assert below is not None
        widths.append(float((log_profile_of(upper_spread(table), x) - log_profile_of(below, x))[0]))
    assert 0 < widths[2] < widths[0] / 8


def test_clipping_negative_masses_would_be_invalid() -> None:
    """Lowered chords are not convex where the density jumps. Setting the negative masses to zero lifts the
    curve above C
    (the wrong certificate that a convex minorant avoids)."""
    law, cells = uniform(-1.0, 1.0), 37
    step = 2.22 / cells
    x = -1.03 + step * np.arange(cells + 1)
    c = np.exp(law.log_profile(x)[0])
    # the depth of the profile below its chord, as the lower measure takes it
    middle = np.exp(law.log_profile(x[:-1] + 0.5 * step)[0])
    y = np.exp(x)
    sag = np.maximum(c[:-1] + (c[1:] - c[:-1]) * (np.exp(x[:-1] + 0.5 * step) - y[:-1]) / np.diff(y) - middle, 0.0)
    lowered = c.copy()
    lowered[1:-1] -= np.maximum(sag[1:], sag[:-1])
    slopes = np.diff(lowered) / np.diff(y)
    masses = y * np.diff(np.concatenate([[(lowered[0] - law.mass) / y[0]], slopes, [0.0]]))
    assert masses.min() < -1e-6
    clipped = LatticeMeasure(x[0], step, np.maximum(masses, 0.0))
    fine = np.linspace(-0.99, 0.99, 500)
    assert np.any(log_profile_of(clipped, fine) > law.log_profile(fine)[1] + 1e-9)
    ours = lower_spread(Table.of(law, float(x[0]), step, cells))
    assert ours is not None
    assert np.all(log_profile_of(ours, fine) <= law.log_profile(fine)[1])


def test_a_law_with_positive_losses_only_is_trimmed_not_gathered() -> None:
    law = UniformLaw(1.0, 2.0, 0.3)
    table = Table.of(law, 1.0, 0.01, 100)
    below = lower_spread(table)  # the total-mass line m - y is negative there: nothing can be gathered onto it
    assert below is not None
    x = np.linspace(0.0, 1.95, 100)
    assert np.all(log_profile_of(below, x) <= law.log_profile(x)[1])
    assert np.all(log_profile_of(below, x[x > 1.1]) > law.log_profile(x[x > 1.1])[0] - 0.1)


def test_sums_from_the_right_agree_with_plain_sums() -> None:
    rng = np.random.default_rng(5)
    for n, rate in ((1, 0.1), (300, 0.0), (1500, 1e-3), (700, 3.0)):
        values = rng.uniform(0, 1, n)
        weights = np.exp(-rate * np.abs(np.subtract.outer(np.arange(n), np.arange(n))))
        plain = np.array([math.fsum(values[i:] * weights[i, i:]) for i in range(n)])
        assert np.allclose(suffix_sums(values, rate), plain, rtol=suffix_error(n, rate), atol=0)
        spread = LatticeMeasure(0.0, 0.01, values, tilt=rate)
        found = np.log(profile_at_nodes(values, 0.01, rate)[:-1]) - rate * 0.01 * np.arange(n - 1)
        direct = log_profile_of(spread, 0.01 * np.arange(n - 1))
        assert np.allclose(found, direct, rtol=0, atol=profile_error(n, 0.01, rate) + 1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(-2, 2), st.floats(0.01, 1)), min_size=1, max_size=6), st.floats(1e-3, 0.3))
def test_divided_point_masses_keep_the_mean_and_dominate(points: list[tuple[float, float]], step: float) -> None:
    positions = np.array(sorted(p for p, _ in points))
    masses = np.array([m for _, m in points]) / sum(m for _, m in points)
    spread = point_spread(positions, masses, float(positions[0]) - 0.3 * step, step)
    nodes = spread.offset + step * np.arange(len(spread.masses))
    assert math.isclose(spread.masses.sum(), masses.sum(), rel_tol=1e-13)
    assert math.isclose((spread.masses * np.exp(-nodes)).sum(), (masses * np.exp(-positions)).sum(), rel_tol=1e-12)
    assert spread.blur > 0
    x = np.linspace(-2.1, 2.1, 60)
    plain = (masses * -np.expm1(np.minimum(x[:, None] - positions, 0.0))).sum(axis=1)
    assert np.all(np.exp(log_profile_of(spread, x)) >= plain * (1 - 1e-12))


def test_direct_convolution_matches_numpy() -> None:
    a = point_spread(np.array([-0.1, 0.1]), np.array([0.4, 0.6]), -0.1, 0.05)
    b = point_spread(np.array([-0.33, 0.2]), np.array([0.3, 0.7]), -0.33, 0.05)
    both = combined([(a, 2), (b, 1)])
    expected = np.convolve(np.convolve(a.masses, a.masses), b.masses)
    assert np.allclose(both.masses, expected, rtol=1e-14)
    assert math.isclose(both.offset, -0.53)
    assert both.blur == b.blur > 0
    assert combined([(point_spread(np.array([-40.0, 40.0]), np.array([4e-18, 1.0]), -40.0, 0.5), 20)]).log_beyond > -720
