"""The tables that were made beforehand, as they are asked: a plan, and truths of it at several epsilons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent / "data"


class Answer(NamedTuple):
    """delta(epsilon) lies between the two doubles."""

    epsilon: float
    lower: float
    upper: float


class Pair(NamedTuple):
    """Two sampled Gaussian steps; the first answer is the one to build for."""

    sigma: float
    rate: float
    direction: str
    answers: tuple[Answer, ...]


class Replaced(NamedTuple):
    """Sampled Gaussian steps under REPLACE."""

    sigma: float
    rate: float
    steps: int
    answer: Answer


def pairs(kind: str) -> list[Pair]:
    """Of kind "near" (any epsilon) or "zero" (next to the total variation)."""
    rows = json.loads((DATA / "pairs.json").read_text())[kind]
    return [Pair(*plan, tuple(Answer(*answer) for answer in answers)) for *plan, answers in rows]


def replaced() -> list[Replaced]:
    rows = json.loads((DATA / "replace.json").read_text())["rows"]
    return [Replaced(sigma, rate, steps, Answer(*answer)) for sigma, rate, steps, *answer in rows]
