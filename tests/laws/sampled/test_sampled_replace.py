"""Laws by brute force and golden (mpmath): Poisson sampling under REPLACE, the theorem and its three laws."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptally.errors import Unanswerable
from dptally.law import Law
from dptally.law.adjacency import REPLACE
from dptally.laws.atoms import AtomicLaw
from dptally.laws.sampled.gaussian.replace import SampledReplaceGaussianLaw
from dptally.laws.sampled.laplace import SampledReplaceLaplaceLaw
from dptally.mechanisms.approx_dp import ApproxDP
from dptally.mechanisms.discrete_gaussian import DiscreteGaussian
from dptally.mechanisms.discrete_laplace import DiscreteLaplace
from dptally.mechanisms.gaussian import Gaussian
from dptally.mechanisms.laplace import Laplace
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.poisson_sampled import PoissonSampled
from dptally.mechanisms.profile import Profile
from dptally.mechanisms.pure_dp import PureDP
from dptally.mechanisms.randomized_response import RandomizedResponse
from strategies import rates


def law_of(mechanism: Mechanism, rate: float) -> Law:
    (law,) = PoissonSampled(mechanism, rate, REPLACE).laws()
    return law


def delta(law: Law, epsilon: float) -> float:
    return math.exp(float(law.log_profile(np.asarray(epsilon, dtype=np.float64))[1])) + law.infinity_mass


# -- the theorem
# -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.1, 0.6])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
def test_no_two_contributions_do_better_than_opposite_ones(rate: float, epsilon: float) -> None:
    """Two-dimensional Gaussian noise, contributions v and v' anywhere in the unit disc, by a dense grid
    of outputs.
    """
    sigma = 1.0
    axis = np.linspace(-7, 8, 451)
    x, y = np.meshgrid(axis, axis)
    cell = (axis[1] - axis[0]) ** 2
    bound = delta(law_of(Gaussian(sigma), rate), epsilon)

    def density(v: np.ndarray) -> np.ndarray:
        plain = np.exp(-(x**2 + y**2) / 2) / (2 * math.pi)
        moved = np.exp(-((x - v[0]) ** 2 + (y - v[1]) ** 2) / 2) / (2 * math.pi)
        return (1 - rate) * plain + rate * moved

    generator = np.random.default_rng(7)
    best = 0.0
    contributions = [(np.array([1.0, 0.0]), np.array([-1.0, 0.0]))]
    for _ in range(12):
        angles, radii = generator.uniform(0, 2 * math.pi, 2), generator.choice([0.0, 0.5, 1.0, 1.0], 2)
        contributions.append(
            tuple(r * np.array([math.cos(a), math.sin(a)]) for a, r in zip(angles, radii, strict=True))
        )
    for v, other in contributions:
        spent = float(np.maximum(density(v) - math.exp(epsilon) * density(other), 0).sum()) * cell
        assert spent <= bound * (1 + 1e-3) + 1e-9
        best = max(best, spent)
    assert best == pytest.approx(bound, rel=5e-3)  # opposite contributions attain it


@given(
    rate=st.floats(0.05, 0.95),
    epsilon=st.floats(-1, 1.5),
    shifts=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)
def test_scalar_laplace_with_any_two_contributions(rate: float, epsilon: float, shifts: tuple[float, float]) -> None:
    y = np.linspace(-25, 25, 20001)
    step = y[1] - y[0]
    plain = np.exp(-np.abs(y)) / 2

    def mixed(shift: float) -> np.ndarray:
        return (1 - rate) * plain + rate * np.exp(-np.abs(y - shift)) / 2

    spent = float(np.maximum(mixed(shifts[0]) - math.exp(epsilon) * mixed(shifts[1]), 0).sum() * step)
    assert spent <= delta(law_of(Laplace(1.0), rate), epsilon) + 1e-5


@given(
    rate=st.floats(0.05, 1.0),
    price=st.floats(0.2, 6.0),
    ratios=st.lists(st.floats(0.05, 5.0), min_size=5, max_size=5),
)
def test_the_countermonotone_coupling_is_the_worst(rate: float, price: float, ratios: list[float]) -> None:
    """Five equally likely ratios: of all 120 couplings with themselves none spends more than the
    opposite order.
    """
    values = sorted(ratios)

    def spent(order: tuple[int, ...]) -> float:
        pairs = zip(values, (values[i] for i in order), strict=True)
        return sum(max(rate * (r - price * s) - (price - 1) * (1 - rate), 0.0) for r, s in pairs) / 5

    worst = max(spent(order) for order in itertools.permutations(range(5)))
    assert spent((4, 3, 2, 1, 0)) == pytest.approx(worst, rel=1e-12, abs=1e-15)


# -- Gaussian
# ----------------------------------------------------------------------------------------------------------


def true_gaussian_profile(q: float, sigma: float, epsilon: float, digits: int) -> mp.mpf:
    """P(L > eps) - e^eps Q(L > eps), the event being s > the root of log A(s) - log A(-s) = eps."""
    with mp.workdps(digits):
        rate, m, e = mp.mpf(q), 1 / mp.mpf(sigma), mp.mpf(epsilon)

        def a(s: mp.mpf) -> mp.mpf:
            return 1 + rate * mp.expm1(s * m - m * m / 2)

        low, high = mp.mpf(0), (abs(e) - mp.log(rate)) / m + m
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (low, middle) if mp.log(a(middle)) - mp.log(a(-middle)) > abs(e) else (middle, high)
        s = low
        for _ in range(6):
            share = rate * (mp.e ** (s * m - m * m / 2) / a(s) + mp.e ** (-s * m - m * m / 2) / a(-s))
            s -= (mp.log(a(s)) - mp.log(a(-s)) - abs(e)) / (share * m)
        s *= mp.sign(e)

        def above(y: mp.mpf) -> mp.mpf:
            return mp.erfc(y / mp.sqrt(2)) / 2

        return (1 - rate) * (1 - mp.e**e) * above(s) + rate * (above(s - m) - mp.e**e * above(s + m))


@given(q=rates, sigma=st.floats(-0.52, 1.3).map(lambda x: 10.0**x), place=st.floats(-3, 13))
def test_gaussian_profile_contains_the_truth(q: float, sigma: float, place: float) -> None:
    m = 1 / sigma

    def log_a(s: float) -> float:
        return float(np.logaddexp(math.log1p(-q), math.log(q) + s * m - m * m / 2))

    epsilon = log_a(place) - log_a(-place)
    lower, upper = (float(v) for v in SampledReplaceGaussianLaw(q, sigma).log_profile(np.asarray(epsilon)))
    truth = true_gaussian_profile(q, sigma, epsilon, 130)
    with mp.workdps(60):
        assert lower <= mp.log(truth) <= upper
    assert upper - lower < 1e-10


def test_gaussian_profile_at_tiny_delta() -> None:
    for q, sigma, epsilon in [(0.01, 1.0, 30.0), (0.5, 3.0, 11.0), (1e-6, 0.5, 40.0)]:
        lower, upper = (float(v) for v in SampledReplaceGaussianLaw(q, sigma).log_profile(np.asarray(epsilon)))
        with mp.workdps(60):
            truth = mp.log(true_gaussian_profile(q, sigma, epsilon, 700))
            assert truth < -300
            assert lower <= truth <= upper
        assert upper - lower < 1e-9


@pytest.mark.parametrize("sigma", [0.05, 1e-3])
def test_gaussian_profile_where_the_loss_is_flat(sigma: float) -> None:
    """Almost no noise: the loss is next to 0 or huge, delta is q until far out, and no epsilon is special."""
    law = SampledReplaceGaussianLaw(0.01, sigma)
    lower, upper = law.log_profile(np.array([-1e-300, 0.0, 5e-324, 1e-300, 1e-9, 1.0, 50.0]))
    assert lower == pytest.approx(math.log(0.01), rel=1e-9)
    assert upper == pytest.approx(math.log(0.01), rel=1e-6)
    assert (lower <= upper).all()
    assert float(law.density(np.asarray(0.0))) in (math.inf, pytest.approx(1e80, rel=1e80))
    assert float(law.log_moment(np.array([1e3]))[0]) == pytest.approx(0.5 * 1001 * 1000 / sigma**2, rel=1e-2)


@pytest.mark.parametrize(("q", "sigma"), [(0.01, 1.0), (1e-6, 0.4), (0.3, 8.0), (1 - 1e-6, 1.0)])
def test_gaussian_moments(q: float, sigma: float) -> None:
    law = SampledReplaceGaussianLaw(q, sigma)
    orders = [1e-5, 4.0, 20.0, -0.5, 0.5 + 2j]
    with mp.workdps(34 if q < 1e-3 else 24):
        rate, s = mp.mpf(q), mp.mpf(sigma)
        step = min(0.25, sigma / 5)
        for t in map(complex, orders):
            z = mp.mpmathify(t if t.imag else t.real)

            def summand(y: mp.mpf, z: mp.mpc = z) -> mp.mpc:
                up, down = (rate * mp.expm1(v / s - 1 / (2 * s * s)) for v in (y, -y))
                power = mp.e ** ((1 + z) * mp.log1p(up) - z * mp.log1p(down))
                return (power - 1 - (1 + z) * up + z * down) * mp.npdf(y)

            reach = 14 + max(1 + 2 * abs(t), 2) / sigma
            number = int(2 * reach / step)
            moment = mp.fsum(summand(mp.mpf(-reach + k * step)) for k in range(number + 1)) * step
            got = complex(law.log_moment(np.array([t if t.imag else t.real]))[0])
            if not t.imag:
                assert abs(got.real / mp.log1p(moment) - 1) < 4e-14
                continue
            # off the real line the error is relative to the moment on it
            size = abs(mp.expm1(float(law.log_moment(np.array([t.real]))[0])))
            assert abs(mp.expm1(mp.mpc(got)) - moment) < 4e-14 * abs(moment) + 2e-13 * size


def test_gaussian_moment_is_symmetric() -> None:
    """The law is the same in both directions: K(t) = K(-1 - t)."""
    law = SampledReplaceGaussianLaw(0.2, 0.9)
    t = np.array([0.3, 2.0, 7.0])
    assert law.log_moment(-1 - t) == pytest.approx(law.log_moment(t), rel=1e-12)
    assert np.isfinite(law.log_moment(np.array([1e4]))).all()


@pytest.mark.parametrize("sigma", [1e-60, 0.7, 9.0, 13.865196555674789, 20.0, 1e6, 1e130])
@pytest.mark.parametrize("q", [1e-100, 1.4743762364035744e-05, 0.999])
def test_losses_near_the_end_of_the_doubles(q: float, sigma: float) -> None:
    """No loss overflows: where its position leaves the doubles the profile is bounded by an earlier one."""
    law = SampledReplaceGaussianLaw(q, sigma)
    lower, upper = law.log_profile(np.array([0.0, 1.0, 1e50, 1e300, 1.7e308]))
    assert (lower <= upper).all()
    assert (np.diff(upper) <= 0).all()
    assert (law.tail(np.array([-1.7e308, 1.7e308])) == [1.0, 0.0]).all()


def test_gaussian_distribution() -> None:
    law = SampledReplaceGaussianLaw(0.3, 0.8)
    losses = np.linspace(-12, 14, 200001)
    weight = law.density(losses) * (losses[1] - losses[0])
    assert weight.sum() == pytest.approx(1.0, abs=1e-8)
    assert (weight * losses).sum() == pytest.approx(law.mean, rel=1e-7)
    assert float(law.tail(np.asarray(0.7))) == pytest.approx(weight[losses > 0.7].sum(), abs=1e-4)
    assert (law.supremum, law.infimum) == (math.inf, -math.inf)
    assert law.mean == pytest.approx(float(law.log_moment(np.array([1e-7]))[0]) * 1e7, rel=1e-5)


def test_whole_sample_is_the_doubled_shift() -> None:
    assert law_of(Gaussian(2.0), 1.0) == Gaussian(2.0, sensitivity=2.0).laws()[0]
    assert law_of(Laplace(2.0), 1.0) == Laplace(2.0, sensitivity=2.0).laws()[0]
    near = law_of(Gaussian(2.0), 1 - 2**-53)
    assert delta(near, 0.5) == pytest.approx(delta(Gaussian(2.0, sensitivity=2.0).laws()[0], 0.5), rel=1e-12)


@given(q=rates, epsilon=st.floats(0, 3))
def test_replacing_tells_more_than_removing(q: float, epsilon: float) -> None:
    """... and less than removing and then adding: (2 eps, (1 + e^eps) delta) by group privacy."""
    for mechanism in (Gaussian(1.0), Laplace(1.0)):
        replaced = law_of(mechanism, q)
        sides = PoissonSampled(mechanism, q).laws()
        for side in sides:
            assert delta(side, epsilon) <= delta(replaced, epsilon) * (1 + 1e-10)
        twice = (1 + math.exp(epsilon)) * max(delta(side, epsilon) for side in sides)
        assert delta(replaced, 2 * epsilon) <= twice * (1 + 1e-10)


# -- Laplace -----------------------------------------------------------------------------------------------
# ------------


@given(q=rates, reach=st.floats(-2, 1.5).map(lambda x: 10.0**x), place=st.floats(-1, 1), nudge=st.floats(-1, 1))
def test_laplace_profile_contains_the_truth(q: float, reach: float, place: float, nudge: float) -> None:
    law = law_of(Laplace(1.0, sensitivity=reach), q)
    assert isinstance(law, SampledReplaceLaplaceLaw)
    epsilon = place * law.supremum * (1 + nudge * 1e-12)
    with mp.workdps(60):
        rate, r, e = mp.mpf(q), mp.mpf(reach), mp.mpf(epsilon)
        bottom, top = (1 - rate) + rate * mp.e ** (-r), (1 - rate) + rate * mp.e**r

        def positive(size: mp.mpf) -> mp.mpf:
            """P(y > y*) - e^eps Q(y > y*) with the threshold y* where A(2 y* - r) = e^eps A(-r)."""
            if size >= mp.log(top / bottom):
                return mp.mpf(0)
            y = (mp.log((mp.e**size * bottom - (1 - rate)) / rate) + r) / 2
            plain, moved, away = mp.e ** (-y) / 2, 1 - mp.e ** (y - r) / 2, mp.e ** (-y - r) / 2
            return (1 - rate) * plain + rate * moved - mp.e**size * ((1 - rate) * plain + rate * away)

        truth = positive(e) if e >= 0 else 1 - mp.e**e + mp.e**e * positive(-e)
        lower, upper = (float(v) for v in law.log_profile(np.asarray(epsilon)))
        assert mp.e**lower <= truth <= mp.e**upper


@pytest.mark.parametrize(("q", "reach"), [(0.1, 1.0), (1e-6, 0.3), (0.9, 6.0)])
def test_laplace_moments_and_distribution(q: float, reach: float) -> None:
    law = law_of(Laplace(1.0, sensitivity=reach), q)
    with mp.workdps(40 if q < 1e-3 else 22):
        rate, r = mp.mpf(q), mp.mpf(reach)

        def ratios(y: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
            w = abs(y) - abs(y - r), abs(y) - abs(y + r)
            return rate * mp.expm1(w[0]), rate * mp.expm1(w[1])

        for t in [1e-4, 2.0, 25.0, 0.5 + 2j]:
            z = mp.mpmathify(t)

            def summand(y: mp.mpf, z: mp.mpc = z) -> mp.mpc:
                up, down = ratios(y)
                power = mp.e ** ((1 + z) * mp.log1p(up) - z * mp.log1p(down))
                return (power - 1 - (1 + z) * up + z * down) * mp.e ** (-abs(y)) / 2

            inside = mp.quad(summand, mp.linspace(-r, 0, 3)) + mp.quad(summand, mp.linspace(0, r, 3))
            ends = (summand(r) + summand(-r)) if r else 0
            truth = mp.log1p(inside + ends)
            assert abs(mp.mpmathify(complex(law.log_moment(np.array([t]))[0])) / truth - 1) < 4e-14
    edges = np.linspace(-law.supremum, law.supremum, 40001)
    middle = 0.5 * (edges[1:] + edges[:-1])
    weight = law.density(middle) * (edges[1] - edges[0])
    atoms = dict(law.atoms())
    assert weight.sum() + sum(atoms.values()) == pytest.approx(1.0, abs=1e-5)
    mean = (weight * middle).sum() + sum(loss * mass for loss, mass in atoms.items())
    assert mean == pytest.approx(law.mean, rel=1e-5)
    for cut in (0.3 * law.supremum, -0.4 * law.supremum, -2 * law.supremum, 2 * law.supremum):
        beyond = weight[middle > cut].sum() + sum(mass for loss, mass in atoms.items() if loss > cut)
        assert float(law.tail(np.asarray(cut))) == pytest.approx(beyond, abs=1e-4)
    assert law.breakpoints() == (0.0,)
    assert law.infimum == -law.supremum


def test_laplace_with_a_vast_reach() -> None:
    """With e^-r gone nothing overflows, and the largest loss is log q + r - log(1 - q)."""
    law = SampledReplaceLaplaceLaw(0.25, 800.0, 800.0)
    assert law.supremum == pytest.approx(800 + math.log(0.25) - math.log(0.75), rel=1e-12)
    assert delta(law, 1.0) == pytest.approx(0.25, rel=1e-9)
    assert np.isfinite(law.log_moment(np.array([0.5, 2.0]))).all()


# -- finitely many losses
# ----------------------------------------------------------------------------------------------


def enumerated(mechanism: Mechanism, rate: float, epsilon: float) -> mp.mpf:
    """The theorem's pair written out on a fine partition of (0, 1), with 40 digits."""
    (law,) = mechanism.laws()
    ratios = sorted([(mp.e ** mp.mpf(loss), mp.mpf(m) * mp.e ** (-mp.mpf(loss))) for loss, m in law.atoms()])
    infinite, q, price = mp.mpf(law.infinity_mass), mp.mpf(rate), mp.e ** mp.mpf(epsilon)
    ratios = [(mp.mpf(0), infinite), *ratios]
    total = mp.fsum(m for _, m in ratios)
    ratios = [(r, m / total) for r, m in ratios]
    edges = [mp.mpf(0)]
    for _, mass in ratios:
        edges.append(edges[-1] + mass)
    cuts = sorted({*edges, *(1 - e for e in edges)})

    def quantile(u: mp.mpf) -> mp.mpf:
        return next(r for (r, _), end in zip(ratios, edges[1:], strict=True) if u <= end)

    spent = q * infinite
    for low, high in itertools.pairwise(cuts):
        if high - low > mp.mpf(10) ** -30:
            u = (low + high) / 2
            gain = q * (quantile(u) - price * quantile(1 - u)) - (price - 1) * (1 - q)
            spent += max(gain, mp.mpf(0)) * (high - low)
    return spent


