"""Laws: no neighbouring table moves an answer by more than its bound, and every bound is reached.

The whole path is run on DuckDB, from the frame to the integers that would get noise; only the noise is left out.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from neighbours import GROUPS, Drawer, Row, frame, keys, pair
from play import PlayLedger

import dptally as dp
from dptally import ADD_REMOVE, REPLACE
from dptally.tables import compiled as compiling
from dptally.tables.measures import Noisy

SOAK = bool(os.environ.get("DPTALLY_SOAK"))
PAIRS = 2000 if SOAK else 200
BATCHES = 8 if SOAK else 2

#: name -> (what to ask, needs persons, needs max_rows, bounds of all signs)
ASKED: dict[str, tuple[Any, bool, bool, bool]] = {
    "persons": (lambda q, low, high: q.persons(sigma=5), True, False, False),
    "rows": (lambda q, low, high: q.rows(sigma=5), False, True, False),
    "sum": (lambda q, low, high: q.sum("value", (low, high), sigma=50), False, False, True),
    "mean": (lambda q, low, high: q.mean("value", (low, high), sigma=50), False, False, True),
    "mean of rows": (lambda q, low, high: q.mean("value", (low, high), sigma=50), True, True, True),
    "variance": (lambda q, low, high: q.variance("value", (low, high), sigma=50), False, False, True),
    "variance of rows": (lambda q, low, high: q.variance("value", (low, high), sigma=50), True, True, True),
    "histogram": (lambda q, low, high: q.histogram("value", edges(low, high, 3), sigma=5), False, False, True),
    "histogram of rows": (lambda q, low, high: q.histogram("value", edges(low, high, 3), sigma=5), True, True, True),
    "quantile": (lambda q, low, high: q.quantile("value", 0.5, edges(low, high, 6), sigma=5), False, False, True),
    "quantile of rows": (lambda q, low, high: q.quantile("value", 0.5, edges(low, high, 6), sigma=5), True, True, True),
    "distinct": (lambda q, low, high: q.count_distinct("label", 2, sigma=5), False, False, True),
}
CELLS = [
    (name, unit, adjacency)
    for name, (_, persons, rows, _) in ASKED.items()
    for unit in ("person", "row")
    for adjacency in (ADD_REMOVE, REPLACE)
    if unit == "person" or not (persons or (rows and name != "rows"))
]


def edges(low: float, high: float, bins: int) -> list[float]:
    return [low + (high - low) * i / bins for i in range(bins)] + [high]


def exact(monkeypatch: pytest.MonkeyPatch, table: Any, ask: Any, adjacency: Any, setting: dict[str, Any]) -> Any:
    """The integers before the noise, on its grid and before it, world by world; and the measures."""
    grids: dict[str, list[int]] = {}

    def plain(measure: Noisy, values: list[int]) -> list[int]:
        grids[measure.measure.name] = [measure.on_grid(value) for value in values]
        return list(values)

    monkeypatch.setattr(compiling, "_noised", plain)
    unit = "row" if setting["person"] is None else "person:person"
    source = dp.Table(table, **{name: setting[name] for name in ("person", "max_groups", "max_rows")})
    session = dp.Session(source, ledger=PlayLedger(unit, adjacency), dataset="d", by="")
    query = ask(session.group_by("grp", keys=setting["keys"]))
    made = query.compiled()
    return made, made.run(source.source.engine)["numbers"], grids


def differences(one: list[list[int]], two: list[list[int]], groups: int) -> list[list[int]]:
    """Of each world: how far its numbers moved, the largest first."""
    found = []
    for start in range(0, len(one), groups):
        pairs = zip(one[start : start + groups], two[start : start + groups], strict=True)
        moved = [abs(a - b) for first, second in pairs for a, b in zip(first, second, strict=True)]
        found.append(sorted((d for d in moved if d), reverse=True))
    return found


def allowed(moves: Any) -> list[int]:
    return sorted((move.shift for move in moves for _ in range(move.count)), reverse=True)


@pytest.mark.parametrize(("name", "unit", "adjacency"), CELLS, ids=lambda v: getattr(v, "name", v))
def test_no_bound_is_broken(name: str, unit: str, adjacency: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ask, _, with_rows, _ = ASKED[name]
    rng = random.Random(f"{name}{unit}{adjacency}")
    worlds = PAIRS // BATCHES
    for batch in range(BATCHES):
        low, high = rng.choice([(-7.0, 10.0), (0.0, 10.0), (-10.0, -1.0), (2.0, 5.0), (-3.0, 1.0)])
        groups, most, rows = rng.choice([1, 2, 3, 5]), rng.choice([1, 2, 3, 5]), rng.choice([1, 2, 4])
        drawer = Drawer(rng, low, high, groups)
        pairs = [pair(drawer, world, unit == "person", adjacency is REPLACE) for world in range(worlds)]
        setting = {
            "person": "person" if unit == "person" else None,
            "max_groups": most if unit == "person" else None,
            "max_rows": rows if unit == "person" and with_rows else None,
            "keys": keys(worlds, groups),
        }

        def asked(query: Any, low: float = low, high: float = high) -> Any:
            return ask(query, low, high)

        made, one, grid_one = exact(monkeypatch, frame([p[0] for p in pairs]), asked, adjacency, setting)
        _, two, grid_two = exact(monkeypatch, frame([p[1] for p in pairs]), asked, adjacency, setting)
        single = dp.Table(frame([pairs[0][0]]), **{n: setting[n] for n in ("person", "max_groups", "max_rows")})
        unit_text = "row" if setting["person"] is None else "person:person"
        account = asked(
            dp.Session(single, ledger=PlayLedger(unit_text, adjacency), dataset="d", by="").group_by(
                "grp", keys=keys(1, groups)
            )
        ).compiled()
        (measures,), (accounted,) = made.measures, account.measures
        for measure, stated in zip(measures, accounted, strict=True):
            label = measure.measure.name
            fine = allowed(stated.measure.moves(account.frame.setting))
            coarse = allowed(stated.moved)
            width = len(one[label][0])
            chunk = groups * width
            for moved in differences(one[label], two[label], groups):
                assert len(moved) <= len(fine), (batch, label, moved, fine)
                assert all(a <= b for a, b in zip(moved, fine, strict=False)), (batch, label, moved, fine)
            rows_one = [[value] for value in grid_one[label]]
            rows_two = [[value] for value in grid_two[label]]
            for moved in differences(rows_one, rows_two, chunk):
                assert len(moved) <= len(coarse), (batch, label, moved, coarse)
                assert all(a <= b for a, b in zip(moved, coarse, strict=False)), (batch, label, moved, coarse)


# -- extremal pairs: every bound is reached -------------------------------------------------------------------


def life(person: int, groups: str, value: float, times: int = 1) -> list[Row]:
    return [Row(person, group, value) for group in groups for _ in range(times)]


#: (what, unit, adjacency) -> lives before and after, max_groups, max_rows, low, high
EXTREMAL = [
    ("persons", "person", ADD_REMOVE, life(1, "AB", 1), [], 2, None, 0, 10),
    ("persons", "person", REPLACE, life(1, "AB", 1), life(2, "CD", 1), 2, None, 0, 10),
    ("rows", "row", ADD_REMOVE, life(1, "A", 1), [], None, None, 0, 10),
    ("rows", "row", REPLACE, life(1, "A", 1), life(1, "B", 1), None, None, 0, 10),
    ("rows", "person", ADD_REMOVE, life(1, "AB", 1, 4), [], 2, 3, 0, 10),
    ("rows", "person", REPLACE, life(1, "AB", 1, 4), life(1, "CD", 1, 4), 2, 3, 0, 10),
    ("sum", "row", ADD_REMOVE, life(1, "A", 10), [], None, None, 0, 10),
    ("sum", "row", ADD_REMOVE, life(1, "A", -8), [], None, None, -8, 4),
    ("sum", "row", REPLACE, life(1, "A", 10), life(1, "B", 10), None, None, 0, 10),
    ("sum", "person", ADD_REMOVE, life(1, "AB", 10, 3), [], 2, None, 0, 10),
    ("sum", "person", REPLACE, life(1, "AB", 10), life(1, "CD", 10), 2, None, 0, 10),
    ("mean", "row", ADD_REMOVE, life(1, "A", 8), [], None, None, 0, 8),
    ("mean", "person", ADD_REMOVE, life(1, "AB", 8, 2), [], 2, None, 0, 8),
    ("mean of rows", "person", ADD_REMOVE, life(1, "AB", 8, 5), [], 2, 3, 0, 8),
    ("variance", "row", ADD_REMOVE, life(1, "A", 8), [], None, None, 0, 8),
    ("variance", "person", ADD_REMOVE, life(1, "AB", 8, 2), [], 2, None, 0, 8),
    ("variance of rows", "person", ADD_REMOVE, life(1, "AB", 8, 5), [], 2, 3, 0, 8),
    ("histogram", "row", ADD_REMOVE, life(1, "A", 8), [], None, None, 0, 8),
    ("histogram", "row", REPLACE, life(1, "A", 8), life(1, "B", 8), None, None, 0, 8),
    ("histogram", "person", ADD_REMOVE, life(1, "AB", 8, 2), [], 2, None, 0, 8),
    ("histogram", "person", REPLACE, life(1, "AB", 8), life(1, "AB", 0), 2, None, 0, 8),
    ("histogram of rows", "person", ADD_REMOVE, life(1, "AB", 8, 5), [], 2, 3, 0, 8),
    ("histogram of rows", "person", REPLACE, life(1, "AB", 8, 5), life(1, "CD", 8, 5), 2, 3, 0, 8),
    ("quantile", "row", ADD_REMOVE, life(1, "A", 8), [], None, None, 0, 8),
    ("quantile", "row", REPLACE, life(1, "A", 8), life(1, "B", 8), None, None, 0, 8),
    ("quantile", "person", ADD_REMOVE, life(1, "AB", 8, 2), [], 2, None, 0, 8),
    ("quantile", "person", REPLACE, life(1, "AB", 8), life(1, "CD", 8), 2, None, 0, 8),
    ("quantile of rows", "person", ADD_REMOVE, life(1, "AB", 8, 5), [], 2, 3, 0, 8),
    ("quantile of rows", "person", REPLACE, life(1, "AB", 8, 5), life(1, "CD", 8, 5), 2, 3, 0, 8),
    ("distinct", "row", ADD_REMOVE, life(1, "A", 8), [], None, None, 0, 8),
    (
        "distinct",
        "person",
        ADD_REMOVE,
        life(1, "A", 8) + life(1, "A", 7) + life(1, "B", 8) + life(1, "B", 7),
        [],
        2,
        None,
        0,
        8,
    ),
]


@pytest.mark.parametrize("case", EXTREMAL, ids=lambda case: f"{case[0]} {case[1]} {case[2].name}")
def test_every_bound_is_reached(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name, unit, adjacency, before, after, most, rows, low, high = case
    others = life(50, "ABCDE", 3.0) + life(51, "A", 1.0)
    setting = {
        "person": "person" if unit == "person" else None,
        "max_groups": most,
        "max_rows": rows,
        "keys": keys(1, 5),
    }

    def asked(query: Any) -> Any:
        return ASKED[name][0](query, float(low), float(high))

    made, one, _ = exact(monkeypatch, frame([others + before]), asked, adjacency, setting)
    _, two, _ = exact(monkeypatch, frame([others + after]), asked, adjacency, setting)
    for measure in made.measures[0]:
        (moved,) = differences(one[measure.measure.name], two[measure.measure.name], len(GROUPS))
        assert moved == allowed(measure.measure.moves(made.frame.setting)), measure.measure.name


@pytest.mark.parametrize(("low", "high"), [(-8, 4), (-4, 8)])
@pytest.mark.parametrize("unit", ["row", "person"])
def test_signed_sums_reach_both_shapes(low: int, high: int, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One group twice as wide, or two groups apart: the account covers both, and each is reached."""
    far = max(abs(low), abs(high))
    extreme = float(low if far == -low else high)
    setting = {
        "person": "person" if unit == "person" else None,
        "max_groups": 1 if unit == "person" else None,
        "max_rows": None,
        "keys": keys(1, 5),
    }

    def asked(query: Any) -> Any:
        return query.sum("value", (low, high), sigma=50)

    def moved(before: list[Row], after: list[Row]) -> tuple[Any, list[int]]:
        made, one, _ = exact(monkeypatch, frame([before]), asked, REPLACE, setting)
        _, two, _ = exact(monkeypatch, frame([after]), asked, REPLACE, setting)
        return made, differences(one["value_sum"], two["value_sum"], 5)[0]

    made, same = moved(life(1, "A", float(low)), life(1, "A", float(high)))
    _, apart = moved(life(1, "A", extreme), life(1, "B", extreme))
    wide, narrow = allowed(made.measures[0][0].measure.moves(made.frame.setting))
    assert same == [wide]
    assert apart == [narrow, narrow]


