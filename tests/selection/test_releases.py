"""Laws, contract and statistical: exact selection, and the releases that choose, rank, watch and halve."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from decimal import Decimal
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.special import gammaincc

import dptally as dp
from dptally import ADD_REMOVE, REPLACE, noise, release
from dptally.errors import InvalidArgument
from dptally.noise.source import SystemBytes
from selection.worst_case import exponential, permute_and_flip

HOSTILE = [None, math.nan, math.inf, 10**400, "x", [1], True, 1j, Decimal("sNaN"), F(1, 3), np.float32(2.5), {}, float]


class Counted:
    """A fixed stream of bytes."""

    def __init__(self, seed: int) -> None:
        self.generator, self.block, self.used = np.random.default_rng(seed), b"", 0

    def take(self, count: int) -> bytes:
        if len(self.block) - self.used < count:
            self.block, self.used = self.generator.bytes((1 << 16) + count), 0
        self.used += count
        return self.block[self.used - count : self.used]


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Counted(11)
    monkeypatch.setattr(SystemBytes, "take", lambda self, count: stream.take(count))


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(self: object, count: int) -> bytes:
        raise AssertionError("randomness was drawn")

    monkeypatch.setattr(SystemBytes, "take", forbidden)


def p_value(seen: np.ndarray, expected: np.ndarray) -> float:
    statistic = float(((seen - expected) ** 2 / expected).sum())
    return float(gammaincc((len(seen) - 1) / 2, statistic / 2))


SCORES = [F(1, 3), 2, 0.75, -1]


def test_the_choices_have_their_probabilities_and_the_test_has_power() -> None:
    truth, source = np.array([float(score) for score in SCORES]), Counted(2)
    many = noise.exponential_choice(SCORES, 1.25, F(1, 2), 60_000, _source=Counted(1))
    one = [noise.exponential_choice(SCORES, 1.25, F(1, 2), _source=source) for _ in range(4000)]
    flips = [noise.permute_and_flip(SCORES, 1.25, F(1, 2), _source=source) for _ in range(6000)]
    for draws, formula in ((many, exponential), (one, exponential), (flips, permute_and_flip)):
        seen = np.bincount(draws, minlength=4)
        assert p_value(seen, len(draws) * formula(truth, 2.5)) > 1e-4
        assert p_value(seen, len(draws) * formula(truth, 2.5 * 1.3)) < 1e-6
    wide = noise.exponential_choice([F(1, 10**30), 0], 1, 1, 40, _source=Counted(3))  # in Python integers
    assert set(wide.tolist()) == {0, 1}


@pytest.mark.parametrize("draw", [noise.exponential_choice, noise.permute_and_flip])
def test_bad_scores_are_refused_before_any_randomness(draw, silent) -> None:
    for arguments in (
        ([], 1),
        ([1, math.nan], 1),
        ([1, "2"], 1),
        ([1, 2], -1),
        ([1, 2], math.inf),
        ([1, 2], 1, 0),
        ([1, 2], 1, -2),
    ):
        with pytest.raises(InvalidArgument, match=r"scores|epsilon|sensitivity"):
            draw(*arguments)


def test_choose_and_top_k_state_what_they_cost() -> None:
    assert release.choose.mechanism(candidates="abc", epsilon=0.5) == dp.ExponentialMechanism(0.5)
    assert release.choose.mechanism(candidates="ab", epsilon=0.5, monotone=True) == dp.ExponentialMechanism(0.25)
    flip = {"candidates": "ab", "epsilon": 0.5, "method": "permute_and_flip"}
    assert release.choose.mechanism(**flip) == dp.PermuteAndFlip(0.5)
    assert release.top_k.mechanism(candidates="abc", k=2, epsilon=0.5) == dp.TopK(0.5, 2)
    assert release.choose([0, 99_999], candidates=("x", "y"), epsilon=1).value == "y"
    assert release.choose([0, 99_999], candidates=("x", "y"), epsilon=1, monotone=True).value == "y"
    assert release.choose([0, 99_999], **{**flip, "epsilon": 1.0}).value == "b"
    assert set(release.top_k([1, 1, 1], candidates="abc", k=3, epsilon=1).value) == set("abc")


@pytest.mark.parametrize(
    "options",
    [
        {"candidates": ()},
        {"candidates": "aa"},
        {"epsilon": 0},
        {"epsilon": math.nan},
        {"sensitivity": 0},
        {"missing": "0"},
        {"unit": 3},
    ],
    ids=str,
)
def test_bad_arguments_of_choices_are_refused_without_data(options, silent) -> None:
    for function, more in ((release.choose, {}), (release.top_k, {"k": 1})):
        with pytest.raises(InvalidArgument, match=next(iter(options))):
            function([1, 2], **{"candidates": "ab", "epsilon": 1.0, **more, **options})
    with pytest.raises(InvalidArgument, match="method"):
        release.choose([1, 2], candidates="ab", epsilon=1.0, method="gumbel")
    with pytest.raises(InvalidArgument, match="monotone"):
        release.choose([1, 2], candidates="ab", epsilon=1.0, monotone=1)
    with pytest.raises(InvalidArgument, match="at most the 2 candidates"):
        release.top_k([1, 2], candidates="ab", epsilon=1.0, k=3)
    with pytest.raises(InvalidArgument, match="another number") as caught:
        release.choose([98765], candidates="ab", epsilon=1.0)
    assert "98765" not in str(caught.value)


def test_every_score_is_answered(fixed) -> None:
    for first, second in itertools.product(HOSTILE, repeat=2):
        assert release.choose([first, second], candidates="ab", epsilon=0.01).value in "ab"
    assert release.choose(np.array([1, 2**40], dtype=np.int64), candidates="ab", epsilon=1).value == "b"
    assert release.choose([np.int64(0), np.float64(1e6)], candidates="ab", epsilon=1).value == "b"


def test_scores_that_are_no_numbers_count_as_missing(fixed) -> None:
    for odd in (None, math.nan, -math.inf, "x"):
        assert release.choose([odd, 5_000], candidates="ab", epsilon=1, missing=10_000).value == "a"


# -- above threshold -----------------------------------------------------------------------------------------------


def test_the_stream_stops_after_its_hits(fixed) -> None:
    far = 10**6
    answers = [-far, far, -far, far, far]
    made = release.above_threshold(answers, threshold=0, epsilon1=0.5, epsilon2=0.5, hits=2)
    assert made.value == (False, True, False, True)
    assert made.mechanism == dp.AboveThreshold(0.5, 0.5, 2)
    stream = release.ThresholdStream(0, epsilon1=0.5, epsilon2=0.5, hits=2)
    assert [stream.ask(x) for x in answers[:4]] == [False, True, False, True]
    assert stream.is_over
    assert "0 hits left" in repr(stream)
    with pytest.raises(dp.Unanswerable, match="further"):
        stream.ask(0)
    for attempt in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="never copied"):
            attempt(stream)
    assert release.above_threshold([None, math.nan, far], threshold=100, epsilon1=5, epsilon2=5).value[-1]


def test_the_first_answer_has_its_probability(fixed) -> None:
    """P(answer + Z >= threshold + R) by a double sum, sensitivity 2 on a grid of 1/2."""
    scales = 4 / 0.8, 2 * 2 * 4 / 1.6  # four grid steps, two hits
    z = np.arange(-400, 401)
    masses = [np.tanh(0.5 / s) * np.exp(-np.abs(z) / s) for s in scales]
    tail = np.cumsum(masses[1][::-1])[::-1]
    exact = sum(p * tail[np.clip(r - 6 + 400, 0, 800)] for r, p in zip(z, masses[0], strict=True))
    options = {"threshold": 1, "epsilon1": 0.8, "epsilon2": 1.6, "hits": 2, "sensitivity": 2, "grid": 0.5}
    runs = 1500
    yes = sum(release.above_threshold([4.0], **options).value[0] for _ in range(runs))
    assert abs(yes - runs * exact) < 4.5 * math.sqrt(runs * exact * (1 - exact))


def test_bad_streams_are_refused(silent) -> None:
    good = {"threshold": 1, "epsilon1": 1.0, "epsilon2": 1.0}
    for bad in ({"epsilon1": 0}, {"epsilon2": -1}, {"hits": 0}, {"sensitivity": 0}, {"grid": 0.3}, {"threshold": "x"}):
        with pytest.raises(InvalidArgument, match=next(iter(bad))):
            release.above_threshold([1], **{**good, **bad})
        with pytest.raises(InvalidArgument, match=next(iter(bad))):
            release.above_threshold.mechanism(**{**good, **bad})


def svt(answers: list[int], threshold: int, epsilon1: float, epsilon2: float, hits: int, wide: int = 60) -> dict:
    """The probability of every transcript, summed over the threshold's noise; sensitivity 1."""
    a, b = math.exp(-epsilon1), math.exp(-epsilon2 / (2 * hits))

    def above(gap: int) -> float:
        return b**gap / (1 + b) if gap > 0 else 1 - b ** (1 - gap) / (1 + b)

    out: dict[tuple[bool, ...], float] = {}
    for noise_ in range(-wide, wide + 1):
        paths = {(): (1 - a) / (1 + a) * a ** abs(noise_)}
        for answer in answers:
            grown: dict[tuple[bool, ...], float] = {}
            for said, p in paths.items():
                if sum(said) == hits:
                    grown[said] = grown.get(said, 0.0) + p
                    continue
                yes = above(threshold + noise_ - answer)
                grown[(*said, True)] = p * yes
                grown[(*said, False)] = p * (1 - yes)
            paths = grown
        for said, p in paths.items():
            out[said] = out.get(said, 0.0) + p
    return out


