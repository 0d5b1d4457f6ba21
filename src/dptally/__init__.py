"""dptally: the privacy accountant. ``import dptally as dp``; the names below are the public contract.

Importing costs next to nothing; every name loads its module on first use, and with it numpy and the compiled
functions of scipy.special.
"""

from __future__ import annotations

import importlib
from typing import Any

from dptally.mechanisms.table import TABLE

__version__ = "0.2.0"

_HOME = {
    # values and errors
    "Interval": "interval",
    "IntervalArray": "interval",
    "DptallyError": "errors",
    "InvalidArgument": "errors",
    "InvalidType": "errors",
    "InvalidLaw": "errors",
    "Unanswerable": "errors",
    "CannotCalibrate": "errors",
    "MissingExtra": "errors",
    "EngineFailed": "errors",
    "RefusedExpression": "errors",
    "LedgerError": "errors",
    "BudgetExceeded": "errors",
    "CannotPrice": "errors",
    "UnknownDataset": "errors",
    "DatasetExists": "errors",
    "KeyReused": "errors",
    "TermsMismatch": "errors",
    "NotReleasable": "errors",
    "ChainBroken": "errors",
    "RolledBack": "errors",
    "SchemaTooNew": "errors",
    "LedgerUnavailable": "errors",
    # mechanisms
    "Mechanism": "mechanisms",
    "Adjacency": "mechanisms",
    "ADD_REMOVE": "mechanisms",
    "REPLACE": "mechanisms",
    "to_json": "mechanisms",
    "from_json": "mechanisms",
    "register": "mechanisms",
    "sensitivity": "mechanisms",
    **dict.fromkeys(TABLE, "mechanisms"),  # one entry for each mechanism: see mechanisms/registry.py
    "check_law": "law.validity",
    "compare": "answers.compare",
    "convert": "answers.convert",
    "Accountant": "answers.accountant",
    "sweep": "answers.sweep",
    # tools
    "calibrate": "calibration",
    "inspect_loader": "release.loaders",
    "Ledger": "ledger",
    # other tools, and the second opinion
    "from_dp_accounting": "interop",
    "from_opacus": "interop",
    "check": "opinion",
    "Verdict": "opinion",
    "Table": "tables",
    "Session": "tables",
    "private": "tables",
}
_MODULES = (
    "accounting",
    "answers",
    "audit",
    "calibration",
    "conversions",
    "divergences",
    "gdp",
    "interop",
    "ledger",
    "meaning",
    "mechanisms",
    "noise",
    "opinion",
    "release",
    "report",
    "tables",
)

__all__ = ["__version__", *_HOME, *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]  # they read __init__.pyi


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"dptally.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"dptally.{name}")
    else:
        raise AttributeError(f"module 'dptally' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
