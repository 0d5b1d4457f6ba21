"""The seam between the engine and the compiled kernel: whole contours of one law, where both are there.

A law that the kernel knows says so (:meth:`~dptally.law.Law.compiled`). The kernel's contours give certified bounds by
the same theorems and charges as :mod:`~dptally.accounting.certified.contour.inversion`, which stays the reference:
docs/kernel.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dptally.accounting.certified.bounds import LogBounds
from dptally.accounting.certified.tuning import ContourTuning
from dptally.law import Law
from dptally.law.characteristic import CompiledLaw
from dptally.law.law import Floats
from dptally.numerics.compiled import kernel

__all__ = ["Compiled", "CompiledBlock", "CompiledContour", "ready"]

_MOST_COUNT = 1 << 53


@dataclass(frozen=True, slots=True)
class CompiledContour:
    """What :class:`~dptally.accounting.certified.contour.inversion.Inversion` is, with the sums in C."""

    contour: Any
    saddle: float

    def estimate(self, epsilon: float) -> float:
        """log delta(eps), not a bound."""
        value: float = self.contour.estimate(epsilon)
        return value

    def log_delta(self, epsilon: float) -> LogBounds:
        """(lower, upper, slope): certified bounds of log delta(eps), and an estimate of -d log delta / d eps."""
        return LogBounds(*self.contour.log_delta(epsilon))

    def log_delta_many(self, epsilon: Floats) -> tuple[Floats, Floats, Floats]:
        """:meth:`log_delta` at many eps at once."""
        out = np.empty((3, len(epsilon)))
        self.contour.log_delta_many(np.ascontiguousarray(epsilon, dtype=np.float64), out.reshape(-1))
        return out[0], out[1], out[2]


@dataclass(frozen=True, slots=True)
class CompiledBlock:
    """The contour of neighbouring counts, before phi is raised to one of them; ``times`` copies of the law in each."""

    block: Any
    times: int

    def contour(self, count: int) -> CompiledContour:
        found = self.block.contour(count * self.times)
        return CompiledContour(found, found.saddle)


@dataclass(frozen=True, slots=True)
class Compiled:
    """One law that the kernel knows, ``times`` over."""

    law: CompiledLaw
    times: int

    def block(
        self, counts: tuple[int, int, int], log_delta: float, tuning: ContourTuning, most_work: int
    ) -> CompiledBlock | None:
        """The block of the counts between the first and the last; None where it would not be worth its terms."""
        steps = [float(count * self.times) for count in counts]
        found = kernel().block(*self.law, *steps, False, log_delta, True, _packed(tuning), most_work)
        return None if found is None else CompiledBlock(found, self.times)

    def contour(self, value: float, is_epsilon: bool, tuning: ContourTuning, most_work: int) -> CompiledContour | None:
        """The contour through the saddle of an epsilon, or through that of a log delta."""
        steps = (float(self.times),) * 3
        found = kernel().block(*self.law, *steps, is_epsilon, value, False, _packed(tuning), most_work)
        return None if found is None else CompiledBlock(found, self.times).contour(1)

    def is_below(self, epsilon: float, log_delta: float, tuning: ContourTuning) -> bool:
        """Whether a few tilts, or a rough contour through one, show that delta(eps) is at most exp(log_delta)."""
        if not 0 < epsilon < math.inf:
            return False
        found: bool = kernel().is_below(*self.law, self.times, epsilon, log_delta, _packed(tuning), tuning.most_work)
        return found


def ready(parts: Sequence[tuple[Law, int]], most: int = 1) -> Compiled | None:
    """The one law of a plan, ``most`` times at most, for the kernel; None where there are more, or where law or kernel
    are not there.
    """
    if kernel() is None or len(parts) != 1:
        return None
    ((law, times),) = parts
    known = law.compiled()
    return None if known is None or most * times > _MOST_COUNT else Compiled(known, times)


@lru_cache(maxsize=64)
def _packed(tuning: ContourTuning) -> Floats:
    """The choices as one array, in the order that kernel/module.c reads."""
    numbers = [
        tuning.steady,
        tuning.relative,
        tuning.node_tolerance,
        tuning.furthest,
        tuning.fair,
        tuning.hopeless,
        tuning.most_terms,
        tuning.long_period,
        tuning.most_lost,
    ]
    for values in (tuning.blocks, tuning.around, tuning.starts, tuning.closer, tuning.glance):
        numbers += [len(values), *values]
    return np.array([min(float(x), math.inf) for x in numbers])
