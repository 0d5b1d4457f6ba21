"""One privacy loss on a lattice: a positive measure whose profile lies certainly above, or certainly below,
the true one.

Write C(y) = E[(1 - y X)+; L < inf] with X = exp(-L) and y = exp(x): the profile of a loss as a convex,
decreasing function of y. For independent losses C_{1+2}(y) = E[C_1(y X_2)], so a measure whose C lies above
(below) keeps that order in every composition: no other property of the measure matters. Masses are therefore
built without care, by second differences of the law's profile, and then *certified*: the profile of the
floats that came out is summed in positive arithmetic, compared with the law's own bounds, and the masses are
scaled until it lies on the right side. docs/certificates-lattice.md, sections 2 to 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dptally.errors import Unanswerable
from dptally.law import Law
from dptally.numerics.rounding import EPS, Floats

Ints = NDArray[np.int64]

__all__ = [
    "ATOM_ERROR",
    "LatticeMeasure",
    "Table",
    "combined",
    "listed_atoms",
    "lower_spread",
    "point_spread",
    "profile_at_nodes",
    "suffix_sums",
    "upper_spread",
]

ATOM_ERROR = 64 * EPS  # relative error allowed to the probability of a stated point mass, and to its position
BLOCK = 256  # suffix sums run over blocks of this length
_MOST_NODES = 1 << 21  # of one measure: 16 MB
SUBCELLS = 2  # profile values per cell that the lower measure looks at


@dataclass(frozen=True, slots=True)
class LatticeMeasure:
    """Masses ``masses[j] * exp(-tilt * step * j)`` at ``offset + step * j``, times exp(log_factor).

    ``log_beyond``: log of the mass moved to +inf (upper measures). ``shift``: how far a true position may lie
    from the stated one. ``mass_error``: relative error of the masses as they stand. ``blur``: the variance of
    a Gaussian that dominates what was done to point masses between nodes (section 7); 0 where they lie on
    nodes.
    """

    offset: float
    step: float
    masses: Floats
    tilt: float = 0.0
    log_factor: float = 0.0
    log_beyond: float = -math.inf
    shift: float = 0.0
    mass_error: float = 0.0
    blur: float = 0.0

    def log_moments(self, s: Floats) -> Floats:
        """log sum of mass_j exp(s step j), elementwise, without log_factor (a few ulps of the exponents; see
        ``slack``)."""
        present = np.flatnonzero(self.masses > 0)
        if not present.size:
            return np.full(np.shape(s), -math.inf)
        logs = np.log(self.masses[present])
        out = np.empty(len(s))
        for i, value in enumerate(s):
            exponents = logs + (value - self.tilt) * self.step * present
            top = exponents.max()
            out[i] = top + math.log(np.exp(exponents - top).sum())
        return out


def suffix_sums(values: Floats, rate: float) -> Floats:
    """y_i = sum over j >= i of values_j exp(-rate (j - i)), rate >= 0, by blocks.

    Positive terms, each met by at most BLOCK + len/BLOCK additions: relative error <= suffix_error(len)
    (section 3).
    """
    n = len(values)
    block = BLOCK if rate * BLOCK <= 250 else max(1, int(250 / rate))
    rows = -(-n // block)
    padded = np.zeros(rows * block)
    padded[:n] = values
    table = padded.reshape(rows, block)
    fall = np.exp(-rate * np.arange(block))
    inside = np.cumsum((table * fall)[:, ::-1], axis=1)[:, ::-1] / fall
    carry = np.empty(rows)
    following, whole = 0.0, math.exp(-rate * block)
    for row in range(rows - 1, -1, -1):
        carry[row] = following
        following = inside[row, 0] + whole * following
    inside += np.multiply.outer(carry, np.exp(-rate * np.arange(block, 0, -1)))
    flat: Floats = inside.reshape(-1)
    return flat[:n]


def suffix_error(n: int, rate: float = 0.0) -> float:
    """Relative error of :func:`suffix_sums` for nonnegative values (section 3).

    One rounding per addition; per weight exp(-rate k) 4 ulps of its own and the rounding of its exponent. Inside a
    block that is block additions, two weights and 2 rate block; a carry costs an addition, a product and a weight
    for each block that it passes, 5 ulps, and rate n over all of them; the last weight is within what is spare.
    """
    block = BLOCK if rate * BLOCK <= 250 else max(1, int(250 / rate))
    return EPS * (block + 6 * n / block + 24 + 2 * rate * block + rate * n)


def profile_at_nodes(masses: Floats, step: float, tilt: float) -> Floats:
    """exp(tilt x_i) C(exp(x_i)) of the measure ``masses * exp(-tilt x)`` at its own nodes x_i = step * i.

    C_i - C_{i+1} = (e^step - 1) D_i with D_i = sum over j > i of p_j exp(x_i - x_j): two suffix sums, nothing
    cancels. The factors e^step - 1 and exp(x_i - x_{i+1}) are multiplied first: one alone may leave double range.
    """
    n = len(masses)
    later = np.zeros(n)
    later[:-1] = suffix_sums(masses, (1 + tilt) * step)[1:] * (-math.expm1(-step) * math.exp(-tilt * step))
    return suffix_sums(later, tilt * step)


def profile_error(n: int, step: float, tilt: float) -> float:
    """Relative error of :func:`profile_at_nodes` for nonnegative masses."""
    return suffix_error(n, (1 + tilt) * step) + suffix_error(n, tilt * step) + 8 * EPS


def point_spread(
    positions: Floats, masses: Floats, offset: float, step: float, atom_error: float = ATOM_ERROR
) -> LatticeMeasure:
    """Point masses, each on its node (to within ``shift``) or divided between two nodes so that E[exp(-L)]
    stays.

    A mass at distance a above its lower node gives the share (1 - e^-a) / (1 - e^-step) to the upper node;
    the pair of shares is dominated by a Gaussian of variance pi/8 step^2 (section 7).
    """
    place = (positions - offset) / step
    if not np.isfinite(place).all():
        raise OverflowError("a lattice whose ends are further apart than the largest double")
    index = np.rint(place).astype(np.int64)
    gap = np.abs(offset + step * index - positions)
    between = gap > 1e-9 * step
    index = np.where(between, np.floor(place), index).astype(np.int64)
    above = np.clip(positions - (offset + step * index), 0.0, step)
    share = np.where(between, np.expm1(-above) / math.expm1(-step), 0.0)
    out = np.zeros(_affordable(int(index.max()) + 2))
    np.add.at(out, index, masses * (1 - share))
    np.add.at(out, index + 1, masses * share)
    shift = 2 * float(np.max(np.where(between, 0.0, gap))) + atom_error * float(np.max(np.abs(positions)) + abs(offset))
    # the shares are as uncertain as the distances: that is a shift of the point mass, which is covered
    # already
    shift += 16 * EPS * step
    blur = math.pi / 8 * step * step if between.any() else 0.0
    met = 2 * int(np.bincount(index).max())  # masses added on one node
    error = atom_error + EPS * (16 + met + 4 * float(np.max(np.abs(np.log(masses[masses > 0])), initial=0.0)))
    return LatticeMeasure(offset, step, out, shift=shift, mass_error=error, blur=blur)


def _affordable(nodes: int) -> int:
    """The number of nodes, refused where a handful of arrays of that length would not fit into memory."""
    if nodes > _MOST_NODES:
        raise OverflowError(f"a lattice of {nodes} nodes: losses of too different sizes")
    return nodes


def combined(parts: Sequence[tuple[LatticeMeasure, int]]) -> LatticeMeasure:
    """Measures of a few nodes each, convolved one by one: positive arithmetic, two roundings per mass and
    step."""
    total, error, smallest = np.ones(1), 0.0, 0.0
    offset = shift = blur = 0.0
    for spread, count in parts:
        taps = np.flatnonzero(spread.masses)
        smallest += count * math.log(float(spread.masses[taps].min()))
        for _ in range(count):
            grown = np.zeros(_affordable(len(total) + len(spread.masses) - 1))
            for tap in taps:
                grown[tap : tap + len(total)] += spread.masses[tap] * total
            total = grown
            error += spread.mass_error + EPS * (2 + len(taps))
        offset += spread.offset * count
        shift += (spread.shift + 2 * EPS * abs(offset)) * count
        blur += spread.blur * count
    # masses that underflowed: fewer than 1e10 of them, each below 5e-324
    lost = -math.inf if smallest > -650 else -715.0
    return LatticeMeasure(offset, parts[0][0].step, total, shift=shift, mass_error=error, blur=blur, log_beyond=lost)


@dataclass(frozen=True, slots=True)
class Table:
    """A law's certified log-profile at offset + step j / SUBCELLS, j = 0 .. cells * SUBCELLS + 1: enough for
    both measures."""

    law: Law
    offset: float
    step: float
    cells: int
    lower: Floats
    upper: Floats
    bends: tuple[tuple[int, float], ...]  # (subnode, probability) of the point masses that lie on the lattice
    shift: float  # how far the floats, and the point masses, may lie from the exact subnodes

    @classmethod
    def of(cls, law: Law, offset: float, step: float, cells: int) -> Table:
        points = offset + (step / SUBCELLS) * np.arange(cells * SUBCELLS + 2)
        lower, upper = law.log_profile(points.astype(np.float64))
        shift = 2 * EPS * max(abs(points[0]), abs(points[-1]))  # two roundings of a node
        bends = []
        for loss, mass in listed_atoms(law):
            k = round((loss - offset) / (step / SUBCELLS))
            gap = abs(offset + (step / SUBCELLS) * k - loss)
            if 0 <= k <= cells * SUBCELLS and gap <= 1e-9 * step:
                shift = max(shift, 2 * gap + law.atom_error * abs(loss))
                bends.append((k, mass * (1 - law.atom_error)))
        for k, _ in bends:  # dC/dx >= -e^x: room for the mass to lie anywhere within ``shift`` of its node
            if lower[k] > -math.inf:
                lower[k] += math.log1p(-min(0.5, 4 * shift * math.exp(points[k] - lower[k])))
        # NaN would be a fault of the law: the trivial bounds keep the answer safe
        lower = np.where(np.isnan(lower), -math.inf, lower)
        upper = np.minimum(np.where(np.isnan(upper), 0.0, upper), _log_mass(law))
        return cls(law, offset, step, cells, lower, upper, tuple(bends), shift)

    @property
    def last(self) -> float:
        return self.offset + self.step * self.cells

    def from_node(self, node: int) -> Table:
        """The same table without its first nodes."""
        skip = node * SUBCELLS
        bends = tuple((k - skip, mass) for k, mass in self.bends if k >= skip)
        start = self.offset + self.step * node
        return Table(
            self.law,
            start,
            self.step,
            self.cells - node,
            self.lower[skip:],
            self.upper[skip:],
            bends,
            self.shift,
        )


def listed_atoms(law: Law) -> tuple[tuple[float, float], ...]:
    """The point masses that the law can list: those that are missing make the lower measure less sharp, not
    wrong."""
    try:
        return law.atoms()
    except Unanswerable:
        return ()


def upper_spread(table: Table) -> LatticeMeasure:
    """A lattice measure with a profile certainly above the law's: chords of the profile (section 2)."""
    step, cells, log_top = table.step, table.cells, _log_mass(table.law)
    upper = table.upper[: cells * SUBCELLS + 1 : SUBCELLS]
    beyond = -math.inf if table.last >= table.law.supremum else float(upper[-1])
    finite = np.where(upper > beyond, upper, -math.inf)
    if beyond > -math.inf:
        finite = finite + np.log1p(-np.exp(np.minimum(beyond - np.where(finite > beyond, finite, 0.0), -EPS)))
    finite[-1] = -math.inf
    tilt = _tilt(finite, step)
    masses = _masses(finite, step, log_top, tilt)
    x = step * np.arange(cells + 1)
    # C + mass at infinity must reach the upper bounds at the nodes and the total mass at y = 0
    with np.errstate(divide="ignore"):
        have = np.log(profile_at_nodes(masses, step, tilt)) - tilt * x
    have[-1] = _log_total(masses, step, tilt)
    wanted = finite.copy()
    wanted[-1] = log_top
    need = wanted > -math.inf
    lack = float(np.max(wanted[need] - have[need]))
    error = profile_error(cells + 1, step, tilt) + EPS * (8 + float(np.max(np.abs(wanted[need]))) + 2 * tilt * x[-1])
    return LatticeMeasure(table.offset, step, masses, tilt, max(lack, -1.0) + error, beyond, shift=table.shift)


