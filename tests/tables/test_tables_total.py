"""Laws: no row can make a query fail. One hostile row beside ordinary ones, in every place where an engine might mind.

That a query fails would tell about the row, and would take the answer from everybody else.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from play import PlayLedger

import dptally as dp
from dptally.tables import compiled as compiling
from dptally.tables.engine import Engine


def session(source: Any, **bounds: Any) -> dp.Session:
    table = dp.Table(source, **({"person": "p", "max_groups": 2} | bounds))
    return dp.Session(table, ledger=PlayLedger(table.unit), dataset="d", by="")


@pytest.fixture(autouse=True)
def _raw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_noised", lambda measure, values: [int(value) for value in values])


def persons(query: Any) -> int:
    (row,) = query.persons(sigma=1).release().rows()
    return int(row["persons"])


def test_dates_that_python_cannot_hold() -> None:
    """As private keys they are left out by their value alone."""
    days = ("'infinity'", "'-infinity'", "'20000-01-01'", "'0044-03-15 (BC)'", "'9999-12-31'", "'0001-01-01'")
    listed = " UNION ALL ".join(f"SELECT i AS p, CAST({day} AS DATE) AS d FROM range(9) AS r(i)" for day in days)
    for bounds in ({"max_groups": 6}, {"person": None, "max_groups": None}):
        asked = session(duckdb.sql(listed), **bounds).group_by("d", keys=dp.private(3, sigma=0.5))
        count = asked.rows(sigma=0.5) if bounds["max_groups"] is None else asked.persons(sigma=0.5)
        assert [row["d"] for row in count.release().rows()] == [date.min, date.max]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("other", ["s", "ms", "us", "ns"])
def test_times_of_every_resolution(unit: str, other: str) -> None:
    far = 2**63 - 2**10  # of each unit: the years 292 thousand million, 292 million, 294247 and 2262
    times = pa.array([0, far, -far, 10**9], pa.int64()).cast(pa.timestamp(unit))
    others = pa.array([0, 1, 2, -far], pa.int64()).cast(pa.timestamp(other))
    table = session(pa.table({"p": pa.array([1, 2, 3, 4], pa.int64()), "a": times, "b": others}))
    assert persons(table.where("a < b or a >= b or a is null or b is null")) == 4
    assert persons(table.where("a < '1970-01-01 00:00:00' or a = '1970-01-01'")) in (1, 2)
    assert persons(table.where("a > '9998-01-01' and a < '0002-01-01'")) == 0


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("zone", ["UTC", None])
def test_times_that_are_scaled_as_they_are_read(unit: str, zone: str | None, tmp_path: Path) -> None:
    """Seconds and milliseconds overflow in the scan, before any expression sees them: such columns are refused."""
    import pandas as pd
    import polars as pl

    times = pa.array([0, 2**60, -(2**60)], pa.int64()).cast(pa.timestamp(unit, zone))
    table = pa.table({"p": pa.array([1, 2, 3], pa.int64()), "t": times})
    path = tmp_path / "times.parquet"
    frames: list[tuple[Any, bool]] = [(table, zone is None or unit == "us")]
    for kind in (None, pd.ArrowDtype):
        frames.append((table.to_pandas(types_mapper=kind), zone is None or unit == "us"))
    if unit != "s":  # polars and Parquet know no seconds
        frames += [(pl.from_arrow(table), zone is None or unit == "us"), (path, unit == "us")]
        pq.write_table(table, path, version="2.6")
    for source, total in frames:
        study = session(source)
        if total:
            assert persons(study.where("t < '2026-01-01' or t >= '2026-01-01' or t is null")) == 3
            continue
        with pytest.raises(dp.errors.RefusedExpression, match="microseconds"):
            study.where("t < '2026-01-01'")
        assert persons(study.where("p > 0")) == 3  # the other columns are read all the same


def test_types_are_not_guessed_from_names_of_folders(tmp_path: Path) -> None:
    for year in ("2025", "2026"):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"p": [1, 2]}), tmp_path / f"year={year}" / "visits.parquet")
    study = session(str(tmp_path / "*" / "*.parquet"))
    (tmp_path / "year=unknown").mkdir()
    pq.write_table(pa.table({"p": [3]}), tmp_path / "year=unknown" / "visits.parquet")
    rows = study.group_by("year", keys=["2025", "2026"]).persons(sigma=1).release().rows()
    assert [row["persons"] for row in rows] == [2, 2]


def test_two_broken_names_are_no_failure() -> None:
    """Spark's driver writes U+FFFD for bytes that are not UTF-8, so two private groups may come under one name."""
    study = session(pa.table({"p": [1], "ward": ["A"]}))

    class Driver(Engine):
        dialect, name = study.table.source.dialect, "driver"

        def rows(self, sql: str) -> Any:
            return [("A", 9, 9), ("\ufffd", 8, 8), ("\ufffd", 8, 8)]

    object.__setattr__(study.table.source, "engine", Driver())
    asked = study.group_by("ward", keys=dp.private(3, sigma=0.5)).persons(sigma=0.5)
    assert [row["ward"] for row in asked.release().rows()] == ["A"]


