"""What a plan may cost to price: its work is estimated before any of it is done.

A mechanism with a closed form is priced in microseconds, one that needs a search in milliseconds, one that
wraps another (sampling, shuffling, selection) in about a sixth of a second. A plan whose parts add up to more
than about a second is refused, at once and on every machine alike; several spends, or a batch, pay for it. What takes
longer than it was thought to is stopped after a second.
"""

from __future__ import annotations

from dptally.errors import InvalidArgument
from dptally.ledger.patience import TookTooLong, within
from dptally.ledger.terms import Terms
from dptally.ledger.units import Amount
from dptally.mechanisms.mechanism import Mechanism

__all__ = ["WORK_LIMIT", "check_work", "price_of", "priced", "work_of"]

WORK_LIMIT = 1_200  # milliseconds, about
_PATIENCE = 1.0  # seconds of processor time
_PATIENCE_OF_AUDITS = 60.0
_TRUSTED = 5.0  # milliseconds of estimated work that nobody watches
_CLOSED = ("approx_dp", "discrete_gaussian", "gaussian", "gaussian_dp", "zcdp")
_SEARCHED = ("alpha_dp", "discrete_laplace", "laplace", "randomized_response")
_MU_OF_PURE = 3.0  # the mu of a pure guarantee takes a search
_MOST_PARTS = 1_000


def work_of(plan: Mechanism) -> float:
    """An estimate of the milliseconds that pricing takes, from the kinds and the sizes of the parts alone."""
    return sum(_work(mechanism) for mechanism, _ in plan.parts)


def _work(mechanism: Mechanism) -> float:
    kind = getattr(type(mechanism), "json_name", "")
    if kind in _CLOSED:
        return 0.3
    if kind in _SEARCHED:
        return 7.0
    if kind == "pure_dp":
        return _MU_OF_PURE
    values = mechanism.parameters().values()
    if any(isinstance(value, Mechanism) for value in values):
        inner = sum(work_of(value) for value in values if isinstance(value, Mechanism))
        return 150.0 + inner
    tables = sum(len(value) for value in values if isinstance(value, tuple))
    return 1.0 + 0.1 * tables if tables else 50.0


def check_work(plan: Mechanism) -> None:
    """Refuse a plan that is too large to be priced in about a second."""
    parts = len(plan.parts)
    if parts > _MOST_PARTS:
        raise InvalidArgument("plan", f"of at most {_MOST_PARTS} different parts; it is too large", f"{parts} parts")
    work = work_of(plan)
    if work > WORK_LIMIT:
        raise InvalidArgument(
            "plan",
            f"one whose pricing takes about a second at most (this one is too large: {work / 1000:.1f} s)",
            f"{parts} different parts",
            "spend its parts one after the other, or as a batch",
        )


def price_of(terms: Terms, plan: Mechanism, seconds: float = _PATIENCE) -> Amount:
    """The price of a plan, or why it is too large to be priced."""
    if work_of(plan) <= _TRUSTED:
        return terms.price(plan)
    try:
        return within(seconds, lambda: terms.price(plan))
    except TookTooLong:
        parts = len(plan.parts)
    raise InvalidArgument(
        "plan",
        f"one whose pricing takes {seconds:g} s of processor time at most (this one is too large; nothing was debited)",
        f"{parts} different part{'s' if parts > 1 else ''}",
        "spend its parts one after the other"
        if parts > 1
        else "spend what it is known to satisfy: ApproxDP(plan.epsilon(delta), delta)",
    )


def priced(terms: Terms, plan: Mechanism) -> Amount:
    """The price of a plan that stands in a ledger. Those who booked it had a second; an audit takes its time."""
    check_work(plan)
    return price_of(terms, plan, _PATIENCE_OF_AUDITS)
