"""How fast the ledger is: durable spends, batches, verification, opening and asking a long ledger.

    python benchmarks/bench_ledger.py [--entries 1000000] [--url postgresql+psycopg://...]

Spends are bound by the disk's fsync, so the table also shows how many bare commits the disk does, and what spends,
batches and verification take of the processor (``cpu``): that depends less on the disk and on what else is running.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dptally as dp
from dptally.ledger import Ledger, Request

PLAN = dp.Gaussian(sigma=40.0)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cpu(work: Callable[[], object]) -> float:
    """Seconds of processor time of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def bare_commits(folder: Path, number: int) -> tuple[float, float]:
    """Bare commits of a SQLite table with the same durability: how many per second, the disk's own limit, and the
    milliseconds of processor time of one.
    """
    raw = sqlite3.connect(folder / "bare.db", isolation_level=None)
    raw.execute("PRAGMA journal_mode=WAL")
    raw.execute("PRAGMA synchronous=FULL")
    raw.execute("CREATE TABLE t (x)")

    def work() -> None:
        for i in range(number):
            raw.execute("BEGIN IMMEDIATE")
            raw.execute("INSERT INTO t VALUES (?)", [i])
            raw.execute("COMMIT")

    rate = number / seconds(work)
    took = 1000 * cpu(work) / number
    raw.close()
    return rate, took


def fill(ledger: Ledger, dataset: str, entries: int) -> tuple[float, float, float]:
    """Spends and settlements in batches of 10,000: the spends per second of the batch calls alone, and the
    microseconds of processor time of a spend and of its settlement.
    """
    spent, number, charging, settling = 0.0, entries // 2, 0.0, 0.0
    for start in range(0, number, 10_000):
        asked = [
            Request(PLAN, by=f"analyst {i % 7}", why="a count", key=f"k{i}")
            for i in range(start, min(start + 10_000, number))
        ]
        begun, worked = time.perf_counter(), time.process_time()
        batch = ledger.spend_batch(dataset, asked)
        spent, charging = spent + time.perf_counter() - begun, charging + time.process_time() - worked
        worked = time.process_time()
        with batch:
            pass
        settling += time.process_time() - worked
    return number / spent, 1e6 * charging / number, 1e6 * settling / number


def measure(url: str, folder: Path, entries: int) -> list[tuple[str, str, str]]:
    rate, bare = bare_commits(folder, 500)
    rows: list[tuple[str, str, str]] = [
        ("bare durable commits of this disk", f"{rate:,.0f} /s", ""),
        ("a bare commit, cpu", f"{bare:,.2f} ms", ""),
    ]
    with Ledger.open(url, create=True) as ledger:
        ledger.create("one", budget=dp.ZCDP(1e6))
        ledger.create("long", budget=dp.ZCDP(1e6), delta=1e-9)

        def spends() -> None:
            for i in range(400):
                with ledger.spend("one", PLAN, by="ann", key=f"k{i}"):
                    pass

        begun = time.process_time()
        rows.append(("spend and release (one durable commit)", f"{400 / seconds(spends):,.0f} /s", ">= 150 /s"))
        took = 1000 * (time.process_time() - begun) / 400
        rows.append(("the same, cpu", f"{took:,.2f} ms", "<= 1 ms beside a bare commit"))
        retry = seconds(lambda: [ledger.spend("one", PLAN, by="ann", key="k7") for _ in range(1000)])
        rows.append(("retry with a known key", f"{1000 / retry:,.0f} /s", ""))
        rate, charging, settling = fill(ledger, "long", entries)
        rows.append(("spends in batches of 10,000", f"{rate:,.0f} /s", ">= 2,000 /s"))
        rows.append(("one of them, cpu", f"{charging:,.1f} us", "<= 20 us"))
        rows.append(("its settlement, cpu", f"{settling:,.1f} us", ""))
    opening = seconds(lambda: Ledger.open(url, create=True).close())
    rows.append((f"open a ledger of {entries:,} entries", f"{1000 * opening:,.1f} ms", "<= 5 s"))
    with Ledger.open(url, create=True) as ledger:
        head = ledger.head()
        checked = seconds(lambda: Ledger.open(url, head=head).close())
        rows.append(("the same, with its head checked", f"{1000 * checked:,.1f} ms", "<= 5 s"))
        for name, ask in (
            ("remaining()", lambda: ledger.remaining("long")),
            ("status()", lambda: ledger.status("long")),
        ):
            ask()
            many = seconds(lambda ask=ask: [ask() for _ in range(200)])  # type: ignore[misc]
            few_name = f"{name} on {entries:,} entries"
            rows.append((few_name, f"{1e6 * many / 200:,.0f} us", "no scan"))
        few = seconds(lambda: [ledger.remaining("one") for _ in range(200)])
        rows.append(("remaining() on 800 entries", f"{1e6 * few / 200:,.0f} us", "the same"))
        again = seconds(lambda: ledger.verify(prices=True))
        rows.append(("verify, with every plan priced again", f"{entries / again:,.0f} /s", ""))
        copied = seconds(lambda: ledger.backup(folder / "copy.db")) if url.startswith("sqlite") else 0.0
        rows.append((f"back up {entries:,} entries", f"{1000 * copied:,.0f} ms", ""))
        proved = seconds(lambda: ledger.inclusion("long", 1))
        rows.append(("prove that an entry is in the head", f"{1000 * proved:,.1f} ms", ""))
        took = seconds(ledger.verify)
        number = ledger.verify().entries
        rows.append((f"verify {number:,} entries", f"{number / took:,.0f} /s", ">= 60,000 /s"))
        rows.append(("one of them, cpu", f"{1e6 * cpu(ledger.verify) / number:,.1f} us", "<= 6 us"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--url", help="another store than a temporary SQLite file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(options.url or f"sqlite:///{folder}/ledger.db", Path(folder), options.entries)
    wide = max(len(name) for name, _, _ in rows)
    print(f"{'what':<{wide}}  {'measured':>14}  wanted")
    for name, value, wanted in rows:
        print(f"{name:<{wide}}  {value:>14}  {wanted}")


if __name__ == "__main__":
    main()
