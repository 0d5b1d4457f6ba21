"""Contract: sessions, queries and results on a real ledger; what is refused, and what happens when an engine dies."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from play import PlayLedger

import dptally as dp
from dptally.ledger import Ledger
from dptally.tables import Query, Result, pages
from dptally.tables.engine import Engine

WARDS = ["A", "B", "C"]


def visits(rows: int = 600) -> pd.DataFrame:
    number = range(rows)
    return pd.DataFrame(
        {
            "patient_id": [i % 97 for i in number],
            "ward": [WARDS[(i * 7 + i % 5) % 3] for i in number],
            "cost": [float(i * 37 % 400) for i in number],
            "age": [i * 13 % 97 for i in number],
            "sex": ["f" if i % 97 % 2 else "m" for i in number],
            "day": [pd.Timestamp("2026-01-01") + pd.Timedelta(days=i % 300) for i in number],
        }
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{tmp_path}/budget.db", create=True) as opened:
        opened.create("ehr", budget=dp.ZCDP(9.0), delta=1e-5, unit="person:patient_id", failure=1e-6)
        yield opened


@pytest.fixture
def study(ledger: Ledger) -> dp.Session:
    table = dp.Table(visits(), person="patient_id", max_groups=2, name="visits")
    return dp.Session(table, ledger=ledger, dataset="ehr", by="alice")


def asked(study: dp.Session) -> Query:
    return (
        study.where("age >= 10 and day >= '2026-01-05'")
        .group_by("ward", keys=WARDS)
        .persons(within=20)
        .sum("cost", each=(0, 2000), within=15_000)
    )


# -- the whole way -------------------------------------------------------------------------------------------


def test_price_preview_explain_are_free(study: dp.Session, ledger: Ledger) -> None:
    query = asked(study)
    price, preview, text = query.price(), query.preview(), query.explain()
    assert ledger.history("ehr") == []
    assert price.cost == pytest.approx(query.compiled().plan.rho(), rel=1e-9)
    assert price.left == pytest.approx(9.0)
    assert price.fits == int(9.0 / price.cost)
    assert "such queries fit" in str(price)
    assert price.to_dict()["symbol"] == "rho"
    persons = preview["persons"]
    assert persons.half_width == 20
    assert preview["cost_sum"].half_width is not None
    assert 0.97 * 15_000 <= preview["cost_sum"].half_width <= 15_000
    assert persons.all_at_once is not None
    assert persons.all_at_once > 20
    assert "+-20 (95 %), all 3 groups at once" in str(preview)
    assert preview.to_dict()["groups"] == 3
    for word in ("one person", "at most 2 groups", "2 x 1 steps", "bound last", "SELECT c, ", "filter"):
        assert word in text


def test_release_and_replay(study: dp.Session, ledger: Ledger) -> None:
    query = asked(study)
    result = query.release(why="cost of wards", key="q-17")
    rows = result.rows()
    assert [row["ward"] for row in rows] == WARDS
    assert list(rows[0]) == [
        *("ward", "persons", "persons_low", "persons_high", "cost_sum", "cost_sum_low", "cost_sum_high")
    ]
    assert all(isinstance(row["persons"], int) and row["persons_high"] - row["persons_low"] == 40 for row in rows)
    assert list(result.frame().columns) == list(rows[0])
    again = query.release(why="cost of wards", key="q-17")
    assert again.rows() == rows
    assert again.receipt.replayed
    assert len(ledger.history("ehr")) == 1
    assert result.mechanism == query.compiled().plan
    assert result.engine.startswith("DuckDB")
    assert result.sql.startswith("SELECT c, ")
    assert result.receipt.number == 1
    assert study.left() == pytest.approx(9.0 - result.receipt.cost)
    with pytest.raises(dp.KeyReused):
        study.group_by("ward", keys=WARDS).persons(within=20).release(why="cost of wards", key="q-17")
    assert "q-17" not in repr(result)


def test_the_same_plan_under_a_key_is_not_another_querys_answer(study: dp.Session) -> None:
    study.where("age > 5").persons(sigma=9).release(key="k")
    with pytest.raises(dp.KeyReused, match="labels"):
        study.where("age > 50").persons(sigma=9).release(key="k")


def test_a_key_of_one_table_is_not_the_answer_of_another(study: dp.Session, ledger: Ledger) -> None:
    study.persons(sigma=9).release(key="k")
    other = dp.Table(visits().drop(columns="sex"), person="patient_id", max_groups=2, name="visits")
    with pytest.raises(dp.KeyReused, match="labels"):
        dp.Session(other, ledger=ledger, dataset="ehr", by="alice").persons(sigma=9).release(key="k")


def test_result_pages(study: dp.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    result = asked(study).histogram("age", bins=[0, 50, 100], sigma=5).release()
    assert isinstance(result, Result)
    for format, word in (("markdown", "| ward | persons |"), ("html", "<!doctype html>"), ("json", '"rows"')):
        assert word in result.report(format)
    assert "unit of privacy: one person (all rows with one patient_id), added or removed" in str(result)
    assert "<table>" in result._repr_html_()
    assert result.report("html").count("<svg") == len(result.columns)
    with pytest.raises(dp.InvalidArgument, match="format"):
        result.report("pdf")
    long = result.histogram("age")
    assert [row["from"] for row in long[:2]] == [0.0, 50.0]
    assert set(long[0]) == {"ward", "from", "to", "count", "count_low", "count_high"}
    with pytest.raises(dp.InvalidArgument, match="a histogram of the query"):
        result.histogram("cost")
    axes = result.plot()
    assert "persons" in axes.get_xlabel()
    assert "cost_sum" in result.plot("cost_sum", ax=axes).get_xlabel()
    with pytest.raises(dp.InvalidArgument, match="column"):
        result.plot("nobody")
    import matplotlib.pyplot as plt

    plt.close("all")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert type(result.frame()).__module__.startswith("polars")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(dp.MissingExtra):
        result.frame()


def test_numbers_are_written_as_people_write_them() -> None:
    shown = {9999: "9999", 12345: "12 345", -1234567.4: "-1 234 567", 1.5: "1.5", 2**62: "4 611 686 018 427 387 904"}
    assert {value: pages.number(value).replace("\N{NO-BREAK SPACE}", " ") for value in shown} == shown
    assert [pages.number(value) for value in (1e20, math.inf, math.nan, 0.0, 1e-9)] == [
        "1e+20",
        "inf",
        "nan",
        "0",
        "1e-09",
    ]


def test_no_group_is_an_answer_too(study: dp.Session) -> None:
    result = study.group_by("ward", keys=dp.private(5000, sigma=3)).persons(sigma=3).release()
    assert list(result.frame()) == ["ward", "persons", "persons_low", "persons_high"]
    assert "no group had enough persons" in result.report("html")


def test_names_of_answers_stay_apart(study: dp.Session) -> None:
    """Neither an error bar nor a stored number of one answer may be another's."""
    counted = study.persons(sigma=9, name="n")
    for name in ("n", "n_low", "n_high"):
        with pytest.raises(dp.InvalidArgument, match="not taken"):
            counted.rows(sigma=9, name=name)
    with pytest.raises(dp.InvalidArgument, match="not taken"):
        study.mean("cost", (0, 400), sigma=9, name="m").sum("cost", (0, 400), sigma=9, name="m.sum")
    with pytest.raises(dp.InvalidArgument, match="not taken"):
        study.group_by("ward", keys=WARDS).persons(sigma=9, name="ward")


