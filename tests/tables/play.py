"""A ledger that keeps nothing, for tests of what happens before and after the debit."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from dptally import ADD_REMOVE


@dataclass
class PlayLedger:
    """The part of a ledger that a session uses: terms, reserve, remaining, would_exceed."""

    unit: str = "row"
    adjacency: Any = ADD_REMOVE
    kind: str = "zcdp"
    spent: list[Any] = field(default_factory=list)

    def terms(self, dataset: str) -> Any:
        return SimpleNamespace(unit=self.unit, adjacency=self.adjacency, kind=self.kind)

    def remaining(self, dataset: str, by: str = "") -> float:
        return 1.0

    def would_exceed(self, dataset: str, plan: Any, **part: str) -> bool:
        return False

    def reserve(self, dataset: str, plan: Any, **request: Any) -> Any:
        self.spent.append(plan)
        return PlayReservation(dataset, len(self.spent))


@dataclass
class PlayReservation:
    dataset: str
    number: int
    settled: bool = False
    value: Any = None

    @property
    def receipt(self) -> Any:
        return SimpleNamespace(
            dataset=self.dataset, number=self.number, cost=0.0, entry=SimpleNamespace(symbol="rho", why="", by="")
        )

    def settle(self, value: Any) -> Any:
        self.settled, self.value = True, value
        return value
