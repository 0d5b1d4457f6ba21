"""Contract: what the owner, an analyst and an auditor may do on PostgreSQL, tried with SQL of their own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest

import dptally as dp
from dptally.errors import InvalidArgument, LedgerUnavailable
from dptally.ledger import Ledger


@dataclass
class House:
    owner: str  # urls
    alice: str
    bob: str
    board: str
    names: dict[str, str]

    def sql(self, who: str, *statements: str) -> None:
        address = getattr(self, who).replace("postgresql+psycopg", "postgresql")
        with psycopg.connect(address, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)


@pytest.fixture
def house(postgres_url: str, postgres_server: str) -> Iterator[House]:
    names = {who: f"{who}_{uuid.uuid4().hex[:8]}" for who in ("alice", "bob", "board")}
    with psycopg.connect(f"host={postgres_server} user=ledger dbname=postgres", autocommit=True) as admin:
        for name in names.values():
            admin.execute(f'CREATE ROLE "{name}" LOGIN')
    urls = {who: postgres_url.replace("//ledger@", f"//{name}@") for who, name in names.items()}
    with Ledger.open(postgres_url, create=True) as ledger:
        ledger.grant(analysts=[names["alice"], names["bob"]], auditors=[names["board"]])
        ledger.create("d", budget=dp.PureDP(10.0), analysts={names["bob"]: dp.PureDP(2.0)}, parts={"ward": ["A", "B"]})
    return House(postgres_url, urls["alice"], urls["bob"], urls["board"], names)


def test_an_analyst_spends_as_itself_and_as_nobody_else(house: House) -> None:
    alice, bob = house.names["alice"], house.names["bob"]
    with Ledger.open(house.alice) as ledger:
        for part in ("A", "B", "A"):
            with ledger.spend("d", dp.PureDP(0.5), by=alice, partition="ward", part=part):
                pass
        ledger.answer("d", dp.PureDP(0.5), lambda: 4, by=alice, key="k")
        for other in (bob, "carol"):
            with pytest.raises(LedgerUnavailable, match="may not do that; nothing was debited"):
                ledger.spend("d", dp.PureDP(0.5), by=other)
        with pytest.raises(LedgerUnavailable, match="may not do that"):
            ledger.create("e", budget=dp.PureDP(1.0))
        with pytest.raises(LedgerUnavailable, match="may not do that"):
            ledger.limit("d", alice, dp.PureDP(10.0))
        with pytest.raises(LedgerUnavailable, match="may not do that"):
            ledger.grant(analysts=[alice])
    with Ledger.open(house.bob) as ledger:
        with pytest.raises(dp.BudgetExceeded):
            ledger.spend("d", dp.PureDP(3.0), by=bob)
        ledger.spend("d", dp.PureDP(1.0), by=bob)
    with Ledger.open(house.board, read_only=True) as ledger:
        assert [entry.by for entry in ledger.history("d")] == [alice] * 4 + [bob]
        ledger.verify(prices=True)
        ledger.report("d")
    with Ledger.open(house.board) as ledger, pytest.raises(LedgerUnavailable, match="may not do that"):
        ledger.spend("d", dp.PureDP(0.5), by=house.names["board"])


def test_sql_of_an_analyst_cannot_change_what_matters(house: House) -> None:
    alice, bob = house.names["alice"], house.names["bob"]
    with Ledger.open(house.bob) as ledger:
        ledger.spend("d", dp.PureDP(1.0), by=bob)
    spend = '{"by":"%s"}'
    row = 'INSERT INTO dptally_entries (dataset, seq, type, key, settles, body, hash, "by") VALUES '
    for who in ("alice", "board"):
        for statement in (
            "UPDATE dptally_datasets SET terms = '{}'",
            "UPDATE dptally_datasets SET name = 'x'",
            "UPDATE dptally_accounts SET caps = NULL",
            "UPDATE dptally_entries SET body = '{}'",
            "DELETE FROM dptally_entries",
            "DELETE FROM dptally_accounts",
            "TRUNCATE dptally_slots",
            "DROP TABLE dptally_slots",
            "UPDATE dptally_meta SET value = 'x'",
            "INSERT INTO dptally_datasets (name, terms, length, head) VALUES ('x', '{}', 0, '')",
            "INSERT INTO dptally_accounts (dataset, holder, caps, amounts, spent, failure_spent) VALUES "
            f"('d', '{alice}', '[\"9\"]', '[]', 0, 0)",
            f"{row} ('d', 90, 'spend', 'c:x', NULL, '{spend % bob}', '', '{bob}')",
            f"{row} ('d', 90, 'spend', 'c:x', NULL, '{spend % bob}', '', '{alice}')",
            f"{row} ('d', 90, 'settle', NULL, 2, '{spend % alice}', '', '{alice}')",
            f"{row} ('d', 90, 'limit', NULL, NULL, '{spend % alice}', '', '{alice}')",
            "ALTER TABLE dptally_entries DISABLE ROW LEVEL SECURITY",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                house.sql(who, statement)
    house.sql("alice", f"UPDATE dptally_accounts SET spent = 0 WHERE holder = '{bob}'")  # no row is hers to change
    with Ledger.open(house.owner) as ledger:
        ledger.verify()


def test_totals_that_an_analyst_broke_stop_the_next_spend(house: House) -> None:
    house.sql("alice", "UPDATE dptally_accounts SET amounts = '[\"5\",\"0\"]', spent = 5 WHERE holder = ''")
    with Ledger.open(house.bob) as ledger, pytest.raises(dp.ChainBroken, match="nothing was debited"):
        ledger.spend("d", dp.PureDP(1.0), by=house.names["bob"])


def test_grants_that_make_no_sense(house: House, sqlite_url: str) -> None:
    with Ledger.open(house.owner) as ledger:
        with pytest.raises(InvalidArgument, match="roles that the database has"):
            ledger.grant(analysts=["nobody known"])
        with pytest.raises(InvalidArgument, match="other roles"):
            ledger.grant(analysts=[house.names["bob"]], auditors=[house.names["bob"]])
    with Ledger.open(sqlite_url, create=True) as ledger, pytest.raises(LedgerUnavailable, match="the owner"):
        ledger.grant(analysts=["x"])
