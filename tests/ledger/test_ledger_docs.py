"""Golden: what the manual shows is what the ledger does."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest


def test_the_manual_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manual = Path(__file__).parents[2] / "docs" / "ledger.md"
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(manual), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    assert result.attempted > 10
