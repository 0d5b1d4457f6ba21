"""What the ending of a file's name asks for."""

from __future__ import annotations

from pathlib import Path

__all__ = ["by_ending"]


def by_ending(output: Path | None) -> str:
    """The format of a page that is written to this file, or to the screen.

    >>> by_ending(Path("card.html")), by_ending(None)
    ('html', 'markdown')
    """
    endings = {".html": "html", ".htm": "html", ".json": "json"}
    return "markdown" if output is None else endings.get(output.suffix.lower(), "markdown")
