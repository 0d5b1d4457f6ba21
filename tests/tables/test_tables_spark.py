"""Contract: a real Spark cluster on loopback gives the same integers as DuckDB, and may be killed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _python() -> str:
    """An interpreter that has pyspark; DPTALLY_SPARK_PYTHON names one in an environment of its own."""
    named = os.environ.get("DPTALLY_SPARK_PYTHON", "")
    found = named or (sys.executable if importlib.util.find_spec("pyspark") else "")
    if not found or shutil.which("java") is None:
        if os.environ.get("CI"):
            pytest.fail("CI must run the Spark tests: install openjdk-17 and set DPTALLY_SPARK_PYTHON (see .ci/run)")
        pytest.skip("SPARK OR JAVA IS NOT INSTALLED: the tables' Spark tests did not run")
    return found


@pytest.mark.slow
def test_a_cluster_of_two_workers(tmp_path: Path) -> None:
    python = _python()
    rows = os.environ.get("DPTALLY_SPARK_ROWS", "1000000")
    source = str(HERE.parents[1] / "src")
    environment = {**os.environ, "PYTHONPATH": source, "PYSPARK_PYTHON": python, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [python, str(HERE / "spark_cluster.py"), str(tmp_path), rows],
        env=environment,
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report.pop("workers") == 2
    assert report.pop("killed, state") == "reserved"
    report.pop("seconds")
    assert len(report) == 13
    assert report == dict.fromkeys(report, True)
