r"""The worst case of adaptively chosen bounded-range mechanisms, from above and from below.

In a = e^e the profile of nothing is V(a) = (1 - a)+, and one more use of range eps, lam = e^eps, run before the others,
makes of a bound V of the others

    (T V)(a) = sup over a / lam <= b <= a of the chord of V from b to lam b, at a
             = sup of ((d - a) V(b) + (a - b) V(d)) / (d - b),   d = lam b,

exactly (docs/selection.md, theorem 2). T keeps convexity and order, and V(1/a) = 1 - 1/a + V(a)/a, so that a >= 1
is enough. Two tables on a geometric grid of a enclose what comes out.

**Above.** The table stands for the function that is linear between its nodes, which bounds a convex one. If eps is m
grid steps, b in segment j and lam b in segment j + m, then the chord's value is A + B b + C / b with B, C <= 0: its
peak is at b^2 = a q_j / lam, q_j the mean of the measure V'' over (b, lam b]. So segment j serves at most three nodes
a, and the sup over all b is taken exactly with three evaluations for each segment (docs/selection.md, section 3).

**Below.** b is kept to the grid: no value between nodes is needed, and every choice of b is a lower bound.

Uses of different ranges do not commute: a plan has no order, so the largest over all orders is taken in every state.
Range of the numbers: values below ``FLOOR`` are raised to it in the table above and may be lost in the one below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dptally.checks import Floats
from dptally.numerics.rounding import EPS

__all__ = ["FLOOR", "Curves", "Uses", "curves", "is_feasible"]

Uses = tuple[tuple[float, int], ...]  # (range, how often) in increasing order of the range
Ints = NDArray[np.int64]

FLOOR = 1e-290
_DEEP, _MIDDLE, _SHALLOW = 690.0, 200.0, 80.0  # nats to which the tables reach
#: uses from which on no table is deep: what is added where values end at FLOOR grows tenfold with each use
_MANY = 200
_FINEST, _FINE, _COARSEST = 2048, 24, 6  # grid steps in the largest range
_QUICK, _PATIENT = 325_000, 12_000_000  # nodes times steps: heuristic, any value is sound
_MOST_STEPS = 12_000
_LARGEST = 64.0  # range: powers of e^range stay far from the largest double


# -- one use -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Chord:
    """One range as ``m`` steps of a grid whose nodes are the powers of 1 + ``gap``, with what depends on nothing else.

    The tables are for d = -2 .. m + 3 nodes from b's to a: r^d - 1, 1 - r^(d-m), r^((d-m)/2), and the two weights of
    the chord from node to node; ``mirrored``: r^-j and 1 - r^-j for j = m .. 1.
    """

    m: int
    gap: float
    step: float
    ratio_less_one: float
    below: Floats
    above: Floats
    root: Floats
    weight_b: Floats
    weight_d: Floats
    mirrored: tuple[Floats, Floats]
    rounded: float


@lru_cache(maxsize=64)
def chord_of(m: int, gap: float, largest: int) -> Chord:
    """``largest``: the steps of the largest range of the plan; one evaluation of a chord has a dozen roundings, and
    exponentials of up to that.
    """
    step = math.log1p(gap)
    whole = math.expm1(m * step)
    d, back = np.arange(-2.0, m + 4.0), np.arange(m, 0.0, -1.0)
    below, above = np.expm1(d * step), -np.expm1((d - m) * step)
    at_b, at_d = np.maximum(above, 0.0) * ((1.0 + whole) / whole), np.maximum(below, 0.0) / whole
    root = np.exp(0.5 * step * (d - m))
    mirrored = np.exp(-step * back), -np.expm1(-step * back)
    rounded = EPS * (24.0 + 8.0 * largest * step)
    return Chord(m, gap, step, whole, below, above, root, at_b, at_d, mirrored, rounded)


def _extended(values: Floats, chord: Chord, beyond: float) -> Floats:
    """The values at nodes 0, 1, .. with those at -m .. -1, by the mirror image, and m + 2 more that are ``beyond``."""
    m, (power, missing) = chord.m, chord.mirrored
    known = values if len(values) > m else np.concatenate((values, np.full(m + 1 - len(values), beyond)))
    return np.concatenate((missing + power * known[m:0:-1], values, np.full(m + 2, beyond)))


def _windows(value: Floats, chord: Chord, number: int) -> tuple[Floats, Floats, Floats]:
    """How far V falls in each segment, and what the measure V'' holds between b and lam b, b in segment j: its mass
    and its first moment, over r^j.
    """
    m = chord.m
    drop = value[:-1] - value[1:]
    slope = drop[: m + number] / chord.gap
    intercept = value[: m + number] + slope
    mass = slope[:number] - slope[m:] * (1.0 / (1.0 + chord.ratio_less_one))
    return drop, mass, intercept[:number] - intercept[m:]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A table from above: ``values`` are within a relative ``_NOISE`` of those of a convex function, or within
    ``extra`` more.
    """

    values: Floats
    extra: Floats | None = None


