"""Fixed-size batches of any mechanism whose pair is its own mirror image, when a record is replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.laws.by_profile import ProfileLaw
from dptally.laws.sampled.gaussian.fixed_size import FIXED_SIZE_THEOREM
from dptally.laws.sampled.pair import log_profile_remove, mixture
from dptally.numerics.rounding import up

__all__ = ["FixedSizeLaw"]


@dataclass(frozen=True, slots=True)
class FixedSizeLaw(ProfileLaw):
    """``inner`` is the loss of the step for two batches that differ in one record; ``rate`` g = m/n in (0, 1)."""

    inner: Law
    rate: float
    theorem: ClassVar[str] = FIXED_SIZE_THEOREM

    def reverse(self) -> FixedSizeLaw:
        return self

    @property
    def supremum(self) -> float:
        largest = self.inner.supremum
        return up(float(mixture(self.rate, np.array([largest]))[1][0]), 8) if np.isfinite(largest) else largest

    @property
    def infimum(self) -> float:
        return -self.supremum

    def log_excess(self, loss: Floats) -> tuple[Floats, Floats, Floats]:
        """H above 0, and e^l H_{-l} below."""
        size = np.abs(loss)
        lower, upper = log_profile_remove(self.rate, size, self.inner.log_profile)
        below = np.minimum(loss, 0.0)
        step = 1e-6 * (1 + size)
        further = log_profile_remove(self.rate, size + step, self.inner.log_profile)[1]
        with np.errstate(invalid="ignore"):
            rate = np.where(np.isfinite(upper), (upper - further) / step, 0.0)
        rate = np.where(np.isfinite(rate), rate, 0.0)
        return lower + below, upper + below, np.where(loss < 0, -1.0 - rate, rate)
