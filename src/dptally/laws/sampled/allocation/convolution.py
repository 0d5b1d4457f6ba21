r"""Powers of lattice measures, and what a payoff earns under them, with every error bounded.

Transforms at several tilts e^{ck}; at each point that counts in which the error is smallest.

- *Rounding.* Every entry of a transform of length N errs by gamma times the l1 norm, gamma = EPS (4 log2 N + 8), and
  so does the way back: a product of n_p-th powers by 2 gamma (mean of sum_p n_p |phi_p|^{n_p - 1} .. + mean |product|).
- *Window.* Sums that leave a window of some standard deviations come back into it: at most the tilted mass outside,
  by Chernoff's bound. What lies beyond its right end is bounded in the same way, and stated.

Derivations: docs/batching.md, "Bounded ratios".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dptally.checks import Floats
from dptally.numerics.arrays import Complexes
from dptally.numerics.rounding import EPS

__all__ = ["Earned", "Powers", "earned", "window"]

Powers = tuple[tuple[Floats, int], ...]  #: masses at 0, 1, .. of each measure, and how often it is added

_REACH = 13.0  # standard deviations of the window on either side
_HEAVIEST = 100.0  # nats: the log of a tilted measure's size, about its mean
_PULLS = (0.0, 2.0, 4.0, 6.5, 9.0)  # standard deviations: the tilts
_VANISHING = 1e-290  # what may leave double range
_FURTHER = np.geomspace(0.02, 40.0, 28)  # standard deviations: tilts of Chernoff's bounds


@dataclass(frozen=True, slots=True, eq=False)
class Earned:
    """At the sums ``begin`` + i: what the payoff earns, a bound of the error, and of the mass beyond the last."""

    begin: int
    value: Floats
    error: Floats
    beyond: float


def window(powers: Powers) -> float:
    """About how many points the window has."""
    return 2 * _REACH * _spread(powers, _centres(powers))


def earned(powers: Powers, payoff: Callable[[Floats], Floats], most: float) -> Earned:
    """``payoff`` maps masses at consecutive sums to what they earn at each, linearly, at most ``most`` per unit."""
    from scipy.fft import irfft, next_fast_len, rfft

    longest = max(len(m) for m, _ in powers)
    powers = tuple((np.trim_zeros(m, "b"), n) for m, n in powers)
    masses = [m for m, _ in powers]
    if not all(map(len, masses)):  # one of them is nothing
        return Earned(0, np.zeros(1), np.zeros(1), 0.0)
    whole = sum(n * (len(m) - 1) for m, n in powers) + 1
    centres = _centres(powers)
    mean = math.fsum(n * c for (_, n), c in zip(powers, centres, strict=True))
    spread = _spread(powers, centres)
    length = next_fast_len(min(whole, max(longest, math.ceil(window(powers)) + 2)), real=True)
    begin = 0 if length >= whole else min(max(0, round(mean - 0.5 * length)), whole - length)
    k = begin + np.arange(float(min(length, whole)))
    places = (k % length).astype(np.int64)
    gamma, times = EPS * (4 * math.log2(length) + 8), sum(n for _, n in powers)
    value, error = np.zeros(len(k)), np.full(len(k), np.inf)
    for c in _tilts(powers, mean, spread):
        transforms, log_size = [], 0.0
        for (m, n), centre in zip(powers, centres, strict=True):
            half = np.exp(0.5 * c * (np.arange(len(m)) - centre))  # the whole may leave double range
            tilted = m * half * half
            size = float(tilted.sum())
            log_size += n * math.log(size)
            transforms.append((rfft(tilted / size, length), n))
        product = np.prod([_power(phi, n) for phi, n in transforms], axis=0)
        noise = 2 * gamma * (_blame([(np.abs(phi), n) for phi, n in transforms]) + float(np.abs(product).mean()))
        back = log_size - c * (k - mean)  # log of what undoes the tilt
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            undone = np.exp(np.minimum(back, 700.0))
            found = payoff(np.maximum(irfft(product, length)[places], 0.0) * undone)  # negative ones are noise
            wrong = payoff(noise * undone) * (1 + 1e-6) + most * _outside(powers, c, k, whole) * undone
        slack = EPS * (4.0 * len(k) + 64.0 + 8 * times * longest * c) + 4e-15 * times * (1 + c)
        wrong = wrong + found * (slack + 8 * EPS * np.abs(back)) + _VANISHING
        better = wrong < error
        value, error = np.where(better, found, value), np.where(better, wrong, error)
    return Earned(begin, value, error, 0.0 if begin + len(k) >= whole else _beyond(powers, float(k[-1])))


def _tilts(powers: Powers, mean: float, spread: float) -> list[float]:
    """Some standard deviations each, smaller where rare large sums would take over."""
    found, whole = [], _log_moments(powers, np.zeros(1))[0]
    for c in (np.array(_PULLS) / spread).tolist():
        while _log_moments(powers, np.array([c]))[0] - whole - c * mean > _HEAVIEST:
            c /= 1.5
        found.append(c)
    return sorted(set(found))


def _power(z: Complexes, n: int) -> Complexes:
    """z^n by squaring: its relative error, below 4 n EPS, is covered by the charge for the transform's own."""
    result = np.ones_like(z)
    while n:
        if n & 1:
            result = result * z
        n >>= 1
        if n:
            z = z * z
    return result


