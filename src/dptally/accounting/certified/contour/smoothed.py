r"""Losses with point masses: a little Gaussian noise makes the contour end, and its price is bounded on both sides.

The characteristic function of atoms does not decay. Compose the plan M with a Gaussian mechanism G of mu = m <= 1:
with f the density of the loss of M o G under P and v = m^2,

    delta_{M o G}(eps) - v (1 + 2m) f(eps)  <=  delta_M(eps)  <=  delta_{M o G}(eps).

Both ends are sums over the same nodes; the width in eps is about v (1 + theta). The characteristic function is a
product over the parts, and rows of nodes where it is already negligible are left out of the rest of the work.
Derivations: docs/certificates-smoothing.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dptally.accounting.certified.bounds import LogBounds
from dptally.accounting.certified.contour.aliasing import Aliasing, alias_period
from dptally.accounting.certified.contour.chernoff import chernoff_log_delta
from dptally.accounting.certified.contour.saddle import Locate, at_delta, at_epsilon, log_size_at, saddle_epsilon
from dptally.accounting.certified.contour.tables import merged, tabulate, tabulate_at
from dptally.accounting.certified.contour.trimmed import TrimmedAtoms, trimmed
from dptally.accounting.certified.tuning import STANDARD, SmoothedTuning, Tuning
from dptally.law import Composition, Law
from dptally.law.characteristic import Characteristic, GaussianCharacteristic, MomentTable
from dptally.numerics import gridding
from dptally.numerics.logspace import log_sum
from dptally.numerics.rounding import EPS

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

Parts = Sequence[tuple[Law | TrimmedAtoms, int]]

__all__ = ["Smoothed", "applies", "for_delta", "for_epsilon", "near_delta", "near_epsilon"]

_MOST_VARIANCE = 1.0  # of the theorem


@dataclass(frozen=True, slots=True)
class Smoothed:
    """The nodes of one contour of M o G in rows of equal length; answers like an Inversion."""

    theta: float
    variance: float
    log_moment: float
    log_moment_error: float
    centre: float
    step: float
    rows: Floats  # the numbers of the first nodes of the rows that are kept
    sums: Complexes  # phi / (z (z + 1)), phi / (z + 1) and phi, z = theta + iu: three times rows times columns
    noise: tuple[float, float]  # bounds of the errors of the first and of the last sum
    phase: tuple[float, float]  # what they grow by per unit of |eps| + |centre|
    aliasing: Aliasing
    saddle: float
    log_moved: float = -math.inf  # of the probability of losses that were moved to infinity (trimmed.py)

    def _sums(self, epsilon: float) -> Floats:
        turn = -1j * self.step * (epsilon - self.centre)
        columns = np.exp(turn * np.arange(self.sums.shape[2]))
        rows = np.exp(turn * self.rows)
        # not a matrix product: BLAS would start threads for so little
        inner = np.einsum("krc,c->kr", self.sums, columns)
        return np.asarray((self.step / math.pi) * np.einsum("kr,r->k", inner, rows).real)

    def estimate(self, epsilon: float) -> float:
        """log delta(eps), not a bound."""
        value, _, density = self._sums(epsilon).tolist()
        middle = value - 0.5 * self.variance * density
        return self.log_moment - self.theta * epsilon + math.log(middle) if middle > 0 else -math.inf

    def log_delta(self, epsilon: float) -> LogBounds:
        """(lower, upper, slope): certified bounds of log delta(eps), and an estimate of -d log delta / d eps."""
        value, slope, density = self._sums(epsilon).tolist()
        if not (math.isfinite(value) and math.isfinite(density)):  # outside double range: nothing is known
            return LogBounds(-math.inf, 0.0, math.nan)
        size = abs(epsilon) + abs(self.centre)
        error, density_error = (a + b * size for a, b in zip(self.noise, self.phase, strict=True))
        price = self.variance * (1 + 2.0000001 * math.sqrt(self.variance)) * (max(density, 0.0) + density_error)
        upper, lower = value + error, value - error - self.aliasing.bound(epsilon) - price
        base = self.log_moment - self.theta * epsilon
        blur = self.log_moment_error + 4 * EPS * (abs(self.log_moment) + abs(self.theta * epsilon))
        high = base + math.log(upper) + blur + 4 * EPS * abs(math.log(upper)) if upper > 0 else -math.inf
        low = base + math.log(lower) - blur - 4 * EPS * abs(math.log(lower)) if lower > 0 else -math.inf
        if self.log_moved > -math.inf:
            high = log_sum([high, self.log_moved]) + 4 * EPS * (1 + abs(self.log_moved))
        return LogBounds(low, min(high, 0.0), slope / value if value > 0 and slope > 0 else self.theta)


def applies(composition: Composition) -> bool:
    """All laws have characteristic functions; atoms of one law alone have better if they lie evenly: a lattice."""
    laws = [law for law, _ in composition.parts]
    if not all(type(law).has_characteristic for law in laws):
        return False
    return len(laws) > 1 or type(laws[0]).log_decay is not Law.log_decay or not _lies_evenly(laws[0])


def _lies_evenly(law: Law) -> bool:
    from dptally.accounting.certified.lattice.grid import spacing
    from dptally.accounting.certified.lattice.measure import listed_atoms

    atoms = listed_atoms(law)  # none where they are too many to list
    return 0 < len(atoms) < 3 or (len(atoms) > 0 and spacing(np.array([loss for loss, _ in atoms])) is not None)


def near_delta(composition: Composition, log_delta: float, tuning: Tuning = STANDARD) -> Iterator[Smoothed]:
    """Smoothed contours whose saddle is where delta(eps) is about exp(log_delta), those with less noise later, and
    those without the rarest large losses last.
    """
    yield from _located(composition.parts, at_delta(log_delta), None, tuning)
    yield from _without_rare(composition, log_delta, at_delta(log_delta), None, tuning)


def near_epsilon(composition: Composition, epsilon: float, tuning: Tuning = STANDARD) -> Iterator[Smoothed]:
    """Smoothed contours through the saddle of this eps, those with less noise later, and those without the rarest
    large losses last.
    """
    yield from _located(composition.parts, at_epsilon(epsilon), epsilon, tuning)
    log_delta = chernoff_log_delta(composition, epsilon, tuning.contour)
    for _ in range(tuning.smoothed.looks):  # Chernoff's bound may be far above delta
        last = math.nan
        for found in _without_rare(composition, log_delta, at_epsilon(epsilon), epsilon, tuning):
            yield found
            last = found.estimate(epsilon)
        if not last < log_delta - 1.0:
            return
        log_delta = last


def for_delta(composition: Composition, log_delta: float, tuning: Tuning = STANDARD) -> Smoothed | None:
    """The first of them."""
    return next(near_delta(composition, log_delta, tuning), None)


def for_epsilon(composition: Composition, epsilon: float, tuning: Tuning = STANDARD) -> Smoothed | None:
    """The first of them."""
    return next(near_epsilon(composition, epsilon, tuning), None)


def _without_rare(
    composition: Composition, log_delta: float, locate: Locate, epsilon: float | None, tuning: Tuning
) -> Iterator[Smoothed]:
    """The same without losses so rare that delta, about exp(log_delta), does not notice them."""
    found = trimmed(composition.parts, log_delta - tuning.smoothed.negligible)
    if found is not None:
        for contour in _located(found.parts, locate, epsilon, tuning):
            yield replace(contour, log_moved=found.log_moved)


def _located(parts: Parts, locate: Locate, epsilon: float | None, tuning: Tuning) -> Iterator[Smoothed]:
    table = tabulate(parts, lambda rows: 3 * locate(rows) < rows.theta[-1], tuning.contour)
    if len(table.theta) < 2:
        return
    fine = tabulate_at(parts, locate(table) * np.asarray(tuning.smoothed.around))
    if not np.isfinite(fine.moment).all():
        return
    theta = locate(fine)
    at = epsilon if epsilon is not None else float(np.interp(theta, fine.theta, saddle_epsilon(fine)))
    scale = abs(at) if epsilon is None else max(abs(at), 1 / theta)  # delta is asked for relative to itself
    least, most = (tuning.smoothed.width * size / (1 + theta) for size in (min(1.0, scale), scale))
    if least < 1e-30:  # an eps next to nothing
        return
    tilts, last = merged(table, fine), math.inf
    shares = (
        (1.0, tuning.smoothed.few_terms),
        *((tuning.smoothed.less, terms) for terms in tuning.smoothed.more_terms),
    )
    for share, terms in shares:
        variance = _variance(tilts, theta, at, (share * least, share * max(least, most)), terms, tuning.smoothed)
        if not variance < 0.5 * last:
            return
        found = _contour(parts, _smoothed(tilts, variance), theta, variance, at, tuning.smoothed)
        if found is None:
            return
        yield found
        if epsilon is not None and variance <= least:  # of delta one is sharp, or a lattice is
            return
        last = variance


def _variance(
    tilts: MomentTable, theta: float, epsilon: float, ends: tuple[float, float], terms: int, tuning: SmoothedTuning
) -> float:
    """As little noise as so many terms allow: their number falls like its square root."""
    reached = _period(tilts, theta, epsilon, tuning) * _decay(tilts, theta, tuning)
    needed = (reached / (2 * math.pi * terms)) ** 2
    return min(_MOST_VARIANCE, tuning.most_variance, max(ends[0], min(ends[1], needed)))


def _log_size(tilts: MomentTable, theta: float) -> float:
    return log_size_at(theta, float(tilts.second[int(np.argmin(np.abs(tilts.theta - theta)))]))


def _period(tilts: MomentTable, theta: float, epsilon: float, tuning: SmoothedTuning) -> float:
    moment = float(np.interp(theta, tilts.theta, tilts.moment))
    return alias_period(tilts, theta, moment, epsilon, _log_size(tilts, theta), tuning.relative)


def _decay(tilts: MomentTable, theta: float, tuning: SmoothedTuning) -> float:
    """In units of one over the noise, how far out a Gaussian has fallen far enough."""
    return math.sqrt(2 * max(1.0, -math.log(tuning.relative) - _log_size(tilts, theta) - math.log(theta)))


def _smoothed(table: MomentTable, variance: float) -> MomentTable:
    """K of M o G: the Gaussian adds v t (t + 1) / 2."""
    more = 0.5 * variance * table.theta * (table.theta + 1)
    error = table.error + 4 * EPS * (np.abs(table.moment) + more)
    return MomentTable(table.theta, table.moment + more, error, table.first, table.second)


def _contour(
    parts: Parts, tilts: MomentTable, theta: float, variance: float, epsilon: float, tuning: SmoothedTuning
) -> Smoothed | None:
    period = _period(tilts, theta, epsilon, tuning)
    reach = _decay(tilts, theta, tuning) / math.sqrt(variance)
    if not period * reach < 2 * math.pi * tuning.most_terms:
        return None
    step = 2 * math.pi / period
    block = math.isqrt(math.ceil(reach / step)) + 1
    gaussian = GaussianCharacteristic.of(variance, theta, 4 * EPS)
    chars: list[tuple[Characteristic, int]] = []
    for law, count in sorted(parts, key=lambda part: -part[1] * min(part[0].supremum, 10.0) ** 2):  # rows end soon
        char = law.characteristic(theta, step * block * block, math.log(tuning.node_tolerance / count))
        if char is None:
            return None
        chars.append((char, count))
    if block * block * sum(min(char.size, gridding.FEWEST) for char, _ in chars) > tuning.most_work:
        return None
    rows, phi = _product(chars, step, block, variance, tuning.nothing)
    return _assembled(chars, gaussian, tilts, theta, step, rows, phi, block, epsilon, tuning.nothing)


def _product(
    chars: list[tuple[Characteristic, int]], step: float, block: int, variance: float, nothing: float
) -> tuple[Floats, Complexes]:
    """(numbers of the first nodes of the rows kept, phi of M o G there)."""
    first, column = block * np.arange(float(block)), np.arange(float(block))
    gauss = -0.5 * variance * step * step
    phi = np.exp(gauss * (first[:, None] + column) ** 2).astype(np.complex128)
    for i, (char, count) in enumerate(chars):
        if i % 8 == 0:
            kept = np.flatnonzero(np.abs(phi).max(axis=1) > nothing)
            first, phi = first[kept], phi[kept]
        phi *= _power(char.in_rows(step, first, column), count)
    return first, phi


def _power(values: Complexes, count: int) -> Complexes:
    """values^count by squaring."""
    result: Complexes | None = None
    while True:
        if count & 1:
            result = values if result is None else result * values
        count >>= 1
        if not count:
            return np.ones_like(values) if result is None else result
        values = values * values


def _assembled(
    chars: list[tuple[Characteristic, int]],
    gaussian: GaussianCharacteristic,
    tilts: MomentTable,
    theta: float,
    step: float,
    rows: Floats,
    phi: Complexes,
    block: int,
    epsilon: float,
    nothing: float,
) -> Smoothed:
    """The sums with their error bounds.

    |prod (a_i + e_i) - prod a_i| <= 1.02 sum of e_i where that is below 0.02, all |a_i| <= 1; the products themselves
    err by 8 ulps for each factor, and a row left out by ``nothing``.
    """
    u = step * np.arange(float(block * block))
    centre = [count * char.centre for char, count in chars] + [gaussian.centre]
    errors = [(count, *char.row_error()) for char, count in chars]
    flat = sum(count * (a + 8 * EPS) for count, a, _ in errors) + nothing
    steep = sum(count * b for count, _, b in errors) + 4 * EPS * sum(abs(x) for x in centre)
    error = flat + steep * u + 8 * EPS * (1 + gaussian.variance * u * u)
    error = np.where(error < 0.02, 1.02 * error, 2.0)
    kept = step * (rows[:, None] + np.arange(float(block)))
    z = theta + 1j * kept
    over = phi / (z + 1)
    sums = np.stack((over / z, over, phi))
    sums[:, 0, 0] *= 0.5  # u = 0 is in the first row, which is never left out
    size, rounding = np.abs(phi), EPS * (block * block + 40)
    weight = 1.0 / (np.hypot(theta, u) * np.hypot(theta + 1, u))
    near = np.abs(sums[0])
    end = float(u[-1])
    fall = math.exp(-0.5 * gaussian.variance * end * end) / (math.pi * end)
    scale = step / math.pi
    log_moment = [count * char.log_moment for char, count in chars] + [gaussian.log_moment]
    moment_error = sum(count * char.log_moment_error for char, count in chars) + gaussian.log_moment_error
    total, blur = math.fsum(log_moment), moment_error + 2 * EPS * sum(abs(x) for x in log_moment)
    return Smoothed(
        theta=theta,
        variance=gaussian.variance,
        log_moment=total,
        log_moment_error=blur,
        centre=math.fsum(centre),
        step=step,
        rows=rows,
        sums=sums,
        noise=(
            1.02 * (scale * float((weight * error).sum() + near.sum() * rounding) + fall),
            1.02 * (scale * float(error.sum() + size.sum() * rounding) + fall / gaussian.variance),
        ),
        phase=(8 * EPS * scale * float((near * kept).sum()), 8 * EPS * scale * float((size * kept).sum())),
        aliasing=Aliasing.of(tilts, theta, total - blur, step),
        saddle=epsilon,
    )
