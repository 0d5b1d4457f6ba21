"""One step has a closed form: the law's own certified profile, and its inverse."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dptally.law.law import Floats, Law

__all__ = ["epsilon", "log_delta"]

_POINTS = 24


def log_delta(law: Law, epsilon: float) -> tuple[float, float]:
    """Certified bounds of the log of the finite part of delta(epsilon)."""
    lower, upper = law.log_profile(np.array([epsilon]))
    return float(lower[0]), float(upper[0])


def epsilon(law: Law, log_target: tuple[float, float]) -> tuple[float, float]:
    """Certified bounds of the smallest epsilon >= 0 whose finite delta is below a target known to lie in
    ``log_target``.
    """
    low = _last(lambda x: law.log_profile(x)[0] > log_target[1], law.supremum)[0]
    high = _last(lambda x: law.log_profile(x)[1] > log_target[0], law.supremum)[1]
    return low, high


def _last(exceeds: Callable[[Floats], NDArray[np.bool_]], supremum: float) -> tuple[float, float]:
    """(a, b), a as the last known point that exceeds and b as the first that does not; (0, 0) if none exceeds.

    ``exceeds`` is nonincreasing in truth; whatever it says between, a and b are points at which it was evaluated, and
    that
    is all the certificate needs.
    """
    if not exceeds(np.zeros(1))[0]:
        return 0.0, 0.0
    a, b = 0.0, 1e-12
    while exceeds(np.array([b]))[0]:
        a, b = b, b * 16.0
        if b >= supremum:
            b = supremum
            break
        if not math.isfinite(b):
            return a, math.inf
    for _ in range(40):
        grid = np.linspace(a, b, _POINTS) if a == 0 or b / a < 4 else np.geomspace(a, b, _POINTS)
        inner = grid[(grid > a) & (grid < b)]
        if not inner.size:
            break
        above = exceeds(inner)
        number = int(np.argmin(above)) if not above.all() else len(inner)
        a, b = (float(inner[number - 1]) if number else a), (float(inner[number]) if number < len(inner) else b)
    return a, b
