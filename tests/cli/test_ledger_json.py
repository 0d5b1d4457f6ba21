"""Contract: every ledger command prints JSON when asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from cli_running import real


def run(*words: str, folder: Path) -> str:
    command = [sys.executable, "-m", "dptally", "ledger", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_create_verify_report_export(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    made = json.loads(run("create", "ehr", "--zcdp", "0.5", "--json", "--ledger", url, folder=tmp_path))
    assert made["dataset"] == "ehr"
    run("spend", "ehr", "gaussian(40)", "--by", "alice", "--json", "--ledger", url, folder=tmp_path)
    found = json.loads(run("verify", "--json", "--ledger", url, folder=tmp_path))
    assert found["datasets"] == 1
    assert found["entries"] >= 2
    assert json.loads(run("report", "ehr", "--json", "--ledger", url, folder=tmp_path))
    assert json.loads(run("export", "--json", "--ledger", url, folder=tmp_path)) == found["head"]


def test_errors_of_the_ledger_are_json_too(tmp_path: Path) -> None:
    real("ledger", "create", "ehr", "--zcdp", "0.5", cwd=tmp_path)
    for words, code in (
        (("status", "nobody"), 2),
        (("create", "ehr", "--pure", "1"), 2),
        (("spend", "ehr", "gaussian(.1)"), 3),
    ):
        wrong = real("ledger", *words, "--json", cwd=tmp_path)
        assert wrong.code == code
        assert json.loads(wrong.out)["exit_code"] == code
        assert wrong.err.startswith("Error: ")
