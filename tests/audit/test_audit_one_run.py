"""Laws and golden: the one-run bound against enumeration, linear programming and published numbers; coverage and
power (statistical, with fixed bytes).
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction as F

import mpmath
import numpy as np
import pytest
from fixed_bytes import fix_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import ndtr
from scipy.stats import binom

from dptally import audit, noise
from dptally.audit.one_run import _largest_rejected, guess_p_value, right_guesses
from dptally.mechanisms import ApproxDP, Gaussian, PureDP


def exact_bound(canaries, guesses, right, epsilon, delta):
    """The theorem's formula to fifty digits."""
    with mpmath.workdps(50):
        chance = 1 / (1 + mpmath.exp(-epsilon))
        mass = [math.comb(guesses, k) * chance**k * (1 - chance) ** (guesses - k) for k in range(guesses + 1)]
        tail = mpmath.fsum(mass[right:])
        return float(tail + canaries * mpmath.mpf(delta) * tail * (1 - tail) / (right * mass[right]))


def published_bound(canaries, guesses, right, epsilon, delta):
    """The formula of the paper's Appendix D, as its users write it."""
    chance = 1 / (1 + math.exp(-epsilon))
    tail = binom.sf(right - 1, guesses, chance)
    i = np.arange(1, right + 1)
    return tail + 2 * canaries * delta * ((binom.sf(right - 1 - i, guesses, chance) - tail) / i).max()


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (1.0, 1e-3), (0.5, 0.01), (3.0, 1e-9)])
def test_the_bound_is_its_formula(epsilon, delta):
    canaries, guesses = 40, 20
    for right in range(1, guesses + 1):
        bound = guess_p_value(canaries, guesses, right, epsilon, delta)
        exact = min(1.0, exact_bound(canaries, guesses, right, epsilon, delta))
        assert bound >= exact * (1 - 1e-15)
        if delta == 0 or right > guesses / (1 + math.exp(-epsilon)):
            assert bound == pytest.approx(exact, rel=1e-8)
        else:
            assert bound == 1.0
    assert guess_p_value(canaries, guesses, 0, epsilon, delta) == 1.0


def test_the_bound_holds_for_many_guesses():
    assert guess_p_value(10**6, 10**5, 6 * 10**4, 0.0, 1e-12) < 1e-9
    all_right = math.exp(-(10**6) * math.log1p(math.exp(-20.0)))
    assert guess_p_value(10**6, 10**6, 10**6, 20.0, 1e-3) == pytest.approx(all_right + 1e-3 * (1 - all_right), rel=1e-8)


def best_law(guesses, right, epsilon, excess):
    """The most that P(V >= right) can be under the conditions (*) of the proof: a linear program."""
    levels = guesses + 1
    gain = np.zeros(levels + guesses)
    gain[right:levels] = -1
    conditions, limits = [], []
    for k in range(guesses):
        row = np.zeros(levels + guesses)
        row[k + 1], row[k], row[levels + k] = k + 1, -math.exp(epsilon) * (guesses - k), -1
        conditions.append(row)
        limits.append(0.0)
    conditions.append(np.concatenate([np.zeros(levels), np.ones(guesses)]))
    limits.append(excess)
    whole = np.concatenate([np.ones(levels), np.zeros(guesses)])[None, :]
    return -linprog(gain, A_ub=conditions, b_ub=limits, A_eq=whole, b_eq=[1.0]).fun


@pytest.mark.parametrize(
    ("guesses", "right", "epsilon", "excess"),
    [(5, 5, 0.0, 0.01), (5, 4, 1.0, 0.01), (10, 8, 0.5, 0.05), (20, 15, 0.0, 0.1), (12, 12, 2.0, 1e-3)],
)
def test_no_better_bound_follows_from_the_same_conditions(guesses, right, epsilon, excess):
    bound = guess_p_value(guesses, guesses, right, epsilon, excess / guesses)
    assert bound == pytest.approx(best_law(guesses, right, epsilon, excess), rel=1e-7)


# -- algorithms by enumeration -----------------------------------------------------------------------------------


def delta_of(rows, odds):
    """The smallest delta for which rows[s] -> outputs is (log odds, delta)-DP under one flipped coin."""
    return max(
        sum(max(rows[s][t] - odds * rows[flipped][t], 0) for t in rows[s])
        for s in rows
        for i in range(len(s))
        for flipped in [(*s[:i], 1 - s[i], *s[i + 1 :])]
    )


def law_of_right(rows):
    """P(V = v), V the number of positions i with t_i = s_i; None is no guess."""
    law = defaultdict(lambda: 0)
    for s, row in rows.items():
        for t, mass in row.items():
            law[sum(a == b for a, b in zip(s, t, strict=True))] += mass / len(rows)
    return law


