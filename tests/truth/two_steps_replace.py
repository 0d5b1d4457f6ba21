"""Two Poisson-sampled Gaussian steps under REPLACE: delta_2(eps) = E_P[delta_1(eps - L)], quadrature in balls.

In standard units of the noise, A(t) = 1 - q + q e^{t/s - 1/(2 s^2)}; the loss L = log A(t) - log A(-t) under the
density A(t) phi(t) takes every real value, so the integrand is analytic along the whole line.
"""

from __future__ import annotations

from flint import acb, arb

from .balls import Number, ball, precision
from .losses import SampledReplaceLoss


def two_step_replace_delta(sigma: Number, q: Number, epsilon: Number, digits: int = 16) -> arb:
    """delta(eps), eps >= 0, of two steps at rate q < 1, to about ``digits`` digits; the same in both directions."""
    size = arb(0)
    for _ in range(3):  # the first pass only finds how large the answer is
        with precision(int(3.4 * digits) + 160):
            s, r, e = ball(sigma), ball(q), ball(epsilon)
            one_p, one_q = SampledReplaceLoss(s, r).above(e)
            guess = size.lower() if size > 0 else (one_p - e.exp() * one_q).lower().max(arb(10) ** -300)
            size = _integral(s, r, e, guess * arb(10) ** -digits)
        if size > 0 and size.rel_accuracy_bits() > 3.3 * digits - 8:
            break
    return size


def _integral(s: arb, q: arb, e: arb, tolerance: arb) -> arb:
    price = acb(e.exp())

    def integrand(t: acb, analytic: bool) -> acb:
        a, b = _a(s, q, t), _a(s, q, -t)
        bell = (-t * t / 2).exp() / (2 * acb.pi()).sqrt()
        return bell * a * _profile(s, q, price * b / a, analytic)

    low = -((2 * (1 / tolerance).log()).sqrt() + 2)
    high = 1 / s - low
    value = acb.integral(integrand, low, high, abs_tol=tolerance, rel_tol=tolerance).real
    # delta_1 lies between 0 and 1: what is left out counts at most with its mass
    root = arb(2).sqrt()
    dropped = (-low / root).erfc() + (high / root).erfc() + ((high - 1 / s) / root).erfc()
    return value + arb(0, 1) * dropped.upper() if value.is_finite() else value


def _a(s: arb, q: arb, t: acb) -> acb:
    return 1 - q + q * (t / s - 1 / (2 * s * s)).exp()


def _profile(s: arb, q: arb, left: acb, analytic: bool) -> acb:
    """delta_1 at the epsilon with e^epsilon = left: A(x) = left A(-x) is quadratic in y = e^{x/s}."""
    lead = q * (-1 / (2 * s * s)).exp()
    middle = (1 - q) * (1 - left)
    root = (middle * middle + 4 * lead * lead * left).sqrt(analytic=analytic)
    # of the two forms of the root y the one that does not cancel
    y = 2 * lead * left / (middle + root) if middle.real > 0 else (root - middle) / (2 * lead)
    x = s * y.log(analytic=analytic)
    half = acb(2).sqrt()
    plain, nearer, further = (((x + shift) / half).erfc() / 2 for shift in (0, -1 / s, 1 / s))
    return (1 - q) * plain + q * nearer - left * ((1 - q) * plain + q * further)
