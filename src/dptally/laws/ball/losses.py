"""Gaussian, two-point and Laplace losses in ball arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dptally.law.ball import Ball, BallLoss, ends, flint, working

__all__ = ["Ball", "BallLoss", "GaussianBall", "LaplaceBall", "TwoPointBall", "ends", "flint", "working"]


@dataclass(frozen=True, slots=True)
class GaussianBall(BallLoss):
    """M(z) = exp(variance z (z+1) / 2); the exact variance is at most 2^-900 of itself below the rational."""

    variance: Fraction
    count: int

    def spread(self) -> Ball:
        arb = flint().arb
        variance = arb(flint().fmpq(self.variance.numerator, self.variance.denominator))
        return variance.union(variance * (1 - arb(2) ** -900))

    def moment(self, z: Ball) -> Ball:
        return (self.spread() * z * (z + 1) / 2).exp()

    def phis(self, theta: Ball, step: Ball, nodes: int) -> list[Ball]:
        v, acb = self.spread(), flint().acb
        us = [k * step for k in range(nodes + 1)]
        return [acb(-v * u * u / 2, v * u * (2 * theta + 1) / 2).exp() for u in us]

    def log_moment(self, s: Ball) -> Ball:
        return self.spread() * s * (s + 1) / 2

    def beyond(self, theta: Ball, u: Ball) -> tuple[Ball, Ball]:
        del theta
        return (-self.count * self.spread() * u * u / 2).exp(), flint().arb(0)

    def closed_delta(self, epsilon: Ball) -> Ball:
        """Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2), mu^2 = count * variance  [Balle, Wang 2018, Thm.
        8].

        Increasing in mu, so the two ends of the variance enclose it without the cancellation of a wide ball.
        """
        arb = flint().arb
        spread = self.spread()
        values = []
        for v in (arb(spread.lower()), arb(spread.upper())):
            mu = (self.count * v).sqrt()
            left, right = (epsilon / mu - mu / 2) / arb(2).sqrt(), (epsilon / mu + mu / 2) / arb(2).sqrt()
            values.append((left.erfc() - epsilon.exp() * right.erfc()) / 2)
        return values[0].union(values[1])


@dataclass(frozen=True, slots=True)
class TwoPointBall(BallLoss):
    """Masses w at l, w e^{-l} at -l, ``zero`` at 0 and ``infinite`` at infinity, w = (1 - infinite - zero) /
    (1 + e^{-l}).

    The exact l lies in [loss_lower, loss]; the exact zero within 4 ulps of the double (0 is exact).
    """

    loss: float
    loss_lower: float
    zero: float
    infinite: float
    count: int

    def parameters(self) -> tuple[Ball, Ball, Ball]:
        """(l, w, zero)."""
        arb = flint().arb
        loss = arb(self.loss_lower).union(arb(self.loss))
        zero = arb(self.zero) * (1 + arb(0, 4 * 2.0**-52))
        return loss, (1 - arb(self.infinite) - zero) / (1 + (-loss).exp()), zero

    def infinity_mass(self) -> Ball:
        return flint().arb(self.infinite)

    def moment(self, z: Ball) -> Ball:
        loss, w, zero = self.parameters()
        return w * (z * loss).exp() + w * (-(z + 1) * loss).exp() + zero

    def beyond(self, theta: Ball, u: Ball) -> tuple[Ball, Ball]:
        del theta, u
        return flint().arb(1), flint().arb(0)

    def closed_delta(self, epsilon: Ball) -> Ball:
        """The finite part: sum over the numbers i, j of losses l and -l of their probability times (1 -
        e^{eps - (i-j) l})+.
        """
        arb, n = flint().arb, self.count
        loss, w, zero = self.parameters()
        low, total = w * (-loss).exp(), arb(0)
        for rest in range(n + 1 if self.zero > 0 else 1):
            still = n - rest
            share = arb.bin_uiui(n, rest) * zero**rest
            for i in range(still + 1):
                gain = -(epsilon - (2 * i - still) * loss).expm1()
                if not gain <= 0:
                    total += share * arb.bin_uiui(still, i) * w**i * low ** (still - i) * gain.max(arb(0))
        return total


@dataclass(frozen=True, slots=True)
class LaplaceBall(BallLoss):
    """Atoms 1/2 at r and e^{-r}/2 at -r, density e^{-(r-l)/2}/4 between; the exact r lies in [reach_lower,
    reach].
    """

    reach: float
    reach_lower: float
    count: int

    def moment(self, z: Ball) -> Ball:
        arb, acb = flint().arb, flint().acb
        r, w = arb(self.reach_lower).union(arb(self.reach)), z + acb(0.5)
        up, down = (w * r).exp(), (-w * r).exp()
        return (-r / 2).exp() * ((up + down) / 2 + (up - down) / (4 * w))

    def beyond(self, theta: Ball, u: Ball) -> tuple[Ball, Ball]:
        """The tilted atoms, and 2 f(r) / u for the tilted density f, which rises to f(r) and drops: its
        total variation.
        """
        arb = flint().arb
        r = arb(self.reach_lower).union(arb(self.reach))
        top = (theta * r).exp()
        one = (top / 2 + (-(1 + theta) * r).exp() / 2 + top / (2 * u)) / self.moment(flint().acb(theta)).real
        return one.min(arb(1)) ** self.count, arb(0)

    def closed_delta(self, epsilon: Ball) -> Ball:
        """delta grows with r (a larger scale is post-processing), so its two ends enclose it."""
        arb = flint().arb
        return self._residues(arb(self.reach_lower), epsilon).union(self._residues(arb(self.reach), epsilon))

    def _residues(self, r: Ball, epsilon: Ball) -> Ball:
        """With w = z + 1/2, M^k = (e^{-r/2}/2)^k sum_j C(k,j) (1 + 1/2w)^j (1 - 1/2w)^{k-j} e^{wr(2j-k)}.

        In delta = (1/2 pi i) int M^k e^{-z eps} / (w^2 - 1/4) dw, Re w > 1/2, term j carries e^{wx}, x =
        r(2j-k) - eps:
        nothing where x <= 0; where x > 0 the residue at 0, the coefficient of w^{k-1} in (w+1/2)^{j-1}
        (w-1/2)^{k-j-1} e^{wx}, and for j = k also 2^k e^{x/2} from w = 1/2.
        """
        arb, polynomial, k = flint().arb, flint().fmpz_poly, self.count
        total = arb(0)
        for j in range(k, 0, -1):
            x = r * (2 * j - k) - epsilon
            if x <= 0:
                break
            if j == k:
                series, scale = polynomial([1, 1]) ** (k - 1) * polynomial([-1] * k), arb(2) ** (2 - k)
            else:
                series, scale = (
                    polynomial([1, 1]) ** (j - 1) * polynomial([-1, 1]) ** (k - j - 1),
                    arb(2) ** (2 - k),
                )
            value, power = arb(0), arb(1)
            for i in range(k):  # x^i / i! from the exponential; the series is in 2w
                value += arb(series[k - 1 - i]) * power * arb(2) ** (k - 1 - i)
                power *= x / (i + 1)
            value = value * scale + (arb(2) ** k * (x / 2).exp() if j == k else 0)
            total += arb.bin_uiui(k, j) * (value if x > 0 else value.union(arb(0)))
        return total * (epsilon / 2 - k * r / 2).exp() / arb(2) ** k
