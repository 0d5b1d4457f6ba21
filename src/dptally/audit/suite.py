"""dptally audits itself: every sampler and every release, each with the claim that it makes.

Each case is a pair of datasets and parameters for which the claim is met with equality, or nearly so, by an
event that is not rare. There the certified bound comes near the claim, so that the audit would see a
mechanism ten percent worse than it says. Where no such pair exists, ``attainable`` is the exact value at the
pair that is used (docs/audit.md says why).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dptally import mechanisms, noise, release
from dptally.audit.drawing import Progress
from dptally.audit.result import AuditResult
from dptally.audit.run import run
from dptally.law.adjacency import ADD_REMOVE, REPLACE
from dptally.mechanisms import Mechanism

__all__ = ["Case", "suite"]

_MANY = 200_000  # runs of what draws arrays
_RUNS = 22_000  # runs of a release with one noisy number
_FEW = 14_000  # runs of a release that sorts its records
_MORE = 36_000  # runs of a release with two: the deciding event is rarer


@dataclass(frozen=True, slots=True)
class Case:
    """One audit of the suite: a mechanism, two neighbouring datasets, and what is claimed."""

    name: str
    mechanism: Callable[..., Any]
    d0: Any
    d1: Any
    claim: Mechanism
    samples: int
    batched: bool = False
    delta: float | None = None
    attainable: float | None = None

    @property
    def target(self) -> str:
        """The public function that is audited: ``noise.bernoulli``, ``release.count``."""
        return self.name.split(",")[0]

    def run(self, *, jobs: int = 1, progress: Progress | None = None) -> AuditResult:
        return run(
            self.mechanism,
            self.d0,
            self.d1,
            self.claim,
            samples=self.samples,
            batched=self.batched,
            delta=self.delta,
            jobs=jobs,
            progress=progress,
        )


def suite() -> tuple[Case, ...]:
    """Every audit, the quick ones first.

    >>> len({case.name for case in suite()}) == len(suite())
    True
    """
    return (*_samplers(), *_scalars(), *_means(), *_bins(), *_choices(), *_selections(), *_others())


def _samplers() -> tuple[Case, ...]:
    laplace, gaussian = mechanisms.DiscreteLaplace, mechanisms.DiscreteGaussian
    response, step = mechanisms.RandomizedResponse, Fraction(1, 64)

    def case(name: str, draw: Callable[..., Any], d1: Any, claim: Mechanism, samples: int = _MANY) -> Case:
        return Case(f"noise.{name}", draw, 0, d1, claim, samples, batched=True)

    def fine(name: str, draw: Callable[..., Any], d1: Any, claim: Mechanism) -> Case:
        """A Gaussian on a fine grid, where the best event at every delta is rare: twice as many draws."""
        return Case(f"noise.{name}", draw, 0, d1, claim, 2 * _MANY, batched=True, delta=0.3)

    return (
        case("uniform_below", _seventh_parts, 1, response(5 / 7, 3)),
        case("bernoulli", lambda x, n: x ^ noise.bernoulli(Fraction(1, 8), n), 1, response(0.875)),
        case("bernoulli_exp", lambda x, n: x ^ noise.bernoulli_exp(2, n), 1, response(1 - math.exp(-2))),
        case("discrete_laplace", lambda x, n: x + noise.discrete_laplace(10 / 3, n), 7, laplace(10 / 3, 7)),
        case("discrete_laplace, wide", _wide_laplace, 9, laplace(10 / 3, 9), samples=2 * _RUNS),
        fine("discrete_gaussian", lambda x, n: x + noise.discrete_gaussian(66.5, n), 133, gaussian(66.5, 133)),
        case("randomized_response", _answers, 2, response(0.75, 3)),
        case("grid_laplace", lambda x, n: noise.grid_laplace(np.full(n, x / 2), 1, step), 4, laplace(64, 128)),
        fine("grid_gaussian", lambda x, n: noise.grid_gaussian(np.full(n, x / 2), 1, step), 4, gaussian(64, 128)),
    )


def _seventh_parts(x: int, size: int) -> Any:
    """Five of the seven numbers keep the truth; the sixth and the seventh each give one of the other two."""
    return (x + np.maximum(noise.uniform_below(7, size) - 4, 0)) % 3


def _wide_laplace(x: int, size: int) -> Any:
    """A scale too wide for 64 bits and all but equal to 10/3: drawn one by one in Python integers."""
    return x + noise.discrete_laplace(Fraction(10**30 + 1, 3 * 10**29), size)


def _answers(x: int, size: int) -> Any:
    return noise.randomized_response(np.full(size, x), 0.75, 3)


# One noisy number: pure epsilon 8/3, or discrete Gaussian noise of 7/16 steps at delta 0.1. Two: each of pure
# epsilon 4/3, or of 9/16 steps at delta 0.25. On grids as coarse as that the best event at that delta is a
# common one (probabilities 0.94 and 0.06, or 0.77 and 0.02), so that few runs come near the claim.
_SCALE, _SIGMA, _DELTA = 0.375, 0.4375, 0.1
_SCALES, _SIGMAS, _DELTAS = 0.75, 0.5625, 0.25


def _release(name: str, call: Callable[[Any], release.Released], d0: Any, d1: Any, **other: Any) -> Case:
    """The claim is the mechanism that the release itself returns."""
    return Case(f"release.{name}", call, d0, d1, call(d0).mechanism, **{"samples": _RUNS, **other})


def _scalars() -> tuple[Case, ...]:
    total, answer = release.bounded_sum, release.answer
    bounds: dict[str, Any] = {"lower": -2, "upper": 2}
    two, three = np.array([1.0, -0.75]), np.array([1.0, -0.75, 9.0])
    low, high = np.array([1.0, -9.0]), np.array([1.0, 9.0])
    return (
        _release("count", lambda x: release.count(x, scale=_SCALE), [0, 0], [0, 0, 0]),
        _release("count, sigma", lambda x: release.count(x, sigma=_SIGMA), [0], [0, 0], delta=_DELTA),
        _release("answer", lambda x: answer(x, sensitivity=2, scale=2 * _SCALE, grid=2), 0.25, 2.25),
        _release("answer, sigma", lambda x: answer(x, sensitivity=1, sigma=_SIGMA, grid=1), 0.25, 1.25, delta=_DELTA),
        _release(
            "bounded_sum",
            lambda x: total(x, **bounds, adjacency=ADD_REMOVE, scale=2 * _SCALE, grid=1),
            two,
            three,
        ),
        _release(
            "bounded_sum, one replaced",
            lambda x: total(x, **bounds, adjacency=REPLACE, scale=4 * _SCALE, grid=1),
            low,
            high,
        ),
        _release(
            "bounded_sum, sigma",
            lambda x: total(x, **bounds, adjacency=ADD_REMOVE, sigma=2 * _SIGMA, grid=2),
            two,
            three,
            delta=_DELTA,
        ),
        _release(
            "bounded_sum, sigma, one replaced",
            lambda x: total(x, **bounds, adjacency=REPLACE, sigma=4 * _SIGMA, grid=4),
            low,
            high,
            delta=_DELTA,
        ),
    )


def _means() -> tuple[Case, ...]:
    """Under ADD_REMOVE the mean of 200 records with a sum of about 8 steps is a fraction that tells the noisy
    sum and the noisy count apart (8/200 is no k/n for other k and n nearby): the pair is audited through it.
    """
    known: dict[str, Any] = {"lower": 0, "upper": 4, "adjacency": REPLACE}
    unknown: dict[str, Any] = {"lower": -1, "upper": 1, "adjacency": ADD_REMOVE, "grid": 1}
    low, high = np.array([0.0, 2.0, -3.5]), np.array([0.0, 2.0, 7.5])
    fewer, more = np.repeat([1.0, 0.0], [8, 192]), np.repeat([1.0, 0.0], [9, 192])
    return (
        _release("mean", lambda x: release.mean(x, **known, scale=4 * _SCALE, grid=1), low, high),
        _release("mean, sigma", lambda x: release.mean(x, **known, sigma=4 * _SIGMA, grid=4), low, high, delta=_DELTA),
        _release(
            "mean, size unknown",
            lambda x: release.mean(x, **unknown, scale=_SCALES, count_scale=_SCALES),
            fewer,
            more,
            samples=_MORE,
        ),
        _release(
            "mean, sigma, size unknown",
            lambda x: release.mean(x, **unknown, sigma=_SIGMAS, count_sigma=_SIGMAS),
            fewer,
            more,
            samples=_MORE,
            delta=_DELTAS,
        ),
    )


def _bins() -> tuple[Case, ...]:
    """Every bin of one large histogram has noise of its own, so each is a run; or each two, where a record
    moves from the one to the other.
    """
    one, two = mechanisms.DiscreteLaplace(_SCALE), 2 * mechanisms.DiscreteLaplace(_SCALES)
    first, both = mechanisms.DiscreteGaussian(_SIGMA), 2 * mechanisms.DiscreteGaussian(_SIGMAS)
    return (
        Case("release.histogram", partial(_singles, scale=_SCALE), 0, 1, one, _MANY, True),
        Case("release.histogram, sigma", partial(_singles, sigma=_SIGMA), 0, 1, first, _MANY, True, _DELTA),
        Case("release.histogram, one replaced", partial(_pairs, scale=_SCALES), 0, 1, two, _MANY, True),
        Case(
            "release.histogram, sigma, one replaced",
            partial(_pairs, sigma=_SIGMAS),
            0,
            1,
            both,
            _MANY,
            True,
            _DELTAS,
        ),
    )


def _singles(added: int, size: int, **parameter: Any) -> release.Released:
    records = np.repeat(np.arange(size), 1 + added)
    return release.histogram(records, categories=range(size), adjacency=ADD_REMOVE, **parameter)


def _pairs(place: int, size: int, **parameter: Any) -> Any:
    records = 2 * np.arange(size) + place
    made = release.histogram(records, categories=range(2 * size), adjacency=REPLACE, **parameter)
    return made.value.reshape(size, 2)


def _choices() -> tuple[Case, ...]:
    """The mode. Against several rivals the largest of them is hardly ever below zero, and then the first wins
    by a tail of its own noise alone: the claim for one record added is met. For one replaced between two
    categories Gaussian noise meets the claim, Laplace noise does not.
    """
    mode, two, four = release.mode, (0, 1), (0, 1, 2, 3)
    added: dict[str, Any] = {"categories": four, "adjacency": ADD_REMOVE}
    replaced: dict[str, Any] = {"categories": two, "adjacency": REPLACE}
    return (
        _release("mode", lambda x: mode(x, **added, scale=_SCALE), [1, 2, 3], [0, 1, 2, 3]),
        _release("mode, sigma", lambda x: mode(x, **added, sigma=_SIGMA), [1, 2, 3], [0, 1, 2, 3], delta=_DELTA),
        _release(
            "mode, one replaced",
            lambda x: mode(x, **replaced, scale=_SCALES),
            [0, 1],
            [1, 1],
            attainable=_mode_of_two(_SCALES),
        ),
        _release(
            "mode, sigma, one replaced",
            lambda x: mode(x, **replaced, sigma=_SIGMAS),
            [0, 1],
            [1, 1],
            samples=_MORE,
            delta=_DELTAS,
        ),
    )


def _mode_of_two(scale: float) -> float:
    """The exact epsilon of the first of two categories winning from counts (1, 1) and from (0, 2).

    The difference D of two discrete Laplace draws has P(D = d) = c^2 a^|d| (|d| + (1 + a^2) / (1 - a^2)) with
    c = (1 - a) / (1 + a), a = exp(-1 / scale); the first wins if D >= 0, and if D >= 2.
    """
    a = math.exp(-1 / scale)
    weight = [a**d * (d + (1 + a * a) / (1 - a * a)) for d in range(200)]
    return math.log(math.fsum(weight) / math.fsum(weight[2:]))


# The exponential mechanism between two candidates that a neighbour moves in opposite directions, from a tie: one of
# them loses with probability 1 / (1 + e^3) instead of 1/2, which meets the claim at this delta: many draws see it.
_RANGE = 3.0
_TIE = 0.5 - math.exp(2 * math.log(0.5 * (1 + math.exp(_RANGE))) - _RANGE) / (1 + math.exp(_RANGE))
_ODDS = 5.0  # log odds of 5/2 that become -5/2: what a few runs can see


def _selections() -> tuple[Case, ...]:
    """Selection. Permute-and-flip from a tie meets its claim at delta 0. The exponential mechanism comes near it with
    rare choices only, several peels and a stream above a threshold with long ones: what is attained is stated.
    """
    tie, moved, flip = [0, 0], [-1, 1], mechanisms.PermuteAndFlip(_RANGE)
    once, range_ = noise.exponential_choice, mechanisms.ExponentialMechanism(_RANGE)
    two: dict[str, Any] = {"candidates": (0, 1), "epsilon": _ODDS}
    few: dict[str, Any] = {"samples": 14_000, "attainable": _ODDS / 2}
    return (
        Case("noise.permute_and_flip", lambda x: noise.permute_and_flip(x, 3), tie, moved, flip, _RUNS),
        Case("noise.exponential_choice", lambda x, n: once(x, 3, size=n), tie, moved, range_, _MANY, True, _TIE),
        _release("choose, flip", _flipped, tie, moved, samples=_MORE),
        _release("choose, one way", _one_way, [0.5, 0], [0.5, 1], **few),
        _release("choose", lambda x: release.choose(x, **two), [0.5, -0.5], [-0.5, 0.5], **few),
        _release("quantile", _middle, [-1.0, 0.5, 0.5], [2.0, 0.5, 0.5], **few),
        _release(
            "above_threshold",
            lambda x: release.above_threshold(x, threshold=1, epsilon1=1.0, epsilon2=3.0),
            [0, 1],
            [1, 0],
            attainable=_second_of_two(1.0, 3.0),
        ),
        _release(
            "top_k",
            lambda x: release.top_k(x, candidates=(0, 1, 2), k=2, epsilon=2.0),
            [0, 0, 0],
            [-1, -1, 1],
            attainable=_last_of_three(2.0),
        ),
    )


def _flipped(scores: list[int]) -> release.Released:
    return release.choose(scores, candidates=(0, 1), epsilon=_RANGE, method="permute_and_flip")


def _one_way(scores: list[float]) -> release.Released:
    return release.choose(scores, candidates=(0, 1), epsilon=2 * _ODDS, monotone=True)


def _middle(data: list[float]) -> release.Released:
    return release.quantile(data, q=0.5, candidates=(0, 1), epsilon=_ODDS, adjacency=REPLACE)


def _last_of_three(epsilon: float) -> float:
    """The exact epsilon of the third of three equal candidates staying out of the best two, when it gains 1 and the
    others lose 1: 1/3 against the two orders of the others.
    """
    low, high = math.exp(-0.5 * epsilon), math.exp(0.5 * epsilon)
    return math.log((1 / 3) / (2 * low / (2 * low + high) * low / (low + high)))


def _second_of_two(epsilon1: float, epsilon2: float) -> float:
    """The exact epsilon of "no, yes" to the answers 0, 1 and 1, 0 at the threshold 1: a sum over its noise."""
    a, b = math.exp(-epsilon1), math.exp(-0.5 * epsilon2)

    def above(gap: int) -> float:
        """P(Z >= gap) of the query's noise."""
        return b**gap / (1 + b) if gap > 0 else 1 - b ** (1 - gap) / (1 + b)

    def no_yes(first: int, second: int) -> float:
        levels = range(-80, 81)
        return math.fsum(a ** abs(z) * (1 - above(1 + z - first)) * above(1 + z - second) for z in levels)

    return math.log(no_yes(0, 1) / no_yes(1, 0))


