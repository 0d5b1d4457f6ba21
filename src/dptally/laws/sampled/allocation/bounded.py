r"""One epoch of random allocation for steps of bounded loss (Laplace noise, randomised response): a lattice of ratios.

C(y) = E(Y - y)+ is the step's profile at log y. A positive measure on an even grid whose profile is above C
everywhere (chords of C) or below C everywhere (chords lowered by twice the excess at the middle of a cell, which bounds
the excess in it) bounds E(S - b)+ of the sum from above or below, because (s - b)+ is convex and increasing
(docs/batching.md, "Bounded ratios"). E(b - S)+ = E(S - b)+ + b - t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.laws.by_profile import ProfileLaw
from dptally.laws.sampled.allocation.law import ALLOCATION_THEOREM
from dptally.numerics.rounding import EPS

__all__ = ["BoundedAllocationLaw"]

_NODES = 1 << 19  # of the sum
_CELLS = 4096


@dataclass(frozen=True, slots=True)
class _Sum:
    """E(S - s_j)+ at the nodes s_j = start + j step, without what lies beyond the last, and a bound of its error."""

    start: float
    step: float
    value: Floats
    error: Floats
    beyond: float  # log of a bound of P(S > last node)
    reach: float  # and of E(S - last)+ over it
    most: float  # the largest S

    def bounds(self, b: Floats) -> tuple[Floats, Floats]:
        """(lower, upper) of E(S - b)+; linear between the nodes, and exact left of the first."""
        last = self.start + self.step * (len(self.value) - 1)
        at = np.clip((b - self.start) / self.step, 0.0, len(self.value) - 1.0)
        j = np.minimum(at.astype(np.int64), len(self.value) - 2)
        share = at - j
        value = self.value[j] * (1 - share) + self.value[j + 1] * share
        error = np.maximum(self.error[j], self.error[j + 1]) + 8 * EPS * value
        error = np.where(b >= last, 0.0, error)
        left = np.maximum(self.start - b, 0.0)
        tail = math.exp(self.beyond) * np.minimum(
            np.maximum(last - b, 0.0) + self.reach, np.maximum(self.most - b, 0.0)
        )
        return np.maximum(value + left - error, 0.0), value + left + error + tail


def _masses(values: Floats, start_mass: bool) -> Floats:
    """Masses of the lattice measure whose profile has these values at the nodes 0, 1, ..; of total mass one."""
    slope = np.diff(values)  # in units of the step, rising to 0
    inner = np.diff(slope)
    last = -slope[-1]
    first = max(0.0, 1.0 - (float(inner.sum()) + float(last))) if start_mass else 0.0
    return np.maximum(np.concatenate(([first], inner, [last])), 0.0)


def _profile(masses: Floats) -> Floats:
    """sum_{j>k} m_j (j - k): two sums from the right."""
    above = np.concatenate((np.cumsum(masses[::-1])[::-1][1:], [0.0]))
    return np.asarray(np.cumsum(above[::-1])[::-1])


def _minorant(values: Floats) -> Floats:
    """The greatest convex function below the values at 0, 1, .., at these points."""
    kept: list[int] = []
    for i in range(len(values)):
        while len(kept) > 1:
            a, c = kept[-2], kept[-1]
            if (values[c] - values[a]) * (i - a) <= (values[i] - values[a]) * (c - a):
                break
            kept.pop()
        kept.append(i)
    return np.interp(np.arange(len(values)), kept, values[kept])


@lru_cache(maxsize=16)
def _sums(law: Law, steps: int) -> tuple[_Sum, _Sum]:
    """The lower and the upper lattice of the sum."""
    cells = max(64, min(_CELLS, _NODES // steps))
    low, high = math.exp(law.infimum) * (1 - 1e-14), math.exp(law.supremum) * (1 + 1e-14)
    h = (high - low) / cells
    fine = low + 0.5 * h * np.arange(2 * cells + 1)
    below, above = (np.exp(end) for end in law.log_profile(np.log(fine)))
    below[0], above[0], below[-1], above[-1] = (1 - low) * (1 - EPS), (1 - low) * (1 + EPS), 0.0, 0.0
    # upper: chords of the upper values; where rounding left them short, mass is added at the end
    nodes = above[::2]
    upper = _masses(_minorant(nodes) / h, True) * (1 + 1e-12)
    short = np.maximum(nodes * (1 + 1e-12) - _profile(upper) * h * (1 - 1e-12), 0.0)[:-1]
    upper[-1] += float((short / np.arange(cells, 0, -1.0)).max()) / h * (1 + 1e-9)
    # lower: lowered by twice the excess at the middles
    excess = np.maximum(0.5 * (nodes[:-1] + nodes[1:]) - below[1::2], 0.0)
    beside = 2 * np.maximum(np.append(excess, 0.0), np.insert(excess, 0, 0.0))
    goal = _minorant(np.maximum(below[::2] - beside, 0.0))
    lower = _masses(goal / h, True)
    have = _profile(lower) * h
    with np.errstate(divide="ignore", invalid="ignore"):
        over = np.where(have > 0, goal / have, 1.0)[:-1]
    shrink = min(1.0, float(over.min()), 1.0 / float(lower.sum())) * (1 - 1e-12)
    return _convolved(lower * shrink, low, h, steps), _convolved(upper, low, h, steps)


def _convolved(masses: Floats, low: float, h: float, steps: int) -> _Sum:
    from scipy.fft import irfft, next_fast_len, rfft

    total = float(masses.sum())
    length = next_fast_len(steps * (len(masses) - 1) + 1, real=True)
    mean = float(np.dot(masses, np.arange(len(masses)))) / total
    spread = math.sqrt(max(float(np.dot(masses, (np.arange(len(masses)) - mean) ** 2)) / total, 1e-12))
    last = min(steps * (len(masses) - 1), math.ceil(steps * mean + 14 * math.sqrt(steps) * spread) + 8)
    gamma = EPS * (4 * math.log2(length) + 8)
    index = np.arange(last + 1.0)
    profile, error = np.zeros(last + 1), np.full(last + 1, np.inf)
    for pulls in (0.0, 2.0, 4.0, 6.0, 9.0):  # standard deviations: the tilt at which the transform is taken
        c = pulls / (spread * math.sqrt(steps))
        tilted = masses * np.exp(c * (np.arange(len(masses)) - mean))
        size = float(tilted.sum())
        phi = rfft(tilted / size, length)
        back = steps * math.log(size) - c * (index - steps * mean)  # log of what undoes the tilt
        moduli = np.abs(phi)
        noise = 2 * gamma * (steps * float((moduli ** (steps - 1)).mean()) + float((moduli**steps).mean()))
        with np.errstate(over="ignore", under="ignore"):
            undone = np.exp(np.minimum(back, 700.0))
            values = np.maximum(irfft(phi**steps, length)[: last + 1], 0.0) * undone  # negative ones are noise
            found = _profile(values) * h
            wrong = _profile(noise * undone * (1 + 1e-9)) * h
        slack = EPS * (last + 64.0 + 4 * steps * len(masses) * c) + 1e-15 * steps * (1 + c)
        wrong = wrong + found * (slack + 4 * EPS * np.abs(back))
        better = wrong < error
        profile, error = np.where(better, found, profile), np.where(better, wrong, error)
    # Chernoff beyond the last node
    tilts = np.geomspace(1e-4, 50.0, 60) / (h * spread * math.sqrt(steps))
    exponent = np.log(masses[masses > 0]) + np.multiply.outer(tilts * h, np.flatnonzero(masses).astype(np.float64))
    top = exponent.max(axis=1)
    moment = steps * (top + np.log(np.exp(exponent - top[:, None]).sum(axis=1)))
    bound = moment - tilts * h * last + 1e-9 * (1 + np.abs(moment))
    best = int(np.argmin(bound))
    whole = last == steps * (len(masses) - 1)
    beyond = -math.inf if whole else float(bound[best])
    return _Sum(
        steps * low,
        h,
        profile,
        error,
        beyond,
        1.0 / (math.e * float(tilts[best])),
        steps * (low + h * (len(masses) - 1)),
    )


@dataclass(frozen=True, slots=True)
class BoundedAllocationLaw(ProfileLaw):
    """``inner`` is the loss of one step with the record against without it, bounded on both sides; ``steps`` t >= 2."""

    inner: Law
    steps: int
    side: Direction
    theorem: ClassVar[str] = ALLOCATION_THEOREM
    profile_by: ClassVar[str] = "lattice of ratios"

    @property
    def supremum(self) -> float:
        return self.inner.supremum if self.side is Direction.REMOVE else -self.inner.infimum

    @property
    def infimum(self) -> float:
        return self.inner.infimum if self.side is Direction.REMOVE else -self.inner.supremum

    def log_excess(self, loss: Floats) -> tuple[Floats, Floats, Floats]:
        lower, upper = self._excess(loss)
        step = 1e-5
        further = self._excess(loss + step)[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where((upper > 0) & (further > 0), (np.log(upper) - np.log(further)) / step, 0.0)
            return np.log(lower) - 4 * EPS, np.log(upper) + 4 * EPS, np.where(np.isfinite(rate), rate, 0.0)

    def _excess(self, loss: Floats) -> tuple[Floats, Floats]:
        t = float(self.steps)
        at = np.clip(loss if self.side is Direction.REMOVE else -loss, -690.0, 690.0)
        b = t * np.exp(at)
        below, above = _sums(self.inner, self.steps)
        # b itself is rounded: E(S - b)+ falls with it
        lower, upper = below.bounds(b * (1 + 4 * EPS))[0], above.bounds(b * (1 - 4 * EPS))[1]
        rest = np.where(at < 0, b - t, 0.0)  # E(b - S)+ = E(S - b)+ + b - t
        lower = np.maximum(lower + rest * (1 + 4 * EPS) - 4 * EPS * np.abs(rest), 0.0)
        upper = np.maximum(upper + rest * (1 - 4 * EPS) + 4 * EPS * np.abs(rest), 0.0)
        outside = loss >= self.supremum
        factor = (np.ones_like(loss) if self.side is Direction.REMOVE else np.exp(np.clip(loss, -690.0, 690.0))) / t
        return np.where(outside, 0.0, lower * factor), np.where(outside, 0.0, upper * factor)
