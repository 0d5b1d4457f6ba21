"""A loss spread onto equally spaced points: a lattice law that dominates it and differs from it by second order.

Mass at a loss l between two neighbouring points a < b goes to both so that the mean of e^{-L} is kept. By Jensen's
inequality the result dominates (the payoff (1 - e^{eps - L})+ is convex in e^{-L}), also after composition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dptally.numerics.arrays import Floats

__all__ = ["LatticeLaw", "right_share"]


@dataclass(frozen=True, slots=True)
class LatticeLaw:
    """Masses under P at the points low + j step, j = 0 .. len(mass) - 1.

    Losses below ``low`` are left out; of those above the last point only the masses under P and Q are kept (``far``).
    ``mass_error`` bounds the relative error of every mass, ``loss_error`` what misplaced mass is worth as a shift of
    the loss; ``doubt`` bounds what underflow may have taken from all masses together, or moved between them.
    """

    low: float
    step: float
    mass: Floats
    far: float
    far_q: float
    mass_error: float
    loss_error: float
    doubt: float = 0.0


def right_share(offset: Floats, step: float) -> Floats:
    """The share of a mass at ``offset`` beyond the left point that goes to the right one: (1 - e^-offset) / (1 -
    e^-step).
    """
    return np.asarray(np.clip(np.expm1(-offset) / np.expm1(-step), 0.0, 1.0), dtype=np.float64)
