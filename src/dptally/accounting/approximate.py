"""Approximate differential privacy: (epsilon_j, delta_j) for each step, composed by the classic theorems.

Every step enters as the pair that dominates its guarantee: loss infinite with probability delta_j, else
between -epsilon_j and epsilon_j [Kairouz, Oh, Viswanath 2015, Thm. 3.2]. So the infinite part of the
composition has the mass p = 1 - prod (1 - delta_j), and the theorems below refer to the rest, with (delta -
p)/(1 - p).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dptally import checks
from dptally.accounting.answer import Answer, larger
from dptally.accounting.moments import Asked, checked, infinity_mass
from dptally.checks import Floats
from dptally.errors import InvalidArgument, Unanswerable
from dptally.law import Composition, Law
from dptally.numerics.rounding import down, up
from dptally.numerics.search import first_true

__all__ = [
    "COMPOSITIONS",
    "Cuts",
    "Guarantee",
    "delta",
    "epsilon",
    "guarantees",
    "implied_delta",
    "implied_epsilon",
]

#: how the steps' guarantees compose; "tightest" is whichever is smallest
COMPOSITIONS = {
    "basic": "basic composition, and Liu et al. 2022 (GDPT), Thm. 2.1, for what is left of delta",
    "advanced": "Dwork, Rothblum, Vadhan 2010, Thm. III.3: sqrt(2 log(1/d') sum e^2) + sum e (exp(e) - 1)",
    "kairouz": "Kairouz, Oh, Viswanath 2015, Thm. 3.5: sum e tanh(e/2) + sqrt(2 log(1/d') sum e^2)",
}
_SHARE = 0.5  # of the free delta, given to the steps whose loss is unbounded; the rest is left to the theorem
_MOST_ZOOMS = 10  # towards a cut at epsilon 0 none of them would be the last
_ONE_SIDED = (
    "advanced composition needs each step's guarantee in both directions, and in a mixed plan with two "
    "directions it is not known which belong together; ask for basic composition or another framework"
)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """``count`` steps, each (epsilon, delta)-DP: in both directions (``two_sided``) or in the one at hand
    only.
    """

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


def guarantees(plan: Asked, free: float = 0.0, cuts: Cuts | None = None) -> list[list[Guarantee]]:
    """The steps' (epsilon, delta), one list for each direction that must be composed by itself.

    A bounded loss gives (sup L, P(L = inf)). An unbounded one is cut by its own profile at an equal share of
    ``free``, a part of the delta asked for. The guarantee holds in both directions where the plan has one
    direction (both are alike) or consists of copies of one step (the larger of its two). In a mixed plan with
    two directions it is not known which laws belong together, and each direction stands alone.
    """
    cuts = Cuts() if cuts is None else cuts
    directions = checked(plan)
    lists = [_guarantees_one(composition, free, cuts) for composition in directions]
    if not _paired(directions):
        return [[replace(step, two_sided=False) for step in steps] for steps in lists]
    if len(lists) == 1:
        return lists
    first = [steps[0] for steps in lists]
    return [[Guarantee(max(s.epsilon for s in first), max(s.delta for s in first), first[0].count)]]


def _paired(directions: Sequence[Composition]) -> bool:
    """Whether it is known which law of one direction belongs to which of the other."""
    shapes = {tuple(n for _, n in composition.stated) for composition in directions}
    return len(directions) == 1 or (len(shapes) == 1 and all(len(shape) == 1 for shape in shapes))


def _guarantees_one(composition: Composition, free: float, cuts: Cuts) -> list[Guarantee]:
    number = sum(n for law, n in composition.stated if math.isinf(law.supremum))
    share = free / max(number, 1) * (1 - 2.0**-44)  # a hair less, so that the sum cannot round past ``free``
    if number and not share > 0:
        raise Unanswerable("a step's loss is unbounded, so it has no guarantee at this delta; use a larger delta")
    out = []
    for law, n in composition.stated:
        if math.isinf(law.supremum):
            out.append(Guarantee(cuts.epsilon(law, share), min(up(law.infinity_mass + share), 1.0), n))
        else:
            out.append(Guarantee(max(law.supremum, 0.0), law.infinity_mass, n))
    return out


@dataclass(frozen=True, slots=True)
class Cuts:
    """Cuts unbounded losses: the epsilon at which a law's own profile is at most a given share of delta.

    One scan of each profile serves a whole question. It is refined where it is used, 16 times closer each
    time, until neighbours agree to ``tolerance``; what was looked at is kept and serves again.
    """

    tolerance: float = 1e-10
    scans: dict[Law, tuple[Floats, Floats]] = field(default_factory=dict)

    def epsilon(self, law: Law, share: float) -> float:
        """An epsilon with certified profile at most ``share``; the smallest to within the grid."""
        target = down(math.log(share), 2)
        if law not in self.scans:
            self.scans[law] = _scan(law)
        for _ in range(_MOST_ZOOMS):
            grid, upper = self.scans[law]
            enough = upper <= target
            i = int(np.argmax(enough))
            if not enough[i]:
                raise Unanswerable(
                    "a step's profile does not fall to its share of delta; use dptally.accounting.renyi.epsilon"
                )
            if i == 0 or grid[i] - grid[i - 1] <= self.tolerance * grid[i]:
                break
            closer = np.linspace(grid[i - 1], grid[i], 17)[1:-1]
            self.scans[law] = np.insert(grid, i, closer), np.insert(upper, i, law.log_profile(closer)[1])
        return float(grid[i])  # pyright: ignore[reportPossiblyUnboundVariable]


def _scan(law: Law) -> tuple[Floats, Floats]:
    """(epsilons, upper bounds of the log profile), from the first decade where it is below 1e-320 down."""
    if not law.determined:
        raise Unanswerable(
            f"{type(law).__name__} bounds Renyi divergences only and gives no (epsilon, delta) by itself; "
            "use dptally.accounting.renyi.epsilon"
        )
    high = 1e-9
    while law.log_profile(np.array([high]))[1][0] > -740 and high < 1e30:
        high *= 10
    grid = np.concatenate([[0.0], np.geomspace(1e-6 * high, high, 121)])
    return grid, law.log_profile(grid)[1]


# -- questions -----------------------------------------------------------------------------------------------


def epsilon(plan: Asked, delta: float, composition: str = "tightest") -> Answer:
    """The epsilon at ``delta`` by basic, advanced or Kairouz-Oh-Viswanath composition, rounded up.

    With p the mass at infinity and d' = (delta - p)/(1 - p): "basic" is sum e_j, then Theorem 2.1 at d';
    "advanced" is sqrt(2 log(1/d') sum e_j^2) + sum e_j (exp(e_j) - 1); "kairouz" has e_j tanh(e_j/2) in the
    second sum; "tightest" is the smallest. Unbounded steps are cut at all of delta - p ("basic") or at half
    of it, divided equally.
    """
    delta = checks.probability("delta", delta)
    return _epsilon(checked(plan), delta, _names(composition), Cuts())


def delta(plan: Asked, epsilon: float, composition: str = "tightest") -> Answer:
    """The delta at ``epsilon`` by the same theorems, rounded up.

    With unbounded steps it is found by bisection, as a delta whose own epsilon is small enough.
    """
    epsilon = checks.nonnegative("epsilon", epsilon)
    names, directions = _names(composition), checked(plan)
    if all(math.isfinite(c.supremum) for c in directions):
        return larger([_delta(steps, epsilon, names) for steps in guarantees(directions)])

    cuts = Cuts(tolerance=1e-3)

    def small(log_delta: float) -> bool:
        return _epsilon(directions, math.exp(log_delta), names, cuts).value <= epsilon

    floor = max(infinity_mass(c)[1] for c in directions)
    low, high = -700.0 if floor == 0 else math.log(floor), -1e-12
    value = math.exp(first_true(small, low, high, 1e-4 / -low)) if small(high) else 1.0
    return Answer(value, "approximate", COMPOSITIONS[names[0]], None, "by bisection over delta")


def _epsilon(directions: tuple[Composition, ...], delta: float, names: tuple[str, ...], cuts: Cuts) -> Answer:
    masses = [infinity_mass(c) for c in directions]
    if any(delta < lower for lower, _ in masses):
        return Answer(math.inf, "approximate", COMPOSITIONS["basic"], None, "the mass at infinity is above delta")
    left = max(down(delta - max(upper for _, upper in masses)), 0.0)
    answers, reasons = [], []
    shared = functools.cache(lambda free: guarantees(directions, free, cuts))
    for name in names if _paired(directions) or names != tuple(COMPOSITIONS) else ("basic",):
        try:
            lists = shared(left if name == "basic" else _SHARE * left)
            answers.append(larger([_by(name, steps, delta) for steps in lists]))
        except Unanswerable as error:
            reasons.append(f"{name}: {error}")
    if not answers:
        raise Unanswerable("; ".join(reasons))
    return min(answers, key=lambda answer: answer.value)


def _by(name: str, steps: Sequence[Guarantee], delta: float) -> Answer:
    mass = _mass(steps)
    if mass > delta:
        raise Unanswerable(f"the steps' deltas add up to {mass!r}, above delta {delta!r}; ask for a larger delta")
    rest = _rest(delta, mass)
    if name == "basic":
        value = _implied(_basic(steps), rest, all(step.two_sided for step in steps))
    else:
        value = _advanced(steps, rest, name)
    detail = f"{name}; the steps' deltas use {mass!r} of delta" if mass else name
    return Answer(value, "approximate", COMPOSITIONS[name], None, detail)


def _basic(steps: Sequence[Guarantee]) -> float:
    total = math.fsum(step.count * step.epsilon for step in steps)
    return total if total == 0 or (len(steps) == 1 and steps[0].count == 1) else up(total, 2)


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
        raise Unanswerable(_ONE_SIDED)
    squares = _squares(steps)
    if squares == 0:
        return 0.0
    if rest == 0:
        raise Unanswerable("advanced composition needs a delta above what the steps already use")
    return up(_drift(steps, name) + math.sqrt(2 * up(-math.log(rest), 2) * squares), 4)


def _squares(steps: Sequence[Guarantee]) -> float:
    total = math.fsum(step.count * step.epsilon * step.epsilon for step in steps)
    return up(total, 4) if total > 0 else 0.0


def _drift(steps: Sequence[Guarantee], name: str) -> float:
    """An upper bound of the expected loss: e (e^e - 1) or the exact e tanh(e/2) of the dominating pair."""
    if name == "advanced":
        if any(step.epsilon > 700 for step in steps):
            return math.inf
        terms = [step.count * step.epsilon * math.expm1(step.epsilon) for step in steps]
    else:
        terms = [step.count * step.epsilon * math.tanh(0.5 * step.epsilon) for step in steps]
    return up(math.fsum(terms), 8)


def _delta(steps: Sequence[Guarantee], epsilon: float, names: tuple[str, ...]) -> Answer:
    two_sided = all(step.two_sided for step in steps)
    answers = []
    for name in names:
        if name == "basic":
            value = _implied_delta(_basic(steps), _mass(steps), epsilon, two_sided)
        elif two_sided:
            value = _advanced_delta(steps, epsilon, name)
        else:
            continue
        answers.append(Answer(value, "approximate", COMPOSITIONS[name], None, name))
    if not answers:
        raise Unanswerable(_ONE_SIDED)
    return min(answers, key=lambda answer: answer.value)


def _advanced_delta(steps: Sequence[Guarantee], epsilon: float, name: str) -> float:
    """p + (1 - p) exp(-(epsilon - drift)^2 / (2 sum e^2)) right of the drift, else 1."""
    distance, squares, mass = down(epsilon - _drift(steps, name)), _squares(steps), _mass(steps)
    if squares == 0:
        return mass
    exponent = distance * distance / (2 * squares) if distance > 0 else 0.0
    rest = up(math.exp(-max(down(exponent, 4), 0.0)), 2)
    return min(up(mass + (1 - mass) * rest, 4), 1.0)


def _names(composition: str) -> tuple[str, ...]:
    if composition == "tightest":
        return tuple(COMPOSITIONS)
    if composition not in COMPOSITIONS:
        raise InvalidArgument("composition", f"one of {['tightest', *COMPOSITIONS]}", composition)
    return (composition,)
