"""Laws: every edit of a ledger is found, and the first bad entry is named.

The edits are made with all constraints switched off, inside a transaction that is rolled back after the
verification.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from ledger_workers import note
from sqlalchemy import event

import dptally as dp
from dptally.errors import ChainBroken, InvalidArgument, LedgerError, RolledBack
from dptally.ledger import Ledger, Request, verify_export
from dptally.ledger.chain import canonical, chained, genesis
from dptally.ledger.journal import Journal, opening_buckets
from dptally.ledger.opening import check_head
from dptally.ledger.terms import Terms
from dptally.ledger.verification import verify

TABLES = {
    "dptally_meta": ("name", "value"),
    "dptally_datasets": ("name", "terms", "length", "head", "peaks", "books"),
    "dptally_accounts": (
        "dataset",
        "holder",
        "caps",
        "amounts",
        "cap",
        "spent",
        "failure_cap",
        "failure_spent",
        "bucket",
    ),
    "dptally_slots": ("dataset", "holder", "partition", "part", "amounts", "bucket"),
    "dptally_entries": ("dataset", "seq", "type", "key", "settles", "body", "hash", "by", "node"),
}
KEYS = {
    "dptally_meta": ("name",),
    "dptally_datasets": ("name",),
    "dptally_accounts": ("dataset", "holder"),
    "dptally_slots": ("dataset", "holder", "partition", "part"),
    "dptally_entries": ("dataset", "seq"),
}


def build(path: Path, entries: int) -> Ledger:
    """A ledger with three kinds of budget, analysts with caps, parts, labels, and all states."""
    ledger = Ledger.open(f"sqlite:///{path}", create=True)
    parts = {"ward": [f"w{i}" for i in range(10)]}
    ledger.create("pure", budget=dp.PureDP(1e6), delta=1e-9, analysts={"ann": dp.PureDP(1e5)}, parts=parts)
    ledger.create("zcdp", budget=dp.ZCDP(1e6), parts=parts)
    ledger.create("approx", budget=dp.ApproxDP(1e4, 1e-3), parts=parts)
    names, plans = ("pure", "zcdp", "approx"), (dp.PureDP(0.01), dp.Laplace(scale=3.0))
    each = entries // 6
    for place, dataset in enumerate(names):
        requests = [
            Request(
                plans[i % 2],
                by=("ann", "bob")[i % 2],
                key=f"k{i}" if i % 3 else None,
                why=f"question {i}",
                partition="ward" if i % 5 == 0 else "",
                part=f"w{i % 4}" if i % 5 == 0 else "",
            )
            for i in range(each)
        ]
        with ledger.spend_batch(dataset, requests) as batch:
            batch[place].release({"count": 4})
            batch[place + 1].burn()
    return ledger


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    with build(tmp_path_factory.mktemp("small") / "x.db", 90) as ledger:
        yield ledger


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    with build(tmp_path_factory.mktemp("large") / "x.db", 10_000) as ledger:
        yield ledger


class Editor:
    """Somebody with write access to the file, who is stopped by no constraint."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.head = ledger.head()
        self.engine = sa.create_engine(f"sqlite:///{ledger._store._url.database}")

        @event.listens_for(self.engine, "connect")
        def _free(connection: sqlite3.Connection, _record: object) -> None:
            connection.isolation_level = None
            connection.execute("PRAGMA ignore_check_constraints=ON")

        @event.listens_for(self.engine, "begin")
        def _begin(connection: sa.Connection) -> None:
            connection.exec_driver_sql("BEGIN")

    def try_(self, edit: object, rng: random.Random) -> tuple[str, ChainBroken | None]:
        """What was edited, and what the verification said.

        Whoever cuts a chain and makes its head agree leaves a ledger that was true once: the head kept
        elsewhere tells.
        """
        with self.engine.connect() as connection, connection.begin() as transaction:
            text = edit(connection, rng)  # type: ignore[operator]
            try:
                verify(connection, self.ledger._id)
                if "and its head" in text:
                    check_head(connection, self.ledger._id, self.head)
            except ChainBroken as error:
                return text, error
            except RolledBack as error:
                return text, ChainBroken("", None, str(error))
            finally:
                transaction.rollback()
        return text, None


def random_row(
    connection: sa.Connection, rng: random.Random, table: str
) -> tuple[dict[str, object], str, dict[str, object]]:
    count = connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
    order = ", ".join(KEYS[table])
    row = connection.exec_driver_sql(
        f"SELECT * FROM {table} ORDER BY {order} LIMIT 1 OFFSET {rng.randrange(count)}"
    ).one()
    values = dict(row._mapping)
    where = " AND ".join(f'"{key}" = :k_{key}' for key in KEYS[table])
    return values, where, {f"k_{key}": values[key] for key in KEYS[table]}


