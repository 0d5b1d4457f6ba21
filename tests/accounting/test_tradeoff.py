"""Laws (hypothesis) and golden: the trade-off function against Neyman-Pearson tests and the Gaussian closed
form. F67."""

import math
from dataclasses import dataclass
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptally as dp
from dptally.accounting import certified, tradeoff
from dptally.accounting.certified.big_jump import plan as jumps
from dptally.accounting.certified.lattice import bracket as lattice
from dptally.accounting.certified.lattice import decisive as few_steps
from dptally.errors import InvalidArgument, InvalidType
from dptally.law import Composition, Law, MomentBound
from dptally.laws.gaussian import GaussianLaw
from dptally.mechanisms import Gaussian, PoissonSampled, RandomizedResponse


@dataclass(frozen=True)
class FiniteLaw(Law):
    """The loss of two finite distributions, from first principles."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    def _losses(self):
        kept = [(math.log(a / b), a) for a, b in zip(self.p, self.q, strict=True) if a > 0 and b > 0]
        return np.array([loss for loss, _ in kept]), np.array([mass for _, mass in kept])

    def log_moment(self, t):
        losses, masses = self._losses()
        return np.log(np.sum(masses * np.exp(np.multiply.outer(t, losses)), axis=-1))

    @property
    def mean(self):
        losses, masses = self._losses()
        return float(losses @ masses)

    @property
    def infinity_mass(self):
        return math.fsum(a for a, b in zip(self.p, self.q, strict=True) if b == 0)

    @property
    def supremum(self):
        return float(np.nextafter(max(self._losses()[0]), np.inf))

    @property
    def infimum(self):
        return float(np.nextafter(min(self._losses()[0]), -np.inf))

    def log_profile(self, epsilon):
        losses, masses = self._losses()
        value = -np.expm1(np.minimum(np.subtract.outer(epsilon, losses), 0.0)) @ masses
        with np.errstate(divide="ignore"):
            return np.log(value * (1 - 1e-14)), np.log(value * (1 + 1e-14) + 1e-16 * (value > 0))

    def tail(self, loss):
        losses, masses = self._losses()
        return (np.less.outer(loss, losses) * masses).sum(axis=-1)


def neyman_pearson(p, q, x):
    """The largest P(S) over randomised tests with Q(S) = x."""
    order = sorted(range(len(p)), key=lambda i: -(p[i] / q[i] if q[i] > 0 else math.inf))
    power, left = 0.0, x
    for i in order:
        take = 1.0 if q[i] <= left else left / q[i]
        power, left = power + take * p[i], left - take * q[i]
        if left <= 0 and q[i] > 0:
            break
    return power


def compositions(p, q):
    return [Composition.of([(FiniteLaw(tuple(p), tuple(q)), 1)]), Composition.of([(FiniteLaw(tuple(q), tuple(p)), 1)])]


def gaussian(mu):
    return [Composition.of([(GaussianLaw(mu * mu), 1)])]


def upper_quantile(x):
    """z with P(N(0,1) > z) = x."""
    if x > 0.5:
        return -upper_quantile(1 - x)
    guess = mp.sqrt(-2 * mp.log(x)) if x < 0.1 else mp.mpf(0)
    return mp.findroot(lambda z: mp.log(mp.erfc(z / mp.sqrt(2)) / 2) - mp.log(x), guess)


def distributions(zeros):
    lists = st.integers(2, 5).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(0 if zeros else 1, 60), min_size=n, max_size=n)] * 2)
    )
    return lists.filter(
        lambda two: all(sum(w) for w in two) and any(a > 0 and b > 0 for a, b in zip(*two, strict=True))
    ).map(lambda two: tuple([v / sum(w) for v in w] for w in two))


RATES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1e-300, 1e-10, 1e-3, 0.5, 1 - 1e-10, 1.0]))


@settings(max_examples=80, deadline=None)
@given(distributions(zeros=True), RATES)
def test_never_above_the_neyman_pearson_test_and_close_to_it(pair, x):
    p, q = pair
    truth = 1 - max(neyman_pearson(p, q, x), neyman_pearson(q, p, x))
    f = tradeoff.false_negative_rate(compositions(p, q), x)
    tpr = tradeoff.true_positive_rate(compositions(p, q), x)
    assert f <= truth + 1e-13
    assert tpr >= 1 - truth - 1e-13
    assert 0 <= f <= 1 - x
    assert f >= truth - 2e-3  # corners are found by golden cuts: near, not exact


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-3, 30), st.one_of(st.floats(1e-12, 1 - 1e-12), st.sampled_from([1e-300, 1e-100, 1e-10])))
def test_single_gaussian_is_exact_to_rounding(mu, x):
    with mp.workdps(60):
        z = upper_quantile(mp.mpf(x))
        variance = mp.mpf(mu * mu)
        fnr, tpr = (mp.erfc(s * (mp.sqrt(variance) - z) / mp.sqrt(2)) / 2 for s in (1, -1))
        got_fnr, got_tpr = (
            tradeoff.false_negative_rate(gaussian(mu), x),
            tradeoff.true_positive_rate(gaussian(mu), x),
        )
        assert got_fnr <= fnr
        assert got_tpr >= tpr
        assert got_fnr == pytest.approx(float(fnr), rel=2e-12)
        assert got_tpr == pytest.approx(float(tpr), rel=2e-12)


def test_the_lines_alone_reach_the_gaussian_curve():
    """The search must find the tangent without the closed form's help."""
    for mu in (0.05, 1.0, 6.0):
        for x in (1e-300, 1e-10, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-9):
            composition = gaussian(mu)[0]
            above = tradeoff._OneSided(tradeoff._Known(composition), True, x, tradeoff._one_minus(x))
            below = tradeoff._OneSided(tradeoff._Known(composition), False, x, tradeoff._one_minus(x))
            above.search()
            below.search()
            tpr, fnr = tradeoff.gaussian_range(mu, x)
            assert min(above.tpr, below.tpr) == pytest.approx(tpr, rel=1e-6)
            assert max(above.fnr, below.fnr) == pytest.approx(fnr, rel=1e-6)
            assert len(above.log_delta) + len(below.log_delta) <= 40


