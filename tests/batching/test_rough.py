"""Epochs whose sharp contours are too long: the lattice of losses bounds what is known otherwise, and answers."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

import dptally as dp
from depth import SOAK
from dptally.law.adjacency import Direction
from dptally.laws.sampled.allocation.bounded_epochs import LatticeEpoch, LatticePoints, composed, lattice_below
from dptally.laws.sampled.allocation.convolution import earned
from dptally.laws.sampled.allocation.epochs import AllocationEpochsLaw
from dptally.laws.sampled.allocation.gaussian import GaussianSum
from dptally.laws.sampled.allocation.law import AllocationLaw
from dptally.laws.sampled.allocation.rough import _above, _extent, _knots, rough_bounds
from dptally.numerics.normal import log_gaussian_delta

SIDES = list(Direction)


@pytest.mark.parametrize(
    ("shift", "steps", "epochs", "epsilon", "near"),
    [
        (1.0, 100, 3, [0.05, 0.1, 0.2, 0.4, 0.6, 1.0], 0.01),
        (1.2, 64, 2, [0.0, 0.1, 0.3, 0.7, 1.1], 0.01),  # where it begins
        (1.2, 64, 1000, [2.0, 10.0, 20.0, 25.0], 0.1),
        *([(2.0, 64, 2, [0.0, 0.3, 1.0, 1.5], 0.1)] if SOAK else []),
    ],
)
@pytest.mark.parametrize("side", SIDES)
def test_the_lattice_contains_what_the_powers_of_the_ratio_say(
    side: Direction, shift: float, steps: int, epochs: int, epsilon: list[float], near: float
) -> None:
    parts, asked = ((AllocationLaw(shift, steps, side), epochs),), np.array(epsilon)
    low, high, _ = AllocationEpochsLaw(parts).bounds(asked)
    assert (high - low < 1e-6).all()  # another method, and sharp
    lower, upper, _ = rough_bounds(parts, asked)
    assert (lower <= low).all()
    assert (upper >= high).all()
    assert (upper - lower < near).all()  # so that an answer moved by so much would be seen


def _profile(epoch: LatticeEpoch, step: float, loss: float) -> float:
    """Of the measure itself, at any loss."""
    at = step * (epoch.first + np.arange(len(epoch.masses)))
    return math.fsum((epoch.masses * np.maximum(-np.expm1(loss - at), 0.0)).tolist())


@pytest.mark.parametrize(("shift", "steps"), [(1.2, 64), *([(1.7, 200), (3.0, 64), (2.0, 10**6)] if SOAK else [])])
@pytest.mark.parametrize("side", SIDES)
def test_the_measures_enclose_one_epoch_between_the_points_too(side: Direction, shift: float, steps: int) -> None:
    sharp = AllocationLaw(shift, steps, side)
    law = replace(sharp, sharp=False, rough=True)
    least, largest, deviation = _extent(law)
    h = deviation / 40
    points = LatticePoints(law, h, _knots(law, h))
    below, above = lattice_below(points), _above(points)
    draw = np.random.default_rng(3)
    losses = np.concatenate(
        (draw.uniform(least, min(largest, 4.0), 6), draw.normal(0, deviation, 6), h * points.index[:2])
    )
    low, high = (np.exp(end) for end in sharp.log_profile(losses))
    for loss, lower, upper in zip(losses.tolist(), low.tolist(), high.tolist(), strict=True):
        assert _profile(below, h, loss) <= upper
        assert _profile(above, h, loss) + above.infinite >= lower
    near = np.abs(losses) < deviation
    assert near.any()
    for loss, upper in zip(losses[near].tolist(), high[near].tolist(), strict=True):
        assert _profile(above, h, loss) + above.infinite <= upper * 1.01  # no enclosure of everything
        assert _profile(below, h, loss) >= upper * 0.99


@pytest.mark.parametrize(
    ("side", "shift"), [(Direction.ADD, 3.0), (Direction.ADD, 10.0), *([(Direction.REMOVE, 10.0)] if SOAK else [])]
)
def test_tiny_noise_ends_and_says_something(side: Direction, shift: float) -> None:
    """Points far from zero drowned those next to it: masses of 1e24, or no numbers at all, and no end."""
    law = replace(AllocationLaw(shift, 65, side), sharp=False, rough=True)
    h = _extent(law)[2] / 40
    above = _above(LatticePoints(law, h, _knots(law, h)))
    assert 1 <= above.masses.sum() + above.infinite < 1 + 1e-9
    lower, upper, _ = rough_bounds(((AllocationLaw(shift, 65, side), 2),), np.array([0.0, 1.0, 500.0]))
    assert np.isfinite(lower[:2]).all()
    assert (lower <= upper).all()
    assert upper[2] < -20


def test_an_answer_is_never_worse_than_without_amplification() -> None:
    plan = dp.training(0.1, dp.BallsInBins(65), epochs=10**6)
    alone = dp.Gaussian(0.1 / 1000)
    box = plan.epsilon_interval(1e-5)
    assert 0 < box.lower < box.upper <= alone.epsilon(1e-5) * (1 + 1e-9)
    parts = ((AllocationLaw(10.0, 65, Direction.REMOVE), 10**6),)
    asked = np.array([1e6, 4e7, 6e7])
    assert (AllocationEpochsLaw(parts).bounds(asked)[1] <= log_gaussian_delta(1e4, asked, mu_ulps=64)[1] + 1e-6).all()


@pytest.mark.parametrize(("shift", "b"), [(3.0, 0.3), (3.0, 2.0), (10.0, 1e-9), (10.0, 2.0)])
def test_the_largest_ratio_bounds_small_sums(shift: float, b: float) -> None:
    """Of two ratios, against quadrature: E(b - Y_1 - Y_2)+."""
    m = mpmath.mpf(shift)

    def one(rest: mpmath.mpf) -> mpmath.mpf:  # E(rest - Y)+
        x = (mpmath.log(rest) + m * m / 2) / m
        return rest * mpmath.ncdf(x) - mpmath.ncdf(x - m)

    with mpmath.workdps(30):
        end = (mpmath.log(b) + m * m / 2) / m
        tiny = mpmath.mpf(10) ** -60
        places = [end - k for k in (40, 20, 12, 8, 6, 4, 3, 2, 1, 0.5, 0.1, 0.01, 0)]
        truth = mpmath.log(
            mpmath.quad(lambda x: mpmath.npdf(x) * one(max(b - mpmath.exp(m * x - m * m / 2), tiny)), places)
        )
    low, high = (float(v[0]) for v in GaussianSum(shift, 2)._by_the_largest(np.array([b])))
    assert low <= truth <= high
    assert high - low < 4.0


def test_long_empty_ends_and_rare_large_losses_are_composed_exactly() -> None:
    """Zeros far out had a weight of their own in the tilts; against a sum in plain steps."""
    masses = np.zeros(3000)
    masses[[0, 1, 2, 60]] = 0.3, 0.4, 0.3 - 1e-9, 1e-9
    h, count = 0.1, 3
    whole = masses
    for _ in range(count - 1):
        whole = np.convolve(whole, masses)
    found = composed(((LatticeEpoch(-1, masses, 0.0), count),), h)
    epsilon = h * np.array([-2.9, -2.5, 0.0, 1.5, 2.0, 40.0, 100.0, 170.0])
    low, high = found.bounds(epsilon)
    loss = h * (np.arange(len(whole)) - count)
    for at, lower, upper in zip(epsilon.tolist(), low.tolist(), high.tolist(), strict=True):
        truth = math.fsum((whole * np.maximum(-np.expm1(at - loss), 0.0)).tolist())
        assert lower <= truth * (1 + 1e-12)
        assert upper >= truth * (1 - 1e-12)
        assert at > 3 or upper - lower < 1e-9


def test_what_vanishes_is_not_nothing() -> None:
    """Far out the product of small masses leaves the doubles: the upper end may not."""
    masses = np.zeros(400)
    masses[[0, 1, -1]] = 0.5, 0.5, 1e-200
    nothing = np.eye(1, 1200)[0]  # no loss at all, but a long window
    found = earned(((masses, 3), (nothing, 1)), lambda m: np.cumsum(m[::-1])[::-1], 1.0)
    assert (found.value + found.error > 0).all()


def test_nothing_and_very_many_epochs_are_composed() -> None:
    nothing = composed(((LatticeEpoch(0, np.zeros(5), 0.0), 7),), 0.1)
    assert nothing.bounds(np.array([0.0, 1.0]))[0].tolist() == [0.0, 0.0]
    many = composed(((LatticeEpoch(0, np.array([0.6, 0.5]), 0.1), 10**6),), 0.1)  # masses above one: no overflow
    assert many.bounds(np.array([0.0, 1e9]))[1].tolist() == [1.0, 1.0]
