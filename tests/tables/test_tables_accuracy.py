"""Statistical: printed error bars hold what they say, through the noise layer and through whole releases."""

from __future__ import annotations

import math
import os
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from play import PlayLedger

import dptally as dp
from dptally import audit
from dptally.law.adjacency import ADD_REMOVE, REPLACE
from dptally.tables import accuracy
from dptally.tables import compiled as compiling
from dptally.tables.aggregates import Cell
from dptally.tables.compiled import _noised

SOAK = bool(os.environ.get("DPTALLY_SOAK"))
DRAWS = 10_000
MANY = 10_000 if SOAK else 800
RELEASES = 200 if SOAK else 40


def session(frame: Any, **bounds: Any) -> dp.Session:
    table = dp.Table(frame, **bounds)
    return dp.Session(table, ledger=PlayLedger(table.unit), dataset="d", by="")


FRAME = pa.table({"who": [1], "x": [1.0]})


def drawn(query: Any, exact: list[list[int]], draws: int) -> list[list[tuple[Any, Any, Any]]]:
    """Estimates of many draws of the noise on the same exact numbers."""
    compiled = query.compiled()
    (aggregate,), (measures,) = compiled.asked.aggregates, compiled.measures
    noisy = [
        np.array(_noised(measure, values * draws)).reshape(draws, len(values)).tolist()
        for measure, values in zip(measures, exact, strict=True)
    ]
    return [aggregate.estimates(Cell(measures, [values[i] for values in noisy])) for i in range(draws)]


def covered(estimates: list[list[tuple[Any, Any, Any]]], truth: list[float]) -> list[float]:
    hits = [[low <= true <= high for (_, low, high), true in zip(row, truth, strict=True)] for row in estimates]
    return [sum(column) / len(hits) for column in zip(*hits, strict=True)]


SLACK = 4 * math.sqrt(0.95 * 0.05 / DRAWS)


@pytest.mark.statistical
@pytest.mark.parametrize("noise", [{"sigma": 7.5}, {"scale": 4.25}, {"sigma": 0.75}, {"scale": 0.5}, {"within": 20}])
def test_counts(noise: dict[str, float]) -> None:
    query = session(FRAME, person="who", max_groups=1).persons(**noise)
    (share,) = covered(drawn(query, [[500]], DRAWS), [500])
    measure = query.compiled().measures[0][0]
    gaussian, parameter = measure.noise.gaussian, measure.parameter
    wide = accuracy.width(gaussian, parameter)
    exact = 1 - accuracy.tail(gaussian, parameter, wide)
    assert exact >= 0.95
    assert abs(share - exact) <= SLACK
    assert wide == 0 or 1 - accuracy.tail(gaussian, parameter, wide - 1) < 0.95  # no narrower bar would do


@pytest.mark.statistical
@pytest.mark.parametrize("noise", [{"sigma": 5000.0}, {"scale": 3000.0}, {"within": 12_345.0}])
def test_sums(noise: dict[str, float]) -> None:
    query = session(FRAME, person="who", max_groups=1).sum("x", (0, 2000), **noise)
    exact = 123_456 * 2048
    (share,) = covered(drawn(query, [[exact]], DRAWS), [123_456.0])
    assert abs(share - 0.95) <= SLACK + 0.01  # the grid of the noise rounds the bar up


@pytest.mark.statistical
@pytest.mark.parametrize("noise", [{"sigma": 300.0}, {"scale": 200.0}])
@pytest.mark.parametrize("centred", [-40.0, 3.0, 49.0])
def test_means(noise: dict[str, float], centred: float) -> None:
    query = session(FRAME, person="who", max_groups=1).mean("x", (0, 100), **noise)
    total, count = query.compiled().measures[0]
    n = 1000
    steps = round(n * centred / float(Fraction(2) ** total.measure.exponent))
    draws = 10_000 if SOAK else 800
    (share,) = covered(drawn(query, [[steps], [n]], draws), [50 + centred])
    assert share >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / draws)
    assert share <= 0.999
    (empty,) = covered(drawn(query, [[0], [0]], 100), [50.0])
    assert empty >= 0.93
    assert count.parameter > 0


