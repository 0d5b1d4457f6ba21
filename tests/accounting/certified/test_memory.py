"""Contract: no question takes the memory of a small machine. Plans that once took hundreds of megabytes."""

from __future__ import annotations

import tracemalloc

import pytest

import dptally as dp

MOST = 120e6  # bytes of arrays; the process itself has about 100 MB


@pytest.mark.parametrize(
    ("plan", "question"),
    [
        # cells to a height of 2.5 sigma, of which no more than 65 could ever prove a step
        (
            3 * dp.RandomizedResponse(0.441737839720432)
            + 502086 * dp.Gaussian(175647.7824433769)
            + 10 * dp.PoissonSampled(dp.GaussianDP(4.532209136467433e-06), 2.0302432686113355e-09),
            {"delta": 1e-5},
        ),
        # a lattice of 4.6 nats for losses of four million
        (
            92463428 * dp.RandomizedResponse(0.9072102010121839)
            + 3 * dp.PoissonSampled(dp.Laplace(0.0010490971241753917), 0.8194935260350643)
            + 132787 * dp.GaussianDP(7.375310322901485),
            {"epsilon": 1.0},
        ),
    ],
    ids=["little noise moved far", "a fine lattice beside a long loss"],
)
def test_arrays_of_one_question(plan: dp.Mechanism, question: dict[str, float]) -> None:
    tracemalloc.start()
    try:
        if "delta" in question:
            plan.epsilon_interval(**question)
        else:
            plan.delta_interval(**question)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST


def test_a_law_whose_likeliest_atom_is_too_rare_to_be_listed() -> None:
    assert dp.DiscreteGaussian(1e100).laws()[0].atoms() == ()


@pytest.mark.parametrize("size", [10**6, 2**53])
def test_outcomes_beyond_number_are_not_listed(size: int) -> None:
    """All 2^53 outputs of discrete noise were to be listed in sixty digits, wherever other noise stood beside them."""
    tracemalloc.start()
    try:
        box = (dp.DiscreteLaplace(1e6, size) + dp.Gaussian(2.0)).epsilon_interval(1e-6)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert box.upper - box.lower <= 1e-6 * box.upper
    assert peak < 200e6  # beside the process itself
