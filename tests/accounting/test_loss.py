"""Golden and contract: the privacy loss of a plan as a random variable, against truths of our own.

Truths: the normal distribution by mpmath, finite laws by enumeration in exact fractions or 50 digits, and numerical
integration of sampled Gaussian noise. None of them uses the library.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import pytest
from mpmath import exp, log, mp, mpf, ncdf, npdf, quad

import dptally as dp
from depth import SOAK
from dptally.accounting.loss import Loss


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mp.workdps(30):
        yield


def response(p: float) -> list[tuple[mpf, mpf]]:
    """(loss, probability) of randomized response."""
    truth = mpf(p)
    return [(log(truth / (1 - truth)), truth), (log((1 - truth) / truth), 1 - truth)]


def enumerated(*steps: list[tuple[mpf, mpf]]) -> list[tuple[mpf, mpf]]:
    out = []
    for choice in product(*steps):
        weight = mpf(1)
        for _, mass in choice:
            weight *= mass
        out.append((sum(loss for loss, _ in choice), weight))
    return out


def check_moments(loss: Loss, atoms: list[tuple[mpf, mpf]]) -> None:
    mean = sum(x * m for x, m in atoms)
    variance = sum((x - mean) ** 2 * m for x, m in atoms)
    assert loss.mean.lower <= mean <= loss.mean.upper <= float(mean) * (1 + 1e-11)
    assert loss.variance.lower <= variance <= loss.variance.upper
    assert loss.variance.width <= 1e-8 * float(variance)


def test_one_gaussian_and_many_are_normal() -> None:
    for plan, mu in ((dp.Gaussian(2.0), mpf("0.5")), (9 * dp.Gaussian(2.0), mpf("1.5"))):
        loss = plan.loss()
        assert loss.mean.lower <= mu**2 / 2 <= loss.mean.upper
        assert loss.variance.lower <= mu**2 <= loss.variance.upper
        for x in (-4.0, -0.3, 0.0, 0.7, 3.0, 11.0):
            truth = ncdf(mu / 2 - mpf(x) / mu)
            box = loss.tail(x)
            assert box.lower <= truth <= box.upper
            assert box.width <= 1e-11 * box.upper
            below = loss.cdf(x)
            assert below.lower <= 1 - truth <= below.upper
        for p in (1e-9, 0.2, 0.5, 0.999):
            box = loss.quantile(p)
            assert (
                ncdf(mpf(box.lower) / mu - mu / 2)
                <= p * (1 + 1e-14)
                <= ncdf(mpf(box.upper) / mu - mu / 2) * (1 + 1e-13)
            )
            assert box.width < 5e-6
        far = loss.exceeded_with(1e-40)
        assert ncdf(mu / 2 - mpf(far.upper) / mu) <= 1e-40 <= ncdf(mu / 2 - mpf(far.lower) / mu) * (1 + mpf("1e-12"))


def test_probabilistic_dp_of_gaussian_noise() -> None:
    """ADP paper, Def. 2, corrected: another notion than (epsilon, delta)-DP, and a larger epsilon (E000-2)."""
    found = dp.Gaussian(1.0).loss().exceeded_with(1e-5)
    closed = dp.accounting.gaussian.probabilistic_epsilon(1.0, 1e-5)
    assert found.lower <= closed <= found.upper * (1 + 1e-12)
    assert found.upper == pytest.approx(4.7649, abs=1e-4)
    assert found.lower > dp.Gaussian(1.0).epsilon(1e-5)


def test_finite_laws_by_enumeration() -> None:
    plan = 5 * dp.RandomizedResponse(0.75)
    atoms = enumerated(*[response(0.75)] * 5)
    for direction in ("remove", "add"):
        loss = plan.loss(direction)
        check_moments(loss, atoms)
        places = sorted({round(float(x), 9) for x, _ in atoms})
        between = [0.5 * (a + b) for a, b in pairwise(places) if b - a > 1e-3]
        for x in [-10.0, *between, 10.0]:
            truth = sum(m for at, m in atoms if at <= x)
            box = loss.cdf(x)
            assert box.lower <= truth <= box.upper
            assert box.width < 1e-4
        for p in (0.05, 0.3, 0.77):
            total, exact = mpf(0), mpf(0)
            for x, m in sorted(atoms):
                total += m
                if total >= p:
                    exact = x
                    break
            box = loss.quantile(p)
            assert box.lower - 1e-12 <= exact <= box.upper + 1e-12


def test_sampled_gaussian_by_integration() -> None:
    """One step at rate q: L = log(1 - q + q exp((2y - 1)/(2 s^2))) with y from the mixture (remove) or N(0, s^2)."""
    q, s = mpf("0.1"), mpf(1)
    plan = dp.PoissonSampled(dp.Gaussian(1.0), 0.1)

    def ratio(y: mpf) -> mpf:
        return 1 - q + q * exp((2 * y - 1) / (2 * s * s))

    for direction in ("remove", "add"):
        loss = plan.loss(direction)
        sign = 1 if direction == "remove" else -1
        density = (lambda y: npdf(y) * ratio(y)) if direction == "remove" else npdf
        nodes = [-12, -4, 0, 2, 4, 14]
        mean = quad(lambda y, d=density, s=sign: d(y) * s * log(ratio(y)), nodes)
        second = quad(lambda y, d=density: d(y) * log(ratio(y)) ** 2, nodes)
        assert loss.mean.lower * (1 - 1e-10) <= mean <= loss.mean.upper * (1 + 1e-10)
        assert loss.variance.lower <= (second - mean**2) * (1 + mpf("1e-10"))
        assert (second - mean**2) * (1 - mpf("1e-10")) <= loss.variance.upper
        for x in (-0.08, 0.05, 0.4):
            share = (exp(sign * mpf(x)) - 1 + q) / q
            cut = s * s * log(share) + mpf(1) / 2 if share > 0 else mpf(-30)  # no loss beyond: q is all there is
            above = quad(density, [cut, 0, 3, 16] if cut < 0 else [cut, cut + 3, 16]) if share > 0 else mpf(1)
            above = above if sign > 0 else 1 - above
            box = loss.tail(x)
            assert box.lower <= above * (1 + mpf("1e-12"))
            assert above <= box.upper * (1 + mpf("1e-12"))
            assert box.width < 2e-5


def test_next_to_an_atom() -> None:
    """The doubles at + h and at - h are not h away: tails were off by 1e-10 of themselves, a thousandth at 13 nats."""
    draw = np.random.default_rng(5)
    for epsilon in (0.5, 1.7151446650770867, 12.928880614036153, *(10 ** draw.uniform(-3, 1.4, 12)).tolist()):
        loss = dp.PureDP(epsilon).loss()
        lie = 1 / (1 + exp(mpf(epsilon)))  # the chance of -epsilon; that of epsilon is the rest
        for at in (-epsilon, math.nextafter(-epsilon, 0.0), 0.0, math.nextafter(epsilon, 0.0)):
            assert loss.cdf(at).lower <= lie <= loss.cdf(at).upper, (epsilon, at)
            assert loss.tail(at).lower <= 1 - lie <= loss.tail(at).upper, (epsilon, at)
        assert tuple(loss.quantile(1.0)) == (epsilon, epsilon)


def test_the_mass_at_infinity() -> None:
    loss = (2 * dp.ApproxDP(0.5, 0.01)).loss()
    assert loss.mean.upper == loss.variance.upper == math.inf
    mass = 0.0199  # 1 - 0.99^2
    assert loss.tail(math.inf).lower <= mass <= loss.tail(math.inf).upper * (1 + 1e-15)
    assert loss.quantile(0.99) == loss.exceeded_with(0.01) == dp.Interval(math.inf, math.inf)
    assert loss.quantile(0.9).upper == pytest.approx(1.0)
    assert loss.tail(-math.inf) == dp.Interval(1.0, 1.0)
    assert loss.cdf(math.inf).upper == pytest.approx(1 - mass)
    assert np.isinf(loss.sample(2000, seed=3)).mean() == pytest.approx(mass, abs=0.02)


def test_the_ends_of_the_support() -> None:
    loss = dp.Laplace(1.0).loss()
    assert loss.quantile(0.0).lower == -math.inf
    assert loss.quantile(1.0).upper == loss.exceeded_with(0.0).upper == 1.0
    assert loss.tail(1.0) == dp.Interval(0.0, 0.0)
    assert loss.cdf(-1.5) == dp.Interval(0.0, 0.0)
    assert loss.exceeded_with(1.0).upper == -math.inf
    assert dp.Gaussian(1.0).loss().quantile(1.0).upper == math.inf
    # the atom 1/2 at the largest loss: P(L > x) = 1/2 + (1/4) int_x^1 e^{-(1 - l)/2} dl
    for x in (-0.5, 0.0, 0.5):
        box = loss.tail(x)
        truth = 1 - 0.5 * math.exp(-0.5 * (1 - x))
        assert box.lower <= truth * (1 + 1e-15)
        assert truth * (1 - 1e-15) <= box.upper
        assert box.width < 1e-6


def test_a_pair_that_is_not_known_both_ways_still_answers() -> None:
    loss = (2 * dp.RandomizedResponse(0.75)).loss()
    blind = Loss(loss.composition, None, "remove")
    for x in (-1.0, -0.1, 0.0, 0.5):
        narrow, wide = loss.cdf(x), blind.cdf(x)
        assert wide.lower <= narrow.upper
        assert narrow.lower <= wide.upper


@pytest.mark.parametrize(
    "plan",
    [dp.Laplace(2.0), 5 * dp.Laplace(2.0) + 2 * dp.Gaussian(3.0), 20 * dp.PoissonSampled(dp.Gaussian(1.0), 0.05)],
    ids=repr,
)
def test_samples_and_density_follow_the_certified_distribution(plan: dp.Mechanism) -> None:
    loss = plan.loss()
    drawn = loss.sample(40_000, seed=1)
    assert (drawn == loss.sample(40_000, seed=1)).all()
    deviation = math.sqrt(loss.variance.upper)
    assert drawn.mean() == pytest.approx(loss.mean.midpoint, abs=4 * deviation / 200)
    for share in (-1.0, 0.0, 1.0):
        x = loss.mean.midpoint + share * deviation
        assert np.mean(drawn <= x) == pytest.approx(loss.cdf(x).midpoint, abs=0.0125)  # 5 deviations
    wrong = drawn * 1.1
    assert abs(np.mean(wrong**2) - np.mean(drawn**2)) > 0.1 * np.mean(drawn**2)  # the check has power
    inside = np.linspace(loss.quantile(1e-4).upper, loss.quantile(0.9999).lower, 401)
    atoms = 0.5 * (1 + math.exp(-0.5)) if plan == dp.Laplace(2.0) else 0.0
    area = np.trapezoid(loss.density(inside), inside)
    assert area == pytest.approx(1.0 - atoms, abs=0.02)
    assert isinstance(loss.density(0.1), float)


def test_bad_input() -> None:
    plan = 3 * dp.Laplace(1.0)
    with pytest.raises(dp.InvalidArgument, match="direction"):
        plan.loss("replace")
    with pytest.raises(dp.Unanswerable, match="Renyi"):
        dp.ZCDP(0.5).loss()
    loss = plan.loss()
    for question in (lambda: loss.quantile(1.5), lambda: loss.quantile(math.nan), lambda: loss.cdf(math.nan)):
        with pytest.raises(dp.InvalidArgument):
            question()
    with pytest.raises(dp.InvalidType):
        loss.sample(2.5)  # type: ignore[arg-type]
    with pytest.raises(dp.InvalidArgument, match="at most"):
        dp.dpsgd(1.0, 0.01, 10**6).loss().sample(10**4)
    assert "remove" in repr(loss)


def quantile_of(atoms: list[tuple[mpf, mpf]], p: mpf) -> mpf:
    """The smallest x with P(L <= x) >= p, by adding up the atoms in order; equal losses of several paths together."""
    total = mpf(0)
    for x, mass in sorted(atoms):
        total += mass
        if total >= p:
            return x
    return sorted(atoms)[-1][0]


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_quantiles_of_finite_laws_at_and_around_every_jump(direction: str) -> None:
    """The search goes by values of the profile; atoms, plateaus, both signs, and probabilities on a jump."""
    plan = 3 * dp.RandomizedResponse(0.75) + 2 * dp.RandomizedResponse(0.5625) + dp.RandomizedResponse(0.9)
    atoms = enumerated(*3 * [response(0.75)], *2 * [response(0.5625)], response(0.9))
    loss = plan.loss(direction)
    total, asked = mpf(0), [1e-9, 1e-4, 0.5, 1 - 1e-9]
    for _, mass in sorted(atoms)[:-1]:
        total += mass
        asked += [float(total) * (1 - 1e-6), float(total) * (1 + 1e-6)]
    for p in asked[:: 1 if SOAK else 26]:
        found, truth = loss.quantile(min(p, 1.0)), quantile_of(atoms, mpf(min(p, 1.0)))
        slack = mpf("1e-12")  # the atoms stand as doubles give them
        assert found.lower - slack <= truth <= found.upper + slack, p
        assert found.width < 0.6
        over = loss.exceeded_with(min(p, 1.0))
        turned = quantile_of(atoms, 1 - mpf(min(p, 1.0)))
        assert over.lower - slack <= turned <= over.upper + slack, p


def test_quantiles_agree_with_the_distribution() -> None:
    """P(L <= x) straddles p between the ends of quantile(p), for losses with and without atoms."""
    plans = (10 * dp.Laplace(3.0), dp.dpsgd(1.0, 0.01, 1000))
    for plan in plans:
        loss = plan.loss()
        for p in (0.1, 0.99):
            box = loss.quantile(p)
            assert loss.cdf(math.nextafter(box.lower, -math.inf)).lower <= p <= loss.cdf(box.upper).upper
            assert box.width <= 0.02 * math.sqrt(loss.variance.upper)


def test_a_quantile_asks_few_values_of_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses with atoms are the hard ones: 111 values before the search went by tangents."""
    from dptally.accounting import certified

    asked = []
    made = certified.delta_profile

    def counted(composition: object) -> object:
        profile = made(composition)
        return lambda epsilon: (asked.append(epsilon), profile(epsilon))[1]

    monkeypatch.setattr(certified, "delta_profile", counted)
    for plan, p in (
        (20 * dp.DiscreteGaussian(4.0), 0.99),
        (dp.dpsgd(1.0, 0.01, 1000), 0.2),
        (50 * dp.Laplace(5.0), 0.99),
    ):
        asked.clear()
        plan.loss().quantile(p)
        assert len(asked) <= 24


