r"""Laplace noise on a Poisson sample, under both adjacencies: moments by a hypergeometric function.

With r = sensitivity / scale, B(y) = 1 - q + q e^{2y - r} on 0 < y < r and A- = B(0), A+ = B(r),

    I(s) = int_0^r e^{-y} B(y)^s dy / 2 = (1-q)^s e^{-r/2} / 4 [-2 w^{-1/2} 2F1(-s, -1/2; 1/2; -q w / (1-q))]

between w = e^{-r} and w = e^r, and

    remove   M(z) = A-^{1+z} / 2 + I(1+z) + e^{-r} A+^{1+z} / 2
    add      M(z) = A-^{-z} / 2 + I(-z) + e^{-r} A+^{-z} / 2
    replace  M(z) = e^{-r} (A+^{1+z} A-^{-z} + A-^{1+z} A+^{-z}) / 2 + A-^{-z} I(1+z) + A-^{1+z} I(-z).

The tilted density of the loss falls and then rises between the two atoms, so its total variation is at most twice the
sum of its values at the ends (each branch of it under REPLACE).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flint import acb, arb

from .balls import Number, ball, floats, precision
from .pieces import Piece


@dataclass(frozen=True)
class SampledLaplacePiece(Piece):
    """``direction``: "remove", "add" or "replace"; 0 < q < 1."""

    r: Number
    q: Number
    direction: str
    count: int = 1

    def _ends(self) -> tuple[arb, arb]:
        r, q = ball(self.r), ball(self.q)
        return 1 - q + q * (-r).exp(), 1 - q + q * r.exp()

    def _inside(self, s: acb) -> acb:
        r, q = ball(self.r), ball(self.q)
        total = acb(0)
        for w, sign in (((-r).exp(), -1), (r.exp(), 1)):
            x = acb(-q * w / (1 - q))
            total += sign * -2 / w.sqrt() * x.hypgeom_2f1(-s, acb(-0.5), acb(0.5))
        return (s * (1 - q).log()).exp() * (-r / 2).exp() / 4 * total

    def moment(self, z: acb) -> acb:
        low, high = (x.log() for x in self._ends())
        fall = (-ball(self.r)).exp()
        if self.direction == "remove":
            return ((1 + z) * low).exp() / 2 + self._inside(1 + z) + fall * ((1 + z) * high).exp() / 2
        if self.direction == "add":
            return (-z * low).exp() / 2 + self._inside(-z) + fall * (-z * high).exp() / 2
        ends = ((1 + z) * high - z * low).exp() + ((1 + z) * low - z * high).exp()
        inside = (-z * low).exp() * self._inside(1 + z) + ((1 + z) * low).exp() * self._inside(-z)
        return fall * ends / 2 + inside

    def _atoms(self, theta: arb) -> tuple[arb, arb, arb]:
        """Shares of the two atoms in the tilted law, and the distance between them."""
        low, high = (x.log() for x in self._ends())
        fall, base = (-ball(self.r)).exp(), self.moment(acb(theta)).real
        if self.direction == "remove":
            masses = ((1 + theta) * low).exp() / 2, fall * ((1 + theta) * high).exp() / 2
        elif self.direction == "add":
            masses = (-theta * low).exp() / 2, fall * (-theta * high).exp() / 2
        else:
            masses = (
                fall * ((1 + theta) * low - theta * high).exp() / 2,
                fall * ((1 + theta) * high - theta * low).exp() / 2,
            )
        reach = (high - low) * (2 if self.direction == "replace" else 1)
        return masses[0] / base, masses[1] / base, reach

    def _variation(self, theta: arb) -> arb:
        """An upper bound of the total variation of the tilted density."""
        q, (low, high) = ball(self.q), self._ends()
        root = (q * (-ball(self.r)).exp()).sqrt() / 4

        def ends(power: arb) -> arb:
            return sum((root * (power * b.log()).exp() / (b - 1 + q) ** arb(1.5) for b in (low, high)), arb(0))

        if self.direction == "remove":
            total = ends(theta + 2)
        elif self.direction == "add":
            total = ends(1 - theta)
        else:
            total = (-theta * low.log()).exp() * ends(theta + 2) + ((1 + theta) * low.log()).exp() * ends(1 - theta)
        return 2 * total / self.moment(acb(theta)).real

    def bound(self, theta: arb, u: arb) -> arb:
        """Up to u R = pi the two atoms alone turn away from each other; beyond, the largest value on cells."""
        with precision(120):
            one, other, reach = self._atoms(theta)
            beyond = arb(_far(self, floats(theta)[0]))
            if not u * reach < arb.pi():
                return beyond**self.count
            pair = ((one + other) ** 2 - 2 * one * other * (1 - (u * reach).cos())).sqrt()
            return (1 - one - other + pair).max(beyond).min(arb(1)).upper() ** self.count

    def power_law(self, theta: arb, u: arb) -> tuple[arb, arb]:
        return self.bound(theta, u), arb(0)

    # -- plain floats, to choose by ------------------------------------------------------------------------------

    def float_log_moment(self, s: float) -> float:
        loss, mass = _float_nodes(self)
        return float(np.log1p(np.dot(mass, np.expm1(s * loss)))) if s * np.abs(loss).max() < 30 else self._far_moment(s)

    def _far_moment(self, s: float) -> float:
        loss, mass = _float_nodes(self)
        return float(np.logaddexp.reduce(np.log(mass) + s * loss))

    def float_cumulants(self, s: float) -> tuple[float, float]:
        loss, mass = _float_nodes(self)
        logs = np.log(mass) + s * loss
        weight = np.exp(logs - logs.max())
        weight /= weight.sum()
        mean = float(weight @ loss)
        return mean, float(weight @ (loss - mean) ** 2)

    def float_log_phi(self, theta: float, u: float) -> float:
        with precision(120):
            return math.log(float(self.bound(arb(theta), arb(u)) ** (arb(1) / self.count)))


@lru_cache(maxsize=64)
def _far(piece: SampledLaplacePiece, theta: float) -> float:
    """An upper bound of |phi(u)| for every u >= pi / R; theta is exactly this double.

    |phi'| (turned about the middle of the losses) is at most R / 2: on a cell of width w the modulus exceeds that in
    its middle by at most w R / 4. Beyond the last cell the atoms and the total variation of the rest bound it.
    """
    with precision(500):
        tilt = arb(theta)
        one, other, reach = piece._atoms(tilt)
        variation, base = piece._variation(tilt), piece.moment(acb(tilt)).real
        last = 4 * variation / (1 - one - other)
        worst = one + other + variation / last
        width = 0.1 / float(reach)
        at = math.pi / float(reach) * (1 - 1e-9)
        while at < float(last) * (1 + 1e-9):
            value = abs(piece.moment(acb(tilt, arb(at) + arb(width) / 2)) / base)
            worst = worst.max(value + arb(width) * reach / 4)
            at += width * (1 - 1e-12)
        return min(1.0, floats(worst)[1])


@lru_cache(maxsize=64)
def _float_nodes(piece: SampledLaplacePiece) -> tuple[np.ndarray, np.ndarray]:
    """(losses, masses) of the atoms and of a rule for the density, in doubles."""
    r, q = float(ball(piece.r)), float(ball(piece.q))
    x, weight = np.polynomial.legendre.leggauss(120)
    y, weight = 0.5 * r * (1 + x), 0.5 * r * weight
    a = np.log1p(q * np.expm1(np.concatenate(([-r], 2 * y - r, [r]))))
    base = np.concatenate(([0.5], 0.5 * np.exp(-y) * weight, [0.5 * math.exp(-r)]))  # under the law without the record
    if piece.direction == "remove":
        return a, base * np.exp(a)
    if piece.direction == "add":
        return -a, base
    inner, mass = a[1:] - a[0], base[1:]
    return np.concatenate((inner, -inner)), np.concatenate((mass * np.exp(a[1:]), mass * math.exp(a[0])))
