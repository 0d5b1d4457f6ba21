"""Poisson sampling of a loss with finitely many values, exactly: both adjacencies (theorems in docs/sampling.md)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from dptally.law.adjacency import Direction
from dptally.laws.atoms import AtomicLaw, atomic_law
from dptally.laws.pairs import Outcome, Outcomes, Pair
from dptally.laws.sampled.gaussian.replace import REPLACE_THEOREM
from dptally.numerics.decimals import KEPT, exact, sixty_digits

__all__ = ["Replaced", "Sampled", "replaced_law", "sampled_law"]

SAMPLED_THEOREM = "Zhu, Dong, Wang 2022, Optimal accounting of DP via characteristic function, Thm. 11"
_HALF = Decimal("0.5")
_GONE = Decimal("1e-45")  # what is left of a mass after its pieces, relative to it, that counts as nothing


@dataclass(frozen=True, slots=True)
class Sampled:
    """(1-q) Q + q P against Q (REMOVE), or the other way round (ADD), 0 < q < 1."""

    inner: Pair
    rate: Fraction
    direction: Direction

    @property
    def size(self) -> int:
        return self.inner.size + 1

    def turned(self) -> Sampled:
        side = Direction.ADD if self.direction is Direction.REMOVE else Direction.REMOVE
        return Sampled(self.inner, self.rate, side)

    def outcomes(self) -> Outcomes | None:
        inner = self.inner.outcomes()
        if inner is None:
            return None
        with sixty_digits():
            q, rest = exact(self.rate), exact(1 - self.rate)
            rows = [Outcome(rest * row.q + q * row.p, row.q, q * row.excess) for row in inner.rows]
            if inner.only_q[1] > 0:  # P has none there, and the mixture (1 - q) times what Q has
                base = exact(inner.only_q[1])
                rows.insert(0, Outcome(rest * base, base, -q))
            mixed = Outcomes(tuple(rows), (self.rate * inner.only_p[0], self.rate * inner.only_p[1]))
            return mixed if self.direction is Direction.REMOVE else mixed.mirrored()


@dataclass(frozen=True, slots=True)
class Replaced:
    """1 - q + q F^-1(u) against 1 - q + q F^-1(1 - u), F the law of dP/dQ under Q, 0 < q <= 1."""

    inner: Pair
    rate: Fraction

    @property
    def size(self) -> int:
        return self.inner.size + 1

    def turned(self) -> Replaced:
        """The same in both directions."""
        return self

    def outcomes(self) -> Outcomes | None:
        inner = self.inner.outcomes()
        if inner is None:
            return None
        with sixty_digits():
            q, rest = exact(self.rate), exact(1 - self.rate)
            ratios = list(inner.rows)
            if inner.only_q[1] > 0:
                ratios.insert(0, Outcome(Decimal(0), exact(inner.only_q[1]), Decimal(-1)))
            mixed = [rest + q * row.p / row.q for row in ratios]
            rows, alone = [], Decimal(0)
            for i, j, length in _countermonotone([row.q for row in ratios]):
                if i == j and not mixed[i]:  # neither of the two gives it
                    continue
                if i == j:
                    rows.append(Outcome(length * mixed[i], length * mixed[i], Decimal(0)))
                elif not mixed[j]:  # only at rate 1: an output that only one of the two can give
                    alone += length * mixed[i]
                else:
                    excess = q * (ratios[i].excess - ratios[j].excess) / mixed[j]
                    high = Outcome(length * mixed[i], length * mixed[j], excess)
                    rows += [high, high.mirrored()]
            slack = Fraction(alone * KEPT)
            both = (
                self.rate * inner.only_p[0] + Fraction(alone) - slack,
                min(Fraction(1), self.rate * inner.only_p[1] + Fraction(alone) + slack),
            )
            return Outcomes(_merged(rows), both, both)


def _countermonotone(masses: list[Decimal]) -> list[tuple[int, int, Decimal]]:
    """(i, j, length): the largest ratio meets the smallest, for u in (1/2, 1); the other half is the mirror image.

    The last piece, where a ratio meets itself, is the whole middle. A remainder that is noise beside the mass it is
    left of is none: leaving it out moves no delta by more than 1e-45 of itself, because the same ratio has met a
    smaller one with nearly all of its mass.
    """
    out = []
    left = list(masses)
    i, j = len(masses) - 1, 0
    while i > j:
        piece = min(left[i], left[j])
        out.append((i, j, piece))
        left[i], left[j] = left[i] - piece, left[j] - piece
        i, j = i - (left[i] <= _GONE * masses[i]), j + (left[j] <= _GONE * masses[j])
    if i == j:
        out.append((i, i, left[i]))
    return out


def _merged(rows: list[Outcome]) -> tuple[Outcome, ...]:
    """In increasing order, outcomes of one loss together."""
    out: list[Outcome] = []
    last = (False, Decimal(0))
    for row in sorted(rows, key=_place):
        place = _place(row)
        if out and place[0] == last[0] and place[1] - last[1] <= KEPT * abs(place[1]):
            out[-1] = Outcome(out[-1].p + row.p, out[-1].q + row.q, out[-1].excess)
        else:
            out.append(row)
            last = place
    return tuple(out)


def _place(row: Outcome) -> tuple[bool, Decimal]:
    """Grows with the loss, to all digits: the excess, or the ratio where the excess is next to -1."""
    return (True, row.excess) if row.excess > -_HALF else (False, row.p / row.q)


@lru_cache(maxsize=256)
def sampled_law(pair: Pair, rate: Fraction, direction: Direction) -> AtomicLaw | None:
    """The law on a sample under ADD_REMOVE; None where the pair has no outcomes in sixty digits."""
    return atomic_law(Sampled(pair, rate, direction), SAMPLED_THEOREM)


@lru_cache(maxsize=256)
def replaced_law(pair: Pair, rate: Fraction) -> AtomicLaw | None:
    """The law on a sample under REPLACE, the same in both directions."""
    return atomic_law(Replaced(pair, rate), REPLACE_THEOREM)
