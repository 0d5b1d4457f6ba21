"""Many small objects made at once, all of which stay: Python would look through all it has for garbage meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]

_MANY = 500


@contextmanager
def uncollected(number: int) -> Iterator[None]:
    """Put the collection of garbage off while so many entries are written, where they are many and it is on."""
    if number < _MANY or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
