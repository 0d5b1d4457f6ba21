"""The declared pairs of finitely many outcomes, to sixty digits: what every law of a finite loss is rounded from.

A pair is kept as it was declared, in exact rationals, and lists its outcomes on demand: probabilities p under P and q
under Q, and the excess x = p/q - 1, each to 1e-40 of itself. The excess is carried along because a loss is log1p(x):
of a loss of 1e-14 on a sample of one in a billion p - q would leave nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple, Protocol

from dptally.numerics.decimals import LARGEST, exact, expm1, log1p, sixty_digits

__all__ = ["Envelope", "Geometric", "Guarantee", "Outcome", "Outcomes", "Pair", "Response", "Stated", "TwoBits"]

Knots = tuple[tuple[float, float], ...]


class Outcome(NamedTuple):
    """p = q (1 + excess), both positive; ``stated``: the loss where it is a double by declaration."""

    p: Decimal
    q: Decimal
    excess: Decimal
    stated: float | None = None

    @property
    def loss(self) -> Decimal:
        """log(p/q)."""
        return log1p(self.excess) if abs(self.excess) < _HALF else (self.p / self.q).ln()

    def mirrored(self) -> Outcome:
        stated = None if self.stated is None else -self.stated
        with sixty_digits():  # whoever asks: the digits of the thread's own context would be too few
            return Outcome(self.q, self.p, -self.excess * self.q / self.p, stated)


_HALF = Decimal("0.5")
Bounds = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes in increasing order of loss; bounds of the mass that P has and Q lacks, and the other way round."""

    rows: tuple[Outcome, ...]
    only_p: Bounds = (Fraction(0), Fraction(0))
    only_q: Bounds = (Fraction(0), Fraction(0))

    def mirrored(self) -> Outcomes:
        """The other direction."""
        return Outcomes(tuple(row.mirrored() for row in reversed(self.rows)), self.only_q, self.only_p)


class Pair(Protocol):
    """What was declared."""

    def __hash__(self) -> int: ...

    @property
    def size(self) -> int:
        """About how many outcomes there are."""
        ...

    def turned(self) -> Pair | None:
        """The pair with P and Q exchanged; None where it is not declared."""

    def outcomes(self) -> Outcomes | None:
        """All outcomes; None where a loss is beyond what sixty digits are good for (1e17)."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """With probability delta the dataset is told, else a coin of odds e^epsilon is tossed."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    @property
    def size(self) -> int:
        return 2

    def turned(self) -> Guarantee:
        """The same in both directions."""
        return self

    def outcomes(self) -> Outcomes | None:
        if self.epsilon > LARGEST:
            return None
        if self.delta == 1:
            return Outcomes((), (self.delta, self.delta), (self.delta, self.delta))
        with sixty_digits():
            e, rest = exact(self.epsilon), exact(1 - self.delta)
            odds = e.exp()
            likely = Outcome(rest * odds / (1 + odds), rest / (1 + odds), expm1(e))
            rows = (likely.mirrored(), likely) if e else (Outcome(rest, rest, e),)
        return Outcomes(rows, (self.delta, self.delta), (self.delta, self.delta))


@dataclass(frozen=True, slots=True)
class Response:
    """The true one of ``categories`` answers with probability p, each other one equally likely."""

    p: Fraction
    categories: int

    @property
    def size(self) -> int:
        return 3

    def turned(self) -> Response:
        """The same in both directions."""
        return self

    def outcomes(self) -> Outcomes | None:
        lie = (1 - self.p) / (self.categories - 1)
        likely, unlikely = max(self.p, lie), min(self.p, lie)
        with sixty_digits():
            top = Outcome(exact(likely), exact(unlikely), exact((likely - unlikely) / unlikely))
            rows = [top.mirrored(), top]
            if self.categories > 2:
                rest = exact(lie * (self.categories - 2))
                rows.insert(1, Outcome(rest, rest, Decimal(0)))
        return Outcomes(tuple(rows))


@dataclass(frozen=True, slots=True)
class TwoBits:
    """Two independent bits of which one is 1 with probability p and the other with q < p; they change places."""

    p: Fraction
    q: Fraction

    @property
    def size(self) -> int:
        return 3

    def turned(self) -> TwoBits:
        """The same in both directions."""
        return self

    def outcomes(self) -> Outcomes | None:
        likely, unlikely = self.p * (1 - self.q), self.q * (1 - self.p)
        same = 1 - likely - unlikely
        with sixty_digits():
            top = Outcome(exact(likely), exact(unlikely), exact((likely - unlikely) / unlikely))
            return Outcomes((top.mirrored(), Outcome(exact(same), exact(same), Decimal(0)), top))


