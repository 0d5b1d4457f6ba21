"""Golden: sampled Gaussians under REPLACE, 2 to 30 steps, meet truths that share no code with the library.

Every route of its own, and the engine that chooses among them: a share of the table by default, all of it with
DPTALLY_SOAK=1. A question counts only where an answer moved a little beside the truth would be refuted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import numpy as np
import pytest

import dptally as dp
from dptally.accounting.certified import engine, inversion, jumps, lattice
from dptally.law import Composition
from truth.judge import Judge
from truth.stored import Replaced, replaced

SOAK = bool(os.environ.get("DPTALLY_SOAK"))
#: what the truths of more than two steps are good for, and of two steps any answer
VAGUE, SHARP = 0.03, 1e-6


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """As in the engine: intermediate infinities are meant."""
    with np.errstate(all="ignore"):
        yield


def rows(two: bool, every: int) -> list[Replaced]:
    return [row for row in replaced() if (row.steps == 2) is two][:: 1 if SOAK else every]


def composition_of(row: Replaced) -> Composition:
    (composition,) = dp.dpsgd(row.sigma, row.rate, row.steps, dp.REPLACE).directions()
    return composition


def split(row: Replaced, at: float) -> Iterator[tuple[float, float]]:
    """Split sums, made for an epsilon with the known delta for a guess; asked at that of the row."""
    for found in engine._tried(jumps.for_epsilon(composition_of(row), at, math.log(row.answer.upper))):
        low, high, _ = engine._asked(found, row.answer.epsilon)
        yield low, high


@pytest.mark.parametrize(("two", "every"), [(True, 130), (False, 14)])
def test_engine(two: bool, every: int) -> None:
    """Whatever method answers; it says which."""
    judge, asked = Judge(1e-4 if two else VAGUE), rows(two, every)
    methods = {route.name for route in engine._ROUTES}
    for row in asked:
        box = engine.delta_interval([composition_of(row)], row.answer.epsilon)
        assert box.method in methods
        judge.delta(row, box.lower, box.upper, (row.answer.lower, row.answer.upper))
    judge.close(len(asked) // 2)


def test_contours() -> None:
    """Where one contour does; two steps never spread enough for one."""
    judge = Judge(VAGUE)
    for row in rows(False, 1):
        found = inversion.for_epsilon(composition_of(row), row.answer.epsilon)
        if found is not None:
            low, high, _ = engine._asked(found, row.answer.epsilon)
            judge.log_delta(row, low, high, (row.answer.lower, row.answer.upper))
    judge.close(25)


@pytest.mark.parametrize("two", [True, False])
def test_coarse_lattices(two: bool) -> None:
    """The certificate holds for any step of the lattice."""
    judge = Judge(0.1)
    for row in rows(two, 8 if two else 2):
        low, high = lattice.log_delta(composition_of(row), row.answer.epsilon, effort=0.03)
        judge.log_delta(row, low, high, (row.answer.lower, row.answer.upper))
    judge.close(100 if two else 35)


@pytest.mark.parametrize("two", [True, False])
def test_split_by_jumps(two: bool) -> None:
    """At the row's own epsilon and a little beside it."""
    judge, asked = Judge(SHARP if two else VAGUE), rows(two, 4 if two else 1)
    if not jumps.applies(composition_of(asked[0])):
        pytest.skip("the law has no soft edges: it is not split")
    for index, row in enumerate(asked):
        for low, high in split(row, (1.0, 1.03, 0.98)[index % 3] * row.answer.epsilon):
            judge.log_delta(row, low, high, (row.answer.lower, row.answer.upper))
    judge.close(len(asked) // 3)


def test_power() -> None:
    """Answers for a rate that is a hundredth off, or for one step more, are refuted."""
    judge = Judge(1e-3)
    for row in rows(True, 500):
        right, *wrong = (
            engine.delta_interval([composition_of(plan)], row.answer.epsilon)
            for plan in (row, row._replace(rate=row.rate * 1.01), row._replace(steps=3))
        )
        judge.delta(row, right.lower, right.upper, (row.answer.lower, row.answer.upper))
        for box in wrong if row in judge.counted else ():
            with pytest.raises(AssertionError):
                Judge(SHARP).delta(row, box.lower, box.upper, (row.answer.lower, row.answer.upper))
    judge.close(2)
