"""Poisson-sampled Gaussian, one step: a closed form.

Pair, in units of the sensitivity: mixture (1-q) N(0, s^2) + q N(1, s^2) against N(0, s^2). "remove": P is the
mixture and L = log A; "add": P is the plain normal and L = -log A; A(x) = 1 - q + q e^{(2x-1)/(2 s^2)}.
"""

from __future__ import annotations

from flint import arb

from .balls import Number, ball, normal_cdf, refine


def one_step_delta(sigma: Number, q: Number, epsilon: Number, direction: str) -> arb:
    """delta(eps) of one step, any real epsilon: P(L > eps) - e^eps Q(L > eps), the event a half line of x."""
    return refine(lambda: _one_step(ball(sigma), ball(q), ball(epsilon), direction))


def _one_step(s: arb, q: arb, e: arb, direction: str) -> arb:
    price = e.exp()
    if direction == "remove":
        share = (e.expm1() + q) / q  # e^{w*}, A(x*) = e^eps
        if share <= 0:  # every loss is above eps
            return 1 - price
        x = (share.log() * s * s * 2 + 1) / 2
        p = (1 - q) * normal_cdf(-x / s) + q * normal_cdf((1 - x) / s)
        return p - price * normal_cdf(-x / s)
    share = ((-e).expm1() + q) / q
    if share <= 0:  # no loss reaches eps
        return arb(0)
    x = (share.log() * s * s * 2 + 1) / 2
    return normal_cdf(x / s) - price * ((1 - q) * normal_cdf(x / s) + q * normal_cdf((x - 1) / s))
