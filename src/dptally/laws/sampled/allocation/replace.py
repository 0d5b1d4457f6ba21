r"""Random allocation when one record is replaced by another: a bounding pair from the two directions of ADD_REMOVE.

Let R and R' be the ratios of the outputs with either record to those without; each is at most the ratio of the pair of
ADD_REMOVE in the convex order. Whatever their joint law is, r - a r' <= (r - ab) + a (b - r'), so for every b > 0

    H_a  <=  E (R - ab)+ + a E (b - R')+  <=  H^remove(log ab) + ab H^add(-log b),

and the least over b is the profile of the pair F^-1(U), F^-1(1-U) (the oppositely coupled ratios), which is the same in
both directions. It holds for all epochs together. K by Hoelder's inequality: for 1/r + 1/s = 1

    K(t)  <=  K^remove(r (1 + t) - 1) / r + K^add(s t) / s.

Derivations: docs/batching.md, "Allocation under REPLACE".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.law import Numbers
from dptally.laws.by_profile import ProfileLaw
from dptally.laws.sampled.allocation.epochs import AllocationEpochsLaw
from dptally.numerics.rounding import EPS

__all__ = ["ALLOCATION_REPLACE_THEOREM", "AllocationReplaceLaw"]

ALLOCATION_REPLACE_THEOREM = (
    "dptally docs/batching.md, allocation under REPLACE: a bounding pair (the two directions of ADD_REMOVE, coupled "
    "oppositely)"
)
_ROUNDS = 5
_POINTS = 9
_EXPONENTS = 1.0 + 2.0 ** np.arange(-14.0, 8.0)
_MEANS = 2.0 ** np.arange(-16.0, 1.0)


@dataclass(frozen=True, slots=True)
class AllocationReplaceLaw(ProfileLaw):
    """``remove``: the epochs with the record against without it."""

    remove: AllocationEpochsLaw
    collapses: ClassVar[bool] = True
    moments_from_above: ClassVar[bool] = True
    theorem: ClassVar[str] = ALLOCATION_REPLACE_THEOREM
    profile_by: ClassVar[str] = "contours of the ratio"  # pyright: ignore[reportIncompatibleMethodOverride]

    @classmethod
    def collapse(cls, parts: tuple[tuple[Law, int], ...]) -> AllocationReplaceLaw:
        inner = tuple((law.remove, count) for law, count in parts if isinstance(law, cls))
        return cls(AllocationEpochsLaw.collapse(inner))

    def reverse(self) -> AllocationReplaceLaw:
        return self

    @property
    def supremum(self) -> float:
        return math.inf

    @property
    def infimum(self) -> float:
        return -math.inf

    # -- the profile ---------------------------------------------------------------------------------------------

    def log_excess(self, loss: Floats) -> tuple[Floats, Floats, Floats]:
        """H_l, l >= 0, and e^l H_{-l} below: the pair is its own reverse."""
        size, lift = np.abs(loss), np.minimum(loss, 0.0)
        high, share = self._upper(size)
        # oppositely coupled ratios tell no less than independent ones, and these no less than one and the other's mean
        low = np.maximum(self.remove.log_profile(size)[0], self.remove.reverse().log_profile(size)[0])
        slack = 8 * EPS * (1 + np.abs(loss))
        rate = np.where(loss < 0, -1.0 - share, share)
        return np.minimum(low, high) + lift - slack, high + lift + slack, rate

    def _upper(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """The least bound over some b = e^-s, s about between 0 and eps, and its falling rate, about."""
        span = np.linspace(0.0, 1.0, _POINTS)
        middle, width = 0.5 * epsilon, epsilon + 4 * math.sqrt(2 * self.remove.mean)
        best, at = np.full(len(epsilon), np.inf), middle
        for _ in range(_ROUNDS):
            s = middle[:, None] + width[:, None] * (span - 0.5)
            value = self._at(epsilon[:, None] - s, s)
            which = np.argmin(value, axis=1)
            rows = np.arange(len(epsilon))
            better = value[rows, which] < best
            at = np.where(better, s[rows, which], at)
            best = np.minimum(best, value[rows, which])
            middle, width = at, width / 4
        step = 1e-4 * (1 + epsilon)
        further = self._at((epsilon + 0.5 * step - at)[:, None], (at + 0.5 * step)[:, None])[:, 0]
        with np.errstate(invalid="ignore"):
            rate = (best - further) / step
        return np.minimum(best, 0.0), np.where(np.isfinite(rate), rate, 0.0)

    def _at(self, first: Floats, second: Floats) -> Floats:
        """log( H^remove(first) + e^first H^add(second) )."""
        shape = np.shape(first)
        one = self.remove.log_profile(first.ravel())[1]
        other = self.remove.reverse().log_profile(second.ravel())[1] + first.ravel()
        return np.asarray((np.logaddexp(one, other) + 8 * EPS * (1 + np.abs(first.ravel()))).reshape(shape))

    # -- moments -------------------------------------------------------------------------------------------------

    def log_moment(self, t: Numbers) -> Numbers:
        if np.iscomplexobj(t):
            return super(AllocationReplaceLaw, self).log_moment(t)
        return self.log_moment_and_error(np.asarray(t, dtype=np.float64))[0]

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        """An upper bound of K, so that nothing need be added to it."""
        flat = np.asarray(t, dtype=np.float64).ravel()
        add = self.remove.reverse()
        r = np.broadcast_to(_EXPONENTS, (len(flat), len(_EXPONENTS)))
        conjugate = r / (r - 1)
        first, one = self.remove.log_moment_and_error((r * (1 + flat[:, None]) - 1).ravel())
        second, other = add.log_moment_and_error((conjugate * flat[:, None]).ravel())
        bound = (first + one).reshape(r.shape) / r + (second + other).reshape(r.shape) / conjugate
        least = bound.min(axis=1) * (1 + 32 * EPS)
        return least.reshape(np.shape(t)), np.zeros(np.shape(t))

    @property
    def mean(self) -> float:
        """K(t) / t grows with t: its least value is an upper bound of the mean."""
        return float((self.log_moment_and_error(_MEANS)[0] / _MEANS).min())