def changed(value: object, rng: random.Random) -> object:
    """One byte of a text, one bit of a number, or something where nothing was."""
    if isinstance(value, int):
        return value ^ (1 << rng.randrange(40))
    if value is None:
        return rng.choice([0, "x", 7])
    assert isinstance(value, str)
    if not value:
        return "x"
    at = rng.randrange(len(value))
    other = rng.choice([c for c in '0123456789abcdefXYZ"{}[],: -.' if c != value[at]])
    return rng.choice(
        [value[:at] + other + value[at + 1 :], value[:at] + value[at + 1 :], value[:at] + other + value[at:]]
    )


def change_a_cell(connection: sa.Connection, rng: random.Random) -> str:
    table = rng.choices(list(TABLES), weights=[1, 2, 3, 2, 12])[0]
    values, where, keys = random_row(connection, rng, table)
    column = rng.choice(TABLES[table])
    new = changed(values[column], rng)
    connection.execute(sa.text(f'UPDATE OR REPLACE {table} SET "{column}" = :new WHERE {where}'), {"new": new, **keys})
    return f"{table}.{column} of {keys}: {values[column]!r} -> {new!r}"


def delete_a_row(connection: sa.Connection, rng: random.Random) -> str:
    table = rng.choices(list(TABLES), weights=[1, 2, 3, 2, 12])[0]
    _, where, keys = random_row(connection, rng, table)
    connection.execute(sa.text(f"DELETE FROM {table} WHERE {where}"), keys)
    return f"deleted {keys} from {table}"


def swap_two_entries(connection: sa.Connection, rng: random.Random) -> str:
    dataset = rng.choice(["pure", "zcdp", "approx"])
    length = connection.exec_driver_sql(f"SELECT length FROM dptally_datasets WHERE name='{dataset}'").scalar_one()
    a, b = rng.sample(range(1, length + 1), 2)
    for old, new in ((a, -1), (b, a), (-1, b)):
        connection.exec_driver_sql(f"UPDATE dptally_entries SET seq={new} WHERE dataset='{dataset}' AND seq={old}")
    return f"swapped {a} and {b} of {dataset}"


def truncate(connection: sa.Connection, rng: random.Random) -> str:
    dataset = rng.choice(["", "pure", "zcdp", "approx"])
    length = connection.exec_driver_sql(f"SELECT length FROM dptally_datasets WHERE name='{dataset}'").scalar_one()
    kept = rng.randrange(length)
    connection.exec_driver_sql(f"DELETE FROM dptally_entries WHERE dataset='{dataset}' AND seq>{kept}")
    if kept and rng.random() < 0.5:  # and make the head agree
        head = connection.exec_driver_sql(
            f"SELECT hash FROM dptally_entries WHERE dataset='{dataset}' AND seq={kept}"
        ).scalar_one()
        connection.exec_driver_sql(f"UPDATE dptally_datasets SET length={kept}, head='{head}' WHERE name='{dataset}'")
        return f"truncated {dataset} to {kept} and its head"
    return f"truncated {dataset} to {kept}"


def move_to_another_dataset(connection: sa.Connection, rng: random.Random) -> str:
    a, b = rng.sample(["pure", "zcdp", "approx"], 2)
    seq = connection.exec_driver_sql(f"SELECT length FROM dptally_datasets WHERE name='{a}'").scalar_one()
    connection.exec_driver_sql(
        f"UPDATE OR REPLACE dptally_entries SET dataset='{b}', seq=seq+100000 WHERE dataset='{a}' AND seq={seq}"
    )
    return f"moved the last of {a} to {b}"


def remove_a_dataset(connection: sa.Connection, rng: random.Random) -> str:
    dataset = rng.choice(["pure", "zcdp", "approx"])
    for table in ("entries", "accounts", "slots"):
        connection.exec_driver_sql(f"DELETE FROM dptally_{table} WHERE dataset='{dataset}'")
    connection.exec_driver_sql(f"DELETE FROM dptally_datasets WHERE name='{dataset}'")
    return f"removed {dataset}"


def make_the_last_spend_cheaper(connection: sa.Connection, rng: random.Random) -> str:
    """Rewrite a cost with all hashes after it, but not the totals."""
    rows = connection.exec_driver_sql(
        "SELECT seq, body, hash FROM dptally_entries WHERE dataset='zcdp' ORDER BY seq"
    ).all()
    spends = [index for index, row in enumerate(rows) if '"type":"spend"' in row.body]
    start = rng.choice(spends[1:])
    head = rows[start - 1].hash
    for index in range(start, len(rows)):
        body = json.loads(rows[index].body)
        if index == start:
            body["cost"] = ["1", "0"]
        text = canonical(body)
        head = chained(head, text)
        connection.execute(
            sa.text("UPDATE dptally_entries SET body=:b, hash=:h WHERE dataset='zcdp' AND seq=:s"),
            {"b": text, "h": head, "s": rows[index].seq},
        )
    connection.execute(sa.text("UPDATE dptally_datasets SET head=:h WHERE name='zcdp'"), {"h": head})
    return f"made entry {start + 1} of zcdp cheaper"


