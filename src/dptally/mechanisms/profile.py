r"""A declared privacy profile: a curve of (epsilon, delta) guarantees, from a paper or from data.

Every finite set of guarantees (eps_i, delta_i) that holds in both directions implies more than its points.
In x = e^eps a profile H is convex, falls from H(0) = 1 to its limit, and the other direction has
H(1/x) = 1 - 1/x + H(x)/x. So the largest profile that keeps all the guarantees is the lower convex envelope,
in x, of

    (0, 1),   (1/x_i, 1 - 1/x_i + delta_i / x_i),   (x_i, delta_i),   and the level line beyond the last,

which is piecewise linear: a pair with atoms at +-eps_i and the last delta at infinity
[Zhu, Dong, Wang 2022, Prop. 8 and Lemma 9; for one guarantee it is Thm. 2.1 of the GDPT paper and the pair
of Kairouz, Oh, Viswanath 2015]. It dominates whatever keeps the guarantees, so it may be composed and
sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from dptally import checks
from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidType
from dptally.law import Law
from dptally.law.law import Numbers
from dptally.mechanisms.atomic_law import AtomicLaw, scaled_profile
from dptally.mechanisms.mechanism import Mechanism
from dptally.numerics.rounding import EPS

__all__ = ["Profile", "ProfileLaw", "law_of_guarantees"]

Points = tuple[tuple[float, float], ...]

_STEPS = 2048  # intervals of the table of a callable
_FARTHEST = 1024.0  # no epsilon beyond is looked at
_NEGLIGIBLE = 1e-300


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Profile(Mechanism):
    """Any mechanism that is (epsilon, delta_of_epsilon(epsilon))-DP for every epsilon >= 0.

    ``Profile(function)``: the function takes one float and must not increase, within [0, 1]. It is looked
    at on 2050 epsilons, denser towards 0, up to where it vanishes, falls below 1e-300 or stays level (1024
    at most). One run is answered with the smaller of the function and the table's envelope; compositions
    and samples use the table, which is made of valid guarantees and therefore dominates, being pessimistic
    only between its points.

    ``Profile(points=...)`` or ``Profile.from_points``: exactly these guarantees and no others.

    >>> Profile.from_points([(0.1, 1e-3), (1.0, 1e-9)]).points
    ((0.1, 0.001), (1.0, 1e-09))
    """

    delta_of_epsilon: Callable[[float], float] | None
    points: Points
    json_name: ClassVar[str] = "profile"

    def __init__(
        self,
        delta_of_epsilon: Callable[[float], float] | None = None,
        points: Iterable[Iterable[float]] | None = None,
    ) -> None:
        if (delta_of_epsilon is None) == (points is None):
            raise InvalidType("delta_of_epsilon, points", "one of the two, not both", (delta_of_epsilon, points))
        object.__setattr__(self, "delta_of_epsilon", delta_of_epsilon)
        table = _tabulated(delta_of_epsilon) if delta_of_epsilon is not None else _checked_points(points)
        object.__setattr__(self, "points", table)

    @classmethod
    def from_points(cls, points: Iterable[Iterable[float]]) -> Profile:
        """Finitely many guarantees (epsilon, delta); nothing is assumed between them but what they imply."""
        return cls(points=points)

    def parameters(self) -> dict[str, Any]:
        if self.delta_of_epsilon is None:
            return {"points": self.points}
        return {"delta_of_epsilon": self.delta_of_epsilon}

    def laws(self) -> tuple[Law, ...]:
        table = law_of_guarantees(self.points)
        if table is None:
            return ()
        return (table if self.delta_of_epsilon is None else ProfileLaw(table, self.delta_of_epsilon),)


@dataclass(frozen=True, slots=True)
class ProfileLaw(Law):
    """The table of a callable profile, with the callable for the profile of one run."""

    table: AtomicLaw
    delta_of_epsilon: Callable[[float], float]
    theorem: ClassVar[str] = "Zhu, Dong, Wang 2022, Optimal accounting of DP via characteristic function, Prop. 8"

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
        stated = np.array([_value(self.delta_of_epsilon, e) if e >= 0 else 1.0 for e in flat])
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


def _value(function: Callable[[float], float], epsilon: float) -> float:
    """One value of the user's function, checked."""
    delta = checks.real(f"delta_of_epsilon({epsilon:.17g})", function(float(epsilon)))
    if not 0 <= delta <= 1:
        raise InvalidArgument(f"delta_of_epsilon({epsilon:.17g})", "in [0, 1]", delta)
    return abs(delta)


def _tabulated(function: object) -> Points:
    if not callable(function):
        raise InvalidType("delta_of_epsilon", "a function of epsilon (or use Profile.from_points)", function)
    end = 1.0
    while (
        end < _FARTHEST and _value(function, end) > _NEGLIGIBLE and _value(function, end) < _value(function, 0.5 * end)
    ):
        end *= 2.0
    if _value(function, end) <= _NEGLIGIBLE:
        end = _first_negligible(function, end)
    grid = [end * (k / _STEPS) ** 2 for k in range(_STEPS + 1)]
    grid = sorted({*grid, _tangent(function, grid)})
    return _falling([(epsilon, _value(function, epsilon)) for epsilon in grid], "delta_of_epsilon")


def _tangent(function: Callable[[float], float], grid: list[float]) -> float:
    """The epsilon whose guarantee implies the most at epsilon 0: it maximises (1 - delta) / (1 + e^eps).

    [GDPT paper, Sec. 2: the refined profile is the naive one beyond it and a line in e^eps below it.]
    """

    def implied(epsilon: float) -> float:
        return (1.0 - _value(function, epsilon)) / (1.0 + math.exp(min(epsilon, 700.0)))

    best = max(range(len(grid)), key=lambda k: implied(grid[k]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    for _ in range(60):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (left, high) if implied(left) < implied(right) else (low, right)
    return high


def _first_negligible(function: Callable[[float], float], end: float) -> float:
    """The smallest epsilon, to 1e-12 and from above, where the function has become negligible."""
    low, high = 0.0, end
    if _value(function, low) <= _NEGLIGIBLE:
        return end
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _value(function, middle) <= _NEGLIGIBLE else (middle, high)
    return high


def _checked_points(points: object) -> Points:
    pairs = []
    for point in _opened(points):
        pair = _opened(point)
        if len(pair) != 2:
            raise InvalidType("points", "pairs (epsilon, delta)", point)
        pairs.append((checks.nonnegative("points (epsilon)", pair[0]), checks.probability("points (delta)", pair[1])))
    if not pairs:
        raise InvalidArgument("points", "at least one pair (epsilon, delta)", points)
    pairs.sort()
    for (before, _), (after, _) in pairwise(pairs):
        if before == after:
            raise InvalidArgument("points", "at different epsilons", before)
    return _falling(pairs, "points")


def _opened(values: object) -> tuple[object, ...]:
    """What a list, an array or another collection holds."""
    alone = isinstance(values, (str, bytes)) or (isinstance(values, np.ndarray) and values.ndim == 0)
    if alone or not isinstance(values, Iterable):
        raise InvalidType("points", "pairs (epsilon, delta)", values)
    return tuple(values)


def _falling(pairs: list[tuple[float, float]], name: str) -> Points:
    for (before, higher), (after, lower) in pairwise(pairs):
        if lower > higher:
            raise InvalidArgument(
                name,
                "nonincreasing in epsilon",
                f"delta({before:.6g}) = {higher:.6g} and delta({after:.6g}) = {lower:.6g}",
            )
    return tuple(pairs)


# -- the pair ----------------------------------------------------------------------------------------------


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
