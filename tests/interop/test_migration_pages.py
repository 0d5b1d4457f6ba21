"""Contract: the blocks of the migration pages that need another tool run where it is installed (make interop)."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "how-to"
NEEDS = {
    "from-opacus.md": "opacus",
    "from-jax-privacy.md": "jax_privacy",
    "from-flower.md": "flwr",
    "from-pipelinedp.md": "pipeline_dp",
    "from-opendp.md": "opendp",
}
BLOCK = re.compile(r"<!-- not run -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("page", "tool"), NEEDS.items())
def test_blocks_with_the_tool(page: str, tool: str) -> None:
    blocks = BLOCK.findall((PAGES / page).read_text(encoding="utf-8"))
    assert blocks, page
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"needs {tool}")
    for body in blocks:
        exec(compile(body, page, "exec"), {"__name__": "__main__"})
