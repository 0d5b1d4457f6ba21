"""From counts of an event to a lower bound of a privacy parameter that holds with stated confidence.

An event S seen k0 times in n0 runs on one dataset and k1 times in n1 runs on the other has P(S) >= p and Q(S)
<= q with the Clopper-Pearson bounds p and q. Whatever the mechanism promises for every event must hold for
this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dptally.checks import Floats
from dptally.numerics.special import betainccinv, betaincinv, ndtri

__all__ = ["EpsilonMeasure", "Measure", "MuMeasure", "lower_probability", "upper_probability"]

Counts = NDArray[np.int64]

# far above the relative error of the inverse beta functions; moves a bound by less than it matters
_SLACK = 1e-9


def lower_probability(successes: Any, trials: int, failure: float) -> Floats:
    """The Clopper-Pearson lower bound of a probability, wrong with probability at most ``failure``.

    >>> round(float(lower_probability(50, 100, 0.025)), 4)
    0.3983
    """
    k = np.asarray(successes, dtype=np.float64)
    inner = betaincinv(np.maximum(k, 1), trials - k + 1, failure)
    return np.where(k > 0, inner * (1 - _SLACK), 0.0)


def upper_probability(successes: Any, trials: int, failure: float) -> Floats:
    """The Clopper-Pearson upper bound of a probability, wrong with probability at most ``failure``.

    >>> round(float(upper_probability(0, 100, 0.05)), 4)
    0.0295
    """
    k = np.asarray(successes, dtype=np.float64)
    inner = betainccinv(k + 1, np.maximum(trials - k, 1), failure)
    return np.where(k < trials, np.minimum(inner * (1 + _SLACK), 1.0), 1.0)


@dataclass(frozen=True, slots=True)
class EpsilonMeasure:
    """epsilon at a given delta: P(S) <= exp(epsilon) Q(S) + delta gives epsilon >= log((p - delta) / q)."""

    delta: float
    name = "epsilon"

    def lower(self, p: Floats, q: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            ratio = np.log(np.maximum(p - self.delta, 0.0)) - np.log(q)
        return np.maximum(ratio - _SLACK, 0.0)


@dataclass(frozen=True, slots=True)
class MuMeasure:
    """Gaussian DP: P(S) <= Phi(Phi^-1(Q(S)) + mu) gives mu >= Phi^-1(p) - Phi^-1(q).

    [Dong, Roth, Su 2022, Def. 2.6]
    """

    name = "mu"
    delta = 0.0

    def lower(self, p: Floats, q: Floats) -> Floats:
        difference = ndtri(p) - ndtri(q)  # -inf where p = 0 or q = 1, never NaN: p < 1 and q > 0
        return np.asarray(np.maximum(difference - _SLACK * (1 + np.abs(ndtri(p))), 0.0))


Measure = EpsilonMeasure | MuMeasure
