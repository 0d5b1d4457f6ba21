"""Contract: DP-SGD in one line."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dptally.errors import InvalidArgument, InvalidType
from dptally.law.adjacency import REPLACE, Adjacency, Direction
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.mechanisms.gaussian import Gaussian
from dptally.mechanisms.json import from_json, to_json
from dptally.mechanisms.poisson_sampled import PoissonSampled
from dptally.mechanisms.training_runs import dpsgd


def test_it_is_the_plan_it_stands_for() -> None:
    plan = dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    assert plan == 1000 * PoissonSampled(Gaussian(1.0), 0.01)
    assert dpsgd(1.0, 0.01, 400) + dpsgd(1.0, 0.01, 600) == plan
    assert from_json(to_json(plan)) == plan
    assert dpsgd(1.0, 0.01, 10, REPLACE) != dpsgd(1.0, 0.01, 10)


def test_two_directions_with_counts() -> None:
    remove, add = dpsgd(1.0, 0.01, 1000).directions()
    assert remove.parts == ((SampledGaussianLaw(0.01, 1.0, Direction.REMOVE), 1000),)
    assert add.parts == ((SampledGaussianLaw(0.01, 1.0, Direction.ADD), 1000),)
    assert len(dpsgd(1.0, 0.01, 1000, REPLACE).directions()) == 1
    assert dpsgd(1.0, 0.01, 0).directions()[0].parts == ()
    whole = dpsgd(2.0, 1.0, 4).directions()
    assert whole == (4 * Gaussian(2.0)).directions()


def test_renyi_orders_against_the_binomial_sum() -> None:
    """At whole orders E[A^a] is a finite sum  [Mironov, Talwar, Zhang 2019, Eq. 4]."""
    sigma, q = 0.8, 0.05
    law = SampledGaussianLaw(q, sigma, Direction.REMOVE)
    for a in (2, 3, 16):
        terms = [
            math.comb(a, k) * (1 - q) ** (a - k) * q**k * math.exp(k * (k - 1) / (2 * sigma**2)) for k in range(a + 1)
        ]
        assert float(law.log_moment(np.array([a - 1.0]))[0]) == pytest.approx(math.log(math.fsum(terms)), rel=1e-12)


def test_sampling_does_not_help_zcdp() -> None:
    """The smallest rho is that of the noise alone: the limit of high orders forgets the rate."""
    assert dpsgd(2.0, 0.01, 10).rho() == pytest.approx(10 / 8, rel=1e-12)
    law = SampledGaussianLaw(0.3, 2.0, Direction.REMOVE)
    t = np.geomspace(0.1, 1e6, 15)
    ratio = law.log_moment(t) / (t * (t + 1))
    assert (ratio <= 0.125).all()
    assert ratio[-1] == pytest.approx(0.125, rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((0.0, 0.1, 10), InvalidArgument, "noise_multiplier must be positive"),
        ((math.nan, 0.1, 10), InvalidArgument, "noise_multiplier"),
        ((1.0, 1.1, 10), InvalidArgument, "sample_rate"),
        ((1.0, 0.1, 1.5), InvalidType, "steps"),
        ((1.0, 0.1, -1), InvalidArgument, "steps"),
        ((1.0, 0.1, 10, "replace"), InvalidType, "adjacency"),
    ],
)
def test_bad_input(arguments: tuple[object, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        dpsgd(*arguments)  # type: ignore[arg-type]


def test_adjacency_prints_its_name() -> None:
    assert [repr(a) for a in Adjacency] == ["ADD_REMOVE", "REPLACE"]
    assert repr(Direction.ADD) == "ADD"