@settings(max_examples=60, deadline=None)
@given(distributions(zeros=True), st.lists(RATES, min_size=1, max_size=6))
def test_the_curve_is_on_the_safe_side_of_the_neyman_pearson_test(pair, rates):
    p, q = pair
    tpr, fnr = tradeoff.detection_curve(compositions(p, q), np.array(rates))
    for x, largest, smallest in zip(rates, tpr, fnr, strict=True):
        truth = max(neyman_pearson(p, q, x), neyman_pearson(q, p, x))
        assert truth - 1e-13 <= largest <= 1
        assert 0 <= smallest <= 1 - truth + 1e-13


def test_the_curve_is_close_to_the_search_at_each_rate():
    rates = np.array([1e-6, 1e-3, 0.02, 0.3, 0.7, 0.99])
    for plan in (100 * PoissonSampled(Gaussian(1.0), 0.05), 20 * RandomizedResponse(0.55), 9 * Gaussian(3.0)):
        tpr, fnr = tradeoff.detection_curve(plan.directions(), rates)
        for x, largest, smallest in zip(rates.tolist(), tpr, fnr, strict=True):
            assert largest == pytest.approx(tradeoff.true_positive_rate(plan.directions(), x), rel=6e-2)
            assert smallest == pytest.approx(tradeoff.false_negative_rate(plan.directions(), x), abs=2e-3)
    bound = tradeoff.detection_curve([Composition.of([])], rates)
    assert bound[0] == pytest.approx(rates)


