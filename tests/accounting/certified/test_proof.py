"""golden: proofs against the independent references, against the engine, and what they refuse."""

from __future__ import annotations

import dataclasses
import math
import sys

import pytest
from flint import arb

import dptally as dp
from dptally.accounting.certified.proof import prove_delta, prove_epsilon
from dptally.errors import InvalidArgument, MissingExtra, Unanswerable
from dptally.laws.ball.losses import GaussianBall
from dptally.laws.gaussian import GaussianLaw
from foreign import Coin, CoinLaw
from truth import (
    AtomsPiece,
    GaussianPiece,
    LaplacePiece,
    SampledPiece,
    approx_delta,
    epsilon_is_within,
    floats,
    gaussian_delta,
    laplace_delta,
    mixture_delta,
    one_step_delta,
    randomized_response_delta,
    sampled_gaussian_delta,
    sigma_delta,
)


def holds(box: dp.Interval, truth: arb, relative: float) -> bool:
    """The truth is inside and the enclosure is as thin as promised."""
    low, high = floats(truth)
    return box.lower <= low <= high <= box.upper and box.width <= relative * high


def test_gaussian() -> None:
    plan = 7 * dp.Gaussian(sigma=1.3, sensitivity=0.4)
    assert holds(prove_delta(plan.directions(), 0.7), sigma_delta(1.3, 0.7, 7, 0.4), 1e-13)
    assert holds(prove_delta(plan.directions(), 20.0), sigma_delta(1.3, 20.0, 7, 0.4), 1e-11)


@pytest.mark.parametrize("categories", [2, 5])
def test_randomised_response(categories: int) -> None:
    plan = 30 * dp.RandomizedResponse(0.55, categories=categories)
    truth = randomized_response_delta(0.55, categories, 30, 2.5)
    assert holds(prove_delta(plan.directions(), 2.5), truth, 1e-12)


def test_approximate_guarantees_and_their_mass_at_infinity() -> None:
    plan = 12 * dp.ApproxDP(0.25, 1e-9)
    assert holds(prove_delta(plan.directions(), 1.0), approx_delta(0.25, 1e-9, 12, 1.0), 1e-13)
    assert prove_epsilon(plan.directions(), 1e-9) == dp.Interval(math.inf, math.inf)
    box = prove_epsilon(plan.directions(), 1.5e-8)
    assert epsilon_is_within(*box, 1.5e-8, lambda e: approx_delta(0.25, 1e-9, 12, e))
    assert box.width < 1e-9


def test_laplace() -> None:
    plan = 40 * dp.Laplace(scale=4.0)
    assert holds(prove_delta(plan.directions(), 3.0), laplace_delta(0.25, 40, 3.0), 1e-12)
    box = prove_epsilon(plan.directions(), 1e-6)
    assert epsilon_is_within(*box, 1e-6, lambda e: laplace_delta(0.25, 40, e))
    assert box.width < 1e-9


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_one_sampled_step_in_each_direction(epsilon: float) -> None:
    remove, add = dp.dpsgd(0.8, 0.1, 1).directions()
    assert holds(prove_delta([remove], epsilon), one_step_delta(0.8, 0.1, epsilon, "remove"), 1e-12)
    truth = one_step_delta(0.8, 0.1, epsilon, "add")
    assert holds(prove_delta([add], epsilon), truth, 1e-12) or (truth == 0 and prove_delta([add], epsilon).lower == 0)


@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "delta"),
    [(1.0, 0.01, 1000, 1e-5), (0.7, 0.05, 200, 1e-12), (2.0, 0.1, 10**6, 1e-5), (3.0, 0.3, 500, 1e-60)],
)
def test_dpsgd_in_each_direction(sigma: float, rate: float, steps: int, delta: float) -> None:
    for side, composition in zip(("remove", "add"), dp.dpsgd(sigma, rate, steps).directions(), strict=True):
        box = prove_epsilon([composition], delta, digits=11)
        assert epsilon_is_within(
            *box, delta, lambda e, s=side: sampled_gaussian_delta(sigma, rate, steps, e, s, digits=18)
        )
        assert box.width <= 1e-10 * box.upper


