"""Where the lattice of each law starts and ends, and which step puts its point masses on nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dptally.accounting.certified.lattice.measure import listed_atoms
from dptally.accounting.certified.tuning import STANDARD, LatticeTuning
from dptally.law import Composition, Law
from dptally.numerics.rounding import EPS, Floats

__all__ = ["Layout", "layouts", "spacing", "step_for"]


@dataclass(frozen=True, slots=True)
class Layout:
    """One law as the lattice sees it: point masses only, or a profile with perhaps some point masses."""

    law: Law
    count: int
    positions: Floats
    masses: Floats
    discrete: bool  # nothing but the point masses
    base: float | None  # a length of which all gaps between the point masses are multiples
    first: float  # lowest point mass, or the loss below which nothing matters
    last: float  # largest finite loss, or the loss above which the profile is below the floor
    trimmed: bool  # losses below ``first`` are likely, but do not matter at the tilt in question
    periodic: bool = False  # all of the mass lies on first + base * integer: no step smaller than base is needed
    atom_error: float = 0.0  # relative, of a point mass and of its position
    log_missed: float = -math.inf  # of the mass that is not listed

    @property
    def length(self) -> float:
        return max(self.last - self.first, 0.0)

    def origin(self, step: float) -> tuple[float, int]:
        """Where node 0 lies, and from which node on the lower measure has mass.

        The upper measure needs a node at or below the smallest loss, the lower one a node at the mean of all
        that lies left of its second node.
        """
        if self.positions.size and (self.discrete or self.base is not None):
            return float(self.positions[0]), 0
        if self.trimmed:
            return self.first, 0
        start = _gathered_left(self.law, self.first, step)
        before = math.ceil((start - self.first) / step - 1e-9)
        return start - before * step, before


def layouts(
    composition: Composition, log_floor: float, tilt: float, tuning: LatticeTuning = STANDARD.lattice
) -> list[Layout]:
    """``log_floor``: a log-profile that does not matter any more; ``tilt``: about -d log delta / d eps, or
    less."""
    return [_layout(law, count, log_floor - math.log(count), tilt, tuning) for law, count in composition.parts]


def _layout(law: Law, count: int, log_floor: float, tilt: float, tuning: LatticeTuning) -> Layout:
    atoms = np.array(listed_atoms(law), dtype=np.float64).reshape(-1, 2)
    positions, masses = atoms[:, 0], atoms[:, 1]
    missing = 1.0 - law.infinity_mass - math.fsum(masses)
    complete = bool(positions.size) and missing <= EPS * (4 + 4 * positions.size)
    base = spacing(positions) if positions.size > 1 else None
    lowest = float(positions[0]) if positions.size else 0.0
    bounded = math.isfinite(law.supremum) and math.isfinite(law.infimum)
    if complete and bounded:
        if float(masses.min()) < math.exp(
            max(log_floor - tuning.negligible, -740.0)
        ):  # so rare that they only cost nodes
            deep = _deep(law, count, log_floor, tuning)
            if deep is not None:
                return deep
        error = law.atom_error
        return Layout(
            law, count, positions, masses, True, base, lowest, float(positions[-1]), False, base is not None, error
        )
    if complete:
        deep = _deep(law, count, log_floor, tuning)
        if deep is not None:
            return deep
    last = law.supremum if math.isfinite(law.supremum) else _right_end(law, log_floor)
    if complete and base is not None:  # a lattice without end: only its likely points are listed
        last = lowest + base * max(1, math.ceil((last - lowest) / base))
        return Layout(law, count, positions, masses, False, base, lowest, last, False, True)
    if positions.size and base is not None and abs(lowest - law.infimum) <= 1e-12 * abs(law.infimum):
        return Layout(law, count, positions, masses, False, base, lowest, last, False)
    first, trimmed = _left_end(law, tilt, tuning.left_out)
    return Layout(law, count, positions, masses, False, None, first, last, trimmed)


def _deep(law: Law, count: int, log_floor: float, tuning: LatticeTuning) -> Layout | None:
    """A law of point masses without end that lists them far down: what it does not list, or is left out here because
    it is so unlikely, counts as infinite for an upper measure and not at all for a lower one.
    """
    listed = law.listed_atoms()
    if listed is None or not listed.log_missed < log_floor - tuning.negligible:
        return None
    order = np.argsort(listed.low, kind="stable")
    low, high, least, most = (column[order] for column in (listed.low, listed.high, listed.least, listed.most))
    mass = 0.5 * (least + most)
    with np.errstate(divide="ignore"):
        size = np.log(mass)
    known = (least > 1e-280) & (size > log_floor - tuning.negligible) & (most < 1.5 * least)
    if np.count_nonzero(known) < 2:
        return None
    missed = math.fsum(most[~known].tolist())
    log_missed = float(np.logaddexp(listed.log_missed, math.log(missed) if missed > 0 else -math.inf)) + 1e-9
    if not log_missed < log_floor:
        return None
    low, high, least, most, mass = (column[known] for column in (low, high, least, most, mass))
    position = 0.5 * (low + high)
    away = float(np.max((high - low) / np.maximum(np.abs(position), 1e-300)))
    error = max(law.atom_error, 2 * away, float(np.max((most - least) / mass)) + 4 * EPS)
    base = spacing(position)
    return Layout(
        law,
        count,
        position,
        mass,
        True,
        base,
        float(position[0]),
        float(position[-1]),
        False,
        base is not None,
        error,
        log_missed,
    )


def spacing(positions: Floats) -> float | None:
    """The common length of the gaps: their mean where they are all equal, to the rounding of the
    positions."""
    even = float(positions[-1] - positions[0]) / (positions.size - 1)
    off = np.max(np.abs(positions[0] + even * np.arange(positions.size) - positions))
    if even > 0 and off <= 1e-14 * np.max(np.abs(positions)):
        return even
    return common_length(np.diff(positions))


def common_length(gaps: Sequence[float] | Floats) -> float | None:
    """A length of which all gaps are whole multiples (to 1e-13 relative), at least 1/64 of the smallest; None
    if there is none."""
    values = [float(gap) for gap in gaps if gap > 0 and math.isfinite(gap)]
    if not values:
        return None
    unit = min(values)
    parts = 1
    for value in values:
        ratio = value / unit
        near = Fraction(ratio).limit_denominator(64)
        if ratio > 1e6 or abs(float(near) - ratio) > 1e-13 * ratio:
            return None
        parts = math.lcm(parts, near.denominator)
        if parts > 64:
            return None
    return unit / parts


def step_for(rows: Sequence[Layout], wanted: float) -> float:
    """A step of about ``wanted`` or less on which as many steps of the composition as possible lie
    exactly."""
    bases = [(row.base, row.count) for row in rows if row.base is not None and math.isfinite(row.base)]
    if not bases:
        return wanted
    together = common_length([base for base, _ in bases])
    if together is not None and all(row.periodic for row in rows):
        return together
    if together is None or together < wanted / 16:
        together = max(bases, key=lambda pair: pair[1])[0]
    return together / max(1, math.ceil(together / wanted * (1 - 1e-12)))


def _right_end(law: Law, log_floor: float) -> float:
    points = np.geomspace(1e-9, 1e7, 65)
    for _ in range(2):
        below = law.log_profile(points)[1] <= log_floor
        i = int(np.argmax(below)) if below.any() else len(points) - 1
        points = np.linspace(points[i - 1] if i else 0.0, points[i], 17)
    return float(points[int(np.argmax(law.log_profile(points)[1] <= log_floor))] or points[-1])


def _left_end(law: Law, tilt: float, left_out: float) -> tuple[float, bool]:
    """A loss x with about exp(tilt x) P(L < x) <= ``left_out``, and whether P(L < x) itself is larger than
    that."""
    finite = 1.0 - law.infinity_mass

    def weight(x: Floats) -> Floats:
        return (finite - law.tail(x)) * np.exp(tilt * np.minimum(x, 0.0))

    points = np.append(-np.geomspace(1e7, 1e-9, 65), 0.0)
    if math.isfinite(law.infimum):
        points = np.append(law.infimum, points[points > law.infimum])
    for _ in range(2):
        enough = weight(points) > left_out
        i = int(np.argmax(enough)) if enough.any() else len(points) - 1
        if i == 0:
            break
        points = np.linspace(points[i - 1], points[i], 17)
    first = points[max(int(np.argmax(weight(points) > left_out)) - 1, 0)]
    return float(first), bool(finite - law.tail(np.array([first]))[0] > 1e-11)


def _gathered_left(law: Law, first: float, step: float) -> float:
    """Node 0 at the mean (of exp(-L)) of all that lies left of node 1: then gathering it there costs almost
    nothing.

    Only a choice: estimates suffice. It matters where most losses are much smaller than the step.
    """
    start = first
    for _ in range(4):
        edge = np.array([start + step])
        tail = float(law.tail(edge)[0])
        beyond = (tail - math.exp(float(law.log_profile(edge)[0][0]))) * math.exp(-float(edge[0]))
        p, q = 1.0 - law.infinity_mass - tail, 1.0 - beyond
        if not (p > 1e-9 and q > 0):
            return first
        start = min(max(math.log(p / q), first), first + step)
    return start
