"""A real Spark cluster on loopback, one master and two workers, asked the same as DuckDB. Run as a script:

python spark_cluster.py FOLDER [ROWS] -> one JSON object on standard output.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
from engines import UNITS, WARDS, answers, edges, hospital

import dptally as dp

HOME = Path(pyspark.__file__).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_WORKER_DIR": str(folder / name),
    }
    log = (folder / f"{name}.log").open("wb")
    return subprocess.Popen([str(HOME / "bin" / "spark-class"), *arguments], env=environment, stdout=log, stderr=log)


def wait_for(port: int, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.3)
    raise RuntimeError("the master did not start")


def session(master: str, folder: Path) -> Any:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master(master)
        .appName("dptally")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.executor.memory", "1g")
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )


#: data, unit, ANSI modes, queries
PLAN = [
    ("edges", "person", ("true", "false"), ("totals", "bins", "distinct", "private", "all")),
    ("edges", "rows of a person", ("true", "false"), ("totals", "bins")),
    ("edges", "row", ("true", "false"), ("totals", "bins")),
    ("hospital", "person", ("true",), ("totals", "bins")),
]


def compared(spark: Any, folder: Path, report: dict[str, Any]) -> None:
    """Identical integers on 1e6 rows and on the edge cases, ANSI on and off."""
    for name, unit, modes, asked in PLAN:
        path = str(folder / f"{name}.parquet")
        expected = answers(path, UNITS[unit], asked)
        report[f"{name}, {unit}: something"] = any(any(map(any, v)) for v in expected["totals"]["numbers"].values())
        for ansi in modes:
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            found = answers(spark.read.parquet(path), UNITS[unit], asked)
            report[f"{name}, {unit}, ansi {ansi}"] = found == expected
            (folder / "report.json").write_text(json.dumps(report))


def killed(spark: Any, folder: Path, report: dict[str, Any]) -> None:
    """The engine is killed: no word of it, the debit stands, and the key runs again without another."""
    from pyspark import SparkContext

    ledger = dp.Ledger.open(f"sqlite:///{folder}/ledger.db", create=True)
    ledger.create("ehr", budget=dp.ZCDP(1.0), unit="person:patient_id")
    bounds = {"person": "patient_id", "max_groups": 3}
    path = str(folder / "hospital.parquet")

    def ask(source: Any) -> Any:
        table = dp.Table(source, **bounds)
        return dp.Session(table, ledger=ledger, dataset="ehr", by="a").group_by("ward", keys=WARDS).persons(sigma=10)

    query = ask(spark.read.parquet(path))
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
    try:
        query.release(why="killed", key="k")
        report["killed"] = "answered"
    except dp.EngineFailed as error:
        report["killed"] = error.__cause__ is None and error.__context__ is None
    (entry,) = ledger.history("ehr")
    report["killed, state"] = entry.state
    result = ask(path).release(why="killed", key="k")
    report["killed, again"] = len(ledger.history("ehr")) == 1 and len(result.rows()) == len(WARDS)


def main(folder: Path, rows: int) -> dict[str, Any]:
    hospital(str(folder / "hospital.parquet"), rows, rows // 20)
    pq.write_table(edges(), folder / "edges.parquet")
    port, report = free_port(), {}
    master = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    processes = [
        started(
            folder, "master", f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"
        )
    ]
    try:
        wait_for(port)
        worker = (
            f"{deploy}.worker.Worker",
            "--host",
            "127.0.0.1",
            "--webui-port",
            "0",
            "-c",
            "1",
            "-m",
            "1500m",
            master,
        )
        processes += [started(folder, f"worker{i}", *worker) for i in (1, 2)]
        begun = time.monotonic()
        spark = session(master, folder)
        compared(spark, folder, report)
        report["workers"] = len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1
        report["seconds"] = round(time.monotonic() - begun, 1)
        killed(spark, folder, report)
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
    return report


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)))
