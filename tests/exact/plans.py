"""The profile of a finite plan: all its outcomes, listed and added up in balls of 2048 bits."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from .pairs import BITS, Pair, exact

UNIT = 600  # losses are compared as integers in units of 2^-600


def _scaled(loss: arb) -> int:
    return int((loss.mid() * arb(2) ** UNIT).floor().unique_fmpz())


def _count(atoms: int, copies: int) -> int:
    return math.comb(copies + atoms - 1, atoms - 1) if atoms else 0


def outcomes(parts: list[tuple[Pair, int]]) -> int:
    """How many outcomes a plan has."""
    return math.prod(_count(sum(1 for p, q in pair if p != 0 and q != 0), n) for pair, n in parts)


def _powers(pair: Pair, copies: int) -> list[tuple[int, arb, arb]]:
    """(loss, P, Q) of every way in which ``copies`` of one pair can fall out with finite losses."""
    finite = [(p, q) for p, q in pair if p != 0 and q != 0]
    if not finite:
        return []  # the two laws never meet
    out = [(0, arb(1), arb(1), copies)]
    for number, (p, q) in enumerate(finite):
        loss = _scaled((p / q).log())
        last = number == len(finite) - 1
        p_powers, q_powers = [arb(1)], [arb(1)]
        for _ in range(copies):
            p_powers.append(p_powers[-1] * p)
            q_powers.append(q_powers[-1] * q)
        longer = []
        for total, a, b, left in out:
            for k in (left,) if last else range(left + 1):
                ways = math.comb(left, k)
                longer.append((total + k * loss, ways * a * p_powers[k], ways * b * q_powers[k], left - k))
        out = longer
    return [(loss, a, b) for loss, a, b, _ in out]


@dataclass(frozen=True)
class Profile:
    """One direction of a plan. Outcomes stand in falling order of loss; ``p`` and ``q`` are sums from the largest."""

    losses: list[int]  # rising: minus the loss
    p: list[arb]
    q: list[arb]
    infinite: Fraction | arb  # P-mass at infinity, exactly where it is known to be rational

    @classmethod
    def of(cls, parts: list[tuple[Pair, int]], infinite: Fraction | None = None) -> Profile:
        ctx.prec = BITS
        rows: list[tuple[int, arb, arb]] | None = None
        for pair, copies in parts:
            more = _powers(pair, copies)
            rows = more if rows is None else [(x + y, a * c, b * d) for x, a, b in rows for y, c, d in more]
        rows = rows or []
        rows.sort(key=lambda row: -row[0])
        p, q = [arb(0)], [arb(0)]
        for _, a, b in rows:
            p.append(p[-1] + a)
            q.append(q[-1] + b)
        mass: Fraction | arb
        if infinite is None:
            survive = arb(1)
            for pair, copies in parts:
                survive *= (1 - sum((a for a, b in pair if b == 0), arb(0))) ** copies
            mass = 1 - survive
        else:
            mass = infinite
        return cls([-loss for loss, _, _ in rows], p, q, mass)

    @property
    def mass(self) -> arb:
        return exact(self.infinite) if isinstance(self.infinite, Fraction) else self.infinite

    @property
    def largest(self) -> arb:
        """The largest finite loss, at least 0."""
        return (-arb(self.losses[0]) / arb(2) ** UNIT).max(arb(0)) if self.losses else arb(0)

    def delta(self, epsilon: float) -> arb:
        """p_inf + max over k of P_k - e^eps Q_k: the best event is one of the largest losses."""
        ctx.prec = BITS
        grown = exact(epsilon).exp()
        at = bisect_left(self.losses, -(Fraction(epsilon) * 2**UNIT).__floor__())
        best = arb(0)
        for k in range(max(0, at - 1), min(len(self.p), at + 2)):
            best = best.max(self.p[k] - grown * self.q[k])
        return self.mass + best

    def exceeds(self, epsilon: float, delta: float) -> bool:
        """Whether the smallest admissible epsilon is certainly larger than this one."""
        if epsilon == math.inf:
            return False
        if isinstance(self.infinite, Fraction):
            if Fraction(delta) < self.infinite:
                return True
            if Fraction(delta) == self.infinite:
                return bool(exact(epsilon) < self.largest - _SLACK)
        return bool(self.delta(epsilon) > exact(delta))

    def falls_short(self, epsilon: float, delta: float) -> bool:
        """Whether the smallest admissible epsilon is certainly smaller than this one."""
        if epsilon <= 0:
            return False
        if isinstance(self.infinite, Fraction):
            if Fraction(delta) < self.infinite:
                return False
            if Fraction(delta) == self.infinite:
                return bool(exact(min(epsilon, 1e308)) > self.largest + _SLACK)
        if epsilon == math.inf:
            return bool(self.mass < exact(delta))
        return bool(self.delta(epsilon) < exact(delta))


_SLACK = exact(Fraction(1, 2**560))  # of losses that are compared as integers