def _others() -> tuple[Case, ...]:
    claim = mechanisms.PoissonSampled(mechanisms.DiscreteLaplace(_SCALE), 0.5)
    return (
        Case(
            "release.randomized_response",
            lambda x, n: release.randomized_response([x] * n, p=0.875),
            0,
            1,
            mechanisms.RandomizedResponse(0.875),
            _MANY,
            batched=True,
        ),
        _release("mode_of_bits", _majority, [1] * 5, [1] * 4 + [0]),
        _release(
            "stable_median",
            _middle_if_stable,
            np.repeat([1, 2], [100, 100]),
            np.repeat([1, 2], [99, 100]),
            samples=_FEW,
        ),
        _release(
            "stable_mean",
            _trimmed_if_stable,
            np.repeat([0, 100], [350, 250]),
            np.repeat([0, 100], [349, 251]),
            samples=_FEW,
        ),
        _release("propose_test_release", _largest_if_safe, [9] * 3 + [0], [9] * 2 + [0] * 2),
        _release("clip_and_rectify", _rectified_sum, [0, 0], [0, 1]),
        Case("release.poisson_sample", _sampled_sum, [0, 0], [0, 0, 1], claim, _RUNS),
        Case("release.batches", _sum_of_a_batch, [0, 0], [0, 0, 1], claim, _RUNS),
        Case(
            "release.IndividualSums",
            _coordinates,
            [0.0],
            [1.0],
            mechanisms.DiscreteGaussian(_SIGMA),
            _MANY,
            batched=True,
            delta=_DELTA,
        ),
    )


