"""Golden: the engine's answers contain truths for mixed plans, each direction alone; both questions agree."""

from __future__ import annotations

import math
import random

import pytest

import dptally as dp
from dptally.accounting.certified import engine
from dptally.accounting.certified.bounds import Contradiction, LogTarget, intersection
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.route import RouteFailed, Visit
from dptally.accounting.certified.routes import ROUTES, Contour
from dptally.accounting.certified.walk import walk_epsilon
from dptally.interval import Interval
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.laws.gaussian import GaussianLaw
from dptally.laws.laplace import LaplaceLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from truth import ball, gaussian_delta, laplace_delta, randomized_response_delta, sampled_gaussian_delta
from truth.balls import precision


def within(box: Interval, delta: float, delta_of: object) -> bool:
    with precision(300):
        below = box.lower == 0 or bool(delta_of(box.lower) >= ball(delta))  # type: ignore[operator]
        return below and bool(delta_of(box.upper) <= ball(delta))  # type: ignore[operator]


def test_gaussian_plans() -> None:
    draw = random.Random(91)
    for _ in range(300):
        sigma, count, delta = 10 ** draw.uniform(-1, 2), draw.choice((1, 3, 100)), 10 ** draw.uniform(-300, -1)
        plan = count * dp.Gaussian(sigma)
        box = engine.epsilon_interval(plan.directions(), delta)
        assert within(box, delta, lambda e, s=sigma, n=count: gaussian_delta(ball(n).sqrt() / ball(s), e)), sigma
        epsilon = draw.uniform(0.0, 2 * box.upper)
        answer = engine.delta_interval(plan.directions(), epsilon)
        with precision(300):
            truth = gaussian_delta(ball(count).sqrt() / ball(sigma), epsilon)
            assert bool(ball(answer.lower) <= truth)
            assert answer.upper == 1.0 or bool(truth <= ball(answer.upper))


@pytest.mark.parametrize("side", ["remove", "add"])
def test_sampled_plans_each_direction(side: str) -> None:
    which = Direction.REMOVE if side == "remove" else Direction.ADD
    plans = [(1.0, 0.01, 1000, 1e-5), (0.6, 0.001, 100_000, 1e-5), (2.0, 0.1, 100, 1e-12), (3.0, 0.5, 50, 1e-30)]
    for sigma, rate, count, delta in plans:
        composition = Composition.of([(SampledGaussianLaw(rate, sigma, which), count)])
        box = engine.epsilon_interval([composition], delta)
        assert box.upper - box.lower <= 1e-8 * box.upper

        def truth(epsilon: float, plan: tuple[float, float, int] = (sigma, rate, count)) -> object:
            return sampled_gaussian_delta(*plan, epsilon, side, 18)

        assert within(box, delta, truth), (sigma, rate, count, delta)
        answer = engine.delta_interval([composition], box.upper)
        with precision(200):
            value = truth(box.upper)
            assert bool(ball(answer.lower) <= value)  # type: ignore[operator]
            assert bool(value <= ball(answer.upper))  # type: ignore[operator]


def test_the_larger_direction_counts() -> None:
    plan = 100 * dp.PoissonSampled(dp.Gaussian(1.0), 0.02)
    boxes = [engine.epsilon_interval([direction], 1e-6) for direction in plan.directions()]
    assert len(boxes) == 2
    assert boxes[0].upper != boxes[1].upper
    both = engine.epsilon_interval(plan.directions(), 1e-6)
    assert both.upper == max(box.upper for box in boxes)
    assert both.lower == max(box.lower for box in boxes)


def test_laplace() -> None:
    for t, count, delta in ((0.1, 50, 1e-6), (1.0, 3, 1e-4), (0.5, 10, 1e-9)):
        box = engine.epsilon_interval([Composition.of([(LaplaceLaw(t, t), count)])], delta)
        assert within(box, delta, lambda e, t=t, n=count: laplace_delta(t, n, e)), (t, count)
        assert box.upper - box.lower <= 1e-6


def test_sharp_question_both_ways() -> None:
    """delta(eps) at either end of eps(delta) brackets delta: the two questions agree."""
    draw = random.Random(92)
    for _ in range(20):
        sigma, rate, count = draw.uniform(0.6, 4.0), 10 ** draw.uniform(-2.5, -0.3), round(10 ** draw.uniform(1.7, 5))
        delta = 10 ** draw.uniform(-40, -3)
        for direction in (count * dp.PoissonSampled(dp.Gaussian(sigma), rate)).directions():
            box = engine.epsilon_interval([direction], delta)
            if box.lower > 0:
                assert engine.delta_interval([direction], box.lower).upper >= delta
                assert engine.delta_interval([direction], box.upper).lower <= delta


def test_nothing_was_run_and_vast_deltas() -> None:
    assert engine.epsilon_interval([], 1e-5) == Interval(0.0, 0.0, "nothing was run")
    assert engine.epsilon_interval([Composition(())], 1e-5).upper == 0.0
    assert engine.delta_interval([Composition(())], 1.0).upper == 0.0
    plan = 5 * dp.PoissonSampled(dp.Gaussian(3.0), 1e-3)
    assert engine.epsilon_interval(plan.directions(), 0.5).upper == 0.0
    laplace = Composition.of([(LaplaceLaw(1.0, 1.0), 2)])
    assert engine.delta_interval([laplace], 2.5).upper <= 1e-300
    nothing = engine.epsilon_interval([laplace], 0.0)
    assert nothing.lower <= 2.0 <= nothing.upper