def test_keys_are_no_markup(ledger: Ledger) -> None:
    hostile = ["<script>|</script>", r"$\frac{1}$", "$"]
    rows = pa.table({"patient_id": list(range(300)), "ward": [hostile[i % 3] for i in range(300)]})
    table = dp.Table(rows, person="patient_id", max_groups=1)
    private = dp.private(threshold=40, sigma=2)
    result = dp.Session(table, ledger=ledger, dataset="ehr").group_by("ward", keys=private).persons(sigma=2).release()
    assert {key for (key,) in result.keys} == set(hostile)
    for text in (result.report(), result.report("html"), result._repr_html_()):
        assert "<script" not in text
    result.plot().figure.canvas.draw()


def test_rounded_counts_are_not_negative(study: dp.Session) -> None:
    result = study.group_by("ward", keys=["nobody 1", "nobody 2", "nobody 3"]).persons(sigma=50).release()
    assert all(row["persons"] >= 0 for row in result.rows(rounded=True))


def test_every_aggregate_at_once(study: dp.Session) -> None:
    query = (
        study.persons(sigma=5)
        .sum("cost", (0, 2000), sigma=5000)
        .mean("age", (0, 100), sigma=200)
        .variance("age", (0, 100), sigma=200)
        .quantile("age", [0.25, 0.5], bins=range(0, 101, 10), sigma=5)
        .histogram("cost", bins=[0, 100, 400], sigma=5)
        .count_distinct("ward", 2, sigma=5)
        .median("cost", bins=range(0, 401, 50), sigma=5, name="bill")
    )
    (row,) = query.release().rows()
    names = (
        "persons",
        "cost_sum",
        "age_mean",
        "age_variance",
        "age_q25",
        "age_q50",
        "cost_0_100",
        "ward_distinct",
        "bill_q50",
    )
    for name in names:
        assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
    text = str(query.preview())
    assert "in a group of 1000" in text
    assert "rank is off" in text


