"""One step's loss as two tail functions in balls: P(L > a) and Q(L > a). All that the recursion needs of a law."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from .balls import Number, ball, normal_cdf


class Loss(ABC):
    """L = log dP/dQ of one pair; no mass at infinity."""

    @abstractmethod
    def above(self, a: arb) -> tuple[arb, arb]:
        """P(L > a) and Q(L > a), with relative accuracy where they are small."""

    @abstractmethod
    def below(self, a: arb) -> tuple[arb, arb]:
        """P(L <= a) and Q(L <= a), with relative accuracy where they are small."""

    def least(self) -> arb | None:
        """The infimum of the losses, None where there is none."""
        return None

    def most(self) -> arb | None:
        return None

    def marks(self) -> list[arb]:
        """Losses of point masses that a lattice should hit."""
        return []


def _half_lines(x: arb, shift: arb) -> tuple[arb, arb]:
    """The standard normal beyond x, and beyond x when its mean is ``shift``."""
    return normal_cdf(-x), normal_cdf(shift - x)


@dataclass(frozen=True)
class SampledGaussianLoss(Loss):
    """Mixture (1-q) N(0, s^2) + q N(1, s^2) against N(0, s^2): L = log A (remove) or, reversed, -log A (add)."""

    sigma: Number
    q: Number
    direction: str

    def _cut(self, ratio: arb) -> arb | None:
        """Where A = ratio, in standard units of the noise; None where A is always larger."""
        s, q = ball(self.sigma), ball(self.q)
        share = (ratio - 1 + q) / q
        if share <= 0:
            return None
        return s * share.log() + 1 / (2 * s)

    def above(self, a: arb) -> tuple[arb, arb]:
        s, q = ball(self.sigma), ball(self.q)
        if self.direction == "remove":
            x = self._cut(a.exp())
            if x is None:
                return arb(1), arb(1)
            plain, moved = _half_lines(x, 1 / s)
            return (1 - q) * plain + q * moved, plain
        x = self._cut((-a).exp())
        if x is None:
            return arb(0), arb(0)
        plain, moved = _half_lines(-x, -1 / s)
        return plain, (1 - q) * plain + q * moved

    def below(self, a: arb) -> tuple[arb, arb]:
        s, q = ball(self.sigma), ball(self.q)
        if self.direction == "remove":
            x = self._cut(a.exp())
            if x is None:
                return arb(0), arb(0)
            plain, moved = _half_lines(-x, -1 / s)
            return (1 - q) * plain + q * moved, plain
        x = self._cut((-a).exp())
        if x is None:
            return arb(1), arb(1)
        plain, moved = _half_lines(x, 1 / s)
        return plain, (1 - q) * plain + q * moved

    def least(self) -> arb | None:
        return (1 - ball(self.q)).log() if self.direction == "remove" else None

    def most(self) -> arb | None:
        return None if self.direction == "remove" else -(1 - ball(self.q)).log()


@dataclass(frozen=True)
class SampledReplaceLoss(Loss):
    """(1-q) N(0, s^2) + q N(1, s^2) against (1-q) N(0, s^2) + q N(-1, s^2).

    With y = e^{x/s^2}, c = e^{-1/(2 s^2)} the ratio (1-q+qcy)/(1-q+qc/y) increases in y, and equals e^a where
    q c y^2 + (1-q)(1-e^a) y - q c e^a = 0.
    """

    sigma: Number
    q: Number

    def _cut(self, a: arb) -> arb:
        s, q = ball(self.sigma), ball(self.q)
        ratio = a.exp()
        lead = q * (-1 / (2 * s * s)).exp()
        middle = -(1 - q) * a.expm1()
        root = (middle * middle + 4 * lead * lead * ratio).sqrt()
        # the form of the positive root that does not cancel
        y = 2 * lead * ratio / (middle + root) if middle > 0 else (root - middle) / (2 * lead)
        return s * y.log()

    def above(self, a: arb) -> tuple[arb, arb]:
        s, q = ball(self.sigma), ball(self.q)
        x = self._cut(a)
        plain = normal_cdf(-x)
        return (1 - q) * plain + q * normal_cdf(1 / s - x), (1 - q) * plain + q * normal_cdf(-x - 1 / s)

    def below(self, a: arb) -> tuple[arb, arb]:
        q_tail, p_tail = self.above(-a)  # x -> -x swaps P and Q and turns the sign of the loss
        return p_tail, q_tail


@dataclass(frozen=True)
class LaplaceLoss(Loss):
    """Laplace noise, t = sensitivity / scale, sampled at rate q (1: not sampled): marks at both ends.

    "remove": L = log(1 - q + q e^l), l the plain loss in [-t, t], under the mixture; "add": the reverse.
    """

    t: Number
    q: Number = 1
    direction: str = "remove"

    def _plain(self, a: arb) -> tuple[arb, arb]:
        """Plain loss l > a, -t <= a < t: P1 and P0; a is clipped by the caller."""
        t = ball(self.t)
        # noise centred at 1 (P1) or 0 (P0) in units of the sensitivity: l > a is x > (a/t + 1)/2
        p1 = 1 - ((a - t) / 2).exp() / 2  # the half line contains the centre of P1
        p0 = (-(a + t) / 2).exp() / 2
        return p1, p0

    def _tails(self, a: arb, *, strict: bool) -> tuple[arb, arb]:
        """P1 and P0 of l > a, or of l >= a."""
        t = ball(self.t)
        if a < -t or (not strict and a <= -t):
            return arb(1), arb(1)
        if a > t or (strict and a >= t):
            return arb(0), arb(0)
        inside = self._plain(a)
        if a > -t and a < t:
            return inside
        if a <= t and a >= t:  # exactly an end
            return inside
        if a <= -t and a >= -t:
            return inside
        other = (arb(0), arb(0)) if a > 0 else (arb(1), arb(1))
        return inside[0].union(other[0]), inside[1].union(other[1])

    def _mixed(self, tails: tuple[arb, arb]) -> tuple[arb, arb]:
        q = ball(self.q)
        return (1 - q) * tails[1] + q * tails[0], tails[1]

    def above(self, a: arb) -> tuple[arb, arb]:
        q = ball(self.q)
        if self.direction == "remove":
            share = (a.expm1() + q) / q
            if share <= 0:
                return arb(1), arb(1)
            return self._mixed(self._tails(share.log(), strict=True))
        share = ((-a).expm1() + q) / q  # L > a is A < e^-a
        if share <= 0:
            return arb(0), arb(0)
        q_tail, p_tail = self._mixed(tuple(1 - x for x in self._tails(share.log(), strict=False)))
        return p_tail, q_tail

    def below(self, a: arb) -> tuple[arb, arb]:
        p, q = self.above(a)
        return 1 - p, 1 - q

    def _ends(self) -> tuple[arb, arb]:
        q, t = ball(self.q), ball(self.t)
        low, high = (q * (-t).expm1()).log1p(), (q * t.expm1()).log1p()
        return (low, high) if self.direction == "remove" else (-high, -low)

    def least(self) -> arb | None:
        return self._ends()[0]

    def most(self) -> arb | None:
        return self._ends()[1]

    def marks(self) -> list[arb]:
        return list(self._ends())


@dataclass(frozen=True)
class GaussianLoss(Loss):
    """mu = sensitivity / sigma: L ~ N(mu^2/2, mu^2) under P."""

    mu: Number

    def above(self, a: arb) -> tuple[arb, arb]:
        m = ball(self.mu)
        return normal_cdf(m / 2 - a / m), normal_cdf(-m / 2 - a / m)

    def below(self, a: arb) -> tuple[arb, arb]:
        m = ball(self.mu)
        return normal_cdf(a / m - m / 2), normal_cdf(a / m + m / 2)


@dataclass(frozen=True)
class ResponseLoss(Loss):
    """k-ary randomised response that tells the truth with probability p: losses -e, 0 and e."""

    p: float | str | Fraction
    categories: int = 2

    def _masses(self) -> tuple[arb, arb, arb]:
        truth = Fraction(self.p)
        lie = (1 - truth) / (self.categories - 1)
        return ball(truth), ball(lie), ball(1 - truth - lie)

    def above(self, a: arb) -> tuple[arb, arb]:
        truth, lie, rest = self._masses()
        e = (truth / lie).log()
        p, q = arb(0), arb(0)
        for loss, mass, other in ((e, truth, lie), (arb(0), rest, rest), (-e, lie, truth)):
            if loss > a:
                p, q = p + mass, q + other
            elif not loss <= a:
                p, q = p + mass.union(arb(0)), q + other.union(arb(0))
        return p, q

    def below(self, a: arb) -> tuple[arb, arb]:
        p, q = self.above(a)
        return 1 - p, 1 - q

    def least(self) -> arb | None:
        truth, lie, _ = self._masses()
        return (lie / truth).log()

    def most(self) -> arb | None:
        truth, lie, _ = self._masses()
        return (truth / lie).log()

    def marks(self) -> list[arb]:
        return [self.least(), self.most()]  # type: ignore[list-item]
