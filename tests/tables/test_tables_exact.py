"""Golden and laws: what the core query counts is what a plain Python loop counts; the texts of each dialect."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from neighbours import GROUPS, Drawer, Row, frame, keys
from play import PlayLedger

import dptally as dp
from dptally.tables import compiled as compiling
from dptally.tables import sources
from dptally.tables.dialect import DIALECTS
from dptally.tables.steps import EXACT, Steps

GOLDEN = Path(__file__).with_name("golden_sql.json")


def people(rng: random.Random) -> list[Row]:
    drawer = Drawer(rng, -3.0, 9.0, 5)
    return [row for person in range(30) for row in drawer.rows(person, 12)] + drawer.rows(None)


def step(value: float | None, low: int, high: int, exponent: int) -> int | None:
    """The nearest step inside the bounds; None where there is no number."""
    if value is None or math.isnan(value) or math.isinf(value):
        return None
    unit = Fraction(2) ** exponent
    if value <= low * unit:
        return low
    return high if value >= high * unit else math.floor(Fraction(value) / unit + Fraction(1, 2))


@pytest.fixture
def raw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_noised", lambda measure, values: [int(value) for value in values])


def run(rows: list[Row], ask: Any, **bounds: Any) -> dict[str, list[list[int]]]:
    table = dp.Table(frame([rows]), **bounds)
    session = dp.Session(table, ledger=PlayLedger(table.unit), dataset="d", by="")
    numbers: dict[str, list[list[int]]] = (
        ask(session.group_by("grp", keys=keys(1, 5))).compiled().run(table.source.engine)["numbers"]
    )
    return numbers


def grouped(rows: list[Row]) -> dict[tuple[int, str], list[float | None]]:
    found: dict[tuple[int, str], list[float | None]] = defaultdict(list)
    for row in rows:
        if row.person is not None and row.group in GROUPS:
            found[row.person, row.group].append(row.value)
    return found


@pytest.mark.usefixtures("raw")
@pytest.mark.parametrize("seed", range(4))
def test_person_unit(seed: int) -> None:
    rows = people(random.Random(seed))
    found = run(
        rows,
        lambda q: q.persons(sigma=5).rows(sigma=5).sum("value", (-3, 9), sigma=50),
        person="person",
        max_groups=5,
        max_rows=4,
    )
    low, high = -3 * 2**18, 9 * 2**18
    assert (Steps.of(Fraction(-3), Fraction(9)).low, Steps.of(Fraction(-3), Fraction(9)).high) == (low, high)
    totals: dict[str, list[int]] = {group: [0, 0, 0] for group in GROUPS}
    for (_, group), values in grouped(rows).items():
        steps = [step(value, -16 * high, 16 * high, -18) or 0 for value in values]
        totals[group][0] += 1
        totals[group][1] += min(len(values), 4)
        totals[group][2] += min(max(sum(steps), low), high)
    for index, name in enumerate(("persons", "rows", "value_sum")):
        assert [cell for (cell,) in found[name]] == [totals[group][index] for group in GROUPS]


@pytest.mark.usefixtures("raw")
@pytest.mark.parametrize("most", [None, 1, 3])
def test_means_and_squares(most: int | None) -> None:
    rows = people(random.Random(9))
    found = run(
        rows,
        lambda q: q.mean("value", (-3, 9), sigma=50).variance("value", (-3, 9), sigma=50),
        person="person",
        max_groups=5,
        max_rows=most,
    )
    kept = most or 1
    for name, bits in (("value_mean", 22), ("value_variance", 13)):
        exponent = 4 - bits
        unit = 2**-exponent
        low, middle = -3 * unit, 3 * unit
        expected = {group: [0, 0, 0] for group in GROUPS}
        for (_, group), values in grouped(rows).items():
            steps = [s for s in (step(value, low, 9 * unit, exponent) for value in values) if s is not None]
            count = len(steps)
            if count == 0:
                continue
            total, squares = sum(s - low for s in steps), sum((s - middle) ** 2 for s in steps)
            if kept == 1:
                total, squares = (total + count // 2) // count, (squares + count // 2) // count
            elif count > kept:
                total, squares = total * kept // count, squares * kept // count
            count = min(count, kept)
            summed = total - (middle - low) * count
            expected[group][0] += summed
            expected[group][1] += count
            expected[group][2] += summed**2 if most is None else squares
        parts = ("sum", "count", "squares") if name == "value_variance" else ("sum", "count")
        for index, part in enumerate(parts):
            assert [cell for (cell,) in found[f"{name}.{part}"]] == [expected[group][index] for group in GROUPS]


@pytest.mark.usefixtures("raw")
def test_row_unit_and_bins() -> None:
    rows = people(random.Random(5))
    edges = [-3.0, 0.0, 1.0, 4.0, 9.0]
    found = run(
        rows,
        lambda q: (
            q.rows(sigma=5)
            .sum("value", (-3, 9), sigma=50)
            .histogram("value", edges, sigma=5)
            .quantile("value", 0.5, edges, sigma=5, name="tree")
        ),
    )
    groups: dict[str, list[float | None]] = {group: [] for group in GROUPS}
    for row in rows:
        if row.group in GROUPS:
            groups[row.group].append(row.value)
    for index, group in enumerate(GROUPS):
        values = groups[group]
        finite = [v for v in values if v is not None and math.isfinite(v)]
        assert found["rows"][index] == [len(values)]
        assert found["value_sum"][index] == [sum(step(v, -3 * 2**18, 9 * 2**18, -18) or 0 for v in values)]
        inside = [v for v in finite if -3 <= v <= 9]
        nearest = [float(math.floor(v * 2**18 + 0.5)) / 2**18 for v in inside]
        bins = [sum(1 for v in nearest if a <= v < b or (b == 9 and v == 9)) for a, b in pairwise(edges)]
        assert found["value"][index] == bins
        clamped = [float(math.floor(min(max(v, -3.0), 9.0) * 2**18 + 0.5)) / 2**18 for v in finite]
        leaves = [sum(1 for v in clamped if a <= v < b or (b == 9 and v == 9)) for a, b in pairwise(edges)]
        assert found["tree"][index] == [*leaves, len(finite)]


@pytest.mark.usefixtures("raw")
def test_an_empty_table() -> None:
    for bounds in ({}, {"person": "person", "max_groups": 2}):
        table = dp.Table(frame([[]]), **bounds)
        session = dp.Session(table, ledger=PlayLedger(table.unit), dataset="d", by="")
        for query in (
            session.sum("value", (0, 1), sigma=1),
            session.group_by("grp", keys=["a"]).sum("value", (0, 1), sigma=1),
        ):
            assert query.compiled().run(table.source.engine)["numbers"] == {"value_sum": [[0]]}
        private = session.group_by("grp", keys=dp.private(5, sigma=0.5)).sum("value", (0, 1), sigma=1)
        assert private.release().rows() == []


@pytest.mark.usefixtures("raw")
@pytest.mark.parametrize("each", [(0, 10), (2, 5), (-10, -1), (-7, 10)])
def test_sums_in_doubles_are_the_integers(each: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A row unit adds up doubles; a sum that they might have rounded is asked for again, and nothing changes."""
    rows = people(random.Random(str(each)))
    asked: list[str] = []
    plain = sources.DuckEngine.rows
    monkeypatch.setattr(sources.DuckEngine, "rows", lambda self, sql: asked.append(sql) or plain(self, sql))

    def total(query: Any) -> Any:
        return query.rows(sigma=1).sum("value", each, sigma=1)

    first = run(rows, total)
    steps = Steps.of(Fraction(each[0]), Fraction(each[1]))
    for index, group in enumerate(GROUPS):
        values = [step(row.value, steps.low, steps.high, steps.exponent) for row in rows if row.group == group]
        assert first["value_sum"][index] == [sum(value or 0 for value in values)]
    one_sign = each[0] >= 0 or each[1] <= 0
    doubles = [sql for sql in asked if "FLOOR" in sql and "CAST(FLOOR" not in sql]
    assert len(doubles) == one_sign
    asked.clear()
    monkeypatch.setattr(compiling, "EXACT", 1)
    assert run(rows, total) == first
    assert [sql for sql in asked if "CAST(FLOOR" in sql]


