"""Hypothesis strategies that several test files share: numbers of a scale, rates, mechanisms and plans."""

from __future__ import annotations

from hypothesis import strategies as st

import dptally as dp
from dptally.law.adjacency import Direction

__all__ = [
    "directions",
    "guarantees",
    "log_uniform",
    "mechanisms",
    "noises",
    "parts",
    "plans",
    "rates",
    "sampled",
    "sizes",
]


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    """10^x for x between the two."""
    return st.floats(low, high).map(lambda x: 10.0**x)


sizes = st.floats(1e-3, 1e3)  #: of noise, losses and sensitivities
#: in (0, 1), dense at both ends
rates = st.one_of(log_uniform(-9, -0.01), st.floats(-9, -0.3).map(lambda x: 1 - 10.0**x))
directions = st.sampled_from(list(Direction))

noises = st.one_of(
    st.builds(dp.Gaussian, sizes, sizes),
    st.builds(dp.Laplace, sizes, sizes),
    st.builds(dp.DiscreteLaplace, sizes, st.integers(1, 9)),
    st.builds(dp.DiscreteGaussian, sizes, st.integers(1, 9)),
    st.builds(dp.RandomizedResponse, st.floats(0.01, 0.99), st.integers(2, 9)),
)
guarantees = st.one_of(
    st.builds(dp.PureDP, sizes),
    st.builds(dp.ApproxDP, sizes, st.floats(1e-6, 1.0)),
    st.builds(dp.ZCDP, sizes),
    st.builds(dp.GaussianDP, sizes),
    st.builds(dp.AlphaDP, st.floats(1.1, 50), sizes),
    st.builds(lambda a, e: dp.RenyiDP((a, a + 1), (e, e)), st.floats(1.1, 50), sizes),
    st.builds(lambda e, d: dp.Profile.from_points([(e, d)]), sizes, st.floats(1e-9, 0.5)),
)
mechanisms = st.one_of(noises, guarantees)
sampled = st.builds(dp.PoissonSampled, mechanisms, st.floats(1e-6, 1.0), st.sampled_from(list(dp.Adjacency)))
#: (mechanism, count) pairs, as a composition takes them
parts = st.lists(st.tuples(st.one_of(mechanisms, sampled), st.integers(1, 10**6)), min_size=1, max_size=4)
plans = parts.map(dp.Composed.of)
