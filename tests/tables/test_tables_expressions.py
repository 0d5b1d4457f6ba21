"""Contract: what users write in SQL is read by a closed list; nothing else reaches an engine."""

from __future__ import annotations

import os
import random
import re
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from play import PlayLedger

import dptally as dp
from dptally.errors import DptallyError, RefusedExpression
from dptally.tables import expressions
from dptally.tables.dialect import BIGQUERY, DIALECTS, DUCKDB, POSTGRES, SPARK, Dialect
from dptally.tables.engine import Engine
from dptally.tables.kinds import Column, Kind, Schema

SOAK = bool(os.environ.get("DPTALLY_SOAK"))
SCHEMA = Schema.of(
    [
        Column("age", Kind.INTEGER),
        Column("cost", Kind.REAL),
        Column("ward", Kind.TEXT),
        Column("old", Kind.BOOLEAN),
        Column("day", Kind.DATE),
        Column("seen", Kind.TIMESTAMP),
        Column("at", Kind.INSTANT),
        Column("huge", Kind.WIDE, plain=False),
        Column("thing", Kind.OTHER),
        Column('od"d', Kind.INTEGER),
    ]
)
ALLOWED = [
    "age >= 65 and ward in ('A', 'B')",
    "cost between 1 and 2 or day is null",
    "not (age = -1 or cost <> 1.5e3)",
    "old and ward like 'A_%'",
    "day >= '2026-01-31' and seen < '2026-01-31 12:00:00' and at >= '2026-01-31'",
    "case when age > 10 then cost * 2 else 0 - age end <= 100 / 3",
    "cost + age * 2 - cost / 4 > 0.5",
    "ward is not null and ward = 'O''Neill'",
    "AGE > 3 -- a comment",
    '"od""d" = 1 and huge > 5',
    "old = true and age in (1, 2.5)",
    "-cost < 3 and 3 > -age",
]
REFUSED = [
    ("1 / (age - 43) > 0", "only a constant other than 0 may divide"),
    ("cost / 0 > 1", "only a constant other than 0"),
    ("age > (select avg(age) from t)", "subquery"),
    ("exists (select 1)", "subquery"),
    ("random() < 0.5", "randomness"),
    ("sqrt(cost) > 1", "not in the list"),
    ("row_number() over (order by age) < 5", "window"),
    ("cast(ward as int) = 1", "cast"),
    ("ward::int = 1", "cast"),
    ("try_cast(ward as int) = 1", "cast"),
    ("age % 2 = 0", "remainder"),
    ("age = null", "IS NULL"),
    ("age is true", "IS is followed"),
    ("ward = age", "cannot be compared"),
    ("ward > old", "cannot be compared"),
    ("day > 5", "cannot be compared"),
    ("day = '2026-13-01'", "is not a date"),
    ("seen = '2026-01-01 00:00:00+02:00'", "without a zone"),
    ("thing = 1", "of a type that no operation"),
    ("nobody = 1", "has no column 'nobody'"),
    ("t.age = 1", "column's name alone"),
    ("age", "true or false"),
    ("age and old", "true or false"),
    ("age + ward > 1", None),
    ("ward + 1 > 1 and day + 1 > day", "must be a number"),
    ("ward in (select ward from t)", None),
    ("ward in (ward, 'a')", "list of constants"),
    ("ward like ward", "LIKE takes"),
    ("ward like 'a\\'", "LIKE takes"),
    ("ward ilike 'a'", "not in the list"),
    ("age > ?", "parameters"),
    ("age > $1", None),
    ("age; drop table x", "cannot be read"),
    ("age = 1; select 1", "cannot be read"),
    ("age = 1 union select 2", None),
    ("", "cannot be read"),
    ("((((", "cannot be read"),
    ("age = 1e999", None),
    ("cost = 1e60", "between 1e-50 and 1e50"),
    ("cost*cost*cost*cost*cost*cost > 1", "too many products"),
    ("case age when 1 then 2 end = 2", "CASE WHEN"),
    ("case when old then 1 else 'a' end = 1", "one kind"),
    ("age between symmetric 1 and 2", None),
    ("list_contains([1], age)", "not in the list"),
    ("age = 1 \x07", "control characters"),
    ("age in (1) " + "and age in (1) " * 1000, "longer than"),
    ("not " * 300 + "old", None),
    ("getenv('HOME') = 'x'", "not in the list"),
    ("ward = (values ('a'))", None),
]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda d: d.name)
@pytest.mark.parametrize("text", ALLOWED)
def test_allowed(text: str, dialect: Dialect) -> None:
    sql = expressions.condition("where", text, SCHEMA, dialect)
    assert "--" not in sql
    assert ";" not in sql


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_refused(text: str, reason: str | None) -> None:
    with pytest.raises(RefusedExpression) as refusal:
        expressions.condition("where", text, SCHEMA, POSTGRES if "ward" in text else DUCKDB)
    assert reason is None or reason in str(refusal.value)
    assert 0 <= refusal.value.place <= len(text)
    assert "^" in refusal.value.pointed()


