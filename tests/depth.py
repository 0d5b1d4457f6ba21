"""How many random questions the suite asks: a tenth of what ``make soak`` asks (DPTALLY_SOAK=1)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["SOAK", "sparse", "thinned"]

Row = TypeVar("Row")

SOAK = bool(os.environ.get("DPTALLY_SOAK"))


def thinned(number: int) -> int:
    """All of them in a soak, a tenth otherwise."""
    return number if SOAK else -(-number // 10)


def sparse(rows: Sequence[Row], every: int = 10) -> Sequence[Row]:
    """All rows of a table in a soak, one of ``every`` otherwise."""
    return rows if SOAK else rows[::every]