@pytest.mark.statistical
@pytest.mark.parametrize("noise", [{"sigma": 300.0}, {"scale": 200.0}])
def test_variances(noise: dict[str, float]) -> None:
    query = session(FRAME, person="who", max_groups=1).variance("x", (0, 100), **noise)
    total, _, squares = query.compiled().measures[0]
    n, mean, variance = 5000, 10.0, 600.0
    exact = [
        [round(n * mean / float(Fraction(2) ** total.measure.exponent))],
        [n],
        [round(n * (variance + mean**2) / float(Fraction(2) ** squares.measure.exponent))],
    ]
    (share,) = covered(drawn(query, exact, MANY), [variance])
    assert share >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / MANY)  # three bars at once: on the safe side
    (value, low, high) = drawn(query, [[0], [0], [0]], 1)[0][0]
    assert 0 <= low <= value <= high <= 2500


@pytest.mark.statistical
@pytest.mark.parametrize("noise", [{"sigma": 15.0}, {"scale": 10.0}])
def test_quantiles(noise: dict[str, float]) -> None:
    shares = [0.1, 0.5, 0.9]
    query = session(FRAME, person="who", max_groups=1).quantile("x", shares, bins=range(41), **noise)
    leaves = [50 + 10 * (i % 7) for i in range(40)]
    levels = [leaves]
    while len(levels[-1]) > 1:
        levels.append([sum(levels[-1][i : i + 4]) for i in range(0, len(levels[-1]), 4)])
    cumulative = np.cumsum([0, *leaves])
    truth = [float(np.interp(share * cumulative[-1], cumulative, range(41))) for share in shares]
    draws = MANY
    found = covered(drawn(query, [[value for level in levels for value in level]], draws), truth)
    assert min(found) >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / draws)


@pytest.mark.statistical
def test_whole_releases() -> None:
    """All bars of whole releases at once, against the bounded truth."""
    rng = random.Random(4)
    frame = pa.table(
        {
            "who": list(range(4000)),
            "ward": [rng.choice("ABC") for _ in range(4000)],
            "x": [rng.uniform(0, 100) for _ in range(4000)],
        }
    )
    asked = session(frame, person="who", max_groups=3).group_by("ward", keys=["A", "B", "C"])
    query = (
        asked.persons(sigma=9)
        .sum("x", (0, 100), sigma=900)
        .mean("x", (0, 100), sigma=900)
        .quantile("x", 0.5, bins=range(0, 101, 5), sigma=9)
    )
    columns = frame.to_pydict()
    hits: dict[str, list[bool]] = {}
    for _ in range(RELEASES):
        for row in query.release().rows():
            values = sorted(x for x, ward in zip(columns["x"], columns["ward"], strict=True) if ward == row["ward"])
            truths = {
                "persons": len(values),
                "x_sum": sum(values),
                "x_mean": sum(values) / len(values),
                "x_q50": values[len(values) // 2],
            }
            for name, true in truths.items():
                hits.setdefault(name, []).append(row[f"{name}_low"] <= true <= row[f"{name}_high"])
    for name, found in hits.items():
        assert sum(found) / len(found) >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / len(found)), name
        assert name == "x_q50" or not SOAK or sum(found) / len(found) <= 0.995


def test_widths_have_power() -> None:
    """A bar for noise that is a tenth narrower would be noticed."""
    query = session(FRAME, person="who", max_groups=1).persons(sigma=20)
    wide = accuracy.width(True, 18.0)
    values = [row[0][0] - 500 for row in drawn(query, [[500]], DRAWS)]
    assert sum(abs(value) <= wide for value in values) / DRAWS < 0.95 - SLACK


