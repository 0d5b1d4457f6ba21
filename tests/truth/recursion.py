"""Few steps of any losses: delta_{k+1}(x) = E[delta_k(x - L)] on a lattice, two-sided, positive terms only.

The last step is exact (tails in balls); the n - 1 others are put on the lattice l_j = low + j h, j = 0 .. N:
  * above: every cell (l_j, l_{j+1}] is spread to its ends so that P and Q of the cell are kept. The pair before is
    a post-processing of the pair after, so delta grows. Losses below ``low`` are raised to it;
  * below: every cell (l_j - h/2, l_j + h/2] is merged into one outcome, a post-processing, whose loss log P/Q is
    lowered to l_j - c (or to the point before): delta falls. c is of the order h^2.
Wherever x <= k low, with S the sum of k losses and E[e^-S; S < x] = Q(S < x) <= k Q(L <= low),
    delta_k(x) = 1 - e^x + E(e^{x-S} - 1)+   lies in   1 - e^x + e^x [0, k Q(L <= low)].
N h = eps - n low, so a loss above the lattice always leaves such an x, and is counted exactly.
Sums of N positive products in doubles are within (N + 3) 2^-53 relative; products that underflow are below 1e-300
together. No transform, no cancellation: delta = 1e-200 is as good as 1e-2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb
from numpy.typing import NDArray

from .balls import Number, ball, floats, precision
from .losses import Loss

Floats = NDArray[np.float64]

UNIT = 2.0**-53
BITS = 192
TINY = 1e-300  # what underflows, and a floor for logarithms


def composed_delta(losses: Sequence[tuple[Loss, int]], epsilon: Number, points: int = 8192) -> tuple[float, float]:
    """Certified doubles (lower, upper) around delta(eps), eps > 0, of independent losses with their counts.

    The relative width falls as 1 / points^2 where the losses are smooth, as 1 / points beside point masses that the
    lattice does not hit. ``points`` is a hint; the cost is points^2 per step.
    """
    order = sorted(losses, key=lambda part: bool(part[0].marks()), reverse=True)
    steps = [loss for loss, count in order for _ in range(count)]
    if len(steps) < 2:
        raise ValueError("one step has a closed form: ask for two or more")
    with precision(BITS):
        e = ball(epsilon)
        if float(e) <= 0 or float(e) > 500:
            raise ValueError("0 < epsilon <= 500")
        distinct = list(dict.fromkeys(steps))
        ends = [loss.most() for loss in steps]
        if not any(end is None for end in ends) and sum((end for end in ends if end is not None), arb(0)) <= e:
            return 0.0, 0.0
        size = max((_profile(loss, e) for loss in distinct), key=float)  # of all steps together it is no less
        low = _quantile(distinct, size.max(arb(10) ** -250) * arb(10) ** -12 / len(steps))
        for rough in (300, 600, 1500):  # only to find where the lattice may begin
            low = _begin(steps, _laid(steps, e, min(rough, points), low)).max(low)
        at = _laid(steps, e, points, low)
        first, last, lost = _tables(steps, at)
        before, upper = _raised(first, last, at, lost)
        return _lowered(first, last, at, before), min(1.0, upper)


@dataclass(frozen=True)
class _Lattice:
    """The points low + j h, j = 0 .. number, and eps of n steps; number h >= eps - n low."""

    e: arb
    n: int
    low: arb
    h: arb
    number: int

    def level(self, k: int, shift: arb) -> tuple[Floats, float]:
        """x of delta_k: eps - (n-k) (low - shift) - i h, i = 0 .. 2 number, and a bound of its rounding."""
        start = self.e - (self.n - k) * (self.low - shift)
        scale = abs(float(start)) + 2 * self.number * float(self.h)
        # e^x is asked for, and of use, for moderate x only
        return np.minimum(float(start) - float(self.h) * np.arange(2 * self.number + 1), 600.0), 2.0**-50 * scale

    @property
    def top(self) -> arb:
        return self.low + self.number * self.h


def _tables(steps: list[Loss], at: _Lattice) -> tuple[list[_Step], Loss, float]:
    """All steps but one on the lattice, that one (exact, a smooth one if there is one), the sum of Q(L <= low)."""
    *first, last = steps
    tables = {loss: _tabled(loss, at) for loss in dict.fromkeys(first)}
    lost = floats(sum((loss.below(at.low)[1] for loss in steps), arb(0)))[1]
    return [tables[loss] for loss in first], last, lost


def _begin(steps: list[Loss], at: _Lattice) -> arb:
    """A later start of the lattice that costs next to nothing. Any start is valid.

    Raising the losses below l costs about n P(L <= l) delta_{n-1}(eps - l), and what one loss above eps - (n-1) l
    decides is off by Q(L <= l).
    """
    first, last, lost = _tables(steps, at)
    before, total = _raised(first, last, at, lost)
    below = sum((np.cumsum(step.raised) for step in first), np.zeros(at.number + 1))
    points = float(at.low) + float(at.h) * np.arange(at.number + 1)
    beyond = sum((np.cumsum(step.raised[::-1])[::-1] + step.far_mass for step in first), np.zeros(at.number + 1))
    deciding = np.searchsorted(points, float(at.e) - (at.n - 1) * points).clip(0, at.number)
    fine = (below * before[: at.number + 1] <= 1e-9 * total) & (points < 0)
    fine &= below * np.exp(np.clip(-points, 0.0, 600.0)) * beyond[deciding] <= 1e-9 * total
    last_fine = int(np.argmin(fine)) - 1 if not fine.all() else at.number  # the first stretch of fine points
    return at.low + max(last_fine, 0) * at.h


def _laid(steps: list[Loss], e: arb, points: int, low: arb) -> _Lattice:
    """Later where no other step can make up for a loss below; zero, or the point masses, are on the lattice."""
    distinct, n = list(dict.fromkeys(steps)), len(steps)
    ends = [loss.most() for loss in distinct]
    if all(end is not None for end in ends):
        largest = max((end for end in ends if end is not None), key=float)
        useless = e - (n - 1) * largest * (1 + arb(2) ** -40)
        if useless > low:
            return _Lattice(e, n, useless, (e - n * useless) / points, points)
    marks = next((loss.marks() for loss in distinct if loss.marks()), None)
    if marks is not None:
        first, last = marks[0], marks[-1]
        cells = max(1, math.floor(float((last - first) / (e - n * first)) * (points - n)))
        h = (last - first) / cells
        first += h * arb(2) ** -60  # a point mass just below its point is on one known side of it
        below = max(1, math.ceil(float((first - low) / h)))
        low = first - below * h
        return _Lattice(e, n, low, h, math.ceil(float((e - n * low) / h)) + 1)
    ratio = float(-low / e)
    below = max(1, math.ceil(ratio * points / (1 + n * ratio)))
    if points - n * below < 8:  # eps is small against the range of the losses
        return _Lattice(e, n, low, (e - n * low) / points, points)
    h = e / (points - n * below)
    below = max(below, math.ceil(float(-low / h)))
    return _Lattice(e, n, -below * h, h, math.ceil(float(e / h)) + n * below + 1)


def _quantile(losses: list[Loss], negligible: arb) -> arb:
    """A loss below which every law has at most that mass, P and Q."""

    def fits(a: arb) -> bool:
        return all(mass < negligible for loss in losses for mass in loss.below(a))

    low, high = arb(-(2.0**-40)), arb(0)
    while not fits(low):
        low, high = 2 * low, low
    for _ in range(12):
        middle = arb(((low + high) / 2).mid())
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


# -- one step on the lattice -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Step:
    raised: Floats  # masses of the spread, rounded up
    merged: Floats  # masses of the merged cells, rounded down
    shortfall: Floats  # l_j minus the loss of the merged cell, rounded up
    beyond: tuple[float, float]  # E[1 - e^{top - L}; L > top], lower and upper
    beyond_q: tuple[float, float]  # e^top Q(L > top)
    far_mass: float  # P(L > top), not a bound

    def lowered(self, c: float) -> Floats:
        """The merged masses on l_j - c; a loss below that goes one point down, or out where there is none."""
        fits = self.shortfall <= c
        out = np.where(fits, self.merged, 0.0)
        out[:-1] += np.where(fits, 0.0, self.merged)[1:]
        return out * (1 - 4 * UNIT)

    def far(self, x: Floats, error: float, top: arb, *, up: bool) -> Floats:
        """E[1 - e^{x - L}; L > top] = E[1 - e^{top - L}; ..] + e^top Q(..) (1 - e^{x - top}), x below top."""
        error += 4 * UNIT * abs(float(top))
        gap = np.minimum(x - float(top), 600.0)
        if up:
            gain = np.maximum(-np.expm1(gap - error), 0.0) * (1 + 1e-14)
            return (self.beyond[1] + self.beyond_q[1] * gain) * (1 + 1e-14)
        gain = -np.expm1(gap + error)
        gain = gain * np.where(gain > 0, 1 - 1e-14, 1 + 1e-14)
        return self.beyond[0] * (1 - 1e-14) + np.where(gain > 0, self.beyond_q[0], self.beyond_q[1]) * gain


def _profile(loss: Loss, x: arb) -> arb:
    """delta of one step."""
    p, q = loss.above(x)
    return p - x.exp() * q


def _outward(value: arb) -> tuple[float, float]:
    """Doubles around a number that is known not to be negative."""
    lower, upper = floats(value)
    return max(0.0, lower), max(0.0, upper)


def _tabled(loss: Loss, at: _Lattice) -> _Step:
    numbers = range(at.number + 1)
    edges = [_tails(loss, at.low + j * at.h) for j in numbers]
    raised = [loss.below(at.low)[0], *[arb(0)] * at.number]
    gap = -(-at.h).expm1()
    for j in numbers[:-1]:
        p, q = _between(edges[j], edges[j + 1])
        right = (p - q * (at.low + j * at.h).exp()) / gap
        raised[j] += p - right
        raised[j + 1] += right
    middles = [_tails(loss, at.low + (2 * j - 1) * at.h / 2) for j in numbers]
    middles.append(edges[-1])
    merged, shortfall = np.zeros(at.number + 1), np.zeros(at.number + 1)
    for j in numbers:
        p, q = _between(middles[j], middles[j + 1])
        merged[j] = floats(p)[0]
        if merged[j] > TINY and q > 0:
            shortfall[j] = floats(at.low + j * at.h - (p / q).log())[1]
        else:
            merged[j] = 0.0
    p, q = loss.above(at.top)
    return _Step(
        np.array([_outward(x)[1] for x in raised]),
        merged,
        shortfall,
        _outward(p - at.top.exp() * q),
        _outward(at.top.exp() * q),
        float(p),
    )


Tails = tuple[bool, arb, arb]


def _tails(loss: Loss, a: arb) -> Tails:
    """(whether above, P, Q): the smaller of the two tails."""
    p, q = loss.above(a)
    return (True, p, q) if p < 0.5 else (False, *loss.below(a))


def _between(a: Tails, b: Tails) -> tuple[arb, arb]:
    """P and Q of the losses in (a, b], from tails of one kind where they are at hand."""
    if a[0]:
        return a[1] - b[1], a[2] - b[2]
    if b[0]:
        return 1 - a[1] - b[1], 1 - a[2] - b[2]
    return b[1] - a[1], b[2] - a[2]


# -- the recursion -----------------------------------------------------------------------------------------


def _raised(steps: list[_Step], last: Loss, at: _Lattice, lost: float) -> tuple[Floats, float]:
    """Level n - 1, and the upper bound itself; ``lost`` bounds the sum of Q(L <= low) over the steps."""
    before = value = _first_level(last, at, arb(0), up=True)
    slack = (at.number + 8) * UNIT
    for k, step in enumerate([None, *steps], start=1):
        x, error = at.level(k, arb(0))
        if step is not None:
            before = value
            new = np.correlate(value, step.raised, "valid") * (1 + slack) + TINY
            inside = x[: at.number + 1]
            new += step.far(inside, error, at.top, up=True)
            new += lost * step.beyond_q[1] * np.exp(np.minimum(inside - float(at.top), 0.0)) * (1 + 1e-13)
            value = np.append(new, np.zeros(at.number))
        known = (np.maximum(-np.expm1(x - error), 0.0) + lost * np.exp(x + error)) * (1 + 1e-14)
        edge = float(k * at.low)
        value = np.where(x + error <= edge - 4 * UNIT * abs(edge), np.minimum(known, 1.0), np.minimum(value, 1.0))
        if not (x + error <= edge - 4 * UNIT * abs(edge))[at.number + 1 :].all():
            value[at.number + 1 :] = np.maximum(value[at.number + 1 :], 1.0)  # not known there: rounding of the edge
    return before, float(value[0]) * (1 + 8 * UNIT)


def _lowered(steps: list[_Step], last: Loss, at: _Lattice, before: Floats) -> float:
    """The lower bound; level n - 1 of the upper one says which losses matter."""
    c = _shift(steps, before[: at.number + 1], float(at.h))
    shift, slack = ball(c), (at.number + 8) * UNIT
    value = _first_level(last, at, shift, up=False)
    masses = {id(step): step.lowered(c) for step in steps}
    for k, step in enumerate([None, *steps], start=1):
        x, error = at.level(k, shift)
        if step is not None:
            new = np.correlate(value, masses[id(step)], "valid") * (1 - slack) - TINY
            new += step.far(x[: at.number + 1], error, at.top, up=False)
            value = np.append(new, np.zeros(at.number))
        value = np.maximum(value, np.maximum(-np.expm1(x + error), 0.0) * (1 - 1e-14))
    return float(value[0]) * (1 - 8 * UNIT)


def _first_level(last: Loss, at: _Lattice, shift: arb, *, up: bool) -> Floats:
    """delta of the exact step where x is not known to be decided."""
    out = np.zeros(2 * at.number + 1)
    start = at.e - (at.n - 1) * (at.low - shift)
    for i in range(at.number + 1):
        out[i] = _outward(_profile(last, start - i * at.h))[1 if up else 0]
    return out


def _shift(steps: list[_Step], before: Floats, h: float) -> float:
    """The shift c: where few masses fall short by more they go one point down. Any c is valid, this one nearly best.

    Of the outcomes that count, a step loses l_j with weight about mass_j delta_{n-1}(eps - l_j).
    """
    shortfalls, weights = [], []
    for step in {id(step): step for step in steps}.values():
        weight = step.merged * before
        shortfalls.append(step.shortfall)
        weights.append(sum(other is step for other in steps) * weight / max(float(weight.sum()), TINY))
    s, w = np.concatenate(shortfalls), np.concatenate(weights)
    order = np.argsort(s)
    s, w = s[order], w[order]
    left = np.append(np.cumsum(w[::-1])[::-1][1:], 0.0)
    return max(0.0, float(s[int(np.argmin(len(steps) * np.maximum(s, 0.0) + h * left))]))
