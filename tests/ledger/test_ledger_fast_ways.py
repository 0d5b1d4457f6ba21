"""Laws: the fast ways of the ledger do what the plain ones do, and work that takes too long is stopped."""

from __future__ import annotations

import gc
import json
import random
import sqlite3
import sys
import time
from pathlib import Path

import pytest

import dptally as dp
from dptally.errors import ChainBroken, InvalidArgument
from dptally.ledger import Ledger, Request
from dptally.ledger.books import Books, Running
from dptally.ledger.chain import chained
from dptally.ledger.entries import now, settle_body, spend_body
from dptally.ledger.growth import Growth
from dptally.ledger.merkle import extended
from dptally.ledger.patience import TookTooLong, within
from dptally.ledger.plain import PlainReader
from dptally.ledger.reading import read_object
from dptally.ledger.schema import FORMERLY
from dptally.ledger.units import Amount
from dptally.ledger.verification import key_column

PLAN = dp.Gaussian(sigma=9.0)


def test_a_growing_chain_has_the_hashes_and_nodes_of_the_definition() -> None:
    head, peaks = "ab" * 32, list[str]()
    growth = Growth(0, head, [])
    for number in range(1, 70):
        body = f"entry {number} é"
        head = chained(head, body)
        assert growth.append(body) == (head, extended(peaks, number, head))
        assert (growth.head, growth.length, growth.peaks) == (head, number, peaks)
        if number % 13 == 0:
            growth = Growth(number, head, peaks)  # as a later transaction goes on


def test_running_sums_are_the_books() -> None:
    rng = random.Random(3)
    for _ in range(200):
        caps = {"": Amount((rng.randrange(50, 400),)), "*": rng.choice([None, Amount((60,))]), "a": None, "b": None}
        caps["b"] = Amount((rng.randrange(40),))
        slow, fast = (Books(Amount((0,)), {"": Amount((7,))}, dict(caps)) for _ in range(2))
        running = Running(fast)
        for _ in range(40):
            by, units = rng.choice(["", "a", "b", "c"]), rng.randrange(15)
            assert running.add(by, units) == slow.charge(by, Amount((units,)))
            if rng.random() < 0.1:
                running.close()
        running.close()
        assert fast.spent == slow.spent


def body_of(rng: random.Random, number: int) -> tuple[str, str, str]:
    """A spend as the ledger writes it: (body, by, key column)."""
    texts = ["", "a count", 'he said "seq":7, and', "back\\slash", "café", "\n", '","key":"x"']
    request = Request(
        PLAN,
        rng.choice(["", "ann", "Zoë"]),
        rng.choice(texts),
        rng.choice([None, "k-1", 'k"2', "é"]),
        rng.choice([(), ("a", "b")]),
    )
    text, call = dp.to_json(PLAN), "0123456789abcdef"
    made = spend_body(
        request, text, "d", number, call, Amount((rng.randrange(10**12),)), "2026-01-01T00:00:00.000000Z", None
    )
    return made, request.by, key_column(request.key, call)


def test_plain_spends_are_read_as_the_reader_of_json_reads_them() -> None:
    rng, reader, read = random.Random(5), PlainReader("d"), 0
    for _ in range(3_000):
        number = rng.randrange(1, 200)
        body, by, key = body_of(rng, number)
        if rng.random() < 0.7:  # an edit of one place
            place = rng.randrange(len(body))
            body = (
                body[:place]
                + rng.choice(['"', "\\", ",", "\x01", "7", "}", "", "é"])
                + body[place + rng.randrange(2) :]
            )
        found = reader.spend(body, number, by, key)
        if found is None:
            continue
        read += 1
        document = read_object(body)  # what is taken as plain is JSON, and says the same
        assert (document["by"], document["seq"], document["dataset"], document["type"]) == (by, number, "d", "spend")
        assert key_column(document["key"], document["call"]) == key
        assert (document["cost"], document["plan"]) == ([found[1], "0"], found[2])
        assert int(found[1]) == found[0]
        assert document["part"] == document["partition"] == ""
    assert read > 300


