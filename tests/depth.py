"""How many random questions the suite asks: a third of what ``make soak`` asks (DPTALLY_SOAK=1)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["SOAK", "sparse", "thinned"]

Row = TypeVar("Row")

SOAK = bool(os.environ.get("DPTALLY_SOAK"))


def thinned(number: int) -> int:
    """All of them in a soak, a third otherwise."""
    return number if SOAK else -(-number // 3)


def sparse(rows: Sequence[Row]) -> Sequence[Row]:
    """All rows of a table in a soak, every third otherwise."""
    return rows if SOAK else rows[::3]
