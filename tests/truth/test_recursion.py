"""Golden: the recursion in loss space encloses closed forms and other quadratures, and sharpens as 1/points^2."""

from __future__ import annotations

import math
import random

import pytest
from flint import arb

from truth import (
    Number,
    ball,
    discrete_delta,
    floats,
    gaussian_delta,
    laplace_delta,
    mixture_delta,
    randomized_response_delta,
    sampled_gaussian_delta,
)
from truth.discrete import discrete_gaussian_delta
from truth.inversion import Piece
from truth.losses import GaussianLoss, LaplaceLoss, Loss, ResponseLoss, SampledGaussianLoss, SampledReplaceLoss
from truth.pieces import AtomsPiece, GaussianPiece, LaplacePiece, SampledPiece
from truth.recursion import composed_delta

POINTS = 500


def encloses(losses: list[tuple[Loss, int]], epsilon: Number, exact: arb, points: int = POINTS) -> float:
    """The relative width, after checking that the truth is inside and that a moved one is not."""
    lower, upper = composed_delta(losses, epsilon, points)
    low, high = floats(exact)
    assert lower <= high, (losses, epsilon)
    assert low <= upper, (losses, epsilon)
    width = (upper - lower) / upper
    assert lower > high * (1 - 1.01 * width - 1e-12)  # power: a truth moved by the width is outside
    return width


@pytest.mark.parametrize(("mu", "count", "epsilon"), [(0.5, 2, 1.0), (0.5, 9, 5.0), (0.5, 9, 15.0), (2.0, 3, 60.0)])
def test_gaussian(mu: float, count: int, epsilon: float) -> None:
    exact = gaussian_delta(ball(mu) * ball(count).sqrt(), epsilon)
    coarse = encloses([(GaussianLoss(mu), count)], epsilon, exact)
    fine = encloses([(GaussianLoss(mu), count)], epsilon, exact, 4 * POINTS)
    assert fine < coarse / 10
    assert fine < 0.05


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_two_sampled_steps_against_quadrature(direction: str) -> None:
    draw = random.Random(11)
    for _ in range(5):
        sigma, rate = math.exp(draw.uniform(-1, 1.5)), 10 ** draw.uniform(-4, -0.1)
        share = draw.uniform(0.05, 0.5)
        epsilon = -2 * math.log1p(-rate) * share if direction == "add" else 18 * rate * share
        exact = sampled_gaussian_delta(sigma, rate, 2, epsilon, direction, 14)
        assert encloses([(SampledGaussianLoss(sigma, rate, direction), 2)], epsilon, exact) < 5e-3


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_thirty_sampled_steps_against_inversion(direction: str) -> None:
    exact = mixture_delta([SampledPiece(2.0, 0.3, direction, 30)], 2.0, 14)
    assert encloses([(SampledGaussianLoss(2.0, 0.3, direction), 30)], 2.0, exact, 2000) < 0.5


def test_rates_next_to_one() -> None:
    """Remove: q^T delta_G(eps - T log q) <= delta <= delta_G(eps), delta_G of the Gaussian that is not sampled."""
    rate, steps = 1 - 2.0**-40, 5
    for epsilon in (0.5, 4.0, 9.0):
        exact = gaussian_delta(ball(steps).sqrt() / 2, epsilon)
        moved = ball(rate) ** steps * gaussian_delta(ball(steps).sqrt() / 2, ball(epsilon) - steps * ball(rate).log())
        assert encloses([(SampledGaussianLoss(2.0, rate, "remove"), steps)], epsilon, exact.union(moved)) < 0.05


def test_laplace_and_responses() -> None:
    assert encloses([(LaplaceLoss(0.5), 10)], 3.0, laplace_delta(0.5, 10, 3.0)) < 1e-3
    assert encloses([(LaplaceLoss("1.25"), 3)], 3.5, laplace_delta("1.25", 3, 3.5)) < 1e-3
    for categories in (2, 3):
        exact = randomized_response_delta(0.7, categories, 8, 1.5)
        # of three values the lattice need not hit the middle one
        assert encloses([(ResponseLoss(0.7, categories), 8)], 1.5, exact) < (1e-9 if categories == 2 else 1e-2)


