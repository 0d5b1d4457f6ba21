r"""The Renyi divergences of bounded-range mechanisms, which no one pair attains at every order at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law, MomentBound
from dptally.law.law import Numbers
from dptally.laws.bounded_range.recursion import Uses
from dptally.laws.moment_bound import real_orders
from dptally.numerics.exact import between
from dptally.numerics.logspace import sinhc_minus_one
from dptally.numerics.rounding import EPS, up

__all__ = ["BoundedRangeMoments", "half_coth", "log_sinhc", "merged"]


@dataclass(frozen=True, slots=True)
class BoundedRangeMoments(MomentBound):
    r"""K(t) of adaptively chosen uses, each of whose losses span at most eps: the sum over the uses of

        max over u of K_u(t) = (1 + t) S((1 + t) eps) - t S(t eps) - S(eps) <= eps^2 t (t + 1) / 8,

    S(x) = log(sinh(x/2) / (x/2)): the two losses u and u - eps are the worst at every order, at a u that depends on it
    (docs/selection.md, theorem 4). Exact for each order, and an upper bound of everything else.
    """

    uses: Uses
    theorem: ClassVar[str] = (
        "Cesar, Rogers 2021, Bounding, concentrating, and truncating (eps-bounded range is eps^2/8-zCDP)"
    )
    collapses: ClassVar[bool] = True

    @classmethod
    def collapse(cls, parts: tuple[tuple[Law, int], ...]) -> Law:
        return cls(merged(tuple((law.uses, n) for law, n in parts if isinstance(law, BoundedRangeMoments))))

    def log_moment(self, t: Numbers) -> Numbers:
        return self.log_moment_and_error(real_orders(self, t))[0]

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        """K and what the cancelling of its three terms may cost, at most eps^2 t (t + 1) / 8."""
        t = np.asarray(t, dtype=np.float64)
        above = np.maximum(t, 0.0)
        total, error = np.zeros_like(above), np.zeros_like(above)
        with np.errstate(over="ignore", invalid="ignore"):
            for eps, n in self.uses:
                terms = (1.0 + above) * log_sinhc((1.0 + above) * eps), above * log_sinhc(above * eps), log_sinhc(eps)
                doubt = 16 * EPS * (terms[0] + terms[1] + terms[2])
                quadratic = 0.125 * eps * eps * above * (above + 1.0)
                sharp = np.minimum(terms[0] - terms[1] - terms[2] + doubt, above * eps)
                known = np.isfinite(sharp) & (sharp < quadratic)
                total = total + n * np.where(known, sharp, np.minimum(quadratic, above * eps))
                error = error + n * 8 * EPS * np.minimum(quadratic, above * eps)
        return total, error

    @property
    def mean(self) -> float:
        """The KL divergence, K'(0): the sum of S(eps) + eps S'(eps), rounded up."""
        return up(math.fsum(n * (float(log_sinhc(eps)) + half_coth(eps)) for eps, n in self.uses), 16)

    @property
    def supremum(self) -> float:
        return between(sum((n * Fraction(eps) for eps, n in self.uses), Fraction(0)))[1]

    @property
    def infimum(self) -> float:
        return -self.supremum

    def closed_rho(self) -> float:
        """sum of eps^2/8  [Cesar, Rogers 2021]."""
        return between(sum((n * Fraction(eps) ** 2 for eps, n in self.uses), Fraction(0)) / 8)[1]


def merged(parts: tuple[tuple[Uses, int], ...]) -> Uses:
    """All uses together, in increasing order of the range."""
    counts: dict[float, int] = {}
    for uses, times in parts:
        for eps, n in uses:
            counts[eps] = counts.get(eps, 0) + times * n
    return tuple(sorted(counts.items()))


def half_coth(epsilon: float) -> float:
    """(eps/2) coth(eps/2) - 1, to a few ulps: below 1 by Lambert's fraction x^2/(3 + x^2/(5 + ...)), which never
    cancels.
    """
    half = 0.5 * epsilon
    if half >= 1.0:
        return half / math.tanh(half) - 1.0
    fraction = 0.0
    for odd in range(27, 1, -2):
        fraction = half * half / (odd + fraction)
    return fraction


def log_sinhc(x: Numbers | float) -> Floats:
    """log(sinh(x/2) / (x/2)) for real x, to a few ulps."""
    half = np.abs(0.5 * np.asarray(x, dtype=np.float64))
    small = half < 1.0
    near = np.log1p(sinhc_minus_one(np.where(small, half, 0.0)))
    far = np.where(small, 1.0, half)
    return np.where(small, near, far + np.log1p(-np.exp(-2.0 * far)) - np.log(2.0 * far))
