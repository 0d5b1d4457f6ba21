"""Where an account stands: caps, spent, left. Read from the totals, never from the history."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from dptally.errors import BudgetExceeded, Unanswerable
from dptally.later import later
from dptally.ledger.books import DATASET, Books
from dptally.ledger.terms import Terms
from dptally.ledger.units import Amount, as_float_down, as_float_up

__all__ = ["Balance", "Status", "balance", "exceeded", "failure_balance", "odometer", "remaining", "repeats"]


@dataclass(frozen=True, slots=True)
class Balance:
    """One holder's meter (for a Renyi account: the order with most left). ``cap`` and ``left`` are None where
    there is no cap.
    """

    holder: str
    symbol: str
    spent: float
    cap: float | None
    left: float | None

    @property
    def share(self) -> float | None:
        """The spent part of the cap, between 0 and 1 (for pictures, not a bound)."""
        return None if self.cap is None else min(self.spent / self.cap, 1.0)


@dataclass(frozen=True, slots=True)
class Status:
    """The state of one dataset: the dataset's balance, each analyst's, and the loss so far as an epsilon at
    ``delta``.
    """

    dataset: str
    budget: str
    kind: str
    theorem: str
    adjacency: str
    unit: str
    about: str
    delta: float | None
    epsilon: float | None
    remaining: float
    entries: int
    balance: Balance
    analysts: tuple[Balance, ...]
    failure: Balance | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _repr_html_(self) -> str:
        return str(later("status_html")(self))

    def _repr_markdown_(self) -> str:
        return str(later("status_markdown")(self))


def balance(terms: Terms, books: Books, holder: str) -> Balance:
    """Spent is rounded up and left is rounded down."""
    spent, cap = books.spent.get(holder, terms.zero), books.cap(holder)
    meter = 0 if cap is None else spent.leading(cap)
    symbol = terms.symbol(meter)
    if cap is None:
        return Balance(holder, symbol, terms.number_up(spent.meters[meter]), None, None)
    left = cap.meters[meter] - spent.meters[meter]
    return Balance(
        holder,
        symbol,
        terms.number_up(spent.meters[meter]),
        terms.number_down(cap.meters[meter]),
        terms.number_down(left),
    )


def failure_balance(terms: Terms, books: Books, holder: str = DATASET) -> Balance | None:
    """The failure probability that is spent and left, where the account keeps one."""
    cap = books.cap(holder)
    if not terms.cap.failure or cap is None:
        return None
    spent, digits = books.spent.get(holder, terms.zero).failure, terms.failure_digits
    left = as_float_down(cap.failure - spent, digits)
    return Balance(holder, "failure probability", as_float_up(spent, digits), as_float_down(cap.failure, digits), left)


def remaining(terms: Terms, books: Books, holder: str = DATASET) -> float:
    """The parameter of the largest guarantee of the budget's kind that still fits, rounded down."""
    best = math.inf
    for name in {DATASET, holder}:
        left = balance(terms, books, name).left
        if left is not None:
            best = min(best, left)
    return terms.filter.largest(max(best, 0.0))


def repeats(terms: Terms, books: Books, cost: Amount) -> int | None:
    """How many more spends of this cost the dataset can pay for; None if it costs nothing."""
    spent, cap = books.spent.get(DATASET, terms.zero), terms.cap
    if not any(cost.meters) and not cost.failure:
        return None
    fits = max(
        (limit - before) // units if units else 2**62
        for limit, before, units in zip(cap.meters, spent.meters, cost.meters, strict=True)
    )
    if cost.failure:
        fits = min(fits, (cap.failure - spent.failure) // cost.failure)
    return max(fits, 0)


def odometer(terms: Terms, books: Books, delta: float) -> float:
    """An epsilon for everything spent so far, at all times at once, except with probability delta."""
    spent = books.spent.get(DATASET, terms.zero)
    if spent == terms.zero:
        return 0.0
    rest = delta
    if terms.cap.failure:  # infinite losses have at most the probability that the account sets apart for them
        rest = math.nextafter(delta - as_float_up(terms.cap.failure, terms.failure_digits), -math.inf)
        if not rest > 0:
            raise Unanswerable(
                f"the account sets {as_float_up(terms.cap.failure, terms.failure_digits):.3g} of delta apart "
                "for plans that fail; "
                f"ask for a larger delta than {delta:.3g}"
            )
    return terms.filter.odometer(terms.exact(spent), terms.orders, rest)


def exceeded(
    dataset: str, terms: Terms, books: Books, holder: str, cost: Amount, partition: str, part: str, hint: str
) -> BudgetExceeded:
    """The refusal, with its numbers, on the open meter that would be passed by least."""
    cap, spent = books.cap(holder) or terms.cap, books.spent.get(holder, terms.zero)
    total, _ = books.after(holder, cost, partition, part)
    if total.failure > cap.failure:
        digits, kind = terms.failure_digits, "failure probability"
        numbers = cap.failure, spent.failure, total.failure
    else:
        candidates = [m for m in range(len(cap.meters)) if spent.meters[m] <= cap.meters[m]] or [0]
        meter = max(candidates, key=lambda m: cap.meters[m] - total.meters[m])
        digits, kind = terms.digits, terms.symbol(meter)
        numbers = cap.meters[meter], spent.meters[meter], total.meters[meter]
    limit, before, after = numbers
    return BudgetExceeded(
        dataset=dataset,
        holder=holder,
        kind=kind,
        cap=as_float_down(limit, digits),
        spent=as_float_up(before, digits),
        requested=as_float_up(after - before, digits),
        left=as_float_down(limit - before, digits),
        hint=hint,
    )
