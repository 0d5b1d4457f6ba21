r"""The privacy blanket: what one report reveals among many.

A local randomiser R has R_x >= gamma w for every input x, w a probability: with probability gamma a report comes from w
whatever the input. For inputs x, x' of one user, all others arbitrary, and W_1, W_2, .. drawn from w

    H_a <= (1 / (gamma n)) E ( L_1 + .. + L_M )+,     L = (R_x - a R_x')(W) / w(W),     M ~ Bin(n, gamma),

[Balle, Bell, Gascon, Nissim 2019, Lemma 5.3; proof in docs/shuffling.md]. The right side is the profile of a pair: an
outcome is how many reports of each kind there are, and its ratio is sum R_x/w over sum R_x'/w. A kind is a value of
(R_x/w, R_x'/w) with its probability under w.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from dptally.checks import Floats
from dptally.laws.shuffling.sums import FewValues, LogBounds, log_positive_part
from dptally.numerics.decimals import sixty_digits
from dptally.numerics.rounding import EPS, up

__all__ = [
    "Blanket",
    "clones",
    "homogeneous_response",
    "homogeneous_unary",
    "response_blanket",
    "three_point_blanket",
    "unary_blanket",
]

Number = Decimal | Fraction


@dataclass(frozen=True, slots=True)
class Blanket:
    """``kinds``: (R_x/w, R_x'/w, probability under w), each within an ulp; ``gamma`` and ``rest`` = 1 - gamma too."""

    kinds: tuple[tuple[float, float, float], ...]
    gamma: float
    rest: float

    @classmethod
    def of(cls, kinds: Sequence[tuple[Number, Number, Number]], gamma: Number) -> Blanket:
        """Rounded from exact numbers; kinds of probability 0 are left out."""
        rows = tuple((float(x), float(y), float(p)) for x, y, p in kinds if p > 0)
        return cls(rows, float(gamma), float(1 - gamma))

    @property
    def largest(self) -> float:
        """The largest loss: log of the largest ratio of two kinds, rounded up."""
        return up(max(math.log(x / y) for x, y, _ in self.kinds) + 4 * EPS, 4)

    def columns(self) -> tuple[Floats, Floats, Floats]:
        table = np.array(self.kinds)
        return table[:, 0], table[:, 1], table[:, 2]

    def log_profile(self, epsilon: float, users: int) -> LogBounds:
        """Bounds of log H at one eps."""
        x, y, chance = self.columns()
        a = math.exp(epsilon)
        sums = FewValues(x - a * y, 4 * EPS * (x + (2.0 + abs(epsilon)) * a * y), self.gamma * chance, self.rest, users)
        found = log_positive_part(sums)
        scale = math.log(self.gamma) + math.log(users)
        slack = 8 * EPS * (1.0 + abs(scale))
        return LogBounds(found.lower - scale - slack, min(found.upper - scale + slack, 0.0))

    def log_chernoff(self, epsilon: Floats, users: int) -> Floats:
        """Upper bounds of log H at many eps > 0: (s)+ <= e^{ts} / (et) at about the best t; -inf from the largest loss.

        log M and the rest are within n (64 ulps + 8 t |X| ulps).
        """
        x, y, chance = self.columns()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            a = np.exp(np.minimum(epsilon, 50.0))
            values = x - np.multiply.outer(a, y)
            slip = 4 * EPS * (x + np.multiply.outer((2.0 + np.abs(epsilon)) * a, y))
            share, highest = self.gamma * chance, values.max(axis=1)

            def cost(log_t: Floats) -> Floats:
                t = np.exp(log_t)[:, None]
                return np.asarray(
                    users * np.log1p((share * np.expm1(np.minimum(t * values, 600.0))).sum(axis=1)) - log_t
                )

            low, high = np.full(len(epsilon), -40.0), np.log(500.0 / np.where(highest > 0, highest, 1.0))
            for _ in range(40):
                one, other = low + (high - low) / 3.0, high - (high - low) / 3.0
                less = cost(one) < cost(other)
                low, high = np.where(less, low, one), np.where(less, other, high)
            t = np.exp(0.5 * (low + high))
            doubt = users * (64 * EPS + (2 * t * (slip + 4 * EPS * np.abs(values)).max(axis=1)))
            bound = cost(0.5 * (low + high)) - 1.0 - math.log(self.gamma * users) + doubt + 1e-12
        return np.where(highest > 0, np.minimum(np.where(np.isnan(bound), 0.0, bound), 0.0), -np.inf)


# -- kinds of local randomisers ----------------------------------------------------------------------------------------


def response_blanket(p: Fraction, categories: int) -> Blanket:
    """k-ary randomised response: w uniform, gamma = k times the smaller probability of a report."""
    k, lie = categories, (1 - p) / (categories - 1)
    share = Fraction(1, k)
    kinds = [(k * p, k * lie, share), (k * lie, k * p, share), (k * lie, k * lie, 1 - 2 * share)]
    return Blanket.of(kinds, k * min(p, lie))


def three_point_blanket(epsilon: float) -> Blanket:
    """Any randomiser with ratios of at most e^epsilon whose blanket has gamma = e^{-epsilon/2}, such as Laplace noise.

    R_x/w lies in [gamma, gamma e^eps] and has mean 1 under w: in the convex order it is below the law on the two ends,
    and R_x/w - a R_x'/w below the sum of both where one is high exactly when the other is low.
    """
    with sixty_digits():
        half = (Decimal(epsilon) / 2).exp()
        share = 1 / (half + 1)
        kinds = [(half, 1 / half, share), (1 / half, half, share), (1 / half, 1 / half, 1 - 2 * share)]
        return Blanket.of(kinds, 1 / half)


def clones(epsilon: float) -> Blanket:
    """Any epsilon-LDP randomiser [Feldman, McMillan, Talwar 2021]: R_x = (e^eps Q_0 + Q_1)/(e^eps + 1), R_x' likewise,
    and every other R is at least e^-eps (Q_0 + Q_1)/2.
    """
    with sixty_digits():
        odds = Decimal(epsilon).exp()
        high, low, half = 2 * odds / (odds + 1), 2 / (odds + 1), Decimal("0.5")
        return Blanket.of([(high, low, half), (low, high, half)], 1 / odds)


def unary_blanket(p: Fraction, q: Fraction, categories: int) -> Blanket:
    """One bit for each category, 1 with probability p where it is the true one, q elsewhere; p > q.

    With B the law of independent bits of probability q, R_x = B r_{y_x}, r_1 = p/q, r_0 = (1-p)/(1-q) < r_1: the least
    is r_0 B, and r_1 B where all bits are 1.
    """
    one, zero = p / q, (1 - p) / (1 - q)
    full = q**categories
    gamma = zero * (1 - full) + one * full
    bits = {(1, 1): q * q - full, (1, 0): q * (1 - q), (0, 1): q * (1 - q), (0, 0): (1 - q) ** 2}
    ratio = {1: one, 0: zero}
    kinds = [
        (gamma * ratio[i] / zero, gamma * ratio[j] / zero, chance * zero / gamma) for (i, j), chance in bits.items()
    ]
    return Blanket.of([*kinds, (gamma, gamma, full * one / gamma)], gamma)


# -- data sets that attain something: everybody else has the same value v ----------------------------------------------


def homogeneous_response(p: Fraction, categories: int, third: bool) -> Blanket:
    """All others have one value: a ``third`` one, or that of x. The pair is exact, with w = R_v and gamma = 1."""
    lie, one = (1 - p) / (categories - 1), Fraction(1)
    if third:
        kinds = [(p / lie, one, lie), (one, p / lie, lie), (lie / p, lie / p, p), (one, one, 1 - p - 2 * lie)]
    else:
        kinds = [(one, lie / p, p), (one, p / lie, lie), (one, one, 1 - p - lie)]
    return Blanket.of(kinds, one)


def homogeneous_unary(p: Fraction, q: Fraction) -> Blanket:
    """All others have a third value: three bits decide."""
    ratio = {1: p / q, 0: (1 - p) / (1 - q)}
    chance = {1: q, 0: 1 - q}
    true = {1: p, 0: 1 - p}
    kinds = [
        (ratio[i] / ratio[v], ratio[j] / ratio[v], chance[i] * chance[j] * true[v])
        for i in (0, 1)
        for j in (0, 1)
        for v in (0, 1)
    ]
    return Blanket.of(kinds, Fraction(1))