def test_a_composition_through_the_engine_meets_the_binomial_test():
    """20 runs of randomised response: the Neyman-Pearson test counts the truthful answers."""
    n, p = 20, 0.55
    weights = [math.comb(n, k) for k in range(n + 1)]
    present = [w * p**k * (1 - p) ** (n - k) for k, w in enumerate(weights)]
    absent = present[::-1]
    directions = (n * RandomizedResponse(p)).directions()
    for x in (1e-9, 1e-3, 0.05, 0.4, 0.8, 0.999):
        truth = neyman_pearson(present, absent, x)
        assert truth * (1 - 1e-12) <= tradeoff.true_positive_rate(directions, x) <= truth * 1.002
        fnr = tradeoff.false_negative_rate(directions, x)
        assert (1 - truth) * 0.99 - 1e-12 <= fnr <= 1 - truth + 1e-13


def test_a_sampled_step_uses_each_direction_for_its_own_lines():
    """P = (1-q) N(0,1) + q N(mu,1) against N(0,1): threshold tests in both orientations."""
    rate, mu = 0.3, 2.0
    directions = PoissonSampled(Gaussian(1 / mu), rate).directions()
    tail = mp.ncdf
    for cut in (-2.0, 0.0, 1.5, 4.0):
        mixed = (1 - rate) * tail(-cut) + rate * tail(mu - cut)
        for fpr, tpr in ((tail(-cut), mixed), (1 - mixed, tail(cut))):
            bound = tradeoff.true_positive_rate(directions, float(fpr))
            assert bound >= tpr * (1 - mp.mpf("1e-12"))
        if cut == 1.5:  # the worse orientation is met, not only bounded
            worse = max(mixed, tradeoff_of_mixture(rate, mu, tail(-cut)))
            met = tradeoff.true_positive_rate(directions, float(tail(-cut)))
            assert met == pytest.approx(float(worse), rel=1e-6)


def tradeoff_of_mixture(rate, mu, fpr):
    """The largest N(0,1)-probability of an event whose mixture probability is fpr: a lower tail."""
    cut = mp.findroot(lambda c: (1 - rate) * mp.ncdf(c) + rate * mp.ncdf(c - mu) - fpr, -1)
    return mp.ncdf(cut)


def test_nonincreasing_and_convex_enough():
    grid = np.concatenate([np.geomspace(1e-12, 0.01, 30), np.linspace(0.011, 1, 60)])
    for directions in (gaussian(1.3), compositions([0.6, 0.3, 0.1], [0.2, 0.3, 0.5])):
        values = [tradeoff.false_negative_rate(directions, float(x)) for x in grid]
        assert all(later <= earlier + 1e-5 for earlier, later in pairwise(values))
        assert values[-1] == 0.0


def test_ends():
    leaky = compositions([0.1, 0.5, 0.4], [0.0, 0.5, 0.5])
    assert tradeoff.true_positive_rate(leaky, 0.0) == pytest.approx(0.1, rel=1e-14)
    assert tradeoff.false_negative_rate(leaky, 0.0) == pytest.approx(0.9, rel=1e-14)
    assert tradeoff.false_negative_rate(leaky, 1.0) == 0.0
    assert tradeoff.true_positive_rate(leaky, 1.0) == 1.0
    assert tradeoff.false_negative_rate(gaussian(2.0), 0.0) == 1.0
    nothing = [Composition.of([])]
    assert tradeoff.true_positive_rate(nothing, 0.25) == pytest.approx(0.25, rel=1e-12)
    assert tradeoff.gaussian_range(math.inf, 0.1) == (1.0, 0.0)
    assert tradeoff.gaussian_range(1.0, 1.0) == (1.0, 0.0)


def test_advantage_is_the_total_variation():
    assert tradeoff.advantage(compositions([0.6, 0.4], [0.1, 0.9])) == pytest.approx(0.5, rel=1e-12)
    assert tradeoff.advantage(gaussian(1.0)) == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-12)


def test_a_direction_is_not_forgotten():
    """P never gives an output that Q gives with probability 0.3: only one direction knows it."""
    p, q = [0.5, 0.5, 0.0], [0.35, 0.35, 0.3]
    for two in (compositions(p, q), compositions(q, p)):
        assert tradeoff.true_positive_rate(two, 0.0) == pytest.approx(0.3, rel=1e-12)
        assert tradeoff.advantage(two) == pytest.approx(0.3, rel=1e-12)


