"""Contract: whatever is given, an error of the documented tree comes back, soon, and without private text."""

from __future__ import annotations

import json
import math
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

import dptally as dp
from dptally import release
from dptally.documents import read_json
from dptally.errors import DptallyError, InvalidArgument, LedgerUnavailable
from dptally.ledger import Head, Ledger, Request, schema, verify_export
from dptally.ledger.chain import canonical
from dptally.ledger.entries import now, settle_body, spend_body
from dptally.ledger.pricing import work_of
from dptally.ledger.units import Amount
from dptally.mechanisms.composed import Composed


@pytest.fixture
def ledger(sqlite_url: str) -> Iterator[Ledger]:
    with Ledger.open(sqlite_url, create=True) as made:
        made.create("d", budget=dp.ApproxDP(1.0, 1e-6))
        yield made


# -- documents -----------------------------------------------------------------------------------------------

BAD_JSON = [
    "",
    "[" * 100_000,
    '{"a":' * 2_000 + "1" + "}" * 2_000,
    "NaN",
    "Infinity",
    "1e999",
    "9" * 5_000,
    '{"a":1,"a":2}',
    '"',
    "\x00",
    '{"dptally_ledger_head":1}',
    '{"dptally_ledger_head":1,"ledger":"x","chains":{"d":[1e400,""]}}',
    '{"dptally_ledger_head":1,"ledger":"x","chains":{"d":[99999999999999999999999999,"00"]}}',
    '{"dptally_ledger_head":1,"ledger":"x","chains":{"d":[-1,"00"]}}',
    '{"dptally_ledger_head":1,"ledger":"x","chains":{"d":[true,"00"]}}',
    '{"dptally_ledger_head":1,"ledger":"x","chains":{"d":[1,"zz"]}}',
    '{"dptally_ledger_head":1,"ledger":"x","chains":{"d":[1,"00"]},"roots":{"e":"00"}}',
    '{"dptally_ledger_head":1,"ledger":"x","chains":{"d":[1,"00"]},"signature":"00"}',
    '{"dptally_ledger_head":1,"ledger":"x","chains":[]}',
    '{"dptally_ledger_export":1,"ledger":"x"}',
]


@pytest.mark.parametrize("text", BAD_JSON, ids=range(len(BAD_JSON)))
def test_heads_and_exports_that_are_none(sqlite_url: str, text: str) -> None:
    with pytest.raises(InvalidArgument, match="head"):
        Head.from_json(text)
    with pytest.raises(InvalidArgument, match="head"):
        Ledger.open(sqlite_url, head=text, create=True)
    for lines in ([text], ['{"dptally_ledger_export":1,"ledger":"x"}', text]):
        with pytest.raises(DptallyError):
            verify_export(lines)


def test_the_reader_of_documents() -> None:
    assert read_json('{"a": ["[[[", 1, -2.5e3, null, true]}', "x", longest=99) == {"a": ["[[[", 1, -2500.0, None, True]}
    assert read_json('"\\"[["', "x", longest=99) == '"[['
    assert read_json("[" * 50 + "]" * 50, "x", longest=999)
    for bad in ("[" * 51 + "]" * 51, "[" * 30 + "{" * 30, "1" * 100):
        with pytest.raises(InvalidArgument, match="x must be"):
            read_json(bad, "x", longest=99 if bad[0] == "1" else 999)
    with pytest.raises(dp.InvalidType):
        read_json(b"1", "x", longest=9)


def test_a_deep_value_is_refused_and_poisons_nothing(ledger: Ledger) -> None:
    deep: object = 1
    for _ in range(940):
        deep = [deep]
    receipt = ledger.spend("d", dp.PureDP(0.01))
    with pytest.raises(InvalidArgument, match="deep"):
        receipt.release(deep)
    endless: list[object] = []
    endless.append(endless)
    for bad in (endless, object(), "x" * (1 << 21)):
        with pytest.raises(InvalidArgument, match="value"):
            receipt.release(bad)
    receipt.release({"a": [[1.5, None, True, "é"]]})
    ledger.verify()


