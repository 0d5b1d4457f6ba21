"""Divergences between two densities on the line, by adaptive quadrature: estimates, not certified bounds.

The densities are given by their logarithms, so that tails far below the smallest double still count (a Renyi order of
50 between two unit Gaussians lives where both densities are 0.0). A quadrature that does not settle is refused, and
so is a log density that does not integrate to 1 over the support: nothing is renormalised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from dptally import checks
from dptally.checks import Floats
from dptally.divergences.finite import Generator
from dptally.errors import InvalidArgument, InvalidType, Unanswerable

__all__ = ["alpha", "f_divergence", "hockey_stick", "kl", "maximum", "renyi", "total_variation"]

LogDensity = Callable[[float], float]
Support = tuple[float, float]
WHOLE_LINE: Support = (-math.inf, math.inf)
SETTLED = 1e-7  # relative error estimate above which a quadrature is refused


def renyi(
    log_p: LogDensity,
    log_q: LogDensity,
    order: float,
    support: Support = WHOLE_LINE,
    breakpoints: Sequence[float] = (),
) -> float:
    """Renyi divergence of an order in (0, inf]: log of the integral of p^a q^(1-a), over a - 1. An estimate.

    >>> unit = lambda x: -x * x / 2 - math.log(2 * math.pi) / 2
    >>> round(renyi(lambda x: unit(x - 1), unit, 50), 9)
    25.0
    """
    order = checks.real("order", order)
    if not order > 0:
        raise InvalidArgument("order", "in (0, inf]", order)
    if order == math.inf:
        return maximum(log_p, log_q, support, breakpoints)
    if order == 1:
        return kl(log_p, log_q, support, breakpoints)
    cells = _cells(log_p, log_q, support, breakpoints)

    def exponent(x: float) -> float:
        p, q = log_p(x), log_q(x)
        if p == -math.inf or (q == -math.inf and order < 1):
            return -math.inf
        return order * p + (1.0 - order) * q

    peak = max(exponent(x) for x in cells.grid)
    if math.isinf(peak):
        return math.inf
    total = cells.integral(lambda x: math.exp(min(exponent(x) - peak, 700.0)), exponent)
    return max(0.0, (peak + math.log(total)) / (order - 1.0))  # an integral that is 1 - 1e-16 is a divergence of 0


def kl(log_p: LogDensity, log_q: LogDensity, support: Support = WHOLE_LINE, breakpoints: Sequence[float] = ()) -> float:
    """Kullback-Leibler divergence: the integral of p log(p/q), inf where P is not dominated by Q.

    >>> unit = lambda x: -x * x / 2 - math.log(2 * math.pi) / 2
    >>> round(kl(lambda x: unit(x - 1), unit), 9)
    0.5
    """
    return alpha(log_p, log_q, 1.0, support, breakpoints)


def alpha(
    log_p: LogDensity,
    log_q: LogDensity,
    order: float,
    support: Support = WHOLE_LINE,
    breakpoints: Sequence[float] = (),
) -> float:
    """Alpha divergence (integral of p^a q^(1-a) - 1) / (a (a - 1)) of an order > 0. An estimate."""
    order = checks.positive("order", order)
    if order == 1:
        cells = _cells(log_p, log_q, support, breakpoints)
        if cells.escapes:
            return math.inf

        def term(x: float) -> float:
            p, q = log_p(x), log_q(x)
            return math.exp(p) * (p - q) - math.exp(p) + math.exp(q) if p > -math.inf else math.exp(q)

        return cells.integral(term, log_p)
    divergence = renyi(log_p, log_q, order, support, breakpoints)
    exponent = (order - 1.0) * divergence
    return math.expm1(exponent) / (order * (order - 1.0)) if exponent < 709 else math.inf


def maximum(
    log_p: LogDensity, log_q: LogDensity, support: Support = WHOLE_LINE, breakpoints: Sequence[float] = ()
) -> float:
    """Max divergence: the largest log(p/q) seen on a grid where p > 0: a grid can miss the top."""
    cells = _cells(log_p, log_q, support, breakpoints)
    if cells.escapes:
        return math.inf
    return max(0.0, *(log_p(x) - log_q(x) for x in cells.grid if log_p(x) > -math.inf))


def hockey_stick(
    log_p: LogDensity,
    log_q: LogDensity,
    epsilon: float,
    support: Support = WHOLE_LINE,
    breakpoints: Sequence[float] = (),
) -> float:
    """delta(epsilon): the integral of (p - e^epsilon q)+, for any finite epsilon. An estimate.

    >>> unit = lambda x: -x * x / 2 - math.log(2 * math.pi) / 2
    >>> round(hockey_stick(lambda x: unit(x - 1), unit, 1.0), 9)
    0.126936738
    """
    epsilon = checks.finite("epsilon", epsilon)

    def term(x: float) -> float:
        p, q = log_p(x), log_q(x)
        return -math.exp(p) * math.expm1(epsilon + q - p) if p > epsilon + q else 0.0

    return _cells(log_p, log_q, support, breakpoints).integral(term, log_p)


def total_variation(
    log_p: LogDensity, log_q: LogDensity, support: Support = WHOLE_LINE, breakpoints: Sequence[float] = ()
) -> float:
    """The largest difference in probability of any event: half the integral of |p - q|. An estimate."""
    return hockey_stick(log_p, log_q, 0.0, support, breakpoints)


def f_divergence(
    log_p: LogDensity,
    log_q: LogDensity,
    f: Generator,
    support: Support = WHOLE_LINE,
    breakpoints: Sequence[float] = (),
    *,
    slope: float = math.inf,
) -> float:
    """The integral of q f(p/q) for a convex f with f(1) = 0; ``slope`` is lim f(u)/u, used where q = 0."""
    if not callable(f):
        raise InvalidType("f", "a convex function of one real number", f)
    if not abs(f(1.0)) <= 1e-12:
        raise InvalidArgument("f", "zero at 1", f(1.0))
    slope = checks.real("slope", slope)
    cells = _cells(log_p, log_q, support, breakpoints)
    if cells.escapes and slope == math.inf:
        return math.inf

    def term(x: float) -> float:
        p, q = log_p(x), log_q(x)
        if q == -math.inf:
            return slope * math.exp(p) if p > -math.inf else 0.0
        return math.exp(q) * f(math.exp(p - q))

    return cells.integral(term, log_p)


class _Cells:
    """The support cut where a density may be rough, and a grid of sample points on it."""

    def __init__(self, support: Support, breakpoints: Sequence[float]) -> None:
        if not isinstance(support, (tuple, list)) or len(support) != 2:
            raise InvalidType("support", "a pair (low, high)", support)
        low, high = (checks.real("support", end) for end in support)
        if not low < high:
            raise InvalidArgument("support", "an interval (low, high) with low < high", support)
        inner = sorted(float(b) for b in breakpoints if low < b < high)
        self.ends = [low, *inner, high]
        self.grid = _grid(self.ends)
        self.escapes = False

    def integral(self, term: LogDensity, log_weight: LogDensity) -> float:
        """Integrate each cell, cut once more at the largest ``log_weight`` and a little beside it."""
        from scipy.integrate import quad  # slow to import, and only estimates need it

        peak = max(self.grid, key=log_weight)
        cuts = sorted({*self.ends, *(x for x in (peak - 8.0, peak, peak + 8.0) if self.ends[0] < x < self.ends[-1])})
        total = error = 0.0
        for low, high in pairwise(cuts):
            value, off, _, *trouble = quad(term, low, high, limit=200, epsabs=0.0, epsrel=1e-11, full_output=1)
            diverges = "divergent" in str(trouble)  # its error estimate then means nothing
            total, error = total + value, error + (math.inf if diverges else off)
        if not error <= SETTLED * abs(total) + 1e-14:
            raise Unanswerable(
                f"the quadrature did not settle (value {total:.6g}, error estimate {error:.2g}); the "
                "integral may be infinite, or give the places where a density jumps as breakpoints="
            )
        return total


def _cells(log_p: LogDensity, log_q: LogDensity, support: Support, breakpoints: Sequence[float]) -> _Cells:
    for name, function in (("log_p", log_p), ("log_q", log_q)):
        if not callable(function):
            raise InvalidType(name, "a log density: a function of one real number", function)
    cells = _Cells(support, breakpoints)
    for name, function in (("log_p", log_p), ("log_q", log_q)):
        mass = cells.integral(lambda x, f=function: math.exp(f(x)), function)  # type: ignore[misc]
        if not abs(mass - 1.0) <= 1e-6:
            raise InvalidArgument(name, f"a log density on {tuple(support)} (its integral must be 1)", mass)
    cells.escapes = any(log_p(x) > -math.inf and log_q(x) == -math.inf for x in cells.grid)
    return cells


def _grid(ends: Sequence[float], per_cell: int = 801) -> list[float]:
    """Points strictly inside each cell; infinite cells are covered geometrically and by small steps."""
    points: list[Floats] = []
    reach = np.unique(np.concatenate([np.geomspace(1e-6, 1e6, per_cell), np.arange(0.25, 200.0, 0.25)]))
    for low, high in pairwise(ends):
        if math.isfinite(low) and math.isfinite(high):
            points.append(np.linspace(low, high, per_cell + 2)[1:-1])
        elif math.isfinite(low):
            points.append(low + reach)
        elif math.isfinite(high):
            points.append(high - reach)
        else:
            points.append(np.concatenate([-reach, [0.0], reach]))
    return [float(x) for x in np.sort(np.concatenate(points))]
