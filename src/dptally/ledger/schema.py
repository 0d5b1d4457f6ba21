"""The tables, their constraints (the second line behind the code), and the migrations."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

__all__ = ["FORMERLY", "MIGRATIONS", "VERSION", "accounts", "datasets", "entries", "meta", "metadata", "slots"]

VERSION = 2

#: from version n to n + 1, run in one transaction under the ledger's lock. A step lays columns; what belongs in
#: them is computed from the chains when all steps are done (see ``opening``)
MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {}

#: of entries, the most frequent first. (SQLite would make a table of IN (...) for every row that it checks.)
TYPES = ("spend", "settle", "limit", "register", "migrate")

#: constraints whose words have changed and whose meaning has not: what files of an earlier version say
FORMERLY = {"dptally_type": "CHECK (type IN ('register', 'limit', 'spend', 'settle', 'migrate'))"}

metadata = sa.MetaData()

meta = sa.Table(
    "dptally_meta",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)

#: one row for each chain: the lock of a dataset, its terms, the head of its chain, the peaks of its Merkle tree
#: and the digests of its totals. The empty name is the register.
datasets = sa.Table(
    "dptally_datasets",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("terms", sa.Text, nullable=False),
    sa.Column("length", sa.BigInteger, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
    sa.Column("peaks", sa.Text, nullable=False, server_default="[]"),
    sa.Column("books", sa.Text, nullable=False, server_default="{}"),
    sa.CheckConstraint("length >= 0", name="dptally_length"),
    sqlite_with_rowid=False,
)

#: the totals of a dataset (holder '') and of each analyst. ``cap`` and ``spent`` are those of the meter that
#: has most left.
accounts = sa.Table(
    "dptally_accounts",
    metadata,
    sa.Column("dataset", sa.Text, sa.ForeignKey("dptally_datasets.name"), primary_key=True),
    sa.Column("holder", sa.Text, primary_key=True),
    sa.Column("caps", sa.Text),
    sa.Column("amounts", sa.Text, nullable=False),
    sa.Column("cap", sa.BigInteger),
    sa.Column("spent", sa.BigInteger, nullable=False),
    sa.Column("failure_cap", sa.BigInteger),
    sa.Column("failure_spent", sa.BigInteger, nullable=False),
    sa.Column("bucket", sa.Integer, nullable=False, server_default="0"),
    sa.CheckConstraint("spent >= 0 AND (cap IS NULL OR spent <= cap)", name="dptally_within_cap"),
    sa.CheckConstraint(
        "failure_spent >= 0 AND (failure_cap IS NULL OR failure_spent <= failure_cap)",
        name="dptally_within_failure",
    ),
    sa.CheckConstraint("holder <> '' OR cap IS NOT NULL", name="dptally_dataset_capped"),
    sa.Index("dptally_accounts_bucket", "dataset", "bucket"),
    sqlite_with_rowid=False,
)

#: what each disjoint part of a partition has spent; part '' is the largest of them
slots = sa.Table(
    "dptally_slots",
    metadata,
    sa.Column("dataset", sa.Text, sa.ForeignKey("dptally_datasets.name"), primary_key=True),
    sa.Column("holder", sa.Text, primary_key=True),
    sa.Column("partition", sa.Text, primary_key=True),
    sa.Column("part", sa.Text, primary_key=True),
    sa.Column("amounts", sa.Text, nullable=False),
    sa.Column("bucket", sa.Integer, nullable=False, server_default="0"),
    sa.Index("dptally_slots_bucket", "dataset", "bucket"),
    sqlite_with_rowid=False,
)

#: the chains. ``body`` is the truth; the columns beside it are for finding and for the constraints. ``by`` is
#: whose spend it is or settles, ``node`` the root of the largest complete subtree that ends here.
entries = sa.Table(
    "dptally_entries",
    metadata,
    sa.Column("dataset", sa.Text, sa.ForeignKey("dptally_datasets.name"), primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("key", sa.Text),
    sa.Column("settles", sa.BigInteger),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("by", sa.Text),
    sa.Column("node", sa.Text),
    sa.CheckConstraint("seq >= 1", name="dptally_seq"),
    sa.CheckConstraint(" OR ".join(f"type = '{kind}'" for kind in TYPES), name="dptally_type"),
    sa.CheckConstraint("(type = 'spend') = (key IS NOT NULL)", name="dptally_keyed"),
    sa.CheckConstraint("(type = 'settle') = (settles IS NOT NULL)", name="dptally_settles"),
    sa.UniqueConstraint("dataset", "key", name="dptally_one_charge_per_key"),
    sa.UniqueConstraint("dataset", "settles", name="dptally_one_settlement"),
    sqlite_with_rowid=False,
)


def _to_2(connection: sa.Connection) -> None:
    """Merkle trees beside the chains, and digests of the totals."""
    added = {
        "dptally_datasets": ("peaks TEXT NOT NULL DEFAULT '[]'", "books TEXT NOT NULL DEFAULT '{}'"),
        "dptally_accounts": ("bucket INTEGER NOT NULL DEFAULT 0",),
        "dptally_slots": ("bucket INTEGER NOT NULL DEFAULT 0",),
        "dptally_entries": ('"by" TEXT', "node TEXT"),
    }
    for table, columns in added.items():
        for column in columns:
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column}")
    for changed in (accounts, slots):
        for index in changed.indexes:
            index.create(connection)


MIGRATIONS[1] = _to_2
