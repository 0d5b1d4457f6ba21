"""Closed forms: Gaussian, finitely many outputs, randomised response, (epsilon, delta) guarantees."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from .balls import Number, ball, normal_cdf, positive_part, refine


def gaussian_delta(mu: Number, epsilon: Number) -> arb:
    """Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2), any real epsilon  [Balle, Wang 2018, Thm. 8]."""
    return refine(lambda: _gaussian(ball(mu), ball(epsilon)))


def sigma_delta(sigma: Number, epsilon: Number, count: int = 1, sensitivity: Number = 1) -> arb:
    """``count`` Gaussians of standard deviation sigma: mu = sensitivity sqrt(count) / sigma, not rounded."""
    return refine(lambda: _gaussian(ball(sensitivity) * arb(count).sqrt() / ball(sigma), ball(epsilon)))


def _gaussian(m: arb, e: arb) -> arb:
    return normal_cdf(-e / m + m / 2) - e.exp() * normal_cdf(-e / m - m / 2)


def discrete_delta(p: Sequence[Number], q: Sequence[Number], count: int, epsilon: Number) -> arb:
    """``count`` independent pairs on finitely many outputs: the sum of (P - e^eps Q)+, multinomial counts.

    The pair is (p[i], q[i]); cost grows as count ** (len(p) - 1).
    """

    def compute() -> arb:
        price = ball(epsilon).exp()
        powers_p = [_powers(ball(x), count) for x in p]
        powers_q = [_powers(ball(x), count) for x in q]
        total = arb(0)
        for parts in _splits(count, len(p)):
            ways, pp, qq = arb.fac_ui(count), arb(1), arb(1)
            for i, n in enumerate(parts):
                ways /= arb.fac_ui(n)
                pp *= powers_p[i][n]
                qq *= powers_q[i][n]
            total += ways * positive_part(pp - price * qq)
        return total

    return refine(compute)


def randomized_response_delta(p: float | str | Fraction, categories: int, count: int, epsilon: Number) -> arb:
    """k-ary randomised response that tells the truth with probability p, ``count`` times."""
    truth = Fraction(p)
    lie = (1 - truth) / (categories - 1)
    rest = [1 - truth - lie] if categories > 2 else []
    return discrete_delta([truth, lie, *rest], [lie, truth, *rest], count, epsilon)


def approx_delta(epsilon0: Number, delta0: Number, count: int, epsilon: Number) -> arb:
    """``count`` copies of (epsilon0, delta0)-DP  [Kairouz, Oh, Viswanath 2015, Thm. 3.3, for any epsilon].

    1 - (1-d)^k + (1-d)^k sum over j of C(k, j) (e^{j e0} - e^{eps + (k-j) e0})+ / (1 + e^e0)^k.
    """

    def compute() -> arb:
        e0, d0, e = ball(epsilon0), ball(delta0), ball(epsilon)
        total = arb(0)
        for j in range(count + 1):
            gain = positive_part((j * e0).exp() - (e + (count - j) * e0).exp())
            if not gain.is_zero():
                total += arb.bin_uiui(count, j) * gain
        survive = (1 - d0) ** count
        return 1 - survive + survive * total / (1 + e0.exp()) ** count

    return refine(compute)


def _powers(x: arb, most: int) -> list[arb]:
    out = [arb(1)]
    for _ in range(most):
        out.append(out[-1] * x)
    return out


def _splits(total: int, parts: int) -> list[tuple[int, ...]]:
    """Every way to write total as an ordered sum of ``parts`` non-negative integers."""
    if parts == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in _splits(total - first, parts - 1)]
