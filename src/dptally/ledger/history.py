"""Reading back: the spends with their endings, page by page, and the whole ledger as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

import sqlalchemy as sa

from dptally.ledger.chain import Head, canonical
from dptally.ledger.debit import entry_of
from dptally.ledger.entries import Entry
from dptally.ledger.opening import read_head
from dptally.ledger.reading import read_object
from dptally.ledger.schema import entries
from dptally.ledger.store import Store
from dptally.ledger.terms import Terms

__all__ = ["export", "spends"]

_PAGE = 1000
_spend, _end = entries.alias("spend"), entries.alias("ending")
_SPENDS = (
    sa.select(_spend.c.seq, _spend.c.body, _spend.c.hash, _end.c.body.label("ending"))
    .select_from(_spend.outerjoin(_end, (_end.c.dataset == _spend.c.dataset) & (_end.c.settles == _spend.c.seq)))
    .where(
        _spend.c.dataset == sa.bindparam("dataset"),
        _spend.c.type == "spend",
        _spend.c.seq > sa.bindparam("after"),
    )
    .order_by(_spend.c.seq)
    .limit(_PAGE)
)


def spends(store: Store, dataset: str, terms: Terms, after: int) -> Iterator[Entry]:
    """The spends after this number, each with its settlement; no transaction stays open between pages."""

    def page(connection: sa.Connection) -> list[tuple[int, str, str, str | None]]:
        found = connection.execute(_SPENDS, {"dataset": dataset, "after": after})
        return [(seq, body, digest, ending) for seq, body, digest, ending in found]

    rows = store.read(page)
    while rows:
        for _, body, digest, ending in rows:
            yield entry_of(dataset, terms, read_object(body), digest, None if ending is None else read_object(ending))
        after = rows[-1][0]
        rows = store.read(page) if len(rows) == _PAGE else []


def export(connection: sa.Connection, ledger: str, out: TextIO) -> Head:
    """Every entry of every chain, then the head."""
    question = sa.select(entries.c.dataset, entries.c.seq, entries.c.body, entries.c.hash)
    ordered = question.order_by(entries.c.dataset, entries.c.seq)
    out.write(canonical({"dptally_ledger_export": 1, "ledger": ledger}) + "\n")
    for dataset, seq, body, digest in connection.execution_options(yield_per=2000).execute(ordered):
        out.write(canonical({"body": body, "dataset": dataset, "hash": digest, "seq": seq}) + "\n")
    head = read_head(connection, ledger)
    out.write(head.to_json() + "\n")
    return head