def at_least(law, v):
    return sum(mass for k, mass in law.items() if k >= v)


COINS = list(itertools.product((0, 1), repeat=3))
GUESSES = {
    3: COINS,
    2: [t for t in itertools.product((0, 1, None), repeat=3) if t.count(None) == 1],
}


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3]), st.floats(0.02, 3.0), st.floats(0.0, 2.0))
def test_no_algorithm_beats_the_bound(seed, guesses, boldness, epsilon):
    """Random algorithms on three coins, from timid to bold, each at its own delta by enumeration."""
    rng = np.random.default_rng(seed)
    rows = {}
    for s in COINS:
        agreement = np.array([sum(a == b for a, b in zip(s, t, strict=True)) for t in GUESSES[guesses]])
        weight = np.exp(boldness * agreement + rng.normal(size=len(agreement)) * rng.random())
        rows[s] = dict(zip(GUESSES[guesses], weight / weight.sum(), strict=True))
    delta, law = delta_of(rows, math.exp(epsilon)), law_of_right(rows)
    for v in range(1, guesses + 1):
        assert at_least(law, v) <= exact_bound(3, guesses, v, epsilon, delta) + 1e-12
        assert at_least(law, v) <= guess_p_value(3, guesses, v, epsilon, delta) + 1e-12


def answered(levels):
    """The algorithm whose guesses are all made, v of them right with probability levels[v], evenly."""
    share = [level / math.comb(3, k) for k, level in enumerate(levels)]
    return {s: {t: share[sum(a == b for a, b in zip(s, t, strict=True))] for t in COINS} for s in COINS}


def test_an_algorithm_that_tells_all_at_times_meets_the_bound_with_equality():
    odds, chance = F(3), F(3, 4)
    delta = F(1, 50)
    honest = [math.comb(3, k) * chance**k * (1 - chance) ** (3 - k) for k in range(4)]
    rows = answered([(1 - delta) * w + delta * (k == 3) for k, w in enumerate(honest)])
    assert delta_of(rows, odds) == delta
    assert float(law_of_right(rows)[3]) == pytest.approx(exact_bound(3, 3, 3, math.log(3), delta), rel=1e-12)


def test_the_formula_in_circulation_fails_below_the_mean_where_ours_is_met():
    """epsilon 0, three coins, one right or more: exact fractions. Where audits look, above the mean, the
    published formula is larger than ours (next test).
    """
    honest = [F(math.comb(3, k), 8) for k in range(4)]
    none = honest[0] * F(99, 100)
    rows = answered([none] + [w * (1 - none) / (1 - honest[0]) for w in honest[1:]])
    delta, law = delta_of(rows, F(1)), law_of_right(rows)
    tail = 1 - honest[0]
    assert at_least(law, 1) == tail + 3 * delta * tail * (1 - tail) / honest[1], "ours, with equality"
    assert at_least(law, 1) > tail + 2 * 3 * delta * honest[0], "the published second term"
    assert at_least(law, 1) <= guess_p_value(3, 3, 1, 0.0, float(delta))


def test_above_the_mean_the_bound_is_sharper_than_the_published_one():
    for guesses, epsilon in itertools.product((1, 2, 5, 20, 200), (0.0, 0.1, 1.0, 3.0)):
        for right in range(math.floor(guesses / (1 + math.exp(-epsilon))) + 1, guesses + 1):
            ours = guess_p_value(guesses, guesses, right, epsilon, 1e-4)
            assert ours <= published_bound(guesses, guesses, right, epsilon, 1e-4) * (1 + 1e-8)


def rejected(bound, canaries, guesses, right, delta, level):
    low, high = 0.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if bound(canaries, guesses, right, middle, delta) < level else (low, middle)
    return low


@pytest.mark.parametrize(
    ("setting", "printed", "ours"),
    [((1000, 100, 75, 1e-4, 0.05), 0.673, 0.6951), ((100_000, 1510, 1439, 1e-5, 0.05), 2.675, 2.8028)],
)
def test_published_numbers(setting, printed, ours):
    """Appendix D and Section 7 of the paper print 0.673 and 2.675: its formula gives them, ours gives more."""
    assert rejected(published_bound, *setting) == pytest.approx(printed, abs=1e-3)
    assert rejected(guess_p_value, *setting) == pytest.approx(ours, abs=1e-4)


# -- canaries with scores: randomised response, Laplace, Gaussian ---------------------------------------------------


