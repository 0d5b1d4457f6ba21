"""Contract: every framework answers with a safe number or says why it cannot; bad input is named.

F1 F2 F40.
"""

import math
import warnings

import numpy as np
import pytest

import dptally as dp
from dptally.accounting import alpha, approximate, concentrated, gaussian, group, optimal, pure, renyi
from dptally.accounting.answer import Answer
from dptally.errors import CannotCalibrate, InvalidArgument, InvalidType, Unanswerable
from dptally.law import Composition, MomentBound
from dptally.meaning import attacks, bayes, outcomes
from dptally.mechanisms import ApproxDP, Gaussian, Laplace, PoissonSampled, PureDP, dpsgd

FRAMEWORKS = [pure, approximate, optimal, renyi, concentrated, alpha, gaussian]
LAPLACE = (20 * Laplace(scale=5)).directions()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_answers_carry_their_origin(framework):
    answer = framework.epsilon(LAPLACE, 1e-6)
    assert isinstance(answer, Answer)
    assert answer.framework == framework.__name__.rsplit(".", 1)[1]
    assert any(character.isdigit() for character in answer.theorem)
    assert float(answer) == answer.value > 0
    delta = framework.delta(LAPLACE, 20.0)
    assert 0 <= float(delta) <= 1e-6


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1, math.inf, True, "1e-5", None, np.array([0.1, 0.2]), 1j])
def test_bad_delta_is_named(framework, bad):
    with pytest.raises(InvalidArgument, match="delta"):
        framework.epsilon(LAPLACE, bad)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("bad", [math.nan, -0.1, math.inf, True, "1", None, [1.0]])
def test_bad_epsilon_is_named(framework, bad):
    with pytest.raises(InvalidArgument, match="epsilon"):
        framework.delta(LAPLACE, bad)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("bad", [(), [Laplace(1.0)], (1,)])
def test_bad_directions_are_named(framework, bad):
    with pytest.raises(InvalidType, match="directions"):
        framework.epsilon(bad, 1e-5)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_empty_plan_costs_nothing(framework):
    empty = (Composition(()),)
    assert framework.epsilon(empty, 1e-5).value == 0.0
    assert framework.delta(empty, 0.5).value == 0.0


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_numpy_scalars_are_welcome(framework):
    assert framework.epsilon(LAPLACE, np.float64(1e-6)) == framework.epsilon(LAPLACE, 1e-6)


@pytest.mark.parametrize("framework", [renyi, alpha, approximate, optimal, concentrated, gaussian])
def test_delta_zero_and_one(framework):
    at_zero = math.inf if framework in (concentrated, gaussian) else 4.0
    if framework is approximate:
        assert framework.epsilon(LAPLACE, 0.0, "basic").value == pytest.approx(4.0)
    assert framework.epsilon(LAPLACE, 0.0).value == pytest.approx(at_zero)
    assert framework.epsilon(LAPLACE, 1.0).value == 0.0


def test_pure_refuses_what_it_cannot_say():
    with pytest.raises(Unanswerable, match="unbounded"):
        pure.epsilon(Gaussian(1.0).directions(), 1e-5)
    with pytest.raises(Unanswerable, match="infinite"):
        pure.epsilon(ApproxDP(1.0, 1e-5).directions(), 1e-5)
    with pytest.raises(Unanswerable, match="smaller epsilon"):
        pure.delta(LAPLACE, 1.0)
    assert pure.delta(LAPLACE, 4.1).value == 0.0


def test_unbounded_steps_are_cut_by_their_own_profile():
    plan = (5 * Gaussian(sigma=10) + 3 * PureDP(0.1)).directions()
    exact = gaussian.epsilon((5 * Gaussian(sigma=10)).directions(), 1e-6).value  # of a part
    for name in ("basic", "advanced", "kairouz"):
        answer = approximate.epsilon(plan, 1e-6, composition=name)
        assert answer.value > exact
        assert "of delta" in answer.detail
        at = approximate.delta(plan, answer.value, composition=name).value
        assert 1e-6 * (1 - 1e-9) <= at <= 1e-6 * 1.01 or name == "basic"
    assert approximate.delta(plan, 0.0).value == 1.0 or approximate.delta(plan, 0.0).value > 0.05
    with pytest.raises(Unanswerable, match="unbounded"):
        approximate.epsilon(plan, 0.0)
    leaky = (Gaussian(sigma=10) + ApproxDP(0.1, 1e-7)).directions()
    assert approximate.epsilon(leaky, 1e-6).value > approximate.epsilon(Gaussian(sigma=10).directions(), 1e-6).value
    assert approximate.delta(leaky, 3.0).value >= 1e-7


