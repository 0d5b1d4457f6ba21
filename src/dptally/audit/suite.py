"""dptally audits itself: every sampler and every release, each with a claim to refute.

``tight`` cases are of the pure and Gaussian families, where the worst pair of datasets is known; there the
certified bound comes near the claim, so that the audit would see a mechanism ten percent worse than it says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dptally import mechanisms, noise, release
from dptally.audit.drawing import Progress
from dptally.audit.result import AuditResult
from dptally.audit.run import run
from dptally.law.adjacency import ADD_REMOVE, REPLACE
from dptally.mechanisms import Mechanism

__all__ = ["Case", "suite"]

_MANY = 200_000  # runs of a sampler that draws arrays
_SOME = 44_000  # runs of a release that should come near its claim
_FEW = 8_000  # runs of a release whose claim is not tight on one pair of datasets


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
    tight: bool = False
    delta: float | None = None
    quantity: str | None = None

    def run(self, *, jobs: int = 1, progress: Progress | None = None) -> AuditResult:
        return run(
            self.mechanism,
            self.d0,
            self.d1,
            self.claim,
            samples=self.samples,
            batched=self.batched,
            delta=self.delta,
            quantity=self.quantity,
            jobs=jobs,
            progress=progress,
        )


def suite() -> tuple[Case, ...]:
    """Every audit, the quick ones first.

    >>> len({case.name for case in suite()}) == len(suite())
    True
    """
    return (*_samplers(), *_releases_with_laplace(), *_releases_with_gaussian(), *_other_releases())


def _case(name: str, draw: Callable[..., Any], d1: Any, claim: Mechanism, tight: bool = True) -> Case:
    return Case(f"noise.{name}", draw, 0, d1, claim, _MANY, batched=True, tight=tight)


def _samplers() -> tuple[Case, ...]:
    pure, mu, step = mechanisms.PureDP, mechanisms.GaussianDP(1.50001), Fraction(1, 64)
    return (
        _case("uniform_below", lambda x, n: (x + noise.uniform_below(7, n)) % 7, 1, pure(0.05), tight=False),
        _case("bernoulli", lambda x, n: x ^ noise.bernoulli(Fraction(1, 8), n), 1, pure(1.9459102)),
        _case("bernoulli_exp", lambda x, n: x ^ noise.bernoulli_exp(Fraction(11, 5), n), 1, pure(2.0827442)),
        _case("discrete_laplace", lambda x, n: x + noise.discrete_laplace(Fraction(10, 3), n), 5, pure(1.5)),
        _case("discrete_gaussian", lambda x, n: x + noise.discrete_gaussian(Fraction(200, 3), n), 100, mu),
        _case("randomized_response", _answers, 2, mechanisms.RandomizedResponse(0.75, 3)),
        _case("grid_laplace", lambda x, n: noise.grid_laplace(np.full(n, x / 2), 1, step), 3, pure(1.5)),
        _case("grid_gaussian", lambda x, n: noise.grid_gaussian(np.full(n, x / 2), 1, step), 3, mu),
    )


def _answers(x: int, size: int) -> Any:
    return noise.randomized_response(np.full(size, x), 0.75, 3)


def _release(name: str, call: Callable[[Any], release.Released], d0: Any, d1: Any, **other: Any) -> Case:
    """The claim is the mechanism that the release itself returns."""
    options = {"samples": _SOME, "tight": True, **other}
    return Case(f"release.{name}", call, d0, d1, call(d0).mechanism, **options)


def _releases_with_laplace() -> tuple[Case, ...]:
    """Each at a pure epsilon of 2: where a given number of runs comes nearest to the claim."""
    return (
        _release("count", lambda x: release.count(x, scale=0.5), [0, 0], [0, 0, 0]),
        _release(
            "bounded_sum",
            lambda x: release.bounded_sum(x, lower=-3, upper=5, adjacency=ADD_REMOVE, scale=2.5, grid=1),
            [1, 4],
            [1, 4, 9],
        ),
        _release(
            "mean",
            lambda x: release.mean(x, lower=0, upper=4, adjacency=REPLACE, scale=2, grid=1),
            [0.0, 2.0, 0.0],
            [0.0, 2.0, 7.5],
        ),
        Case(
            "release.histogram",
            _bins,
            1,
            2,
            mechanisms.DiscreteLaplace(0.5),
            _MANY,
            batched=True,
            tight=True,
        ),
        Case(
            "release.randomized_response",
            lambda x, n: release.randomized_response([x] * n, p=0.875),
            0,
            1,
            mechanisms.RandomizedResponse(0.875),
            _MANY,
            batched=True,
            tight=True,
        ),
    )


def _bins(copies: int, size: int) -> release.Released:
    """Every bin of one large histogram: each has noise of its own, so each is a run."""
    records = np.repeat(np.arange(size), copies)
    return release.histogram(records, categories=range(size), adjacency=ADD_REMOVE, scale=0.5)


def _releases_with_gaussian() -> tuple[Case, ...]:
    """Each at about mu = 3, on grids fine enough for the discrete Gaussian to pass for the Gaussian."""
    claim, samples = mechanisms.GaussianDP(3.001), 30_000
    options: dict[str, Any] = {"adjacency": REPLACE, "sigma": 1, "grid": Fraction(1, 16)}
    return (
        Case(
            "release.answer with sigma",
            lambda x: release.answer(x, sensitivity=3, sigma=1, grid=Fraction(1, 16)),
            0.25,
            3.25,
            claim,
            samples,
            tight=True,
        ),
        Case(
            "release.bounded_sum with sigma",
            lambda x: release.bounded_sum(x, lower=0, upper=3, **options),
            [0.5, -1.0],
            [0.5, 3.5],
            claim,
            samples,
            tight=True,
        ),
    )


def _other_releases() -> tuple[Case, ...]:
    """Claims that are not met with equality by these datasets, or not at the measured point."""
    loose: dict[str, Any] = {"samples": _FEW, "tight": False}
    return (
        _release("count with sigma", lambda x: release.count(x, sigma=1), [0], [0, 0], delta=0.1, **loose),
        _release(
            "mean, size unknown",
            lambda x: release.mean(x, lower=0, upper=4, adjacency=ADD_REMOVE, scale=1, count_scale=1),
            [0.0, 2.0],
            [0.0, 2.0, 4.0],
            **loose,
        ),
        _release(
            "histogram, one replaced",
            lambda x: release.histogram(x, categories=(0, 1), adjacency=REPLACE, scale=1),
            [0, 0],
            [0, 1],
            **loose,
        ),
        _release(
            "mode",
            lambda x: release.mode(x, categories=(0, 1), adjacency=REPLACE, scale=1),
            [0],
            [1],
            **loose,
        ),
        _release(
            "mode_of_bits",
            lambda x: release.mode_of_bits(x, epsilon=1.0, delta=0.05, adjacency=REPLACE),
            [1] * 8,
            [1] * 7 + [0],
            **loose,
        ),
        _release("propose_test_release", _largest_if_safe, [9] * 3 + [0] * 3, [9] * 4 + [0] * 2, **loose),
        _release("clip_and_rectify", _rectified_sum, [0, 0], [0, 1], quantity="mu", **loose),
        Case(
            "release.poisson_sample",
            _sampled_count,
            [0] * 2,
            [0] * 3,
            mechanisms.PoissonSampled(mechanisms.DiscreteLaplace(0.5), 0.5),
            _FEW,
        ),
    )


def _largest_if_safe(data: list[int]) -> release.Released:
    """The maximum of numbers up to 9: it can change by replacing one record unless 9 is there twice."""
    return release.propose_test_release(
        data, max, lambda x: max(x.count(9) - 1, 0), epsilon=1.0, delta=0.05, adjacency=REPLACE
    )


def _rectified_sum(data: list[int]) -> release.Released:
    """A sum with Gaussian noise is 1-GDP, hence head GDP for every head."""
    return release.clip_and_rectify(
        lambda x: sum(x) + noise.discrete_gaussian(64) / 64, data, lower=-8, upper=8, head_epsilon=8.0, mu=1.0
    )


def _sampled_count(data: list[int]) -> Any:
    sample = release.poisson_sample(data, 0.5).records
    return len(sample) + noise.discrete_laplace(Fraction(1, 2))