def test_within_is_never_on_the_wrong_side() -> None:
    study = session(FRAME, person="who", max_groups=1)
    for gaussian_ledger in ("zcdp", "pure"):
        study = session(FRAME, person="who", max_groups=1)
        object.__setattr__(study, "ledger", PlayLedger("person:who", kind=gaussian_ledger))
        for within in (1, 2, 5, 80, 1000, 123_457):
            (measure,) = study.persons(within=within).compiled().measures[0]
            assert accuracy.width(measure.noise.gaussian, measure.parameter) <= within
            looser = accuracy.tail(measure.noise.gaussian, measure.parameter * 1.02, within)
            assert looser > 0.05  # and not far on the right side
        for within in (0.5, 7.3, 150_000.0, 1e9):
            (measure,) = study.sum("x", (0, 2000), within=within).compiled().measures[0]
            assert accuracy.width(measure.noise.gaussian, measure.parameter) * measure.unit <= Fraction(within)


def test_ratio_widths() -> None:
    draws = np.random.default_rng(3)
    for gaussian in (True, False):
        for second in (0.0, 0.3, 1.0, 2.0):
            draw = draws.normal if gaussian else draws.laplace
            values = np.abs(draw(0, 1, 40_000) + (draw(0, second, 40_000) if second else 0))
            share = float(np.mean(values <= accuracy.ratio_width(gaussian, 1.0, second)))
            assert abs(share - 0.95) < 0.006


# -- audits of extremal pairs, end to end ------------------------------------------------------------------------

SAMPLES = 20_000 if SOAK else 1_200


def table_of(*rows: tuple[int, str, float]) -> Any:
    who, ward, x = zip(*rows, strict=True)
    return pa.table({"who": pa.array(who), "ward": pa.array(ward), "x": pa.array(x, pa.float64())})


OTHERS = ((50, "A", 1.0), (51, "B", 2.0))
AUDITED = [
    ("persons", ADD_REMOVE, {"person": "who", "max_groups": 1}, ((1, "A", 1.0),), lambda q: q.persons(scale=0.5)),
    ("persons", REPLACE, {"person": "who", "max_groups": 1}, ((1, "A", 1.0),), lambda q: q.persons(scale=1.0)),
    ("rows", ADD_REMOVE, {}, ((1, "A", 1.0),), lambda q: q.rows(scale=0.5)),
    ("rows", REPLACE, {}, ((1, "A", 1.0),), lambda q: q.rows(scale=1.0)),
    (
        "sum",
        ADD_REMOVE,
        {"person": "who", "max_groups": 1},
        ((1, "A", 8.0),) * 3,
        lambda q: q.sum("x", (0, 8), scale=4.0),
    ),
    ("sum", ADD_REMOVE, {}, ((1, "A", 8.0),), lambda q: q.sum("x", (0, 8), scale=4.0)),
    (
        "mean",
        ADD_REMOVE,
        {"person": "who", "max_groups": 1},
        ((1, "A", 8.0),),
        lambda q: q.mean("x", (0, 8), scale=4.0),
    ),
    ("histogram", ADD_REMOVE, {}, ((1, "A", 8.0),), lambda q: q.histogram("x", [0, 4, 8], scale=0.5)),
    ("quantile", ADD_REMOVE, {}, ((1, "A", 8.0),), lambda q: q.quantile("x", 0.5, [0, 4, 8], scale=1.0)),
]
PERSON: dict[str, Any] = {"person": "who", "max_groups": 1}
if SOAK:  # every other cell of the table of sensitivities
    one = ((1, "A", 8.0),)
    AUDITED += [
        ("rows", ADD_REMOVE, PERSON | {"max_rows": 2}, one * 3, lambda q: q.rows(scale=1.0)),
        ("rows", REPLACE, PERSON | {"max_rows": 2}, one * 3, lambda q: q.rows(scale=2.0)),
        ("sum", REPLACE, {}, one, lambda q: q.sum("x", (0, 8), scale=8.0)),
        ("sum", REPLACE, PERSON, one * 3, lambda q: q.sum("x", (0, 8), scale=8.0)),
        ("sum of both signs", ADD_REMOVE, PERSON, one, lambda q: q.sum("x", (-8, 8), scale=4.0)),
        ("sum of both signs", REPLACE, PERSON, one, lambda q: q.sum("x", (-8, 8), scale=12.0)),
        ("mean", ADD_REMOVE, {}, one, lambda q: q.mean("x", (0, 8), scale=4.0)),
        ("mean", REPLACE, {}, one, lambda q: q.mean("x", (0, 8), scale=8.0)),
        ("mean", REPLACE, PERSON, one, lambda q: q.mean("x", (0, 8), scale=8.0)),
        ("variance", ADD_REMOVE, {}, one, lambda q: q.variance("x", (0, 8), scale=6.0)),
        ("variance", REPLACE, PERSON, one, lambda q: q.variance("x", (0, 8), scale=12.0)),
        ("histogram", REPLACE, {}, one, lambda q: q.histogram("x", [0, 4, 8], scale=1.0)),
        ("histogram", ADD_REMOVE, PERSON, one, lambda q: q.histogram("x", [0, 4, 8], scale=0.5)),
        ("histogram", REPLACE, PERSON, one, lambda q: q.histogram("x", [0, 4, 8], scale=1.0)),
        ("quantile", REPLACE, {}, one, lambda q: q.quantile("x", 0.5, [0, 4, 8], scale=2.0)),
        ("quantile", ADD_REMOVE, PERSON, one, lambda q: q.quantile("x", 0.5, [0, 4, 8], scale=1.0)),
        ("quantile", REPLACE, PERSON, one, lambda q: q.quantile("x", 0.5, [0, 4, 8], scale=2.0)),
    ]


