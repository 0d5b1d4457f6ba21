"""Golden: the lattice contains exact references on every path (aligned, between nodes, cut, trimmed,
gathered)."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from doubles import BrokenLaw, UniformLaw
from hypothesis import given, settings
from hypothesis import strategies as st
from lattice_truths import atoms_log_delta, laplace_log_delta, response_atoms, sampled_gaussian_pair

from dptally.accounting.certified.lattice import bracket as lattice
from dptally.accounting.certified.lattice.convolve import Factor, Term, convolve
from dptally.accounting.certified.lattice.grid import common_length, layouts, spacing, step_for
from dptally.accounting.certified.lattice.measure import LatticeMeasure, Table, point_spread, upper_spread
from dptally.accounting.certified.lattice.plan import Outline, tilts_of
from dptally.accounting.certified.tuning import STANDARD
from dptally.errors import Unanswerable
from dptally.law import Composition, Law
from dptally.law.adjacency import Direction
from dptally.laws.atoms import AtomicLaw
from dptally.laws.discrete_gaussian import DiscreteGaussianLaw
from dptally.laws.gaussian import GaussianLaw
from dptally.laws.laplace import LaplaceLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.laws.two_point import TwoPointLaw
from dptally.mechanisms.randomized_response import RandomizedResponse
from dptally.numerics.normal import log_gaussian_delta

TILTS = tilts_of(STANDARD.lattice)


def laplace(t: float, count: int) -> Composition:
    return Composition.of([(LaplaceLaw(t, t), count)])


def gaussians(mu: float, count: int) -> Composition:
    """A Gaussian loss as ``count`` arbitrary laws: built by hand, because the family would collapse."""
    return Composition(((GaussianLaw(mu * mu / count), count),))


def holds(bounds: tuple[float, float], truth: object) -> bool:
    return bool(mp.mpf(bounds[0]) <= truth <= mp.mpf(bounds[1]))  # type: ignore[operator]


# -- Laplace: atoms on the nodes, a density between them
# ---------------------------------------------------------


@pytest.mark.parametrize(
    ("t", "k", "epsilon", "delta"),
    [  # golden laplace.comp.delta.*
        (2.0, 2, 1.0, "0.609522219740247799366759176163"),
        (1.0, 3, 1.0, "0.310226047803545647008392930947"),
        (0.5, 10, 3.0, "0.0318591134251152142984994809366"),
        (0.05, 30, 0.4, "0.00988658589855307980748959631296"),
        (0.2, 50, 0.0, "0.507223065309264706437627354654"),
        (0.2, 50, 5.0, "3.03723799669290109567585558198e-4"),
    ],
)
def test_laplace_golden_delta(t: float, k: int, epsilon: float, delta: str) -> None:
    bounds = lattice.log_delta(laplace(t, k), epsilon)
    assert holds(bounds, mp.log(mp.mpf(delta)))
    assert bounds[1] - bounds[0] < 5e-6


@pytest.mark.parametrize(
    ("delta", "epsilon"), [(0.1, 2.0020224744428623), (0.01, 3.5034410165928395), (1e-4, 5.3794158889104871)]
)
def test_laplace_golden_epsilon(delta: float, epsilon: float) -> None:
    low, high = lattice.epsilon(laplace(0.2, 50), math.log(delta))
    assert low <= epsilon <= high
    assert high - low <= 1e-6


@settings(max_examples=12, deadline=None)
@given(st.floats(0.03, 4.0), st.sampled_from([2, 3, 7, 15]), st.floats(0.0, 0.97))
def test_laplace_against_residues(t: float, k: int, share: float) -> None:
    epsilon = share * t * k
    assert holds(lattice.log_delta(laplace(t, k), epsilon), laplace_log_delta(t, k, epsilon))


@pytest.mark.parametrize("plan", [laplace(0.2, 50), (40 * RandomizedResponse(0.55)).directions()[0]])
def test_a_target_between_two_numbers(plan: Composition) -> None:
    """Each end is that of the worse number."""
    low, high = lattice.epsilon(plan, (math.log(1e-4), math.log(2e-4)))
    assert low <= lattice.epsilon(plan, math.log(2e-4))[1] <= low + 2e-6
    assert high - 2e-6 <= lattice.epsilon(plan, math.log(1e-4))[0] <= high


def test_the_edge_is_closed_in_on_from_any_shape() -> None:
    for excess in (lambda x: x - 2.0, lambda x: math.tan(0.7 * (x - 2.0)), lambda x: -1e9 if x < 2 else 1e-9):
        found = lattice._edge(excess, 1.5, 0.0, 3.0, -0.1)
        assert found is not None
        assert excess(found) < 0
        assert 2.0 - 1e-14 < found <= 2.0
    assert lattice._edge(lambda _: 1.0, 1.5, 0.0, 3.0, 0.1) is None
    assert lattice._edge(lambda _: -1.0, 1.5, 0.0, 3.0, 0.1) == 0.0


def test_laplace_a_thousand_times() -> None:
    low, high = lattice.epsilon(laplace(0.1, 1000), math.log(1e-5))
    assert 0 < high - low <= 1e-6
    # central limit theorem, corrected: only a sanity check of the scale
    assert 17.4 < low < 17.45


# -- smooth losses that pretend to be arbitrary
# ------------------------------------------------------------------


@pytest.mark.parametrize(("mu", "count"), [(1.0, 2), (1.0, 100), (3.0, 7), (0.1, 5)])
@pytest.mark.parametrize("log_delta", [-2.5, -11.5, -60.0, -230.0])
def test_gaussian_epsilon(mu: float, count: int, log_delta: float) -> None:
    low, high = lattice.epsilon(gaussians(mu, count), log_delta, effort=0.25)
    ends = np.array([low, high])
    lower, upper = log_gaussian_delta(mu, ends)
    assert upper[0] >= log_delta or low == 0
    assert lower[1] <= log_delta
    assert high - low <= 1e-4 * max(high, 0.01)


def test_delta_of_1e_300() -> None:
    low, high = lattice.epsilon(gaussians(1.0, 10), math.log(1e-300), effort=0.25)
    lower, upper = log_gaussian_delta(1.0, np.array([low, high]))
    assert upper[0] >= math.log(1e-300) >= lower[1]
    assert high - low < 1e-3


def test_a_delta_below_all_doubles_still_has_honest_bounds() -> None:
    low, high = lattice.log_delta(gaussians(1.0, 4), 60.0)
    truth = log_gaussian_delta(1.0, np.array([60.0]))
    assert low <= truth[1][0]
    assert high >= truth[0][0]
    assert high < -700


# -- the sampled Gaussian: rare large losses, both sides
# -----------------------------------------------------------

PAIRS = [  # rate, sigma, delta: two steps against an integral in balls
    (0.01, 1.0, 1e-10),
    (6.5e-4, 1.488, 6e-16),
    (1e-5, 1.0, 1e-20),
    (0.04, 3.07, 2.4e-16),
    (0.2, 1.27, 7e-15),
    (1.9e-5, 1.74, 1.7e-6),
    (1e-3, 2.0, 1e-30),
]


@pytest.mark.parametrize("side", list(Direction))
@pytest.mark.parametrize(("rate", "sigma", "delta"), PAIRS)
def test_two_sampled_steps(rate: float, sigma: float, delta: float, side: Direction) -> None:
    composition = Composition.of([(SampledGaussianLaw(rate, sigma, side), 2)])
    low, high = lattice.epsilon(composition, math.log(delta), effort=0.5)
    remove = side is Direction.REMOVE
    assert sampled_gaussian_pair(rate, sigma, low, remove=remove)[1] >= math.log(delta)
    if high < composition.supremum:
        assert sampled_gaussian_pair(rate, sigma, high, remove=remove)[0] <= math.log(delta)
    assert high - low <= 3e-5 * high


def test_the_reference_agrees_with_the_lattice_on_delta_too() -> None:
    law = SampledGaussianLaw(0.01, 1.0, Direction.REMOVE)
    low, high = lattice.log_delta(Composition.of([(law, 2)]), 0.8)
    truth = sampled_gaussian_pair(0.01, 1.0, 0.8, remove=True)
    assert low <= truth[1]
    assert truth[0] <= high
    assert high - low < 1e-5


@pytest.mark.parametrize("side", list(Direction))
def test_the_listed_failure_of_one_tilt(side: Direction) -> None:
    """sigma 1.488, q 6.5e-4, six steps, delta 6e-16: one tilt cannot resolve it; cutting does."""
    composition = Composition.of([(SampledGaussianLaw(6.5e-4, 1.488, side), 6)])
    low, high = lattice.epsilon(composition, math.log(6e-16))
    assert high - low <= 1e-6 * high
    coarse = lattice.epsilon(composition, math.log(6e-16), effort=0.1)
    assert coarse[0] <= high
    assert low <= coarse[1]
    reference = 0.0829926 if side is Direction.REMOVE else 0.0033291
    assert math.isclose(low, reference, rel_tol=1e-5)


def term_of(factors: list[Factor], at: float, *, jumping: bool, theta: float = 4.0) -> Term | None:
    return convolve(factors, theta, (at, at), TILTS, 1 << 18, 1 << 20, jumping=jumping)


def test_all_terms_together_contain_the_whole() -> None:
    """The largest loss between two cuts, term by term, each with its own tilt, against one tilt without a cut."""
    law = SampledGaussianLaw(0.02, 1.0, Direction.REMOVE)
    table = Table.of(law, math.log1p(-0.02), 2e-3, 2500)
    spread = upper_spread(table)
    factor = Factor.whole(spread, 5)
    at = 1.0 - 5 * spread.offset
    whole = term_of([factor], at, jumping=False)
    assert whole is not None
    low, high, scale = whole.bounds(at)
    parts_low = parts_high = 0.0
    cuts = [len(spread.masses), 1200, 500, 150]
    layers = [(Factor(spread, 5, less, more), True) for more, less in pairwise(cuts)] + [
        (Factor(spread, 5, 150, 150), False)
    ]
    for i, (part, jumping) in enumerate(layers):
        term = term_of([part], at, jumping=jumping, theta=2.0 + i)
        assert term is not None
        a, b, own = term.bounds(at)
        parts_low += a * math.exp(own - scale)
        parts_high += b * math.exp(own - scale)
    assert parts_low <= high
    assert low <= parts_high
    assert math.isclose(parts_low, low, rel_tol=1e-8)
    assert term_of([factor], at, jumping=True) is None  # nothing heavy


def exact_term(rows: list[tuple[list[Fraction], int, int, int]], step: Fraction, at: Fraction) -> mp.mpf:
    """prod (light + heavy)^n - prod light^n, mass by mass, and its delta."""

    def product(part: int) -> dict[int, Fraction]:
        total = {0: Fraction(1)}
        for masses, count, cut, end in rows:
            for _ in range(count):
                following: dict[int, Fraction] = {}
                for i, p in total.items():
                    for j, q in enumerate(masses[: (cut, end)[part]]):
                        following[i + j] = following.get(i + j, Fraction(0)) + p * q
                total = following
        return total

    none, every = product(0), product(1)
    with mp.workdps(40):
        terms = []
        for i, p in every.items():
            mass, gap = p - none.get(i, Fraction(0)), i * step - at
            if gap > 0:
                terms.append(
                    mp.mpf(mass.numerator) / mass.denominator * -mp.expm1(-mp.mpf(gap.numerator) / gap.denominator)
                )
        return mp.fsum(terms)


def test_a_term_between_two_cuts_is_that_of_fractions() -> None:
    """Few masses, some of them e^-200, brute force; an interval moved by 1e-9 would be refuted."""
    draw, counted = random.Random("cuts"), 0
    step = 2.0**-6
    for _ in range(60):
        rows, factors = [], []
        for _ in range(draw.choice((1, 1, 2))):
            size, count = draw.randint(2, 7), draw.randint(1, 4)
            masses = [draw.random() * math.exp(-draw.choice((0.0, 1.0, 40.0, 200.0)) * j / size) for j in range(size)]
            cut = draw.randint(0, size)
            end = draw.randint(cut, size)
            rows.append(([Fraction(m) for m in masses], count, cut, end))
            factors.append(Factor(LatticeMeasure(0.0, step, np.array(masses)), count, cut, end))
        reach = sum(count * (end - 1) for _, count, _, end in rows)
        at = step * draw.uniform(-1.0, max(reach, 1))
        truth = exact_term(rows, Fraction(step), Fraction(at))
        term = term_of(factors, at, jumping=True, theta=draw.choice((0.5, 4.0, 40.0)))
        if term is None:
            assert truth == 0, (rows, at)  # no term is left out
            continue
        low, high, scale = term.bounds(at)
        with mp.workdps(40):
            relative = truth * mp.exp(-mp.mpf(scale))
        assert low <= relative <= high, (rows, at)
        counted += bool(relative > 0 and low > relative * (1 - 1e-9) and high < relative * (1 + 1e-9))
    assert counted >= 20


def test_the_plan_cuts_only_where_it_pays() -> None:
    rare = Table.of(SampledGaussianLaw(6.5e-4, 1.488, Direction.REMOVE), math.log1p(-6.5e-4), 1e-4, 6000)
    plan = Outline.of([(upper_spread(rare), 6)], replace(STANDARD.lattice, room=3.0)).plan(0.083)
    assert len(plan.layers) >= 2
    assert abs(plan.estimate - math.log(6e-16)) < 4
    common = upper_spread(Table.of(GaussianLaw(0.01), -0.7, 1e-3, 1600))
    (layer,) = Outline.of([(common, 100)]).plan(4.0).layers
    assert layer.low is None
    assert layer.high is None


def test_different_sampled_laws_together() -> None:
    parts: list[tuple[Law, int]] = [
        (SampledGaussianLaw(1e-3, 0.5, Direction.REMOVE), 5),
        (SampledGaussianLaw(1e-4, 0.7, Direction.REMOVE), 3),
    ]
    low, high = lattice.epsilon(Composition.of(parts), math.log(1e-12), effort=0.5)
    single = lattice.epsilon(Composition.of(parts[:1]), math.log(1e-12), effort=0.5)
    assert high - low <= 1e-5 * high
    assert low >= single[0] - 1e-6  # a plan costs at least what a part of it costs


# -- losses with few values
# ------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0.03, 2.0), min_size=2, max_size=7), st.floats(0.0, 0.97))
def test_different_responses_between_nodes(epsilons: list[float], share: float) -> None:
    composition = Composition.of([(TwoPointLaw.of_guarantee(e), 1) for e in epsilons])
    epsilon = share * sum(epsilons)
    bounds = lattice.log_delta(composition, epsilon, effort=0.5)
    with mp.workdps(40):
        assert holds(bounds, atoms_log_delta([response_atoms(e) for e in epsilons], epsilon))


def test_a_hundred_different_responses() -> None:
    epsilons = np.random.default_rng(1).uniform(0.05, 0.3, 100)
    composition = Composition.of([(TwoPointLaw.of_guarantee(float(e)), 1) for e in epsilons])
    low, high = lattice.epsilon(composition, math.log(1e-5))
    assert 0 < high - low <= 1e-6
    assert math.isclose(low, 9.1653854, rel_tol=1e-6)


def test_responses_with_a_common_measure_lie_on_the_lattice() -> None:
    composition = Composition.of([(TwoPointLaw.of_guarantee(0.1), 6), (TwoPointLaw.of_guarantee(0.25), 4)])
    bounds = lattice.log_delta(composition, 0.7)
    with mp.workdps(40):
        truth = atoms_log_delta([response_atoms(0.1)] * 6 + [response_atoms(0.25)] * 4, 0.7)
    assert holds(bounds, truth)
    assert bounds[1] - bounds[0] < 1e-9


def test_a_response_beside_a_gaussian() -> None:
    """Between nodes and smooth at once: conditioning on the response gives the truth."""
    composition = Composition(((GaussianLaw(0.5), 1), (TwoPointLaw.of_guarantee(0.3), 1)))
    low, high = lattice.log_delta(composition, 1.7)
    truth = mp.mpf(0)
    for loss, probability in response_atoms(0.3):
        truth += probability * mp.exp(mp.mpf(log_gaussian_delta(math.sqrt(0.5), np.array([1.7 - float(loss)]))[0][0]))
    assert low - 1e-12 <= float(mp.log(truth)) <= high + 1e-12
    assert high - low < 1e-4


def test_mass_at_infinity_is_left_to_the_caller() -> None:
    composition = Composition.of([(TwoPointLaw.of_guarantee(0.2, 1e-3), 3), (TwoPointLaw.of_guarantee(0.5, 1e-2), 2)])
    bounds = lattice.log_delta(composition, 0.4)
    with mp.workdps(40):
        scaled = [
            [(x, p * (1 - mp.mpf(d))) for x, p in response_atoms(e)] for e, d in [(0.2, 1e-3)] * 3 + [(0.5, 1e-2)] * 2
        ]
        assert holds(bounds, atoms_log_delta(scaled, 0.4))


def test_many_values_on_one_lattice() -> None:
    points = tuple((0.1 * k, p) for k, p in zip((-3, -1, 0, 2, 5), (0.2, 0.3, 0.2, 0.2, 0.1), strict=True))
    bounds = lattice.log_delta(Composition.of([(AtomicLaw(points), 4)]), 0.55)
    with mp.workdps(40):
        truth = atoms_log_delta([[(mp.mpf(x), mp.mpf(p)) for x, p in points]] * 4, 0.55)
    assert holds(bounds, truth)
    assert bounds[1] - bounds[0] < 1e-10


# -- any profile, any budget, no NaN
# ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high", "mass"), [(-0.5, 1.0, 0.9), (1.0, 2.0, 0.3), (-0.2, 0.3, 1.0)])
def test_uniform_losses(low: float, high: float, mass: float) -> None:
    law, epsilon = UniformLaw(low, high, mass), 0.4 * 3 * high
    bounds = lattice.log_delta(Composition(((law, 3),)), epsilon)
    truth = law.uniform_log_delta(3, epsilon)
    assert bounds[0] - 1e-8 <= truth <= bounds[1] + 1e-8
    assert bounds[1] - bounds[0] < 1e-4


def test_a_small_budget_gives_a_wider_interval_that_still_holds() -> None:
    truth = 5.3794158889104871
    wide = lattice.epsilon(laplace(0.2, 50), math.log(1e-4), effort=0.03)
    assert wide[0] <= truth <= wide[1]
    assert 1e-6 < wide[1] - wide[0] < 0.1


def test_a_profile_with_holes_never_answers_nan() -> None:
    bounds = lattice.log_delta(Composition(((BrokenLaw(-0.5, 1.0, 0.9), 2),)), 0.5)
    truth = UniformLaw(-0.5, 1.0, 0.9).uniform_log_delta(2, 0.5)
    assert bounds[0] <= truth <= bounds[1]
    answer = lattice.epsilon(Composition(((BrokenLaw(-0.5, 1.0, 0.9), 2),)), math.log(0.05))
    assert not any(math.isnan(x) for x in (*bounds, *answer))


def test_nothing_to_ask() -> None:
    assert lattice.epsilon(laplace(0.2, 50), 0.0) == (0.0, 0.0)
    low, high = lattice.epsilon(laplace(0.2, 2), math.log(0.9))
    assert low == high == 0.0


def test_common_lengths_and_steps() -> None:
    assert common_length([0.4, 0.6]) == pytest.approx(0.2)
    assert common_length([0.4, 0.4 * math.sqrt(2)]) is None
    assert common_length([]) is None
    assert common_length([1.0, 1 + 1 / 63, 1 + 1 / 62]) is None
    assert spacing(np.array([0.5, 0.5])) is None  # two losses of one size have no length between them
    rows = layouts(Composition.of([(LaplaceLaw(0.2, 0.2), 3), (LaplaceLaw(0.3, 0.3), 2)]), -40.0, 0.0)
    step = step_for(rows, 0.011)
    assert step <= 0.011
    assert 0.4 / step == pytest.approx(round(0.4 / step))
    assert 0.6 / step == pytest.approx(round(0.6 / step))
    assert step_for(layouts(gaussians(1.0, 2), -40.0, 0.0), 0.01) == 0.01


def test_point_masses_move_by_no_more_than_is_recorded() -> None:
    spread = point_spread(np.array([0.1, 0.3]), np.array([0.5, 0.5]), 0.1, 0.1)
    assert spread.blur == 0
    assert spread.shift < 1e-14


def test_point_masses_too_far_from_their_nodes_leave_no_lower_bound() -> None:
    """With a few nodes in all the divided masses spread by more than one nat: only the upper bound is
    left."""
    composition = Composition.of([(TwoPointLaw.of_guarantee(30.0), 1), (TwoPointLaw.of_guarantee(31.7), 1)])
    low, high = lattice.log_delta(composition, 40.0, effort=1e-4)
    with mp.workdps(40):
        assert holds((low, high), atoms_log_delta([response_atoms(30.0), response_atoms(31.7)], 40.0))
    assert low == -math.inf


def test_broken_masses_and_terms_give_the_trivial_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    composition = laplace(0.5, 3)
    bracket = lattice._bracket(layouts(composition, -40.0, 0.0), 0.01, lambda _: 0.7, 1.0, STANDARD.lattice)
    assert bracket is not None
    nan = replace(bracket.upper.terms[0], log_mass=math.nan)
    assert replace(bracket.upper, terms=(nan,)).log_bound(0.7) == 0.0
    assert bracket.lower is not None
    assert replace(bracket.lower, terms=(nan,)).log_bound(0.7) == -math.inf
    spoiled = replace(bracket.upper.terms[0], node_values=np.full(5, math.nan), start=-10)
    assert replace(bracket.upper, terms=(spoiled,)).log_bound(0.7) <= 0.0
    assert replace(bracket.lower, terms=()).log_bound(0.7) == -math.inf
    assert replace(bracket.lower, terms=(), blur=0.01).log_bound(0.7) == -math.inf
    monkeypatch.setattr(
        lattice, "upper_spread", lambda table: replace(upper_spread(table), masses=np.full(3, math.inf))
    )
    assert lattice.log_delta(composition, 0.7) == (-math.inf, 0.0)
    assert lattice.epsilon(composition, -3.0)[0] == 0.0
    assert lattice.epsilon(composition, -3.0)[1] >= 1.5


def test_the_terms_left_over_are_bounded_or_refused() -> None:
    spread = upper_spread(Table.of(SampledGaussianLaw(0.02, 1.0, Direction.REMOVE), math.log1p(-0.02), 2e-3, 2500))
    factor = Factor(spread, 5, 150, 2501)
    rest = lattice._bounded([factor], 4.0, jumping=True)
    assert rest is not None
    at = 1.0 - 5 * spread.offset
    term = term_of([factor], at, jumping=True)
    assert term is not None
    low, _, scale = term.bounds(at)
    assert math.log(low) + scale <= rest[0] - rest[1] * at
    assert lattice._bounded([replace(factor, cut=2501)], 4.0, jumping=True) is None  # nothing heavy
    hollow = replace(spread, masses=np.where(np.arange(2501) < 150, 0.0, spread.masses))
    full = lattice._bounded([replace(factor, spread=hollow)], 4.0, jumping=True)  # nothing light: every step jumps
    assert full is not None
    assert full[0] < math.inf
    assert lattice._bounded([Factor(hollow, 5, 150, 150)], 4.0, jumping=False) is None


@pytest.mark.parametrize("epsilon", [0.3, 5.0, 12.0])
def test_a_lattice_without_end(epsilon: float) -> None:
    """Three discrete Gaussians: atoms() lists only the likely ones, the upper bound must hold beyond them as
    well."""
    with mp.workdps(50):
        weights = {k: mp.exp(-(mp.mpf(k) ** 2) / 8) for k in range(-70, 71)}
        whole = mp.fsum(weights.values())
        total: dict[int, mp.mpf] = {0: mp.mpf(1)}
        for _ in range(3):
            following: dict[int, mp.mpf] = {}
            for a, p in total.items():
                for b, q in weights.items():
                    following[a + b] = following.get(a + b, mp.mpf(0)) + p * q / whole
            total = following
        # the loss of one draw k is (1 - 2k)/8
        losses = {k: mp.mpf(3 - 2 * k) / 8 for k in total}
        truth = mp.log(mp.fsum(p * -mp.expm1(epsilon - losses[k]) for k, p in total.items() if losses[k] > epsilon))
    bounds = lattice.log_delta(Composition(((DiscreteGaussianLaw(2.0, 1), 3),)), epsilon)
    assert holds(bounds, truth)
    assert bounds[1] - bounds[0] < 1e-9


def test_a_law_that_cannot_list_its_atoms_is_taken_by_its_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> tuple[tuple[float, float], ...]:
        raise Unanswerable("too many")

    monkeypatch.setattr(LaplaceLaw, "atoms", refuse)
    bounds = lattice.log_delta(laplace(0.5, 10), 3.0, effort=0.1)
    assert holds(bounds, mp.log(mp.mpf("0.0318591134251152142984994809366")))


def test_a_window_beyond_the_budget_is_refused_before_it_is_made() -> None:
    factor = Factor(LatticeMeasure(0.0, 1e-3, np.full(4, 0.25)), 3000, 4, 4)
    assert convolve([factor], 4.0, (1.0, 1.5), TILTS, 1 << 10, 1 << 12, jumping=False) is not None
    assert convolve([factor], 4.0, (1.0, 5.5), TILTS, 1 << 10, 1 << 12, jumping=False) is None
