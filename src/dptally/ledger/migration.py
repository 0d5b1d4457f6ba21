"""Migrating the chains of an older schema: Merkle nodes, owners and digests of totals are computed from the
entries, and a last entry of every chain states them. A ledger that does not agree with itself is not migrated.
"""

from __future__ import annotations

import sqlalchemy as sa

from dptally.ledger import schema
from dptally.ledger.chain import canonical
from dptally.ledger.commitment import bucket_of, digest_of, row_text
from dptally.ledger.entries import now, stamp
from dptally.ledger.journal import REGISTER, Journal, whose
from dptally.ledger.merkle import extended

__all__ = ["bind", "body"]


def body(journal: Journal, version: int) -> str:
    """The entry that records a migration."""
    facts = {
        "at": stamp(now()),
        "from": version,
        "seq": journal.length + 1,
        "to": schema.VERSION,
        "type": "migrate",
    }
    if journal.dataset != REGISTER:
        facts["dataset"] = journal.dataset
    return canonical(facts)


def bind(connection: sa.Connection, ledger: str, version: int) -> None:
    """Fill the columns that version 2 added, for every chain; verification follows when it is opened."""
    for table in (schema.accounts, schema.slots):
        _fill_buckets(connection, table)
    for row in connection.execute(sa.select(schema.datasets.c.name, schema.datasets.c.terms)).all():
        peaks = _fill_nodes(connection, row.name)
        values = {"peaks": canonical(peaks), "books": canonical(_digests(connection, row.name))}
        connection.execute(sa.update(schema.datasets).where(schema.datasets.c.name == row.name).values(**values))
        if row.name != REGISTER:
            _state(connection, ledger, row.name, row.terms, version)


def _state(connection: sa.Connection, ledger: str, dataset: str, terms: str, version: int) -> None:
    """The first entry that states the totals; what came before it must add up to them."""
    from dptally.ledger.verification import replayed_dataset

    replayed_dataset(connection, ledger, dataset, terms)
    columns = schema.datasets.c
    row = connection.execute(sa.select(schema.datasets).where(columns.name == dataset).with_for_update()).one()
    journal = Journal.unchecked(connection, row)
    if journal.length:
        journal.append([("migrate", None, None, body(journal, version))])


def _fill_buckets(connection: sa.Connection, table: sa.Table) -> None:
    keys = ("holder",) if table is schema.accounts else ("holder", "partition", "part")
    for row in connection.execute(sa.select(table)).mappings().all():
        here = [table.c[name] == row[name] for name in ("dataset", *keys)]
        bucket = bucket_of(*(row[name] for name in keys))
        connection.execute(sa.update(table).where(*here).values(bucket=bucket))


def _fill_nodes(connection: sa.Connection, dataset: str) -> list[str]:
    table, peaks, start = schema.entries, list[str](), 0
    fill = (
        sa.update(table)
        .where(table.c.dataset == sa.bindparam("d"), table.c.seq == sa.bindparam("s"))
        .values(node=sa.bindparam("n"), by=sa.bindparam("b"))
    )
    question = sa.select(table.c.seq, table.c.hash, sa.func.substr(table.c.body, 1, 3000).label("beginning"))
    while True:
        page = question.where(table.c.dataset == dataset, table.c.seq > start).order_by(table.c.seq).limit(1000)
        rows = connection.execute(page).all()
        if not rows:
            return peaks
        values = [
            {"d": dataset, "s": row.seq, "n": extended(peaks, place, row.hash), "b": whose(row.beginning)}
            for place, row in enumerate(rows, start + 1)
        ]
        connection.execute(fill, values)
        start = rows[-1].seq


def _digests(connection: sa.Connection, dataset: str) -> dict[str, str]:
    texts: dict[int, list[str]] = {}
    accounts, slots = schema.accounts, schema.slots
    for row in connection.execute(sa.select(accounts).where(accounts.c.dataset == dataset)):
        texts.setdefault(row.bucket, []).append(row_text((row.holder,), row.caps, row.amounts))
    for row in connection.execute(sa.select(slots).where(slots.c.dataset == dataset)):
        texts.setdefault(row.bucket, []).append(row_text((row.holder, row.partition, row.part), None, row.amounts))
    return {str(bucket): digest_of(rows) or "" for bucket, rows in texts.items()}
