"""The only arrows back in the story: what a mechanism is asked for, and what stands in later files and packages.

``m1 + m2`` makes a composition, which is a mechanism itself; ``plan.explain(...)`` needs every framework. The modules
are named here, loaded when asked, and listed as exceptions in the import contract; nothing else may reach up.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["LATER", "later"]

#: name -> the module that defines it
LATER = {
    "BestOf": "dptally.mechanisms.best_of",
    "Composed": "dptally.mechanisms.composed",
    "explain": "dptally.answers.explain",
    "measure": "dptally.gdp.measure",
}


def later(question: str) -> Any:
    """The class or the function of that name."""
    return getattr(importlib.import_module(LATER[question]), question)
