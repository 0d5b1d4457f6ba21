"""What a containment test asks of many intervals: each meets its truth, and would not if it were moved."""

from __future__ import annotations

import math
from collections.abc import Hashable

from flint import arb

from .balls import ball, precision

Truth = arb | tuple[arb, arb] | tuple[float, float]


class Judge:
    """Counts distinct questions; every interval of log delta must meet its truth.

    Power: an interval that was moved by ``shift`` nats, up or down, must be refuted. Where it would not be, because
    it is too wide or the truth is not sharp, the question is asked all the same but does not count.
    """

    def __init__(self, shift: float) -> None:
        self.shift = shift
        self.asked: set[Hashable] = set()
        self.counted: set[Hashable] = set()

    def log_delta(self, question: Hashable, low: float, high: float, delta: Truth) -> None:
        lower, upper = delta if isinstance(delta, tuple) else (delta, delta)
        with precision(200):
            least, most = ball(lower).log(), ball(upper).log()
            assert meets(low, high, least, most), (question, low, high, float(least), float(most))
            moved = ((low + self.shift, high + self.shift), (low - self.shift, high - self.shift))
            powerful = not any(meets(*box, least, most) for box in moved)
        self.asked.add(question)
        if powerful:
            self.counted.add(question)

    def delta(self, question: Hashable, low: float, high: float, delta: tuple[float, float]) -> None:
        """Bounds of delta itself; here ``shift`` is a share of it."""
        assert low <= delta[1] and delta[0] <= high, (question, low, high, delta)  # noqa: PT018
        self.asked.add(question)
        if low * (1 + self.shift) > delta[1] and high * (1 - self.shift) < delta[0]:
            self.counted.add(question)

    def epsilon(self, question: Hashable, low: float, high: float, epsilon: float) -> None:
        """Bounds of the epsilon that has exactly the delta asked for; here ``shift`` is a share of it."""
        assert low <= epsilon <= high, (question, low, high, epsilon)
        self.asked.add(question)
        if high - epsilon < self.shift * epsilon and epsilon - low < self.shift * epsilon:
            self.counted.add(question)

    def close(self, least: int) -> None:
        """At least that many distinct questions had power."""
        assert len(self.counted) >= least, (len(self.counted), len(self.asked))


def meets(low: float, high: float, least: arb, most: arb) -> bool:
    """Not certainly apart: the truth lies between ``least`` and ``most``; -inf and 0 are the trivial bounds."""
    above = low == -math.inf or not ball(low) > most
    return above and (high >= 0 or not ball(high) < least)