def test_above_threshold_on_every_neighbour_of_short_streams() -> None:
    """All moves of three queries by -1, 0, 1, transcripts enumerated: never above epsilon1 + epsilon2."""
    worst = 0.0
    for hits in (1, 2):
        for threshold in (-1, 0, 1):
            one = svt([0, 1, 0], threshold, 0.7, 1.9, hits)
            for move in itertools.product((-1, 0, 1), repeat=3):
                other = svt([0 + move[0], 1 + move[1], move[2]], threshold, 0.7, 1.9, hits)
                worst = max(worst, *(abs(math.log(one[said] / other[said])) for said in one))
    assert 0.6 * 2.6 < worst <= dp.AboveThreshold(0.7, 1.9, 1).epsilon(0.0)


# -- quantiles -----------------------------------------------------------------------------------------------------


def scores_of(data: list[float], q: F, candidates: list[float]) -> list[F]:
    n = len(data)
    return [-max(sum(x < c for x in data) - q * n, sum(x > c for x in data) - (1 - q) * n, F(0)) for c in candidates]


@pytest.mark.parametrize("q", [F(0), F(1, 4), F(1, 2), F(9, 10), F(1)])
def test_quantiles_move_by_no_more_than_they_pay_for(q: F, monkeypatch: pytest.MonkeyPatch) -> None:
    """All datasets of up to four values of five, all neighbours: what the mechanism is given."""
    seen: list[tuple[list[F], F]] = []
    monkeypatch.setattr(noise, "exponential_choice", lambda scores, epsilon, moved: seen.append((scores, moved)) or 0)
    candidates, values = [0, 1, 2.5], [-1, 0, 0.5, 1, 7]

    def given(data: tuple[float, ...], adjacency: object) -> tuple[list[F], F]:
        seen.clear()
        release.quantile(list(data), q=q, candidates=candidates, epsilon=1, adjacency=adjacency)
        return seen[0]

    for data in itertools.combinations_with_replacement(values, 3):
        mine, moved = given(data, ADD_REMOVE)
        assert mine == scores_of(list(data), q, candidates)
        assert moved == max(q, 1 - q)
        for value in values:
            more, _ = given((*data, value), ADD_REMOVE)
            other, one = given((*data[1:], value), REPLACE)
            assert max(abs(a - b) for a, b in zip(mine, more, strict=True)) <= moved
            assert max(abs(a - b) for a, b in zip(mine, other, strict=True)) <= one == 1


