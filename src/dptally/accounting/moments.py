"""What the frameworks take from a composed law, rounded outwards: its log-moment and its mass at infinity."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from dptally.checks import Floats
from dptally.errors import InvalidType, Unanswerable
from dptally.law import Composition, Law
from dptally.numerics.rounding import EPS

__all__ = [
    "MOMENT_TRUST",
    "Asked",
    "Checked",
    "Directed",
    "checked",
    "divergences",
    "infinity_mass",
    "log_moment_upper",
    "log_moment_upper_or_raise",
    "remaining_delta",
    "supremum",
]

_TAKE_PLANS = ("dptally.accounting", "dptally.meaning")
MOMENT_TRUST = 256 * EPS  # the relative error that a law's log_moment may have; widened over in every bound


class Directed(Protocol):
    """Anything that states its composed law once for each direction: a mechanism or a plan."""

    def directions(self) -> tuple[Composition, ...]: ...


#: what every framework takes: a plan; a sequence of its directions is still accepted, and deprecated
Asked = Directed | Sequence[Composition]


class Checked(tuple[Composition, ...]):
    """Directions that one framework hands to another: looked at already."""

    __slots__ = ()


def checked(plan: Asked) -> tuple[Composition, ...]:
    """The directions of a plan (or those given) as a non-empty tuple of compositions."""
    if isinstance(plan, Checked):
        return plan
    stated = getattr(plan, "directions", None)
    if callable(stated):
        directions = Checked(stated())  # pyright: ignore[reportArgumentType]  # checked below
    elif isinstance(plan, Sequence):
        directions = Checked(plan)
    else:
        raise InvalidType("plan", "a mechanism or a plan (or the non-empty sequence of its directions)", plan)
    if not directions or not all(isinstance(composition, Composition) for composition in directions):
        raise InvalidType("plan", "a mechanism or a plan (or the non-empty sequence of its directions)", plan)
    if not callable(stated):
        _deprecate_directions()
    return directions


def divergences(plan: Asked) -> tuple[Composition, ...]:
    """The directions as the frameworks of Renyi divergences take them: see ``Law.divergences``."""
    return Checked(composition.divergences() for composition in checked(plan))


def _deprecate_directions() -> None:
    """Warn whoever hands over directions from outside the package: the plan itself says more."""
    frame, level = sys._getframe(2), 3
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_TAKE_PLANS):
        frame, level = frame.f_back, level + 1
    if not frame.f_globals.get("__name__", "").startswith("dptally."):
        text = "the directions of a plan are deprecated here; pass the plan itself: f(plan), not f(plan.directions())"
        warnings.warn(text, DeprecationWarning, stacklevel=level)


def log_moment_upper(composition: Composition, t: Floats) -> Floats:
    """An upper bound of K(t), t > 0, elementwise; +inf where a law cannot compute it."""
    bound = _upper(composition, t, _remembered)
    return np.where(np.isnan(bound), np.inf, bound)


def log_moment_upper_or_raise(composition: Composition, t: Floats) -> Floats:
    """The same; a law that cannot compute its moment says so itself."""
    return _upper(composition, t, lambda law, at: law.log_moment_and_error(at))


def _upper(
    composition: Composition, t: Floats, moment_and_error: Callable[[Law, Floats], tuple[Floats, Floats]]
) -> Floats:
    """Each law states its error, and products and sum are rounded up."""
    total, size, error = np.zeros((3, *t.shape))
    with np.errstate(over="ignore", invalid="ignore"):
        for law, n in composition.parts:
            moment, doubt = moment_and_error(law, t)
            total, size, error = total + n * moment, size + np.abs(n * moment), error + n * doubt
        return np.asarray(total + error * (1 + 16 * EPS) + EPS * (len(composition.parts) + 2) * size)


def _remembered(law: Law, t: Floats) -> tuple[Floats, Floats]:
    moment, doubt = _kept(law, t.tobytes())
    return moment.reshape(t.shape), doubt.reshape(t.shape)


@lru_cache(maxsize=256)
def _kept(law: Law, orders: bytes) -> tuple[Floats, Floats]:
    """One law at one array of orders: the same for every count, and every framework begins with the same orders."""
    moment, doubt = _moment_or_inf(law, np.frombuffer(orders))
    return moment, doubt


def _moment_or_inf(law: Law, t: Floats) -> tuple[Floats, Floats]:
    """K(t) and its error, +inf where the law cannot compute it: an upper bound, so that such an order is not chosen."""
    try:
        return law.log_moment_and_error(t)
    except Unanswerable:
        if t.size == 1:
            return np.full(t.shape, np.inf), np.zeros(t.shape)
        half = t.size // 2
        halves = _moment_or_inf(law, t[:half]), _moment_or_inf(law, t[half:])
        return np.concatenate([halves[0][0], halves[1][0]]), np.concatenate([halves[0][1], halves[1][1]])


def supremum(composition: Composition) -> float:
    """The supremum of the finite loss of the composition, at least 0, rounded up; inf if unbounded."""
    return max(composition.supremum_interval.upper, 0.0)


def infinity_mass(composition: Composition) -> tuple[float, float]:
    """Certified (lower, upper) bounds of P(L = inf) = 1 - prod (1 - p_j)^n_j."""
    return composition.infinity_mass_interval.lower, composition.infinity_mass_interval.upper


def remaining_delta(composition: Composition, delta: float) -> float | None:
    """A lower bound of delta - P(L = inf): what is left for the finite losses; None where delta is certainly
    too small.

    Where delta and the mass agree to rounding the question has no certain answer and is refused.
    """
    lower, upper = infinity_mass(composition)
    if upper == 0:
        return delta
    if delta < lower:
        return None
    if delta < upper:
        raise Unanswerable(
            f"delta {delta!r} equals the probability {upper!r} of an infinite loss to within rounding; "
            "ask for a larger delta"
        )
    return 0.0 if delta == upper else max(math.nextafter(delta - upper, 0.0), 0.0)