EDITS = (
    [change_a_cell] * 12
    + [delete_a_row] * 3
    + [swap_two_entries, truncate, truncate, move_to_another_dataset, remove_a_dataset]
)


def edit_many(ledger: Ledger, number: int, seed: int) -> None:
    rng, editor = random.Random(seed), Editor(ledger)
    for _ in range(number):
        edit = rng.choice(EDITS)
        text, error = editor.try_(edit, rng)
        assert error is not None, f"not detected: {text}"
    editor.engine.dispose()
    ledger.verify()  # untouched again
    note("edits", tried=number, found=number)


def test_a_thousand_random_edits_are_detected(small: Ledger) -> None:
    edit_many(small, 1000, seed=20261115)


def test_random_edits_of_ten_thousand_entries_are_detected(large: Ledger) -> None:
    assert large.verify().entries >= 9_900
    edit_many(large, 1000 if os.environ.get("DPTALLY_SOAK") else 10, seed=7)


def test_a_rewritten_chain_is_given_away_by_its_totals(small: Ledger) -> None:
    editor = Editor(small)
    for seed in range(5):
        text, error = editor.try_(make_the_last_spend_cheaper, random.Random(seed))
        assert error is not None, text
    editor.engine.dispose()


def test_the_first_bad_entry_is_named(small: Ledger) -> None:
    editor = Editor(small)

    def edit(connection: sa.Connection, rng: random.Random) -> str:
        for seq in (7, 11):
            connection.exec_driver_sql(
                "UPDATE dptally_entries SET body = replace(body, 'question', 'Question') WHERE "
                f"dataset='zcdp' AND seq={seq}"
            )
        return "two bodies"

    _, error = editor.try_(edit, random.Random(0))
    assert error is not None
    assert (error.dataset, error.entry) == ("zcdp", 7)
    assert "entry 7 of dataset 'zcdp': its hash does not follow" in str(error)

    def remove(connection: sa.Connection, rng: random.Random) -> str:
        connection.exec_driver_sql("DELETE FROM dptally_entries WHERE dataset='zcdp' AND seq=9")
        return "removed"

    _, error = editor.try_(remove, random.Random(0))
    assert error is not None
    assert (error.entry, "missing" in error.reason) == (9, True)
    editor.engine.dispose()


def test_a_forged_chain_needs_the_head_to_be_noticed(tmp_path: Path) -> None:
    """Whoever rewrites every row can make a ledger that agrees with itself; a head kept elsewhere tells."""
    with build(tmp_path / "x.db", 60) as ledger:
        head = ledger.head()
        url = f"sqlite:///{tmp_path}/x.db"
        shutil.copy(tmp_path / "x.db", tmp_path / "y.db")
    raw = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    raw.execute("DELETE FROM dptally_entries WHERE dataset='zcdp'")
    raw.execute("DELETE FROM dptally_slots WHERE dataset='zcdp'")
    raw.execute("DELETE FROM dptally_accounts WHERE dataset='zcdp' AND holder<>''")
    raw.execute("UPDATE dptally_accounts SET spent=0, amounts='[\"0\",\"0\"]' WHERE dataset='zcdp'")
    terms = raw.execute("SELECT terms FROM dptally_datasets WHERE name='zcdp'").fetchone()[0]
    books = canonical(opening_buckets(Terms.from_json(terms)))
    raw.execute(
        "UPDATE dptally_datasets SET length=0, peaks='[]', books=?, head=? WHERE name='zcdp'",
        [books, genesis(head.ledger, "zcdp")],
    )
    raw.close()
    with Ledger.open(url, create=True) as forged:
        forged.verify()
    with pytest.raises(RolledBack, match="zcdp"):
        Ledger.open(url, head=head)


def test_a_spend_does_not_build_on_a_cut_chain(tmp_path: Path) -> None:
    with build(tmp_path / "x.db", 60) as ledger:
        raw = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        raw.execute(
            "DELETE FROM dptally_entries WHERE dataset='zcdp' AND seq=(SELECT max(seq) FROM dptally_entries "
            "WHERE dataset='zcdp')"
        )
        raw.close()
        with pytest.raises(ChainBroken, match="nothing was debited"):
            ledger.spend("zcdp", dp.PureDP(0.01))


