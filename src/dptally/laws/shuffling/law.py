r"""The law of shuffled reports: exact sums over all counts for few users, contours for many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.law import Numbers
from dptally.law.listed import ListedAtoms
from dptally.laws.atoms import AtomicLaw
from dptally.laws.guaranteed import staircase
from dptally.laws.shuffling.blanket import Blanket
from dptally.laws.shuffling.sums import LogBounds
from dptally.laws.tuning.attained import attained_law
from dptally.laws.tuning.runs import NegativeBinomialRuns
from dptally.numerics.logspace import LOG1MEXP_ULPS, log1mexp
from dptally.numerics.rounding import EPS, down, up

__all__ = ["SHUFFLING_THEOREM", "ShuffledLaw", "attained_by", "counted_law", "shuffled_law"]

SHUFFLING_THEOREM = (
    "Balle, Bell, Gascon, Nissim 2019, The privacy blanket of the shuffle model, Lemma 5.3 (docs/shuffling.md); "
    "Feldman, McMillan, Talwar 2021, for any local randomiser"
)
_FEW_USERS, _MOST_COUNTS = 100, 25_000
_BITS = 21
_FEW_QUESTIONS, _MANY_QUESTIONS = 8, 512
_DENSE, _SPARSE, _EDGES = 120, 40, 24  # guarantees of the table: down to e^-36, and below; of the lower one
_GUESSES, _SECANTS = 200, 12
_DEPTH, _DEEPEST = 36.0, 740.0


@dataclass(frozen=True, slots=True)
class ShuffledLaw(Law):
    """Many users: the profile of the blanket's pair by contours, compositions by a table of its guarantees.

    The same in both directions: exchanging the two inputs exchanges the kinds. ``attained``: the pair is that of a data
    set, and serves lower ends.
    """

    blanket: Blanket
    users: int
    attained: bool = False
    theorem: ClassVar[str] = SHUFFLING_THEOREM

    @property
    def table(self) -> AtomicLaw:
        """A law with finitely many losses that dominates this one; where ``attained``, one that this one dominates."""
        return _lower_table(self) if self.attained else _upper_table(self)

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """The end that is wanted by contours (of many questions for those that matter most), the other one trivial;
        very many questions by the table, which compositions are made of.
        """
        flat = np.atleast_1d(np.asarray(epsilon, dtype=np.float64)).ravel()
        if flat.size > _MANY_QUESTIONS:
            return self.table.log_profile(epsilon)
        low = down(log1mexp(np.minimum(flat, 0.0)), LOG1MEXP_ULPS)
        high, sharp = np.where(flat < self.supremum, 0.0, -np.inf), np.arange(flat.size)
        if flat.size > _FEW_QUESTIONS:
            high = np.minimum(high, np.where(flat >= 0, self.blanket.log_chernoff(np.abs(flat), self.users), 0.0))
            high = _falling(flat, high)
            sharp = np.flatnonzero((high > -_DEPTH) & (flat > 1e-6 * self.supremum))[-_FEW_QUESTIONS:]
        for i in sharp[np.abs(flat[sharp]) < self.supremum].tolist():
            at = float(flat[i])
            if self.attained and at > 0:
                low[i], upper = self._log_attained(at)
                high[i] = min(float(high[i]), upper)
            elif not self.attained:
                high[i] = min(float(high[i]), self._log_upper(at))
        return low.reshape(np.shape(epsilon)), np.minimum(high, 0.0).reshape(np.shape(epsilon))

    def _log_upper(self, epsilon: float) -> float:
        """Next to the largest loss, where rounding is all that counts, the bound for a smaller eps is better."""
        at = min(abs(epsilon), self.supremum * (1 - 1e-6))
        bound = _contour(self.blanket, self.users, _coarse(at, upwards=False)).upper
        if epsilon >= 0:
            return bound
        # H(-e) = 1 - e^-e + e^-e H(e): the pair is its own reverse
        return up(math.log(min(1.0, up(-math.expm1(epsilon) + math.exp(epsilon + bound), 16))), 4)

    def _log_attained(self, epsilon: float) -> tuple[float, float]:
        """Both ends, from one contour where it is enough: in a = e^eps the profile falls by at most 1 for each unit."""
        at = _coarse(epsilon, upwards=True)
        lower, upper = _contour(self.blanket, self.users, at)
        moved, value = up(math.exp(at) * -math.expm1(epsilon - at), 8), math.exp(upper)
        if moved < 0.01 * value:
            return lower, up(math.log(value + moved) + 8 * EPS * (1.0 - upper), 4)
        return lower, _contour(self.blanket, self.users, _coarse(epsilon, upwards=False)).upper

    def about_epsilon(self, log_delta: float) -> float | None:
        """By secants from Chernoff's bound on, where both ends are known."""
        if not self.attained:
            return None
        grid = self.supremum * np.geomspace(1e-6, 1.0, _GUESSES, endpoint=False)
        bound = self.blanket.log_chernoff(grid, self.users)
        at = int(np.argmax(bound <= log_delta))
        if at == 0:
            return None
        x, y = float(grid[at - 1]), float(grid[at])
        of_x, of_y = (_contour(self.blanket, self.users, _coarse(e, upwards=True)).upper - log_delta for e in (x, y))
        for _ in range(_SECANTS):
            if not (math.isfinite(of_x) and math.isfinite(of_y) and of_x != of_y) or abs(y - x) <= 1e-6 * y:
                break
            x, y, of_x = y, min(max(y - of_y * (y - x) / (of_y - of_x), float(grid[0])), float(grid[-1])), of_y
            of_y = _contour(self.blanket, self.users, _coarse(y, upwards=True)).upper - log_delta
        return y

    def log_moment(self, t: Numbers) -> Numbers:
        return self.table.log_moment(t)

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        return self.table.log_moment_and_error(t)

    @property
    def mean(self) -> float:
        return self.table.mean

    @property
    def supremum(self) -> float:
        return self.blanket.largest

    @property
    def infimum(self) -> float:
        return -self.blanket.largest

    @property
    def has_all_mass(self) -> bool:
        return True

    def tail(self, loss: Floats) -> Floats:
        return self.table.tail(loss)

    def atoms(self) -> tuple[tuple[float, float], ...]:
        return self.table.atoms()

    def listed_atoms(self) -> ListedAtoms | None:
        return self.table.listed_atoms()


