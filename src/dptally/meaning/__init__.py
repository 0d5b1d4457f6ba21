"""What the number means: bad outcomes, Bayes factors, attacks and trade-offs.

Groups of records: ``dptally.conversions`` says how a guarantee for one record becomes one for several.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dptally.meaning import attacks as attacks
    from dptally.meaning import bayes as bayes
    from dptally.meaning import outcomes as outcomes

_MODULES = ("attacks", "bayes", "outcomes")


if not TYPE_CHECKING:  # a checker sees the imports above, and no other name

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
