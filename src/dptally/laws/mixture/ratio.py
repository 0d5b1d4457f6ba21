r"""The likelihood ratio of a mixture of Gaussians, A(t) = sum_j w_j exp(m_j t - m_j^2 / 2), with its errors.

t is standard normal under Q = N(0, 1); P has density A(t) phi(t). d log A / dt = S(t), the posterior mean of the
shift, and its derivative V(t), the posterior variance. The posterior has a monotone likelihood ratio in t: the
expectation of every increasing function of the shift increases with t. Derivations: docs/batching.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dptally.numerics.rounding import EPS, FUNCTION_ULPS

Floats = NDArray[np.float64]

__all__ = ["MixtureRatio", "Posterior"]

SHIFT_ULPS = 2.0  # relative error of the given shifts and of the weights, in ulps
_FAR = 30.0  # beyond e^30 log A is taken from the leading term


@dataclass(frozen=True, slots=True)
class Posterior:
    """At each t: the posterior weights (t, j), their mean S and variance V."""

    weights: Floats
    mean: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class MixtureRatio:
    """``shifts`` m_0 < m_1 < .. >= 0 in units of the noise, ``weights`` w_j > 0 that add up to one; at least two."""

    shifts: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def least(self) -> float:
        return self.shifts[0]

    @property
    def most(self) -> float:
        return self.shifts[-1]

    @property
    def range(self) -> float:
        """The difference of the extreme shifts: A has no zero where |Im t| is below pi over it."""
        return self.shifts[-1] - self.shifts[0]

    def columns(self) -> tuple[Floats, Floats]:
        return np.array(self.shifts), np.array(self.weights)

    def terms(self, t: Floats) -> Floats:
        """m_j t - m_j^2 / 2, one row for each t."""
        m = np.array(self.shifts)
        return np.asarray(t[:, None] * m - 0.5 * m * m)

    def log_a(self, t: Floats) -> Floats:
        """log A(t); its error is that of :meth:`loss_error`."""
        return self._log_a(self.terms(t))

    def _log_a(self, terms: Floats) -> Floats:
        w = np.array(self.weights)
        top = terms.max(axis=1)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            # A - 1 where that is small, else the logarithm of a sum relative to its largest term
            excess = np.expm1(np.minimum(terms, _FAR)) @ w
            near = np.log1p(np.maximum(excess, -0.5))
            far = top + np.log(np.exp(terms - top[:, None]) @ w)
        return np.asarray(np.where((top < _FAR) & (excess > -0.5), near, far))

    def posterior(self, t: Floats) -> Posterior:
        m, w = self.columns()
        terms = self.terms(t) + np.log(w)
        p = np.exp(terms - terms.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        mean = p @ m
        variance = np.asarray((p * (m - mean[:, None]) ** 2).sum(axis=1))
        return Posterior(p, mean, variance)

    def loss_error(self, t: Floats, loss: Floats) -> Floats:
        """Bounds of the rounding error of log A.

        l_j = m_j t - m_j^2 / 2 errs by (2 + shift) (|m_j t| + m_j^2) ulps, which moves log A by the posterior mean of
        that; a weight by its own ulps, which counts by |expm1(l_j)| because the weights add up to one; expm1 by its
        ulps and the logarithm by as many, the sum of J terms by J.
        """
        m, w = self.columns()
        ulps = 8.0 + SHIFT_ULPS + len(m)
        terms = self.terms(t)
        top = terms.max(axis=1)
        p = np.exp(np.minimum(terms + np.log(w) - loss[:, None], 0.01))
        moved = (p * (np.abs(t[:, None] * m) + m * m)).sum(axis=1) * (2 + SHIFT_ULPS)
        close = top < _FAR
        size = np.abs(np.expm1(np.where(close[:, None], terms, 0.0))) @ w * np.exp(-np.where(close, loss, 0.0))
        relative = np.where(close, np.maximum(size, np.where(loss > -0.69, 0.0, 1.0)), 1.0)
        leading = np.where(close & (loss > -0.69), 0.0, np.abs(top))
        return np.asarray(EPS * (FUNCTION_ULPS * np.abs(loss) + ulps * relative + moved + 2 * leading))

    def largest_variance(self, left: Posterior, right: Posterior, width: Floats) -> Floats:
        """sup of V on cells: (M - S)(S - m) at the ends that make it largest [Bhatia, Davis 2000], and by |V'| <= D
        V.
        """
        by_mean = (self.most - left.mean) * (right.mean - self.least)
        grown = np.minimum(left.variance, right.variance) * np.exp(self.range * width)
        return np.asarray(np.minimum(np.minimum(by_mean, grown * (1 + 1e-9)), 0.25 * self.range**2 * (1 + 1e-12)))

    def smallest_variance(self, left: Posterior, right: Posterior, width: Floats) -> Floats:
        return np.asarray(np.maximum(left.variance, right.variance) * np.exp(-self.range * width) * (1 - 1e-9))
