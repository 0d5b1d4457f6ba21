"""The types of arrays, in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Complexes", "Floats", "Numbers"]

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
Numbers = NDArray[Any]  #: float64 in, float64 out; complex128 in, complex128 out
