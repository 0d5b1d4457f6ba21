"""Golden: answers for 2 to 30 steps meet two-sided truths of a recursion that shares no code with the library.

A share of the table by default, all of it with DPTALLY_SOAK=1.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

import tables
from dptally.accounting.certified import engine

#: family -> every how many rows are asked: some take a second
EVERY = {"remove": 8, "add": 9, "tiny rate": 5, "replace": 20, "sampled laplace": 40, "laplace": 3, "mix": 3}
#: sharp rows of two steps
EVERY_PAIR = 60


def share(family: str) -> list[dict[str, Any]]:
    rows = [row for row in tables.few_steps() if row["family"] == family]
    assert rows
    return rows if os.environ.get("DPTALLY_SOAK") else rows[1 :: EVERY[family]]


def holds(composition: Any, epsilon: float, lower: float, upper: float, question: int, narrowed: float = 0.0) -> bool:
    """One of three questions: delta at eps, eps at either end of delta; the answer's ends ``narrowed`` by a share.

    delta(eps) >= lower, so eps(lower) >= eps: the answer's upper end may not be smaller. Likewise for ``upper``.
    """
    less, more = 1 - narrowed, 1 + narrowed
    if question == 0:
        box = engine.delta_interval([composition], epsilon)
        return box.lower * more <= upper and lower <= box.upper * less
    box = engine.epsilon_interval([composition], lower if question == 1 else upper)
    return box.lower <= box.upper and (epsilon <= box.upper * less if question == 1 else box.lower * more <= epsilon)


@pytest.mark.parametrize("family", EVERY)
def test_table(family: str) -> None:
    for index, row in enumerate(share(family)):
        composition = tables.composition_of(row)
        questions = range(3) if os.environ.get("DPTALLY_SOAK") else (index % 3,)
        for question in questions:
            assert holds(composition, row["epsilon"], row["lower"], row["upper"], question), (row, question)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_two_steps(direction: str) -> None:
    """Sharp truths by quadrature in balls."""
    rows = [row for row in tables.sampled() if row[2] == 2 and row[3] == direction]
    rows = rows if os.environ.get("DPTALLY_SOAK") else rows[3::EVERY_PAIR]
    for index, (*plan, epsilon, lower, upper) in enumerate(rows):
        composition = tables.sampled_composition(*plan)
        assert holds(composition, epsilon, lower, upper, index % 3), (plan, epsilon, index % 3)


def test_power() -> None:
    """Each question catches answers that are too narrow: by 1e-4 against the table, by 1e-6 against sharp truths."""
    rows = [row for row in tables.few_steps() if row["family"] == "tiny rate"]
    row = next(row for row in rows if row["upper"] < 1.0001 * row["lower"])
    enclosed = (tables.composition_of(row), row["epsilon"], row["lower"], row["upper"])
    *plan, epsilon, lower, upper = next(row for row in tables.sampled() if row[2] == 2 and 1e-9 < row[5] < 1e-3)
    sharp = (tables.sampled_composition(*plan), epsilon, lower, upper)
    for question in range(3):
        assert holds(*enclosed, question)
        assert not holds(*enclosed, question, narrowed=1e-3)
        assert holds(*sharp, question)
        assert not holds(*sharp, question, narrowed=1e-6)
