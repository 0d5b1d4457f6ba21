"""How many random questions the suite asks: a third of what ``make soak`` asks (DPTALLY_SOAK=1)."""

from __future__ import annotations

import os

__all__ = ["SOAK", "thinned"]

SOAK = bool(os.environ.get("DPTALLY_SOAK"))


def thinned(number: int) -> int:
    """All of them in a soak, a third otherwise."""
    return number if SOAK else -(-number // 3)