def test_quantiles_find_the_middle(fixed) -> None:
    data = np.arange(1001.0)
    found = release.quantile(data, q=0.25, candidates=range(0, 1001, 50), epsilon=2, adjacency=ADD_REMOVE)
    assert abs(found.value - 250) <= 50
    assert found.mechanism == dp.ExponentialMechanism(2.0)
    odd = [None, math.nan, "x", 5.0, math.inf]
    assert release.quantile(odd, q=0.5, candidates=(1, 2), epsilon=1, adjacency=REPLACE).value in (1.0, 2.0)
    high = release.quantile([None] * 5000, q=0.5, candidates=(1, 9), epsilon=1, adjacency=REPLACE, missing=9)
    assert high.value == 9.0
    assert release.quantile([], q=0.5, candidates=(1, 9), epsilon=1, adjacency=REPLACE).value in (1.0, 9.0)


def test_bad_quantiles_are_refused(silent) -> None:
    good = {"q": 0.5, "candidates": (1, 2), "epsilon": 1.0, "adjacency": REPLACE}
    for name, values in {
        "q": (-0.1, 1.5, "x"),
        "candidates": ((), (2, 1), (1, 1), (1, math.inf), "ab"),
        "epsilon": (0, -1, math.nan),
        "adjacency": (None, "replace"),
        "missing": ("x",),
    }.items():
        for value in values:
            with pytest.raises(InvalidArgument, match=name):
                release.quantile.mechanism(**{**good, name: value})
            with pytest.raises(InvalidArgument, match=name):
                release.quantile([1, 2], **{**good, name: value})
