"""The only arrows back in the story: what a value is asked for, and what stands in later files and packages.

``m1 + m2`` makes a composition, which is a mechanism itself; ``plan.explain(...)`` needs every framework; a plan, an
interval or a status that a notebook shows is drawn by the reports; an error rounds its numbers to the safe side. The
modules are named here and loaded when asked; nothing else may reach up.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["LATER", "later"]

_NOTEBOOK = "dptally.report.notebook"

#: name -> the module that defines it
LATER = {
    "BestOf": "dptally.mechanisms.best_of",
    "Composed": "dptally.mechanisms.composed",
    "explain": "dptally.answers.explain",
    "measure": "dptally.gdp.measure",
    "plot": "dptally.report.plot",
    "shown_down": "dptally.numerics.shown",
    "shown_up": "dptally.numerics.shown",
    "interval_html": _NOTEBOOK,
    "intervals_html": _NOTEBOOK,
    "intervals_markdown": _NOTEBOOK,
    "plan_html": _NOTEBOOK,
    "plan_markdown": _NOTEBOOK,
    "comparison_html": _NOTEBOOK,
    "comparison_markdown": _NOTEBOOK,
    "explanation_html": _NOTEBOOK,
    "explanation_markdown": _NOTEBOOK,
    "accountant_html": _NOTEBOOK,
    "accountant_markdown": _NOTEBOOK,
    "released_html": _NOTEBOOK,
    "released_markdown": _NOTEBOOK,
    "status_html": _NOTEBOOK,
    "status_markdown": _NOTEBOOK,
    "look": "dptally.web.server",
    "serve": "dptally.web.server",
    "settings_for": "dptally.web.server",
    "Declared": "dptally.web.settings",
}


def later(question: str) -> Any:
    """The class or the function of that name."""
    return getattr(importlib.import_module(LATER[question]), question)
