"""The best of K runs against exact winners: random finite pairs, rankings and laws of K. Laws and golden values."""

from __future__ import annotations

import math
import warnings
from functools import partial

import numpy as np
import pytest

import dptally as dp
from depth import thinned
from dptally.accounting.certified.contour import inversion
from dptally.laws.atoms import AtomicLaw
from dptally.laws.guaranteed import staircase
from dptally.laws.tuning.law import log_ratio, tuned_table
from dptally.laws.tuning.runs import NegativeBinomialRuns, PoissonRuns, Runs

SHAPES = (-0.5, 0.0, 0.5, 1.0, 2.0)
EPSILONS = np.linspace(0.0, 4.0, 25)


def generating(runs: Runs, x: np.ndarray) -> np.ndarray:
    """E x^K, by its textbook form."""
    if isinstance(runs, PoissonRuns):
        return np.exp(runs.mean * (x - 1))
    assert isinstance(runs, NegativeBinomialRuns)
    g, eta = runs.g, runs.shape
    if g == 1:
        return x
    if eta == 0:
        return np.log1p(-(1 - g) * x) / math.log(g)
    return ((1 - (1 - g) * x) ** -eta - 1) / (g**-eta - 1)


def winner(p: np.ndarray, runs: Runs) -> np.ndarray:
    """Outcomes in increasing order of rank: f(P(<= y)) - f(P(< y)), and nothing at all."""
    below = np.concatenate(([0.0], np.minimum(np.cumsum(p), 1.0)))
    below[-1] = 1.0
    return np.append(np.diff(generating(runs, below)), generating(runs, np.zeros(1))[0])


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    return np.maximum(p - np.exp(epsilon)[:, None] * q, 0.0).sum(axis=1)


