"""Divergences between distributions and the inequalities between them. A module loads on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dptally.divergences import densities as densities
    from dptally.divergences import finite as finite
    from dptally.divergences import inequalities as inequalities

_MODULES = ("densities", "finite", "inequalities")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
