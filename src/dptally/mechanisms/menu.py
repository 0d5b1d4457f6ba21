"""A declared menu: steps that are chosen after earlier answers, from a list that is fixed before the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally import checks
from dptally.accounting import adaptive
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.law import Law
from dptally.laws.tabulated import law_of_guarantees
from dptally.mechanisms.assumption import Assumption, joined
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared

__all__ = ["Menu"]

_MOST_ITEMS, _MOST_USES = 64, 10_000
_THEOREM = "docs/adaptive.md, Theorems 1 and 2: the largest profile of any adaptive use of the menu"


def _example() -> dict[str, object]:
    from dptally.mechanisms.laplace import Laplace
    from dptally.mechanisms.pure_dp import PureDP

    return {"items": (Laplace(5.0), PureDP(0.5)), "uses": 2}


@declared(
    section="composition",
    plan="menu",
    example=_example,
    refuses={"items": ((), 1.0, None, "a", (1.0,)), "uses": (10**6,)},
    zero=("uses",),
)
@dataclass(frozen=True, slots=True, repr=False)
class Menu(Mechanism):
    """At most ``uses`` runs of mechanisms from ``items``, each chosen with all earlier answers in view.

    A plan fixes its steps beforehand; a menu fixes only what may be asked, and bounds every way of choosing. Each item
    may be used again and again, and an item may be a plan. In a ledger it is a budget: ``ledger.create(name,
    budget=Menu(...))``.

    >>> from dptally.mechanisms.pure_dp import PureDP
    >>> menu = Menu([PureDP(0.3), PureDP(1.0)], uses=2)
    >>> round(menu.delta(0.7), 4), round((PureDP(0.3) + PureDP(1.0)).delta(0.7), 4)
    (0.3888, 0.1895)
    """

    items: tuple[Mechanism, ...]
    uses: int
    json_name: ClassVar[str] = "menu"
    theorem: ClassVar[str] = _THEOREM

    def __post_init__(self) -> None:
        given = checks.items("items", "a list of mechanisms", self.items)
        if not given or not all(isinstance(item, Mechanism) for item in given):
            raise InvalidType("items", "a list of mechanisms, at least one", given)
        if any(isinstance(part, Menu) for item in given for part, _ in item.parts):
            raise InvalidArgument("items", "mechanisms, not menus", given, "put the items of all into one menu")
        ordered = tuple(sorted(set(given), key=lambda item: (type(item).__name__, repr(item))))
        if len(ordered) > _MOST_ITEMS:
            raise InvalidArgument("items", f"at most {_MOST_ITEMS} mechanisms", len(ordered))
        object.__setattr__(self, "items", ordered)
        object.__setattr__(self, "uses", checks.count("uses", self.uses))
        if self.uses > _MOST_USES:
            raise InvalidArgument("uses", f"at most {_MOST_USES}", self.uses)

    def pairs(self) -> tuple[adaptive.Item, ...]:
        """The composed losses of every item: remove and add."""
        return tuple(item._both_directions() for item in self.items)

    def laws(self) -> tuple[Law, ...]:
        """The pair that dominates whatever keeps the table of guarantees."""
        law = law_of_guarantees(adaptive.menu_table(self.pairs(), self.uses).points)
        return () if law is None else (law,)

    def laws_below(self) -> tuple[Law, ...] | None:
        return ()

    def why_wide(self) -> str:
        return "an upper bound of every adaptive use; nothing is claimed from below"

    def assumptions(self) -> tuple[Assumption, ...]:
        text = (
            "menu: every step is one of the items, at most {} of them, and the menu was fixed before the first answer"
        )
        own = Assumption("other", text, (str(self.uses),))
        return joined((*(one for item in self.items for one in item.assumptions()), own))

    def grouped(self, size: int) -> Menu:
        """Every item for the group."""
        return Menu(tuple(item.group(size) for item in self.items), self.uses)

    def noise_parameter(self) -> str | None:
        return None

    def uses_of(self, plan: Mechanism) -> int:
        """How many uses of the menu a plan is; refused where some part of it is not an item."""
        if plan in self.items:
            return 1
        strange = [part for part, _ in plan.parts if part not in self.items]
        if strange:
            raise Unanswerable(f"{strange[0]!r} is not an item of the menu {self.items!r}")
        return sum(n for _, n in plan.parts)
