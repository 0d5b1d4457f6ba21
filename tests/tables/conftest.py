"""Helpers are imported by name; a private PostgreSQL server as the ledger's tests start it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
collect_ignore = ["spark_cluster.py"]  # a script for a Python that has Spark, started by test_tables_spark.py
sys.path.insert(0, str(HERE))

_spec = importlib.util.spec_from_file_location("ledger_conftest", HERE.parent / "ledger" / "conftest.py")
assert _spec is not None
assert _spec.loader is not None
_ledger = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_ledger)

postgres_server = _ledger.postgres_server


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[object]:
    """A connection to the private server."""
    import psycopg

    with psycopg.connect(f"host={postgres_server} user=ledger dbname=postgres") as connection:
        yield connection
