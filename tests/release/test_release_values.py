"""Laws: releases are what they say with the noise taken out; sums are exact; accounts follow adjacency."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptally import ADD_REMOVE, REPLACE, noise, release
from dptally.mechanisms import (
    ApproxDP,
    DiscreteGaussian,
    DiscreteLaplace,
    GaussianDP,
    PoissonSampled,
    RandomizedResponse,
)
from dptally.noise import grid
from dptally.release import Released, propose, total
from dptally.release import records as records_


@pytest.fixture
def no_noise(monkeypatch):
    """Zero noise, so that the exact part can be seen."""
    for name in ("discrete_laplace", "discrete_gaussian"):
        zero = lambda _, size=None: 0 if size is None else np.zeros(size, dtype=np.int64)  # noqa: E731
        monkeypatch.setattr(noise, name, zero)


def test_a_release_is_frozen_and_composes():
    released = release.count([1, 2], scale=2)
    with pytest.raises(AttributeError):
        released.value = 3
    assert isinstance(released, Released)
    assert released.mechanism + released.mechanism == 2 * DiscreteLaplace(2.0)


def test_counts(no_noise):
    assert release.count(["a", "b", "c"], scale=1).value == 3
    assert release.count([1.0, 2.0], where=np.array([True, False]), sigma=1).value == 1
    assert release.count([5, 6], where=[0, 1], sigma=1).mechanism == DiscreteGaussian(1.0)
    assert release.count([5], scale=1).adjacency is None


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40),
    st.floats(-100, 99),
    st.floats(0.001, 1000),
    st.sampled_from([ADD_REMOVE, REPLACE]),
)
def test_the_exact_sum_moves_by_no_more_than_the_sensitivity(records, lower, width, adjacency):
    """The statement that float sums break: in grid steps, for every neighbour, by exact arithmetic."""
    upper = lower + width
    inside = records_.range_of(F(lower), F(upper), integers=False)
    step = F(2) ** inside.exponent
    if adjacency is ADD_REMOVE:
        sensitivity, neighbour = max(abs(F(lower)), abs(F(upper))), [*records, 1e300]
    else:
        sensitivity, neighbour = F(upper) - F(lower), [1e300, *records[1:]]
    sums = [total._exact_sum(np.array(x), inside) for x in (records, neighbour)]
    assert abs(sums[0] - sums[1]) * step <= sensitivity
    for onto in (-20, -3, 0, 2):
        coarse = [grid.rescaled(s, inside.exponent, onto) for s in sums]
        assert abs(coarse[0] - coarse[1]) <= math.ceil(sensitivity / F(2) ** onto)
    assert F(lower) <= inside.lower * step
    assert inside.upper * step <= F(upper)


def test_a_float_sum_would_break_where_ours_does_not():
    """A large record and many small ones: added in floats the result depends on their order."""
    records = np.array([1e12] + [1e-4] * 1000)
    inside = records_.range_of(F(0), F(1e12), integers=False)
    forwards, backwards = total._exact_sum(records, inside), total._exact_sum(records[::-1], inside)
    assert forwards == backwards
    step = F(2) ** inside.exponent
    assert abs(forwards * step - sum(map(F, records.tolist()))) <= 1001 * step / 2
    assert sum(records.tolist()[1:], start=1e12) != sum(records.tolist()[1:]) + 1e12


def test_sums_are_clipped_exact_and_typed(no_noise):
    options = {"lower": -3, "upper": 5, "adjacency": ADD_REMOVE, "scale": 8}
    assert release.bounded_sum([9, -9, 1], **options).value == 3
    assert isinstance(release.bounded_sum([9, -9, 1], **options).value, float)
    assert isinstance(release.bounded_sum([9, -9, 1], **options, grid=1).value, int)
    assert release.bounded_sum([9.0, math.inf, -math.inf], **options).value == 7.0
    assert release.bounded_sum(np.array([200, 3], dtype=np.uint8), **options).value == 8
    assert release.bounded_sum(np.array([2**64 - 1], dtype=np.uint64), **options).value == 5
    assert release.bounded_sum(np.array([True, True]), **options).value == 2
    assert release.bounded_sum(np.array([0.25, 0.5], dtype=np.float32), **options, grid=F(1, 4)).value == 0.75
    coarse = {"lower": 0, "upper": 100, "adjacency": REPLACE, "sigma": 8, "grid": 64}
    assert release.bounded_sum([100, 100], **coarse).value == 192
    wide = release.bounded_sum(np.full(100, 2**61), lower=0, upper=2**61, adjacency=REPLACE, scale=2**61)
    assert wide.value == 100 * 2**61, "the sum has no width to overflow"


def test_the_mechanism_of_a_sum_follows_adjacency_and_grid():
    both = {"lower": -3, "upper": 5, "scale": 8, "grid": F(1, 2)}
    assert release.bounded_sum([1], **both, adjacency=ADD_REMOVE).mechanism == DiscreteLaplace(16.0, 10)
    assert release.bounded_sum([1], **both, adjacency=REPLACE).mechanism == DiscreteLaplace(16.0, 16)
    natural = release.bounded_sum([1.5], lower=0, upper=0.3, adjacency=ADD_REMOVE, sigma=0.7).mechanism
    step = noise.natural_grid(0.3)
    assert natural == DiscreteGaussian(float(F(0.7) / step), math.ceil(F(0.3) / step))


def test_one_record_of_another_type_changes_nothing_for_the_rest(no_noise):
    """Bounds between integers: a list of integers and the same list with one float are treated alike."""
    options = {"lower": 0.25, "upper": 3.5, "adjacency": ADD_REMOVE, "grid": F(1, 8)}
    integers = release.bounded_sum([0, 1, 9], **options, scale=1)
    mixed = release.bounded_sum([0, 1, 9, 0.5], **options, scale=1)
    assert mixed.value - integers.value == 0.5
    assert mixed.mechanism == integers.mechanism
    means = [release.mean(x, **options, scale=1, count_scale=1) for x in ([0, 1, 9], [0.0, 1.0, 9.0])]
    assert means[0] == means[1]


def test_means(no_noise):
    options = {"lower": 0, "upper": 8, "grid": F(1, 16)}
    fixed = release.mean([1.0, 2.0, 100.0], **options, adjacency=REPLACE, scale=4)
    assert fixed.value == pytest.approx(11 / 3, abs=1 / 16)
    assert fixed.mechanism == DiscreteLaplace(64.0, 128)
    free = release.mean([1, 2, 100], **options, adjacency=ADD_REMOVE, scale=4, count_sigma=3)
    assert free.value == pytest.approx(11 / 3, abs=1 / 16)
    assert free.mechanism == DiscreteLaplace(64.0, 64) + DiscreteGaussian(3.0)


def test_a_noisy_mean_stays_between_its_bounds():
    for _ in range(50):
        value = release.mean([1.0], lower=0, upper=2, adjacency=ADD_REMOVE, scale=50, count_scale=50).value
        assert 0 <= value <= 2


def test_histograms_and_modes(no_noise):
    bins = release.histogram(["b", "a", "b"], categories=["a", "b", "c"], adjacency=REPLACE, sigma=2)
    assert bins.value.tolist() == [1, 2, 0]
    assert bins.mechanism == 2 * DiscreteGaussian(2.0)
    assert not bins.value.flags.writeable
    added = release.histogram([2.0, 2.0], categories=[1.0, 2.0], adjacency=ADD_REMOVE, scale=2)
    assert added.value.tolist() == [0, 2]
    assert added.mechanism == DiscreteLaplace(2.0)
    assert release.mode(["b", "a", "b"], categories=["a", "b"], adjacency=REPLACE, scale=2).value == "b"
    assert release.mode([1, 0], categories=[0, 1], adjacency=REPLACE, scale=2).value == 0
    mixed = release.histogram([None, "x", 3], categories=[3, None, "x"], adjacency=ADD_REMOVE, scale=1)
    assert mixed.value.tolist() == [1, 1, 1]


def test_counts_with_noise_at_the_end_of_64_bits_do_not_wrap(monkeypatch):
    edge = np.array([2**63 - 1, -(2**63), 0])
    monkeypatch.setattr(noise, "discrete_laplace", lambda _, size: edge)
    bins = release.histogram([0, 0, 1], categories=(0, 1, 2), adjacency=ADD_REMOVE, scale=2**62)
    assert bins.value.tolist() == [2**63 + 1, 1 - 2**63, 0]


def test_randomized_response_is_estimated_without_bias():
    truth = ["a"] * 6000 + ["b"] * 3000 + ["c"] * 1000
    answers = release.randomized_response(truth, p=0.625, categories="abc")
    assert answers.mechanism == RandomizedResponse(0.625, 3)
    assert answers.adjacency is REPLACE
    estimate = release.estimate_counts(answers.value, p=0.625, categories="abc")
    assert estimate.sum() == pytest.approx(10_000)
    deviation = math.sqrt(10_000 * 0.25) / (0.625 - 0.1875)
    assert np.abs(estimate - [6000, 3000, 1000]).max() < 7 * deviation


def test_the_estimator_inverts_the_expectation_exactly():
    """E[c_j] = p n_j + q (n - n_j); put the expectation in, get the truth out."""
    p, n = F(3, 4), [48, 16, 16]
    q = (1 - p) / 2
    expected = [p * x + q * (80 - x) for x in n]
    answers = [code for code, count in enumerate(expected) for _ in range(int(count))]
    assert [int(c) for c in expected] == expected
    assert release.estimate_counts(answers, p=p, categories=(0, 1, 2)).tolist() == n


def test_poisson_samples_keep_the_type_and_account_for_the_rate():
    sample = release.poisson_sample(list(range(10_000)), 0.25)
    assert isinstance(sample.records, list)
    assert abs(len(sample.records) - 2500) < 7 * math.sqrt(10_000 * 0.25 * 0.75)
    assert sample.account(DiscreteLaplace(2.0)) == PoissonSampled(DiscreteLaplace(2.0), 0.25, ADD_REMOVE)
    rows = release.poisson_sample(np.zeros((100, 3)), 1).records
    assert rows.shape == (100, 3)
    assert "records" not in repr(sample)


@given(st.floats(0.01, 5), st.floats(1e-12, 0.4))
def test_the_threshold_is_the_smallest_that_keeps_delta(epsilon, delta):
    t = propose.pass_threshold(epsilon, delta)
    tail = lambda k: math.exp(-epsilon * (k + 1)) / (1 + math.exp(-epsilon))  # noqa: E731
    assert tail(t) <= delta * (1 + 1e-12)
    assert t == 0 or tail(t - 1) > delta * (1 - 1e-9)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE])
def test_the_distance_to_unsafe_margins_is_right_by_brute_force(adjacency, monkeypatch):
    """All datasets of up to nine bits: breadth-first from the unsafe ones, by counts of zeros and ones."""
    size = 9
    sets = [(z, o) for z in range(size + 4) for o in range(size + 4) if z + o >= 1]
    mode = {s: int(s[1] > s[0]) for s in sets}

    def neighbours(s):
        z, o = s
        moves = [(z + 1, o - 1), (z - 1, o + 1)]
        if adjacency is ADD_REMOVE:
            moves = [(z + 1, o), (z, o + 1), (z - 1, o), (z, o - 1)]
        return [m for m in moves if m in mode]

    distance = {s: 0 for s in sets if any(mode[m] != mode[s] for m in neighbours(s))}
    frontier = list(distance)
    while frontier:
        found = {m for s in frontier for m in neighbours(s)} - set(distance)
        distance.update(dict.fromkeys(found, max(distance.values()) + 1))
        frontier = list(found)
    seen = {}
    monkeypatch.setattr(propose, "_checked_distance", lambda away: seen.setdefault("away", away))
    for z, o in sets:
        if z + o <= size:
            seen.clear()
            release.mode_of_bits([0] * z + [1] * o, epsilon=1.0, delta=0.1, adjacency=adjacency)
            assert seen["away"] == distance[z, o], (z, o)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("bits", [([1, 1, 0], 1), ([0, 1], 0), ([0], 0)])
def test_the_test_never_lets_a_near_tie_through(bits, adjacency, no_noise):
    assert release.mode_of_bits(bits[0], epsilon=1.0, delta=1e-6, adjacency=adjacency).value is None


def test_propose_test_release_is_exactly_as_private_as_it_says():
    """By exact probabilities over all margins: delta is never passed, and is nearly used at the tie."""
    epsilon, delta = 1.0, 0.01
    a = math.exp(-epsilon)
    threshold = propose.pass_threshold(epsilon, delta)
    cdf = lambda k: a**-k / (1 + a) if k < 0 else 1 - a ** (k + 1) / (1 + a)  # noqa: E731

    def law(margin):  # over None, 0, 1 under ADD_REMOVE
        away = margin - 1 if margin >= 1 else -margin
        passed = 1 - cdf(threshold - away)
        return {None: 1 - passed, int(margin >= 1): passed, int(margin < 1): 0.0}

    worst = max(
        sum(max(0.0, law(m)[o] - math.exp(epsilon) * law(m + s)[o]) for o in (None, 0, 1))
        for m in range(-30, 30)
        for s in (-1, 1)
    )
    assert worst <= delta
    assert worst > delta * a


def test_propose_test_release_adds_up_a_private_base():
    released = release.propose_test_release(
        [0], lambda _: 7, lambda _: 10**6, epsilon=1.0, delta=1e-6, base_epsilon=0.5, base_delta=1e-5
    )
    assert released.value == 7
    assert isinstance(released.mechanism, ApproxDP)
    assert released.mechanism.epsilon(1e-5) >= 1.5
    assert released.mechanism.epsilon(1e-5) <= 1.5 * (1 + 1e-12)


def test_the_base_is_not_run_unless_the_test_passes(no_noise):
    def base(_):
        raise AssertionError("it was run")

    assert release.propose_test_release([1], base, lambda _: 0, epsilon=1.0, delta=1e-6).value is None


def test_clip_and_rectify_clips_everything_into_the_bounds(no_noise):
    options = {"lower": -1, "upper": 3, "head_epsilon": 4.0, "mu": 0.5}
    inf = math.inf
    for output, clipped in ((2.0, 2.0), (-7, -1.0), (1e300, 3.0), (inf, 3.0), (-inf, -1.0), (math.nan, -1.0)):
        released = release.clip_and_rectify(lambda _, y=output: y, None, **options)
        assert released.value == clipped
        assert released.mechanism == GaussianDP(0.5)
    assert release.clip_and_rectify(lambda _: 0.3, None, **options, grid=1).value == 0.0


def test_clip_and_rectify_draws_the_noise_of_the_theorem(monkeypatch):
    asked = []
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale: asked.append(scale) or 0)
    release.clip_and_rectify(lambda _: 0.0, None, lower=0, upper=4, head_epsilon=8.0, mu=1.0, grid=F(1, 16))
    assert asked == [F(64, 8)], "(upper - lower) / head_epsilon, in grid steps"


def test_answers_are_on_the_grid():
    released = release.answer(0.3, sensitivity=0.3, sigma=1.5, grid=F(1, 8))
    assert (released.value * 8).is_integer()
    assert released.mechanism == DiscreteGaussian(12.0, 3)
    assert release.answer(1, sensitivity=1, scale=2).mechanism == DiscreteLaplace(128.0, 64)
