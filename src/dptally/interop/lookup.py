"""Public names of dptally that another version may not have."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from dptally.errors import DptallyError, Unanswerable
from dptally.mechanisms import Mechanism

__all__ = ["absent", "made", "needed"]


def needed(name: str, what: str = "this event") -> Callable[..., Any]:
    """The public name ``name``; where this version has none, ``what`` is refused by that name.

    >>> needed("Gaussian")(1.0)
    Gaussian(sigma=1.0, sensitivity=1.0)
    """
    found: Callable[..., Any] | None = getattr(importlib.import_module("dptally"), name, None)
    if found is None:
        raise absent(what, name)
    return found


def absent(what: str, name: str) -> Unanswerable:
    return Unanswerable(f"refused: {what} needs dptally.{name}, which this version does not have")


def made(value: object) -> Mechanism:
    """The mechanism that a looked-up name made."""
    if not isinstance(value, Mechanism):
        raise DptallyError(f"expected a mechanism, got {type(value).__name__}")
    return value
