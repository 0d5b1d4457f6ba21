"""The log-moment of randomized response, K(t) = log(p e^(t x) + q e^(-t x)) with p = e^x/(1 + e^x) and q = 1 - p, both
ways: from the loss x, and the loss that has a given moment.

Among all pairs whose divergences of one order are bounded in both directions it has the largest of every lower order
(``conversions.renyi_to_lower_order``), and the largest delta at small epsilon (``accounting/response.py``).
"""

from __future__ import annotations

import numpy as np

from dptally.checks import Floats
from dptally.numerics.rounding import EPS

__all__ = ["log_moment_above", "loss_with"]

_BISECTIONS = 64
_FAR = 20.0
_TRUST = 64 * EPS


def loss_with(t: Floats, log_moment: Floats) -> Floats:
    """An x, nearly the least, for which randomized response of loss x has K(t) >= ``log_moment``, elementwise, t > 0.

    Its divergence of every order above 1 is at least x - log(2)/t and at least x tanh(x/2), which exceeds 0.76 x from
    x = 2 on and 0.38 x^2 before.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        mean = log_moment / t * (1 + 4 * EPS)
        start = np.maximum(mean / 0.76, np.sqrt(mean / 0.38))
        low, high = np.zeros_like(mean), np.minimum(start, (mean + np.log(2.0) / t) * (1 + 8 * EPS))
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            enough = _log_moment(t, middle) * (1 - _TRUST) >= log_moment
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high, dtype=np.float64)


def log_moment_above(t: Floats, x: Floats) -> Floats:
    """K(t) of randomized response of loss x, elementwise, t > 0, rounded up."""
    return np.asarray(_log_moment(t, x) * (1 + _TRUST), dtype=np.float64)


def _log_moment(t: Floats, x: Floats) -> Floats:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        near = np.minimum(t * x, _FAR)  # p e^(t x) + q e^(-t x) - 1 as a product, so that nothing cancels
        excess = np.expm1(near) * -np.expm1(-(near + x)) / (1 + np.exp(-x))
        far = t * x - np.log1p(np.exp(-x)) + np.log1p(np.exp(-(2 * t + 1) * x))
        return np.asarray(np.where(t * x > _FAR, far, np.log1p(excess)), dtype=np.float64)