def exact_numbers(monkeypatch: pytest.MonkeyPatch, compiled: Any, engine: Any) -> tuple[Any, Any]:
    """The numbers of a table before noise, and the scale of the noise of each."""
    numbers: list[int] = []
    scales: list[float] = []

    def silent(measure: Any, values: list[int]) -> list[int]:
        numbers.extend(measure.on_grid(value) for value in values)
        scales.extend([float(measure.parameter)] * len(values))
        return numbers[-len(values) :]

    with monkeypatch.context() as patch:
        patch.setattr(compiling, "_noised", silent)
        compiled.run(engine)
    return np.array(numbers), np.array(scales)


def likelihood_ratio(first: tuple[Any, Any], second: tuple[Any, Any]) -> Any:
    """The statistic that tells two tables apart best (all noise here is discrete Laplace), so the audit need not
    find a direction by itself.
    """
    (here, scales), (there, _) = first, second
    return lambda seen: float(np.sum((np.abs(np.array(seen) - there) - np.abs(np.array(seen) - here)) / scales))


@pytest.mark.statistical
@pytest.mark.parametrize("case", AUDITED, ids=lambda case: f"{case[0]} {case[1].name} {'person' if case[2] else 'row'}")
def test_audited_end_to_end(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole releases on an extremal pair of tables do not refute the account, and come near it. The SQL of each
    table runs once, as it gives the same integers every time; everything after it runs for every sample.
    """
    known: dict[tuple[int, str], Any] = {}

    def remembered(engine: Any, sql: str) -> Any:
        if (id(engine), sql) not in known:
            known[id(engine), sql] = plain_run(engine, sql)
        return known[id(engine), sql]

    plain_run = compiling.run
    monkeypatch.setattr(compiling, "run", remembered)
    _, adjacency, bounds, extra, ask = case
    moved = tuple((row[0], "B", row[2]) for row in extra) if adjacency is REPLACE else ()
    queries = []
    for rows in (OTHERS + extra, OTHERS + moved):
        table = dp.Table(table_of(*rows), **bounds)
        made = dp.Session(table, ledger=PlayLedger(table.unit, adjacency), dataset="d", by="")
        queries.append((ask(made.group_by("ward", keys=["A", "B"])).compiled(), table.source.engine))
    claim = queries[0][0].plan
    telling = likelihood_ratio(*(exact_numbers(monkeypatch, *query) for query in queries))

    def run(which: int) -> float:
        compiled, engine = queries[which]
        numbers = compiled.run(engine)["numbers"]
        return telling([value for cells in numbers.values() for cell in cells for value in cell])

    result = audit.run(run, 0, 1, claim, samples=SAMPLES, confidence=1 - 1e-8)
    assert not result.refuted  # wrong with probability 1e-8
    assert result.lower > 0.2 * result.claimed  # the pair can tell; the bound lies 6 standard deviations above this
