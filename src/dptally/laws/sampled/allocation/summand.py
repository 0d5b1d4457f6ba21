r"""One epoch of random allocation as a summand of losses: K and the characteristic function from a table of powers.

REMOVE: e^{K(z)} = E R^{1 + z}; ADD: E R^{-z}. Turning all ratios together by the angle b,
|E R^{p + iu}| <= e^{t b^2/(2m^2) - ub} E R^p, so |phi(u)| <= exp(-u^2 m^2 / (2t)) at every tilt.
Derivations: docs/batching.md, "Powers of the ratio".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptally.checks import Floats
from dptally.law.adjacency import Direction
from dptally.law.characteristic import Characteristic, GaussianCharacteristic
from dptally.laws.sampled.allocation.integers import log_integer_moments
from dptally.laws.sampled.allocation.law import AllocationLaw
from dptally.laws.sampled.allocation.powers import LEAST_GAP, Powers, Request
from dptally.laws.sampled.allocation.sums import Parts
from dptally.numerics.arrays import Complexes
from dptally.numerics.rounding import EPS

__all__ = ["epochs_at"]

_DEPTHS = (38.0, 120.0, 360.0, 760.0)  # nats below one that the tables of a level are made for
_MOST_DEGREE = 900
_FAR = 24.0  # nats: beyond, the decay of phi is known well enough
_PER_OCTAVE, _OCTAVES = 4, 12
_SHIFT_ULPS = 2.0


@dataclass(frozen=True, slots=True)
class PowerEpoch:
    """One epoch; ``request`` names its table."""

    side: Direction
    request: Request
    top: float  # the largest tilt
    epochs: int  # how many there are

    def tilts(self) -> Floats:
        return _ladder(self.top)

    def _powers(self, tilt: Floats) -> Floats:
        return 1.0 + tilt if self.side is Direction.REMOVE else -tilt

    def log_moment(self, tilt: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        table = Powers.of(self.request)
        if table is None:
            out = np.full((4, len(tilt)), np.inf)
            return out[0], out[1], out[2], out[3]
        value, error, first, second = table.real(self._powers(tilt))
        value = np.where(np.isfinite(error), value, np.inf)
        return value, error, first if self.side is Direction.REMOVE else -first, second

    def characteristic(self, tilt: float, reach: float, log_tolerance: float) -> Characteristic | None:
        del reach, log_tolerance
        table = Powers.of(self.request)
        value, error, first, _ = (float(v[0]) for v in self.log_moment(np.array([tilt])))
        if table is None or not math.isfinite(value):
            return None
        return _PowerCharacteristic(table, self.side, tilt, value, error, first, self.epochs)

    def log_decay(self, tilt: float, start: Floats) -> Floats:
        del tilt
        variance = self.request.shift**2 / self.request.steps
        return np.asarray(-0.5 * start * start * variance * (1 - 16 * EPS))


@dataclass(frozen=True, slots=True)
class GaussianEpoch:
    """An epoch of one step: a Gaussian loss."""

    shift: float
    top: float

    def tilts(self) -> Floats:
        return _ladder(self.top)

    def log_moment(self, tilt: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        variance = self.shift**2
        value = 0.5 * variance * tilt * (tilt + 1)
        error = (8 + 2 * _SHIFT_ULPS) * EPS * value
        return value, error, variance * (tilt + 0.5), np.full_like(tilt, variance)

    def characteristic(self, tilt: float, reach: float, log_tolerance: float) -> Characteristic | None:
        del reach, log_tolerance
        return GaussianCharacteristic.of(self.shift**2, tilt, (4 + 2 * _SHIFT_ULPS) * EPS)

    def log_decay(self, tilt: float, start: Floats) -> Floats:
        del tilt
        return np.asarray(-0.5 * start * start * self.shift**2 * (1 - 16 * EPS))


def _ladder(top: float) -> Floats:
    return np.asarray(top * 2.0 ** (np.arange(-_PER_OCTAVE * _OCTAVES, 1.0) / _PER_OCTAVE))


@dataclass(frozen=True, slots=True)
class _PowerCharacteristic(Characteristic):
    table: Powers
    side: Direction
    tilt: float
    log_moment: float
    log_moment_error: float
    centre: float
    epochs: int

    @property
    def size(self) -> int:
        return len(self.table.y)

    def on_grid(self, step: float, number: int) -> tuple[Complexes, Floats]:
        u = step * np.arange(number, dtype=np.float64)
        if self.side is Direction.REMOVE:
            value, error = self.table.turned(1.0 + self.tilt, u)
        else:
            value, error = self.table.turned(-self.tilt, -u)
        error = error + 4 * EPS * (1 + u * abs(self.centre))
        # where the table knows less than the decay does, of the power that counts, phi is bounded only
        request, power = self.table.request, self.epochs
        log_decay = -0.5 * u * u * (request.shift**2 / request.steps) * (1 - 16 * EPS)
        size = np.minimum(np.abs(value), 1.0)
        with np.errstate(divide="ignore"):
            log_spread = power * np.log(size + error) + np.log(-np.expm1(-power * np.log1p(error / size)))
        vague = ~(log_spread <= power * log_decay)
        value = value * np.exp(-1j * u * self.centre) - 1.0
        value[vague] = -1.0
        error = np.where(vague, np.exp(log_decay), error)
        value[0], error[0] = 0.0, 0.0
        return value, error

    def in_rows(self, step: float, first: Floats, column: Floats) -> Complexes:
        raise NotImplementedError

    def row_error(self) -> tuple[float, float]:
        raise NotImplementedError


def epochs_at(parts: tuple[tuple[AllocationLaw, int], ...], level: int) -> Parts | None:
    """The summands for epochs of one direction, deep enough for ``level``; None where tables would be too long."""
    if level >= len(_DEPTHS):
        return None
    variance = math.fsum(count * law.shift**2 / law.steps for law, count in parts)
    epochs = sum(count for _, count in parts)
    top = _largest_tilt(parts, variance, _DEPTHS[level])
    shared = (epochs - 1) / epochs
    reach = math.sqrt(2 * _FAR / variance)
    # errors of phi are raised to the number of epochs: that many nats may be lost before they matter
    spare = max(8.0, 22.0 - math.log(epochs))
    gap = max(float(LEAST_GAP), _FAR / min(12.0 + 32.0 * shared, spare) / variance)
    found: list[tuple[PowerEpoch | GaussianEpoch, int]] = []
    for law, count in parts:
        if law.steps == 1:
            found.append((GaussianEpoch(law.shift, top), count))
            continue
        low, high = (1.0, 1.0 + top) if law.side is Direction.REMOVE else (-top, 0.0)
        degree = math.ceil(max(high, 0.0) + gap)
        if degree > _MOST_DEGREE:
            return None
        request = Request(law.shift, law.steps, degree, low, high, reach)
        if Powers.of(request) is None:
            return None
        found.append((PowerEpoch(law.side, request, top, epochs), count))
    return tuple(found)


def _largest_tilt(parts: tuple[tuple[AllocationLaw, int], ...], variance: float, depth: float) -> float:
    """About the tilt at which Chernoff's exponent theta K' - K is ``depth``; with the record, no less than K says."""
    top = math.sqrt(2 * depth / variance) + 1.0
    if parts[0][0].side is Direction.ADD:
        return top
    most = min(256, math.ceil(top) + 2)
    while True:
        total = np.zeros(most + 1)
        for law, count in parts:
            total += count * log_integer_moments(law.shift, law.steps, most)[0]
        k = np.arange(1.0, most)
        exponent = k * (total[2:] - total[1:-1]) - total[1:-1]
        deep = np.flatnonzero(exponent >= depth)
        return min(top, float(k[deep[0]]) + 1.0) if deep.size else top
