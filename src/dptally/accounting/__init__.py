"""How much it cost: one framework per file, and the certified accountant. A module loads on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dptally.accounting import alpha as alpha
    from dptally.accounting import approximate as approximate
    from dptally.accounting import certified as certified
    from dptally.accounting import concentrated as concentrated
    from dptally.accounting import gaussian as gaussian
    from dptally.accounting import group as group
    from dptally.accounting import loss as loss
    from dptally.accounting import optimal as optimal
    from dptally.accounting import pure as pure
    from dptally.accounting import renyi as renyi
    from dptally.accounting import tradeoff as tradeoff

_MODULES = (
    "alpha",
    "approximate",
    "certified",
    "concentrated",
    "gaussian",
    "group",
    "loss",
    "optimal",
    "pure",
    "renyi",
    "tradeoff",
)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
