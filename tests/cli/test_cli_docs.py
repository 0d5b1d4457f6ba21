"""Golden: what the manuals and examples show is what the program prints."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dptally as dp
from dptally.cli.plans import load

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```console\n\$ (?P<command>.*?)\n(?P<shown>.*?)```", re.S)


def _blocks() -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / "docs" / "command-line.md").read_text())


@pytest.mark.parametrize(("command", "shown"), _blocks())
def test_the_manual_of_the_command_line(command: str, shown: str) -> None:
    """Three dots stand for anything."""
    program = f"'{sys.executable}' -c 'from dptally.cli import main; main()'"
    line = re.sub(r"^dptally", lambda _: program, command)
    wide = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=ROOT, check=False, env=wide)
    pattern = ".*?".join(re.escape(part) for part in shown.split("..."))
    assert re.fullmatch(pattern, done.stdout + done.stderr, re.S), done.stdout + done.stderr


def test_there_is_something_to_check() -> None:
    assert len(_blocks()) >= 6


def test_the_manual_of_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(ROOT / "docs" / "pictures.md"), module_relative=False)
    assert (result.failed, result.attempted > 6) == (0, True)


def test_the_example_plans() -> None:
    hospital = load(f"@{ROOT}/examples/hospital.toml")
    assert hospital.mechanism == 40 * dp.DiscreteLaplace(20) + 20 * dp.Gaussian(30)
    assert load(f"{ROOT}/examples/training.json").mechanism == dp.dpsgd(1.1, 0.004, 2500)


def test_the_example_program(tmp_path: Path) -> None:
    program = ROOT / "examples" / "training_budget.py"
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert re.search(r"stop after step \d+ to stay within epsilon 3", done.stdout), done.stderr
    assert (tmp_path / "training_budget.png").stat().st_size > 10_000
