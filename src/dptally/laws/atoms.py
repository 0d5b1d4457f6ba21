"""A privacy loss with finitely many values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.interval import Interval
from dptally.law import Law
from dptally.law.characteristic import Characteristic
from dptally.law.law import Numbers
from dptally.law.listed import ListedAtoms
from dptally.laws.pairs import Pair
from dptally.laws.quadrature.losses import LossNodes, divergence
from dptally.laws.quadrature.tilted import tilted_nodes
from dptally.numerics.decimals import around, sixty_digits
from dptally.numerics.exact import between
from dptally.numerics.rounding import EPS

__all__ = ["PAIR_THEOREM", "AtomicLaw", "atomic_law", "atoms_of_pair", "log_atomic_profile", "scaled_profile"]

PAIR_THEOREM = "Zhu, Dong, Wang 2022, Optimal accounting of DP via characteristic function, Prop. 8"
_BLOCK = 64
_MANY = 4  # points for each atom from which on tables at the atoms pay
_MOST_NODES = 1 << 12  # atoms of one law on a contour
_MOST_LISTED = 1 << 15  # outcomes in sixty digits, about a kilobyte each


@dataclass(frozen=True, slots=True)
class AtomicLaw(Law):
    """Point masses ``(loss, mass)`` in increasing order of loss, and a mass at infinity.

    ``points`` and ``mass_at_infinity`` are upper bounds of the exact ones, ``least`` and ``least_at_infinity`` lower
    bounds, one ulp apart at most; without ``least`` the points are exact. Each (1 - e^{eps - loss})+ grows with its
    loss, so the two ends of the atoms give the two ends of the profile. ``reverse_mass`` is Q's mass where P has none,
    ``pair`` what was declared.
    """

    points: tuple[tuple[float, float], ...]
    mass_at_infinity: float = 0.0
    least: tuple[tuple[float, float], ...] = ()
    least_at_infinity: float | None = None
    reverse_mass: float | None = None
    has_characteristic: ClassVar[bool] = True
    cited: str = PAIR_THEOREM
    pair: Pair | None = field(default=None, repr=False)

    @property
    def theorem(self) -> str:  # type: ignore[override]
        """Where the atoms come from."""
        return self.cited

    def log_moment(self, t: Numbers) -> Numbers:
        t = np.asarray(t)
        if not self.points:
            return np.full(t.shape, -np.inf, dtype=np.result_type(t.dtype, np.float64))
        return self._nodes().log_moment(np.atleast_1d(t).ravel()).reshape(t.shape)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        """The atoms are the nodes, for every u; each is within an ulp of the exact one."""
        del reach, log_tolerance
        if not self.points or len(self.points) > _MOST_NODES or self.reverse_mass is None:
            return None
        return tilted_nodes(
            *self.columns(), theta, loss_error=2 * EPS, mass_error=4 * EPS, missing=self.mass_at_infinity
        )

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        if not self.points:
            return np.full(t.shape, -np.inf), np.zeros(t.shape)
        moment, flat = self.log_moment(t), np.atleast_1d(t).ravel()
        return moment, self._nodes().log_moment_error(flat, np.ravel(moment)).reshape(t.shape)

    def _nodes(self) -> LossNodes:
        loss, mass = self.columns()
        log_mass, infinite = np.log(mass), self.mass_at_infinity
        reverse = infinite if self.reverse_mass is None else self.reverse_mass
        return LossNodes(log_mass, loss, divergence(log_mass, loss), infinite, reverse)

    def columns(self) -> tuple[Floats, Floats]:
        """(losses, masses), rounded up."""
        return _columns(self.points)

    @property
    def atom_error(self) -> float:
        """The ends are neighbouring doubles."""
        return 2 * EPS

    @property
    def has_all_mass(self) -> bool:
        return self.mass_at_infinity == 0 and not self.reverse_mass

    def is_reverse_of(self, other: Law) -> bool:
        """Where both come from one declared pair."""
        if self.pair is None or not isinstance(other, AtomicLaw):
            return False
        turned = self.pair.turned()
        return turned is not None and turned == other.pair

    @property
    def mean(self) -> float:
        return self._nodes().mean if self.points else 0.0

    @property
    def infinity_mass(self) -> float:
        return self.mass_at_infinity

    @property
    def infinity_mass_interval(self) -> Interval:
        upper = self.mass_at_infinity
        return Interval(upper if self.least_at_infinity is None else self.least_at_infinity, upper)

    @property
    def supremum(self) -> float:
        return self.points[-1][0] if self.points else -math.inf

    @property
    def supremum_interval(self) -> Interval:
        return Interval(self.least[-1][0] if self.least else self.supremum, self.supremum)

    @property
    def infimum(self) -> float:
        ends = self.least or self.points
        return ends[0][0] if ends else math.inf

    @property
    def infimum_interval(self) -> Interval:
        return Interval(self.infimum, self.points[0][0] if self.points else math.inf)

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        lower, upper = log_atomic_profile(*self.columns(), epsilon)
        if self.least:
            lower = log_atomic_profile(*_columns(self.least), epsilon)[0]
        return np.minimum(lower, 0.0), np.minimum(upper, 0.0)

    def tail(self, loss: Floats) -> Floats:
        at, mass = self.columns()
        beyond = np.minimum(np.append(np.cumsum(mass[::-1])[::-1], 0.0), 1.0)  # masses are rounded up
        return np.asarray(beyond[np.searchsorted(at, loss, side="right")])

    def atoms(self) -> tuple[tuple[float, float], ...]:
        return self.points

    def listed_atoms(self) -> ListedAtoms | None:
        if not self.points:
            return None
        (high, most), (low, least) = self.columns(), _columns(self.least or self.points)
        return ListedAtoms(low, high, least, most)

    def declared(self) -> Pair | None:
        return self.pair


def _columns(points: tuple[tuple[float, float], ...]) -> tuple[Floats, Floats]:
    table = np.array(points, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def atomic_law(pair: Pair, cited: str) -> AtomicLaw | None:
    """The law of a declared pair, every number between neighbouring doubles; None where it has no outcomes."""
    outcomes = pair.outcomes()
    if outcomes is None:
        return None
    with sixty_digits():
        losses = [(row.stated,) * 2 if row.stated is not None else around(row.loss) for row in outcomes.rows]
        masses = [around(row.p) for row in outcomes.rows]
    points = tuple((loss[1], mass[1]) for loss, mass in zip(losses, masses, strict=True))
    least = tuple((loss[0], mass[0]) for loss, mass in zip(losses, masses, strict=True))
    return AtomicLaw(
        points,
        between(outcomes.only_p[1])[1],
        least,
        between(outcomes.only_p[0])[0],
        between(outcomes.only_q[1])[1],
        cited,
        pair,
    )


def atoms_of_pair(pair: Pair | None) -> ListedAtoms | None:
    """The atoms of a declared pair, every number between neighbouring doubles; None for too long a list."""
    law = None if pair is None or pair.size > _MOST_LISTED else atomic_law(pair, "")
    return None if law is None else law.listed_atoms()


def log_atomic_profile(loss: Floats, mass: Floats, epsilon: Floats) -> tuple[Floats, Floats]:
    """Certified bounds of log sum of mass (1 - e^{eps - loss})+ for losses in increasing order."""
    total, scale, relative = scaled_profile(loss, mass, np.atleast_1d(epsilon).ravel())
    known = total > 0
    log_total, log_scale = np.log(np.where(known, total, 1.0)), np.log(np.where(known, scale, 1.0))
    value = np.where(known, log_total + log_scale, -np.inf)
    step = np.where(known, relative + EPS * (5.0 + 5.0 * np.abs(log_total) + 5.0 * np.abs(log_scale)), 0.0)
    return (value - step).reshape(epsilon.shape), (value + step).reshape(epsilon.shape)


def scaled_profile(loss: Floats, mass: Floats, epsilon: Floats) -> tuple[Floats, Floats, float]:
    """(total, scale, relative error of total): the profile at each epsilon is total * scale.

    The scale is the largest mass beyond epsilon, so nothing that matters underflows. eps - loss is rounded
    once (no more than half an ulp of the term), expm1 is good to 4 ulps, quotient and product to half an ulp each:
    6 ulps of each term. Sums of positive terms in blocks of 64, then of the blocks, add half an ulp per addition.
    """
    if not loss.size:
        return np.zeros_like(epsilon), np.zeros_like(epsilon), 0.0
    even = mass.min() > 1e-250 * mass.max() and loss[-1] - loss[0] < 600.0
    if even and epsilon.size > _MANY * loss.size:
        return _profile_between_atoms(loss, mass, epsilon)
    scale = _largest_beyond(mass)[np.searchsorted(loss, epsilon, side="right")]
    total, relative = _summed(loss, mass, epsilon, scale, _lost)
    return total, scale, relative


def _profile_between_atoms(loss: Floats, mass: Floats, epsilon: Floats) -> tuple[Floats, Floats, float]:
    """The same at many points from tables at the atoms, l the first loss beyond epsilon:

        sum of mass (1 - e^{eps - loss}) = sum of mass (1 - e^{l - loss}) + (1 - e^{eps - l}) sum of mass e^{l - loss},

    all terms nonnegative. l - loss is rounded by half an ulp, which is so much of e^{l - loss}, relatively, times its
    own size; masses and losses span little enough that nothing of the second sum underflows. Totals so small that
    something else may have are summed term by term.
    """
    scale = _largest_beyond(mass)[:-1]
    here, one = _summed(loss, mass, loss, scale, _lost)
    rest, other = _summed(loss, mass, loss, scale, _kept)
    at = np.searchsorted(loss, epsilon, side="right")
    known = at < loss.size
    at = np.where(known, at, 0)
    gap = np.where(known, epsilon - loss[at], 0.0)
    total = np.where(known, here[at] - np.expm1(gap) * rest[at], 0.0)
    scale = np.where(known, scale[at], 0.0)
    tiny = known & (total < 1e-200)
    if tiny.any():
        total[tiny] = _summed(loss, mass, epsilon[tiny], scale[tiny], _lost)[0]
    reach = float(loss[-1] - loss[0])
    return total, scale, max(one, other + EPS * (6.0 + 0.5 * reach)) + EPS


def _largest_beyond(mass: Floats) -> Floats:
    """The largest mass from each atom on, and nothing after the last."""
    return np.append(np.maximum.accumulate(mass[::-1])[::-1], 0.0)


def _lost(gap: Floats) -> Floats:
    return -np.expm1(gap)


def _kept(gap: Floats) -> Floats:
    return np.exp(gap)


def _summed(
    loss: Floats, mass: Floats, epsilon: Floats, scale: Floats, weigh: Callable[[Floats], Floats]
) -> tuple[Floats, float]:
    """(sum of mass / scale times weigh(epsilon - loss) over the losses not below epsilon, its relative error)."""
    total = np.zeros_like(epsilon)
    blocks = -(-loss.size // _BLOCK)
    rows = max(1, (1 << 20) // loss.size)
    for start in range(0, epsilon.size, rows):
        part = slice(start, start + rows)
        gap = epsilon[part, None] - loss
        safe = np.where(scale[part] > 0, scale[part], 1.0)[:, None]
        table = np.zeros((gap.shape[0], blocks * _BLOCK))
        with np.errstate(under="ignore", over="ignore"):
            table[:, : loss.size] = np.where(gap <= 0, mass / safe, 0.0) * weigh(np.minimum(gap, 0.0))
        total[part] = table.reshape(-1, blocks, _BLOCK).sum(axis=2).sum(axis=1)
    return total, EPS * (6.0 + 0.5 * (_BLOCK + blocks))