def test_sampled_laplace_of_rate_one_and_both_sides() -> None:
    for direction in ("remove", "add"):
        assert encloses([(LaplaceLoss(0.75, 1, direction), 4)], 1.5, laplace_delta(0.75, 4, 1.5)) < 1e-3
    # one sampled step: at the top the remove side is q times the plain profile [Li, Qardaji, Su 2012]
    loss, q = LaplaceLoss(0.5, 0.1), arb(0.1)
    e = (q * arb(0.25).expm1()).log1p()
    p, other = loss.above(e)
    assert abs((p - e.exp() * other) / (q * -(arb(-0.125).expm1())) - 1) < 1e-12


@pytest.mark.parametrize("parts", [("gaussian", "atoms"), ("gaussian", "laplace"), ("gaussian", "atoms", "laplace")])
def test_mixes(parts: tuple[str, ...]) -> None:
    losses: dict[str, tuple[Loss, int]] = {
        "gaussian": (GaussianLoss(0.5), 1),
        "atoms": (ResponseLoss(0.75), 3),
        "laplace": (LaplaceLoss(0.25), 4),
    }
    pieces: dict[str, Piece] = {
        "gaussian": GaussianPiece(0.5),
        "atoms": AtomsPiece((0.75, 0.25), (0.25, 0.75), 3),
        "laplace": LaplacePiece(0.25, 4),
    }
    exact = mixture_delta([pieces[name] for name in parts], 2.5, 14)
    assert encloses([losses[name] for name in parts], 2.5, exact, 1500) < 0.05


def test_replace_is_symmetric_and_ends_in_the_gaussian() -> None:
    loss = SampledReplaceLoss(1.5, 0.2)
    for a in (-1.0, 0.0, 0.3):
        p, q = loss.above(arb(a))
        below_p, below_q = loss.below(arb(a))
        assert abs(p + below_p - 1) < 1e-14
        assert abs(q + below_q - 1) < 1e-14
    near = SampledReplaceLoss(4.0, 1 - 2.0**-40)
    exact = gaussian_delta(ball(3).sqrt() / 2, 1.5)
    lower, upper = composed_delta([(near, 3)], 1.5, POINTS)
    assert lower * (1 - 1e-9) <= float(exact) <= upper * (1 + 1e-9)
    assert upper - lower < 0.05 * upper


def test_beyond_the_largest_loss_and_bad_questions() -> None:
    assert composed_delta([(SampledGaussianLoss(1.0, 0.1, "add"), 3)], 0.4) == (0.0, 0.0)
    with pytest.raises(ValueError):
        composed_delta([(GaussianLoss(1.0), 1)], 0.5)
    with pytest.raises(ValueError):
        composed_delta([(GaussianLoss(1.0), 2)], 0.0)


def test_discrete_gaussian_against_enumeration() -> None:
    """sigma = 1: weights of 25 outputs, the rest below 1e-30."""
    weights = [(-(arb(k) ** 2) / 2).exp() for k in range(-13, 13)]
    total = sum(weights, arb(0))
    moved = [(-(arb(k - 1) ** 2) / 2).exp() / total for k in range(-13, 13)]
    exact = discrete_delta([w / total for w in weights], moved, 1, 1.0)
    assert abs(discrete_gaussian_delta(1.0, 1, 1, 1.0) / exact - 1) < 1e-12
    two = sum(
        (
            (a / total) * (b / total) * (1 - (arb(1.0) - (2 - 2 * (i + j)) / arb(2)).exp()).max(arb(0))
            for i, a in zip(range(-13, 13), weights, strict=True)
            for j, b in zip(range(-13, 13), weights, strict=True)
        ),
        arb(0),
    )
    assert abs(discrete_gaussian_delta(1.0, 1, 2, 1.0) / two - 1) < 1e-12
