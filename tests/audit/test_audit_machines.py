"""Contract: the back end of the draws is joblib's own switch. Dask: a scheduler and two worker processes on the
loopback interface; the verdicts are those of this process, and no two workers draw the same noise.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, os
import joblib
from dptally import PureDP, audit, noise
from dask.distributed import Client, LocalCluster

def laplace(x, size):
    return x + noise.discrete_laplace(1, size)

def wide(x):
    return (os.getpid(), noise.uniform_below(2**60))

if __name__ == "__main__":
    place = {"host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **place) as cluster, Client(cluster):
        with joblib.parallel_config(backend="dask"):
            seen, drawn = [], []
            tell = lambda done, total: seen.append((done, total))
            run = lambda d1, claim: audit.run(
                laplace, 0, d1, claim, samples=4000, batched=True, jobs=-1, progress=tell
            ).verdict
            verdicts = [run(9, PureDP(0.25)), run(1, PureDP(1.0))]
            from dptally.audit.drawing import draw_both
            for part in draw_both(wide, (0, 1), 64, False, -1, None):
                drawn.extend(part)
    elsewhere = all(pid != os.getpid() for pid, _ in drawn)
    print(json.dumps([verdicts, seen[-1], elsewhere, len({x for _, x in drawn})]))
"""


def test_dask_draws_in_its_own_processes_and_gives_the_same_verdicts(tmp_path):
    pytest.importorskip("distributed", reason="dask and distributed are not installed: pip install 'dptally[dask]'")
    program = tmp_path / "audits.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    verdicts, last, elsewhere, numbers = json.loads(done.stdout.splitlines()[-1])
    assert verdicts == ["refuted", "not refuted"]
    assert last == [8000, 8000]
    assert elsewhere
    assert numbers == 128, "every number was drawn once"
