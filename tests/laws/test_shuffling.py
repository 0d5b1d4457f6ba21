"""The shuffle model against all data sets of few users, exact sums, and quadrature. Laws and golden values."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import dptally as dp
from depth import thinned
from dptally.laws.shuffling import blanket as blankets
from dptally.laws.shuffling.law import ShuffledLaw, _contour

Counts = dict[tuple[int, ...], float]


# -- truth that shares no code with the library ------------------------------------------------------------------------


def joined(one: Counts, other: Counts) -> Counts:
    out: Counts = {}
    for a, p in one.items():
        for b, q in other.items():
            both = tuple(x + y for x, y in zip(a, b, strict=True))
            out[both] = out.get(both, 0.0) + p * q
    return out


def report(row: np.ndarray) -> Counts:
    return {tuple(int(i == j) for i in range(len(row))): float(p) for j, p in enumerate(row)}


def hockey_stick(p: Counts, q: Counts, epsilon: float) -> float:
    return sum(max(mass - math.exp(epsilon) * q.get(counts, 0.0), 0.0) for counts, mass in p.items())


def worst_data_set(rows: np.ndarray, users: int, epsilon: float) -> float:
    """The largest delta over the values of all users; ``rows[x]`` is the law of a report of x."""
    values, best = range(len(rows)), 0.0
    for others in itertools.combinations_with_replacement(values, users - 1):
        hidden: Counts = {(0,) * rows.shape[1]: 1.0}
        for value in others:
            hidden = joined(hidden, report(rows[value]))
        laws = [joined(hidden, report(rows[x])) for x in values]
        best = max(best, *(hockey_stick(laws[x], laws[y], epsilon) for x, y in itertools.permutations(values, 2)))
    return best


def response(p: float, categories: int) -> np.ndarray:
    rows = np.full((categories, categories), (1 - p) / (categories - 1))
    np.fill_diagonal(rows, p)
    return rows


def unary(p: float, q: float, categories: int) -> np.ndarray:
    bits = list(itertools.product((0, 1), repeat=categories))
    chance = {True: (1 - p, p), False: (1 - q, q)}
    return np.array(
        [[math.prod(chance[i == x][b] for i, b in enumerate(one)) for one in bits] for x in range(categories)]
    )


def exact_sum(kinds: list[tuple[Any, Any, Any]], gamma: Any, users: int, epsilon: float) -> Any:
    """(1/(gamma n)) E (L_1 + .. + L_M)+, over all counts of kinds."""
    a = mp.e ** mp.mpf(epsilon)
    values, chances = [x - a * y for x, y, _ in kinds] + [mp.mpf(0)], [gamma * p for *_, p in kinds] + [1 - gamma]
    powers = [[chance**c / mp.factorial(c) for c in range(users + 1)] for chance in chances]

    def rest(kind: int, left: int, value: Any, weight: Any) -> Any:
        if kind == len(values) - 1:
            total = value + left * values[kind]
            return total * weight * powers[kind][left] if total > 0 else mp.mpf(0)
        return sum(
            rest(kind + 1, left - c, value + c * values[kind], weight * powers[kind][c]) for c in range(left + 1)
        )

    return rest(0, users, mp.mpf(0), mp.factorial(users)) / (gamma * users)


# -- all data sets of few users ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(thinned(300)))
def test_no_data_set_of_few_users_exceeds_the_claim(seed: int) -> None:
    rng = np.random.default_rng(seed)
    categories = int(rng.choice([2, 3, 4]))
    users, p = int(rng.integers(1, 8 if categories < 4 else 6)), float(rng.uniform(0.02, 0.98))
    loss = abs(math.log(p * (categories - 1) / (1 - p)))
    epsilon = float(loss * rng.choice([0.0, 0.1, 0.3, 0.6, 0.9, 0.999]))
    truth = worst_data_set(response(p, categories), users, epsilon)
    box = dp.ShuffleModel(dp.RandomizedResponse(p, categories), users).delta_interval(epsilon)
    assert box.lower <= truth * (1 + 1e-11) + 1e-16
    assert truth <= box.upper * (1 + 1e-11) + 1e-16
    assert truth <= dp.ShuffleModel(dp.PureDP(loss), users).delta(epsilon) * (1 + 1e-11) + 1e-16
    if users == 1 or (categories == 2 and users == 2):
        assert truth == pytest.approx(box.upper, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("categories", "users"), [(2, 2), (2, 4), (3, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize(("p", "q"), [(0.75, 0.25), (0.5, 0.1)])
def test_unary_encoding_on_all_data_sets(p: float, q: float, categories: int, users: int) -> None:
    model = dp.ShuffleModel(dp.UnaryEncoding(p, q, categories), users)
    for epsilon in (0.0, 0.4, 1.1):
        truth, box = worst_data_set(unary(p, q, categories), users, epsilon), model.delta_interval(epsilon)
        assert box.lower <= truth * (1 + 1e-11)
        assert (0.6 if categories > 2 else 0.3) * box.upper <= truth <= box.upper * (1 + 1e-11)


def test_two_reports_with_laplace_noise() -> None:
    """Densities of unordered pairs on a grid of cells: the values of the two users at the ends of the range."""
    model, width = dp.ShuffleModel(dp.Laplace(1.0), 2), 0.04
    y = np.arange(-9.0, 10.0, width)
    density = {x: 0.5 * np.exp(-np.abs(y - x)) * width for x in (0.0, 0.5, 1.0)}
    for epsilon in (0.0, 0.3, 0.7):
        best = 0.0
        for other, x, z in itertools.product((0.0, 0.5, 1.0), (0.0, 1.0), (0.0, 1.0)):
            one, two = (np.multiply.outer(density[v], density[other]) for v in (x, z))
            excess = 0.5 * (one + one.T) - math.exp(epsilon) * 0.5 * (two + two.T)
            best = max(best, float(np.maximum(excess, 0.0).sum()))
        assert 0.5 * model.delta(epsilon) <= best <= model.delta(epsilon) * 1.002


def test_the_variation_ratio_bound_is_false() -> None:
    """C ~ Bin(n - 1, 2 f) clones beside the own report: less than two data sets really differ by."""
    users, epsilon = 6, 0.9
    lie = 1 / (math.e + 2)
    true = math.e * lie

    def binomial(n: int, p: float, k: int) -> float:
        return math.comb(n, k) * p**k * (1 - p) ** (n - k)

    def law(first: float, second: float) -> Counts:
        out: Counts = {}
        for c, a in ((i, j) for i in range(users) for j in range(i + 1)):
            chance = binomial(users - 1, 2 * lie, c) * binomial(c, 0.5, a)
            own = ((a + 1, c - a), first), ((a, c - a + 1), second), ((a, c - a), 1 - first - second)
            for counts, p in own:
                out[counts] = out.get(counts, 0.0) + chance * p
        return out

    claimed = hockey_stick(law(true, lie), law(lie, true), epsilon)
    truth = worst_data_set(response(true, 3), users, epsilon)
    box = dp.ShuffleModel(dp.RandomizedResponse(true, 3), users).delta_interval(epsilon)
    assert claimed == pytest.approx(0.00021, abs=1e-5)
    assert truth == pytest.approx(0.00348, abs=1e-5)
    assert box.lower <= truth * (1 + 1e-12) <= box.upper * (1 + 2e-12)


def test_two_rounds_of_few_users() -> None:
    rows, plan = response(0.7, 3), 2 * dp.ShuffleModel(dp.RandomizedResponse(0.7, 3), 3)
    for epsilon in (0.2, 1.0):
        best = 0.0
        for others in itertools.combinations_with_replacement(range(3), 2):
            laws = [joined(joined(report(rows[others[0]]), report(rows[others[1]])), report(rows[x])) for x in (0, 1)]
            p, q = ({(*a, *b): v * w for a, v in one.items() for b, w in one.items()} for one in laws)
            best = max(best, hockey_stick(p, q, epsilon))
        box = plan.delta_interval(epsilon)
        assert box.lower <= best * (1 + 1e-11)
        assert best <= box.upper * (1 + 1e-11)
        assert best >= 0.8 * box.upper


# -- sums of few values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(thinned(240)))
def test_sums_by_contours_hold_exact_sums(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, users = float(rng.choice([0.01, 0.3, 1.0, 3.0, 10.0])), int(rng.choice([1, 2, 5, 14]))
    with mp.workdps(40):
        if seed % 3 == 0:
            p, k = Fraction(float(rng.uniform(0.02, 0.98))), int(rng.choice([2, 3, 10]))
            lie, share = (1 - p) / (k - 1), Fraction(1, k)
            rows = [(k * p, k * lie, share), (k * lie, k * p, share), (k * lie, k * lie, 1 - 2 * share)]
            kinds = [tuple(mp.mpf(v.numerator) / v.denominator for v in row) for row in rows if row[2] > 0]
            least = k * min(p, lie)
            gamma, size = mp.mpf(least.numerator) / least.denominator, abs(math.log(p / lie))
            cover = blankets.response_blanket(p, k)
        elif seed % 3 == 1:
            odds, half = mp.e ** mp.mpf(size), mp.mpf(0.5)
            kinds = [(2 * odds / (odds + 1), 2 / (odds + 1), half), (2 / (odds + 1), 2 * odds / (odds + 1), half)]
            gamma, cover = 1 / odds, blankets.clones(size)
        else:
            root = mp.e ** (mp.mpf(size) / 2)
            part = 1 / (root + 1)
            kinds = [(root, 1 / root, part), (1 / root, root, part), (1 / root, 1 / root, 1 - 2 * part)]
            gamma, cover = 1 / root, blankets.three_point_blanket(size)
        near = [1e-9, 0.01, 0.5, 0.9, 1 - 1e-9, 1 - 1e-13, 1 - 2e-16, rng.random()]
        epsilon = size * float(rng.choice(near))
        truth = mp.log(exact_sum(kinds, gamma, users, epsilon))
        box = cover.log_profile(epsilon, users)
        assert mp.mpf(box.lower) <= truth <= mp.mpf(box.upper)
        assert truth <= mp.mpf(float(cover.log_chernoff(np.array([epsilon]), users)[0]))
        if epsilon < 0.99 * size:  # few users are the worst case of a contour, and are counted instead
            assert box.upper - float(truth) < 0.1


def test_golden_values() -> None:
    """From the specification of the shuffle model, found there with contours in double precision."""
    e3 = math.exp(3)
    box = dp.ShuffleModel(dp.RandomizedResponse(e3 / (e3 + 9), 10), 10**4).delta_interval(0.6)
    assert box.upper == pytest.approx(1.3e-34, rel=0.02)
    assert box.lower > 0.9 * box.upper
    many = dp.ShuffleModel(dp.RandomizedResponse(0.6, 3), 10**6).epsilon_interval(1e-300)
    assert 0 < many.upper - many.lower < 1e-3 * many.upper


def test_noise_next_to_the_largest_loss_does_not_hide_the_answer() -> None:
    """The bound next to the largest loss is loose; the search must not end there."""
    model = dp.ShuffleModel(dp.Laplace(1.0), 100)
    assert model.epsilon(1e-6) < 0.47
    assert model.delta(model.epsilon(1e-6)) <= 1e-6
    deltas = model.delta(np.linspace(0.0, 1.0, 40))
    assert (np.diff(deltas) <= 0).all()


# -- what it is stated for ---------------------------------------------------------------------------------------------


def test_a_sample_that_is_there_or_not_is_no_local_randomiser() -> None:
    sampled = dp.PoissonSampled(dp.Laplace(1.0), 0.5)
    with pytest.raises(dp.Unanswerable, match="ADD_REMOVE"):
        dp.ShuffleModel(sampled, 100).epsilon(1e-6)
    with pytest.raises(dp.Unanswerable, match="ADD_REMOVE"):
        dp.ShuffleModel(sampled.best_of(mean=2), 100).epsilon(1e-6)
    advised = dp.ShuffleModel(dp.PoissonSampled(dp.Laplace(1.0), 0.5, dp.REPLACE), 100)
    assert 0 < advised.epsilon(1e-6) < 1
    with pytest.raises(dp.Unanswerable, match="epsilon-LDP"):
        dp.ShuffleModel(dp.Gaussian(1.0), 100).epsilon(1e-6)


def test_accounts_for_records_added_or_removed_do_not_pay_for_it(tmp_path: Path) -> None:
    ledger = dp.Ledger.open(f"sqlite:///{tmp_path}/users.db", create=True)
    ledger.create("added", budget=dp.PureDP(2.0))
    ledger.create("replaced", budget=dp.PureDP(2.0), adjacency=dp.REPLACE)
    model = dp.ShuffleModel(dp.RandomizedResponse(0.6, 3), 20)
    with pytest.raises(dp.TermsMismatch, match="replaced"), ledger.spend("added", model, by="ada", why="a poll"):
        pass
    with ledger.spend("replaced", model, by="ada", why="a poll"):
        pass


def test_calibrated_and_as_text() -> None:
    scale = dp.calibrate(lambda b: dp.ShuffleModel(dp.Laplace(b), 1000), epsilon=0.2, delta=1e-6)
    assert dp.ShuffleModel(dp.Laplace(scale), 1000).epsilon(1e-6) <= 0.2
    from dptally.cli.language import parse

    assert parse("shuffle(rr(0.6, 3), 20)") == dp.ShuffleModel(dp.RandomizedResponse(0.6, 3), 20)


@pytest.mark.parametrize(("users", "delta"), [(10**6, 1e-6), (5000, 1e-9), (10**4, 1e-100)])
def test_few_contours_answer_for_many_categories(users: int, delta: float) -> None:
    """Its own guess of epsilon is next to the answer, which is found from it with few contours."""
    model = dp.ShuffleModel(dp.RandomizedResponse(0.5, categories=100), users)
    before = _contour.cache_info().misses
    box = model.epsilon_interval(delta)
    assert _contour.cache_info().misses - before < 60
    assert box.upper == pytest.approx(box.lower, rel=1e-3)
    law = next(law for law in model.laws_below() or () if isinstance(law, ShuffledLaw))
    assert law.about_epsilon(math.log(delta)) == pytest.approx(box.lower, rel=1e-5)