def test_two_directions():
    """Copies of one step pair up; in a mixed plan only basic composition is known to hold."""
    sampled = PoissonSampled(Laplace(scale=1.0), rate=0.1)
    copies = (50 * sampled).directions()
    assert len(copies) == 2
    largest = max(composition.supremum for composition in copies)
    assert optimal.epsilon(copies, 0.0).value == pytest.approx(largest)
    assert optimal.epsilon(copies, 1e-6).value < approximate.epsilon(copies, 1e-6).value < largest
    mixed = (50 * sampled + PoissonSampled(Laplace(scale=2.0), rate=0.3)).directions()
    basic = approximate.epsilon(mixed, 1e-6)
    assert basic.theorem == approximate.COMPOSITIONS["basic"]
    assert basic.value == approximate.epsilon(mixed, 1e-6, "basic").value
    for name in ("advanced", "kairouz"):
        with pytest.raises(Unanswerable, match="both directions"):
            approximate.epsilon(mixed, 1e-6, name)
        with pytest.raises(Unanswerable, match="both directions"):
            approximate.delta(mixed, 1.0, name)
    assert approximate.delta(mixed, 1.0).value == approximate.delta(mixed, 1.0, "basic").value
    with pytest.raises(Unanswerable, match="several"):
        optimal.epsilon(mixed, 1e-6)


def test_sampled_gaussian_through_renyi():
    plan = dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=1000).directions()
    answer = renyi.epsilon(plan, 1e-5)
    assert 1.8282366 < answer.value < 2.2  # the certified optimum of the specification's first workload is 1.82823666
    assert answer.order is not None
    assert renyi.epsilon(plan, 1e-5, orders=range(2, 64)).value > 1.8282366
    with pytest.raises(Unanswerable, match="no known mu"):
        gaussian.epsilon(plan, 1e-5)


class Heavy(MomentBound):
    """All moments are infinite."""

    def log_moment(self, t):
        return np.full_like(t, np.inf)

    mean = 1.0


class Capped(MomentBound):
    """Known up to order 3 only."""

    def log_moment(self, t):
        return np.where(np.asarray(t) <= 2.0, 0.01 * np.asarray(t), np.inf)

    mean = 0.01


def test_moments_that_end():
    heavy = (Composition(((Heavy(), 1),)),)
    with pytest.raises(Unanswerable, match="all orders"):
        renyi.epsilon(heavy, 1e-5)
    assert renyi.epsilon(heavy, 0.0).value == math.inf
    assert renyi.delta(heavy, 1.0).value == 1.0
    capped = (Composition(((Capped(), 1),)),)
    answer = renyi.epsilon(capped, 1e-5, "mironov")
    assert answer.order == pytest.approx(3.0, rel=1e-6)
    assert answer.value == pytest.approx(0.01 + math.log(1e5) / 2, rel=1e-6)
    with pytest.raises(Unanswerable, match="none of the orders"):
        renyi.epsilon(capped, 1e-5, orders=[4.0, 8.0, math.inf])
    with pytest.raises(Unanswerable, match="Renyi divergences only"):
        approximate.epsilon(capped, 1e-5)


class Hesitant(MomentBound):
    """Refuses orders that are too dear."""

    def log_moment(self, t):
        if np.any(np.asarray(t) > 50.0):
            raise Unanswerable("too many panels")
        return 0.01 * t * (t + 1)

    mean = 0.01


def test_orders_that_a_law_cannot_compute_are_not_chosen():
    plan = (Composition(((Hesitant(), 1),)),)
    answer = renyi.epsilon(plan, 1e-5, "mironov")
    assert answer.value == pytest.approx(0.01 + 2 * math.sqrt(0.01 * math.log(1e5)), rel=1e-11)
    assert renyi.delta(plan, answer.value, "mironov").value == pytest.approx(1e-5, rel=1e-9)
    beyond = renyi.epsilon(plan, 1e-100, "mironov")
    assert beyond.order == pytest.approx(51.0, rel=1e-6)


class Stubborn(Capped):
    """A profile that stays at one half."""

    determined = True

    def log_profile(self, epsilon):
        return np.full_like(epsilon, math.log(0.5)), np.full_like(epsilon, math.log(0.5))


def test_cutting_a_profile():
    stubborn = (Composition(((Stubborn(), 1),)),)
    with pytest.raises(Unanswerable, match="does not fall"):
        approximate.epsilon(stubborn, 0.1, "basic")
    assert approximate.epsilon(stubborn, 0.75, "basic").value == 0.0


