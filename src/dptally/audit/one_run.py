"""The one-run audit: many canaries, each in or out by a fair coin, one run, and a guess for each.

[Steinke, Nasr, Jagielski 2023, Privacy auditing with one (1) training run, Sec. 5]. If the run is (epsilon,
delta)-DP under adding or removing one canary, then r guesses among m canaries are right v times or more with
probability at most

    P(W >= v) + m delta P(W >= v) P(W < v) / (v P(W = v)),      W binomial of r trials, chance e^eps/(1+e^eps).

The bound is our own and is proved in docs/audit.md; it is the best for the given epsilon and delta while m
delta is small, and sharper than the published one, whose second term is 2 m delta max_i P(v-i <= W < v) / i.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dptally import checks
from dptally.audit.claim import measure_of
from dptally.audit.result import AuditResult
from dptally.audit.run import CONFIDENCE
from dptally.checks import Floats
from dptally.errors import InvalidArgument
from dptally.mechanisms import Mechanism
from dptally.numerics.special import bdtrc
from dptally.release import column

__all__ = ["guess_p_value", "one_run", "right_guesses"]

_SLACK = 1e-9  # relative, far above the error of the binomial tails
_STEPS = 2000


def guess_p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float = 0.0) -> float:
    """An upper bound of the probability that so many guesses are right under (epsilon, delta)-DP.

    For delta > 0 it is 1 where no more are right than pure epsilon would give on average: such a number says
    nothing against the claim.

    >>> guess_p_value(canaries=100, guesses=10, right=10, epsilon=0.0) < 0.00098
    True
    >>> round(guess_p_value(canaries=100, guesses=10, right=10, epsilon=0.0, delta=1e-4), 6)
    0.001976
    """
    chance = 1 / (1 + math.exp(-epsilon))
    tail = float(bdtrc(right - 1, guesses, chance)) if right > 0 else 1.0
    if delta > 0:
        if not right > guesses * chance:
            return 1.0
        tail += canaries * delta * (1 - tail) * _tail_over_point(guesses, right, math.exp(epsilon)) / right
    return min(1.0, tail * (1 + _SLACK))


def _tail_over_point(trials: int, value: int, odds: float) -> float:
    """P(W >= value) / P(W = value): a sum of products of P(W = k + 1) / P(W = k) = odds (n - k) / (k + 1).

    Above the mean each of them is below 1, so nothing overflows and what underflows is nothing.
    """
    k = np.arange(value, trials, dtype=np.float64)
    return 1.0 + float(np.cumprod(odds * (trials - k) / (k + 1)).sum())


def right_guesses(scores: Floats, included: NDArray[np.bool_], guesses: int) -> int:
    """How many are right if the highest scores are guessed as included, and as many of the lowest as not."""
    order = np.argsort(scores, kind="stable")
    out, in_ = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    return int(np.count_nonzero(included[in_]) + np.count_nonzero(~included[out]))


def one_run(
    scores: object,
    included: object,
    claim: Mechanism,
    *,
    guesses: int | Sequence[int],
    delta: float | None = None,
    confidence: float = CONFIDENCE,
) -> AuditResult:
    """Try to refute ``claim`` from the scores of canaries in one run, and from who was included.

    A high score means that a canary looks included. The ``guesses`` canaries with the most extreme scores are
    guessed, half of them as included, half as not; the others are left out. The inclusion of each canary must
    have been an independent fair coin, the scores must come from the run's output alone, and the number of
    guesses must be chosen before looking; several numbers may be tried, and share the failure probability.

    >>> from dptally import PureDP
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random(1000) < 0.5
    >>> one_run(coins + 0.1 * rng.standard_normal(1000), coins, PureDP(1.0), guesses=200).verdict
    'refuted'
    """
    measure, claimed = measure_of(claim, delta, "epsilon")
    confidence = checks.open_probability("confidence", confidence)
    marks, inside = column.numeric("scores", scores), column.flags("included", included)
    if len(marks) != len(inside):
        raise InvalidArgument("included", "as long as the scores", "a column of another length")
    tried = list(guesses) if isinstance(guesses, (Sequence, np.ndarray)) else [guesses]
    numbers = [checks.count("guesses", r, least=1) for r in tried]
    if not numbers or max(numbers) > len(marks):
        raise InvalidArgument("guesses", "between 1 and the number of canaries", guesses)
    failure = (1 - confidence) / len(numbers)
    best = (0.0, numbers[0], 0)
    for r in numbers:
        right = right_guesses(marks, inside, r)
        best = max(best, (_largest_rejected(len(marks), r, right, measure.delta, failure), r, right))
    lower, r, right = best
    return AuditResult(
        lower=lower,
        claimed=claimed,
        quantity=measure.name,
        delta=measure.delta,
        claim=claim,
        confidence=confidence,
        samples=len(marks),
        event=f"{right} of {r} guesses right",
    )


def _largest_rejected(canaries: int, guesses: int, right: int, delta: float, failure: float) -> float:
    """The largest epsilon of a fixed grid up to which every epsilon of the grid is rejected.

    A true epsilon between two points is refuted by the next one, as (epsilon, delta)-DP implies the larger
    epsilon.
    """
    grid = np.linspace(0.0, 20.0, _STEPS + 1)
    rejected = 0.0
    for epsilon in grid:
        if guess_p_value(canaries, guesses, right, float(epsilon), delta) > failure:
            break
        rejected = float(epsilon)
    return rejected
