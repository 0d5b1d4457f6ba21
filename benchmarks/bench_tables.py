"""Private tables beside plain SQL on the same engine and the same file: ``python benchmarks/bench_tables.py``.

Processor time of the whole process (all threads), the smallest of a few runs, and its ratio to the plain query.
Peers run in environments of their own where they are installed: see ``--help``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WARDS = [f"ward {i:02d}" for i in range(50)]


def make(path: Path, rows: int, persons: int, like: str, memory: str) -> None:
    """``hospital``: a person's visits are in about 2.4 wards. ``random``: in as many as she has visits, nearly."""
    import duckdb

    spread = "hash(i, 2) % 3" if like == "hospital" else "hash(i, 2)"
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{memory}'")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"""
        COPY (
            SELECT CAST(hash(i, 1) % {persons} AS BIGINT) AS patient_id,
                   'ward ' || lpad(CAST((hash(i, 1) % {persons} * 7919 + {spread}) % 50 AS VARCHAR), 2, '0') AS ward,
                   (hash(i, 3) % 500000) / 1000.0 AS cost,
                   CAST(hash(i, 5) % 100 AS INTEGER) AS age
            FROM range({rows}) AS r(i)
        ) TO '{path}' (FORMAT parquet)
    """)


def measured(work: Callable[[], Any], runs: int) -> tuple[float, float]:
    """Processor and wall seconds, the smallest of each."""
    best = (float("inf"), float("inf"))
    for _ in range(runs):
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        best = min(best[0], time.process_time() - cpu), min(best[1], time.perf_counter() - wall)
    return best


def one(name: str, path: str, runs: int, memory: str) -> dict[str, Any]:
    """One row of the table, in a process of its own so that memory can be told apart."""
    import duckdb

    import dptally as dp
    from dptally.tables.engine import run

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "tables"))
    from play import PlayLedger

    plain = {
        "plain": "SELECT ward, COUNT(*), SUM(cost) FROM '{}' GROUP BY ward",
        "plain + count distinct": "SELECT ward, COUNT(DISTINCT patient_id), SUM(cost) FROM '{}' GROUP BY ward",
    }
    if name in plain:
        connection = duckdb.connect()
        connection.execute(f"SET memory_limit = '{memory}'")
        cpu, wall = measured(lambda: connection.execute(plain[name].format(path)).fetchall(), runs)
    else:
        bounds: dict[str, Any] = {
            "row unit": {},
            "person unit, k >= keys": {"person": "patient_id", "max_groups": 50},
            "person unit, k = 3": {"person": "patient_id", "max_groups": 3},
            "person unit, k = 3, md5": {"person": "patient_id", "max_groups": 3, "stable": True},
        }[name]
        table = dp.Table(path, **bounds)
        run(table.source.engine, f"SET memory_limit = '{memory}'")
        session = dp.Session(table, ledger=PlayLedger(table.unit), dataset="d", by="")
        query = session.group_by("ward", keys=WARDS)
        query = query.persons(sigma=10) if bounds else query.rows(sigma=10)
        query = query.sum("cost", (0, 2000), sigma=20_000)
        cpu, wall = measured(query.release, runs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"what": name, "cpu": round(cpu, 3), "wall": round(wall, 3), "peak MB": round(peak)}


NAMES = (
    "plain",
    "plain + count distinct",
    "row unit",
    "person unit, k >= keys",
    "person unit, k = 3",
    "person unit, k = 3, md5",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--persons", type=float, default=0, help="by default a twentieth of the rows")
    parser.add_argument("--like", choices=("hospital", "random"), default="hospital")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", default="8GB")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "PATH"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(*given.one, given.runs, given.memory)))
        return
    rows, persons = int(given.rows), int(given.persons or given.rows / 20)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        make(path, rows, persons, given.like, given.memory)
        print(f"{rows:.0e} rows, {persons:.0e} persons, {given.like}, {path.stat().st_size / 2**20:.0f} MB of Parquet")
        base = 0.0
        for name in NAMES:
            if given.only not in name and name != "plain":
                continue
            command = [
                sys.executable,
                __file__,
                "--one",
                name,
                str(path),
                "--runs",
                str(given.runs),
                "--memory",
                given.memory,
            ]
            row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            base = base or row["cpu"]
            print(
                f"| {name} | {row['cpu']} | x{row['cpu'] / base:.1f} | {row['wall']} | {row['peak MB']} |", flush=True
            )


if __name__ == "__main__":
    main()
