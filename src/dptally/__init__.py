"""dptally: the privacy accountant. ``import dptally as dp``; the names below are the public contract.

Importing costs next to nothing; every name loads its module on first use, and with it numpy and the compiled
functions of scipy.special.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    # values and errors
    "Interval": "interval",
    "DptallyError": "errors",
    "InvalidArgument": "errors",
    "InvalidType": "errors",
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
    "Composed": "mechanisms",
    "Gaussian": "mechanisms",
    "Laplace": "mechanisms",
    "RandomizedResponse": "mechanisms",
    "DiscreteGaussian": "mechanisms",
    "DiscreteLaplace": "mechanisms",
    "PureDP": "mechanisms",
    "ApproxDP": "mechanisms",
    "ZCDP": "mechanisms",
    "RenyiDP": "mechanisms",
    "AlphaDP": "mechanisms",
    "GaussianDP": "mechanisms",
    "Profile": "mechanisms",
    "PoissonSampled": "mechanisms",
    "dpsgd": "mechanisms",
    "Adjacency": "mechanisms",
    "ADD_REMOVE": "mechanisms",
    "REPLACE": "mechanisms",
    "to_json": "mechanisms",
    "from_json": "mechanisms",
    "compare": "answers.compare",
    "convert": "answers.convert",
    "Accountant": "answers.accountant",
    # tools
    "calibrate": "calibration",
    "Ledger": "ledger",
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
    "ledger",
    "meaning",
    "mechanisms",
    "noise",
    "release",
    "report",
    "tables",
)

__all__ = ["__version__", *_HOME, *_MODULES]


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