def test_sql_text(study: dp.Session) -> None:
    query = study.sql(
        "SELECT ward, COUNT(DISTINCT patient_id), SUM(cost) FROM visits WHERE age >= 65 GROUP BY ward",
        keys={"ward": WARDS},
        each={"cost": (0, 2000)},
        cost=dp.ZCDP(0.002),
    )
    assert 0.00199 <= query.compiled().plan.rho() <= 0.002
    assert query.price().cost <= 0.002 * (1 + 1e-9)


# -- costs ---------------------------------------------------------------------------------------------------


def test_costs_are_shared_and_never_passed(study: dp.Session) -> None:
    query = study.group_by("ward", keys=WARDS).persons().mean("age", (0, 100)).variance("cost", (0, 400), weight=2)
    for rho in (1e-4, 0.01, 1.0):
        plan = query.compiled(dp.ZCDP(rho)).plan
        assert 0.98 * rho <= plan.rho() <= rho
    assert query.compiled(dp.PureDP(0.5)).plan.epsilon(delta=0) <= 0.5
    compiled = query.compiled(dp.ApproxDP(1.0, 1e-6))
    assert compiled.plan.rho() <= dp.calibrate(dp.ZCDP, epsilon=1.0, delta=1e-6)
    mine = study.persons(cost=dp.ZCDP(0.01)).compiled()
    assert mine.plan.rho() == pytest.approx(0.01, rel=1e-6)
    with pytest.raises(dp.InvalidArgument, match="left out where every aggregate"):
        study.persons(sigma=5).compiled(dp.ZCDP(0.1))
    with pytest.raises(dp.InvalidArgument, match="or cost= for the query"):
        study.persons().price()
    with pytest.raises(dp.InvalidArgument, match="ZCDP"):
        study.persons().price(dp.GaussianDP(1.0))
    with pytest.raises(dp.InvalidArgument, match="cost"):
        study.persons(cost=3)
    with pytest.raises(dp.InvalidArgument, match="cost"):
        study.persons().cost(3)  # type: ignore[arg-type]
    with pytest.raises(dp.InvalidArgument, match="one at a time"):
        study.persons(sigma=3, scale=4)