def test_orders_and_names_are_checked():
    for bad in ([], [1.0], [0.5], [math.nan], ["2"]):
        with pytest.raises(InvalidArgument, match="orders"):
            renyi.epsilon(LAPLACE, 1e-5, orders=bad)
    with pytest.raises(InvalidArgument, match="conversion"):
        renyi.delta(LAPLACE, 1.0, conversion="printed")
    with pytest.raises(InvalidArgument, match="composition"):
        approximate.epsilon(LAPLACE, 1e-5, composition="printed")
    with pytest.raises(InvalidArgument, match="order"):
        renyi.divergence(LAPLACE, np.array([0.5]))
    assert np.all(np.isinf(renyi.divergence(ApproxDP(0.1, 1e-9).directions(), np.array([1.0, 2.0, math.inf]))))
    with pytest.raises(InvalidArgument, match="order"):
        alpha.divergence(LAPLACE, np.array([math.inf]))
    assert renyi.epsilon(LAPLACE, 1e-5, orders=[math.inf]).value == pytest.approx(4.0)
    assert renyi.delta(LAPLACE, 4.5, orders=[math.inf]).value == 0.0
    assert renyi.delta(LAPLACE, 3.0, orders=[math.inf]).value == 1.0


def test_alpha_calculus_checks_and_ends():
    assert alpha.log_power(2.0, 0.0) == alpha.self_compose(2.0, 0.0, 5) == alpha.from_renyi(2.0, 0.0) == 0.0
    assert alpha.self_compose(300.0, 1.0, 10**6) == math.inf
    assert alpha.log_power(300.0, 1e308) == pytest.approx(math.log(300 * 299) + math.log(1e308))
    assert alpha.log_power(1e5, 1e307) == pytest.approx(math.log(1e5) + math.log(1e5 - 1) + math.log(1e307))
    assert alpha.from_renyi(1e4, 0.0705) == pytest.approx(math.exp(9999 * 0.0705 - math.log(1e4 * 9999)), rel=1e-9)
    for call in (
        lambda: alpha.compose(1.0, 0.1, 0.1),
        lambda: alpha.to_renyi(math.inf, 0.1),
        lambda: alpha.smallest_epsilon(0, 1.0, 1e-5),
        lambda: alpha.smallest_epsilon(1, 1.0, 1e-5, orders=[math.inf]),
        lambda: alpha.smallest_sigma(1, 0.0, 1e-5),
        lambda: alpha.epsilon_from_alpha(2.0, 0.1, 0.0),
    ):
        with pytest.raises(InvalidArgument):
            call()
    with pytest.raises(CannotCalibrate, match="leaves room"):
        alpha.smallest_sigma(1, 0.01, 1e-5, orders=range(2, 301))


def test_gaussian_ends():
    assert gaussian.mu((Composition(()),)) == 0.0
    assert gaussian.epsilon_mu(0.0, 0.0) == gaussian.delta_mu(0.0, 0.0) == 0.0
    assert gaussian.epsilon_mu(1.0, 0.0) == math.inf
    assert gaussian.mu_for(1.0, 0.0) == 0.0
    assert gaussian.mu_for(1.0, 1.0) == math.inf
    assert gaussian.delta_mu(1e-200, 0.0) <= 1e-150  # raised to the smallest mu that is computed with: safe
    assert gaussian.log_delta_mu(0.1, 100.0) < -400000
    with pytest.raises(InvalidArgument, match="mu"):
        gaussian.epsilon_mu(1e101, 0.1)
    with pytest.raises(InvalidArgument, match="below 1"):
        gaussian.classic_sigma(1.0, 1e-5)
    with pytest.raises(InvalidArgument, match="delta"):
        gaussian.sigma_for(1.0, 0.0)
    with pytest.raises(CannotCalibrate, match="no Gaussian noise"):
        gaussian.sigma_for(0.0, 1e-310)
    for epsilon in (0.0, 1e-6, 0.5, 5.0, 100.0):
        for delta in (1e-300, 1e-15, 1e-5, 0.5):
            sigma = gaussian.sigma_for(epsilon, delta, sensitivity=3.0)
            assert gaussian.delta_mu(3.0 / sigma, epsilon) <= delta * (1 + 1e-11)


@pytest.mark.parametrize(
    "call",
    [
        lambda plan: renyi.epsilon(plan, 1e-5),
        lambda plan: approximate.epsilon(plan, 1e-5, "basic"),
        lambda plan: concentrated.rho(plan),
        lambda plan: gaussian.mu(plan),
        lambda plan: attacks.accuracy(plan),
        lambda plan: attacks.true_positive_rate(plan, 0.1),
        lambda plan: bayes.after_alarm(plan, 0.5, 0.1),
        lambda plan: outcomes.of_plan(plan, 0.1),
        lambda plan: group.profile(plan, 2),
    ],
)
def test_directions_are_accepted_and_deprecated_where_a_plan_is_taken(call):
    plan = 3 * dp.Laplace(5.0)
    with pytest.warns(DeprecationWarning, match="pass the plan itself") as caught:
        old = call(plan.directions())
    assert {one.filename for one in caught} == {__file__}  # the line of the caller, not of the library
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = call(plan)
        plan.renyi(2.0), plan.rho(), dp.compare(plan, delta=1e-5), dp.convert(plan, to="zcdp")
    assert repr(old) == repr(new) or callable(new)
