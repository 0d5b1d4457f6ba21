"""The budget of a declared menu: each spend is one of its items, and their number is the meter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from dptally.accounting import adaptive
from dptally.errors import InvalidArgument
from dptally.ledger.filters import FILTERS, Filter, Prices, filter_for
from dptally.mechanisms.json import from_json, to_json
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.menu import Menu

__all__ = ["MenuFilter", "filter_of", "menu_text", "rule_for"]


class MenuFilter(Filter):
    """At most so many uses of the items, in any order and chosen after any answers; see docs/adaptive.md.

    The account's guarantee is the menu's own: (epsilon, menu.delta(epsilon)) for every epsilon. The odometer reads the
    profile of the uses so far, at delta / uses, so that it holds at all times at once.
    """

    kind, budget, parameters, symbol = "menu", "Menu", ("uses",), "uses"
    theorem = "docs/adaptive.md, Theorems 1 and 2: the largest profile of any adaptive use of a declared menu"
    reason = "it is not an item of the menu"
    takes_failure = False

    def __init__(self, menu: Menu) -> None:
        self.menu = menu

    def limits(self, parameters: Mapping[str, float], _orders: Sequence[float], /) -> tuple[Fraction, ...]:
        return (Fraction(parameters["uses"]),)

    def price(self, plan: Mechanism, _orders: Sequence[float], /) -> Prices:
        return (Fraction(self.menu.uses_of(plan)),), Fraction(0)

    def odometer(self, spent: Sequence[Fraction], _orders: Sequence[float], delta: float, /) -> float:
        used = min(math.ceil(spent[0]), self.menu.uses)
        return adaptive.odometer(self.menu.pairs(), used, self.menu.uses, delta)

    def largest(self, left: float) -> float:
        """Whole uses; what the allowance adds is none."""
        return float(math.floor(left * (1 + 1e-9)))


def rule_for(budget: object) -> Filter:
    """The filter that keeps a budget of this kind."""
    if not isinstance(budget, Menu):
        return filter_for(budget)
    budget.laws()  # what has no profile, or too long a recursion, is refused before the account is opened
    return MenuFilter(budget)


def menu_text(budget: object) -> str:
    """The menu as the account's terms hold it; empty for other budgets."""
    return to_json(budget) if isinstance(budget, Menu) else ""


@lru_cache(maxsize=64)
def filter_of(kind: str, menu: str) -> Filter:
    """The filter of an account's terms."""
    if not menu:
        return FILTERS[kind]
    budget = from_json(menu)
    if not isinstance(budget, Menu):
        raise InvalidArgument("menu", "a menu", menu)
    return MenuFilter(budget)
