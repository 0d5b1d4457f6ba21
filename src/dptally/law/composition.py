"""Independent losses that add up: the law of a whole plan in one direction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dptally.interval import Interval
from dptally.law.law import Law, Numbers
from dptally.numerics.exact import between
from dptally.numerics.rounding import down, up

__all__ = ["Composition"]

_FEW = 32  # steps with mass at infinity, up to which their product is formed exactly


@dataclass(frozen=True, slots=True)
class Composition:
    """``count`` independent copies of each law, in a canonical order.

    Build it with :meth:`of`: equal laws merge their counts, families that are closed under addition collapse into one
    law, and the order of the arguments is forgotten. ``stated`` keeps the steps before they collapsed, for the
    theorems that compose one guarantee per step; it takes no part in comparisons, since both tell the same loss.
    """

    parts: tuple[tuple[Law, int], ...]
    stated: tuple[tuple[Law, int], ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.stated:
            object.__setattr__(self, "stated", self.parts)

    @classmethod
    def of(cls, parts: Iterable[tuple[Law, int]]) -> Composition:
        parts = [(law, count) for law, count in parts]
        if len(parts) == 1 and parts[0][1] > 0:
            only, family = tuple(parts), type(parts[0][0])
            return cls(((family.collapse(only), 1),), only) if family.collapses else cls(only)
        counts: Counter[Law] = Counter()
        for law, count in parts:
            counts[law] += count
        ordered = sorted(((law, n) for law, n in counts.items() if n > 0), key=lambda part: part[0].sort_key)
        closed: dict[type[Law], list[tuple[Law, int]]] = {}
        rest: list[tuple[Law, int]] = []
        for law, n in ordered:
            if type(law).collapses:
                closed.setdefault(type(law), []).append((law, n))
            else:
                rest.append((law, n))
        rest += [(family.collapse(tuple(group)), 1) for family, group in closed.items()]
        return cls(tuple(sorted(rest, key=lambda part: part[0].sort_key)), tuple(ordered))

    def log_moment(self, t: Numbers) -> Numbers:
        """K(t) = sum of count * K_j(t)."""
        t = np.asarray(t)
        total: Numbers = np.zeros(t.shape, dtype=np.result_type(t.dtype, np.float64))
        for law, n in self.parts:
            total = total + n * law.log_moment(t)
        return total

    def optimistic(self) -> Composition:
        """What the declared plan dominates: lower ends are those of this composition. Itself where nothing was rounded
        to the safe side.
        """
        if self.steps == 1 and self.parts[0][0].attained_once:
            return self
        twins = [(law.optimistic(), n) for law, n in self.parts]
        if all(twin is law for (twin, _), (law, _) in zip(twins, self.parts, strict=True)):
            return self
        return Composition.of(twins)

    def divergences(self) -> Composition:
        """What the Renyi divergences are taken from; itself unless a law knows better than its pair."""
        better = [(law.divergences(), n) for law, n in self.parts]
        return (
            self if all(one is law for (one, _), (law, _) in zip(better, self.parts, strict=True)) else self.of(better)
        )

    @property
    def mean(self) -> float:
        return math.fsum(n * law.mean for law, n in self.parts)

    @property
    def log_survival(self) -> float:
        """log P(every loss is finite) = sum of count * log1p(-infinity_mass): 0 or negative; an estimate."""
        return math.fsum(
            n * math.log1p(-law.infinity_mass) if law.infinity_mass < 1 else -math.inf for law, n in self.parts
        )

    @property
    def infinity_mass_interval(self) -> Interval:
        """Bounds of P(L = +inf) = 1 - prod (1 - p_j)^n_j, monotone in every p_j."""
        masses = [(law.infinity_mass_interval, n) for law, n in self.parts]
        if not any(mass.upper > 0 for mass, _ in masses):
            return Interval(0.0, 0.0)
        return Interval(
            _at_infinity([(mass.lower, n) for mass, n in masses if mass.lower > 0])[0],
            _at_infinity([(mass.upper, n) for mass, n in masses if mass.upper > 0])[1],
        )

    @property
    def infinity_mass(self) -> float:
        """P(L = +inf), rounded up."""
        return self.infinity_mass_interval.upper

    @property
    def supremum_interval(self) -> Interval:
        """Bounds of the largest possible finite loss; -inf where no loss is finite."""
        bounds = [(law.supremum_interval, n) for law, n in self.parts]
        lower = _weighted([(box.lower, n) for box, n in bounds], -math.inf)
        upper = _weighted([(box.upper, n) for box, n in bounds], -math.inf)
        return Interval(lower[0], upper[1])

    @property
    def infimum_interval(self) -> Interval:
        """Bounds of the least possible loss; +inf where no loss is finite."""
        bounds = [(law.infimum_interval, n) for law, n in self.parts]
        lower = _weighted([(box.lower, n) for box, n in bounds], math.inf)
        upper = _weighted([(box.upper, n) for box, n in bounds], math.inf)
        return Interval(lower[0], upper[1])

    @property
    def supremum(self) -> float:
        """The largest possible finite loss, rounded up."""
        return self.supremum_interval.upper

    @property
    def infimum(self) -> float:
        """The least possible loss, rounded down."""
        return self.infimum_interval.lower

    def reverses(self, other: Composition) -> bool:
        """Whether ``other`` is the loss of the same pair in the other direction, as the laws state it.

        Each part must state its counterpart (:meth:`Law.is_reverse_of`); where one does not, nothing is concluded.
        """
        if not (self.determined and other.determined) or len(self.parts) != len(other.parts):
            return False
        left = list(other.parts)
        for law, n in self.parts:
            turned = next((part for part in left if part[1] == n and law.is_reverse_of(part[0])), None)
            if turned is None:
                return False
            left.remove(turned)
        return True

    def dominating(self) -> Composition | None:
        """The composition with a dominating law for every part; None where some part has none."""
        laws = [(law.dominating(), n) for law, n in self.parts]
        return Composition.of((law, n) for law, n in laws if law) if all(law for law, _ in laws) else None

    @property
    def determined(self) -> bool:
        return all(law.determined for law, _ in self.parts)

    @property
    def steps(self) -> int:
        return sum(n for _, n in self.parts)


def _weighted(losses: list[tuple[float, int]], empty: float) -> tuple[float, float]:
    """The closest doubles around the exact sum of count * loss; ``empty`` where a law has no finite loss at all."""
    infinite = {loss for loss, _ in losses if math.isinf(loss)}
    if infinite:
        end = empty if empty in infinite else -empty
        return end, end
    if len(losses) == 1 and losses[0][1] == 1:
        return losses[0][0], losses[0][0]
    if not losses:
        return 0.0, 0.0
    first, *others = (n * Fraction(loss) for loss, n in losses)
    return between(sum(others, first))


def _at_infinity(masses: list[tuple[float, int]]) -> tuple[float, float]:
    """Bounds of 1 - prod (1 - p)^n for exact p > 0: by exact rationals where they stay small, else by logarithms.

    The sum of n log1p(-p) is formed from terms rounded outwards (log1p is within 2 ulps) and added exactly; -expm1 is
    monotone, and within 2 ulps itself.
    """
    if any(p == 1 for p, _ in masses):
        return 1.0, 1.0
    if sum(n for _, n in masses) <= _FEW:
        low, high = between(1 - math.prod(((1 - Fraction(p)) ** n for p, n in masses), start=Fraction(1)))
        return max(low, 0.0), min(high, 1.0)
    logs = [(math.log1p(-p), n) for p, n in masses]
    least, most = (_weighted([(moved(log, 2), n) for log, n in logs], 0.0) for moved in (down, up))
    return max(down(-math.expm1(most[1]), 2), 0.0), min(up(-math.expm1(least[0]), 2), 1.0)
