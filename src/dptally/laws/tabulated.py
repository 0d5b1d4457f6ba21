"""A declared privacy profile: a curve of (epsilon, delta) guarantees, from a paper or from data.

Every finite set of guarantees (eps_i, delta_i) that holds in both directions implies more than its points.
In x = e^eps a profile H is convex, falls from H(0) = 1 to its limit, and the other direction has
H(1/x) = 1 - 1/x + H(x)/x. So the largest profile that keeps all the guarantees is the lower convex envelope,
in x, of

    (0, 1),   (1/x_i, 1 - 1/x_i + delta_i / x_i),   (x_i, delta_i),   and the level line beyond the last,

which is piecewise linear: a pair with atoms at +-eps_i and the last delta at infinity
[Zhu, Dong, Wang 2022, Prop. 8 and Lemma 9; for one guarantee it is Liu et al. 2022, Thm. 2.1, and the pair
of Kairouz, Oh, Viswanath 2015]. It dominates whatever keeps the guarantees, so it may be composed and
sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptally import checks
from dptally.checks import Floats
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.law.law import Numbers
from dptally.laws.atoms import PAIR_THEOREM, AtomicLaw, scaled_profile
from dptally.numerics.rounding import EPS

__all__ = ["Points", "ProfileLaw", "law_of_guarantees", "stated_delta"]

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class ProfileLaw(Law):
    """The table of a callable profile, with the callable for the profile of one run."""

    table: AtomicLaw
    delta_of_epsilon: Callable[[float], float]
    theorem: ClassVar[str] = PAIR_THEOREM

    def log_moment(self, t: Numbers) -> Numbers:
        return self.table.log_moment(t)

    @property
    def mean(self) -> float:
        return self.table.mean

    @property
    def infinity_mass(self) -> float:
        return self.table.infinity_mass

    @property
    def supremum(self) -> float:
        return self.table.supremum

    @property
    def infimum(self) -> float:
        return self.table.infimum

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """The table's, or the function's where that is smaller; below 0 the table's alone."""
        lower, upper = self.table.log_profile(epsilon)
        flat = np.atleast_1d(epsilon).ravel()
        stated = np.array([stated_delta(self.delta_of_epsilon, e) if e >= 0 else 1.0 for e in flat])
        mass = self.table.infinity_mass
        with np.errstate(divide="ignore"):
            finite = np.log(np.maximum(stated - mass, 0.0))
            relative = 4.0 + 4.0 * mass * np.exp(-np.maximum(finite, -700.0))
            slack = np.where(np.isfinite(finite), EPS * relative, 0.0)
        finite, slack = finite.reshape(epsilon.shape), slack.reshape(epsilon.shape)
        return np.minimum(lower, finite - slack), np.minimum(upper, finite + slack)

    def tail(self, loss: Floats) -> Floats:
        return self.table.tail(loss)

    def atoms(self) -> tuple[tuple[float, float], ...]:
        return self.table.atoms()


def stated_delta(function: Callable[[float], float], epsilon: float) -> float:
    """One value of the user's function, checked."""
    delta = checks.real(f"delta_of_epsilon({epsilon:.17g})", function(float(epsilon)))
    if not 0 <= delta <= 1:
        raise InvalidArgument(f"delta_of_epsilon({epsilon:.17g})", "in [0, 1]", delta)
    return abs(delta)


def law_of_guarantees(points: Points) -> AtomicLaw | None:
    """The pair that dominates all mechanisms with these guarantees; None where they leave nothing to lose.

    Masses are computed in doubles and then raised by a common factor until the pair provably keeps every
    knot of the envelope, so it dominates in spite of rounding.
    """
    knots = _hull(points)
    if knots[0] == (0.0, 0.0):
        return None
    infinity = knots[-1][1]
    if infinity == 1.0:
        return AtomicLaw((), 1.0)
    upper_half = _masses(knots)
    base = [(-loss, mass * math.exp(-loss)) for loss, mass in reversed(upper_half) if loss > 0] + upper_half
    for ulps in (64, 256, 1024, 4096):
        atoms = tuple((loss, mass * (1.0 + ulps * EPS)) for loss, mass in base if mass > 0)
        law = AtomicLaw(atoms, infinity)
        if _keeps(law, knots):
            return AtomicLaw(atoms, infinity, 2 * ulps * EPS)
    raise InvalidArgument("points", "a profile whose pair can be formed in double precision", points)


def _hull(points: Points) -> Points:
    """The knots at eps >= 0 of the lower convex envelope in x = e^eps of the points and their mirror images.

    The first knot is the point whose line through its own mirror image, delta = 1 - s (1 + x), is the
    lowest: the largest s = (1 - delta) / (1 + x). From there on it is the hull of what lies to the right.
    Slopes are compared after division by x, so nothing overflows. A point dropped by rounding lies on the
    envelope to within rounding, and ``_keeps`` looks again.
    """
    steepness = [(1.0 - delta) / (1.0 + math.exp(min(epsilon, 700.0))) for epsilon, delta in points]
    first = steepness.index(max(steepness))
    hull = [points[first]]
    for epsilon, delta in points[first + 1 :]:
        while len(hull) > 1 and _above(hull, epsilon, delta):
            hull.pop()
        hull.append((epsilon, delta))
    while len(hull) > 1 and hull[-1][1] == hull[-2][1]:
        hull.pop()
    return tuple(hull)


def _above(hull: list[tuple[float, float]], epsilon: float, delta: float) -> bool:
    """Whether the last knot lies on or above the chord from the one before it to the new point."""
    (before, higher), (last, height) = hull[-2:]
    ahead, behind = math.expm1(min(epsilon - last, 700.0)), -math.expm1(before - last)
    return (higher - height) * ahead <= (height - delta) * behind


def _masses(knots: Points) -> list[tuple[float, float]]:
    """P-masses at the knots: e^eps times the change of slope in x.

    On the left of the first knot the line through its mirror image has slope -s, and
    e^eps s = (1 - delta)/(1 + e^-eps); at eps = 0 the knot is its own mirror image and carries both masses.
    """
    out = []
    for i, (epsilon, delta) in enumerate(knots):
        if i == 0:
            mass = (1.0 - delta) / (1.0 + math.exp(-epsilon))
        else:
            mass = (knots[i - 1][1] - delta) / -math.expm1(knots[i - 1][0] - epsilon)
        if i + 1 < len(knots):
            mass -= (delta - knots[i + 1][1]) / math.expm1(min(knots[i + 1][0] - epsilon, 700.0))
        out.append((epsilon, max(mass, 0.0) * (2.0 if epsilon == 0 else 1.0)))
    return out


def _keeps(law: AtomicLaw, knots: Points) -> bool:
    """Whether the law's profile is certainly at least the envelope, at every knot, mirror image and in total.

    Without the mass at infinity, which is exact: h = d - d_last at a knot, (1 - e^-eps)(1 - d) + d - d_last
    at its mirror image.
    """
    last = knots[-1][1]
    wanted = [(-e, -math.expm1(-e) * (1.0 - d) + (d - last)) for e, d in knots if e > 0]
    wanted += [(e, d - last) for e, d in knots]
    total, scale, relative = scaled_profile(*law.columns(), np.array([e for e, _ in wanted]))
    least = total * scale * (1.0 - relative - 4 * EPS)
    whole = math.fsum(mass for _, mass in law.points) >= (1.0 - last) * (1.0 + 4 * EPS)
    return whole and bool((least >= np.array([h for _, h in wanted]) * (1.0 + 8 * EPS)).all())
