"""Contract: every source that a Table takes, read by its schema alone; foreign engines by their shape."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from play import PlayLedger

import dptally as dp
from dptally.tables.kinds import Column, Kind, Schema
from dptally.tables.sources import _postgres_column, _spark_column

ARROW = pa.table({"who": [1, 2, 2, 3], "ward": ["A", "B", "A", None], "cost": [1.0, 2.0, 3.0, float("nan")]})


def total(source: Any, **given: Any) -> float:
    """The sum of cost, all but exactly."""
    table = dp.Table(source, person="who", max_groups=2, **given)
    session = dp.Session(table, ledger=PlayLedger("person:who"), dataset="d", by="")
    return float(session.sum("cost", (0, 10), sigma=0.01).release().rows()[0]["cost_sum"])


def test_every_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(ARROW.slice(0, 2), tmp_path / "visits-1.parquet")
    pq.write_table(ARROW.slice(2), tmp_path / "visits-2.parquet")
    (tmp_path / "visits.csv").write_text("who,ward,cost\n1,A,1.0\n2,B,2.0\n2,A,3\n3,,x\n4,B\n5,C,1e400,7\n")
    (tmp_path / "visits.tsv").write_text("who\tcost\n1\t6\n")
    connection = duckdb.connect()
    connection.register("arrow", ARROW)
    connection.execute("CREATE TABLE visits AS SELECT * FROM arrow")
    sources = {
        "pattern": str(tmp_path / "visits-*.parquet"),
        "folder": tmp_path,
        "csv": tmp_path / "visits.csv",
        "tsv": str(tmp_path / "visits.tsv"),
        "arrow": ARROW,
        "pandas": ARROW.to_pandas(),
        "polars": pl.from_arrow(ARROW),
        "relation": connection.table("visits"),
        "pair": (connection, "visits"),
        "main": (connection, "main.visits"),
    }
    for name, source in sources.items():
        assert abs(total(source) - 6.0) < 0.2, name
    assert abs(total(connection, name="visits") - 6.0) < 0.2
    assert dp.Table(sources["pattern"]).name == "visits"
    assert dp.Table(ARROW).name == "data"
    assert dp.Table(ARROW, name="stays").name == "stays"
    monkeypatch.chdir(tmp_path)
    assert dp.Table("visits-1.parquet").name == "visits_1"


def test_what_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "broken.parquet").write_text("not parquet")
    for bad in (
        5,
        {"a": [1]},
        tmp_path / "nowhere.parquet",
        tmp_path / "a.txt",
        tmp_path / "empty.csv",
        (object(), "t"),
    ):
        with pytest.raises(dp.InvalidArgument):
            dp.Table(bad)
    with pytest.raises(dp.EngineFailed):
        dp.Table(tmp_path / "broken.parquet")
    with pytest.raises(dp.InvalidArgument, match="name"):
        dp.Table(duckdb.connect())
    with pytest.raises(dp.InvalidArgument, match="name"):
        dp.Table(ARROW, name=5)  # type: ignore[arg-type]
    with pytest.raises(dp.InvalidArgument, match="differ in more than case"):
        Schema.of([Column("a", Kind.TEXT), Column("A", Kind.TEXT)])
    with pytest.raises(dp.InvalidArgument, match="person must be"):
        dp.Table(ARROW, person="cost")
    with pytest.raises(dp.InvalidArgument, match="person must be"):
        dp.Table(ARROW, person="nobody")
    with pytest.raises(dp.InvalidArgument, match="person must be given"):
        dp.Table(ARROW, max_groups=3)
    with pytest.raises(dp.InvalidArgument, match="max_groups"):
        dp.Table(ARROW, person="who", max_groups=0)
    with pytest.raises(dp.InvalidArgument, match="max_rows"):
        dp.Table(ARROW, person="who", max_rows=2**21)


def test_files_must_be_alike(tmp_path: Path) -> None:
    """A column that is cast, or another one in its place, would fail on data or take rows for another person's."""
    pq.write_table(ARROW, tmp_path / "a.parquet")
    for other in (ARROW.drop_columns("cost"), ARROW.set_column(0, "who", pa.array(["1", "x", "y", "z"]))):
        pq.write_table(other, tmp_path / "b.parquet")
        with pytest.raises(dp.InvalidArgument, match=r"the same columns and types .*b\.parquet"):
            dp.Table(str(tmp_path / "*.parquet"), person="who", max_groups=2)
    pq.write_table(ARROW.select(["cost", "who", "ward"]), tmp_path / "b.parquet")
    assert abs(total(str(tmp_path / "*.parquet")) - 12.0) < 0.2
    (tmp_path / "a.csv").write_text("who,ward,cost\n1,A,1\n")
    (tmp_path / "b.csv").write_text("ward,who,cost\nA,1,1\n")
    with pytest.raises(dp.InvalidArgument, match=r"one header \(who,ward,cost\).*b\.csv"):
        dp.Table(str(tmp_path / "*.csv"), person="who", max_groups=2)
    with pytest.raises(dp.InvalidArgument, match="files alone"):
        dp.Table(str(tmp_path / "a.*"))
    with pytest.raises(dp.InvalidType, match=r"read_all\(\)"):
        dp.Table(ARROW.to_reader())


