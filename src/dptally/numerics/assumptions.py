"""What the certificates assume of numpy's elementary functions, tested on this machine (docs/certificates.md, 8).

numpy promises 4 ulps for its vector functions, and the certificates charge as many (``FUNCTION_ULPS``). The scalar
functions of the C library are within one ulp, so vector functions that are never more than three from them keep it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dptally.errors import Unanswerable
from dptally.numerics.rounding import FUNCTION_ULPS

__all__ = ["require_accurate_functions"]

_WITHIN = FUNCTION_ULPS - 1.0  # ulps between the vector and the scalar function


@lru_cache(maxsize=1)
def require_accurate_functions() -> None:
    """Raise where a vector function is further from the scalar one than the certificates allow."""
    spread = np.sqrt(2.0) * np.arange(1.0, 257.0) % 1.0  # spread evenly over the unit interval
    wide = 1400.0 * spread - 700.0
    small = np.ldexp(0.9 * np.where(spread < 0.5, -spread - 0.5, spread), np.arange(256) % 60 - 59)
    positive = np.ldexp(0.5 + 0.5 * spread, 8 * np.arange(256) - 1020)
    angles = 2e6 * spread - 1e6
    for name, points in (
        ("exp", wide),
        ("log", positive),
        ("expm1", small),
        ("log1p", small),
        ("sin", angles),
        ("cos", angles),
    ):
        scalar = np.array([getattr(math, name)(x) for x in points.tolist()])
        off = np.abs(getattr(np, name)(points) - scalar) / np.spacing(np.abs(scalar))
        if not float(off.max()) <= _WITHIN:
            raise Unanswerable(
                f"numpy's {name} is {float(off.max()):.0f} ulps from that of the C library on this machine; the "
                f"certificates allow {_WITHIN:.0f}: use another build of numpy, or prove(), which does not rest on it"
            )
