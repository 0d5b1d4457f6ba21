r"""A pair with finitely many losses that dominates whatever keeps a table of guarantees, in plain doubles.

The guarantees delta_0 >= .. >= delta_J at 0 = eps_0 < .. < eps_J hold in both directions. A law whose tail v(x) =
P(L > x) is level between knots has the profile H(eps) = int_eps^inf e^{eps - x} v(x) dx, hence

    H(eps_j) = v_j (1 - e^-h) + e^-h H(eps_j+1),      h = eps_j+1 - eps_j,

and H(eps_j) >= delta_j follows step by step from the last knot, where v_J = delta_J, if

    v_j >= delta_j + (delta_j - delta_j+1) / (e^h - 1).

Between knots H is linear in e^eps, the true profile convex: it lies below. On the other side of 0 the guarantees say
H(-eps) = 1 - e^-eps + e^-eps delta, and the same step asks for v >= 1 - e^-eps_j+1 (delta_j - delta_j+1)/(1 - e^-h).
Larger tails only raise the profile, so each is rounded up and none may be below one further right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptally.checks import Floats
from dptally.laws.atoms import AtomicLaw
from dptally.numerics.rounding import down, up

__all__ = ["Staircase", "staircase"]


@dataclass(frozen=True, slots=True)
class Staircase:
    """Losses ``knots`` in increasing order; P(L > x) is at most 1 below the first, ``tails[i]`` from knots[i] on."""

    knots: Floats
    tails: Floats

    @property
    def before(self) -> Floats:
        """The tail just below each knot."""
        return np.concatenate(([1.0], self.tails[:-1]))

    def law(self, cited: str) -> AtomicLaw:
        """The law itself: each knot has the mass by which the tail falls there."""
        return law_of_masses(self.knots, self.before - self.tails, float(self.tails[-1]), cited)


def staircase(epsilon: Floats, delta: Floats) -> Staircase:
    """``epsilon`` increases from 0; ``delta`` are upper bounds of the profile there, in both directions."""
    falling = np.minimum.accumulate(np.minimum(delta, 1.0))
    gap, drop = np.diff(epsilon), falling[:-1] - falling[1:]
    with np.errstate(over="ignore", under="ignore"):
        right = up(falling[:-1] + drop / np.expm1(gap), 16)
        left = up(1.0 - down(np.exp(-epsilon[1:]) * drop / -np.expm1(-gap), 16), 2)
    tails = np.concatenate((left[::-1], right, falling[-1:]))
    tails = np.minimum(np.maximum.accumulate(tails[::-1])[::-1], 1.0)
    return Staircase(np.concatenate((-epsilon[:0:-1], epsilon)), tails)


def law_of_masses(losses: Floats, masses: Floats, infinite: float, cited: str) -> AtomicLaw:
    """Point masses, rounded up by the caller, as a law; equal losses are joined, what Q has elsewhere is rounded up.

    E[e^-L] is at most 1 for every measure that is dominated by a pair; what it lacks is Q's mass outside.
    """
    order = np.argsort(losses, kind="stable")
    at, start = np.unique(losses[order], return_index=True)
    joined = np.add.reduceat(masses[order], start)
    kept = joined > 0
    at, joined = at[kept], joined[kept]
    with np.errstate(under="ignore", over="ignore"):
        inside = math.fsum((joined * np.exp(-at)).tolist())
    points = tuple(zip(at.tolist(), up(joined, 4).tolist(), strict=True))
    return AtomicLaw(points, infinite, reverse_mass=max(0.0, 1.0 - inside) + 1e-13, cited=cited)