def _falling(epsilon: Floats, bound: Floats) -> Floats:
    """A profile does not increase, so what bounds it at one eps bounds it at every larger one."""
    order = np.argsort(epsilon, kind="stable")
    out = np.empty_like(bound)
    out[order] = np.minimum.accumulate(bound[order])
    return out


def _coarse(epsilon: float, *, upwards: bool) -> float:
    """A neighbour with 21 bits: the profile falls, so a smaller eps serves upper bounds and a larger one lower bounds.

    Questions that differ by less share their answer, which ends every search for eps early.
    """
    mantissa, exponent = math.frexp(epsilon)
    scaled = math.ldexp(mantissa, _BITS)
    return math.ldexp(math.ceil(scaled) if upwards else math.floor(scaled), exponent - _BITS)


@lru_cache(maxsize=4096)
def _contour(blanket: Blanket, users: int, epsilon: float) -> LogBounds:
    return blanket.log_profile(epsilon, users)


@lru_cache(maxsize=64)
def _upper_table(law: ShuffledLaw) -> AtomicLaw:
    near, far = _depth_reached(law, _DEPTH), _depth_reached(law, _DEEPEST)
    dense = near * (np.arange(_DENSE + 1) / _DENSE) ** 0.75
    sparse = near + (far - near) * np.arange(1, _SPARSE + 1) / _SPARSE
    knots = np.unique(np.concatenate((dense, sparse)))
    knots = np.append(knots[knots < law.supremum], law.supremum)
    delta = [up(math.exp(law.blanket.log_profile(at, law.users).upper), 4) for at in knots[:-1].tolist()]
    return staircase(knots, np.array([*delta, 0.0])).law(SHUFFLING_THEOREM)


