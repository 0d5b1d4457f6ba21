"""How often a private mode is right: by noisy histogram, and by propose-test-release.  [zCDP notes, Remark 7.1]

The true mode leads every other category by ``gap`` records or more. The histogram adds discrete Laplace noise of scale
1/epsilon to every count and always answers; propose-test-release answers the truth or nothing. So the first errs with
a probability that falls like e^(-epsilon gap) times the number of categories, whatever delta; the second stays silent
unless the gap passes about log(1/delta)/epsilon, and then like e^(-epsilon gap)/delta, whatever the categories. Exact
sums of the two-sided geometric law, rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.numerics.rounding import up
from dptally.release.propose import pass_threshold

__all__ = ["ModeAccuracy", "mode_accuracy"]

_MOST_TERMS = 200_000


@dataclass(frozen=True, slots=True)
class ModeAccuracy:
    """``histogram_wrong``: the probability that the noisy histogram names another category. ``propose_silent``: that
    propose-test-release gives no answer. Both for one epsilon; the histogram needs no delta. With more than two
    categories the first is the largest that the lead allows: all others stand as high as they may.
    """

    gap: int
    epsilon: float
    delta: float
    histogram_wrong: float
    propose_silent: float
    categories: int = 2

    @property
    def better(self) -> str:
        """The one that fails more rarely: "histogram" or "propose-test-release"."""
        return "histogram" if self.histogram_wrong <= self.propose_silent else "propose-test-release"


def mode_accuracy(
    n: int, gap: int, epsilon: float, delta: float, adjacency: Adjacency = ADD_REMOVE, categories: int = 2
) -> ModeAccuracy:
    """How often each fails for ``n`` records of which the mode leads by ``gap``, at (epsilon, delta).

    With a = e^-epsilon (under REPLACE the histogram moves two counts and pays epsilon/2 each), the difference of two
    noises is at least g (a tie counts as wrong) with probability a^g (g (1 - a) + (1 + a^2)/(1 + a) + a)/(1 + a)^2;
    and a noise is at most k with probability 1 - a^(k+1)/(1 + a) for k >= 0, a^-k/(1 + a) below.

    >>> found = mode_accuracy(n=1000, gap=40, epsilon=0.5, delta=1e-6)
    >>> found.better, found.propose_silent < 0.01
    ('histogram', True)
    >>> mode_accuracy(n=1000, gap=40, epsilon=0.5, delta=1e-6, categories=10**9).better
    'propose-test-release'
    """
    n, gap, categories = checks.count("n", n, 1), checks.count("gap", gap, 1), checks.count("categories", categories, 2)
    epsilon, delta = checks.positive("epsilon", epsilon), checks.open_probability("delta", delta)
    if gap > n or (categories == 2 and (n - gap) % 2):
        odd = ", and as odd as n" if categories == 2 else ""
        raise InvalidArgument("gap", f"the lead among n = {n} records of {categories} kinds: at most n{odd}", gap)
    if not isinstance(adjacency, Adjacency):
        raise InvalidArgument("adjacency", "ADD_REMOVE or REPLACE", adjacency)
    share = epsilon if adjacency is ADD_REMOVE else 0.5 * epsilon
    away = gap - 1 if adjacency is ADD_REMOVE else max(0, (gap - 1) // 2)
    silent = _at_most(pass_threshold(epsilon, delta) - away, epsilon)
    wrong = _overtaken(gap, share)
    if categories > 2:
        wrong = min(_overtaken_by_any(gap, share, categories - 1), up((categories - 1) * wrong), 1.0)
    return ModeAccuracy(gap, epsilon, delta, wrong, silent, categories)


def _overtaken_by_any(gap: int, epsilon: float, rivals: int) -> float:
    """P(max of the rivals' noises - Z >= gap), rounded up: the sum over Z of P(Z) (1 - F(Z + gap - 1)^rivals).

    Beyond ``far`` on both sides Z counts as lost. All terms are positive, and each is within 1e-10 of what it should
    be: the exponents are below 800, and a relative error of ``above`` stays one of the term.
    """
    far = min(math.ceil((40 + math.log(rivals)) / epsilon) + gap, _MOST_TERMS)
    z = np.arange(-far, far + 1, dtype=np.float64)
    a = math.exp(-epsilon)
    weight = -math.expm1(-epsilon) / (1 + a) * np.exp(-epsilon * np.abs(z))
    x = z + (gap - 1)
    above = np.where(
        x >= 0, np.exp(-epsilon * np.maximum(x + 1, 0)) / (1 + a), 1 - np.exp(epsilon * np.minimum(x, 0)) / (1 + a)
    )
    with np.errstate(divide="ignore"):  # where a rival is certainly above
        any_above = -np.expm1(rivals * np.log1p(-above))
    lost = 2 * math.exp(-epsilon * (far + 1)) / (1 + a)
    return min(1.0, (math.fsum((weight * any_above).tolist()) + lost) * (1 + 1e-9))


def _overtaken(gap: int, epsilon: float) -> float:
    """P(Z' - Z >= gap) of two independent two-sided geometric noises, gap >= 1, rounded up: all terms are positive."""
    a = math.exp(-epsilon)
    inside = gap * -math.expm1(-epsilon) + (1 + a * a) / (1 + a) + a
    value = math.exp(-epsilon * gap) * inside / (1 + a) ** 2
    return min(1.0, up(value, 16 + 4 * epsilon * gap))


def _at_most(threshold: int, epsilon: float) -> float:
    """P(Z <= threshold) of the two-sided geometric noise, rounded up."""
    a = math.exp(-epsilon)
    if threshold >= 0:
        return min(1.0, up(1.0 - math.exp(-epsilon * (threshold + 1)) / (1 + a), 16))
    return min(1.0, up(math.exp(epsilon * threshold) / (1 + a), 16 - 4 * epsilon * threshold))
