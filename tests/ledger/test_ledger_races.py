"""Contract: many processes at once: no overspend, no lost entry, no double charge."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from ledger_workers import PLAN, finish, note, open_many, retry_many, spend_many, start

import dptally as dp
from dptally.ledger import Ledger

SOAK = bool(os.environ.get("DPTALLY_SOAK"))
WORKERS = 8


def test_racing_processes_never_overspend(url: str, tmp_path: Path) -> None:
    cap, each = (4_000, 1_000) if SOAK else (200, 40)
    out = tmp_path / "receipts"
    with Ledger.open(url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(float(cap)))
        finish([start(spend_many, url, str(out), worker, each) for worker in range(WORKERS)])
        lines = Counter(out.read_text().splitlines())
        refused = lines.pop("refused", 0)
        history = ledger.history("d")
        assert len(history) == cap  # exactly the cap: nothing over, nothing lost
        assert refused == WORKERS * each - cap
        assert lines == Counter(f"{entry.number} {entry.hash}" for entry in history)  # sum of receipts = ledger
        assert {entry.state for entry in history} == {"released"}
        assert ledger.would_exceed("d", PLAN)
        assert ledger.verify().entries == 1 + 2 * cap
        note("races", asked=WORKERS * each, paid=len(history), cap=cap)


def test_a_storm_of_retries_charges_each_key_once(url: str, tmp_path: Path) -> None:
    total, keys = (100_000, 500) if SOAK else (1_200, 30)
    out = tmp_path / "charged"
    with Ledger.open(url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(1e6))
        finish([start(retry_many, url, str(out), seed, total // 4, keys) for seed in range(4)])
        charged = out.read_text().splitlines()
        assert len(charged) == len(set(charged))
        assert sorted(entry.key or "" for entry in ledger.history("d")) == sorted(charged)
        assert ledger.verify().entries == 1 + 2 * len(charged)
        note("retries", asked=total, charged=len(charged))


def test_processes_that_open_a_new_ledger_at_once_agree(url: str, tmp_path: Path) -> None:
    out = tmp_path / "ids"
    finish([start(open_many, url, str(out), worker) for worker in range(WORKERS)])
    assert len(out.read_text().splitlines()) == WORKERS
    assert len(set(out.read_text().splitlines())) == 1


def test_a_forked_child_opens_its_own_connections(url: str) -> None:
    with Ledger.open(url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(10.0))
        ledger.spend("d", PLAN)
        finish([start(lambda: ledger.spend("d", PLAN, key="child"))])
        ledger.spend("d", PLAN)
        assert [entry.key for entry in ledger.history("d")] == [None, "child", None]
