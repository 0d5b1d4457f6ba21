"""Containment: K, phi and its decay of Laplace noise on a sample against a hypergeometric function in balls."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import acb

import dptally as dp
from depth import thinned
from dptally.law import Law
from dptally.laws.sampled import laplace_contour
from truth import ball
from truth.balls import precision
from truth.inversion import mixture_delta
from truth.sampled_laplace_piece import SampledLaplacePiece

pytestmark = pytest.mark.usefixtures("quiet")


def laws(draw: random.Random) -> list[tuple[Law, SampledLaplacePiece]]:
    """Both directions, or REPLACE, of one random step, each with its truth."""
    scale, rate = math.exp(draw.uniform(-2.5, 3.9)), math.exp(draw.uniform(-13, -0.05))
    adjacency = draw.choice((dp.ADD_REMOVE, dp.REPLACE))
    sides = ("remove", "add") if adjacency is dp.ADD_REMOVE else ("replace",)
    found = dp.PoissonSampled(dp.Laplace(scale), rate, adjacency).directions()
    pieces = [SampledLaplacePiece(1 / Fraction(scale), rate, side) for side in sides]
    return [(composition.parts[0][0], piece) for composition, piece in zip(found, pieces, strict=True)]


def test_moments_and_their_errors() -> None:
    draw = random.Random("moments")
    for _ in range(thinned(45)):
        for law, piece in laws(draw):
            table = law.moment_table(np.exp([draw.uniform(-8, 4), draw.uniform(-8, 4), 4.5]))
            with precision(2000):
                for theta, moment, error in zip(table.theta, table.moment, table.error, strict=True):
                    exact = piece.log_moment(ball(float(theta)))
                    assert abs(ball(float(moment)) - exact) <= ball(float(error)), (law, theta)
                    assert error <= 1e-10 * abs(moment) + 1e-24


def test_characteristic_functions_and_their_decay() -> None:
    draw = random.Random("phi")
    decayed = 0
    for _ in range(thinned(24)):
        for law, piece in laws(draw):
            theta = math.exp(draw.uniform(-6, 3.5))
            step = math.exp(draw.uniform(-2, 4)) / (law.supremum - law.infimum)
            phi = law.characteristic(theta, 3 * step, -34.0)
            assert phi is not None
            values, errors = phi.on_grid(step, 3)
            bounds = law.log_decay(theta, step * np.array([0.5, 1.0, 2.0]))
            decayed += bounds[2] < -0.1
            with precision(1500):
                base = piece.moment(acb(theta)).real
                for k in range(3):
                    u = k * ball(step)
                    exact = piece.moment(acb(theta, u)) / base
                    turned = exact * acb(0, -u * ball(phi.centre)).exp() - 1
                    assert abs(acb(complex(values[k])) - turned) <= ball(float(errors[k])), (law, theta, step)
                    for i, start in enumerate((0.5, 1.0, 2.0)):
                        if k >= start:
                            assert abs(exact) <= ball(float(bounds[i]) + 1e-13).exp(), (law, theta, step)
    assert decayed >= thinned(24)


def test_many_turns() -> None:
    """Panels follow the turns of the losses and leave out what the tilt leaves next to nothing of."""
    draw = random.Random("turns")
    seen = 0
    for _ in range(thinned(20)):
        for law, piece in laws(draw):
            theta = math.exp(draw.uniform(-6, 3.5))
            reach = math.exp(draw.uniform(5.8, 7)) / (law.supremum - law.infimum)
            phi = law.characteristic(theta, reach, -34.0)
            if phi is None:  # too many nodes
                continue
            seen += 1
            values, errors = phi.on_grid(0.99 * reach, 2)
            with precision(8000):
                exact = piece.moment(acb(theta, ball(0.99 * reach))) / piece.moment(acb(theta)).real
                turned = exact * acb(0, -ball(0.99 * reach) * ball(phi.centre)).exp() - 1
                assert abs(acb(complex(values[1])) - turned) <= ball(float(errors[1])), (law, theta, reach)
            assert errors[1] < 1e-9
    assert seen >= thinned(10)


def test_power(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules of a few points less are found out."""
    original = laplace_contour.gauss_legendre
    monkeypatch.setattr(laplace_contour, "gauss_legendre", lambda n: original(max(2, n // 2)))
    laplace_contour.characteristic.cache_clear()
    with pytest.raises(AssertionError):
        test_moments_and_their_errors()


@pytest.mark.parametrize(
    ("scale", "rate", "adjacency", "side", "count", "epsilon"),
    [
        (1.4, 0.05, dp.ADD_REMOVE, "remove", 5000, 3.0),
        (1.4, 0.05, dp.ADD_REMOVE, "add", 5000, 3.0),
        (1.4, 0.05, dp.REPLACE, "replace", 5000, 3.0),
        (0.7, 1e-4, dp.ADD_REMOVE, "remove", 10**9, 5.0),
        (0.7322, 0.142, dp.ADD_REMOVE, "remove", 1700, 40.0),
    ],
)
def test_whole_plans(scale: float, rate: float, adjacency: dp.Adjacency, side: str, count: int, epsilon: float) -> None:
    truth = mixture_delta([SampledLaplacePiece(1 / Fraction(scale), rate, side, count)], epsilon, 15)
    plan = count * dp.PoissonSampled(dp.Laplace(scale), rate, adjacency)
    from dptally.accounting.certified import engine

    box = engine.delta_interval([plan.directions()[int(side == "add")]], epsilon)
    with precision(300):
        assert ball(box.lower) <= truth <= ball(box.upper)
    assert box.upper - box.lower <= 1e-7 * box.upper
    assert box.method in ("inversion", "smoothed inversion")


def test_what_needs_too_many_nodes_is_left_to_others() -> None:
    law = dp.PoissonSampled(dp.Laplace(1e-5), 0.1).directions()[0].parts[0][0]
    assert law.characteristic(1.0, 1.0, -30.0) is None
    assert np.isinf(law.moment_table(np.array([1.0])).moment).all()
    assert (law.log_decay(1.0, np.array([1.0])) == 0).all()
    box = (2 * dp.PoissonSampled(dp.Laplace(1e-5), 0.1)).epsilon_interval(1e-5)
    assert 0 < box.lower <= box.upper


def test_a_rate_between_doubles_has_a_twin() -> None:
    """Nested rates: upper ends hold for the larger neighbour, lower ends for the smaller one."""
    plan = 1000 * dp.PoissonSampled(dp.PoissonSampled(dp.Laplace(1.0), 0.1), 0.3)
    direction = plan.directions()[0]
    assert direction.optimistic() is not direction
    truth = [
        mixture_delta([SampledLaplacePiece(1, Fraction(0.1) * Fraction(0.3), side, 1000)], 2.0, 15)
        for side in ("remove", "add")
    ]
    box = plan.delta_interval(2.0)
    with precision(300):
        assert any(ball(box.lower) <= value for value in truth)
        assert all(value <= ball(box.upper) for value in truth)
