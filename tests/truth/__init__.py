"""Rigorous references in ball arithmetic (python-flint), independent of the library's own numerics.

Every function takes exact inputs (a float means that double, a string the decimal written) and returns an
``arb`` ball that contains the truth; ``floats(ball)`` gives the outward-rounded pair of doubles.
``epsilon_is_within`` checks an interval of epsilon without solving for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flint import arb

from .balls import Number as Number
from .balls import ball as ball
from .balls import floats as floats
from .closed import approx_delta as approx_delta
from .closed import discrete_delta as discrete_delta
from .closed import gaussian_delta as gaussian_delta
from .closed import randomized_response_delta as randomized_response_delta
from .closed import sigma_delta as sigma_delta
from .inversion import mixture_delta as mixture_delta
from .laplace import laplace_delta as laplace_delta
from .pieces import AtomsPiece as AtomsPiece
from .pieces import GaussianPiece as GaussianPiece
from .pieces import LaplacePiece as LaplacePiece
from .pieces import Piece as Piece
from .pieces import SampledPiece as SampledPiece
from .sampled import one_step_delta as one_step_delta
from .two_steps import two_step_delta as two_step_delta


def sampled_gaussian_delta(
    sigma: Number, q: Number, steps: int, epsilon: Number, direction: str, digits: int = 20
) -> arb:
    """delta(eps) of ``steps`` Poisson-sampled Gaussians in one direction, "remove" or "add".

    Closed form for one step or q = 1, an integral for two; otherwise inversion: slow, or refused
    (ArithmeticError), below some 30 steps.
    """
    if ball(q) == 1:
        return sigma_delta(sigma, epsilon, steps)
    if steps == 1:
        return one_step_delta(sigma, q, epsilon, direction)
    if steps == 2:
        return two_step_delta(sigma, q, epsilon, direction, digits)
    return mixture_delta([SampledPiece(sigma, q, direction, steps)], epsilon, digits)


def epsilon_is_within(lower: float, upper: float, delta: Number, *delta_of: Callable[[float], arb]) -> bool:
    """Whether the smallest epsilon >= 0 with every delta_of(epsilon) <= delta certainly lies in [lower,
    upper].

    delta_of is non-increasing, so it is enough that delta_of(upper) <= delta for every direction, and that
    delta_of(lower) >= delta for one of them (or lower <= 0).
    """
    if not 0 <= lower <= upper:
        return False
    target = ball(delta)
    if math.isfinite(upper) and not all(f(upper) <= target for f in delta_of):
        return False
    return lower == 0 or any(f(lower) >= target for f in delta_of)