def _centres(powers: Powers) -> list[float]:
    return [float(m @ np.arange(len(m))) / float(m.sum()) for m, _ in powers]


def _spread(powers: Powers, centres: list[float]) -> float:
    squares = [
        n * float(m @ (np.arange(len(m)) - c) ** 2) / float(m.sum()) for (m, n), c in zip(powers, centres, strict=True)
    ]
    return math.sqrt(max(math.fsum(squares), 1e-12))


def _blame(moduli: list[tuple[Floats, int]]) -> float:
    """The mean of sum_p n_p |phi_p|^{n_p - 1} times the other powers."""
    return math.fsum(
        n * float(np.prod([r ** (count - (i == j)) for j, (r, count) in enumerate(moduli)], axis=0).mean())
        for i, (_, n) in enumerate(moduli)
    )


def _log_moments(powers: Powers, tilts: Floats) -> Floats:
    """log of the sum of the masses times e^{ck}, for several c."""
    total = np.zeros(len(tilts))
    for m, n in powers:
        place = np.arange(float(len(m)))
        with np.errstate(divide="ignore"):
            logs = np.log(m)
        for i, c in enumerate(tilts.tolist()):  # one by one: many tilts of a long measure would fill the memory
            exponent = logs + c * place
            top = float(exponent.max())
            total[i] += n * (top + math.log(float(np.exp(exponent - top).sum())))
    return total


def _tail(powers: Powers, c: float, end: float, sign: float) -> float:
    """Chernoff: log of the mass, tilted by c and divided by its whole, at ``end`` and beyond on one side."""
    scale = _spread(powers, _centres(powers))
    more = sign * _FURTHER / scale
    moments = _log_moments(powers, np.concatenate(([c], c + more)))
    rounding = 1e-11 * (2 + np.abs(moments[1:]) + abs(float(moments[0])) + np.abs(more * end))
    return min(0.0, float((moments[1:] - moments[0] - more * end + rounding).min()))


def _outside(powers: Powers, c: float, k: Floats, whole: int) -> float:
    """The tilted mass outside the window, which the transform puts somewhere into it."""
    right = -math.inf if k[-1] >= whole - 1 else _tail(powers, c, float(k[-1]) + 1, 1.0)
    left = -math.inf if k[0] <= 0 else _tail(powers, c, float(k[0]) - 1, -1.0)
    return math.exp(left) + math.exp(right)


def _beyond(powers: Powers, end: float) -> float:
    """The mass right of ``end``."""
    log_mass = _tail(powers, 0.0, end + 1, 1.0) + float(_log_moments(powers, np.zeros(1))[0])
    return math.exp(min(log_mass, 700.0)) * (1 + 1e-9)
