"""Approximate differential privacy: (epsilon_j, delta_j) for each step, composed by the classic theorems.

Every step enters as the pair that dominates its guarantee: loss infinite with probability delta_j, else
between -epsilon_j and epsilon_j [Kairouz, Oh, Viswanath 2015, Thm. 3.2]. So the infinite part of the
composition has the mass p = 1 - prod (1 - delta_j), and the theorems below speak of the rest, with (delta -
p)/(1 - p).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dptally import checks
from dptally.accounting.answer import Answer, larger
from dptally.accounting.moments import checked, infinity_mass
from dptally.errors import InvalidArgument, Unanswerable
from dptally.law import Composition, Law
from dptally.numerics.rounding import down, up
from dptally.numerics.search import first_true

__all__ = ["COMPOSITIONS", "Guarantee", "delta", "epsilon", "guarantees", "implied_delta", "implied_epsilon"]

#: how the steps' guarantees compose; "tightest" is whichever is smallest
COMPOSITIONS = {
    "basic": "basic composition, and Liu et al. 2022 (GDPT), Thm. 2.1, for what is left of delta",
    "advanced": "Dwork, Rothblum, Vadhan 2010, Thm. III.3: sqrt(2 log(1/d') sum e^2) + sum e (exp(e) - 1)",
    "kairouz": "Kairouz, Oh, Viswanath 2015, Thm. 3.5: sum e tanh(e/2) + sqrt(2 log(1/d') sum e^2)",
}
_SHARE = 0.5  # of the free delta, given to the steps whose loss is unbounded; the rest is left to the theorem


@dataclass(frozen=True, slots=True)
class Guarantee:
    """``count`` steps, each (epsilon, delta)-DP in both directions (``two_sided``) or in the one at hand."""

    epsilon: float
    delta: float
    count: int = 1
    two_sided: bool = True


# -- what one guarantee implies ------------------------------------------------------------------------------


def implied_delta(epsilon0: float, delta0: float, epsilon: float) -> float:
    """The smallest delta at ``epsilon`` that (epsilon0, delta0)-DP implies, rounded up.

    delta0 + (1 - delta0) (e^epsilon0 - e^epsilon)+ / (1 + e^epsilon0)  [Liu et al. 2022 (GDPT), Thm. 2.1]: an
    equivalence, attained by the pair that dominates the guarantee.

    >>> round(implied_delta(1.0, 0.0, 0.5), 12)
    0.287649136645
    """
    epsilon0, delta0 = checks.nonnegative("epsilon0", epsilon0), checks.probability("delta0", delta0)
    epsilon = checks.nonnegative("epsilon", epsilon)
    return _implied_delta(epsilon0, delta0, epsilon)


def _implied_delta(epsilon0: float, delta0: float, epsilon: float, two_sided: bool = True) -> float:
    if epsilon >= epsilon0:
        return delta0
    part = -math.expm1(down(epsilon - epsilon0)) / (1 + math.exp(-epsilon0) if two_sided else 1.0)
    return min(up(delta0 + (1 - delta0) * part, 8), 1.0)


def implied_epsilon(epsilon0: float, delta0: float, delta: float) -> float:
    """The smallest epsilon at ``delta`` that (epsilon0, delta0)-DP implies, rounded up; inf where delta <
    delta0.

    log(e^epsilon0 - x (1 + e^epsilon0)) with x = (delta - delta0)/(1 - delta0), at least 0: the inverse of
    :func:`implied_delta`  [Liu et al. 2022 (GDPT), Thm. 2.1].

    >>> round(implied_epsilon(10.0, 0.0, 0.1), 12)
    9.894634439893
    """
    epsilon0, delta0 = checks.nonnegative("epsilon0", epsilon0), checks.probability("delta0", delta0)
    delta = checks.probability("delta", delta)
    if delta < delta0:
        return math.inf
    return _implied(epsilon0, _rest(delta, delta0))


def _rest(delta: float, mass: float) -> float:
    """(delta - mass)/(1 - mass), rounded down: the delta left to the finite losses."""
    if delta >= 1:
        return 1.0
    if mass == 0:
        return delta
    return max(down((delta - mass) / (1 - mass), 3), 0.0) if delta > mass else 0.0


def _implied(epsilon0: float, x: float, two_sided: bool = True) -> float:
    """epsilon0 + log(1 - x (1 + e^-epsilon0)), rounded up, in [0, epsilon0].

    A guarantee of one direction only is dominated by a constant loss epsilon0 instead: epsilon0 + log(1 - x).
    """
    loss = down(x * (1 + math.exp(-epsilon0)) if two_sided else x, 4)
    if loss <= 0:
        return epsilon0
    if loss >= 1:
        return 0.0
    return min(max(up(epsilon0 + up(math.log1p(-loss), 2)), 0.0), epsilon0)


# -- the guarantees of the steps -----------------------------------------------------------------------------


def guarantees(composition: Composition, symmetric: bool, free: float = 0.0) -> tuple[list[Guarantee], str]:
    """Each step's (epsilon, delta), and how they were found.

    A bounded loss gives (max(sup L, -inf L), P(L = inf)), which holds in both directions where nothing is
    infinite or the two directions are alike (``symmetric``). An unbounded one is cut by its own profile at an
    equal share of ``free``, part of the delta asked for; that holds in the direction at hand, and in both
    where they are alike.
    """
    unbounded = sum(n for law, n in composition.parts if math.isinf(law.supremum))
    if unbounded and not free > 0:
        raise Unanswerable(
            "a step's loss is unbounded, so it has no guarantee at this delta; ask with a larger delta"
        )
    share = down(free / unbounded, 2) if unbounded else 0.0
    out = []
    for law, n in composition.parts:
        if math.isinf(law.supremum):
            out.append(Guarantee(_cut(law, share), min(up(law.infinity_mass + share), 1.0), n, symmetric))
        elif math.isinf(law.infimum):
            out.append(Guarantee(max(law.supremum, 0.0), law.infinity_mass, n, symmetric))
        else:
            size = max(law.supremum, -law.infimum)
            out.append(Guarantee(size, law.infinity_mass, n, symmetric or law.infinity_mass == 0))
    return out, f"{unbounded} unbounded steps cut at delta {share:.3g} each" if unbounded else ""


def _cut(law: Law, share: float) -> float:
    """The smallest epsilon whose certified profile is at most ``share``, found by bisection."""
    if not law.determined:
        raise Unanswerable(
            f"{type(law).__name__} bounds Renyi divergences only and gives no (epsilon, delta) by itself; "
            "ask the Renyi framework"
        )
    target = down(math.log(share), 2)

    def enough(epsilon: float) -> bool:
        return bool(law.log_profile(np.array([epsilon]))[1][0] <= target)

    if enough(0.0):
        return 0.0
    high = 1.0
    while not enough(high):
        high *= 4
        if high > 1e150:
            raise Unanswerable(
                "a step's profile does not fall to its share of delta; ask the Renyi framework"
            )
    return first_true(enough, 0.0, high, 1e-13)


# -- questions -----------------------------------------------------------------------------------------------


def epsilon(directions: Sequence[Composition], delta: float, composition: str = "tightest") -> Answer:
    """The epsilon at ``delta`` by basic, advanced or Kairouz-Oh-Viswanath composition, rounded up.

    With p the mass at infinity and d' = (delta - p)/(1 - p): "basic" is sum e_j, then Theorem 2.1 at d';
    "advanced" is sqrt(2 log(1/d') sum e_j^2) + sum e_j (exp(e_j) - 1); "kairouz" has e_j tanh(e_j/2) in the
    second sum; "tightest" is the smallest. Unbounded steps are cut at half of delta - p, divided equally
    (basic alone: all of it).
    """
    delta = checks.probability("delta", delta)
    names = _names(composition)
    directions = checked(directions)
    return larger([_epsilon_one(c, delta, names, len(directions) == 1) for c in directions])


def delta(directions: Sequence[Composition], epsilon: float, composition: str = "tightest") -> Answer:
    """The delta at ``epsilon`` by the same theorems, rounded up: the smallest for which :func:`epsilon` stays
    below it.
    """
    epsilon = checks.nonnegative("epsilon", epsilon)
    names = _names(composition)
    directions = checked(directions)
    return larger([_delta_one(c, epsilon, names, len(directions) == 1) for c in directions])


def _epsilon_one(composition: Composition, delta: float, names: tuple[str, ...], symmetric: bool) -> Answer:
    lower, upper = infinity_mass(composition)
    if delta < lower:
        return Answer(
            math.inf, "approximate", COMPOSITIONS["basic"], None, "the mass at infinity is above delta"
        )
    answers, reasons = [], []
    for name in names:
        free = max(down(delta - upper), 0.0) * (1.0 if name == "basic" else _SHARE)
        try:
            answers.append(_by(name, composition, delta, free, symmetric))
        except Unanswerable as error:
            reasons.append(f"{name}: {error}")
    if not answers:
        raise Unanswerable("; ".join(reasons))
    return min(answers, key=lambda answer: answer.value)


def _by(name: str, composition: Composition, delta: float, free: float, symmetric: bool) -> Answer:
    steps, detail = guarantees(composition, symmetric, free)
    mass = _mass(steps)
    if mass > delta:
        raise Unanswerable(f"the steps' deltas add up to {mass!r}, to within rounding above delta {delta!r}")
    rest = _rest(delta, mass)
    if name == "basic":
        value = _implied(_basic(steps), rest, all(step.two_sided for step in steps))
    else:
        value = _advanced(steps, rest, name)
    return Answer(value, "approximate", COMPOSITIONS[name], None, f"{name}{', ' + detail if detail else ''}")


def _basic(steps: Sequence[Guarantee]) -> float:
    total = math.fsum(step.count * step.epsilon for step in steps)
    return total if len(steps) == 1 and steps[0].count == 1 else up(total, 2)


def _mass(steps: Sequence[Guarantee]) -> float:
    leaking = [step for step in steps if step.delta > 0]
    if not leaking:
        return 0.0
    if len(leaking) == 1 and leaking[0].count == 1:
        return leaking[0].delta
    if any(step.delta == 1 for step in leaking):
        return 1.0
    return min(up(-math.expm1(math.fsum(step.count * math.log1p(-step.delta) for step in leaking)), 8), 1.0)


def _advanced(steps: Sequence[Guarantee], rest: float, name: str) -> float:
    if not all(step.two_sided for step in steps):
        raise Unanswerable(
            "advanced composition needs each step's guarantee in both directions at once, and this plan states "
            "its directions apart; ask for basic composition or another framework"
        )
    if rest == 0:
        raise Unanswerable("advanced composition needs a delta above what the steps already use")
    drift, squares = _drift(steps, name), up(math.fsum(s.count * s.epsilon * s.epsilon for s in steps), 4)
    return up(drift + math.sqrt(2 * up(-math.log(rest), 2) * squares), 4)


def _drift(steps: Sequence[Guarantee], name: str) -> float:
    """An upper bound of the expected loss: e (e^e - 1) or the exact e tanh(e/2) of the dominating pair."""
    if name == "advanced":
        if any(step.epsilon > 700 for step in steps):
            return math.inf
        terms = [step.count * step.epsilon * math.expm1(step.epsilon) for step in steps]
    else:
        terms = [step.count * step.epsilon * math.tanh(0.5 * step.epsilon) for step in steps]
    return up(math.fsum(terms), 8)


def _delta_one(composition: Composition, epsilon: float, names: tuple[str, ...], symmetric: bool) -> Answer:
    if math.isfinite(composition.supremum):
        steps, _ = guarantees(composition, symmetric)
        return min(_deltas(steps, epsilon, names), key=lambda answer: answer.value)

    def small(log_delta: float) -> bool:  # any delta whose own epsilon is small enough is an answer
        return _epsilon_one(composition, math.exp(log_delta), names, symmetric).value <= epsilon

    floor = infinity_mass(composition)[1]
    low = -700.0 if floor == 0 else math.log(floor) + 1e-12
    value = 1.0
    if small(-1e-12):
        value = math.exp(first_true(small, low, -1e-12, 1e-4 / max(-low, 1.0)))
    return Answer(value, "approximate", COMPOSITIONS[names[0]], None, "by bisection over delta")


def _deltas(steps: Sequence[Guarantee], epsilon: float, names: tuple[str, ...]) -> list[Answer]:
    mass, out = _mass(steps), []
    for name in names:
        if name == "basic":
            value = _implied_delta(_basic(steps), mass, epsilon, all(step.two_sided for step in steps))
        elif not all(step.two_sided for step in steps):
            continue
        else:
            distance = down(epsilon - _drift(steps, name), 1)
            squares = up(math.fsum(s.count * s.epsilon * s.epsilon for s in steps), 4)
            exponent = distance * distance / (2 * squares) if distance > 0 and squares > 0 else 0.0
            rest = up(math.exp(-max(down(exponent, 4), 0.0)), 2)
            value = min(up(mass + (1 - mass) * rest, 4), 1.0)
        out.append(Answer(value, "approximate", COMPOSITIONS[name], None, name))
    if not out:
        raise Unanswerable(
            "advanced composition needs each step's guarantee in both directions at once; "
            "ask for basic composition"
        )
    return out


def _names(composition: str) -> tuple[str, ...]:
    if composition == "tightest":
        return tuple(COMPOSITIONS)
    if composition not in COMPOSITIONS:
        raise InvalidArgument("composition", f"one of {['tightest', *COMPOSITIONS]}", composition)
    return (composition,)
