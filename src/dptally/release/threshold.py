"""Which queries of a stream are above a threshold: the sparse vector technique."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NoReturn

from dptally import mechanisms, noise
from dptally.errors import Unanswerable
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.release import column
from dptally.release.function import Stated, checked_unit, release_function
from dptally.release.released import ROW, Released
from dptally.release.selection import finite

__all__ = ["ThresholdStream", "above_threshold"]


class ThresholdStream:
    """Queries asked one by one, each answered by whether it is above the threshold, until ``hits`` were.

    The noisy threshold is drawn once, at the beginning, and kept secret; ``mechanism`` accounts for the whole stream,
    however long. Answers are rounded to multiples of ``grid`` (a power of two), and noise is drawn on them exactly:
    discrete Laplace of s/epsilon1 steps on the threshold and of 2 hits s/epsilon2 steps on each query, where one record
    moves an answer by at most s = ceil(sensitivity / grid) steps. The threshold is public. A query may depend on
    what was answered before; what is asked must not show the data in another way.

    >>> stream = ThresholdStream(threshold=100, epsilon1=0.5, epsilon2=0.5)
    >>> stream.ask(-100_000), stream.ask(100_000), stream.is_over
    (False, True, True)
    """

    __slots__ = ("_scale", "_step", "_steps", "hits_left", "mechanism")

    def __init__(
        self,
        threshold: Exact,
        *,
        epsilon1: float,
        epsilon2: float,
        hits: int = 1,
        sensitivity: Exact = 1,
        grid: Exact = 1,
    ) -> None:
        self.mechanism = mechanisms.AboveThreshold(epsilon1, epsilon2, hits)
        self._step = parameters.two_to(parameters.power_of_two("grid", grid))
        reach = noise.grid_sensitivity(parameters.positive("sensitivity", sensitivity), grid)
        level = math.floor(parameters.rational("threshold", threshold) / self._step + Fraction(1, 2))
        self.hits_left = self.mechanism.hits
        self._scale = 2 * self.hits_left * reach / Fraction(self.mechanism.epsilon2)
        self._steps = level + noise.discrete_laplace(reach / Fraction(self.mechanism.epsilon1))

    @property
    def is_over(self) -> bool:
        """Whether no more questions are answered."""
        return self.hits_left == 0

    def ask(self, answer: Any) -> bool:
        """Whether this answer of a query is above the threshold, each with its noise; None and NaN count as 0."""
        if self.is_over:
            raise Unanswerable(
                f"all {self.mechanism.hits} answers above the threshold were given; a further stream is a further "
                "AboveThreshold mechanism"
            )
        steps = math.floor(finite(answer, Fraction(0)) / self._step + Fraction(1, 2))
        above = steps + noise.discrete_laplace(self._scale) >= self._steps
        self.hits_left -= above
        return above

    def __repr__(self) -> str:
        return f"<stream of {self.mechanism!r}, {self.hits_left} hits left>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream is never copied: its threshold's noise would be used twice")


def _stated(
    *,
    threshold: Exact,
    epsilon1: float,
    epsilon2: float,
    hits: int = 1,
    sensitivity: Exact = 1,
    grid: Exact = 1,
    unit: str = ROW,
) -> Stated:
    parameters.rational("threshold", threshold)
    parameters.positive("sensitivity", sensitivity)
    parameters.power_of_two("grid", grid)
    mechanism = mechanisms.AboveThreshold(epsilon1, epsilon2, hits)
    return Stated(mechanism, "above threshold", None, checked_unit(unit))


@release_function(_stated, data="answers")
def above_threshold(
    answers: object,
    *,
    threshold: Exact,
    epsilon1: float,
    epsilon2: float,
    hits: int = 1,
    sensitivity: Exact = 1,
    grid: Exact = 1,
    unit: str = ROW,
) -> Released:
    """For each query's answer, in order, whether it is above the threshold; it ends after ``hits`` that are.

    For queries that are all known beforehand; :class:`ThresholdStream` asks them one by one.

    >>> above_threshold([0, 0, 90_000, 0], threshold=500, epsilon1=0.5, epsilon2=0.5).value
    (False, False, True)
    """
    stated = _stated(
        threshold=threshold,
        epsilon1=epsilon1,
        epsilon2=epsilon2,
        hits=hits,
        sensitivity=sensitivity,
        grid=grid,
        unit=unit,
    )
    queries = column.vector("answers", answers).tolist()
    stream = ThresholdStream(
        threshold, epsilon1=epsilon1, epsilon2=epsilon2, hits=hits, sensitivity=sensitivity, grid=grid
    )
    said: list[bool] = []
    while len(said) < len(queries) and not stream.is_over:
        said.append(stream.ask(queries[len(said)]))
    return stated.released(tuple(said))
