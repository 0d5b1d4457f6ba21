"""Independent epochs of random allocation as one law: what Gaussian and bounded steps share."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.law import Numbers
from dptally.laws.by_profile import ProfileLaw
from dptally.laws.sampled.allocation.bounded import BoundedAllocationLaw
from dptally.laws.sampled.allocation.law import ALLOCATION_THEOREM, AllocationLaw
from dptally.numerics.rounding import EPS

__all__ = ["IndependentEpochs"]

Epoch = TypeVar("Epoch", AllocationLaw, BoundedAllocationLaw)


@dataclass(frozen=True, slots=True)
class IndependentEpochs(ProfileLaw, Generic[Epoch]):
    """(law of an epoch, count) pairs of one direction."""

    parts: tuple[tuple[Epoch, int], ...]
    collapses: ClassVar[bool] = True
    moments_from_above: ClassVar[bool] = True
    theorem: ClassVar[str] = ALLOCATION_THEOREM

    @classmethod
    def of(cls, parts: tuple[tuple[Epoch, int], ...]) -> Self:
        """Equal epochs are counted, and the order is forgotten."""
        counts: Counter[Epoch] = Counter()
        for law, count in parts:
            counts[law] += count
        return cls(tuple(sorted(counts.items(), key=lambda part: part[0].sort_key)))

    @classmethod
    def collapse(cls, parts: tuple[tuple[Law, int], ...]) -> Self:
        listed = [(law, n * count) for whole, count in parts if isinstance(whole, cls) for law, n in whole.parts]
        return cls.of(tuple(listed))

    def reverse(self) -> Self:
        return self.of(tuple((law.reverse(), count) for law, count in self.parts))

    @property
    def epochs(self) -> int:
        return sum(count for _, count in self.parts)

    def log_moment(self, t: Numbers) -> Numbers:
        """Independent epochs: K adds."""
        total = np.zeros(np.shape(t), dtype=np.result_type(np.asarray(t).dtype, np.float64))
        for law, count in self.parts:
            total = total + count * np.asarray(law.log_moment(t))
        return total

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        value, error = np.zeros((2, *np.shape(t)))
        for law, count in self.parts:
            one, doubt = law.log_moment_and_error(t)
            value, error = value + count * one, error + count * (doubt + 4 * EPS * np.abs(one))
        return value, error  # pyright: ignore[reportReturnType]

    def log_excess(self, loss: Floats) -> tuple[Floats, Floats, Floats]:
        """H_l for l >= 0; below, H_l - 1 + e^l = e^l times the profile of the other direction at -l."""
        low, high, rate = np.empty((3, len(loss)))
        below = loss < 0
        for which, law in ((~below, self), (below, self.reverse())):
            if which.any():
                low[which], high[which], rate[which] = law.bounds(np.abs(loss[which]))
        slack = 4 * EPS * np.abs(loss)
        lift = np.minimum(loss, 0.0)
        return low + lift - slack, high + lift + slack, np.where(below, -1.0 - rate, rate)

    @abstractmethod
    def bounds(self, epsilon: Floats) -> tuple[Floats, Floats, Floats]:
        """Bounds of log H at eps >= 0, and about P(L > eps) / H - 1, minus the logarithmic derivative."""
