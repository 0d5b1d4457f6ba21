"""Containment: some laws of few outcomes beside a Gaussian, against its profile averaged over them in balls."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import dptally as dp
import truth
from depth import thinned
from dptally.accounting.certified import conditioned
from dptally.accounting.certified.bounds import LogTarget, log_interval
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.route import bounds_at
from dptally.accounting.certified.routes import FewBeside
from dptally.accounting.certified.solve import epsilon_ends
from truth.balls import precision


def drawn(draw: random.Random) -> tuple[Plan, Callable[[float], Any], float]:
    """A Gaussian beside n responses of k categories: (the plan, its delta in balls, its largest listed loss)."""
    sigma = math.exp(draw.uniform(math.log(0.3), math.log(60)))
    p, categories, n = draw.uniform(0.4, 0.95), draw.choice((2, 3, 10)), draw.choice((1, 2, 5))
    mechanism = dp.Gaussian(sigma) + n * dp.RandomizedResponse(p, categories)

    def delta_of(epsilon: float) -> Any:
        with precision(400):
            likely, lie = truth.ball(p), (1 - truth.ball(p)) / (categories - 1)
            step, mu, total = (likely / lie).log(), 1 / truth.ball(sigma), truth.ball(0)
            for up in range(n + 1):
                for down in range(n - up + 1):
                    ways = math.comb(n, up) * math.comb(n - up, down)
                    chance = ways * likely**up * lie**down * ((categories - 2) * lie) ** (n - up - down)
                    total += chance * truth.gaussian_delta(mu, truth.ball(epsilon) - (up - down) * step)
            return total

    return Plan(mechanism.directions()[0]), delta_of, n * abs(math.log(p * (categories - 1) / (1 - p)))


@pytest.mark.parametrize("seed", range(thinned(200)))
def test_delta_and_epsilon_contain_the_truth(seed: int) -> None:
    draw = random.Random(seed)
    plan, delta_of, longest = drawn(draw)
    assert FewBeside().applies(plan)
    epsilon = longest * draw.choice((0.0, draw.random(), 1.0, 1.2))
    (profile,) = conditioned.for_epsilon(plan, epsilon)
    low, high, _ = bounds_at(profile, epsilon)
    value = delta_of(epsilon).log()
    assert not truth.ball(low) > value
    assert not truth.ball(high) < value
    delta = math.exp(draw.uniform(math.log(1e-60), math.log(1e-2)))
    for found in conditioned.for_delta(plan, LogTarget(*log_interval(delta), delta)):
        ends = epsilon_ends(found, log_interval(delta))
        assert ends.upper == math.inf or not delta_of(ends.upper) > truth.ball(delta)
        assert ends.lower == 0 or not delta_of(ends.lower) < truth.ball(delta)


def test_answers_are_sharp_and_a_moved_one_is_refuted() -> None:
    plan, delta_of, _ = drawn(random.Random(3))
    (found,) = conditioned.for_delta(plan, LogTarget(*log_interval(1e-9), 1e-9))
    ends = epsilon_ends(found, log_interval(1e-9))
    assert ends.upper - ends.lower < 1e-9 * ends.upper
    assert delta_of(ends.upper * (1 - 1e-6)) > truth.ball(1e-9)  # a millionth less would not do
    assert delta_of(ends.lower * (1 + 1e-6)) < truth.ball(1e-9)


def test_rare_losses_beside_few_outcomes_are_sharp() -> None:
    """Where tilted lattices are six digits wide of it, or know nothing: REPLACE and responses at tiny deltas."""
    plan = 8396 * dp.PoissonSampled(dp.Gaussian(9.156428318814385), 0.0002207368152924872)
    plan = plan + 8 * dp.RandomizedResponse(0.584530557298045, 1000)
    box = plan.epsilon_interval(2.306328530305348e-50)
    assert box.upper - box.lower <= 1e-6 * box.upper
    assert 58.0159474 <= box.upper <= 58.0526016  # what a lattice proves


@pytest.mark.parametrize(
    "plan",
    [dp.Gaussian(1.0), dp.RandomizedResponse(0.7), 1000 * dp.RandomizedResponse(0.7) + dp.Laplace(1.0)],
    ids=["no outcomes", "nothing else", "too many outcomes"],
)
def test_it_applies_to_a_few_beside_others_only(plan: dp.Mechanism) -> None:
    assert not FewBeside().applies(Plan(plan.directions()[0]))