def test_numbers_and_labels_have_limits(ledger: Ledger) -> None:
    with pytest.raises(InvalidArgument, match="after"):
        ledger.history("d", after=10**30)
    with pytest.raises(InvalidArgument, match="number"):
        ledger.inclusion("d", 10**30)
    with pytest.raises(InvalidArgument, match="labels"):
        ledger.spend("d", dp.PureDP(0.01), labels=[f"l{i}" for i in range(33)])

    def endless() -> Iterator[str]:
        i = 0
        while True:
            yield f"l{i}"
            i += 1

    with pytest.raises(InvalidArgument, match="labels"):
        Request(dp.PureDP(0.01), labels=endless())  # type: ignore[arg-type]
    for name in ("by", "why", "key"):
        with pytest.raises(InvalidArgument, match=name):
            ledger.spend("d", dp.PureDP(0.01), **{name: "x" * 5000})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://host:port/x",
        "postgresql://host:99999/x",
        "postgresql://host:0/x",
        "postgresql://[::1/x",
        "sqlite:///a\x00b.db",
        "sqlite:///",
        "",
        "postgresql+psycopg://user:secret@localhost:1/x?connect_timeout=nonsense",
    ],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(DptallyError) as caught:
        Ledger.open(url, timeout=2)
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_a_pool_without_a_free_connection(postgres_url: str) -> None:
    with Ledger.open(postgres_url, create=True, timeout=0.2) as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
        held = [ledger._store.engine.connect() for _ in range(15)]
        with pytest.raises(LedgerUnavailable, match="connection of this ledger was in use"):
            ledger.spend("d", dp.PureDP(0.1))
        for connection in held:
            connection.close()
        ledger.spend("d", dp.PureDP(0.1))


def test_many_threads_on_sqlite_wait_for_each_other(ledger: Ledger) -> None:
    failed: list[BaseException] = []

    def work() -> None:
        try:
            ledger.would_exceed("d", dp.PureDP(0.001))
            ledger.spend("d", dp.PureDP(0.001))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(ledger.history("d")) == 25


# -- tracebacks ----------------------------------------------------------------------------------------------


def everything(error: BaseException | None) -> str:
    """The error with all that hangs on it, shown or not."""
    text, seen = "", set[int]()
    stack = [error]
    while stack:
        one = stack.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            text += repr(one) + str(one) + repr(one.__dict__)
            stack += [one.__cause__, one.__context__]
    return text


def test_no_private_text_in_what_a_store_raises(url: str, opened: Callable[..., Ledger]) -> None:
    ledger = opened(timeout=0.3)
    ledger.create("d", budget=dp.PureDP(10.0))
    receipt = ledger.spend("d", dp.PureDP(0.1), why="PRIVATE reason", key="PRIVATE key")

    def insert(connection: sa.Connection) -> None:
        row = {"dataset": "d", "seq": 1, "type": "spend", "key": "x", "body": "PRIVATE body", "hash": "PRIVATE"}
        connection.execute(sa.insert(schema.entries), row)

    def wrong(connection: sa.Connection) -> None:
        connection.execute(sa.text("SELECT * FROM nowhere WHERE x = :x"), {"x": "PRIVATE"})

    def none(connection: sa.Connection) -> None:
        connection.execute(sa.insert(schema.entries), {"dataset": "PRIVATE", "seq": None})

    for work in (insert, wrong, none):
        with pytest.raises(LedgerUnavailable) as caught:
            ledger._store.write(work)
        assert "PRIVATE" not in everything(caught.value)
        assert "PRIVATE" not in "".join(traceback.format_exception(caught.value))
    ledger._store.read_only = True
    with pytest.raises(LedgerUnavailable) as caught:
        receipt.release({"PRIVATE": 1})
    assert "PRIVATE" not in everything(caught.value)


# -- the work of a plan --------------------------------------------------------------------------------------


def sampled(number: int) -> dp.Mechanism:
    return Composed.of((dp.PoissonSampled(dp.Gaussian(1 + i / 100), 0.01 + i / 1e5), 1) for i in range(number))


