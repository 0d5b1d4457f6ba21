"""Contract: every ledger command prints JSON when asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


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
