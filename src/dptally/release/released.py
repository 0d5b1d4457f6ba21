"""What a release is: a value that may be published, and the mechanism that accounts for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dptally.later import later
from dptally.law.adjacency import Adjacency
from dptally.mechanisms import Mechanism

__all__ = ["ROW", "Released"]

ROW = "row"


@dataclass(frozen=True, slots=True)
class Released:
    """A published value, and the ``mechanism`` that feeds the accountant and the ledger.

    Nothing but ``value`` depends on the data. ``adjacency`` is the one under which the mechanism holds; None
    where it holds under both. ``unit`` is what one record of the data was: a ``"row"``, or all that is known
    of a person (``"person:<column>"``).
    """

    value: Any
    mechanism: Mechanism
    query: str
    adjacency: Adjacency | None = None
    unit: str = ROW

    def _repr_html_(self) -> str:
        return str(later("released_html")(self))

    def _repr_markdown_(self) -> str:
        return str(later("released_markdown")(self))
