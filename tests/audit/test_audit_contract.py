"""Contract: what audits accept, refuse and report; processes, progress, one run, granularity, the picture."""

from __future__ import annotations

import math
import sys
from fractions import Fraction as F

import numpy as np
import pytest

from dptally import audit, noise, release
from dptally.audit.outputs import paired
from dptally.audit.views import lowest_bit
from dptally.errors import InvalidArgument, MissingExtra
from dptally.mechanisms import ZCDP, ApproxDP, DiscreteGaussian, Gaussian, GaussianDP, Laplace, PureDP


def laplace(x, n):
    return x + noise.discrete_laplace(1, n)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"claim": 1.0}, "claim"),
        ({"samples": 7}, "samples"),
        ({"samples": 100.0}, "samples"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": math.nan}, "confidence"),
        ({"jobs": 0}, "jobs"),
        ({"jobs": -2}, "jobs"),
        ({"mechanism": 3}, "mechanism"),
        ({"views": ()}, "views"),
        ({"views": ("magic",)}, "views"),
        ({"quantity": "rho"}, "quantity"),
        ({"delta": 1.5}, "delta"),
    ],
)
def test_bad_arguments_are_refused(options, name):
    with pytest.raises(InvalidArgument, match=name):
        audit.run(**{"mechanism": laplace, "d0": 0, "d1": 1, "claim": PureDP(1.0), **options})


def test_outputs_that_cannot_be_told_apart_or_are_too_few():
    with pytest.raises(InvalidArgument, match="hashable"):
        audit.run(lambda x: {x}, 0, 1, PureDP(1.0), samples=100)
    with pytest.raises(InvalidArgument, match="size"):
        audit.run(lambda x, n: [x], 0, 1, PureDP(1.0), samples=100, batched=True)
    with pytest.raises(InvalidArgument, match="fit for this kind"):
        audit.run(laplace, 0, 1, PureDP(1.0), samples=100, batched=True, views=("granularity",))


def test_what_is_measured_follows_the_claim():
    measured = lambda claim, **o: audit.run(laplace, 0, 1, claim, samples=200, batched=True, **o)  # noqa: E731
    pure = measured(PureDP(1.5))
    assert (pure.quantity, pure.delta, pure.claimed) == ("epsilon", 0.0, 1.5)
    gaussian = measured(GaussianDP(2.0))
    assert (gaussian.quantity, gaussian.claimed) == ("mu", pytest.approx(2.0))
    composed = measured(9 * Gaussian(sigma=1.5))
    assert composed.claimed == pytest.approx(2.0, rel=1e-9)
    assert measured(Laplace(2.0) + Laplace(1.0)).claimed == pytest.approx(1.5)
    approximate = measured(ApproxDP(1.0, 0.125))
    assert approximate.quantity == "epsilon"
    assert approximate.delta == pytest.approx(0.125)
    assert approximate.claimed == pytest.approx(1.0)
    assert measured(PureDP(1.0), delta=0.2).claimed < 1.0
    assert measured(GaussianDP(1.0), quantity="epsilon", delta=0.1).quantity == "epsilon"
    with pytest.raises(InvalidArgument, match="Gaussian DP"):
        measured(ApproxDP(1.0, 0.125), quantity="mu")


def test_a_claim_without_one_number_is_audited_at_a_delta():
    result = audit.run(laplace, 0, 1, ZCDP(0.5), samples=200, batched=True)
    assert result.delta == 0.01
    assert result.claimed >= DiscreteGaussian(1.0).epsilon(0.01)


def test_the_result_reports_itself():
    result = audit.run(laplace, 0, 1, PureDP(1.0), samples=2000, batched=True)
    assert str(result).startswith("not refuted: epsilon >= ")
    assert "2000 samples" in str(result)
    assert result.samples == 2000
    assert result.confidence == 1 - 1e-6
    assert result.verdict == "not refuted"
    at_delta = audit.run(laplace, 0, 9, ApproxDP(0.5, 0.25), samples=2000, batched=True)
    assert str(at_delta).startswith("refuted: epsilon at delta 0.25 >= ")


def test_progress_is_told_and_ends_at_the_total():
    seen = []
    tell = lambda done, total: seen.append((done, total))  # noqa: E731
    audit.run(laplace, 0, 1, PureDP(1.0), samples=1000, batched=True, progress=tell)
    assert len(seen) > 10
    assert seen[-1] == (2000, 2000)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_processes_give_the_same_answer():
    seen = []
    tell = lambda done, total: seen.append(done)  # noqa: E731
    result = audit.run(laplace, 0, 9, PureDP(0.25), samples=2000, batched=True, jobs=2, progress=tell)
    assert result.refuted
    assert seen[-1] == 4000


def test_without_joblib_the_text_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(MissingExtra, match="audit"):
        audit.run(laplace, 0, 1, PureDP(1.0), samples=100, batched=True, jobs=2)


