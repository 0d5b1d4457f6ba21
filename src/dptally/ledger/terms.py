"""The terms of one account: its budget in exact units, and the price of a plan in them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dptally import checks
from dptally.errors import CannotPrice, InvalidArgument, InvalidType, Unanswerable
from dptally.law.adjacency import Adjacency
from dptally.ledger.filters import FILTERS, Filter, filter_for, kinds_that_can_price
from dptally.ledger.units import GONE, Amount, as_float_down, as_float_up, digits_for, units_down, units_up
from dptally.mechanisms.mechanism import Mechanism

__all__ = ["ALLOWANCE", "Terms", "amount_from_json", "amount_to_json"]

#: how far above the stated budget the enforced cap lies, relative: room for costs that were rounded up to
#: doubles
ALLOWANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Terms:
    """What was agreed when the dataset was created."""

    kind: str
    parameters: Mapping[str, float] = field(hash=False)
    orders: tuple[float, ...]
    allowance: float
    digits: int
    failure_digits: int
    cap: Amount
    delta: float | None
    adjacency: Adjacency
    about: str

    @classmethod
    def agreed(
        cls,
        budget: Mechanism,
        delta: float | None,
        orders: Sequence[float] | None,
        adjacency: Adjacency,
        allowance: float,
        about: str,
    ) -> Terms:
        rule = filter_for(budget)
        parameters = rule.read(budget)
        if not isinstance(adjacency, Adjacency):
            raise InvalidType("adjacency", "ADD_REMOVE or REPLACE", adjacency)
        allowance = checks.nonnegative("allowance", allowance)
        if not allowance <= 1e-6:
            raise InvalidArgument("allowance", "at most 1e-6: it is there for rounding only", allowance)
        stated = parameters.get("delta")
        if delta is not None:
            delta = checks.open_probability("delta", delta)
            if stated is not None and delta != stated:
                raise InvalidArgument("delta", f"left out or equal to the budget's delta {stated!r}", delta)
        kept = rule.orders(parameters, orders)
        shares, failure = rule.limits(parameters, kept), rule.failure_limit(parameters)
        digits = digits_for(max(shares))
        failure_digits = digits_for(failure) if failure else 0
        cap = _cap(shares, failure, digits, failure_digits, allowance)
        return cls(
            rule.kind,
            parameters,
            kept,
            allowance,
            digits,
            failure_digits,
            cap,
            stated if delta is None else delta,
            adjacency,
            about,
        )

    @property
    def filter(self) -> Filter:
        return FILTERS[self.kind]

    @property
    def zero(self) -> Amount:
        return Amount((0,) * len(self.cap.meters))

    @property
    def stated(self) -> str:
        """The budget as its owner wrote it."""
        inner = ", ".join(f"{name}={self.parameters[name]!r}" for name in self.filter.parameters)
        return f"{self.filter.budget}({inner})"

    def share(self, budget: Mechanism, argument: str = "budget") -> Amount:
        """An analyst's own cap inside this account; the budget must be of the account's kind."""
        rule = filter_for(budget)
        if rule.kind != self.kind:
            raise InvalidArgument(argument, f"a {self.filter.budget} like the dataset's budget", budget)
        parameters = rule.read(budget)
        shares = rule.limits(parameters, self.orders)
        if not max(shares) > 0:
            raise InvalidArgument(argument, "large enough for some Renyi order that the account keeps", budget)
        return _cap(shares, rule.failure_limit(parameters), self.digits, self.failure_digits, self.allowance)

    def price(self, plan: Mechanism) -> Amount:
        """What the plan costs, in units, rounded up."""
        return _price(self.kind, self.orders, self.digits, self.failure_digits, plan)

    def symbol(self, meter: int) -> str:
        """What this meter counts."""
        return f"{self.filter.symbol} (order {self.orders[meter]:g})" if self.orders else self.filter.symbol

    def cheapest(self, cost: Amount) -> int:
        """The meter on which a cost is the smallest part of the cap."""
        if not self.orders:
            return 0
        return min(range(len(cost.meters)), key=lambda meter: Fraction(cost.meters[meter], self.cap.meters[meter]))

    # -- amounts as numbers ----------------------------------------------------------------------------------

    def number_up(self, units: int) -> float:
        return math.inf if units >= GONE else as_float_up(units, self.digits)

    def number_down(self, units: int) -> float:
        return as_float_down(units, self.digits)

    def exact(self, amount: Amount) -> tuple[Fraction, ...]:
        return tuple(Fraction(units) / Fraction(10) ** self.digits for units in amount.meters)

    # -- JSON ------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        return {
            "about": self.about,
            "adjacency": self.adjacency.value,
            "allowance": repr(self.allowance),
            "cap": amount_to_json(self.cap),
            "delta": None if self.delta is None else repr(self.delta),
            "digits": self.digits,
            "failure_digits": self.failure_digits,
            "kind": self.kind,
            "orders": [repr(order) for order in self.orders],
            "parameters": {name: repr(value) for name, value in self.parameters.items()},
        }

    @staticmethod
    @lru_cache(maxsize=1024)
    def from_json(text: str) -> Terms:
        """Read terms back. Caps are those agreed on, not computed again: no later version changes them."""
        raw = json.loads(text)
        return Terms(
            kind=raw["kind"],
            parameters={name: float(value) for name, value in raw["parameters"].items()},
            orders=tuple(map(float, raw["orders"])),
            allowance=float(raw["allowance"]),
            digits=raw["digits"],
            failure_digits=raw["failure_digits"],
            cap=amount_from_json(raw["cap"]),
            delta=None if raw["delta"] is None else float(raw["delta"]),
            adjacency=Adjacency(raw["adjacency"]),
            about=raw["about"],
        )


def _cap(shares: Sequence[Fraction], failure: Fraction, digits: int, failure_digits: int, allowance: float) -> Amount:
    room = 1 + Fraction(allowance)
    meters = tuple(units_down(share * room if share > 0 else share, digits) for share in shares)
    return Amount(meters, units_down(failure * room, failure_digits))


@lru_cache(maxsize=4096)
def _price(kind: str, orders: tuple[float, ...], digits: int, failure_digits: int, plan: Mechanism) -> Amount:
    rule = FILTERS[kind]
    why = rule.reason
    try:
        prices, failure = rule.price(plan, orders)
    except Unanswerable as error:
        prices, failure, why = (math.inf,), 0.0, str(error)
    if not min(prices) < math.inf:
        able = kinds_that_can_price(plan)
        instead = f"a budget of kind {', '.join(able)} could" if able else "no kind of budget could"
        raise CannotPrice(
            f"a {rule.budget} budget cannot pay for {_short(plan)}: {why}. Nothing was debited; {instead}"
        )
    return Amount(tuple(units_up(price, digits) for price in prices), units_up(failure, failure_digits))


def _short(plan: Mechanism) -> str:
    text = repr(plan)
    return text if len(text) <= 80 else text[:77] + "..."


def amount_to_json(amount: Amount) -> list[str]:
    """Units as strings (JSON readers with doubles would round them); the failure probability comes last."""
    return [*map(str, amount.meters), str(amount.failure)]


def amount_from_json(raw: Sequence[str]) -> Amount:
    return _amount(tuple(raw))


@lru_cache(maxsize=4096)
def _amount(raw: tuple[str, ...]) -> Amount:
    *meters, failure = map(int, raw)
    return Amount(tuple(meters), failure)
