"""Laws, golden and contract: Poisson sampling of any mechanism with a profile, each side by itself."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import golden
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, REPLACE, Direction
from dptally.laws.atoms import AtomicLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.laws.sampled.generic import SampledLaw
from dptally.mechanisms.alpha_dp import AlphaDP
from dptally.mechanisms.approx_dp import ApproxDP
from dptally.mechanisms.discrete_gaussian import DiscreteGaussian
from dptally.mechanisms.discrete_laplace import DiscreteLaplace
from dptally.mechanisms.gaussian import Gaussian
from dptally.mechanisms.gaussian_dp import GaussianDP
from dptally.mechanisms.laplace import Laplace
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.poisson_sampled import PoissonSampled
from dptally.mechanisms.profile import Profile
from dptally.mechanisms.pure_dp import PureDP
from dptally.mechanisms.randomized_response import RandomizedResponse
from dptally.mechanisms.renyi_dp import RenyiDP
from dptally.mechanisms.zcdp import ZCDP
from strategies import rates

FINITE = [
    PureDP(1.0),
    ApproxDP(0.7, 1e-3),
    ApproxDP(0.0, 0.2),
    RandomizedResponse(0.6, categories=4),
    DiscreteLaplace(scale=2.0, sensitivity=3),
    Profile.from_points([(0.1, 0.3), (2.0, 1e-5)]),
]


def log_profile(law: Law, epsilon: float) -> tuple[float, float]:
    lower, upper = law.log_profile(np.asarray(epsilon, dtype=np.float64))
    return float(lower), float(upper)


# -- the truth for finite pairs: two lists of probabilities
# ------------------------------------------------------------


def finite_pair(mechanism: Mechanism) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """(P1, P0) of a mechanism whose loss is the same in both directions, as probabilities of outputs."""
    (law,) = mechanism.laws()
    with_record = [mp.mpf(mass) for _, mass in law.atoms()]
    without = [mp.mpf(mass) * mp.e ** (-mp.mpf(loss)) for loss, mass in law.atoms()]
    infinite = mp.mpf(law.infinity_mass)
    return [*with_record, infinite, mp.mpf(0)], [*without, mp.mpf(0), infinite]


def hockey_stick(p: list[mp.mpf], q: list[mp.mpf], epsilon: float) -> mp.mpf:
    return mp.fsum(max(a - mp.e ** mp.mpf(epsilon) * b, mp.mpf(0)) for a, b in zip(p, q, strict=True))


def sampled_pair(mechanism: Mechanism, rate: float, side: Direction) -> tuple[list[mp.mpf], list[mp.mpf]]:
    one, zero = finite_pair(mechanism)
    mixed = [(1 - mp.mpf(rate)) * b + mp.mpf(rate) * a for a, b in zip(one, zero, strict=True)]
    return (mixed, zero) if side is Direction.REMOVE else (zero, mixed)


def moment_minus_one(mechanism: Mechanism, rate: float, t: mp.mpc, side: Direction) -> mp.mpc:
    """E[e^{tL}; L < inf] - 1 = E_0[A^zeta] - 1, with E_0[A] = 1 - q p put in exactly: the masses given
    are rounded.
    """
    one, zero = finite_pair(mechanism)
    q, zeta = mp.mpf(rate), 1 + t if side is Direction.REMOVE else -t
    ratios = [(q * (a / b - 1), b) for a, b in zip(one, zero, strict=True) if b > 0]
    bent = mp.fsum(b * (mp.e ** (zeta * mp.log1p(x)) - 1 - zeta * x) for x, b in ratios)
    return bent - zeta * q * one[-2]


@pytest.mark.parametrize("side", list(Direction))
@pytest.mark.parametrize("mechanism", FINITE, ids=repr)
@given(rate=rates, epsilon=st.floats(-4, 4))
def test_profile_of_finite_pairs(mechanism: Mechanism, side: Direction, rate: float, epsilon: float) -> None:
    law = PoissonSampled(mechanism, rate).laws()[0 if side is Direction.REMOVE else 1]
    with mp.workdps(40):
        truth = hockey_stick(*sampled_pair(mechanism, rate, side), epsilon)
        lower, upper = log_profile(law, epsilon)
        at_infinity = mp.mpf(law.infinity_mass)
        # the atoms that the truth is built from are doubles themselves: allow their rounding, and that of q p
        slack = mp.mpf(2e-14) * (truth + at_infinity) + mp.mpf(1e-16) * rate
        assert mp.e**lower + at_infinity <= truth + slack
        assert mp.e**upper + at_infinity >= truth - slack
        assert upper - lower < 1e-9 or truth - at_infinity < 1e-6 * rate


@pytest.mark.parametrize("side", list(Direction))
@pytest.mark.parametrize("mechanism", FINITE, ids=repr)
@pytest.mark.parametrize("rate", [0.2, 1e-6])
def test_moments_and_distribution_of_finite_pairs(mechanism: Mechanism, side: Direction, rate: float) -> None:
    law = PoissonSampled(mechanism, rate).laws()[0 if side is Direction.REMOVE else 1]
    with mp.workdps(40):
        p, q = sampled_pair(mechanism, rate, side)
        finite = [(mp.log(a / b), a) for a, b in zip(p, q, strict=True) if a > 0 and b > 0]
        for t in [1e-6, 0.5, 3.0, 200.0, -0.5, 0.3 + 2j]:
            truth = mp.log1p(moment_minus_one(mechanism, rate, mp.mpmathify(t), side))
            got = complex(law.log_moment(np.array([t]))[0])
            assert abs(mp.mpc(got) / truth - 1) < 2e-13, t
        mean = mp.fsum(loss * mass for loss, mass in finite)
        # the sum above is only as good as the inner masses add up to one
        assert abs(law.mean - mean) < 1e-11 * abs(mean) + 1e-13 * rate
        assert float(law.tail(np.asarray(law.infimum - 1))) == pytest.approx(float(mp.fsum(m for _, m in finite)))
        assert float(law.tail(np.asarray(law.supremum + 1))) == 0
        cut = sorted(loss for loss, _ in finite)[len(finite) // 2] - mp.mpf(10) ** -9 * rate
        beyond = float(mp.fsum(mass for loss, mass in finite if loss > cut))
        assert float(law.tail(np.asarray(float(cut)))) == pytest.approx(beyond, rel=1e-6, abs=1e-9)
        assert law.supremum >= max(loss for loss, _ in finite) * (1 - mp.mpf(1e-15))
        assert law.infimum <= min(loss for loss, _ in finite) * (1 - mp.mpf(1e-15))
        listed = law.atoms()
        assert [loss for loss, _ in listed] == sorted(loss for loss, _ in listed)
        assert math.fsum(mass for _, mass in listed) + law.infinity_mass == pytest.approx(1.0, abs=1e-12)


def test_infinity_under_sampling() -> None:
    """Presence can be proved with probability q p; absence never, it becomes a loss of -log(1-q)."""
    remove, add = PoissonSampled(ApproxDP(0.0, 0.25), 0.5).laws()
    assert (remove.infinity_mass, add.infinity_mass) == (0.125, 0.0)
    assert add.atoms()[-1] == (pytest.approx(math.log(2)), pytest.approx(0.25, rel=1e-15))
    assert remove.atoms()[0] == (pytest.approx(-math.log(2)), pytest.approx(0.125, rel=1e-15))
    assert log_profile(add, 0.7)[1] == -math.inf  # beyond log 2
    all_or_nothing = PoissonSampled(ApproxDP(0.0, 1.0), 0.5).laws()
    assert all_or_nothing[0].infinity_mass == 0.5
    assert all_or_nothing[0].mean == pytest.approx(0.5 * -math.log(2))


# -- Laplace -----------------------------------------------------------------------------------------------
# ------------


@pytest.mark.parametrize("name", [n for n in golden.ids("subsample.laplace") if ".profile." in n])
def test_golden_laplace_profile(name: str) -> None:
    given_values = golden.inputs(name)
    law = PoissonSampled(Laplace(1 / given_values["t"]), given_values["gamma"]).laws()[0]
    lower, upper = log_profile(law, given_values["eps"])
    with mp.workdps(30):
        assert mp.e**lower <= golden.exact(name) <= mp.e**upper
    assert upper - lower < 1e-12


@pytest.mark.parametrize("side", list(Direction))
@pytest.mark.parametrize(("reach", "rate"), [(2.0, 0.1), (0.1, 1e-6), (8.0, 0.9)])
def test_laplace_moments(reach: float, rate: float, side: Direction) -> None:
    law = PoissonSampled(Laplace(1 / reach), rate).laws()[0 if side is Direction.REMOVE else 1]
    with mp.workdps(45 if rate < 1e-3 else 22):
        q, r = mp.mpf(rate), mp.mpf(law.inner.reach)  # type: ignore[attr-defined]

        def minus_one(w: mp.mpf) -> mp.mpf:
            """A^zeta - 1 - zeta (A - 1), whose mean under P0 is exp K - 1."""
            x = q * mp.expm1(w)
            return mp.e ** (zeta * mp.log1p(x)) - 1 - zeta * x

        for t in [1e-4, 1.0, 30.0, 0.5 + 2j]:
            zeta = 1 + mp.mpmathify(t) if side is Direction.REMOVE else -mp.mpmathify(t)
            ends = minus_one(r) * mp.e ** (-r) / 2 + minus_one(-r) / 2
            middle = mp.quad(lambda y: minus_one(2 * y - r) * mp.e ** (-y) / 2, mp.linspace(0, r, 3))
            truth = mp.log1p(ends + middle)
            assert abs(mp.mpmathify(complex(law.log_moment(np.array([t]))[0])) / truth - 1) < 3e-14


@pytest.mark.parametrize("side", list(Direction))
def test_laplace_distribution(side: Direction) -> None:
    law = PoissonSampled(Laplace(0.5), 0.3).laws()[0 if side is Direction.REMOVE else 1]
    atoms = dict(law.atoms())
    edges = np.linspace(law.infimum, law.supremum, 20002)
    middle = 0.5 * (edges[1:] + edges[:-1])
    weight = law.density(middle) * (edges[1] - edges[0])
    assert weight.sum() + sum(atoms.values()) == pytest.approx(1.0, abs=1e-6)
    mean = (weight * middle).sum() + sum(loss * mass for loss, mass in atoms.items())
    assert mean == pytest.approx(law.mean, abs=1e-6)
    epsilon = 0.1
    delta = (weight * np.maximum(0, -np.expm1(epsilon - middle))).sum()
    delta += sum(mass * max(0.0, -math.expm1(epsilon - loss)) for loss, mass in atoms.items())
    assert delta == pytest.approx(math.exp(log_profile(law, epsilon)[1]), rel=1e-5)
    cut = 0.05
    beyond = weight[middle > cut].sum() + sum(mass for loss, mass in atoms.items() if loss > cut)
    assert float(law.tail(np.asarray(cut))) == pytest.approx(beyond, abs=2e-4)
    assert law.breakpoints() == ()


# -- discrete Gaussian: infinitely many atoms
# --------------------------------------------------------------------------


@pytest.mark.parametrize("side", list(Direction))
def test_discrete_gaussian(side: Direction) -> None:
    sigma, rate = 1.5, 0.05
    law = PoissonSampled(DiscreteGaussian(sigma, 2), rate).laws()[0 if side is Direction.REMOVE else 1]
    with mp.workdps(40):
        q = mp.mpf(rate)
        weights = {k: mp.e ** (-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in range(-400, 401)}
        total = mp.fsum(weights.values())
        outputs = [
            (
                (1 - q) * weights[k] / total + q * weights.get(k - 2, mp.mpf(0)) / total,
                weights[k] / total,
            )
            for k in range(-398, 399)
        ]
        if side is Direction.ADD:
            outputs = [(b, a) for a, b in outputs]
        for t in [0.1, 5.0, 60.0]:
            truth = mp.log(mp.fsum(p * mp.e ** (t * mp.log(p / r)) for p, r in outputs))
            assert abs(law.log_moment(np.array([t]))[0] / truth - 1) < 1e-11
        for epsilon in [-0.02, 0.0, 0.03]:
            truth = mp.log(mp.fsum(max(p - mp.e ** mp.mpf(epsilon) * r, mp.mpf(0)) for p, r in outputs))
            lower, upper = log_profile(law, epsilon)
            assert lower <= truth <= upper
    with pytest.raises(Unanswerable, match="terms"):
        PoissonSampled(DiscreteGaussian(1e6), 0.1).laws()[0].log_moment(np.ones(1))


# -- algebra, edges and refusals
# ---------------------------------------------------------------------------------------


def test_rates_zero_and_one() -> None:
    assert PoissonSampled(Laplace(1.0), 0.0).laws() == ()
    assert PoissonSampled(Laplace(1.0), 1.0).laws() == Laplace(1.0).laws()
    plan = PoissonSampled(2 * Laplace(1.0) + Gaussian(3.0), 1.0)
    assert plan.parts == (2 * Laplace(1.0) + Gaussian(3.0)).parts
    assert PoissonSampled(PureDP(0.0), 0.5).laws() == ()


def test_nested_sampling_multiplies_rates() -> None:
    nested = PoissonSampled(PoissonSampled(Gaussian(1.0), 0.25), 0.5).laws()
    assert nested == PoissonSampled(Gaussian(1.0), 0.125).laws()
    inexact = PoissonSampled(PoissonSampled(Laplace(1.0), 0.1), 0.3).laws()[0]
    assert isinstance(inexact, SampledLaw)
    assert inexact.rate >= 0.03
    assert inexact.rate == pytest.approx(0.03, rel=1e-15)
    with pytest.raises(InvalidArgument, match="adjacency"):
        PoissonSampled(PoissonSampled(Gaussian(1.0), 0.25, REPLACE), 0.5)


def test_gaussians_collapse_inside_a_sample() -> None:
    (remove, _add) = PoissonSampled(4 * Gaussian(2.0), 0.1).laws()
    assert isinstance(remove, SampledGaussianLaw)
    assert remove.sigma <= 1.0
    assert remove.sigma == pytest.approx(1.0, rel=1e-14)
    declared = PoissonSampled(GaussianDP(1.0), 0.1).laws()[0]
    assert isinstance(declared, SampledGaussianLaw)
    scaled = PoissonSampled(Gaussian(0.3, sensitivity=0.1), 0.1).laws()[0]
    assert isinstance(scaled, SampledGaussianLaw)
    assert mp.mpf(scaled.sigma) <= mp.mpf(0.3) / mp.mpf(0.1)


@given(rate=rates, epsilon=st.floats(-2, 2))
def test_sampling_never_tells_more(rate: float, epsilon: float) -> None:
    inside = Laplace(0.7).laws()[0]
    for law in PoissonSampled(Laplace(0.7), rate).laws():
        assert log_profile(law, epsilon)[0] <= log_profile(inside, epsilon)[1] + 1e-12


@pytest.mark.parametrize("mechanism", [ZCDP(0.5), RenyiDP((2.0,), (0.1,)), AlphaDP(2.0, 0.1)], ids=repr)
def test_renyi_only_guarantees_are_refused(mechanism: Mechanism) -> None:
    for adjacency in (ADD_REMOVE, REPLACE):
        with pytest.raises(Unanswerable, match=r"ApproxDP\(epsilon, delta\) or GaussianDP"):
            PoissonSampled(mechanism, 0.1, adjacency).laws()


def test_one_sample_for_several_mechanisms_is_refused() -> None:
    with pytest.raises(Unanswerable, match="sample each part by itself"):
        PoissonSampled(Laplace(1.0) + Gaussian(1.0), 0.1).laws()
    with pytest.raises(Unanswerable, match="several mechanisms"):
        PoissonSampled(2 * Laplace(1.0), 0.1).laws()


def test_a_callable_profile_is_sampled_like_its_table() -> None:
    def delta(epsilon: float) -> float:
        return math.exp(-epsilon * epsilon)

    remove = PoissonSampled(Profile(delta), 0.1).laws()[0]
    assert remove.infinity_mass < 1e-300
    at = 2.0
    expected = 0.1 * delta(math.log1p(math.expm1(at) / 0.1))
    assert math.exp(log_profile(remove, at)[1]) == pytest.approx(expected, rel=1e-12)


def test_unbounded_inner_loss_has_no_moment() -> None:
    law = SampledLaw(SampledGaussianLaw(0.5, 1.0, Direction.REMOVE), 0.5, Direction.REMOVE)
    with pytest.raises(Unanswerable, match="unbounded"):
        law.log_moment(np.ones(1))
    assert math.isfinite(log_profile(law, 0.5)[1])
    assert law.supremum == math.inf
    with pytest.raises(Unanswerable, match="panels"):
        PoissonSampled(Laplace(1.0), 0.5).laws()[0].log_moment(np.array([1e7]))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"mechanism": 3, "rate": 0.1}, InvalidType, "mechanism must be a mechanism, got 3"),
        ({"mechanism": Gaussian(1.0), "rate": 1.5}, InvalidArgument, r"rate must be in \[0, 1\], got 1.5"),
        ({"mechanism": Gaussian(1.0), "rate": math.nan}, InvalidArgument, "rate"),
        ({"mechanism": Gaussian(1.0), "rate": -1e-9}, InvalidArgument, "rate"),
        (
            {"mechanism": Gaussian(1.0), "rate": 1e-101},
            InvalidArgument,
            "rate must be 0 or between 1e-100 and 1",
        ),
        ({"mechanism": Gaussian(1.0), "rate": True}, InvalidType, "rate"),
        ({"mechanism": Gaussian(1.0), "rate": "0.1"}, InvalidType, "rate"),
        ({"mechanism": Gaussian(1.0), "rate": 0.1, "adjacency": "replace"}, InvalidType, "adjacency"),
    ],
)
def test_bad_input(arguments: dict[str, object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        PoissonSampled(**arguments)  # type: ignore[arg-type]


def test_atomic_law_of_nothing() -> None:
    law = AtomicLaw((), 1.0)
    assert (law.infinity_mass, law.supremum, law.infimum, law.mean) == (1.0, -math.inf, math.inf, 0.0)
    assert log_profile(law, 0.0) == (-math.inf, -math.inf)
    assert np.isneginf(law.log_moment(np.array([0.5]))).all()
    assert law.tail(np.asarray(0.0)) == 0
    assert "Zhu" in law.theorem
