"""Independent references for the lattice: exact sums in high precision and integrals in balls."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import flint
import mpmath as mp
from flint import acb, arb


def laplace_log_delta(t: float, k: int, epsilon: float, digits: int = 0) -> mp.mpf:
    """log delta of k-fold Laplace by residues.

    M(z) = [(z+1) e^{zt} + z e^{-(1+z)t}] / (2z+1), so delta is the sum over i with a = t(2i-k) - eps > 0 of
    C(k,i) e^{-t(k-i)} times the residues of z^{k-i-1} (z+1)^{i-1} (2z+1)^{-k} e^{az} at -1/2, and at 0 (i =
    k), -1 (i = 0).
    """
    with mp.workdps(digits or 60 + 2 * k):
        t, epsilon = mp.mpf(t), mp.mpf(epsilon)
        total = mp.mpf(0)
        for i in range(k + 1):
            a = t * (2 * i - k) - epsilon
            if a <= 0:
                continue
            # coefficient of w^(k-1) of (w - 1/2)^(k-i-1) (w + 1/2)^(i-1) e^{aw}, w = z + 1/2
            poly = _product(_binomial_series(mp.mpf(-1) / 2, k - i - 1, k), _binomial_series(mp.mpf(1) / 2, i - 1, k))
            series = [mp.mpf(1)]
            for n in range(1, k):
                series.append(series[-1] * a / n)
            residue = mp.fsum(poly[n] * series[k - 1 - n] for n in range(k)) * mp.exp(-a / 2) / mp.mpf(2) ** k
            if i == k:
                residue += 1
            if i == 0:
                residue += mp.exp(-a) * mp.mpf(-1) ** (k - 1) * mp.mpf(-1) ** k
            total += mp.binomial(k, i) * mp.exp(-t * (k - i)) * residue
        return mp.log(total)


def _binomial_series(c: mp.mpf, power: int, terms: int) -> list[mp.mpf]:
    """Coefficients of (w + c)^power, power >= -1."""
    return [mp.binomial(power, n) * c ** (power - n) if power >= 0 else (-1) ** n * c ** (-1 - n) for n in range(terms)]


def _product(a: list[mp.mpf], b: list[mp.mpf]) -> list[mp.mpf]:
    return [mp.fsum(a[i] * b[n - i] for i in range(n + 1)) for n in range(len(a))]


def atoms_log_delta(laws: Sequence[Sequence[tuple[mp.mpf, mp.mpf]]], epsilon: float) -> mp.mpf:
    """log delta of independent losses with few values each, by enumeration."""
    total = mp.mpf(0)
    for choice in itertools.product(*laws):
        loss = mp.fsum(x for x, _ in choice)
        if loss > epsilon:
            total += mp.fprod(p for _, p in choice) * -mp.expm1(epsilon - loss)
    return mp.log(total) if total else mp.ninf


def response_atoms(epsilon: float) -> list[tuple[mp.mpf, mp.mpf]]:
    """Randomised response as exact atoms."""
    e = mp.mpf(epsilon)
    return [(-e, 1 / (1 + mp.exp(e))), (e, 1 / (1 + mp.exp(-e)))]


def sampled_gaussian_pair(
    rate: float, sigma: float, epsilon: float, *, remove: bool, digits: int = 40
) -> tuple[float, float]:
    """log delta of TWO steps of the sampled Gaussian: one integral in balls over the first loss, the second
    in closed form."""
    flint.ctx.dps = digits + 20
    try:
        q, s, eps = arb(rate), arb(sigma), arb(epsilon)

        def log_ratio(x: acb) -> acb:
            return (1 - q + q * (x / s - 1 / (2 * s * s)).exp()).log()

        def tail(x: acb) -> acb:
            return (x / acb(2).sqrt()).erfc() / 2

        def one_step(loss: acb) -> acb:
            """The closed profile of one step above the threshold."""
            a = loss.exp()
            if remove:
                b = (a - (1 - q)) / q
                inner = b.log()
                m = 1 / s
                return q * (tail(inner * s - m / 2) - b * tail(inner * s + m / 2))
            factor = 1 - a * (1 - q)
            b = a * q / factor
            inner, m = b.log(), 1 / s
            return factor * (tail(inner * s - m / 2) - b * tail(inner * s + m / 2))

        def integrand(x: acb, _: bool) -> acb:
            loss = log_ratio(x)
            weight = (-x * x / 2).exp() / acb(2 * arb.pi()).sqrt()
            return weight * loss.exp() * one_step(eps - loss) if remove else weight * one_step(eps + loss)

        def beyond(x: acb, _: bool) -> acb:
            loss = log_ratio(x)
            weight = (-x * x / 2).exp() / acb(2 * arb.pi()).sqrt()
            return weight * loss.exp() * (1 - (eps - loss).exp())

        # remove: eps - l = log(1 - q) at the edge; above it the second loss always exceeds.  add: eps + l =
        # -log(1 - q)
        edge_log = eps - (1 - q).log() if remove else -(1 - q).log() - eps
        edge_w = ((edge_log.exp() - (1 - q)) / q).log()
        edge = edge_w * s + 1 / (2 * s)
        gap = arb(10) ** (-25 if remove else -6)
        near = arb(edge.mid()) - gap
        options = {"rel_tol": arb(10) ** (-digits + 8), "abs_tol": arb(10) ** -400}
        total = acb.integral(integrand, arb(-40), near, **options).real
        # in the gap the second factor falls (add) or is below 1 (remove), and the weight is below its value
        # at one end
        peak = (-(arb(near.mid()) ** 2) / 2).exp() if near > 0 else arb(1)
        spare = gap * peak * (log_ratio(acb(near)).real.exp() if remove else one_step(eps + log_ratio(acb(near))).real)
        if remove:
            total += acb.integral(beyond, arb(edge.mid()) + gap, arb(60), **options).real
            spare = 4 * spare
        low, high = total.log(), (total + spare).log()
        return float(low.mid()) - 1e-13, float(high.mid()) + 1e-13
    finally:
        flint.ctx.dps = 15
