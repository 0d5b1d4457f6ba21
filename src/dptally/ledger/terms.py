"""The terms of one account: its budget in exact units, whom it protects, and the price of a plan in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dptally import checks
from dptally.errors import CannotPrice, InvalidArgument, InvalidType, Unanswerable
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.ledger.filters import Filter, kinds_that_can_price, needs_failure
from dptally.ledger.menus import MenuFilter, filter_of, menu_text, rule_for
from dptally.ledger.names import alike, identifier
from dptally.ledger.reading import read_object
from dptally.ledger.units import GONE, Amount, as_float_down, as_float_up, digits_for, units_down, units_up
from dptally.mechanisms.mechanism import Mechanism

__all__ = ["ALLOWANCE", "ROW", "Parts", "Terms", "amount_from_json", "amount_to_json", "checked_unit", "declared_parts"]

#: how far above the stated budget the enforced cap lies, relative: room for costs that were rounded up to
#: doubles
ALLOWANCE = 1e-12

#: the privacy unit of an account unless it says otherwise, and of every account from before version 0.2
ROW = "row"
_PERSON = "person:"
_ANY = ""  # the partition whose parts may be named in every partition

#: partition -> its parts. Accounts from before version 0.2 declared none: None
Parts = Mapping[str, tuple[str, ...]]


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
    unit: str = ROW
    parts: Parts | None = field(hash=False, default=None)
    failure: float = 0.0
    menu: str = ""

    @classmethod
    def agreed(
        cls,
        budget: Mechanism,
        delta: float | None,
        orders: Sequence[float] | None,
        adjacency: Adjacency,
        allowance: float,
        about: str,
        unit: str = ROW,
        parts: Mapping[str, Sequence[str]] | Sequence[Any] = (),
        failure: float = 0.0,
    ) -> Terms:
        rule = rule_for(budget)
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
        declared = declared_parts(parts)
        if declared and adjacency is not ADD_REMOVE:
            raise InvalidArgument(
                "parts", "left out under REPLACE: a record may leave one part and enter another", parts
            )
        failure = _failure_share(failure, rule, delta)
        kept = rule.orders(parameters, orders)
        shares, lost = rule.limits(parameters, kept), Fraction(failure) or rule.failure_limit(parameters)
        digits = digits_for(max(shares))
        failure_digits = digits_for(lost) if lost else 0
        cap = _cap(shares, lost, digits, failure_digits, allowance)
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
            checked_unit("unit", unit),
            declared,
            failure,
            menu_text(budget),
        )

    @property
    def filter(self) -> Filter:
        return filter_of(self.kind, self.menu)

    @property
    def zero(self) -> Amount:
        return Amount((0,) * len(self.cap.meters))

    @property
    def stated(self) -> str:
        """The budget as its owner wrote it."""
        if isinstance(self.filter, MenuFilter):
            return repr(self.filter.menu)
        inner = ", ".join(f"{name}={self.parameters[name]!r}" for name in self.filter.parameters)
        return f"{self.filter.budget}({inner})" + (f" with failure {self.failure!r}" if self.failure else "")

    def check_part(self, partition: str, part: str) -> None:
        """Parts compose in parallel only where they are disjoint, so they are those of the account's terms."""
        if self.parts is None:
            return
        known = (*self.parts.get(partition, ()), *self.parts.get(_ANY, ()))
        if part in known:
            return
        twin = alike(part, known)
        looks = f" (it looks like the declared {twin!r}, and is not it)" if twin is not None else ""
        declared = "declared when the account was created: create(..., parts={'ward': ('A1', 'A2')})"
        raise InvalidArgument("part", f"one that was {declared}{looks}", f"{partition}={part}")

    def share(self, budget: Mechanism, argument: str = "budget") -> Amount:
        """An analyst's own cap inside this account; the budget must be of the account's kind."""
        rule = rule_for(budget)
        if rule.kind != self.kind:
            raise InvalidArgument(argument, f"a {self.filter.budget} like the dataset's budget", budget)
        if isinstance(self.filter, MenuFilter) and budget.parameters()["items"] != self.filter.menu.items:
            raise InvalidArgument(argument, "a Menu of the same items as the dataset's, with its own uses", budget)
        parameters = rule.read(budget)
        shares = rule.limits(parameters, self.orders)
        if not max(shares) > 0:
            raise InvalidArgument(argument, "large enough for some Renyi order that the account keeps", budget)
        lost = Fraction(self.failure) or rule.failure_limit(parameters)  # analysts share the failure probability
        return _cap(shares, lost, self.digits, self.failure_digits, self.allowance)

    def price(self, plan: Mechanism) -> Amount:
        """What the plan costs, in units, rounded up."""
        return _price(self.kind, self.orders, self.digits, self.failure_digits, self.failure > 0, plan, self.menu)

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
        stored = {"menu": self.menu} if self.menu else {}  # accounts of other kinds are written as ever
        return stored | {
            "about": self.about,
            "adjacency": self.adjacency.value,
            "allowance": repr(self.allowance),
            "cap": amount_to_json(self.cap),
            "delta": None if self.delta is None else repr(self.delta),
            "digits": self.digits,
            "failure": repr(self.failure),
            "failure_digits": self.failure_digits,
            "kind": self.kind,
            "orders": [repr(order) for order in self.orders],
            "parameters": {name: repr(value) for name, value in self.parameters.items()},
            "parts": None if self.parts is None else {name: list(parts) for name, parts in self.parts.items()},
            "unit": self.unit,
        }

    @staticmethod
    @lru_cache(maxsize=1024)
    def from_json(text: str) -> Terms:
        """Read terms back. Caps are those agreed on, not computed again: no later version changes them."""
        raw = read_object(text, "terms")
        parts = raw.get("parts")
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
            unit=raw.get("unit", ROW),
            parts=None if parts is None else {name: tuple(names) for name, names in parts.items()},
            failure=float(raw.get("failure", 0.0)),
            menu=raw.get("menu", ""),
        )


