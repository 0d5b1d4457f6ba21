"""Point masses that are known from both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ListedAtoms", "Progression"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ListedAtoms:
    """Atoms at losses between ``low`` and ``high`` with probabilities between ``least`` and ``most``, in any order.

    All finite losses but an event of probability at most exp(``log_missed``) are listed.
    """

    low: Floats
    high: Floats
    least: Floats
    most: Floats
    log_missed: float = -math.inf


class Progression(NamedTuple):
    """Losses that are ``start`` + ``spacing`` times an integer, exactly; ``spacing`` > 0."""

    start: Fraction
    spacing: Fraction
