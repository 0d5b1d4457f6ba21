"""Running the program: for real in a process of its own, or in this one where only the text matters."""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dptally.cli.program import run

PROGRAM = [sys.executable, "-c", "from dptally.cli import main; main()"]
PATIENCE = 50.0  # seconds that a server may take to start


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def real(*arguments: str, cwd: Path | None = None, stdin: str | None = None) -> Outcome:
    """The program as a person runs it."""
    command = [*PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, input=stdin, timeout=300, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(*arguments: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """The program where it does not end by itself; what is still running afterwards is killed."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*PROGRAM, *arguments], stdout=pipe, stderr=subprocess.STDOUT, text=True, cwd=cwd) as server:
        try:
            yield server
        finally:
            if server.poll() is None:
                server.kill()


def first_line(server: subprocess.Popen[str]) -> str:
    """The first line that it prints, or an error where it prints none in time."""
    assert server.stdout is not None
    with selectors.DefaultSelector() as waiting:
        waiting.register(server.stdout, selectors.EVENT_READ)
        assert waiting.select(PATIENCE), "no line was printed"
    return server.stdout.readline().rstrip("\n")


def get_when_up(address: str, server: subprocess.Popen[str]) -> Any:
    """The JSON at an address, asked again until the server listens."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError):
            assert server.poll() is None, server.stdout and server.stdout.read()
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.1)


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
