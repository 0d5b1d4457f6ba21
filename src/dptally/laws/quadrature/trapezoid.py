"""Which points of a trapezoid rule on the whole line carry an integral of e^{tL}."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dptally.checks import Floats
from dptally.errors import Unanswerable

__all__ = ["MOST_POINTS", "NATS", "REACH", "significant_points", "strip_step"]

NATS = 50.0  # points are left out, and the step refined, until what remains is e^-50 of the whole
REACH = 13.0  # standard deviations around a mode that hold all but e^-80 of it
_WIDE = 8000.0  # coarse points of one unbroken grid
MOST_POINTS = 1 << 20  # of one rule: seconds of work at twenty orders

# half-widths of a strip, in units of sigma
_STRIPS = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 1.1, 1.6, 2.1, 2.6])


def strip_step(sigma: float, frequency: float, shrink: float) -> float:
    """The largest step with an error of e^-50, for phi(s) times powers of 1 - q + q e^{s/sigma + const}.

    On the line Im s = a = beta sigma, beta < pi, the integrand grows by at most a^2/2 + frequency beta, and
    by -shrink log cos(beta/2) for negative powers of total exponent ``shrink``; the error falls like
    e^{-2 pi a / step} [Trefethen, Weideman 2014, The exponentially convergent trapezoidal rule, Thm. 5.1].
    """
    a = np.minimum(_STRIPS * sigma, 10.0 + frequency / sigma)
    beta = a / sigma
    growth = 0.5 * a * a + frequency * beta - shrink * np.log(np.cos(0.5 * beta))
    step = float((2 * math.pi * a / (NATS + growth)).max())
    _affordable(2 * REACH / step if step > 0 else math.inf)
    return step


def significant_points(
    law: Callable[[Floats], tuple[Floats, Floats]],
    centres: Floats,
    step: float,
    spacing: float,
    tilts: Floats,
    frequency: float,
) -> Floats:
    """The multiples of ``step`` near the ``centres`` where the summand of K, at any tilt, is not negligible.

    ``law(s)`` gives (log density under P, loss); the summand is looked at on a coarse grid of ``spacing``.
    """
    if not np.isfinite(centres).all():
        _affordable(math.inf)
    coarse = _coarse(centres, spacing)
    log_density, loss = law(coarse)
    rows = max(1, (1 << 20) // coarse.size)
    matters = np.zeros(coarse.size, dtype=bool)
    for start in range(0, tilts.size, rows):
        size = _log_summand(log_density, loss, tilts[start : start + rows, None], frequency)
        matters |= (size > size.max(axis=1, keepdims=True) - NATS).any(axis=0)
    kept = coarse[matters]
    if not kept.size:  # the summands themselves are outside double range
        _affordable(math.inf)
    cuts = np.flatnonzero(np.diff(kept) > 1.5 * spacing)
    starts, ends = np.append(0, cuts + 1), np.append(cuts, kept.size - 1)
    _affordable(float((kept[ends] - kept[starts] + 2 * spacing).sum()) / step)
    runs = [
        np.arange((kept[i] - spacing) // step, (kept[j] + spacing) // step + 2)  # pyright: ignore[reportCallIssue, reportArgumentType]
        for i, j in zip(starts, ends, strict=True)
    ]
    return step * (runs[0] if len(runs) == 1 else np.unique(np.concatenate(runs)))


def _affordable(points: float) -> None:
    if not points <= MOST_POINTS:
        raise Unanswerable(
            f"the log-moment on a sample needs {points:.3g} points with this little noise or at this order; "
            "ask delta(epsilon=...) or epsilon(delta=...) of one run, or take more noise"
        )


def _coarse(centres: Floats, spacing: float) -> Floats:
    """A grid over everything between the centres, or over a window around each where they lie far apart."""
    low, high = np.unique(centres) - REACH, np.unique(centres) + REACH
    if high[-1] - low[0] < _WIDE * spacing:
        low, high = low[:1], high[-1:]
    numbers = [np.arange(a // spacing, b // spacing + 2) for a, b in zip(low, high, strict=True)]
    return spacing * np.unique(np.concatenate(numbers))


def _log_summand(log_density: Floats, loss: Floats, tilt: Floats, frequency: float) -> Floats:
    """log of a bound of |e^{tL} - 1 - tL| + |t| (L - 1 + e^-L) under P, Re t = tilt, |Im t| <= frequency."""
    size = np.abs(loss)
    modulus = np.hypot(tilt, frequency)
    modulus = np.where(modulus > 0, modulus, 1.0)
    with np.errstate(divide="ignore"):
        log_size = np.log(size)
        log_modulus = np.log(modulus)
        bent = np.minimum(2 * (log_size + log_modulus), np.log(2 + modulus * size))
        power = np.maximum(tilt * loss, 0.0) + bent
        # L - 1 + e^-L is at most L^2 for |L| < 1, and at most |L| + e^-L anywhere
        linear = log_modulus + np.minimum(2 * log_size + np.maximum(-loss, 0), np.logaddexp(log_size, -loss))
    return np.asarray(log_density + np.maximum(np.maximum(power, linear), -1e300))
