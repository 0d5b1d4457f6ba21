"""Contract: PostgreSQL through a DB-API connection gives the same integers as DuckDB."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines import UNITS, WARDS, answers, edges, hospital
from play import PlayLedger

import dptally as dp
from dptally.tables.engine import run

SOAK = bool(os.environ.get("DPTALLY_SOAK"))


def fill(connection: Any, name: str, table: pa.Table) -> None:
    connection.execute(
        f"CREATE TABLE {name} (patient_id BIGINT, ward TEXT, cost DOUBLE PRECISION, age INTEGER, admitted DATE)"
    )
    with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
        for row in zip(*(table[column].to_pylist() for column in table.column_names), strict=True):
            copy.write_row(row)
    connection.commit()


@pytest.mark.parametrize("unit", UNITS)
def test_identical_integers(unit: str, postgres: Any, tmp_path: Path) -> None:
    rows = 1_000_000 if SOAK else 20_000
    hospital(str(tmp_path / "visits.parquet"), rows, rows // 10)
    tables = {"edges": edges(), "hospital": pq.read_table(tmp_path / "visits.parquet")}
    for name, table in tables.items():
        fill(postgres, f"{name}_{unit.replace(' ', '_')}", table)
        asked = ("totals", "bins", "all", "distinct", "private")
        expected = answers(table, UNITS[unit], asked)
        found = answers((postgres, f"{name}_{unit.replace(' ', '_')}"), UNITS[unit], asked)
        assert found == expected, name
        assert any(any(map(any, numbers)) for numbers in expected["totals"]["numbers"].values())


def test_a_lost_connection_releases_nothing(postgres: Any, postgres_server: str, tmp_path: Path) -> None:
    """The server's process is killed in mid-query: no word of it, one debit, and the key runs again."""
    import threading
    import time

    import psycopg

    table = edges(2000)
    fill(postgres, "lost", table)
    ledger = dp.Ledger.open(f"sqlite:///{tmp_path}/budget.db", create=True)
    ledger.create("ehr", budget=dp.ZCDP(1.0), unit="person:patient_id")

    def ask(source: Any, text: str = "age > 0") -> Any:
        opened = dp.Table(source, person="patient_id", max_groups=3)
        session = dp.Session(opened, ledger=ledger, dataset="ehr", by="a")
        return session.where(text).group_by("ward", keys=WARDS).persons(sigma=10)

    with psycopg.connect(f"host={postgres_server} user=ledger dbname=postgres") as victim:
        victim.execute("CREATE VIEW slow AS SELECT l.* FROM lost AS l WHERE pg_sleep(0.05) IS NOT NULL")
        victim.commit()
        query = ask((victim, "slow"))
        pid = victim.info.backend_pid

        def kill() -> None:
            time.sleep(1.0)
            if os.environ.get("DPTALLY_TERMINATE", "1") == "1":
                postgres.execute("SELECT pg_terminate_backend(%s)", (pid,))
            else:
                os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(dp.EngineFailed) as failure:
            query.release(why="lost", key="k")
        killer.join()
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    assert "pg_" not in str(failure.value)
    (entry,) = ledger.history("ehr")
    assert entry.state == "reserved"
    assert len(ask(table).release(why="lost", key="k").rows()) == len(WARDS)
    assert len(ledger.history("ehr")) == 1
    ledger.close()


def test_a_table_that_is_not_there(postgres: Any) -> None:
    with pytest.raises(dp.InvalidArgument, match="a table that this connection can read"):
        dp.Table((postgres, "nowhere.at_all"))
    assert postgres.execute("SELECT 1").fetchone() == (1,)


IDS = ["a", "A", "a ", "\u00e1", "a\u0301", "\uff41", ""]


def test_no_collation_makes_two_persons_one(postgres: Any) -> None:
    """An id is its bytes: a person merged with another would be replaced where she should be added."""
    import duckdb

    postgres.execute(
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);"
        "CREATE TABLE loose_ids (who TEXT COLLATE loose, ward TEXT COLLATE loose)"
    )
    inside = duckdb.connect()
    inside.execute("SET default_collation = 'NOCASE'")
    inside.execute("CREATE TABLE loose_ids (who VARCHAR, ward VARCHAR)")
    for who in IDS:
        postgres.execute("INSERT INTO loose_ids VALUES (%s, %s)", (who, who))
        inside.execute("INSERT INTO loose_ids VALUES (?, ?)", [who, who])
    postgres.commit()
    for source in ((postgres, "loose_ids"), (inside, "loose_ids"), inside.table("loose_ids")):
        session = dp.Session(
            (table := dp.Table(source, person="who", max_groups=1)),
            ledger=PlayLedger(table.unit),
            dataset="d",
            by="",
        )
        engine = table.source.engine
        assert run(engine, session.persons(sigma=1).compiled().sql[0]) == [(len(IDS),)]
        grouped = session.group_by("ward", keys=IDS).persons(sigma=1).compiled()
        assert sorted(run(engine, grouped.sql[0])) == [(code, 1) for code in range(len(IDS))]
        assert run(engine, session.where("ward = 'a'").persons(sigma=1).compiled().sql[0]) == [(1,)]
        assert run(engine, session.count_distinct("ward", 1, sigma=1).compiled().sql[0]) == [(len(IDS),)]
