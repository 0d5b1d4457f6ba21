"""Contract: the real program in its own process, fed what it must answer and what it must refuse."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from cli_running import assert_refused, first_line, free_port, get_when_up, real, running
from pyarrow import parquet

import dptally as dp
from dptally.cli.ledger_commands import group
from dptally.cli.program import COMMANDS, cli

DPSGD = "1000 * poisson(gaussian(1.0), 0.01)"


def test_the_answer_comes_first() -> None:
    outcome = real("epsilon", DPSGD, "--delta", "1e-5")
    assert outcome.code == 0
    assert outcome.err == ""
    lines = outcome.out.splitlines()
    assert lines[0] == "epsilon = 1.8282367 at delta = 1e-05"
    assert re.match(r"  certified: 1\.82823666\d+ <= epsilon <= 1\.82823666\d+  \(inversion\)", lines[1])
    assert "what it means" in lines
    assert "assumptions" in lines


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["epsilon", "gausian(1)", "--delta", "1e-5"], ["column 1", "did you mean gaussian?"]),
        (["epsilon", "gaussian(1", "--delta", "1e-5"], ["column 9", "never closed"]),
        (["epsilon", "(" * 10_000, "--delta", "1e-5"], ["50 deep"]),
        (["epsilon", "__import__('os').system('ls')", "--delta", "1e-5"], ["unexpected character"]),
        (["epsilon", "gaussian(nan)", "--delta", "1e-5"], ["NaN"]),
        (["epsilon", "--delta", "1e-5", "--", "-3*gaussian(1)"], ["column 1", "at least 0"]),
        (["epsilon", "-3*gaussian(1)", "--delta", "1e-5"], ["cannot begin with a minus sign"]),
        (["audit", "os:getcwd", "--claim", "pure(1)", "--samples", "20"], ["it raised TypeError"]),
        (["epsilon", "gaussian(1)", "--delta", "nan"], ["delta must be a number, got nan"]),
    ],
)
def test_bad_input(arguments: list[str], words: list[str]) -> None:
    assert_refused(real(*arguments), *words)


def test_ten_megabytes(tmp_path: Path) -> None:
    text = "gaussian(1)+" * 833_334
    assert_refused(real("epsilon", "-", "--delta", "1e-5", stdin=text), "at most 1000000")
    (tmp_path / "big.toml").write_text(text)
    assert_refused(real("epsilon", "@big.toml", "--delta", "1e-5", cwd=tmp_path), "at most 1000000 bytes")


def test_budgets_decide_the_exit_code() -> None:
    over = real("epsilon", "gaussian(1)", "--delta", "1e-5", "--brief", "--budget", "4")
    assert over.code == 1
    assert "OVER the budget of 4" in over.out


def test_json_is_the_library_s_answer() -> None:
    found = json.loads(real("dpsgd", *_dpsgd("--json")).out)
    box = dp.dpsgd(1.0, 0.01, 1000).epsilon_interval(1e-5)
    assert found["epsilon"] == {"lower": box.lower, "upper": box.upper, "method": box.method}


def _dpsgd(*more: str) -> list[str]:
    text = "--noise-multiplier 1.0 --sample-rate 0.01 --steps 1000 --delta 1e-5"
    return [*text.split(), *more]


def test_modules_that_an_answer_does_not_need_stay_away() -> None:
    code = (
        "import sys; from dptally.cli.program import run; run(sys.argv[1:]);"
        "names = ('rich', 'matplotlib', 'sqlalchemy', 'scipy.special', 'scipy.optimize', 'scipy.stats', 'scipy.fft',"
        " 'numpy.testing', 'numpy.random', 'dptally.conversions', 'dptally.mechanisms.json', 'dptally.gdp');"
        "heavy = [m for m in names if m in sys.modules];"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    for arguments in (["epsilon", "gaussian(1)", "--delta", "1e-5"], ["dpsgd", *_dpsgd()]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def _examples() -> list[tuple[str, str]]:
    """Every example in every help text."""
    found = []
    for name in ["", *COMMANDS]:
        command = cli.get_command(None, name) if name else cli  # type: ignore[arg-type]
        assert command is not None
        lines = (command.help or "").replace("\\\n", " ").splitlines()  # a command may go on in the next line
        found += [(name, " ".join(line.split())) for line in lines if line.strip().startswith("dptally ")]
    return list({line: (name, line) for name, line in found if name != "ledger"}.values())


def _ledger_examples() -> list[str]:
    """Those of the group, which open an account and spend from it, then those of its commands."""
    texts = [group.help or "", *((command.help or "") for command in group.commands.values())]
    assert all("dptally ledger " in text for text in texts)
    return [line.strip() for text in texts for line in text.splitlines() if line.strip().startswith("dptally ")]


def test_every_command_has_an_example() -> None:
    named = {line.split()[1] for _, line in _examples()}
    assert named == set(COMMANDS) - {"ledger"}  # a group, whose examples need one another


def _visits(path: Path) -> None:
    """The table that examples read: stays of patients in three wards."""
    columns = {
        "patient_id": list(range(60)),
        "ward": ["A", "B", "C"] * 20,
        "age": [20 + n for n in range(60)],
        "los_days": [float(1 + n % 9) for n in range(60)],
    }
    parquet.write_table(pa.table(columns), path)


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, line in _examples() if name != "serve"])
def test_the_examples_in_the_help_work(tmp_path: Path, name: str, line: str) -> None:
    (tmp_path / "mymodule.py").write_text(
        "from dptally import noise\n\ndef noisy_count(data):\n    return len(data) + noise.discrete_laplace(1)\n"
    )
    _visits(tmp_path / "visits.parquet")
    words = shlex.split(line.split(" > ")[0])[1:]
    outcome = real(*words, cwd=tmp_path)
    missed = "--budget" in words and name != "release"  # there it is what the release may spend, no target
    assert outcome.code == (1 if missed else 0), outcome
    assert outcome.out or list(tmp_path.glob("card.html"))


@pytest.mark.parametrize("line", [line for name, line in _examples() if name == "serve"])
def test_the_examples_of_serve_answer_until_they_are_ended(tmp_path: Path, line: str) -> None:
    port = free_port()
    _visits(tmp_path / "visits.parquet")
    with dp.Ledger.open(f"sqlite:///{tmp_path}/budget.db", create=True) as ledger:
        ledger.create("ehr-2026", budget=dp.ZCDP(0.5), unit="person:patient_id")
    with running(*shlex.split(line)[1:], "--port", str(port), cwd=tmp_path) as server:
        assert first_line(server) == f"dptally is at http://127.0.0.1:{port}/ (Ctrl-C ends it)"
        assert get_when_up(f"http://127.0.0.1:{port}/healthz", server) == {"status": "ok", "version": dp.__version__}
        server.terminate()
        server.wait(timeout=30)


def test_the_examples_of_the_ledger_work_one_after_another(tmp_path: Path) -> None:
    lines = _ledger_examples()
    assert {line.split()[2] for line in lines} == set(group.commands)
    for line in lines:
        outcome = real(*shlex.split(line.split(" > ")[0])[1:], cwd=tmp_path)
        assert outcome.code == 0, (line, outcome)
        assert outcome.out or "--output" in line
    assert (tmp_path / "statement.html").read_text().startswith("<!doctype html>")


def test_completion_of_commands(tmp_path: Path) -> None:
    import os

    environment = {
        **os.environ,
        "_DPTALLY_COMPLETE": "bash_complete",
        "COMP_WORDS": "dptally ca",
        "COMP_CWORD": "1",
    }
    command = [sys.executable, "-c", "from dptally.cli import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["plain,calibrate", "plain,card"]