@pytest.mark.parametrize("budget", [dp.PureDP(1.0), dp.ZCDP(1.0), dp.GaussianDP(1.0), dp.ApproxDP(1.0, 1e-6)])
def test_a_plan_that_is_too_large_is_refused_at_once(sqlite_url: str, budget: dp.Mechanism) -> None:
    plan = sampled(250)
    assert len(dp.to_json(plan)) > 28_000
    with Ledger.open(sqlite_url, create=True) as ledger:
        ledger.create("d", budget=budget)
        for ask in (lambda: ledger.spend("d", plan), lambda: ledger.would_exceed("d", plan)):
            begun = time.process_time()
            with pytest.raises(InvalidArgument, match="too large"):
                ask()
            assert time.process_time() - begun < 1.0
        begun = time.process_time()
        with pytest.raises(dp.LedgerError):
            ledger.spend("d", 10**6 * dp.PoissonSampled(dp.Gaussian(0.5), 0.2))  # refused, without a long hint
        assert time.process_time() - begun < 2.0
        with pytest.raises(InvalidArgument, match="different parts"):
            ledger.spend("d", Composed.of((dp.Gaussian(1 + i / 1e4), 1) for i in range(2_000)))


def test_the_work_of_a_plan_is_estimated_from_its_parts() -> None:
    assert work_of(dp.Gaussian(1.0)) < work_of(dp.Laplace(1.0)) < work_of(dp.PoissonSampled(dp.Gaussian(1.0), 0.1))
    assert work_of(100 * dp.Laplace(1.0)) == work_of(dp.Laplace(1.0))
    assert work_of(dp.RenyiDP((2.0, 3.0), (0.1, 0.2))) < 2
    assert work_of(dp.Profile(points=((0.0, 1e-3), (1.0, 1e-4)))) < 2


# -- create --------------------------------------------------------------------------------------------------


def test_create_again_with_equal_terms_changes_nothing(url: str, opened: Callable[..., Ledger]) -> None:
    ledger = opened()
    terms = {"budget": dp.PureDP(1.0), "delta": 1e-6, "analysts": {"ann": dp.PureDP(0.5)}, "about": "x"}
    ledger.create("d", **terms)  # type: ignore[arg-type]
    ledger.spend("d", dp.PureDP(0.25), by="ann")
    ledger.create("d", **terms)  # type: ignore[arg-type]
    assert ledger.verify().entries == 3
    for change in ({"budget": dp.PureDP(2.0)}, {"analysts": None}, {"about": "y"}, {"delta": 1e-7}):
        with pytest.raises(dp.DatasetExists):
            ledger.create("d", **{**terms, **change})  # type: ignore[arg-type]


def test_a_head_file_that_cannot_be_read(tmp_path: Path, sqlite_url: str) -> None:
    from click.testing import CliRunner

    from dptally.cli.ledger_commands import group

    Ledger.open(sqlite_url, create=True).close()
    (tmp_path / "head.json").write_bytes(b"\xff\xfe")
    done = CliRunner().invoke(group, ["verify", "--ledger", sqlite_url, "--head", str(tmp_path / "head.json")])
    assert done.exit_code == 2


@given(texts=st.lists(st.text(max_size=12), min_size=5, max_size=5), key=st.none() | st.text(max_size=12))
def test_bodies_are_canonical_whatever_the_texts(texts: list[str], key: str | None) -> None:
    by, why, dataset, plan, label = texts
    request = Request(dp.PureDP(1.0))
    for name, value in {"by": by, "why": why, "key": key, "labels": (label, by), "part": plan}.items():
        object.__setattr__(request, name, value)  # also what a request would refuse
    expires = None if key is None else "2026-01-01T00:00:00.000000Z"
    spend = spend_body(request, plan, dataset, 7, "c" * 16, Amount((5, 10**30), 2), "2026", expires)
    settle = settle_body(dataset, 8, 7, "burnt", {"x": [key, 0.5]} if key else None, now(), "d" * 16, by)
    for body in (spend, settle):
        assert canonical(json.loads(body)) == body
    told = json.loads(spend)
    assert (told["by"], told["why"], told["dataset"], told["plan"], told["key"]) == (by, why, dataset, plan, key)
    assert told["labels"] == [label, by]
    assert (told["cost"], told["expires"], told["seq"]) == (["5", str(10**30), "2"], expires, 7)
    assert json.loads(settle)["of"] == 7


