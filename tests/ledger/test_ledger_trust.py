"""Laws: what a head, a signature, a witness, a proof and a second pricing find."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import http.server
import json
import os
import random
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from ledger_workers import note

import dptally as dp
from dptally.errors import ChainBroken, InvalidArgument, LedgerUnavailable, RolledBack
from dptally.ledger import Consistency, Head, Inclusion, Ledger, check_signature, merkle, new_signing_key, schema
from dptally.ledger.chain import canonical, genesis
from dptally.ledger.journal import Journal
from dptally.ledger.opening import check_head
from dptally.ledger.verification import verify

SOAK = bool(os.environ.get("DPTALLY_SOAK"))


@pytest.fixture
def ledger(sqlite_url: str) -> Iterator[Ledger]:
    with Ledger.open(sqlite_url, create=True) as made:
        made.create("d", budget=dp.PureDP(100.0), analysts={"ann": dp.PureDP(50.0)}, parts={"ward": ("A", "B")})
        yield made


def spend_many(ledger: Ledger, number: int) -> None:
    for _ in range(number):
        with ledger.spend("d", dp.PureDP(0.01), by="ann"):
            pass


# -- prices --------------------------------------------------------------------------------------------------


def forge_a_cheap_tail(ledger: Ledger, plan: dp.Mechanism, before_why: str = "") -> None:
    """A client that lies: an expensive plan booked as almost nothing, with every hash and total in order."""

    def work(connection: sa.Connection) -> None:
        journal = Journal.locked(connection, "d")
        before = journal.load(["ann"])
        books = copy.deepcopy(before)
        cost = dataclasses.replace(journal.terms.zero, meters=(1,))
        books.charge("ann", cost)
        body = {
            "at": "2026-01-01T00:00:00.000000Z",
            "by": "ann",
            "call": "c",
            "cost": ["1", "0"],
            "dataset": "d",
            "expires": None,
            "key": None,
            "labels": [],
            "part": "",
            "partition": "",
            "plan": dp.to_json(plan),
            "seq": journal.length + 1,
            "type": "spend",
            "why": "",
        }
        journal.save(before, books)
        text = canonical(body).replace('"why"', f'{before_why}"why"')
        journal.append([("spend", "c:c", None, text)])

    ledger._store.write(work)


def test_a_forged_price_is_found_by_pricing_again(ledger: Ledger) -> None:
    spend_many(ledger, 3)
    head = ledger.head()
    assert ledger.verify(prices=True).plans == 1
    forge_a_cheap_tail(ledger, dp.PureDP(50.0))
    ledger.verify()  # hashes and sums agree
    with Ledger.open(str(ledger._store._url), head=head) as again:  # and the old head is still there
        with pytest.raises(ChainBroken, match="charged less than its plan costs") as caught:
            again.verify(prices=True)
        assert caught.value.entry == 8
        assert caught.value.dataset == "d"


def test_a_plan_that_cannot_be_priced_again_is_found(ledger: Ledger) -> None:
    forge_a_cheap_tail(ledger, dp.Gaussian(1.0))
    ledger.verify()
    with pytest.raises(ChainBroken, match="cannot be priced again"):
        ledger.verify(prices=True)


@pytest.mark.parametrize(
    "more", ['"why":"",', '"type":"spend",', f'"value":{"[" * 60}{"]" * 60},', '"x":NaN,', '"x":1e999,']
)
def test_an_entry_that_the_history_could_not_read_is_found(ledger: Ledger, more: str) -> None:
    """What a client wrote that stands twice, or too deep: reading and verifying agree on what can be read."""
    forge_a_cheap_tail(ledger, dp.PureDP(1e-18), before_why=more)
    with pytest.raises(ChainBroken, match="it cannot be read"):
        ledger.verify()
    with pytest.raises(dp.DptallyError):
        ledger.history("d")


# -- totals are checked before a spend -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE dptally_accounts SET amounts='[\"0\",\"0\"]', spent=0 WHERE holder=''",
        "UPDATE dptally_accounts SET amounts='[\"0\",\"0\"]', spent=0 WHERE holder='ann'",
        "UPDATE dptally_accounts SET amounts='[\"0\",\"0\"]' WHERE holder=''",
        "DELETE FROM dptally_accounts WHERE holder='ann'",
        "UPDATE dptally_accounts SET caps=NULL, cap=NULL WHERE holder='ann'",
        "UPDATE dptally_datasets SET terms=replace(terms, '100', '900') WHERE name='d'",
        "UPDATE dptally_datasets SET books='{}' WHERE name='d'",
        "UPDATE dptally_datasets SET books='[' WHERE name='d'",
        "UPDATE dptally_datasets SET peaks='7' WHERE name='d'",
        "DELETE FROM dptally_slots",
        "UPDATE dptally_slots SET amounts='[\"0\",\"0\"]' WHERE part='A'",
    ],
)
def test_edited_totals_and_terms_are_found_before_a_spend(ledger: Ledger, edit: str) -> None:
    ledger.spend("d", dp.PureDP(1.0), by="ann", partition="ward", part="A")
    raw = sqlite3.connect(str(ledger._store._url.database), isolation_level=None)
    raw.execute("PRAGMA ignore_check_constraints=ON")
    raw.execute(edit)
    raw.close()
    with pytest.raises(ChainBroken, match="nothing was debited"):
        ledger.spend("d", dp.PureDP(1.0), by="ann", partition="ward", part="A")
    with pytest.raises(ChainBroken):
        ledger.verify()


def test_the_check_reads_the_same_number_of_rows_after_a_long_history(ledger: Ledger) -> None:
    def rows_read() -> int:
        def count(connection: sa.Connection) -> int:
            journal = Journal.locked(connection, "d")
            journal.load(["ann"])
            return sum(len(bucket) for bucket in journal.rows.values())

        return ledger._store.write(count)

    spend_many(ledger, 2)
    before = rows_read()
    spend_many(ledger, 60)
    assert rows_read() == before


# -- the tree ------------------------------------------------------------------------------------------------


def plain_root(leaves: list[bytes]) -> bytes:
    """The definition of RFC 6962, from the leaves."""
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    joined = plain_root(leaves[:k]) + plain_root(leaves[k:])
    return hashlib.sha256(b"dptally ledger node 1\x00" + joined).digest()


def test_the_tree_is_that_of_its_definition_and_every_proof_holds() -> None:
    leaves = [hashlib.sha256(bytes([i])).digest() for i in range(40)]
    rows: dict[int, tuple[str, str | None]] = {}
    peaks: list[str] = []
    roots = {}
    for i, leaf in enumerate(leaves, 1):
        rows[i] = leaf.hex(), merkle.extended(peaks, i, leaf.hex())
        roots[i] = merkle.root(peaks, "")
        assert roots[i] == plain_root(leaves[:i]).hex()
    read = rows.__getitem__
    for size in range(1, 41):
        for number in range(1, size + 1):
            path = merkle.inclusion(read, number, size)
            leaf = leaves[number - 1].hex()
            assert merkle.check_inclusion(leaf, number, size, path, roots[size])
            assert not merkle.check_inclusion(leaf, number, size, path, roots[size % 40 + 1])
            assert not merkle.check_inclusion(leaf, number, size, [*path, leaf], roots[size])
            if size > 1:
                assert not merkle.check_inclusion(leaf, number % size + 1, size, path, roots[size])
                assert not merkle.check_inclusion(leaf, number, size, path[:-1], roots[size])
            proof = merkle.consistency(read, number, size)
            assert merkle.check_consistency(number, roots[number], size, roots[size], proof)
            if number < size:
                assert not merkle.check_consistency(number, roots[size], size, roots[size], proof)
                assert not merkle.check_consistency(number, roots[number], size, roots[number], proof)
                assert not merkle.check_consistency(number, roots[number], size, roots[size], proof[:-1])
    assert merkle.check_consistency(0, "", 5, roots[5], ())
    assert not merkle.check_consistency(6, roots[6], 5, roots[5], ())
    assert not merkle.check_inclusion(rows[1][0], 3, 2, (), roots[2])


def test_receipts_are_proved_against_a_kept_head(ledger: Ledger) -> None:
    spend_many(ledger, 9)
    old = ledger.head()
    spend_many(ledger, 8)
    new = ledger.head()
    for entry in ledger.history("d"):
        if entry.number <= old.chains["d"][0]:
            proof = Inclusion.from_json(ledger.inclusion("d", entry.number, old).to_json())
            proof.check(old)
            assert proof.hash == entry.hash
            with pytest.raises(ChainBroken):
                dataclasses.replace(proof, hash="00" * 32).check(old)
            with pytest.raises(ChainBroken):
                dataclasses.replace(proof, path=("no hash", *proof.path[1:])).check(old)
            with pytest.raises(InvalidArgument):
                proof.check(new)
        ledger.inclusion("d", entry.number).check(new)
    steps = Consistency.from_json(ledger.consistency(old).to_json())
    steps.check(old, new)
    forged = Head(new.ledger, new.chains, {**new.roots, "d": "11" * 32})
    with pytest.raises(ChainBroken):
        steps.check(old, forged)
    with pytest.raises(InvalidArgument):
        steps.check(dataclasses.replace(old, ledger="x"), new)
    with pytest.raises(ChainBroken, match="shorter"):
        ledger.consistency(new, old)
    with pytest.raises(InvalidArgument, match="number"):
        ledger.inclusion("d", 99)
    with pytest.raises(dp.errors.UnknownDataset):
        ledger.inclusion("e", 1)
    for kind in (Inclusion, Consistency):
        for text in ("", "[]", "{}", '{"dptally_inclusion":2}', '{"dptally_consistency":2}', "[" * 99):
            with pytest.raises(InvalidArgument):
                kind.from_json(text)


# -- signatures ----------------------------------------------------------------------------------------------


def test_heads_are_signed_and_checked(sqlite_url: str, tmp_path: Path) -> None:
    key = new_signing_key(tmp_path / "key.pem")
    assert (tmp_path / "key.pem").stat().st_mode & 0o077 == 0
    with pytest.raises(InvalidArgument, match="never overwritten"):
        new_signing_key(tmp_path / "key.pem")
    other = new_signing_key(tmp_path / "other.pem")
    with Ledger.open(sqlite_url, create=True, signer=tmp_path / "key.pem") as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
        ledger.spend("d", dp.PureDP(0.5))
        head = ledger.head()
    text = head.to_json()
    assert Head.from_json(text) == head
    check_signature(head, key)
    Ledger.open(sqlite_url, head=text, key=key).close()
    for bad, by in (
        (head, other),
        (dataclasses.replace(head, signature=None, key=None), key),
        (dataclasses.replace(head, roots={**head.roots, "d": "11" * 32}), key),
        (dataclasses.replace(head, chains={**head.chains, "d": (0, head.chains["d"][1])}), key),
        (head, "zz"),
    ):
        with pytest.raises(InvalidArgument):
            Ledger.open(sqlite_url, head=bad, key=by)
    with pytest.raises(InvalidArgument, match="head"):
        Ledger.open(sqlite_url, key=key)
    (tmp_path / "no.pem").write_text("nothing")
    for path in (tmp_path / "no.pem", tmp_path / "missing.pem", 5):
        with pytest.raises(InvalidArgument, match="signer"):
            Ledger.open(sqlite_url, signer=path)  # type: ignore[arg-type]


def test_without_cryptography_signing_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(dp.MissingExtra, match=r"dptally\[signing\]"):
        new_signing_key(tmp_path / "key.pem")


# -- the witness ---------------------------------------------------------------------------------------------


def test_a_witness_is_told_of_every_commit_and_notices_a_rollback(sqlite_url: str, tmp_path: Path) -> None:
    witness, key = tmp_path / "witness.jsonl", new_signing_key(tmp_path / "key.pem")
    with Ledger.open(sqlite_url, create=True, witness=witness, signer=tmp_path / "key.pem") as ledger:
        ledger.create("d", budget=dp.PureDP(1.0), analysts={"ann": dp.PureDP(0.5)})
        ledger.limit("d", "bob", dp.PureDP(0.25))
        before = witness.read_text().splitlines()
        ledger.backup(tmp_path / "old.db")
        with ledger.spend("d", dp.PureDP(0.25), by="ann"):
            assert len(witness.read_text().splitlines()) == len(before) + 1  # before the data is touched
    lines = witness.read_text().splitlines()
    assert len(lines) == len(before) + 2
    for line in lines:
        check_signature(Head.from_json(line), key)
    with witness.open("a") as file:
        file.write('{"cut')
    Ledger.open(sqlite_url, witness=witness).close()
    with pytest.raises(RolledBack):
        Ledger.open(f"sqlite:///{tmp_path}/old.db", witness=witness)


def test_a_silent_witness_stops_the_release(sqlite_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    with Ledger.open(sqlite_url, create=True, witness=folder / "heads") as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
        (folder / "heads").unlink()
        folder.rmdir()
        with pytest.raises(LedgerUnavailable, match="do not touch the data"):
            ledger.spend("d", dp.PureDP(0.25))
        assert ledger.remaining("d") < 0.76  # the debit stands
    for bad in ("ftp://x/y", tmp_path / "no" / "file", 7):
        with pytest.raises(InvalidArgument, match="witness"):
            Ledger.open(sqlite_url, witness=bad)  # type: ignore[arg-type]
    (tmp_path / "bad").write_bytes(b"\xff\n")
    with pytest.raises(LedgerUnavailable, match="cannot be read"):
        Ledger.open(sqlite_url, witness=tmp_path / "bad")


def test_a_line_that_a_full_disk_has_cut_does_not_spoil_the_witness(sqlite_url: str, tmp_path: Path) -> None:
    heads = tmp_path / "heads"
    with Ledger.open(sqlite_url, create=True, witness=heads) as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
        for cut in range(1, 60, 7):
            with heads.open("a") as file:
                file.write(ledger.head().to_json()[:cut])
            ledger.spend("d", dp.PureDP(0.01))
    with Ledger.open(sqlite_url, witness=heads) as ledger:
        assert len(ledger.history("d")) == 9
    ledger_of_then = tmp_path / "old.db"
    with Ledger.open(sqlite_url, witness=heads) as ledger:
        ledger.backup(ledger_of_then)
        ledger.spend("d", dp.PureDP(0.01))
    with pytest.raises(RolledBack):
        Ledger.open(f"sqlite:///{ledger_of_then}", witness=heads)
    heads.write_text('{"a": 1}\n')
    with pytest.raises(InvalidArgument, match="head"):
        Ledger.open(sqlite_url, witness=heads)


def test_a_witness_at_an_address(sqlite_url: str) -> None:
    kept: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            kept.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"\n".join(kept))

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/heads"
    try:
        with Ledger.open(sqlite_url, create=True, witness=address) as ledger:
            ledger.create("d", budget=dp.PureDP(1.0))
            ledger.spend("d", dp.PureDP(0.25))
        assert len(kept) == 3
        Ledger.open(sqlite_url, witness=address).close()
        kept.append(Head("another", {"": (1, "00" * 32)}).to_json().encode())
        with pytest.raises(RolledBack, match="another ledger"):
            Ledger.open(sqlite_url, witness=address)
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(LedgerUnavailable, match="address"):
        Ledger.open(sqlite_url, witness=address)


# -- older ledgers -------------------------------------------------------------------------------------------


@pytest.fixture
def version_1(tmp_path: Path) -> str:
    raw = sqlite3.connect(tmp_path / "old.db")
    raw.executescript((Path(__file__).parent / "data" / "version_1.sql").read_text())
    raw.close()
    return f"sqlite:///{tmp_path}/old.db"


def test_a_ledger_of_version_1_is_migrated_and_verifies(version_1: str) -> None:
    with Ledger.open(version_1) as ledger:
        assert ledger.verify(prices=True).plans == 3
        assert ledger.remaining("d") == pytest.approx(9.25)
        assert [entry.by for entry in ledger.history("d")] == ["ann", "bob", 'b"o\\b']
        assert ledger.answer("d", dp.PureDP(0.5), lambda: 0, by="ann", why="a count", key="k1") == {"count": 4}
        ledger.spend("d", dp.PureDP(0.5), by="ann")
        ledger.spend("unused", dp.ZCDP(0.5))
        ledger.inclusion("d", 3).check(ledger.head())
        ledger.verify()


def test_a_ledger_that_disagrees_with_itself_is_not_migrated(version_1: str, tmp_path: Path) -> None:
    raw = sqlite3.connect(tmp_path / "old.db")
    raw.execute("UPDATE dptally_entries SET body = replace(body, 'a count', 'A count')")
    raw.commit()
    raw.close()
    with pytest.raises(ChainBroken):
        Ledger.open(version_1)
    raw = sqlite3.connect(tmp_path / "old.db")
    assert raw.execute("SELECT value FROM dptally_meta WHERE name='schema'").fetchone() == ("1",)
    raw.close()


# -- the structure -------------------------------------------------------------------------------------------


def test_triggers_and_missing_constraints_are_found(ledger: Ledger) -> None:
    raw = sqlite3.connect(str(ledger._store._url.database), isolation_level=None)
    raw.execute("CREATE TRIGGER t AFTER INSERT ON dptally_entries BEGIN SELECT 1; END")
    with pytest.raises(ChainBroken, match="trigger"):
        ledger.verify()
    raw.execute("DROP TRIGGER t")
    ledger.verify()
    raw.execute("PRAGMA writable_schema=ON")
    raw.execute("UPDATE sqlite_master SET sql = replace(sql, 'spent <= cap', 'spent <> cap')")
    raw.close()
    with Ledger.open(str(ledger._store._url)) as again, pytest.raises(ChainBroken, match="constraints"):
        again.verify()


def test_postgres_triggers_rules_and_unlogged_tables_are_found(postgres_url: str) -> None:
    with Ledger.open(postgres_url, create=True) as ledger:

        def run(*statements: str) -> None:
            with ledger._store.engine.begin() as connection:
                for statement in statements:
                    connection.exec_driver_sql(statement)

        run("CREATE RULE r AS ON DELETE TO dptally_slots DO INSTEAD NOTHING")
        with pytest.raises(ChainBroken, match="rule"):
            ledger.verify()
        run("DROP RULE r ON dptally_slots", "ALTER TABLE dptally_accounts DROP CONSTRAINT dptally_within_cap")
        with pytest.raises(ChainBroken, match="dptally_within_cap"):
            ledger.verify()
        for table in reversed(schema.metadata.sorted_tables):
            run(f"ALTER TABLE {table.name} SET UNLOGGED")
        with pytest.raises(LedgerUnavailable, match="UNLOGGED"):
            Ledger.open(postgres_url)


# -- a thousand edits by somebody who computes every hash again -----------------------------------------------


def rewritten(ledger: Ledger, rng: random.Random, connection: sa.Connection) -> str:
    """Change one spend of the past and compute all that follows from it again: only a kept head can tell."""
    rows = connection.execute(
        sa.select(schema.entries).where(schema.entries.c.dataset == "d").order_by(schema.entries.c.seq)
    ).all()
    spends = [i for i, row in enumerate(rows) if row.type == "spend"]
    place = rng.choice(spends)
    field, value = rng.choice([("why", f"x{rng.random()}"), ("at", "2020-01-01T00:00:00.000000Z"), ("labels", ["z"])])
    connection.execute(sa.delete(schema.entries).where(schema.entries.c.dataset == "d"))
    row = connection.execute(sa.select(schema.datasets).where(schema.datasets.c.name == "d")).one()
    journal = Journal.unchecked(connection, row)
    journal.length, journal.head, journal.peaks = 0, genesis(ledger._id, "d"), []
    texts = []
    for i, old in enumerate(rows):
        body = json.loads(old.body)
        body.pop("books", None)
        if i == place:
            body[field] = value
        texts.append((old.type, old.key, old.settles, canonical(body)))
    journal.append(texts)
    return f"{field} of entry {place + 1}"


def test_rewritten_histories_are_found_by_a_signed_head(sqlite_url: str, tmp_path: Path) -> None:
    key = new_signing_key(tmp_path / "key.pem")
    with Ledger.open(sqlite_url, create=True, signer=tmp_path / "key.pem") as ledger:
        ledger.create("d", budget=dp.PureDP(100.0))
        with ledger.spend_batch("d", [dp.PureDP(0.25)] * 6):
            pass
        head = Head.from_json(ledger.head().to_json())
        check_signature(head, key)
        rng, agreed = random.Random(4), 0
        engine = ledger._store.engine
        for i in range(1000 if SOAK else 300):
            with engine.connect() as connection, connection.begin() as transaction:
                text = rewritten(ledger, rng, connection)
                if i % 20 == 0:
                    verify(connection, ledger._id)  # it agrees with itself
                    agreed += 1
                with pytest.raises(RolledBack, match="'d'"):
                    check_head(connection, ledger._id, head)
                assert text
                transaction.rollback()
        assert agreed == (50 if SOAK else 15)
        ledger.verify()
        note("rewritten", tried=i + 1, found=i + 1, passed_verify_alone=agreed)
