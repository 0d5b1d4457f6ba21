r"""Small epsilons through the other direction of the same pair.

With S replaced by its complement, sup P(S) - e^eps Q(S) = 1 - e^eps + e^eps sup Q(S) - e^-eps P(S), so

    delta_{P,Q}(eps) = e^eps delta_{Q,P}(-eps) - (e^eps - 1).

Rare large losses of one direction are rare very negative losses of the other, which do not affect the tilted integral:
one contour does. The difference costs eps / delta in accuracy, so this is for eps not far above delta: next to the
total variation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dptally.accounting.certified.big_jump import plan as jumps
from dptally.accounting.certified.bounds import NOTHING_KNOWN, BoundedProfile, LogBounds
from dptally.accounting.certified.contour import inversion
from dptally.accounting.certified.solve import solve
from dptally.accounting.certified.tuning import STANDARD, Tuning
from dptally.law import Composition
from dptally.numerics.rounding import EPS

__all__ = ["Reversed", "for_delta", "for_epsilon"]


@dataclass(frozen=True, slots=True)
class Reversed:
    """Bounds of log delta(eps) from those of the other direction at -eps."""

    other: BoundedProfile
    saddle: float

    def estimate(self, epsilon: float) -> float:
        """log delta(eps), not a bound."""
        value = math.exp(min(self.other.estimate(-epsilon) + epsilon, 700.0)) - math.expm1(min(epsilon, 700.0))
        return math.log(value) if value > 0 else -math.inf

    def log_delta(self, epsilon: float) -> LogBounds:
        """(lower, upper, slope): certified bounds of log delta(eps), and an estimate of -d log delta / d eps."""
        if not epsilon < 300.0:
            return NOTHING_KNOWN
        low, high, rate = self.other.log_delta(-epsilon)
        grown, lost = math.exp(min(high, 0.0) + epsilon), math.expm1(epsilon)
        blur = EPS * (8 + 4 * abs(epsilon))
        upper = grown * (1 + blur + 4 * EPS * abs(high)) - lost + 4 * EPS * (grown + abs(lost))
        lower = -math.inf
        if low > -700.0:
            least = math.exp(low + epsilon)
            lower = least * (1 - blur - 4 * EPS * abs(low)) - lost - 4 * EPS * (least + abs(lost))
        fall = math.exp(epsilon) - grown * (1 + rate)  # e^eps (1 - D - rate D), D the other delta
        slope = fall / upper if upper > 0 and fall > 0 else 0.0
        log_upper = min(0.0, math.log(upper) + 4 * EPS * (1 + abs(math.log(upper)))) if upper > 0 else -math.inf
        log_lower = math.log(lower) - 4 * EPS * (1 + abs(math.log(lower))) if lower > 0 else -math.inf
        return LogBounds(log_lower, log_upper, slope)


def for_epsilon(composition: Composition, epsilon: float, tuning: Tuning = STANDARD) -> Iterator[Reversed]:
    """Bounds near this eps, from each contour of the other direction that can be had."""
    other = _reverse(composition)
    if other is None or not 0 <= epsilon < 300.0:
        return
    plain = inversion.for_epsilon(other, -epsilon, tuning.contour)
    if plain is not None:
        yield Reversed(plain, epsilon)
    elif (
        epsilon <= tuning.swapped.small * composition.supremum
        and jumps.applies(other)
        and not jumps.applies(composition)
    ):
        for found in jumps.for_epsilon(other, 0.0, -1e-3, tuning):
            yield Reversed(found, epsilon)


def for_delta(composition: Composition, log_delta: float, tuning: Tuning = STANDARD) -> Iterator[Reversed]:
    """Bounds near the eps where delta(eps) is exp(log_delta): first about eps = 0, then about what that shows."""
    at = 0.0
    for _ in range(2):
        for found in for_epsilon(composition, at, tuning):
            if found.estimate(0.0) - log_delta > tuning.swapped.far_below:
                return
            yield found
            at = solve(found, log_delta, tuning.search) or 0.0
        if not at > tuning.swapped.near * math.exp(log_delta):
            return


def _reverse(composition: Composition) -> Composition | None:
    """The other direction of the same pair, where every law knows it."""
    parts = [(law.reverse(), n) for law, n in composition.parts]
    known = [(law, n) for law, n in parts if law is not None]
    return Composition.of(known) if len(known) == len(parts) else None
