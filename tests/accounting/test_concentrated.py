"""Laws (hypothesis): the smallest rho against a search at 40 digits. F45 F46 F47."""

import math
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptally.accounting import concentrated, renyi
from dptally.accounting.concentrated import _search, smallest_rho
from dptally.errors import InvalidArgument, Unanswerable
from dptally.law import Composition, Law
from dptally.mechanisms import ApproxDP, Gaussian, Laplace, PoissonSampled, PureDP


def exact_ratio(parts, order_minus_one):
    """sum of K_j(l) / (l (l+1)) for ("gauss", mu), ("laplace", t), ("rr", e) parts."""
    l = order_minus_one  # noqa: E741
    total = mp.mpf(0)
    for kind, value, count in parts:
        x = mp.mpf(value)
        if kind == "gauss":
            total += count * x * x / 2 * l * (l + 1)
        elif kind == "laplace":
            total += count * mp.log((l + 1) / (2 * l + 1) * mp.exp(l * x) + l / (2 * l + 1) * mp.exp(-(l + 1) * x))
        else:
            total += count * mp.log((mp.exp((l + 1) * x) + mp.exp(-l * x)) / (1 + mp.exp(x)))
    return total / (l * (l + 1))


def exact_rho(parts):
    with mp.workdps(40):
        grid = [mp.mpf(10) ** (mp.mpf(i) / 3) for i in range(-40, 40)]
        i = max(range(len(grid)), key=lambda i: exact_ratio(parts, grid[i]))
        low, high = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
        for _ in range(45):
            first, second = low + (high - low) / 3, high - (high - low) / 3
            if exact_ratio(parts, first) < exact_ratio(parts, second):
                low = first
            else:
                high = second
        return exact_ratio(parts, low)


def plan_of(parts):
    build = {
        "gauss": lambda x: Gaussian(sigma=1.0, sensitivity=x),
        "laplace": lambda x: Laplace(scale=1.0, sensitivity=x),
        "rr": PureDP,
    }
    return sum(count * build[kind](value) for kind, value, count in parts)