def test_outputs_of_every_kind():
    run = lambda f, d0=0, d1=1: audit.run(f, d0, d1, PureDP(1.0), samples=2000)  # noqa: E731
    assert run(lambda x: "yes" if x else None).refuted
    assert run(lambda x: (x, "a")).refuted
    assert run(lambda x: [x, 0.5]).refuted
    assert run(lambda x: np.array([0, x])).refuted
    assert run(lambda x: [0] * (x + 1)).refuted, "the length of an output tells"
    assert run(lambda x: np.array(["a", "b"])[x : x + 1]).refuted
    assert run(lambda x: bool(x)).refuted
    assert run(lambda x: 10**30 + x * 10**29).refuted
    assert not run(lambda x: 0).refuted
    assert not run(lambda x: release.count([0] * (1 + x), scale=1)).refuted


def test_outputs_of_two_kinds_are_told_apart():
    first, second = paired([1, 2, None], [1.0, "x", None])
    assert first.dtype == second.dtype == np.int64
    assert first[0] == second[0]
    ragged, _ = paired([(1,), (1, 2), (1,)], [(1,)] * 3)
    assert ragged.tolist() == [0, 1, 0]


def test_correlated_rows_are_seen_by_a_linear_combination():
    """Each coordinate is hidden by large common noise; their difference is not."""

    def rows(x, n):
        common = noise.discrete_laplace(100, n)
        return np.column_stack([common, common + x + noise.discrete_laplace(1, n)]).astype(float)

    result = audit.run(rows, 0, 5, PureDP(1.0), samples=10_000, batched=True, views=("linear",))
    assert result.refuted


def test_rows_of_floats_are_looked_at_bit_by_bit():
    def rows(x, n):
        values = noise.discrete_laplace(8, 2 * n).reshape(n, 2) / 8
        values[:, 1] += x * 2.0**-30
        return values

    assert audit.run(rows, 0, 1, PureDP(1.0), samples=2000, batched=True, views=("granularity",)).refuted


def test_the_bound_uses_none_of_the_samples_that_chose_the_event():
    """Outputs that never recur: a view that remembers its samples learns nothing that lasts."""
    rng = np.random.default_rng()
    result = audit.run(lambda x, n: rng.random(n), 0, 1, PureDP(0.1), samples=20_000, batched=True)
    assert result.lower < 0.1


def test_granularity_of_floats():
    values = np.array([0.0, 1.0, -0.75, 6.0, 2.0**-1074, 1e300, 3 * 2.0**-50])
    expected = [4096, 0, -2, 1, -1074, None, -50]
    seen = lowest_bit(values).tolist()
    for value, bit, want in zip(values.tolist(), seen, expected, strict=True):
        if want is not None:
            assert bit == want
        elif value:
            step = F(2) ** bit
            assert (F(value) / step).denominator == 1
            assert (F(value) / (2 * step)).denominator == 2
    on_grid = audit.granularity(noise.grid_laplace(np.full(1000, 0.3), 1, F(1, 8)))
    assert on_grid.on_grid(F(1, 8))
    assert not on_grid.on_grid(1)
    assert sum(n for _, n in on_grid.counts) == 1000
    floats = audit.granularity(0.3 + np.random.default_rng().laplace(size=1000))
    assert not floats.on_grid(F(1, 2**40))
    for bad in ([], [math.inf]):
        with pytest.raises(InvalidArgument, match="outputs"):
            audit.granularity(bad)


def canaries(epsilon, size=4000):
    """Independent randomised responses: the mechanism for which the one-run bound is tight."""
    coins = noise.bernoulli(F(1, 2), size)
    told = coins ^ ~noise.bernoulli(1 / (1 + math.exp(-epsilon)), size)
    return told.astype(float), coins


@pytest.mark.statistical
def test_one_run_sees_nothing_in_noise():
    coins = noise.bernoulli(F(1, 2), 1000)
    result = audit.one_run(np.arange(1000.0), coins, PureDP(0.5), guesses=[10, 100, 1000])
    assert result.lower <= 0.5


def test_one_run_refuses_bad_input():
    scores, coins = np.arange(10.0), np.array([True, False] * 5)
    for guesses in (0, 11, [], [5, 11], 2.5):
        with pytest.raises(InvalidArgument, match="guesses"):
            audit.one_run(scores, coins, PureDP(1.0), guesses=guesses)
    with pytest.raises(InvalidArgument, match="included"):
        audit.one_run(scores, coins[:5], PureDP(1.0), guesses=5)
    with pytest.raises(InvalidArgument, match="scores"):
        audit.one_run([math.nan] * 10, coins, PureDP(1.0), guesses=5)


def test_the_picture_draws_the_claim_and_what_was_seen():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    result = audit.run(laplace, 0, 1, PureDP(1.0), samples=2000, batched=True)
    axes = result.plot()
    labels = [line.get_label() for line in axes.get_lines()]
    assert "most that the claim allows" in labels
    assert "not refuted" in axes.get_title()
    scores, coins = canaries(1.0, 100)
    audit.one_run(scores, coins, PureDP(1.0), guesses=10).plot(axes)
    plt.close("all")


def test_without_matplotlib_the_text_says_what_to_install(monkeypatch):
    result = audit.run(laplace, 0, 1, PureDP(1.0), samples=100, batched=True)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtra, match="plots"):
        result.plot()
