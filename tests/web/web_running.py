"""The page without a network: an application that answers in this process, and a ledger to show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import dptally as dp
from dptally.web import Declared, Settings, application
from dptally.web.workers import Inline

TOKEN = "a token of the test run"


def client(**settings: Any) -> TestClient:
    made = application(Settings(**settings), Inline())
    return TestClient(made, base_url="http://127.0.0.1:8000", raise_server_exceptions=True)


def ledger_at(folder: Path) -> str:
    """A ledger with two accounts and a dozen spends, one of them with a hostile reason."""
    url = f"sqlite:///{folder}/budget.db"
    with dp.Ledger.open(url, create=True) as ledger:
        ledger.create("ehr-2026", budget=dp.ZCDP(0.5), delta=1e-9, analysts={"bob": dp.ZCDP(0.2)}, about="patients")
        ledger.create("claims & co", budget=dp.PureDP(1.0))
        for i in range(6):
            who = "alice" if i % 2 else "bob"
            with ledger.spend("ehr-2026", dp.Gaussian(10.0 + i), by=who, why=f"ward counts {i}", key=f"q-{i}"):
                pass
        with ledger.spend("ehr-2026", dp.Gaussian(50.0), by="mallory", why="<script>alert(1)</script>"):
            pass
    return url


def table_at(folder: Path, max_rows: int | None = None, failure: float = 0.0) -> tuple[str, Declared]:
    """A ledger for persons, and the visits of 3,000 of them; bob may ask for next to nothing."""
    import duckdb

    url, path = f"sqlite:///{folder}/persons.db", folder / "visits.parquet"
    duckdb.sql(
        f"""COPY (SELECT CAST(pow(i * 7919 % 10007 / 10007.0, 2) * 3000 AS BIGINT) AS patient_id,
                         'ward ' || chr(65 + CAST(i * 13 % 5 AS INTEGER)) AS ward,
                         (i * 31 % 30) + 0.5 AS los_days, CAST(i * 17 % 90 AS INTEGER) AS age
                  FROM range(20000) AS r(i)) TO '{path}' (FORMAT parquet)"""
    )
    with dp.Ledger.open(url, create=True) as ledger:
        unit, capped = "person:patient_id", {"bob": dp.ZCDP(1e-4)}
        ledger.create("ehr-2026", dp.ZCDP(0.5), delta=1e-6, unit=unit, analysts=capped, failure=failure)
    return url, Declared(str(path), "ehr-2026", 2, max_rows)


def secret_of(text: str) -> str:
    """The token that a page's forms carry."""
    found = re.search(r'name="secret" value="([^"]+)"', text)
    assert found is not None
    return found[1]