def test_the_place_is_where_it_is() -> None:
    with pytest.raises(RefusedExpression) as refusal:
        expressions.condition("where", "age > 5 and\nsqrt(cost) > 1", SCHEMA, DUCKDB)
    assert refusal.value.place == 12
    assert refusal.value.pointed().endswith("sqrt(cost) > 1\n  ^")


def test_texts_are_read_as_numbers_where_the_engine_has_a_total_cast() -> None:
    assert "TRY_CAST" in expressions.condition("where", "ward > 5", SCHEMA, DUCKDB)
    assert "TRY_CAST" in expressions.condition("where", "5 < ward", SCHEMA, SPARK)
    with pytest.raises(RefusedExpression, match="cannot be compared"):
        expressions.condition("where", "ward > 5", SCHEMA, POSTGRES)


def test_arithmetic_never_leaves_the_doubles() -> None:
    """On DuckDB: a row of extreme values gives NULL or a number, whatever the expression."""
    values = [None, float("nan"), float("inf"), float("-inf"), 1.7e308, -1.7e308, 5e-324, 0.0, 1e-60, 1e60]
    table = duckdb.connect()
    table.register("t", pa.table({"a": pa.array(values, pa.float64()), "b": pa.array(values[::-1], pa.float64())}))
    schema = Schema.of([Column("a", Kind.REAL), Column("b", Kind.REAL)])
    for text in ("a * b * a", "a + b - a", "a * 3 / 7e20", "-a * b", "case when a > b then a * a else b end"):
        sql = expressions.number("column", text, schema, DUCKDB)
        found = table.execute(f"SELECT {sql} FROM t AS dptally_t CROSS JOIN (SELECT 1)").fetchall()
        small = [value for (value,) in found if value is not None and "case" not in text]
        assert all(abs(value) <= 1e250 for value in small)


def test_hostile_identifiers_and_literals_stay_inside_their_quotes() -> None:
    words = [
        "'",
        '"',
        "`",
        "\\",
        "--",
        "/*",
        "*/",
        ";",
        "${x}",
        "$1",
        "%s",
        "?",
        "\n",
        "ä",
        "\u202e",
        "''",
        "\\'",
        "{}",
    ]
    rng = random.Random(3)
    connection = duckdb.connect()
    for _ in range(300):
        text = "".join(rng.choices(words, k=rng.randint(1, 6)))
        sql = DUCKDB.literal(text)
        assert connection.execute(f"SELECT {sql}").fetchone() == (text,)
        for dialect in DIALECTS.values():
            plain = dialect.literal(text)
            assert re.fullmatch(r"'[^'\\$]*'|[A-Za-z_]+\(.*'[0-9a-f]*'.*\)|CAST\(X'[0-9a-f]*' AS STRING\)", plain)
    for name in ('a"b', "a'b", "a;b", "a--b", "a b", "Ä", "${x}", "a{}b"):
        frame = pa.table({name: [1, 2, 3]})
        table = dp.Table(frame)
        session = dp.Session(table, ledger=PlayLedger(), dataset="d", by="")
        assert session.sum(name, (0, 5), sigma=1).release().rows()[0][f"{name}_sum"] is not None
    for name in ("", "a\nb", "x" * 300, "dptally_t"):
        with pytest.raises(DptallyError):
            DUCKDB.name_of(name)
    with pytest.raises(DptallyError):
        SPARK.name_of("${x}")
    with pytest.raises(DptallyError):
        BIGQUERY.name_of("a`b")
    for bad in ("\0", "\ud800", "x" * 5000):
        with pytest.raises(DptallyError):
            DUCKDB.literal(bad)