def test_a_connection_that_cannot_hold_every_text(postgres: Any) -> None:
    postgres.execute("CREATE TABLE coins (p BIGINT, coin TEXT); INSERT INTO coins VALUES (1, '\u20ac'), (2, '\u20ac')")
    postgres.commit()
    postgres.execute("SET client_encoding = 'LATIN1'")
    postgres.commit()
    with pytest.raises(dp.errors.InvalidArgument, match="client_encoding"):
        session((postgres, "coins"))
    postgres.execute("SET client_encoding = 'UTF8'")
    postgres.commit()
    asked = session((postgres, "coins")).group_by("coin", keys=dp.private(2, sigma=0.25)).persons(sigma=0.25)
    assert [row["coin"] for row in asked.release().rows()] == ["\u20ac"]


def test_tiny_numbers_on_a_coarse_grid() -> None:
    """Steps of two units and more: what is below one unit is at step 0, as a product would say."""
    values = [5e-324, -5e-324, 0.999999, -0.999999, 1.0, -1.0, 1e12, -1e12]
    table = pa.table({"p": pa.array(range(8), pa.int64()), "x": pa.array(values, pa.float64())})
    for each, total in (((0, 1e12), 1e12), ((-1e12, 1e12), 0.0)):
        (row,) = session(table).sum("x", each, sigma=1e6).release().rows()
        assert row["x_sum"] == pytest.approx(total, abs=2**19)


def test_files_of_comma_separated_values(tmp_path: Path) -> None:
    lines = [
        b"p,note,x",
        b'1,"two\nlines",3',
        b"2,\xff\xfe,1",
        b"3,a,b,c,d",
        b"4",
        b'5,"""",7',
        b"6,nan,inf",
        b"7,,1e999",
    ]
    path = tmp_path / "visits.csv"
    path.write_bytes(b"\n".join(lines + [b"%d,abc,%d" % (i, i) for i in range(10, 40_000)]) + b"\n")
    assert persons(session(str(path)).where("x >= 0 or x is null")) >= 39_990


def test_postgres_numbers_that_are_no_doubles(postgres: Any) -> None:
    """NUMERIC holds what doubles do not; products of tiny doubles underflow; dates are infinite."""
    postgres.execute(
        "CREATE TABLE hostile (p BIGINT, n NUMERIC, r REAL, x DOUBLE PRECISION, d DATE);"
        "INSERT INTO hostile VALUES (1, 5, 5, 5, '2026-01-01'), (2, 1e400, 1e38, 5e-324, 'infinity'),"
        "(3, -1e400, 'NaN', -5e-324, '-infinity'), (4, 1e-400, 'Infinity', 1e308, '20000-01-01'),"
        "(5, -1e-400, 1e-45, 'NaN', '0044-03-15 BC'), (6, 'NaN', '-Infinity', '-Infinity', NULL)"
    )
    postgres.commit()
    study = session((postgres, "hostile"))
    assert persons(study.where("n > 4 or n <= 4 or n is null")) == 6
    assert persons(study.where("n * n - x / 3 > 0 or r * x < 1 or x * x * x > -1 or p > 0")) == 6
    for column in ("n", "r", "x"):
        for each in ((0, 10), (0, 1e12), (-1e25, 1e25)):
            query = study.sum(column, each, sigma=1e4).mean(column, each, sigma=1e4).variance(column, each, sigma=1e4)
            (row,) = query.histogram(column, [each[0], each[1] / 2, each[1]], sigma=1).release().rows()
            assert row[f"{column}_sum"] == pytest.approx(row[f"{column}_sum"])
    keys = session((postgres, "hostile"), max_groups=1).group_by("d", keys=dp.private(2, sigma=0.25))
    assert keys.persons(sigma=0.25).release().rows() == []