def checked_unit(argument: str, unit: object) -> str:
    """Whom one unit of the guarantee protects: ``row``, or ``person:<column>`` for all rows of one person.

    >>> checked_unit("unit", "person:patient_id")
    'person:patient_id'
    """
    text = identifier(argument, unit)
    if text == ROW or (text.startswith(_PERSON) and text == _PERSON + text.removeprefix(_PERSON).strip() != _PERSON):
        return text
    raise InvalidArgument(argument, "'row', or 'person:<column>' with the column that names the person", unit)


def declared_parts(parts: object) -> dict[str, tuple[str, ...]]:
    """The disjoint parts of an account: a dictionary {partition: parts}, pairs (partition, part), or parts
    alone, which may then be named in every partition. Two that look alike are refused.

    >>> declared_parts([("ward", "A1"), ("ward", "A2")])
    {'ward': ('A1', 'A2')}
    """
    found: dict[str, list[str]] = {}
    for partition, part in _pairs(parts):
        known = found.setdefault(partition, [])
        twin = alike(part, known)
        if twin is not None:
            raise InvalidArgument("parts", f"names that do not look alike ({part!r} looks like {twin!r})", part)
        if part not in known:
            known.append(part)
    return {partition: tuple(sorted(known)) for partition, known in sorted(found.items())}


def _pairs(parts: object) -> Iterator[tuple[str, str]]:
    wanted = "a dictionary {partition: parts}, pairs (partition, part), or parts"
    if isinstance(parts, (str, bytes)) or not isinstance(parts, Iterable):
        raise InvalidType("parts", wanted, parts)
    listed = (
        parts.items()
        if isinstance(parts, Mapping)
        else [(_ANY, [one]) if isinstance(one, str) else one for one in parts]
    )
    for pair in listed:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise InvalidType("parts", wanted, pair)
        partition, inside = pair
        if isinstance(inside, bytes) or not isinstance(inside, Iterable):
            raise InvalidType("parts", wanted, inside)
        where = _ANY if partition == _ANY else identifier("parts", partition)
        for part in [inside] if isinstance(inside, str) else inside:
            yield where, identifier("parts", part)


def _failure_share(failure: object, rule: Filter, delta: float | None) -> float:
    """The probability that an account sets apart for infinite losses; an ApproxDP budget has its own."""
    share = checks.nonnegative("failure", failure)
    if not share < 1:
        raise InvalidArgument("failure", "a probability below 1", failure)
    if share and not rule.takes_failure:
        raise InvalidArgument(
            "failure", f"left out for a {rule.budget} budget: half of its delta is set apart", failure
        )
    if share and delta is not None and not share < delta:
        raise InvalidArgument("failure", f"below delta {delta!r}, at which the account states an epsilon", failure)
    return share


def _cap(shares: Sequence[Fraction], failure: Fraction, digits: int, failure_digits: int, allowance: float) -> Amount:
    room = 1 + Fraction(allowance)
    meters = tuple(units_down(share * room if share > 0 else share, digits) for share in shares)
    return Amount(meters, units_down(failure * room, failure_digits))


@lru_cache(maxsize=4096)
def _price(
    kind: str, orders: tuple[float, ...], digits: int, failure_digits: int, failing: bool, plan: Mechanism, menu: str
) -> Amount:
    rule = filter_of(kind, menu)
    why = rule.reason
    try:
        prices, failure = rule.price_failing(plan) if failing else rule.price(plan, orders)
    except Unanswerable as error:
        prices, failure, why = (math.inf,), 0.0, str(error)
    if not min(prices) < math.inf:
        able = kinds_that_can_price(plan)
        instead = f"a budget of kind {', '.join(able)} could" if able else "no kind of budget could"
        if not failing and needs_failure(rule, plan):
            instead += f", and so could a {rule.budget} budget with a failure share: create(..., failure=...)"
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