def test_flipped_bytes_of_the_file_are_detected_or_harmless(tmp_path: Path) -> None:
    """A flipped byte either is detected or lies in unused space: then every row reads as before. In an entry it is
    always detected.
    """
    path, copy = tmp_path / "x.db", tmp_path / "copy.db"
    with build(path, 120):
        pass
    original = path.read_bytes()
    assert not Path(f"{path}-wal").exists()

    def rows(file: Path) -> list[tuple[object, ...]]:
        raw = sqlite3.connect(file)
        try:
            return [row for table in TABLES for row in raw.execute(f"SELECT * FROM {table} ORDER BY 1, 2")]
        finally:
            raw.close()

    def inside(rng: random.Random) -> int:
        """A byte of an entry. Old copies of it may lie in unused space, so a piece that stands there once."""
        while True:
            body = rng.choice(bodies)
            start = rng.randrange(len(body) - 24)
            piece = body[start : start + 24].encode()
            if original.count(piece) == 1:
                return original.index(piece) + rng.randrange(24)

    before, rng = rows(path), random.Random(5)
    bodies = [row[5] for row in before if len(row) == 9 and isinstance(row[5], str) and 40 < len(row[5]) < 500]
    # half of so small a file is unused: the free ends of its pages
    for used, at in [(False, rng.randrange(len(original))) for _ in range(60)] + [
        (True, inside(rng)) for _ in range(40)
    ]:
        data = bytearray(original)
        data[at] ^= 1 << rng.randrange(8)
        copy.write_bytes(data)
        try:
            with Ledger.open(f"sqlite:///{copy}", read_only=True) as ledger:
                ledger.verify()
        except LedgerError:
            pass
        else:
            assert not used, f"byte {at}"
            assert rows(copy) == before, f"byte {at}"
        for suffix in ("-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)


# -- exports -------------------------------------------------------------------------------------------------


def test_exports_verify_anywhere_and_edits_are_detected(small: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    head = small.export(path)
    lines = path.read_text().splitlines()
    assert verify_export(lines) == small.verify()
    assert verify_export(lines).head == head
    rng = random.Random(3)
    for _ in range(100):
        at = rng.randrange(1, len(lines))
        line = lines[at]
        cut = rng.randrange(len(line))
        edited = [
            [
                *lines[:at],
                line[:cut] + ("x" if line[cut] != "x" else "y") + line[cut + 1 :],
                *lines[at + 1 :],
            ],
            [*lines[:at], *lines[at + 1 :]],
            [*lines[: at - 1], line, lines[at - 1], *lines[at + 1 :]] if at > 1 else lines[:-1],
            [*lines, lines[-1]],
        ][rng.randrange(4)]
        with pytest.raises((ChainBroken, InvalidArgument)):
            verify_export(edited)
    for nonsense in ([], ["{}"], ["[]"], ['{"dptally_ledger_export":2}']):
        with pytest.raises(InvalidArgument, match="lines"):
            verify_export(nonsense)
    with pytest.raises(dp.InvalidType):
        small.export(3)  # type: ignore[arg-type]


# -- forgeries whose hashes are right
# --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dataset", "kind", "change", "reason"),
    [
        ("d", "spend", {"cost": ["-1", "0"]}, "passes a cap"),
        ("d", "spend", {"cost": ["1000000000000000001", "0"]}, "passes a cap"),
        ("d", "spend", {"key": "other"}, "does not agree"),
        ("d", "spend", {"seq": 99}, "do not agree"),
        ("d", "spend", {"dataset": "e"}, "do not agree"),
        ("d", "spend", {"cost": []}, "cannot be read"),
        ("d", "settle", {"of": 7}, "not an open spend"),
        ("d", "settle", {"state": "refunded"}, "not an open spend"),
        ("d", "migrate", {}, "does not belong"),
        ("d", "settle", {"by": "eve"}, "not an open spend"),
        ("d", "register", {"name": "x", "terms": "{}"}, "does not belong"),
        ("", "limit", {"holder": "x", "cap": None}, "does not belong"),
        ("", "register", {"name": "x", "terms": "{}"}, "not those that were registered"),
        ("d", "spend", {}, "totals"),
    ],
)
def test_entries_that_say_what_cannot_be(
    sqlite_url: str, dataset: str, kind: str, change: dict[str, object], reason: str
) -> None:
    with Ledger.open(sqlite_url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
        ledger.spend("d", dp.PureDP(0.25))

        def forge(connection: sa.Connection) -> None:
            journal = Journal.locked(connection, dataset)
            body: dict[str, object] = {"at": "", "seq": journal.length + 1, "type": kind, "dataset": dataset}
            key = settles = None
            if kind == "spend":
                body |= {"call": "c", "key": None, "by": "", "cost": ["1", "0"], "partition": "", "part": ""}
                key = "c:c"
            elif kind == "settle":
                body |= {"of": 1, "state": "released"}
                settles = 1 if "of" not in change else 7
            journal.append([(kind, key, settles, canonical(body | change))])

        ledger._store.write(forge)
        with pytest.raises(ChainBroken, match=reason):
            ledger.verify()