@dataclass(frozen=True, slots=True)
class Geometric:
    """P(k) proportional to e^{-step |k|} against its shift by the integer ``shift``."""

    step: Fraction
    shift: int

    @property
    def size(self) -> int:
        return self.shift + 1

    def turned(self) -> Geometric:
        """The same in both directions."""
        return self

    def outcomes(self) -> Outcomes | None:
        if self.step * self.shift > LARGEST:
            return None
        with sixty_digits():
            x, s = exact(self.step), self.shift
            r = (-x).exp()
            powers = [Decimal(1)]
            for _ in range(s):
                powers.append(powers[-1] * r)
            tail, unit = 1 / (1 + r), -expm1(-x) / (1 + r)
            top = Outcome(tail, tail * powers[s], expm1(s * x))
            inner = [
                Outcome(unit * powers[k], unit * powers[s - k], expm1((s - 2 * k) * x)) for k in range(s - 1, 0, -1)
            ]
            return Outcomes((top.mirrored(), *inner, top))


@dataclass(frozen=True, slots=True)
class Stated:
    """Point masses (loss, probability) as a law from outside states them, read as exact."""

    atoms: tuple[tuple[float, float], ...]
    infinity_mass: float
    reverse_mass: float

    @property
    def size(self) -> int:
        return len(self.atoms)

    def turned(self) -> None:
        """Not stated."""

    def outcomes(self) -> Outcomes | None:
        if any(abs(loss) > LARGEST for loss, _ in self.atoms):
            return None
        with sixty_digits():
            rows = tuple(
                Outcome(exact(mass), exact(mass) * (-exact(loss)).exp(), expm1(exact(loss)), loss)
                for loss, mass in self.atoms
                if mass > 0
            )
        only_p, only_q = Fraction(self.infinity_mass), Fraction(self.reverse_mass)
        return Outcomes(rows, (only_p, only_p), (only_q, only_q))


@dataclass(frozen=True, slots=True)
class Envelope:
    """The largest profile that keeps the guarantees (epsilon, delta): the lower convex envelope, in y = e^epsilon, of
    the points and their mirror images (1/y, 1 - 1/y + delta/y); see laws/tabulated.py.
    """

    points: Knots

    @property
    def size(self) -> int:
        return 2 * len(self.points)

    def turned(self) -> Envelope:
        """The same in both directions."""
        return self

    def outcomes(self) -> Outcomes | None:
        """Masses p at the knots: y times the change of the slope in y.

        On the left of the first knot the line through its mirror image has slope -s, y s = (1 - delta)/(1 + 1/y); a
        knot at epsilon 0 is its own mirror image and carries both masses.
        """
        if self.points[-1][0] > LARGEST:
            return None
        with sixty_digits(more=50):  # next to a chord the slopes cancel
            hull = _hull(self.points)
            last = Fraction(hull[-1][1])
            knots = [(exact(e), exact(d)) for e, d in hull]
            rows = []
            for k, (e, delta) in enumerate(knots):
                if k == 0:
                    mass = (1 - delta) / (1 + (-e).exp())
                else:
                    mass = (knots[k - 1][1] - delta) / -expm1(knots[k - 1][0] - e)
                if k + 1 < len(knots):
                    mass -= (delta - knots[k + 1][1]) / expm1(knots[k + 1][0] - e)
                if mass > 0:
                    twice = 1 if e else 2
                    rows.append(Outcome(twice * mass, twice * mass * (-e).exp(), expm1(e), hull[k][0]))
            below = [row.mirrored() for row in reversed(rows) if row.excess]
        return Outcomes((*below, *rows), (last, last), (last, last))


def _hull(points: Knots) -> Knots:
    """The knots at epsilon >= 0 of the envelope.

    The first knot is the point whose line through its own mirror image, delta = 1 - s (1 + y), is the lowest: the
    largest s = (1 - delta)/(1 + y). From there on it is the hull of what lies to the right. A point that is closer
    than 1e-45 to a chord counts as on it.
    """
    steepness = [(1 - exact(delta)) / (1 + exact(e).exp()) for e, delta in points]
    first = steepness.index(max(steepness))
    hull = [points[first]]
    for point in points[first + 1 :]:
        while len(hull) > 1 and _above(hull, point):
            hull.pop()
        hull.append(point)
    while len(hull) > 1 and hull[-1][1] == hull[-2][1]:
        hull.pop()
    return tuple(hull)


def _above(hull: list[tuple[float, float]], point: tuple[float, float]) -> bool:
    """Whether the last knot lies on or above the chord from the one before it to the new point."""
    (before, higher), (last, height), (e, delta) = ((exact(x), exact(y)) for x, y in (*hull[-2:], point))
    ahead, behind = expm1(e - last), -expm1(before - last)
    return (higher - height) * ahead <= (height - delta) * behind * _NEARLY


_NEARLY = 1 + Decimal("1e-45")