def test_no_row_is_read_before_a_release() -> None:
    """A frame whose rows cannot be read opens; only the release meets them, and says nothing of them."""

    class Secret:
        def __str__(self) -> str:
            raise RuntimeError("a secret")

        __repr__ = __str__

    frame = pd.DataFrame({"who": [1], "thing": pd.Series([Secret()], dtype=object)})
    table = dp.Table(frame, person="who", max_groups=1)
    session = dp.Session(table, ledger=PlayLedger("person:who"), dataset="d", by="")
    query = session.where("thing = 'x'").persons(sigma=1)
    assert query.preview() is not None
    with pytest.raises(dp.EngineFailed) as failure:
        query.release()
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None


def test_wide_and_other_types() -> None:
    frame = duckdb.sql(
        "SELECT CAST(i AS UBIGINT) AS who, CAST(i AS DECIMAL(10, 2)) AS cost, CAST('a' AS ENUM ('a', 'b')) AS kind, "
        "[1] AS list, uuid() AS id, CAST(i AS HUGEINT) AS huge, TIMESTAMP '2026-01-01' AS t, "
        "TIMESTAMPTZ '2026-01-01 00:00:00+00' AS z, i % 2 = 0 AS even, DATE '2026-01-01' + CAST(i AS INTEGER) AS day "
        "FROM range(5) AS r(i)"
    )
    table = dp.Table(frame, person="who", max_groups=2)
    kinds = {column.name: column.kind for column in table.schema.columns}
    assert kinds["who"] is Kind.WIDE
    assert kinds["list"] is Kind.OTHER
    assert kinds["id"] is Kind.TEXT
    session = dp.Session(table, ledger=PlayLedger("person:who"), dataset="d", by="")
    text = "kind = 'a' and huge >= 0 and t >= '2026-01-01' and z >= '2026-01-01' and id <> 'x'"
    for query in (
        session.where(text).sum("cost", (0, 9), sigma=0.01),
        session.where(text).group_by("kind", keys=["a"]).sum("cost", (0, 9), sigma=0.01),
    ):
        assert abs(query.release().rows()[0]["cost_sum"] - 10) < 0.2
    even = session.group_by("even", keys=[True, False]).persons(sigma=0.25).release().rows()
    assert abs(even[0]["persons"] - 3) <= 2
    days = session.group_by("day", keys=["2026-01-01", "2026-01-02"]).persons(sigma=0.25)
    assert str(days.release().rows()[1]["day"]) == "2026-01-02"
    private = session.group_by("day", "even", keys=dp.private(2, sigma=0.3)).persons(sigma=1)
    assert all(set(row) > {"day", "even"} for row in private.release().rows())
    both = session.group_by("even", "kind", keys=[(True, "a"), (False, "a")]).persons(sigma=1).release().rows()
    assert [row["even"] for row in both] == [True, False]
    with pytest.raises(dp.InvalidArgument, match="of the kind"):
        session.group_by("day", keys=["soon"])


# -- engines that are not here: their shape is ------------------------------------------------------------------


class FakeSpark:
    """Runs Spark's SQL on DuckDB where both spell it alike."""

    version = "4.0.0"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def sql(self, text: str) -> Any:
        self.seen.append(text)
        return self

    def collect(self) -> list[tuple[int, ...]]:
        return [(5,)]

    def table(self, name: str) -> Any:
        assert name == "`ehr`.`visits`"
        return frame_class()(self)


