"""What was run: frozen values, one file each; declared guarantees; sampling; composition; JSON; the registry.

A name loads its module on first use: a plan waits for its own mechanisms only. To add a mechanism, see registry.py.
"""

from __future__ import annotations

import importlib
from typing import Any

from dptally.mechanisms.table import TABLE

#: name -> module. No module bears the name of what it exports: loading it would hide the export
_HOME = {name: row.module for name, row in TABLE.items()} | {
    "ADD_REMOVE": "dptally.law.adjacency",
    "REPLACE": "dptally.law.adjacency",
    "Adjacency": "dptally.law.adjacency",
    "Mechanism": "dptally.mechanisms.mechanism",
    "from_json": "dptally.mechanisms.json",
    "register": "dptally.mechanisms.registry",
    "sensitivity": "dptally.mechanisms.matrices.strategy",
    "to_json": "dptally.mechanisms.json",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
