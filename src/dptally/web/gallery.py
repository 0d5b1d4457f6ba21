"""The founding papers, judged: what ``papers/`` found, kept as data beside the page (``make papers`` writes it)."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = ["papers"]

_FOUND = Path(__file__).resolve().parent / "papers.json"


@lru_cache(maxsize=1)
def papers() -> list[dict[str, Any]]:
    """Each paper with its exhibits: title, verdict, what it says, what we get, where they differ, tables."""
    found: list[dict[str, Any]] = json.loads(_FOUND.read_text(encoding="utf-8"))
    return found
