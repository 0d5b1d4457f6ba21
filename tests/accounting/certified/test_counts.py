"""Laws: neighbouring counts of one law share a contour; answers hold, and do not depend on what was asked before."""

from __future__ import annotations

import math

import pytest

import tables
from depth import thinned
from dptally.accounting.certified import engine
from dptally.accounting.certified.bounds import log_interval
from dptally.accounting.certified.contour import curve
from dptally.accounting.certified.solve import epsilon_ends
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw

LAW = SampledGaussianLaw(0.01, 1.0, Direction.REMOVE)


@pytest.mark.parametrize("ratio", [1.0, 1.001, 1.1, 1.2, 22.0])
def test_every_count_belongs_to_its_block(ratio: float) -> None:
    for count in [*range(1, 3000), 10**6, 10**9 + 7, 2**53]:
        first, middle, last = curve._neighbours(count, ratio)
        assert 1 <= first <= count <= last
        assert first <= middle <= last
        assert last <= max(count, ratio * first * (1 + 1e-9))


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    counts = [700, 701, 733, 769, 770, 1000]

    def answers(asked: list[int]) -> dict[int, tuple[float, float]]:
        boxes = {n: engine.epsilon_interval([Composition.of([(LAW, n)])], 1e-5) for n in asked}
        return {n: (box.lower, box.upper) for n, box in boxes.items()}

    alone = {}
    for count in counts:
        curve._kept.cache_clear()
        alone |= answers([count])
    curve._kept.cache_clear()
    assert answers(counts) == alone
    assert answers(counts[::-1]) == alone


def ends(row: tuple[object, ...], target: float) -> tuple[float, float]:
    """Ends of the contour of the block alone, at the delta ``target``."""
    composition = tables.sampled_composition(*row[:4])
    contour = curve.for_delta(composition, math.log(target))
    return epsilon_ends(contour, log_interval(target)) if contour is not None else (0.0, math.inf)


def rows() -> list[tuple[object, ...]]:
    return [row for row in tables.sampled() if row[2] >= 20 and row[3] == "remove" and row[5] > 1e-250]


def test_ends_contain_the_truth() -> None:
    """delta(eps) lies in [lower, upper] of the table: the answer at lower is no less than eps, at upper no more."""
    asked, sharp = rows()[:: max(1, len(rows()) // thinned(60))], 0
    for row in asked:
        epsilon, lower, upper = row[4:7]
        most, least = ends(row, lower), ends(row, upper)
        assert most[1] >= epsilon, row
        assert least[0] <= epsilon, row
        sharp += most[1] - most[0] <= 1e-9 * most[1]
    assert sharp >= len(asked) // 3


def test_a_moved_end_is_refuted() -> None:
    found = 0
    for row in rows()[:: max(1, len(rows()) // 40)]:
        epsilon, lower, upper = row[4:7]
        found += ends(row, lower)[1] * (1 - 1e-6) < epsilon < ends(row, upper)[0] * (1 + 1e-6)
    assert found >= 10
