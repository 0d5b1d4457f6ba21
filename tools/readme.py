"""What a package index shows: README.md without the links that die there, and the project's addresses.

An index shows the file alone. Links and pictures inside the repository are completed with the one address below where
there is one; without it a link keeps its words and a picture goes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: where the repository can be read, ending in a slash; empty as long as it has no public home
HOME = ""
_PICTURE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?!https?:)(?P<path>[^)\s]+)\)\n*")
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?!https?:)(?P<path>[^)\s]+)\)")


def alone(text: str, home: str = HOME) -> str:
    """The text with no link or picture that needs the repository beside it."""
    if home:
        text = _PICTURE.sub(lambda m: f"![{m['text']}]({home}{m['path']})\n\n", text)
        return _LINK.sub(lambda m: f"[{m['text']}]({home}{m['path']})", text)
    return _LINK.sub(lambda m: m["text"], _PICTURE.sub("", text))


def urls(home: str = HOME) -> dict[str, str]:
    """The addresses that an index lists; none as long as there is none to list."""
    parts = {"Source": "", "Documentation": "docs/index.md", "Changelog": "CHANGELOG.md", "Security": "SECURITY.md"}
    return {name: home + path for name, path in parts.items()} if home else {}


class Readme(MetadataHookInterface):
    """The hook that the build calls: see ``tool.hatch.metadata.hooks.custom`` in pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": alone(text)}
        metadata["urls"] = urls()