# -- mutated texts -------------------------------------------------------------------------------------------

TOKENS = [
    *(
        "select",
        "from",
        "where",
        "group by",
        "union",
        "drop table data",
        ";",
        "--",
        "/*",
        "*/",
        "'",
        '"',
        "(",
        ")",
        ",",
    ),
    *(
        "random()",
        "now()",
        "getenv('HOME')",
        "read_csv('/etc/passwd')",
        "count(*)",
        "sum(",
        "avg(",
        "1/0",
        "0x1",
        "1e999",
    ),
    *(
        "::int",
        "cast(",
        " as ",
        "null",
        "not",
        "in (",
        "between",
        "like",
        "case when",
        "end",
        "over ()",
        "*",
        "%",
        "||",
        "?",
    ),
    *(
        "$1",
        "${x}",
        "\\",
        "\x00",
        "ä",
        "𝔘",
        "patient_id",
        "ward",
        "cost",
        "data",
        "age",
        "pragma",
        "attach",
        "copy",
        "set",
    ),
    *(
        "limit 1",
        "order by 1",
        "having 1=1",
        "with x as (",
        "values (1)",
        "exists",
        "[1]",
        "{'a': 1}",
        "x -> x",
        "@",
        "#",
    ),
]
SEEDS = [
    "SELECT ward, COUNT(DISTINCT patient_id), SUM(cost) FROM data WHERE age >= 65 GROUP BY ward",
    "SELECT COUNT(*) FROM data WHERE cost BETWEEN 1 AND 2",
    "SELECT ward, AVG(cost), VARIANCE(cost) FROM data WHERE ward IN ('A', 'B') AND NOT age IS NULL GROUP BY ward",
    "SELECT SUM(cost) AS total FROM data",
]


def mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 4)):
        draw, place = rng.random(), rng.randint(0, len(text))
        if draw < 0.35:
            text = f"{text[:place]} {rng.choice(TOKENS)} {text[place:]}"
        elif draw < 0.5:
            text = text[:place] + text[place + rng.randint(1, 8) :]
        elif draw < 0.65:
            text = text[:place] + chr(rng.choice([rng.randint(0, 127), rng.randint(128, 0x2FFF)])) + text[place:]
        elif draw < 0.85:
            words = text.split(" ")
            words[rng.randrange(len(words))] = rng.choice(TOKENS)
            text = " ".join(words)
        else:
            other = rng.choice(SEEDS)
            text = text[:place] + other[rng.randint(0, len(other)) :]
    return text


class Watched(Engine):
    """Passes SQL on and remembers it."""

    def __init__(self, engine: Any) -> None:
        super().__init__()
        self.engine, self.seen = engine, []
        self.dialect, self.name = engine.dialect, engine.name

    def rows(self, sql: str) -> Any:
        self.seen.append(sql)
        return self.engine.rows(sql)

    def same(self, other: Any) -> bool:
        return False


CORE = re.compile(r"SELECT (c, |k0, )?(CAST\(SUM\(|COUNT\(\*\))|SELECT dptally_k\.c AS c, m0")


