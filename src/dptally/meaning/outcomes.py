"""Bad outcomes: an event has probability ``before`` without your record; how likely can it be with it?

One function per guarantee; each returns Interval(lower, upper): the smallest and the largest probability that
the guarantee allows, rounded outwards. ``of_plan`` is the tightest, from the plan's own trade-off function.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dptally import checks
from dptally.accounting import approximate, tradeoff
from dptally.accounting.moments import Asked, checked, infinity_mass, log_moment_upper
from dptally.checks import Floats
from dptally.divergences.inequalities import exp_down, exp_up, probability_range
from dptally.errors import InvalidArgument, Unanswerable
from dptally.interval import Interval
from dptally.numerics.rounding import EPS, down, up
from dptally.numerics.search import minimise

__all__ = [
    "LargestRatio",
    "approx",
    "gaussian",
    "largest_ratio",
    "largest_ratio_approx",
    "of_plan",
    "pure",
    "renyi",
    "zcdp",
]


def pure(epsilon: float, before: float) -> Interval:
    """epsilon-DP: e^-eps q <= p <= e^eps q, and the same for the event's complement.

    >>> box = pure(math.log(3), 0.5)
    >>> round(box.lower, 12), round(box.upper, 12)
    (0.166666666667, 0.833333333333)
    """
    return approx(epsilon, 0.0, before)


def approx(epsilon: float, delta: float, before: float) -> Interval:
    """(epsilon, delta)-DP: p <= e^eps q + delta, 1 - q <= e^eps (1 - p) + delta, both ways round.

    Tight: randomised response that reveals with probability delta attains it  [Kairouz, Oh, Viswanath 2015].

    >>> round(approx(0.0, 0.01, 0.5).upper, 12)
    0.51
    """
    epsilon, delta = checks.nonnegative("epsilon", epsilon), checks.probability("delta", delta)
    before = checks.probability("before", before)
    after_largest = _approx_largest(epsilon, delta, before, _rest(before))
    # the smallest p is 1 minus the largest of the complement, found directly to keep small numbers small
    grown = down(math.exp(-epsilon) * max(before - delta, 0.0), 4) if before > delta else 0.0
    by_complement = 1.0 - _approx_largest(epsilon, delta, _complement(before), before)
    lower = max(0.0, grown, down(by_complement))
    return Interval(min(lower, after_largest), after_largest, "(epsilon, delta)-DP")


def _approx_largest(epsilon: float, delta: float, before: float, rest: float) -> float:
    """min(e^eps q + delta, 1 - e^-eps (1 - q - delta)), rounded up; ``rest`` is a lower bound of 1 - q."""
    straight = up(up(_exp(epsilon) * before, 4) + delta) if before > 0 else delta
    room = down(rest - delta) if delta else rest
    return min(1.0, straight, up(1.0 - down(math.exp(-epsilon) * max(room, 0.0), 4)))


def renyi(order: float, epsilon: float, before: float) -> Interval:
    """(order, epsilon)-Renyi DP: e^-eps q^{a/(a-1)} <= p <= (e^eps q)^{(a-1)/a}.  [Mironov 2017, Prop. 10]

    >>> box = renyi(10, 0.1, 1e-6)
    >>> f"{box.lower:.6g} {box.upper:.6g}"
    '1.94941e-07 4.35599e-06'
    """
    return probability_range(order, epsilon, before)


def zcdp(rho: float, before: float) -> Interval:
    """rho-zCDP, the best order of Mironov's Prop. 10 in closed form: with l = log(1/q),

        exp(-(sqrt l + sqrt rho)^2) <= p <= exp(-(sqrt l - sqrt rho)^2), the upper end for l > rho (else 1).

    At order a the upper exponent is rho (a - 1) - l + l/a, least at a = sqrt(l/rho); the lower one likewise.

    >>> box = zcdp(0.5, 1e-6)
    >>> f"{box.lower:.4g} {box.upper:.4g}"
    '3.162e-09 0.0001163'
    """
    rho, before = checks.nonnegative("rho", rho), checks.probability("before", before)
    if before == 0:
        return Interval(0.0, 0.0, "zCDP")
    surprise, spread = math.sqrt(-math.log(before)), math.sqrt(rho)
    wide, narrow = (surprise + spread) ** 2, max(surprise - spread, 0.0) ** 2
    error = 16.0 * EPS * wide  # every rounding above is relative to (sqrt l + sqrt rho)^2
    upper = min(1.0, exp_up(-narrow, error))
    return Interval(min(exp_down(-wide, error), upper), upper, "Mironov 2017, Prop. 10, best order")


def gaussian(mu: float, before: float) -> Interval:
    """mu-Gaussian DP: Phi(Phi^{-1}(q) - mu) <= p <= Phi(Phi^{-1}(q) + mu).  [Dong, Roth, Su 2022, Def. 2.6]

    >>> box = gaussian(1.0, 0.05)
    >>> round(box.lower, 6), round(box.upper, 6)
    (0.004086, 0.259511)
    """
    mu, before = checks.nonnegative("mu", mu), checks.probability("before", before)
    largest = tradeoff.gaussian_range(mu, before)[0]
    smallest = tradeoff.gaussian_range(mu, _complement(before), before)[1]
    return Interval(min(smallest, largest), largest, "Gaussian DP")


def of_plan(plan: Asked, before: float) -> Interval:
    """The tightest bounds that the plan's privacy profiles give.

    p is the power of the test that rejects on the event: the largest p is the TPR at FPR q, the smallest
    is the FNR at FPR 1 - q (the complement as a test).
    """
    before = checks.probability("before", before)
    largest = tradeoff.true_positive_rate(plan, before)
    smallest = tradeoff.detection_range(plan, _complement(before), before)[1]
    return Interval(min(smallest, largest), largest, "trade-off function")


@dataclass(frozen=True, slots=True)
class LargestRatio:
    """``ratio`` bounds p / q from above; ``order`` is the Renyi order that gave it."""

    ratio: float
    order: float


def largest_ratio(plan: Asked, before: float, orders: Iterable[float] | None = None) -> LargestRatio:
    """The largest factor by which an event of probability q can become likelier, by Renyi divergences.

    min over a of (e^{D_a} q)^{1-1/a} / q  [Mironov 2017, Prop. 10 and Fig. 2-3]. ``orders`` None optimises
    over the reals in (1, inf]; otherwise the best of those given.
    """
    before = checks.probability("before", before)
    if before == 0:
        raise InvalidArgument("before", "in (0, 1]", before, "for probability 0 ask of_plan")
    directions = checked(plan)
    if any(infinity_mass(c)[1] > 0 for c in directions):
        raise Unanswerable("a loss that may be infinite has no finite Renyi divergence; ask outcomes.of_plan")
    log_q = math.log(before)

    def log_ratio(t: Floats) -> Floats:
        """With a = 1 + t: t/(1+t) (K/t + log q) - log q = (K - log q) / (1 + t), rounded up."""
        k = np.max([log_moment_upper(c, t) for c in directions], axis=0)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray((np.maximum(k, 0.0) - log_q) / (1.0 + t) * (1.0 + 8 * EPS), dtype=np.float64)

    candidates: list[tuple[float, float]] = []
    supremum = max(c.supremum for c in directions) if all(c.determined for c in directions) else math.inf
    if orders is None:
        t, value = minimise(log_ratio, 1e-12, 1e12)
        candidates += [(value, 1.0 + t), (supremum, math.inf)]
    else:
        given = checks.reals("orders", list(orders)).ravel()
        if not given.size or not np.all(given > 1):
            raise InvalidArgument("orders", "a non-empty list of orders in (1, inf]", given.tolist())
        finite = given[np.isfinite(given)]
        candidates += list(zip(log_ratio(finite - 1.0).tolist(), finite.tolist(), strict=True))
        candidates += [(supremum, math.inf)] if np.isinf(given).any() else []
    best, order = min(candidates)
    if best > -log_q:  # p <= 1 whatever the order
        best = -log_q
    return LargestRatio(exp_up(best, 4 * EPS * abs(best)), order)


def largest_ratio_approx(plan: Asked, before: float, composition: str = "tightest") -> float:
    """The same by (epsilon, delta)-guarantees, at the best delta for this one event, rounded up.

    min over epsilon of (e^epsilon q + delta(epsilon)) / q, with delta by basic, advanced or Kairouz composition
    [Mironov 2017, Fig. 2: the (epsilon, delta) curve]. Steps must have bounded losses.

    >>> from dptally import RandomizedResponse
    >>> 2.0 < largest_ratio_approx(50 * RandomizedResponse(0.51), 1e-3, "advanced") < 8.0
    True
    """
    before = checks.probability("before", before)
    if before == 0:
        raise InvalidArgument("before", "in (0, 1]", before, "for probability 0 ask of_plan")
    directions = checked(plan)
    most = max(c.supremum for c in directions)
    if math.isinf(most):
        raise Unanswerable("a step's loss is unbounded, so there is no curve of guarantees; ask outcomes.of_plan")

    def log_ratio(epsilon: Floats) -> Floats:
        found = [approximate.delta(directions, e, composition).value for e in epsilon.tolist()]
        with np.errstate(over="ignore"):
            return np.log(np.exp(np.minimum(epsilon, 709.0)) + np.array(found) / before) * (1 + 8 * EPS) + 8 * EPS

    if most == 0:
        return 1.0
    best = min(minimise(log_ratio, 1e-6 * most, most, start=(1e-3 * most, most))[1], most * (1 + 8 * EPS))
    return min(exp_up(best, 4 * EPS * abs(best)), up(1.0 / before))


def _exp(x: float) -> float:
    return math.exp(x) if x < 709 else math.inf


def _complement(before: float) -> float:
    """1 - q rounded up; exact from 1/2 on."""
    return 1.0 - before if before >= 0.5 or before == 0 else min(1.0, up(1.0 - before))


def _rest(before: float) -> float:
    """1 - q rounded down; exact from 1/2 on."""
    return 1.0 - before if before >= 0.5 or before == 0 else down(1.0 - before)
