"""Two Poisson-sampled Gaussian steps: delta_2(eps) = E_P[delta_1(eps - L)] by rigorous adaptive quadrature.

Where nothing of the second step's losses lies below (remove) or above (add) what is left, delta_1 is 1 -
e^rest or 0; the range of the first step's noise is cut there, and on either side the integrand is analytic.
"""

from __future__ import annotations

from flint import acb, arb

from .balls import Number, ball, precision
from .sampled import _one_step


def two_step_delta(sigma: Number, q: Number, epsilon: Number, direction: str, digits: int = 16) -> arb:
    """delta(eps), eps >= 0, of two steps at rate q < 1 in one direction, to about ``digits`` digits."""
    size = arb(0)
    for _ in range(3):  # the first pass only finds how large the answer is
        with precision(int(3.4 * digits) + 80):
            s, r, e = ball(sigma), ball(q), ball(epsilon)
            guess = size.lower() if size > 0 else _one_step(s, r, e, direction).lower().max(arb(10) ** -300)
            size = _integral(s, r, e, direction, guess * arb(10) ** -digits)
        if size > 0 and size.rel_accuracy_bits() > 3.3 * digits - 8:
            break
    return size


def _integral(s: arb, q: arb, e: arb, direction: str, tolerance: arb) -> arb:
    remove = direction == "remove"
    bound = (e if remove else -e).exp() / (1 - q)  # A at the cut: what is left meets the edge of the support
    share = (bound - 1 + q) / q
    if not remove and share <= 0:
        return arb(0)  # the two largest losses together stay below eps
    cut = s * share.log() + 1 / (2 * s)  # in standard units of the noise
    reach = (2 * (1 / tolerance).log()).sqrt() + 2

    def inner(z: acb, analytic: bool) -> acb:
        a = _a(s, q, z)
        left = e_ball / a if remove else a * e_ball  # e^{eps - L}
        return _density(a, z, remove) * _profile(s, q, left, remove, analytic)

    def above(z: acb, analytic: bool) -> acb:
        a = _a(s, q, z)
        return _density(a, z, remove) * (1 - e_ball / a)

    e_ball = acb(e.exp())
    low = -reach
    if not cut > low:
        low = cut - 1
    value = acb.integral(inner, low, cut, abs_tol=tolerance, rel_tol=tolerance).real
    # left of the range: at most P(noise < low)
    dropped = (-low / arb(2).sqrt()).erfc()
    if remove:
        high = arb(reach + 1 / s).max(cut + 1)
        value += acb.integral(above, cut, high, abs_tol=tolerance, rel_tol=tolerance).real
        dropped += ((high - 1 / s) / arb(2).sqrt()).erfc() + (high / arb(2).sqrt()).erfc()
    return value + arb(0, 1) * dropped.upper() if value.is_finite() else value


def _a(s: arb, q: arb, z: acb) -> acb:
    return 1 - q + q * (z / s - 1 / (2 * s * s)).exp()


def _density(a: acb, z: acb, remove: bool) -> acb:
    bell = (-z * z / 2).exp() / (2 * acb.pi()).sqrt()
    return bell * a if remove else bell


def _profile(s: arb, q: arb, left: acb, remove: bool, analytic: bool) -> acb:
    """delta_1 at the epsilon with e^epsilon = left, where it lies within the support; near the edge an
    enclosure.
    """
    share = ((left if remove else 1 / left) - 1 + q) / q
    if not share.real > 0:
        # next to the edge: delta_1 lies between 0 and 1 for real epsilon; not analytic there
        return acb("nan", "nan") if analytic or not share.imag.is_zero() else acb(arb(0.5, 0.5))
    t = s * share.log() + 1 / (2 * s)
    root = acb(2).sqrt()
    if remove:
        plain, shifted = (t / root).erfc() / 2, ((t - 1 / s) / root).erfc() / 2
        return (1 - q) * plain + q * shifted - left * plain
    plain, shifted = (-t / root).erfc() / 2, ((1 / s - t) / root).erfc() / 2
    return plain - left * ((1 - q) * plain + q * shifted)