def test_pure_accounts_get_laplace_noise(ledger: Ledger) -> None:
    ledger.create("pure", budget=dp.PureDP(3.0), unit="person:patient_id")
    study = dp.Session(dp.Table(visits(), person="patient_id", max_groups=2), ledger=ledger, dataset="pure")
    query = asked(study).mean("age", (0, 100), within=30).variance("age", (0, 100), within=2000)
    assert "DiscreteLaplace" in repr(query.compiled().plan)
    assert "DiscreteGaussian" not in repr(query.compiled().plan)
    query.quantile("age", 0.5, bins=[0, 50, 100], within=60).release()
    (entry,) = ledger.history("pure")
    assert entry.state == "released"


def test_a_refused_budget_touches_nothing(study: dp.Session, ledger: Ledger) -> None:
    class Untouched(Engine):
        dialect, name = study.table.source.dialect, "untouched"

        def rows(self, sql: str) -> Any:
            raise AssertionError("the data was touched")

    object.__setattr__(study.table.source, "engine", Untouched())
    with pytest.raises(dp.BudgetExceeded):
        study.persons(sigma=0.125).release()
    assert ledger.history("ehr") == []


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "word"),
    [
        (lambda s: s.sum("cost"), "each must be given"),
        (lambda s: s.sum("cost", each=5), "each must be a pair"),
        (lambda s: s.sum("cost", each=(5, 5)), "low < high"),
        (lambda s: s.sum("cost", each=(0, 1e40)), "moderate size"),
        (lambda s: s.sum("day", each=(0, 1), sigma=1), "must be a number"),
        (lambda s: s.sum("nobody", each=(0, 1), sigma=1), "no column 'nobody'"),
        (lambda s: s.sum(7, each=(0, 1), sigma=1), "column must be"),
        (lambda s: s.rows(sigma=1).price(), "max_rows must be given"),
        (lambda s: s.group_by("ward").persons(sigma=1), "keys must be given"),
        (lambda s: s.group_by("ward", keys=[]), "at least one group"),
        (lambda s: s.group_by("ward", keys=["A", "A"]), "different from one another"),
        (lambda s: s.group_by("ward", keys="ABC"), "a list of groups"),
        (lambda s: s.group_by("ward", keys=[1]), "of the kind of column 'ward'"),
        (lambda s: s.group_by("cost", keys=[1.0]), "to group by"),
        (lambda s: s.group_by("nobody", keys=["A"]), "a column of the table"),
        (lambda s: s.group_by(keys=["A"]), "one column or more"),
        (lambda s: s.group_by("ward", "WARD", keys=["A"]), "different from one another"),
        (lambda s: s.group_by("ward", keys=["A"]).group_by("sex", keys=["f"]), "said once"),
        (lambda s: s.group_by("ward", "sex", keys=["A"]), "a dictionary of lists"),
        (lambda s: s.group_by("ward", "sex", keys={"ward": ["A"]}), "a list for each"),
        (lambda s: s.group_by("ward", "age", keys={"ward": WARDS, "age": range(30_000)}), "at most 50000"),
        (lambda s: s.persons(sigma=1).persons(sigma=2), "not taken"),
        (lambda s: s.persons(sigma=1, name=""), "a short printable text"),
        (lambda s: s.persons(sigma=-1), "positive"),
        (lambda s: s.persons(within=0.5).price(), "at least one step"),
        (lambda s: s.quantile("age", 1.5, bins=[0, 1], sigma=1), "strictly between 0 and 1"),
        (lambda s: s.quantile("age", [], bins=[0, 1], sigma=1), "one share or more"),
        (lambda s: s.quantile("age", 0.5, sigma=1), "bins must be given"),
        (lambda s: s.histogram("age", bins=[3, 2], sigma=1), "increasing"),
        (lambda s: s.histogram("age", bins=5, sigma=1), "bins must be"),
        (lambda s: s.histogram("age", bins=["a", "b"], sigma=1), "bins must be"),
        (lambda s: s.histogram("age", bins=[0, 1e-9, 1], sigma=1).price(), "four-millionth"),
        (lambda s: s.count_distinct("cost", sigma=1), "to count distinct"),
        (lambda s: s.where(5), "a text in SQL"),
        (lambda s: s._query().price(), "asks for something"),
        (lambda s: s.group_by("ward", keys=dp.private(60)).sum("cost", (0, 1), sigma=1).price(), "persons()"),
        (lambda s: s.group_by("ward", keys=dp.private(2)).persons(sigma=9).price(), "far enough above"),
        (lambda s: s.group_by("ward", keys=dp.private(epsilon=1, delta=1e-6)).persons(sigma=9).price(), "max_groups=1"),
        (lambda s: dp.private(), "threshold"),
        (lambda s: dp.private(5, epsilon=1), "given alone"),
        (lambda s: s.parts("cost", [1.0]), "column must be"),
        (lambda s: s.sum("cost", (0, 1), sigma=1e200).price(), "moderate size"),
        (
            lambda s: s.group_by("age", keys=range(97)).quantile("cost", 0.5, bins=range(1001), sigma=1).price(),
            "few enough for",
        ),
    ],
)
def test_refused(ask: Any, word: str | None, study: dp.Session) -> None:
    with pytest.raises(dp.DptallyError) as error:
        ask(study)
    assert word is None or word in str(error.value)