def random_pair(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    size = int(rng.integers(2, 7))
    p = rng.dirichlet(np.full(size, rng.choice([0.2, 1.0, 5.0])))
    q = p * np.exp(rng.normal(0, rng.choice([0.1, 0.5, 1.5]), size))
    if rng.random() < 0.2:
        q[int(rng.integers(size))] = 0.0
    q = np.maximum(q, 0.0) / q.sum()
    order = rng.permutation(size)
    return p[order], q[order]


def random_runs(rng: np.random.Generator) -> Runs:
    mean = float(rng.choice([1.0, 1.5, 3.0, 10.0, 100.0]))
    if rng.random() < 0.2:
        return PoissonRuns(mean)
    return NegativeBinomialRuns.of_mean(mean, float(rng.choice(SHAPES)))


def test_no_ranking_of_finite_pairs_exceeds_the_claim() -> None:
    rng = np.random.default_rng(20260101)
    knots = np.linspace(0.0, 6.0, 41)
    tight = []
    for _ in range(thinned(3000)):
        p, q = random_pair(rng)
        runs = random_runs(rng)
        delta = np.maximum(hockey_stick(p, q, knots), hockey_stick(q, p, knots))
        law = tuned_table(knots, delta, runs)
        claim = np.exp(law.log_profile(EPSILONS)[1]) + law.infinity_mass
        a, b = winner(p, runs), winner(q, runs)
        truth = np.maximum(hockey_stick(a, b, EPSILONS), hockey_stick(b, a, EPSILONS))
        assert (truth <= claim * (1 + 1e-11) + 1e-13).all(), (p, q, runs)
        tight.append(float(np.max(truth / np.maximum(claim, 1e-9))))
    assert np.median(tight) > 0.3  # a claim that is far off would pass everything


def test_comonotone_bound_is_never_above_the_plain_one() -> None:
    epsilon = np.linspace(0.0, 3.0, 200)
    delta = np.array([dp.Gaussian(2.0).delta(float(e)) for e in epsilon])
    for shape in SHAPES:
        runs = NegativeBinomialRuns.of_mean(10.0, shape)
        shift = log_ratio(epsilon, delta, runs)
        law = tuned_table(epsilon, delta, runs)
        at = np.linspace(shift, shift + 2.0, 9)
        plain = 10.0 * np.exp(staircase(epsilon, delta).law("").log_profile(at - shift)[1])
        assert (np.exp(law.log_profile(at)[1]) <= plain * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mean", [1.0, 1.001, 10.0, 1e5])
def test_mean_and_hits_are_those_of_the_generating_function(mean: float, shape: float) -> None:
    runs = NegativeBinomialRuns.of_mean(mean, shape)
    assert runs.mean_upper == pytest.approx(mean, rel=1e-9)
    v = np.array([0.0, 1e-9, 1e-3, 0.2, 0.7, 1.0])
    low, high = runs.hits(v[1:], v[:-1])
    if runs.g < 1:
        exact = -np.diff(generating(runs, 1 - v))
        assert low == pytest.approx(exact, rel=1e-5)
    assert (low <= high).all()
    assert high.sum() == pytest.approx(1.0, abs=1e-9)


def test_hits_are_enclosed() -> None:
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(40):
        for shape in SHAPES:
            runs = NegativeBinomialRuns.of_mean(10.0, shape)
            g, eta = mpmath.mpf(runs.g), mpmath.mpf(shape)

            def f(x: object, g: object = g, eta: object = eta) -> object:
                if eta == 0:
                    return mpmath.log(1 - (1 - g) * x) / mpmath.log(g)
                return ((1 - (1 - g) * x) ** -eta - 1) / (g**-eta - 1)

            for before, after in ((1e-12, 0.0), (0.3, 0.2999999), (1.0, 0.5)):
                exact = f(1 - mpmath.mpf(after)) - f(1 - mpmath.mpf(before))
                low, high = runs.hits(np.array([before]), np.array([after]))
                assert mpmath.mpf(float(low[0])) <= exact <= mpmath.mpf(float(high[0]))
            slope = mpmath.diff(f, 1)
            assert slope <= runs.mean_upper <= slope * (1 + mpmath.mpf("1e-13"))


def test_staircase_dominates_what_keeps_the_guarantees() -> None:
    epsilon = np.linspace(0.0, 5.0, 23)
    plan = dp.Gaussian(1.0)
    law = staircase(epsilon, plan.delta(epsilon)).law("")
    for at in np.linspace(-3.0, 6.0, 50):
        true = float(plan.directions()[0].parts[0][0].log_profile(np.array([at]))[0][0])
        claim = np.exp(law.log_profile(np.array([at]))[1][0]) + law.infinity_mass
        assert claim >= math.exp(true) * (1 - 1e-12)
    assert np.exp(law.log_profile(epsilon[:-1])[1]) + law.infinity_mass == pytest.approx(
        plan.delta(epsilon[:-1]), rel=1e-9
    )


# -- ties, mass at infinity, compositions ------------------------------------------------------------------------------


def tied_winner(p: np.ndarray, ranks: list[list[int]], runs: Runs) -> np.ndarray:
    """Outcomes of one rank tie, and one of the tied runs is taken: its law is p restricted to the rank."""
    out, below = np.zeros(len(p) + 1), 0.0
    for rank in ranks:
        mass = float(p[rank].sum())
        top = min(below + mass, 1.0)
        rise = generating(runs, np.array([top]))[0] - generating(runs, np.array([below]))[0]
        if mass > 0:
            out[rank] = rise * p[rank] / mass
        below = top
    out[-1] = generating(runs, np.zeros(1))[0]
    return out


def hostile_pair(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """Some outcomes of one side only, ranked by anything, by their loss, or with ties."""
    size = int(rng.integers(2, 7))
    p = rng.dirichlet(np.full(size, rng.choice([0.1, 0.3, 1.0, 5.0])))
    q = p * np.exp(rng.normal(0, rng.choice([0.05, 0.3, 1.0, 3.0]), size))
    for side in (p, q):
        if rng.random() < 0.25:
            side[int(rng.integers(size))] = 0.0
    p, q = (side / side.sum() if side.sum() > 0 else np.full(size, 1 / size) for side in (p, q))
    loss = np.where(q > 0, p / np.maximum(q, 1e-300), np.inf)
    order = (rng.permutation(size) if rng.random() < 0.4 else np.argsort(loss)[:: int(rng.choice([1, -1]))]).tolist()
    tied = int(rng.integers(1, size)) if rng.random() < 0.3 else 1
    return p, q, [order[:tied], *([i] for i in order[tied:])]


def excess_over_claim(seed: int, number: int) -> float:
    """The largest delta of a winner over what is claimed for it: alone, beside another pair, and twice."""
    rng, worst = np.random.default_rng(seed), 0.0
    at = np.linspace(-3.0, 5.0, 33)
    for _ in range(number):
        p, q, ranks = hostile_pair(rng)
        runs = random_runs(rng)
        knots = np.concatenate(([0.0], np.sort(rng.uniform(0, rng.choice([1.0, 6.0, 30.0]), int(rng.integers(1, 40))))))
        law = tuned_table(knots, np.maximum(hockey_stick(p, q, knots), hockey_stick(q, p, knots)), runs)

        def claim(x: np.ndarray, law: AtomicLaw = law) -> np.ndarray:
            return np.exp(law.log_profile(x)[1]) + law.infinity_mass

        r, s = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3))
        beside = sum(mass * claim(at - loss) for mass, loss in zip(r, np.log(r / s), strict=True))
        loss, mass = law.columns()
        twice = (mass * claim(np.subtract.outer(at, loss))).sum(axis=1) + law.infinity_mass
        a, b = tied_winner(p, ranks, runs), tied_winner(q, ranks, runs)
        for one, other in ((a, b), (b, a)):
            for claimed, first, second in (
                (claim(at), one, other),
                (beside, np.outer(one, r).ravel(), np.outer(other, s).ravel()),
                (twice, np.outer(one, one).ravel(), np.outer(other, other).ravel()),
            ):
                truth = hockey_stick(first, second, at)
                worst = max(worst, float(np.max((truth - 1e-12) / np.maximum(claimed, 1e-12))))
    return worst


@pytest.mark.parametrize("seed", range(4))
def test_no_winner_exceeds_the_claim_alone_or_composed(seed: int) -> None:
    assert excess_over_claim(seed, thinned(1000)) <= 1 + 1e-10


def test_a_smaller_ratio_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search above has the power to tell: with the ratio left out winners exceed the claim."""
    monkeypatch.setattr("dptally.laws.tuning.law.log_ratio", lambda *_: 0.0)
    assert excess_over_claim(0, 60) > 1.01


# -- plans -------------------------------------------------------------------------------------------------------------


def test_golden_values_of_the_specification() -> None:
    """The comonotone bound of the specification, and the Renyi bounds of dp-accounting, are above."""
    run = dp.dpsgd(2.0, 0.01, 1000)
    for shape, comonotone, renyi in ((0.0, 1.1042, 1.2310), (1.0, 1.2799, 1.4890)):
        box = run.best_of(mean=10, shape=shape).epsilon_interval(1e-5)
        assert run.epsilon(1e-5) < box.lower < box.upper < comonotone < renyi
        assert box.upper < dp.accounting.renyi.epsilon(run.best_of(mean=10, shape=shape), 1e-5).value
    assert run.best_of(mean=10, law="geometric").epsilon(1e-5) == run.best_of(mean=10, shape=1.0).epsilon(1e-5)


@pytest.mark.parametrize("law", ["tnb", "geometric", "poisson"])
def test_randomised_response_with_every_ranking(law: str) -> None:
    """Two outcomes: the true answer ranked first or last, exact winners in both directions, pure and approximate."""
    p, flipped = np.array([0.3, 0.7]), np.array([0.7, 0.3])
    tuned = dp.RandomizedResponse(0.7).best_of(mean=4.0, law=law)
    runs = tuned.runs
    for epsilon in (0.0, 0.3, 0.8, 1.2):
        box = tuned.delta_interval(epsilon)
        truth = max(0.7 - math.exp(epsilon) * 0.3, 0.0) if law != "poisson" else 0.0  # all tie: a run like any other
        for one, other in ((p, flipped), (flipped, p)):
            a, b = winner(one, runs), winner(other, runs)
            truth = max(truth, float(hockey_stick(a, b, np.array([epsilon]))[0]))
        assert box.lower * (1 - 1e-11) <= truth <= box.upper * (1 + 1e-11)


def test_renyi_of_winners_is_bounded() -> None:
    rng = np.random.default_rng(5)
    for _ in range(thinned(200)):
        chance = float(rng.uniform(0.55, 0.85))
        tuned = dp.RandomizedResponse(chance).best_of(
            mean=float(rng.choice([1.5, 4.0, 10.0])), law=str(rng.choice(["tnb", "geometric", "poisson"]))
        )
        a, b = (winner(one, tuned.runs) for one in (np.array([1 - chance, chance]), np.array([chance, 1 - chance])))
        for order in (1.3, 2.0, 8.0):
            for one, other in ((a, b), (b, a)):
                some = one > 0
                power = float((one[some] ** order * other[some] ** (1 - order)).sum())
                assert math.log(power) / (order - 1) <= tuned.renyi(order) * (1 + 1e-9) + 1e-12


def poisson_winner(p: np.ndarray, mean: float) -> np.ndarray:
    """As ``winner``, without cancellation: outcomes in increasing order of rank, then nothing at all."""
    better = np.append(np.cumsum(p[::-1])[::-1][1:], 0.0)
    return np.append(np.exp(-mean * better) * -np.expm1(-mean * p), math.exp(-mean))


def log_power(p: np.ndarray, q: np.ndarray, t: float) -> float:
    some = p > 0
    with np.errstate(divide="ignore"):
        terms = (1 + t) * np.log(p[some]) - t * np.log(q[some])
    return float(np.logaddexp.reduce(terms))


def poisson_excess(seed: int, number: int) -> tuple[float, float]:
    """The largest K_A of exact winners less the claim, and the largest share of e^{K_A} - 1 in what is claimed."""
    rng, worst, share = np.random.default_rng(seed), -math.inf, 0.0
    for _ in range(number):
        p, q, ranks = hostile_pair(rng)
        order = [i for rank in ranks for i in rank]
        runs = PoissonRuns(float(rng.choice([1e-3, 0.1, 0.5, 0.9, 1.0, 1.5, 3.0, 10.0, 100.0])))
        for one, other in ((p[order], q[order]), (q[order], p[order])):
            if (other[one > 0] == 0).any():
                continue
            a, b = poisson_winner(one, runs.mean), poisson_winner(other, runs.mean)
            for t in (0.01, 0.1, 0.58, 1.0, 3.0, 10.0, 60.0):
                moment = max(log_power(one, other, t), 0.0) * (1 + 1e-12) + 1e-14
                delta = np.maximum(other - (1 + 1 / t) * one, 0.0).sum(keepdims=True)
                with np.errstate(divide="ignore", over="ignore"):
                    claim = runs.log_moment(np.array([t]), np.array([moment]), runs.order_cost(delta))
                truth = log_power(a, b, t)
                worst = max(worst, truth - float(claim[0]))
                if 1e-6 < truth < 100:
                    share = max(share, math.expm1(truth) / math.expm1(min(float(claim[0]), 700.0)))
    return worst, share


def test_renyi_bound_of_poisson_numbers_of_runs() -> None:
    worst, share = poisson_excess(7, thinned(6000))
    assert worst <= 1e-10
    assert share > 0.999  # it is attained in the limit, so a smaller claim would have been caught


def test_a_smaller_renyi_bound_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the price of the ranking winners exceed the claim."""
    monkeypatch.setattr(PoissonRuns, "order_cost", lambda _self, delta: 0.0 * delta)
    assert poisson_excess(7, 300)[0] > 1e-3


def test_poisson_is_below_the_theorem_it_sharpens() -> None:
    """Papernot, Steinke 2022, Thm. 6, with the exact delta of a run; 0.533 is its value with a Renyi divergence's."""
    run = dp.Laplace(1.0)
    assert run.renyi(1.58) < run.best_of(mean=1.0, law="poisson").renyi(1.58) < 0.533
    assert dp.dpsgd(2.0, 0.01, 1000).best_of(mean=10.0, law="poisson").epsilon(1e-5) < 1.2732
    rare = run.best_of(mean=1e-3, law="poisson")  # hardly ever a run at all: about 1e-3 KL
    assert 0 < rare.renyi(1.001) < 1.01e-3 * run.renyi(1.001)


def best_of_ten(sigma: float, law: str) -> dp.Mechanism:
    return dp.Gaussian(sigma).best_of(mean=10, law=law)


def test_best_of_is_calibrated() -> None:
    for law in ("tnb", "geometric", "poisson"):
        found = dp.calibrate(partial(best_of_ten, law=law), epsilon=1.0, delta=1e-6)
        assert 0.99 < best_of_ten(found, law).epsilon(1e-6) <= 1.0
        assert best_of_ten(0.99 * found, law).epsilon(1e-6) > 1.0


def test_mass_at_infinity_and_huge_losses() -> None:
    leak = dp.ApproxDP(0.5, 1e-3).best_of(mean=10)
    assert leak.epsilon(1e-6) == math.inf
    assert leak.epsilon(1e-2) < 1.0
    assert dp.Gaussian(0.01).best_of(mean=10).epsilon(1e-6) > dp.Gaussian(0.01).epsilon(1e-6)
    assert dp.Menu([dp.Gaussian(10.0).best_of(mean=2)], uses=3).epsilon(1e-6) < 1.0


def test_a_fixed_number_is_refused() -> None:
    for law in ("fixed", "binomial", None):
        with pytest.raises(dp.InvalidArgument, match=r"k \* plan"):
            dp.Gaussian(2.0).best_of(mean=10, law=law)  # type: ignore[arg-type]


def test_lower_ends_are_those_of_pairs() -> None:
    """What is composed with the lower end of a winner or of shuffled reports never costs less than it does alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for plan, alone in (
            (dp.ExponentialMechanism(2.0) + 7 * dp.ShuffleModel(dp.RandomizedResponse(0.7), 300), 1.8),
            (dp.Laplace(0.5) + 5 * dp.Gaussian(20.0).best_of(mean=10), 1.9),
        ):
            box = plan.epsilon_interval(0.01)
            assert alone < box.lower <= box.upper
        assert dp.Gaussian(0.5).best_of(mean=200).delta_interval(0.0).upper <= 1.0


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta", "lower", "upper"),
    [
        (3.0, 1.25e-4, 10_000, 6e-7, 0.008, 0.025),  # delta falls far faster than Chernoff's bound: split by jumps
        (1.0, 1e-3, 10_000, 1e-9, 0.83, 1.05),  # contours that are a little blurred
        (0.7, 0.01, 500, 1e-5, 4.3, 5.2),  # one direction ends where the other goes on
    ],
)
def test_the_best_of_rarely_sampled_runs_is_sharp(
    noise: float, rate: float, steps: int, delta: float, lower: float, upper: float
) -> None:
    """Only the larger direction is followed, and only as far as it matters: these took 20 s, or were wide."""
    run = dp.dpsgd(noise, rate, steps)
    box = run.best_of(mean=10).epsilon_interval(delta)
    assert lower < box.lower <= box.upper < upper
    assert box.upper > run.epsilon_interval(delta).lower


def test_a_sample_of_the_best_is_refused_and_the_advice_works() -> None:
    best = dp.Gaussian(4.0).best_of(mean=10)
    with pytest.raises(dp.Unanswerable, match="state it first as ApproxDP"):
        dp.PoissonSampled(best, 0.1).epsilon(1e-6)
    stated = dp.ApproxDP(best.epsilon(1e-7), 1e-7)
    assert dp.PoissonSampled(stated, 0.1).epsilon(1e-7) < best.epsilon(1e-7)
    assert dp.PoissonSampled(dp.Gaussian(4.0), 0.1).best_of(mean=10).epsilon(1e-7) < best.epsilon(1e-7)  # each run


def test_the_smaller_direction_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four contours answer for both directions of a run; following the smaller one as sharply took eight."""
    made, whole = [], inversion.for_epsilon
    monkeypatch.setattr(inversion, "for_epsilon", lambda *given: made.append(given[1]) or whole(*given))
    dp.dpsgd(2.0, 0.0101, 1000).best_of(mean=10).epsilon(1e-5)
    assert 1 <= len(made) <= 4


@pytest.mark.parametrize("law", ["tnb", "poisson"])
def test_a_winner_loses_as_much_as_a_run_can(law: str) -> None:
    """The table ends where delta of a run is e^-36; the largest loss lies beyond."""
    run = 100 * dp.PureDP(0.1)
    best = run.best_of(mean=10, law=law)
    assert best.epsilon(0.0) >= run.epsilon(0.0)
    assert best.renyi(1e4) >= run.renyi(1e4)
    assert best.delta(9.9) >= run.delta(9.9) > 0


@pytest.mark.parametrize("law", ["tnb", "geometric", "poisson"])
@pytest.mark.parametrize("beside", [dp.ZCDP(0.1), dp.RenyiDP(orders=(2.0, 8.0), epsilons=(0.1, 0.5)), dp.Gaussian(2.0)])
def test_runs_that_may_lose_everything(law: str, beside: dp.Mechanism) -> None:
    """Chernoff's bound knows finite losses only: what is infinite comes on top of it."""
    run = beside + dp.ApproxDP(1.0, 1e-3)
    best = run.best_of(mean=10, law=law)
    for epsilon in (0.0, 2.0, 40.0, 1000.0):
        assert best.delta(epsilon) >= 0.009
    assert best.epsilon(1e-4) == math.inf


def test_renyi_bound_of_poisson_runs_that_may_lose_everything() -> None:
    rng, seen = np.random.default_rng(11), 0
    for _ in range(thinned(6000)):
        p, q, ranks = hostile_pair(rng)
        order = [i for rank in ranks for i in rank]
        p, q = p[order], q[order]
        lost = float(p[q == 0].sum())
        if not 0 < lost < 1:
            continue
        seen += 1
        runs = PoissonRuns(float(rng.choice([1e-3, 0.1, 1.0, 3.0, 10.0])))
        finite = np.append(q > 0, True)
        a, b = poisson_winner(p, runs.mean)[finite], poisson_winner(q, runs.mean)[finite]
        for t in (0.01, 0.58, 3.0, 10.0):
            moment = max(log_power(p[q > 0], q[q > 0], t), 0.0) * (1 + 1e-12) + 1e-14
            delta = np.maximum(q - (1 + 1 / t) * p, 0.0).sum(keepdims=True)
            with np.errstate(divide="ignore", over="ignore"):
                claim = runs.log_moment(np.array([t]), np.array([moment]), runs.order_cost(delta), lost)
            assert log_power(a, b, t) <= float(claim[0]) + 1e-10
    assert seen > 50