def _majority(data: list[int]) -> release.Released:
    """The distances 2 and 1 lie on both sides of the test's threshold of 1, which is met by the sign of Z."""
    return release.mode_of_bits(data, epsilon=2.5, delta=0.01, adjacency=REPLACE)


def _largest_if_safe(data: list[int]) -> release.Released:
    """The maximum of numbers up to 9: it can change by replacing one record unless 9 is there twice."""
    return release.propose_test_release(
        data, max, lambda x: max(x.count(9) - 1, 0), epsilon=2.5, delta=0.01, adjacency=REPLACE
    )


# Of a stable release the test is cheap (epsilon 0.04) and nearly always passed: the noise on the answer is what shows
_TESTED: dict[str, Any] = {"local_sensitivity": 1, "epsilon": 0.04, "delta": 0.01, "scale": _SCALE, "grid": 1}


def _middle_if_stable(data: Any) -> release.Released:
    """With a hundred ones and a hundred twos the median is 1; with a one less it is 2, and no more than that."""
    return release.stable_median(data, lower=0, upper=4, adjacency=ADD_REMOVE, **_TESTED)


def _trimmed_if_stable(data: Any) -> release.Released:
    """The hundred records in the middle are 0; one of them replaced lets the first of the others in: 100/100."""
    return release.stable_mean(data, lower=0, upper=400, trim=250, missing=0, adjacency=REPLACE, **_TESTED)


def _rectified_sum(data: list[int]) -> release.Released:
    """A sum with Gaussian noise of a third (on a fine grid) is 3.001-GDP, hence head GDP for every head; the
    long head makes the noise of the rectifier small beside it.
    """
    return release.clip_and_rectify(
        lambda x: sum(x) + noise.discrete_gaussian(Fraction(64, 3)) / 64,
        data,
        lower=-8,
        upper=8,
        head_epsilon=800.0,
        mu=3.001,
    )


def _sum_of_a_batch(data: list[int]) -> Any:
    """The first step of an epoch of Poisson batches."""
    batch = next(iter(release.batches(mechanisms.Poisson(0.5), len(data))))
    return sum(data[i] for i in batch) + noise.discrete_laplace(_SCALE)


def _coordinates(data: list[float], number: int) -> Any:
    """A record that spends all it has in one sum of ``number`` coordinates: each is a discrete Gaussian of its own."""
    sums = release.IndividualSums(len(data), _SIGMA, number / (2 * Fraction(_SIGMA) ** 2), grid=1)
    return sums.sum([[one] * number for one in data])


def _sampled_sum(data: list[int]) -> Any:
    return sum(release.poisson_sample(data, 0.5).records) + noise.discrete_laplace(_SCALE)
