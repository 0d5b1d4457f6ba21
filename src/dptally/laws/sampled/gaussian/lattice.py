"""The Poisson-sampled Gaussian spread onto a lattice of losses (see dptally.law.spread).

Each cell of losses is an interval of t. Where it is short against the scale on which the density varies, two Gauss
points integrate the density; where it is long (the flat left end), the cell's masses under P and Q are differences of
normal distribution functions.
"""

from __future__ import annotations

import math

import numpy as np

from dptally.law.spread import LatticeLaw, right_share
from dptally.laws.sampled.gaussian.kernel import SampledGaussianNodes
from dptally.numerics.arrays import Floats
from dptally.numerics.rounding import EPS, TINY
from dptally.numerics.special import ndtr

__all__ = ["spread"]

# a cell's half-width times the logarithmic slope of its density, below which two Gauss points are exact to 1e-12
_SHORT = 2e-3
_GAUSS = 1 / math.sqrt(3.0)
_MASS_ERROR = 4e-12
_LOSS_SHARE = 1e-4  # of a step: what cancellation in a long cell can misplace


def spread(kernel: SampledGaussianNodes, low: float, step: float, number: int) -> LatticeLaw | None:
    """The law on the points low, low + step, ..., ``number`` of them; losses below low are left out, those above are
    far.
    """
    if max(-low, low + step * number) > 690.0:  # beyond, e^x overflows
        return None
    x: Floats = low + step * np.arange(number, dtype=np.float64)
    t = _position(kernel, x if kernel.remove else -x[::-1])
    masses, doubt = _masses(kernel, t, x, step)
    end = float(t[-1] if kernel.remove else t[0])
    if kernel.remove:
        far, far_q = kernel.mass_above(end), float(ndtr(-end))
    else:  # losses above the last point: t below its position
        far, far_q = float(ndtr(end)), kernel.mass_below(end)
    # a long cell is a difference of normal tails, each good to t^2 + 4 ulps, of at least 4e-3 of the larger
    deepest = min(float(np.abs(t[np.isfinite(t)]).max(initial=0.0)), 39.0)
    mass_error = _MASS_ERROR + 500 * EPS * (8 + deepest**2)
    # e^x - (1 - q) cancels near the least loss: the positions are off by an ulp of 1/(1 - q) there
    loss_error = _LOSS_SHARE * step + 1e-14 + 8 * EPS / (1 - kernel.rate)
    return LatticeLaw(low, step, masses, far, far_q, mass_error, loss_error, doubt)


def _position(kernel: SampledGaussianNodes, log_a: Floats) -> Floats:
    """The t at which log A(t) takes these values; -inf at or below log(1 - q)."""
    with np.errstate(divide="ignore"):
        ratio = np.maximum((np.expm1(np.minimum(log_a, 700.0)) + kernel.rate) / kernel.rate, 0.0)
        ratio[log_a <= math.log1p(-kernel.rate)] = 0.0  # whatever the rounding of the difference says
        return kernel.scale * np.log(ratio) + 0.5 / kernel.scale


def _masses(kernel: SampledGaussianNodes, t: Floats, x: Floats, step: float) -> tuple[Floats, float]:
    """Masses at the points, and what underflow may have cost all of them; ``t`` increases and its cells are those of x
    (reversed in the add direction).

    Whatever underflows is off by less than TINY: four products of each Gauss point, four normal tails of a long cell.
    In a long cell that of Q moves mass, times e^start / (1 - e^-step), but never more than there is.
    """
    left, right = t[:-1], t[1:]
    with np.errstate(invalid="ignore"):
        half = 0.5 * (right - left)
        middle = 0.5 * (right + left)
        slope = np.abs(middle) + 2.0 / kernel.scale + 1.0
    short = np.isfinite(half) & (half * slope < _SHORT)
    to_left, to_right = np.zeros_like(half), np.zeros_like(half)  # by loss
    start = x[:-1] if kernel.remove else x[:-1][::-1]
    for sign in (-_GAUSS, _GAUSS):
        point = middle[short] + sign * half[short]
        log_a = kernel.log_a(point) if point.size else point
        density = (
            np.exp(-0.5 * point * point + (log_a if kernel.remove else 0.0)) * half[short] / math.sqrt(2 * math.pi)
        )
        share = right_share((log_a if kernel.remove else -log_a) - start[short], step)
        to_right[short] += density * share
        to_left[short] += density * (1 - share)
    long, doubt = ~short, 8 * TINY * half.size
    if long.any():
        p, q = _cell_masses(kernel, left[long], right[long])
        # shares a + b = p, a + b e^-step = q e^{start}: b = (p - q e^start) / (1 - e^-step)
        b = np.clip((p - q * np.exp(start[long])) / -math.expm1(-step), 0.0, p)
        to_right[long], to_left[long] = b, p - b
        with np.errstate(over="ignore"):
            moved = np.minimum(p, 4 * TINY * np.exp(start[long]) / -math.expm1(-step))
        doubt += float(moved.sum())
    if not kernel.remove:
        to_left, to_right = to_left[::-1], to_right[::-1]
    mass = np.append(to_left, 0.0)
    mass[1:] += to_right
    return mass, doubt * (1 + 1e-9)


def _cell_masses(kernel: SampledGaussianNodes, left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """P and Q of the cells, on the side of the normal distribution where nothing cancels."""
    upper = left > 0

    def between(shift: float) -> Floats:
        a, b = left - shift, right - shift
        return np.asarray(np.where(upper, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a)))

    base, shifted = between(0.0), between(1 / kernel.scale)
    mixed = (1 - kernel.rate) * base + kernel.rate * shifted
    return (mixed, base) if kernel.remove else (base, mixed)
