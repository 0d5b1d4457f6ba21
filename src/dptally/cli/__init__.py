"""The command line. ``dptally --help`` says what it can do."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """The program ``dptally``."""
    try:
        from dptally.cli.program import run
    except ModuleNotFoundError as missing:
        if missing.name not in ("click", "rich"):
            raise
        sys.exit(f"Error: {missing.name} is not installed; write: pip install 'dptally[cli]'")
    sys.exit(run())
