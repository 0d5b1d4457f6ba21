"""Epochs whose sharp contours are too long: the lattice of losses bounds what is known otherwise, and answers."""

from __future__ import annotations

import numpy as np
import pytest

from dptally.law.adjacency import Direction
from dptally.laws.sampled.allocation.epochs import AllocationEpochsLaw
from dptally.laws.sampled.allocation.law import AllocationLaw
from dptally.laws.sampled.allocation.rough import rough_bounds


@pytest.mark.parametrize("side", list(Direction))
def test_the_lattice_contains_what_the_powers_of_the_ratio_say(side: Direction) -> None:
    parts = ((AllocationLaw(1.0, 100, side), 3),)
    epsilon = np.array([0.05, 0.1, 0.2, 0.4, 0.6, 1.0])
    low, high, _ = AllocationEpochsLaw(parts).bounds(epsilon)
    assert (high - low < 1e-6).all()  # another method, and sharp
    lower, upper, _ = rough_bounds(parts, epsilon)
    assert (lower <= low).all()
    assert (upper >= high).all()
    assert (upper - lower < 0.01).all()  # so that an answer moved by a hundredth would be seen
