"""Complex logarithms that keep their relative accuracy near zero (numpy's do not)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["log1p_complex"]


def log1p_complex(x: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """log(1 + x), principal branch, to 12 ulps of |x| + |log(1 + x)|.

    The real part is log1p(|1 + x|^2 - 1) / 2 while Re x > -1/2; beyond, where that cancels, 1 + Re x is exact
    (Sterbenz) and the modulus is taken as it stands.
    """
    out: Any = np.empty_like(x)
    real, imag = x.real, x.imag
    with np.errstate(divide="ignore"):
        near = 0.5 * np.log1p(np.maximum(real * (2.0 + real) + imag * imag, -0.75))
        out.real = np.where(real > -0.5, near, np.log(np.hypot(1.0 + real, imag)))
    out.imag = np.arctan2(imag, 1.0 + real)
    return out  # type: ignore[no-any-return]
