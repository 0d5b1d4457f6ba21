"""Contract: killed with SIGKILL at every point and at random: no release without a debit."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from ledger_workers import PLAN, die_at, note, spend_until_killed, start

import dptally as dp
from dptally.ledger import Ledger

SOAK = bool(os.environ.get("DPTALLY_SOAK"))


def published(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def check(url: str, released: list[str], key: str = "") -> str | None:
    """What the world has seen was paid for; the chain verifies; a new spend works. The state of ``key``, if
    it is there."""
    with Ledger.open(url, create=True) as ledger:
        states = {entry.key: entry.state for entry in ledger.history("d")}
        paid = list(states)
        assert len(ledger.history("d")) == len(paid)
        assert set(released) <= set(paid)
        ledger.verify()
        ledger.spend("d", PLAN, key=f"after-{len(paid)}")
        return states.get(key)


def test_killed_at_every_point_between_two_writes(url: str, tmp_path: Path) -> None:
    out = tmp_path / "released"
    with Ledger.open(url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(1e6))
    states = set()
    for point in range(200):
        worker = start(die_at, url, str(out), point, f"p{point}")
        if worker.join() == 0:
            break
        assert worker.exitcode == -signal.SIGKILL
        states.add(check(url, published(out), f"p{point}"))
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
    with Ledger.open(url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(1e6))
    lives = 300 if SOAK else 15
    for life in range(lives):
        worker = start(spend_until_killed, url, str(out), life)
        while len(published(Path(f"{out}.started"))) <= life:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))
        worker.kill()
        if life % 5 == 4:
            check(url, published(out))
    while not published(out):  # on a slow machine a longer life is needed to publish at all
        worker = start(spend_until_killed, url, str(out), lives := lives + 1)
        time.sleep(1)
        worker.kill()
    check(url, published(out))
    note("random kills", kills=lives, published=len(published(out)))


def test_a_retry_after_a_crash_is_not_charged_again(url: str, tmp_path: Path) -> None:
    out = tmp_path / "released"
    with Ledger.open(url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(10.0))
        worker = start(spend_until_killed, url, str(out), 0)
        while not published(out):
            time.sleep(0.01)
        worker.kill()
        (first, *_) = ledger.history("d")
        again = ledger.spend("d", PLAN, key=first.key)
        assert again.replayed
        assert again.hash == first.hash
