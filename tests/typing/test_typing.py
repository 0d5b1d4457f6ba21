"""Contract: the public door has types, seen from outside by two checkers; a typo is an error and no name is Any."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WRONG = {
    ("wrong.py", n)
    for n, line in enumerate((HERE / "wrong.py").read_text("utf-8").splitlines(), 1)
    if line.endswith("# wrong")
}
FILES = [str(HERE / "right.py"), str(HERE / "wrong.py")]


def mypy() -> set[tuple[str, int]]:
    """The lines with errors, under --strict and with the sources of the package in sight."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    command += ["--no-error-summary", "--no-warn-unused-ignores", *FILES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [re.match(r".*?(\w+\.pyi?):(\d+): error", line) for line in done.stdout.splitlines()]
    return {(line[1], int(line[2])) for line in found if line}


def pyright() -> set[tuple[str, int]]:
    pytest.importorskip("pyright")
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *FILES]
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=600)
    if "{" not in done.stdout:
        pytest.skip(f"pyright cannot run here: {done.stderr[-200:]}")
    found = json.loads(done.stdout[done.stdout.index("{") :])["generalDiagnostics"]
    return {
        (Path(entry["file"]).name, entry["range"]["start"]["line"] + 1)
        for entry in found
        if entry["severity"] == "error"
    }


def test_mypy_sees_the_types_and_the_mistakes() -> None:
    assert mypy() == WRONG


def test_pyright_sees_the_types_and_the_mistakes() -> None:
    assert pyright() == WRONG


def test_the_door_is_what_the_package_says() -> None:
    """Written by ``make door``; run it when this fails."""
    done = subprocess.run(
        [sys.executable, "tools/door.py", "--check"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == ("", 0)