@dataclass(frozen=True)
class Concentrated(MomentBound):
    rho: float

    def log_moment(self, t):
        return self.rho * t * (t + 1)

    @property
    def mean(self):
        return self.rho


def test_renyi_only_guarantees_answer_with_a_valid_bound():
    """rho-zCDP holds for the Gaussian of mu^2 = 2 rho, so its bounds must be outside the Gaussian's."""
    rho = 0.5
    directions = [Composition.of([(Concentrated(rho), 1)])]
    for x in (1e-10, 0.01, 0.3, 0.9):
        tpr, fnr = tradeoff.gaussian_range(math.sqrt(2 * rho), x)
        assert tpr <= tradeoff.true_positive_rate(directions, x) <= 20 * tpr
        assert 0 <= tradeoff.false_negative_rate(directions, x) <= fnr
    assert tradeoff.advantage(directions) >= math.erf(0.5 / math.sqrt(2))


@pytest.mark.parametrize("fpr", [-0.1, 1.1, math.nan, "0.1", True, None])
def test_bad_rates(fpr):
    with pytest.raises(InvalidArgument):
        tradeoff.false_negative_rate(gaussian(1.0), fpr)


def test_bad_directions():
    with pytest.raises(InvalidType):
        tradeoff.false_negative_rate([], 0.1)
    with pytest.raises(InvalidType):
        tradeoff.false_negative_rate([*gaussian(1.0), *gaussian(2.0), *gaussian(3.0)], 0.1)


def test_few_questions_for_one_rate(monkeypatch):
    """What was made for one slope serves its neighbours, and the second way to test is left when it cannot be worse."""
    made = []
    for module, name in ((jumps, "for_epsilon"), (lattice, "log_delta"), (few_steps, "for_epsilon")):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, f=original, n=module.__name__: made.append(n) or f(*a))
    directions = dp.dpsgd(0.8, 0.05, 3).directions()
    found = tradeoff.true_positive_rate(directions, 0.01)
    assert 0.02062331 < found < 0.02062332
    assert len(made) <= 12
    assert lattice.__name__ not in made


def test_a_profile_that_is_asked_often_answers_as_if_asked_once():
    composition = dp.dpsgd(0.8, 0.05, 3).directions()[0]
    profile = certified.delta_profile(composition)
    for epsilon in (0.0, 1.0, 0.55, 0.51, 0.497, 0.4979, 0.3, 2.3, 2.31, 0.001):
        often, once = profile(epsilon), certified.delta_interval([composition], epsilon)
        assert often.lower <= once.upper
        assert once.lower <= often.upper
        # 1e-6 of delta, or of eps where delta falls fast: up to five times as fast here
        assert often.upper - often.lower < 5e-6 * often.upper


@pytest.mark.parametrize(
    "plan", [dp.dpsgd(1.1, 0.01, 1000), 7 * dp.Laplace(3.0), dp.dpsgd(1.0, 0.02, 30) + dp.Laplace(2.0)], ids=str
)
def test_many_rates_at_once_are_as_sharp_as_each_by_itself(plan):
    rates = np.concatenate([[0.0, 1e-9, 1e-4], np.linspace(0.01, 0.99, 15), [1.0]])
    together = plan.tradeoff(rates)
    alone = np.array([plan.tradeoff(float(rate)) for rate in rates])
    assert np.all(np.diff(together) <= 1e-6)
    assert np.all(together >= alone - 1e-6)  # at a corner the one with more lines comes nearer
    assert np.all(together <= alone + 1e-3)
    # no line of the certified profile proves more
    for epsilon in (0.1, 0.5, 1.0):
        assert np.all(together >= np.exp(-epsilon) * (1 - rates - plan.delta(epsilon)) - 1e-6)
