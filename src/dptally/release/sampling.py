"""Poisson sampling of records: each is in the sample with probability ``rate``, independently and exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dptally import mechanisms, noise
from dptally.errors import InvalidType
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms import Mechanism
from dptally.noise import parameters
from dptally.noise.parameters import Exact

__all__ = ["PoissonSample", "poisson_sample"]


@dataclass(frozen=True, slots=True)
class PoissonSample:
    """The sampled records: secret, like the data they come from. ``account`` wraps what is run on them.

    >>> PoissonSample((), 0.5).account(mechanisms.Gaussian(sigma=1.0))
    PoissonSampled(mechanism=Gaussian(sigma=1.0, sensitivity=1.0), rate=0.5, adjacency=ADD_REMOVE)
    """

    records: Any
    rate: float

    def account(self, mechanism: Mechanism, adjacency: Adjacency = ADD_REMOVE) -> Mechanism:
        """The mechanism that ran on the sample, seen from the whole data: amplified by the sampling.

        Under either adjacency ``mechanism`` is the one stated for a record added or removed.
        """
        return mechanisms.PoissonSampled(mechanism, self.rate, adjacency)

    def __repr__(self) -> str:
        return f"PoissonSample(rate={self.rate})"  # never the records


def poisson_sample(data: Any, rate: Exact) -> PoissonSample:
    """Each record of ``data`` with probability exactly ``rate``, in the type of ``data``.

    Lists, numpy arrays (rows), pandas and polars frames and series, Arrow arrays and tables. Sampling is not
    a release: the sample must not be published, nor its size.

    >>> poisson_sample([1, 2, 3], rate=1).records
    [1, 2, 3]
    """
    chance = parameters.double("rate", parameters.probability("rate", rate))
    if isinstance(data, (str, bytes, dict, set)) or not hasattr(data, "__len__"):
        raise InvalidType("data", "a list, an array, a column or a table", type(data).__name__)
    chosen = noise.bernoulli(chance, len(data))
    if isinstance(data, (list, tuple)):
        return PoissonSample([record for record, inside in zip(data, chosen, strict=True) if inside], chance)
    if hasattr(data, "loc"):  # pandas
        return PoissonSample(data.loc[chosen], chance)
    if hasattr(data, "filter"):  # polars, Arrow
        return PoissonSample(data.filter(chosen), chance)
    return PoissonSample(np.asarray(data)[chosen], chance)
