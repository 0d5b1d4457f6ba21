"""Running the program: for real in a process of its own, or in this one where only the text matters."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from dptally.cli.program import run


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def real(*arguments: str, cwd: Path | None = None, stdin: str | None = None) -> Outcome:
    """The program as a person runs it."""
    command = [sys.executable, "-c", "from dptally.cli import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, input=stdin, timeout=300, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


def here(capsys: pytest.CaptureFixture[str], *arguments: str) -> Outcome:
    """The same without a new process."""
    code = run(list(arguments))
    captured = capsys.readouterr()
    return Outcome(code, captured.out, captured.err)


def assert_refused(outcome: Outcome, *words: str) -> None:
    """Bad input: exit code 2, nothing on stdout, one line on stderr that says the words."""
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("Error: ")
    assert outcome.err.count("\n") == 1
    assert len(outcome.err) < 600
    assert "Traceback" not in outcome.err
    for word in words:
        assert word in outcome.err, outcome.err
