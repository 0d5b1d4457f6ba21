r"""Sums of many waves at many frequencies: weights spread onto a grid by a Gaussian, and one fast Fourier transform.

Wanted: F(k) = sum of w_j e^{i k x_j} for k = 0..N-1, w_j >= 0. Let t_m = 2 pi m / M be a grid of M >= 8 N points to a
turn and g(t) = e^{-M^2 t^2 / (4 c)} the function that spreads a weight. Poisson summation gives, for every x and k,

    sum over m of g(t_m - x) e^{i k t_m} = sqrt(c / pi) sum over l of e^{-c (k + l M)^2 / M^2} e^{i (k + l M) x},

over all integers m and l. So e^{ikx} is the left side times sqrt(pi / c) e^{c k^2 / M^2}, up to

- **aliases**: |l| >= 1. With 0 <= k <= M / 8, (k + l M)^2 - k^2 >= M^2 |l| (|l| - 1/4): below 2.1 e^{-3 c / 4};
- **what is cut off**: distances of s = S + 1/2 grid points and more are left out. With a = pi^2 / c their sum is below
  2 e^{-a s^2} (1 + 1 / (2 a s)), times sqrt(pi / c) e^{c / 64};
- **rounding**: the distance d of a grid point and e^{-a d^2} err by 4 ulps and 2 (a d^2) ulps, the mean of a d^2 being
  below 1.1; a sum of J products in one grid point by J / 2; the transform by 4 log2 M + 4 ulps of the sum of all inputs
  (docs/certificates-lattice.md, section 5), which is sqrt(c / pi) to eight digits for each unit of weight; the last
  factor by 4. All but the last are multiplied by e^{c / 64} < 2.06.

With c = 46 and S = 12 the first two are below 2.2e-15 and 3.7e-15, and for M <= 2^22 everything together is below
(1.03 J + 250) ulps of the sum of the weights. The place x M / (2 pi) of a wave errs by less than 3 ulps of itself: as
if x had moved by as much.
"""

from __future__ import annotations

import math

import numpy as np

from dptally.numerics.arrays import Complexes, Floats

__all__ = ["FEWEST", "MOST", "exponential_sums", "grid_length"]

FEWEST = 300  #: waves from which on 2 J + 8 ulps cover the error
MOST = 1 << 22  #: grid points for which this was derived
_C, _REACH = 46.0, 12
_CHUNK = 1 << 14


def grid_length(number: int) -> int:
    """The least 2^n or 3 2^n that is at least eight times the number of frequencies."""
    power = 1 << (8 * number - 1).bit_length()
    return 3 * power // 4 if 3 * power // 4 >= 8 * number else power


def exponential_sums(x: Floats, weights: Floats, number: int) -> Complexes:
    """sum of weights_j exp(i k x_j) for k = 0..number-1, weights >= 0; errors as above."""
    length = grid_length(number)
    place = x * (length / (2 * math.pi))
    nearest = np.rint(place)
    offsets = np.arange(-_REACH, _REACH + 1)
    grid = np.zeros(length)
    for start in range(0, len(x), _CHUNK):
        some = slice(start, start + _CHUNK)
        # the difference of neighbours is exact
        distance = (nearest[some] - place[some])[:, None] + offsets
        spread = weights[some, None] * np.exp(-(math.pi * math.pi / _C) * (distance * distance))
        index = (nearest[some].astype(np.int64)[:, None] + offsets) % length
        grid += np.bincount(index.ravel(), spread.ravel(), minlength=length)
    k = np.arange(float(number)) / length
    turned = np.conj(np.fft.rfft(grid)[:number]) * (math.sqrt(math.pi / _C) * np.exp(_C * k * k))
    return np.asarray(turned, dtype=np.complex128)
