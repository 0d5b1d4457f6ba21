"""What an attacker can achieve who must decide whether one record was in the data.

``plan`` is a mechanism or a plan; a declared guarantee is one too (``dp.ApproxDP(1.0, 1e-6)``). The functions that take
numbers answer for the guarantee alone.
"""

from __future__ import annotations

import math

from dptally import checks
from dptally.accounting import tradeoff
from dptally.accounting.moments import Asked
from dptally.meaning import outcomes
from dptally.numerics.rounding import up

__all__ = [
    "accuracy",
    "advantage",
    "approx_advantage",
    "approx_true_positive_rate",
    "false_negative_rate",
    "gaussian_true_positive_rate",
    "true_positive_rate",
]

true_positive_rate = tradeoff.true_positive_rate
false_negative_rate = tradeoff.false_negative_rate
advantage = tradeoff.advantage


def accuracy(plan: Asked) -> float:
    """The largest share of right guesses on a balanced coin flip, rounded up: (1 + advantage) / 2.

    [Yeom, Giacomelli, Fredrikson, Jha 2018, Def. 4; Kairouz, Oh, Viswanath 2015]
    """
    return min(1.0, up(0.5 + 0.5 * advantage(plan)))


def approx_true_positive_rate(epsilon: float, delta: float, fpr: float) -> float:
    """The largest TPR at this FPR x under (epsilon, delta)-DP, rounded up.

    min(e^eps x + delta, 1 - e^-eps (1 - x - delta))  [Kairouz, Oh, Viswanath 2015, Thm. 2.1]

    >>> round(approx_true_positive_rate(1.0, 0.0, 0.01), 6)
    0.027183
    """
    return outcomes.approx(epsilon, delta, fpr).upper


def gaussian_true_positive_rate(mu: float, fpr: float) -> float:
    """The largest TPR at this FPR under mu-Gaussian DP, rounded up: Phi(Phi^{-1}(x) + mu).

    >>> round(gaussian_true_positive_rate(1.0, 0.01), 6)
    0.092362
    """
    return outcomes.gaussian(mu, fpr).upper


def approx_advantage(epsilon: float, delta: float) -> float:
    """The largest TPR - FPR under (epsilon, delta)-DP, rounded up: delta + (1 - delta) tanh(eps / 2).

    The total variation of the dominating pair  [Kairouz, Oh, Viswanath 2015; Humphries et al. 2023].

    >>> round(approx_advantage(1.0, 0.0), 6)
    0.462117
    """
    epsilon, delta = checks.nonnegative("epsilon", epsilon), checks.probability("delta", delta)
    return min(1.0, up(delta + (1.0 - delta) * math.tanh(0.5 * epsilon), 8))
