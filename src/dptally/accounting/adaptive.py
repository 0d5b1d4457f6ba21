r"""A declared menu: what every adaptive use of at most j of its items reveals, whatever is chosen after which answer.

With V(e) = (1 - e^e)+ and L_i the loss of item i,

    W_0 = V,    W_j(e) = max over items i of E W_{j-1}(e - L_i),    W(-inf) = 1,

W_j is the largest profile of any strategy that uses j items [docs/adaptive.md, Theorem 1]: nothing else bounds a plan
whose later steps depend on earlier answers, least of all the epsilon of the path that was taken.

On a lattice of step h. Each item's profile H_i is replaced by an upper bound A_i that is linear in a = e^e between the
points g h: point masses p_g there, with A_i >= H_i **checked** at every point, and A_i(-inf) >= 1. H_i is convex in a,
so A_i >= H_i everywhere, and W_{j-1} is a mixture of functions (1 - e^{e-l})+, so that sum_g p_g W(e - g h) + p_inf is
at least E W(e - L_i) [Theorem 2]. All losses are lattice points now, so the recursion needs W on the lattice alone, and
every sum is of nonnegative doubles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dptally.accounting import certified
from dptally.accounting.moments import infinity_mass, log_moment_upper, supremum
from dptally.checks import Floats
from dptally.errors import InvalidArgument, Unanswerable
from dptally.law import Composition
from dptally.numerics.doubled import two_product
from dptally.numerics.rounding import EPS, up

__all__ = ["MOST_WORK", "Item", "Table", "menu_table", "odometer"]

Item = tuple[Composition, Composition]  #: the loss with the record present against absent, and the other way round

MOST_WORK = 2e9  #: products of one recursion
_FINE = 16  # lattice points in the typical loss of the finest item
_MOST_POINTS = 2048  # on each side of 0
_FAR, _FARTHEST = 1e-24, 1e-300  # deltas that the lattice reaches, and that the moments reach beyond it
_LOWEST = 36.0  # below -36 every profile is 1 but for 2e-16
_ORDERS = np.geomspace(2.0**-6, 2.0**14, 121)  # of the moments
_LARGEST = 1e16  # of the losses
_TINY = 1e-305  # what products below the smallest double can add up to


@dataclass(frozen=True, slots=True)
class Table:
    """Upper bounds ``delta`` of W_j at ``epsilon`` >= 0, increasing; the last one holds for every epsilon beyond."""

    epsilon: tuple[float, ...]
    delta: tuple[float, ...]

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        return tuple(zip(self.epsilon, self.delta, strict=True))


@dataclass(frozen=True, slots=True)
class _Masses:
    """Point masses at lattice indices ``first``, first + 1, .. and at infinity."""

    first: int
    mass: Floats
    infinite: float


@lru_cache(maxsize=128)
def menu_table(items: tuple[Item, ...], uses: int) -> Table:
    """Guarantees (epsilon, delta) that hold for every adaptive use of at most ``uses`` items, in both directions."""
    spent = [_profiled(item) for item in items if any(composition.parts for composition in item)]
    if not uses or not spent:
        return Table((0.0,), (0.0,))
    step, reach = _lattice(spent, uses)
    if not reach <= _LARGEST:
        raise Unanswerable(f"a menu is answered for losses of at most {_LARGEST:g}, and these reach {reach:.3g}")
    sides = (0, 1) if any(forward != backward for forward, backward in spent) else (0,)
    delta = np.max([_recursion([(item[d], item[1 - d]) for item in spent], uses, step, reach) for d in sides], axis=0)
    epsilon = _rounded(step, np.arange(float(len(delta))), math.inf)
    beyond = _beyond(spent, uses, float(epsilon[-1]))
    bound = np.minimum(delta, _by_moments(spent, uses, epsilon))
    epsilon, bound = np.append(epsilon, beyond[0]), np.append(bound, beyond[1])
    bound = np.minimum.accumulate(bound)
    kept = np.append(True, np.diff(bound) < 0)  # of a level stretch its first point says all
    return Table(tuple(epsilon[kept].tolist()), tuple(bound[kept].tolist()))


def _profiled(item: Item) -> Item:
    """The item, or what dominates it and has a profile; refused where there is none."""
    found = item[0].dominating(), item[1].dominating()
    if found[0] is None or found[1] is None:
        raise Unanswerable(
            "a menu is bounded by the privacy profiles of its items, and one of them bounds Renyi divergences only; "
            "state it as ApproxDP or GaussianDP, or keep a ZCDP budget"
        )
    return found[0], found[1]


def odometer(items: tuple[Item, ...], spent: int, uses: int, delta: float) -> float:
    """An epsilon that the loss after ``spent`` uses exceeds with probability at most delta / uses, rounded up.

    P(L > e) <= W_j(e - s) / (1 - e^-s) for every s > 0; over the at most ``uses`` moments the probabilities add up to
    delta, so the readings hold at all times at once.
    """
    if not spent:
        return 0.0
    table = menu_table(items, spent)
    share = delta / uses * (1 - 4 * EPS)
    best = math.inf
    for epsilon, bound in table.points:
        if bound <= share:
            # 1 - e^-s >= bound / share, so s = -log1p(-bound/share)
            rest = bound / share * (1 + 4 * EPS)
            if rest < 1:
                best = min(best, up(epsilon - math.log1p(-rest), 8))
    return best


# -- the lattice ---------------------------------------------------------------------------------------------------


def _lattice(items: Sequence[Item], uses: int) -> tuple[float, float]:
    """(step, how far the table reaches): a choice of accuracy; every choice is sound."""
    each = [composition for item in items for composition in item if composition.parts]
    typical = min((math.sqrt(2.0 * c.mean) for c in each if 0 < c.mean < math.inf), default=1.0)
    bounded = [supremum(composition) for composition in each]
    reach = uses * max(bounded)
    if not reach < math.inf:
        orders, moments = _moments(items, uses)
        with np.errstate(invalid="ignore"):
            reach = float(np.nanmin((moments - math.log(_FAR)) / orders))
    if not 0 < reach < math.inf:
        reach = 1.0 if reach == 0 else 1024.0
    step = max(typical / _FINE, reach / _MOST_POINTS)
    largest = max(bounded)
    if 0 < largest < math.inf:  # so that the largest loss is a lattice point, and pure guarantees stay pure
        step = largest / 2.0 ** max(math.floor(math.log2(largest / step)), 0)
    return step, reach


def _masses(forward: Composition, backward: Composition, step: float, reach: float) -> _Masses:
    """The item as point masses that dominate it; see the head of this module."""
    number = _extent(forward, step, reach), _extent(backward, step, reach)
    grid = np.arange(-number[1], number[0] + 1.0)
    bound = _profile(forward, backward, step, grid)
    falls = np.append(-np.diff(bound), 0.0)
    near, far = -math.expm1(-step), np.exp(-step)  # 1 - e^-h, and e^-h: (e^h - 1) is near / far
    before = np.append(0.0, falls[:-1]) / near
    before[0] = 1.0 - bound[0]
    mass = np.maximum(before - falls / near * far, 0.0)
    infinite = float(bound[-1])
    lifted = _lift(mass, infinite, bound, step)
    moved = np.where(mass > 0, up(mass * lifted), 0.0)
    return _Masses(int(grid[0]), moved, up(infinite * lifted) if infinite > 0 else 0.0)


def _lift(mass: Floats, infinite: float, bound: Floats, step: float) -> float:
    """The factor >= 1 by which the masses certainly dominate: at every lattice point, and in total."""
    number = len(mass)
    gain = -np.expm1(-step * np.arange(number))  # 1 - e^{-d h}
    reached = np.convolve(mass[::-1], gain)[:number][::-1] + infinite
    trust = 1 - (number + 16) * EPS
    need = np.divide(bound, reached * trust, out=np.ones(number), where=bound > 0)
    total = (float(mass.sum()) + infinite) * trust
    return max(1.0, float(need.max()), 1.0 / total) * (1 + 8 * EPS)


def _extent(composition: Composition, step: float, reach: float) -> int:
    """How many lattice points hold the losses of one use, but for a negligible probability."""
    most = max(math.ceil(min(reach, _MOST_POINTS * step) / step), 1)
    end = supremum(composition)
    if end < math.inf:
        return max(min(math.ceil(end / step * (1 - 4 * EPS)), most), 1)
    low, high = 0, most
    floor = infinity_mass(composition)[1] + _FAR * 1e-6
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle)
            if _delta(composition, _rounded(step, np.array([float(middle)]), 0.0))[0] <= floor
            else (middle, high)
        )
    return high


def _profile(forward: Composition, backward: Composition, step: float, grid: Floats) -> Floats:
    """Upper bounds of H at the lattice points; below 0 by H_a(P, Q) = 1 - a + a H_{1/a}(Q, P)."""
    below = step * grid[grid < 0]
    right = _delta(forward, _rounded(step, grid[grid >= 0], 0.0))
    left = _delta(backward, _rounded(step, -grid[grid < 0], 0.0))
    mirrored = -np.expm1(below) + np.exp(below) * left
    bound = np.concatenate((np.minimum(up(mirrored, 8), 1.0), right))
    return np.minimum.accumulate(bound)  # a profile does not increase


def _rounded(step: float, grid: Floats, towards: float) -> Floats:
    """The lattice points g h, g >= 0, as doubles that lie on this side of them."""
    value, rest = two_product(np.full(grid.shape, step), grid)
    wrong = rest < 0 if towards < math.inf else rest > 0
    return np.where(wrong, np.nextafter(value, towards), value)


def _delta(composition: Composition, epsilon: Floats) -> Floats:
    """Upper bounds of delta at each epsilon >= 0."""
    if len(composition.parts) == 1 and composition.parts[0][1] == 1:
        law = composition.parts[0][0]
        log_finite = law.log_profile(epsilon)[1]
        with np.errstate(under="ignore"):
            finite = np.where(log_finite > -np.inf, np.maximum(up(np.exp(log_finite), 4), _FARTHEST), 0.0)
        bound = np.minimum(finite + law.infinity_mass, 1.0)
        return np.where(bound > 0, np.minimum(up(bound), 1.0), 0.0)
    return np.array([box.upper for box in certified.delta_intervals((composition,), epsilon.tolist())])


# -- the recursion -------------------------------------------------------------------------------------------------


def _recursion(items: Sequence[Item], uses: int, step: float, reach: float) -> Floats:
    """W_uses at 0, step, 2 step, .. up to ``reach``."""
    number = max(math.ceil(reach / step), 1)
    below = min(number, math.ceil(_LOWEST / step))
    masses = [_masses(*item, step, reach) for item in items]
    _check_work(uses * (number + below) * sum(len(one.mass) for one in masses))
    grid = np.arange(-below, number + 1)
    table = np.where(grid < 0, up(-np.expm1(np.minimum(step * grid, 0.0)), 4), 0.0)
    for _ in range(uses):
        table = np.max([_used(table, one) for one in masses], axis=0)
    return table[below:]


def _check_work(work: float) -> None:
    if work > MOST_WORK:
        raise InvalidArgument("uses", "fewer, or items that are more alike: the recursion is too long", work)


def _used(table: Floats, item: _Masses) -> Floats:
    """sum_g p_g W(e - g h) + p_inf at every lattice point; W is 1 on the left of the table, and falls on its right.

    Where some term is positive the sum is, also where all products are too small for a double.
    """
    last = item.first + len(item.mass) - 1
    wide = np.concatenate((np.ones(last), table, np.full(-item.first, table[-1])))
    with np.errstate(under="ignore"):
        total = np.convolve(wide, item.mass, mode="valid") + item.infinite
    positive = np.arange(len(table)) <= int(np.flatnonzero(table)[-1]) + last
    grown = total * (1 + (len(item.mass) + 8) * EPS) + np.where(positive, _TINY, 0.0)
    return np.minimum(grown, 1.0)


# -- beyond the lattice --------------------------------------------------------------------------------------------


def _moments(items: Sequence[Item], uses: int) -> tuple[Floats, Floats]:
    """(t, an upper bound of log E exp(t L) of any adaptive use): the largest moment of an item, ``uses`` times over."""
    each = {composition for item in items for composition in item if composition.parts}
    moment = np.max([np.maximum(log_moment_upper(composition, _ORDERS), 0.0) for composition in each], axis=0)
    return _ORDERS, uses * moment * (1 + 4 * EPS)


def _by_moments(items: Sequence[Item], uses: int, epsilon: Floats) -> Floats:
    """P(some loss is infinite) + min over t of E exp(t (L - epsilon)), rounded up, at least 1e-300.

    For a finite loss l, (1 - e^{epsilon - l})+ <= e^{t (l - epsilon)}; given any history the next item's moment is at
    most the largest.
    """
    orders, moments = _moments(items, uses)
    failing = max(infinity_mass(composition)[1] for item in items for composition in item)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        exponent = moments[:, None] - orders[:, None] * epsilon
        exponent = exponent + 8 * EPS * (moments[:, None] + orders[:, None] * epsilon)
        exponent = np.where(np.isnan(exponent), np.inf, exponent).min(axis=0)
        finite = np.maximum(np.exp(np.minimum(exponent, 1.0)) * (1 + 8 * EPS), _FARTHEST)
    return np.asarray(np.minimum(up(finite + uses * failing * (1 + 4 * EPS), 2), 1.0))


def _beyond(items: Sequence[Item], uses: int, end: float) -> tuple[Floats, Floats]:
    """Guarantees beyond the lattice, down to 1e-300, where losses have no bound."""
    if uses * max(supremum(composition) for item in items for composition in item) < math.inf:
        return np.empty(0), np.empty(0)
    orders, moments = _moments(items, uses)
    with np.errstate(invalid="ignore"):
        far = float(np.nanmin((moments - math.log(_FARTHEST)) / orders))
    if not end < far < math.inf:
        return np.empty(0), np.empty(0)
    epsilon = np.linspace(end, far, 257)[1:]
    return epsilon, _by_moments(items, uses, epsilon)
