r"""Certified tilted inversion: delta(eps) as a short trapezoid sum on a contour through the saddle point.

With phi the characteristic function of the loss tilted by theta > 0, and h(eps) = e^{theta eps - K(theta)} delta(eps),

    h(eps) = 1/(2 pi) \int phi(u) e^{-iu eps} / ((theta + iu)(theta + 1 + iu)) du .

The trapezoid sum of step Delta = 2 pi / P equals the sum over m of h(eps + m P)  [Poisson summation]; all of its
terms are
nonnegative, so it is an upper bound and exceeds h by at most the aliasing bound. Everything is relative to
e^{K - theta eps}: delta = 1e-300 is as easy as 1e-5. Derivations: docs/certificates.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dptally.accounting.certified.bounds import LogBounds
from dptally.accounting.certified.solve import epsilon_ends
from dptally.law import Composition, Law
from dptally.law.characteristic import Characteristic, MomentTable, Transformable
from dptally.numerics.complexes import log1p_complex
from dptally.numerics.rounding import EPS

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

__all__ = ["MOST_WORK", "Aliasing", "Inversion", "for_delta", "for_epsilon", "invert"]

Losses = Sequence[tuple[Transformable, int]]

#: tilts at which K is tabulated, block after block until the saddle is passed: ratio sqrt 2, from 1e-4
_ENDS = (-26, 7, 13, 19, 25, 31, 41, 51, 61)
_BLOCKS = tuple(2.0 ** (np.arange(a, b) / 2.0) for a, b in pairwise(_ENDS))
_RELATIVE = 1e-14  # what each truncation may cost, relative to delta
_MOST_TERMS = 1 << 17
_FAIR = 8.0  # nats by which the tail may exceed its share where phi stops decaying: 3e-11 of delta
_HOPELESS = 14.0  # nats by which the tail may exceed its share before another method is better
MOST_WORK = 30_000_000  # terms times nodes: about 0.1 s


@dataclass(frozen=True, slots=True)
class Aliasing:
    """What the other terms of Poisson's sum add up to, at most.

    The sum over m != 0 of h(eps + mP), by delta(x) <= e^{K(s) - s x}: s > theta for m > 0 and 0 <= s < theta for m < 0.
    """

    above: tuple[Floats, Floats]  # gaps s - theta > 0, and the log of the bound at eps = 0
    below: tuple[Floats, Floats]  # gaps theta - s > 0, likewise

    @classmethod
    def of(cls, tilts: MomentTable, theta: float, log_least: float, step: float) -> Aliasing:
        """``log_least``: a lower bound of K(theta); ``step``: 2 pi over the period."""
        period = 2 * math.pi / step
        gap = tilts.theta - theta
        gain = tilts.moment + tilts.error - log_least
        size = np.abs(tilts.moment) + tilts.error + abs(log_least)
        right, left = gap > 0, gap < 0
        sides = []
        for gaps, gains, sizes in (
            (gap[right], gain[right], size[right]),
            (np.append(-gap[left], theta), np.append(gain[left], -log_least), np.append(size[left], abs(log_least))),
        ):
            fall = gaps * period
            series = np.log(-np.expm1(-fall))
            # the gains are sums of three numbers each; gap, period and product are rounded once or twice
            rounding = 8 * EPS * (sizes + fall + np.abs(series))
            sides.append((gaps, gains - fall - series + rounding))
        return cls(*sides)

    def bound(self, epsilon: float) -> float:
        if not self.above[0].size:
            return math.inf
        right = float(_exponent(self.above[1], -epsilon * self.above[0]).min())
        left = float(_exponent(self.below[1], epsilon * self.below[0]).min())
        return (math.exp(min(700.0, right)) + math.exp(min(700.0, left))) * (1 + 16 * EPS)

    def bound_many(self, epsilon: Floats) -> Floats:
        if not self.above[0].size:
            return np.full(epsilon.shape, np.inf)
        right = _exponent(self.above[1], np.multiply.outer(-epsilon, self.above[0])).min(axis=1)
        left = _exponent(self.below[1], np.multiply.outer(epsilon, self.below[0])).min(axis=1)
        return np.asarray((np.exp(np.minimum(700.0, right)) + np.exp(np.minimum(700.0, left))) * (1 + 16 * EPS))


def _exponent(start: Floats, move: Floats) -> Floats:
    """start + move, rounded up: two roundings of the product, one of the sum."""
    return np.asarray(start + move + 4 * EPS * (np.abs(start) + np.abs(move)))


@dataclass(frozen=True, slots=True)
class Inversion:
    """The nodes of one contour: evaluates log delta at any eps with certified bounds. Finite losses only."""

    theta: float
    log_moment: float
    log_moment_error: float
    centre: float
    step: float
    terms: Complexes  # phi(u_k) / ((theta + iu)(theta + 1 + iu)), the k = 0 term halved
    noise: float  # bound of the sum's error from the errors of phi
    phase_noise: float  # the part of that error that grows with |eps - centre|
    tail: float
    tilts: MomentTable
    saddle: float  # the eps whose saddle point theta is: where a search starts
    aliasing: Aliasing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        aliasing = Aliasing.of(self.tilts, self.theta, self.log_moment - self.log_moment_error, self.step)
        object.__setattr__(self, "aliasing", aliasing)

    def estimate(self, epsilon: float) -> float:
        """log delta(eps), not a bound."""
        value = self._sum(epsilon)[0]
        return self.log_moment - self.theta * epsilon + math.log(value) if value > 0 else -math.inf

    def _sum(self, epsilon: float) -> tuple[float, float]:
        """(G, slope term): the sum for h, and the same without the factor 1/(theta + iu)."""
        k = np.arange(len(self.terms))
        rotated = self.terms * np.exp(-1j * (self.step * (epsilon - self.centre)) * k)
        value = self.step / math.pi * float(rotated.real.sum())
        slope = self.theta * value - self.step**2 / math.pi * float(np.dot(k, rotated.imag))
        return value, slope

    def log_delta(self, epsilon: float) -> LogBounds:
        """(lower, upper, slope): certified bounds of log delta(eps), and an estimate of -d log delta / d eps."""
        value, slope = self._sum(epsilon)
        if not math.isfinite(value):  # beyond the doubles: nothing is known
            return LogBounds(-math.inf, 0.0, math.nan)
        error = self.tail + self.noise + self.phase_noise * (abs(epsilon) + abs(self.centre))
        upper = value + error
        lower = value - error - self.aliasing.bound(epsilon)
        base = self.log_moment - self.theta * epsilon
        base_error = self.log_moment_error + 4 * EPS * (abs(self.log_moment) + abs(self.theta * epsilon))
        high = base + math.log(upper) + base_error + 4 * EPS * abs(math.log(upper)) if upper > 0 else -math.inf
        low = base + math.log(lower) - base_error - 4 * EPS * abs(math.log(lower)) if lower > 0 else -math.inf
        rate = slope / value if value > 0 and slope > 0 else self.theta
        return LogBounds(low, min(high, 0.0), rate)

    def log_delta_many(self, epsilon: Floats) -> tuple[Floats, Floats, Floats]:
        """:meth:`log_delta` at many eps at once: the same sums and the same error bounds."""
        lower, upper, slope = np.full((3, len(epsilon)), -np.inf)
        k = np.arange(len(self.terms))
        pair = np.stack((self.terms, k * self.terms), axis=1)
        rows = max(1, _MOST_ELEMENTS // max(1, len(k)))
        for start in range(0, len(epsilon), rows):
            eps = epsilon[start : start + rows]
            sums = np.exp(-1j * np.multiply.outer(self.step * (eps - self.centre), k)) @ pair
            value = self.step / math.pi * sums[:, 0].real
            fall = self.theta * value - self.step**2 / math.pi * sums[:, 1].imag
            error = self.tail + self.noise + self.phase_noise * (np.abs(eps) + abs(self.centre))
            most, least = value + error, value - error - self.aliasing.bound_many(eps)
            base = self.log_moment - self.theta * eps
            blur = self.log_moment_error + 4 * EPS * (abs(self.log_moment) + np.abs(self.theta * eps))
            log_most, log_least = (np.log(np.where(x > 0, x, 1.0)) for x in (most, least))
            part = slice(start, start + rows)
            upper[part] = np.where(most > 0, base + log_most + blur + 4 * EPS * np.abs(log_most), -np.inf)
            lower[part] = np.where(least > 0, base + log_least - blur - 4 * EPS * np.abs(log_least), -np.inf)
            slope[part] = np.where((value > 0) & (fall > 0), fall / np.where(value > 0, value, 1.0), self.theta)
            unknown = ~np.isfinite(value)
            lower[part] = np.where(unknown, -np.inf, lower[part])
            upper[part] = np.where(unknown, 0.0, np.minimum(upper[part], 0.0))
        return lower, upper, slope


def tabulate_at(parts: Losses, theta: Floats) -> MomentTable:
    """K of the whole composition at these tilts."""
    return added(parts, theta, [law.moment_table(theta) for law, _ in parts])


def added(parts: Losses, theta: Floats, tables: list[MomentTable]) -> MomentTable:
    """The same of tables that are there already."""
    moment, error, first, second = np.zeros((4, len(theta)))
    for (_, count), table in zip(parts, tables, strict=True):
        moment += count * table.moment
        error += count * (table.error + 2 * EPS * np.abs(table.moment))
        first += count * table.first
        second += count * table.second
    return MomentTable(theta, moment, error + EPS * len(parts) * np.abs(moment), first, second)


def _leading(parts: Losses, tables: list[MomentTable], row: int) -> Losses:
    """Of many parts those that carry most of the variance: they make phi decay, and for the others |phi| <= 1."""
    if len(parts) < 8:
        return parts
    sizes = np.array([count * float(table.second[row]) for (_, count), table in zip(parts, tables, strict=True)])
    order = np.argsort(-sizes)
    enough = int(np.searchsorted(np.cumsum(sizes[order]), 0.9 * float(sizes.sum())))
    return [parts[i] for i in order[: enough + 1]]


def tabulate(parts: Losses, passed: Callable[[MomentTable], bool]) -> MomentTable:
    """K at increasing tilts, until ``passed`` says that the table reaches far enough or K becomes infinite."""
    columns = np.zeros((5, 0))
    for number, theta in enumerate(_BLOCKS):
        tables = [_kept(law, number) if isinstance(law, Law) else law.moment_table(theta) for law, _ in parts]
        block = added(parts, theta, tables)
        rows = np.array([block.theta, block.moment, block.error, block.first, block.second])
        keep = np.isfinite(rows).all(axis=0)
        columns = np.concatenate((columns, rows[:, keep]), axis=1)
        if not keep.all() or passed(MomentTable(*columns)):
            break
    return MomentTable(*columns)


@lru_cache(maxsize=512)
def _kept(law: Law, number: int) -> MomentTable:
    """K of one law at one block of tilts: the same for every count and every question."""
    return law.moment_table(_BLOCKS[number])


def merged(*tables: MomentTable) -> MomentTable:
    """One table with the rows of all, in order of theta."""
    columns = [
        np.concatenate(rows)
        for rows in zip(*((t.theta, t.moment, t.error, t.first, t.second) for t in tables), strict=True)
    ]
    order = np.argsort(columns[0], kind="stable")
    return MomentTable(*(column[order] for column in columns))


def _crossing(theta: Floats, value: Floats) -> float:
    """Where ``value``, positive at first, becomes negative, by interpolation in log theta; an end of the table if
    nowhere.
    """
    below = np.nonzero(value <= 0)[0]
    if not below.size:
        return float(theta[-1])
    i = int(below[0])
    if i == 0:
        return float(theta[0])
    share = value[i - 1] / (value[i - 1] - value[i])
    return float(theta[i - 1] * (theta[i] / theta[i - 1]) ** share)


def saddle_log_size(table: MomentTable) -> Floats:
    """The saddle-point approximation of log delta at the eps whose saddle is theta."""
    theta = table.theta
    spread = np.maximum(table.second, 0.0) + theta**-2 + (1 + theta) ** -2
    return np.asarray(
        table.moment - theta * saddle_epsilon(table) - np.log(theta * (1 + theta)) - 0.5 * np.log(2 * np.pi * spread)
    )


def saddle_epsilon(table: MomentTable) -> Floats:
    return np.asarray(table.first - 1 / table.theta - 1 / (1 + table.theta))


def saddle_for_delta(table: MomentTable, log_delta: float) -> float:
    """theta whose saddle-point approximation of delta is the target. Any theta is valid; this one is efficient."""
    return _crossing(table.theta, saddle_log_size(table) - log_delta)


def saddle_for_epsilon(table: MomentTable, epsilon: float) -> float:
    """theta that minimises K - theta eps - log theta(1 + theta)."""
    return _crossing(table.theta, epsilon - saddle_epsilon(table))


def alias_period(
    tilts: MomentTable, theta: float, log_moment: float, epsilon: float, log_size: float, relative: float = _RELATIVE
) -> float:
    """P for which the aliasing bound is below ``relative`` times the integral (log_size)."""
    need = -math.log(relative) - log_size
    above, below = tilts.theta > theta * 1.0001, tilts.theta < theta * 0.9999
    right = (need + tilts.moment[above] - log_moment) / (tilts.theta[above] - theta) - epsilon
    left = (need + np.append(tilts.moment[below], 0.0) - log_moment) / (
        theta - np.append(tilts.theta[below], 0.0)
    ) + epsilon
    bound = max(float(right.min()) if right.size else math.inf, float(left.min()))
    return max(bound, 0.0) * 1.02 + 1e-3 / theta


Parts = list[tuple[Characteristic, int]]


_STARTS, _CLOSER = 1.1 * 1.26 ** np.arange(6.0), 1.12 ** np.arange(6.0)


def _cut_off(parts: Losses, theta: float, guess: float, log_tolerance: float) -> tuple[float, float]:
    """(U, log B) with |phi| <= B for every u >= U: the first U that was tried with B / U below the tolerance."""
    u, last, best, modest = guess * _STARTS, math.inf, None, None
    while True:
        total = np.zeros_like(u)
        for law, count in parts:
            total += count * law.log_decay(theta, u)
        excess = total - np.log(u) - log_tolerance
        good, fair = np.nonzero(excess <= 0)[0], np.nonzero(excess <= _FAIR)[0]
        if modest is None and fair.size:
            modest = float(u[fair[0]]), float(total[fair[0]])
        if good.size:
            best = float(u[good[0]]), float(total[good[0]])
        if best is not None:
            if not (good.size and good[0] == 0 and u[0] > 1.5 * last):
                return best
            u, last = np.geomspace(last, u[0], 8)[1:-1], math.inf  # the step was a long one: look in between
            continue
        last, found = float(u[-1]), float(total[-1])
        if last > 3000 * guess:  # point masses: phi does not decay any further
            return (last, found) if modest is None else modest
        # log B falls like u^2 at first, later more slowly: so far it is at least to the goal
        missing = (log_tolerance + math.log(last)) / found if found < 0 else math.inf
        u = last * min(max(math.sqrt(max(missing, 0.0)), 1.1), 5.0) * _CLOSER


def invert(
    parts: Losses,
    tilts: MomentTable,
    at: MomentTable,
    epsilon: float | None = None,
    leading: Losses | None = None,
    most_work: int = MOST_WORK,
) -> Inversion | None:
    """Nodes at the tilt of the one-row table ``at``, good for eps near ``epsilon`` (default: the saddle's).

    ``leading`` are the parts whose decay is looked at, all by default. None where the error bounds cannot be met, or
    with more terms times nodes than ``most_work``.
    """
    theta, moment, variance, centre = (float(x[0]) for x in (at.theta, at.moment, at.second, at.first))
    log_count = math.log(sum(count for _, count in parts))
    spread = max(variance, 0.0) + theta**-2 + (1 + theta) ** -2  # rounding may push a variance below 0
    saddle = centre - 1 / theta - 1 / (1 + theta)
    eps = saddle if epsilon is None else epsilon
    log_size = (
        -math.log(theta * (1 + theta))
        - 0.5 * math.log(2 * math.pi * spread)
        - min(0.5 * (eps - saddle) ** 2 / spread, 60.0)
    )
    period = alias_period(tilts, theta, moment, eps, log_size)
    if not math.isfinite(period):
        return None
    log_cut = math.log(_RELATIVE) + log_size
    guess = math.sqrt(2 * max(1.0, -log_cut) / max(variance, 1e-300))
    cut, log_bound = _cut_off(parts if leading is None else leading, theta, guess, log_cut)
    step = 2 * math.pi / period
    number = math.ceil(cut / step) + 1
    if number > _MOST_TERMS or log_bound - math.log(cut) > log_cut + _HOPELESS:
        return None
    main = _characteristics(parts, theta, step * number, math.log(1e-15) - log_count)
    if main is not None and number * sum(char.size for char, _ in main) > most_work:
        return None
    return None if main is None else _assemble(_sampled(main, step, number), 1, tilts, theta, step, log_bound, saddle)


def _characteristics(parts: Losses, theta: float, reach: float, log_tolerance: float) -> Parts | None:
    built = []
    for law, count in parts:
        char = law.characteristic(theta, reach, log_tolerance)
        if char is None:
            return None
        built.append((char, count))
    return built


@dataclass(frozen=True, slots=True)
class _Sampled:
    """log phi of all parts together on the grid: real and imaginary part, and the growth of the error."""

    parts: Parts
    real: Floats
    imag: Floats
    growth: Floats


_MOST_ELEMENTS = 1 << 19  # of the matrices that hold several parts


def _sampled(parts: Parts, step: float, number: int) -> _Sampled:
    # |prod (a_j + e_j) - prod a_j| <= prod(|a_j| + e_j) - prod |a_j|; the logarithm itself errs by 12 ulps
    # of |log| + |phi - 1| (log1p_complex), its multiple, the sum over the parts and the multiple of that by one ulp
    # of |log| for each
    ulps = (17 + len(parts)) * EPS
    total = _Sampled(parts, *np.zeros((3, number)))
    rows = max(1, _MOST_ELEMENTS // number)
    for first in range(0, len(parts), rows):
        group = parts[first : first + rows]
        minus_one, error = np.empty((len(group), number), np.complex128), np.empty((len(group), number))
        for row, (char, _) in enumerate(group):
            minus_one[row], error[row] = char.on_grid(step, number)
        counts = np.array([float(count) for _, count in group])
        log_phi = log1p_complex(minus_one)
        # where phi vanishes the logarithm is cut; the difference joins the error
        real = np.maximum(log_phi.real, -300.0)
        growth = np.log1p((error + 1e-130) * np.exp(-real))
        growth += ulps * (np.abs(real) + np.abs(log_phi.imag) + np.abs(minus_one))
        for sums, values in ((total.real, real), (total.imag, log_phi.imag), (total.growth, growth)):
            np.add(sums, counts @ values, out=sums)
    return total


def _assemble(
    sampled: _Sampled, times: int, tilts: MomentTable, theta: float, step: float, log_bound: float, saddle: float
) -> Inversion:
    """The contour of ``times`` copies of the sampled parts: values and error bounds added up."""
    number = len(sampled.real)
    u = step * np.arange(number)
    real, imag, growth = times * sampled.real, times * sampled.imag, times * sampled.growth
    log_moment, moment_error, centre, centre_size = [], 0.0, [], 0.0
    for char, once in sampled.parts:
        count = times * once
        log_moment.append(count * char.log_moment)
        moment_error += count * char.log_moment_error + EPS * abs(count * char.log_moment)
        centre.append(count * char.centre)
        centre_size += abs(count * char.centre)
    z = theta + 1j * u
    kernel = 1.0 / (z * (z + 1))
    kernel[0] *= 0.5
    phi = np.exp(real)
    terms = phi * np.exp(1j * imag) * kernel
    weight = np.abs(kernel)
    # the true product is at most one, so an error never counts for more than two
    spread = np.minimum(np.exp(np.minimum(real + growth, 0.7)) - phi, 2.0)
    rounding = spread + phi * (EPS * (number + 24 + np.abs(real) + 2 * np.abs(imag)) + 4 * EPS * u * centre_size)
    return Inversion(
        theta=theta,
        log_moment=math.fsum(log_moment),
        log_moment_error=moment_error + 2 * EPS * sum(abs(x) for x in log_moment),
        centre=math.fsum(centre),
        step=step,
        terms=terms,
        noise=float(step / math.pi * np.dot(weight, rounding)) * 1.02,
        phase_noise=float(step / math.pi * np.dot(weight * phi, 4 * EPS * u)) * 1.02,
        tail=math.exp(log_bound) / (math.pi * float(u[-1])) * 1.02,
        tilts=tilts,
        saddle=saddle,
    )


# -- the two questions ---------------------------------------------------------------------------------------------

_AROUND = np.exp([-0.3, -0.15, -0.08, -0.04, -0.02, 0.0, 0.02, 0.04, 0.08, 0.15, 0.3])


def chernoff_epsilon(composition: Composition, log_delta: float) -> float:
    """min over t of (K(t) - log delta + log c(t)) / t, c(t) = t^t / (1 + t)^(1 + t): an upper bound of eps, rounded
    up.
    """

    def bound(rows: MomentTable) -> Floats:
        t = rows.theta
        size = np.abs(rows.moment) + abs(log_delta) + t * np.log1p(1 / t) + np.log1p(t)
        return np.asarray(
            (rows.moment + rows.error - log_delta - t * np.log1p(1 / t) - np.log1p(t) + 8 * EPS * size)
            / t
            * (1 + 4 * EPS)
        )

    table = tabulate(composition.parts, lambda rows: bool(np.argmin(bound(rows)) < len(rows.theta) - 4))
    return max(0.0, float(bound(table).min())) if len(table.theta) else math.inf


def log_chernoff(table: MomentTable, epsilon: float) -> Floats:
    """K(t) - t eps + log c(t) at each tilt: upper bounds of log delta(eps), rounded up.

    (1 - e^{-x})+ <= e^{t x} t^t / (1 + t)^{1 + t}.
    """
    t = table.theta
    log_c = t * np.log1p(1 / t) + np.log1p(t)
    rounding = 8 * EPS * (np.abs(table.moment) + t * abs(epsilon) + log_c)
    return np.asarray(table.moment + table.error - t * epsilon - log_c + rounding)


def chernoff_log_delta(composition: Composition, epsilon: float) -> float:
    """The least of :func:`log_chernoff` over the tilts."""
    table = tabulate(composition.parts, lambda rows: bool(np.argmin(log_chernoff(rows, epsilon)) < len(rows.theta) - 4))
    return min(0.0, float(log_chernoff(table, epsilon).min())) if len(table.theta) else 0.0


def for_delta(composition: Composition, log_delta: float, most_work: int = MOST_WORK) -> Inversion | None:
    """The contour whose saddle is where delta(eps) is about exp(log_delta)."""

    def locate(table: MomentTable) -> float:
        return saddle_for_delta(table, log_delta)

    return _located(composition, locate, None, most_work)


def for_epsilon(composition: Composition, epsilon: float, most_work: int = MOST_WORK) -> Inversion | None:
    """The contour through the saddle of this eps."""

    def locate(table: MomentTable) -> float:
        return saddle_for_epsilon(table, epsilon)

    return _located(composition, locate, epsilon, most_work)


def _located(
    composition: Composition, locate: Callable[[MomentTable], float], epsilon: float | None, most_work: int
) -> Inversion | None:
    parts = composition.parts
    if not all(type(law).has_characteristic for law, _ in parts):
        return None
    if all(type(law).log_decay is Law.log_decay for law, _ in parts):
        return None  # point masses only: nothing decays
    table = tabulate(parts, lambda rows: 3 * locate(rows) < rows.theta[-1])
    if len(table.theta) < 2:
        return None
    theta = locate(table) * _AROUND
    tables = [law.moment_table(theta) for law, _ in parts]
    fine = added(parts, theta, tables)
    if not np.isfinite(fine.moment).all():
        return None
    leading = _leading(parts, tables, len(theta) // 2)
    return invert(parts, merged(table, fine), _row(parts, fine, locate(fine)), epsilon, leading, most_work)


def _row(parts: Losses, table: MomentTable, theta: float) -> MomentTable:
    """The row at theta: by Taylor's formula from the nearest one where K'' hardly changes from row to row, else
    computed. It only steers.
    """
    i = int(np.argmin(np.abs(table.theta - theta)))
    nearby = table.second[max(i - 1, 0) : i + 2]
    if not float(nearby.max()) < 1.5 * float(nearby.min()):
        return tabulate_at(parts, np.array([theta]))
    gap = theta - table.theta[i : i + 1]
    first, second = table.first[i : i + 1], table.second[i : i + 1]
    moment = table.moment[i : i + 1] + gap * (first + 0.5 * gap * second)
    return MomentTable(table.theta[i : i + 1] + gap, moment, table.error[i : i + 1], first + gap * second, second)


# -- many numbers of steps at once ------------------------------------------------------------------------------------

_BLOCK = 1.2  # the largest ratio of the counts that share one contour


def curve(
    composition: Composition, counts: Sequence[int], log_target: tuple[float, float]
) -> dict[int, tuple[float, float]]:
    """Certified bounds of eps for each number of repetitions, at a delta whose log lies in ``log_target``.

    Counts that the contours cannot answer are left out. Neighbouring counts share tilt, period, cut-off and the values
    of phi; only the power differs.
    """
    found: dict[int, tuple[float, float]] = {}
    if not composition.parts or not all(type(law).has_characteristic for law, _ in composition.parts):
        return found
    ordered = sorted({count for count in counts if count > 0})
    while ordered:
        block = [count for count in ordered if count <= _BLOCK * ordered[0]]
        ordered = ordered[len(block) :]
        found.update(_block(composition, block, log_target))
    return found


def _block(
    composition: Composition, counts: list[int], log_target: tuple[float, float]
) -> dict[int, tuple[float, float]]:
    log_delta = log_target[0]
    least, most, middle = counts[0], counts[-1], counts[len(counts) // 2]
    parts = [(law, middle * n) for law, n in composition.parts]
    table = tabulate(parts, lambda rows: 3 * saddle_for_delta(rows, log_delta) < rows.theta[-1])
    if len(table.theta) < 2:
        return {}
    fine = tabulate_at(parts, saddle_for_delta(table, log_delta) * _AROUND)
    if not np.isfinite(fine.moment).all():
        return {}
    at = _row(parts, fine, saddle_for_delta(fine, log_delta))
    theta = float(at.theta[0])
    tilts = merged(table, fine)
    ends = [_Contour.at(at, count / middle) for count in (least, most)]
    period = max(
        alias_period(_scaled(tilts, c / middle), theta, end.moment, end.saddle, end.log_size)
        for c, end in zip((least, most), ends, strict=True)
    )
    if not math.isfinite(period):
        return {}
    log_cut = math.log(_RELATIVE) + min(end.log_size for end in ends)
    few = [(law, least * n) for law, n in composition.parts]
    cut, log_bound = _cut_off(few, theta, math.sqrt(2 * max(1.0, -log_cut) / max(ends[0].variance, 1e-300)), log_cut)
    step = 2 * math.pi / period
    number = math.ceil(cut / step) + 1
    if number > _MOST_TERMS:
        return {}
    one = [(law, n) for law, n in composition.parts]
    main = _characteristics(one, theta, step * number, math.log(1e-15) - math.log(most * composition.steps))
    if main is None or number * sum(char.size for char, _ in main) > MOST_WORK:
        return {}
    rows = _sampled(main, step, number)
    answers: dict[int, tuple[float, float]] = {}
    for count in counts:
        at_count = _Contour.at(at, count / middle)
        contour = _assemble(
            rows, count, _scaled(tilts, count / middle), theta, step, min(log_bound, 0.0), at_count.saddle
        )
        answers[count] = epsilon_ends(contour, log_target)
    return answers


def _scaled(table: MomentTable, factor: float) -> MomentTable:
    """K of ``factor`` times as many steps, the rounding of the factor included in the error."""
    error = (table.error + 4 * EPS * np.abs(table.moment)) * factor
    return MomentTable(table.theta, factor * table.moment, error, factor * table.first, factor * table.second)


@dataclass(frozen=True, slots=True)
class _Contour:
    """The saddle point of a tilt: K, K'', the eps it belongs to and about how large the integral is there."""

    moment: float
    variance: float
    saddle: float
    log_size: float

    @classmethod
    def at(cls, row: MomentTable, factor: float) -> _Contour:
        theta = float(row.theta[0])
        moment, first, second = (factor * float(x[0]) for x in (row.moment, row.first, row.second))
        spread = max(second, 0.0) + theta**-2 + (1 + theta) ** -2  # as in invert
        log_size = -math.log(theta * (1 + theta)) - 0.5 * math.log(2 * math.pi * spread)
        return cls(moment, second, first - 1 / theta - 1 / (1 + theta), log_size)