def test_units_must_agree(ledger: Ledger, study: dp.Session) -> None:
    with pytest.raises(dp.TermsMismatch, match="Write Table"):
        dp.Session(dp.Table(visits()), ledger=ledger, dataset="ehr")
    ledger.create("rows", budget=dp.ZCDP(1.0))
    with pytest.raises(dp.TermsMismatch, match="Leave out person="):
        dp.Session(study.table, ledger=ledger, dataset="rows")
    with pytest.raises(dp.InvalidArgument, match="table must be a Table"):
        dp.Session(visits(), ledger=ledger, dataset="ehr")  # type: ignore[arg-type]
    with pytest.raises(dp.InvalidArgument, match="ledger must be a Ledger"):
        dp.Session(study.table, ledger=None, dataset="ehr")  # type: ignore[arg-type]
    rows = dp.Session(dp.Table(visits()), ledger=ledger, dataset="rows")
    with pytest.raises(dp.InvalidArgument, match="asked of a table with persons"):
        rows.persons(sigma=1).price()
    assert "one row" in rows.rows(sigma=3).explain()
    table = dp.Table(visits(), person="patient_id")
    with pytest.raises(dp.InvalidArgument, match="max_groups must be given"):
        dp.Session(table, ledger=ledger, dataset="ehr").group_by("ward", keys=WARDS).persons(sigma=3).price()
    assert dp.Session(table, ledger=ledger, dataset="ehr").persons(sigma=3).price().cost > 0
    assert "Session(" in repr(study)
    assert "persons" in repr(asked(study))


# -- private keys --------------------------------------------------------------------------------------------


def test_private_keys(study: dp.Session) -> None:
    query = study.group_by("ward", keys=dp.private(threshold=30)).persons(sigma=4).sum("cost", (0, 2000), sigma=4000)
    plan = query.compiled().plan
    delta0 = next(m.declared_delta for m, _ in plan.parts if isinstance(m, dp.ApproxDP))
    exact = sum(pow(2.718281828459045, -(x * x) / 32) for x in range(29, 200))
    assert delta0 == pytest.approx(exact / (4 * (2 * 3.141592653589793) ** 0.5), rel=1e-6)
    assert {repr(m): n for m, n in plan.parts}[f"ApproxDP(epsilon=0.0, delta={delta0!r})"] == 2
    result = query.median("age", bins=range(0, 101, 20), sigma=3).release()
    assert [row["ward"] for row in result.rows()] == WARDS
    assert all(row["persons"] >= 30 for row in result.rows())
    assert "at least 30" in query.explain()
    own = study.group_by("ward", keys=dp.private(30, sigma=4)).sum("cost", (0, 2000), sigma=4000)
    assert own.compiled().presence is not None
    assert len(own.release().rows()) == 3
    assert query.preview().groups is None