PLAN = dp.Gaussian(1e6)


class Raising:
    """An object that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


CALLS: dict[str, Callable[[Ledger, Any], object]] = {
    "dataset": lambda ledger, wrong: ledger.spend(wrong, PLAN),
    "plan": lambda ledger, wrong: ledger.spend("d", wrong),
    "would": lambda ledger, wrong: ledger.would_exceed("d", wrong),
    "by": lambda ledger, wrong: ledger.spend("d", PLAN, by=wrong),
    "key": lambda ledger, wrong: ledger.spend("d", PLAN, key=wrong),
    "labels": lambda ledger, wrong: ledger.spend("d", PLAN, labels=[wrong]),
    "batch": lambda ledger, wrong: ledger.spend_batch("d", [wrong]),
    "batches": lambda ledger, wrong: ledger.spend_batch("d", wrong),
    "compute": lambda ledger, wrong: ledger.answer("d", PLAN, wrong),
    "release": lambda ledger, wrong: ledger.release("d", wrong, [1], sigma=49),
    "unit": lambda ledger, wrong: ledger.release("d", release.count, [1], sigma=49, unit=wrong),
    "remaining": lambda ledger, wrong: ledger.remaining("d", wrong),
    "history": lambda ledger, wrong: ledger.history("d", by=wrong),
    "label": lambda ledger, wrong: ledger.history("d", label=wrong),
    "format": lambda ledger, wrong: ledger.report("d", wrong),
    "number": lambda ledger, wrong: ledger.inclusion("d", wrong),
    "head": lambda ledger, wrong: ledger.inclusion("d", 1, wrong),
    "old": lambda ledger, wrong: ledger.consistency(wrong),
    "new": lambda ledger, wrong: ledger.consistency(ledger.head(), wrong),
    "budget": lambda ledger, wrong: ledger.create("new", wrong),
    "adjacency": lambda ledger, wrong: ledger.create("new", dp.ZCDP(0.5), adjacency=wrong),
    "analysts": lambda ledger, wrong: ledger.create("new", dp.ZCDP(0.5), analysts=wrong),
    "analyst": lambda ledger, wrong: ledger.limit("d", "bob", wrong),
    "grant": lambda ledger, wrong: ledger.grant(wrong),
    "backup": lambda ledger, wrong: ledger.backup(wrong),
    "export": lambda ledger, wrong: ledger.export(wrong),
    "url": lambda ledger, wrong: Ledger.open(wrong),
    "open": lambda ledger, wrong: Ledger.open(str(ledger._store._url), head=wrong),
    "witness": lambda ledger, wrong: Ledger.open(str(ledger._store._url), witness=wrong),
}


@pytest.mark.parametrize("case", CALLS)
def test_wrong_arguments_raise_errors_of_the_tree_and_change_nothing(ledger: Ledger, tmp_path: Path, case: str) -> None:
    before = ledger.head(), sorted(path.name for path in tmp_path.iterdir())
    for wrong in (Raising(), object(), -1.5, math.nan, np.array([1, 2]), b"x", 10**400):
        if case == "batches" and isinstance(wrong, bytes):
            continue  # a sequence of wrong plans, as in "batch"
        with pytest.raises(DptallyError):
            CALLS[case](ledger, wrong)
    assert (ledger.head(), sorted(path.name for path in tmp_path.iterdir())) == before


@pytest.mark.parametrize("path", ["/nowhere/there", "/tmp", "a\0b", "/" + "a" * 300])
def test_paths_that_cannot_be_written(ledger: Ledger, path: str) -> None:
    for write in (ledger.export, ledger.backup):
        with pytest.raises(DptallyError):
            write(path)
    with pytest.raises(DptallyError):
        Ledger.open(str(ledger._store._url), witness=path)
