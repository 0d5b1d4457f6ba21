"""The granularity of float outputs: which multiples of which power of two were seen.

Noise added in floats leaves the coarser of two roundings in the sum, and textbook samplers reach only some
doubles [Mironov 2012; Haney et al. 2022]. An output on a fixed grid has no such trace. ``audit.run`` looks at
the lowest set bit as one of its views and turns a trace into a bound; this is the plain description, and a
check that needs no claim.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dptally import checks
from dptally.audit.views import lowest_bit
from dptally.errors import InvalidArgument
from dptally.noise import parameters
from dptally.noise.parameters import Exact

__all__ = ["Granularity", "granularity"]


@dataclass(frozen=True, slots=True)
class Granularity:
    """``finest``: every output is a multiple of 2^finest and one is of no coarser power. ``counts``:
    (exponent, outputs).
    """

    finest: int
    counts: tuple[tuple[int, int], ...]

    def on_grid(self, grid: Exact) -> bool:
        """Whether every output was a multiple of this power of two."""
        return self.finest >= parameters.power_of_two("grid", grid)


def granularity(outputs: object) -> Granularity:
    """How fine the bits of float outputs are.

    >>> granularity([0.5, 1.0, 2.25]).finest
    -2
    """
    values = checks.reals("outputs", outputs).ravel()
    if values.size == 0 or not np.isfinite(values).all():
        raise InvalidArgument("outputs", "finite numbers, at least one", "others")
    exponents, counts = np.unique(lowest_bit(values), return_counts=True)
    return Granularity(int(exponents[0]), tuple(zip(exponents.tolist(), counts.tolist(), strict=True)))
