"""Golden: sampled Gaussians under REPLACE, 2 to 100,000 steps, meet truths that share no code with the library.

Every route of its own, and the engine that chooses among them: a share of the table by default, all of it with
DPTALLY_SOAK=1. A question counts only where an answer moved a little beside the truth would be refuted.
"""

from __future__ import annotations

import math
import os

import pytest

import dptally as dp
from depth import sparse, thinned
from dptally.accounting.certified import engine
from dptally.accounting.certified.big_jump import plan as jumps
from dptally.accounting.certified.contour import inversion
from dptally.accounting.certified.lattice import bracket as lattice
from dptally.accounting.certified.route import bounds_at
from dptally.accounting.certified.routes import ROUTES
from dptally.law import Composition
from truth.judge import Judge
from truth.stored import Replaced, replaced
from walking import until_overflow

SOAK = bool(os.environ.get("DPTALLY_SOAK"))
#: two steps, 3 to 30 by the recursion, and 12 or more by inversion: by how much an answer must be moved to be noticed
SHIFTS = {"two": 1e-6, "few": 0.03, "many": 1e-6}


pytestmark = pytest.mark.usefixtures("quiet")


def rows(kind: str, every: int) -> list[Replaced]:
    def kind_of(row: Replaced) -> str:
        sharp = row.answer.upper < (1 + 1e-9) * row.answer.lower
        return "two" if row.steps == 2 else "many" if sharp else "few"

    return list(sparse([row for row in replaced() if kind_of(row) == kind][:: 1 if SOAK else every]))


def composition_of(row: Replaced) -> Composition:
    (composition,) = dp.dpsgd(row.sigma, row.rate, row.steps, dp.REPLACE).directions()
    return composition


@pytest.mark.parametrize(("kind", "every"), [("two", 130), ("few", 16), ("many", 12)])
def test_engine(kind: str, every: int) -> None:
    """Whatever method answers; it says which."""
    judge, asked = Judge(max(1e-4, SHIFTS[kind])), rows(kind, every)
    methods = {route.name for route in ROUTES}
    for row in asked:
        box = engine.delta_interval([composition_of(row)], row.answer.epsilon)
        assert box.method in methods
        judge.delta(row, box.lower, box.upper, (row.answer.lower, row.answer.upper))
    judge.close(len(asked) // 2)


@pytest.mark.parametrize("kind", ["few", "many"])
def test_contours(kind: str) -> None:
    """Where one contour does; two steps never spread enough for one."""
    judge = Judge(SHIFTS[kind])
    for index, row in enumerate(rows(kind, 1)):
        epsilon = row.answer.epsilon
        found = inversion.for_epsilon(composition_of(row), (1.0, 0.9, 1.08)[index % 3] * epsilon)
        if found is not None:
            judge.log_delta(row, *bounds_at(found, epsilon)[:2], (row.answer.lower, row.answer.upper))
    judge.close(thinned(40 if kind == "few" else 400))


@pytest.mark.parametrize(("kind", "every"), [("two", 16), ("few", 4)])
def test_coarse_lattices(kind: str, every: int) -> None:
    """The certificate holds for any step of the lattice."""
    judge = Judge(0.1)
    for row in rows(kind, every):
        low, high = lattice.log_delta(composition_of(row), row.answer.epsilon, effort=0.03)
        judge.log_delta(row, low, high, (row.answer.lower, row.answer.upper))
    judge.close(thinned(50 if kind == "two" else 20))


@pytest.mark.parametrize(("kind", "every"), [("two", 12), ("few", 4), ("many", 3)])
def test_split_by_jumps(kind: str, every: int) -> None:
    """Made for the row's epsilon or one a little beside it, with the known delta for a guess."""
    judge, asked = Judge(SHIFTS[kind]), rows(kind, every)
    if not jumps.applies(composition_of(asked[0])):
        pytest.skip("the law has no soft edges: it is not split")
    for index, row in enumerate(asked):
        at, guess = (1.0, 1.03, 0.98)[index % 3] * row.answer.epsilon, math.log(row.answer.upper)
        for found in until_overflow(jumps.for_epsilon(composition_of(row), at, guess)):
            low, high, _ = bounds_at(found, row.answer.epsilon)
            judge.log_delta(row, low, high, (row.answer.lower, row.answer.upper))
    judge.close(len(asked) // 2)


def test_power() -> None:
    """Answers for a rate that is a hundredth off, or for one step more, are refuted."""
    judge = Judge(1e-3)
    for row in rows("two", 500):
        right, *wrong = (
            engine.delta_interval([composition_of(plan)], row.answer.epsilon)
            for plan in (row, row._replace(rate=row.rate * 1.01), row._replace(steps=3))
        )
        judge.delta(row, right.lower, right.upper, (row.answer.lower, row.answer.upper))
        for box in wrong if row in judge.counted else ():
            with pytest.raises(AssertionError):
                Judge(1e-6).delta(row, box.lower, box.upper, (row.answer.lower, row.answer.upper))
    judge.close(1)
