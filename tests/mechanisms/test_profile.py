"""Laws and contract: declared privacy profiles, as a table of guarantees or as a function."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptally.errors import InvalidArgument, InvalidType
from dptally.law import Law
from dptally.laws.tabulated import ProfileLaw
from dptally.mechanisms.approx_dp import ApproxDP
from dptally.mechanisms.json import from_json, to_json
from dptally.mechanisms.laplace import Laplace
from dptally.mechanisms.profile import Profile


def delta(law: Law, epsilon: float) -> tuple[float, float]:
    lower, upper = law.log_profile(np.asarray(epsilon, dtype=np.float64))
    return math.exp(float(lower)) + law.infinity_mass, math.exp(float(upper)) + law.infinity_mass


def law_of(profile: Profile) -> Law:
    (law,) = profile.laws()
    return law


curves = st.lists(
    st.tuples(st.floats(0, 4), st.floats(-20, 0).map(lambda x: 10.0**x)),
    min_size=1,
    max_size=6,
    unique_by=lambda p: p[0],
).map(lambda points: list(zip(sorted(e for e, _ in points), sorted((d for _, d in points), reverse=True), strict=True)))


def implied(epsilon0: float, delta0: float, epsilon: float) -> float:
    """The smallest delta at ``epsilon`` that (epsilon0, delta0) implies.  [GDPT paper, Thm. 2.1]"""
    gap = max(math.exp(epsilon0) - math.exp(epsilon), 0.0)
    return delta0 + (1 - delta0) * gap / (1 + math.exp(epsilon0))


# -- a table -----------------------------------------------------------------------------------------------
# ------------


@given(epsilon0=st.floats(1e-6, 5), delta0=st.floats(0, 0.999), epsilon=st.floats(0, 6))
def test_one_guarantee_is_theorem_2_1(epsilon0: float, delta0: float, epsilon: float) -> None:
    """F69: Theorem 2.1 of the GDPT paper, and the pair of (epsilon0, delta0)-DP."""
    law = law_of(Profile.from_points([(epsilon0, delta0)]))
    lower, upper = delta(law, epsilon)
    truth = implied(epsilon0, delta0, epsilon)
    assert lower * (1 - 1e-13) <= truth + 1e-16
    assert truth <= upper * (1 + 1e-13) + 1e-16
    declared = ApproxDP(epsilon0, delta0).laws()[0]
    assert law.log_moment(np.array([1.5])) == pytest.approx(declared.log_moment(np.array([1.5])), rel=1e-9, abs=1e-13)


def test_a_family_implies_more_than_its_members() -> None:
    """docs/errata.md: {(.1, .3), (2, 0)} at 1.5836 gives .1202 by the envelope, .3000 by the pointwise minimum."""
    law = law_of(Profile.from_points([(0.1, 0.3), (2.0, 0.0)]))
    assert delta(law, 1.5836)[1] == pytest.approx(0.1202, abs=1e-4)
    assert min(implied(0.1, 0.3, 1.5836), implied(2.0, 0.0, 1.5836)) > 0.2


def envelope(points: list[tuple[float, float]], epsilon: float) -> float:
    """The lower convex envelope in x = e^eps by brute force: the lowest chord over x of the points and
    their mirrors.
    """
    corners = [(0.0, 1.0)]
    corners += [(math.exp(-e), -math.expm1(-e) + d * math.exp(-e)) for e, d in points]
    corners += [(math.exp(e), d) for e, d in points]
    x = math.exp(epsilon)
    best = min((d for at, d in corners if at <= x), default=1.0)  # profiles do not increase
    for a, da in corners:
        for b, db in corners:
            if a < x < b:
                best = min(best, ((b - x) * da + (x - a) * db) / (b - a))
    return best


@given(points=curves, epsilon=st.floats(-4, 5))
def test_tables_are_the_convex_envelope(points: list[tuple[float, float]], epsilon: float) -> None:
    law = law_of(Profile.from_points(points))
    lower, upper = delta(law, epsilon)
    truth = envelope(points, epsilon)
    noise = 1e-12 * truth + 4e-16
    assert lower <= truth + noise
    assert upper >= truth - noise


@given(points=curves)
def test_the_pair_keeps_every_guarantee(points: list[tuple[float, float]]) -> None:
    """Dominance in spite of rounding: checked in exact rational arithmetic with e^x bounded from above."""
    law = law_of(Profile.from_points(points))
    total = sum((Fraction(mass) for _, mass in law.atoms()), Fraction(law.infinity_mass))
    assert total >= 1
    for epsilon, _stated in points:
        kept = Fraction(law.infinity_mass)
        for loss, mass in law.atoms():
            if loss > epsilon:
                kept += Fraction(mass) * Fraction(-math.expm1(epsilon - loss)) * (1 - Fraction(1, 2**50))
        wanted = min(envelope(points, epsilon), _stated)
        assert kept >= Fraction(wanted) * (1 - Fraction(1, 10**12))


@given(points=curves)
def test_atoms_moments_and_symmetry(points: list[tuple[float, float]]) -> None:
    law = law_of(Profile.from_points(points))
    listed = law.atoms()
    assert [loss for loss, _ in listed] == sorted({loss for loss, _ in listed})
    for t in (0.4, 3.0):
        direct = math.log(math.fsum(mass * math.exp(t * loss) for loss, mass in listed)) if listed else -math.inf
        assert float(law.log_moment(np.array([t]))[0]) == pytest.approx(direct, rel=1e-9, abs=1e-12)
        assert float(law.log_moment(np.array([-1 - t]))[0]) == pytest.approx(direct, rel=1e-6, abs=1e-9)
    assert law.mean == pytest.approx(math.fsum(loss * mass for loss, mass in listed))
    for loss, mass in listed[-1:]:
        assert float(law.tail(np.nextafter(loss, -1.0))) == pytest.approx(mass)
        assert float(law.tail(np.asarray(loss))) == 0


def test_edges_of_tables() -> None:
    assert Profile.from_points([(0.0, 0.0)]).laws() == ()
    assert law_of(Profile.from_points([(1.0, 1.0)])).infinity_mass == 1.0
    only_zero = law_of(Profile.from_points([(0.0, 0.25)]))
    assert (only_zero.atoms()[0][0], only_zero.infinity_mass) == (0.0, 0.25)
    level = law_of(Profile.from_points([(0.5, 0.1), (1.0, 0.1), (3.0, 0.1)]))
    assert level.supremum == 0.5
    with_zero = law_of(Profile.from_points([(0.0, 0.3), (1.0, 0.01)]))
    assert delta(with_zero, 0.0)[1] == pytest.approx(0.3, rel=1e-12)
    tiny = law_of(Profile.from_points([(1.0, 1e-3), (30.0, 1e-300), (800.0, 0.0)]))
    assert delta(tiny, 30.0)[1] == pytest.approx(1e-300, rel=1e-9)
    assert np.isfinite(tiny.log_moment(np.array([1.0, 5.0]))).all()


def test_tables_compare_hash_and_travel() -> None:
    first, second = Profile.from_points([(1, 0.01), (0.5, 0.1)]), Profile(points=((0.5, 0.1), (1.0, 0.01)))
    assert first == second
    assert hash(first) == hash(second)
    assert repr(first) == "Profile(points=((0.5, 0.1), (1.0, 0.01)))"
    assert from_json(to_json(3 * first)) == 3 * first
    assert Profile.from_points(np.array([[0.5, 0.1], [1.0, 0.01]])) == first


# -- a function
# --------------------------------------------------------------------------------------------------------


def gaussian_like(epsilon: float) -> float:
    return math.exp(-epsilon * epsilon)


def test_refined_profile_of_the_sgd_example() -> None:
    """F70: below eps* = 1.18784889958 the line, above it the function itself; delta(0) = .646685089766."""
    law = law_of(Profile(gaussian_like))
    star, at_star = 1.18784889958, gaussian_like(1.18784889958)
    assert delta(law, 0.0)[1] == pytest.approx(0.646685089766, abs=1e-11)
    for epsilon in (0.2, 0.9):
        line = 1 - (1 + math.exp(epsilon)) * (1 - at_star) / (1 + math.exp(star))
        assert delta(law, epsilon)[1] == pytest.approx(line, rel=1e-9)
    for epsilon in (1.5, 3.0, 20.0):
        lower, upper = delta(law, epsilon)
        assert lower <= gaussian_like(epsilon) * (1 + 1e-12)
        assert upper == pytest.approx(gaussian_like(epsilon), rel=1e-12)


def test_refined_profile_of_the_icea_example() -> None:
    """F70: eps* = 1.15660703537, delta(0) = .745421741879; the function never falls to zero."""
    law = law_of(Profile(lambda epsilon: min(1.0, 4 * math.exp(-2) / epsilon) if epsilon else 1.0))
    assert delta(law, 0.0)[1] == pytest.approx(0.745421741879, abs=1e-9)
    assert law.infinity_mass == pytest.approx(4 * math.exp(-2) / 1024)
    assert np.isfinite(law.log_moment(np.array([0.5]))).all()


def test_table_of_a_function_dominates_it() -> None:
    profile = Profile(lambda epsilon: max(0.0, -math.expm1((epsilon - 2) / 2)))
    law, exact = law_of(profile), Laplace(0.5).laws()[0]
    assert isinstance(law, ProfileLaw)
    assert law.supremum == pytest.approx(2.0)
    assert law.infimum == -law.supremum
    assert len(profile.points) == len(set(profile.points)) >= 2049
    for epsilon in np.linspace(-3, 2.5, 23):
        lower, upper = delta(law, float(epsilon))
        truth = math.exp(float(exact.log_profile(np.asarray(epsilon))[1]))
        assert upper >= truth * (1 - 1e-13)
        assert lower <= truth * (1 + 1e-5) + 1e-15
    t = np.array([0.5, 2.0, 10.0])
    assert (law.log_moment(t) >= exact.log_moment(t)).all()
    assert law.log_moment(t) == pytest.approx(exact.log_moment(t), rel=1e-5)
    assert law.mean == pytest.approx(exact.mean, rel=1e-5)
    assert law.tail(np.asarray(1.0)) == pytest.approx(float(exact.tail(np.asarray(1.0))), rel=1e-2)
    assert sum(mass for _, mass in law.atoms()) == pytest.approx(1.0)


def test_functions_are_compared_by_identity_and_do_not_travel() -> None:
    assert Profile(gaussian_like) == Profile(gaussian_like)
    assert "gaussian_like" in repr(Profile(gaussian_like))
    with pytest.raises(InvalidType, match="points"):
        to_json(Profile(gaussian_like))


def test_a_function_may_speak_numpy_and_start_at_zero() -> None:
    spoken = Profile(lambda epsilon: np.exp(-(np.asarray(epsilon) ** 2))).points
    assert np.array(spoken)[:, 1] == pytest.approx(np.array(Profile(gaussian_like).points)[:, 1], rel=1e-12)
    assert Profile(lambda epsilon: 0.0).laws() == ()


# -- bad input
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda e: 1.5 - e / 8, InvalidArgument, r"delta_of_epsilon\(1\) must be in \[0, 1\], got 1.375"),
        (lambda e: math.nan, InvalidArgument, r"delta_of_epsilon\(1\) must be a number"),
        (lambda e: -0.1, InvalidArgument, r"delta_of_epsilon\(1\)"),
        (lambda e: 0.5 - 0.4 * math.cos(e), InvalidArgument, "nonincreasing in epsilon"),
        (lambda e: "0.1", InvalidType, "a real number"),
        (lambda e: None, InvalidType, "a real number"),
        (0.3, InvalidType, "a function of epsilon"),
    ],
)
def test_bad_functions(function: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Profile(function)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("points", "error", "text"),
    [
        ([], InvalidArgument, "at least one pair"),
        ([(1.0, 0.1, 0.2)], InvalidType, "pairs"),
        ([0.5], InvalidType, "pairs"),
        (["ab"], InvalidType, "pairs"),
        ("ab", InvalidType, "pairs"),
        (7, InvalidType, "pairs"),
        ([(-1.0, 0.1)], InvalidArgument, "at least 0"),
        ([(math.inf, 0.1)], InvalidArgument, "finite"),
        ([(1.0, 1.1)], InvalidArgument, r"in \[0, 1\]"),
        ([(1.0, math.nan)], InvalidArgument, "delta"),
        ([(1.0, 0.1), (1.0, 0.2)], InvalidArgument, "different epsilons"),
        ([(1.0, 0.1), (2.0, 0.2)], InvalidArgument, r"delta\(1\) = 0.1 and delta\(2\) = 0.2"),
    ],
)
def test_bad_points(points: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Profile.from_points(points)  # type: ignore[arg-type]


def test_one_of_the_two() -> None:
    with pytest.raises(InvalidType, match="one of the two"):
        Profile()
    with pytest.raises(InvalidType, match="one of the two"):
        Profile(gaussian_like, points=[(1.0, 0.1)])