@np.errstate(over="ignore", invalid="ignore")  # values that are infinite: their windows are not clear
def upper_step(row: Row, top: int, chord: Chord) -> Row:
    """T V at nodes 0 .. top from above, from V at its nodes from above.

    The values are those of a convex function but for their roundings, so that the peak of a chord may be misplaced by
    a relative ``doubt``. That costs at most (C / b) doubt^2, which is added (``price``); segments whose curvature
    drowns in the roundings are bounded by chord - V <= (lam - 1) b (mass of the window) / 4 instead.
    """
    m, gap, whole = chord.m, chord.gap, chord.ratio_less_one
    ratio = 1.0 + whole
    value = _extended(row.values, chord, float(row.values[-1]))
    number = min(int(np.searchsorted(-value, -FLOOR)), len(value) - m - 1)  # segments that begin above the floor
    drop, mass, moment = _windows(value, chord, number)
    one, end, far, last = (slice(k, k + number) for k in (0, 1, m, m + 1))
    error = _error_of_windows(row, value, chord, number)
    with np.errstate(all="ignore"):
        doubt = error * (1.1 / mass + 1.1 / moment)
        mean = moment / mass
        price = (0.3 * ratio / whole) * moment * (doubt * doubt)
        start = m - np.log(mean) / chord.step
        clear = (doubt < 0.1 * chord.step) & (mass > 0) & (moment > 0) & np.isfinite(mean)
    all_clear = bool(clear.all())
    if not all_clear:
        mean, price, start = np.where(clear, mean, 1.0), np.where(clear, price, 0.0), np.where(clear, start, 0.0)
    peak = np.sqrt(mean)
    apart = np.clip(np.ceil(start - 0.25), -2, m + 1).astype(np.int64)
    margin = m + 4
    place = np.arange(margin - m, margin - m + number) + apart
    ordered = all_clear and bool((place[1:] > place[:-1]).all())
    inside = number > 0 and int(apart.min()) >= 1
    best, extra = np.zeros((2, margin + top + 1 + margin + number))
    best[margin : margin + top + 1] = value[m : m + top + 1]
    fall_b, end_b = drop[one] * (ratio / gap), value[end] * ratio
    fall_d, end_d = drop[far] / gap, value[last]
    scale = (1.0 + chord.rounded) / whole
    for offset in range(3):
        index = apart + (2 + offset)
        z = np.clip(peak * chord.root.take(index) - 1.0, 0.0, gap)  # b = r^j (1 + z)
        rest = gap - z
        away = np.maximum(chord.above.take(index) + z, 0.0)
        near = chord.below.take(index) - z
        if not inside:  # a chord that begins beyond a is none: its value at b is not above V(a)
            near, away = np.maximum(near, 0.0), np.minimum(away, whole / ratio * (1.0 + z))
        found = (away * (end_b + rest * fall_b) + near * (end_d + rest * fall_d)) * (scale / (1.0 + z)) + price
        to = place + offset
        if ordered:
            best[to] = np.maximum(best[to], found)
        else:
            np.maximum.at(best, to[clear], found[clear])
        large = price > EPS * found
        if large.any():
            np.maximum.at(extra, to[large], 2 * price[large])
    values, extra = best[margin : margin + top + 1], extra[margin : margin + top + 1]
    unclear = ~clear & (value[one] > value[last])
    if unclear.any():
        bump = np.where(unclear, 0.25 * whole * (1.0 + gap) * (np.abs(mass) + error), 0.0)
        bump = np.where(np.isnan(bump), np.inf, bump)
        raised = _largest_behind(bump, m, top)
        values = np.maximum(values, value[m : m + top + 1] * (1 + 4 * EPS) + raised)
        extra = extra + raised
    return Row(np.maximum(values, FLOOR), extra if extra.any() else None)