def test_curve_is_the_single_answers() -> None:
    plan = dp.PoissonSampled(dp.Gaussian(1.0), 0.02)
    counts = [3, 100, 110, 1000]
    curve = engine.epsilon_curve(plan.directions(), counts, 1e-6)
    for count, box in zip(counts, curve, strict=True):
        single = engine.epsilon_interval((count * plan).directions(), 1e-6)
        assert max(box.lower, single.lower) <= min(box.upper, single.upper)


@pytest.mark.parametrize("plan", [dp.ExponentialMechanism(1.0), dp.ExponentialMechanism(0.5) + dp.Gaussian(3.0)])
def test_a_curve_of_uses_of_bounded_range_is_that_of_the_uses(plan: dp.Mechanism) -> None:
    """Their law is one of all uses together: the law of one use, multiplied, is looser."""
    (box,) = engine.epsilon_curve(plan.directions(), [10], 1e-5)
    assert box == (10 * plan).epsilon_interval(1e-5)
    assert plan.epsilon_curve([10], 1e-5) == [(10 * plan).epsilon(1e-5)]


def test_mixed_families_through_the_lattice_agree_with_the_contour() -> None:
    """Randomised response beside a Gaussian: exact by conditioning on the number of lies."""
    mu, p, count = 0.8, 0.7, 6
    law = dp.RandomizedResponse(p).laws()[0]
    composition = Composition.of([(law, count), (GaussianLaw(mu * mu), 1)])
    for epsilon in (0.5, 2.0, 4.0):
        box = engine.delta_interval([composition], epsilon)
        with precision(200):
            loss = (ball(p) / (1 - ball(p))).log()
            truth = sum(
                math.comb(count, k)
                * ball(p) ** k
                * (1 - ball(p)) ** (count - k)
                * gaussian_delta(ball(mu * mu).sqrt(), ball(epsilon) - (2 * k - count) * loss)
                for k in range(count + 1)
            )
            assert float(truth) == pytest.approx(0.5 * (box.lower + box.upper), rel=1e-5)


def test_randomised_response_against_the_binomial_sum() -> None:
    for count, epsilon in ((5, 0.5), (100, 3.0)):
        box = engine.delta_interval((count * dp.RandomizedResponse(0.55)).directions(), epsilon)
        with precision(200):
            truth = randomized_response_delta(0.55, 2, count, epsilon)
            assert bool(ball(box.lower) <= truth)
            assert bool(truth <= ball(box.upper))
        assert box.upper - box.lower <= 1e-5 * box.upper


def test_answers_that_do_not_meet_give_their_hull_and_a_warning() -> None:
    assert intersection((1.0, 3.0), (2.0, 4.0)) == (2.0, 3.0)
    assert intersection((0.0, math.inf), (1.0, 1.0)) == (1.0, 1.0)
    with pytest.warns(Contradiction, match="disjoint"):
        assert intersection((1.0, 2.0), (3.0, 4.0)) == (1.0, 4.0)


def test_the_label_names_the_route_that_answered() -> None:
    assert (20 * dp.PureDP(0.1)).epsilon_interval(1e-6).method == "binomial sum"
    assert (20 * dp.PureDP(0.1)).delta_interval(0.5).method == "binomial sum"
    assert (2 * dp.Laplace(1.0)).epsilon_interval(1e-6).method in {route.name for route in ROUTES}
    assert dp.dpsgd(1.0, 0.01, 1000).epsilon_interval(1e-5).method == "inversion"


def test_every_walk_leaves_a_trail() -> None:
    trail: list[Visit] = []
    plan = Plan((3 * dp.DiscreteGaussian(2.0) + dp.Laplace(1.0)).directions()[0])
    ends = walk_epsilon(plan, LogTarget(math.log(1e-5), math.log(1e-5), 1e-5), trail)
    assert trail[-1].outcome == "sharp"
    assert (trail[-1].lower, trail[-1].upper) == tuple(ends)
    assert {visit.route for visit in trail} <= {route.name for route in ROUTES}


def test_a_route_that_dies_is_written_down_and_the_others_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = dp.dpsgd(1.0, 0.01, 1000)
    expected = plan.epsilon_interval(1e-5)

    def bug(self: object, plan: Plan, target: LogTarget) -> object:
        raise ValueError("on purpose")
        yield

    def late(self: object, plan: Plan, target: LogTarget) -> object:
        raise OverflowError("on purpose")
        yield

    monkeypatch.setattr(Contour, "near_delta", late)
    box = plan.epsilon_interval(1e-5)
    assert max(box.lower, expected.lower) <= min(box.upper, expected.upper)
    monkeypatch.setattr(Contour, "near_delta", bug)
    with pytest.warns(RouteFailed, match="on purpose"):
        box = plan.epsilon_interval(1e-5)
    assert max(box.lower, expected.lower) <= min(box.upper, expected.upper)
