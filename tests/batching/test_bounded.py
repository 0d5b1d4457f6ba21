"""Golden: balls and bins of bounded steps, by enumeration, by plain composition (one bin), and by sampling under P."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dptally as dp
from depth import thinned
from dptally.law.adjacency import Direction
from dptally.laws.sampled.allocation.bounded import BoundedAllocationLaw
from dptally.laws.sampled.allocation.bounded_epochs import BoundedEpochsLaw
from dptally.laws.sampled.allocation.convex import measure_above, measure_below, profile_of


def epochs_of(mechanism: dp.Mechanism, steps: int, epochs: int, side: Direction) -> BoundedEpochsLaw:
    laws = [composition.parts[0][0] for composition in mechanism.directions()]
    return BoundedEpochsLaw.of(((BoundedAllocationLaw(laws[0], laws[-1], steps, side), epochs),))


def responses(p: float, steps: int, epochs: int, epsilon: float, side: Direction) -> float:
    """Randomised response: S is binomial in every epoch; all outcomes are summed."""
    a, ratio = math.exp(epsilon), p / (1 - p)
    chances = [math.comb(steps, k) * (1 - p) ** k * p ** (steps - k) for k in range(steps + 1)]
    ratios = [(ratio * k + (steps - k) / ratio) / steps for k in range(steps + 1)]
    total = 0.0
    for counts in itertools.product(range(steps + 1), repeat=epochs):
        chance = math.prod(chances[k] for k in counts)
        whole = math.prod(ratios[k] for k in counts)
        total += chance * (max(whole - a, 0.0) if side is Direction.REMOVE else max(1 - a * whole, 0.0))
    return total


def test_epochs_of_responses_contain_the_sum_over_all_outcomes() -> None:
    """Laws of atoms: kinks, and atoms at both ends of the support, where bounds of a profile fail first."""
    draw = np.random.default_rng(3)
    seen = 0
    for _ in range(thinned(60)):
        p, steps, epochs = float(draw.uniform(0.55, 0.9)), int(draw.integers(1, 9)), int(draw.integers(1, 4))
        for side in Direction:
            law = epochs_of(dp.RandomizedResponse(p), steps, epochs, side)
            top = law.supremum
            points = np.concatenate((draw.uniform(-1.0, 1.0, 6), 1 - np.geomspace(1e-13, 0.1, 6), [0.0])) * top
            lower, upper = (np.exp(end) for end in law.log_profile(points))
            for epsilon, low, high in zip(points.tolist(), lower.tolist(), upper.tolist(), strict=True):
                truth = responses(p, steps, epochs, epsilon, side)
                # the last point is nearer to the largest loss than its own rounding
                slack = 1e-12 * truth + 4e-16 * epochs * p**epochs
                assert low - slack <= truth <= high + slack, (p, steps, epochs, side, epsilon)
                seen += not low <= truth * 1.2 + 1e-300 <= high
    assert seen > 50  # a truth that is a fifth off is seen


def test_one_bin_is_plain_composition() -> None:
    """Epochs of one step: Laplace noise several times, which the library answers by other means."""
    for scale, epochs in ((2.0, 3), (0.8, 5), (5.0, 40)):
        plain = epochs * dp.Laplace(scale)
        law = epochs_of(dp.Laplace(scale), 1, epochs, Direction.REMOVE)
        for epsilon in (0.1, 0.5, 0.9, 0.99):
            truth = plain.delta_interval(epsilon * epochs / scale)
            low, high = (float(np.exp(v[0])) for v in law.log_profile(np.array([epsilon * epochs / scale])))
            assert low <= truth.upper * (1 + 1e-13)
            assert truth.lower <= high * (1 + 1e-13)
            assert truth.lower < 1e-20 or high - low < 1e-3 * high


@pytest.mark.parametrize(
    ("t", "scale", "epochs", "epsilon"), [(30, 1.0, 3, 0.4), (100, 2.0, 3, 0.15), (10, 1.5, 8, 1.0)]
)
def test_epochs_of_laplace_by_sampling_under_p(t: int, scale: float, epochs: int, epsilon: float) -> None:
    draw = np.random.default_rng(t)
    number = 1_200_000 // t
    loss = np.zeros(number)
    for _ in range(epochs):
        x = draw.laplace(size=(number, t))
        x[:, 0] += 1 / scale
        loss += np.log(np.exp(np.abs(x) - np.abs(x - 1 / scale)).mean(axis=1))
    pay = np.maximum(-np.expm1(epsilon - loss), 0.0)
    mean, error = float(pay.mean()), float(pay.std()) / math.sqrt(number)
    law = epochs_of(dp.Laplace(scale), t, epochs, Direction.REMOVE)
    low, high = (float(np.exp(v[0])) for v in law.log_profile(np.array([epsilon])))
    assert low - 4.5 * error < mean < high + 4.5 * error
    assert error < 0.1 * mean
    assert high - low < 1e-4 * high


def test_both_ends_of_epochs_are_sharp() -> None:
    box = dp.Sampled(dp.Laplace(2.0), dp.BallsInBins(100), epochs=3).epsilon_interval(1e-5)
    assert box.width < 1e-6 * box.upper
    assert box.lower < 0.2808776 < box.upper + 1e-7
    assert box.method == "lattice of ratios"


def test_divergences_are_bounded_by_every_outcome() -> None:
    """K against the sum over all outcomes of one epoch: never below, and near."""
    p, steps = 0.75, 6
    law = epochs_of(dp.RandomizedResponse(p), steps, 1, Direction.REMOVE)
    chances = [math.comb(steps, k) * 0.25**k * 0.75 ** (steps - k) for k in range(steps + 1)]
    ratios = [(3 * k + (steps - k) / 3) / steps for k in range(steps + 1)]
    for t in (0.01, 0.5, 3.0, 40.0):
        truth = math.log(math.fsum(c * r ** (1 + t) for c, r in zip(chances, ratios, strict=True)))
        found = float(law.log_moment(np.array([t]))[0])
        assert truth <= found * (1 + 1e-12)
        assert found < truth * (1.02 if t < 0.1 else 1.001)


def _gained(ratio: float) -> float:
    return ratio * math.log(ratio)


def _lost(ratio: float) -> float:
    return -math.log(ratio)


@pytest.mark.parametrize("steps", [2, 3, 10, 40])
def test_renyi_of_responses_is_never_below_the_sum_over_all_outcomes(steps: int) -> None:
    """The law of atoms that a plan has, not only its epochs: quadrature over kinks was low by up to 7e-4."""
    p = 0.7
    chances = [math.comb(steps, k) * (1 - p) ** k * p ** (steps - k) for k in range(steps + 1)]
    ratios = [(p / (1 - p) * k + (1 - p) / p * (steps - k)) / steps for k in range(steps + 1)]
    plan = dp.Sampled(dp.RandomizedResponse(1 - p), dp.BallsInBins(steps), epochs=1)
    for order in (1.5, 2.0, 4.0, 16.0, 64.0):
        both = [math.fsum(c * r**a for c, r in zip(chances, ratios, strict=True)) for a in (order, 1 - order)]
        truth = math.log(max(both)) / (order - 1)
        assert truth * (1 - 1e-13) <= plan.renyi(order) < truth * (1 + 2e-6)
    means = [math.fsum(c * f(r) for c, r in zip(chances, ratios, strict=True)) for f in (_gained, _lost)]
    assert max(means) <= plan.renyi(1) < max(means) * 1.01


def test_measures_lie_on_their_side_everywhere() -> None:
    """Profiles with kinks and flat pieces, on even and uneven grids: between the points too."""
    draw = np.random.default_rng(11)
    for _ in range(thinned(300)):
        atoms = np.sort(draw.uniform(0.2, 3.0, int(draw.integers(1, 6))))
        chances = draw.dirichlet(np.ones(len(atoms)))

        def profile(x: np.ndarray, atoms: np.ndarray = atoms, chances: np.ndarray = chances) -> np.ndarray:
            return np.maximum(atoms - x[:, None], 0.0) @ chances

        number = int(draw.integers(4, 40))
        points = np.sort(np.concatenate(([0.1, 3.1], draw.uniform(0.1, 3.1, number))))
        widths, dense = np.diff(points), np.linspace(0.1, 3.1, 701)
        middles = profile(0.5 * (points[1:] + points[:-1]))
        above = measure_above(widths, profile(points))
        below = measure_below(widths, profile(points), profile(points), middles, float(atoms @ chances) - 0.1)
        truth = profile(dense)
        upper = np.interp(dense, points, profile_of(above, widths))
        lower = np.interp(dense, points, profile_of(below, widths))
        assert (upper >= truth - 1e-14).all()
        assert (lower <= truth + 1e-14).all()
        assert below.sum() <= 1 + 1e-14
