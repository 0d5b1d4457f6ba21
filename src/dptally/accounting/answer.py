"""What a framework answers: a number on the safe side, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    """``value`` is an upper bound of the epsilon or delta asked for, rounding included.

    ``order`` is the Renyi (or alpha) order that gave it, where one did; ``detail`` says what was chosen on
    the way.

    >>> float(Answer(1.5, "renyi", "Mironov 2017, Prop. 3", order=8.0))
    1.5
    """

    value: float
    framework: str
    theorem: str
    order: float | None = None
    detail: str = ""

    def __float__(self) -> float:
        return self.value


def larger(answers: list[Answer]) -> Answer:
    """The answer that holds for every direction: the one with the largest value."""
    return max(answers, key=lambda answer: answer.value)