parts = st.lists(
    st.tuples(
        st.sampled_from(["gauss", "laplace", "rr"]),
        st.floats(1e-3, 30).map(lambda x: float(f"{x:.4g}")),
        st.integers(1, 1000),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=25, deadline=None)
@given(parts)
def test_smallest_rho_is_an_upper_bound_and_tight(chosen):
    truth = exact_rho(chosen)
    result = concentrated.rho(plan_of(chosen).directions())
    assert truth * (1 - 1e-15) <= result <= truth * (1 + 4e-12)


@settings(max_examples=20, deadline=None)
@given(parts)
def test_the_search_agrees_with_the_closed_forms(chosen):
    """Branch and bound by itself, as for a law without a closed form."""
    (composition,) = plan_of(chosen).directions()
    closed = smallest_rho(composition)
    searched = _search(composition)
    assert closed * (1 - 1e-11) <= searched <= closed * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(parts, parts)
def test_F47_rho_is_subadditive_and_monotone(first, second):
    one, two = plan_of(first), plan_of(second)
    together = concentrated.rho((one + two).directions())
    separate = concentrated.rho(one.directions()), concentrated.rho(two.directions())
    assert max(separate) * (1 - 1e-11) <= together <= sum(separate) * (1 + 1e-11)


@settings(max_examples=40, deadline=None)
@given(parts, st.floats(1.0001, 200))
def test_F45_every_order_lies_below_rho_times_order(chosen, order):
    plan = plan_of(chosen).directions()
    assert renyi.divergence(plan, np.array([order]))[0] <= concentrated.rho(plan) * order * (1 + 1e-13)


@dataclass(frozen=True)
class Opaque(Law):
    """A law that tells nothing but K and where its loss ends."""

    inner: Law
    end: float

    def log_moment(self, t):
        return self.inner.log_moment(t)

    @property
    def mean(self):
        return self.inner.mean

    @property
    def supremum(self):
        return self.end

    @property
    def infimum(self):
        return -self.end

    def log_profile(self, epsilon):
        return self.inner.log_profile(epsilon)

    def tail(self, loss):
        return self.inner.tail(loss)


class Silent(Opaque):
    mean = 0.0

    def log_moment(self, t):
        return np.zeros_like(t)


def test_a_law_without_a_closed_form_is_searched_or_refused():
    (laplace,) = Laplace(scale=0.5).laws()
    opaque = Opaque(laplace, 2.0)
    mixed = Composition.of([(opaque, 3), (Gaussian(2.0).laws()[0], 1)])
    assert concentrated.rho([mixed]) == pytest.approx(3 * smallest_rho(Composition.of([(laplace, 1)])) + 0.125)
    (gentle,) = Laplace(scale=1e8).laws()  # the ratio stays level up to orders near 1e8
    small = concentrated.rho([Composition.of([(Opaque(gentle, 1e-8), 1)])])
    assert small == pytest.approx(smallest_rho(Composition.of([(gentle, 1)])), rel=1e-9)
    unbounded = Composition.of([(Opaque(Gaussian(1.0).laws()[0], math.inf), 1)])
    with pytest.raises(Unanswerable, match="cannot be certified"):
        concentrated.rho([unbounded])
    assert concentrated.rho([Composition.of([(Silent(laplace, 0.0), 2)])]) == 0.0


class HeavyLaw(Opaque):
    def log_moment(self, t):
        return np.where(np.asarray(t) > 3.0, np.inf, t)


def test_an_infinite_moment_means_no_rho():
    assert concentrated.rho([Composition.of([(HeavyLaw(Gaussian(1.0).laws()[0], math.inf), 1)])]) == math.inf


def test_mass_at_infinity_means_no_rho():
    plan = ApproxDP(0.1, 1e-9).directions()
    assert concentrated.rho(plan) == math.inf
    with pytest.raises(Unanswerable, match="not zCDP"):
        concentrated.epsilon(plan, 1e-5)


def test_the_conversions_invert_each_other_on_the_safe_side():
    for rho in (1e-12, 1e-4, 0.3, 5.0, 1e4):
        for delta in (1e-300, 1e-15, 1e-5, 0.3):
            for name in concentrated.CONVERSIONS:
                epsilon = concentrated.epsilon_from_rho(rho, delta, name).value
                if epsilon > 0:
                    back = concentrated.delta_from_rho(rho, epsilon, name).value
                    assert back == pytest.approx(delta, rel=1e-6)
                    assert concentrated.rho_for(epsilon, delta, name) == pytest.approx(rho, rel=1e-6)
    assert concentrated.epsilon_from_rho(0.0, 1e-5).value == 0.0
    assert concentrated.epsilon_from_rho(0.5, 1.0).value == 0.0
    assert concentrated.epsilon_from_rho(0.5, 0.0).value == math.inf
    assert concentrated.delta_from_rho(0.0, 0.0).value == 0.0
    assert concentrated.delta_from_rho(0.5, 0.1, "bun-steinke").value == 1.0
    assert concentrated.rho_from_pure(0.0) == 0.0
    assert concentrated.rho(((Composition(())),)) == 0.0
    with pytest.raises(InvalidArgument, match="conversion"):
        concentrated.epsilon_from_rho(0.5, 1e-5, "printed")


def _sampled_moment(rate: float, sigma: float, order: int) -> mp.mpf:
    """K(l) of the sampled Gaussian, REMOVE, at a whole l: the binomial sum of E[(1 - q + q R)^(l+1)]."""
    q, a = mp.mpf(rate), order + 1
    terms = (
        mp.binomial(a, k) * (1 - q) ** (a - k) * q**k * mp.exp(k * (k - 1) / (2 * mp.mpf(sigma) ** 2))
        for k in range(a + 1)
    )
    return mp.log(mp.fsum(terms))


@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.3, 0.6), (1e-4, 3.0), (0.9, 2.0)])
def test_the_slack_of_sampled_gaussians(rate: float, sigma: float) -> None:
    law = PoissonSampled(Gaussian(sigma), rate).laws()[0]
    closed = law.closed_rho()
    assert closed is not None
    before = 0.0
    with mp.workdps(40):
        for order in (1, 2, 5, 17, 60, 200):
            slack = law.rho_slack(order)
            assert before <= slack
            assert _sampled_moment(rate, sigma, order) <= (order + 1) * (mp.mpf(closed) * order - mp.mpf(slack))
            before = slack
        # a slack that is a little larger is refuted at high orders
        order, more = 2000, 1.02 * law.rho_slack(2000)
        assert _sampled_moment(rate, sigma, order) > (order + 1) * (mp.mpf(closed) * order - mp.mpf(more))


@pytest.mark.parametrize(
    ("steps", "rate", "sigma", "scale", "count", "at_infinity"),
    [(1000, 0.01, 1.0, 5.0, 50, True), (3, 0.5, 1.0, 0.2, 4, False), (1, 0.9, 0.7, 0.1, 3, False)],
)
def test_rho_of_training_beside_bounded_losses(steps, rate, sigma, scale, count, at_infinity) -> None:
    plan = steps * PoissonSampled(Gaussian(sigma), rate) + count * Laplace(scale)
    found = plan.rho()
    with mp.workdps(40):
        most = mp.mpf(steps) / (2 * mp.mpf(sigma) ** 2)  # the limit at infinite orders
        for order in (1, 2, 3, 5, 8, 13, 40, 150, 500):
            ratio = steps * _sampled_moment(rate, sigma, order) / (order * (order + 1))
            most = max(most, ratio + exact_ratio([("laplace", 1 / mp.mpf(scale), count)], mp.mpf(order)))
        assert most <= found
        assert not at_infinity or found <= most * (1 + mp.mpf("1e-9"))