def laplace_cells(scale, cut):
    """Discrete Laplace around 0 or 1, cut off at both ends: P(score | out), P(score | in)."""
    a = math.exp(-1 / scale)
    pmf = lambda x: (1 - a) / (1 + a) * a ** abs(x)  # noqa: E731
    grid = range(-cut, cut + 2)
    rows = [[pmf(x - mean) for x in grid] for mean in (0, 1)]
    for row, mean in zip(rows, (0, 1), strict=True):
        row[0] = a ** (cut + mean) / (1 + a)
        row[-1] = a ** (cut + 1 - mean) / (1 + a)
    return np.array(rows)


def gaussian_cells(mu):
    edges = np.array([-math.inf, -0.8, 0.0, 0.5, 1.0, 1.8, math.inf])
    return np.array([np.diff(ndtr(edges)), np.diff(ndtr(edges - mu))])


def law_of_scores(cells, canaries, guesses):
    """The law of the number of right guesses with independent canaries, by all coins and all scores."""
    law = np.zeros(guesses + 1)
    for coins in itertools.product((0, 1), repeat=canaries):
        for scores in itertools.product(range(cells.shape[1]), repeat=canaries):
            mass = math.prod(cells[c, s] for c, s in zip(coins, scores, strict=True)) / 2**canaries
            law[right_guesses(np.array(scores, float), np.array(coins, bool), guesses)] += mass
    return law


MU = 1.2
CANARIES = {
    "randomised response": (np.array([[0.75, 0.25], [0.25, 0.75]]), math.log(3), 0.0),
    "laplace": (laplace_cells(1.25, 2), 0.8, 0.0),
    "gaussian at 0.5": (gaussian_cells(MU), 0.5, Gaussian(sigma=1 / MU).delta(0.5)),
    "gaussian at 2": (gaussian_cells(MU), 2.0, Gaussian(sigma=1 / MU).delta(2.0)),
}


@pytest.mark.parametrize("guesses", [1, 2, 3])
@pytest.mark.parametrize("name", CANARIES)
def test_right_guesses_of_scored_canaries_are_within_the_bound(name, guesses):
    cells, epsilon, delta = CANARIES[name]
    assert cells.sum(axis=1) == pytest.approx([1, 1])
    law = law_of_scores(cells, 3, guesses)
    for v in range(1, guesses + 1):
        assert law[v:].sum() <= guess_p_value(3, guesses, v, epsilon, delta) * (1 + 1e-9)
    for level in (0.01, 0.05, 0.2, 0.5):  # coverage, exactly: what would be refuted has no more mass than the level
        refuted = [v for v in range(guesses + 1) if _largest_rejected(3, guesses, v, delta, level) > epsilon]
        assert law[refuted].sum() <= level


def test_randomised_response_meets_the_pure_bound_with_equality():
    """All guessed: the number right is exactly the bound's binomial."""
    assert guess_p_value(10, 10, 9, math.log(3)) == pytest.approx(float(binom.sf(8, 10, 0.75)), rel=1e-8)


def responses(epsilon, size):
    coins = noise.bernoulli(F(1, 2), size)
    told = coins ^ ~noise.bernoulli(1 / (1 + math.exp(-epsilon)), size)
    return told.astype(float), coins


@pytest.mark.statistical
def test_a_right_claim_is_refuted_no_more_often_than_stated_and_a_wrong_one_nearly_always(monkeypatch):
    """200 runs of 300 canaries at confidence 0.9. Right claim: 20 refutations would be expected at most, and
    more than 55 come with probability below 1e-10. Wrong claim, true epsilon 1 and not 0.5: the power.
    """
    fix_bytes(monkeypatch, "one run")
    right, wrong = 0, 0
    for _ in range(200):
        scores, coins = responses(1.0, 300)
        right += audit.one_run(scores, coins, PureDP(1.0), guesses=300, confidence=0.9).refuted
        wrong += audit.one_run(scores, coins, PureDP(0.5), guesses=300, confidence=0.9).refuted
    assert binom.sf(55, 200, 0.1) < 1e-10
    assert right <= 55
    assert wrong >= 190


@pytest.mark.statistical
def test_one_run_comes_near_the_truth_and_not_above_it(monkeypatch):
    fix_bytes(monkeypatch, "one run, 4000 canaries")
    scores, coins = responses(2.0, 4000)
    result = audit.one_run(scores, coins, PureDP(2.0), guesses=4000)
    assert not result.refuted
    assert result.lower > 0.8 * 2.0
    assert "of 4000 guesses right" in result.event
    assert audit.one_run(scores, coins, PureDP(1.0), guesses=(1000, 4000)).refuted
    approximate = audit.one_run(scores, coins, ApproxDP(2.0, 1e-9), guesses=4000)
    assert 0.75 * 2.0 < approximate.lower <= result.lower
