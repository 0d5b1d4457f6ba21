"""What a release can teach a Bayesian: how far the odds of "the record is in" can move.

The Bayes factor of an output is the posterior odds over the prior odds: P(output)/Q(output) = e^L, L the
privacy loss. Bounds are rounded to the safe side.
"""

from __future__ import annotations

import math

import numpy as np

from dptally import checks
from dptally.accounting import certified, renyi, tradeoff
from dptally.accounting.loss import Loss
from dptally.accounting.moments import Asked, checked
from dptally.checks import Floats
from dptally.divergences.inequalities import exp_up
from dptally.errors import InvalidArgument
from dptally.interval import Interval
from dptally.numerics.normal import log_normal_tail
from dptally.numerics.rounding import EPS, down, up
from dptally.numerics.search import minimise

__all__ = [
    "after_alarm",
    "factor",
    "factor_exceeds",
    "factor_tail",
    "gaussian_factor_tail",
    "moment",
    "posterior",
    "zcdp_factor_tail",
]


def factor(epsilon: float) -> float:
    """Pure epsilon-DP: no output moves the odds by more than e^eps, either way.  [Mironov 2017, Sec. III]

    >>> round(factor(1.0), 6)
    2.718282
    """
    return exp_up(checks.nonnegative("epsilon", epsilon))


def moment(order: float, epsilon: float) -> float:
    """(order, epsilon)-Renyi DP: E[(posterior odds / prior odds)^a] <= exp((a - 1) eps).

    The output is drawn without the record  [Mironov 2017, Sec. III and Table I].

    >>> round(moment(2, 0.5), 12)
    1.6487212707
    """
    order, epsilon = _order(order), checks.nonnegative("epsilon", epsilon)
    exponent = (order - 1.0) * epsilon
    return exp_up(exponent, 4 * EPS * exponent)


def factor_tail(order: float, epsilon: float, beta: float) -> float:
    """(order, epsilon)-Renyi DP: P[Bayes factor > beta] <= (e^eps / beta)^{a - 1}, by Markov.

    The form e^eps / beta^{1/(a-1)} printed in Mironov 2017, Sec. VII, claims too much below order 2 (a
    Gaussian breaks it); this is the corrected one.

    >>> round(factor_tail(1.5, 0.75, 10), 12)
    0.460108684618
    """
    order, epsilon = _order(order), checks.nonnegative("epsilon", epsilon)
    log_beta = math.log(checks.positive("beta", beta))
    exponent = (order - 1.0) * (epsilon - log_beta)
    if exponent >= 0:
        return 1.0
    return min(1.0, exp_up(exponent, 8 * EPS * (order - 1.0) * (epsilon + abs(log_beta))))


def factor_exceeds(plan: Asked, beta: float) -> Interval:
    """The largest P[Bayes factor > beta] that two neighbours can have under a plan, both sides certified; beta >= 1.

    With l = log beta the upper end is the least delta(e)/(1 - exp(e - l)) over 0 <= e < l, which holds for every pair
    that the plan covers, since delta(e) >= E[(1 - exp(e - L))+] >= (1 - exp(e - l)) P(L > l). The lower end is
    P(L > l) of the plan's dominating pair. That probability is no upper end: of two pairs the less private one can have
    the lighter tail. Where Renyi divergences alone are known there is no lower end, and Markov's inequality at the best
    order counts too.

    >>> from dptally import Gaussian
    >>> box = factor_exceeds(Gaussian(1.0), 10.0)
    >>> round(box.lower, 6), round(box.upper, 6)
    (0.035727, 0.078234)
    """
    log_beta = math.log(checks.positive("beta", beta))
    if not beta >= 1:
        raise InvalidArgument("beta", "at least 1", beta, "for smaller ones ask plan.loss(direction).tail(log(beta))")
    directions = checked(plan)
    below, above = max(down(log_beta), 0.0), up(log_beta)
    profiles = [certified.delta_profile(composition) for composition in directions]

    def most(gap: Floats) -> Floats:
        deltas = [max(profile(max(below - h, 0.0)).upper for profile in profiles) for h in gap.tolist()]
        return np.asarray(deltas / -np.expm1(-gap) * (1 + 8 * EPS), dtype=np.float64)

    upper = min(1.0, minimise(most, 1e-3 * below, below, start=(0.05 * below, below))[1]) if below > 0 else 1.0
    if not all(composition.determined for composition in directions):
        return Interval(0.0, min(upper, renyi.delta(directions, below, "mironov").value), "Markov, best order")
    lower = max(Loss(composition, None, "").tail(above).lower for composition in directions)
    return Interval(min(lower, upper), upper, "privacy profile")