def lower_spread(table: Table, *, trimmed: bool = False) -> LatticeMeasure | None:
    """A lattice measure with a profile certainly below the law's, also second order in the step (section 4).

    Chords lowered by the depth c to which the profile can sag below them, then made convex by taking the
    greatest convex minorant (clipping negative masses instead would be invalid). Losses below node 0 are
    gathered into it, or left out altogether (``trimmed``). None where no positive measure passes the check.
    """
    step, cells = table.step, table.cells
    # gathering is right only if the mass left of node 0 is close to it: else the total-mass line is far below
    # C
    near = max(math.exp(float(table.lower[0])) - 4 * math.expm1(step), 1e-300)
    trimmed = trimmed or not _total_mass_line(table)[1] > math.log(near)
    view = _Cells.of(table)
    depth = view.sag(view.chord())
    lowered = np.zeros(cells + 1)
    lowered[:-1] = depth
    alive = np.where(view.base > -math.inf, view.base, -1e4)
    lowered[1:-1] = np.maximum(lowered[1:-1], depth[:-1] * np.exp(np.clip(alive[:-2] - alive[1:-1], -700, 700)))
    if not trimmed and cells > 1:
        lowered[:2] = 0.0, depth[1]
    # C less its value at the last node is convex, below C, and ends at zero
    lowered += np.exp(np.minimum(view.base[-1] - alive, 0.0)) if view.base[-1] > -math.inf else 0.0
    with np.errstate(divide="ignore"):
        curve = view.base + np.log1p(-np.minimum(lowered, 1.0))
    # to the left of node 0 a line from (0, top) to (y_0, room) lies below C
    log_limit, log_room = _first_secant(table) if trimmed else _total_mass_line(table)
    curve[0] = min(curve[0], log_room)
    if not curve[0] > -math.inf or curve[1] > curve[0]:  # cut below its own second node: no profile lies under it
        return None
    log_top = log_limit
    if trimmed:  # the curve's own first line, carried on to y = 0
        log_top = min(
            log_limit,
            float(curve[0]) + math.log1p(-math.expm1(float(curve[1] - curve[0])) / math.expm1(step)),
        )
    else:
        view.open(curve)
    view.close(curve)
    tilt = _tilt(curve, step)
    masses = _masses(curve, step, log_top, tilt)
    x = step * np.arange(cells + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(profile_at_nodes(masses, step, tilt)) - tilt * x
    excess = max(_log_total(masses, step, tilt) - log_limit, float(logs[0]) - log_room, view.excess(logs))  # pyright: ignore[reportArgumentType]
    if not excess < 1.0:
        return None
    sizes = np.abs(view.base[view.base > -math.inf])
    error = profile_error(cells + 1, step, tilt) + EPS * (32 + float(sizes.max()) + 2 * tilt * x[-1])
    return LatticeMeasure(table.offset, step, masses, tilt, -max(excess, -1.0) - error, shift=table.shift)


def _total_mass_line(table: Table) -> tuple[float, float]:
    """(log of the total mass m, log of m - y at node 0), rounded down: C(y) >= m - y because Q has mass at
    most 1."""
    room = -math.expm1(table.offset) - table.law.infinity_mass
    log_room = math.log(room) - 4 * EPS / room if room > 0 else -math.inf
    return _log_mass(table.law, lower=True), log_room


def _first_secant(table: Table) -> tuple[float, float]:
    """(log of the secant of the first subcell carried on to y = 0, log C at node 0), rounded down."""
    part = math.expm1(table.step / SUBCELLS)
    fall = -math.expm1(min(float(table.upper[1] - table.lower[0]), 0.0)) * (1 - 8 * table.shift / part) - 16 * EPS
    return float(table.lower[0]) + math.log1p(max(fall, 0.0) / part) - 8 * EPS, float(table.lower[0])


def _log_mass(law: Law, *, lower: bool = False) -> float:
    value = math.log1p(-law.infinity_mass)
    return value - 4 * EPS * (1 + abs(value)) if lower else min(0.0, value + 4 * EPS * abs(value))


def _tilt(log_profile: Floats, step: float) -> float:
    """A tilt that keeps exp(tilt x) C(x) inside the range of doubles: half of what would level its two
    ends."""
    finite = np.flatnonzero(log_profile > -math.inf)
    if finite.size < 2:
        return 0.0
    first, last = finite[0], finite[-1]
    return max(0.0, -0.5 * float(log_profile[last] - log_profile[first]) / (step * float(last - first)))


def _log_total(masses: Floats, step: float, tilt: float) -> float:
    total = float(suffix_sums(masses, tilt * step)[0])
    return math.log(total) if total > 0 else -math.inf


def _masses(curve: Floats, step: float, log_top: float, tilt: float) -> Floats:
    """Tilted masses of the greatest convex minorant of (0, e^log_top) and the points (e^{x_j}, e^{curve_j}).

    The curve is -inf (zero) from some node on. A point above the chord of two others is never on the
    minorant, so all points above the chord of their neighbours are dropped at once; where that takes many
    rounds a stack finishes.
    """
    keep = np.flatnonzero(curve > -math.inf)
    if not keep.size:
        raise OverflowError("no mass of this law is within the range of doubles")
    end = int(keep[-1]) + 1
    for _ in range(40):
        relative, noise = _bends(curve, keep, end, step, log_top)
        drop = relative < 0
        # bends within the noise of the profile go too, every other one: the check has the last word
        faint = ~drop & (relative < noise)
        faint[::2] = False
        drop |= faint
        if not drop.any():
            break
        keep = keep[~drop]
    else:
        keep = _stacked(curve, keep, end, step, log_top)
        relative = np.maximum(_bends(curve, keep, end, step, log_top)[0], 0.0)
    masses = np.zeros(len(curve))
    if keep.size:
        masses[keep] = relative * np.exp(curve[keep] + tilt * step * keep)
        last = int(keep[-1])
        masses[end] = math.exp(curve[last] + tilt * step * end) / -math.expm1(-step * (end - last))
    else:
        masses[end] = math.exp(log_top + tilt * step * end)
    return masses


def _bends(curve: Floats, keep: Ints, end: int, step: float, log_top: float) -> tuple[Floats, Floats]:
    """(mass / C at each kept node, what rounding can make of it): with neighbours a < b < c

    mass_b / C_b = expm1(log C_c / C_b) / expm1(x_c - x_b) - expm1(log C_a / C_b) / expm1(x_a - x_b).
    """
    at = curve[keep]
    up = np.expm1(np.append(step * keep[1:], step * end) - step * keep)
    down = -np.expm1(np.append(-math.inf, step * keep[:-1])[: len(keep)] - step * keep)
    after = np.append(at[1:], -math.inf)[: len(keep)] - at
    before = np.append(log_top, at[:-1])[: len(keep)] - at
    relative = np.expm1(after) / up + np.expm1(np.minimum(before, 700)) / down
    return relative, (4e-15 + 2 * EPS * np.abs(at)) * (1 / up + 1 / down)


def _stacked(curve: Floats, keep: Ints, end: int, step: float, log_top: float) -> Ints:
    """The same minorant, point by point from the left: drop the last point while it bends the wrong way."""
    xs, logs, kept = [-math.inf], [log_top], [-1]
    for node in [*keep.tolist(), end]:
        x, log = step * node, float(curve[node]) if node < end else -math.inf
        while len(kept) > 1:
            after = math.expm1(log - logs[-1]) / math.expm1(x - xs[-1])
            before = math.expm1(min(logs[-2] - logs[-1], 700.0)) / math.expm1(xs[-2] - xs[-1])
            if after >= before:
                break
            del xs[-1], logs[-1], kept[-1]
        xs.append(x)
        logs.append(log)
        kept.append(node)
    return np.array(kept[1:-1], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Cells:
    """Lower bounds of the profile between nodes: in each subcell C lies above the extensions of both
    neighbouring secants.

    All values of cell j are divided by exp(base_j), base the lower log-profile at node j. Columns are the
    subnodes.
    """

    base: Floats  # -inf where the profile may be zero
    part: Floats  # position of the subnodes in a cell, 0 .. 1 on the scale of y
    low: Floats  # (cells, SUBCELLS + 1): lower values at the subnodes
    left: Floats  # (cells, SUBCELLS): the right neighbour's secant, at the left end of the subcell
    right: Floats  # (cells, SUBCELLS): the left neighbour's secant, at the right end

    @classmethod
    def of(cls, table: Table) -> _Cells:
        m, step, cells = SUBCELLS, table.step, table.cells
        base = table.lower[: cells * m + 1 : m].copy()
        index = np.maximum(np.arange(cells)[:, None] * m + np.arange(-1, m + 2)[None, :], 0)
        ref = np.where(base[:-1] > -math.inf, base[:-1], 0.0)[:, None]
        low = np.exp(np.minimum(table.lower[index] - ref, 700))
        up = np.exp(np.minimum(table.upper[index] - ref, 700))
        # the floats at which the profile was taken may lie left of the exact subnodes: move up along the
        # chord (section 4)
        up[:, 1:] += np.maximum(up[:, :-1] - low[:, 1:], 0.0) * (4 * m * table.shift / step)
        y = np.exp((step / m) * np.arange(-1, m + 2))
        rise = np.diff(y)
        # subcell i runs from column i + 1 to column i + 2
        fall_left = (low[:, 1 : m + 1] - up[:, :m]) / rise[:m]
        # the very first secant starts at y = 0, where C is the total mass
        before = _log_mass(table.law) - ref[0, 0]
        fall_left[0, 0] = low[0, 1] - math.exp(min(before, 700))
        fall_right = (up[:, 3 : m + 3] - low[:, 2 : m + 2]) / rise[2 : m + 2]
        # a point mass p on a subnode bends C there by p / y: the secants beyond it may be turned by as much
        # (section 4)
        for k, mass in table.bends:
            if k < cells * m:
                fall_left[k // m, k % m] += mass / y[k % m + 1] / math.exp(ref[k // m, 0])
            if k > 0:
                fall_right[(k - 1) // m, (k - 1) % m] -= mass / y[(k - 1) % m + 2] / math.exp(ref[(k - 1) // m, 0])
        width = rise[1 : m + 1]
        left = low[:, 2 : m + 2] - fall_right * width
        right = low[:, 1 : m + 1] + fall_left * width
        # a rounding of each operand, downwards; a line that is lower still is valid too
        left -= 32 * EPS * (low[:, 2 : m + 2] + np.abs(fall_right) * width)
        right -= 32 * EPS * (low[:, 1 : m + 1] + up[:, :m])
        steep = table.upper[index[:, 0]] - ref[:, 0] > 700  # where up was cut off to stay finite
        right[steep, 0] = -1e300
        if before > 700:
            right[0, 0] = -1e300
        return cls(base, (y[1 : m + 2] - 1.0) / (y[m + 1] - 1.0), low[:, 1 : m + 2], left, right)

    def chord(self) -> Floats:
        """The chord of the lower values, at the subnodes."""
        return self._line(self.low[:, 0], self.low[:, -1])

    def _line(self, start: Floats, stop: Floats) -> Floats:
        return np.multiply.outer(start, 1 - self.part) + np.multiply.outer(stop, self.part)

    def floor(self, line: Floats, rows: slice = slice(None)) -> tuple[Floats, Floats]:
        """A line below C in each subcell, about parallel to ``line``: its values at the left and right end.

        For 0 <= a <= 1 the mixture a * left secant + (1 - a) * right secant is affine and below C; any a is
        valid. It is taken so that the mixture is not negative at the right end, where ``line`` may be zero.
        """
        low_left, low_right, left, right = (
            self.low[rows, :-1],
            self.low[rows, 1:],
            self.left[rows],
            self.right[rows],
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            a = ((low_right - line[:, 1:]) - (left - line[:, :-1])) / ((low_left - left) + (low_right - right))
            a = np.clip(np.where(np.isfinite(a), a, 0.5), 0.0, 1.0)
            a = np.where(right < 0, np.minimum(a, low_right / (low_right - right) * (1 - 4 * EPS)), a)
        return a * low_left + (1 - a) * left, a * right + (1 - a) * low_right

    def sag(self, line: Floats) -> Floats:
        """How far C may lie below ``line`` in each cell (>= 0)."""
        start, stop = self.floor(line)
        depth: Floats = np.maximum(line[:, :-1] - start, line[:, 1:] - stop).max(axis=1)
        return np.maximum(0.0, depth)

    def open(self, curve: Floats) -> None:
        """Lower the second node until the first line, which starts on the total-mass line, passes below C.

        The lowest point of the two secants of a subcell is where they meet; the subnodes bound the line as
        well.
        """
        start = math.exp(min(float(curve[0] - self.base[0]), 0.0))
        low, left, right = self.low[0], self.left[0], self.right[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            meet = (low[:-1] - left) / ((low[:-1] - left) + (low[1:] - right))
        meet = np.clip(np.where(np.isfinite(meet), meet, 0.5), 0.0, 1.0)
        at = np.append(self.part[:-1] + meet * np.diff(self.part), self.part[1:])
        height = np.append(np.maximum(low[:-1] + meet * (right - low[:-1]), left + meet * (low[1:] - left)), low[1:])
        clear = at > 1e-9
        stop = start + float(np.min((height[clear] - start) / at[clear]))
        with np.errstate(divide="ignore"):
            curve[1] = min(float(curve[1]), float(self.base[0] + np.log(max(stop, 0.0))))

    def close(self, curve: Floats) -> None:
        """End the curve at zero inside its support: from the first node that is not positive the curve is
        zero, and the value before it is lowered until the last line passes below C."""
        dead = np.flatnonzero(~(curve > -math.inf))
        end = int(dead[0]) if dead.size else len(curve) - 1
        while end > 1:
            j = end - 1
            line = self._line(np.exp(np.minimum(curve[j : j + 1] - self.base[j], 0.0)), np.zeros(1))
            start, stop = self.floor(line, slice(j, j + 1))
            scale = float(min(1.0, np.min(start / line[:, :-1]), np.min(stop[:, :-1] / line[:, 1:-1], initial=1.0)))
            if scale > 0.5:
                curve[j] += math.log(scale)
                break
            end -= 1
        curve[end:] = -math.inf

    def excess(self, logs: Floats) -> float:
        """max of log(measure's profile / lower bound of C) over all subcells; ``logs`` is the former at the
        nodes."""
        ref = np.where(self.base > -math.inf, self.base, 0.0)[:-1]
        line = self._line(np.exp(np.minimum(logs[:-1] - ref, 700)), np.exp(np.minimum(logs[1:] - ref, 700)))
        worst = -math.inf
        for values, bound in zip((line[:, :-1], line[:, 1:]), self.floor(line), strict=True):
            positive = values > 0
            if not np.all(bound[positive] > 0) or not np.all(bound[~positive] >= 0):
                return math.inf
            worst = max(worst, float(np.max(np.log(values[positive] / bound[positive]), initial=-math.inf)))
        return worst