def test_the_optimal_rule(ledger: Ledger) -> None:
    from dptally.tables.keys import optimal_rule

    rule = optimal_rule(1.0, 1e-8)
    half = next(n for n, p in enumerate(rule.chances) if p >= 0.5)
    assert half == 19  # Desfontaines et al. 2022 beside 20 for Laplace and 32 for Gaussian thresholds
    assert [rule.keeps(n) for n in (0, 10**6)] == [False, True]
    frame = pa.table({"who": list(range(300)), "town": ["big"] * 200 + ["small"] * 98 + ["one", "two"]})
    ledger.create("towns", budget=dp.ApproxDP(3.0, 1e-6), unit="person:who")
    session = dp.Session(dp.Table(frame, person="who", max_groups=1), ledger=ledger, dataset="towns")
    query = session.group_by("town", keys=dp.private(epsilon=1.0, delta=1e-8)).persons(sigma=10)
    assert [row["town"] for row in query.release().rows()] == ["big", "small"]
    assert "optimal rule" in query.explain()
    assert "ApproxDP(epsilon=1.0, delta=1e-08)" in repr(query.compiled().plan)


# -- joins and parts -----------------------------------------------------------------------------------------


def test_joins(ledger: Ledger, study: dp.Session) -> None:
    floors = pa.table({"ward": ["A", "A", "B"], "floor": ["1", "2", "3"]})
    joined = study.table.join_public(floors, "ward", how="left")
    assert "public table on ward" in repr(joined)
    session = dp.Session(joined, ledger=ledger, dataset="ehr")
    (row,) = session.where("floor = '3'").persons(sigma=0.5).release().rows()
    assert abs(row["persons"] - 97) < 10
    assert "joined before the bound" in session.persons(sigma=9).explain()
    letters = dp.Table(
        pd.DataFrame({"patient_id": [1, 1, 2], "letters": [1.0, 2.0, 3.0]}), person="patient_id", max_groups=1
    )
    both = study.table.join_person(letters)
    (row,) = dp.Session(both, ledger=ledger, dataset="ehr").persons(sigma=0.5).release().rows()
    assert abs(row["persons"] - 2) < 6
    rows = dp.Table(visits())
    with pytest.raises(dp.InvalidArgument, match="each value once"):
        rows.join_public(floors, "ward")
    assert "floor" in rows.join_public(floors.slice(1), "ward").columns
    for bad, word in (
        (lambda: rows.join_person(letters), "with persons"),
        (lambda: study.table.join_person(5), "a Table with persons"),
        (lambda: study.table.join_public(floors, "floor"), "a column of the table"),
        (lambda: study.table.join_public(floors, "ward", how="outer"), "inner or left"),
        (lambda: study.table.join_public(pa.table({"ward": ["A"], "age": [1]}), "ward"), "names of their own"),
        (lambda: study.table.join_public(pa.table({"ward": [1]}), "ward"), "of one kind"),
        (
            lambda: study.table.join_person(dp.Table(pa.table({"p": ["x"]}), person="p", max_groups=1)),
            "of the same kind",
        ),
    ):
        with pytest.raises(dp.DptallyError, match=word):
            bad()


