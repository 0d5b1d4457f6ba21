"""The reference values of tests/golden.json: mpmath at 60 and 90 digits, agreeing to 31; inputs are exact
decimals.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

_DIGITS = 40


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, Any]]:
    document = json.loads((Path(__file__).parent / "golden.json").read_text())
    return {entry["id"]: entry for entry in document["values"]}


def ids(prefix: str) -> list[str]:
    """The ids that start with ``prefix``, in the order of the file."""
    return [name for name in _table() if name.startswith(prefix)]


def value(name: str) -> float:
    return float(_table()[name]["value_30"])


def exact(name: str) -> mpf:
    """All 30 digits."""
    with mp.workdps(_DIGITS):
        return mpf(_table()[name]["value_30"])


def inputs(name: str) -> dict[str, Any]:
    """Numbers as floats (integers stay integers); words stay words."""
    return {key: number(text) for key, text in _table()[name]["inputs"].items()}


def number(text: Any) -> Any:
    """'0.5', '1e4', '1+1e-6', 'inf' as floats; what is no number is returned as it is."""
    if not isinstance(text, str):
        return text
    if text == "inf":
        return math.inf
    if text.startswith("1+"):
        return 1 + float(text[2:])
    try:
        return float(text)
    except ValueError:
        return text