@pytest.mark.parametrize(
    "mechanism",
    [
        PureDP(1.0),
        ApproxDP(0.5, 0.01),
        RandomizedResponse(0.7),
        RandomizedResponse(0.5, categories=5),
        RandomizedResponse(0.1, categories=3),
        DiscreteLaplace(2.0, 4),
        Profile.from_points([(0.2, 0.2), (1.5, 1e-4)]),
    ],
    ids=repr,
)
@given(rate=st.one_of(rates, st.just(1.0)), epsilon=st.floats(-2, 2))
def test_finite_laws(mechanism: Mechanism, rate: float, epsilon: float) -> None:
    law = law_of(mechanism, rate)
    lower, upper = (float(v) for v in law.log_profile(np.asarray(epsilon)))
    with mp.workdps(40):
        truth = enumerated(mechanism, rate, epsilon)
        # the inner atoms are doubles, so the truth here is only known to their rounding
        slack = mp.mpf(1e-14) * truth + mp.mpf(1e-15) * rate
        assert mp.e**upper + law.infinity_mass >= truth - mp.mpf(1e-15) * truth
        assert mp.e**lower + law.infinity_mass * (1 - 1e-14) <= truth + slack
    assert isinstance(law, AtomicLaw)
    assert "sampling.md" in law.theorem
    assert math.fsum(mass for _, mass in law.atoms()) + law.infinity_mass == pytest.approx(1.0, abs=1e-12)