@lru_cache(maxsize=64)
def _lower_table(law: ShuffledLaw) -> AtomicLaw:
    reach = _depth_reached(law, _DEPTH)
    edges, step = reach * (np.arange(_EDGES) + 0.25) / _EDGES, 2e-2 * reach / _EDGES
    asked = [
        [law.blanket.log_profile(at, law.users) for at in row.tolist()] for row in (edges - step, edges, edges + step)
    ]
    lower = np.array([[max(down(math.exp(box.lower), 4), 0.0) for box in row] for row in asked])
    upper = np.array([[up(math.exp(box.upper), 4) for box in row] for row in asked])
    found = attained_law(edges, step, lower, upper, NegativeBinomialRuns(0.0, 1.0))
    return AtomicLaw(((0.0, 1.0),), reverse_mass=0.0) if found is None else found


def _depth_reached(law: ShuffledLaw, depth: float) -> float:
    """About the eps at which the profile is e^-depth; no more than the largest loss."""
    at = law.supremum * np.linspace(0.0, 1.0, 33)[1:]
    for _ in range(4):
        fits = np.flatnonzero(law.blanket.log_chernoff(at, law.users) <= -depth)
        first = int(fits[0]) if fits.size else len(at) - 1
        at = np.linspace(float(at[first - 1]) if first else 0.0, float(at[first]), 33)[1:]
    return float(at[-1])


def shuffled_law(blanket: Blanket, users: int) -> Law:
    """The law that dominates shuffled reports: exact sums where there are few counts."""
    if _number_of_counts(blanket, users) <= _MOST_COUNTS:
        return counted_law(blanket, users, upper=True)
    return ShuffledLaw(blanket, users)


def _number_of_counts(blanket: Blanket, users: int) -> float:
    kinds = len(blanket.kinds) + (blanket.rest > 0)
    return math.comb(users + kinds - 1, kinds - 1) if users <= _FEW_USERS else math.inf


@lru_cache(maxsize=64)
def counted_law(blanket: Blanket, users: int, *, upper: bool) -> AtomicLaw:
    """All counts of kinds with their probabilities, rounded up or down: P = (1/(gamma n)) sum R_x/w times Mult(counts).

    Each factor of a mass is within an ulp or two, a power c of it within 2 c + 1: together 8 n + 32 ulps.
    """
    x, y, chance = blanket.columns()
    some = blanket.rest > 0
    x, y = (np.append(0.0, column) if some else column for column in (x, y))
    shares = np.append(blanket.rest, blanket.gamma * chance) if some else blanket.gamma * chance
    counts = _counts(users, len(shares))
    ways = np.array([_multinomial(row) for row in counts.tolist()])
    mass = ways * np.prod(shares**counts, axis=1)
    first, second = counts @ x, counts @ y
    kept = first > 0
    with np.errstate(under="ignore"):
        p = mass[kept] * first[kept] / (blanket.gamma * users)
    loss = np.log(first[kept] / second[kept])
    error, shift = EPS * (8 * users + 32), 8 * EPS * (1.0 + np.abs(loss))
    loss, p = (up(loss + shift), up(p * (1 + error))) if upper else (down(loss - shift), down(p * (1 - error)))
    order = np.argsort(loss, kind="stable")
    at, start = np.unique(loss[order], return_index=True)
    joined = np.maximum(np.add.reduceat(p[order], start) * (1 + (1 if upper else -1) * EPS * 64), 0.0)
    points = tuple((a, b) for a, b in zip(at.tolist(), joined.tolist(), strict=True) if b > 0)
    return AtomicLaw(points, reverse_mass=0.0, cited=SHUFFLING_THEOREM)


def _counts(users: int, kinds: int) -> Floats:
    """Every way to divide the users among the kinds, by bars between stars."""
    bars = np.array(list(combinations(range(users + kinds - 1), kinds - 1)), dtype=np.float64).reshape(-1, kinds - 1)
    edges = np.concatenate((np.full((len(bars), 1), -1.0), bars, np.full((len(bars), 1), users + kinds - 1.0)), axis=1)
    return np.asarray(np.diff(edges, axis=1) - 1.0)


def _multinomial(counts: list[float]) -> float:
    total, ways = 0, 1
    for count in counts:
        total += int(count)
        ways *= math.comb(total, int(count))
    return float(ways)


def attained_by(blanket: Blanket, users: int) -> Law:
    """What a data set certainly reveals whose pair is exactly this one."""
    if _number_of_counts(blanket, users) <= _MOST_COUNTS:
        return counted_law(blanket, users, upper=False)
    return ShuffledLaw(blanket, users, attained=True)
