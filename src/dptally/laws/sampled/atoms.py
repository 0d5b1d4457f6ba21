"""A loss with finitely many values, sampled under REPLACE (theorem and proof in docs/sampling.md)."""

from __future__ import annotations

import math
from collections import defaultdict

from dptally.law import Law
from dptally.laws.atoms import AtomicLaw
from dptally.laws.sampled.gaussian.replace import REPLACE_THEOREM
from dptally.numerics.rounding import EPS, up

__all__ = ["replace_law", "sampled_replace_atoms"]

_EXCESS = 64.0  # ulps by which masses are rounded up, for the atoms' own rounding and for the splitting


def replace_law(law: Law, rate: float, reverse_mass: float) -> Law | None:
    """The law under REPLACE of a law that is all atoms, or all mass at infinity; None for any other."""
    listed = law.atoms() if math.isfinite(law.supremum) else ()
    if listed and abs(math.fsum(mass for _, mass in listed) + law.infinity_mass - 1.0) < 1e-9:
        return sampled_replace_atoms(law, rate, reverse_mass)
    return law if not listed and law.infinity_mass == 1.0 else None


def sampled_replace_atoms(law: Law, rate: float, reverse_mass: float) -> AtomicLaw:
    """The pair 1 - q + q F^-1(u) against 1 - q + q F^-1(1 - u), F the law of dP1/dP0 under P0.

    ``law`` is the loss of (P1, P0), all atoms; ``reverse_mass`` is P0's mass where P1 has none (ratio 0).
    Masses and positive losses are rounded up, so the result dominates the exact pair.
    """
    ratios = [(math.exp(loss), mass * math.exp(-loss)) for loss, mass in law.atoms()]
    if reverse_mass:
        ratios.insert(0, (0.0, reverse_mass))
    masses: defaultdict[float, float] = defaultdict(float)
    infinity = rate * law.infinity_mass
    for high, low, weight in _countermonotone(ratios):
        top, bottom = _mixed(rate, high), _mixed(rate, low)
        if bottom == 0.0:  # only at rate 1: an output that only one of the two can give
            infinity += weight * top
            continue
        loss = up(math.log1p(rate * (high - low) / bottom), 8) if high > low else 0.0
        masses[loss] += weight * top
        if loss > 0:
            masses[-loss] += weight * bottom
    points = tuple(sorted((loss, up(mass, _EXCESS)) for loss, mass in masses.items() if mass > 0))
    beyond = up(infinity, 8) if infinity else 0.0
    most = points[-1][0] if points else 0.0
    return AtomicLaw(points, beyond, 4 * _EXCESS * EPS, 32 * EPS * most, REPLACE_THEOREM)


def _mixed(rate: float, ratio: float) -> float:
    return (1.0 - rate) + rate * ratio


def _countermonotone(ratios: list[tuple[float, float]]) -> list[tuple[float, float, float]]:
    """(F^-1(u), F^-1(1 - u), length of u) for u in (1/2, 1): the largest ratio meets the smallest.

    ``ratios`` in increasing order; the other half is the mirror image. A remainder carries the rounding of
    the subtractions before it; a piece is given its length plus that rounding, so no piece is shorter than
    the exact one.
    """
    out = []
    left, error = [mass for _, mass in ratios], [0.0] * len(ratios)
    i, j = len(ratios) - 1, 0
    while i > j:
        shorter = i if left[i] <= left[j] else j
        piece = left[shorter]
        out.append((ratios[i][0], ratios[j][0], piece + error[shorter]))
        for k in (i, j):
            error[k] += EPS * left[k]
            left[k] -= piece
        i, j = i - (left[i] <= error[i]), j + (left[j] <= error[j])
    if i == j:
        out.append((ratios[i][0], ratios[i][0], left[i] + error[i]))
    return out