def test_large_sums_of_doubles_are_seen() -> None:
    """Power: beyond 2^53 the engine's doubles do lose whole numbers, and the result says so."""
    import duckdb

    lost = "SELECT CAST(SUM(x) AS BIGINT) FROM (VALUES (9007199254740992e0), (1e0), (1e0)) AS t(x)"
    ((total,),) = duckdb.connect().execute(lost).fetchall()
    assert total != 2**53 + 2
    assert total > EXACT


def texts() -> dict[str, dict[str, list[str]]]:
    """The SQL of a few queries in every dialect."""
    import dataclasses

    table = dp.Table(frame([[]]), person="person", max_groups=2)
    found: dict[str, dict[str, list[str]]] = {}
    for name, dialect in DIALECTS.items():
        engine = type("Fixed", (), {"dialect": dialect, "name": name})()
        twins = {
            "person": table,
            "rows": dp.Table(frame([[]]), person="person", max_groups=2, max_rows=3),
            "row": dp.Table(frame([[]])),
        }
        for unit, twin in twins.items():
            source = dataclasses.replace(twin.source, engine=engine, relation="visits")
            object.__setattr__(twin, "source", source)
            session = dp.Session(twin, ledger=PlayLedger(twin.unit), dataset="d", by="")
            base = session.where("value > 1 and label in ('a', 'O''Neill')").group_by("grp", keys=["A", "ä ${x}"])
            count = base.rows(sigma=5) if unit != "person" else base.persons(sigma=5)
            query = (
                count.sum("value", (0, 10), sigma=9)
                .mean("value", (0, 10), sigma=9)
                .histogram("value", [0, 5, 10], sigma=3)
                .count_distinct("label", 2, sigma=3)
            )
            private = session.group_by("grp", keys=dp.private(60, sigma=5)).sum("value", (0, 10), sigma=9)
            found.setdefault(name, {})[unit] = [*query.compiled().sql, *private.compiled().sql]
    return found


def test_the_texts_are_the_golden_ones() -> None:
    """Every change of the core query shows here; ``python tests/tables/test_tables_exact.py`` writes the file."""
    assert texts() == json.loads(GOLDEN.read_text(encoding="utf-8"))


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(texts(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
