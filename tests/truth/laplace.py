"""k-fold Laplace, exactly: a residue sum with integer coefficients.

With t = sensitivity / scale and w = z + 1/2 the moment of one loss is
    M = (e^{-t/2} / 2) [ (1 + 1/(2w)) e^{wt} + (1 - 1/(2w)) e^{-wt} ],
and delta(eps) = (1/2 pi i) int M^k e^{-z eps} / (z (z+1)) dz on a line Re w > 1/2. Term j of the binomial
expansion of M^k carries e^{w x_j}, x_j = t (2j - k) - eps: it vanishes where x_j <= 0 (close the contour to
the right) and is a sum of residues where x_j > 0 (close it to the left): at w = 0, of order k, and for j = k
at w = 1/2 as well.
"""

from __future__ import annotations

from flint import arb, fmpz_poly

from .balls import Number, ball, refine


def laplace_delta(t: Number, count: int, epsilon: Number) -> arb:
    """delta(eps) of ``count`` Laplace mechanisms with loss range t = sensitivity / scale, eps >= 0."""
    return refine(lambda: _residues(ball(t), count, ball(epsilon)), bits=128 + 4 * count)


def _residues(t: arb, k: int, e: arb) -> arb:
    total = arb(0)
    plus, minus = fmpz_poly([1, 1]), fmpz_poly([-1, 1])  # in y = 2w
    inverse_factorials = [arb(1)]
    for i in range(1, k):
        inverse_factorials.append(inverse_factorials[-1] / i)
    for j in range(k, 0, -1):
        x = t * (2 * j - k) - e
        if x <= 0:
            break
        if j == k:
            # (w+1/2)^{k-1} / (w-1/2): its series at 0, with -2 (1 + 2w + 4w^2 + ...), and the pole at 1/2
            series = (plus ** (k - 1)) * fmpz_poly([-1] * k)
            term = arb(2) ** k * (x / 2).exp() + 2 * _coefficient(series, x, k, inverse_factorials) / arb(2) ** (k - 1)
        else:
            series = plus ** (j - 1) * minus ** (k - j - 1)
            term = _coefficient(series, x, k, inverse_factorials) / arb(2) ** (k - 2)
        if not x > 0:  # within rounding of the kink, where the term is continuous and starts from 0 (k >= 2)
            term = term.union(arb(0))
        total += arb.bin_uiui(k, j) * term
    return total * (e / 2 - k * t / 2).exp() / arb(2) ** k


def _coefficient(series: fmpz_poly, x: arb, k: int, inverse_factorials: list[arb]) -> arb:
    """The coefficient of w^{k-1} in series(2w) e^{wx}."""
    total, power = arb(0), arb(1)
    for i in range(k):  # x^i / i! from the exponential, w^{k-1-i} from the series
        c = series[k - 1 - i]
        if c != 0:
            total += arb(c) * inverse_factorials[i] * power * 2 ** (k - 1 - i)
        power *= x
    return total
