"""Brute force: every data set on a grid of contributions, every way of drawing one batch, both adjacencies, both
directions: the enumerated mixture never lies above ours, and reaches it for some data set where the manual says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import dptally as dp
from batching import enumeration as e
from batching.test_enumerated import SLACK, A, ours
from depth import SOAK

GRID = (-1.0, 0.0, 1.0)
RECORDS = (2, 3, 4, 5, 6) if SOAK else (2, 4)


def pairs(records: int, adjacency: dp.Adjacency) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Neighbours: the order of the other records does not matter to any sampler."""
    for others in itertools.combinations_with_replacement(GRID, records - 1):
        for x in GRID:
            if adjacency is dp.ADD_REMOVE:
                yield (*others, x), others
            else:
                yield from (((*others, x), (*others, z)) for z in GRID if z != x)


def poisson(data: tuple[float, ...], rate: float) -> e.Weighted:
    return [(chance, (sum(data[i] for i in chosen),)) for chance, chosen in e.poisson(data, rate)]


@pytest.mark.parametrize("adjacency", [dp.ADD_REMOVE, dp.REPLACE])
@pytest.mark.parametrize("records", RECORDS)
@pytest.mark.parametrize("kind", ["poisson", "fixed", "truncated"])
def test_one_batch(kind: str, records: int, adjacency: dp.Adjacency) -> None:
    sigma, rate, size = 0.9, 0.4, max(1, records // 2)
    draw, sampler = {
        "poisson": (lambda data: poisson(data, rate), dp.Poisson(rate)),
        "fixed": (lambda data: e.fixed(data, size), dp.FixedSize(size, records)),
        "truncated": (lambda data: e.truncated(data, rate, size), dp.TruncatedPoisson(rate, records, size)),
    }[kind]
    plan = dp.Sampled(dp.Gaussian(sigma), sampler, steps=1, adjacency=adjacency)
    sides = np.stack((ours(plan, 0), ours(plan, 1)))
    largest = np.zeros_like(sides)
    for one, other in pairs(records, adjacency):
        p, q = draw(one), draw(other)
        truth = np.stack((e.hockey_stick(p, q, sigma, A, 0.02), e.hockey_stick(q, p, sigma, A, 0.02)))
        assert (truth <= sides + SLACK).all(), (one, other)
        largest = np.maximum(largest, truth)
    if kind != "truncated":
        assert (largest >= sides - SLACK).all()  # attained, so a smaller bound would be caught
    else:
        assert (largest[:, 2] > 0.4 * sides[:, 2]).all()  # a = 1


@pytest.mark.parametrize("adjacency", [dp.ADD_REMOVE, dp.REPLACE])
def test_two_bins(adjacency: dp.Adjacency) -> None:
    sigma = 0.9
    plan = dp.Sampled(dp.Gaussian(sigma), dp.BallsInBins(2), epochs=1, adjacency=adjacency)
    sides = np.stack((ours(plan, 0), ours(plan, 1)))
    largest = np.zeros_like(sides)
    for records in (1, 2, 3) if SOAK else (1, 2):
        for one, other in pairs(records, adjacency):
            p, q = e.allocated(one, 2), e.allocated(other or (0.0,), 2)
            truth = np.stack((e.hockey_stick(p, q, sigma, A, 0.08), e.hockey_stick(q, p, sigma, A, 0.08)))
            assert (truth <= sides + 3e-4).all(), (one, other)
            largest = np.maximum(largest, truth)
    assert (largest >= (sides if adjacency is dp.ADD_REMOVE else 0.7 * sides) - 3e-4).all()