def test_parts_are_disjoint_whatever_the_rows_say(tmp_path: Path) -> None:
    mixed = pa.table({"who": [1, 1, 2, 3, 3, 3], "sex": ["m", "f", "m", "f", "m", None]})
    with Ledger.open(f"sqlite:///{tmp_path}/parts.db", create=True) as ledger:
        ledger.create("d", budget=dp.ZCDP(20.0), unit="person:who", parts={"sex": ["f", "m"]})
        session = dp.Session(dp.Table(mixed, person="who", max_groups=1), ledger=ledger, dataset="d")
        halves = session.parts("sex", ["f", "m"])
        for value, expected in (("f", 2), ("m", 1)):
            query = halves[value].persons(sigma=0.25)
            (row,) = query.release().rows()
            assert abs(row["persons"] - expected) <= 2
        spent = 20.0 - ledger.remaining("d")
        assert spent == pytest.approx(halves["f"].persons(sigma=0.25).price().cost)  # not twice
        assert "part=('sex', 'f')" in repr(halves["f"])
        with pytest.raises(dp.InvalidArgument, match="whole population"):
            halves["f"].parts("sex", ["f"])
        other = dp.Table(mixed, person="who", max_groups=1, name="letters")  # here she might be in the other part
        before = ledger.remaining("d")
        with pytest.raises(dp.InvalidArgument, match=r"has paid for .* nothing was released"):
            dp.Session(other, ledger=ledger, dataset="d").parts("sex", ["m"])["m"].persons(sigma=9).release()
        assert ledger.remaining("d") == before
        assert dp.Session(other, ledger=ledger, dataset="d").persons(sigma=9).release()
        ledger.create("r", budget=dp.ZCDP(20.0), parts={"sex": ["f", "m"]})
        rows = dp.Session(dp.Table(mixed), ledger=ledger, dataset="r").parts("sex", ["m"])["m"]
        (row,) = rows.rows(sigma=0.25).release().rows()
        assert abs(row["rows"] - 3) <= 2


def _persons(session: dp.Session) -> int:
    """The exact number, from the engine itself."""
    ((found,),) = session.table.source.engine.rows(session.persons(sigma=1.0).compiled().sql[0])
    return int(found)


def test_ids_beyond_doubles_are_different_persons() -> None:
    """As doubles these two are equal: one would pull the other into her part, and join the other's rows."""
    ids = pa.array([2**63, 2**63 + 1], pa.uint64())
    table = dp.Table(pa.table({"who": ids, "sex": ["f", "m"]}), person="who", max_groups=1, max_rows=9)
    play: Any = PlayLedger(table.unit)
    parts = dp.Session(table, ledger=play, dataset="d").parts("sex", ["f", "m"])
    assert [_persons(part) for part in parts.values()] == [1, 1]
    letters = dp.Table(pa.table({"who": ids, "letters": [1.0, 2.0]}), person="who", max_groups=1)
    joined = dp.Session(table.join_person(letters), ledger=play, dataset="d")
    assert joined.table.source.engine.rows(joined.rows(sigma=1.0).compiled().sql[0])[0][0] == 2


def test_joins_do_not_move_a_person_into_another_part() -> None:
    """Whom a join drops, or what a public table calls her, has no say in which part she is."""
    mixed = pa.table({"who": [1, 1, 2], "ward": ["A", "B", "B"], "old": [True, None, False]})
    table = dp.Table(mixed, person="who", max_groups=1)
    play: Any = PlayLedger(table.unit)
    names = pa.table({"ward": ["B"], "region": ["north"]})
    for joined, expected in ((table, [1, 1]), (table.join_public(names, "ward"), [1, 1])):
        parts = dp.Session(joined, ledger=play, dataset="d").parts("ward", ["A", "B"])
        assert [_persons(part) for part in parts.values()] == expected
    with pytest.raises(dp.InvalidArgument, match="a column of the table"):
        dp.Session(table.join_public(names, "ward"), ledger=play, dataset="d").parts("region", ["north"])
    parts = dp.Session(table, ledger=play, dataset="d").parts("old", [False, True])
    assert [_persons(part) for part in parts.values()] == [1, 1]


# -- engines that fail ---------------------------------------------------------------------------------------


class Broken(Engine):
    """An engine that fails, with a text that must not go on."""

    def __init__(self, engine: Any, error: BaseException) -> None:
        super().__init__()
        self.dialect, self.name, self.error = engine.dialect, "broken", error

    def rows(self, sql: str) -> Any:
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("patient 17 has flu"), ConnectionError("lost"), MemoryError()])
def test_a_failure_keeps_the_debit_and_releases_nothing(
    error: BaseException, study: dp.Session, ledger: Ledger
) -> None:
    query, good = asked(study), study.table.source.engine
    object.__setattr__(study.table.source, "engine", Broken(good, error))
    with pytest.raises(dp.EngineFailed) as failure:
        query.release(why="w", key="k")
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    assert "flu" not in str(failure.value)
    (entry,) = ledger.history("ehr")
    assert entry.state == "reserved"
    left = ledger.remaining("ehr")
    object.__setattr__(study.table.source, "engine", good)
    assert len(query.release(why="w", key="k").rows()) == 3
    assert ledger.remaining("ehr") == left


