"""The only arrows back in the story: questions of a plan whose answers stand in later packages.

A plan is asked ``plan.explain(...)``, but explaining needs every framework. The modules are named here, loaded when
asked, and listed as exceptions in the import contract; nothing else below may reach up.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["LATER", "later"]

#: question -> the module that answers it, with a function of the same name
LATER = {
    "explain": "dptally.answers.explain",
    "measure": "dptally.gdp.measure",
}


def later(question: str) -> Any:
    """The function that answers this question."""
    return getattr(importlib.import_module(LATER[question]), question)