def test_plain_endings_are_read_as_the_reader_of_json_reads_them() -> None:
    rng, read = random.Random(6), 0
    for dataset in ("d", 'say "d"', "café"):
        reader = PlainReader(dataset)
        for _ in range(500):
            number, of = rng.randrange(2, 90), rng.randrange(1, 90)
            body = settle_body(
                dataset, number, of, rng.choice(["released", "burnt"]), rng.choice([None, None, 3]), now(), "77", "ann"
            )
            if rng.random() < 0.5:
                place = rng.randrange(len(body))
                body = body[:place] + rng.choice(['"', "\\", "7", "\x01"]) + body[place + rng.randrange(2) :]
            if reader.ending(body, number, "ann", of):
                read += 1
                document = read_object(body)
                assert (document["by"], document["of"], document["seq"]) == ("ann", of, number)
                assert (document["dataset"], document["type"]) == (dataset, "settle")
                assert "value" not in document
    assert read > 100


# -- constraints whose words have changed ----------------------------------------------------------------------


def rewrite_schema(path: Path, old: str, new: str) -> None:
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA writable_schema=ON")
    text = raw.execute("SELECT sql FROM sqlite_master WHERE name='dptally_entries'").fetchone()[0]
    assert old in text
    raw.execute("UPDATE sqlite_master SET sql=? WHERE name='dptally_entries'", [text.replace(old, new)])
    raw.commit()
    raw.close()


def test_a_constraint_in_its_former_words_is_as_good(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with Ledger.open(f"sqlite:///{path}", create=True) as ledger:
        ledger.create("d", budget=dp.ZCDP(1.0))
    words = "CHECK (type = 'spend' OR type = 'settle' OR type = 'limit' OR type = 'register' OR type = 'migrate')"
    rewrite_schema(path, words, FORMERLY["dptally_type"])
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.spend("d", PLAN)
        assert ledger.verify().entries == 2
    rewrite_schema(path, FORMERLY["dptally_type"], "CHECK (1)")
    with Ledger.open(f"sqlite:///{path}") as ledger, pytest.raises(ChainBroken, match="constraints of table"):
        ledger.verify()


# -- patience ----------------------------------------------------------------------------------------------------


def endless() -> None:
    while True:
        json.dumps(1)


def test_work_that_takes_too_long_is_stopped() -> None:
    start = time.process_time()
    with pytest.raises(TookTooLong):
        within(0.05, endless)
    assert time.process_time() - start < 2
    assert sys.getprofile() is None
    assert within(5.0, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within(5.0, lambda: 1 // 0)
    assert sys.getprofile() is None
    with pytest.raises(TookTooLong):
        within(0.05, lambda: within(50.0, endless))  # the outer limit holds inside


def test_under_a_profiler_nothing_is_limited() -> None:
    seen = []
    sys.setprofile(lambda *_: seen.append(1))
    try:
        assert within(0.0, lambda: sum(len(str(i)) for i in range(500))) == 1390
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    assert seen


def test_a_plan_that_takes_longer_than_it_looks_is_refused_in_a_second(tmp_path: Path) -> None:
    slow = dp.MixtureOfGaussians(2.0, tuple(range(200)), (1 / 200,) * 200)  # 11 s before there was a limit
    with Ledger.open(f"sqlite:///{tmp_path}/b.db", create=True) as ledger:
        ledger.create("d", budget=dp.ApproxDP(1.0, 1e-6))
        for ask in (ledger.spend, ledger.would_exceed):
            start = time.thread_time()
            with pytest.raises(InvalidArgument, match="too large"):
                ask("d", slow)
            assert time.thread_time() - start < 2.5
        assert ledger.history("d") == []
        ledger.spend("d", dp.ApproxDP(0.5, 1e-9))  # what it is known to satisfy, as the error says


def test_the_collector_of_garbage_is_as_it_was(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/b.db", create=True) as ledger:
        ledger.create("d", budget=dp.ZCDP(8.0))
        assert gc.isenabled()
        with ledger.spend_batch("d", [PLAN] * 600):
            assert gc.isenabled()
        with pytest.raises(dp.BudgetExceeded):
            ledger.spend_batch("d", [PLAN] * 1000)
        assert gc.isenabled()
        gc.disable()
        try:
            ledger.spend_batch("d", [PLAN] * 600)
            assert not gc.isenabled()
        finally:
            gc.enable()
