"""What to write instead: the smallest noise with which a refused spend would have fitted."""

from __future__ import annotations

import math
from collections.abc import Callable

from dptally.ledger.patience import TookTooLong, within
from dptally.ledger.pricing import work_of
from dptally.mechanisms.mechanism import Mechanism

__all__ = ["fitting_noise"]

_MOST = 1e6
_PATIENCE = 0.2  # seconds: a hint must not cost more than the price did
_WORK = 20.0  # milliseconds of one price beyond which no hint is looked for


def fitting_noise(plan: Mechanism, fits: Callable[[Mechanism], bool]) -> str:
    """A sentence such as "It fits with sigma >= 6.46, ...", or nothing where the plan has no single noise
    parameter.
    """
    if len(plan.parts) != 1:
        return ""
    if work_of(plan) > _WORK:
        return ""
    try:
        return within(_PATIENCE, lambda: _searched(plan, fits))
    except TookTooLong:
        return ""


def _searched(plan: Mechanism, fits: Callable[[Mechanism], bool]) -> str:
    ((mechanism, count),) = plan.parts
    parameters = mechanism.parameters()
    name = mechanism.noise_parameter()
    if name is None:
        return ""

    def fits_at(value: float) -> bool:
        return fits(count * type(mechanism)(**{**parameters, name: value}))

    low = float(parameters[name])
    high = low * _MOST
    if not fits_at(high):
        return ""
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if fits_at(middle) else (middle, high)
    shown = _up_to_digits(high, 3)
    return f"It fits with {name} >= {shown:.6g}, or ask the owner for a new budget." if fits_at(shown) else ""


def _up_to_digits(value: float, digits: int) -> float:
    step = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    return math.ceil(value / step) * step
