"""Contract: killed with SIGKILL at every point and at random: no release without a debit, and the next open
works.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from ledger_workers import PLAN, die_at, spend_until_killed, start

import dptally as dp
from dptally.ledger import Ledger

SOAK = bool(os.environ.get("DPTALLY_SOAK"))


def published(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def check(url: str, released: list[str]) -> None:
    """What the world has seen was paid for; the chain verifies; a new spend works."""
    with Ledger.open(url) as ledger:
        paid = [entry.key for entry in ledger.history("d")]
        assert len(paid) == len(set(paid))
        assert set(released) <= set(paid)
        ledger.verify()
        ledger.spend("d", PLAN, key=f"after-{len(paid)}")


def test_killed_at_every_point_between_two_writes(url: str, tmp_path: Path) -> None:
    out = tmp_path / "released"
    with Ledger.open(url) as ledger:
        ledger.create("d", budget=dp.PureDP(1e6))
    states = set()
    for point in range(200):
        worker = start(die_at, url, str(out), point, f"p{point}")
        if worker.join() == 0:
            break
        assert worker.exitcode == -signal.SIGKILL
        with Ledger.open(url) as ledger:
            found = [entry.state for entry in ledger.history("d") if entry.key == f"p{point}"]
            states.add(found[0] if found else None)
        check(url, published(out))
    else:
        raise AssertionError("the worker never came to its end")
    assert point > 20  # the points were really there
    assert states == {
        None,
        "reserved",
        "released",
    }  # killed before the debit, after it, and after the settlement
    assert published(Path(f"{out}.survived")) == [f"p{point}"]


def test_killed_at_random(url: str, tmp_path: Path) -> None:
    out, rng = tmp_path / "released", random.Random(11)
    with Ledger.open(url) as ledger:
        ledger.create("d", budget=dp.PureDP(1e6))
    for life in range(300 if SOAK else 20):
        worker = start(spend_until_killed, url, str(out), life)
        time.sleep(rng.uniform(0.03, 0.15))
        worker.kill()
        if life % 5 == 4 or not SOAK:
            check(url, published(out))
    check(url, published(out))
    assert len(published(out)) > 5


def test_a_retry_after_a_crash_is_not_charged_again(url: str, tmp_path: Path) -> None:
    out = tmp_path / "released"
    with Ledger.open(url) as ledger:
        ledger.create("d", budget=dp.PureDP(10.0))
        worker = start(spend_until_killed, url, str(out), 0)
        while not published(out):
            time.sleep(0.01)
        worker.kill()
        (first, *_) = ledger.history("d")
        again = ledger.spend("d", PLAN, key=first.key)
        assert again.replayed
        assert again.hash == first.hash