def _error_of_windows(row: Row, value: Floats, chord: Chord, number: int) -> Floats:
    """What mass and moment of the windows may be off: by the roundings of four values, none larger than the first,
    and of their differences.
    """
    noise = 3 * chord.rounded  # of values; the mirror image keeps what is relative
    error = value[:number] * (5.0 * noise / chord.gap + 64 * EPS)
    if row.extra is not None:
        more = _extended(row.extra, chord, 0.0)
        more[: chord.m] -= chord.mirrored[1]
        two = more[:-1] + more[1:]
        error = error + (1.1 / chord.gap) * (two[:number] + two[chord.m : chord.m + number])
    return np.asarray(error, dtype=np.float64)


def _largest_behind(bump: Floats, m: int, top: int) -> Floats:
    """For node i the largest bump of the segments j with a_i between their b and lam b: i - 1 <= j <= i + m, as
    places.
    """
    padded = np.zeros(top + 2 * m + 4)
    number = min(len(bump), len(padded) - 1)
    padded[1 : number + 1] = bump[:number]
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, m + 2)[: top + 1].max(axis=1))


def lower_step(values: Floats, top: int, chord: Chord) -> Floats:
    """A lower bound of T V at nodes 0 .. top: chords between nodes, those near the best one."""
    m = chord.m
    value = _below_extended(values, chord)
    apart = _best_nodes(value, chord)
    number, margin = len(apart), m + 4
    best = np.zeros(margin + top + 1 + margin + number)
    best[margin : margin + top + 1] = value[m : m + top + 1]
    place = np.arange(margin - m, margin - m + number) + apart
    ordered = bool((place[1:] > place[:-1]).all())
    near, far = value[:number] * (1.0 - chord.rounded), value[m : m + number] * (1.0 - chord.rounded)
    for offset in (-1, 0, 1):
        index = apart + (2 + offset)
        found = chord.weight_b.take(index) * near + chord.weight_d.take(index) * far
        if offset:  # beyond the ends of its chord there is none
            found[(index < 2) | (index > m + 2)] = 0.0
        to = place + offset
        if ordered:
            best[to] = np.maximum(best[to], found)
        else:
            np.maximum.at(best, to, found)
    out = best[margin : margin + top + 1]
    out[out <= FLOOR] = 0.0
    return out


def _below_extended(values: Floats, chord: Chord) -> Floats:
    value = _extended(values, chord, 0.0)
    value[: chord.m] *= 1.0 - chord.rounded
    return value


def _best_nodes(value: Floats, chord: Chord) -> Ints:
    """How many nodes beyond b the a lies whose best chord begins at b, 0 .. m, for each; any answer is sound."""
    number = max(1, min(int(np.searchsorted(-value, -FLOOR)), len(value) - chord.m - 1))
    _, mass, moment = _windows(value, chord, number)
    with np.errstate(all="ignore"):
        place = chord.m + 0.5 - np.log(moment / mass) / chord.step
    place[~np.isfinite(place)] = chord.m
    return np.asarray(np.clip(np.rint(place), 0, chord.m), dtype=np.int64)


# -- all uses ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grid:
    """Ranges as whole numbers of grid steps: ``above`` of at least the true ranges, ``below`` of at most them."""

    gap_above: float
    gap_below: float
    above: tuple[int, ...]
    below: tuple[int, ...]
    depth: float