def test_everything_at_infinity_and_refusals() -> None:
    assert law_of(ApproxDP(0.0, 1.0), 1.0).infinity_mass == 1.0
    with pytest.raises(Unanswerable, match="under REPLACE"):
        PoissonSampled(DiscreteGaussian(2.0), 0.1, REPLACE).laws()
    with pytest.raises(Unanswerable, match="sample each part"):
        PoissonSampled(2 * Laplace(2.0), 0.1, REPLACE).laws()
    assert PoissonSampled(Gaussian(1.0), 0.0, REPLACE).laws() == ()
    nested = PoissonSampled(PoissonSampled(Gaussian(1.0), 0.5, REPLACE), 0.5, REPLACE)
    assert nested.laws() == PoissonSampled(Gaussian(1.0), 0.25, REPLACE).laws()


def test_losses_far_below_zero_stay_apart_and_in_order() -> None:
    """At rate one the pair is that of the doubled change, also where e^loss is nothing beside one."""
    scale = 0.008626288880349893
    found = PoissonSampled(DiscreteLaplace(scale, 3), 1.0, REPLACE).laws()[0].atoms()
    plain = DiscreteLaplace(scale, 6).laws()[0].atoms()
    assert len(found) == len(plain)
    for (loss, mass), (other, same) in zip(found, plain, strict=True):
        assert loss == pytest.approx(other, rel=1e-14)
        assert mass == pytest.approx(same, rel=1e-11)
    twice = 2 * PoissonSampled(DiscreteLaplace(scale, 3), 1.0, REPLACE)
    assert twice.directions()[0].infimum == pytest.approx(-12 / scale)
    assert twice.epsilon_interval(1 - 1e-12).lower > 1363.0