def zcdp_factor_tail(rho: float, beta: float) -> float:
    """rho-zCDP: P[Bayes factor > beta] <= exp(-(log beta - rho)^2 / (4 rho)) where log beta > rho, else 1.

    The best order of ``factor_tail``, lambda = (log beta - rho) / (2 rho)  [Bun, Steinke 2016, Lemma 3.5].

    >>> zcdp_factor_tail(0.5, math.exp(2)) < 0.325
    True
    """
    rho, beta = checks.nonnegative("rho", rho), checks.positive("beta", beta)
    gap = math.log(beta) - rho
    if gap <= 0:
        return 1.0
    if rho == 0:
        return 0.0
    exponent = gap / rho * gap / 4.0
    error = 8 * EPS * (exponent + (abs(math.log(beta)) + rho) * (gap / rho))
    return min(1.0, exp_up(-exponent, min(error, exponent)))


def gaussian_factor_tail(mu: float, log_beta: float) -> float:
    """P[log Bayes factor > log_beta] of the Gaussian mechanism, rounded up: Phi(mu/2 - log_beta/mu).

    Not a bound for other mu-GDP mechanisms: a trade-off function does not fix the loss beyond its profile.

    >>> round(gaussian_factor_tail(1.0, 2.0), 12)
    0.066807201269
    """
    mu, log_beta = checks.positive("mu", mu), checks.finite("log_beta", log_beta)
    point = log_beta / mu - 0.5 * mu
    point -= 4e-16 * (abs(log_beta) / mu + mu)  # the rounding of the line above, on the safe side
    return min(1.0, up(math.exp(float(log_normal_tail(point)[1])), 4))


def posterior(prior: float, epsilon: float) -> Interval:
    """Pure epsilon-DP: where the posterior of a belief of probability ``prior`` must stay.

    odds(posterior) in [e^-eps, e^eps] * odds(prior).  [Dwork, Roth 2014; Kasiviswanathan, Smith 2014]

    >>> box = posterior(0.5, math.log(3))
    >>> round(box.lower, 12), round(box.upper, 12)
    (0.25, 0.75)
    """
    prior, epsilon = checks.probability("prior", prior), checks.nonnegative("epsilon", epsilon)
    if prior in (0.0, 1.0):
        return Interval(prior, prior, "certainty does not move")
    shrink = math.exp(-epsilon)
    largest = up(prior / (prior + (1.0 - prior) * shrink), 8)
    smallest = down(prior * shrink / (prior * shrink + (1.0 - prior)), 8)
    return Interval(max(smallest, 0.0), min(largest, 1.0), "pure DP")


def after_alarm(plan: Asked, prior: float, fpr: float) -> float:
    """The largest probability that an alarm is right: prior TPR / (prior TPR + (1 - prior) FPR).

    For any attack with this false-positive rate on any guarantee, pure or not: its TPR is at most the
    trade-off function's. 1 where an alarm without false positives is possible.
    """
    prior, fpr = checks.probability("prior", prior), checks.probability("fpr", fpr)
    if prior in (0.0, 1.0):
        return prior
    tpr = tradeoff.true_positive_rate(plan, fpr)
    if tpr == 0:
        raise InvalidArgument("fpr", "above 0 (no attack without false positives ever raises an alarm)", fpr)
    right, wrong = prior * tpr, (1.0 - prior) * fpr
    return min(1.0, up(right / (right + wrong), 8)) if wrong > 0 else 1.0


def _order(value: float) -> float:
    number = checks.real("order", value)
    if not 1 < number < math.inf:
        raise InvalidArgument("order", "above 1 and finite", value)
    return number