def test_one_group_only_moves_by_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = {"person": "person", "max_groups": 3, "max_rows": None, "keys": keys(1, 1)}

    def asked(query: Any) -> Any:
        return query.sum("value", (-4, 8), sigma=50)

    made, one, _ = exact(monkeypatch, frame([life(1, "A", -4.0)]), asked, REPLACE, setting)
    _, two, _ = exact(monkeypatch, frame([life(1, "A", 8.0)]), asked, REPLACE, setting)
    (moved,) = differences(one["value_sum"], two["value_sum"], 1)
    assert moved == allowed(made.measures[0][0].measure.moves(made.frame.setting))
    assert len(moved) == 1


def test_a_broken_bound_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: without the choice of groups the same tables break the bound."""
    from dptally.tables import core

    monkeypatch.setattr(core, "_chosen", lambda frame, grouped, names, by, partition="p": grouped)
    with pytest.raises(AssertionError):
        test_no_bound_is_broken("persons", "person", ADD_REMOVE, monkeypatch)


# -- private keys ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["person", "row"])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE], ids=lambda a: a.name)
def test_private_keys(unit: str, adjacency: Any) -> None:
    """The exact counts behind the threshold: at most k keys (2k replaced), each by 1; what is new has count 1."""
    from dptally.tables.engine import run

    rng = random.Random(f"private{unit}{adjacency}")
    for _ in range(4 if SOAK else 2):
        most, worlds = rng.choice([1, 2, 3]), (PAIRS // 4)
        drawer = Drawer(rng, -3.0, 4.0, 5)
        pairs = [pair(drawer, world, unit == "person", adjacency is REPLACE) for world in range(worlds)]
        counts = []
        for side in (0, 1):
            bounds = {"person": "person", "max_groups": most} if unit == "person" else {}
            table = dp.Table(frame([p[side] for p in pairs]), **bounds)
            ledger = PlayLedger("person:person" if unit == "person" else "row", adjacency)
            query = dp.Session(table, ledger=ledger, dataset="d", by="").group_by("grp", keys=dp.private(60, sigma=5))
            made = query.sum("value", (-3, 4), sigma=5).compiled()
            found = made._exact(table.source.engine, run(table.source.engine, made._totals()))
            counts.append({key[0]: numbers[-1] for key, numbers in found.items()})
        k = (most if unit == "person" else 1) * (1 if adjacency is ADD_REMOVE else 2)
        moved: dict[str, list[int]] = {}
        for key in set(counts[0]) | set(counts[1]):
            one, two = counts[0].get(key, 0), counts[1].get(key, 0)
            if one != two:
                moved.setdefault(key.split("|")[0], []).append(abs(one - two))
                assert min(one, two) > 0 or max(one, two) == 1
        assert moved
        for shifts in moved.values():
            assert len(shifts) <= k
            assert set(shifts) == {1}