def test_mutated_texts() -> None:
    """No engine error, no foreign error, nothing but the core query: a text is read or refused."""
    import dataclasses

    rng = random.Random(11)
    frame = pa.table({"patient_id": [1, 2, 2], "ward": ["A", "B", "A"], "cost": [1.0, 2.5, None], "age": [70, 80, 90]})
    table = dp.Table(frame, person="patient_id", max_groups=2, max_rows=3)
    watched = Watched(table.source.engine)
    object.__setattr__(table, "source", dataclasses.replace(table.source, engine=watched))
    session = dp.Session(table, ledger=PlayLedger("person:patient_id"), dataset="d", by="")
    read = refused = 0
    said: list[tuple[DptallyError, str]] = []
    for _ in range(10_000 if SOAK else 1_500):
        text = mutated(rng, rng.choice(SEEDS))
        keys = {"ward": ["A", "B"]} if "GROUP BY ward" in text else None
        try:
            query = session.sql(text, keys=keys, each={"cost": (0, 5), "age": (0, 99)}, cost=dp.ZCDP(0.1))
            if read % 3 == 0:
                query.release()
            read += 1
        except DptallyError as error:
            refused += 1
            said.append((error, text))
    assert not any(isinstance(error, dp.EngineFailed) for error, _ in said)
    assert not any("duckdb" in str(error).lower() and "duckdb" not in text.lower() for error, text in said)
    assert all(CORE.match(sql) for sql in watched.seen)
    assert watched.seen
    assert read > 10
    assert refused > 500


def test_select_texts() -> None:
    frame = pa.table({"patient_id": [1, 2], "ward": ["A", "B"], "cost": [1.0, 2.5]})
    table = dp.Table(frame, person="patient_id", max_groups=2, max_rows=3, name="visits")
    session = dp.Session(table, ledger=PlayLedger("person:patient_id"), dataset="d", by="")
    counted = 'SELECT "ward", COUNT(DISTINCT patient_id) AS people, SUM(cost * 2), AVG(cost)'
    text = f"{counted} FROM Visits WHERE cost > 1 GROUP BY ward"
    query = session.sql(text, keys={"ward": ["A"]}, each={"cost * 2": (0, 9), "COST": (0, 5)}, cost=dp.ZCDP(0.1))
    assert [a.label for a in query.aggregates] == ["people", "cost * 2_sum", "cost_mean"]
    wrong = {
        "SELECT 1": "FROM visits is missing",
        "SELECT * FROM visits": "only COUNT",
        "SELECT COUNT(*) FROM other": "FROM must be followed",
        "SELECT COUNT(*) FROM visits v": "FROM must be followed",
        "SELECT COUNT(*) FROM visits, visits": "JOINS is not",
        "SELECT COUNT(*) FROM visits LIMIT 1": "LIMIT is not",
        "SELECT DISTINCT COUNT(*) FROM visits": "DISTINCT is not",
        "SELECT MIN(cost) FROM visits": "only COUNT",
        "SELECT SUM(DISTINCT cost) FROM visits": None,
        "SELECT COUNT(cost) FROM visits": "write COUNT(*)",
        "SELECT COUNT(DISTINCT cost) FROM visits": "counts persons",
        "SELECT ward, COUNT(*) FROM visits": "must stand in GROUP BY",
        "SELECT COUNT(*) FROM visits GROUP BY ROLLUP(ward)": "column's name alone",
        "SELECT COUNT(*) FROM visits GROUP BY cost + 1": "column's name alone",
        "SELECT ward FROM visits GROUP BY ward": "nothing is aggregated",
        "WITH v AS (SELECT 1) SELECT COUNT(*) FROM visits": "WITH is not",
        "SELECT COUNT(*) FROM visits WHERE random() > 1": "randomness",
        "DELETE FROM visits": "cannot be read",
        "SELECT COUNT(*) FROM visits; DROP TABLE visits": "cannot be read",
    }
    for bad, reason in wrong.items():
        with pytest.raises(DptallyError) as refusal:
            session.sql(bad, keys={"ward": ["A"]} if "GROUP BY ward" in bad else None, each={"cost": (0, 5)})
        assert reason is None or reason in str(refusal.value), bad
    with pytest.raises(DptallyError, match="each must be given for cost"):
        session.sql("SELECT SUM(cost) FROM visits")
    with pytest.raises(DptallyError, match="left out without GROUP BY"):
        session.sql("SELECT COUNT(*) FROM visits", keys={"ward": ["A"]})
    with pytest.raises(DptallyError, match="keys must be given"):
        session.sql("SELECT COUNT(*) FROM visits GROUP BY ward")
    with pytest.raises(DptallyError, match="each must be"):
        session.sql("SELECT COUNT(*) FROM visits", each=[1])
