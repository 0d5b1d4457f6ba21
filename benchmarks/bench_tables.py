"""Private tables beside plain SQL on the same engine and the same file: ``python benchmarks/bench_tables.py``.

Processor time of the whole process (all threads), the smallest of a few runs, and its ratio to the plain query.
Peers run in environments of their own where they are installed: see ``--help``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WARDS = [f"ward {i:02d}" for i in range(50)]


def _visits(persons: int) -> str:
    """A person's visits in a hospital: log-normal, half of them have fewer than 9 and one in a hundred over 160."""
    normal = f"sqrt(-2 * ln({_uniform('i', 10)})) * cos(2 * pi() * {_uniform('i', 11)})"
    many = f"CAST(least(600, 1 + floor(exp(ln(8.05) + 1.3 * {normal}))) AS BIGINT)"
    return f"SELECT p, 1000 * p + unnest(range(n)) AS i FROM (SELECT i AS p, {many} AS n FROM range({persons}) AS r(i))"


def _uniform(of: str, salt: int) -> str:
    return f"((hash({of}, {salt}) % 1000003) + 0.5) / 1000003"


def make(path: Path, rows: int, like: str, memory: str, dictionary: bool) -> None:
    """Visits of rows / 20 persons in no order. ``hospital``: three visits in four are in a person's own ward, the
    others in two more (2.3 wards each). ``even``: 20 visits each in three wards. ``random``: in any ward.
    """
    import duckdb

    persons = rows // 20
    ward = {
        "hospital": f"CASE WHEN {_uniform('i', 2)} < 0.75 THEN 0 ELSE 1 + hash(i, 4) % 2 END",
        "even": "hash(i, 2) % 3",
        "random": "hash(i, 2)",
    }[like]
    visits = (
        _visits(persons) if like == "hospital" else f"SELECT hash(i, 1) % {persons} AS p, i FROM range({rows}) AS r(i)"
    )
    encoding = "" if dictionary else ", DICTIONARY_SIZE_LIMIT 1"
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{memory}'")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"""
        COPY (
            SELECT CAST(p AS BIGINT) AS patient_id,
                   'ward ' || lpad(CAST((CAST(p AS BIGINT) * 7919 + {ward}) % 50 AS VARCHAR), 2, '0') AS ward,
                   -120 * ln({_uniform("i", 3)}) AS cost,
                   CAST(hash(p, 5) % 100 AS INTEGER) AS age
            FROM ({visits}){" ORDER BY hash(i, 9)" if like == "hospital" else ""}
        ) TO '{path}' (FORMAT parquet{encoding})
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
        "plain, by person": "SELECT COUNT(*), SUM(s) FROM (SELECT SUM(cost) AS s FROM '{}' GROUP BY patient_id)",
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
    return {"what": name, "cpu": round(cpu, 3), "wall": round(wall, 3), "peak MB": _peak()}


def _peak() -> int:
    """The largest resident size of this process in MB (getrusage would count the parent's)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


NAMES = (
    "plain",
    "plain, by person",
    "plain + count distinct",
    "row unit",
    "person unit, k >= keys",
    "person unit, k = 3",
    "person unit, k = 3, md5",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--like", choices=("hospital", "even", "random"), default="hospital")
    parser.add_argument("--no-dictionary", action="store_true", help="write the wards as plain texts")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", default="8GB")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--folder", help="where the file is made")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "PATH"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(*given.one, given.runs, given.memory)))
        return
    rows = int(given.rows)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "visits.parquet"
        make(path, rows, given.like, given.memory, not given.no_dictionary)
        print(f"{rows:.0e} rows, {given.like}, {path.stat().st_size / 2**20:.0f} MB of Parquet")
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
