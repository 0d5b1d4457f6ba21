"""Independent losses that add up: the law of a whole plan in one direction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from dptally.law.law import Law, Numbers
from dptally.numerics.rounding import down, up

__all__ = ["Composition"]


@dataclass(frozen=True, slots=True)
class Composition:
    """``count`` independent copies of each law, in a canonical order.

    Build it with :meth:`of`: equal laws merge their counts, families that are closed under addition collapse into one
    law, and the order of the arguments is forgotten.
    """

    parts: tuple[tuple[Law, int], ...]

    @classmethod
    def of(cls, parts: Iterable[tuple[Law, int]]) -> Composition:
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
        return cls(tuple(sorted(rest, key=lambda part: part[0].sort_key)))

    def log_moment(self, t: Numbers) -> Numbers:
        """K(t) = sum of count * K_j(t)."""
        t = np.asarray(t)
        total: Numbers = np.zeros(t.shape, dtype=np.result_type(t.dtype, np.float64))
        for law, n in self.parts:
            total = total + n * law.log_moment(t)
        return total

    @property
    def mean(self) -> float:
        return math.fsum(n * law.mean for law, n in self.parts)

    @property
    def log_survival(self) -> float:
        """log P(every loss is finite) = sum of count * log1p(-infinity_mass): 0 or negative."""
        return math.fsum(
            n * math.log1p(-law.infinity_mass) if law.infinity_mass < 1 else -math.inf for law, n in self.parts
        )

    @property
    def infinity_mass(self) -> float:
        """P(L = +inf), to within a few ulps."""
        return -math.expm1(self.log_survival)

    @property
    def supremum(self) -> float:
        """The largest possible finite loss, rounded up."""
        return self._added([n * law.supremum for law, n in self.parts], up)

    @property
    def infimum(self) -> float:
        """The least possible loss, rounded down."""
        return self._added([n * law.infimum for law, n in self.parts], down)

    def _added(self, losses: list[float], outwards: Callable[[float], float]) -> float:
        """The sum of rounded products: each is off by at most half an ulp, and so is the sum; one step is exact."""
        total = math.fsum(losses)
        if self.steps <= 1 or total == 0.0 or not math.isfinite(total):
            return total
        return outwards(math.fsum(outwards(loss) if loss else 0.0 for loss in losses))

    @property
    def determined(self) -> bool:
        return all(law.determined for law, _ in self.parts)

    @property
    def steps(self) -> int:
        return sum(n for _, n in self.parts)