@pytest.mark.parametrize(
    "answer",
    [
        [(0, None, 1)],
        [(7, 1, 1)],
        [(0, 1)],
        [(0, 1, 1), (0, 1, 1)],
        [(0, 1.5, 1)],
        [(True, 1, 1)],
        [(0, "flu", 1)],
        [(0, 1, 2.0)],
    ],
)
def test_an_answer_that_the_core_query_cannot_give(answer: Any, study: dp.Session) -> None:
    class Liar(Engine):
        dialect, name = study.table.source.dialect, "liar"

        def rows(self, sql: str) -> Any:
            return answer

    object.__setattr__(study.table.source, "engine", Liar())
    with pytest.raises(dp.EngineFailed):
        asked(study).release()


def test_a_killed_process_can_be_followed_by_another(tmp_path: Path) -> None:
    """kill -9 between the debit and the answer; then the same key elsewhere: one debit, one answer."""
    script = textwrap.dedent("""
        import os, signal, sys
        import dptally as dp, pyarrow as pa
        from dptally.tables.engine import Engine
        table = dp.Table(pa.table({"who": [1, 2, 3]}), person="who", max_groups=1)
        if sys.argv[2] == "die":
            class Dying(Engine):
                dialect, name = table.source.dialect, "dying"
                def rows(self, sql):
                    os.kill(os.getpid(), signal.SIGKILL)
            object.__setattr__(table.source, "engine", Dying())
        with dp.Ledger.open(sys.argv[1], create=True) as ledger:
            if "d" not in ledger.datasets():
                ledger.create("d", budget=dp.ZCDP(1.0), unit="person:who")
            result = dp.Session(table, ledger=ledger, dataset="d").persons(sigma=4).release(key="k")
            print(result.rows()[0]["persons"], len(ledger.history("d")))
    """)
    command = [sys.executable, "-c", script, f"sqlite:///{tmp_path}/kill.db"]
    assert subprocess.run([*command, "die"], capture_output=True, timeout=120).returncode == -9
    first = subprocess.run([*command, "live"], capture_output=True, text=True, timeout=120)
    again = subprocess.run([*command, "live"], capture_output=True, text=True, timeout=120)
    assert first.returncode == 0, first.stderr
    assert first.stdout.split()[1] == "1"
    assert again.stdout == first.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_table_from_before_a_fork_is_refused(study: dp.Session, ledger: Ledger) -> None:
    """The child of a fork has none of the engine's threads: it would wait for ever, with the debit made."""
    query, (read, write) = study.group_by("ward", keys=WARDS).persons(sigma=1000), os.pipe()
    query.release(why="w", key="before")
    child = os.fork()
    if child == 0:
        try:
            query.release(why="w", key="after")
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        assert "opened in the process that asks it" in said.read()
    os.waitpid(child, 0)
    assert len(ledger.history("ehr")) == 1
    with pytest.raises(TypeError, match="send its path"):
        pickle.dumps(query)


def test_two_who_compute_at_once_give_one_answer(study: dp.Session, ledger: Ledger) -> None:
    """Both run the query; settle is compare-and-set: the loser returns the winner's numbers."""
    good, barrier = study.table.source.engine, threading.Barrier(2)

    class Together(Engine):
        dialect, name = good.dialect, good.name

        def rows(self, sql: str) -> Any:
            barrier.wait(30)
            return good.rows(sql)

    object.__setattr__(study.table.source, "engine", Together())
    found: list[Any] = []
    query = study.group_by("ward", keys=WARDS).persons(sigma=1000)
    threads = [threading.Thread(target=lambda: found.append(query.release(why="w", key="k").rows())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 2
    assert found[0] == found[1]
    assert len(ledger.history("ehr")) == 1