def frame_class() -> Any:
    class DataFrame:
        dtypes = [*(("who", "bigint"), ("cost", "decimal(10,2)"), ("x", "float"), ("c", "string collate UNICODE"))]  # noqa: RUF012

        def __init__(self, session: FakeSpark) -> None:
            self.sparkSession = session

        def createOrReplaceTempView(self, name: str) -> None:
            self.view = name

    DataFrame.__module__ = "pyspark.sql.dataframe"
    return DataFrame


def test_spark_by_its_shape() -> None:
    spark = FakeSpark()
    FakeSpark.__module__ = "pyspark.sql.session"
    for source in (frame_class()(spark), (spark, "ehr.visits")):
        table = dp.Table(source, person="who", max_groups=1)
        session = dp.Session(table, ledger=PlayLedger("person:who"), dataset="d", by="")
        assert isinstance(session.persons(sigma=1).release().rows()[0]["persons"], int)
        assert spark.seen[-1].startswith("SELECT COUNT(*) AS m0")
        assert table.source.engine.name == "Spark 4.0.0"
        assert {column.name: column.kind for column in table.schema.columns}["c"] is Kind.OTHER
    other = dp.Table(frame_class()(spark), person="who", max_groups=1)
    assert table.source.engine.same(other.source.engine)
    with pytest.raises(dp.InvalidArgument, match="on the same engine"):
        table.join_public(ARROW, "who")
    with pytest.raises(dp.InvalidType, match="a Spark DataFrame"):
        dp.Table(spark)
    assert _spark_column("a", "timestamp_ntz").kind is Kind.TIMESTAMP
    assert _postgres_column("a", 1043).kind is Kind.TEXT
    assert _postgres_column("a", 600).kind is Kind.OTHER


def test_ibis_by_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = duckdb.connect()
    connection.register("arrow", ARROW)
    connection.execute("CREATE TABLE visits AS SELECT * FROM arrow")

    class Backend:
        name, con = "duckdb", connection

    def table(operation: str) -> Any:
        made = type("Table", (), {"__module__": "ibis.expr.types.relations"})()
        made.op = lambda: type(operation, (), {})()
        made.get_backend = Backend
        made.get_name = lambda: "visits"
        return made

    assert abs(total(table("DatabaseTable")) - 6.0) < 0.2
    with pytest.raises(dp.InvalidArgument, match="without operations"):
        dp.Table(table("Filter"))


def test_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(dp.MissingExtra, match="tables"):
        dp.Table(ARROW)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    session = dp.Session(dp.Table(ARROW, person="who"), ledger=PlayLedger("person:who"), dataset="d", by="")
    with pytest.raises(dp.MissingExtra, match="tables"):
        session.where("cost > 1")
    assert isinstance(sys.modules["pyarrow"], ModuleType)


def test_joined_sources(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ward": ["A", "B"], "floor": [1, 2]}), tmp_path / "wards.parquet")
    pq.write_table(ARROW, tmp_path / "visits.parquet")
    for source in (ARROW, tmp_path / "visits.parquet"):
        table = dp.Table(source, person="who", max_groups=2).join_public(tmp_path / "wards.parquet", "ward")
        assert table.columns == ("who", "ward", "cost", "floor")
        again = table.join_person(dp.Table(pa.table({"who": [1, 2, 3], "old": [True, False, True]}), person="who"))
        session = dp.Session(again, ledger=PlayLedger("person:who"), dataset="d", by="")
        assert (
            abs(session.where("floor >= 1").sum("cost", (0, 10), sigma=0.01).release().rows()[0]["cost_sum"] - 6) < 0.2
        )
    connection = duckdb.connect()
    connection.register("arrow", ARROW)
    connection.execute("CREATE TABLE visits AS SELECT * FROM arrow")
    connection.execute("CREATE TABLE wards AS SELECT 'A' AS ward, 1 AS floor")
    here = dp.Table((connection, "visits"), person="who", max_groups=2)
    assert "floor" in here.join_public((connection, "wards"), "ward").columns
    with pytest.raises(dp.InvalidArgument, match="same DuckDB connection"):
        dp.Table(ARROW).join_public((connection, "wards"), "ward")
    with pytest.raises(dp.InvalidArgument, match="joined in DuckDB itself"):
        dp.Table(connection.table("visits")).join_public(ARROW.select(["ward"]), "ward")