def test_a_mix_of_everything() -> None:
    plan = (
        20 * dp.Laplace(scale=4.0) + dp.Gaussian(sigma=2.0) + dp.dpsgd(1.5, 0.05, 60) + 5 * dp.RandomizedResponse(0.6)
    )
    p = arb(0.6)
    for side, composition in zip(("remove", "add"), plan.directions(), strict=True):
        pieces = [
            LaplacePiece(0.25, 20),
            GaussianPiece(0.5),
            SampledPiece(1.5, 0.05, side, 60),
            AtomsPiece((p, 1 - p), (1 - p, p), 5),
        ]
        assert prove_delta([composition], 3.0).width < 1e-12
        low, high = floats(mixture_delta(pieces, 3.0, digits=14, skew=0.9))
        box = prove_delta([composition], 3.0)
        assert max(box.lower, low) <= min(box.upper, high)


def test_the_engine_and_the_proof_agree() -> None:
    plan = dp.dpsgd(0.9, 0.02, 3000) + dp.Gaussian(5.0)
    box, float_box = prove_epsilon(plan.directions(), 1e-8), plan.epsilon_interval(delta=1e-8)
    assert max(box.lower, float_box.lower) <= min(box.upper, float_box.upper)
    assert box.method == "proof (Arb)"


def test_nothing_was_run() -> None:
    nothing = (0 * dp.Gaussian(1.0)).directions()
    assert prove_delta(nothing, 0.0) == dp.Interval(0.0, 0.0)
    assert prove_epsilon(nothing, 0.0) == dp.Interval(0.0, 0.0)


def test_epsilon_zero_where_delta_is_large() -> None:
    assert prove_epsilon(dp.Gaussian(10.0).directions(), 0.9).lower == 0.0


def test_refusals() -> None:
    with pytest.raises(Unanswerable, match="no form in ball arithmetic"):
        prove_delta(dp.DiscreteGaussian(sigma=2.0).directions(), 1.0)
    with pytest.raises(Unanswerable, match="hardly decays"):
        prove_delta((dp.RandomizedResponse(0.6) + dp.RandomizedResponse(0.7)).directions(), 0.1)
    with pytest.raises(Unanswerable, match="mass at infinity"):
        prove_epsilon(dp.ApproxDP(0.5, 1e-9).directions(), 1e-9)
    with pytest.raises(InvalidArgument, match="epsilon"):
        prove_delta(dp.Gaussian(1.0).directions(), -1.0)
    with pytest.raises(InvalidArgument, match="digits"):
        prove_epsilon(dp.Gaussian(1.0).directions(), 1e-5, digits=0)


def test_without_python_flint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(MissingExtra, match="python-flint"):
        prove_delta(dp.Gaussian(1.0).directions(), 1.0)


def test_a_ball_is_declared_and_never_guessed_from_field_names() -> None:
    """The only field of this two-point law is called as that of the Gaussian law."""
    assert dataclasses.fields(CoinLaw)[0].name == dataclasses.fields(GaussianLaw)[0].name
    with pytest.raises(Unanswerable, match="no form in ball arithmetic"):
        Coin(1.5).prove(epsilon=1.0)


def test_a_law_may_bring_its_own_ball(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GaussianLaw, "ball", lambda self, count: GaussianBall(4 * self.exact_variance, count))
    assert holds(prove_delta(dp.Gaussian(2.0).directions(), 1.0), gaussian_delta(1, 1.0), 1e-14)


def test_one_rare_large_loss_carries_delta() -> None:
    """The saddle point misjudges the size: done again with more digits."""
    remove = dp.dpsgd(1.0, 0.01, 100).directions()[0]
    truth = sampled_gaussian_delta(1.0, 0.01, 100, 6.0, "remove", digits=12)
    box = prove_delta([remove], 6.0, digits=8)
    low, high = floats(truth)
    assert max(low, box.lower) <= min(high, box.upper)
    assert box.width < 1e-5 * box.upper


def test_a_tiny_rate_is_refused_not_awaited() -> None:
    with pytest.raises(Unanswerable, match="nodes"):
        prove_delta(dp.dpsgd(1.0, 1e-6, 10_000).directions(), 0.01)