@dataclass(frozen=True, slots=True, eq=False)
class Below:
    """A table from below with one use less, from which the last chord is drawn: ``node`` is the best a for each b."""

    chord: Chord
    value: Floats
    node: Ints

    def at(self, epsilon: Floats) -> Floats:
        """The best of a few chords at each e."""
        m, h, whole = self.chord.m, self.chord.step, self.chord.ratio_less_one
        middle = np.searchsorted(self.node, epsilon / h + m)
        off = 8 * EPS * (epsilon + m * h)  # of the places
        best = np.zeros_like(epsilon)
        for offset in (-3, -2, -1, 0, 1):
            j = np.clip(middle + offset, 0, len(self.node) - 1)
            beyond = epsilon - (j - m) * h  # log of a / b
            near = -np.expm1(np.minimum(beyond - m * h + off, 0.0)) * ((1 + whole) / whole)
            far = np.expm1(np.maximum(beyond - off, 0.0)) / whole
            found = near * self.value[j] + far * self.value[j + m]
            best = np.maximum(best, np.where((beyond >= off) & (beyond <= m * h - off), found, 0.0))
        return best * (1.0 - 2 * self.chord.rounded)


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Bounds of V(e) for e >= 0: ``upper`` at nodes of ``step``, linear in e^e between them, and the last chords."""

    gap: float
    upper: Floats
    before: tuple[Below, ...]

    @property
    def step(self) -> float:
        return math.log1p(self.gap)

    def log_upper(self, epsilon: Floats) -> Floats:
        """V falls, so that e is moved down by what its place may be off."""
        h, end = self.step, len(self.upper) - 1
        low = np.maximum(epsilon - 8 * EPS * epsilon, 0.0)
        j = np.minimum(np.floor(low / h), end).astype(np.int64)
        share = np.expm1(np.clip(low - j * h, 0.0, h)) / self.gap * (1 - 16 * EPS)
        here, after = self.upper[j], self.upper[np.minimum(j + 1, end)]
        log = np.log(here + np.clip(share, 0.0, 1.0) * (after - here) + 4 * EPS * here)
        return np.asarray(np.minimum(log + 8 * EPS * (1 - log), 0.0), dtype=np.float64)

    def log_lower(self, epsilon: Floats) -> Floats:
        best = np.maximum.reduce([table.at(epsilon) for table in self.before]) if self.before else 0.0 * epsilon
        with np.errstate(divide="ignore"):
            log = np.log(np.where(best > FLOOR, best, 0.0))
            return np.asarray(log - np.where(np.isfinite(log), 8 * EPS * (1 - log), 0.0), dtype=np.float64)


def is_feasible(uses: Uses) -> bool:
    """Whether the tables cost seconds at most."""
    return _grid(uses) is not None


@lru_cache(maxsize=32)
def curves(uses: Uses) -> Curves:
    """The bounds after all uses, for two or more of them."""
    grid = _grid(uses)
    assert grid is not None
    counts = tuple(n for _, n in uses)
    return Curves(grid.gap_above, _above(uses, counts, grid), _below(uses, counts, grid))


def _cut(uses: Uses, state: tuple[int, ...], depth: float, units: tuple[int, ...], gap: float) -> int:
    """The last node in this state: where the loss ends, or where V is below e^-depth (by zCDP; any cut is sound)."""
    rho = sum(n * eps * eps for (eps, _), n in zip(uses, state, strict=True)) / 8
    ends = sum(n * m for m, n in zip(units, state, strict=True))
    return min(ends, math.ceil((rho + 2 * math.sqrt(rho * depth)) / math.log1p(gap)))


def _layers(counts: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """All states with 1, 2, .. uses."""
    if len(counts) == 1:
        for n in range(1, counts[0] + 1):
            yield [(n,)]
        return
    by_size: dict[int, list[tuple[int, ...]]] = {}
    for state in product(*(range(n + 1) for n in counts)):
        by_size.setdefault(sum(state), []).append(state)
    yield from (by_size[size] for size in range(1, sum(counts) + 1))


def _without(state: tuple[int, ...], kind: int) -> tuple[int, ...]:
    return (*state[:kind], state[kind] - 1, *state[kind + 1 :])


def _above(uses: Uses, counts: tuple[int, ...], grid: Grid) -> Floats:
    chords = [chord_of(m, grid.gap_above, max(grid.above)) for m in grid.above]
    known = {(0,) * len(counts): Row(np.array([FLOOR]))}
    for layer in _layers(counts):
        found = {}
        for state in layer:
            top = _cut(uses, state, grid.depth, grid.above, grid.gap_above)
            rows = [upper_step(known[_without(state, i)], top, chords[i]) for i, n in enumerate(state) if n]
            ends = top == sum(n * m for n, m in zip(state, grid.above, strict=True))
            found[state] = _highest(rows, ends)
        known = found
    return np.minimum(known[counts].values, 1.0)


def _highest(rows: list[Row], ends: bool) -> Row:
    """The largest of the rows; ``ends``: their last node is the largest possible loss, where V is 0."""
    value = np.maximum.reduce([row.values for row in rows])
    extras = [row.extra for row in rows if row.extra is not None]
    extra = np.maximum.reduce(extras) if extras else None
    if ends:
        value[-1] = FLOOR
        if extra is not None:
            extra[-1] = 0.0
    return Row(value, extra if extra is not None and extra.any() else None)


def _below(uses: Uses, counts: tuple[int, ...], grid: Grid) -> tuple[Below, ...]:
    chords = [chord_of(m, grid.gap_below, max(grid.below)) if m else None for m in grid.below]
    known = {(0,) * len(counts): np.array([0.0])}
    for layer in _layers(counts):
        if layer == [counts]:
            break
        found = {}
        for state in layer:
            top = _cut(uses, state, grid.depth, grid.below, grid.gap_below)
            kinds = [(known[_without(state, i)], chords[i]) for i, n in enumerate(state) if n]
            rows = [lower_step(value, top, chord) if chord else _kept(value, top) for value, chord in kinds]
            found[state] = np.maximum.reduce(rows)
        known = found
    out = []
    for i, chord in enumerate(chords):
        if chord:
            value = _below_extended(known[_without(counts, i)], chord)
            apart = _best_nodes(value, chord)
            out.append(Below(chord, value, np.maximum.accumulate(np.arange(len(apart)) + apart)))
    return tuple(out)


def _kept(value: Floats, top: int) -> Floats:
    """A use of a range below one grid step is left out of the lower bound."""
    return np.concatenate((value, np.zeros(max(0, top + 1 - len(value)))))[: top + 1]


@lru_cache(maxsize=256)
def _grid(uses: Uses) -> Grid | None:
    """The grid that is best for what it costs; None where all of them cost too much."""
    largest, total = uses[-1][0], sum(n * eps for eps, n in uses)
    states = math.prod(n + 1 for _, n in uses)
    if states * len(uses) > _MOST_STEPS or largest > _LARGEST:
        return None
    rho = sum(n * eps * eps for eps, n in uses) / 8
    for depth in (_DEEP if states <= _MANY else _MIDDLE, _SHALLOW):
        reach = min(0.5 * total, 2 / 3 * (rho + 2 * math.sqrt(rho * depth)))
        work = max(1.0, states * len(uses) * reach / largest)  # nodes times steps, for each grid step in the range
        finest = min(_FINEST, int(_QUICK / work))
        if finest < _FINE:
            finest = min(_FINE, int(_PATIENT / work))
        if finest >= (_FINE if depth > _SHALLOW else _COARSEST):
            return min((_aligned(uses, m, depth) for m in _tried(finest, len(uses))), key=lambda row: row[0])[1]
    return None


def _tried(finest: int, kinds: int) -> range:
    return range(finest, finest + 1) if kinds == 1 else range(max(2, finest // 2), finest + 1)


def _aligned(uses: Uses, units: int, depth: float) -> tuple[float, Grid]:
    """The grid of so many steps in the largest range, and about how wide an answer it gives, relatively."""
    h = uses[-1][0] / units
    above, below = math.expm1(h * (1 + 16 * EPS)) * (1 + 8 * EPS), math.expm1(h * (1 - 16 * EPS)) * (1 - 8 * EPS)
    most, least = Fraction(math.log1p(above) * (1 - 4 * EPS)), Fraction(math.log1p(below) * (1 + 4 * EPS))
    many = tuple(math.ceil(Fraction(eps) / most) for eps, _ in uses)
    few = tuple(math.floor(Fraction(math.nextafter(eps, 0.0)) / least) for eps, _ in uses)
    weights = [n * eps * eps for eps, n in uses]
    off = sum(w * (a - b) * h / eps for w, a, b, (eps, _) in zip(weights, many, few, uses, strict=True))
    return off / sum(weights) + 0.64 / units**2, Grid(above, below, many, few, depth)