@pytest.mark.parametrize("steps", [2, 3, 5])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_moments_that_are_bounded_from_above_say_so(steps: int, direction: str) -> None:
    """Randomised response in balls and bins, every outcome listed: the mean is not claimed to be its upper bound."""
    p = 0.8
    loss = dp.Sampled(dp.RandomizedResponse(p), dp.BallsInBins(steps), epochs=1).loss(direction)
    mean = square = 0.0
    for told in itertools.product((p / (1 - p), (1 - p) / p), repeat=steps):  # dP/dQ of one step that has the record
        without = math.prod(1 - p if ratio > 1 else p for ratio in told)
        ratio = math.fsum(told) / steps
        mass, value = (ratio * without, math.log(ratio)) if direction == "remove" else (without, -math.log(ratio))
        mean, square = mean + mass * value, square + mass * value * value
    assert loss.mean.lower <= mean <= loss.mean.upper <= 2 * mean
    assert loss.variance.lower <= square - mean**2 <= loss.variance.upper <= 8 * square


@pytest.mark.parametrize("sampler", [dp.RandomAllocation(8, 1), dp.BallsInBins(10)])
def test_laplace_steps_in_bins_have_moments_of_either_sign(sampler: dp.BallsInBins | dp.RandomAllocation) -> None:
    plan = dp.Sampled(dp.Laplace(2.0), sampler, epochs=1)
    assert 0 <= plan.loss().variance.lower <= plan.loss().variance.upper < 1
    (law, _), *_ = plan.directions()[0].parts
    below = np.asarray(law.log_moment(np.array([-3.0, -0.5, 0.0, 2.0])))
    assert below[1] == below[2] == 0
    assert below[0] > 0
    assert below[3] > 0


def test_losses_whose_other_side_underflows_have_moments() -> None:
    plan = dp.Profile(points=((0.0, 1.0), (1098612.288668114, 0.0)))
    for order in (1.5, 2.0, 10.0):
        assert plan.renyi(order) == pytest.approx(1098612.288668114, rel=1e-12)


def test_contests_of_vast_losses_are_turned_in_sixty_digits() -> None:
    """e^14407389 is beyond the exponents of the decimals that a program starts with."""
    plan = dp.NoisyMax(scale=3.311725609310743e-07, sensitivity=9.542664323627577, noise="laplace", monotone=True)
    assert plan.tradeoff(0.1) == 0.0
    assert plan.epsilon(1e-5) == pytest.approx(9.542664323627577 / 3.311725609310743e-07, rel=1e-6)
