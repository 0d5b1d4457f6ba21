"""The best of K runs against exact winners: random finite pairs, rankings and laws of K. Laws and golden values."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dptally as dp
from depth import thinned
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
